"""Validates a snapshot in pieces, so that many machines can do it at once.

`examine` looks at some rows of a Parquet folder alone and tells what it cannot know: which other
entries they refer to, and sums. `merge_pieces` puts the sums together again.
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
from lumos.snapshots.format.codec import header_of
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
from lumos.snapshots.format.encodings.interface import stored_row
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.manifest import ManifestBuilder
from lumos.snapshots.format.reader import order_error
from lumos.snapshots.format.references import DanglingReference, ReferenceIndex, references_of
from lumos.snapshots.format.versions import upgrade_container

# A file's name, a row's number in it, and the row: key, content hash and JSON.
PieceRow: TypeAlias = tuple[str, int, Any, Any, Any]

_BY_PLURAL: Final = {kind.plural: kind for kind in KINDS}
# Which references an entry of a kind can resolve, by the kinds that they may lead to.
RESOLVES: Final = {
    GLOSSARY.plural: ("glossary",),
    USERS.plural: ("users", "users|groups"),
    GROUPS.plural: ("groups", "users|groups"),
    JOBS.plural: ("datasets|jobs",),
    DATASETS.plural: ("datasets|jobs",),
}
# Findings after which the sums cannot be right.
_DAMAGE: Final = frozenset({"format", "truncated", "hash"})


class PieceFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """A row of what examiners tell: a problem, an open reference, or the sums of a piece."""

    what: str
    path: str = ""
    code: str = ""
    severity: str = ""
    text: str = ""
    kinds: str = ""
    key: str = ""


class _Sums(msgspec.Struct, frozen=True, kw_only=True):
    """What a piece adds to the whole, and between which keys it lies."""

    kind: str
    file: str
    row: int
    first: str
    last: str
    tally: dict[str, Any]
    broken: int


class MergedPieces(NamedTuple):
    """What all pieces hold together, and what is wrong only between them."""

    counts: SnapshotCounts
    problems: tuple[SnapshotProblem, ...]


def examine(header: bytes, kind: str, rows: Iterable[PieceRow]) -> Iterator[dict[str, Any]]:
    """All that can be said of some rows of a kind, in the order of the files, as plain rows."""
    for file, some in groupby(rows, key=itemgetter(0)):
        piece = _Piece(header, file, list(some))
        for finding in _findings(piece, _BY_PLURAL[kind]):
            yield msgspec.structs.asdict(finding)


def merge_pieces(
    header: bytes,
    summed_up: Iterable[str],
    *,
    files: Mapping[str, list[str]],
    codes: Iterable[str],
) -> MergedPieces:
    """Puts the sums of all pieces together; `codes` are those of the problems found in them."""
    tally = ManifestBuilder()
    pieces = [msgspec.json.decode(text, type=_Sums) for text in summed_up]
    for piece in pieces:
        tally.absorb(piece.tally)
    problems = list(_seams(pieces, files))
    whole, told = _Piece(header, "", []), header_of(header)
    if _DAMAGE.intersection(codes):
        broken: Counter[str] = Counter()
        for piece in pieces:
            broken[piece.kind] += piece.broken
        problems.extend(check_missing(whole, told, tally.counts, broken))
    else:
        problems.extend(check_manifest(whole, told, tally))
    return MergedPieces(tally.counts, tuple(problems))


def unresolved_problem(header: bytes, path: str, kinds: str, key: str) -> SnapshotProblem:
    """The problem of a reference that no entry resolved."""
    return dangling_problem(header_of(header), path, tuple(kinds.split("|")), key)


class _Piece(SnapshotContainer):
    """Some rows of one file."""

    streamed = True

    def __init__(self, header: bytes, file: str, rows: list[PieceRow]) -> None:
        self.header = header
        self.file = file
        self._rows = rows

    def entries(self, kind: EntryKind) -> Iterator[StoredJson | SnapshotError]:
        for _, number, *row in self._rows:
            stored = stored_row(kind, number, (row[0], row[1], row[2]))
            if isinstance(stored, str):
                yield SnapshotError(self.file, self.place(kind, number), stored)
            else:
                yield stored

    def place(self, kind: EntryKind, position: int) -> str:  # noqa: ARG002
        return f"{self.file}[{position}]"

    @property
    def start(self) -> int:
        """The number of the first row."""
        return self._rows[0][1]

    @property
    def ends(self) -> tuple[str, str]:
        """The keys of the first and the last row."""
        return str(self._rows[0][2]), str(self._rows[-1][2])


class _Noted(ReferenceIndex):
    """References that a piece alone cannot resolve."""

    def add(self, kind: EntryKind, position: int, key: str, value: Any) -> None:  # noqa: ARG002
        self._open.extend(
            DanglingReference(kind, position, each)
            for each in references_of(value)
            if each.is_checked
        )

    def __iter__(self) -> Iterator[DanglingReference]:
        return iter(self._open)


def _findings(piece: _Piece, kind: EntryKind) -> Iterator[PieceFinding]:
    tally, noted = ManifestBuilder(), _Noted()
    header = header_of(piece.header)
    container = upgrade_container(Path(piece.file), piece)
    check = EntryCheck(Path(piece.file), container, header, tally=tally, references=noted)
    for problem in check.entries(kind):
        yield PieceFinding(
            what="problem",
            path=problem.path,
            code=problem.code,
            severity=problem.severity,
            text=problem.text,
        )
    for _, position, reference in noted:
        yield PieceFinding(
            what="reference",
            path=f"{piece.place(kind, position)}.{reference.place}",
            kinds="|".join(reference.kinds),
            key=reference.key,
        )
    first, last = piece.ends
    added = _Sums(
        kind=kind.plural,
        file=piece.file,
        row=piece.start,
        first=first,
        last=last,
        tally=tally.summary(),
        broken=check.broken[kind.plural],
    )
    yield PieceFinding(what="sums", text=msgspec.json.encode(added).decode())


def _seams(pieces: Iterable[_Sums], files: Mapping[str, list[str]]) -> Iterator[SnapshotProblem]:
    """Where the first entry of a piece does not come after the last one of the piece before it."""
    ranks = {name: rank for names in files.values() for rank, name in enumerate(names)}
    ordered = sorted(pieces, key=lambda piece: (piece.kind, ranks[piece.file], piece.row))
    for kind, some in groupby(ordered, key=lambda piece: piece.kind):
        last = ""
        for piece in some:
            if piece.first <= last:
                place = f"{piece.file}[{piece.row}]"
                error = order_error(Path(), place, _BY_PLURAL[kind], piece.first, last)
                yield SnapshotProblem.of(error)
            last = piece.last
