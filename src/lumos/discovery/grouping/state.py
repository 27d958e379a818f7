"""What one scan remembers of its grouping for the next one."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from lumos.discovery.hints import ColumnSplit
from lumos.discovery.summaries import PlaceSummary

PlaceKey = tuple[str, str, str, str]


def key_of(place: PlaceSummary) -> PlaceKey:
    """What a place is known by from scan to scan."""
    return place.base, place.pattern, place.format, place.full


class RememberedPlace(NamedTuple):
    """Files of one place and schema, and the dataset that they belonged to."""

    base: str
    pattern: str
    format: str
    full: str
    dataset: str
    first_path: str
    last_path: str
    file_count: int

    def may_hold(self, place: PlaceSummary) -> bool:
        """Whether files of a place may have been counted here: same format, folder and depth."""
        return (
            self.format == place.format
            and self.first_path <= place.last_path
            and place.first_path <= self.last_path
            and place.first_path.startswith(f"{self.base}/")
            and self.first_path.count("/") == place.first_path.count("/")
        )


class GroupingState(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided and stays.

    `names` holds datasets that keep a path which their pattern alone would not give, by format and
    the path that it would give. `splits` are decisions by columns.
    """

    places: list[RememberedPlace] = []
    names: dict[str, str] = {}
    splits: list[ColumnSplit] = []
    # An upgraded state comes from a version that grouped by similarity.
    is_upgrade: bool = False

    @property
    def datasets(self) -> frozenset[str]:
        """The datasets of the last scan."""
        return frozenset(place.dataset for place in self.places)

    def inheriting(self, other: "GroupingState") -> "GroupingState":
        """The state with the names and decisions of a scan that looked at more."""
        splits = {each.dataset: each for each in (*self.splits, *other.splits)}
        return msgspec.structs.replace(
            self, names={**self.names, **other.names}, splits=list(splits.values())
        )


class LegacyGrouping(msgspec.Struct, frozen=True, kw_only=True):
    """How versions before path patterns remembered their grouping: places with their datasets."""

    places: list[tuple[str, str, str, str, str, int]] = []

    def upgraded(self, summaries: Iterable[PlaceSummary]) -> GroupingState:
        """The same as a state; `summaries` are the places of the manifest's parts."""
        datasets = {each[:4]: each[4] for each in self.places if not each[5]}
        return GroupingState(places=list(_remembered(summaries, datasets)), is_upgrade=True)


def _remembered(
    summaries: Iterable[PlaceSummary], datasets: Mapping[PlaceKey, str]
) -> Iterator[RememberedPlace]:
    for place in summaries:
        dataset = datasets.get(key_of(place)) or _dataset_of_crowd(place, datasets)
        if dataset is not None:
            yield RememberedPlace(
                *key_of(place), dataset, place.first_path, place.last_path, place.file_count
            )


def _dataset_of_crowd(place: PlaceSummary, datasets: Mapping[PlaceKey, str]) -> str | None:
    """The dataset of files that were summed up together only once all tasks were done."""
    names = f"{place.base}/{place.pattern}".split("/")
    for (base, pattern, format, full), dataset in datasets.items():
        if "{name}" in pattern and (format, full) == (place.format, place.full):
            wanted = f"{base}/{pattern}".split("/")
            if len(wanted) == len(names) and all(
                name == other or other.startswith("{name}")
                for name, other in zip(names, wanted, strict=True)
            ):
                return dataset
    return None
