"""Schemas as columns of OpenMetadata and back; the server keeps types' texts in lower case."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings

from catalogs.strategies import SCHEMAS
from catalogs.test_lossless import wide_and_deep
from examples import examples
from lumos.catalogs.openmetadata import columns
from lumos.catalogs.openmetadata.states import column_of
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import (
    BOOLEAN,
    INT64,
    STRING,
    UINT64,
    Array,
    Binary,
    DataType,
    Decimal,
    Map,
    Member,
    String,
    Struct,
    Timestamp,
    Union,
    Unknown,
)


def labelled(tags: Iterable[str], terms: Iterable[str]) -> list[dict[str, Any]]:
    return [
        {"tagFQN": name, "source": source, "labelType": "Manual", "state": "Confirmed"}
        for source, names in (("Classification", tags), ("Glossary", terms))
        for name in names
    ]


def through(schema: Schema) -> Schema:
    """The schema as the server would give it back."""
    there = [column_of(column) for column in columns.encode_columns(schema, labelled)]
    return columns.decode_columns(there, columns.key_columns(schema))


@pytest.mark.parametrize(
    ("type", "facts"),
    [
        (INT64, {"dataType": "BIGINT"}),
        (UINT64, {"dataType": "NUMERIC"}),
        (String(20), {"dataType": "VARCHAR", "dataLength": 20}),
        (Binary(16), {"dataType": "BINARY", "dataLength": 16}),
        (Binary(), {"dataType": "BYTES"}),
        (Decimal(10, 2), {"dataType": "DECIMAL", "precision": 10, "scale": 2}),
        (Timestamp("ms", zoned=True), {"dataType": "TIMESTAMPZ"}),
        (Array(STRING), {"dataType": "ARRAY", "arrayDataType": "STRING"}),
        (Map(STRING, INT64, value_nullable=False), {"dataType": "MAP"}),
        (Union((INT64, STRING)), {"dataType": "UNION"}),
        (Unknown("geo"), {"dataType": "UNKNOWN"}),
    ],
)
def test_a_type_has_its_facts_and_comes_back(type: DataType, facts: dict[str, Any]) -> None:
    schema = Schema(fields=(Field(name="x", type=type),))
    [column] = columns.encode_columns(schema, labelled)
    assert column == {"name": "x", **facts, "dataTypeDisplay": type.text.lower()}
    assert through(schema) == schema


def test_members_keep_the_case_of_their_names() -> None:
    inner = Struct((Member("Geo.Pt", Array(STRING, element_nullable=False), nullable=False),))
    type = Array(Struct((Member("Sku", STRING), Member("at", Map(STRING, inner)))))
    notes = (
        NestedField(path="Items[].Sku", description="Its number", tags=("a",), terms=("b",)),
        NestedField(path="Items[].at{}.`Geo.Pt`", description="Where"),
    )
    schema = Schema(fields=(Field(name="Items", type=type, nested=notes),))
    assert through(schema) == schema


def test_nesting_as_deep_as_types_go_comes_back() -> None:
    schema = wide_and_deep().schema
    assert schema is not None
    assert through(schema) == schema


def test_keys_and_required_columns_have_their_places() -> None:
    one, other = (Field(name=name, type=INT64, nullable=False, key=True) for name in "ab")
    [column] = columns.encode_columns(Schema(fields=(one,)), labelled)
    assert column["constraint"] == "PRIMARY_KEY"
    # The server takes only one column that says so by itself.
    both = Schema(fields=(one, other, Field(name="c", type=INT64)))
    assert [each.get("constraint") for each in columns.encode_columns(both, labelled)] == [
        "NOT_NULL",
        "NOT_NULL",
        None,
    ]
    assert columns.key_columns(both) == ["a", "b"]
    assert through(both) == both


@pytest.mark.parametrize(
    ("column", "type"),
    [
        ({"dataType": "VARCHAR", "dataLength": 9, "dataTypeDisplay": "varchar(9)"}, String(9)),
        ({"dataType": "VARCHAR", "dataLength": 9}, String(9)),
        ({"dataType": "NUMBER", "dataTypeDisplay": "number(38,0)"}, Decimal(38, 0)),
        ({"dataType": "NUMERIC", "precision": 9, "scale": 2}, Decimal(9, 2)),
        ({"dataType": "BOOLEAN", "dataTypeDisplay": "bool"}, BOOLEAN),
        ({"dataType": "ARRAY", "arrayDataType": "STRING"}, Array(STRING)),
        ({"dataType": "GEOGRAPHY", "dataTypeDisplay": "geography"}, Unknown("geography")),
        (
            {"dataType": "STRUCT", "children": [{"name": "Id", "dataType": "BIGINT"}]},
            Struct((Member("Id", INT64),)),
        ),
    ],
)
def test_columns_of_others_are_understood(column: dict[str, Any], type: DataType) -> None:
    schema = columns.decode_columns([column_of({"name": "x", **column})])
    assert schema.fields[0].type == type


@settings(max_examples=examples(30))
@given(schema=SCHEMAS)
def test_what_the_server_would_refuse_is_never_written(schema: Schema) -> None:
    def check(each: list[dict[str, Any]]) -> None:
        names = [column["name"] for column in each]
        assert len(names) == len(set(names))
        for column in each:
            assert column["name"]
            assert column["dataType"] != "ARRAY" or column["arrayDataType"]
            assert column["dataType"] not in ("VARCHAR", "BINARY") or column["dataLength"]
            check(column.get("children", []))

    written = columns.encode_columns(schema, labelled)
    check(written)
    assert sum(column.get("constraint") == "PRIMARY_KEY" for column in written) <= 1
