"""SQL queries on the information schema. Names are always parameters, never part of the SQL.

Each query reads one database, since the server then opens its tables alone.
"""

from typing import Final

# information_schema is spelled in capitals in MySQL, and the others can be read by administrators.
SYSTEM_DATABASES: Final = ("information_schema", "mysql", "performance_schema", "sys")

DATABASES: Final = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA"

# Only names and kinds: the server can list these without opening tables.
TABLE_NAMES: Final = """
SELECT TABLE_NAME, TABLE_TYPE
  FROM information_schema.TABLES
 WHERE TABLE_SCHEMA = %s
"""

TABLES: Final = """
SELECT TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS, DATA_LENGTH, INDEX_LENGTH, TABLE_COLLATION,
       CREATE_OPTIONS, TABLE_COMMENT
  FROM information_schema.TABLES
 WHERE TABLE_SCHEMA = %s
"""

COLUMNS: Final = """
SELECT TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, COLUMN_DEFAULT, IS_NULLABLE, COLUMN_TYPE,
       COLUMN_KEY, EXTRA, COLUMN_COMMENT, GENERATION_EXPRESSION
  FROM information_schema.COLUMNS
 WHERE TABLE_SCHEMA = %s
 ORDER BY CAST(TABLE_NAME AS BINARY), ORDINAL_POSITION
"""

KEY_COLUMNS: Final = """
SELECT TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME,
       REFERENCED_COLUMN_NAME
  FROM information_schema.KEY_COLUMN_USAGE
 WHERE TABLE_SCHEMA = %s AND CONSTRAINT_NAME <> 'PRIMARY'
 ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION
"""

REFERENCE_RULES: Final = """
SELECT TABLE_NAME, CONSTRAINT_NAME, UPDATE_RULE, DELETE_RULE
  FROM information_schema.REFERENTIAL_CONSTRAINTS
 WHERE CONSTRAINT_SCHEMA = %s
"""

MARIADB_CHECKS: Final = """
SELECT TABLE_NAME, CONSTRAINT_NAME, CHECK_CLAUSE
  FROM information_schema.CHECK_CONSTRAINTS
 WHERE CONSTRAINT_SCHEMA = %s
"""

MYSQL_CHECKS: Final = """
SELECT t.TABLE_NAME, c.CONSTRAINT_NAME, c.CHECK_CLAUSE
  FROM information_schema.CHECK_CONSTRAINTS c
  JOIN information_schema.TABLE_CONSTRAINTS t
    ON t.CONSTRAINT_SCHEMA = c.CONSTRAINT_SCHEMA AND t.CONSTRAINT_NAME = c.CONSTRAINT_NAME
   AND t.CONSTRAINT_TYPE = 'CHECK'
 WHERE c.CONSTRAINT_SCHEMA = %s
"""

PARTITIONING: Final = """
SELECT TABLE_NAME, PARTITION_METHOD, PARTITION_EXPRESSION, SUBPARTITION_METHOD,
       SUBPARTITION_EXPRESSION
  FROM information_schema.PARTITIONS
 WHERE TABLE_SCHEMA = %s AND PARTITION_ORDINAL_POSITION = 1
"""

VIEWS: Final = """
SELECT TABLE_NAME, VIEW_DEFINITION, DEFINER
  FROM information_schema.VIEWS
 WHERE TABLE_SCHEMA = %s
"""

# InnoDB encodes special characters of names as in file names. A partition is `table#P#name`.
_TABLE_IDS: Final = """
SELECT CONVERT(CAST(CAST(n.DATABASE_NAME AS BINARY) AS CHAR CHARACTER SET filename) USING utf8mb4),
       CONVERT(CAST(CAST(n.TABLE_NAME AS BINARY) AS CHAR CHARACTER SET filename) USING utf8mb4),
       n.TABLE_ID
  FROM (SELECT TABLE_ID,
               SUBSTRING_INDEX(NAME, '/', 1) AS DATABASE_NAME,
               SUBSTRING_INDEX(
                   SUBSTRING_INDEX(SUBSTRING_INDEX(NAME, '/', -1), '#P#', 1), '#p#', 1
               ) AS TABLE_NAME
          FROM information_schema.{view}
         WHERE NAME LIKE '%/%' AND NAME NOT LIKE '%/#%') AS n
 ORDER BY n.TABLE_ID DESC
"""
MARIADB_TABLE_IDS: Final = _TABLE_IDS.replace("{view}", "INNODB_SYS_TABLES")
MYSQL_TABLE_IDS: Final = _TABLE_IDS.replace("{view}", "INNODB_TABLES")

# The id of the server; table ids are only unique in a server.
SERVER_ID: Final = """
SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uid', 'server_uuid')
"""

# Counts by normalized statement since the server started or the table was truncated.
DIGESTS: Final = """
SELECT SCHEMA_NAME, DIGEST, DIGEST_TEXT, COUNT_STAR, SUM_ROWS_SENT, FIRST_SEEN, LAST_SEEN
  FROM performance_schema.events_statements_summary_by_digest
 WHERE DIGEST_TEXT IS NOT NULL AND COUNT_STAR > 0
"""
