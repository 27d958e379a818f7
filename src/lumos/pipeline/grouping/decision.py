"""From places to datasets: the rules, what earlier scans settled, and what both come to."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from lumos.pipeline.grouping.elsewhere import told_elsewhere
from lumos.pipeline.grouping.hinted import Hinted, hinted_datasets
from lumos.pipeline.grouping.naming import Name, names_of
from lumos.pipeline.grouping.places import SchemasByPrint, units_of
from lumos.pipeline.grouping.rules import joined
from lumos.pipeline.grouping.settlement import (
    JOINED_BEFORE,
    NOTHING_SETTLED,
    Known,
    SettledGroup,
    Settlement,
    fingerprint_of,
    key_of,
)
from lumos.pipeline.grouping.units import PLACEHOLDER, Rule, Unit
from lumos.pipeline.grouping.words import in_words
from lumos.pipeline.hints import hinted_location
from lumos.pipeline.sidecars import is_known_of_tables, why_sidecar
from lumos.pipeline.summaries import PartitionKey, PlaceSummary, merged_keys


class Group(NamedTuple):
    """The places of one dataset, where it lies, and which rule put them together.

    `renamed_from` and `merged_from` are datasets of earlier scans that are this one now.
    """

    dataset: str
    location: str
    places: list[PlaceSummary]
    names: tuple[str, ...] = ()
    ending: str = ""
    rule: Rule = JOINED_BEFORE
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
    settled: Settlement
    sidecars: list[PlaceSummary]


def group(
    places: Iterable[PlaceSummary],
    schemas: SchemasByPrint,
    *,
    root: str,
    before: Settlement = NOTHING_SETTLED,
    tables: Collection[str] = (),
) -> Grouping:
    """The datasets that places make up, and what to remember of how that was settled.

    What an earlier scan settled stays: a file that comes, goes or breaks must not rename others,
    and what was put together is not taken apart again. Only a table has its name to itself.
    """
    # In an order of their own, so that it does not matter which task was done first.
    every = sorted(places, key=key_of)
    fingerprint = fingerprint_of(every)
    is_clear = not any(each.dataset in tables for each in before.groups)
    if fingerprint == before.fingerprint and is_clear:
        return _recalled(every, before)
    hinted = hinted_datasets(each for each in every if hinted_location(each.pattern) is not None)
    free = [each for each in every if hinted_location(each.pattern) is None]
    data, sidecars = _data_and_sidecars(free)
    known = Known(before)
    units = known.united(told_elsewhere(joined(units_of(data, schemas, root=root))))
    olds = [[old for old in known.datasets_of(unit) if old not in tables] for unit in units]
    kept = {dataset for some in olds for dataset in some}
    is_file = any(row.place.first_path == root for unit in units for row in unit.rows)
    top = root.rpartition("/")[0] if is_file else root.rstrip("/")
    names = names_of(units, top=top, tables=tables)
    fresh = iter(
        names_of(
            [unit for unit, old in zip(units, olds, strict=True) if not old],
            top=top,
            taken={*kept, *(each.dataset for each in hinted)},
            tables=tables,
        )
    )
    groups = [
        *(_hinted_group(each, known.taken_over(each, kept, root)) for each in hinted),
        *(
            _group(
                unit, name.location, old, next(fresh).path if not old else _path(name, old, kept)
            )
            for unit, name, old in zip(units, names, olds, strict=True)
        ),
    ]
    groups.sort(key=lambda each: each.dataset)
    return Grouping(groups, _settlement(fingerprint, groups, known), sidecars)


def _recalled(places: Iterable[PlaceSummary], before: Settlement) -> Grouping:
    """What the last scan made of the same places."""
    dataset_of = {each[:4]: each.dataset for each in before.places}
    members: dict[str, list[PlaceSummary]] = {each.dataset: [] for each in before.groups}
    sidecars: list[PlaceSummary] = []
    for place in places:
        members.get(dataset_of.get(key_of(place), ""), sidecars).append(place)
    groups = [
        Group(
            each.dataset, each.location, members[each.dataset], each.names, each.ending, each.rule
        )
        for each in before.groups
    ]
    return Grouping(groups, _settlement(before.fingerprint, groups, Known(before)), sidecars)


def _settlement(fingerprint: str, groups: Sequence[Group], known: Known) -> Settlement:
    now = {
        former: each.dataset
        for each in groups
        for former in filter(None, (each.renamed_from, *each.merged_from))
    }
    return Settlement(
        fingerprint=fingerprint,
        places=known.remembered({each.dataset: each.places for each in groups}, now),
        groups=[
            SettledGroup(each.dataset, each.location, each.names, each.ending, each.rule)
            for each in groups
        ],
    )


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
        is_known = is_known_of_tables(name, folder, by_folder[folder])
        is_sidecar = is_known or why_sidecar(name, place.format) is not None
        (sidecars if is_sidecar else data).append(place)
    return data, sidecars


def _path(name: Name, olds: Sequence[str], kept: Collection[str]) -> str:
    """The path of what was known before: its own, or a new one where several became one."""
    is_free = name.path in olds or name.path not in kept
    return name.path if len(olds) > 1 and is_free else olds[0]


def _group(unit: Unit, location: str, olds: Sequence[str], dataset: str) -> Group:
    renamed, merged = _succession(dataset, olds)
    return Group(
        dataset=dataset,
        location=location,
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
