"""One Spark task of a scan: lists key ranges, reads new and changed files, and writes a part.

The driver plans the tasks (`plan_tasks`) and collects their results (`ScanResult`).
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar
from zlib import crc32

import msgspec
import pyarrow as pa

from lumos.discovery.grouping.hints import ColumnSplit, HintMatcher
from lumos.discovery.lake.parts import (
    LOST_PART_ERRORS,
    ManifestPart,
    PartIndex,
    read_identities,
    read_part,
    write_part,
)
from lumos.discovery.lake.summaries import (
    DataFileReader,
    EarlierSummary,
    FileRow,
    FileSummary,
    summarise,
)
from lumos.discovery.lake.table_paths import OwnedPaths
from lumos.model.discovery import Problem
from lumos.spark.arrays import arrow_array
from lumos.spark.problems import ProblemList
from lumos.spark.spill import SpillSort
from lumos.storage import (
    FileSelection,
    KeyRange,
    ListedFile,
    ListingProblem,
    StorageAccess,
    TableRoot,
    storage_of,
)
from lumos.storage.table_roots import misplaced_metadata_folder

# A task that lists more files than this defers them to other tasks, in batches.
_MAX_FILES: Final = 50_000
_BATCH_SIZE: Final = 10_000

T = TypeVar("T")
R = TypeVar("R")

# The last column holds the encoded task; the others describe it in the Spark UI.
TASK_COLUMNS: Final = pa.schema(
    [
        ("folder", pa.string()),
        ("key_ranges", pa.int64()),
        ("files_listed_before", pa.int64()),
        ("task_body", pa.binary()),
    ]
)
RESULT_COLUMNS: Final = pa.schema(
    [
        ("task", pa.int64()),
        ("files_listed", pa.int64()),
        ("files_read", pa.int64()),
        ("files_failed", pa.int64()),
        ("problems", pa.int64()),
        ("result", pa.binary()),
    ]
)


class ScanTask(msgspec.Struct, array_like=True):
    """The files of one task: key ranges to list, files that were listed, or a deferred batch.

    `listed_ranges` are the key ranges of files that were listed before the task starts. `known`
    are the paths of the parts of the last manifest that may hold some of its files.
    """

    to_list: list[KeyRange]
    listed: list[ListedFile] = []
    unlisted: list[ListingProblem] = []
    listed_ranges: list[KeyRange] = []
    deferred: str = ""
    known: list[str] = []

    @property
    def key_ranges(self) -> list[KeyRange]:
        """The key ranges of all files of the task."""
        return [*self.to_list, *self.listed_ranges]


class DeferredFiles(msgspec.Struct, frozen=True, array_like=True):
    """A batch of listed files for a further task: where it is stored, first and last path."""

    path: str
    key_ranges: list[KeyRange]
    first: str
    last: str


class ScanResult(msgspec.Struct, array_like=True):
    """The result of a task; `encoded_schemas` are schemas by their full fingerprint.

    `skipped_for` are the owned folders for which files were skipped, even if the folders turn out
    not to be owned. `stray_metadata` are folders with metadata of tables that lie elsewhere.
    """

    summary: FileSummary
    read: int
    unlisted: ProblemList
    encoded_schemas: dict[str, bytes]
    part: ManifestPart | None
    deferred: list[DeferredFiles]
    table_roots: list[TableRoot] = []
    skipped_for: list[str] = []
    stray_metadata: list[str] = []


class ScanJob(NamedTuple):
    """The parameters that all tasks of a scan share.

    Files in the folder `state` are not data. Files in `owned_paths` belong to known tables.
    """

    selection: FileSelection
    state: str
    parts_folder: str
    state_access: StorageAccess
    column_stats: bool
    owned_paths: tuple[str, ...]
    # Decisions of earlier scans on which files are different datasets.
    splits: tuple[ColumnSplit, ...] = ()

    @property
    def hints(self) -> HintMatcher:
        """Assigns files to datasets by hints and earlier splits."""
        return HintMatcher(self.selection.hints, root=self.selection.root, splits=self.splits)


def plan_tasks(
    selection: FileSelection, *, parts: int, known: PartIndex
) -> tuple[list[ScanTask], list[TableRoot]]:
    """Plan about `parts` tasks that together list the selection; also return table roots so far.

    A key range always belongs to the same task, so new folders do not change the parts of others.
    """
    storage = storage_of(selection.root, selection.access)
    listings, key_ranges = storage.split(
        selection.root, parts=parts, deep=selection.recursive, tables=selection.tables
    )
    tasks = [ScanTask(some) for some in _divide(sorted(key_ranges), parts)]
    listed = [each for each in listings if isinstance(each, ListedFile)]
    unlisted = [each for each in listings if isinstance(each, ListingProblem)]
    if listed or unlisted:
        folders = {each.path.rpartition("/")[0] for each in listed}
        ranges = [KeyRange(folder, deep=False) for folder in folders]
        ranges += [KeyRange(each.path) for each in unlisted]
        tasks.append(ScanTask([], listed=listed, unlisted=unlisted, listed_ranges=sorted(ranges)))
    for task in tasks:
        task.known = [part.path for part in known.of(task.key_ranges)]
    return tasks, [each for each in listings if isinstance(each, TableRoot)]


def _divide(key_ranges: list[KeyRange], parts: int) -> list[list[KeyRange]]:
    """One key range per task if there are few; otherwise divided by a hash of their names."""
    if len(key_ranges) <= 2 * parts:
        return [[key_range] for key_range in key_ranges]
    by_number: dict[int, list[KeyRange]] = {}
    for key_range in key_ranges:
        name = "\n".join(key_range[:3]).encode("utf-8", "surrogatepass")
        by_number.setdefault(crc32(name) % parts, []).append(key_range)
    return list(by_number.values())


def plan_deferred(batches: Iterable[DeferredFiles], known: PartIndex) -> list[ScanTask]:
    """Tasks for the files that earlier tasks deferred."""
    return [
        ScanTask(
            [],
            listed_ranges=batch.key_ranges,
            deferred=batch.path,
            known=[
                part.path for part in known.of(batch.key_ranges, first=batch.first, last=batch.last)
            ],
        )
        for batch in batches
    ]


def encode_task(task: ScanTask) -> tuple[str, int, int, bytes]:
    """A task as a row of `TASK_COLUMNS`."""
    folder = next((each.folder for each in task.key_ranges), task.deferred)
    return folder, len(task.to_list), len(task.listed), msgspec.msgpack.encode(task)


def scan_worker(job: ScanJob) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Runs the tasks of record batches and yields a row of `RESULT_COLUMNS` for each."""
    return task_worker(partial(run_task, job), ScanTask, _describe_result, RESULT_COLUMNS)


def _describe_result(result: ScanResult) -> tuple[int, int, int, int]:
    summary = result.summary
    problems = result.unlisted.total + summary.all_problems.total
    return summary.listed, result.read, summary.failed, problems


def task_worker(
    run: Callable[[T], R],
    task_type: type[T],
    describe: Callable[[R], tuple[Any, ...]],
    columns: pa.Schema,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Decodes tasks from record batches, runs them, and encodes what each returns.

    A row of `columns` is the task number, what `describe` says of the result, and the result.
    """

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = (batch.column(name).to_pylist() for name in ("task", "task_body"))
            for number, body in zip(*rows, strict=True):
                # A decoder made beforehand could not be pickled with this function.
                result = run(msgspec.msgpack.decode(body, type=task_type))
                row = (number, *describe(result), msgspec.msgpack.encode(result))
                arrays = [
                    arrow_array([value], field.type)
                    for value, field in zip(row, columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=columns)

    return work


decode_result: Final = msgspec.msgpack.Decoder(ScanResult).decode


def run_task(job: ScanJob, task: ScanTask) -> ScanResult:
    """Lists the files of a task and reads those that are new or changed."""
    with closing(SpillSort(_decode_listed, key=attrgetter("path"))) as spill:
        table_roots, stray_metadata, unlisted = _list(job, task, spill)
        owned = OwnedPaths((*job.owned_paths, *(root.folder for root in table_roots)))
        files = owned.without(spill.in_order())
        some = list(islice(files, _MAX_FILES + 1))
        if len(some) > _MAX_FILES:
            result = _defer(job, task, chain(some, files), unlisted, owned)
        else:
            unchanged = _unchanged(job, task, some) if not unlisted else None
            result = unchanged or _scan(job, task, some, unlisted, owned)
    return msgspec.structs.replace(
        result,
        table_roots=table_roots,
        skipped_for=sorted(owned.used),
        stray_metadata=sorted(stray_metadata),
    )


def _list(
    job: ScanJob, task: ScanTask, spill: SpillSort[ListedFile]
) -> tuple[list[TableRoot], set[str], list[ListingProblem]]:
    """Adds the task's files to the spill; returns tables, stray metadata and what failed."""
    selection = job.selection
    storage = storage_of(selection.root, selection.access)
    deferred: list[ListedFile] = []
    if task.deferred:
        deferred = _decode_listed(storage_of(task.deferred, job.state_access).read(task.deferred))
    walked = (storage.walk(each, tables=selection.tables) for each in task.to_list)
    table_roots: set[TableRoot] = set()
    stray_metadata: set[str] = set()
    unlisted = list(task.unlisted)
    # A lake may contain the state of its own scans.
    state = f"{job.state.rstrip('/')}/"
    for listing in chain(task.listed, deferred, chain.from_iterable(walked)):
        if isinstance(listing, ListingProblem):
            unlisted.append(listing)
        elif isinstance(listing, TableRoot):
            table_roots.add(listing)
        elif not listing.path.startswith(state):
            if selection.tables and (folder := misplaced_metadata_folder(listing.path)) is not None:
                stray_metadata.add(folder)
            if listing.path in selection:
                spill.add(listing)
    return sorted(table_roots), stray_metadata, unlisted


_decode_listed: Final = msgspec.msgpack.Decoder(list[ListedFile]).decode


def _defer(
    job: ScanJob,
    task: ScanTask,
    files: Iterator[ListedFile],
    unlisted: Sequence[ListingProblem],
    owned: OwnedPaths,
) -> ScanResult:
    """Stores too many files in batches, each of which becomes a separate task."""
    storage = storage_of(job.parts_folder, job.state_access)
    batches = []
    while some := list(islice(files, _BATCH_SIZE)):
        path = f"{job.parts_folder}/{uuid.uuid4().hex}.listed"
        storage.write(path, msgspec.msgpack.encode(some))
        batches.append(DeferredFiles(path, task.key_ranges, some[0].path, some[-1].path))
    rest = _scan(job, task, [], unlisted, owned) if unlisted else None
    empty = ScanResult(FileSummary([]), 0, ProblemList(), {}, None, [])
    return msgspec.structs.replace(rest or empty, deferred=batches)


def _unchanged(job: ScanJob, task: ScanTask, listed: Sequence[ListedFile]) -> ScanResult | None:
    """Return the part of the last scan if it contains exactly these files and none changed."""
    if len(task.known) != 1:
        return None
    path = task.known[0]
    try:
        identities, summary = read_identities(path, access=job.state_access)
    except LOST_PART_ERRORS:
        return None
    if job.column_stats and not summary.has_column_stats:
        return None
    if summary.hints != job.hints.fingerprint:
        return None
    if identities != {each.path: tuple(each[1:]) for each in listed}:
        return None
    first, last = (min(identities), max(identities)) if identities else ("", "")
    part = ManifestPart(path, tuple(task.key_ranges), first, last, len(identities))
    return ScanResult(summary, 0, ProblemList(), {}, part, [])


def _scan(
    job: ScanJob,
    task: ScanTask,
    listed: Sequence[ListedFile],
    unlisted: Sequence[ListingProblem],
    owned: OwnedPaths,
) -> ScanResult:
    """Reads new and changed files, takes the others from the last scan, and writes a part."""
    known, before = _load_known(job, task)
    rows: list[FileRow] = []
    fresh: list[tuple[ListedFile, FileRow | None]] = []
    moved: list[str] = []
    for each in listed:
        row = known.pop(each.path, None)
        is_complete = row is not None and (row.columns is not None or not job.column_stats)
        if row is not None and is_complete and each[1:4] == row[1:4]:
            # Only the storage class changed: files of archive classes cannot be opened at all.
            if each.storage_class != row.storage_class:
                row = row._replace(storage_class=each.storage_class)
                moved.append(each.path)
            rows.append(row)
        else:
            fresh.append((each, row))
    storage = storage_of(job.selection.root, job.selection.access)
    reader = DataFileReader(storage, column_stats=job.column_stats)
    rows.extend(reader.read(fresh))
    # Files in folders that could not be listed keep their earlier state.
    unlisted_prefixes = tuple(f"{each.path.rstrip('/')}/" for each in unlisted)
    hidden_rows = [
        row
        for row in known.values()
        if row.path.startswith(unlisted_prefixes)
        and any(_contains(key_range, row.path) for key_range in task.key_ranges)
        and owned.of(row.path) is None
    ]
    rows.extend(hidden_rows)
    earlier = None
    if before is not None:
        removed = known.keys() - {row.path for row in hidden_rows}
        earlier = EarlierSummary(before, [*removed, *moved, *(each.path for each, _ in fresh)])
    summary = summarise(
        rows,
        root=job.selection.root,
        hints=job.selection.hints,
        splits=job.splits,
        earlier=earlier,
    )
    part = write_part(job.parts_folder, rows, summary, task.key_ranges, access=job.state_access)
    problems = ProblemList()
    for failed in unlisted:
        problems.add(Problem(path=failed.path, code=failed.code, reason=failed.reason))
    return ScanResult(summary, len(fresh), problems, reader.encoded_schemas, part, [])


def _contains(key_range: KeyRange, path: str) -> bool:
    """Whether a path is in a key range, so that no other task reports it too."""
    is_below = path.startswith(f"{key_range.folder.rstrip('/')}/")
    is_before_end = not key_range.until or path <= key_range.until
    return is_below and path > key_range.after and is_before_end


def _load_known(job: ScanJob, task: ScanTask) -> tuple[dict[str, FileRow], FileSummary | None]:
    """The files of the last manifest, and their summary if a single part holds them all."""
    parts = [read_part(part, access=job.state_access) for part in task.known]
    rows = {row.path: row for some, _ in parts for row in some}
    summary = parts[0][1] if len(parts) == 1 else None
    without_hints = HintMatcher((), root=job.selection.root).fingerprint
    return rows, summary if summary is not None and summary.hints == without_hints else None
