"""How much schemas have in common, whatever the small differences of inferred types."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from lumos.model.schema import Schema
from lumos.model.types import DataType, Struct

# Names that no person gave to a column: what a file without a header gets, or values as names.
_NO_NAME: Final = re.compile(
    r"(?:column|col|field|f|c|_c|_col|unnamed[: ]*)_?\d+\Z|[-+]?[\d.,:/ -]+\Z|.{80,}\Z",
    re.IGNORECASE | re.DOTALL,
)
_FAMILIES: Final = {
    "BOOLEAN": "truth", "STRING": "text", "BINARY": "text", "UUID": "text", "ENUM": "text",
    "DATE": "time", "TIME": "time", "TIMESTAMP": "time",
    "FLOAT16": "number", "FLOAT32": "number", "FLOAT64": "number", "DECIMAL": "number",
}  # fmt: skip

# With so many marks more than may differ, few schemas are looked at in vain.
_LOOKED_UP: Final = 3

T = TypeVar("T")


class Columns(NamedTuple):
    """A schema reduced to what grouping compares: names, and families of types."""

    families: dict[str, str]
    are_named: bool
    are_text: bool

    @classmethod
    def of(cls, schema: Schema) -> "Columns":
        unnamed = sum(1 for field in schema.fields if _NO_NAME.match(field.name))
        families = dict(_flat(schema))
        return cls(
            families,
            are_named=2 * unnamed < len(schema.fields),
            are_text=all(family in ("text", "") for family in families.values()),
        )

    @property
    def marks(self) -> Iterable[object]:
        """What another schema must share to have anything in common with this one."""
        return self.families if self.are_named else (len(self.families),)

    def overlap(self, other: "Columns") -> "Overlap":
        """What is common; a column of two types counts half."""
        mine, theirs = self.families, other.families
        # Where all is text, a row of names is easily taken for values, and the other way round.
        both_text = self.are_text and other.are_text
        shared = 0
        if self.are_named and other.are_named:
            names = mine.keys() & theirs.keys()
            shared = len(names)
            common = sum(1.0 if _agree(mine[name], theirs[name]) else 0.5 for name in names)
        elif len(mine) != len(theirs) or (self.are_named != other.are_named and not both_text):
            common = 0.0
        else:
            # Without names, only as many columns of the same types say anything.
            common = float(sum(map(_agree, mine.values(), theirs.values())))
            shared = int(common)
        return Overlap(common, len(mine), len(theirs), shared)


class Overlap(NamedTuple):
    """How many columns two schemas share, how many each has, and how many names are the same."""

    common: float
    left: int
    right: int
    names: int = 0

    @property
    def share(self) -> float:
        """The common part of all columns."""
        every = self.left + self.right - self.common
        return self.common / every if every else 1.0

    @property
    def equal(self) -> bool:
        """The same columns."""
        return self.share == 1.0

    @property
    def same(self) -> bool:
        """As good as equal."""
        return self.share >= 0.9

    @property
    def grown(self) -> bool:
        """Whether all columns of one are columns of the other, or as good as all."""
        return self.same or self.names >= min(self.left, self.right)

    @property
    def similar(self) -> bool:
        """One table for those who look at columns alone; the usual limit of crawlers."""
        return self.share > 0.7

    @property
    def alike(self) -> bool:
        """Similar, or a table before and after it got more columns."""
        smaller = min(self.left, self.right)
        return self.share >= 0.5 or (smaller >= 2 and self.common >= 0.8 * smaller)

    @property
    def related(self) -> bool:
        """Perhaps one table that changed much."""
        return self.share >= 0.2 or self.common >= 0.6 * min(self.left, self.right)


Test = Callable[[Overlap], bool]


def linked(
    items: Sequence[T], columns_of: Callable[[T], Iterable[Columns]], together: Test
) -> list[list[T]]:
    """Items in groups, in each of which every item is linked to another by a pair of schemas."""
    group_of = list(range(len(items)))

    def root(index: int) -> int:
        while group_of[index] != index:
            group_of[index] = group_of[group_of[index]]
            index = group_of[index]
        return index

    owner_of: dict[int, int] = {}
    every: list[Columns] = []
    for index, item in enumerate(items):
        for columns in columns_of(item):
            if id(columns) in owner_of:
                group_of[root(index)] = root(owner_of[id(columns)])
            else:
                owner_of[id(columns)] = index
                every.append(columns)
    for columns, other in _candidates(every, together):
        owner, other_owner = root(owner_of[id(columns)]), root(owner_of[id(other)])
        if owner != other_owner and together(columns.overlap(other)):
            group_of[owner] = other_owner
    groups: dict[int, list[T]] = {}
    for index, item in enumerate(items):
        groups.setdefault(root(index), []).append(item)
    return list(groups.values())


def _candidates(every: Sequence[Columns], together: Test) -> Iterator[tuple[Columns, Columns]]:
    """Pairs of schemas that share enough marks to pass a test.

    Whatever shares most columns with a smaller schema has some of its rarest, so that only those
    are looked up; to compare each pair would take too long where there are thousands.
    """
    by_mark: dict[object, list[int]] = {}
    for number, columns in enumerate(every):
        for mark in columns.marks:
            by_mark.setdefault(mark, []).append(number)
    named_texts: dict[int, list[Columns]] = {}
    for columns in every:
        if columns.are_named and columns.are_text:
            named_texts.setdefault(len(columns.families), []).append(columns)
    possible = lru_cache(maxsize=None)(
        lambda common, left, right: together(Overlap(common, left, right, common))
    )
    for number, columns in enumerate(every):
        width = len(columns.families)
        marks = sorted([by_mark[mark] for mark in columns.marks], key=len)
        needed = 1
        if columns.are_named:
            least = next((count for count in range(width) if possible(count, width, width)), width)
            del marks[width - least + _LOOKED_UP :]
            needed = len(marks) - (width - least)
        if columns.are_text and not columns.are_named:
            yield from ((columns, other) for other in named_texts.get(width, ()))
        for other, count in Counter(chain.from_iterable(marks)).items():
            if count >= needed and other != number:
                yield columns, every[other]


def _flat(schema: Schema) -> Iterator[tuple[str, str]]:
    for field in schema.fields:
        name = field.name.strip().casefold()
        yield name, _family(field.type)
        if isinstance(field.type, Struct):
            for member in field.type.members:
                yield f"{name}.{member.name.casefold()}", _family(member.type)


@lru_cache(maxsize=4096)
def _family(type: DataType) -> str:
    word = type.text.partition("(")[0].partition("<")[0].partition(" ")[0]
    if word == "NULL":
        return ""
    return _FAMILIES.get(word, "number" if word.startswith(("INT", "UINT")) else word)


def _agree(left: str, right: str) -> bool:
    return left == right or not left or not right
