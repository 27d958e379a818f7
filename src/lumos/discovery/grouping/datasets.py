"""Groups files into datasets: by hints, path patterns, columns, and decisions of earlier scans."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Final, NamedTuple

from msgspec.structs import replace

from lumos.discovery.grouping.columns import (
    FieldsByFingerprint,
    GroupKey,
    SchemasByFingerprint,
    join_similar,
    split_by_columns,
)
from lumos.discovery.grouping.hints import ColumnSplit, HintMatcher, free_names, hinted_location
from lumos.discovery.grouping.patterns import (
    PLACEHOLDER,
    anchor_of,
    name_of,
    path_levels,
    restore_braces,
    split_name,
)
from lumos.discovery.grouping.sidecars import describe_sidecar
from lumos.discovery.grouping.state import (
    GroupingState,
    Predecessors,
    RememberedFiles,
    find_destinations,
    find_predecessors,
)
from lumos.discovery.grouping.values import BRACES
from lumos.discovery.lake.summaries import FileSet, PartitionKey, merge_partition_keys
from lumos.model.dataset_pattern import strip_extensions

# Suffix in the key of a dataset that a hint defines.
_HINT_SUFFIX: Final = "\0hint"
# If one pattern has files of two formats, the first format in this order gets the path of the
# pattern, and the others get a suffix such as `/*.csv`.
_FORMAT_RANK: Final = ("parquet", "avro", "orc", "csv", "json")
_KIND_NAMES: Final = {
    "hive": "partition values", "n": "numbers", "number": "numbers", "id": "identifiers",
    "uuid": "identifiers", "region": "regions", "ip": "addresses",
}  # fmt: skip


class GroupingRule(NamedTuple):
    """The rule that formed a dataset, and the reason."""

    name: str
    reason: str


class DatasetGroup(NamedTuple):
    """The file sets of one dataset, its location, and the rule that grouped them.

    `key` is the path of the pattern, and the format. `names` are the templates of the folders
    and, last, of the files. `renamed_from`, `merged_from` and `split_from` are the datasets of the
    last scan that this one continues. `requested_path` is the path in a hint, if another dataset
    already has that path.
    """

    dataset: str
    location: str
    file_sets: list[FileSet]
    key: GroupKey
    name: str | None = None
    names: tuple[str, ...] = ()
    extension: str = ""
    rule: GroupingRule = GroupingRule("pattern", "")
    renamed_from: str | None = None
    merged_from: tuple[str, ...] = ()
    split_from: str | None = None
    requested_path: str | None = None

    @property
    def keys(self) -> list[PartitionKey]:
        """The partition keys of all file sets."""
        keys: list[PartitionKey] = []
        for file_set in self.file_sets:
            keys = merge_partition_keys(keys, file_set.keys)
        return keys


class GroupingResult(NamedTuple):
    """The datasets, the state for the next scan, and the file sets that only accompany data."""

    groups: list[DatasetGroup]
    state: GroupingState
    sidecars: list[FileSet]


def group_files(
    file_sets: Iterable[FileSet],
    schemas: SchemasByFingerprint,
    *,
    hints: HintMatcher,
    before: GroupingState | None = None,
    tables: Collection[str] = (),
    joins_similar: bool = False,
    was_listed: Callable[[str], bool] = lambda _path: True,
    recorded_formats: Callable[[Collection[str]], Mapping[str, str | None]] = lambda _paths: {},
) -> GroupingResult:
    """Group file sets into datasets.

    `tables` are roots of table formats, whose paths no other dataset may have. `was_listed` returns
    whether the last scan listed a file, and `recorded_formats` returns the formats of recorded
    datasets by path.
    """
    before = before or GroupingState()
    all_file_sets = sorted(file_sets, key=lambda each: each.key)
    hinted: list[FileSet] = []
    data: list[FileSet] = []
    sidecars: list[FileSet] = []
    for each in all_file_sets:
        if hinted_location(each.pattern) is not None:
            hinted.append(each)
        elif describe_sidecar(each, schemas) is None:
            data.append(each)
        else:
            sidecars.append(each)
    groups, splits = _group_by_pattern(data, schemas, before)
    paths_from_splits = {path for split in splits for path in split.named_datasets}
    rules = {key: "columns" for key in groups if key[0] in paths_from_splits}
    if joins_similar:
        groups, joined = join_similar(groups, FieldsByFingerprint(schemas), before)
        rules |= dict.fromkeys(joined, "similar")
    for each in hinted:
        # With a suffix, since other files may have the same path by their pattern.
        key = (f"{each.dataset}{_HINT_SUFFIX}", each.format)
        groups.setdefault(key, []).append(each)
        rules[key] = "hint"
    if before.is_upgrade:
        before = _restore_earlier_paths(groups, before, tables, hints=hints, was_listed=was_listed)
    format_counts = Counter(path for path, _ in groups)
    ambiguous_paths = [path for path, count in format_counts.items() if count > 1]
    recorded = recorded_formats(ambiguous_paths) if ambiguous_paths else {}
    paths = _choose_paths(groups, before, tables, recorded, root=hints.root)
    predecessors = find_predecessors(
        {paths[key]: members for key, members in groups.items()},
        before,
        assign=hints.assign,
        was_listed=was_listed,
    )
    taken = {*tables, *(path for key, path in paths.items() if not _is_hinted(key))}
    result = [
        _make_group(
            paths[key],
            key,
            members,
            rules.get(key, "pattern"),
            predecessors.get(paths[key]),
            hints.root,
            requested_path=_path_of_key(key)
            if _is_hinted(key) and _path_of_key(key) in taken
            else None,
        )
        for key, members in groups.items()
    ]
    result.sort(key=lambda each: each.dataset)
    state = GroupingState(
        file_sets=[
            RememberedFiles.of(file_set, each.dataset)
            for each in result
            for file_set in each.file_sets
        ],
        paths=_stored_paths(paths, before),
        splits=splits,
    )
    return GroupingResult(result, state, sidecars)


def _group_by_pattern(
    file_sets: Iterable[FileSet], schemas: SchemasByFingerprint, before: GroupingState
) -> tuple[dict[GroupKey, list[FileSet]], list[ColumnSplit]]:
    """File sets by the path and format of their dataset, and the splits by columns."""
    by_path: dict[GroupKey, list[FileSet]] = {}
    for file_set in file_sets:
        by_path.setdefault((file_set.dataset, file_set.format), []).append(file_set)
    splits = {split.dataset: split for split in before.splits}
    paths_from_splits = {path for split in before.splits for path in split.named_datasets}
    groups: dict[GroupKey, list[FileSet]] = {}
    for (path, format), members in sorted(by_path.items()):
        if path in paths_from_splits or (len(members) == 1 and path not in splits):
            groups.setdefault((path, format), []).extend(members)
            continue
        earlier = splits.get(path)
        earlier_datasets = {
            dataset: by_path.get((dataset, format), ())
            for dataset in (earlier.named_datasets if earlier else ())
        }
        parts, split = split_by_columns(path, members, schemas, earlier, earlier_datasets)
        for part, part_members in parts.items():
            groups.setdefault((part, format), []).extend(part_members)
        if split is not None:
            splits[path] = split
    return groups, list(splits.values())


def _choose_paths(
    groups: Collection[GroupKey],
    before: GroupingState,
    tables: Collection[str],
    recorded: Mapping[str, str | None],
    *,
    root: str,
) -> dict[GroupKey, str]:
    """Choose a unique path for each dataset: that of the last scan, or of its pattern or hint.

    If one pattern has datasets of two formats, the path of the pattern goes to the format that is
    recorded for this path, or else to the first in `_FORMAT_RANK`. The dataset of a hint gets
    another path if a dataset outside of the hint already has its path.
    """
    paths: dict[GroupKey, str] = {}
    used = set(tables)
    unnamed: list[GroupKey] = []
    hinted_datasets = {
        (each.base, each.format): each.dataset
        for each in before.file_sets
        if hinted_location(each.pattern) is not None
    }
    free_paths: dict[str, str] = {}
    format_ranks = {format: rank for rank, format in enumerate(_FORMAT_RANK)}
    last_rank = len(_FORMAT_RANK)
    for key in sorted(groups, key=lambda each: (format_ranks.get(each[1], last_rank), each)):
        earlier = before.paths.get(_stored_key(*key))
        if earlier is None and _is_hinted(key):
            earlier = hinted_datasets.get((_path_of_key(key), key[1]))
        if earlier is None or earlier in used:
            unnamed.append(key)
            continue
        paths[key] = earlier
        used.add(earlier)
        if _is_hinted(key):
            free_paths.setdefault(_path_of_key(key), earlier.removesuffix(f"/*.{key[1]}"))
    last_datasets = before.datasets
    last_formats = {
        file_set.dataset: file_set.format
        for file_set in before.file_sets
        if file_set.dataset in last_datasets
    }
    format_of_path = {**last_formats, **recorded}
    # Datasets that were recorded, or found by the last scan, with the same format come first.
    # Datasets of hints come last.
    unnamed.sort(key=lambda key: (_is_hinted(key), format_of_path.get(key[0]) != key[1]))
    for key in unnamed:
        path, format = _path_of_key(key), key[1]
        if _is_hinted(key):
            path = free_paths.setdefault(path, _free_path(path, used, root))
        choices = (path, f"{path}/*.{format}", f"{path}/*.{format}.files")
        chosen = next((each for each in choices if each not in used), f"{path}/{len(used)}")
        paths[key] = chosen
        used.add(chosen)
    return paths


def _is_hinted(key: GroupKey) -> bool:
    return key[0].endswith(_HINT_SUFFIX)


def _path_of_key(key: GroupKey) -> str:
    """The path of a key without the suffix for hints."""
    return key[0].removesuffix(_HINT_SUFFIX)


def _free_path(path: str, used: Collection[str], root: str) -> str:
    """The path or, if it is used, a similar path in the same folder."""
    if path not in used:
        return path
    folder, _, name = path.rpartition("/")
    if not path.startswith(f"{root.rstrip('/')}/"):
        folder, name = path, "all"
    return next(other for each in free_names(name) if (other := f"{folder}/{each}") not in used)


def _restore_earlier_paths(
    groups: Mapping[GroupKey, Sequence[FileSet]],
    before: GroupingState,
    tables: Collection[str],
    *,
    hints: HintMatcher,
    was_listed: Callable[[str], bool],
) -> GroupingState:
    """The state that an earlier version of Lumos wrote, with the paths of datasets added.

    A dataset keeps its old path if its files still form one dataset.
    """
    paths = _choose_paths(groups, before, tables, {}, root=hints.root)
    key_of_path = {path: key for key, path in paths.items()}
    destinations = find_destinations(
        {path: groups[key] for path, key in key_of_path.items()},
        before,
        assign=hints.assign,
        was_listed=was_listed,
    )
    old_paths: dict[str, str] = {}
    # If several datasets were merged, the one with most files comes last, and its path is kept.
    for old_path, targets in sorted(destinations.items(), key=lambda each: sum(each[1].values())):
        if len(targets) == 1:
            old_paths[_stored_key(*key_of_path[next(iter(targets))])] = old_path
    # Datasets without files in this scan keep their paths in case the files come back.
    keys_of_missing: dict[str, set[str]] = {}
    for each in before.file_sets:
        if each.dataset not in destinations:
            key = _stored_key(hints.assign(each.first_path).dataset, each.format)
            keys_of_missing.setdefault(each.dataset, set()).add(key)
    for old_path, keys in keys_of_missing.items():
        if len(keys) == 1:
            old_paths.setdefault(keys.pop(), old_path)
    return replace(before, paths=old_paths)


def _stored_paths(paths: Mapping[GroupKey, str], before: GroupingState) -> dict[str, str]:
    """Paths to store: those that differ from the pattern, and those of patterns with two formats.

    Paths that earlier scans stored are included.
    """
    format_counts = Counter(path for path, _ in paths)
    return {
        **before.paths,
        **{
            _stored_key(*key): path
            for key, path in paths.items()
            if not _is_hinted(key) and (path != key[0] or format_counts[key[0]] > 1)
        },
    }


def _stored_key(path: str, format: str) -> str:
    return f"{format}:{path}"


def _make_group(
    dataset: str,
    key: GroupKey,
    file_sets: list[FileSet],
    rule: str,
    predecessors: Predecessors | None,
    root: str,
    *,
    requested_path: str | None,
) -> DatasetGroup:
    largest = max(file_sets, key=lambda file_set: (file_set.file_count, file_set.first_path))
    folders, stem, extension = path_levels(largest.first_path)
    earlier = predecessors or Predecessors()
    if rule == "pattern":
        name = name_of(largest.first_path) or None
    else:
        # Without the suffix that distinguishes two formats.
        folder, _, last = dataset.rpartition("/")
        name = strip_extensions(folder.rpartition("/")[2] if last.startswith("*.") else last)
    find_location = joined_location if rule == "similar" else location_of
    return DatasetGroup(
        dataset=dataset,
        location=find_location(file_sets, root),
        file_sets=file_sets,
        key=key,
        name=name,
        names=(
            *(level.template.text for level in folders[root_depth(root, largest.first_path) :]),
            stem.text,
        ),
        extension=extension,
        rule=_make_rule(rule, file_sets),
        renamed_from=earlier.renamed_from,
        merged_from=earlier.merged_from,
        split_from=earlier.split_from,
        requested_path=requested_path,
    )


def _make_rule(name: str, file_sets: Sequence[FileSet]) -> GroupingRule:
    match name:
        case "hint":
            return GroupingRule("hint", "a hint defines this dataset")
        case "columns":
            return GroupingRule(
                "columns", "files with this value in their path have other columns than the rest"
            )
        case "similar":
            return GroupingRule(
                "similar",
                "the source has join_similar, which joins datasets with nearly the same columns",
            )
    kinds = dict.fromkeys(
        _KIND_NAMES.get(kind, "dates")
        for file_set in file_sets
        for kind in PLACEHOLDER.findall(file_set.pattern)
        if kind not in BRACES
    )
    if sum(file_set.file_count for file_set in file_sets) == 1:
        reason = "no other file has this path pattern"
    elif kinds:
        reason = f"the paths differ only in {' and '.join(kinds)}"
    else:
        reason = "the files have the same path pattern"
    return GroupingRule("pattern", reason)


_STAR_RUN: Final = re.compile(r"\*[*?]*")
_WORD_SEPARATORS: Final = "_-."


def location_of(file_sets: Sequence[FileSet], root: str) -> str:
    """The folder of a dataset, or a pattern for its files."""
    hinted = hinted_location(file_sets[0].pattern)
    if hinted is not None:
        return hinted
    # The files of a dataset may be in folders of different depth; use that of most files.
    files: Counter[str] = Counter()
    for file_set in file_sets:
        for location in locations_of(file_set, root):
            files[location] += file_set.file_count
    return min(files, key=lambda location: (-files[location], location.count("*"), location))


def joined_location(file_sets: Sequence[FileSet], root: str) -> str:
    """One pattern for the files of joined datasets, or the location of most of them."""
    paths = {
        tuple(each.split("/")) for file_set in file_sets for each in locations_of(file_set, root)
    }
    if len({len(path) for path in paths}) > 1:
        return location_of(file_sets, root)
    return "/".join(
        names[0] if len(set(names)) == 1 else common_glob(names) or any_glob(names)
        for names in zip(*sorted(paths), strict=True)
    )


def locations_of(file_set: FileSet, root: str) -> Iterator[str]:
    """The locations of the first and the last file of a file set: folders or patterns."""
    for path in sorted({file_set.first_path, file_set.last_path}):
        yield _location(path, root, has_one_name=_has_one_name(file_set))


@lru_cache(maxsize=16384)
def _location(path: str, root: str, *, has_one_name: bool) -> str:
    globs = list(_path_globs(path, root, has_one_name=has_one_name))
    folders, stem, _ = path_levels(path)
    if stem.is_writer_name:
        globs.pop()
        depth = root_depth(root, path)
        while len(globs) - 1 > depth and folders[len(globs) - 2].is_partition:
            globs.pop()
    return "/".join(globs)


def path_globs(file_set: FileSet, root: str) -> Iterator[str]:
    """The paths of the first and the last file of a file set, with `*` for varying parts."""
    for path in sorted({file_set.first_path, file_set.last_path}):
        yield "/".join(_path_globs(path, root, has_one_name=_has_one_name(file_set)))


@lru_cache(maxsize=16384)
def _path_globs(path: str, root: str, *, has_one_name: bool) -> tuple[str, ...]:
    """The anchor, folders and name of a file, with `*` for the varying parts below the root."""
    anchor = anchor_of(path)
    depth = root_depth(root, path)
    folders, stem, extension = path_levels(path)
    names = path[len(anchor) :].strip("/").split("/")
    globs = [
        _to_glob(level.template.text) if level.template.has_value and index >= depth else name
        for index, (level, name) in enumerate(zip(folders, names, strict=False))
    ]
    if stem.has_value or not has_one_name:
        globs.append(
            _to_glob(stem.text) + extension + ("" if names[-1].endswith(extension) else "*")
        )
    else:
        globs.append(names[-1])
    return anchor, *globs


def _has_one_name(file_set: FileSet) -> bool:
    first, last = (each.rpartition("/")[2] for each in (file_set.first_path, file_set.last_path))
    return first == last


def root_depth(root: str, path: str) -> int:
    """The number of folders in the path of the root, without the bucket or server."""
    return _depth(root[len(anchor_of(path)) :])


@lru_cache(maxsize=64)
def _depth(folder: str) -> int:
    return len(list(filter(None, folder.split("/"))))


def common_glob(names: Sequence[str]) -> str:
    """A glob of the words with which all names begin or end; empty if there are none.

    A common prefix ends at a `_`, `-` or `.`, or before a number that follows in every name, so
    `shop_a` and `shop_ab` become `shop_*`. A common suffix begins at a separator. Extensions are
    not words.
    """
    stems, extensions = zip(*map(split_name, names), strict=True)
    if len(set(extensions)) > 1:
        return ""
    prefix = _common_prefix(stems).rstrip("0123456789")
    if not all(stem[len(prefix) : len(prefix) + 1].isdigit() for stem in stems):
        prefix = prefix[: max(map(prefix.rfind, _WORD_SEPARATORS)) + 1]
    suffix = _common_prefix([stem[len(prefix) :][::-1] for stem in stems])[::-1]
    first_separator = min(
        (index for index in map(suffix.find, _WORD_SEPARATORS) if index >= 0), default=len(suffix)
    )
    suffix = suffix[first_separator:]
    has_word = any(letter.isalnum() for letter in prefix + suffix)
    return f"{prefix}*{suffix}{extensions[0]}" if has_word else ""


def any_glob(names: Sequence[str]) -> str:
    """A glob for all names of a folder, with the extension that all of them have, if any."""
    extensions = {split_name(name)[1] for name in names}
    return f"*{extensions.pop()}" if len(extensions) == 1 else "*"


def _common_prefix(names: Sequence[str]) -> str:
    equal = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in equal)


# Cached, because thousands of paths have the same template.
@lru_cache(maxsize=4096)
def _to_glob(text: str) -> str:
    starred = PLACEHOLDER.sub(lambda match: match[0] if match[1] in BRACES else "*", text)
    return restore_braces(_STAR_RUN.sub("*", starred))
