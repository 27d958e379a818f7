"""The effect of hints on the files of the last scan, without another scan."""

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
    """Datasets that share files before and after a change of hints."""

    kind: EffectKind
    before: tuple[DatasetFiles, ...]
    after: tuple[DatasetFiles, ...]


class ScannedRoot(NamedTuple):
    """The files of the last scan of a root, with a selection that has the current hints."""

    selection: FileSelection
    manifest: "ScanManifest"
    access: StorageAccess

    def matches(self, hints: Sequence[FileHint]) -> Iterator[list[int]]:
        """For every file that hints match, the numbers of these hints in order."""
        from lumos.discovery.grouping.hints import HintMatcher
        from lumos.discovery.lake.parts import read_identities

        matching = HintMatcher(hints, root=self.selection.root).matching
        for part in self.manifest.parts:
            if self._may_hold(part, hints):
                paths, _ = read_identities(part.path, access=self.access)
                yield from filter(None, map(matching, paths))

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
                summary.hints == fingerprint and not self._may_hold(part, [changed])
            ),
        )
        return GroupingComparison(old, new)

    def _may_hold(self, part: "ManifestPart", hints: Sequence[FileHint]) -> bool:
        """Whether files of a part may match."""
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
            # Both list the same files in the same order.
            ends = zip(min(paths), max(paths), strict=False)
            shared = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], ends))
            folder = shared.rpartition("/")[0]
            for one, other in zip(
                self.old.files_below(folder), self.new.files_below(folder), strict=True
            ):
                before = None if one.group is None else one.group.dataset
                moves[before, None if other.group is None else other.group.dataset] += 1
        return moves

    def taken_path(self, number: int) -> tuple[str, str] | None:
        """The path that a hint requests but another dataset has, and the path used instead."""
        from lumos.discovery.grouping.hints import hint_number

        # Of several formats, the first one in alphabetical order has the plain path.
        for each in sorted(self.new.groups, key=lambda group: group.dataset):
            if each.wanted is not None and hint_number(each.file_sets[0].pattern) == number:
                return each.wanted, each.dataset
        return None


class _Identity(NamedTuple):
    """What distinguishes a group from one with another name or other files."""

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
    """The datasets that change, by the number of files that move between them."""
    old_groups, new_groups = Counter[str](), Counter[str]()
    links: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for (old, new), files in moves.items():
        nodes = [(side, name) for side, name in (("old", old), ("new", new)) if name is not None]
        old_groups.update({old: files} if old is not None else {})
        new_groups.update({new: files} if new is not None else {})
        for node in nodes:
            links.setdefault(node, set()).update(nodes)
    effects: list[HintEffect] = []
    seen: set[tuple[str, str]] = set()
    for start in sorted(links):
        if start in seen:
            continue
        connected, stack = {start}, [start]
        while stack:
            for node in links[stack.pop()] - connected:
                connected.add(node)
                stack.append(node)
        seen |= connected
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
    return sorted(effects, key=lambda each: [one.urn for one in (*each.after, *each.before)])


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
