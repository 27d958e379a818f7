"""What one task does: lists stretches, opens what is new or changed, sums up, remembers."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa

from lumos.discovery.file_reader import Reader
from lumos.discovery.hints import ColumnSplit, Hints
from lumos.discovery.owned_paths import Claims
from lumos.discovery.parts import LOST, Part, read_identities, read_part, write_part
from lumos.discovery.summaries import Earlier, FileRow, Summary, summarise
from lumos.model.discovery import Problem
from lumos.spark.arrays import arrow_array
from lumos.spark.problems import ProblemList
from lumos.spark.spill import SpillSort
from lumos.storage import (
    FileSelection,
    KeyRange,
    ListedFile,
    ListingItem,
    ListingProblem,
    StorageAccess,
    TableRoot,
    storage_of,
)
from lumos.storage.table_roots import misplaced_metadata_folder

# A task that meets more files than this leaves them to others, in portions of their own.
_MOST_FILES: Final = 50_000
_PORTION: Final = 10_000

# A work as a row for its task: all of it, encoded, and what it is about.
WORKS: Final = pa.schema(
    [
        ("place", pa.string()),
        ("stretches", pa.int64()),
        ("listed_before", pa.int64()),
        ("work", pa.binary()),
    ]
)
# What came of it in numbers, and all that the driver puts together, encoded.
_RESULTS: Final = pa.schema(
    [
        ("task", pa.int64()),
        ("files_listed", pa.int64()),
        ("files_read", pa.int64()),
        ("files_failed", pa.int64()),
        ("problems", pa.int64()),
        ("done", pa.binary()),
    ]
)
RESULTS_IN_SPARK: Final = (
    "task bigint, files_listed bigint, files_read bigint, files_failed bigint, problems bigint, "
    "done binary"
)


class Work(msgspec.Struct, array_like=True):
    """The files of one task: stretches to list, files already met, or a portion left over.

    `met` is where files and places lie that were met already. `known` are the parts of the last
    manifest that may hold some of all these.
    """

    stretches: list[KeyRange]
    listed: list[ListedFile] = []
    unlisted: list[ListingProblem] = []
    met: list[KeyRange] = []
    portion: str = ""
    known: list[str] = []

    @property
    def places(self) -> list[KeyRange]:
        """Where the work's files lie."""
        return [*self.stretches, *self.met]


class Portion(msgspec.Struct, frozen=True, array_like=True):
    """Listed files that a task left over: where they are written down, and between which paths."""

    path: str
    places: list[KeyRange]
    first: str
    last: str


class Done(msgspec.Struct, array_like=True):
    """What a task found; `bodies` are schemas by their full fingerprint.

    `markers` are roots of tables. `left_out` are the folders of tables for which files were left
    out, whether they still are such folders or not. `strays` are folders with the metadata of
    tables that lie elsewhere.
    """

    summary: Summary
    read: int
    unlisted: ProblemList
    bodies: dict[str, bytes]
    part: Part | None
    left_over: list[Portion]
    markers: list[TableRoot] = []
    left_out: list[str] = []
    strays: list[str] = []


class Job(NamedTuple):
    """What all tasks of a scan have in common; what lies in `state` is never data.

    What lies in `claims` is a table's, as far as is known.
    """

    selection: FileSelection
    state: str
    parts_folder: str
    state_access: StorageAccess
    column_stats: bool
    claims: tuple[str, ...]
    # Decisions of earlier scans on which files are different datasets.
    splits: tuple[ColumnSplit, ...] = ()

    @property
    def hints(self) -> Hints:
        """Where files belong."""
        return Hints(self.selection.hints, root=self.selection.root, splits=self.splits)


def work_row(work: Work) -> tuple[str, int, int, bytes]:
    """A work as a row for its task."""
    place = next((each.folder for each in work.places), work.portion)
    return place, len(work.stretches), len(work.listed), msgspec.msgpack.encode(work)


def worker(job: Job) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Does the works that it is given, and gives what each found."""

    def do(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("task", "work"))
            for number, work in zip(*columns, strict=True):
                yield _result(number, _do(job, decode_work(work)))

    return do


def _result(number: int, done: Done) -> pa.RecordBatch:
    summary = done.summary
    problems = done.unlisted.total + summary.all_problems.total
    encoded = msgspec.msgpack.encode(done)
    row = (number, summary.listed, done.read, summary.failed, problems, encoded)
    arrays = [arrow_array([value], field.type) for value, field in zip(row, _RESULTS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_RESULTS)


def decode_work(data: bytes) -> Work:
    """A work that came as a row; tasks take functions along, but no decoders."""
    return msgspec.msgpack.decode(data, type=Work)


decode_done: Final = msgspec.msgpack.Decoder(Done).decode


def _do(job: Job, work: Work) -> Done:
    with closing(SpillSort(_decode_listed, key=attrgetter("path"))) as pile:
        markers, strays, unlisted = _list(job, work, pile)
        claims = Claims((*job.claims, *(marker.folder for marker in markers)))
        files = claims.without(pile.in_order())
        some = list(islice(files, _MOST_FILES + 1))
        if len(some) > _MOST_FILES:
            done = _portioned(job, work, chain(some, files), unlisted, claims)
        else:
            unchanged = _unchanged(job, work, some) if not unlisted else None
            done = unchanged or _scanned(job, work, some, unlisted, claims)
    return msgspec.structs.replace(
        done,
        markers=markers,
        left_out=sorted(claims.used),
        strays=sorted(strays),
    )


def _list(
    job: Job, work: Work, pile: SpillSort[ListedFile]
) -> tuple[list[TableRoot], set[str], list[ListingProblem]]:
    """Puts the work's files on a pile, and tells what else was met."""
    selection = job.selection
    markers: set[TableRoot] = set()
    strays: set[str] = set()
    unlisted = list(work.unlisted)
    # A lake may hold the state of its own scans.
    left_out = f"{job.state.rstrip('/')}/"
    for listing in chain(work.listed, _portion(job, work), _walked(selection, work)):
        if isinstance(listing, ListingProblem):
            unlisted.append(listing)
        elif isinstance(listing, TableRoot):
            markers.add(listing)
        elif not listing.path.startswith(left_out):
            if selection.tables and (folder := misplaced_metadata_folder(listing.path)) is not None:
                strays.add(folder)
            if listing.path in selection:
                pile.add(listing)
    return sorted(markers), strays, unlisted


def _portion(job: Job, work: Work) -> list[ListedFile]:
    if not work.portion:
        return []
    data = storage_of(work.portion, job.state_access).read(work.portion)
    return _decode_listed(data)


_decode_listed: Final = msgspec.msgpack.Decoder(list[ListedFile]).decode


def _walked(selection: FileSelection, work: Work) -> Iterator[ListingItem]:
    storage = storage_of(selection.root, selection.access)
    for stretch in work.stretches:
        yield from storage.walk(stretch, tables=selection.tables)


def _portioned(
    job: Job,
    work: Work,
    files: Iterator[ListedFile],
    unlisted: Sequence[ListingProblem],
    claims: Claims,
) -> Done:
    """Writes too many files down in portions, each of which becomes a work of its own."""
    storage = storage_of(job.parts_folder, job.state_access)
    portions = []
    while some := list(islice(files, _PORTION)):
        path = f"{job.parts_folder}/{uuid.uuid4().hex}.listed"
        storage.write(path, msgspec.msgpack.encode(some))
        portions.append(Portion(path, work.places, some[0].path, some[-1].path))
    rest = _scanned(job, work, [], unlisted, claims) if unlisted else None
    nothing = Done(Summary([]), 0, ProblemList(), {}, None, [])
    return msgspec.structs.replace(rest or nothing, left_over=portions)


def _unchanged(job: Job, work: Work, listed: Sequence[ListedFile]) -> Done | None:
    """The part of the last scan itself, if just its files are there, as they were."""
    if len(work.known) != 1:
        return None
    path = work.known[0]
    try:
        identities, summary = read_identities(path, access=job.state_access)
    except LOST:
        return None
    if job.column_stats and not summary.tells_columns:
        return None
    if summary.hints != job.hints.fingerprint:
        return None
    if identities != {each.path: tuple(each[1:]) for each in listed}:
        return None
    first, last = (min(identities), max(identities)) if identities else ("", "")
    part = Part(path, tuple(work.places), first, last, len(identities))
    return Done(summary, 0, ProblemList(), {}, part, [])


def _scanned(
    job: Job,
    work: Work,
    listed: Sequence[ListedFile],
    unlisted: Sequence[ListingProblem],
    claims: Claims,
) -> Done:
    known, before = _known(job, work)
    rows: list[FileRow] = []
    fresh: list[tuple[ListedFile, FileRow | None]] = []
    moved: list[str] = []
    for each in listed:
        row = known.pop(each.path, None)
        is_told = row is not None and (row.columns is not None or not job.column_stats)
        if row is not None and is_told and each[1:4] == row[1:4]:
            # Another storage class is no reason to open a file, which may not even be possible.
            if each.storage_class != row.storage_class:
                row = row._replace(storage_class=each.storage_class)
                moved.append(each.path)
            rows.append(row)
        else:
            fresh.append((each, row))
    storage = storage_of(job.selection.root, job.selection.access)
    reader = Reader(storage, column_stats=job.column_stats)
    rows.extend(reader.read(fresh))
    # What lies in places that could not be listed this time is as it was.
    hidden = tuple(f"{each.path.rstrip('/')}/" for each in unlisted)
    hidden_rows = [
        row
        for row in known.values()
        if row.path.startswith(hidden)
        and any(_holds(place, row.path) for place in work.places)
        and claims.of(row.path) is None
    ]
    rows.extend(hidden_rows)
    earlier = None
    if before is not None:
        gone = known.keys() - {row.path for row in hidden_rows}
        earlier = Earlier(before, [*gone, *moved, *(each.path for each, _ in fresh)])
    summary = summarise(
        rows,
        root=job.selection.root,
        hints=job.selection.hints,
        splits=job.splits,
        earlier=earlier,
    )
    part = write_part(job.parts_folder, rows, summary, work.places, access=job.state_access)
    problems = ProblemList()
    for place in unlisted:
        problems.add(Problem(path=place.path, code=place.code, reason=place.reason))
    return Done(summary, len(fresh), problems, reader.bodies, part, [])


def _holds(place: KeyRange, path: str) -> bool:
    """Whether a path lies in a stretch, so that no other work answers for it too."""
    inside = path.startswith(f"{place.folder.rstrip('/')}/")
    return inside and path > place.after and (not place.until or path <= place.until)


def _known(job: Job, work: Work) -> tuple[dict[str, FileRow], Summary | None]:
    """The files of the last manifest, and what they came to where one part holds them all."""
    parts = [read_part(part, access=job.state_access) for part in work.known]
    rows = {row.path: row for some, _ in parts for row in some}
    summary = parts[0][1] if len(parts) == 1 else None
    without_hints = Hints((), root=job.selection.root).fingerprint
    return rows, summary if summary is not None and summary.hints == without_hints else None
