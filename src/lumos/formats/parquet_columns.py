"""The statistics of columns in a Parquet footer, read without the usual library.

It would abort the process on damaged statistics. Every file of a lake passes here, so one pattern
takes a column as nearly all writers lay it out; what it does not match is walked field by field.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Final, NamedTuple

from lumos.formats.columns import ColumnFacts, Kind, merge_columns
from lumos.formats.interface import KnownSchema
from lumos.formats.parquet_bounds import Bounded, bounds_of
from lumos.formats.thrift import (
    BINARY,
    INT32,
    INT64,
    LIST,
    STOP,
    STRUCT,
    binary,
    elements,
    field,
    skip,
)
from lumos.formats.varints import Malformed, signed

# Field numbers in FileMetaData, RowGroup, ColumnChunk, ColumnMetaData and Statistics.
_ROW_GROUPS: Final = 4
_COLUMNS: Final = 1
_METADATA: Final = 3
_TYPE, _VALUES, _COMPRESSED, _STATISTICS = 1, 5, 7, 12
_OLD_MAXIMUM, _OLD_MINIMUM, _NULLS, _MAXIMUM, _MINIMUM = 1, 2, 3, 5, 6


class Column(NamedTuple):
    """A leaf column and how to read its bounds."""

    path: str
    kind: Kind
    bounds: Bounded | None


class _Chunk(NamedTuple):
    """What a footer says of one column in one row group."""

    physical: int
    values: int
    compressed: int
    nulls: int | None
    old_maximum: bytes | None
    old_minimum: bytes | None
    maximum: bytes | None
    minimum: bytes | None


def columns_of(known: KnownSchema) -> list[Column]:
    """The leaf columns of a schema."""
    return [Column(leaf.path, leaf.kind, bounds_of(leaf.type)) for leaf in known.leaves]


def read_columns(
    footer: bytes, position: int, columns: Sequence[Column]
) -> tuple[ColumnFacts, ...]:
    """What the footer says of the columns, if its row groups have those of its schema.

    `position` is where the schema list ends.
    """
    groups = [
        [_facts(column, chunk) for column, chunk in zip(columns, chunks, strict=True)]
        for chunks in _row_groups(footer, position)
        if len(chunks) == len(columns)
    ]
    return tuple(groups[0]) if len(groups) == 1 else merge_columns(groups)


def _facts(column: Column, chunk: _Chunk) -> ColumnFacts:
    path, kind, bounds = column
    physical, values, compressed, nulls, old_maximum, old_minimum, maximum, minimum = chunk
    if bounds is not None:
        if (maximum is None or minimum is None) and bounds.signed:
            maximum, minimum = old_maximum, old_minimum
        if maximum is not None and minimum is not None:
            found = bounds.read(minimum, maximum, physical)
            if found is not None:
                return ColumnFacts(path, kind, nulls, compressed, found[0], found[1], True)
    without_values = kind != "" and nulls == values
    return ColumnFacts(path, kind, nulls, compressed, None, None, without_values)


def _row_groups(footer: bytes, position: int) -> Iterator[list[_Chunk]]:
    id = 2
    while True:
        id, type, position = field(footer, position, id)
        if type == STOP:
            return
        if id == _ROW_GROUPS:
            break
        position = skip(footer, position, type)
    count, position = _records(footer, position, type)
    for _ in range(count):
        chunks, position = _row_group(footer, position)
        yield chunks


def _row_group(footer: bytes, position: int) -> tuple[list[_Chunk], int]:
    chunks: list[_Chunk] = []
    usual = _usual_chunk().match
    id = 0
    while True:
        id, type, position = field(footer, position, id)
        if type == STOP:
            return chunks, position
        if id != _COLUMNS:
            position = skip(footer, position, type)
            continue
        count, position = _records(footer, position, type)
        for _ in range(count):
            match = usual(footer, position)
            if match is None:
                chunk, position = _walked_chunk(footer, position)
            else:
                chunk, position = _matched_chunk(match), match.end()
            chunks.append(chunk)


def _records(footer: bytes, position: int, type: int) -> tuple[int, int]:
    """The number of a list's records and the position of the first."""
    if type != LIST:
        raise Malformed("There is no list where one must be.")
    count, type, position = elements(footer, position)
    if count and type != STRUCT:
        raise Malformed("A list holds something else than records.")
    return count, position


def _walked_chunk(footer: bytes, position: int) -> tuple[_Chunk, int]:
    found: dict[tuple[int, ...], int | bytes] = {}
    position = _walk(footer, position, (), found)
    number = {key: value for key, value in found.items() if isinstance(value, int)}
    text = {key: value for key, value in found.items() if isinstance(value, bytes)}
    inside = (_METADATA, _STATISTICS)
    chunk = _Chunk(
        physical=number.get((_METADATA, _TYPE), -1),
        values=number.get((_METADATA, _VALUES), -1),
        compressed=number.get((_METADATA, _COMPRESSED), 0),
        nulls=number.get((*inside, _NULLS)),
        old_maximum=text.get((*inside, _OLD_MAXIMUM)),
        old_minimum=text.get((*inside, _OLD_MINIMUM)),
        maximum=text.get((*inside, _MAXIMUM)),
        minimum=text.get((*inside, _MINIMUM)),
    )
    return chunk, position


def _walk(
    footer: bytes, position: int, path: tuple[int, ...], found: dict[tuple[int, ...], int | bytes]
) -> int:
    """Collects the numbers and texts of a column's records that matter here."""
    id = 0
    while True:
        id, type, position = field(footer, position, id)
        inner = (*path, id)
        if type == STOP:
            return position
        if type in (INT32, INT64):
            found[inner], position = signed(footer, position)
        elif type == BINARY:
            found[inner], position = binary(footer, position)
        elif type == STRUCT and inner in ((_METADATA,), (_METADATA, _STATISTICS)):
            position = _walk(footer, position, inner, found)
        else:
            position = skip(footer, position, type)


@cache
def _usual_chunk() -> re.Pattern[bytes]:
    """A column as nearly all writers lay it out; each field's header tells how many it follows."""
    number = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
    text = _either(rb"%b.{%d}" % (re.escape(bytes([length])), length) for length in range(128))
    numbers = _counted(5, number) + b"|" + _counted(6, number)
    any_number = rb"[%b]%b" % (_headers(5, 6), number)
    flag = rb"[%b]" % _headers(1, 2)
    any_numbers = rb"[%b](?:%b)" % (_headers(9), numbers)
    plain_record = rb"(?:%b|%b|%b)*+\x00" % (any_number, flag, any_numbers)
    records = _counted(12, plain_record)
    rest = rb"(?:%b|%b|[%b]%b|[%b](?:%b))*+\x00" % (
        any_number, any_numbers, _headers(12), plain_record, _headers(9), records,
    )  # fmt: skip
    return re.compile(
        rb"(?:\x26%(number)b\x1c|\x3c)"  # its place in the file
        rb"\x15(%(number)b)\x19(?:%(encodings)b)\x19(?:%(path)b)\x15%(number)b"  # type, codec
        rb"\x16(%(number)b)\x16%(number)b\x16(%(number)b)\x26%(number)b"  # values, bytes
        rb"(?:\x26%(number)b\x1c|\x3c|\x16%(number)b\x16%(number)b\x1c|\x16%(number)b\x2c)"
        rb"(?:\x18(%(text)b)\x18(%(text)b)\x16|\x36)(%(number)b)"  # old bounds, nulls
        rb"(?:(?:\x16%(number)b\x18|\x28)(%(text)b)\x18(%(text)b))?"  # bounds
        rb"[\x11\x12]{0,2}\x00%(rest)b(?:%(any_number)b)*+\x00"
        % {
            b"number": number,
            b"encodings": _counted(5, number),
            b"path": _counted(8, text),
            b"text": text,
            b"rest": rest,
            b"any_number": any_number,
        },
        re.DOTALL,
    )


def _either(patterns: Iterator[bytes]) -> bytes:
    return rb"(?:%b)" % b"|".join(patterns)


def _headers(*types: int) -> bytes:
    """A character class of the short headers of fields with such types."""
    return b"".join(
        re.escape(bytes([delta << 4 | type])) for delta in range(1, 16) for type in types
    )


def _counted(type: int, element: bytes) -> bytes:
    """A list of up to 14 such elements."""
    return _either(
        rb"%b(?:%b){%d}" % (re.escape(bytes([count << 4 | type])), element, count)
        for count in range(15)
    )


def _matched_chunk(match: re.Match[bytes]) -> _Chunk:
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


# Counts and sizes of a few bytes come back again and again.
@lru_cache(maxsize=16_384)
def _number(encoded: bytes) -> int:
    return signed(encoded, 0)[0]
