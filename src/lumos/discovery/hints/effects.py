"""The effect of hints on the files of the last scan, computed without another scan."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from lumos.model.report import Report
from lumos.model.urn import Urn
from lumos.storage import FileHint, FileSelection, StorageAccess

if TYPE_CHECKING:
    from lumos.discovery.grouping.datasets import DatasetGroup
    from lumos.discovery.lake.contents import LakeContents
    from lumos.discovery.lake.manifest import ScanManifest
    from lumos.discovery.lake.parts import ManifestPart

# The number of files by (old dataset, new dataset); None for files without a dataset.
Moves: TypeAlias = Counter[tuple[str | None, str | None]]
EffectKind = Literal["joined", "split", "renamed", "regrouped", "added", "dropped"]


class DatasetFiles(Report, frozen=True, kw_only=True):
    """A dataset and its number of files."""

    urn: str
    files: int


class HintEffect(Report, frozen=True, kw_only=True):
    """A set of datasets before a change of hints, and the datasets of the same files after it."""

    kind: EffectKind
    before: tuple[DatasetFiles, ...]
    after: tuple[DatasetFiles, ...]


class ScannedRoot(NamedTuple):
    """The files of the last scan of a root, with a selection that has the current hints."""

    selection: FileSelection
    manifest: "ScanManifest"
    access: StorageAccess

    def matches(self, hints: Sequence[FileHint]) -> Iterator[list[int]]:
        """For every file that matches any of the hints, the indexes of the matching hints."""
        from lumos.discovery.grouping.hints import HintMatcher
        from lumos.discovery.lake.parts import read_identities

        matching_hints = HintMatcher(hints, root=self.selection.root).matching_hints
        for part in self.manifest.parts:
            if self._may_match(part, hints):
                paths, _ = read_identities(part.path, access=self.access)
                yield from filter(None, map(matching_hints, paths))

    def compare_grouping(
        self, changed: FileHint, after: Sequence[FileHint]
    ) -> "GroupingComparison":
        """The datasets before and after a hint is added or removed."""
        from lumos.discovery.grouping.hints import HintMatcher
        from lumos.discovery.lake.contents import LakeContents

        fingerprint = HintMatcher(
            self.selection.hints, root=self.selection.root, splits=self.manifest.grouping.splits
        ).fingerprint
        old = LakeContents.of_scan(self.selection, self.manifest, state_access=self.access)
        new = LakeContents.of_scan(
            self.selection._replace(hints=tuple(after)),
            self.manifest,
            state_access=self.access,
            is_current=lambda part, summary: (
                summary.hints == fingerprint and not self._may_match(part, [changed])
            ),
        )
        return GroupingComparison(old, new)

    def _may_match(self, part: "ManifestPart", hints: Sequence[FileHint]) -> bool:
        """Whether files of a part may match any of the hints."""
        from lumos.discovery.grouping.hints import prefixes_of

        return any(
            part.first <= f"{prefix}\U0010ffff" and part.last >= prefix
            for hint in hints
            for prefix in prefixes_of(hint, self.selection.root)
        )


class GroupingComparison(NamedTuple):
    """The files of a root with the current hints, and with other hints."""

    old: "LakeContents"
    new: "LakeContents"

    def moves(self) -> Moves:
        """The number of files that each pair of old and new dataset has in common."""
        old_groups, new_groups = (
            {_identity(each) for each in contents.groups} for contents in self
        )
        paths = [path for each in old_groups ^ new_groups for path in (each.first, each.last)]
        moves: Moves = Counter()
        if paths:
            # Both contents list the same files in the same order.
            letters = zip(min(paths), max(paths), strict=False)
            common = (letter for letter, _ in takewhile(lambda pair: pair[0] == pair[1], letters))
            folder = "".join(common).rpartition("/")[0]
            for old_file, new_file in zip(
                self.old.files_below(folder), self.new.files_below(folder), strict=True
            ):
                old_dataset = None if old_file.group is None else old_file.group.dataset
                moves[old_dataset, None if new_file.group is None else new_file.group.dataset] += 1
        return moves

    def taken_path(self, number: int) -> tuple[str, str] | None:
        """The path that a hint requests but another dataset has, and the path used instead."""
        from lumos.discovery.grouping.hints import hint_number

        # If a hint matches several formats, report the first dataset, whose path has no suffix.
        for each in sorted(self.new.groups, key=lambda group: group.dataset):
            if each.requested_path is not None and hint_number(each.file_sets[0].pattern) == number:
                return each.requested_path, each.dataset
        return None


class _Identity(NamedTuple):
    """The values by which two groups differ if their names or files differ."""

    dataset: str
    first: str
    last: str
    files: int
    content: int


def _identity(group: "DatasetGroup") -> _Identity:
    return _Identity(
        group.dataset,
        min(each.first_path for each in group.file_sets),
        max(each.last_path for each in group.file_sets),
        sum(each.file_count for each in group.file_sets),
        sum(each.content for each in group.file_sets),
    )


def effects_of(moves: Moves, urn_of: Callable[[str], Urn]) -> list[HintEffect]:
    """The effects of moving files between datasets; datasets that share files are one effect."""
    from lumos.discovery.grouping.columns import DisjointSets

    old_groups, new_groups = Counter[str](), Counter[str]()
    for (old, new), files in moves.items():
        old_groups.update({old: files} if old is not None else {})
        new_groups.update({new: files} if new is not None else {})
    nodes = [("old", name) for name in old_groups] + [("new", name) for name in new_groups]
    sets = DisjointSets(nodes)
    for old, new in moves:
        if old is not None and new is not None:
            sets.join(("old", old), ("new", new))
    effects: list[HintEffect] = []
    for connected in sets.sets():
        before = {name: old_groups[name] for side, name in sorted(connected) if side == "old"}
        after = {name: new_groups[name] for side, name in sorted(connected) if side == "new"}
        if before != after:
            effects.append(
                HintEffect(
                    kind=_kind(len(before), len(after)),
                    before=_dataset_files(before, urn_of),
                    after=_dataset_files(after, urn_of),
                )
            )
    return sorted(effects, key=lambda each: [files.urn for files in (*each.after, *each.before)])


def _kind(before: int, after: int) -> EffectKind:
    match before, after:
        case 0, _:
            return "added"
        case _, 0:
            return "dropped"
        case 1, 1:
            return "renamed"
        case _, 1:
            return "joined"
        case 1, _:
            return "split"
        case _:
            return "regrouped"


def _dataset_files(files: dict[str, int], urn_of: Callable[[str], Urn]) -> tuple[DatasetFiles, ...]:
    return tuple(DatasetFiles(urn=str(urn_of(name)), files=count) for name, count in files.items())
