"""What hints match and change among the files of the last scan, without another scan."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from lumos.discovery.explain import lens_of_scan
from lumos.model.report import Report
from lumos.model.urn import Urn
from lumos.storage import FileHint, FileSelection, StorageAccess

if TYPE_CHECKING:
    from lumos.discovery.explanation import Lens
    from lumos.discovery.grouping.datasets import Group
    from lumos.discovery.manifest import Manifest
    from lumos.discovery.parts import Part

# How many files belong to one dataset before and to another after; None for those of no dataset.
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
    """The files of a root as its last scan saw them; the selection has the hints of now."""

    selection: FileSelection
    manifest: "Manifest"
    access: StorageAccess

    def matches(self, hints: Sequence[FileHint]) -> Iterator[list[int]]:
        """For every file that hints match, the numbers of these hints in their order."""
        from lumos.discovery.hints import Hints
        from lumos.discovery.parts import read_identities

        matching = Hints(hints, root=self.selection.root).matching
        for part in self.manifest.parts:
            if self._may_hold(part, hints):
                paths, _ = read_identities(part.path, access=self.access)
                yield from filter(None, map(matching, paths))

    def regrouped(self, changed: FileHint, after: Sequence[FileHint]) -> "Regrouped":
        """The datasets before and after a hint is added or removed."""
        from lumos.discovery.hints import Hints

        fingerprint = Hints(
            self.selection.hints, root=self.selection.root, splits=self.manifest.grouping.splits
        ).fingerprint
        old = lens_of_scan(self.selection, self.manifest, self.access)
        new = lens_of_scan(
            self.selection._replace(hints=tuple(after)),
            self.manifest,
            self.access,
            is_current=lambda part, summary: (
                summary.hints == fingerprint and not self._may_hold(part, [changed])
            ),
        )
        return Regrouped(old, new)

    def _may_hold(self, part: "Part", hints: Sequence[FileHint]) -> bool:
        """Whether files of a part may match."""
        from lumos.discovery.hints import prefixes_of

        return any(
            part.first <= f"{prefix}\U0010ffff" and part.last >= prefix
            for hint in hints
            for prefix in prefixes_of(hint, self.selection.root)
        )


class Regrouped(NamedTuple):
    """The files of a root with the hints of now, and with others."""

    old: "Lens"
    new: "Lens"

    def moves(self) -> Moves:
        """The files of all datasets that differ."""
        olds, news = ({_identity(each) for each in lens.groups} for lens in self)
        paths = [path for each in olds ^ news for path in (each.first, each.last)]
        moves: Moves = Counter()
        if paths:
            # Both read the same files in the same order.
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
        """The path that the hint of a number gives but another dataset has, and a free one."""
        from lumos.discovery.hints import hint_number

        # Of several formats, the first in this order has the plain path.
        for each in sorted(self.new.groups, key=lambda group: group.dataset):
            if each.wanted is not None and hint_number(each.places[0].pattern) == number:
                return each.wanted, each.dataset
        return None


class _Identity(NamedTuple):
    """What changes with the name or the files of a group."""

    dataset: str
    first: str
    last: str
    files: int
    content: int


def _identity(group: "Group") -> _Identity:
    return _Identity(
        group.dataset,
        min(place.first_path for place in group.places),
        max(place.last_path for place in group.places),
        sum(place.file_count for place in group.places),
        sum(place.content for place in group.places),
    )


def effects_of(moves: Moves, urn_of: Callable[[str], Urn]) -> list[HintEffect]:
    """The datasets that change, from the number of files that move from one to another."""
    olds, news = Counter[str](), Counter[str]()
    links: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for (old, new), files in moves.items():
        nodes = [(side, name) for side, name in (("old", old), ("new", new)) if name is not None]
        olds.update({old: files} if old is not None else {})
        news.update({new: files} if new is not None else {})
        for node in nodes:
            links.setdefault(node, set()).update(nodes)
    effects: list[HintEffect] = []
    seen: set[tuple[str, str]] = set()
    for start in sorted(links):
        if start in seen:
            continue
        together, waiting = {start}, [start]
        while waiting:
            for node in links[waiting.pop()] - together:
                together.add(node)
                waiting.append(node)
        seen |= together
        before = {name: olds[name] for side, name in sorted(together) if side == "old"}
        after = {name: news[name] for side, name in sorted(together) if side == "new"}
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
