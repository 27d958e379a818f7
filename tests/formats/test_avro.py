"""Avro: the header alone."""

import pytest

from lumos.formats.identification import read_file
from lumos.formats.interface import UnreadableFile

from .material import MemoryFile, avro_bytes, facts_of

FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"], "doc": "who"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
]
RECORD = {"id": 1, "name": None, "at": 0, "tags": {"x": [1]}}
SCHEMA = (
    "id INT64 NOT NULL\nname STRING COMMENT 'who'\nat TIMESTAMPTZ(us) NOT NULL\n"
    "tags MAP<STRING, ARRAY<INT32 NOT NULL> NOT NULL> NOT NULL"
)


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_the_header_has_the_schema_and_blocks_their_row_counts(codec: str) -> None:
    data = avro_bytes(FIELDS, [RECORD] * 500, codec=codec, sync_interval=1000)
    facts = facts_of("a.avro", data)
    assert str(facts.schema) == SCHEMA
    assert (facts.row_count, facts.row_count_exact) == (500, True)


def test_rows_of_a_large_file_are_not_counted() -> None:
    file = MemoryFile(avro_bytes(FIELDS, [RECORD] * 20_000))
    result = read_file("a.avro", file)
    assert result is not None
    assert result[1][1:3] == (None, False)
    assert file.reads == [("head", 64 * 1024)]


def test_a_header_longer_than_the_first_read_is_read_whole() -> None:
    fields = [{"name": f"column_{number}", "type": "int"} for number in range(5000)]
    data = avro_bytes(fields, [])
    file = MemoryFile(data + avro_bytes(fields, [])[:0])
    result = read_file("wide.avro", file)
    assert result is not None
    assert len(result[1].schema.fields) == 5000
    assert [end for end, _ in file.reads] == ["head", "head"]


def long(value: int) -> bytes:
    value = value << 1 ^ value >> 63
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def avro_file(*metadata: tuple[bytes, bytes], rest: bytes = b"", sized: bool = False) -> bytes:
    entries = b"".join(
        long(len(key)) + key + long(len(value)) + value for key, value in metadata
    )  # fmt: skip
    count = long(-len(metadata)) + long(len(entries)) if sized else long(len(metadata))
    return b"Obj\x01" + (count + entries if metadata else b"") + long(0) + b"s" * 16 + rest


RECORD_SCHEMA = b'{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}'


@pytest.mark.parametrize("sized", [False, True])
def test_a_header_may_contain_its_size(sized: bool) -> None:
    data = avro_file((b"avro.schema", RECORD_SCHEMA), (b"x", b"y"), sized=sized)
    assert str(facts_of("a.avro", data).schema) == "a INT32 NOT NULL"


def test_a_file_of_single_values_has_one_column() -> None:
    assert str(facts_of("a.avro", avro_file((b"avro.schema", b'"string"'))).schema) == (
        "value STRING NOT NULL"
    )


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"Obj\x01", "corrupt_file", id="nothing but the magic bytes"),
        pytest.param(avro_file((b"avro.schema", RECORD_SCHEMA))[:-1], "corrupt_file", id="cut off in the header"),
        pytest.param(avro_file((b"other", b"x")), "corrupt_file", id="no schema"),
        pytest.param(avro_file((b"avro.schema", b"{")), "corrupt_file", id="a schema that is no JSON"),
        pytest.param(avro_file((b"avro.schema", b"\xff")), "corrupt_file", id="a schema that is no text"),
        pytest.param(avro_file((b"avro.schema", b"[" * 100_000)), "too_deep", id="a schema of endless depth"),
        pytest.param(avro_file((b"avro.schema", RECORD_SCHEMA), rest=long(1) + long(5) + b"x"), "corrupt_file", id="cut off in a block"),
        pytest.param(avro_file((b"avro.schema", RECORD_SCHEMA), rest=long(1) + long(1) + b"x" * 17), "corrupt_file", id="a block without its mark"),
        pytest.param(avro_file((b"avro.schema", RECORD_SCHEMA), rest=long(-1) + long(1) + b"x" * 17), "corrupt_file", id="a block of less than no rows"),
        pytest.param(b"Obj\x01" + long(1) + long(-5), "corrupt_file", id="a negative length"),
        pytest.param(b"Obj\x01" + b"\xff" * 20, "corrupt_file", id="an endless number"),
        pytest.param(b"Obj\x01" + long(2**40) + long(2**50), "corrupt_file", id="a length beyond the file"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_with_a_code(data: bytes, code: str) -> None:
    with pytest.raises(UnreadableFile) as problem:
        facts_of("a.avro", data)
    assert problem.value.code == code
