"""CSV and TSV: dialect, names and types inferred from a bounded sample, always alike."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, NamedTuple

from lumos.formats.interface import FileFacts, Format, RangedBytes, UnreadableFile
from lumos.formats.names import distinct_names
from lumos.formats.scalars import type_of_texts
from lumos.model.schema import Field, Schema
from lumos.model.types import STRING

_SAMPLE: Final = 64 * 1024
_LONG_SAMPLE: Final = 8 * 1024 * 1024
_MOST_COLUMNS: Final = 20_000
_DELIMITERS: Final = (",", "\t", ";", "|")
_NULLS: Final = frozenset(
    {"", "null", "NULL", "Null", "NA", "N/A", "n/a", "NaN", "nan", "None", "\\N"}
)
_BYTE_ORDER_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1f]")


class Csv(Format):
    name: ClassVar[str] = "csv"
    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".psv", ".tab")
    declares_schema: ClassVar[bool] = False

    def claims(self, head: bytes) -> bool:  # noqa: ARG002 - text has no magic bytes
        return False

    def read(self, file: RangedBytes) -> FileFacts:
        data = _sample(file)
        whole = len(data) == file.size
        text = _text(data, whole=whole)
        rows = _rows(text, whole=whole)
        if not rows:
            raise UnreadableFile("empty_file", "The file has no rows.")
        has_header = _has_header(rows)
        names = rows[0] if has_header else []
        body = rows[has_header:]
        width = max(len(row) for row in rows)
        if width > _MOST_COLUMNS:
            raise UnreadableFile("too_many_columns", f"{width} columns; at most {_MOST_COLUMNS}.")
        named = [names[index].strip() if index < len(names) else "" for index in range(width)]
        schema = Schema(fields=tuple(_fields(distinct_names(named), body)))
        if whole:
            return FileFacts(schema, len(body), row_count_exact=True)
        return FileFacts(schema, round(len(body) * file.size / len(data)), row_count_exact=False)


def _sample(file: RangedBytes) -> bytes:
    """The file's beginning, as long as it takes to hold a header and a row."""
    for length in (_SAMPLE, _LONG_SAMPLE):
        data = file.head(length)
        if len(data) == file.size or data.count(b"\n") > 1:
            return data
    raise UnreadableFile("line_too_long", f"A line is longer than {_LONG_SAMPLE:,} bytes.")


def _text(data: bytes, *, whole: bool) -> str:
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
    if encoding == "utf-16":
        data = data[: len(data) // 2 * 2]
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as problem:
        if not whole and problem.start >= len(data) - 4:
            # The sample's end may cut one character in two.
            text = data[: problem.start].decode(encoding)
        else:
            text = data.decode("latin-1")
    if _CONTROL.search(text):
        raise UnreadableFile("not_text", "The file holds binary data, not text.")
    return text


class _Dialect(NamedTuple):
    delimiter: str
    rows: list[list[str]]


def _rows(text: str, *, whole: bool) -> list[list[str]]:
    """The sample's complete rows under the delimiter that divides them most evenly."""
    if not whole:
        text = text[: text.rfind("\n") + 1] or text
    candidates = [_Dialect(delimiter, _parsed(text, delimiter)) for delimiter in _DELIMITERS]
    return max(candidates, key=_evenness).rows


def _parsed(text: str, delimiter: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=False)
    try:
        return [row for row in reader if row]
    except csv.Error:
        return []


def _evenness(dialect: _Dialect) -> tuple[float, int]:
    widths = [len(row) for row in dialect.rows]
    if not widths:
        return (-1.0, 0)
    commonest = max(set(widths), key=lambda width: (widths.count(width), width))
    # A delimiter that never occurs divides evenly too, into one column; that is the last resort.
    share = widths.count(commonest) / len(widths) if commonest > 1 else 0.0
    return (share, commonest)


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names the columns: distinct texts, none of them a value."""
    first = [cell.strip() for cell in rows[0]]
    named = [cell for cell in first if cell]
    if not named or any(type_of_texts([cell]) != STRING for cell in named):
        return False
    if len(rows) == 1:
        return True
    below = [_column(rows[1:], index) for index in range(len(first))]
    if any(type_of_texts(cells) != STRING for cells in below if cells):
        return True
    # All columns are text: a header does not come back as a value below.
    return not any(cell in below[index] for index, cell in enumerate(first) if cell)


def _column(rows: Iterable[Sequence[str]], index: int) -> list[str]:
    cells = (row[index].strip() for row in rows if index < len(row))
    return [cell for cell in cells if cell not in _NULLS]


def _fields(names: Sequence[str], body: Sequence[Sequence[str]]) -> Iterable[Field]:
    for index, name in enumerate(names):
        yield Field(name=name, type=type_of_texts(_column(body, index)))
