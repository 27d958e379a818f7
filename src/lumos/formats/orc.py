"""ORC: schema, row count and statistics are in the footer.

The footer is parsed here and not by pyarrow, which aborts the process on damaged files and exposes
neither column statistics nor the lengths of VARCHAR and CHAR columns.

ORC itself has neither NOT NULL nor field ids; they are read from the attributes that Iceberg adds.
CHAR and VARCHAR become STRING with a length, and TIMESTAMP has nanosecond precision.
"""

import decimal
import math
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple

import pyarrow as pa

from lumos.formats.columns import (
    FileColumnStatistics,
    LeafColumn,
    Number,
    bound_kind,
    with_distinct_names,
)
from lumos.formats.compression import decompress_snappy
from lumos.formats.interface import (
    BinaryFormat,
    FileFacts,
    KnownSchema,
    RangedBytes,
    UnreadableFile,
)
from lumos.formats.varints import MalformedData, check_end, decode_zigzag, read_unsigned
from lumos.model.schema import Field, Schema
from lumos.model.type_path import TOO_DEEP, TypePath
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
    STRING,
    Array,
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

_MAGIC: Final = b"ORC"
# Nearly every footer fits into the first read; a longer footer takes a second read.
_FIRST_READ_BYTES: Final = 64 * 1024
_MAX_FOOTER_BYTES: Final = 64 * 1024 * 1024
# Field numbers in the file tail,
_TAIL_FOOTER: Final = 2
# the postscript,
_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE = 1, 2, 3
# the footer
_STRIPES, _TYPES, _ROWS, _STATISTICS = 3, 4, 6, 7
# and a stripe.
_STRIPE_ROWS: Final = 5
# Wire types of protocol buffers.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def protobuf_fields(data: bytes, position: int = 0) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a protobuf message: field number, and value as an integer or bytes."""
    end = len(data)
    while position < end:
        tag, position = read_unsigned(data, position)
        wire_type = tag & 7
        if wire_type == _VARINT:
            number, position = read_unsigned(data, position)
            yield tag >> 3, number
            continue
        if wire_type == _BYTES:
            length, position = read_unsigned(data, position)
        elif wire_type in (_FIXED64, _FIXED32):
            length = 8 if wire_type == _FIXED64 else 4
        else:
            raise MalformedData(f"Unknown protobuf wire type {wire_type}.")
        start, position = position, check_end(data, position + length)
        yield tag >> 3, data[start:position]


def protobuf_numbers(value: int | bytes) -> Iterator[int]:
    """Yield the numbers of a repeated field, which may be packed into bytes."""
    if isinstance(value, int):
        yield value
        return
    position = 0
    while position < len(value):
        number, position = read_unsigned(value, position)
        yield number


_MAX_BLOCK_BYTES: Final = 16 * 1024 * 1024
_MAX_CONTENT_BYTES: Final = 64 * 1024 * 1024
_UNCOMPRESSED: Final = 0


def decompress_stream(stored: bytes, codec: int, block_size: int) -> bytes:
    """The content of a compressed stream; raises MalformedData."""
    if codec == _UNCOMPRESSED:
        return stored
    if codec not in _CODECS:
        name = _UNSUPPORTED_CODECS.get(codec, f"number {codec}")
        raise UnreadableFile(
            "unsupported_compression", f"The ORC compression {name} is not supported."
        )
    decompress = _CODECS[codec]
    limit = min(block_size or _MAX_BLOCK_BYTES, _MAX_BLOCK_BYTES)
    blocks: list[bytes] = []
    position = total = 0
    while position < len(stored):
        header = int.from_bytes(stored[position : position + 3], "little")
        start, position = position + 3, position + 3 + (header >> 1)
        if position > len(stored):
            raise MalformedData("A block is longer than the footer.")
        block = stored[start:position]
        blocks.append(block if header & 1 else decompress(block, limit))
        total += len(blocks[-1])
        if total > _MAX_CONTENT_BYTES:
            raise MalformedData(f"It is longer than {_MAX_CONTENT_BYTES:,} bytes.")
    return b"".join(blocks)


def _zlib(block: bytes, limit: int) -> bytes:
    try:
        return zlib.decompressobj(-15).decompress(block, limit)
    except zlib.error as problem:
        raise MalformedData(str(problem)) from None


def _zstd(block: bytes, limit: int) -> bytes:
    try:
        with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
            content: bytes = stream.read(limit)
    except (pa.ArrowException, OSError) as problem:
        raise MalformedData(str(problem)) from None
    return content


def _lz4(block: bytes, limit: int) -> bytes:
    """Decompress an LZ4 block without knowing the length of its content, unlike pyarrow."""
    content = bytearray()
    position = 0
    try:
        while position < len(block):
            token = block[position]
            literals, position = _lz4_length(block, position + 1, token >> 4)
            content += block[position : position + literals]
            position += literals
            if position >= len(block):
                break
            offset = block[position] | block[position + 1] << 8
            length, position = _lz4_length(block, position + 2, token & 15)
            length += 4
            if not 0 < offset <= len(content) or len(content) + length > limit:
                raise MalformedData("An LZ4 block refers to bytes outside of it.")
            repeated = content[-offset:]
            content += (repeated * (length // offset + 1))[:length]
    except IndexError:
        raise MalformedData("An LZ4 block is truncated.") from None
    return bytes(content)


def _lz4_length(block: bytes, position: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            more = block[position]
            position += 1
            length += more
            if more != 255:
                break
    return length, position


_UNSUPPORTED_CODECS: Final = {3: "LZO", 6: "Brotli"}
_CODECS: Final[dict[int, Callable[[bytes, int], bytes]]] = {
    1: _zlib,
    2: decompress_snappy,
    4: _lz4,
    5: _zstd,
}

_SIMPLE_TYPES: Final[dict[int, tuple[DataType, str]]] = {
    0: (BOOLEAN, "boolean"),
    1: (INT8, "tinyint"),
    2: (INT16, "smallint"),
    3: (INT32, "int"),
    4: (INT64, "bigint"),
    5: (FLOAT32, "float"),
    6: (FLOAT64, "double"),
    7: (STRING, "string"),
    8: (BINARY, "binary"),
    9: (Timestamp("ns"), "timestamp"),
    15: (DATE, "date"),
    18: (Timestamp("ns", zoned=True), "timestamp with local time zone"),
    19: (Unknown("geometry"), "geometry"),
    20: (Unknown("geography"), "geography"),
}
_LIST, _MAP, _STRUCT, _UNION, _DECIMAL_KIND, _VARCHAR, _CHAR = 10, 11, 12, 13, 14, 16, 17
# The precision and scale of decimals in old files, which do not store them.
_DEFAULT_PRECISION, _DEFAULT_SCALE = 38, 10
_MAX_DECIMAL_DIGITS: Final = 38


class OrcColumn(NamedTuple):
    """A leaf column, the number of its type, and whether each row has exactly one value or null."""

    leaf: LeafColumn
    number: int
    once_per_row: bool


class OrcSchema(NamedTuple):
    """A schema, and its leaf columns with their numbers in the list of statistics."""

    known: KnownSchema
    columns: list[OrcColumn]


class _Type(NamedTuple):
    kind: int
    subtypes: tuple[int, ...]
    names: tuple[str, ...]
    length: int
    precision: int
    scale: int
    attributes: dict[str, str]


@lru_cache(maxsize=2048)
def read_types(messages: tuple[bytes, ...]) -> OrcSchema:
    """The schema of a footer's list of types; raises MalformedData."""
    return _TypeReader([_parse_type(message) for message in messages]).schema()


def _parse_type(message: bytes) -> _Type:
    numbers: dict[int, int] = {}
    subtypes: list[int] = []
    names: list[str] = []
    attributes: dict[str, str] = {}
    for id, value in protobuf_fields(message):
        if id == 2:
            subtypes.extend(protobuf_numbers(value))
        elif isinstance(value, int):
            numbers[id] = value
        elif id == 3:
            names.append(_text(value))
        elif id == 7:
            pair = {
                key: _text(text) for key, text in protobuf_fields(value) if isinstance(text, bytes)
            }
            attributes[pair.get(1, "")] = pair.get(2, "")
    return _Type(
        kind=numbers.get(1, 0),
        subtypes=tuple(subtypes),
        names=tuple(names),
        length=numbers.get(4, 0),
        precision=numbers.get(5, 0),
        scale=numbers.get(6, 0),
        attributes=attributes,
    )


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise MalformedData("A name is not valid UTF-8.") from None


class _TypeReader:
    """Reads a list of types; a nested type refers to later types in the list by number."""

    def __init__(self, types: Sequence[_Type]) -> None:
        self.types = types
        self.columns: list[OrcColumn] = []
        self.used_types: set[int] = set()

    def schema(self) -> OrcSchema:
        if not self.types:
            raise MalformedData("It has no types.")
        is_record = self.types[0].kind == _STRUCT
        members = self._members(0) if is_record else [("value", 0)]
        schema = Schema(fields=tuple(self._column(name, number) for name, number in members))
        return OrcSchema(KnownSchema(with_distinct_names(schema)), self.columns)

    def _column(self, name: str, number: int) -> Field:
        path = TypePath.column(name)
        type, native = self._read(number, path, once_per_row=True)
        nullable = self.types[number].attributes.get("iceberg.required") != "true"
        return path.field(name, type, nullable=nullable, native_type=native)

    def _read(self, number: int, path: TypePath, *, once_per_row: bool) -> tuple[DataType, str]:
        """The type with this number, and its name in ORC."""
        # If types could be shared, a small footer could describe an exponentially large schema.
        if number in self.used_types:
            raise MalformedData("It uses a type twice.")
        self.used_types.add(number)
        orc_type = self.types[number]
        id = orc_type.attributes.get("iceberg.id", "")
        path.note(field_id=int(id) if id.isascii() and id.isdigit() and len(id) < 10 else None)
        if _LIST <= orc_type.kind <= _UNION:
            if path.is_deepest:
                return TOO_DEEP, "too deep"
            return self._nested(orc_type, number, path, once_per_row=once_per_row)
        type, native = _scalar(orc_type)
        self.columns.append(
            OrcColumn(LeafColumn(path.path, type, bound_kind(type)), number, once_per_row)
        )
        return type, native

    def _nested(
        self, orc_type: _Type, number: int, path: TypePath, *, once_per_row: bool
    ) -> tuple[DataType, str]:
        if orc_type.kind == _STRUCT:
            members, natives = [], []
            for name, subtype in self._members(number):
                type, native = self._read(subtype, path.member(name), once_per_row=once_per_row)
                members.append(Member(name, type))
                natives.append(f"{name}:{native}")
            return Struct(members), f"struct<{','.join(natives)}>"
        subtypes = self._subtypes(number)
        if orc_type.kind == _UNION:
            options = [
                self._read(subtype, path.option(index), once_per_row=False)
                for index, subtype in enumerate(subtypes)
            ]
            natives = [native for _, native in options]
            return Union([type for type, _ in options]), f"uniontype<{','.join(natives)}>"
        if len(subtypes) != orc_type.kind - _LIST + 1:
            raise MalformedData("A list or map has the wrong number of subtypes.")
        if orc_type.kind == _LIST:
            element, native = self._read(subtypes[0], path.element(), once_per_row=False)
            return Array(element), f"array<{native}>"
        key, key_native = self._read(subtypes[0], path.key(), once_per_row=False)
        value, native = self._read(subtypes[1], path.value(), once_per_row=False)
        return Map(key, value), f"map<{key_native},{native}>"

    def _members(self, number: int) -> list[tuple[str, int]]:
        names, subtypes = self.types[number].names, self._subtypes(number)
        if len(names) != len(subtypes):
            raise MalformedData("A struct has different numbers of names and subtypes.")
        return list(zip(names, subtypes, strict=True))

    def _subtypes(self, number: int) -> tuple[int, ...]:
        subtypes = self.types[number].subtypes
        if not all(number < subtype < len(self.types) for subtype in subtypes):
            raise MalformedData("A type refers to a missing or an earlier type.")
        return subtypes


def _scalar(orc_type: _Type) -> tuple[DataType, str]:
    if orc_type.kind in _SIMPLE_TYPES:
        return _SIMPLE_TYPES[orc_type.kind]
    if orc_type.kind == _DECIMAL_KIND:
        precision, scale = orc_type.precision, orc_type.scale
        if not precision:
            precision, scale = _DEFAULT_PRECISION, _DEFAULT_SCALE
        if precision > _MAX_DECIMAL_DIGITS or scale > precision:
            raise MalformedData("A decimal has an invalid precision or scale.")
        return Decimal(precision, scale), f"decimal({precision},{scale})"
    if orc_type.kind in (_VARCHAR, _CHAR):
        native = "varchar" if orc_type.kind == _VARCHAR else "char"
        return String(orc_type.length or None), f"{native}({orc_type.length})"
    raise MalformedData(f"Unknown ORC type {orc_type.kind}.")


# Field numbers in the statistics of a column, and in its bounds.
_VALUES, _INTEGER, _DOUBLE, _DECIMAL, _DATE, _TIMESTAMP, _STORED_BYTES = 1, 2, 3, 6, 7, 9, 11
_MINIMUM, _MAXIMUM = 1, 2
_MINIMUM_UTC, _MAXIMUM_UTC, _MINIMUM_NANOS, _MAXIMUM_NANOS = 3, 4, 5, 6
_NANOS: Final = 1_000_000
_INT64: Final = range(-(2**63), 2**63)
_DECIMAL_TEXT: Final = re.compile(rb"-?[0-9]{1,40}(\.[0-9]{1,40})?\Z")


def read_statistics(
    columns: Sequence[OrcColumn], rows: int, statistics: Sequence[bytes]
) -> tuple[FileColumnStatistics, ...]:
    """The statistics of the leaf columns; raises MalformedData."""
    return tuple(
        _column_statistics(
            column, rows, statistics[column.number] if column.number < len(statistics) else b""
        )
        for column in columns
    )


def _column_statistics(column: OrcColumn, rows: int, message: bytes) -> FileColumnStatistics:
    leaf, _, once_per_row = column
    fields = dict(protobuf_fields(message))
    values, size = fields.get(_VALUES), fields.get(_STORED_BYTES)
    low, high = _bounds(fields) if leaf.kind else (None, None)
    bounded = leaf.kind != "" and (values == 0 or (low is not None and high is not None))
    nulls = rows - values if isinstance(values, int) and once_per_row else None
    return FileColumnStatistics(
        path=leaf.path,
        kind=leaf.kind,
        null_count=nulls if nulls is None or nulls >= 0 else None,
        compressed_bytes=size if isinstance(size, int) and size < 2**63 else None,
        minimum=low if bounded else None,
        maximum=high if bounded else None,
        bounded=bounded,
    )


def _bounds(fields: dict[int, int | bytes]) -> tuple[Number | None, Number | None]:
    for id, value in fields.items():
        if not isinstance(value, bytes):
            continue
        if id in (_INTEGER, _DATE):
            inner = dict(protobuf_fields(value))
            return _integer(inner.get(_MINIMUM)), _integer(inner.get(_MAXIMUM))
        if id == _DOUBLE:
            inner = dict(protobuf_fields(value))
            return _double(inner.get(_MINIMUM)), _double(inner.get(_MAXIMUM))
        if id == _DECIMAL:
            inner = dict(protobuf_fields(value))
            return _decimal(inner.get(_MINIMUM)), _decimal(inner.get(_MAXIMUM))
        if id == _TIMESTAMP:
            return _timestamp_bounds(dict(protobuf_fields(value)))
    return None, None


def _timestamp_bounds(fields: dict[int, int | bytes]) -> tuple[int | None, int | None]:
    """The bounds of timestamps in microseconds.

    Files store milliseconds, and the remaining nanoseconds plus one.
    """
    low, high = _integer(fields.get(_MINIMUM_UTC)), _integer(fields.get(_MAXIMUM_UTC))
    low_nanos, high_nanos = fields.get(_MINIMUM_NANOS, 1), fields.get(_MAXIMUM_NANOS, _NANOS)
    if low is None or high is None or isinstance(low_nanos, bytes) or isinstance(high_nanos, bytes):
        return None, None
    if not (1 <= low_nanos <= _NANOS and 1 <= high_nanos <= _NANOS):
        # Some writers store wrong nanoseconds for times shortly before 1970.
        return None, None
    times = low * 1000 + (low_nanos - 1) // 1000, high * 1000 + -(-(high_nanos - 1) // 1000)
    return times if all(time in _INT64 for time in times) else (None, None)


def _integer(value: int | bytes | None) -> int | None:
    return decode_zigzag(value) if isinstance(value, int) and value < 2**64 else None


def _double(value: int | bytes | None) -> float | None:
    if not isinstance(value, bytes) or len(value) != 8:
        return None
    number: float = struct.unpack("<d", value)[0]
    return None if math.isnan(number) else number


def _decimal(value: int | bytes | None) -> decimal.Decimal | None:
    if not isinstance(value, bytes) or not _DECIMAL_TEXT.match(value):
        return None
    return decimal.Decimal(value.decode())


class Orc(BinaryFormat):
    name: ClassVar[str] = "orc"
    title: ClassVar[str] = "ORC"
    suffixes: ClassVar[tuple[str, ...]] = (".orc",)

    def matches_head(self, head: bytes) -> bool:
        return head.startswith(_MAGIC)

    def has_magic(self, file: RangedBytes) -> bool:
        return file.tail(_FIRST_READ_BYTES)[-4:-1] == _MAGIC

    def read(self, file: RangedBytes, *, column_stats: bool = False) -> FileFacts:
        if not self.has_magic(file):
            raise UnreadableFile(
                "not_orc",
                "The file does not end with ORC's magic bytes: it is truncated, or not ORC.",
            )
        try:
            types, rows, statistics = _split_footer(_footer(file), with_statistics=column_stats)
            schema = read_types(types)
            columns = read_statistics(schema.columns, rows, statistics) if column_stats else ()
        except MalformedData as problem:
            reason = f"The ORC footer is damaged: {problem}"
            raise UnreadableFile("corrupt_file", reason) from None
        return FileFacts(schema.known, rows, row_count_exact=True, columns=columns)


def _footer(file: RangedBytes) -> bytes:
    tail = file.tail(_FIRST_READ_BYTES)
    postscript_length = tail[-1]
    postscript = dict(protobuf_fields(tail[-1 - postscript_length : -1]))
    length, codec, block_size = (
        value if isinstance(value := postscript.get(id, 0), int) else 0
        for id in (_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE)
    )
    tail_length = length + postscript_length + 1
    if tail_length > min(file.size, _MAX_FOOTER_BYTES):
        raise MalformedData("Its length is larger than the file.")
    if tail_length > len(tail):
        tail = file.tail(tail_length)
    stored = tail[-tail_length : -1 - postscript_length]
    return decompress_stream(stored, codec, block_size)


def _split_footer(
    footer: bytes, *, with_statistics: bool
) -> tuple[tuple[bytes, ...], int, list[bytes]]:
    """The encoded types, the row count, and the encoded statistics of a footer."""
    types: list[bytes] = []
    statistics: list[bytes] = []
    rows = 0
    for id, value in protobuf_fields(footer):
        if isinstance(value, int):
            if id == _ROWS:
                rows = value
                if types and not with_statistics:
                    break
        elif id == _TYPES:
            types.append(value)
        elif id == _STATISTICS:
            statistics.append(value)
    if rows >= 2**63:
        raise MalformedData("It has a negative row count.")
    return tuple(types), rows, statistics


def stripe_row_counts(tail: bytes) -> list[int]:
    """The number of rows in each stripe, from pyarrow's `serialized_file_tail`."""
    footer = dict(protobuf_fields(tail))[_TAIL_FOOTER]
    assert isinstance(footer, bytes)
    counts = []
    for id, stripe in protobuf_fields(footer):
        if id == _STRIPES and isinstance(stripe, bytes):
            rows = dict(protobuf_fields(stripe)).get(_STRIPE_ROWS, 0)
            counts.append(rows if isinstance(rows, int) else 0)
    return counts
