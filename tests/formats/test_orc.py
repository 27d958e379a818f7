"""ORC: the end of the file alone."""

import io
import random

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.formats.columns import with_distinct_names
from lumos.formats.identification import read_file
from lumos.formats.interface import UnreadableFile
from lumos.formats.orc import decompress_stream
from lumos.formats.varints import MalformedData
from lumos.model.conversions.arrow import schema_from_arrow

from .material import TABLE, MemoryFile, facts_of, orc_bytes

CODECS = ("uncompressed", "snappy", "zlib", "lz4", "zstd")
SCALARS = st.sampled_from(
    [
        pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
        pa.string(), pa.binary(), pa.date32(), pa.timestamp("ns"), pa.timestamp("us"),
        pa.timestamp("us", tz="UTC"), pa.decimal128(9, 2), pa.decimal128(38, 10),
    ]
)  # fmt: skip
NAMES = st.sampled_from(["id", "größe", "a.b", " ", "x" * 200])
TYPES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(lambda value: pa.map_(pa.string(), value)),
        st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(lambda parts: pa.struct(list(parts.items()))),
    ),
    max_leaves=5,
)  # fmt: skip
SCHEMAS = st.dictionaries(NAMES, TYPES, min_size=1, max_size=5).map(
    lambda parts: pa.schema(list(parts.items()))
)


@settings(max_examples=examples(100))
@given(schema=SCHEMAS, rows=st.integers(1, 3), codec=st.sampled_from(CODECS))
def test_the_schema_is_the_one_that_pyarrow_reads(schema: pa.Schema, rows: int, codec: str) -> None:
    table = pa.Table.from_arrays([pa.nulls(rows, field.type) for field in schema], schema=schema)
    data = orc_bytes(table, compression=codec)
    facts = facts_of("a.orc", data)
    theirs = with_distinct_names(schema_from_arrow(orc.ORCFile(io.BytesIO(data)).schema))
    # Names of types are ORC's own, which pyarrow does not tell.
    assert str(facts.schema) == str(theirs)
    assert (facts.row_count, facts.row_count_exact) == (rows, True)


def test_types_have_orcs_own_names() -> None:
    schema = facts_of("a.orc", orc_bytes(TABLE)).schema
    assert [field.native_type for field in schema.fields] == [
        "bigint", "string", "decimal(10,2)", "timestamp", "array<struct<sku:string,count:bigint>>",
        "double", "map<string,int>",
    ]  # fmt: skip


@pytest.mark.parametrize("codec", CODECS)
def test_a_footer_longer_than_the_first_read_is_read_whole(codec: str) -> None:
    chance = random.Random(1)
    # Few columns with long names: pyarrow's writer takes a megabyte for each column.
    names = [f"column_{number}_{chance.randbytes(700).hex()}" for number in range(90)]
    file = MemoryFile(orc_bytes(pa.table({name: [1] for name in names}), compression=codec))
    result = read_file("wide.orc", file)
    assert result is not None
    assert [field.name for field in result[1].schema.fields] == names
    assert [end for end, _ in file.reads] == ["tail", "tail"]


def number(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """A protocol buffer of those fields."""
    parts = []
    for id, value in fields:
        if isinstance(value, int):
            parts.append(number(id << 3) + number(value))
        else:
            parts.append(number(id << 3 | 2) + number(len(value)) + value)
    return b"".join(parts)


def orc_file(*types: bytes, rows: int = 7, codec: int = 0) -> bytes:
    footer = message(*((4, each) for each in types), (6, rows))
    postscript = message((1, len(footer)), (2, codec), (8000, b"ORC"))
    return b"ORC" + footer + postscript + bytes([len(postscript)])


ROOT = message((1, 12), (2, b"\x01"), (3, b"a"))


@pytest.mark.parametrize(
    ("types", "schema"),
    [
        pytest.param([message((1, 16), (4, 20))], "a STRING(20)", id="VARCHAR"),
        pytest.param([message((1, 17), (4, 3))], "a STRING(3)", id="CHAR"),
        pytest.param([message((1, 18))], "a TIMESTAMPTZ(ns)", id="TIMESTAMP_INSTANT"),
        pytest.param([message((1, 14))], "a DECIMAL(38,10)", id="a decimal of the oldest files"),
        pytest.param([message((1, 13), (2, b"\x02\x03")), message((1, 3)), message((1, 7))], "a UNION<INT32, STRING>", id="UNION"),
        pytest.param([message((1, 13), (2, 2), (2, 3)), message((1, 3)), message((1, 7))], "a UNION<INT32, STRING>", id="numbers that are not packed"),
        pytest.param([message((1, 19))], "a UNKNOWN('geometry')", id="GEOMETRY"),
        pytest.param([message((1, 3), (7, message((1, b"iceberg.required"), (2, b"true"))))], "a INT32 NOT NULL", id="required, as Iceberg says"),
    ],
)  # fmt: skip
def test_types_that_pyarrow_does_not_write_are_read(types: list[bytes], schema: str) -> None:
    facts = facts_of("a.orc", orc_file(ROOT, *types))
    assert (str(facts.schema), facts.row_count) == (schema, 7)


def test_field_ids_of_iceberg_are_kept() -> None:
    attribute = message((1, b"iceberg.id"), (2, b"17"))
    [field] = facts_of("a.orc", orc_file(ROOT, message((1, 3), (7, attribute)))).schema.fields
    assert field.field_id == 17


def test_a_file_without_a_record_has_one_column() -> None:
    assert str(facts_of("a.orc", orc_file(message((1, 4)))).schema) == "value INT64"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"ORC" + bytes(50), "not_orc", id="cut off"),
        pytest.param(b"ORC" + b"\x08\xff\xff\x03" + b"ORC\x08", "corrupt_file", id="a footer longer than the file"),
        pytest.param(orc_file(), "corrupt_file", id="no types"),
        pytest.param(orc_file(message((1, 99))), "corrupt_file", id="an unheard-of type"),
        pytest.param(orc_file(message((1, 12), (2, b"\x00"), (3, b"a"))), "corrupt_file", id="a type inside itself"),
        pytest.param(orc_file(message((1, 12), (2, b"\x01\x01"), (3, b"a"), (3, b"b")), message((1, 3))), "corrupt_file", id="a type used twice"),
        pytest.param(orc_file(message((1, 12), (2, b"\x05"), (3, b"a"))), "corrupt_file", id="a type that is not there"),
        pytest.param(orc_file(ROOT, message((1, 10))), "corrupt_file", id="a list of nothing"),
        pytest.param(orc_file(ROOT, message((1, 14), (5, 99))), "corrupt_file", id="too many digits"),
        pytest.param(orc_file(ROOT, message((1, 3)), rows=2**63), "corrupt_file", id="negative rows"),
        pytest.param(orc_file(ROOT, message((1, 3)), codec=3), "unsupported_compression", id="LZO"),
        pytest.param(orc_file(ROOT, message((1, 3)), codec=1), "corrupt_file", id="not compressed as it says"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_with_a_code(data: bytes, code: str) -> None:
    with pytest.raises(UnreadableFile) as problem:
        facts_of("a.orc", data)
    assert problem.value.code == code


def test_types_nest_as_deep_as_the_algebra_allows() -> None:
    lists = [message((1, 10), (2, number(inner))) for inner in range(2, 202)]
    assert "too deep" in str(facts_of("a.orc", orc_file(ROOT, *lists, message((1, 3)))).schema)


def block(content: bytes, *, original: bool = False) -> bytes:
    return (len(content) << 1 | original).to_bytes(3, "little") + content


@pytest.mark.parametrize(
    ("codec", "content"),
    [
        pytest.param(2, b"\xff\xff\xff\xff\x0f" + bytes(20), id="snappy that claims gigabytes"),
        pytest.param(
            4, b"\x1fA\x01\x00" + b"\xff" * 100_000 + b"\x00", id="LZ4 that repeats one letter"
        ),
        pytest.param(4, b"\x10A\x05\x00", id="LZ4 that repeats what is not there"),
        pytest.param(4, b"\xf0\xff", id="LZ4 cut off"),
        pytest.param(5, b"\x28\xb5\x2f\xfdnonsense", id="zstd"),
    ],
)
def test_no_block_unfolds_to_more_than_it_may(codec: int, content: bytes) -> None:
    with pytest.raises(MalformedData):
        decompress_stream(block(content), codec, 256 * 1024)


def test_a_block_of_zlib_that_unfolds_to_too_much_is_cut() -> None:
    import zlib

    compressor = zlib.compressobj(wbits=-15)
    bomb = compressor.compress(bytes(50_000_000)) + compressor.flush()
    assert len(decompress_stream(block(bomb), 1, 1024)) == 1024


@given(parts=st.lists(st.binary(max_size=20), max_size=30), repeat=st.integers(1, 40))
def test_lz4_blocks_unfold_to_what_was_compressed(parts: list[bytes], repeat: int) -> None:
    content = b"".join(parts) * repeat
    compressed = pa.compress(content, codec="lz4_raw", asbytes=True)
    assert decompress_stream(block(compressed), 4, 1024 * 1024) == content
    assert decompress_stream(block(content, original=True), 4, 1024 * 1024) == content
