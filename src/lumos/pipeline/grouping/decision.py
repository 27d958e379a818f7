"""From places to datasets: the rules, what earlier scans settled, and what both come to."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from lumos.pipeline.crowds import is_in_crowd
from lumos.pipeline.grouping.hinted import Hinted, former_datasets, hinted_datasets
from lumos.pipeline.grouping.naming import Name, names_of
from lumos.pipeline.grouping.rules import joined, one
from lumos.pipeline.grouping.units import (
    PLACEHOLDER,
    Rule,
    SchemasByPrint,
    Unit,
    units_of,
)
from lumos.pipeline.grouping.words import in_words
from lumos.pipeline.hints import hinted_location
from lumos.pipeline.placement import ANY_NAME
from lumos.pipeline.sidecars import holds_table_metadata, why_sidecar
from lumos.pipeline.summaries import PartitionKey, PlaceSummary, merged_keys

_SETTLED: Final = Rule("settled", "an earlier scan put them together")
# Places that were not seen for so many scans are forgotten.
_MOST_MISSED: Final = 100


class Settled(NamedTuple):
    """To which dataset an earlier scan counted the files of a place and schema."""

    base: str
    pattern: str
    format: str
    full: str
    dataset: str
    missed: int = 0


class Group(NamedTuple):
    """The places of one dataset, where it lies, and which rule put them together.

    `renamed_from` and `merged_from` are datasets of earlier scans that are this one now.
    """

    dataset: str
    location: str
    places: list[PlaceSummary]
    names: tuple[str, ...] = ()
    ending: str = ""
    rule: Rule = _SETTLED
    renamed_from: str | None = None
    merged_from: tuple[str, ...] = ()

    @property
    def keys(self) -> list[PartitionKey]:
        """The partition keys of all its places."""
        keys: list[PartitionKey] = []
        for place in self.places:
            keys = merged_keys(keys, place.keys)
        return keys


class Grouping(NamedTuple):
    """The datasets, what to remember of them, and the places that only accompany data."""

    groups: list[Group]
    settled: list[Settled]
    sidecars: list[PlaceSummary]


def group(
    places: Iterable[PlaceSummary],
    schemas: SchemasByPrint,
    *,
    root: str,
    before: Sequence[Settled] = (),
) -> Grouping:
    """The datasets that places make up, and what to remember of how that was settled.

    What an earlier scan settled stays: a file that comes, goes or breaks must not rename others,
    and what was put together is not taken apart again.
    """
    every = list(places)
    hinted = hinted_datasets(each for each in every if hinted_location(each.pattern) is not None)
    free = [each for each in every if hinted_location(each.pattern) is None]
    data, sidecars = _data_and_sidecars(free)
    known = _Known(before)
    units = known.united(joined(units_of(data, schemas, root=root)))
    olds = [known.datasets_of(unit) for unit in units]
    kept = {dataset for some in olds for dataset in some}
    is_file = any(row.place.first_path == root for unit in units for row in unit.rows)
    top = root.rpartition("/")[0] if is_file else root.rstrip("/")
    names = names_of(units, top=top)
    fresh = iter(
        names_of(
            [unit for unit, old in zip(units, olds, strict=True) if not old],
            top=top,
            taken={*kept, *(each.dataset for each in hinted)},
        )
    )
    groups = [
        *(_hinted_group(each, known.taken_over(each, kept, root)) for each in hinted),
        *(
            _group(unit, name, old, path=None if old else next(fresh).path)
            for unit, name, old in zip(units, names, olds, strict=True)
        ),
    ]
    groups.sort(key=lambda each: each.dataset)
    return Grouping(groups, known.remembered(groups), sidecars)


def _hinted_group(hinted: Hinted, olds: Sequence[str]) -> Group:
    renamed, merged = _succession(hinted.dataset, olds)
    return Group(
        dataset=hinted.dataset,
        location=hinted.location,
        places=hinted.places,
        names=hinted.names,
        rule=Rule("hint", "the configuration says so"),
        renamed_from=renamed,
        merged_from=merged,
    )


def _succession(dataset: str, olds: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """Which earlier dataset goes on under another name, and which became part of it."""
    others = [old for old in olds if old != dataset]
    if not others or dataset in olds:
        return None, tuple(others)
    return others[0], tuple(others[1:])


def _data_and_sidecars(
    places: Iterable[PlaceSummary],
) -> tuple[list[PlaceSummary], list[PlaceSummary]]:
    by_folder: dict[str, list[str]] = {}
    every = list(places)
    for place in every:
        folder, _, name = place.first_path.rpartition("/")
        by_folder.setdefault(folder, []).append(name)
    data: list[PlaceSummary] = []
    sidecars: list[PlaceSummary] = []
    for place in every:
        folder, _, name = place.first_path.rpartition("/")
        is_sidecar = why_sidecar(name) or holds_table_metadata(folder, by_folder[folder])
        (sidecars if is_sidecar else data).append(place)
    return data, sidecars


class _Known:
    """What earlier scans settled."""

    def __init__(self, before: Iterable[Settled]) -> None:
        self._before = list(before)
        self._exact = {each[:4]: each.dataset for each in self._before}
        self._by_pattern: dict[tuple[str, str, str], set[str]] = {}
        for each in self._before:
            self._by_pattern.setdefault(each[:3], set()).add(each.dataset)

    def datasets_of(self, unit: Unit) -> list[str]:
        """The datasets that files of a unit were counted to, that of most files first."""
        files: dict[str, int] = {}
        for row in unit.rows:
            for dataset in self._of_place(row.place):
                files[dataset] = files.get(dataset, 0) + row.place.file_count
        if not files and all(rule.name != "unrelated" for rule in unit.rules):
            for row in unit.rows:
                # Files of a known pattern with new columns stay where the pattern belongs.
                for dataset in self._by_pattern.get(_key(row.place)[:3], ()):
                    files[dataset] = files.get(dataset, 0) + row.place.file_count
            files = {dataset: files[dataset] for dataset in sorted(files)[:1]}
        return sorted(files, key=lambda dataset: (-files[dataset], dataset))

    def _of_place(self, place: PlaceSummary) -> set[str]:
        exact = self._exact.get(_key(place))
        if exact is not None or ANY_NAME not in place.pattern:
            return set() if exact is None else {exact}
        crowd = (place.base, place.pattern)
        return {
            each.dataset
            for each in self._before
            if each[2:4] == (place.format, place.full)
            and is_in_crowd(each.base, each.pattern, crowd)
        }

    def taken_over(self, hinted: Hinted, kept: Collection[str], root: str) -> list[str]:
        """The datasets that all files of belong to a hinted one now."""
        return former_datasets(hinted, self._exact, kept, root)

    def united(self, units: Sequence[Unit]) -> list[Unit]:
        """The units, those with files of one known dataset put together."""
        if not self._before:
            return list(units)
        bundle_of = list(range(len(units)))
        first_with: dict[str, int] = {}

        def bundle(index: int) -> int:
            while bundle_of[index] != index:
                index = bundle_of[index]
            return index

        for index, unit in enumerate(units):
            for dataset in self.datasets_of(unit):
                bundle_of[bundle(index)] = bundle(first_with.setdefault(dataset, index))
        bundles: dict[int, list[Unit]] = {}
        for index, unit in enumerate(units):
            bundles.setdefault(bundle(index), []).append(unit)
        return [unit for some in bundles.values() for unit in one(some, _SETTLED)]

    def remembered(self, groups: Iterable[Group]) -> list[Settled]:
        """What the next scan must know."""
        seen = {
            _key(place): Settled(*_key(place), each.dataset)
            for each in groups
            for place in each.places
        }
        now = {old: each.dataset for each in groups for old in _former(each)}
        missing = (
            each._replace(missed=each.missed + 1, dataset=now.get(each.dataset, each.dataset))
            for each in self._before
            if each[:4] not in seen and each.missed < _MOST_MISSED
        )
        return sorted([*seen.values(), *missing])


def _former(group: Group) -> list[str]:
    renamed = [group.renamed_from] if group.renamed_from else []
    return [*renamed, *group.merged_from]


def _key(place: PlaceSummary) -> tuple[str, str, str, str]:
    return place.base, place.pattern, place.format, place.full


def _group(unit: Unit, name: Name, olds: Sequence[str], *, path: str | None) -> Group:
    dataset = path or (name.path if len(olds) > 1 else olds[0])
    renamed, merged = _succession(dataset, olds)
    return Group(
        dataset=dataset,
        location=name.location,
        places=[row.place for row in unit.rows],
        names=unit.usual,
        ending=unit.ending,
        rule=_deciding(unit),
        renamed_from=renamed,
        merged_from=merged,
    )


def _deciding(unit: Unit) -> Rule:
    """The rule that says most about a unit: the last that put it together, or what it is alone."""
    if unit.rules:
        return unit.rules[-1]
    kinds = [kind for name in unit.names for kind in PLACEHOLDER.findall(name)]
    if not kinds:
        return Rule("alone", "no other file is named like it, or after the same kind of thing")
    if "hive" in kinds:
        return Rule("partitions", "the files lie in partition folders and a writer named them")
    values = " and ".join(dict.fromkeys(map(in_words, kinds)))
    if unit.files == 1:
        return Rule("pattern", f"it may be one of several that differ in {values}")
    return Rule("pattern", f"the paths differ only in {values}")
