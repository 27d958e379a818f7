"""Suggests hints that join datasets with the same columns and match no other files."""

import re
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, takewhile
from typing import Final

from lumos.discovery.grouping.columns import (
    FieldsByFingerprint,
    GroupKey,
    Groups,
    SchemasByFingerprint,
    find_similar,
    folder_of_files,
    join_similar,
)
from lumos.discovery.grouping.datasets import (
    DatasetGroup,
    GroupingResult,
    any_glob,
    common_glob,
    locations_of,
    path_globs,
)
from lumos.discovery.grouping.hints import HintMatcher, free_names, hinted_location
from lumos.discovery.lake.summaries import FileSet, FileSetKey
from lumos.model.dataset_pattern import strip_extensions
from lumos.model.discovery import Suggestion
from lumos.storage import FileHint

# Characters that a pattern cannot contain literally.
_SPECIAL: Final = frozenset("*?{}[")
# Dates, numbers and identifiers never contain an extension.
_EXTENSION: Final = re.compile(r"\.[A-Za-z]")

Levels = tuple[str, ...]


def suggest_joins(
    groups: Iterable[DatasetGroup],
    schemas: SchemasByFingerprint,
    *,
    grouping: GroupingResult,
    root: str,
    tables: Collection[str] = (),
) -> tuple[Suggestion, ...]:
    """Suggest hints that join neighbouring datasets with at least 90% of columns in common.

    Only `groups` are joined; a suggested hint matches no files of other groups. Datasets of
    existing hints are not joined. The largest suggestion comes first.
    """
    by_key = {each.key: each for each in groups if each.rule.name != "hint"}
    file_sets = {key: each.file_sets for key, each in by_key.items()}
    similar = _similar_datasets(file_sets, FieldsByFingerprint(schemas))
    if not similar:
        return ()
    index = _FileIndex(grouping, root, tables)
    candidates: list[Suggestion] = []
    for keys, is_joined_exactly in similar:
        members = sorted((by_key[key] for key in keys), key=lambda each: each.dataset)
        patterns, name = index.hint_for(members)
        candidates.append(
            Suggestion(
                datasets=tuple(each.dataset for each in members),
                names=tuple(each.name or each.dataset.rpartition("/")[2] for each in members),
                columns=len(schemas[members[0].file_sets[-1].schema_fingerprint].fields),
                hint=patterns,
                name=name,
                join_similar=is_joined_exactly,
            )
        )
    return tuple(sorted(candidates, key=lambda each: (-len(each.datasets), each.datasets)))


def _similar_datasets(
    file_sets: Groups, fields: FieldsByFingerprint
) -> list[tuple[list[GroupKey], bool]]:
    """Disjoint sets of similar datasets, and whether `join_similar` would join exactly these.

    A set contains the similar datasets of one folder, or those that `join_similar` would join,
    whichever set is larger. For example, a folder of 800 similar tables is one suggestion, even if
    `join_similar` alone would only join four numbered ones.
    """
    neighbours: dict[Hashable, dict[GroupKey, Sequence[FileSet]]] = {}
    for (path, format), members in file_sets.items():
        folder = folder_of_files(path, members) or path.rpartition("/")[0]
        neighbours.setdefault((folder, format), {})[path, format] = members
    joined = join_similar(file_sets, fields).members.values()
    candidates = [(keys, True) for keys in joined]
    candidates += (
        (keys, False) for members in neighbours.values() for keys in find_similar(members, fields)
    )
    candidates.sort(key=lambda each: (-len(each[0]), not each[1], min(each[0])))
    used_keys: set[GroupKey] = set()
    similar: list[tuple[list[GroupKey], bool]] = []
    for keys, is_joined in candidates:
        unused = [key for key in keys if key not in used_keys]
        if len(unused) > 1:
            used_keys.update(unused)
            similar.append((unused, is_joined and len(unused) == len(keys)))
    return similar


class _FileIndex:
    """All files and datasets of a root, to check which files a pattern would match."""

    def __init__(self, grouping: GroupingResult, root: str, tables: Collection[str]) -> None:
        self._root = root
        self._datasets = {*tables, *(each.dataset for each in grouping.groups)}
        candidates = [file_set for each in grouping.groups for file_set in each.file_sets]
        self._files = sorted(
            (levels, file_set.key)
            for file_set in (*candidates, *grouping.sidecars)
            for levels in _file_levels(file_set, root)
        )
        # Files by the folder before their first `*`: any pattern in that folder may match them.
        self._varying: dict[Levels, list[tuple[Levels, FileSetKey]]] = {}
        for levels, key in self._files:
            folder = tuple(takewhile(lambda name: "*" not in name, levels))
            if folder != levels:
                self._varying.setdefault(folder, []).append((levels, key))

    def hint_for(self, members: Sequence[DatasetGroup]) -> tuple[tuple[str, ...], str]:
        """The patterns of a hint that matches only these datasets, and a name for the hint.

        There are no patterns if each would match other files as well. A `*` replaces the varying
        part of names with a common word, or all names of a folder if all its datasets are members.
        """
        name = self._common_name(members)
        file_sets = [file_set for each in members for file_set in each.file_sets]
        paths = {
            path for file_set in file_sets for path in (file_set.first_path, file_set.last_path)
        }
        if any(_SPECIAL.intersection(path) for path in paths):
            return (), name
        member_keys = {each.key for each in file_sets}
        locations_of_members = sorted(
            {each for file_set in file_sets for each in locations_of(file_set, self._root)}
        )
        locations_are_files = {len(path.split("/")) for path in paths} == {
            len(each.split("/")) for each in locations_of_members
        }
        for patterns in (
            *self._globs(
                locations_of_members, member_keys, locations_are_files=locations_are_files
            ),
            locations_of_members,
        ):
            hint = FileHint(path=tuple(patterns))
            matches_all = all(map(HintMatcher([hint], root=self._root).matching_hints, paths))
            others = (
                other
                for each in patterns
                for other in self._other_files(each.split("/"), member_keys)
            )
            if matches_all and next(others, None) is None:
                return tuple(patterns), self._free_name(tuple(patterns), name, members)
        return (), name

    def _globs(
        self,
        locations_of_members: Sequence[str],
        member_keys: Collection[FileSetKey],
        *,
        locations_are_files: bool,
    ) -> Iterator[list[str]]:
        paths = [location.split("/") for location in locations_of_members]
        if len({len(path) for path in paths}) > 1:
            return
        names = [sorted(set(level)) for level in zip(*paths, strict=True)]
        by_words = [
            names_of_level[0] if len(names_of_level) == 1 else common_glob(names_of_level)
            for names_of_level in names
        ]
        if "" not in by_words[1:]:
            yield ["/".join(by_words)]
        folder = [names_of_level[0] for names_of_level in names[:-1]]
        if all(len(names_of_level) == 1 for names_of_level in names[:-1]):
            others = self._other_files([*folder, "*"], member_keys)
            if not any(len(levels) == len(names) or not locations_are_files for levels in others):
                yield ["/".join([*folder, any_glob(names[-1])])]

    def _other_files(
        self, pattern: Sequence[str], member_keys: Collection[FileSetKey]
    ) -> Iterator[Levels]:
        """The files that a pattern may match, except those of the member file sets."""
        fixed = tuple(takewhile(lambda name: "*" not in name, pattern))
        varying = pattern[len(fixed) :]
        start = varying[0].partition("*")[0] if varying else ""
        for levels, key in chain(self._starting_with(fixed, start), self._varying.get(fixed, ())):
            if (
                key not in member_keys
                and len(levels) >= len(pattern)
                and all(map(_may_match, varying, levels[len(fixed) :]))
            ):
                yield levels

    def _starting_with(self, folder: Levels, start: str) -> Iterator[tuple[Levels, FileSetKey]]:
        """The files below a folder whose next path segment after `folder` starts with `start`."""
        first = bisect_left(self._files, ((*folder, start) if start else folder,))
        for index in range(first, len(self._files)):
            levels, key = self._files[index]
            if levels[: len(folder)] != folder or not "".join(
                levels[len(folder) : len(folder) + 1]
            ).startswith(start):
                return
            yield levels, key

    def _common_name(self, members: Sequence[DatasetGroup]) -> str:
        """The name or the first words that the datasets share, or the name of their folder."""
        folders, names = zip(*(each.key[0].rpartition("/")[::2] for each in members), strict=True)
        if len(set(names)) == 1:
            return strip_extensions(names[0])
        if words := common_glob(names).partition("*")[0].strip("_-. "):
            return words
        return str(min(folders)).rpartition("/")[2] or "joined"

    def _free_name(
        self, patterns: tuple[str, ...], name: str, members: Sequence[DatasetGroup]
    ) -> str:
        member_datasets = {each.dataset for each in members}
        path = members[0].file_sets[0].first_path

        def is_free(name: str) -> bool:
            hints = HintMatcher([FileHint(path=patterns, name=name)], root=self._root)
            dataset = hints.assign(path).dataset
            return dataset in member_datasets or dataset not in self._datasets

        return next(filter(is_free, free_names(name)))


def _file_levels(file_set: FileSet, root: str) -> Iterable[Levels]:
    """The paths of a file set's files, with `*` for the parts that vary."""
    if hinted_location(file_set.pattern) is not None:
        paths: Iterable[str] = (file_set.first_path, file_set.last_path)
    else:
        paths = path_globs(file_set, root)
    return {tuple(path.split("/")) for path in paths}


def _may_match(pattern: str, name: str) -> bool:
    """Whether a pattern may match a name, which may contain `*` as well."""
    if pattern in {"*", name}:
        return True
    if "*" not in name:
        return _regex(pattern).fullmatch(name) is not None
    if "*" not in pattern:
        return _regex(name).fullmatch(pattern) is not None
    (start, *_, end), (other_start, *_, other_end) = pattern.split("*"), name.split("*")
    may_end_in_value = end.endswith(other_end) and not _EXTENSION.search(
        end.removesuffix(other_end)
    )
    return (start.startswith(other_start) or other_start.startswith(start)) and (
        may_end_in_value or other_end.endswith(end)
    )


@lru_cache(1024)
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
