"""Places taken together where their paths differ only in values, and apart where columns say so."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Final, NamedTuple, Protocol

from lumos.model.schema import Schema
from lumos.pipeline.grouping.evidence import Columns, Test, linked
from lumos.pipeline.grouping.words import (
    FOLDER_NOISE,
    KINDS,
    NOISE,
    TABLE_KEYS,
    VERSIONS,
    is_nameless,
    is_noise,
    known_words,
    tokens_of,
    words_of,
)
from lumos.pipeline.placement import ANY_NAME, CALENDAR, dissect
from lumos.pipeline.summaries import PlaceSummary
from lumos.pipeline.variables import TIMES, Template, template_of

# A brace of a name itself is no placeholder.
PLACEHOLDER: Final = re.compile(r"\{((?!open\}|close\})[a-z-]+)\}")
HIVE: Final = "={hive}"
_SHORT_NUMBER: Final = re.compile(r"\d{1,2}\Z", re.ASCII)
_LONGEST_CODE: Final = 3
_AROUND_VALUES: Final = re.compile(r"[\W_]*\0[\W_\0]*")


class SchemasByPrint(Protocol):
    """Schemas by their full fingerprint."""

    def __getitem__(self, full: str, /) -> Schema: ...


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
        """The nearest folder that is no value."""
        return next((fixed for each in reversed(self.folders) if (fixed := fixed_part(each))), "")

    @cached_property
    def address(self) -> tuple[str, ...]:
        """The folders without values, as a path to the dataset."""
        return tuple(filter(None, map(fixed_part, self.folders)))


def units_of(places: Iterable[PlaceSummary], schemas: SchemasByPrint, *, root: str) -> list[Unit]:
    """Places of one pattern together, unless their columns show that the values name tables."""
    columns = _ColumnsOf(schemas)
    rows: dict[tuple[tuple[str, ...], str, str], list[Row]] = {}
    for place in places:
        first, ending = _taken_apart(place.first_path, place.pattern, root)
        last, _ = _taken_apart(place.last_path, place.pattern, root)
        names = tuple(template.text for template in first)
        row = Row(place, columns[place.full], first, last)
        rows.setdefault((names, ending, place.format), []).append(row)
    return [
        unit
        for (names, ending, format), some in rows.items()
        for unit in _apart(Unit(names, ending, format, some))
    ]


class _ColumnsOf:
    """Columns by a schema's fingerprint; equal ones are one object."""

    def __init__(self, schemas: SchemasByPrint) -> None:
        self._schemas = schemas
        self._known: dict[str, Columns] = {}
        self._equal: dict[tuple[str, ...], Columns] = {}

    def __getitem__(self, full: str) -> Columns:
        if full not in self._known:
            columns = Columns.of(self._schemas[full])
            key = (*columns.families, *columns.families.values())
            self._known[full] = self._equal.setdefault(key, columns)
        return self._known[full]


def has_values(text: str) -> bool:
    """Whether a name varies."""
    return PLACEHOLDER.search(text) is not None


def has_words(text: str) -> bool:
    """Whether a name says something beside values."""
    return bool(words_of(PLACEHOLDER.sub(" ", text)))


def kinds_of(text: str) -> set[str]:
    """The kinds of all placeholders of a name."""
    return set(PLACEHOLDER.findall(text))


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


def _taken_apart(path: str, pattern: str, root: str) -> tuple[tuple[Template, ...], str]:
    folders, stem, ending = dissect(path, root)
    names = [*folders, stem]
    if ANY_NAME in pattern:
        # Of a crowd any name stands there, whatever the first one is.
        for index, name in enumerate(pattern.split("/")[::-1], start=1):
            if name.startswith(ANY_NAME):
                names[-index] = Template.of_one("name", names[-index].text)
    return tuple(map(_with_words, names)), ending


@lru_cache(maxsize=65536)
def _with_words(template: Template) -> Template:
    """Words of a known kind, such as months and places, become values too."""
    if template.kinds == ("hive",) or template.kinds == ("name",):
        return template
    pieces: list[str] = []
    kinds: list[str] = []
    values: list[str] = []
    known = iter(template.values)
    parts = re.split(r"(\{[a-z-]+\})", template.text)
    for index, piece in enumerate(parts):
        if index % 2:
            pieces.append(piece)
            kinds.append(piece[1:-1])
            values.append(next(known))
            continue
        end = 0
        for kind, start, stop in known_words(piece):
            # In ga4 no state is meant.
            if (index and not start) or (index + 1 < len(parts) and stop == len(piece)):
                continue
            pieces += (piece[end:start], f"{{{kind}}}")
            kinds.append(kind)
            values.append(piece[start:stop])
            end = stop
        pieces.append(piece[end:])
    return Template("".join(pieces), tuple(kinds), tuple(values))


def _positions(unit: Unit) -> list[Position]:
    found = [
        Position(index, number, kind)
        for index, template in enumerate(unit.rows[0].first)
        for number, kind in enumerate(template.kinds)
    ]
    last = len(unit.names) - 1
    letters = (
        each._replace(kind="letters") for each in found if each.kind == "id" and each.name == last
    )
    return [*letters, *found]


def _apart(unit: Unit) -> Iterator[Unit]:
    """The unit, or several where values go along with columns that do not belong together."""
    positions = _positions(unit)
    for position in positions:
        if position.kind == "split" and not _are_splits(unit, position):
            for value in sorted(position.values(unit.rows)):
                rows = [row for row in unit.rows if value in position.values([row])]
                fixed = unit.fixed | {position}
                part = Unit(unit.names, unit.ending, unit.format, rows, unit.rules, fixed)
                yield from _apart_by_columns(part, positions)
            return
    yield from _apart_by_columns(unit, positions)


def _are_splits(unit: Unit, position: Position) -> bool:
    values = {value.lower() for value in position.values(unit.rows)}
    if len(values) == 1:
        return True
    # A file called train.csv is a table; a folder, or train-00000-of-00004, is a part of one.
    is_part = position.name < len(unit.names) - 1 or "{n}-of-{n}" in unit.stem
    is_training = any(value.startswith("train") for value in values)
    return is_part and is_training and len(_linked(unit.rows, lambda pair: pair.equal)) == 1


def _apart_by_columns(unit: Unit, positions: Sequence[Position]) -> Iterator[Unit]:
    groups, told_by = _ways_apart(unit, positions)
    if told_by is None:
        yield _with_constants(unit, positions)
        return
    telling = [each for each in positions if _tells(each, groups, unit)]
    for rows in groups:
        told = _text(rows[0].first, told_by.name, {told_by})
        rule = Rule("unrelated", f"the columns of {told} have little in common with the others'")
        fixed = unit.fixed | {each for each in telling if len(each.values(rows)) == 1}
        part = Unit(unit.names, unit.ending, unit.format, rows, [*unit.rules, rule], fixed)
        yield _with_constants(part, positions)


def _ways_apart(
    unit: Unit, positions: Sequence[Position]
) -> tuple[list[list[Row]], Position | None]:
    """Rows whose columns do not belong together, if the values at some position tell them apart."""
    together = [unit.rows]
    if len({id(row.columns) for row in unit.rows}) == 1:
        return together, None
    tests: dict[str, Test] = {
        "name": lambda pair: pair.similar or pair.common == min(pair.left, pair.right),
        "word": lambda pair: pair.alike,
        "table": lambda pair: pair.share >= 0.5,
        "key": lambda pair: pair.share >= 0.2,
        "number": lambda pair: pair.related,
    }
    for strength, test in tests.items():
        usable = [each for each in positions if _strength(unit, each) == strength]
        groups = _linked(unit.rows, test) if usable else together
        if len(groups) > 1:
            for position in usable:
                values = [position.values(rows) for rows in groups]
                if _are_disjoint(values):
                    # Where most values name a table, each of them does.
                    each = strength == "table" and 2 * len(groups) > sum(map(len, values))
                    return (_by_value(unit.rows, position) if each else groups), position
    return together, None


def _by_value(rows: Sequence[Row], position: Position) -> list[list[Row]]:
    """Rows that share a value at a position together."""
    groups: list[tuple[set[str], list[Row]]] = []
    for row in rows:
        values, some = position.values([row]), [row]
        for known in [each for each in groups if not values.isdisjoint(each[0])]:
            groups.remove(known)
            values, some = values | known[0], [*known[1], *some]
        groups.append((values, some))
    return [some for _, some in groups]


def _linked(rows: Sequence[Row], together: Test) -> list[list[Row]]:
    return linked(rows, lambda row: (row.columns,), together)


def _strength(unit: Unit, position: Position) -> str:
    """What kind of evidence the values at a position are; none where they only tell time."""
    if position in unit.fixed:
        return ""
    if _is_code(unit, position) and _is_told_again(unit, position):
        return "name"
    is_word = position.kind in KINDS or position.kind in ("code", "letters")
    if is_word or _is_weak_number(unit, position):
        return "word"
    if position.kind == "hive":
        key = unit.names[position.name].partition("=")[0].lower()
        times = (template_of(value).kinds for value in position.values(unit.rows))
        if key in CALENDAR or any(not TIMES.isdisjoint(kinds) for kinds in times):
            return ""
        return "table" if key in TABLE_KEYS else "key"
    if position.name < len(unit.names) - 1:
        is_run = has_words(unit.names[position.name]) and not fixed_part(unit.names[position.name])
        return "number" if position.kind == "n" and not is_run else ""
    return {"id": "word", "n": "number"}.get(position.kind, "") if unit.title else ""


def _is_code(unit: Unit, position: Position) -> bool:
    """Whether the values may be codes of tables: in capitals, files' ids, or a few letters."""
    if position.kind in ("place", "currency"):
        return all(len(value) <= _LONGEST_CODE for value in position.values(unit.rows))
    is_file = position.name == len(unit.names) - 1
    return position.kind == "code" or (position.kind == "id" and is_file)


def _is_told_again(unit: Unit, position: Position) -> bool:
    """Whether each of a few codes stands in several paths, as those of tables do."""
    return all(row.place.file_count > 1 and len(position.values([row])) == 1 for row in unit.rows)


def _is_weak_number(unit: Unit, position: Position) -> bool:
    """A number that is part of a word, as in table1 or v2, or a folder's short name."""
    if position.kind != "n":
        return False
    text = unit.rows[0].first[position.name].text
    if text == "{n}":
        is_folder = position.name < len(unit.names) - 1
        return is_folder and all(map(_SHORT_NUMBER.match, position.values(unit.rows)))
    before = re.split(r"\{[a-z-]+\}", text)[position.number].lower()
    is_part = len(before) > 1 and before in NOISE and before not in VERSIONS
    return bool(before) and before[-1].isalpha() and not is_part


def _is_inner_number(unit: Unit, position: Position) -> bool:
    """A short number before more words, as in covid_19_reports, or a version such as v1.0."""
    template = unit.rows[0].first[position.name]
    pieces = re.split(r"\{[a-z-]+\}", template.text)
    before, after = pieces[position.number], pieces[position.number + 1]
    is_version = after == "." or (before == "." and not after)
    is_inner = any(map(str.isalpha, after)) and any(map(str.isalpha, before))
    is_short = len(template.values[position.number]) <= 3
    return position.kind == "n" and is_short and (is_inner or is_version)


def _is_of_folder(unit: Unit, position: Position) -> bool:
    """A number in the name of a folder that says more than which run or part it is of."""
    folder = unit.rows[0].first[position.name].text
    is_folder = position.name < len(unit.names) - 1
    return position.kind == "n" and is_folder and bool(fixed_part(folder))


def _are_disjoint(sets: Sequence[set[str]]) -> bool:
    return len(set().union(*sets)) == sum(map(len, sets))


def _tells(position: Position, groups: Sequence[Sequence[Row]], unit: Unit) -> bool:
    """Whether the values at a position are constant in some groups and others elsewhere."""
    if not _strength(unit, position):
        return False
    values = [position.values(rows) for rows in groups]
    return any(len(each) == 1 for each in values) and len(set().union(*values)) > 1


def _with_constants(unit: Unit, positions: Sequence[Position]) -> Unit:
    """Values that never vary are part of a name: `us` where there is no other country."""
    last = len(unit.names) - 1
    fixed = unit.fixed | {
        position
        for position in positions
        if len(position.values(unit.rows)) == 1
        and (
            position.kind in KINDS
            or position.kind == "code"
            or _is_weak_number(unit, position)
            or _is_inner_number(unit, position)
            or _is_of_folder(unit, position)
            or (position.kind == "id" and position.name == last and unit.files == 1)
            or (position.kind == "hash" and len(position.value(unit.rows[0].first)) <= 4)
        )
    }
    names = tuple(_text(unit.rows[0].first, index, fixed) for index in range(len(unit.names)))
    return Unit(names, unit.ending, unit.format, unit.rows, unit.rules, frozenset(fixed))


def _text(path: Sequence[Template], index: int, fixed: Iterable[Position]) -> str:
    """A name of a path with what stands at some positions, and placeholders elsewhere."""
    template = path[index]
    constant = {each.number: each.constant(path) for each in sorted(fixed) if each.name == index}
    pieces = re.split(r"\{[a-z-]+\}", template.text)
    text = pieces[0]
    for number, kind in enumerate(template.kinds):
        text += constant.get(number, f"{{{kind}}}") + pieces[number + 1]
    return text


def _title(stem: str, folder: str) -> tuple[str, ...]:
    tokens = tokens_of(PLACEHOLDER.sub(" ", stem))
    named = tuple(token for token in tokens if not is_noise(token))
    if not has_values(stem) and not named:
        named = () if tokens and all(map(is_nameless, tokens)) else tokens or (stem,)
    return () if _singular(named) == _singular(tokens_of(folder)) else named


def _singular(tokens: Iterable[str]) -> list[str]:
    return [token.rstrip("s") for token in tokens]
