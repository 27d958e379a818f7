"""The rules on folders: of one table, or of values, runs and dates above the same tables."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from operator import attrgetter
from typing import Final

from lumos.pipeline.grouping.agreement import have_own_columns
from lumos.pipeline.grouping.evidence import Test
from lumos.pipeline.grouping.union import one
from lumos.pipeline.grouping.units import Rule, Unit, clusters, fixed_part, kinds_of
from lumos.pipeline.grouping.values import (
    MANY_FOLDERS,
    VALUE,
    common,
    have_dates_of_their_own,
    why_once,
    why_values,
)
from lumos.pipeline.grouping.words import (
    holds_entities,
    is_value,
    tokens_of,
    words_of,
)
from lumos.pipeline.variables import TIMES, sortable

_Key = tuple[object, ...]

_DOMAIN: Final = re.compile(
    r"(?:[a-z0-9-]+\.)+(?:com|org|net|info|biz|edu|gov|app|dev|shop|[a-z]{2}|\{place\})\Z", re.ASCII
)
_SAME: Final[Test] = attrgetter("same")
_SIMILAR: Final[Test] = attrgetter("similar")
_ALIKE: Final[Test] = attrgetter("alike")
_LONGEST_SHORT: Final = 2
_SHORTEST_MARK: Final = 6


def folders_as_values(units: list[Unit]) -> list[Unit]:
    """Sibling folders with the same tables inside, where their names are values of one kind."""
    for level in _levels(units):
        alike, units = _sorted_out(units, partial(_below, level=level), _SIMILAR)
        tables = _tables_by_folder(alike, level)
        lists = {unit.folders: unit.stem for unit in units if holds_entities(unit.stem)}
        known: dict[tuple[str, ...], set[str]] = {}
        for some in sorted(alike, key=len, reverse=True):
            above = some[0].folders[:level]
            # Where a list of channels lies beside folders, these are channels.
            listed = lists.get(above, "") if len(some) > 2 else ""
            parent = listed or "".join(above[-1:])
            reason = _why_one_of_folders(some, level, parent, tables, known.get(above, set()))
            units += _joined_if(reason, some, "in sibling folders")
            if reason is not None and len(some) > 2:
                known.setdefault(above, set()).update(unit.folders[level] for unit in some)
    return units


def _levels(units: Iterable[Unit]) -> Iterable[int]:
    """The levels of folders, the deepest first."""
    return reversed(range(max((len(unit.folders) for unit in units), default=0)))


def _sorted_out(
    units: Iterable[Unit], key_of: Callable[[Unit], _Key | None], together: Test
) -> tuple[list[list[Unit]], list[Unit]]:
    """Units of one key whose columns belong together, and the units that have no key."""
    families, rest = _families(units, key_of)
    return [some for family in families for some in clusters(family, together)], rest


def _families(
    units: Iterable[Unit], key_of: Callable[[Unit], _Key | None]
) -> tuple[list[list[Unit]], list[Unit]]:
    families: dict[_Key, list[Unit]] = {}
    rest: list[Unit] = []
    for unit in units:
        key = key_of(unit)
        (rest if key is None else families.setdefault(key, [])).append(unit)
    return list(families.values()), rest


def _joined_if(reason: str | None, units: list[Unit], where: str) -> list[Unit]:
    return units if reason is None else one(units, Rule("values", f"{where}, {reason}"))


def hierarchies_as_values(units: list[Unit]) -> list[Unit]:
    """The same tables again below folders of several levels: country, region and city."""
    for level in _levels(units):
        families, units = _families(units, partial(_below_several, level=level))
        units += (unit for family in families if not _span(family, level) for unit in family)
        spread = (family for family in families if _span(family, level))
        alike = [some for family in spread for some in clusters(family, _SIMILAR)]
        spans = [_span(some, level) for some in alike]
        tables = Counter(
            (some[0].folders[:level], path)
            for some, paths in zip(alike, spans, strict=True)
            for path in set(paths)
        )
        for some, paths in zip(alike, spans, strict=True):
            above = some[0].folders[:level]
            shared = min((tables[above, path] for path in paths), default=0)
            names = _names_seen(some, level)
            reason = why_values(paths, "", some, many=(), tables=shared, names=names)
            units += _joined_if(reason, some, "below folders of several levels")
    return units


def _below_several(unit: Unit, level: int) -> _Key | None:
    if len(unit.folders) < level + 2:
        return None
    return (unit.folders[:level], len(unit.folders), unit.stem, unit.ending, unit.format)


def _names_seen(units: Iterable[Unit], level: int) -> int:
    return len(set().union(*(unit.seen(level) for unit in units)))


def _span(units: Sequence[Unit], level: int) -> list[str]:
    """The folders of several levels in which units differ; nothing where it is one level."""
    after = common([unit.folders[level:][::-1] for unit in units])
    stop = len(units[0].folders) - after
    if stop - level < 2 or len({unit.folders[level] for unit in units}) < 2:
        return []
    return ["/".join(unit.folders[level:stop]) for unit in units]


def _only_tells_time(folder: str) -> bool:
    kinds = kinds_of(folder)
    return bool(kinds) and kinds <= {*TIMES, "hive"} and not fixed_part(folder)


def _below(unit: Unit, level: int) -> _Key | None:
    """What a unit shares with those in other folders at a level."""
    if len(unit.folders) <= level or _only_tells_time(unit.folders[level]):
        return None
    own = {*words_of(unit.folders[level]), *tokens_of(unit.folders[level])}
    own |= {word.rstrip("0123456789") for word in own} - {""}
    title = tuple(word for word in unit.title if word.rstrip("0123456789") not in own)
    if len(title) < len(unit.title):
        # Beside the folder's name, GRCh38 and GRCm39 are of what it stands for too.
        title = tuple(
            word
            for word in title
            if word.isalpha() or (len(word) < _SHORTEST_MARK and not word.isdigit())
        )
    return (level, unit.folders[:level], unit.folders[level + 1 :], title, unit.ending, unit.format)


def _tables_by_folder(families: Iterable[Sequence[Unit]], level: int) -> Counter[str]:
    """How many tables each folder name at a level has in common with siblings, wherever it is."""
    return Counter(unit.folders[level] for family in families if len(family) > 1 for unit in family)


def _why_one_of_folders(
    units: list[Unit], level: int, parent: str, tables: Counter[str], known: Collection[str]
) -> str | None:
    """Why folders of a level hold one dataset; `known` are siblings that are values for sure."""
    texts = [unit.folders[level] for unit in units]
    if len(set(texts)) < len(texts) or len(texts) < 2:
        return None
    shown = ", ".join(sorted(texts)[:3])
    shared = min(tables[text] for text in texts)
    names = _names_seen(units, level)
    reason = why_values(texts, parent, units, many=MANY_FOLDERS, tables=shared, names=names)
    if reason is not None:
        return reason
    if all(text in known for text in texts) and not have_own_columns(units):
        return f"the names are values beside other tables ({shown})"
    if all(map(_DOMAIN.match, texts)):
        return f"the names are those of sites ({shown})"
    if have_dates_of_their_own(units, level):
        return f"a date and a remark name each run ({shown})"
    return None


def periods_as_values(units: list[Unit]) -> list[Unit]:
    """Sibling folders of one period each, whatever else they are called, with files for dates."""
    reason = "sibling folders hold the files of one period each"
    for level in _levels(units):
        alike, units = _sorted_out(units, partial(_below_period, level=level), _ALIKE)
        for some in alike:
            spans = sorted(_span_of_time(unit, level) for unit in some)
            are_apart = all(left[1] < right[0] for left, right in pairwise(spans))
            units += one(some, Rule("values", reason)) if are_apart else some
    return units


def _below_period(unit: Unit, level: int) -> _Key | None:
    if len(unit.folders) <= level or unit.title or not _tells_dates(unit, level):
        return None
    return (unit.folders[:level], unit.names[level + 1 :], unit.ending, unit.format)


def _tells_dates(unit: Unit, level: int) -> bool:
    return all(not TIMES.isdisjoint(kinds_of(unit.names[each])) for each in (level, -1))


def _span_of_time(unit: Unit, level: int) -> tuple[str, str]:
    """The first and the last period that folders of a unit are called after."""
    times = [
        sortable(kind, value)
        for row in unit.rows
        for path in (row.first, row.last)
        if len(path) > level
        for kind, value in zip(path[level].kinds, path[level].values, strict=True)
        if kind in TIMES
    ]
    return min(times), max(times)


def names_below_values(units: list[Unit]) -> list[Unit]:
    """Files of one schema below folders that are values, none of whose names comes twice.

    Tables are found in one folder after the other; us/ca/alameda and us/tx/travis are values.
    """
    for level in _levels(units):
        alike, units = _sorted_out(units, partial(_below_values, level=level), _SAME)
        for some in alike:
            units += _joined_if(why_once(some), some, "below folders that are values")
    return units


def _below_values(unit: Unit, level: int) -> _Key | None:
    if len(unit.folders) <= level or not all(map(_varies, unit.folders[level:])):
        return None
    return (unit.folders[:level], unit.ending, unit.format)


def ragged(units: list[Unit]) -> list[Unit]:
    """One table below folders that are values, of more levels here than there."""
    reason = "the table lies below folders that are values, of one level or several"
    alike, found = _sorted_out(units, _table_below_values, _SIMILAR)
    for some in alike:
        is_ragged = len({len(unit.folders) for unit in some}) > 1
        found += one(some, Rule("values", reason)) if is_ragged else some
    return found


def _table_below_values(unit: Unit) -> _Key:
    depth = len(unit.folders)
    while depth and _varies(unit.folders[depth - 1]):
        depth -= 1
    return (unit.folders[:depth], unit.stem, unit.ending, unit.format)


@lru_cache(maxsize=65536)
def _varies(folder: str) -> bool:
    is_short = len(folder) <= _LONGEST_SHORT and folder.isalnum()
    is_known = VALUE.match(folder) is not None or is_value(folder.lower())
    return is_short or is_known or _only_tells_time(folder)


def same_address(units: list[Unit]) -> list[Unit]:
    """Files of one folder and name, whether in date folders of one form, another or none."""
    reason = "below one folder, the files differ only in dates, numbers or runs"
    alike, _ = _sorted_out(units, _address, _ALIKE)
    return [unit for some in alike for unit in one(some, Rule("pattern", reason))]


def _address(unit: Unit) -> _Key:
    return (unit.address, unit.title, unit.ending if unit.title else "", unit.format)
