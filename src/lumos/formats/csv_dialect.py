"""How delimited text is divided into rows and cells."""

import csv
import io
import re
from collections import Counter
from functools import cached_property
from typing import Final

# ^A is what Hive puts between columns unless told otherwise.
_DELIMITERS: Final = (",", "\t", ";", "|", "\x01")
# Few write these, so that only names above even rows are evidence.
_RARE_DELIMITERS: Final = ("$", "^", "~")
_COLUMN_NAME: Final = re.compile(r"[^\W\d][\w .-]*\Z")
_NO_DELIMITER: Final = "\x1f"
_PROMISED: Final = {".tsv": "\t", ".tab": "\t", ".psv": "|"}
# Endings that promise one delimiter or another; other texts may be divided by spaces.
_DELIMITED: Final = frozenset({".csv", *_PROMISED})
# In logs that services write for machines, moments and addresses are as good as numbers.
_MEASURE: Final = re.compile(
    r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?\Z|NaN\Z"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.:+-]*Z?\Z|(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\Z",
    re.ASCII,
)
_LEAST_SPACED: Final = 3
_QUOTE: Final = '"'
_ESCAPED_QUOTE: Final = '\\"'
# What Excel writes first for the sake of other programs.
_DECLARED: Final = re.compile(r"sep=([,\t;|])\n")
_DECIMAL_COMMA: Final = re.compile(r"\s*-?[0-9]+,[0-9]+\s*\Z", re.ASCII)
_LOG_LINE: Final = re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d,\d{3}\b", re.ASCII)
_LEAST_SHARE: Final = 0.5
_REGULAR_SHARE: Final = 0.95
_FEWEST_CELLS: Final = 6
_MOST_COMPARED: Final = 100
_MOST_SPACES: Final = 2


class Table:
    """Rows of cells under one delimiter; `names` if a comment above them names the columns.

    `skipped` lines stand above the rows. Quotes mean nothing unless `quoted`; `escape` stands
    before one that belongs to a cell.
    """

    def __init__(
        self,
        delimiter: str,
        rows: list[list[str]],
        *,
        names: list[str] | None = None,
        escape: str | None = None,
        quoted: bool = True,
    ) -> None:
        self.delimiter = delimiter
        self.rows = rows
        self.names = names
        self.escape = escape
        self.quoted = quoted
        self.skipped = 0

    @cached_property
    def _widths(self) -> Counter[int]:
        return Counter(map(len, self.rows))

    @property
    def is_even(self) -> bool:
        """Whether all rows have the same number of cells, and more than one."""
        return len(self._widths) == 1 and 1 not in self._widths

    @property
    def is_free_of_quotes(self) -> bool:
        """Whether no cell holds a quote, as cells do that were divided in a wrong place."""
        return not any(_QUOTE in cell for row in self.rows for cell in row)

    @property
    def widest(self) -> int:
        """The number of cells in the longest row."""
        return max(self._widths, default=0)

    @cached_property
    def commonest(self) -> int:
        """The number of cells that most rows have."""
        return max(self._widths, key=lambda width: (self._widths[width], width), default=0)

    @cached_property
    def share(self) -> float:
        """The share of rows with that number; none where the delimiter hardly occurs."""
        # A delimiter that never occurs divides evenly too, into one column each.
        return self._widths[self.commonest] / len(self.rows) if self.commonest > 1 else 0.0

    @property
    def is_headed(self) -> bool:
        """Whether the first row has more than one cell, and no row has more than it."""
        return 1 < len(self.rows[0]) == self.widest

    @cached_property
    def is_regular(self) -> bool:
        """Whether there are several rows, nearly all alike, that fill more than one column."""
        if len(self.rows) < 2 or self.commonest * len(self.rows) < _FEWEST_CELLS:
            return False
        if self.share < _REGULAR_SHARE or _LOG_LINE.match(self.delimiter.join(self.rows[0])):
            return False
        return sum(any(map(str.strip, column)) for column in zip(*self._full_rows, strict=True)) > 1

    @property
    def is_wordy(self) -> bool:
        """Whether the cells hold sentences, as the parts of prose and of logs do."""
        spaces = sum(cell.strip().count(" ") for row in self._full_rows for cell in row)
        return spaces > _MOST_SPACES * len(self._full_rows) * self.commonest

    @cached_property
    def _full_rows(self) -> list[list[str]]:
        return [row for row in self.rows[:_MOST_COMPARED] if len(row) == self.commonest]


def divided(text: str, *, whole: bool, suffix: str = "") -> Table:
    """The complete rows of a text under the delimiter that divides them most evenly."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not whole:
        text = text[: text.rfind("\n") + 1] or text
    declared = _DECLARED.match(text)
    if declared:
        below = text[declared.end() :].lstrip("\n")
        table = _parsed(below, declared[1], whole=whole)
        table.skipped = _lines_above(below, text)
        return table
    comment, below = _without_comments(text)
    below = below.lstrip("\n") or below
    skipped, text = _lines_above(below, text), below
    table = _divided(text, whole=whole, promised=_PROMISED.get(suffix))
    if suffix not in _PROMISED and not table.is_regular:
        spaced = None if suffix in _DELIMITED else _spaced(text)
        table = spaced or _rarely_delimited(text) or table
    if comment is not None:
        names = comment.split(table.delimiter)
        if len(names) == table.commonest > 1:
            table.names = names
    table.skipped = skipped
    return table


def _lines_above(below: str, text: str) -> int:
    return text.count("\n", 0, len(text) - len(below))


def _without_comments(text: str) -> tuple[str | None, str]:
    """The last of the comment lines that a text begins with, and the text below them."""
    start, comment = 0, None
    while text.startswith("#", start):
        end = text.find("\n", start)
        if end < 0 or end + 1 == len(text):
            # Nothing follows: what looks like comments is all there is.
            return None, text
        comment = text[start:end].lstrip("# ")
        start = end + 1
    return comment, text[start:] if start else text


def _divided(text: str, *, whole: bool, promised: str | None) -> Table:
    first_line = text[: text.find("\n") + 1] or text
    in_first_line = [each for each in _DELIMITERS if each in first_line]
    if len(in_first_line) == 1:
        table = _read(text, in_first_line[0], whole=whole)
        if table.is_even:
            return table
    tables = [_read(text, each, whole=whole) for each in _DELIMITERS if each in text]
    best = max(tables, key=lambda table: _quality(table, promised), default=None)
    if best is None or (best.share < _LEAST_SHARE and not best.is_headed):
        return _parsed(text, _NO_DELIMITER, whole=whole)
    return best


def _spaced(text: str) -> Table | None:
    """The text divided by spaces, where columns of numbers show that it is a table."""
    lines = [line for line in text.split("\n") if line.strip()]
    _allow_cells_of(text)
    if not _are_spaced(list(map(_at_spaces, lines[:_MOST_COMPARED]))):
        return None
    rows = list(map(_at_spaces, lines))
    return Table(" ", rows) if len(set(map(len, rows))) == 1 else None


def _rarely_delimited(text: str) -> Table | None:
    """The text divided by what hardly anybody uses, if names of columns stand above even rows."""
    for delimiter in _RARE_DELIMITERS:
        head = text[: text.find("\n") + 1].rstrip("\n").split(delimiter)
        if len(head) >= _LEAST_SPACED and all(map(_COLUMN_NAME.match, head)):
            table = Table(delimiter, _split(text, delimiter))
            if table.is_even and table.is_regular:
                return table
    return None


def _are_spaced(rows: list[list[str]]) -> bool:
    """Whether rows have three cells or more, all as many, and half of the columns are measured.

    One column is enough below names such as no prose has: combined_score.
    """
    if len(rows) < 2 or len(set(map(len, rows))) > 1 or len(rows[0]) < _LEAST_SPACED:
        return False
    columns = zip(*rows[1:], strict=True)
    measured = sum(all(map(_MEASURE.match, column)) for column in columns)
    is_headed = all(map(_COLUMN_NAME.match, rows[0])) and any("_" in cell for cell in rows[0])
    return 2 * measured >= len(rows[0]) or (is_headed and measured > 0)


def _at_spaces(line: str) -> list[str]:
    if _QUOTE not in line:
        return line.split()
    return next(csv.reader([line.strip()], delimiter=" ", skipinitialspace=True), [])


def _quality(table: Table, promised: str | None) -> tuple[float, bool, bool, int, int]:
    return (
        table.share,
        table.delimiter == promised,
        table.delimiter == ";" and table.share == 1.0 and _has_decimal_commas(table),
        table.commonest,
        -_DELIMITERS.index(table.delimiter),
    )


def _has_decimal_commas(table: Table) -> bool:
    """Whether commas, which would divide these rows evenly too, stand in numbers only."""
    cells = [cell for row in table.rows for cell in row if "," in cell]
    return bool(cells) and all(map(_DECIMAL_COMMA.match, cells))


def _read(text: str, delimiter: str, *, whole: bool) -> Table:
    """The text with quotes as CSV has them; where that goes wrong, as other dialects have them."""
    table = _parsed(text, delimiter, whole=whole)
    if _QUOTE not in text:
        return table
    if _ESCAPED_QUOTE in text and not (table.is_even and table.is_free_of_quotes):
        escaped = _parsed(text, delimiter, whole=whole, escape="\\")
        if escaped.share >= table.share:
            table = escaped
    if not table.is_even:
        unquoted = Table(delimiter, _split(text, delimiter), quoted=False)
        if unquoted.share > table.share:
            table = unquoted
    return table


def _parsed(text: str, delimiter: str, *, whole: bool, escape: str | None = None) -> Table:
    if _QUOTE not in text:
        return Table(delimiter, _split(text, delimiter))
    _allow_cells_of(text)
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, escapechar=escape, strict=False
    )
    rows = [row for row in reader if row]
    if not whole and len(rows) > 1 and text.count(_QUOTE) % 2:
        # The sample ends inside quotes, in the middle of a row.
        rows.pop()
    return Table(delimiter, rows, escape=escape)


def _allow_cells_of(text: str) -> None:
    """Long cells are no error; the sample is bounded already."""
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))


def _split(text: str, delimiter: str) -> list[list[str]]:
    return [line.split(delimiter) for line in text.split("\n") if line]
