"""SQL types of four dialects and what is lost between them and the algebra."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.model.conversions.sql_types import Dialect, type_from_sql, type_to_sql
from lumos.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    JSON,
    MAX_DEPTH,
    NULL,
    STRING,
    UNITS,
    UUID,
    Array,
    DataType,
    Decimal,
    Map,
    Member,
    String,
    Struct,
    Time,
    Timestamp,
    Union,
    parse_type,
)

from .strategies import NAMES, TEXTS, TYPES, arrays, maps, nested, plain_decimals, structs

DIALECTS: tuple[Dialect, ...] = ("postgres", "snowflake", "bigquery", "hive")

# text in the dialect | type in the algebra | text that comes back, where it is another one
POSTGRES = """
smallint | INT16
int2 | INT16 | smallint
integer | INT32
int4 | INT32 | integer
serial | INT32 | integer
bigint | INT64
int8 | INT64 | bigint
bigserial | INT64 | bigint
oid | UINT32 | bigint
real | FLOAT32
float4 | FLOAT32 | real
float(24) | FLOAT32 | real
float(25) | FLOAT64 | double precision
double precision | FLOAT64
numeric | DECIMAL
numeric(10,2) | DECIMAL(10,2)
numeric(10) | DECIMAL(10,0) | numeric(10,0)
numeric(5,-2) | DECIMAL(5,-2)
money | DECIMAL(19,2) | numeric(19,2)
boolean | BOOLEAN
text | STRING
citext | STRING | text
varchar(20) | STRING(20)
character varying(20) | STRING(20) | varchar(20)
character varying | STRING | text
char(3) | STRING(3) | varchar(3)
character | STRING(1) | varchar(1)
bpchar | STRING | text
bytea | BINARY
date | DATE
time | TIME(us)
time(0) | TIME(s)
time(3) without time zone | TIME(ms) | time(3)
timetz | TIME(us) | time
timestamp | TIMESTAMP(us)
timestamp(0) | TIMESTAMP(s)
timestamp(2) without time zone | TIMESTAMP(ms) | timestamp(3)
timestamp(4) | TIMESTAMP(us) | timestamp
timestamptz | TIMESTAMPTZ(us)
timestamp(3) with time zone | TIMESTAMPTZ(ms) | timestamptz(3)
TIMESTAMP  WITH TIME  ZONE | TIMESTAMPTZ(us) | timestamptz
interval | INTERVAL
interval day to second(3) | INTERVAL | interval
uuid | UUID
jsonb | JSON
json | JSON | jsonb
hstore | MAP<STRING, STRING> | jsonb
integer[] | ARRAY<INT32>
numeric(10,2)[][] | ARRAY<ARRAY<DECIMAL(10,2)>>
integer[3] | ARRAY<INT32> | integer[]
integer ARRAY | ARRAY<INT32> | integer[]
_int4 | ARRAY<INT32> | integer[]
pg_catalog.int4 | INT32 | integer
mood[] | ARRAY<UNKNOWN('mood')>
inet | UNKNOWN('inet')
bit(8) | UNKNOWN('bit(8)')
bit varying(5) | UNKNOWN('bit varying(5)') | text
geometry(Point,4326) | UNKNOWN('geometry(Point,4326)')
public.mood | UNKNOWN('public.mood')
"Mood" | UNKNOWN('"Mood"') | text
"char" | UNKNOWN('"char"') | text
USER-DEFINED | UNKNOWN('USER-DEFINED') | text
numeric(0) | UNKNOWN('numeric(0)')
"""
SNOWFLAKE = """
NUMBER(38,0) | DECIMAL(38,0)
NUMBER | DECIMAL(38,0) | NUMBER(38,0)
INT | DECIMAL(38,0) | NUMBER(38,0)
BYTEINT | DECIMAL(38,0) | NUMBER(38,0)
number(10,2) | DECIMAL(10,2) | NUMBER(10,2)
FLOAT | FLOAT64
REAL | FLOAT64 | FLOAT
DOUBLE PRECISION | FLOAT64 | FLOAT
VARCHAR | STRING
VARCHAR(16777216) | STRING | VARCHAR
VARCHAR(40) | STRING(40)
TEXT(40) | STRING(40) | VARCHAR(40)
CHAR | STRING(1) | VARCHAR(1)
BOOLEAN | BOOLEAN
BINARY | BINARY
BINARY(8388608) | BINARY | BINARY
DATE | DATE
TIME | TIME(ns) | TIME(9)
TIME(0) | TIME(s)
TIMESTAMP_NTZ(9) | TIMESTAMP(ns)
TIMESTAMP | TIMESTAMP(ns) | TIMESTAMP_NTZ(9)
DATETIME(3) | TIMESTAMP(ms) | TIMESTAMP_NTZ(3)
TIMESTAMP_TZ(6) | TIMESTAMPTZ(us)
TIMESTAMP_LTZ(9) | TIMESTAMPTZ(ns) | TIMESTAMP_TZ(9)
TIMESTAMP WITH LOCAL TIME ZONE | TIMESTAMPTZ(ns) | TIMESTAMP_TZ(9)
VARIANT | JSON
OBJECT | MAP<STRING, JSON>
ARRAY | ARRAY<JSON>
ARRAY(NUMBER(38,0) NOT NULL) | ARRAY<DECIMAL(38,0) NOT NULL>
ARRAY(INT) | ARRAY<DECIMAL(38,0)> | ARRAY(NUMBER(38,0))
MAP(VARCHAR, FLOAT NOT NULL) | MAP<STRING, FLOAT64 NOT NULL>
OBJECT("a b" FLOAT NOT NULL, "c" ARRAY(DATE)) | STRUCT<`a b`: FLOAT64 NOT NULL, c: ARRAY<DATE>>
OBJECT(comment VARCHAR) | STRUCT<comment: STRING> | OBJECT("comment" VARCHAR)
GEOGRAPHY | UNKNOWN('GEOGRAPHY')
VECTOR(FLOAT, 256) | UNKNOWN('VECTOR(FLOAT, 256)')
"""
BIGQUERY = """
INT64 | INT64
INTEGER | INT64 | INT64
FLOAT64 | FLOAT64
NUMERIC | DECIMAL(38,9)
NUMERIC(10) | DECIMAL(10,0) | NUMERIC(10,0)
NUMERIC(10,2) | DECIMAL(10,2)
BIGNUMERIC | DECIMAL(76,38)
BIGNUMERIC(50,20) | DECIMAL(50,20)
BOOL | BOOLEAN
STRING | STRING
STRING(10) | STRING(10)
BYTES | BINARY
BYTES(10) | BINARY | BYTES
DATE | DATE
TIME | TIME(us)
DATETIME | TIMESTAMP(us)
TIMESTAMP | TIMESTAMPTZ(us)
TIMESTAMP(12) | TIMESTAMPTZ(ns) | TIMESTAMP
INTERVAL | INTERVAL
JSON | JSON
ARRAY<INT64> | ARRAY<INT64>
STRUCT<`a` INT64 NOT NULL, `b c` DATE> | STRUCT<a: INT64 NOT NULL, `b c`: DATE>
STRUCT<date DATE, x ARRAY<STRING>> | STRUCT<date: DATE, x: ARRAY<STRING>> | STRUCT<`date` DATE, `x` ARRAY<STRING>>
STRUCT<a DATE OPTIONS(description='it''s <b>')> | STRUCT<a: DATE> | STRUCT<`a` DATE>
STRUCT<DATE, ARRAY<DATE>> | STRUCT<_field_1: DATE, _field_2: ARRAY<DATE>> | STRUCT<`_field_1` DATE, `_field_2` ARRAY<DATE>>
GEOGRAPHY | UNKNOWN('GEOGRAPHY')
RANGE<DATE> | UNKNOWN('RANGE<DATE>')
RECORD | UNKNOWN('RECORD')
"""
HIVE = """
tinyint | INT8
smallint | INT16
int | INT32
bigint | INT64
float | FLOAT32
double | FLOAT64
double precision | FLOAT64 | double
decimal | DECIMAL(10,0) | decimal(10,0)
decimal(10,2) | DECIMAL(10,2)
boolean | BOOLEAN
string | STRING
varchar(10) | STRING(10)
char(5) | STRING(5) | varchar(5)
binary | BINARY
date | DATE
timestamp | TIMESTAMP(ns)
timestamp with local time zone | TIMESTAMPTZ(ns)
interval_day_time | DURATION(ns) | bigint
interval_year_month | INTERVAL | string
void | NULL
array<int> | ARRAY<INT32>
map<string,array<int>> | MAP<STRING, ARRAY<INT32>>
struct<a:int,b:struct<c:date>> | STRUCT<a: INT32, b: STRUCT<c: DATE>>
struct<a-b:int,c.d:int,1:int> | STRUCT<`a-b`: INT32, `c.d`: INT32, `1`: INT32> | struct<`a-b`:int,`c.d`:int,`1`:int>
struct<`a,b`:int> | STRUCT<`a,b`: INT32>
struct<a:int comment 'it''s'> | STRUCT<a: INT32> | struct<a:int>
struct<comment:int> | STRUCT<comment: INT32>
uniontype<int,string> | UNION<INT32, STRING>
struct<a:quux(x),b:int> | STRUCT<a: UNKNOWN('quux(x)'), b: INT32>
array<int | UNKNOWN('array<int') | string
struct<int> | UNKNOWN('struct<int>')
"""


def rows(dialect: Dialect, table: str) -> list[Any]:
    """One parameter set for each line."""
    sets = []
    for line in table.strip().splitlines():
        text, type, *back = (part.strip() for part in line.split(" | "))
        sets.append(pytest.param(dialect, text, type, *back or [text], id=f"{dialect}: {text}"))
    return sets


@pytest.mark.parametrize(
    ("dialect", "text", "type", "back"),
    [
        *rows("postgres", POSTGRES),
        *rows("snowflake", SNOWFLAKE),
        *rows("bigquery", BIGQUERY),
        *rows("hive", HIVE),
    ],
)
def test_a_sql_type_is_read_and_written(dialect: Dialect, text: str, type: str, back: str) -> None:
    assert type_from_sql(text, dialect).text == type
    assert type_to_sql(parse_type(type), dialect) == back


# type | postgres | snowflake | bigquery | hive
WRITTEN = """
INT8 | smallint | NUMBER(3,0) | INT64 | tinyint
INT64 | bigint | NUMBER(19,0) | INT64 | bigint
UINT8 | smallint | NUMBER(5,0) | INT64 | smallint
UINT64 | numeric(20,0) | NUMBER(20,0) | NUMERIC(20,0) | decimal(20,0)
FLOAT16 | real | FLOAT | FLOAT64 | float
DECIMAL | numeric | NUMBER(38,18) | BIGNUMERIC | decimal(38,18)
DECIMAL(50,10) | numeric(50,10) | NUMBER(38,0) | BIGNUMERIC | decimal(38,0)
DECIMAL(38,38) | numeric(38,38) | NUMBER(38,37) | BIGNUMERIC(38,38) | decimal(38,38)
DECIMAL(5,-2) | numeric(5,-2) | NUMBER(7,0) | NUMERIC(7,0) | decimal(7,0)
STRING(70000) | varchar(70000) | VARCHAR(70000) | STRING(70000) | string
BINARY(16) | bytea | BINARY(16) | BYTES(16) | binary
TIME(ns) | time | TIME(9) | TIME | string
TIMESTAMP(ms) | timestamp(3) | TIMESTAMP_NTZ(3) | DATETIME | timestamp
TIMESTAMPTZ(ns) | timestamptz | TIMESTAMP_TZ(9) | TIMESTAMP | timestamp with local time zone
DURATION(us) | interval | NUMBER(19,0) | INTERVAL | bigint
INTERVAL | interval | VARCHAR | INTERVAL | string
UUID | uuid | VARCHAR(36) | STRING | string
JSON | jsonb | VARIANT | JSON | string
ENUM('a') | text | VARCHAR | STRING | string
NULL | text | VARCHAR | STRING | void
ARRAY<ARRAY<DATE>> | date[][] | ARRAY(ARRAY(DATE)) | ARRAY<STRUCT<`element` ARRAY<DATE>>> | array<array<date>>
MAP<STRING, DATE> | jsonb | MAP(VARCHAR, DATE) | ARRAY<STRUCT<`key` STRING NOT NULL, `value` DATE>> | map<string,date>
MAP<DATE, DATE> | jsonb | MAP(VARCHAR, DATE) | ARRAY<STRUCT<`key` DATE NOT NULL, `value` DATE>> | map<date,date>
MAP<ARRAY<DATE>, DATE> | jsonb | MAP(VARCHAR, DATE) | ARRAY<STRUCT<`key` ARRAY<DATE> NOT NULL, `value` DATE>> | map<string,date>
STRUCT<a: DATE NOT NULL> | jsonb | OBJECT("a" DATE NOT NULL) | STRUCT<`a` DATE NOT NULL> | struct<a:date>
STRUCT<> | jsonb | OBJECT | JSON | struct<>
UNION<DATE, STRING> | jsonb | VARIANT | JSON | uniontype<date,string>
UNKNOWN('geography') | geography | geography | geography | geography
UNKNOWN('x; DROP TABLE y') | text | VARCHAR | STRING | string
UNKNOWN('recursive:Node') | text | VARCHAR | STRING | string
UNKNOWN | text | VARCHAR | STRING | string
"""


@pytest.mark.parametrize(
    "line", WRITTEN.strip().splitlines(), ids=lambda line: line.split(" | ")[0]
)
def test_what_a_dialect_lacks_becomes_its_nearest_relative(line: str) -> None:
    text, *expected = line.split(" | ")
    assert [type_to_sql(parse_type(text), dialect) for dialect in DIALECTS] == expected


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=examples(200))
@given(type=TYPES)
def test_every_type_converts_and_what_comes_back_converts_to_itself(
    dialect: Dialect, type: DataType
) -> None:
    written = type_to_sql(type, dialect)
    back = type_from_sql(written, dialect)
    assert parse_type(back.text) == back
    again = type_from_sql(type_to_sql(back, dialect), dialect)
    assert type_from_sql(type_to_sql(again, dialect), dialect) == again


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=examples(200))
@given(
    text=TEXTS
    | st.lists(
        st.sampled_from(
            ["array", "struct", "map", "object", "<", ">", "(", ")", "[", "]", ",", ":", " ", "`", '"',
             "'", "int", "a", "not null", "comment", "10", "-1", ".", "options", "timestamp"]
        ),
        max_size=12,
    ).map("".join)
)  # fmt: skip
def test_any_text_is_read_as_some_type(dialect: Dialect, text: str) -> None:
    type = type_from_sql(text, dialect)
    assert parse_type(type.text) == type


def lengths(most: int) -> st.SearchStrategy[DataType]:
    return st.builds(String, st.none() | st.integers(1, most))


def nullable_struct(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    return st.lists(st.builds(Member, NAMES, inner), max_size=3).map(Struct)


TIMESTAMPS = st.builds(Timestamp, st.sampled_from(UNITS), zoned=st.booleans())
POSTGRES_NATIVE = nested(
    st.one_of(
        st.sampled_from([BOOLEAN, INT16, INT32, INT64, FLOAT32, FLOAT64, BINARY, DATE, UUID, JSON]),
        st.sampled_from([INTERVAL, Decimal(), Time("s"), Time("ms"), Time("us")]),
        st.builds(Timestamp, st.sampled_from(["s", "ms", "us"]), zoned=st.booleans()),
        plain_decimals(1000),
        lengths(10_485_760),
    ),
    lambda inner: st.builds(Array, inner),
)
SNOWFLAKE_NATIVE = nested(
    st.one_of(
        st.sampled_from([BOOLEAN, FLOAT64, BINARY, DATE, JSON]),
        st.builds(Time, st.sampled_from(UNITS)),
        TIMESTAMPS,
        plain_decimals(37),
        lengths(16_777_215),
    ),
    lambda inner: st.one_of(arrays(inner), maps(inner, lengths(100)), structs(inner, min_size=1)),
)
BIGQUERY_NATIVE = nested(
    st.one_of(
        st.sampled_from([BOOLEAN, INT64, FLOAT64, BINARY, DATE, JSON, INTERVAL, Time()]),
        st.sampled_from([Timestamp(), Timestamp(zoned=True), Decimal(38, 9), Decimal(76, 38)]),
        plain_decimals(38),
        lengths(10**9),
    ),
    lambda inner: structs(
        inner | inner.filter(lambda type: not isinstance(type, Array)).map(Array), min_size=1
    ),
)
HIVE_NATIVE = nested(
    st.one_of(
        st.sampled_from([BOOLEAN, INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, STRING, BINARY]),
        st.sampled_from([DATE, NULL, Timestamp("ns"), Timestamp("ns", zoned=True)]),
        plain_decimals(38),
        lengths(65_535),
    ),
    lambda inner: st.one_of(
        st.builds(Array, inner),
        st.builds(Map, lengths(100), inner),
        nullable_struct(inner),
        st.lists(inner, max_size=3).map(Union),
    ),
)


@settings(max_examples=examples(300))
@given(
    st.one_of(
        st.tuples(st.just("postgres"), POSTGRES_NATIVE),
        st.tuples(st.just("snowflake"), SNOWFLAKE_NATIVE),
        st.tuples(st.just("bigquery"), BIGQUERY_NATIVE),
        st.tuples(st.just("hive"), HIVE_NATIVE),
    )
)
def test_what_a_dialect_holds_comes_back_equal(case: tuple[Dialect, DataType]) -> None:
    dialect, type = case
    assert type_from_sql(type_to_sql(type, dialect), dialect) == type


@pytest.mark.parametrize(
    ("dialect", "opening", "scalar", "closing"),
    [
        ("hive", "array<", "int", ">"),
        ("hive", "struct<a:", "int", ">"),
        ("hive", "map<string,", "int", ">"),
        ("hive", "uniontype<", "int", ">"),
        ("bigquery", "ARRAY<", "INT64", ">"),
        ("bigquery", "STRUCT<a ", "INT64", ">"),
        ("snowflake", "ARRAY(", "INT", ")"),
        ("snowflake", "OBJECT(a ", "INT", ")"),
        ("postgres", "", "integer", "[]"),
    ],
)
def test_thousands_of_levels_are_cut(
    dialect: Dialect, opening: str, scalar: str, closing: str
) -> None:
    deep = type_from_sql(opening * 5_000 + scalar + closing * 5_000, dialect)
    assert deep.text.count("UNKNOWN('too deep')") == 1
    assert deep.depth == MAX_DEPTH
    deepest = type_from_sql(opening * (MAX_DEPTH - 1) + scalar + closing * (MAX_DEPTH - 1), dialect)
    assert "too deep" not in deepest.text
    assert deepest.depth == MAX_DEPTH


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_unclosed_bracket_thousands_of_levels_deep_is_no_crash(dialect: Dialect) -> None:
    for opening in ("array<", "array(", "'", '"', "`"):
        text = opening * 5_000
        assert type_from_sql(text, dialect).text.startswith("UNKNOWN('")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_maps_as_keys_of_maps_convert(dialect: Dialect) -> None:
    type = parse_type("MAP<" * (MAX_DEPTH - 1) + "INT8" + ", INT8>" * (MAX_DEPTH - 1))
    assert type_from_sql(type_to_sql(type, dialect), dialect).depth <= MAX_DEPTH
