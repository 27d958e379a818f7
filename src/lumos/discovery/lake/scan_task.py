"""One Spark task of a scan: lists key ranges, reads new and changed files, and writes a part.

The driver plans the tasks (`plan_tasks`) and collects their results (`ScanResult`).
"""

import errno
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
from msgspec.structs import replace

from lumos.discovery.grouping.hints import ColumnSplit, HintMatcher
from lumos.discovery.lake.parts import (
    LOST_PART_ERRORS,
    KeyRangeSet,
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
    FileStorage,
    KeyRange,
    ListedFile,
    ListingItem,
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

    `listed_ranges` are the key ranges of files that were listed before the task starts, and
    `deferred` is the path of a stored batch. `known_parts` are the paths of the parts of the last
    manifest that may contain these files. With `dropped_ranges`, nothing is listed: the task
    copies its only part without the files in these ranges. An `in_scope` task lists a part of the
    lake after events; its folders may have been deleted since.
    """

    to_list: list[KeyRange]
    listed: list[ListedFile] = []
    listing_problems: list[ListingProblem] = []
    listed_ranges: list[KeyRange] = []
    deferred: str = ""
    known_parts: list[str] = []
    dropped_ranges: list[KeyRange] = []
    in_scope: bool = False

    @property
    def key_ranges(self) -> list[KeyRange]:
        """The key ranges of all files of the task."""
        return [*self.to_list, *self.listed_ranges]


class DeferredFiles(msgspec.Struct, frozen=True, array_like=True):
    """A stored batch of listed files for another task, with its first and last path."""

    path: str
    key_ranges: list[KeyRange]
    first: str
    last: str


class ScanResult(msgspec.Struct, array_like=True):
    """The result of a task; `encoded_schemas` are schemas by their full fingerprint.

    `skipped_owned_paths` are the folders whose files were skipped because they seemed to belong to
    a table. `stray_metadata` are folders with metadata of tables that lie elsewhere.
    """

    summary: FileSummary
    files_read: int
    listing_problems: ProblemList
    encoded_schemas: dict[str, bytes]
    part: ManifestPart | None
    deferred: list[DeferredFiles]
    table_roots: list[TableRoot] = []
    skipped_owned_paths: list[str] = []
    stray_metadata: list[str] = []


class ScanJob(NamedTuple):
    """The parameters that all tasks of a scan share.

    Files in the folder `state` are not data. Files in `owned_paths` belong to known tables.
    `splits` are the patterns whose files earlier scans split into different datasets.
    """

    selection: FileSelection
    state: str
    parts_folder: str
    state_access: StorageAccess
    column_stats: bool
    owned_paths: tuple[str, ...]
    splits: tuple[ColumnSplit, ...] = ()

    @property
    def hints(self) -> HintMatcher:
        """Assigns files to datasets by hints and earlier splits."""
        return HintMatcher(self.selection.hints, root=self.selection.root, splits=self.splits)


def plan_tasks(
    selection: FileSelection, *, parts: int, index: PartIndex
) -> tuple[list[ScanTask], list[TableRoot]]:
    """Plan about `parts` tasks that list the selection; also return the table roots found so far.

    New folders do not move other key ranges to another task, so that their parts can be reused.
    """
    storage = storage_of(selection.root, selection.access)
    listings, key_ranges = storage.split(
        selection.root, parts=parts, deep=selection.recursive, tables=selection.tables
    )
    tasks = [ScanTask(group) for group in _divide(sorted(key_ranges), parts)]
    listed = [each for each in listings if isinstance(each, ListedFile)]
    listing_problems = [each for each in listings if isinstance(each, ListingProblem)]
    if listed or listing_problems:
        folders = {each.path.rpartition("/")[0] for each in listed}
        ranges = [KeyRange(folder, deep=False) for folder in folders]
        ranges += [KeyRange(each.path) for each in listing_problems]
        tasks.append(
            ScanTask(
                [], listed=listed, listing_problems=listing_problems, listed_ranges=sorted(ranges)
            )
        )
    for task in tasks:
        task.known_parts = [part.path for part in index.find(task.key_ranges)]
    return tasks, [each for each in listings if isinstance(each, TableRoot)]


def _divide(key_ranges: list[KeyRange], parts: int) -> list[list[KeyRange]]:
    """Assign each key range to its own task if there are few, otherwise by a hash of its name."""
    if len(key_ranges) <= 2 * parts:
        return [[key_range] for key_range in key_ranges]
    by_task: dict[int, list[KeyRange]] = {}
    for key_range in key_ranges:
        name = "\n".join(key_range[:3]).encode("utf-8", "surrogatepass")
        by_task.setdefault(crc32(name) % parts, []).append(key_range)
    return list(by_task.values())


def plan_scope_tasks(
    key_ranges: Sequence[KeyRange], *, parts: int, index: PartIndex
) -> tuple[list[ScanTask], list[ManifestPart]]:
    """Tasks that list key ranges and remove their files from the parts that contain them.

    Also returns these parts.
    """
    tasks = [ScanTask(group, in_scope=True) for group in _divide(sorted(key_ranges), parts)]
    for task in tasks:
        task.known_parts = [part.path for part in index.find(task.key_ranges)]
    outdated = index.find(key_ranges)
    tasks += [
        ScanTask(
            [],
            listed_ranges=list(part.key_ranges),
            known_parts=[part.path],
            dropped_ranges=list(key_ranges),
        )
        for part in outdated
    ]
    return tasks, outdated


def plan_deferred(batches: Iterable[DeferredFiles], index: PartIndex) -> list[ScanTask]:
    """Tasks for the files that earlier tasks deferred."""
    return [
        ScanTask(
            [],
            listed_ranges=batch.key_ranges,
            deferred=batch.path,
            known_parts=[
                part.path
                for part in index.find(batch.key_ranges, first=batch.first, last=batch.last)
            ],
        )
        for batch in batches
    ]


def encode_task(task: ScanTask) -> tuple[str, int, int, bytes]:
    """A task as a row of `TASK_COLUMNS`."""
    folder = next((each.folder for each in task.key_ranges), task.deferred)
    return folder, len(task.to_list), len(task.listed), msgspec.msgpack.encode(task)


def scan_worker(job: ScanJob) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that runs tasks and yields a row of `RESULT_COLUMNS` for each."""
    return task_worker(partial(run_task, job), ScanTask, _describe_result, RESULT_COLUMNS)


def _describe_result(result: ScanResult) -> tuple[int, int, int, int]:
    summary = result.summary
    problems = result.listing_problems.total + summary.all_problems.total
    return summary.listed, result.files_read, summary.failed, problems


def task_worker(
    run: Callable[[T], R],
    task_type: type[T],
    describe: Callable[[R], tuple[Any, ...]],
    columns: pa.Schema,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that decodes tasks from record batches, runs them and encodes the results.

    A row of `columns` is the task number, the values that `describe` returns, and the result.
    """

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = (batch.column(name).to_pylist() for name in ("task", "task_body"))
            for number, body in zip(*rows, strict=True):
                # A decoder that is created only once could not be pickled with this function.
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
    """List the files of a task and read those that are new or changed."""
    if task.dropped_ranges:
        return _copy_part(job, task)
    with closing(SpillSort(_decode_listed, key=attrgetter("path"))) as spill:
        table_roots, stray_metadata, problems = _list(job, task, spill)
        owned_paths = OwnedPaths((*job.owned_paths, *(root.folder for root in table_roots)))
        files = owned_paths.without(spill.in_order())
        listed = list(islice(files, _MAX_FILES + 1))
        if len(listed) > _MAX_FILES:
            result = _defer(job, task, chain(listed, files), problems, owned_paths)
        else:
            unchanged = _reuse_part(job, task, listed) if not problems else None
            result = unchanged or _scan(job, task, listed, problems, owned_paths)
    return replace(
        result,
        table_roots=table_roots,
        skipped_owned_paths=sorted(owned_paths.skipping_folders),
        stray_metadata=sorted(stray_metadata),
    )


def _list(
    job: ScanJob, task: ScanTask, spill: SpillSort[ListedFile]
) -> tuple[list[TableRoot], set[str], list[ListingProblem]]:
    """Add the task's files to the spill; return table roots, stray metadata and problems."""
    selection = job.selection
    storage = storage_of(selection.root, selection.access)
    deferred: list[ListedFile] = []
    if task.deferred:
        deferred = _decode_listed(storage_of(task.deferred, job.state_access).read(task.deferred))
    listings = (
        _walk_in_scope(storage, each, tables=selection.tables)
        if task.in_scope
        else storage.walk(each, tables=selection.tables)
        for each in task.to_list
    )
    table_roots: set[TableRoot] = set()
    stray_metadata: set[str] = set()
    problems = list(task.listing_problems)
    # A lake may contain the state of its own scans.
    state_prefix = f"{job.state.rstrip('/')}/"
    for item in chain(task.listed, deferred, chain.from_iterable(listings)):
        if isinstance(item, ListingProblem):
            problems.append(item)
        elif isinstance(item, TableRoot):
            table_roots.add(item)
        elif not item.path.startswith(state_prefix):
            if selection.tables and (folder := misplaced_metadata_folder(item.path)) is not None:
                stray_metadata.add(folder)
            if item.path in selection:
                spill.add(item)
    return sorted(table_roots), stray_metadata, problems


def _walk_in_scope(
    storage: FileStorage, key_range: KeyRange, *, tables: bool
) -> Iterator[ListingItem]:
    """List a key range, exactly within its bounds; a folder that does not exist is empty."""
    covered = KeyRangeSet([key_range])
    for item in storage.walk(key_range, tables=tables):
        if isinstance(item, ListedFile):
            if covered.covers(item.path):
                yield item
        elif not isinstance(item, ListingProblem) or item.path != key_range.folder:
            yield item
        else:
            try:
                exists = any(True for _ in storage.entries(key_range.folder))
            except OSError:
                exists = True
            if exists:
                yield item


_decode_listed: Final = msgspec.msgpack.Decoder(list[ListedFile]).decode


def _defer(
    job: ScanJob,
    task: ScanTask,
    files: Iterator[ListedFile],
    problems: Sequence[ListingProblem],
    owned_paths: OwnedPaths,
) -> ScanResult:
    """Store the files in batches, each of which becomes a separate task."""
    storage = storage_of(job.parts_folder, job.state_access)
    batches = []
    while batch := list(islice(files, _BATCH_SIZE)):
        path = f"{job.parts_folder}/{uuid.uuid4().hex}.listed"
        storage.write(path, msgspec.msgpack.encode(batch))
        batches.append(DeferredFiles(path, task.key_ranges, batch[0].path, batch[-1].path))
    result = _scan(job, task, [], problems, owned_paths) if problems else None
    empty = ScanResult(FileSummary([]), 0, ProblemList(), {}, None, [])
    return replace(result or empty, deferred=batches)


def _reuse_part(job: ScanJob, task: ScanTask, listed: Sequence[ListedFile]) -> ScanResult | None:
    """A result with the part of the last scan, if its files are the listed ones and unchanged."""
    if len(task.known_parts) != 1:
        return None
    path = task.known_parts[0]
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


def _copy_part(job: ScanJob, task: ScanTask) -> ScanResult:
    """Write the part of a task again without the files in its dropped ranges.

    The existing part is used if none of its files is in these ranges. There is no part if all are.
    """
    (path,) = task.known_parts
    known_rows, summary = read_part(path, access=job.state_access)
    if summary is None:
        raise FileNotFoundError(errno.ENOENT, "This part of the manifest is missing", path)
    all_rows = list(known_rows)
    dropped = KeyRangeSet(task.dropped_ranges)
    rows = [row for row in all_rows if not dropped.covers(row.path)]
    if len(rows) == len(all_rows):
        paths = [row.path for row in rows]
        first, last = (min(paths), max(paths)) if paths else ("", "")
        unchanged = ManifestPart(path, tuple(task.listed_ranges), first, last, len(rows))
        return ScanResult(summary, 0, ProblemList(), {}, unchanged, [])
    without_hints = HintMatcher((), root=job.selection.root).fingerprint
    kept_paths = {row.path for row in rows}
    summary = summarise(
        rows,
        root=job.selection.root,
        hints=job.selection.hints,
        splits=job.splits,
        earlier=EarlierSummary(
            summary, [row.path for row in all_rows if row.path not in kept_paths]
        )
        if summary.hints == without_hints
        else None,
    )
    part = None
    if rows:
        ranges = task.listed_ranges
        part = write_part(job.parts_folder, rows, summary, ranges, access=job.state_access)
    return ScanResult(summary, 0, ProblemList(), {}, part, [])


def _scan(
    job: ScanJob,
    task: ScanTask,
    listed: Sequence[ListedFile],
    listing_problems: Sequence[ListingProblem],
    owned_paths: OwnedPaths,
) -> ScanResult:
    """Read new and changed files, take the others from the last scan, and write a part."""
    known_rows, last_summary = _load_last_rows(job, task)
    rows: list[FileRow] = []
    to_read: list[tuple[ListedFile, FileRow | None]] = []
    reclassified: list[str] = []
    for each in listed:
        row = known_rows.pop(each.path, None)
        is_complete = row is not None and (row.columns is not None or not job.column_stats)
        if row is not None and is_complete and each[1:4] == row[1:4]:
            # Only the storage class changed: files of archive classes cannot be opened at all.
            if each.storage_class != row.storage_class:
                row = row._replace(storage_class=each.storage_class)
                reclassified.append(each.path)
            rows.append(row)
        else:
            to_read.append((each, row))
    storage = storage_of(job.selection.root, job.selection.access)
    reader = DataFileReader(storage, column_stats=job.column_stats)
    rows.extend(reader.read(to_read))
    # Files in folders that could not be listed keep their earlier state.
    unlisted_prefixes = tuple(f"{each.path.rstrip('/')}/" for each in listing_problems)
    # Files outside of the key ranges of this task belong to other tasks.
    own_ranges = KeyRangeSet(task.key_ranges)
    unlisted_rows = [
        row
        for row in known_rows.values()
        if row.path.startswith(unlisted_prefixes)
        and own_ranges.covers(row.path)
        and owned_paths.folder_of(row.path) is None
    ]
    rows.extend(unlisted_rows)
    earlier = None
    if last_summary is not None and not task.in_scope:
        removed = known_rows.keys() - {row.path for row in unlisted_rows}
        earlier = EarlierSummary(
            last_summary, [*removed, *reclassified, *(each.path for each, _ in to_read)]
        )
    summary = summarise(
        rows,
        root=job.selection.root,
        hints=job.selection.hints,
        splits=job.splits,
        earlier=earlier,
    )
    part = write_part(job.parts_folder, rows, summary, task.key_ranges, access=job.state_access)
    problems = ProblemList()
    for failed in listing_problems:
        problems.add(Problem(path=failed.path, code=failed.code, reason=failed.reason))
    return ScanResult(summary, len(to_read), problems, reader.encoded_schemas, part, [])


def _load_last_rows(job: ScanJob, task: ScanTask) -> tuple[dict[str, FileRow], FileSummary | None]:
    """The task's files in the last manifest, and their summary if it can be reused.

    The summary can be reused if a single part contains all files and no hints were applied to it.
    """
    parts = [read_part(part, access=job.state_access) for part in task.known_parts]
    rows = {row.path: row for part_rows, _ in parts for row in part_rows}
    summary = parts[0][1] if len(parts) == 1 else None
    without_hints = HintMatcher((), root=job.selection.root).fingerprint
    return rows, summary if summary is not None and summary.hints == without_hints else None
