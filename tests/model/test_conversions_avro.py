"""Avro schemas and what is lost between them and the algebra."""

import json
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.model.conversions.avro import (
    AvroSchema,
    KnownColumns,
    schema_from_avro,
    schema_to_avro,
    type_from_avro,
    type_to_avro,
)
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import MAX_EXPANSION_LENGTH
from lumos.model.types import (
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    INTERVAL,
    MAX_DEPTH,
    UUID,
    Binary,
    DataType,
    Decimal,
    Enum,
    Time,
    Timestamp,
    parse_type,
)

from .strategies import (
    JSON_VALUES,
    STRINGS,
    TYPES,
    arrays,
    json_with,
    maps,
    nested,
    plain_decimals,
    schemas,
    structs,
)

AVRO_TYPES = [
    ("boolean", "BOOLEAN", "boolean"),
    ("int", "INT32", "int"),
    ("long", "INT64", "long"),
    ("float", "FLOAT32", "float"),
    ("double", "FLOAT64", "double"),
    ("bytes", "BINARY", "bytes"),
    ("string", "STRING", "string"),
    ("null", "NULL", "null"),
    ({"type": "string"}, "STRING", "string"),
    ({"type": {"type": "long"}}, "INT64", "long"),
    *(
        ({"type": base, "logicalType": logical}, text, {"type": base, "logicalType": logical})
        for base, logical, text in (
            ("int", "date", "DATE"),
            ("int", "time-millis", "TIME(ms)"),
            ("long", "time-micros", "TIME(us)"),
            ("long", "timestamp-millis", "TIMESTAMPTZ(ms)"),
            ("long", "timestamp-micros", "TIMESTAMPTZ(us)"),
            ("long", "timestamp-nanos", "TIMESTAMPTZ(ns)"),
            ("long", "local-timestamp-millis", "TIMESTAMP(ms)"),
            ("long", "local-timestamp-micros", "TIMESTAMP(us)"),
            ("long", "local-timestamp-nanos", "TIMESTAMP(ns)"),
            ("string", "uuid", "UUID"),
            ("bytes", "big-decimal", "DECIMAL"),
        )
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        "DECIMAL(10,2)",
        {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    ),
    (
        {"type": "string", "logicalType": "varchar", "maxLength": 40},
        "STRING(40)",
        {"type": "string", "logicalType": "varchar", "maxLength": 40},
    ),
    (
        {"type": "fixed", "name": "R", "size": 16},
        "BINARY(16)",
        {"type": "fixed", "name": "R", "size": 16},
    ),
    (
        {"type": "fixed", "name": "R", "size": 12, "logicalType": "duration"},
        "INTERVAL",
        {"type": "fixed", "name": "R", "size": 12, "logicalType": "duration"},
    ),
    (
        {"type": "enum", "name": "R", "symbols": ["a", "b"]},
        "ENUM('a','b')",
        {"type": "enum", "name": "R", "symbols": ["a", "b"]},
    ),
    ({"type": "array", "items": "int"}, "ARRAY<INT32 NOT NULL>", {"type": "array", "items": "int"}),
    (
        {"type": "array", "items": ["null", "int"]},
        "ARRAY<INT32>",
        {"type": "array", "items": ["null", "int"]},
    ),
    (
        {"type": "map", "values": ["null", "int"]},
        "MAP<STRING, INT32>",
        {"type": "map", "values": ["null", "int"]},
    ),
    (
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "int"]}]},
        "STRUCT<a: INT32>",
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "int"]}]},
    ),
    (["long", "string"], "UNION<INT64, STRING>", ["long", "string"]),
]
LOST_FROM_AVRO = [
    pytest.param(["null", "int"], "INT32", "int", id="null, which is the field's nullability"),
    pytest.param(
        ["null", "int", "string"], "UNION<INT32, STRING>", ["int", "string"], id="null in a union"
    ),
    pytest.param(
        {"type": "string", "logicalType": "char", "maxLength": 3},
        "STRING(3)",
        {"type": "string", "logicalType": "varchar", "maxLength": 3},
        id="padding of a char",
    ),
    pytest.param(
        {"type": "long", "logicalType": "magic"}, "INT64", "long", id="unfamiliar logical types"
    ),
    pytest.param(
        {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3},
        "BINARY",
        "bytes",
        id="an invalid decimal, which Avro says to ignore",
    ),
    pytest.param(
        {"type": "int", "logicalType": "timestamp-millis"},
        "INT32",
        "int",
        id="a logical type on the wrong base",
    ),
    pytest.param(
        {"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"},
        "UUID",
        {"type": "string", "logicalType": "uuid"},
        id="the bytes of a fixed uuid",
    ),
    pytest.param(
        {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 9},
        "DECIMAL(9,0)",
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 0},
        id="the size of a fixed decimal",
    ),
    pytest.param(
        {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
        "TIMESTAMP(us)",
        {"type": "long", "logicalType": "local-timestamp-micros"},
        id="how Iceberg marks a local timestamp",
    ),
    pytest.param(
        "no.such.Type", "UNKNOWN('no.such.Type')", "bytes", id="names that nothing defines"
    ),
]
LOST_TO_AVRO = [
    pytest.param("INT8", "int", "INT32", id="INT8 becomes INT32: Avro has no shorter integers"),
    pytest.param("INT16", "int", "INT32", id="INT16 becomes INT32"),
    pytest.param("UINT8", "int", "INT32", id="UINT8 becomes INT32: Avro has no unsigned integers"),
    pytest.param("UINT16", "int", "INT32", id="UINT16 becomes INT32"),
    pytest.param("UINT32", "long", "INT64", id="UINT32 becomes INT64"),
    pytest.param(
        "UINT64",
        {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0},
        "DECIMAL(20,0)",
        id="UINT64 becomes DECIMAL(20,0)",
    ),
    pytest.param("FLOAT16", "float", "FLOAT32", id="FLOAT16 becomes FLOAT32: Avro has no half floats"),
    pytest.param("TIME(s)", {"type": "int", "logicalType": "time-millis"}, "TIME(ms)", id="TIME(s) becomes TIME(ms)"),
    pytest.param("TIME(ns)", {"type": "long", "logicalType": "time-micros"}, "TIME(us)", id="TIME(ns) becomes TIME(us)"),
    pytest.param(
        "TIMESTAMP(s)",
        {"type": "long", "logicalType": "local-timestamp-millis"},
        "TIMESTAMP(ms)",
        id="TIMESTAMP(s) becomes TIMESTAMP(ms)",
    ),
    pytest.param("DURATION(us)", "long", "INT64", id="DURATION becomes INT64, without its unit"),
    pytest.param("JSON", "string", "STRING", id="JSON becomes STRING"),
    pytest.param("UNKNOWN('geometry')", "bytes", "BINARY", id="UNKNOWN becomes BINARY"),
    pytest.param("ENUM('a b')", "string", "STRING", id="an ENUM with odd symbols becomes STRING"),
    pytest.param("ENUM('a','a')", "string", "STRING", id="an ENUM with a symbol twice becomes STRING"),
    pytest.param(
        "DECIMAL(5,-2)",
        {"type": "bytes", "logicalType": "decimal", "precision": 7, "scale": 0},
        "DECIMAL(7,0)",
        id="a negative scale becomes more digits",
    ),
    pytest.param(
        "DECIMAL(2,5)",
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 5},
        "DECIMAL(5,5)",
        id="a scale above the precision becomes more digits",
    ),
    pytest.param("UNION<INT8, INT16, STRING>", ["int", "string"], "UNION<INT32, STRING>", id="union options of one Avro type"),
    pytest.param("UNION<INT64>", "long", "INT64", id="a union of one"),
    pytest.param("UNION<>", "null", "NULL", id="a union of none"),
    pytest.param(
        "UNION<INT64, UNION<STRING, BINARY>>",
        ["long", "string", "bytes"],
        "UNION<INT64, STRING, BINARY>",
        id="unions inside unions",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("avro", "text", "back"), AVRO_TYPES, ids=[text for _, text, _ in AVRO_TYPES]
)
def test_avro_holds(avro: AvroSchema, text: str, back: AvroSchema) -> None:
    assert type_from_avro(avro) == parse_type(text)
    assert type_to_avro(parse_type(text), name="R") == back


@pytest.mark.parametrize(("avro", "text", "back"), LOST_FROM_AVRO)
def test_from_avro_is_lost(avro: AvroSchema, text: str, back: AvroSchema) -> None:
    assert type_from_avro(avro) == parse_type(text)
    assert type_to_avro(parse_type(text)) == back


@pytest.mark.parametrize(("text", "avro", "back"), LOST_TO_AVRO)
def test_to_avro_is_lost(text: str, avro: AvroSchema, back: str) -> None:
    assert type_to_avro(parse_type(text)) == avro
    assert type_from_avro(avro) == parse_type(back)


@settings(max_examples=examples(200))
@given(schemas(TYPES))
def test_every_schema_becomes_one_that_avro_accepts(schema: Schema) -> None:
    avro = schema_to_avro(schema)
    fastavro.parse_schema(json.loads(json.dumps(avro)))
    back = schema_from_avro(avro)
    assert [field.name for field in back.fields] == [field.name for field in schema.fields]
    assert schema_from_avro(schema_to_avro(back)).shape == back.shape


NATIVE = nested(
    st.one_of(
        st.sampled_from([BOOLEAN, INT32, INT64, FLOAT32, FLOAT64, DATE, UUID, INTERVAL, Decimal()]),
        st.sampled_from([Time("ms"), Time("us")]),
        st.builds(Timestamp, st.sampled_from(["ms", "us", "ns"]), zoned=st.booleans()),
        plain_decimals(100),
        STRINGS,
        st.builds(Binary, st.none() | st.integers(1, 2**31 - 1)),
        st.builds(Enum, st.lists(st.sampled_from("abc"), min_size=1, unique=True)),
    ),
    lambda inner: st.one_of(arrays(inner), maps(inner), structs(inner)),
)


@settings(max_examples=examples(200))
@given(NATIVE)
def test_what_avro_holds_comes_back_equal(type: DataType) -> None:
    assert type_from_avro(type_to_avro(type)) == type


WORDS = (
    "type", "name", "fields", "items", "values", "symbols", "size", "logicalType", "precision",
    "scale", "default", "doc", "namespace", "record", "array", "map", "enum", "fixed", "null",
    "int", "bytes", "decimal", "a.b", "R", "element-id", "maxLength", "varchar",
)  # fmt: skip


@settings(max_examples=examples(300))
@given(json_with(WORDS) | JSON_VALUES)
def test_any_json_is_read_as_some_schema(value: Any) -> None:
    assert parse_type(type_from_avro(value).text)
    assert schema_from_avro(value).shape


def test_nulls_docs_defaults_and_ids_become_facts_of_the_fields() -> None:
    schema = schema_from_avro(
        {
            "type": "record",
            "name": "Order",
            "doc": "not of a field",
            "fields": [
                {"name": "id", "type": "long", "doc": "The key", "field-id": 1, "aliases": ["no"]},
                {"name": "note", "type": ["null", "string"], "default": None},
                {"name": "state", "type": ["string", "null"], "default": "new"},
                {"name": "n", "type": "int", "default": 0},
                {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
                {
                    "name": "to",
                    "type": {
                        "type": "record",
                        "name": "Address",
                        "doc": "A postal address",
                        "fields": [
                            {"name": "zip", "type": "string", "doc": "5 digits", "default": "00000"}
                        ],
                    },
                },
                {
                    "name": "lines",
                    "type": {"type": "array", "items": "Address", "element-id": 9},
                },
            ],
        }
    )
    zip_code = "STRUCT<zip: STRING NOT NULL>"
    assert str(schema).splitlines() == [
        "id INT64 NOT NULL COMMENT 'The key'",
        "note STRING DEFAULT 'null'",
        "state STRING DEFAULT 'new'",
        "n INT32 NOT NULL DEFAULT '0'",
        "tags ARRAY<STRING NOT NULL> NOT NULL DEFAULT '[]'",
        f"to {zip_code} NOT NULL COMMENT 'A postal address'",
        f"lines ARRAY<{zip_code} NOT NULL> NOT NULL",
    ]
    assert schema.fields[0].field_id == 1
    assert schema.fields[0].native_type == "long"
    assert schema.fields[5].nested == (
        NestedField(path="to.zip", description="5 digits", default="00000"),
    )
    assert schema.fields[6].nested == (
        NestedField(path="lines[]", description="A postal address", field_id=9),
        NestedField(path="lines[].zip", description="5 digits", default="00000"),
    )
    back = schema_to_avro(schema, name="Order")
    fastavro.parse_schema(back)
    assert schema_from_avro(back).full == schema.full


@pytest.mark.parametrize(
    ("type", "nullable", "default", "written"),
    [
        ("STRING", True, "null", {"type": ["null", "string"], "default": None}),
        ("STRING", True, "x", {"type": ["string", "null"], "default": "x"}),
        ("STRING", False, "null", {"type": "string", "default": "null"}),
        ("INT64", True, "3", {"type": ["long", "null"], "default": 3}),
        ("INT32", False, "3000000000", {"type": "int"}),
        ("INT64", False, "now()", {"type": "long"}),
        ("BOOLEAN", False, "true", {"type": "boolean", "default": True}),
        ("FLOAT64", False, "1", {"type": "double", "default": 1}),
        ("FLOAT64", False, "NaN", {"type": "double"}),
        ("BINARY", False, "x", {"type": "bytes"}),
    ],
)
def test_a_default_is_written_where_it_fits(
    type: str, nullable: bool, default: str, written: dict[str, Any]
) -> None:
    field = Field(name="a", type=parse_type(type), nullable=nullable, default=default)
    assert schema_to_avro(Schema(fields=(field,)))["fields"] == [{"name": "a", **written}]


def test_odd_and_repeated_names_are_written_as_iceberg_does() -> None:
    type = parse_type("STRUCT<`a b`: INT32, a_x20b: INT32, `1`: INT32, ``: INT32>")
    written = type_to_avro(type)
    assert isinstance(written, dict)
    assert [field["name"] for field in written["fields"]] == ["a_x20b", "a_x20b_2", "_1", "_"]
    assert type_from_avro(written) == type


def test_a_map_with_other_keys_than_strings_is_written_as_iceberg_does() -> None:
    type = parse_type("MAP<INT32, STRING>")
    written = type_to_avro(type)
    assert isinstance(written, dict)
    assert (written["type"], written["logicalType"]) == ("array", "map")
    assert type_from_avro(written) == type


def test_names_are_found_in_their_namespaces() -> None:
    color = {"type": "enum", "name": "Color", "symbols": ["red"]}
    other = {"type": "fixed", "name": "other.Color", "size": 3}
    schema = schema_from_avro(
        {
            "type": "record",
            "name": "shop.Order",
            "fields": [
                {"name": "inline", "type": color},
                {"name": "fixed", "type": other},
                {"name": "short", "type": "Color"},
                {"name": "full", "type": ["null", "shop.Color"]},
                {"name": "others", "type": {"type": "other.Color"}},
                {"name": "unknown", "type": "else.Color"},
            ],
        }
    )
    assert [field.type.text for field in schema.fields] == [
        "ENUM('red')", "BINARY(3)", "ENUM('red')", "ENUM('red')", "BINARY(3)",
        "UNKNOWN('else.Color')",
    ]  # fmt: skip


def test_a_record_that_holds_itself_is_cut_at_the_second_visit() -> None:
    children = {"type": "array", "items": "Node"}
    node = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "v", "type": "int"}, {"name": "children", "type": children}],
    }
    cut = "ARRAY<UNKNOWN('recursive:Node') NOT NULL>"
    assert str(schema_from_avro(node)) == f"v INT32 NOT NULL\nchildren {cut} NOT NULL"
    assert type_from_avro({"type": "array", "items": node}).text == (
        f"ARRAY<STRUCT<v: INT32 NOT NULL, children: {cut} NOT NULL> NOT NULL>"
    )


def test_records_that_hold_each_other_are_cut() -> None:
    b = {"type": "record", "name": "B", "fields": [{"name": "a", "type": ["null", "x.A"]}]}
    a = {"type": "record", "name": "A", "namespace": "x", "fields": [{"name": "b", "type": b}]}
    assert type_from_avro(a).text == "STRUCT<b: STRUCT<a: UNKNOWN('recursive:x.A')> NOT NULL>"


def test_thousands_of_levels_are_cut() -> None:
    array: Any = "int"
    record: Any = "int"
    union: Any = "int"
    wrapped: Any = "int"
    for level in range(5_000):
        array = {"type": "array", "items": array}
        record = {"type": "record", "name": f"R{level}", "fields": [{"name": "a", "type": record}]}
        union = ["null", "string", {"type": "map", "values": union}]
        wrapped = {"type": [wrapped]}
    for deep in (array, record, union):
        assert "UNKNOWN('too deep')" in type_from_avro(deep).text
        assert type_from_avro(deep).depth == MAX_DEPTH
    assert type_from_avro(wrapped).text == "UNKNOWN"


@pytest.mark.parametrize("opening", ["ARRAY<", "MAP<STRING, ", "STRUCT<a: "])
def test_the_deepest_type_comes_back(opening: str) -> None:
    text = opening * (MAX_DEPTH - 1) + "INT32" + ">" * (MAX_DEPTH - 1)
    assert type_from_avro(type_to_avro(parse_type(text))).text == text


def test_maps_as_keys_of_maps_convert() -> None:
    type = parse_type("MAP<" * (MAX_DEPTH - 1) + "INT8" + ", INT8>" * (MAX_DEPTH - 1))
    assert type_from_avro(type_to_avro(type)).text.startswith("MAP<")


def test_versions_that_are_read_together_are_read_as_each_alone() -> None:
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}
    other = {**inner, "fields": [{"name": "x", "type": "string"}]}
    first = [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "doc": "When"},
        {"name": "inner", "type": inner},
        {"name": "again", "type": "Inner"},
        {"name": "flag", "type": ["boolean", "int"], "default": True},
        {"name": "note", "type": ["null", "string"], "default": None},
    ]
    versions = [
        first,
        # The same text, another meaning.
        [first[0], first[1], {"name": "inner", "type": other}, *first[3:]],
        [*first[:4], {**first[4], "default": 1}, {**first[5], "default": "x"}],
        [first[5], {**first[0], "type": "string"}, {**first[1], "doc": "Then"}],
    ]
    known: KnownColumns = {}
    for fields in versions:
        record = {"type": "record", "name": "R", "fields": fields}
        assert schema_from_avro(record, known=known).full == schema_from_avro(record).full


def test_records_that_double_at_every_level_do_not_explode() -> None:
    record: Any = "int"
    for level in range(60):
        left = {"name": "left", "type": record}
        fields = [left, {"name": "right", "type": f"R{level - 1}" if level else "int"}]
        record = {"type": "record", "name": f"R{level}", "fields": fields}
    type = type_from_avro(record)
    assert "UNKNOWN('too large')" in type.text
    assert len(type.text) < 10 * MAX_EXPANSION_LENGTH


def test_a_file_written_by_fastavro_is_read(tmp_path: Path) -> None:
    schema = {
        "type": "record",
        "name": "shop.Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "amount", "type": ["null", {
                "type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}]},
            {"name": "to", "type": {"type": "record", "name": "Address", "fields": [
                {"name": "zip", "type": "string", "doc": "5 digits"}]}},
            {"name": "other", "type": ["null", "Address"], "default": None},
        ],
    }  # fmt: skip
    path = tmp_path / "orders.avro"
    with path.open("wb") as file:
        fastavro.writer(file, schema, [])
    with path.open("rb") as file:
        header = fastavro.reader(file).metadata["avro.schema"]

    read = schema_from_avro(json.loads(header))

    assert str(read).splitlines() == [
        "id INT64 NOT NULL",
        "at TIMESTAMPTZ(us) NOT NULL",
        "amount DECIMAL(10,2)",
        "to STRUCT<zip: STRING NOT NULL> NOT NULL",
        "other STRUCT<zip: STRING NOT NULL> DEFAULT 'null'",
    ]
    assert [field.native_type for field in read.fields] == [
        "long", "long timestamp-micros", "bytes decimal", "record", "Address",
    ]  # fmt: skip
    assert read.fields[4].nested == (NestedField(path="other.zip", description="5 digits"),)
