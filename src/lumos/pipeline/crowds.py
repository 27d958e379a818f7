"""Sums up files and folders whatever they are called, where there are too many names to keep."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from lumos.pipeline.hints import hinted_location
from lumos.pipeline.placement import ANY_NAME, split_name

if TYPE_CHECKING:
    from lumos.pipeline.summaries import PlaceSummary

# From so many names of one schema on, no person would call them tables of their own.
_CROWD: Final = 200
# How far above a file a folder may be that stands for one thing of many.
_LEVELS: Final = 4


class _Crowd(NamedTuple):
    """The place of all files of a crowd: its folder, and a pattern for any name."""

    base: str
    pattern: str


def without_crowds(places: "Iterable[PlaceSummary]") -> "list[PlaceSummary]":
    """The places, those of a crowd of names as one, so that few stand for any number of files."""
    found = list(places)
    for crowd_of in (_of_files, *(_of_folders(level) for level in range(1, _LEVELS + 1))):
        if len(found) <= _CROWD:
            break
        found = _taken_together(found, crowd_of)
    return found


def is_crowd(pattern: str) -> bool:
    """Whether a place stands for files or folders of any name."""
    return ANY_NAME in pattern


def is_in_crowd(base: str, pattern: str, crowd: "tuple[str, str]") -> bool:
    """Whether a place is one of those that were summed up under a crowd's base and pattern."""
    names, any_names = f"{base}/{pattern}".split("/"), "/".join(crowd).split("/")
    return len(names) == len(any_names) and all(
        name == other or other.startswith(ANY_NAME)
        for name, other in zip(names, any_names, strict=True)
    )


def _taken_together(
    places: "list[PlaceSummary]", crowd_of: "Callable[[PlaceSummary], _Crowd | None]"
) -> "list[PlaceSummary]":
    crowds: dict[tuple[_Crowd, str, str], list[PlaceSummary]] = {}
    rest: list[PlaceSummary] = []
    for place in places:
        crowd = None if hinted_location(place.pattern) is not None else crowd_of(place)
        if crowd is None:
            rest.append(place)
        else:
            crowds.setdefault((crowd, place.format, place.full), []).append(place)
    for (crowd, _, _), some in crowds.items():
        if len(some) <= _CROWD:
            rest.extend(some)
            continue
        one = msgspec.structs.replace(some[0], base=crowd.base, pattern=crowd.pattern)
        for other in some[1:]:
            one.merge(other)
        rest.append(one)
    return rest


def _of_files(place: "PlaceSummary") -> _Crowd | None:
    above, slash, name = place.pattern.rpartition("/")
    stem, ending = split_name(name)
    return None if ANY_NAME in stem else _Crowd(place.base, f"{above}{slash}{ANY_NAME}{ending}")


def _of_folders(level: int) -> "Callable[[PlaceSummary], _Crowd | None]":
    def crowd(place: "PlaceSummary") -> _Crowd | None:
        folders = place.base.split("/")
        if len(folders) <= level:
            return None
        below = folders[len(folders) - level + 1 :]
        base = "/".join(folders[: len(folders) - level])
        return _Crowd(base, "/".join([ANY_NAME, *below, place.pattern]))

    return crowd
