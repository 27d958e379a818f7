"""Validates a snapshot in pieces, which several machines can check at the same time.

`examine` checks some of the rows of a Parquet folder; it returns their problems, their references
to other entries, and their totals. `merge_pieces` combines the totals of all pieces.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from lumos.snapshots.format.checks import (
    EntryCheck,
    SnapshotProblem,
    check_manifest,
    check_missing,
    dangling_problem,
)
from lumos.snapshots.format.codec import decode_header
from lumos.snapshots.format.document import (
    DATASETS,
    GLOSSARY,
    GROUPS,
    JOBS,
    KINDS,
    USERS,
    EntryKind,
    SnapshotCounts,
)
from lumos.snapshots.format.encodings import SnapshotContainer, StoredJson
from lumos.snapshots.format.encodings.interface import read_row
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.manifest import ManifestBuilder
from lumos.snapshots.format.reader import order_error
from lumos.snapshots.format.references import DanglingReference, ReferenceIndex, references_of
from lumos.snapshots.format.versions import upgrade_container

# File name, row number, key, content hash and JSON.
PieceRow: TypeAlias = tuple[str, int, Any, Any, Any]

_BY_PLURAL: Final = {kind.plural: kind for kind in KINDS}
# For each kind, the references that its entries can resolve, by the kinds of their targets:
# a reference to `users|groups` is resolved by a user or by a group.
RESOLVES: Final = {
    GLOSSARY.plural: ("glossary",),
    USERS.plural: ("users", "users|groups"),
    GROUPS.plural: ("groups", "users|groups"),
    JOBS.plural: ("datasets|jobs",),
    DATASETS.plural: ("datasets|jobs",),
}
# With problems of these codes, the totals cannot be correct.
_DAMAGE_CODES: Final = frozenset({"format", "truncated", "hash"})


class PieceFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """A finding in a piece: a problem, an unresolved reference, or the totals of the piece.

    `what` is `problem`, `reference` or `sums`.
    """

    what: str
    path: str = ""
    code: str = ""
    severity: str = ""
    text: str = ""
    kinds: str = ""
    key: str = ""


class _PieceTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The totals of a piece, and its first and last key."""

    kind: str
    file: str
    row: int
    first: str
    last: str
    totals: dict[str, Any]
    broken: int


class MergedPieces(NamedTuple):
    """The totals of all pieces, and the problems between pieces."""

    counts: SnapshotCounts
    problems: tuple[SnapshotProblem, ...]


def examine(header: bytes, kind: str, rows: Iterable[PieceRow]) -> Iterator[dict[str, Any]]:
    """Check rows of a kind, which have to be in the order of the files; yields findings as rows."""
    for file, group in groupby(rows, key=itemgetter(0)):
        piece = _Piece(header, file, list(group))
        for finding in _findings(piece, _BY_PLURAL[kind]):
            yield msgspec.structs.asdict(finding)


def merge_pieces(
    header: bytes,
    summaries: Iterable[str],
    *,
    files: Mapping[str, list[str]],
    codes: Iterable[str],
) -> MergedPieces:
    """Combine the totals of all pieces; `codes` are the codes of the problems in all pieces."""
    totals = ManifestBuilder()
    pieces = [msgspec.json.decode(text, type=_PieceTotals) for text in summaries]
    for piece in pieces:
        totals.add_summary(piece.totals)
    problems = list(_boundary_problems(pieces, files))
    snapshot, decoded_header = _Piece(header, "", []), decode_header(header)
    if _DAMAGE_CODES.intersection(codes):
        broken: Counter[str] = Counter()
        for piece in pieces:
            broken[piece.kind] += piece.broken
        problems.extend(check_missing(snapshot, decoded_header, totals.counts, broken))
    else:
        problems.extend(check_manifest(snapshot, decoded_header, totals))
    return MergedPieces(totals.counts, tuple(problems))


def unresolved_problem(header: bytes, path: str, kinds: str, key: str) -> SnapshotProblem:
    """The problem for a reference without a target."""
    return dangling_problem(decode_header(header), path, tuple(kinds.split("|")), key)


class _Piece(SnapshotContainer):
    """A part of the rows of a file, as a container."""

    streamed = True

    def __init__(self, header: bytes, file: str, rows: list[PieceRow]) -> None:
        self.header = header
        self.file = file
        self._rows = rows

    def entries(self, kind: EntryKind) -> Iterator[StoredJson | SnapshotError]:
        for _, number, *row in self._rows:
            stored = read_row(kind, number, (row[0], row[1], row[2]))
            if isinstance(stored, str):
                yield SnapshotError(self.file, self.path_of(kind, number), stored)
            else:
                yield stored

    def path_of(self, kind: EntryKind, position: int) -> str:  # noqa: ARG002
        return f"{self.file}[{position}]"

    @property
    def first_row(self) -> int:
        return self._rows[0][1]

    @property
    def key_range(self) -> tuple[str, str]:
        """The keys of the first and the last row."""
        return str(self._rows[0][2]), str(self._rows[-1][2])


class _UnresolvedReferences(ReferenceIndex):
    """Collects the references of a piece, whose targets may be in other pieces."""

    def add(self, kind: EntryKind, position: int, key: str, value: Any) -> None:  # noqa: ARG002
        self._unresolved.extend(
            DanglingReference(kind, position, reference)
            for reference in references_of(value)
            if reference.is_checked
        )

    def __iter__(self) -> Iterator[DanglingReference]:
        return iter(self._unresolved)


def _findings(piece: _Piece, kind: EntryKind) -> Iterator[PieceFinding]:
    totals, references = ManifestBuilder(), _UnresolvedReferences()
    header = decode_header(piece.header)
    container = upgrade_container(Path(piece.file), piece)
    check = EntryCheck(Path(piece.file), container, header, totals=totals, references=references)
    for problem in check.entries(kind):
        yield PieceFinding(
            what="problem",
            path=problem.path,
            code=problem.code,
            severity=problem.severity,
            text=problem.text,
        )
    for _, position, reference in references:
        yield PieceFinding(
            what="reference",
            path=f"{piece.path_of(kind, position)}.{reference.full_path}",
            kinds="|".join(reference.kinds),
            key=reference.key,
        )
    first, last = piece.key_range
    piece_totals = _PieceTotals(
        kind=kind.plural,
        file=piece.file,
        row=piece.first_row,
        first=first,
        last=last,
        totals=totals.summary(),
        broken=check.broken[kind.plural],
    )
    yield PieceFinding(what="sums", text=msgspec.json.encode(piece_totals).decode())


def _boundary_problems(
    pieces: Iterable[_PieceTotals], files: Mapping[str, list[str]]
) -> Iterator[SnapshotProblem]:
    """Yield a problem for each piece that does not start after the last key of the previous one."""
    ranks = {name: rank for names in files.values() for rank, name in enumerate(names)}
    ordered = sorted(pieces, key=lambda piece: (piece.kind, ranks[piece.file], piece.row))
    for kind, group in groupby(ordered, key=lambda piece: piece.kind):
        last_key = ""
        for piece in group:
            if piece.first <= last_key:
                entry_path = f"{piece.file}[{piece.row}]"
                error = order_error(Path(), entry_path, _BY_PLURAL[kind], piece.first, last_key)
                yield SnapshotProblem.of(error)
            last_key = piece.last
