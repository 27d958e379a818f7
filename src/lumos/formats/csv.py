"""CSV and similar formats: dialect, names and types are inferred from a sample of limited size.

The same sample always results in the same schema.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise, zip_longest
from typing import ClassVar, Final, NamedTuple

from lumos.formats.columns import distinct_names
from lumos.formats.inference import NULLS, type_of_texts
from lumos.formats.interface import (
    MAX_COLUMNS,
    Content,
    FileFacts,
    Sample,
    TextFormat,
    UnreadableFile,
    check_width,
    inferred_schema,
)
from lumos.formats.text import text_of
from lumos.model.types import INT64, NULL, STRING, DataType

# The last one, ^A, is Hive's default.
_DELIMITERS: Final = (",", "\t", ";", "|", "\x01")
# Rare delimiters, which are only accepted if a row of column names precedes rows of equal width.
_RARE_DELIMITERS: Final = ("$", "^", "~")
_COLUMN_NAME: Final = re.compile(r"[^\W\d][\w .-]*\Z")
# A character that does not occur in text, for text that is not split.
_NO_DELIMITER: Final = "\x1f"
_DELIMITER_BY_SUFFIX: Final = {".tsv": "\t", ".tab": "\t", ".psv": "|"}
# Suffixes of text that is not delimited by spaces.
_DELIMITED_SUFFIXES: Final = frozenset({".csv", *_DELIMITER_BY_SUFFIX})
# Numbers, and the times and IP addresses in access logs of services.
_NUMBER_OR_TIME: Final = re.compile(
    r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?\Z|NaN\Z"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.:+-]*Z?\Z|(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\Z",
    re.ASCII,
)
_MIN_SPACED_COLUMNS: Final = 3
_QUOTE: Final = '"'
_ESCAPED_QUOTE: Final = '\\"'
# The first line of files that Excel wrote, such as `sep=;`.
_EXCEL_SEPARATOR: Final = re.compile(r"sep=([,\t;|])\n")
_DECIMAL_COMMA: Final = re.compile(r"\s*-?[0-9]+,[0-9]+\s*\Z", re.ASCII)
_LOG_LINE: Final = re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d,\d{3}\b", re.ASCII)
_MIN_SHARE: Final = 0.5
_REGULAR_SHARE: Final = 0.95
_MIN_CELLS: Final = 6
_MAX_COMPARED_ROWS: Final = 100
_MAX_SPACES_PER_CELL: Final = 2


class DelimitedTable:
    """The rows of a text, split by one delimiter.

    `names` contains the column names, if a comment above the rows lists them. `skipped` is the
    number of lines above the rows. Quotes are ordinary characters unless `quoted`. `escape` is the
    character before a quote inside a cell.
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
        """Whether no cell contains a quote; a quote would indicate wrongly split cells."""
        return not any(_QUOTE in cell for row in self.rows for cell in row)

    @property
    def max_width(self) -> int:
        """The number of cells in the longest row."""
        return max(self._widths, default=0)

    @cached_property
    def most_common_width(self) -> int:
        """The number of cells that most rows have."""
        return max(self._widths, key=lambda width: (self._widths[width], width), default=0)

    @cached_property
    def share(self) -> float:
        """The share of rows with the most common number of cells; 0 if that is one cell."""
        return (
            self._widths[self.most_common_width] / len(self.rows)
            if self.most_common_width > 1
            else 0.0
        )

    @property
    def has_widest_first_row(self) -> bool:
        """Whether the first row has more than one cell and no other row has more than it."""
        return 1 < len(self.rows[0]) == self.max_width

    @cached_property
    def is_regular(self) -> bool:
        """Whether several columns have values, and nearly all rows have the same width.

        False if there are only a few cells, and for log lines.
        """
        if len(self.rows) < 2 or self.most_common_width * len(self.rows) < _MIN_CELLS:
            return False
        if self.share < _REGULAR_SHARE or _LOG_LINE.match(self.delimiter.join(self.rows[0])):
            return False
        return sum(any(map(str.strip, column)) for column in zip(*self._full_rows, strict=True)) > 1

    @property
    def is_prose(self) -> bool:
        """Whether the cells contain so many spaces that they seem to be sentences."""
        spaces = sum(cell.strip().count(" ") for row in self._full_rows for cell in row)
        return spaces > _MAX_SPACES_PER_CELL * len(self._full_rows) * self.most_common_width

    @cached_property
    def _full_rows(self) -> list[list[str]]:
        return [row for row in self.rows[:_MAX_COMPARED_ROWS] if len(row) == self.most_common_width]


def split_table(text: str, *, whole: bool, suffix: str = "") -> DelimitedTable:
    """Split the complete rows of a text by the delimiter that results in the most regular rows."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not whole:
        text = text[: text.rfind("\n") + 1] or text
    separator_line = _EXCEL_SEPARATOR.match(text)
    if separator_line:
        remaining = text[separator_line.end() :].lstrip("\n")
        table = _parse(remaining, separator_line[1], whole=whole)
        table.skipped = _lines_above(remaining, text)
        return table
    comment, remaining = _without_comments(text)
    remaining = remaining.lstrip("\n") or remaining
    skipped, text = _lines_above(remaining, text), remaining
    table = _split_by_best_delimiter(text, whole=whole, suggested=_DELIMITER_BY_SUFFIX.get(suffix))
    if suffix not in _DELIMITER_BY_SUFFIX and not table.is_regular:
        table_by_spaces = None if suffix in _DELIMITED_SUFFIXES else _split_by_spaces(text)
        table = table_by_spaces or _split_by_rare_delimiter(text) or table
    if comment is not None:
        names = comment.split(table.delimiter)
        if len(names) == table.most_common_width > 1:
            table.names = names
    table.skipped = skipped
    return table


def _lines_above(remaining: str, text: str) -> int:
    return text.count("\n", 0, len(text) - len(remaining))


def _without_comments(text: str) -> tuple[str | None, str]:
    """The last line of the comments at the beginning of a text, and the text below them."""
    start, comment = 0, None
    while text.startswith("#", start):
        end = text.find("\n", start)
        if end < 0 or end + 1 == len(text):
            # The text consists only of such lines, so they are not comments.
            return None, text
        comment = text[start:end].lstrip("# ")
        start = end + 1
    return comment, text[start:] if start else text


def _split_by_best_delimiter(text: str, *, whole: bool, suggested: str | None) -> DelimitedTable:
    first_line = text[: text.find("\n") + 1] or text
    in_first_line = [each for each in _DELIMITERS if each in first_line]
    if len(in_first_line) == 1:
        table = _read_table(text, in_first_line[0], whole=whole)
        if table.is_even:
            return table
    tables = [_read_table(text, each, whole=whole) for each in _DELIMITERS if each in text]
    best = max(tables, key=lambda table: _delimiter_quality(table, suggested), default=None)
    if best is None or (best.share < _MIN_SHARE and not best.has_widest_first_row):
        return _parse(text, _NO_DELIMITER, whole=whole)
    return best


def _split_by_spaces(text: str) -> DelimitedTable | None:
    """Split the text at spaces; None unless columns of numbers show that it is a table."""
    lines = [line for line in text.split("\n") if line.strip()]
    _allow_long_cells(text)
    if not _is_spaced_table(list(map(_split_at_spaces, lines[:_MAX_COMPARED_ROWS]))):
        return None
    rows = list(map(_split_at_spaces, lines))
    return DelimitedTable(" ", rows) if len(set(map(len, rows))) == 1 else None


def _split_by_rare_delimiter(text: str) -> DelimitedTable | None:
    """Split the text by a rare delimiter; None unless names precede rows of equal width."""
    for delimiter in _RARE_DELIMITERS:
        header = text[: text.find("\n") + 1].rstrip("\n").split(delimiter)
        if len(header) >= _MIN_SPACED_COLUMNS and all(map(_COLUMN_NAME.match, header)):
            table = DelimitedTable(delimiter, _split(text, delimiter))
            if table.is_even and table.is_regular:
                return table
    return None


def _is_spaced_table(rows: list[list[str]]) -> bool:
    """Whether all rows have the same three or more columns, half of which contain numbers.

    If the first row contains names that do not occur in prose, such as `combined_score`, one column
    of numbers is enough.
    """
    if len(rows) < 2 or len(set(map(len, rows))) > 1 or len(rows[0]) < _MIN_SPACED_COLUMNS:
        return False
    columns = zip(*rows[1:], strict=True)
    number_columns = sum(all(map(_NUMBER_OR_TIME.match, column)) for column in columns)
    has_column_names = all(map(_COLUMN_NAME.match, rows[0])) and any(
        "_" in cell for cell in rows[0]
    )
    return 2 * number_columns >= len(rows[0]) or (has_column_names and number_columns > 0)


def _split_at_spaces(line: str) -> list[str]:
    if _QUOTE not in line:
        return line.split()
    return next(csv.reader([line.strip()], delimiter=" ", skipinitialspace=True), [])


def _delimiter_quality(
    table: DelimitedTable, suggested: str | None
) -> tuple[float, bool, bool, int, int]:
    return (
        table.share,
        table.delimiter == suggested,
        table.delimiter == ";" and table.share == 1.0 and _has_decimal_commas(table),
        table.most_common_width,
        -_DELIMITERS.index(table.delimiter),
    )


def _has_decimal_commas(table: DelimitedTable) -> bool:
    """Whether all commas are decimal separators: these can result in rows of equal width, too."""
    cells = [cell for row in table.rows for cell in row if "," in cell]
    return bool(cells) and all(map(_DECIMAL_COMMA.match, cells))


def _read_table(text: str, delimiter: str, *, whole: bool) -> DelimitedTable:
    """Parse the text with the quotes of CSV or, if its rows are irregular, of other dialects.

    In other dialects, quotes are escaped with a backslash, or have no special meaning.
    """
    table = _parse(text, delimiter, whole=whole)
    if _QUOTE not in text:
        return table
    if _ESCAPED_QUOTE in text and not (table.is_even and table.is_free_of_quotes):
        escaped = _parse(text, delimiter, whole=whole, escape="\\")
        if escaped.share >= table.share:
            table = escaped
    if not table.is_even:
        unquoted = DelimitedTable(delimiter, _split(text, delimiter), quoted=False)
        if unquoted.share > table.share:
            table = unquoted
    return table


def _parse(text: str, delimiter: str, *, whole: bool, escape: str | None = None) -> DelimitedTable:
    if _QUOTE not in text:
        return DelimitedTable(delimiter, _split(text, delimiter))
    _allow_long_cells(text)
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, escapechar=escape, strict=False
    )
    rows = [row for row in reader if row]
    if not whole and len(rows) > 1 and text.count(_QUOTE) % 2:
        # The sample ends inside a quoted cell.
        rows.pop()
    return DelimitedTable(delimiter, rows, escape=escape)


def _allow_long_cells(text: str) -> None:
    """Allow cells as long as the text, because the size of the sample is already limited."""
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))


def _split(text: str, delimiter: str) -> list[list[str]]:
    return [line.split(delimiter) for line in text.split("\n") if line]


_DIGITS: Final = re.compile(r"[0-9]+")
_LOWER_CASE: Final = re.compile(r"[^\W\d_A-Z]+")
_UPPER_CASE: Final = re.compile(r"[A-Z]+")
# Patterns that names and values have equally often.
_COMMON_PATTERNS: Final = ("a", "Aa", "A")
_MAX_COMPARED_VALUES: Final = 50
_MIN_VALUES: Final = 3
_MAX_NAME_LENGTH: Final = 128
_MAX_NAME_WORDS: Final = 8


class CsvColumn(NamedTuple):
    """The first cell of a column, and the type and texts of the cells below it."""

    first: str
    type: DataType
    values: Sequence[str]

    @property
    def is_typed(self) -> bool:
        """Whether the values are not just text."""
        return self.type is not STRING and self.type is not NULL


def is_header(columns: Sequence[CsvColumn]) -> bool:
    """Whether the first cells are the names of the columns."""
    columns_with_first = [column for column in columns if column.first]
    first_cells = [column.first for column in columns_with_first]
    if not first_cells or any(
        len(cell) > _MAX_NAME_LENGTH or cell.count(" ") >= _MAX_NAME_WORDS for cell in first_cells
    ):
        return False
    # First cells that look like values, not like names.
    values = [cell for cell in first_cells if type_of_texts([cell]) is not STRING]
    if all(column.type is NULL for column in columns):
        return not values
    # Text above numbers or dates is a column name.
    names = sum(column.is_typed and column.first not in values for column in columns_with_first)
    if values:
        return names >= len(values) or (len(values) < len(first_cells) and _are_years(values))
    return names > 0 or _has_other_patterns(columns_with_first)


def _are_years(values: Sequence[str]) -> bool:
    """Whether the values in the header are consecutive years, as in statistical tables."""
    if len(values) < 2 or type_of_texts(values) is not INT64:
        return False
    years = [int(value) for value in values]
    return 1000 < years[0] < 3000 and all(after - before == 1 for before, after in pairwise(years))


def _has_other_patterns(columns: Sequence[CsvColumn]) -> bool:
    """Whether the first row differs from the rows below it; for columns of text."""
    first_cells = {column.first for column in columns}
    if len(first_cells) < len(columns) or any(column.first in column.values for column in columns):
        return False
    return sum(_compare_patterns(column.first, column.values) for column in columns) >= 0


def _compare_patterns(first: str, values: Sequence[str]) -> int:
    """Compare the pattern of a first cell with the values below it.

    1 means that it differs from the pattern of all values, -1 that it is the same, and 0 that this
    is not clear.
    """
    compared = sorted({cell.strip() for cell in values} - NULLS)[:_MAX_COMPARED_VALUES]
    patterns = {_pattern(value) for value in compared}
    lengths = {len(value) for value in compared}
    have_same_length = len(lengths) == 1 and len(compared) >= _MIN_VALUES
    if len(patterns) == 1:
        if _pattern(first) not in patterns:
            return 1
        is_alike = patterns.isdisjoint(_COMMON_PATTERNS) or (
            have_same_length and len(first) in lengths
        )
        return -1 if is_alike else 0
    if have_same_length:
        return -1 if len(first) in lengths else 1
    return 0


def _pattern(value: str) -> str:
    """The pattern of a value: `9` for digits, `a` and `A` for letters; `Room 12` has `Aa 9`."""
    return _UPPER_CASE.sub("A", _LOWER_CASE.sub("a", _DIGITS.sub("9", value)))


_SAMPLE_BYTES: Final = 64 * 1024
_LONG_SAMPLE_BYTES: Final = 4 * 1024 * 1024
_MAX_CELLS: Final = 500_000
_MIN_ROWS: Final = 20


class Csv(TextFormat):
    name: ClassVar[str] = "csv"
    title: ClassVar[str] = "CSV"
    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".psv", ".tab")

    def recognises(self, sample: Sample) -> bool:
        table = split_table(text_of(sample), whole=sample.whole)
        if not table.is_regular or table.max_width > MAX_COLUMNS:
            return False
        # Cells with sentences may be prose, unless there are names above numbers or times.
        return not table.is_prose or _columns(table).has_typed_columns

    def has_even_rows(self, sample: Sample) -> bool:
        """Whether all rows have the same number of cells, and more than one."""
        table = split_table(text_of(sample), whole=sample.whole)
        return table.is_even and not table.is_prose and table.max_width <= MAX_COLUMNS

    def read(self, content: Content, *, suffix: str = "") -> FileFacts:
        sample = _sample(content)
        table = split_table(text_of(sample), whole=sample.whole, suffix=suffix)
        if not table.rows:
            raise UnreadableFile("empty_file", "The file has no rows.")
        check_width(table.max_width)
        columns = _columns(table)
        rows = len(table.rows) - columns.has_header
        known = inferred_schema(tuple(distinct_names(columns.names)), tuple(columns.types))
        if sample.whole:
            return FileFacts(known, rows, row_count_exact=True)
        if sample.total is None:
            return FileFacts(known, None, row_count_exact=False)
        data = sample.data
        complete_bytes = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1 or len(data)
        estimate = round(rows * sample.total / complete_bytes)
        return FileFacts(known, estimate, row_count_exact=False)


class CsvDialect(NamedTuple):
    """The dialect of a file, inferred from its sample.

    `skipped_lines` is the number of lines above the first row of values, including the header.
    """

    delimiter: str
    quoted: bool
    escape: str | None
    skipped_lines: int


def dialect_of(content: Content, *, suffix: str = "") -> CsvDialect:
    """The dialect of a file with this suffix; raises UnreadableFile."""
    sample = _sample(content)
    table = split_table(text_of(sample), whole=sample.whole, suffix=suffix)
    skipped_lines = table.skipped
    if table.rows and _columns(table).has_header:
        skipped_lines += 1 + sum(cell.count("\n") for cell in table.rows[0])
    return CsvDialect(table.delimiter, table.quoted, table.escape, skipped_lines)


def _sample(content: Content) -> Sample:
    """The beginning of the file, long enough for a header and a row."""
    for length in (_SAMPLE_BYTES, _LONG_SAMPLE_BYTES):
        sample = content.sample(length)
        if sample.whole or max(sample.data.count(b"\n"), sample.data.count(b"\r")) > 1:
            return sample
    raise UnreadableFile("line_too_long", f"A line is longer than {_LONG_SAMPLE_BYTES:,} bytes.")


class _Columns(NamedTuple):
    """The names and types of columns, and whether the first row is a header."""

    names: list[str]
    types: list[DataType]
    has_header: bool

    @property
    def has_typed_columns(self) -> bool:
        """Whether there is a header above columns that are not just text."""
        return self.has_header and any(type not in (STRING, NULL) for type in self.types)


def _columns(table: DelimitedTable) -> _Columns:
    width = table.max_width
    rows = table.rows[: max(_MIN_ROWS, _MAX_CELLS // width)]
    if table.names is not None:
        names = [name.strip() for name in table.names]
        types = [type_of_texts(cells) for cells in _transpose(rows, width)]
        return _Columns(_pad_names(names, width), types, has_header=False)
    first_row = _pad_names([cell.strip() for cell in rows[0]], width)
    values = _transpose(rows[1:], width)
    types = [type_of_texts(cells) for cells in values]
    if is_header([CsvColumn(*column) for column in zip(first_row, types, values, strict=True)]):
        return _Columns(first_row, types, has_header=True)
    types = [type_of_texts([cell, *cells]) for cell, cells in zip(first_row, values, strict=True)]
    return _Columns([""] * width, types, has_header=False)


def _pad_names(names: list[str], width: int) -> list[str]:
    return names[:width] + [""] * (width - len(names))


def _transpose(rows: Sequence[Sequence[str]], width: int) -> list[Sequence[str]]:
    """The cells of each column; short rows are padded with empty cells."""
    columns: list[Sequence[str]] = [*zip_longest(*rows, fillvalue="")]
    columns.extend(() for _ in range(width - len(columns)))
    return columns
