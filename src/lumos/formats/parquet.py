"""Parquet: the footer alone tells schema, rows and statistics.

A footer begins with its schema list, so that the footers of one table begin with the same bytes.
Only bytes that were not met before are parsed, and nothing but the schema list reaches the parser:
the rest of a damaged footer makes it abort the process. The Arrow schema that some writers add is
left aside, since other engines do not see it either.
"""

from collections.abc import Iterable
from functools import cached_property
from math import isfinite
from typing import ClassVar, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lumos.formats import thrift
from lumos.formats.columns import ColumnFacts
from lumos.formats.interface import (
    MAYBE_INTEGERS,
    BinaryFormat,
    FileFacts,
    KnownSchema,
    RangedBytes,
    UnreadableFile,
)
from lumos.formats.names import with_distinct_names
from lumos.formats.parquet_columns import Column, columns_of, read_columns
from lumos.formats.varints import Malformed, signed
from lumos.model.conversions.arrow import schema_from_arrow
from lumos.model.schema import Schema
from lumos.model.type_path import TypePath
from lumos.model.types import FLOAT64

_MAGIC: Final = b"PAR1"
_ENCRYPTED: Final = b"PARE"
# Nearly every footer fits; a longer one costs one more read.
_FIRST_READ: Final = 64 * 1024
_LARGEST_FOOTER: Final = 256 * 1024 * 1024

# What pandas writes down beside the schema.
_PANDAS: Final = b'"pandas_version"'

_SCHEMA: Final = 2
_ROWS: Final = 3
# The header of the row count right behind the schema, where all writers have it.
_ROWS_NEXT: Final = b"\x16"
# Schemas of one table that differ late begin alike, so a few share this key.
_KEY: Final = 96
_MOST_MET: Final = 4096


class Parquet(BinaryFormat):
    name: ClassVar[str] = "parquet"
    title: ClassVar[str] = "Parquet"
    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".parq", ".pq")

    def __init__(self) -> None:
        self._met: dict[bytes, tuple[_Beginning, ...]] = {}
        self._count = 0

    def claims_head(self, head: bytes) -> bool:
        return head.startswith((_MAGIC, _ENCRYPTED))

    def claims(self, file: RangedBytes) -> bool:
        return file.tail(_FIRST_READ).endswith((_MAGIC, _ENCRYPTED))

    def read(self, file: RangedBytes, *, column_stats: bool = False) -> FileFacts:
        footer = _footer(file)
        try:
            beginning = self._beginning(footer)
            rows = _row_count(footer, beginning.length)
            with_doubles = bool(beginning.doubles) and _PANDAS in footer
            columns = (
                read_columns(footer, beginning.length, beginning.columns)
                if column_stats or with_doubles
                else ()
            )
        except Malformed as problem:
            raise _damaged(problem) from None
        known = beginning.marked(columns) if with_doubles else beginning.known
        told = columns if column_stats else ()
        return FileFacts(known, rows, row_count_exact=True, columns=told)

    def _beginning(self, footer: bytes) -> "_Beginning":
        alike = self._met.get(footer[:_KEY], ())
        for beginning in alike:
            if footer.startswith(beginning.data):
                return beginning
        beginning = _Beginning(footer)
        if self._count >= _MOST_MET:
            self._met.clear()
            self._count = 0
        self._met[footer[:_KEY]] = (beginning, *alike)
        self._count += 1
        return beginning


class _Beginning:
    """A footer's bytes up to the end of its schema list, and what they mean."""

    def __init__(self, footer: bytes) -> None:
        start, end = _schema_list(footer)
        self.data = footer[:end]
        self.length = end
        self.known = KnownSchema(_schema(footer[start:end]))
        self._marked = {frozenset[str](): self.known}

    @cached_property
    def columns(self) -> list[Column]:
        return columns_of(self.known)

    @cached_property
    def doubles(self) -> dict[str, str]:
        """The names of the columns of doubles by their paths."""
        fields = self.known.schema.fields
        return {
            TypePath.column(field.name).path: field.name
            for field in fields
            if field.type == FLOAT64
        }

    def marked(self, columns: Iterable[ColumnFacts]) -> KnownSchema:
        """The schema of a file of pandas, whose integers are doubles where some are missing."""
        names = frozenset(
            self.doubles[column.path]
            for column in columns
            if column.path in self.doubles and _may_be_integers(column)
        )
        if names not in self._marked:
            self._marked[names] = KnownSchema(_with_mark(self.known.schema, names))
        return self._marked[names]


def _may_be_integers(column: ColumnFacts) -> bool:
    bounds = (column.minimum, column.maximum)
    return bool(column.null_count) and all(
        bound is None or (isfinite(bound) and bound == int(bound)) for bound in bounds
    )


def _with_mark(schema: Schema, names: frozenset[str]) -> Schema:
    return Schema(
        fields=tuple(
            msgspec.structs.replace(field, tags=(*field.tags, MAYBE_INTEGERS))
            if field.name in names
            else field
            for field in schema.fields
        )
    )


def _footer(file: RangedBytes) -> bytes:
    tail = file.tail(_FIRST_READ)
    if tail.endswith(_ENCRYPTED):
        raise UnreadableFile("encrypted_file", "The Parquet footer is encrypted.")
    if len(tail) < 12 or not tail.endswith(_MAGIC):
        raise UnreadableFile(
            "not_parquet", "The file does not end as Parquet does: cut off, or something else."
        )
    needed = int.from_bytes(tail[-8:-4], "little") + 8
    if needed > min(file.size, _LARGEST_FOOTER):
        raise UnreadableFile("corrupt_file", "The Parquet footer claims more bytes than there are.")
    if needed > len(tail):
        tail = file.tail(needed)
    return tail[-needed:-8]


def _schema_list(footer: bytes) -> tuple[int, int]:
    """Where the value of the schema field begins and ends."""
    id = position = 0
    while True:
        id, type, start = thrift.field(footer, position, id)
        if type == thrift.STOP:
            raise Malformed("It has no schema.")
        position = thrift.skip(footer, start, type)
        if id == _SCHEMA:
            if type != thrift.LIST:
                raise Malformed("Its schema is no list.")
            return start, position


def _row_count(footer: bytes, position: int) -> int:
    if footer[position : position + 1] == _ROWS_NEXT:
        rows, _ = signed(footer, position + 1)
    else:
        rows = _searched_row_count(footer)
    if rows < 0:
        raise Malformed("It tells of less than no rows.")
    return rows


def _searched_row_count(footer: bytes) -> int:
    id = position = 0
    while True:
        id, type, position = thrift.field(footer, position, id)
        if type == thrift.STOP:
            raise Malformed("It does not tell its rows.")
        if id == _ROWS and type == thrift.INT64:
            return signed(footer, position)[0]
        position = thrift.skip(footer, position, type)


def _schema(schema_list: bytes) -> Schema:
    """The schema of a file that holds nothing but that schema list."""
    footer = b"\x15\x02\x19" + schema_list + b"\x16\x00\x19\x0c\x00"
    file = b"".join((_MAGIC, footer, len(footer).to_bytes(4, "little"), _MAGIC))
    try:
        # Engines tell INT96 to the microsecond: nanoseconds would not reach years such as 9999.
        opened = pq.ParquetFile(
            pa.BufferReader(file), coerce_int96_timestamp_unit="us", arrow_extensions_enabled=False
        )
        return with_distinct_names(schema_from_arrow(opened.schema_arrow))
    except (pa.ArrowException, OSError, ValueError, RecursionError) as problem:
        if "too deeply nested" in str(problem) or isinstance(problem, RecursionError):
            reason = "The schema nests too deeply to be read."
            raise UnreadableFile("too_deep", reason) from None
        raise _damaged(problem) from None


def _damaged(problem: Exception) -> UnreadableFile:
    return UnreadableFile("corrupt_file", f"The Parquet footer is damaged: {problem}")
