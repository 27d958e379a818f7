"""What earlier scans settled, and how it counts in the next one."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from lumos.pipeline.crowds import is_in_crowd
from lumos.pipeline.grouping.hinted import Hinted, former_datasets
from lumos.pipeline.grouping.union import one
from lumos.pipeline.grouping.units import Rule, Unit
from lumos.pipeline.placement import ANY_NAME
from lumos.pipeline.summaries import PlaceSummary

JOINED_BEFORE: Final = Rule("settled", "an earlier scan put them together")
# Raised whenever the same places may be grouped otherwise, because Lumos understands them better.
_RULES_VERSION: Final = 3
# Places that were not seen for so many scans are forgotten.
_MOST_MISSED: Final = 100


class Settled(NamedTuple):
    """To which dataset a scan counted the files of a place and schema."""

    base: str
    pattern: str
    format: str
    full: str
    dataset: str
    missed: int = 0


class SettledGroup(NamedTuple):
    """A dataset as a scan described it."""

    dataset: str
    location: str
    names: tuple[str, ...]
    ending: str
    rule: Rule


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan settled; the same places, by their fingerprint, are the same groups again."""

    fingerprint: str = ""
    places: list[Settled] = []
    groups: list[SettledGroup] = []


NOTHING_SETTLED: Final = Settlement()


def key_of(place: PlaceSummary) -> tuple[str, str, str, str]:
    """What a place is known by from scan to scan."""
    return place.base, place.pattern, place.format, place.full


def fingerprint_of(places: Iterable[PlaceSummary]) -> str:
    """A fingerprint of all that grouping looks at; a schema is told by its own."""
    lines = sorted(
        "\0".join((*key_of(each), each.first_path, each.last_path, str(each.file_count == 1)))
        for each in places
    )
    text = "\n".join((str(_RULES_VERSION), *lines))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Known:
    """What earlier scans settled."""

    def __init__(self, before: Settlement) -> None:
        self._before = before.places
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
                for dataset in self._by_pattern.get(key_of(row.place)[:3], ()):
                    files[dataset] = files.get(dataset, 0) + row.place.file_count
            files = {dataset: files[dataset] for dataset in sorted(files)[:1]}
        return sorted(files, key=lambda dataset: (-files[dataset], dataset))

    def _of_place(self, place: PlaceSummary) -> set[str]:
        exact = self._exact.get(key_of(place))
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
        return [unit for some in bundles.values() for unit in one(some, JOINED_BEFORE)]

    def remembered(
        self, places: Mapping[str, Iterable[PlaceSummary]], now: Mapping[str, str]
    ) -> list[Settled]:
        """What the next scan must know; `now` tells what datasets of before are called."""
        seen = {
            key_of(place): Settled(*key_of(place), dataset)
            for dataset, some in places.items()
            for place in some
        }
        missing = (
            each._replace(missed=each.missed + 1, dataset=now.get(each.dataset, each.dataset))
            for each in self._before
            if each[:4] not in seen and each.missed < _MOST_MISSED
        )
        return sorted([*seen.values(), *missing])
