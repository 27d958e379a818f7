"""Groups files into datasets, on rows that already stand for many files each."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from lumos.pipeline.summaries import PartitionKey, PlaceSummary, merged_keys

# Where one folder holds the same dataset name in two formats, the first keeps the folder's name.
_FORMAT_RANK: Final = ("parquet", "avro", "orc", "csv", "json")


class Settled(NamedTuple):
    """How an earlier scan settled what a folder and name pattern mean."""

    base: str
    pattern: str
    format: str
    is_folder: bool
    is_second: bool


class Group(NamedTuple):
    """The places of one dataset; `location` is its folder or file pattern."""

    dataset: str
    location: str
    places: list[PlaceSummary]

    @property
    def keys(self) -> list[PartitionKey]:
        """The partition keys of all its places."""
        keys: list[PartitionKey] = []
        for place in self.places:
            keys = merged_keys(keys, place.keys)
        return keys


def group(
    places: Iterable[PlaceSummary], before: Iterable[Settled]
) -> tuple[list[Group], list[Settled]]:
    """The datasets that places make up, and what to remember of how that was settled.

    What an earlier scan settled stays: a file that comes, goes or breaks must not rename others.
    """
    settled = {each[:3]: each for each in before}
    by_base: dict[str, list[PlaceSummary]] = {}
    for place in places:
        by_base.setdefault(place.base, []).append(place)
    groups: dict[str, Group] = {}
    remembered: set[Settled] = set()
    for base, some in by_base.items():
        for dataset, location, place, how in _in_folder(base, some, settled):
            groups.setdefault(dataset, Group(dataset, location, [])).places.append(place)
            if place.pattern == "" or "*" in place.pattern:
                remembered.add(how)
    return [groups[dataset] for dataset in sorted(groups)], sorted(remembered)


def _in_folder(
    base: str, places: Sequence[PlaceSummary], settled: dict[tuple[str, str, str], Settled]
) -> Iterable[tuple[str, str, PlaceSummary, Settled]]:
    is_only = len({place.pattern for place in places}) == 1
    named = []
    for place in places:
        known = settled.get((base, place.pattern, place.format))
        looks_like_folder = place.pattern == "" or (is_only and "*" in place.pattern)
        is_folder = looks_like_folder if known is None else known.is_folder
        dataset = base if is_folder else f"{base}/{place.pattern.replace('*', '')}"
        location = base if is_folder else f"{base}/{place.pattern}"
        named.append((dataset, location, place, known, is_folder))
    firsts: dict[str, str] = {}
    for dataset, _, place, known, _ in named:
        if known is not None and not known.is_second:
            firsts[dataset] = place.format
    for dataset, _, place, _, _ in named:
        present = firsts.get(dataset)
        if present is None or (
            dataset not in {each[0] for each in named if each[3] is not None}
            and _FORMAT_RANK.index(place.format) < _FORMAT_RANK.index(present)
        ):
            firsts[dataset] = place.format
    for dataset, location, place, known, is_folder in named:
        is_second = place.format != firsts[dataset] if known is None else known.is_second
        apart = f"{dataset}/*.{place.format}"
        how = Settled(base, place.pattern, place.format, is_folder, is_second)
        yield (apart, apart, place, how) if is_second else (dataset, location, place, how)
