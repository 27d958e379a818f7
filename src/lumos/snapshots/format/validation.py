"""Whether a snapshot is whole and sound: every problem, with the path to it."""

from collections.abc import Iterator
from pathlib import Path

from lumos.snapshots.format.checks import Check, Problem, dangling, missing, strangers, sums
from lumos.snapshots.format.document import KINDS, Counts, Header
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.manifest import Tally
from lumos.snapshots.format.reader import Snapshot, open_snapshot
from lumos.snapshots.format.references import References
from lumos.snapshots.format.versions import Upgraded


class Validation:
    """The problems of a snapshot, found while somebody goes through them.

    When all have been seen, `counts` says what the snapshot holds.
    """

    def __init__(self, path: str | Path) -> None:
        self.file = Path(path)
        self.header: Header | None = None
        self._tally = Tally()

    @property
    def counts(self) -> Counts:
        """How much was found so far."""
        return self._tally.counts

    def __iter__(self) -> Iterator[Problem]:
        self._tally = Tally()
        try:
            snapshot = open_snapshot(self.file)
        except SnapshotError as error:
            yield Problem.of(error)
            return
        self.header = snapshot.header
        yield from _problems(snapshot, self._tally)


def validate(path: str | Path) -> Validation:
    """Checks format, required fields, order, hashes, counts and references; iterate over it."""
    return Validation(path)


def _problems(snapshot: Snapshot, tally: Tally) -> Iterator[Problem]:
    container, header = snapshot.container, snapshot.header
    references = References()
    is_upgraded = isinstance(container, Upgraded)
    check = Check(
        snapshot.file,
        container,
        header,
        tally=tally,
        references=references,
        is_upgraded=is_upgraded,
    )
    yield from strangers(container)
    for kind in KINDS:
        yield from check.entries(kind)
    if check.has_told:
        yield from missing(container, header, tally.counts, check.broken)
    else:
        yield from sums(container, header, tally, is_upgraded=is_upgraded)
    for kind, position, reference in references.dangling():
        path = f"{container.place(kind, position)}.{reference.place}"
        yield dangling(header, path, reference.kinds, reference.key)
