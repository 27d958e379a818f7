"""The rules that join units into datasets, in the order in which they are asked."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from lumos.pipeline.grouping.units import (
    HIVE,
    Rule,
    Unit,
    clusters,
    fixed_part,
    has_values,
    kinds_of,
)
from lumos.pipeline.grouping.words import (
    DAYTIMES,
    OF_LOOKUPS,
    OF_TABLES,
    STAGES,
    holds_entities,
    is_total,
    is_value,
    looks_like_table,
    names_entity,
    words_of,
)
from lumos.pipeline.placement import ANY_NAME
from lumos.pipeline.variables import TIMES

PIECES: Final = re.compile(r"\{[a-z-]+\}|[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|.", re.DOTALL)
_CODE: Final = re.compile(r"[A-Z]{1,8}(?:[.-][A-Z]{1,4})?(?:\d{1,4}|\{n\})?\Z", re.ASCII)
_SHORT: Final = re.compile(r"[a-z]{2,3}\Z", re.ASCII)
_ONE_WORD: Final = re.compile(r"(?:[0-9A-Za-z]|\{[a-z-]+\})+\Z", re.ASCII)
_SIZE: Final = re.compile(r"(?:sf\d+|\d{1,4}(?:[kmbghdwy]|min|mo|km|mb|gb|hz))\Z", re.IGNORECASE)
_SHORT_VALUE: Final = re.compile(r"\w{1,3}\Z", re.ASCII)
_VALUE: Final = re.compile(r"\{(?:place|code|id|uuid|hash|n|region|name)\}\Z")
# 1.4.0 beside 1.5.0-rc1, and pt-BR beside de.
_VERSION: Final = re.compile(
    r"v?(?:\d+|\{n\})(?:\.(?:\d+|\{n\}))+(?:[-.+]?[A-Za-z]+(?:[.-]?(?:\d+|\{n\}))?)?\Z", re.ASCII
)
_LOCALE: Final = re.compile(r"[a-z]{2}[-_](?:[A-Z]{2}|[A-Z][a-z]{3})\Z", re.ASCII)
_DOMAIN: Final = re.compile(
    r"(?:[a-z0-9-]+\.)+(?:com|org|net|info|biz|edu|gov|app|dev|shop|[a-z]{2}|\{place\})\Z", re.ASCII
)
_STARTING_DATE: Final = re.compile(r"\{(?:date|time|yyyy-mm|yyyy|week|quarter)\}")
_BETWEEN_WORDS: Final = re.compile(r"[-_. ]+")
# So many values for sure take in one name that may be anything.
_FEW_STRAYS: Final = 5
_RANDOM: Final = frozenset({"uuid", "hash", "id"})
# So many names of equal tables are values, if at most that share of them look like tables' names.
_MANY_FILES: Final = ((4, 1 / 3), (6, 0.6), (12, 0.8))
# Folders are made for tables more often than files are.
_MANY_FOLDERS: Final = ((5, 0.2), (8, 1 / 3), (12, 0.6), (24, 0.8))


def joined(units: Sequence[Unit]) -> list[Unit]:
    """The datasets that units make up."""
    found = list(units)
    for rule in (_same_name, _partitions, _machine_names, _names_as_values):
        found = _by_folder(found, rule)
    # Before and after, since folders that hold runs are no values, and values join what is below.
    return _same_address(_hierarchies_as_values(_folders_as_values(_same_address(found))))


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
    if len(again) < 2 or _why_values([unit.stem for unit in again], "", again) is not None:
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
        yield from one(cluster, Rule("pattern", reason))


def _is_dated(unit: Unit) -> bool:
    return any(kinds_of(name) & TIMES for name in unit.names)


def _names_as_values(units: list[Unit]) -> Iterator[Unit]:
    """Files of one schema whose names are values: cities, people, or just very many."""
    alike = clusters(units, lambda pair: pair.similar)
    grid = _Grid(alike) if len(alike) > 1 else None
    for cluster in alike:
        left = dict.fromkeys(cluster)
        repeated = () if grid is None else grid.families(cluster)
        for family, tables in (*((each, 1) for each in _families(cluster)), *repeated):
            some = [unit for unit in family if unit in left]
            texts = [unit.stem for unit in some]
            reason = _why_values(texts, units[0].parent, some, tables=tables)
            if reason is not None:
                for unit in some:
                    del left[unit]
                yield from one(some, Rule("values", reason))
        yield from left


def _families(units: list[Unit]) -> Iterator[list[Unit]]:
    """All units, then those that differ in one word only, the largest families first."""
    yield units
    if len(units) > 2:
        families: dict[tuple[str, ...], list[Unit]] = {}
        for unit in units:
            pieces = PIECES.findall(unit.stem)
            for index, piece in enumerate(pieces):
                if piece[0].isalpha() or _VALUE.match(piece):
                    key = (*pieces[:index], ANY_NAME, *pieces[index + 1 :])
                    families.setdefault(key, []).append(unit)
        yield from sorted(families.values(), key=len, reverse=True)


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

    def families(self, cluster: Sequence[Unit]) -> Iterator[tuple[list[Unit], int]]:
        """Units that differ in a value, and how many tables have those values."""
        number = self._number_of[id(cluster[0])]
        for key, names in self._names.items():
            if key[0] == number and len(names) > 2:
                others = Counter(
                    other
                    for tail in names
                    for other in self._with[tail, key[2]]
                    if other[0] != number
                )
                tables = sum(2 * count > len(names) and count > 2 for count in others.values())
                if tables:
                    yield list(names.values()), 1 + tables


def _halves(stem: str) -> Iterator[tuple[str, str, bool]]:
    """Each way to divide a name in two, either of which may name a table."""
    for match in _BETWEEN_WORDS.finditer(stem):
        first, last = stem[: match.start()], stem[match.end() :]
        if first and last:
            yield first, last, True
            yield last, first, False


def _folders_as_values(units: list[Unit]) -> list[Unit]:
    """Sibling folders with the same tables inside, where their names are values of one kind."""
    depth = max((len(unit.folders) for unit in units), default=0)
    for level in reversed(range(depth)):
        families: dict[tuple[object, ...], list[Unit]] = {}
        rest: list[Unit] = []
        for unit in units:
            if len(unit.folders) > level and not _only_tells_time(unit.folders[level]):
                families.setdefault(_below(unit, level), []).append(unit)
            else:
                rest.append(unit)
        alike = [
            cluster
            for family in families.values()
            for cluster in clusters(family, lambda pair: pair.similar)
        ]
        tables = _tables_by_folder(alike, level)
        units = rest + [unit for some in alike for unit in _one_of_folders(some, level, tables)]
    return units


def _hierarchies_as_values(units: list[Unit]) -> list[Unit]:
    """The same tables again below folders of several levels: country, region and city."""
    depth = max((len(unit.folders) for unit in units), default=0)
    for level in reversed(range(depth - 1)):
        families: dict[tuple[object, ...], list[Unit]] = {}
        rest: list[Unit] = []
        for unit in units:
            if len(unit.folders) > level + 1:
                key = (unit.folders[:level], len(unit.folders), unit.stem, unit.ending, unit.format)
                families.setdefault(key, []).append(unit)
            else:
                rest.append(unit)
        rest += (unit for some in families.values() if not _span(some, level) for unit in some)
        alike = [
            cluster
            for family in families.values()
            if _span(family, level)
            for cluster in clusters(family, lambda pair: pair.similar)
        ]
        spans = [_span(cluster, level) for cluster in alike]
        tables = Counter(path for paths in spans for path in set(paths))
        units = rest
        for cluster, paths in zip(alike, spans, strict=True):
            shared = min((tables[path] for path in paths), default=0)
            reason = _why_values(paths, "", cluster, many=(), tables=shared)
            rule = Rule("values", f"below folders of several levels, {reason}")
            units += cluster if reason is None else one(cluster, rule)
    return units


def _span(units: Sequence[Unit], level: int) -> list[str]:
    """The folders of several levels in which units differ; nothing where it is one level."""
    after = _common([unit.folders[level:][::-1] for unit in units])
    stop = len(units[0].folders) - after
    if stop - level < 2 or len({unit.folders[level] for unit in units}) < 2:
        return []
    return ["/".join(unit.folders[level:stop]) for unit in units]


def _only_tells_time(folder: str) -> bool:
    kinds = kinds_of(folder)
    return bool(kinds) and kinds <= {*TIMES, "hive"} and not fixed_part(folder)


def _below(unit: Unit, level: int) -> tuple[object, ...]:
    """What a unit shares with those in other folders at a level."""
    own = words_of(unit.folders[level])
    title = tuple(word for word in unit.title if word not in own)
    return (level, unit.folders[:level], unit.folders[level + 1 :], title, unit.ending, unit.format)


def _tables_by_folder(families: Iterable[Sequence[Unit]], level: int) -> Counter[str]:
    """How many tables each folder name at a level has in common with siblings, wherever it is."""
    return Counter(unit.folders[level] for family in families if len(family) > 1 for unit in family)


def _one_of_folders(units: list[Unit], level: int, tables: Counter[str]) -> Iterator[Unit]:
    texts = [unit.folders[level] for unit in units]
    reason = None
    if len(set(texts)) == len(texts) > 1:
        parent = units[0].folders[level - 1] if level else ""
        shared = min(tables[text] for text in texts)
        reason = _why_values(texts, parent, units, many=_MANY_FOLDERS, tables=shared)
        if reason is None and all(map(_DOMAIN.match, texts)):
            reason = f"the names are those of sites ({', '.join(sorted(texts)[:3])})"
        if reason is None and _are_dated_runs(units, level):
            reason = f"a date and a remark name each run ({', '.join(sorted(texts)[:3])})"
    if reason is None:
        yield from units
    else:
        yield from one(units, Rule("values", f"in sibling folders, {reason}"))


def _are_dated_runs(units: Sequence[Unit], level: int) -> bool:
    """Whether folders begin with dates of their own, followed by a word on what was done then."""
    texts = [unit.folders[level] for unit in units]
    remarks = [_STARTING_DATE.sub("", text) for text in texts]
    if not all(map(_STARTING_DATE.match, texts)) or any(map(looks_like_table, remarks)):
        return False
    if any(not STAGES.isdisjoint(words_of(remark)) for remark in remarks):
        return False
    dates = [
        # Some rows of a unit may lie less deep than most.
        {
            path[level].values[:1]
            for row in unit.rows
            for path in (row.first, row.last)
            if len(path) > level
        }
        for unit in units
    ]
    return len(set().union(*dates)) == sum(map(len, dates))


def _same_address(units: list[Unit]) -> list[Unit]:
    """Files of one folder and name, whether in date folders of one form, another or none."""
    addresses: dict[tuple[object, ...], list[Unit]] = {}
    for unit in units:
        key = (unit.address, unit.title, unit.ending if unit.title else "", unit.format)
        addresses.setdefault(key, []).append(unit)
    reason = "below one folder, the files differ only in dates, numbers or runs"
    return [
        unit
        for some in addresses.values()
        for cluster in clusters(some, lambda pair: pair.alike)
        for unit in one(cluster, Rule("pattern", reason))
    ]


def _why_values(
    texts: Sequence[str],
    parent: str,
    units: Sequence[Unit],
    *,
    many: Sequence[tuple[int, float]] = _MANY_FILES,
    tables: int = 1,
) -> str | None:
    """Why names that differ are values rather than tables; nothing where they are not."""
    if len(texts) < 2:
        return None
    before, values, after = _varying(texts)
    if before[-1:] == ["="]:
        return None
    around = words_of(" ".join(piece for piece in (*before, *after) if piece[0] != "{"))
    inside = words_of(parent)
    names = (" ".join(words_of(name)) for value in values for name in value.split("/"))
    if not STAGES.isdisjoint(names) or not all(value.strip("-_. ") for value in values):
        return None
    if all(map(_SIZE.match, values)):
        return None
    shown = f"{', '.join(sorted(values)[:3])}{' ...' if len(values) > 3 else ''}"
    if tables > 1 and len(values) > 2:
        return f"{len(values)} names stand beside the same {tables} tables ({shown})"
    if inside and inside[-1] in OF_TABLES:
        return None
    if {value.lower() for value in values} <= DAYTIMES or all(map(_VERSION.match, values)):
        return f"the names differ in a value ({shown})"
    are_parts = "{split}" in values and "-of-" in "".join(after)
    if are_parts or _are_beside_values(values) or _are_strays(values, units):
        return f"the names differ in a value ({shown})"
    share = sum(map(looks_like_table, values)) / len(values)
    if _are_codes(values) and (not share or _are_codes_of(around, share, units)):
        return f"the names differ in a code ({shown})"
    if after[-1:] == ["{id}"] and not before and not share and _have_same_columns(units):
        return f"the names tell a kind of thing before its id ({shown})"
    are_tables = share > 0.5
    if names_entity(around) and not are_tables:
        return f"the names tell which {' '.join(around)} it is ({shown})"
    if holds_entities(parent) and not are_tables:
        return f"the folder {parent} holds one thing of a kind under each name ({shown})"
    is_many = any(len(values) >= count and share <= limit for count, limit in many)
    if is_many and _have_same_columns(units):
        return f"{len(values)} names have the same columns ({shown})"
    return None


def _are_codes_of(around: Sequence[str], share: float, units: Sequence[Unit]) -> bool:
    """Whether words in capitals are values of what stands beside them, though one is a plural."""
    return bool(around) and share < 0.5 and len(units) > 2 and _have_same_columns(units)


def _are_beside_values(values: Sequence[str]) -> bool:
    """Whether some are values for sure and the others may be: X beside the numbers 1 to 22."""
    others = [value for value in values if not _VALUE.match(value)]
    if ANY_NAME in values or len(others) == len(values):
        return ANY_NAME in values
    if any(map(is_total, others)):
        return False
    if "{id}" in values or "{hash}" in values:
        return all(map(_ONE_WORD.match, others))
    return all(
        _SHORT_VALUE.match(value) or _CODE.match(value) or _LOCALE.match(value) for value in others
    )


def _are_strays(values: Sequence[str], units: Sequence[Unit]) -> bool:
    """Whether a few names stand among many that are values for sure, with the same columns."""
    sure = sum(unit.files for value, unit in zip(values, units, strict=True) if _VALUE.match(value))
    others = [value for value in values if not _VALUE.match(value)]
    return (
        sure >= _FEW_STRAYS * len(others)
        and not any(looks_like_table(value) or is_total(value) for value in others)
        and _have_same_columns(units)
    )


def _are_codes(values: Sequence[str]) -> bool:
    if all(len(value) == 1 or _CODE.match(value) for value in values):
        return True
    is_short = len(values) > 2 and len(set(map(len, values))) == 1
    if is_short and all(map(_SHORT.match, values)):
        return True
    # enwiki, dewiki and frwiki differ in a language.
    before = _common(values)
    after = _common([value[before:][::-1] for value in values])
    return before + after > 2 and all(
        is_value(value[before : len(value) - after].lower()) for value in values
    )


def _have_same_columns(units: Sequence[Unit]) -> bool:
    """Whether columns are evidence at all, more than one or a code's name, and as good as equal."""
    every = [columns.families for unit in units for columns in unit.columns]
    if any(len(names) < 2 or OF_LOOKUPS.issuperset(names) for names in every):
        return False
    return len(clusters(units, lambda pair: pair.same)) == 1


def _varying(texts: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """What all texts begin with, what each has of its own, and what all end with."""
    pieces = [PIECES.findall(text) for text in texts]
    start = _common(pieces)
    stop = _common([each[start:][::-1] for each in pieces])
    own = ["".join(each[start : len(each) - stop]) for each in pieces]
    return pieces[0][:start], own, pieces[0][len(pieces[0]) - stop :]


def _common(pieces: Sequence[Sequence[str]]) -> int:
    count = 0
    for column in zip(*pieces, strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return count


def one(units: Sequence[Unit], rule: Rule) -> list[Unit]:
    """The units as one; a unit alone stays as it is."""
    if len(units) < 2:
        return list(units)
    # Where some lie deeper than others, the deepest show how the dataset is partitioned.
    depth = max(len(unit.names) for unit in units)
    deepest = [unit for unit in units if len(unit.names) == depth]
    names = tuple(_general(texts) for texts in zip(*(unit.names for unit in deepest), strict=True))
    endings = {unit.ending for unit in units}
    largest = max(deepest, key=lambda unit: unit.files)
    return [
        Unit(
            names=names,
            shown=names if rule.name == "values" else largest.usual,
            ending=endings.pop() if len(endings) == 1 else "",
            format=units[0].format,
            rows=[row for unit in units for row in unit.rows],
            rules=[*dict.fromkeys(each for unit in units for each in unit.rules), rule],
        )
    ]


def _general(texts: Sequence[str]) -> str:
    """The template that fits several."""
    distinct = list(dict.fromkeys(texts))
    if len(distinct) == 1:
        return distinct[0]
    before, _, after = _varying(distinct)
    return f"{''.join(before)}{ANY_NAME}{''.join(after)}"
