"""Whether the first row of delimited text names the columns."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from lumos.formats.scalars import NULLS, type_of_texts
from lumos.model.types import INT64, NULL, STRING, DataType

_DIGITS: Final = re.compile(r"[0-9]+")
_SMALL: Final = re.compile(r"[^\W\d_A-Z]+")
_CAPITALS: Final = re.compile(r"[A-Z]+")
# Looks that names have as often as values do.
_ORDINARY: Final = ("a", "Aa", "A")
_MOST_COMPARED: Final = 50
_FEW: Final = 3
_LONGEST_NAME: Final = 128
_MOST_WORDS: Final = 8


class Column(NamedTuple):
    """The cell on top of a column, and the type and texts of the cells below it."""

    top: str
    type: DataType
    below: Sequence[str]

    @property
    def is_typed(self) -> bool:
        """Whether the values below are more than text."""
        return self.type is not STRING and self.type is not NULL


def is_header(columns: Sequence[Column]) -> bool:
    """Whether the cells on top name the columns below them."""
    named = [column for column in columns if column.top]
    tops = [column.top for column in named]
    if not tops or any(map(_is_no_name, tops)):
        return False
    values = [top for top in tops if type_of_texts([top]) is not STRING]
    if all(column.type is NULL for column in columns):
        return not values
    # A text above numbers or dates is a name.
    evident = sum(column.is_typed and column.top not in values for column in named)
    if values:
        return evident >= len(values) or (len(values) < len(tops) and _are_years(values))
    return evident > 0 or _stands_out(named)


def _is_no_name(top: str) -> bool:
    return len(top) > _LONGEST_NAME or top.count(" ") >= _MOST_WORDS


def _are_years(values: Sequence[str]) -> bool:
    """Whether the values among the names are years in a row, as tables of statistics have them."""
    if len(values) < 2 or type_of_texts(values) is not INT64:
        return False
    years = [int(value) for value in values]
    return 1000 < years[0] < 3000 and all(after - before == 1 for before, after in pairwise(years))


def _stands_out(named: Sequence[Column]) -> bool:
    """Whether, where all is text, the first row looks unlike the rows below it."""
    tops = {column.top for column in named}
    if len(tops) < len(named) or any(column.top in column.below for column in named):
        return False
    return sum(_difference(column.top, column.below) for column in named) >= 0


def _difference(top: str, below: Sequence[str]) -> int:
    """1 if a cell looks unlike values that all look alike, -1 if it looks like them, else 0."""
    compared = sorted({cell.strip() for cell in below} - NULLS)[:_MOST_COMPARED]
    looks = {_look(value) for value in compared}
    lengths = {len(value) for value in compared}
    same_length = len(lengths) == 1 and len(compared) >= _FEW
    if len(looks) == 1:
        if _look(top) not in looks:
            return 1
        is_telling = looks.isdisjoint(_ORDINARY) or (same_length and len(top) in lengths)
        return -1 if is_telling else 0
    if same_length:
        return -1 if len(top) in lengths else 1
    return 0


def _look(value: str) -> str:
    """The value with each run of digits, small letters and capitals as one character."""
    return _CAPITALS.sub("A", _SMALL.sub("a", _DIGITS.sub("9", value)))
