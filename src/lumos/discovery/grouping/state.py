"""The grouping that a scan stores for the next scan, and the predecessors of new datasets."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from lumos.discovery.grouping.hints import ColumnSplit
from lumos.discovery.grouping.patterns import FileAssignment
from lumos.discovery.lake.summaries import FileSet, FileSetKey


class RememberedFiles(NamedTuple):
    """A file set of the last scan, and the dataset that it belonged to."""

    base: str
    pattern: str
    format: str
    schema_fingerprint: str
    dataset: str
    first_path: str
    last_path: str
    file_count: int

    @classmethod
    def of(cls, file_set: FileSet, dataset: str) -> "RememberedFiles":
        """The entry that stores the dataset of a file set for the next scan."""
        return cls(
            *file_set.key, dataset, file_set.first_path, file_set.last_path, file_set.file_count
        )

    def may_include(self, file_set: FileSet) -> bool:
        """Whether these files may include those of a file set, by format, folder and depth."""
        return (
            self.format == file_set.format
            and self.first_path <= file_set.last_path
            and file_set.first_path <= self.last_path
            and file_set.first_path.startswith(f"{self.base}/")
            and self.first_path.count("/") == file_set.first_path.count("/")
        )


class GroupingState(msgspec.Struct, frozen=True, kw_only=True):
    """The decisions of earlier scans that remain valid.

    `paths` are the paths of datasets that differ from the path of their pattern; the key is the
    format and the path of the pattern. `splits` are the patterns whose files were split into
    datasets by their columns.
    """

    file_sets: list[RememberedFiles] = msgspec.field(default_factory=list, name="places")
    paths: dict[str, str] = msgspec.field(default_factory=dict, name="names")
    splits: list[ColumnSplit] = []
    # Whether the state comes from a version of Lumos that grouped files by similarity.
    is_upgrade: bool = False

    @property
    def datasets(self) -> frozenset[str]:
        """The datasets of the last scan."""
        return frozenset(file_set.dataset for file_set in self.file_sets)

    def with_inherited(self, other: "GroupingState") -> "GroupingState":
        """This state with the added paths and splits from the scan of a parent folder."""
        splits = {split.dataset: split for split in (*self.splits, *other.splits)}
        return replace(self, paths={**self.paths, **other.paths}, splits=list(splits.values()))


class LegacyGrouping(msgspec.Struct, frozen=True, kw_only=True):
    """File sets with their datasets, as stored by versions of Lumos before path patterns."""

    file_sets: list[tuple[str, str, str, str, str, int]] = msgspec.field(
        default_factory=list, name="places"
    )

    def upgrade(self, scanned: Iterable[FileSet]) -> GroupingState:
        """The grouping in its current form; `scanned` are all file sets of the scan."""
        datasets = {entry[:4]: entry[4] for entry in self.file_sets if not entry[5]}
        file_sets = [
            RememberedFiles.of(file_set, dataset)
            for file_set in scanned
            if (dataset := datasets.get(file_set.key) or _find_by_wildcard(file_set, datasets))
        ]
        return GroupingState(file_sets=file_sets, is_upgrade=True)


def _find_by_wildcard(file_set: FileSet, datasets: Mapping[FileSetKey, str]) -> str | None:
    """The dataset of a `{name}` pattern, which early versions used in place of many patterns."""
    names = f"{file_set.base}/{file_set.pattern}".split("/")
    for (base, pattern, format, fingerprint), dataset in datasets.items():
        if "{name}" in pattern and (format, fingerprint) == (
            file_set.format,
            file_set.schema_fingerprint,
        ):
            pattern_names = f"{base}/{pattern}".split("/")
            if len(pattern_names) == len(names) and all(
                name == other or other.startswith("{name}")
                for name, other in zip(names, pattern_names, strict=True)
            ):
                return dataset
    return None


class Predecessors(NamedTuple):
    """The datasets of the last scan that a dataset was renamed, merged or split from."""

    renamed_from: str | None = None
    merged_from: tuple[str, ...] = ()
    split_from: str | None = None


def find_predecessors(
    datasets: Mapping[str, Sequence[FileSet]],
    before: GroupingState,
    *,
    assign: Callable[[str], FileAssignment],
    was_listed: Callable[[str], bool],
) -> dict[str, Predecessors]:
    """The predecessors of each dataset that has any.

    `was_listed` returns whether the last scan listed a file.
    """
    if datasets.keys() == before.datasets or not before.file_sets:
        return {}
    destinations = find_destinations(datasets, before, assign=assign, was_listed=was_listed)
    sources: dict[str, list[str]] = {}
    predecessors: dict[str, Predecessors] = {}
    for old_path, targets in destinations.items():
        new_datasets = [path for path in targets if path not in before.datasets]
        if old_path in datasets:
            parts = [old_path, *new_datasets] if new_datasets else []
        elif len(targets) == 1:
            sources.setdefault(next(iter(targets)), []).append(old_path)
            continue
        else:
            parts = new_datasets
        for path in parts:
            predecessors.setdefault(path, Predecessors(split_from=old_path))
    for path, old_paths in sources.items():
        old_paths.sort(key=lambda old_path: (-destinations[old_path][path], old_path))
        if path in before.datasets or path in predecessors:
            earlier = predecessors.get(path, Predecessors())
            predecessors[path] = earlier._replace(merged_from=tuple(old_paths))
        else:
            predecessors[path] = Predecessors(
                renamed_from=old_paths[0], merged_from=tuple(old_paths[1:])
            )
    return predecessors


def find_destinations(
    datasets: Mapping[str, Sequence[FileSet]],
    before: GroupingState,
    *,
    assign: Callable[[str], FileAssignment],
    was_listed: Callable[[str], bool],
) -> dict[str, Counter[str]]:
    """For each dataset of the last scan, the current datasets of its files, with file counts."""
    dataset_of_files = {
        (file_set.base, file_set.pattern, file_set.format): dataset
        for dataset, file_sets in datasets.items()
        for file_set in file_sets
    }
    destinations: dict[str, Counter[str]] = {}

    def count_files(old: RememberedFiles, dataset: str) -> None:
        destinations.setdefault(old.dataset, Counter())[dataset] += old.file_count

    by_base: dict[str, list[RememberedFiles]] = {}
    for old in before.file_sets:
        by_base.setdefault(old.base, []).append(old)
        if old.dataset in datasets and not before.is_upgrade:
            continue
        for path in {old.first_path, old.last_path}:
            assignment = assign(path)
            dataset = dataset_of_files.get((assignment.base, assignment.pattern, old.format))
            if dataset is not None:
                count_files(old, dataset)
    # A file set of the last scan may now belong to more datasets than its first and last file show.
    reached = {dataset for targets in destinations.values() for dataset in targets}
    for dataset in sorted(datasets.keys() - before.datasets - reached):
        listed = [file_set for file_set in datasets[dataset] if was_listed(file_set.first_path)]
        for old in _candidates(listed, by_base)[:1]:
            count_files(old, dataset)
    return destinations


def _candidates(
    file_sets: Collection[FileSet], by_base: Mapping[str, Sequence[RememberedFiles]]
) -> list[RememberedFiles]:
    """The file sets of the last scan that may include these files, the most likely first."""
    candidates: dict[RememberedFiles, None] = {}
    for file_set in file_sets:
        folder = file_set.first_path
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            candidates |= dict.fromkeys(
                old for old in by_base.get(folder, ()) if old.may_include(file_set)
            )
    fingerprints = {file_set.schema_fingerprint for file_set in file_sets}
    return sorted(
        candidates,
        key=lambda old: (old.schema_fingerprint not in fingerprints, -len(old.base), old.dataset),
    )
