"""Arrow types and what is lost between them and the algebra."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.model.conversions.arrow import (
    schema_from_arrow,
    schema_to_arrow,
    type_from_arrow,
    type_to_arrow,
)
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import (
    BINARY,
    MAX_DEPTH,
    NULL,
    SIMPLE,
    STRING,
    Array,
    Binary,
    DataType,
    parse_type,
)

from .strategies import (
    TIMES,
    TYPES,
    UNKNOWNS,
    arrays,
    maps,
    nested,
    plain_decimals,
    schemas,
    structs,
    unions,
)

HELD = [
    (pa.bool_(), "BOOLEAN"),
    (pa.int8(), "INT8"),
    (pa.uint64(), "UINT64"),
    (pa.float16(), "FLOAT16"),
    (pa.float64(), "FLOAT64"),
    (pa.string(), "STRING"),
    (pa.binary(), "BINARY"),
    (pa.binary(16), "BINARY(16)"),
    (pa.date32(), "DATE"),
    (pa.time32("s"), "TIME(s)"),
    (pa.time64("ns"), "TIME(ns)"),
    (pa.timestamp("us"), "TIMESTAMP(us)"),
    (pa.timestamp("ns", tz="UTC"), "TIMESTAMPTZ(ns)"),
    (pa.duration("ms"), "DURATION(ms)"),
    (pa.month_day_nano_interval(), "INTERVAL"),
    (pa.decimal128(10, 2), "DECIMAL(10,2)"),
    (pa.decimal128(10, -2), "DECIMAL(10,-2)"),
    (pa.decimal256(76, 38), "DECIMAL(76,38)"),
    (pa.uuid(), "UUID"),
    (pa.json_(), "JSON"),
    (pa.null(), "NULL"),
    (pa.list_(pa.field("element", pa.int8(), nullable=False)), "ARRAY<INT8 NOT NULL>"),
    (pa.map_(pa.string(), pa.field("value", pa.int64())), "MAP<STRING, INT64>"),
    (
        pa.struct([pa.field("a", pa.int8(), nullable=False), pa.field("b.c", pa.string())]),
        "STRUCT<a: INT8 NOT NULL, `b.c`: STRING>",
    ),
    (pa.struct([]), "STRUCT<>"),
    (
        pa.dense_union([pa.field("0", pa.int64()), pa.field("1", pa.string())]),
        "UNION<INT64, STRING>",
    ),
    (pa.opaque(pa.binary(), "geometry", "lumos"), "UNKNOWN('geometry')"),
]
LOST_FROM_ARROW = [
    pytest.param(pa.large_string(), "STRING", pa.string(), id="64 bit offsets of strings"),
    pytest.param(pa.string_view(), "STRING", pa.string(), id="string views"),
    pytest.param(pa.large_binary(), "BINARY", pa.binary(), id="64 bit offsets of bytes"),
    pytest.param(pa.binary_view(), "BINARY", pa.binary(), id="binary views"),
    pytest.param(pa.binary(0), "BINARY", pa.binary(), id="a fixed length of no bytes"),
    pytest.param(
        pa.dictionary(pa.int8(), pa.large_string()), "STRING", pa.string(), id="dictionary encoding"
    ),
    pytest.param(
        pa.run_end_encoded(pa.int32(), pa.int64()), "INT64", pa.int64(), id="run-end encoding"
    ),
    pytest.param(pa.date64(), "DATE", pa.date32(), id="milliseconds of a date64"),
    pytest.param(
        pa.timestamp("ms", tz="Europe/Berlin"),
        "TIMESTAMPTZ(ms)",
        pa.timestamp("ms", tz="UTC"),
        id="the name of a time zone",
    ),
    pytest.param(pa.decimal32(5, 2), "DECIMAL(5,2)", pa.decimal128(5, 2), id="32 bit decimals"),
    pytest.param(pa.decimal64(12, 2), "DECIMAL(12,2)", pa.decimal128(12, 2), id="64 bit decimals"),
    pytest.param(
        pa.list_(pa.int8(), 3),
        "ARRAY<INT8>",
        pa.list_(pa.field("element", pa.int8())),
        id="a fixed list size",
    ),
    pytest.param(
        pa.large_list(pa.int8()),
        "ARRAY<INT8>",
        pa.list_(pa.field("element", pa.int8())),
        id="64 bit offsets of lists",
    ),
    pytest.param(
        pa.list_view(pa.int8()),
        "ARRAY<INT8>",
        pa.list_(pa.field("element", pa.int8())),
        id="list views",
    ),
    pytest.param(
        pa.sparse_union([pa.field("i", pa.int8())]),
        "UNION<INT8>",
        pa.dense_union([pa.field("0", pa.int8())]),
        id="names and layout of union options",
    ),
    pytest.param(pa.bool8(), "BOOLEAN", pa.bool_(), id="bytes of a bool8"),
    pytest.param(
        pa.fixed_shape_tensor(pa.int8(), [2]),
        "ARRAY<INT8>",
        pa.list_(pa.field("element", pa.int8())),
        id="an extension that the algebra does not know: its storage stays",
    ),
    pytest.param(
        pa.dictionary(pa.int8(), pa.dictionary(pa.int8(), pa.uuid())),
        "UUID",
        pa.uuid(),
        id="encodings inside encodings",
    ),
]
LOST_TO_ARROW = [
    pytest.param("STRING(40)", pa.string(), "STRING", id="longest lengths"),
    pytest.param(
        "ENUM('a')", pa.dictionary(pa.int32(), pa.string()), "STRING", id="symbols of an ENUM"
    ),
    pytest.param("DECIMAL", pa.decimal256(76, 38), "DECIMAL(76,38)", id="unbounded decimals"),
    pytest.param("DECIMAL(90,20)", pa.decimal256(76, 6), "DECIMAL(76,6)", id="more than 76 digits"),
    pytest.param("BINARY(4294967296)", pa.binary(), "BINARY", id="fixed lengths beyond 2 GiB"),
    pytest.param(
        "ARRAY<NULL NOT NULL>",
        pa.list_(pa.field("element", pa.null())),
        "ARRAY<NULL>",
        id="NOT NULL on a NULL",
    ),
    pytest.param(
        "MAP<NULL, INT8>",
        pa.map_(pa.string(), pa.field("value", pa.int8())),
        "MAP<STRING, INT8>",
        id="NULL keys",
    ),
]


@pytest.mark.parametrize(("arrow", "text"), HELD, ids=[text for _, text in HELD])
def test_arrow_holds(arrow: pa.DataType, text: str) -> None:
    assert type_from_arrow(arrow) == parse_type(text)
    assert type_to_arrow(parse_type(text)) == arrow


@pytest.mark.parametrize(("arrow", "text", "back"), LOST_FROM_ARROW)
def test_from_arrow_is_lost(arrow: pa.DataType, text: str, back: pa.DataType) -> None:
    assert type_from_arrow(arrow) == parse_type(text)
    assert type_to_arrow(parse_type(text)) == back


@pytest.mark.parametrize(("text", "arrow", "back"), LOST_TO_ARROW)
def test_to_arrow_is_lost(text: str, arrow: pa.DataType, back: str) -> None:
    assert type_to_arrow(parse_type(text)) == arrow
    assert type_from_arrow(arrow) == parse_type(back)


def test_a_union_with_more_options_than_arrow_has_numbers_becomes_unknown() -> None:
    text = f"UNION<{', '.join(['INT8'] * 129)}>"
    assert type_from_arrow(type_to_arrow(parse_type(text))).text == f"UNKNOWN('{text}')"


@settings(max_examples=examples(200))
@given(schemas(TYPES))
def test_every_schema_converts_and_what_comes_back_converts_to_itself(schema: Schema) -> None:
    arrow = schema_to_arrow(schema)
    back = schema_from_arrow(arrow)
    assert [field.name for field in back.fields] == [field.name for field in schema.fields]
    assert schema_from_arrow(schema_to_arrow(back)).shape == back.shape


NATIVE = nested(
    st.one_of(
        st.sampled_from([simple for simple in SIMPLE.values() if simple != NULL]),
        plain_decimals(76),
        st.just(STRING),
        st.builds(Binary, st.none() | st.integers(1, 2**31 - 1)),
        TIMES,
        UNKNOWNS,
    ),
    lambda inner: st.one_of(arrays(inner), maps(inner), structs(inner), unions(inner)),
)


@settings(max_examples=examples(200))
@given(NATIVE)
def test_what_arrow_holds_comes_back_equal(type: DataType) -> None:
    assert type_from_arrow(type_to_arrow(type)) == type


def test_nesting_beyond_the_limit_is_cut() -> None:
    deep, struct = pa.int8(), pa.int8()
    for _ in range(2_000):
        deep, struct = pa.list_(deep), pa.struct([pa.field("a", struct)])
    assert type_from_arrow(deep).text.endswith("ARRAY<UNKNOWN('too deep')" + ">" * (MAX_DEPTH - 1))
    assert type_from_arrow(struct).text.endswith("<a: UNKNOWN('too deep')" + ">" * (MAX_DEPTH - 1))


@pytest.mark.parametrize("opening", ["ARRAY<", "MAP<INT8, ", "STRUCT<a: ", "UNION<"])
def test_the_deepest_type_comes_back(opening: str) -> None:
    text = opening * (MAX_DEPTH - 1) + "INT8" + ">" * (MAX_DEPTH - 1)
    assert type_from_arrow(type_to_arrow(parse_type(text))).text == text


def test_maps_as_keys_of_maps_convert() -> None:
    type = parse_type("MAP<" * (MAX_DEPTH - 1) + "INT8" + ", INT8>" * (MAX_DEPTH - 1))
    assert type_from_arrow(type_to_arrow(type)).text.startswith("MAP<")


def test_metadata_gives_descriptions_and_field_ids_at_every_level() -> None:
    leaf = pa.field("b.c", pa.int8(), metadata={"PARQUET:field_id": "3", "comment": "inner"})
    element = pa.field("element", pa.struct([leaf]), metadata={"PARQUET:field_id": "2"})
    value = pa.field("value", pa.string(), metadata={"description": "text"})
    schema = pa.schema(
        [
            pa.field(
                "a",
                pa.list_(element),
                nullable=False,
                metadata={"PARQUET:field_id": "1", "description": "outer", "other": "x"},
            ),
            pa.field("m", pa.map_(pa.string(), value), metadata={"PARQUET:field_id": "no number"}),
        ]
    )
    read = schema_from_arrow(schema)
    assert read.fields == (
        Field(
            name="a",
            type=parse_type("ARRAY<STRUCT<`b.c`: INT8>>"),
            nullable=False,
            description="outer",
            native_type="list<element: struct<b.c: int8>>",
            field_id=1,
            nested=(
                NestedField(path="a[]", field_id=2),
                NestedField(path="a[].`b.c`", description="inner", field_id=3),
            ),
        ),
        Field(
            name="m",
            type=parse_type("MAP<STRING, STRING>"),
            native_type="map<string, string>",
            nested=(NestedField(path="m{}", description="text"),),
        ),
    )
    assert schema_from_arrow(schema_to_arrow(read)) == read


def test_a_parquet_file_is_read_with_its_nested_fields(tmp_path: Path) -> None:
    item = pa.struct(
        [
            pa.field("sku", pa.string(), nullable=False, metadata={"PARQUET:field_id": "5"}),
            pa.field("price", pa.decimal128(9, 2), metadata={"PARQUET:field_id": "6"}),
        ]
    )
    element = pa.field("element", item, nullable=False, metadata={"PARQUET:field_id": "4"})
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "1"}),
            pa.field("at", pa.timestamp("us", tz="UTC"), metadata={"PARQUET:field_id": "2"}),
            pa.field("items", pa.list_(element), metadata={"PARQUET:field_id": "3"}),
            pa.field("tags", pa.map_(pa.string(), pa.int32())),
            pa.field("kind", pa.dictionary(pa.int32(), pa.string())),
            pa.field("u", pa.uuid(), metadata={"comment": "who"}),
        ]
    )
    path = tmp_path / "orders.parquet"
    pq.write_table(schema.empty_table(), path)

    read = schema_from_arrow(pq.read_schema(path))

    assert str(read).splitlines() == [
        "id INT64 NOT NULL",
        "at TIMESTAMPTZ(us)",
        "items ARRAY<STRUCT<sku: STRING NOT NULL, price: DECIMAL(9,2)> NOT NULL>",
        "tags MAP<STRING, INT32>",
        "kind STRING",
        "u UUID COMMENT 'who'",
    ]
    assert [field.field_id for field in read.fields[:3]] == [1, 2, 3]
    assert {note.path: note.field_id for note in read.fields[2].nested} == {
        "items[]": 4,
        "items[].sku": 5,
        "items[].price": 6,
    }


def test_text_that_utf8_cannot_hold_is_replaced() -> None:
    schema = Schema(fields=(Field(name="a\ud800", type=Array(BINARY), description="\udfff"),))
    [field] = schema_to_arrow(schema)
    assert field.name == "a\ufffd"
    assert field.metadata[b"comment"].decode() == "\ufffd"
