"""Units taken apart where values go along with columns that do not belong together."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lumos.pipeline.grouping.evidence import Test, linked
from lumos.pipeline.grouping.units import Position, Row, Rule, Unit, fixed_part, has_words
from lumos.pipeline.grouping.words import (
    KINDS,
    NOISE,
    TABLE_KEYS,
    VERSIONS,
)
from lumos.pipeline.placement import CALENDAR
from lumos.pipeline.variables import TIMES, Template, template_of

# So many values at least must have columns of their own where only that tells tables apart.
_FEWEST_OWN: Final = 3
_MOST: Final = frozenset({"table", "own"})
_RANDOM_NAMES: Final = frozenset({"{uuid}", "{hash}", "{id}", "{n}"})
_SHORT_NUMBER: Final = re.compile(r"\d{1,2}\Z", re.ASCII)
_LONGEST_CODE: Final = 3


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


def apart(unit: Unit) -> Iterator[Unit]:
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
        "own": lambda pair: pair.grown,
        "random": lambda pair: pair.similar,
        "name": lambda pair: pair.similar or pair.common == min(pair.left, pair.right),
        "word": lambda pair: pair.alike,
        "table": lambda pair: pair.share >= 0.5,
        "key": lambda pair: pair.share >= 0.2,
        "number": lambda pair: pair.related,
    }
    strengths = {each: _strength(unit, each) for each in positions}
    for strength, test in tests.items():
        usable = [each for each in positions if strengths[each] == strength]
        groups = _linked(unit.rows, test) if usable else together
        if len(groups) > 1:
            for position in usable:
                values = [position.values(rows) for rows in groups]
                if _are_disjoint(values) and _suffices(strength, values):
                    # Where most values name a table, each of them does.
                    each = strength in _MOST and 2 * len(groups) > sum(map(len, values))
                    return (_by_value(unit.rows, position) if each else groups), position
    return together, None


def _suffices(strength: str, values: Sequence[set[str]]) -> bool:
    """Whether there are enough groups of values to say that these name tables."""
    if strength == "own":
        return len(values) >= _FEWEST_OWN and 2 * len(values) > sum(map(len, values))
    if strength == "random":
        return len(values) >= _FEWEST_OWN and max(map(len, values)) == 1
    return True


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
    is_repeated = _is_repeated(unit, position)
    if (_is_code(unit, position) or is_repeated) and _is_told_again(unit, position):
        return "name"
    if is_repeated:
        return "own"
    is_file = position.name == len(unit.names) - 1
    if is_file and unit.stem in _RANDOM_NAMES and position.kind != "letters":
        return "random"
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
    if position.kind == "n" and _is_told_again(unit, position):
        return "number"
    return {"id": "word", "n": "number"}.get(position.kind, "") if _is_named(unit) else ""


def _is_named(unit: Unit) -> bool:
    """Whether files are called after something: a word, or a code that is the same everywhere."""
    last = len(unit.names) - 1
    return bool(unit.title) or any(
        position.name == last and position.kind == "code" and len(position.values(unit.rows)) == 1
        for position in _positions(unit)
    )


def _is_code(unit: Unit, position: Position) -> bool:
    """Whether the values may be codes of tables: in capitals, files' ids, or a few letters."""
    if position.kind in ("place", "currency"):
        return all(len(value) <= _LONGEST_CODE for value in position.values(unit.rows))
    is_file = position.name == len(unit.names) - 1
    return position.kind == "code" or (position.kind == "id" and is_file)


def _is_repeated(unit: Unit, position: Position) -> bool:
    """Whether a number or an id of a file's name is one of its folder too, as a product's is."""
    if position.kind not in ("n", "id") or position.name < len(unit.names) - 1:
        return False
    return any(
        other.kind == position.kind
        and other.name < position.name
        and all(
            other.value(path) == position.value(path)
            for row in unit.rows
            for path in (row.first, row.last)
        )
        for other in _positions(unit)
    )


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
    values = [position.values(rows) for rows in groups]
    are_told = any(len(each) == 1 for each in values) and len(set().union(*values)) > 1
    return are_told and bool(_strength(unit, position))


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
