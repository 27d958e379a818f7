"""Which datasets of the last scan a dataset continues, takes in, or was a part of."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from lumos.discovery.grouping.patterns import Placement
from lumos.discovery.grouping.state import GroupingState, RememberedPlace
from lumos.discovery.summaries import PlaceSummary


class Predecessors(NamedTuple):
    """Earlier datasets: one under another name, those taken in, the one that came apart."""

    renamed_from: str | None = None
    merged_from: tuple[str, ...] = ()
    split_from: str | None = None


def find_predecessors(
    datasets: Mapping[str, Sequence[PlaceSummary]],
    before: GroupingState,
    *,
    place: Callable[[str], Placement],
    was_there: Callable[[str], bool],
) -> dict[str, Predecessors]:
    """For each dataset that has any: what it was before.

    `was_there` says whether the last scan met a file.
    """
    if datasets.keys() == before.datasets or not before.places:
        return {}
    went_to = find_destinations(datasets, before, place=place, was_there=was_there)
    sources: dict[str, list[str]] = {}
    found: dict[str, Predecessors] = {}
    for old, targets in went_to.items():
        fresh = [path for path in targets if path not in before.datasets]
        if old in datasets:
            parts = [old, *fresh] if fresh else []
        elif len(targets) == 1:
            sources.setdefault(next(iter(targets)), []).append(old)
            continue
        else:
            parts = fresh
        for path in parts:
            found.setdefault(path, Predecessors(split_from=old))
    for path, olds in sources.items():
        olds.sort(key=lambda old: (-went_to[old][path], old))
        if path in before.datasets or path in found:
            found[path] = found.get(path, Predecessors())._replace(merged_from=tuple(olds))
        else:
            found[path] = Predecessors(renamed_from=olds[0], merged_from=tuple(olds[1:]))
    return found


def find_destinations(
    datasets: Mapping[str, Sequence[PlaceSummary]],
    before: GroupingState,
    *,
    place: Callable[[str], Placement],
    was_there: Callable[[str], bool],
) -> dict[str, Counter[str]]:
    """For each dataset of the last scan, those that its files belong to now, with file counts."""
    owner = {
        (each.base, each.pattern, each.format): dataset
        for dataset, places in datasets.items()
        for each in places
    }
    found: dict[str, Counter[str]] = {}

    def note(old: RememberedPlace, dataset: str) -> None:
        found.setdefault(old.dataset, Counter())[dataset] += old.file_count

    by_base: dict[str, list[RememberedPlace]] = {}
    for old in before.places:
        by_base.setdefault(old.base, []).append(old)
        if old.dataset in datasets and not before.is_upgrade:
            continue
        for path in {old.first_path, old.last_path}:
            placed = place(path)
            dataset = owner.get((placed.base, placed.pattern, old.format))
            if dataset is not None:
                note(old, dataset)
    # A place of the last scan may stand for more datasets than its first and last file show.
    reached = {dataset for targets in found.values() for dataset in targets}
    for dataset in sorted(datasets.keys() - before.datasets - reached):
        known = [each for each in datasets[dataset] if was_there(each.first_path)]
        for old in _around(known, by_base)[:1]:
            note(old, dataset)
    return found


def _around(
    places: Collection[PlaceSummary], by_base: Mapping[str, Sequence[RememberedPlace]]
) -> list[RememberedPlace]:
    """The places of the last scan that may have held some files, the likeliest first."""
    candidates: dict[RememberedPlace, None] = {}
    for each in places:
        folder = each.first_path
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            candidates |= dict.fromkeys(
                old for old in by_base.get(folder, ()) if old.may_hold(each)
            )
    fulls = {place.full for place in places}
    return sorted(candidates, key=lambda old: (old.full not in fulls, -len(old.base), old.dataset))
