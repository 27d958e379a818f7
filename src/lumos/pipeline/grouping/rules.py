"""The rules that join units into datasets, in the order in which they are asked."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from lumos.pipeline.grouping.agreement import have_same_columns
from lumos.pipeline.grouping.folders import (
    folders_as_values,
    hierarchies_as_values,
    names_below_values,
    periods_as_values,
    ragged,
    same_address,
)
from lumos.pipeline.grouping.union import one
from lumos.pipeline.grouping.units import HIVE, Rule, Unit, clusters, has_values, kinds_of
from lumos.pipeline.grouping.values import (
    MANY_FILES,
    PIECES,
    VALUE,
    have_dates_of_their_own,
    why_values,
)
from lumos.pipeline.grouping.words import looks_like_table
from lumos.pipeline.placement import ANY_NAME
from lumos.pipeline.variables import TIMES, sizes_of

_BETWEEN_WORDS: Final = re.compile(r"[^0-9A-Za-z{}]+(?![a-z-]*\})", re.ASCII)
# Two tables and two names, one of which stands for several.
_FEWEST_CROSSED: Final = 4
_RANDOM: Final = frozenset({"uuid", "hash", "id"})


def joined(units: Sequence[Unit]) -> list[Unit]:
    """The datasets that units make up."""
    found = list(units)
    for rule in (_same_name, _partitions, _machine_names, _names_as_values):
        found = _by_folder(found, rule)
    # Before and after, since folders that hold runs are no values, and values join what is below.
    for step in (
        same_address,
        names_below_values,
        folders_as_values,
        hierarchies_as_values,
        ragged,
        periods_as_values,
        same_address,
    ):
        found = step(found)
    return found


def _by_folder(units: Iterable[Unit], rule: Callable[[list[Unit]], Iterator[Unit]]) -> list[Unit]:
    folders: dict[tuple[tuple[str, ...], str], list[Unit]] = {}
    for unit in units:
        folders.setdefault((unit.folders, unit.format), []).append(unit)
    return [unit for some in folders.values() for unit in rule(some)]


def _same_name(units: list[Unit]) -> Iterator[Unit]:
    """Files of one table name, whatever dates, numbers or marks of a copy stand beside it."""
    by_title: dict[tuple[tuple[str, ...], str], list[Unit]] = {}
    for unit in units:
        by_title.setdefault((unit.title, unit.ending if unit.title else ""), []).append(unit)
    for (title, _), some in by_title.items():
        if not title:
            counted = [unit for unit in some if _is_counted(unit)]
            others = [unit for unit in some if not _is_counted(unit)]
            some = [*one(counted, Rule("pattern", "only a writer named the files")), *others]
        reason = f"the files are called {' '.join(title)}" if title else "the files have no name"
        for cluster in clusters(some, lambda pair: pair.alike):
            yield from one(cluster, Rule("name", f"{reason} and have the same columns"))


def _is_counted(unit: Unit) -> bool:
    if unit.stem == ANY_NAME or any(rule.name == "unrelated" for rule in unit.rules):
        return False
    return has_values(unit.stem) or unit.stem[-1:].isdigit()


def _partitions(units: list[Unit]) -> Iterator[Unit]:
    """In folders of `key=value` all files of one schema are one table."""
    if not any(folder.endswith(HIVE) for folder in units[0].folders):
        yield from units
        return
    reason = "the files lie in partition folders and have the same columns"
    for cluster in clusters(units, lambda pair: pair.alike):
        tables = _tables_of_partitions(cluster)
        yield from tables
        others = [unit for unit in cluster if unit not in tables]
        yield from one(others, Rule("partitions", reason))


def _tables_of_partitions(units: list[Unit]) -> list[Unit]:
    """Those whose names stand in one partition after the other, if they are names of tables."""
    again = [unit for unit in units if unit.title and unit.files > 1 and not has_values(unit.stem)]
    if len(again) < 2 or why_values([unit.stem for unit in again], "", again) is not None:
        return []
    are_named = all(looks_like_table(unit.stem) for unit in again)
    are_apart = len(clusters(again, lambda pair: pair.similar)) == len(again)
    return again if are_named or are_apart else []


def _machine_names(units: list[Unit]) -> Iterator[Unit]:
    """Names with random ids are no table names, so that columns alone decide."""
    stamped = [unit for unit in units if kinds_of(unit.stem) & _RANDOM and _is_dated(unit)]
    if len(stamped) < 2:
        yield from units
        return
    yield from (unit for unit in units if unit not in stamped)
    reason = "the names were made by a machine and the columns are the same"
    for cluster in clusters(stamped, lambda pair: pair.same):
        names = [" ".join(unit.title) for unit in cluster]
        are_tables = 2 * sum(map(looks_like_table, names)) > len(names)
        yield from cluster if are_tables else one(cluster, Rule("pattern", reason))


def _is_dated(unit: Unit) -> bool:
    return any(kinds_of(name) & TIMES for name in unit.names)


def _names_as_values(units: list[Unit]) -> Iterator[Unit]:
    """Files of one schema whose names are values: cities, people, or just very many."""
    alike = [
        some for cluster in clusters(units, lambda pair: pair.similar) for some in _by_size(cluster)
    ]
    grid = _Grid(alike) if len(alike) > 1 else None
    for cluster in alike:
        left = dict.fromkeys(cluster)
        repeated = () if grid is None else grid.families(cluster)
        for family in (*_families(cluster), *repeated):
            some = [unit for unit in family.units if unit in left]
            texts = [unit.stem for unit in some]
            reason = why_values(
                texts,
                units[0].parent,
                some,
                many=family.many,
                tables=family.tables,
                names=family.names,
            )
            if reason is None and len(some) > 2 and _are_of_their_days(some):
                reason = "a date and a remark name each file"
            if reason is not None:
                for unit in some:
                    del left[unit]
                yield from one(some, Rule("values", reason))
        yield from left


def _are_of_their_days(units: Sequence[Unit]) -> bool:
    """Whether files of one table begin with dates of their own: 2024-02-17 - Opening night."""
    return have_dates_of_their_own(units, -1) and have_same_columns(units)


def _by_size(units: list[Unit]) -> Iterable[list[Unit]]:
    """Units of other sizes apart, where all tell one: those of 1gram from those of 2gram."""
    sizes: dict[tuple[str, ...], list[Unit]] = {}
    for unit in units:
        sizes.setdefault(sizes_of(unit.stem), []).append(unit)
    return [units] if () in sizes else sizes.values()


class _Family(NamedTuple):
    """Units whose names may be values, and what is known of that.

    `tables` tells how many tables have such names, `names` how many names it are, if that is
    known, and `many` how many are enough.
    """

    units: list[Unit]
    tables: int = 1
    names: int = 0
    many: Sequence[tuple[int, float]] = MANY_FILES


def _families(units: list[Unit]) -> Iterator[_Family]:
    """All units, then those that differ in one word only, the largest families first."""
    crossed = _crossed(units)
    yield _Family(units, many=() if crossed else MANY_FILES)
    yield from crossed
    if len(units) > 2:
        families: dict[tuple[str, ...], list[Unit]] = {}
        for unit in units:
            pieces = PIECES.findall(unit.stem)
            for index, piece in enumerate(pieces):
                if piece[0].isalpha() or VALUE.match(piece):
                    key = (*pieces[:index], ANY_NAME, *pieces[index + 1 :])
                    families.setdefault(key, []).append(unit)
        yield from map(_Family, sorted(families.values(), key=len, reverse=True))


def _crossed(units: Sequence[Unit]) -> list[_Family]:
    """Families of names where each of a few words stands beside each of more, which are values."""
    heads: dict[tuple[str, bool], dict[str, Unit]] = {}
    for unit in units if len(units) >= _FEWEST_CROSSED else ():
        for head, tail, is_first in _halves(unit.stem):
            heads.setdefault((head, is_first), {})[tail] = unit
    tables: dict[tuple[frozenset[str], bool], list[dict[str, Unit]]] = {}
    for (_, is_first), family in heads.items():
        tables.setdefault((frozenset(family), is_first), []).append(family)
    for families in tables.values():
        if len(families) > 1 and len(families) * len(families[0]) == len(units):
            names = min(sum(_count(*each) for each in family.items()) for family in families)
            if len(families) < names and len(clusters(units, lambda pair: pair.same)) == 1:
                return [_Family(list(each.values()), len(families), names) for each in families]
    return []


class _Grid:
    """Names of two parts, where the same second ones stand beside several first ones.

    In meta_books, meta_toys, reviews_books and reviews_toys, books and toys are values, if the
    files called meta have the same columns, and those called reviews have others.
    """

    def __init__(self, alike: Sequence[Sequence[Unit]]) -> None:
        self._names: dict[tuple[int, str, bool], dict[str, Unit]] = {}
        self._with: dict[tuple[str, bool], set[tuple[int, str, bool]]] = {}
        self._number_of = {id(unit): index for index, some in enumerate(alike) for unit in some}
        for unit in (unit for some in alike for unit in some):
            for head, tail, is_first in _halves(unit.stem):
                key = (self._number_of[id(unit)], head, is_first)
                self._names.setdefault(key, {})[tail] = unit
                self._with.setdefault((tail, is_first), set()).add(key)

    def families(self, cluster: Sequence[Unit]) -> Iterator[_Family]:
        """Units that differ in values which stand beside other tables too."""
        number = self._number_of[id(cluster[0])]
        for key, names in self._names.items():
            weights = {tail: _count(tail, unit) for tail, unit in names.items()}
            total = sum(weights.values())
            if key[0] == number and total > 2:
                others: Counter[tuple[int, str, bool]] = Counter()
                for tail, weight in weights.items():
                    for other in self._with[tail, key[2]]:
                        if other[0] != number:
                            others[other] += weight
                tables = sum(2 * count > total and count > 2 for count in others.values())
                if tables:
                    yield _Family(list(names.values()), 1 + tables, total)


def _count(tail: str, unit: Unit) -> int:
    """How many names a part of one stands for: those of baseline_{n} are several."""
    return len(unit.seen(len(unit.names) - 1)) if "{n}" in tail else 1


def _halves(stem: str) -> Iterator[tuple[str, str, bool]]:
    """Each way to divide a name in two, either of which may name a table."""
    for match in _BETWEEN_WORDS.finditer(stem):
        first, last = stem[: match.start()], stem[match.end() :]
        if first and last:
            yield first, last, True
            yield last, first, False
