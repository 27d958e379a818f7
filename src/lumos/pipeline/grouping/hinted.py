"""Datasets that the configuration decided."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from lumos.pipeline.grouping.naming import rank_of
from lumos.pipeline.grouping.units import HIVE
from lumos.pipeline.hints import hinted_location
from lumos.pipeline.placement import place
from lumos.pipeline.summaries import PlaceSummary

Key = tuple[str, str, str, str]


class Hinted(NamedTuple):
    """A dataset of hinted files; `names` is how their hive keys would be folders."""

    dataset: str
    location: str
    places: list[PlaceSummary]

    @property
    def names(self) -> tuple[str, ...]:
        keys = sorted({(key.position, key.key) for place in self.places for key in place.keys})
        return (*(f"{key}{HIVE}" for _, key in keys), "")


def hinted_datasets(places: Iterable[PlaceSummary]) -> list[Hinted]:
    """One dataset for every path that hints gave, and format."""
    by_path: dict[str, dict[str, Hinted]] = {}
    for each in places:
        location = hinted_location(each.pattern)
        assert location is not None
        formats = by_path.setdefault(each.base, {})
        formats.setdefault(each.format, Hinted(each.base, location, [])).places.append(each)
    found: list[Hinted] = []
    for path, formats in by_path.items():
        first, *others = sorted(formats, key=rank_of)
        found.append(formats[first])
        found.extend(
            formats[format]._replace(dataset=f"{path}/*.{format}", location=f"{path}/*.{format}")
            for format in others
        )
    return found


def former_datasets(
    hinted: Hinted, exact: Mapping[Key, str], still_there: Collection[str], root: str
) -> list[str]:
    """The datasets whose files a hint took over as a whole, those of most files first."""
    files: dict[str, int] = {}
    for each in hinted.places:
        for path in {each.first_path, each.last_path}:
            base, pattern, _ = place(path, root)
            dataset = exact.get((base, pattern, each.format, each.full))
            if dataset is not None and dataset not in still_there:
                files[dataset] = files.get(dataset, 0) + each.file_count
    return sorted(files, key=lambda dataset: (-files[dataset], dataset))
