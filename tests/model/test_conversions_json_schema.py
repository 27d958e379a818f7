"""JSON Schema and what is lost between it and the algebra."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.model.conversions.json_schema import (
    schema_from_json_schema,
    schema_to_json_schema,
    type_from_json_schema,
    type_to_json_schema,
)
from lumos.model.schema import NestedField, Schema
from lumos.model.type_path import MAX_EXPANSION_LENGTH
from lumos.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INTERVAL,
    MAX_DEPTH,
    SIGNED,
    STRING,
    UNSIGNED,
    UUID,
    DataType,
    Decimal,
    Enum,
    Struct,
    Time,
    Timestamp,
    parse_type,
)

from .strategies import (
    JSON_VALUES,
    STRINGS,
    TEXTS,
    TYPES,
    arrays,
    json_with,
    maps,
    nested,
    schemas,
    structs,
    unions,
)

HELD = [
    ({"type": "boolean"}, "BOOLEAN"),
    ({"type": "integer"}, "INT64"),
    ({"type": "integer", "minimum": -128, "maximum": 127}, "INT8"),
    ({"type": "integer", "minimum": 0, "maximum": 65535}, "UINT16"),
    ({"type": "integer", "minimum": 0, "maximum": 2**64 - 1}, "UINT64"),
    ({"type": "number"}, "FLOAT64"),
    ({"type": "number", "format": "float"}, "FLOAT32"),
    ({"type": "number", "format": "decimal"}, "DECIMAL"),
    ({"type": "string"}, "STRING"),
    ({"type": "string", "maxLength": 40}, "STRING(40)"),
    ({"type": "string", "contentEncoding": "base64"}, "BINARY"),
    ({"type": "string", "format": "date"}, "DATE"),
    ({"type": "string", "format": "time"}, "TIME(us)"),
    ({"type": "string", "format": "date-time"}, "TIMESTAMPTZ(us)"),
    ({"type": "string", "format": "date-time-local"}, "TIMESTAMP(us)"),
    ({"type": "string", "format": "duration"}, "INTERVAL"),
    ({"type": "string", "format": "uuid"}, "UUID"),
    ({"type": "string", "enum": ["a", "b"]}, "ENUM('a','b')"),
    ({"type": "null"}, "NULL"),
    ({}, "JSON"),
    ({"type": "array", "items": {"type": "integer"}}, "ARRAY<INT64 NOT NULL>"),
    ({"type": "array", "items": {"type": ["integer", "null"]}}, "ARRAY<INT64>"),
    (
        {"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
        "MAP<STRING, INT64>",
    ),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b c": {"type": ["string", "null"]}},
            "required": ["a"],
        },
        "STRUCT<a: INT64 NOT NULL, `b c`: STRING>",
    ),
    ({"type": "object", "properties": {}}, "STRUCT<>"),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "UNION<INT64, STRING>"),
]
READ = [
    pytest.param(True, "JSON", id="true allows any value"),
    pytest.param(False, "UNKNOWN", id="false allows none"),
    pytest.param(
        {"type": "integer", "minimum": 0, "maximum": 100}, "INT64", id="bounds of no type"
    ),
    pytest.param({"type": "integer", "minimum": 0}, "INT64", id="one bound"),
    pytest.param(
        {"type": "integer", "format": "int32"}, "INT32", id="an integer format of OpenAPI"
    ),
    pytest.param(
        {"type": "number", "minimum": 0, "maximum": 255}, "FLOAT64", id="bounds of a number"
    ),
    pytest.param({"type": "string", "format": "email"}, "STRING", id="other formats"),
    pytest.param({"type": "string", "pattern": "^a"}, "STRING", id="patterns"),
    pytest.param(
        {"type": "string", "contentMediaType": "application/json"}, "JSON", id="JSON in text"
    ),
    pytest.param({"type": ["integer", "string"]}, "UNION<INT64, STRING>", id="several types"),
    pytest.param({"type": ["null", "string"]}, "STRING", id="null among the types"),
    pytest.param({"type": "geometry"}, "UNKNOWN('geometry')", id="types of other languages"),
    pytest.param({"const": "a"}, "ENUM('a')", id="a constant text"),
    pytest.param({"const": 5}, "INT64", id="a constant number"),
    pytest.param({"const": None}, "NULL", id="a constant null"),
    pytest.param({"enum": [1, 2, None]}, "INT64", id="an enumeration of numbers"),
    pytest.param({"enum": [1, 2.5]}, "FLOAT64", id="an enumeration of mixed numbers"),
    pytest.param(
        {"enum": [True, "x", [], {}]},
        "UNION<ENUM('x'), BOOLEAN, ARRAY<JSON>, MAP<STRING, JSON>>",
        id="an enumeration of anything",
    ),
    pytest.param({"maxLength": 3}, "STRING(3)", id="a type implied by a length"),
    pytest.param({"properties": {"a": {}}}, "STRUCT<a: JSON>", id="a type implied by properties"),
    pytest.param(
        {"items": {"type": "string"}}, "ARRAY<STRING NOT NULL>", id="a type implied by items"
    ),
    pytest.param({"type": "array"}, "ARRAY<JSON>", id="elements of any type"),
    pytest.param({"type": "object"}, "MAP<STRING, JSON>", id="properties of any name"),
    pytest.param({"type": "object", "additionalProperties": False}, "STRUCT<>", id="no properties"),
    pytest.param(
        {"type": "object", "patternProperties": {"^x": {"type": "string"}}},
        "MAP<STRING, STRING NOT NULL>",
        id="names by a pattern",
    ),
    pytest.param(
        {
            "type": "object",
            "properties": {"a": {"type": "null"}},
            "additionalProperties": {"type": "string"},
        },
        "STRUCT<a: NULL>",
        id="further properties beside named ones",
    ),
    pytest.param(
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
        "ARRAY<UNION<STRING, INT64> NOT NULL>",
        id="the places of a tuple's elements",
    ),
    pytest.param(
        {"type": "array", "items": [{"type": "string"}, {"type": "string"}]},
        "ARRAY<STRING NOT NULL>",
        id="a tuple in the words of older drafts",
    ),
    pytest.param(
        {"oneOf": [{"type": "null"}, {"type": "integer"}]}, "INT64", id="one of a type and null"
    ),
    pytest.param({"anyOf": [{"type": "null"}]}, "NULL", id="any of null alone"),
    pytest.param(
        {"type": "string", "anyOf": [{"format": "date"}, {"format": "uuid"}]},
        "UNION<DATE, UUID>",
        id="a shared type",
    ),
    pytest.param(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        "STRUCT<a: STRING>",
        id="conditions beside properties",
    ),
    pytest.param(
        {
            "allOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"allOf": [{"properties": {"b": {"type": "string"}}, "required": ["b"]}]},
            ],
            "properties": {"c": {"type": "string"}},
        },
        "STRUCT<c: STRING, a: STRING NOT NULL, b: STRING NOT NULL>",
        id="all of several objects",
    ),
    pytest.param(
        {"allOf": [{"type": "string"}, {"maxLength": 9}]}, "STRING(9)", id="all of several limits"
    ),
    pytest.param({"$ref": "other.json#/a"}, "UNKNOWN('ref:other.json#/a')", id="other documents"),
    pytest.param(
        {"$ref": "#/$defs/missing"}, "UNKNOWN('ref:#/$defs/missing')", id="references to nothing"
    ),
    pytest.param({"$ref": "#anchor"}, "UNKNOWN('ref:#anchor')", id="references to anchors"),
    pytest.param(
        {"allOf": [{"$ref": "other.json"}, {"type": "object"}]},
        "UNKNOWN('ref:other.json')",
        id="all of something unknown",
    ),
    pytest.param(
        {"$ref": "#/x/a~1b%20c/1", "x": {"a/b c": [{}, {"type": "string"}]}},
        "STRING",
        id="escapes in pointers",
    ),
    pytest.param(
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "string"}}},
        "STRING",
        id="references to references",
    ),
    pytest.param(
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
        "UNKNOWN('recursive:A')",
        id="a reference to itself",
    ),
    pytest.param({"$ref": "#"}, "UNKNOWN('recursive:#')", id="the document as itself"),
    pytest.param(
        {"title": "T", "allOf": [{"$ref": "#"}, {"type": "string"}]},
        "STRING",
        id="all of itself and more",
    ),
]
LOST_TO_JSON_SCHEMA = [
    pytest.param("FLOAT16", "FLOAT32", id="FLOAT16 becomes FLOAT32"),
    pytest.param("DECIMAL(10,2)", "DECIMAL", id="digits of a DECIMAL"),
    pytest.param("BINARY(16)", "BINARY", id="fixed lengths"),
    pytest.param("TIME(ns)", "TIME(us)", id="units of TIME"),
    pytest.param("TIMESTAMP(s)", "TIMESTAMP(us)", id="units of TIMESTAMP"),
    pytest.param("TIMESTAMPTZ(ms)", "TIMESTAMPTZ(us)", id="units of TIMESTAMPTZ"),
    pytest.param("DURATION(us)", "INTERVAL", id="DURATION becomes INTERVAL"),
    pytest.param("MAP<INT32, STRING>", "MAP<STRING, STRING>", id="keys other than STRING"),
    pytest.param("UNKNOWN('geometry')", "JSON", id="UNKNOWN becomes JSON"),
    pytest.param("ARRAY<JSON NOT NULL>", "ARRAY<JSON>", id="NOT NULL on JSON"),
    pytest.param("ENUM()", "STRING", id="an ENUM without symbols"),
    pytest.param("UNION<INT64>", "INT64", id="a union of one"),
    pytest.param("UNION<INT64, INT64, STRING>", "UNION<INT64, STRING>", id="the same option twice"),
    pytest.param("UNION<>", "JSON", id="a union of none"),
    pytest.param("STRUCT<a: INT64, a: INT64>", "STRUCT<a: INT64, a_2: INT64>", id="the same name twice"),
]  # fmt: skip


@pytest.mark.parametrize(("json_schema", "text"), HELD, ids=[text for _, text in HELD])
def test_json_schema_holds(json_schema: dict[str, Any], text: str) -> None:
    assert type_from_json_schema(json_schema) == parse_type(text)
    assert type_to_json_schema(parse_type(text)) == json_schema


@pytest.mark.parametrize(("json_schema", "text"), READ)
def test_json_schema_is_read(json_schema: dict[str, Any], text: str) -> None:
    assert type_from_json_schema(json_schema) == parse_type(text)


@pytest.mark.parametrize(("text", "back"), LOST_TO_JSON_SCHEMA)
def test_to_json_schema_is_lost(text: str, back: str) -> None:
    assert type_from_json_schema(type_to_json_schema(parse_type(text))) == parse_type(back)


@settings(max_examples=examples(200))
@given(schemas(TYPES))
def test_every_schema_converts_and_what_comes_back_converts_to_itself(schema: Schema) -> None:
    back = schema_from_json_schema(schema_to_json_schema(schema))
    assert [field.name for field in back.fields] == [field.name for field in schema.fields]
    assert schema_from_json_schema(schema_to_json_schema(back)).shape == back.shape


def distinct_members(type: DataType) -> bool:
    names = [member.name for member in type.members] if isinstance(type, Struct) else []
    return len(set(names)) == len(names)


NATIVE = nested(
    st.one_of(
        st.sampled_from([BOOLEAN, FLOAT32, FLOAT64, BINARY, DATE, UUID, INTERVAL, Decimal()]),
        st.sampled_from([*SIGNED, *UNSIGNED, Time(), Timestamp(), Timestamp(zoned=True)]),
        STRINGS,
        st.builds(Enum, st.lists(TEXTS, min_size=1, max_size=3)),
    ),
    lambda inner: st.one_of(
        arrays(inner),
        maps(inner, st.just(STRING)),
        structs(inner).filter(distinct_members),
        unions(inner, min_size=2, unique=True),
    ),
)


@settings(max_examples=examples(200))
@given(NATIVE)
def test_what_json_schema_holds_comes_back_equal(type: DataType) -> None:
    assert type_from_json_schema(type_to_json_schema(type)) == type


WORDS = (
    "type", "properties", "required", "items", "prefixItems", "additionalProperties", "enum",
    "patternProperties", "const", "anyOf", "oneOf", "allOf", "$ref", "#", "#/properties", "#/anyOf/0",
    "$defs", "format", "maxLength", "minimum", "maximum", "default", "title", "object", "array",
    "string", "integer", "null", "nullable", "0",
)  # fmt: skip


@settings(max_examples=examples(300))
@given(json_with(WORDS) | JSON_VALUES)
def test_any_json_is_read_as_some_schema(value: Any) -> None:
    assert parse_type(type_from_json_schema(value).text)
    assert schema_from_json_schema(value).shape


def test_properties_become_columns_with_their_facts() -> None:
    schema = schema_from_json_schema(
        {
            "title": "Order",
            "type": "object",
            "required": ["id", "note", "any", "to"],
            "properties": {
                "id": {"type": "integer", "description": "The key", "title": "Id"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                "any": {},
                "state": {"enum": ["new", "old"], "default": "new", "title": "State"},
                "n": {"type": "integer", "nullable": True, "default": 0},
                "to": {"$ref": "#/$defs/Address"},
                "from": {"$ref": "#/$defs/Address", "description": "Where it comes from"},
                "lines": {"type": "array", "items": {"type": "string", "description": "One line"}},
            },
            "$defs": {
                "Address": {
                    "type": "object",
                    "title": "A postal address",
                    "properties": {"zip": {"type": "string", "default": "0"}},
                    "required": ["zip"],
                }
            },
        }
    )
    address = "STRUCT<zip: STRING NOT NULL>"
    assert str(schema).splitlines() == [
        "id INT64 NOT NULL COMMENT 'The key'",
        "note STRING DEFAULT 'null'",
        "any JSON",
        "state ENUM('new','old') DEFAULT 'new' COMMENT 'State'",
        "n INT64 DEFAULT '0'",
        f"to {address} NOT NULL COMMENT 'A postal address'",
        f"from {address} COMMENT 'Where it comes from'",
        "lines ARRAY<STRING NOT NULL>",
    ]
    assert schema.fields[6].nested == (NestedField(path="from.zip", default="0"),)
    assert schema.fields[7].nested == (NestedField(path="lines[]", description="One line"),)
    assert schema_from_json_schema(schema_to_json_schema(schema)).full == schema.full


def test_a_schema_that_is_no_object_is_one_column() -> None:
    assert str(schema_from_json_schema({"type": "array", "items": {}})) == (
        "value ARRAY<JSON> NOT NULL"
    )
    assert str(schema_from_json_schema(True)) == "value JSON"


def test_a_schema_that_holds_itself_is_cut_at_the_second_visit() -> None:
    node = {
        "type": "object",
        "properties": {
            "value": {"type": "integer"},
            "next": {"anyOf": [{"$ref": "#/definitions/Node"}, {"type": "null"}]},
        },
        "required": ["value"],
    }
    root = {"$ref": "#/definitions/Node", "definitions": {"Node": node}}
    assert str(schema_from_json_schema(root)).splitlines() == [
        "value INT64 NOT NULL",
        "next UNKNOWN('recursive:Node')",
    ]


def test_a_document_that_refers_to_itself_is_cut() -> None:
    tree = {"title": "Tree", "properties": {"children": {"items": {"$ref": "#"}}}}
    assert str(schema_from_json_schema(tree)) == (
        "children ARRAY<UNKNOWN('recursive:Tree') NOT NULL>"
    )


def test_thousands_of_levels_are_cut() -> None:
    array: Any = {"type": "integer"}
    struct, union, single, merged = array, array, array, array
    for _ in range(5_000):
        array = {"type": "array", "items": array}
        struct = {"type": "object", "properties": {"a": struct}}
        union = {"anyOf": [{"type": "string"}, {"type": "array", "items": union}]}
        single = {"anyOf": [single]}
        merged = {"allOf": [merged]}
    for deep in (array, struct, union):
        assert "UNKNOWN('too deep')" in type_from_json_schema(deep).text
        assert type_from_json_schema(deep).depth == MAX_DEPTH
    for deep in (single, merged):
        assert type_from_json_schema(deep).text == "UNKNOWN('too deep')"


def test_thousands_of_references_in_a_row_are_cut() -> None:
    definitions: dict[str, Any] = {
        f"A{level}": {"$ref": f"#/$defs/A{level + 1}"} for level in range(5_000)
    }
    schema = {"$ref": "#/$defs/A0", "$defs": definitions}
    assert type_from_json_schema(schema).text == "UNKNOWN('too deep')"


@pytest.mark.parametrize("opening", ["ARRAY<", "MAP<STRING, ", "STRUCT<a: "])
def test_the_deepest_type_comes_back(opening: str) -> None:
    text = opening * (MAX_DEPTH - 1) + "INT64" + ">" * (MAX_DEPTH - 1)
    assert type_from_json_schema(type_to_json_schema(parse_type(text))).text == text


def test_maps_as_keys_of_maps_convert() -> None:
    type = parse_type("MAP<" * (MAX_DEPTH - 1) + "INT8" + ", INT8>" * (MAX_DEPTH - 1))
    assert type_from_json_schema(type_to_json_schema(type)).text.startswith("MAP<")


def test_schemas_that_double_at_every_level_do_not_explode() -> None:
    definitions: dict[str, Any] = {"A60": {"type": "string"}}
    shared: Any = {"type": "integer"}
    for level in range(60):
        below = {"$ref": f"#/$defs/A{level + 1}"}
        definitions[f"A{level}"] = {"properties": {"left": below, "right": below}}
        shared = {"type": "array", "items": shared, "anyOf": [{"minItems": 1}, {"minItems": 2}]}
    referred = type_from_json_schema({"$ref": "#/$defs/A0", "$defs": definitions})
    for type in (referred, type_from_json_schema(shared)):
        assert "UNKNOWN('too large')" in type.text
        assert len(type.text) < 10 * MAX_EXPANSION_LENGTH
