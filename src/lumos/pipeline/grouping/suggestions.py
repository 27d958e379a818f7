"""Hints that would join datasets with the same columns, and nothing else."""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final

from lumos.model.discovery import Suggestion
from lumos.model.pattern import strip_extensions
from lumos.pipeline.grouping.columns import SchemasByFingerprint
from lumos.pipeline.grouping.datasets import Group, Grouping
from lumos.pipeline.grouping.locations import any_name, common_glob, locations, path_globs
from lumos.pipeline.grouping.similarity import Key, join_similar, similar
from lumos.pipeline.grouping.state import PlaceKey, key_of
from lumos.pipeline.hints import Hints, free_names, hinted_location
from lumos.pipeline.summaries import PlaceSummary
from lumos.storage import Hint

# Characters that a pattern cannot stand for literally.
_SPECIAL: Final = frozenset("*?{}[")
# No value ends like this: not a date, a number or an identifier.
_EXTENSION: Final = re.compile(r"\.[A-Za-z]")

Levels = tuple[str, ...]


def suggest_joins(
    groups: Iterable[Group],
    schemas: SchemasByFingerprint,
    *,
    grouping: Grouping,
    root: str,
    tables: Collection[str] = (),
) -> tuple[Suggestion, ...]:
    """Datasets next to each other that have nine of ten columns in common, the most first.

    Some groups of a grouping are looked at; a suggested hint leaves all others alone. What a hint
    decided is not put into question.
    """
    by_key = {each.key: each for each in groups if each.rule.name != "hint"}
    places = {key: each.places for key, each in by_key.items()}
    found = [(keys, True) for keys in join_similar(places, schemas).members.values()]
    accepted = {key for keys, _ in found for key in keys}
    neighbours: dict[Key, dict[Key, list[PlaceSummary]]] = {}
    for key in by_key.keys() - accepted:
        neighbours.setdefault((key[0].rpartition("/")[0], key[1]), {})[key] = places[key]
    found += ((keys, False) for some in neighbours.values() for keys in similar(some, schemas))
    if not found:
        return ()
    lake = _Lake(grouping, root, tables)
    every: list[Suggestion] = []
    for keys, is_accepted in found:
        members = sorted((by_key[key] for key in keys), key=lambda each: each.dataset)
        patterns, name = lake.hint_for(members)
        every.append(
            Suggestion(
                datasets=tuple(each.dataset for each in members),
                names=tuple(each.name or each.dataset.rpartition("/")[2] for each in members),
                columns=len(schemas[members[0].places[-1].full].fields),
                hint=patterns,
                name=name,
                join_similar=is_accepted,
            )
        )
    return tuple(sorted(every, key=lambda each: (-len(each.datasets), each.datasets)))


class _Lake:
    """All files and datasets of a root, to find out what a pattern would match."""

    def __init__(self, grouping: Grouping, root: str, tables: Collection[str]) -> None:
        self._root = root
        self._datasets = {*tables, *(each.dataset for each in grouping.groups)}
        every = [place for each in grouping.groups for place in each.places]
        self._files = sorted(
            (levels, key_of(place))
            for place in (*every, *grouping.sidecars)
            for levels in _file_levels(place, root)
        )

    def hint_for(self, members: Sequence[Group]) -> tuple[tuple[str, ...], str]:
        """The patterns of a hint that takes in these datasets alone, if there are any, and a name.

        A pattern has `*` only where it stands for words: names with a common word, or all names of
        a folder whose datasets are all members.
        """
        name = self._name(members)
        places = [place for each in members for place in each.places]
        paths = {path for place in places for path in (place.first_path, place.last_path)}
        if any(_SPECIAL.intersection(path) for path in paths):
            return (), name
        own = set(map(key_of, places))
        listed = sorted({each for place in places for each in locations(place, self._root)})
        are_files = {len(path.split("/")) for path in paths} == {
            len(each.split("/")) for each in listed
        }
        for patterns in (*self._globs(listed, own, are_files=are_files), listed):
            hint = Hint(path=tuple(patterns))
            takes_all = all(map(Hints([hint], root=self._root).matching, paths))
            if takes_all and not any(self._others(each.split("/"), own) for each in patterns):
                return tuple(patterns), self._free_name(tuple(patterns), name, members)
        return (), name

    def _globs(
        self, listed: Sequence[str], own: Collection[PlaceKey], *, are_files: bool
    ) -> Iterator[list[str]]:
        paths = [each.split("/") for each in listed]
        if len({len(path) for path in paths}) > 1:
            return
        names = [sorted(set(level)) for level in zip(*paths, strict=True)]
        by_words = [each[0] if len(each) == 1 else common_glob(each) for each in names]
        if "" not in by_words[1:]:
            yield ["/".join(by_words)]
        folder = [each[0] for each in names[:-1]]
        if all(len(each) == 1 for each in names[:-1]):
            there = self._others([*folder, "*"], own)
            if not any(len(each) == len(names) or not are_files for each in there):
                yield ["/".join([*folder, any_name(names[-1])])]

    def _others(self, pattern: Sequence[str], own: Collection[PlaceKey]) -> list[Levels]:
        """The files outside of some places that a pattern may match, or that lie below it."""
        fixed = tuple(takewhile(lambda name: "*" not in name, pattern))
        found: list[Levels] = []
        for at in range(bisect_left(self._files, (fixed,)), len(self._files)):
            levels, key = self._files[at]
            if levels[: len(fixed)] != fixed:
                break
            if (
                key not in own
                and len(levels) >= len(pattern)
                and all(map(_may_match, pattern, levels))
            ):
                found.append(levels)
        return found

    def _name(self, members: Sequence[Group]) -> str:
        """The name of their folder, or the one that they have in common."""
        folders, names = zip(*(each.key[0].rpartition("/")[::2] for each in members), strict=True)
        if len(set(names)) == 1:
            return strip_extensions(names[0])
        return str(min(folders)).rpartition("/")[2] or "joined"

    def _free_name(self, patterns: tuple[str, ...], name: str, members: Sequence[Group]) -> str:
        own = {each.dataset for each in members}
        path = members[0].places[0].first_path

        def is_free(name: str) -> bool:
            hints = Hints([Hint(path=patterns, name=name)], root=self._root)
            dataset = hints.place(path).dataset
            return dataset in own or dataset not in self._datasets

        return next(filter(is_free, free_names(name)))


def _file_levels(place: PlaceSummary, root: str) -> Iterable[Levels]:
    """The paths of a place's files, with `*` for what varies."""
    paths = (place.first_path, place.last_path)
    if hinted_location(place.pattern) is not None:
        return {tuple(path.split("/")) for path in paths}
    return {tuple("/".join(path_globs(path, place, root)).split("/")) for path in paths}


def _may_match(pattern: str, name: str) -> bool:
    """Whether a pattern may match a name, which may have `*` as well."""
    if "*" not in name:
        return re.fullmatch(_regex(pattern), name, re.DOTALL) is not None
    if "*" not in pattern:
        return re.fullmatch(_regex(name), pattern, re.DOTALL) is not None
    (start, *_, end), (other_start, *_, other_end) = pattern.split("*"), name.split("*")
    is_in_value = end.endswith(other_end) and not _EXTENSION.search(end.removesuffix(other_end))
    return (start.startswith(other_start) or other_start.startswith(start)) and (
        is_in_value or other_end.endswith(end)
    )


def _regex(pattern: str) -> str:
    return ".*".join(map(re.escape, pattern.split("*")))
