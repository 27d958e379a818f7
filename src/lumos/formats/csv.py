"""CSV and its relatives: dialect, names and types inferred from a bounded sample, always alike."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar, Final, NamedTuple

from lumos.formats.csv_dialect import Table, divided
from lumos.formats.csv_header import Column, is_header
from lumos.formats.interface import (
    MOST_COLUMNS,
    Content,
    FileFacts,
    Sample,
    TextFormat,
    UnreadableFile,
    check_width,
    inferred,
)
from lumos.formats.names import distinct_names
from lumos.formats.scalars import type_of_texts
from lumos.formats.text import text_of
from lumos.model.types import NULL, STRING, DataType

_SAMPLE: Final = 64 * 1024
_LONG_SAMPLE: Final = 4 * 1024 * 1024
_MOST_CELLS: Final = 500_000
_LEAST_ROWS: Final = 20


class Csv(TextFormat):
    name: ClassVar[str] = "csv"
    title: ClassVar[str] = "CSV"
    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".psv", ".tab")

    def recognises(self, sample: Sample) -> bool:
        table = divided(text_of(sample), whole=sample.whole)
        if not table.is_regular or table.widest > MOST_COLUMNS:
            return False
        # Where there are sentences, only names above columns of values tell a table from prose.
        return not table.is_wordy or _columns(table).is_evident

    def divides(self, sample: Sample) -> bool:
        """Whether all rows have the same number of cells, and more than one."""
        table = divided(text_of(sample), whole=sample.whole)
        return table.is_even and not table.is_wordy and table.widest <= MOST_COLUMNS

    def read(self, content: Content, *, suffix: str = "") -> FileFacts:
        sample = _sample(content)
        table = divided(text_of(sample), whole=sample.whole, suffix=suffix)
        if not table.rows:
            raise UnreadableFile("empty_file", "The file has no rows.")
        check_width(table.widest)
        columns = _columns(table)
        rows = len(table.rows) - columns.has_header
        known = inferred(tuple(distinct_names(columns.names)), tuple(columns.types))
        if sample.whole:
            return FileFacts(known, rows, row_count_exact=True)
        if sample.total is None:
            return FileFacts(known, None, row_count_exact=False)
        estimate = round(rows * sample.total / _complete_bytes(sample.data))
        return FileFacts(known, estimate, row_count_exact=False)


class Dialect(NamedTuple):
    """How the rows of a whole file are to be divided, as far as its sample tells.

    `above` lines stand above the first row of values, its header among them.
    """

    delimiter: str
    quoted: bool
    escape: str | None
    above: int


def dialect_of(content: Content, *, suffix: str = "") -> Dialect:
    """The dialect of a file with such a name; raises UnreadableFile."""
    sample = _sample(content)
    table = divided(text_of(sample), whole=sample.whole, suffix=suffix)
    above = table.skipped
    if table.rows and _columns(table).has_header:
        above += 1 + sum(cell.count("\n") for cell in table.rows[0])
    return Dialect(table.delimiter, table.quoted, table.escape, above)


def _sample(content: Content) -> Sample:
    """The file's beginning, as long as it takes to hold a header and a row."""
    for length in (_SAMPLE, _LONG_SAMPLE):
        sample = content.sample(length)
        if sample.whole or max(sample.data.count(b"\n"), sample.data.count(b"\r")) > 1:
            return sample
    raise UnreadableFile("line_too_long", f"A line is longer than {_LONG_SAMPLE:,} bytes.")


def _complete_bytes(data: bytes) -> int:
    return max(data.rfind(b"\n"), data.rfind(b"\r")) + 1 or len(data)


class _Columns(NamedTuple):
    """The columns' names and types, and whether the first row holds the names."""

    names: list[str]
    types: list[DataType]
    has_header: bool

    @property
    def is_evident(self) -> bool:
        """Whether a header stands above columns that are more than text."""
        return self.has_header and any(type not in (STRING, NULL) for type in self.types)


def _columns(table: Table) -> _Columns:
    width = table.widest
    rows = table.rows[: max(_LEAST_ROWS, _MOST_CELLS // width)]
    if table.names is not None:
        names = [name.strip() for name in table.names]
        types = [type_of_texts(cells) for cells in _transposed(rows, width)]
        return _Columns(_padded(names, width), types, has_header=False)
    top = _padded([cell.strip() for cell in rows[0]], width)
    below = _transposed(rows[1:], width)
    types = [type_of_texts(cells) for cells in below]
    if is_header([Column(*column) for column in zip(top, types, below, strict=True)]):
        return _Columns(top, types, has_header=True)
    types = [type_of_texts([cell, *cells]) for cell, cells in zip(top, below, strict=True)]
    return _Columns([""] * width, types, has_header=False)


def _padded(names: list[str], width: int) -> list[str]:
    return names[:width] + [""] * (width - len(names))


def _transposed(rows: Sequence[Sequence[str]], width: int) -> list[Sequence[str]]:
    """Each column's cells; rows that are too short have empty ones."""
    columns: list[Sequence[str]] = [*zip_longest(*rows, fillvalue="")]
    columns.extend(() for _ in range(width - len(columns)))
    return columns
