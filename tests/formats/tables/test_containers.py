"""Avro containers of table formats: read within bounds, whatever they promise."""

import json
import struct
import zlib
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lumos.formats.tables.avro_containers import MAX_BLOCK_BYTES, AvroContainer
from lumos.formats.varints import MalformedData, TruncatedData

from .iceberg_tables import avro, sized, zigzag


def bomb(schema: Any, block: bytes, *, count: int = 1, codec: bytes = b"null") -> bytes:
    pairs = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": codec}
    header = b"Obj\x01" + zigzag(2) + b"".join(sized(k) + sized(v) for k, v in pairs.items())
    sync = b"s" * 16
    return header + b"\x00" + sync + zigzag(count) + sized(block) + sync


def record(name: str, *types: Any) -> dict[str, Any]:
    fields = [{"name": f"f{n}", "type": type} for n, type in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


def _doubling() -> dict[str, Any]:
    inner: Any = record("r0")
    for n in range(1, 12):
        inner = record(f"r{n}", inner, f"r{n - 1}")
    return record("top", inner, "int")


def _chain() -> dict[str, Any]:
    return record("top", *(record(f"c{n}", f"c{n - 1}" if n else "int") for n in range(200)))


def _nested(depth: int) -> Any:
    type: Any = "int"
    for _ in range(depth):
        type = {"type": "array", "items": type}
    return type


@pytest.mark.parametrize(
    ("schema", "block"),
    [
        pytest.param(
            record("r", {"type": "array", "items": "null"}),
            zigzag(1 << 60) + b"\x00",
            id="a list of nothing",
        ),
        pytest.param(
            record("r", {"type": "array", "items": record("e")}),
            zigzag(1 << 60) + b"\x00",
            id="a list of empty records",
        ),
        pytest.param(record("r"), b"", id="empty records"),
        pytest.param(record("r", ["null", "r"]), b"\x02" * 100_000, id="holds itself"),
        pytest.param(
            record("r", record("inner", ["null", "r"])),
            b"\x02" * 100_000,
            id="holds itself, further in",
        ),
        pytest.param(_doubling(), b"\x00", id="doubled nothing"),
        pytest.param(_chain(), b"\x00" * 500, id="a long chain"),
        pytest.param(record("r", _nested(300)), b"\x00", id="deep"),
        pytest.param(record("r", "missing"), b"\x00", id="refers to nothing"),
        pytest.param(
            record("r", {"type": "fixed", "name": "f", "size": -1}), b"\x00", id="a negative size"
        ),
        pytest.param(
            record("r", {"type": "fixed", "name": "f", "size": 1 << 60}),
            b"\x00",
            id="an endless size",
        ),
        pytest.param(record("r", "string"), zigzag(1 << 60), id="an endless text"),
        pytest.param(
            record("r", {"type": "enum", "name": "e", "symbols": 5}), b"\x00", id="no symbols"
        ),
        pytest.param({"type": "array", "items": "int"}, b"\x00", id="no records"),
        pytest.param("int", b"\x00", id="numbers"),
        pytest.param(None, b"\x00", id="no schema"),
    ],
)
def test_hostile_avro_files_end_in_a_problem(schema: Any, block: bytes) -> None:
    with pytest.raises(MalformedData):
        list(AvroContainer(bomb(schema, block)).records())


@pytest.mark.parametrize("count", [2, 1 << 40])
def test_a_block_cannot_promise_more_records_than_bytes(count: int) -> None:
    with pytest.raises(MalformedData, match="more records"):
        list(AvroContainer(bomb(record("r", "int"), b"\x00", count=count)).records())


def test_a_block_does_not_unfold_beyond_its_bounds() -> None:
    packing = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packing.compress(bytes(MAX_BLOCK_BYTES + 1)) + packing.flush()
    assert len(block) < 100_000
    with pytest.raises(MalformedData, match="larger than"):
        list(AvroContainer(bomb(record("r", "int"), block, codec=b"deflate")).records())


def test_blocks_compressed_with_zstandard_are_read() -> None:
    block = pa.compress(bytes(500), codec="zstd", asbytes=True)
    data = bomb(record("r", "int"), block, count=500, codec=b"zstandard")
    assert list(AvroContainer(data).records()) == [{"f0": 0}] * 500


def test_a_compressed_block_that_ends_early_is_cut_off() -> None:
    packing = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packing.compress(bytes(1000)) + packing.flush()
    with pytest.raises(TruncatedData):
        list(AvroContainer(bomb(record("r", "int"), block[:-3], codec=b"deflate")).records())


def test_a_snappy_block_says_its_length_first_and_that_is_checked() -> None:
    with pytest.raises(MalformedData, match="larger than"):
        list(
            AvroContainer(
                bomb(record("r", "int"), b"\xff\xff\xff\xff\x0f" + bytes(9), codec=b"snappy")
            ).records()
        )


def test_values_keep_their_raw_form_and_only_wanted_fields_are_read() -> None:
    fields = [
        {"name": "a", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "b", "type": "long"},
        {"name": "c", "type": {"type": "record", "name": "inner", "fields": [{"name": "a", "type": "int"}, {"name": "z", "type": "int"}]}},
    ]  # fmt: skip
    data = avro("r", fields, [{"a": Decimal("1.25"), "b": 7, "c": {"a": 1, "z": 2}}])
    raw = struct.pack(">B", 125)
    assert list(AvroContainer(data).records()) == [{"a": raw, "b": 7, "c": {"a": 1, "z": 2}}]
    assert list(AvroContainer(data).records(keep={"a", "c"})) == [{"a": raw, "c": {"a": 1}}]
