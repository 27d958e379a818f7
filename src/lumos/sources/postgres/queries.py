"""SQL queries on the catalog. Names are always parameters, never part of the SQL.

`%(relations)s` is a list of object ids. Queries join it as a table instead of using `= ANY(list)`,
for which servers before version 14 search the list again for every row.
"""

from typing import Final

# With an empty search path, the server qualifies all names.
SETTINGS: Final = """
SELECT set_config('search_path', '', true),
       set_config('statement_timeout', %(statement_timeout)s, true),
       set_config('lock_timeout', %(lock_timeout)s, true),
       set_config('cursor_tuple_fraction', '1', true)
"""

LOCK_TIMEOUT: Final = "SELECT set_config('lock_timeout', %(timeout)s, true)"

SERVER: Final = """
SELECT d.oid,
       has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE'),
       current_setting('block_size')::int
  FROM pg_catalog.pg_database d
 WHERE d.datname = current_database()
"""

CLUSTER: Final = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()"

# Names that start with pg_ are reserved for the server.
SCHEMAS: Final = """
SELECT n.nspname
  FROM pg_catalog.pg_namespace n
 WHERE n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
"""

# Partitions belong to their parent; temporary tables are private to a session.
RELATIONS: Final = """
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, r.rolname, r.rolcanlogin,
       d.description, CASE WHEN c.relkind = 'p' THEN pg_get_partkeydef(c.oid) END,
       s.srvname, e.extname,
       c.reltuples, c.relpages + coalesce(t.relpages, 0)
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_roles r ON r.oid = c.relowner
  LEFT JOIN pg_catalog.pg_class t ON t.oid = c.reltoastrelid
  LEFT JOIN pg_catalog.pg_foreign_table f ON f.ftrelid = c.oid
  LEFT JOIN pg_catalog.pg_foreign_server s ON s.oid = f.ftserver
  LEFT JOIN pg_catalog.pg_description d
    ON d.classoid = 'pg_catalog.pg_class'::regclass AND d.objoid = c.oid AND d.objsubid = 0
  LEFT JOIN pg_catalog.pg_depend m
    ON m.classid = 'pg_catalog.pg_class'::regclass AND m.objid = c.oid AND m.objsubid = 0
   AND m.refclassid = 'pg_catalog.pg_extension'::regclass AND m.deptype = 'e'
  LEFT JOIN pg_catalog.pg_extension e ON e.oid = m.refobjid
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition AND c.relpersistence <> 't'
   AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
 ORDER BY n.nspname, c.relname
"""

COLUMNS: Final = """
SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod,
       format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
       pg_get_expr(v.adbin, v.adrelid), d.description
  FROM unnest(%(relations)s::oid[]) WITH ORDINALITY AS wanted (oid, number)
  JOIN pg_catalog.pg_attribute a ON a.attrelid = wanted.oid
  LEFT JOIN pg_catalog.pg_attrdef v ON v.adrelid = a.attrelid AND v.adnum = a.attnum
  LEFT JOIN pg_catalog.pg_description d
    ON d.classoid = 'pg_catalog.pg_class'::regclass
   AND d.objoid = a.attrelid AND d.objsubid = a.attnum
 WHERE a.attnum > 0 AND NOT a.attisdropped
 ORDER BY wanted.number, a.attnum
"""

# A unique index is only a key if it covers all rows and has no expressions.
KEYS: Final = """
SELECT i.indrelid, i.indisprimary, k.relname, i.indkey::text, i.indnkeyatts
  FROM unnest(%(relations)s::oid[]) AS wanted (oid)
  JOIN pg_catalog.pg_index i ON i.indrelid = wanted.oid
  JOIN pg_catalog.pg_class k ON k.oid = i.indexrelid
 WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
"""

# Primary keys and NOT NULL are already part of the schema. The definition is null if a table was
# dropped in the meantime, since its visibility is unknown.
CONSTRAINTS: Final = """
SELECT c.conrelid, c.conname,
       CASE WHEN pg_table_is_visible(c.conrelid) IS NOT NULL
             AND (c.confrelid = 0 OR pg_table_is_visible(c.confrelid) IS NOT NULL)
            THEN pg_get_constraintdef(c.oid) END
  FROM unnest(%(relations)s::oid[]) AS wanted (oid)
  JOIN pg_catalog.pg_constraint c ON c.conrelid = wanted.oid
 WHERE c.contype IN ('u', 'f', 'c', 'x')
 ORDER BY c.conrelid, c.conname
"""

# The columns of a partition key, including those in expressions, which the catalog lists as
# internal dependencies of the table.
PARTITION_COLUMNS: Final = """
SELECT p.partrelid, a.attnum
  FROM unnest(%(relations)s::oid[]) AS wanted (oid)
  JOIN pg_catalog.pg_partitioned_table p ON p.partrelid = wanted.oid
  CROSS JOIN LATERAL (
       SELECT unnest(string_to_array(p.partattrs::text, ' ')::int[])
        UNION
       SELECT d.objsubid
         FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = p.partrelid
          AND d.refclassid = d.classid AND d.refobjid = d.objid
          AND d.objsubid > 0 AND d.refobjsubid = 0 AND d.deptype = 'i'
       ) AS a (attnum)
 WHERE a.attnum > 0
"""

PARTITIONS: Final = """
WITH RECURSIVE tree (root, oid) AS (
       SELECT wanted.oid, wanted.oid FROM unnest(%(relations)s::oid[]) AS wanted (oid)
        UNION ALL
       SELECT tree.root, i.inhrelid
         FROM tree JOIN pg_catalog.pg_inherits i ON i.inhparent = tree.oid
)
SELECT tree.root, c.reltuples, c.relpages + coalesce(t.relpages, 0)
  FROM tree
  JOIN pg_catalog.pg_class c ON c.oid = tree.oid AND c.relkind <> 'p'
  LEFT JOIN pg_catalog.pg_class t ON t.oid = c.reltoastrelid
"""

VIEWS: Final = """
SELECT wanted.oid, pg_get_viewdef(wanted.oid)
  FROM unnest(%(relations)s::oid[]) AS wanted (oid)
"""

# The types of columns, including the types that they consist of.
TYPES: Final = """
WITH RECURSIVE used (oid) AS (
       SELECT DISTINCT a.atttypid
         FROM unnest(%(relations)s::oid[]) AS wanted (oid)
         JOIN pg_catalog.pg_attribute a ON a.attrelid = wanted.oid
        WHERE a.attnum > 0 AND NOT a.attisdropped
        UNION
       SELECT part.oid
         FROM used
         JOIN pg_catalog.pg_type t ON t.oid = used.oid
        CROSS JOIN LATERAL (
              SELECT t.typelem
               UNION ALL
              SELECT t.typbasetype
               UNION ALL
              SELECT a.atttypid
                FROM pg_catalog.pg_attribute a
               WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
              ) AS part (oid)
        WHERE part.oid <> 0
)
SELECT t.oid, t.typtype, t.typname, quote_ident(n.nspname) || '.', t.typelem,
       t.typbasetype, t.typtypmod,
       CASE WHEN t.typbasetype <> 0 THEN format_type(t.typbasetype, t.typtypmod) END,
       t.typnotnull, t.typdefault,
       ARRAY(SELECT e.enumlabel::text FROM pg_catalog.pg_enum e
              WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder),
       ARRAY(SELECT jsonb_build_array(a.attname, a.atttypid::bigint, a.atttypmod,
                                      format_type(a.atttypid, a.atttypmod))
               FROM pg_catalog.pg_attribute a
              WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0
                AND NOT a.attisdropped
              ORDER BY a.attnum)
  FROM used
  JOIN pg_catalog.pg_type t ON t.oid = used.oid
  JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
"""
