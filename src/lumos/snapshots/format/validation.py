"""Validates a snapshot; reports each problem with its path."""

from collections.abc import Iterator
from pathlib import Path

from lumos.snapshots.format.checks import (
    EntryCheck,
    SnapshotProblem,
    check_manifest,
    check_missing,
    dangling_problem,
    unknown_header_keys,
)
from lumos.snapshots.format.document import KINDS, SnapshotCounts, SnapshotHeader
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.manifest import ManifestBuilder
from lumos.snapshots.format.reader import OpenSnapshot, open_snapshot
from lumos.snapshots.format.references import ReferenceIndex


class Validation:
    """The problems of a snapshot, which is validated during the iteration.

    `counts` is complete after the iteration.
    """

    def __init__(self, path: str | Path) -> None:
        self.file = Path(path)
        self.header: SnapshotHeader | None = None
        self._totals = ManifestBuilder()

    @property
    def counts(self) -> SnapshotCounts:
        """The counts of the entries seen so far."""
        return self._totals.counts

    def __iter__(self) -> Iterator[SnapshotProblem]:
        self._totals = ManifestBuilder()
        try:
            snapshot = open_snapshot(self.file)
        except SnapshotError as error:
            yield SnapshotProblem.of(error)
            return
        self.header = snapshot.header
        yield from _problems(snapshot, self._totals)


def validate(path: str | Path) -> Validation:
    """Check format, required fields, order, hashes, counts and references while iterating."""
    return Validation(path)


def _problems(snapshot: OpenSnapshot, totals: ManifestBuilder) -> Iterator[SnapshotProblem]:
    container, header = snapshot.container, snapshot.header
    references = ReferenceIndex()
    check = EntryCheck(snapshot.file, container, header, totals=totals, references=references)
    yield from unknown_header_keys(container)
    for kind in KINDS:
        yield from check.entries(kind)
    if check.has_damage:
        yield from check_missing(container, header, totals.counts, check.broken)
    else:
        yield from check_manifest(container, header, totals)
    for kind, position, reference in references.dangling():
        path = f"{container.path_of(kind, position)}.{reference.full_path}"
        yield dangling_problem(header, path, reference.kinds, reference.key)
