"""Parquet: schema, row count and statistics are in the footer.

A footer begins with the list of schema elements. So the footers of all files with one schema begin
with the same bytes, and the schema is parsed only once. pyarrow only gets this list, because damage
elsewhere in a footer can make pyarrow abort the process. The Arrow schema that some writers add is
ignored, as in other engines.
"""

import decimal
import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from math import isfinite
from typing import ClassVar, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from lumos.formats.columns import (
    BoundKind,
    FileColumnStatistics,
    Number,
    bound_kind,
    merge_columns,
    with_distinct_names,
)
from lumos.formats.interface import (
    MAYBE_INTEGERS,
    BinaryFormat,
    FileFacts,
    KnownSchema,
    RangedBytes,
    UnreadableFile,
)
from lumos.formats.thrift import (
    BINARY,
    INT32,
    INT64,
    LIST,
    STOP,
    STRUCT,
    read_binary,
    read_field_header,
    read_list_header,
    skip,
)
from lumos.formats.varints import MalformedData, read_signed
from lumos.model.conversions.arrow import schema_from_arrow
from lumos.model.schema import Schema
from lumos.model.type_path import TypePath
from lumos.model.types import FLOAT64, FLOATS, UNSIGNED, DataType, Decimal, Time, Timestamp

Bounds: TypeAlias = tuple[Number, Number]
# Decodes a minimum and a maximum, given the number of their physical type; returns None if they are
# invalid.
DecodeBounds: TypeAlias = Callable[[bytes, bytes, int], Bounds | None]

# The numbers of physical types in Parquet.
_INT96: Final = 3
_BYTE_ARRAYS: Final = (6, 7)

_FLOAT_LAYOUTS: Final = {2: struct.Struct("<e"), 4: struct.Struct("<f"), 8: struct.Struct("<d")}
# Factor and divisor that convert a unit to microseconds.
_TO_MICROSECONDS: Final = {"s": (1_000_000, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}
_INT64: Final = range(-(2**63), 2**63)
_MAX_DECIMAL_BYTES: Final = 32


class BoundsDecoder(NamedTuple):
    """Decodes the bounds of a type.

    Old writers compared all values as signed, so the bounds in their fields for minimum and maximum
    are only correct for types that are `signed`.
    """

    decode: DecodeBounds
    signed: bool = True


def bounds_decoder(type: DataType) -> BoundsDecoder | None:
    """The decoder of a type's bounds; None for types whose bounds are not stored."""
    match type:
        case Decimal(_, scale):
            return BoundsDecoder(_decimal_decoder(scale), signed=False)
        case Timestamp(unit) | Time(unit):
            return BoundsDecoder(_time_decoder(*_TO_MICROSECONDS[unit]))
        case _ if type in FLOATS:
            return BoundsDecoder(_floats)
        case _ if type in UNSIGNED:
            return BoundsDecoder(_unsigned, signed=False)
        case _:
            return BoundsDecoder(_integers) if bound_kind(type) else None


def _integers(low: bytes, high: bytes, _: int) -> tuple[int, int] | None:
    if len(low) > 8 or len(high) > 8:
        return None
    return int.from_bytes(low, "little", signed=True), int.from_bytes(high, "little", signed=True)


def _unsigned(low: bytes, high: bytes, _: int) -> Bounds | None:
    if len(low) > 8 or len(high) > 8:
        return None
    return int.from_bytes(low, "little"), int.from_bytes(high, "little")


def _floats(low: bytes, high: bytes, _: int) -> Bounds | None:
    layout = _FLOAT_LAYOUTS.get(len(low))
    if layout is None or len(high) != layout.size:
        return None
    [minimum], [maximum] = layout.unpack(low), layout.unpack(high)
    return None if math.isnan(minimum) or math.isnan(maximum) else (minimum, maximum)


def _time_decoder(factor: int, divisor: int) -> DecodeBounds:
    def decode(low: bytes, high: bytes, physical: int) -> Bounds | None:
        stored = None if physical == _INT96 else _integers(low, high, physical)
        if stored is None:
            return None
        minimum, maximum = stored[0] * factor // divisor, -(-stored[1] * factor // divisor)
        return (minimum, maximum) if minimum in _INT64 and maximum in _INT64 else None

    return decode


def _decimal_decoder(scale: int) -> DecodeBounds:
    def decode(low: bytes, high: bytes, physical: int) -> Bounds | None:
        if max(len(low), len(high)) > _MAX_DECIMAL_BYTES:
            return None
        if physical not in _BYTE_ARRAYS:
            low, high = low[::-1], high[::-1]
        return _decimal(low, scale), _decimal(high, scale)

    return decode


def _decimal(stored: bytes, scale: int) -> decimal.Decimal:
    # Parse it from text, because arithmetic would round to the precision of the decimal context.
    return decimal.Decimal(f"{int.from_bytes(stored, 'big', signed=True)}E{-scale}")


# Field numbers in FileMetaData, RowGroup, ColumnChunk, ColumnMetaData and Statistics.
_ROW_GROUPS: Final = 4
_COLUMNS: Final = 1
_METADATA: Final = 3
_TYPE, _VALUES, _COMPRESSED, _STATISTICS = 1, 5, 7, 12
_OLD_MAXIMUM, _OLD_MINIMUM, _NULLS, _MAXIMUM, _MINIMUM = 1, 2, 3, 5, 6


class ParquetColumn(NamedTuple):
    """A leaf column and the decoder of its bounds."""

    path: str
    kind: BoundKind
    bounds: BoundsDecoder | None


class _Chunk(NamedTuple):
    """The metadata of one column in one row group."""

    physical: int
    values: int
    compressed: int
    nulls: int | None
    old_maximum: bytes | None
    old_minimum: bytes | None
    maximum: bytes | None
    minimum: bytes | None


def parquet_columns(known: KnownSchema) -> list[ParquetColumn]:
    """The leaf columns of a schema."""
    return [ParquetColumn(leaf.path, leaf.kind, bounds_decoder(leaf.type)) for leaf in known.leaves]


def read_statistics(
    footer: bytes, position: int, columns: Sequence[ParquetColumn]
) -> tuple[FileColumnStatistics, ...]:
    """The statistics of the columns; row groups with another number of columns are ignored.

    `position` is the end of the schema list.
    """
    groups = [
        [_column_statistics(column, chunk) for column, chunk in zip(columns, chunks, strict=True)]
        for chunks in _row_groups(footer, position)
        if len(chunks) == len(columns)
    ]
    return tuple(groups[0]) if len(groups) == 1 else merge_columns(groups)


def _column_statistics(column: ParquetColumn, chunk: _Chunk) -> FileColumnStatistics:
    path, kind, bounds = column
    physical, values, compressed, nulls, old_maximum, old_minimum, maximum, minimum = chunk
    if bounds is not None:
        if (maximum is None or minimum is None) and bounds.signed:
            maximum, minimum = old_maximum, old_minimum
        if maximum is not None and minimum is not None:
            decoded = bounds.decode(minimum, maximum, physical)
            if decoded is not None:
                return FileColumnStatistics(path, kind, nulls, compressed, *decoded, bounded=True)
    is_all_null = kind != "" and nulls == values
    return FileColumnStatistics(path, kind, nulls, compressed, None, None, bounded=is_all_null)


def _row_groups(footer: bytes, position: int) -> Iterator[list[_Chunk]]:
    type, position = _find_field(footer, _ROW_GROUPS, position, previous=_SCHEMA)
    if type == STOP:
        return
    count, position = _read_struct_list(footer, position, type)
    for _ in range(count):
        chunks, position = _row_group(footer, position)
        yield chunks


def _find_field(
    footer: bytes, wanted_id: int, position: int = 0, *, previous: int = 0
) -> tuple[int, int]:
    """The type and position of a field; the type is STOP if the struct does not have the field.

    `previous` is the id of the field that ends at `position`.
    """
    id = previous
    while True:
        id, type, position = read_field_header(footer, position, id)
        if type == STOP or id == wanted_id:
            return type, position
        position = skip(footer, position, type)


def _row_group(footer: bytes, position: int) -> tuple[list[_Chunk], int]:
    chunks: list[_Chunk] = []
    match_common = _common_chunk_pattern().match
    id = 0
    while True:
        id, type, position = read_field_header(footer, position, id)
        if type == STOP:
            return chunks, position
        if id != _COLUMNS:
            position = skip(footer, position, type)
            continue
        count, position = _read_struct_list(footer, position, type)
        for _ in range(count):
            match = match_common(footer, position)
            if match is None:
                chunk, position = _walk_chunk(footer, position)
            else:
                chunk, position = _chunk_from_match(match), match.end()
            chunks.append(chunk)


def _read_struct_list(footer: bytes, position: int, type: int) -> tuple[int, int]:
    """The number of structs in a list and the position of the first."""
    if type != LIST:
        raise MalformedData("A field is not a list.")
    count, type, position = read_list_header(footer, position)
    if count and type != STRUCT:
        raise MalformedData("A list does not contain structs.")
    return count, position


def _walk_chunk(footer: bytes, position: int) -> tuple[_Chunk, int]:
    values: dict[tuple[int, ...], int | bytes] = {}
    position = _collect_values(footer, position, (), values)
    number = {key: value for key, value in values.items() if isinstance(value, int)}
    text = {key: value for key, value in values.items() if isinstance(value, bytes)}
    statistics_path = (_METADATA, _STATISTICS)
    chunk = _Chunk(
        physical=number.get((_METADATA, _TYPE), -1),
        values=number.get((_METADATA, _VALUES), -1),
        compressed=number.get((_METADATA, _COMPRESSED), 0),
        nulls=number.get((*statistics_path, _NULLS)),
        old_maximum=text.get((*statistics_path, _OLD_MAXIMUM)),
        old_minimum=text.get((*statistics_path, _OLD_MINIMUM)),
        maximum=text.get((*statistics_path, _MAXIMUM)),
        minimum=text.get((*statistics_path, _MINIMUM)),
    )
    return chunk, position


def _collect_values(
    footer: bytes, position: int, path: tuple[int, ...], values: dict[tuple[int, ...], int | bytes]
) -> int:
    """Add the numbers and binary values of a column chunk to `values`, by their field ids.

    `path` contains the ids of the structs around the position.
    """
    id = 0
    while True:
        id, type, position = read_field_header(footer, position, id)
        inner = (*path, id)
        if type == STOP:
            return position
        if type in (INT32, INT64):
            values[inner], position = read_signed(footer, position)
        elif type == BINARY:
            values[inner], position = read_binary(footer, position)
        elif type == STRUCT and inner in ((_METADATA,), (_METADATA, _STATISTICS)):
            position = _collect_values(footer, position, inner, values)
        else:
            position = skip(footer, position, type)


@cache
def _common_chunk_pattern() -> re.Pattern[bytes]:
    """A regular expression for column chunks in the layout of nearly all writers.

    Column chunks are read for every file of a lake, and one match is much faster than reading the
    fields one by one. The header of a field contains its type and the difference between its id and
    the id of the previous field.
    """
    number = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
    text = _alternatives(
        rb"%b.{%d}" % (re.escape(bytes([length])), length) for length in range(128)
    )
    numbers = _short_list_pattern(5, number) + b"|" + _short_list_pattern(6, number)
    any_number = rb"[%b]%b" % (_headers(5, 6), number)
    flag = rb"[%b]" % _headers(1, 2)
    any_numbers = rb"[%b](?:%b)" % (_headers(9), numbers)
    plain_record = rb"(?:%b|%b|%b)*+\x00" % (any_number, flag, any_numbers)
    records = _short_list_pattern(12, plain_record)
    rest = rb"(?:%b|%b|[%b]%b|[%b](?:%b))*+\x00" % (
        any_number, any_numbers, _headers(12), plain_record, _headers(9), records,
    )  # fmt: skip
    return re.compile(
        rb"(?:\x26%(number)b\x1c|\x3c)"  # offset in the file
        rb"\x15(%(number)b)\x19(?:%(encodings)b)\x19(?:%(path)b)\x15%(number)b"  # type, codec
        rb"\x16(%(number)b)\x16%(number)b\x16(%(number)b)\x26%(number)b"  # values, bytes
        rb"(?:\x26%(number)b\x1c|\x3c|\x16%(number)b\x16%(number)b\x1c|\x16%(number)b\x2c)"
        rb"(?:\x18(%(text)b)\x18(%(text)b)\x16|\x36)(%(number)b)"  # old bounds, nulls
        rb"(?:(?:\x16%(number)b\x18|\x28)(%(text)b)\x18(%(text)b))?"  # bounds
        rb"[\x11\x12]{0,2}\x00%(rest)b(?:%(any_number)b)*+\x00"
        % {
            b"number": number,
            b"encodings": _short_list_pattern(5, number),
            b"path": _short_list_pattern(8, text),
            b"text": text,
            b"rest": rest,
            b"any_number": any_number,
        },
        re.DOTALL,
    )


def _alternatives(patterns: Iterator[bytes]) -> bytes:
    return rb"(?:%b)" % b"|".join(patterns)


def _headers(*types: int) -> bytes:
    """The characters for a character class: the short headers of fields with these types."""
    return b"".join(
        re.escape(bytes([delta << 4 | type])) for delta in range(1, 16) for type in types
    )


def _short_list_pattern(type: int, element: bytes) -> bytes:
    """A pattern for lists with up to 14 elements of this type."""
    return _alternatives(
        rb"%b(?:%b){%d}" % (re.escape(bytes([count << 4 | type])), element, count)
        for count in range(15)
    )


def _chunk_from_match(match: re.Match[bytes]) -> _Chunk:
    physical, values, compressed, old_maximum, old_minimum, nulls, maximum, minimum = match.groups()
    return _Chunk(
        _number(physical),
        _number(values),
        _number(compressed),
        _number(nulls),
        None if old_maximum is None else old_maximum[1:],
        None if old_minimum is None else old_minimum[1:],
        None if maximum is None else maximum[1:],
        None if minimum is None else minimum[1:],
    )


# Cached, because the same small counts and sizes occur in many columns.
@lru_cache(maxsize=16_384)
def _number(encoded: bytes) -> int:
    return read_signed(encoded, 0)[0]


_MAGIC: Final = b"PAR1"
_ENCRYPTED_MAGIC: Final = b"PARE"
# Nearly every footer fits into the first read; a longer footer takes a second read.
_FIRST_READ_BYTES: Final = 64 * 1024
_MAX_FOOTER_BYTES: Final = 256 * 1024 * 1024

# Part of the metadata that pandas adds to the footer.
_PANDAS_MARKER: Final = b'"pandas_version"'

# Field numbers in FileMetaData.
_SCHEMA: Final = 2
_ROWS: Final = 3
# The header of the row count, which nearly all writers put right after the schema.
_ROW_COUNT_HEADER: Final = b"\x16"
# The first bytes of a footer are the cache key; a few similar schemas may have the same key.
_CACHE_KEY_BYTES: Final = 96
_MAX_CACHED_SCHEMAS: Final = 4096


class Parquet(BinaryFormat):
    name: ClassVar[str] = "parquet"
    title: ClassVar[str] = "Parquet"
    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".parq", ".pq")

    def __init__(self) -> None:
        self._cache: dict[bytes, tuple[_SchemaPrefix, ...]] = {}
        self._cached_schemas = 0

    def matches_head(self, head: bytes) -> bool:
        return head.startswith((_MAGIC, _ENCRYPTED_MAGIC))

    def has_magic(self, file: RangedBytes) -> bool:
        return file.tail(_FIRST_READ_BYTES).endswith((_MAGIC, _ENCRYPTED_MAGIC))

    def read(self, file: RangedBytes, *, column_stats: bool = False) -> FileFacts:
        footer = _footer(file)
        try:
            prefix = self._schema_prefix(footer)
            rows = _row_count(footer, prefix.length)
            may_contain_integers = bool(prefix.doubles) and _PANDAS_MARKER in footer
            columns = (
                read_statistics(footer, prefix.length, prefix.columns)
                if column_stats or may_contain_integers
                else ()
            )
        except MalformedData as problem:
            raise _corrupt_footer(problem) from None
        known = prefix.mark_possible_integers(columns) if may_contain_integers else prefix.known
        statistics = columns if column_stats else ()
        return FileFacts(known, rows, row_count_exact=True, columns=statistics)

    def _schema_prefix(self, footer: bytes) -> "_SchemaPrefix":
        candidates = self._cache.get(footer[:_CACHE_KEY_BYTES], ())
        for prefix in candidates:
            if footer.startswith(prefix.data):
                return prefix
        prefix = _SchemaPrefix(footer)
        if self._cached_schemas >= _MAX_CACHED_SCHEMAS:
            self._cache.clear()
            self._cached_schemas = 0
        self._cache[footer[:_CACHE_KEY_BYTES]] = (prefix, *candidates)
        self._cached_schemas += 1
        return prefix


class _SchemaPrefix:
    """A footer's bytes up to the end of its schema list, and the schema in them."""

    def __init__(self, footer: bytes) -> None:
        start, end = _schema_list(footer)
        self.data = footer[:end]
        self.length = end
        self.known = KnownSchema(_schema(footer[start:end]))
        # The schema with these columns marked as possible integers.
        self._known_by_marked = {frozenset[str](): self.known}

    @cached_property
    def columns(self) -> list[ParquetColumn]:
        return parquet_columns(self.known)

    @cached_property
    def doubles(self) -> dict[str, str]:
        """The names of the FLOAT64 columns by path."""
        fields = self.known.schema.fields
        return {
            TypePath.column(field.name).path: field.name
            for field in fields
            if field.type == FLOAT64
        }

    def mark_possible_integers(self, columns: Iterable[FileColumnStatistics]) -> KnownSchema:
        """Mark the FLOAT64 columns of a file written by pandas that may be integers.

        pandas stores integers with missing values as doubles.
        """
        names = frozenset(
            self.doubles[column.path]
            for column in columns
            if column.path in self.doubles and _may_be_integers(column)
        )
        if names not in self._known_by_marked:
            fields = (
                replace(field, tags=(*field.tags, MAYBE_INTEGERS)) if field.name in names else field
                for field in self.known.schema.fields
            )
            self._known_by_marked[names] = KnownSchema(Schema(fields=tuple(fields)))
        return self._known_by_marked[names]


def _may_be_integers(column: FileColumnStatistics) -> bool:
    bounds = (column.minimum, column.maximum)
    return bool(column.null_count) and all(
        bound is None or (isfinite(bound) and bound == int(bound)) for bound in bounds
    )


def _footer(file: RangedBytes) -> bytes:
    tail = file.tail(_FIRST_READ_BYTES)
    if tail.endswith(_ENCRYPTED_MAGIC):
        raise UnreadableFile("encrypted_file", "The Parquet footer is encrypted.")
    if len(tail) < 12 or not tail.endswith(_MAGIC):
        raise UnreadableFile(
            "not_parquet",
            "The file does not end with Parquet's magic bytes: it is truncated, or not Parquet.",
        )
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length > min(file.size, _MAX_FOOTER_BYTES):
        raise UnreadableFile(
            "corrupt_file", "The length of the Parquet footer is larger than the file."
        )
    if length > len(tail):
        tail = file.tail(length)
    return tail[-length:-8]


def _schema_list(footer: bytes) -> tuple[int, int]:
    """The start and end of the schema list."""
    type, start = _find_field(footer, _SCHEMA)
    if type == STOP:
        raise MalformedData("It has no schema.")
    if type != LIST:
        raise MalformedData("Its schema is not a list.")
    return start, skip(footer, start, type)


def _row_count(footer: bytes, position: int) -> int:
    if footer[position : position + 1] == _ROW_COUNT_HEADER:
        position += 1
    else:
        type, position = _find_field(footer, _ROWS)
        if type != INT64:
            raise MalformedData("It has no row count.")
    rows, _ = read_signed(footer, position)
    if rows < 0:
        raise MalformedData(f"It has a negative row count ({rows}).")
    return rows


def _schema(schema_list: bytes) -> Schema:
    """The schema that pyarrow reads from a Parquet file that only consists of this schema list."""
    footer = b"\x15\x02\x19" + schema_list + b"\x16\x00\x19\x0c\x00"
    file = b"".join((_MAGIC, footer, len(footer).to_bytes(4, "little"), _MAGIC))
    try:
        # Engines read INT96 as microseconds: in nanoseconds, years such as 9999 would overflow.
        opened = pq.ParquetFile(
            pa.BufferReader(file), coerce_int96_timestamp_unit="us", arrow_extensions_enabled=False
        )
        return with_distinct_names(schema_from_arrow(opened.schema_arrow))
    except (pa.ArrowException, OSError, ValueError, RecursionError) as problem:
        if "too deeply nested" in str(problem) or isinstance(problem, RecursionError):
            reason = "The schema nests too deeply to be read."
            raise UnreadableFile("too_deep", reason) from None
        raise _corrupt_footer(problem) from None


def _corrupt_footer(problem: Exception) -> UnreadableFile:
    return UnreadableFile("corrupt_file", f"The Parquet footer is damaged: {problem}")
