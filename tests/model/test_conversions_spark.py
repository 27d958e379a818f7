"""Spark's JSON schemas and what is lost between them and the algebra."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T

from examples import examples
from lumos.model.conversions.spark import (
    SparkType,
    schema_from_spark,
    schema_to_spark,
    type_from_spark,
    type_to_spark,
)
from lumos.model.schema import Field, NestedField, Schema, parse_schema
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
    DataType,
    Duration,
    Time,
    Timestamp,
    parse_type,
)

from .strategies import (
    JSON_VALUES,
    TYPES,
    arrays,
    json_with,
    maps,
    nested,
    plain_decimals,
    schemas,
    structs,
)


class Point(T.UserDefinedType):
    """A user-defined type, as machine learning libraries have them."""

    @classmethod
    def sqlType(cls) -> T.DataType:
        return T.ArrayType(T.DoubleType(), containsNull=False)

    @classmethod
    def module(cls) -> str:
        return "tests"


HELD = [
    (T.BooleanType(), "BOOLEAN"),
    (T.ByteType(), "INT8"),
    (T.ShortType(), "INT16"),
    (T.IntegerType(), "INT32"),
    (T.LongType(), "INT64"),
    (T.FloatType(), "FLOAT32"),
    (T.DoubleType(), "FLOAT64"),
    (T.DecimalType(10, 2), "DECIMAL(10,2)"),
    (T.StringType(), "STRING"),
    (T.BinaryType(), "BINARY"),
    (T.DateType(), "DATE"),
    (T.TimestampType(), "TIMESTAMPTZ(us)"),
    (T.TimestampNTZType(), "TIMESTAMP(us)"),
    (T.TimeType(0), "TIME(s)"),
    (T.TimeType(3), "TIME(ms)"),
    (T.TimeType(6), "TIME(us)"),
    (T.DayTimeIntervalType(), "DURATION(us)"),
    (T.CalendarIntervalType(), "INTERVAL"),
    (T.VariantType(), "JSON"),
    (T.NullType(), "NULL"),
    (T.ArrayType(T.LongType(), containsNull=False), "ARRAY<INT64 NOT NULL>"),
    (T.MapType(T.StringType(), T.LongType()), "MAP<STRING, INT64>"),
    (
        T.StructType([T.StructField("a.b", T.LongType(), nullable=False)]),
        "STRUCT<`a.b`: INT64 NOT NULL>",
    ),
]
LOST_FROM_SPARK = [
    pytest.param(
        T.VarcharType(9), "STRING(9)", T.StringType(), id="a varchar's length outside fields"
    ),
    pytest.param(T.CharType(3), "STRING(3)", T.StringType(), id="a char's padding"),
    pytest.param(T.StringType("UNICODE"), "STRING", T.StringType(), id="collations"),
    pytest.param(
        T.YearMonthIntervalType(), "INTERVAL", T.CalendarIntervalType(), id="year to month"
    ),
    pytest.param(T.YearMonthIntervalType(0, 0), "INTERVAL", T.CalendarIntervalType(), id="year"),
    pytest.param(
        T.DayTimeIntervalType(1, 2), "DURATION(us)", T.DayTimeIntervalType(), id="hour to minute"
    ),
    pytest.param(T.TimeType(4), "TIME(us)", T.TimeType(6), id="fractions between the units"),
    pytest.param(
        Point(),
        "ARRAY<FLOAT64 NOT NULL>",
        T.ArrayType(T.DoubleType(), False),
        id="user-defined types",
    ),
]
LOST_TO_SPARK = [
    pytest.param(
        "UINT8", "short", "INT16", id="UINT8 becomes INT16: Spark has no unsigned integers"
    ),
    pytest.param("UINT16", "integer", "INT32", id="UINT16 becomes INT32"),
    pytest.param("UINT32", "long", "INT64", id="UINT32 becomes INT64"),
    pytest.param("UINT64", "decimal(20,0)", "DECIMAL(20,0)", id="UINT64 becomes DECIMAL(20,0)"),
    pytest.param("FLOAT16", "float", "FLOAT32", id="FLOAT16 becomes FLOAT32"),
    pytest.param("DECIMAL", "decimal(38,18)", "DECIMAL(38,18)", id="unbounded decimals"),
    pytest.param(
        "DECIMAL(40,10)", "decimal(38,8)", "DECIMAL(38,8)", id="decimals beyond 38 digits"
    ),
    pytest.param("DECIMAL(5,-2)", "decimal(7,0)", "DECIMAL(7,0)", id="negative scales"),
    pytest.param("STRING(40)", "string", "STRING", id="lengths outside struct fields"),
    pytest.param("BINARY(16)", "binary", "BINARY", id="fixed lengths"),
    pytest.param("TIMESTAMPTZ(ns)", "timestamp", "TIMESTAMPTZ(us)", id="units of TIMESTAMPTZ"),
    pytest.param("TIMESTAMP(s)", "timestamp_ntz", "TIMESTAMP(us)", id="units of TIMESTAMP"),
    pytest.param("DURATION(ms)", "interval day to second", "DURATION(us)", id="units of DURATION"),
    pytest.param("UUID", "string", "STRING", id="UUID becomes STRING"),
    pytest.param("ENUM('a')", "string", "STRING", id="ENUM becomes STRING"),
    pytest.param("UNKNOWN('geometry')", "binary", "BINARY", id="UNKNOWN becomes BINARY"),
    pytest.param(
        "UNION<INT64, STRING>",
        {
            "type": "struct",
            "fields": [
                {"name": "member0", "type": "long", "nullable": True, "metadata": {}},
                {"name": "member1", "type": "string", "nullable": True, "metadata": {}},
            ],
        },
        "STRUCT<member0: INT64, member1: STRING>",
        id="UNION becomes a struct, as Spark reads Avro",
    ),
]


@pytest.mark.parametrize(("spark", "text"), HELD, ids=[text for _, text in HELD])
def test_spark_holds(spark: T.DataType, text: str) -> None:
    assert type_from_spark(spark.jsonValue()) == parse_type(text)
    assert type_to_spark(parse_type(text)) == spark.jsonValue()


@pytest.mark.parametrize(("spark", "text", "back"), LOST_FROM_SPARK)
def test_from_spark_is_lost(spark: T.DataType, text: str, back: T.DataType) -> None:
    assert type_from_spark(spark.jsonValue()) == parse_type(text)
    assert type_to_spark(parse_type(text)) == back.jsonValue()


@pytest.mark.parametrize(("text", "spark", "back"), LOST_TO_SPARK)
def test_to_spark_is_lost(text: str, spark: SparkType, back: str) -> None:
    assert type_to_spark(parse_type(text)) == spark
    assert type_from_spark(spark) == parse_type(back)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("null", "NULL"),
        ("decimal", "DECIMAL(10,0)"),
        ("timestamp_ntz(9)", "TIMESTAMP(ns)"),
        ("timestamp_ltz(3)", "TIMESTAMPTZ(ms)"),
        ("geometry(4326)", "UNKNOWN('geometry(4326)')"),
        ("decimal(0,0)", "UNKNOWN('decimal(0,0)')"),
        ("quux", "UNKNOWN('quux')"),
    ],
)
def test_a_name_alone_is_read(name: str, text: str) -> None:
    assert type_from_spark(name) == parse_type(text)


@settings(max_examples=examples(200))
@given(schemas(TYPES))
def test_every_schema_becomes_one_that_spark_accepts(schema: Schema) -> None:
    value = schema_to_spark(schema)
    assert T.StructType.fromJson(value).jsonValue() == value
    back = schema_from_spark(value)
    assert [field.name for field in back.fields] == [field.name for field in schema.fields]
    assert schema_from_spark(schema_to_spark(back)).full == back.full


NATIVE = nested(
    st.one_of(
        st.sampled_from(
            [BOOLEAN, INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, STRING, BINARY, DATE, INTERVAL]
        ),
        st.sampled_from([JSON, NULL, Duration("us"), Timestamp("us"), Timestamp("us", zoned=True)]),
        st.builds(Time, st.sampled_from(["s", "ms", "us", "ns"])),
        plain_decimals(38),
    ),
    lambda inner: st.one_of(arrays(inner), maps(inner), structs(inner)),
)


@settings(max_examples=examples(200))
@given(NATIVE)
def test_what_spark_holds_comes_back_equal(type: DataType) -> None:
    assert type_from_spark(type_to_spark(type)) == type


WORDS = (
    "type", "fields", "name", "nullable", "metadata", "struct", "array", "map", "udt", "sqlType",
    "elementType", "containsNull", "keyType", "valueType", "comment", "string", "long",
    "decimal(3,1)", "__CHAR_VARCHAR_TYPE_STRING", "varchar(3)",
)  # fmt: skip


@settings(max_examples=examples(300))
@given(json_with(WORDS) | JSON_VALUES)
def test_any_json_is_read_as_some_schema(value: Any) -> None:
    assert parse_type(type_from_spark(value).text)
    if isinstance(value, dict):
        assert schema_from_spark(value).shape


def test_metadata_gives_descriptions_lengths_defaults_and_ids() -> None:
    inner = T.StructType(
        [
            T.StructField("zip", T.StringType(), False, {"comment": "5 digits"}),
            T.StructField("city", T.StringType(), True, {"__CHAR_VARCHAR_TYPE_STRING": "char(20)"}),
        ]
    )
    spark = T.StructType(
        [
            T.StructField("id", T.LongType(), False, {"comment": "The key", "parquet.field.id": 1}),
            T.StructField(
                "name", T.StringType(), True, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(40)"}
            ),
            T.StructField("n", T.IntegerType(), True, {"CURRENT_DEFAULT": "0"}),
            T.StructField("to", T.ArrayType(inner), True, {"delta.columnMapping.id": 7}),
        ]
    )
    read = schema_from_spark(spark.jsonValue())
    assert read.fields == (
        Field(
            name="id",
            type=INT64,
            nullable=False,
            description="The key",
            field_id=1,
            native_type="long",
        ),
        Field(name="name", type=parse_type("STRING(40)"), native_type="varchar(40)"),
        Field(name="n", type=INT32, default="0", native_type="integer"),
        Field(
            name="to",
            type=parse_type("ARRAY<STRUCT<zip: STRING NOT NULL, city: STRING(20)>>"),
            field_id=7,
            native_type="array",
            nested=(NestedField(path="to[].zip", description="5 digits"),),
        ),
    )
    assert schema_from_spark(schema_to_spark(read)).full == read.full


def test_a_length_goes_where_spark_keeps_it() -> None:
    [field] = schema_to_spark(parse_schema("name STRING(40) NOT NULL"))["fields"]
    assert field == {
        "name": "name",
        "type": "string",
        "nullable": False,
        "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "varchar(40)"},
    }


def test_thousands_of_levels_are_cut() -> None:
    array: Any = "long"
    struct: Any = "long"
    udt: Any = "long"
    for _ in range(5_000):
        array = {"type": "array", "elementType": array, "containsNull": True}
        struct = {"type": "struct", "fields": [{"name": "a", "type": struct, "nullable": True}]}
        udt = {"type": "udt", "sqlType": udt}
    for deep in (array, struct):
        assert type_from_spark(deep).text.count("UNKNOWN('too deep')") == 1
        assert type_from_spark(deep).depth == MAX_DEPTH
    assert type_from_spark(udt).text == "UNKNOWN('udt')"


@pytest.mark.parametrize("opening", ["ARRAY<", "MAP<INT8, ", "STRUCT<a: "])
def test_the_deepest_type_comes_back(opening: str) -> None:
    text = opening * (MAX_DEPTH - 1) + "INT8" + ">" * (MAX_DEPTH - 1)
    assert type_from_spark(type_to_spark(parse_type(text))).text == text


def test_maps_as_keys_of_maps_convert() -> None:
    type = parse_type("MAP<" * (MAX_DEPTH - 1) + "INT8" + ", INT8>" * (MAX_DEPTH - 1))
    assert type_from_spark(type_to_spark(type)).text.startswith("MAP<")


def test_no_conversion_loads_what_it_does_not_need() -> None:
    program = """
import sys
from lumos.model.conversions import avro, json_schema, spark, sql_types
assert not {"pyarrow", "pyspark", "sqlglot", "fastavro"} & set(sys.modules)
from lumos.model.conversions import arrow
assert not {"pyspark", "sqlglot", "fastavro"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
