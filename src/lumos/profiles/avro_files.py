"""Reads rows of Avro files with fastavro.

fastavro needs further libraries for some codecs, and fails on times that Python's types cannot
represent. So fastavro gets a converted file: its blocks are uncompressed, and its logical types
have private names, for which Lumos registers its own readers.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, BinaryIO, Final, TypeAlias

import fastavro
import msgspec
import numpy as np
import pyarrow as pa
from fastavro.read import LOGICAL_READERS

from lumos.formats.avro import MAGIC, SYNC_BYTES
from lumos.formats.tables.avro_containers import CODECS
from lumos.formats.varints import MalformedData, TruncatedData, decode_zigzag
from lumos.model.json_codec import decode_json
from lumos.model.types import DataType
from lumos.profiles.columns import KnownField
from lumos.profiles.tasks import ChunksInput, FileTask, RowBatch
from lumos.profiles.values import arrays_from_records

_BUFFER_BYTES: Final = 4 * 1024 * 1024
_BATCH_RECORDS: Final = 16 * 1024
_MAX_BLOCK_BYTES: Final = 256 * 1024 * 1024
_MAX_VARINT_BITS: Final = 70
_MAX_INT64: Final = 2**63 - 1
# The name of the only column of files that do not contain records.
_VALUE: Final = "value"
_PRIVATE_PREFIX: Final = "lumos-"
# For Avro's logical types of dates and times, the numpy type, and the factor that converts Avro's
# unit to numpy's.
_TIMES: Final = {
    "int-date": ("datetime64[D]", 1),
    "long-timestamp-millis": ("datetime64[us]", 1000),
    "long-local-timestamp-millis": ("datetime64[us]", 1000),
    "long-timestamp-micros": ("datetime64[us]", 1),
    "long-local-timestamp-micros": ("datetime64[us]", 1),
    "long-timestamp-nanos": ("datetime64[ns]", 1),
    "long-local-timestamp-nanos": ("datetime64[ns]", 1),
}

_LogicalReader: TypeAlias = Callable[[Any, Any, Any], Any]


def read_avro(
    file: pa.NativeFile, task: FileTask, wanted: Mapping[str, DataType]
) -> Iterator[RowBatch]:
    """Yield the wanted columns of a container file."""
    _register_logical_types()
    chunks = _uncompressed_container(io.BufferedReader(file, _BUFFER_BYTES))
    reader: Any = fastavro.reader(io.BufferedReader(ChunksInput(chunks)))
    records: Iterator[Any] = iter(reader)
    schema = reader.writer_schema
    if isinstance(schema, dict) and schema.get("type") in ("record", "error"):
        names = names_in_file(schema, task, wanted)
    else:
        names = {_VALUE: _VALUE} if _VALUE in wanted else {}
        records = ({_VALUE: value} for value in records)
    types = {name_in_file: wanted[name] for name, name_in_file in names.items()}
    start = 0
    while batch := list(islice(records, _BATCH_RECORDS)):
        arrays = arrays_from_records(batch, types)
        columns = {name: arrays[name_in_file] for name, name_in_file in names.items()}
        yield RowBatch(start, len(batch), columns, share=task.sample)
        start += len(batch)


def names_in_file(schema: Any, task: FileTask, wanted: Iterable[str]) -> dict[str, str]:
    """The names that the wanted columns have in a file.

    In files of Iceberg tables, columns are identified by their ids.
    """
    fields = schema["fields"]
    by_id = {field["field-id"]: field["name"] for field in fields if "field-id" in field}
    existing = {field["name"] for field in fields}
    known = {each.name: each for each in task.fields}
    names: dict[str, str] = {}
    for name in wanted:
        field = known.get(name) or KnownField(name)
        candidates = field.names_in_files
        if by_id and field.id is not None:
            candidates = (by_id[field.id],) if field.id in by_id else ()
        names.update((name, each) for each in candidates if each in existing)
    return names


@cache
def _register_logical_types() -> None:
    """Register readers with fastavro, under names that no other code uses."""
    for name, read in (dict.fromkeys(_TIMES) | LOGICAL_READERS).items():
        type, _, logical = name.partition("-")
        if not logical.startswith(_PRIVATE_PREFIX):
            LOGICAL_READERS[f"{type}-{_PRIVATE_PREFIX}{logical}"] = _tolerant_reader(name, read)


def _tolerant_reader(name: str, read: _LogicalReader | None) -> _LogicalReader:
    """A reader that returns values that Python's types cannot represent as numpy times or text."""

    def read_any(data: Any, writer_schema: Any = None, reader_schema: Any = None) -> Any:
        try:
            if read is not None:
                return read(data, writer_schema, reader_schema)
        except (ArithmeticError, ValueError):
            pass
        unit, factor = _TIMES.get(name, ("", 0))
        is_time = factor and abs(data * factor) <= _MAX_INT64
        return np.int64(data * factor).view(unit) if is_time else str(data)

    return read_any


def _uncompressed_container(file: BinaryIO) -> Iterator[bytes]:
    """Convert a container file: uncompress it, and give logical types private names."""
    if file.read(len(MAGIC)) != MAGIC:
        raise MalformedData("The file does not begin with Avro's magic bytes.")
    metadata = dict(_read_metadata(file))
    sync = _read_exactly(file, SYNC_BYTES)
    codec = metadata.get(b"avro.codec", b"null")
    decompress = CODECS.get(codec)
    if decompress is None:
        raise MalformedData(f"Its compression {codec[:20]!r} is unknown.")
    schema = msgspec.json.encode(
        _rename_logical_types(decode_json(metadata.get(b"avro.schema", b"")))
    )
    header = (_encode_number(1), _encode_bytes(b"avro.schema"), _encode_bytes(schema))
    yield b"".join((MAGIC, *header, _encode_number(0), sync))
    while (count := _read_number(file, may_end=True)) is not None:
        block = _read_exactly(file, _read_length(file))
        if _read_exactly(file, SYNC_BYTES) != sync:
            raise MalformedData("A block does not end with the sync marker.")
        content = decompress(block, _MAX_BLOCK_BYTES)
        yield _encode_number(count) + _encode_number(len(content))
        yield content
        yield sync


def _rename_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_rename_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: f"{_PRIVATE_PREFIX}{value}" if key == "logicalType" else _rename_logical_types(value)
        for key, value in schema.items()
    }


def _read_metadata(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    while count := _read_number(file):
        if count < 0:
            count = -count
            _read_number(file)
        for _ in range(count):
            key = _read_exactly(file, _read_length(file))
            yield key, _read_exactly(file, _read_length(file))


def _read_length(file: BinaryIO) -> int:
    length = _read_number(file)
    if length is None or not 0 <= length <= _MAX_BLOCK_BYTES:
        raise MalformedData(f"A length is negative or above {_MAX_BLOCK_BYTES:,} bytes.")
    return length


def _read_exactly(file: BinaryIO, length: int) -> bytes:
    data = file.read(length)
    if len(data) < length:
        raise TruncatedData("The file is truncated.")
    return data


def _read_number(file: BinaryIO, *, may_end: bool = False) -> int | None:
    value = shift = 0
    while byte := file.read(1):
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return decode_zigzag(value)
        shift += 7
        if shift >= _MAX_VARINT_BITS:
            raise MalformedData("A number has more than 64 bits.")
    if may_end and shift == 0:
        return None
    raise TruncatedData("The file is truncated.")


def _encode_number(value: int) -> bytes:
    """The number as a zigzag varint."""
    remaining = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while remaining > 0x7F:
        encoded.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    encoded.append(remaining)
    return bytes(encoded)


def _encode_bytes(value: bytes) -> bytes:
    return _encode_number(len(value)) + value
