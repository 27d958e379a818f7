"""CREATE TABLE statements of four dialects as schemas."""

import pytest

from lumos.model.conversions.sql_table import (
    SqlTable,
    SqlTableReader,
    rendered_in_sql,
    tables_from_sql,
)
from lumos.model.conversions.sql_types import Dialect
from lumos.model.schema import parse_schema
from lumos.model.types import SchemaSyntaxError

POSTGRES = """
-- what pg_dump writes
CREATE TABLE IF NOT EXISTS public."Orders" (
    Id bigserial,
    "Odd ""name" character varying(20) COLLATE "C" DEFAULT 'a''b' NOT NULL,
    placed timestamp(3) with time zone DEFAULT now() NOT NULL,
    amount numeric(10,2) DEFAULT 0.5 CHECK (amount > 0),
    note text DEFAULT 'x'::text,
    parts integer[],
    CONSTRAINT positive CHECK (amount > 0),
    FOREIGN KEY (id) REFERENCES other (id)
) PARTITION BY RANGE (placed);
CREATE INDEX by_time ON "Orders" (placed);
COMMENT ON TABLE "Orders" IS 'CREATE TABLE zz (a int)';
CREATE FUNCTION f() RETURNS int AS $body$ CREATE TABLE zz (a int); $body$ LANGUAGE sql;
ALTER TABLE ONLY public."Orders" ADD CONSTRAINT orders_pk PRIMARY KEY (id, placed);
ALTER TABLE public."Orders" OWNER TO shop;
ALTER TABLE ONLY public."Orders" ALTER COLUMN id SET DEFAULT nextval('s');
"""
HIVE = """
create external table sales.orders (
  key string comment 'the key',
  items struct<a:int comment 'x', b:array<map<string,int>>>,
  `odd na``me` decimal(10,2)
) comment 'all, of (them)'
partitioned by (dt date comment 'day', region string)
stored as parquet location 's3://lake/orders';
"""
BIGQUERY = """
CREATE OR REPLACE TABLE `project.sales.orders` (
  id INT64 NOT NULL OPTIONS(description="who, what", x=(1)),
  item STRUCT<a STRING NOT NULL, b ARRAY<INT64>>,
  day DATE DEFAULT CURRENT_DATE()
) PARTITION BY day OPTIONS(expiration=1);
"""
SNOWFLAKE = """
create transient table a.b.orders (
  id number(38,0) autoincrement start 1 increment 1,
  "body" variant,
  at timestamp_ntz(6) comment 'when',
  constraint pk primary key (id)
) cluster by (id)
"""

CASES: list[tuple[Dialect, str, str]] = [
    (
        "postgres",
        POSTGRES,
        """
        id INT64 NOT NULL KEY
        `Odd "name` STRING(20) NOT NULL DEFAULT 'a''b'
        placed TIMESTAMPTZ(ms) NOT NULL KEY PARTITION DEFAULT 'now()'
        amount DECIMAL(10,2) DEFAULT '0.5'
        note STRING DEFAULT '''x''::text'
        parts ARRAY<INT32>
        """,
    ),
    (
        "hive",
        HIVE,
        """
        key STRING COMMENT 'the key'
        items STRUCT<a: INT32, b: ARRAY<MAP<STRING, INT32>>>
        `odd na``me` DECIMAL(10,2)
        dt DATE PARTITION COMMENT 'day'
        region STRING PARTITION
        """,
    ),
    (
        "bigquery",
        BIGQUERY,
        """
        id INT64 NOT NULL COMMENT 'who, what'
        item STRUCT<a: STRING NOT NULL, b: ARRAY<INT64>>
        day DATE PARTITION DEFAULT 'CURRENT_DATE()'
        """,
    ),
    (
        "snowflake",
        SNOWFLAKE,
        """
        ID DECIMAL(38,0) NOT NULL KEY
        body JSON
        AT TIMESTAMP(us) COMMENT 'when'
        """,
    ),
]


def table(text: str, dialect: Dialect) -> SqlTable:
    (found,) = tables_from_sql(text, dialect)
    return found


@pytest.mark.parametrize(("dialect", "text", "expected"), CASES, ids=[each[0] for each in CASES])
def test_a_statement_becomes_a_schema(dialect: Dialect, text: str, expected: str) -> None:
    found = table(text, dialect)
    assert found.name.lower() == "orders"
    assert str(found.schema) == str(parse_schema(expected))


def test_quoted_names_are_distinguished_from_those_that_may_stand_in_any_case() -> None:
    found = table(SNOWFLAKE, "snowflake")
    assert found.unquoted == {"ID", "AT"}


def test_columns_may_be_called_like_clauses_of_tables() -> None:
    found = table("CREATE TABLE t (key string, `check` int, unique boolean)", "hive")
    assert [field.name for field in found.schema.fields] == ["key", "check", "unique"]


def test_columns_named_in_partitioned_by_are_marked() -> None:
    found = table(
        "CREATE TABLE t (a int, dt date) USING delta PARTITIONED BY (dt, bucket(4, a))", "hive"
    )
    assert [field.partition for field in found.schema.fields] == [False, True]


def test_several_tables_are_read_in_their_order() -> None:
    text = "CREATE TABLE a (x int); INSERT INTO a VALUES ('CREATE TABLE c (x int)'); CREATE TABLE b (y int)"
    assert [each.name for each in tables_from_sql(text, "postgres")] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "problem", "line", "column"),
    [
        pytest.param("CREATE TABLE t (\n  a int,\n  a text)", "the column 'a' is listed twice", 3, 3, id="twice"),
        pytest.param("CREATE TABLE t AS SELECT 1", "without a list of columns", 1, 16, id="from a query"),
        pytest.param("CREATE TABLE t (a int", "a bracket is not closed", 1, 22, id="cut off"),
        pytest.param("CREATE TABLE t (a", "expected a type", 1, 18, id="no type"),
        pytest.param("CREATE TABLE t (LIKE u)", "LIKE copies", 1, 17, id="like"),
        pytest.param("CREATE TABLE t (a int);\nALTER TABLE t DROP COLUMN a", "ALTER TABLE", 2, 15, id="altered"),
        pytest.param("CREATE TABLE t (1 int)", "expected a name, found '1'", 1, 17, id="no name"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_its_place(
    text: str, problem: str, line: int, column: int
) -> None:
    with pytest.raises(SchemaSyntaxError, match=problem.replace("(", r"\(")) as error:
        tables_from_sql(text, "postgres")
    assert (error.value.line, error.value.column) == (line, column)


def test_thousands_of_brackets_do_not_crash() -> None:
    deep = "CREATE TABLE t (a " + "array<" * 5_000 + "int" + ">" * 5_000 + ")"
    assert "too deep" in table(deep, "hive").schema.fields[0].type.text
    assert len(tables_from_sql("(" * 100_000, "hive")) == 0


@pytest.mark.parametrize("text", ["/*", "$a$", "'", '"', "`", "--"])
def test_what_is_opened_and_never_closed_does_not_hang(text: str) -> None:
    assert tables_from_sql(text * 20_001, "postgres") == ()


def test_a_schema_is_shown_with_the_types_that_the_dialect_has() -> None:
    schema = parse_schema("id INT32 NOT NULL KEY COMMENT 'x'\nat TIMESTAMP(us)")
    assert str(rendered_in_sql(schema, "snowflake")) == (
        "id DECIMAL(10,0) NOT NULL KEY\nat TIMESTAMP(us)"
    )
    assert str(rendered_in_sql(schema, "hive")) == "id INT32 NOT NULL KEY\nat TIMESTAMP(ns)"


def test_a_table_created_from_a_query_is_rejected_before_the_query_is_read() -> None:
    reader = SqlTableReader(f"create table t as select {', '.join(['a'] * 1_000)}", "postgres")
    with pytest.raises(SchemaSyntaxError, match="without a list of columns"):
        reader.tables()
    assert len(reader.tokens) < 10
