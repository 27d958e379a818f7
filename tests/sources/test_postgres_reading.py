"""What the catalog of a real server says, in Lumos's words."""

from urllib.parse import unquote

import pytest

from databases import PostgresDatabase
from lumos.model.dataset import Definition, Owner
from lumos.model.discovery import SourceMetadata
from lumos.model.schema import Field
from lumos.sources.relational import without_passwords

TYPES = [
    ("boolean", "BOOLEAN"),
    ("smallint", "INT16"),
    ("integer", "INT32"),
    ("bigint", "INT64"),
    ("bigserial", "INT64"),
    ("real", "FLOAT32"),
    ("double precision", "FLOAT64"),
    ("numeric", "DECIMAL"),
    ("numeric(12,2)", "DECIMAL(12,2)"),
    ("numeric(5,-2)", "DECIMAL(5,-2)"),
    ("money", "DECIMAL(19,2)"),
    ("text", "STRING"),
    ("varchar", "STRING"),
    ("varchar(40)", "STRING(40)"),
    ("char(3)", "STRING(3)"),
    ("name", "STRING"),
    ("bytea", "BINARY"),
    ("date", "DATE"),
    ("time", "TIME(us)"),
    ("time(3)", "TIME(ms)"),
    ("timetz", "UNKNOWN('time with time zone')"),
    ("timetz(3)[]", "ARRAY<UNKNOWN('time(3) with time zone')>"),
    ("timestamp", "TIMESTAMP(us)"),
    ("timestamp(0)", "TIMESTAMP(s)"),
    ("timestamptz", "TIMESTAMPTZ(us)"),
    ("timestamptz(3)", "TIMESTAMPTZ(ms)"),
    ("interval", "INTERVAL"),
    ("interval day to second(3)", "INTERVAL"),
    ("uuid", "UUID"),
    ("json", "JSON"),
    ("jsonb", "JSON"),
    ("oid", "UINT32"),
    ("bit(8)", "UNKNOWN('bit(8)')"),
    ("varbit", "UNKNOWN('bit varying')"),
    ("inet", "UNKNOWN('inet')"),
    ("cidr", "UNKNOWN('cidr')"),
    ("macaddr", "UNKNOWN('macaddr')"),
    ("point", "UNKNOWN('point')"),
    ("polygon", "UNKNOWN('polygon')"),
    ("tsvector", "UNKNOWN('tsvector')"),
    ("xml", "UNKNOWN('xml')"),
    ("int4range", "UNKNOWN('int4range')"),
    ("tstzmultirange", "UNKNOWN('tstzmultirange')"),
    ('"char"', "UNKNOWN('\"char\"')"),
    ("pg_lsn", "UNKNOWN('pg_lsn')"),
    ("regclass", "UNKNOWN('regclass')"),
    ("int2vector", "UNKNOWN('int2vector')"),
    ("text[]", "ARRAY<STRING>"),
    ("integer[3][3]", "ARRAY<INT32>"),
    ("numeric(10,2)[]", "ARRAY<DECIMAL(10,2)>"),
    ("inet[]", "ARRAY<UNKNOWN('inet')>"),
    ("point[]", "ARRAY<UNKNOWN('point')>"),
    ("sea.colour", "ENUM('red','it''s','')"),
    ("sea.colour[]", "ARRAY<ENUM('red','it''s','')>"),
    ("sea.nothing", "ENUM()"),
    ("sea.price", "DECIMAL(12,2)"),
    ("sea.price[]", "ARRAY<DECIMAL(12,2)>"),
    ("sea.fine_price", "DECIMAL(12,2)"),
    ("sea.tags", "ARRAY<STRING>"),
    ("sea.place", "STRUCT<lat: FLOAT64, `Long Itude`: DECIMAL(9,6)>"),
    ("sea.place[]", "ARRAY<STRUCT<lat: FLOAT64, `Long Itude`: DECIMAL(9,6)>>"),
    (
        "sea.route",
        "STRUCT<stops: ARRAY<STRUCT<lat: FLOAT64, `Long Itude`: DECIMAL(9,6)>>, "
        "colour: ENUM('red','it''s',''), fee: DECIMAL(12,2)>",
    ),
    ("sea.harbour", "STRUCT<id: INT32, name: STRING>"),
    ("sea.span", "UNKNOWN('span')"),
    ('sea."Odd Type"', "UNKNOWN('\"Odd Type\"')"),
    ("sea.hstore", "MAP<STRING, STRING>"),
    ("sea.citext", "STRING"),
    ("sea.ltree", "UNKNOWN('ltree')"),
]


@pytest.fixture
def sea(database: PostgresDatabase) -> PostgresDatabase:
    """A database with types that people made."""
    database.run(
        "CREATE SCHEMA sea",
        "CREATE TYPE sea.colour AS ENUM ('red', '')",
        "ALTER TYPE sea.colour ADD VALUE 'it''s' AFTER 'red'",
        "CREATE TYPE sea.nothing AS ENUM ()",
        "CREATE DOMAIN sea.price AS numeric(12,2) CHECK (VALUE >= 0)",
        "CREATE DOMAIN sea.fine_price AS sea.price DEFAULT 1.5 NOT NULL",
        "CREATE DOMAIN sea.tags AS text[]",
        'CREATE TYPE sea.place AS (lat float8, "Long Itude" numeric(9,6))',
        "CREATE TYPE sea.route AS (stops sea.place[], colour sea.colour, fee sea.price)",
        "CREATE TABLE sea.harbour (id int PRIMARY KEY, gone int, name text NOT NULL)",
        "ALTER TABLE sea.harbour DROP COLUMN gone",
        "CREATE TYPE sea.span AS RANGE (subtype = date)",
        'CREATE TYPE sea."Odd Type" AS RANGE (subtype = int4)',
        "CREATE EXTENSION hstore SCHEMA sea",
        "CREATE EXTENSION citext SCHEMA sea",
        "CREATE EXTENSION ltree SCHEMA sea",
    )
    return database


def test_every_type_has_a_place_in_the_algebra_and_keeps_its_own_name(
    sea: PostgresDatabase,
) -> None:
    columns = ", ".join(f"c{at} {native}" for at, (native, _) in enumerate(TYPES))
    sea.run(f"CREATE TABLE sea.everything ({columns})")
    fields = sea.schema("sea.everything").fields
    found = [(native, field.type.text) for (native, _), field in zip(TYPES, fields, strict=True)]
    assert found == TYPES
    natives = {native: field.native_type for (native, _), field in zip(TYPES, fields, strict=True)}
    assert natives["varchar(40)"] == "character varying(40)"
    assert natives["sea.fine_price"] == "sea.fine_price"
    assert natives['sea."Odd Type"'] == 'sea."Odd Type"'


def test_a_domain_brings_its_default_and_its_refusal_of_nulls(sea: PostgresDatabase) -> None:
    sea.run("CREATE TABLE t (a sea.fine_price, b sea.fine_price DEFAULT 2, c sea.price NOT NULL)")
    a, b, c = sea.schema("public.t").fields
    assert (a.nullable, a.default) == (False, "1.5")
    assert b.default == "2"
    assert (c.nullable, c.default) == (False, None)


def test_types_nested_a_hundred_and_fifty_levels_deep_are_cut(database: PostgresDatabase) -> None:
    database.run(
        "CREATE TYPE t0 AS (leaf int)",
        *(f"CREATE TYPE t{level} AS (inner_part t{level - 1})" for level in range(1, 150)),
        "CREATE TABLE deep (whole t149, shallow t3)",
    )
    whole, shallow = database.schema("public.deep").fields
    assert "UNKNOWN('too deep')" in whole.type.text
    assert "leaf: INT32" in shallow.type.text


def test_types_that_would_fill_the_memory_are_cut(database: PostgresDatabase) -> None:
    database.run(
        "CREATE TYPE t0 AS (leaf int)",
        *(
            f"CREATE TYPE t{level} AS (a t{level - 1}, b t{level - 1}, c t{level - 1})"
            for level in range(1, 13)
        ),
        "CREATE TABLE wide (whole t12)",
    )
    assert len(database.schema("public.wide").fields[0].type.text) < 10_000_000
    assert "UNKNOWN('too large')" in database.schema("public.wide").fields[0].type.text


def test_every_kind_of_relation_is_a_dataset_but_indexes_and_the_like_are_not(
    database: PostgresDatabase,
) -> None:
    database.run(
        "CREATE EXTENSION postgres_fdw",
        "CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw",
        "CREATE TABLE plain (id int PRIMARY KEY)",
        "CREATE UNLOGGED TABLE quick (id int)",
        "CREATE VIEW seen AS SELECT id FROM plain",
        "CREATE MATERIALIZED VIEW kept AS SELECT id + 1 AS next FROM plain",
        "CREATE FOREIGN TABLE elsewhere (id int) SERVER far OPTIONS (table_name 'x')",
        "CREATE TABLE parted (day date NOT NULL) PARTITION BY RANGE (day)",
        "CREATE SEQUENCE counter",
        "CREATE TYPE pair AS (a int, b int)",
        "CREATE TEMPORARY TABLE fleeting (id int)",
        "CREATE TABLE bare ()",
    )
    found = database.found()
    assert {name: each.format for name, each in found.items()} == {
        "public.plain": "table",
        "public.quick": "table",
        "public.seen": "view",
        "public.kept": "materialized_view",
        "public.elsewhere": "foreign_table",
        "public.parted": "table",
        "public.bare": "table",
    }
    assert found["public.bare"].schema.fields == ()
    assert _told(found["public.elsewhere"].source_metadata).properties == {"server": "far"}
    assert _told(found["public.quick"].source_metadata).properties == {"persistence": "unlogged"}
    assert _told(found["public.plain"].source_metadata).properties == {}


def _told(told: SourceMetadata | None) -> SourceMetadata:
    assert told is not None
    return told


def test_views_keep_their_query_with_every_name_in_full(database: PostgresDatabase) -> None:
    database.run(
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.orders (id int, total numeric)",
        "SET search_path = sales; CREATE VIEW public.large AS SELECT id FROM orders WHERE total > 9",
    )
    told = _told(database.found()["public.large"].source_metadata)
    assert told.definition == Definition(
        sql="SELECT orders.id\n   FROM sales.orders\n  WHERE (orders.total > (9)::numeric);",
        dialect="postgres",
    )
    # However the role is set up that looks.
    database.run(f"ALTER DATABASE {database.name} SET search_path = sales, public")
    assert _told(database.found()["public.large"].source_metadata) == told


def test_what_belongs_to_an_extension_says_so(database: PostgresDatabase) -> None:
    database.run("CREATE SCHEMA watch", "CREATE EXTENSION pg_stat_statements SCHEMA watch")
    found = database.found()
    assert sorted(found) == ["watch.pg_stat_statements", "watch.pg_stat_statements_info"]
    told = _told(found["watch.pg_stat_statements_info"].source_metadata)
    assert told.properties == {"extension": "pg_stat_statements"}


def test_partitions_belong_to_their_parent(database: PostgresDatabase) -> None:
    database.run(
        "CREATE SCHEMA attic",
        "CREATE TABLE events (id int, day date NOT NULL, kind text) PARTITION BY RANGE (day)",
        "CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2024-02-01')",
        "CREATE TABLE attic.events_2 PARTITION OF events FOR VALUES FROM ('2024-02-01') TO ('2024-03-01')"
        " PARTITION BY LIST (kind)",
        "CREATE TABLE attic.events_2a PARTITION OF attic.events_2 FOR VALUES IN ('a')",
        "INSERT INTO events SELECT n, '2024-01-02' FROM generate_series(1, 300) n",
        "INSERT INTO events SELECT n, '2024-02-02', 'a' FROM generate_series(1, 200) n",
        "VACUUM ANALYZE",
    )
    found = database.found()
    assert list(found) == ["public.events"]
    events = found["public.events"]
    assert events.location.partitioning == "RANGE (day)"
    assert events.location.partition_keys == ("day",)
    assert [(field.name, field.partition) for field in events.schema.fields] == [
        ("id", False), ("day", True), ("kind", False),
    ]  # fmt: skip
    assert (events.statistics.row_count, events.statistics.row_count_exact) == (500, False)
    assert events.statistics.total_size_bytes >= 2 * 8192
    # A new partition is no change of the dataset.
    database.run(
        "CREATE TABLE events_3 PARTITION OF events FOR VALUES FROM ('2024-03-01') TO ('2024-04-01')"
    )
    assert database.found()["public.events"].content == events.content


def test_columns_inside_of_partition_expressions_are_partition_columns(
    database: PostgresDatabase,
) -> None:
    database.run(
        "CREATE TABLE t (at timestamp, zone text, plain int, n int GENERATED ALWAYS AS IDENTITY)"
        " PARTITION BY RANGE (date_trunc('day', at), plain, lower(zone))"
    )
    found = database.found()["public.t"]
    assert found.location.partition_keys == ("at", "zone", "plain")
    assert found.location.partitioning == "RANGE (date_trunc('day'::text, at), plain, lower(zone))"


def test_heirs_by_inheritance_are_tables_of_their_own(database: PostgresDatabase) -> None:
    database.run("CREATE TABLE parent (id int)", "CREATE TABLE child (more int) INHERITS (parent)")
    assert [field.name for field in database.schema("public.child").fields] == ["id", "more"]


KEYS = [
    ("a int, b int, c int, PRIMARY KEY (c, a)", {"a", "c"}),
    ("a int PRIMARY KEY, b int NOT NULL UNIQUE", {"a"}),
    ("a int NOT NULL UNIQUE, b int", {"a"}),
    ("a int NOT NULL, b int NOT NULL, c int NOT NULL UNIQUE, UNIQUE (a, b)", {"c"}),
    # What may be null tells nothing apart.
    ("a int UNIQUE, b int", set()),
    ("a int NOT NULL, b int NOT NULL, UNIQUE (a) INCLUDE (b)", {"a"}),
]


def test_the_key_is_the_primary_one_or_the_shortest_without_nulls(
    database: PostgresDatabase,
) -> None:
    database.run(*(f"CREATE TABLE t{at} ({columns})" for at, (columns, _) in enumerate(KEYS)))
    found = database.found().values()
    keys = [{field.name for field in each.schema.fields if field.key} for each in found]
    assert keys == [key for _, key in KEYS]


def test_an_index_on_some_rows_or_on_expressions_is_no_key(database: PostgresDatabase) -> None:
    database.run(
        "CREATE TABLE t (a int NOT NULL, b text NOT NULL)",
        "CREATE UNIQUE INDEX ON t (a) WHERE a > 0",
        "CREATE UNIQUE INDEX ON t (lower(b))",
        "CREATE INDEX ON t (a)",
    )
    assert not any(field.key for field in database.schema("public.t").fields)
    database.run("CREATE UNIQUE INDEX ON t (b)")
    assert [field.key for field in database.schema("public.t").fields] == [False, True]


def test_constraints_beside_the_key_are_told(database: PostgresDatabase) -> None:
    database.run(
        "CREATE TABLE customers (id int PRIMARY KEY)",
        "CREATE TABLE orders (id int PRIMARY KEY, code text CONSTRAINT one_code UNIQUE,"
        " customer int CONSTRAINT of_customer REFERENCES customers ON DELETE CASCADE,"
        " total numeric CONSTRAINT positive CHECK (total > 0))",
    )
    assert _told(database.found()["public.orders"].source_metadata).properties == {
        "constraint.one_code": "UNIQUE (code)",
        "constraint.of_customer": "FOREIGN KEY (customer) REFERENCES public.customers(id) ON DELETE CASCADE",
        "constraint.positive": "CHECK ((total > (0)::numeric))",
    }


def test_defaults_are_the_text_of_their_expression(database: PostgresDatabase) -> None:
    database.run(
        "CREATE TABLE t (a serial, b int DEFAULT 7, c text DEFAULT 'it''s', d timestamptz DEFAULT now(),"
        " e int GENERATED ALWAYS AS IDENTITY, f int GENERATED BY DEFAULT AS IDENTITY,"
        " g int GENERATED ALWAYS AS (b * 2) STORED, h int, i int DEFAULT NULL)"
    )
    assert {field.name: field.default for field in database.schema("public.t").fields} == {
        "a": "nextval('public.t_a_seq'::regclass)",
        "b": "7",
        "c": "'it''s'::text",
        "d": "now()",
        "e": "GENERATED ALWAYS AS IDENTITY",
        "f": "GENERATED BY DEFAULT AS IDENTITY",
        "g": "GENERATED ALWAYS AS ((b * 2)) STORED",
        "h": None,
        "i": None,
    }


def test_comments_and_owners_are_told(database: PostgresDatabase) -> None:
    with database.role("CREATE TABLE t (a int); ALTER TABLE t OWNER TO {role}") as role:
        database.run(
            "COMMENT ON TABLE t IS 'Ships, by name'", "COMMENT ON COLUMN t.a IS E'two\nlines'"
        )
        found = database.found()["public.t"]
        assert _told(found.source_metadata).description == "Ships, by name"
        assert _told(found.source_metadata).owner == Owner(name=role, kind="user")
        assert found.schema.fields[0].description == "two\nlines"
        database.run(f"ALTER ROLE {role} NOLOGIN")
        assert _told(database.found()["public.t"].source_metadata).owner == Owner(
            name=role, kind="group"
        )


ODD = [
    "Orders",
    "order lines",
    "a.b",
    "a/b",
    'say "so"',
    "ünïcode",
    "日本",
    "%2F",
    "x?env=DEV",
    "'; --",
    "*",
    "[a]",
]


def test_odd_names_come_through_whole(database: PostgresDatabase) -> None:
    quoted = [name.replace('"', '""') for name in ODD]
    database.run(
        *(f'CREATE SCHEMA "{schema}"' for schema in quoted),
        *(f'CREATE TABLE "{name}"."{name}" ("{name}" int)' for name in quoted),
        'CREATE SCHEMA "a"', 'CREATE TABLE "a"."b.a.b" (id int)',
    )  # fmt: skip
    source = database.source(instance="eu 1")
    datasets = source.read(lambda _: None).datasets
    urns = {source.urn(each.path, environment="PROD") for each in datasets}
    assert {urn.path for urn in urns} == {
        (database.name, "a", "b.a.b"), *((database.name, name, name) for name in ODD),
    }  # fmt: skip
    assert {urn.instance for urn in urns} == {"eu 1"}
    fields = {each.schema.fields[0].name for each in datasets}
    assert fields == {"id", *ODD}
    assert all(source.covers(each.path) for each in datasets)
    assert str(source.urn(f"{database.name}/a.b/a%2Fb", environment="DEV")) == (
        f"lumos://postgres@eu%201/{database.name}/a.b/a%2Fb?env=DEV"
    )


CHOICES: list[tuple[dict[str, object], list[str]]] = [
    (
        {"exclude": ("[[]*",)},
        ["public.orders", "public.tmp_x", "sales.orders", "sales.tmp_y", "Sales.orders"],
    ),
    ({"schemas": ("sales",)}, ["sales.orders", "sales.tmp_y"]),
    ({"schemas": ("?ales",)}, ["sales.orders", "sales.tmp_y", "Sales.orders"]),
    ({"tables": ("orders",)}, ["public.orders", "sales.orders", "Sales.orders"]),
    ({"tables": ("sales.*",)}, ["sales.orders", "sales.tmp_y"]),
    ({"exclude": ("tmp_*", "[[]*")}, ["public.orders", "sales.orders", "Sales.orders"]),
    ({"exclude": ("sales.*", "public.tmp_x", "[x]*")}, ["public.orders", "Sales.orders"]),
    ({"schemas": ("sales",), "tables": ("orders",)}, ["sales.orders"]),
    ({"tables": ("[x]*",)}, ["public.[x]*"]),
]


def test_patterns_choose_schemas_and_tables(database: PostgresDatabase) -> None:
    database.run(
        "CREATE SCHEMA sales", 'CREATE SCHEMA "Sales"', 'CREATE TABLE "Sales".orders (id int)',
        "CREATE TABLE orders (id int)", "CREATE TABLE tmp_x (id int)",
        "CREATE TABLE sales.orders (id int)", "CREATE TABLE sales.tmp_y (id int)",
        'CREATE TABLE "[x]*" (id int)',
    )  # fmt: skip
    everything = [each.path for each in database.look().datasets]
    for facts, expected in CHOICES:
        found = [each.name for each in database.look(**facts).datasets]
        assert sorted(map(str, found)) == sorted(expected), facts
        source = database.source(**facts)
        covered = [
            ".".join(map(unquote, path.split("/")[1:]))
            for path in everything
            if source.covers(path)
        ]
        assert sorted(covered) == sorted(expected), facts
        assert not source.covers("another/sales/orders")


def test_a_schema_that_is_not_there_is_remarked_upon(database: PostgresDatabase) -> None:
    database.run("CREATE SCHEMA analytics", "CREATE TABLE analytics.visits (id int)")
    found = database.look(schemas=("analitics", "analytics"))
    assert len(found.datasets) == 1
    (problem,) = found.problems
    assert (problem.code, problem.remark) == ("no_such_schema", True)
    assert problem.reason == "there is no schema 'analitics'. Did you mean 'analytics'?"


def test_sizes_are_estimates_and_unknown_until_they_are_counted(database: PostgresDatabase) -> None:
    database.run(
        "CREATE TABLE t (a text)",
        "INSERT INTO t SELECT repeat('x', 100) FROM generate_series(1, 1000)",
        "CREATE VIEW v AS SELECT * FROM t",
    )
    before = database.found()
    assert before["public.t"].statistics.row_count is None
    database.run("ANALYZE")
    after = database.found()
    statistics = after["public.t"].statistics
    assert (statistics.row_count, statistics.row_count_exact) == (1000, False)
    assert statistics.total_size_bytes > 100_000
    assert not statistics.total_size_exact
    assert after["public.v"].statistics.row_count is None
    assert after["public.t"].content == before["public.t"].content


def test_a_column_is_known_by_its_number_over_renames(database: PostgresDatabase) -> None:
    database.run("CREATE TABLE t (a int, b int)", "CREATE VIEW v AS SELECT * FROM t")
    first = [field.field_id for field in database.schema("public.t").fields]
    database.run(
        "ALTER TABLE t RENAME a TO c",
        "DROP VIEW v",
        "ALTER TABLE t DROP b",
        "ALTER TABLE t ADD d int",
    )
    assert first == [1, 2]
    assert [(f.name, f.field_id) for f in database.schema("public.t").fields] == [
        ("c", 1),
        ("d", 3),
    ]
    database.run("CREATE VIEW v AS SELECT * FROM t")
    assert all(field.field_id is None for field in database.schema("public.v").fields)


def test_schemas_of_the_system_are_left_out(database: PostgresDatabase) -> None:
    assert database.look().datasets == ()
    assert database.look(schemas=("pg_catalog",)).datasets == ()


def test_names_in_another_encoding_are_read(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    latin = PostgresDatabase(f"{postgres.rpartition('/')[0]}/latin")
    latin.run('CREATE TABLE "größe" ("maß" int)')
    assert latin.schema("public.gr%C3%B6%C3%9Fe").fields[0].name == "maß"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT password FROM t WHERE password = 'x'", "SELECT password FROM t WHERE password = 'x'"),
        ("dblink('host=a password=hush user=u', 'q')", "dblink('host=a password=*** user=u', 'q')"),
        ("dblink('dbname=a PASSWORD = hush')", "dblink('dbname=a PASSWORD = ***')"),
        ("dblink('password=''a b'' host=c')", "dblink('password=*** host=c')"),
        (r"dblink('password=''it\''s hush'' host=c')", "dblink('password=*** host=c')"),
        ("dblink('password=it''s host=c')", "dblink('password=*** host=c')"),
        ("dblink('postgresql://u:hush@h/d', 'q')", "dblink('postgresql://u:***@h/d', 'q')"),
        ("SELECT 'https://a.example:80/b'", "SELECT 'https://a.example:80/b'"),
    ],
)  # fmt: skip
def test_passwords_in_queries_are_masked(text: str, expected: str) -> None:
    assert without_passwords(text) == expected


def test_the_progress_is_told(database: PostgresDatabase) -> None:
    database.run(*(f"CREATE TABLE t{number} (id int)" for number in range(250)))
    shares: list[float] = []
    database.look(shares.append)
    assert shares == [100 / 250, 200 / 250]


def test_fields_are_in_the_order_of_the_table(database: PostgresDatabase) -> None:
    database.run("CREATE TABLE t (z int, a int NOT NULL, m int)")
    assert database.schema("public.t").fields[1] == Field(
        name="a", type=database.schema("public.t").fields[0].type, nullable=False,
        native_type="integer", field_id=2,
    )  # fmt: skip


def test_passwords_in_constraints_and_generated_columns_are_masked(
    database: PostgresDatabase,
) -> None:
    database.run(
        "CREATE TABLE public.t (a text CHECK (a <> 'postgresql://u:hush@h/d'), "
        "b text GENERATED ALWAYS AS (a || 'password=hush') STORED)"
    )
    (found,) = database.look().datasets
    assert "hush" not in str(found)
    assert "postgresql://u:***@h/d" in str(found.source_metadata)
