"""Files that are one dataset as far as is known, and what their names say."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Final, NamedTuple

from lumos.pipeline.grouping.evidence import Columns, Test, linked
from lumos.pipeline.grouping.words import (
    FOLDER_NOISE,
    is_nameless,
    is_noise,
    tokens_of,
    words_of,
)
from lumos.pipeline.summaries import PlaceSummary
from lumos.pipeline.variables import TIMES, Template

# A brace of a name itself is no placeholder.
PLACEHOLDER: Final = re.compile(r"\{((?!open\}|close\})[a-z-]+)\}")
HIVE: Final = "={hive}"
# What is said of a copy: orders 2024 (until May).
_REMARK: Final = re.compile(r"\([^()]*\)")
_AROUND_VALUES: Final = re.compile(r"[\W_]*\0[\W_\0]*")


class Rule(NamedTuple):
    """Which rule decided, and why in words."""

    name: str
    reason: str


class Row(NamedTuple):
    """Files of one place and schema, with the first and last of them taken apart."""

    place: PlaceSummary
    columns: Columns
    first: tuple[Template, ...]
    last: tuple[Template, ...]


class Position(NamedTuple):
    """A placeholder: in which name of a path, which of that name's, and of what kind.

    Of the kind `letters` are the letters that an id begins with, which may tell tables apart.
    """

    name: int
    number: int
    kind: str

    def values(self, rows: Iterable[Row]) -> set[str]:
        """What the first and last files of some rows have there."""
        return {self.value(path) for row in rows for path in (row.first, row.last)}

    def value(self, path: Sequence[Template]) -> str:
        """What stands there in a path."""
        values = path[self.name].values
        value = values[self.number] if len(values) > self.number else ""
        return "".join(takewhile(str.isalpha, value)) if self.kind == "letters" else value

    def constant(self, path: Sequence[Template]) -> str:
        """What stands there in the name of a unit in which it never varies."""
        value = self.value(path)
        return f"{value}{{id}}" if self.kind == "letters" else value


@dataclass(eq=False)
class Unit:
    """Files that are one dataset as far as is known; the last of `names` is the file's.

    `shown` are the names most files have, where `names` are made to fit all.
    """

    names: tuple[str, ...]
    ending: str
    format: str
    rows: list[Row]
    rules: list[Rule] = field(default_factory=list)
    fixed: frozenset[Position] = frozenset()
    shown: tuple[str, ...] = ()

    @property
    def usual(self) -> tuple[str, ...]:
        """The names as most files have them."""
        return self.shown or self.names

    @property
    def folders(self) -> tuple[str, ...]:
        return self.names[:-1]

    @property
    def stem(self) -> str:
        return self.names[-1]

    @property
    def files(self) -> int:
        return sum(row.place.file_count for row in self.rows)

    @property
    def columns(self) -> list[Columns]:
        """Every schema of its files."""
        return [row.columns for row in self.rows]

    @cached_property
    def title(self) -> tuple[str, ...]:
        """The words that name a table in the file's name; none where only a writer named it."""
        return _title(self.stem, self.parent)

    @cached_property
    def parent(self) -> str:
        """The nearest folder that is no value, nor a number."""
        fixed = map(fixed_part, reversed(self.folders))
        return next((each for each in fixed if words_of(each)), "")

    def seen(self, index: int) -> set[str]:
        """What folders or files are called at one place of the path, whatever their dates."""
        paths = (path for row in self.rows for path in (row.first, row.last))
        return {_undated(path[index]) for path in paths if len(path) > index}

    @cached_property
    def address(self) -> tuple[str, ...]:
        """The folders without values, as a path to the dataset."""
        return tuple(filter(None, map(fixed_part, self.folders)))


def has_values(text: str) -> bool:
    """Whether a name varies."""
    return PLACEHOLDER.search(text) is not None


def has_words(text: str) -> bool:
    """Whether a name says something beside values."""
    return bool(words_of(PLACEHOLDER.sub(" ", text)))


@lru_cache(maxsize=65536)
def kinds_of(text: str) -> frozenset[str]:
    """The kinds of all placeholders of a name."""
    return frozenset(PLACEHOLDER.findall(text))


@lru_cache(maxsize=65536)
def fixed_part(folder: str) -> str:
    """What a folder's name says beside values: `sensor` for `sensor_{n}`, nothing for `run_{n}`."""
    if not has_values(folder):
        return folder
    if folder.endswith(HIVE):
        return ""
    text = without_values(folder)
    tokens = words_of(text)
    return "" if not tokens or FOLDER_NOISE.issuperset(tokens) else text


def without_values(text: str) -> str:
    """A template's literal text, with what separated it from values taken off."""
    plain = _AROUND_VALUES.sub("\0", PLACEHOLDER.sub("\0", text)).strip("\0")
    return plain.replace("\0", "_").strip(" -_.+#()[]")


def clusters(units: Sequence[Unit], together: Test) -> list[list[Unit]]:
    """Units linked by columns that belong together."""
    return linked(units, lambda unit: unit.columns, together) if len(units) > 1 else [list(units)]


def _undated(template: Template) -> str:
    values = iter(template.values)
    return re.sub(
        r"\{([a-z-]+)\}",
        lambda match: (
            (match[0], value)[match[1] not in TIMES]
            if (value := next(values, None)) is not None
            else match[0]
        ),
        template.text,
    )


def _title(stem: str, folder: str) -> tuple[str, ...]:
    plain = _REMARK.sub(" ", stem)
    if has_values(plain) and has_words(plain):
        stem = plain
    tokens = tokens_of(PLACEHOLDER.sub(" ", stem))
    named = tuple(token for token in tokens if not is_noise(token))
    if not has_values(stem) and not named:
        named = () if tokens and all(map(is_nameless, tokens)) else tokens or (stem,)
    return () if _singular(named) == _singular(tokens_of(folder)) else named


def _singular(tokens: Iterable[str]) -> list[str]:
    return [token.rstrip("s") for token in tokens]
