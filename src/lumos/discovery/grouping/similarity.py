"""Datasets that have nearly the same columns, and those of them that a source may join."""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from lumos.discovery.grouping.columns import Fields, FieldsByFingerprint, clusters
from lumos.discovery.grouping.patterns import is_named_by_file, place
from lumos.discovery.grouping.state import GroupingState, key_of
from lumos.discovery.hints import hinted_location
from lumos.discovery.summaries import PlaceSummary

_FEWEST_FIELDS: Final = 2
_SIMILAR: Final = 0.9
# A number after a word; `v1` is a word of its own.
_NUMBERED: Final = re.compile(r"(.*[^\W\d_][\W_]*?)(?<!\d)\d+\Z")
_VERSION: Final = re.compile(r"(?:(?:\A|[\W_])[vV]|(?<=[a-z])V)\d+\Z")

T = TypeVar("T", bound=Hashable)
# The path and the format of a dataset.
Key = tuple[str, str]
Groups = Mapping[Key, Sequence[PlaceSummary]]


class Joined(NamedTuple):
    """Groups, similar ones joined, and for each that was joined the keys of its members."""

    groups: dict[Key, list[PlaceSummary]]
    members: dict[Key, list[Key]]


def join_similar(
    groups: Groups, fields: FieldsByFingerprint, before: GroupingState | None = None
) -> Joined:
    """Join files of one folder, under the path of the folder, and numbered folders, as NNN."""
    joined = {key: list(places) for key, places in groups.items()}
    members: dict[Key, list[Key]] = {}
    earlier = _EarlierJoins(before or GroupingState())
    for family_of, path_of in (
        (folder_of_files, _folder_path),
        (_numbered_path, _common_numbered_path),
    ):
        families: dict[tuple[Hashable, str], list[Key]] = {}
        for key, places in joined.items():
            family = family_of(key[0], places)
            if family is not None:
                families.setdefault((family, key[1]), []).append(key)
        for (_, format), family_keys in families.items():
            some = {key: joined[key] for key in family_keys}
            for cluster in sorted(similar(some, fields), key=len, reverse=True):
                places = [place for key in sorted(cluster) for place in joined.pop(key)]
                path = path_of([key[0] for key in cluster])
                target = earlier.target((path, format), cluster, places)
                # Of several clusters in one folder, only the first has the path of the folder.
                if target in joined:
                    target = min(cluster)
                joined[target] = places
                members[target] = [
                    each for key in sorted(cluster) for each in members.pop(key, [key])
                ]
    return Joined(joined, members)


def similar(groups: Groups, fields: FieldsByFingerprint) -> Iterator[list[Key]]:
    """Two or more groups whose columns are nearly the same; one column alone says nothing."""
    if len(groups) < 2:
        return
    of_group: dict[Key, Fields] = {}
    for key, places in groups.items():
        every = frozenset().union(*(fields[full] for full in {place.full for place in places}))
        if len(every) >= _FEWEST_FIELDS:
            of_group[key] = every
    yield from (some for some in clusters(of_group, share=_SIMILAR) if len(some) > 1)


class _EarlierJoins:
    """The paths of datasets that the last scan joined; they stay."""

    def __init__(self, before: GroupingState) -> None:
        places = [each for each in before.places if hinted_location(each.pattern) is None]
        self._dataset_of = {(each.base, each.pattern, each.format): each.dataset for each in places}
        self._taken = {(each.dataset, each.format) for each in places}
        self._members: dict[str, set[str]] = {}
        for each in places:
            self._members.setdefault(each.dataset, set()).add(place(each.first_path).dataset)

    def target(self, wanted: Key, cluster: Sequence[Key], places: Sequence[PlaceSummary]) -> Key:
        """The path that joined groups had before, or the wanted one unless it was another's."""
        known = Counter(
            self._dataset_of[key_of(place)[:3]]
            for place in places
            if key_of(place)[:3] in self._dataset_of
        )
        for path, _ in known.most_common():
            key = (path, wanted[1])
            if key == wanted or (key in cluster and len(self._members[path]) > 1):
                return key
        return min(cluster) if wanted in self._taken else wanted


def folder_of_files(path: str, places: Sequence[PlaceSummary]) -> Hashable | None:
    """The one folder that holds a dataset named after its files, with placeholders for values."""
    folders = {f"{place.base}/{place.pattern}".rpartition("/")[0] for place in places}
    is_plain = all(place.dataset == path and is_named_by_file(place.first_path) for place in places)
    return (path.rpartition("/")[0], *folders) if is_plain and len(folders) == 1 else None


def _numbered_path(path: str, _places: Sequence[PlaceSummary]) -> Hashable | None:
    """The path with NNN for the numbers of its folders, if there are any."""
    folders = path.split("/")
    numbered = [_without_number(folder) for folder in folders]
    return "/".join(numbered) if numbered != folders else None


def _without_number(folder: str) -> str:
    match = None if _VERSION.search(folder) else _NUMBERED.match(folder)
    return folder if match is None else f"{match[1]}NNN"


def _folder_path(paths: Sequence[str]) -> str:
    return paths[0].rpartition("/")[0]


def _common_numbered_path(paths: Sequence[str]) -> str:
    """The path of numbered folders, with NNN where their numbers differ."""
    levels = zip(*(path.split("/") for path in paths), strict=True)
    return "/".join(
        names[0] if len(set(names)) == 1 else _without_number(names[0]) for names in levels
    )
