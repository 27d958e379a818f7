"""Datasets that have the same columns: suggested for joining, or joined where a source says so."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final, TypeVar

from lumos.model.discovery import FoundDataset, Suggestion
from lumos.pipeline.grouping.columns import (
    Fields,
    SchemasByFingerprint,
    clusters,
    leaf_fields,
)
from lumos.pipeline.grouping.state import GroupingState, key_of
from lumos.pipeline.patterns import is_named_by_file
from lumos.pipeline.summaries import PlaceSummary

_FEWEST_FIELDS: Final = 2
_SIMILAR: Final = 0.9
_TRAILING_NUMBER: Final = re.compile(r"\d+\Z", re.ASCII)

T = TypeVar("T", bound=Hashable)
Key = tuple[str, str]


def suggest_joins(datasets: Sequence[FoundDataset]) -> tuple[Suggestion, ...]:
    """Datasets next to each other that have nine of ten columns in common, the most first."""
    neighbours: dict[tuple[str, str], dict[str, FoundDataset]] = {}
    for each in datasets:
        if each.table is None:
            folder = each.path.rpartition("/")[0]
            neighbours.setdefault((folder, each.format), {})[each.path] = each
    found: list[Suggestion] = []
    for some in neighbours.values():
        if len(some) > 1:
            fields = {path: leaf_fields(each.schema) for path, each in some.items()}
            for paths in _similar(fields):
                found.append(_suggestion([some[path] for path in sorted(paths)], datasets))
    return tuple(sorted(found, key=lambda each: (-len(each.datasets), each.datasets)))


def join_similar(
    groups: Mapping[Key, list[PlaceSummary]], schemas: SchemasByFingerprint, before: GroupingState
) -> tuple[dict[Key, list[PlaceSummary]], set[Key]]:
    """The groups, similar ones joined, and the keys of those that were joined.

    Joined are files of one folder, under the path of the folder, and numbered folders, with NNN
    for the number. A key is the path and the format of a dataset.
    """
    joined = dict(groups)
    united: set[Key] = set()
    earlier = {(each.base, each.pattern, each.format): each.dataset for each in before.places}
    taken = before.datasets
    for family_of in (_folder_of_file, _numbered_path):
        families: dict[Key, dict[Key, Fields]] = {}
        for key, places in joined.items():
            path = family_of(key[0], places)
            if path is not None:
                every = (leaf_fields(schemas[place.full]) for place in places)
                families.setdefault((path, key[1]), {})[key] = frozenset().union(*every)
        for family, members in families.items():
            for cluster in sorted(_similar(members), key=len, reverse=True):
                places = [place for key in sorted(cluster) for place in joined.pop(key)]
                # The path stays that of the last scan. Of several clusters, only one has that of
                # the family.
                known = Counter(
                    earlier[key_of(place)[:3]] for place in places if key_of(place)[:3] in earlier
                )
                choices = [path for path, _ in known.most_common()]
                is_free = family not in joined and family[0] not in taken
                target = next(
                    (
                        (path, family[1])
                        for path in choices
                        if path == family[0] or (path, family[1]) in cluster
                    ),
                    family if is_free else min(cluster),
                )
                joined[target] = places
                united = (united - set(cluster)) | {target}
    return joined, united


def _similar(fields: Mapping[T, Fields]) -> Iterator[list[T]]:
    """Two or more whose columns are nearly the same; one column alone says nothing."""
    wide = {key: each for key, each in fields.items() if len(each) >= _FEWEST_FIELDS}
    yield from (some for some in clusters(wide, share=_SIMILAR) if len(some) > 1)


def _folder_of_file(path: str, places: Iterable[PlaceSummary]) -> str | None:
    """The folder of a dataset that is named after its files."""
    is_file = any(is_named_by_file(place.first_path) for place in places)
    return path.rpartition("/")[0] if is_file else None


def _numbered_path(path: str, _places: Iterable[PlaceSummary]) -> str | None:
    """The path with NNN for the numbers of its folders, if there are any."""
    folders = path.split("/")
    numbered = [_TRAILING_NUMBER.sub("NNN", folder) for folder in folders]
    return "/".join(numbered) if numbered != folders else None


def _suggestion(members: Sequence[FoundDataset], datasets: Sequence[FoundDataset]) -> Suggestion:
    folder = members[0].path.rpartition("/")[0]
    chosen = {each.path for each in members}
    others = [each for each in datasets if each.path not in chosen]
    name = folder.rpartition("/")[2] or "joined"
    if any(each.path == f"{folder}/{name}" for each in others):
        name = f"all_{name}"
    return Suggestion(
        datasets=tuple(each.path for each in members),
        names=tuple(each.name or each.path.rpartition("/")[2] for each in members),
        columns=len(members[0].schema.fields),
        hint=_patterns(
            [each.location.uri for each in members], [each.location.uri for each in others]
        ),
        name=name,
    )


def _patterns(locations: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Patterns for a hint that joins the datasets at these locations and no others, if any can.

    A pattern takes in all that lies below what it matches.
    """
    if any(set("*?{}[") & set(location) for location in locations):
        return ()
    folders = {location.rpartition("/")[0] for location in locations}
    names = [location.rpartition("/")[2] for location in locations]
    # One more numbered folder should match as well.
    start = _common_start(names).rstrip("0123456789")
    end = _common_start([name[len(start) :][::-1] for name in names])[::-1]
    folder = min(folders)
    pattern = re.compile(f"{re.escape(start)}[^/]*{re.escape(end)}(?:/|\\Z)")
    if len(folders) == 1 and not any(
        pattern.match(other.removeprefix(f"{folder}/"))
        for other in others
        if other.startswith(f"{folder}/")
    ):
        return (f"{folder}/{start}*{end}",)
    below = tuple(f"{location}/" for location in locations)
    return () if any(other.startswith(below) for other in others) else tuple(locations)


def _common_start(names: Sequence[str]) -> str:
    letters = takewhile(lambda each: len(set(each)) == 1, zip(*names, strict=False))
    return "".join(each[0] for each in letters)
