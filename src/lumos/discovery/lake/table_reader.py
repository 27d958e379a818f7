"""Reads changed tables of a lake from their logs, in one Spark task per table."""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from lumos.config.secret import redact
from lumos.discovery.lake.scan_task import task_worker
from lumos.discovery.lake.table_folder import StoredTableFolder, locate_table, open_table_folder
from lumos.formats.interface import KnownSchema, Remark, UnreadableFile, check_width
from lumos.formats.tables import KINDS, table_reader
from lumos.formats.tables.interface import LiveFile, TableFacts, folder_without_partitions
from lumos.model.dataset import Location, Statistics
from lumos.model.discovery import (
    OF_TABLE,
    FoundDataset,
    PastSchema,
    Problem,
    SourceMetadata,
    TableState,
)
from lumos.model.json_codec import from_json, to_json
from lumos.storage import FileSelection, StorageAccess, storage_of
from lumos.storage.table_roots import LOG_FOLDERS, METADATA_FOLDER, is_iceberg
from lumos.storage.uris import absolute, canonical

# The last column holds the encoded task; the others describe it in the Spark UI.
TABLE_TASK_COLUMNS: Final = pa.schema(
    [("root", pa.string()), ("kinds", pa.string()), ("task_body", pa.binary())]
)
TABLE_RESULT_COLUMNS: Final = pa.schema(
    [
        ("task", pa.int64()),
        ("root", pa.string()),
        ("is_read", pa.bool_()),
        ("problems", pa.int64()),
        ("result", pa.binary()),
    ]
)
_MAX_OWNED_FILES: Final = 20_000
_MEMORY_SUFFIX: Final = ".table"
# The maximum number of folders above a path that are searched for the root of its table.
_MAX_DEPTH: Final = 12
# Increment this when tables must be read again because a reader changed.
_VERSION: Final = 1
# A write that has not finished yet, or an abandoned folder.
_UNFINISHED: Final = "half_written_table"
# Metadata whose table cannot be determined.
STRAY_METADATA: Final = "stray_metadata"


class TableRecord(msgspec.Struct, frozen=True, array_like=True):
    """A table in a manifest: the file with the state of its reader, and the paths that it owns.

    `owned_paths` are paths outside of the table's root. A table without a signature is always read
    again. `log` is its metadata folder if that lies elsewhere.
    """

    kinds: tuple[str, ...]
    signature: str
    memory_path: str
    owned_paths: tuple[str, ...] = ()
    log: str = ""

    @property
    def facts_path(self) -> str:
        """The file with the facts, which are separate because a memory may be much larger."""
        return f"{self.memory_path.removesuffix(_MEMORY_SUFFIX)}.facts"

    @property
    def files(self) -> tuple[str, ...]:
        """All files that are stored for the table."""
        return (self.memory_path, self.facts_path) if self.memory_path else ()


class TableMemory(NamedTuple):
    """Facts of a table as JSON, and the state from which its reader continues."""

    kind: str
    facts: bytes
    memory: bytes


class TableTask(msgspec.Struct, array_like=True):
    """A table to read, with its record in the last manifest, if any.

    A table that is not listed may have been deleted. In a task for stray metadata, `log` and `root`
    are both the metadata folder, because only the metadata has the location of the table.
    """

    root: str
    kinds: tuple[str, ...]
    record: TableRecord | None = None
    is_listed: bool = True
    log: str = ""


class TableResult(msgspec.Struct, array_like=True):
    """A table with its facts as JSON: those of an earlier scan if it cannot be read now.

    `is_missing` is set for a deleted table, and for metadata that belongs to no table.
    """

    root: str
    record: TableRecord
    facts: bytes | None
    problems: list[Problem]
    was_read: bool
    is_missing: bool = False


class TableJob(NamedTuple):
    """The parameters that all table tasks of a scan share."""

    selection: FileSelection
    state: str
    parts_folder: str
    state_access: StorageAccess


def encode_table_task(task: TableTask) -> tuple[str, str, bytes]:
    """A task as a row of `TABLE_TASK_COLUMNS`."""
    return task.root, ", ".join(task.kinds), msgspec.msgpack.encode(task)


def table_worker(job: TableJob) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that runs tasks and yields a row of `TABLE_RESULT_COLUMNS` for each."""
    return task_worker(partial(_run_task, job), TableTask, _describe_result, TABLE_RESULT_COLUMNS)


def _describe_result(result: TableResult) -> tuple[str, bool, int]:
    return result.root, result.was_read, len(result.problems)


decode_table_result: Final = msgspec.msgpack.Decoder(TableResult).decode


def load_table_memory(record: TableRecord, access: StorageAccess) -> TableMemory | None:
    """Load the facts and reader state of a table; None if they are missing."""
    facts = _load_facts(record, access)
    memory = _load_memory(record, access)
    return None if facts is None or memory is None else TableMemory(facts[1].kind, facts[0], memory)


def _load_facts(
    record: TableRecord | None, access: StorageAccess
) -> tuple[bytes, TableFacts] | None:
    """The stored facts, as JSON and decoded; None if they are lost."""
    if record is None or not record.memory_path:
        return None
    try:
        data = storage_of(record.facts_path, access).read(record.facts_path)
        return data, from_json(data, TableFacts)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _load_memory(record: TableRecord | None, access: StorageAccess) -> bytes | None:
    if record is None or not record.memory_path:
        return None
    try:
        return storage_of(record.memory_path, access).read(record.memory_path)
    except FileNotFoundError:
        return None


def live_files(memory: TableMemory) -> Iterator[LiveFile]:
    """The files of a table's current version."""
    return table_reader(memory.kind).live(memory.memory)


def live_paths(root: str, memory: TableMemory) -> Iterator[str]:
    """The paths of the files of a table's current version."""
    return (absolute(file.path, root) for file in live_files(memory))


def _run_task(job: TableJob, task: TableTask) -> TableResult:
    """Read a table, or keep its last known facts if that fails."""
    storage = storage_of(job.selection.root, job.selection.access)
    if task.log and task.root != task.log:
        names = (each.path.rpartition("/")[2] for each in storage.entries(task.log))
        if not any(map(is_iceberg, names)):
            # The metadata may have been moved back to its usual folder.
            task = replace(task, log="")
    folder = open_table_folder(
        storage, task.root, task.log, scanned=job.selection.root, excluded_uri=job.state
    )
    problems: list[Problem] = []
    if not task.is_listed and not _has_log(folder, task.kinds):
        record = task.record or TableRecord(task.kinds, "", "")
        return TableResult(task.root, record, None, problems, False, is_missing=True)
    # If a root has several logs, the first readable one in the order of KINDS is used.
    for kind in (kind for kind in KINDS if kind in task.kinds):
        try:
            result = _read(job, task, folder, kind)
            remarks = [replace(each, remark=True) for each in problems]
            return replace(result, problems=[*remarks, *result.problems])
        except UnreadableFile as problem:
            failed = _problem(task.root, problem.code, problem.reason)
        except FileNotFoundError as problem:
            failed = _problem(task.root, "broken_table", f"A file of its log is missing: {problem}")
        except PermissionError:
            reason = "No permission to read its log; grant read access"
            failed = _problem(task.root, "permission_denied", reason)
        except Exception as problem:  # noqa: BLE001 - one corrupt table must not end a scan
            reason = f"It could not be read: {type(problem).__name__}: {problem}"
            failed = _problem(task.root, "unreadable", reason)
        problems.append(failed)
        if failed.code == STRAY_METADATA:
            empty = TableRecord(task.kinds, "", "")
            return TableResult(task.root, empty, None, problems, False, is_missing=True)
        if failed.code != _UNFINISHED:
            break
    return _keep_last_facts(job, task, problems)


def _has_log(folder: StoredTableFolder, kinds: Sequence[str]) -> bool:
    """Whether the table has a log, even if the scan did not list it: listings may be delayed."""
    try:
        return _is_log_listed(folder, kinds)
    except (OSError, UnreadableFile):
        # Reading the table will report the problem.
        return True


def _is_log_listed(folder: StoredTableFolder, kinds: Collection[str]) -> bool:
    logs = (name for name, kind in LOG_FOLDERS.items() if kind in kinds)
    in_logs = any(any(True for _ in folder.entries(name)) for name in logs)
    return in_logs or any(is_iceberg(each.name) for each in folder.entries(METADATA_FOLDER))


def find_enclosing_table(path: str, selection: FileSelection) -> str | None:
    """The root of the table that contains a path, or is the path itself; None if there is none."""
    storage = storage_of(selection.root, selection.access)
    folder = path.rstrip("/")
    for _ in range(_MAX_DEPTH if selection.tables else 0):
        if not folder or folder.endswith(":/"):
            return None
        try:
            if _is_log_listed(StoredTableFolder(storage, folder), KINDS):
                return folder
        except NotADirectoryError:
            # The path is a file.
            pass
        except (OSError, UnreadableFile):
            # Access to a folder does not imply access to the folders above it.
            return None
        folder = folder.rpartition("/")[0]
    return None


def _read(job: TableJob, task: TableTask, folder: StoredTableFolder, kind: str) -> TableResult:
    """Read a table from its log, unless the signature of the log is unchanged."""
    reader = table_reader(kind)
    signature = f"{_VERSION}\n{kind}\n{reader.signature(folder)}"
    record, stored_facts = task.record, _load_facts(task.record, job.state_access)
    if (
        record is not None
        and stored_facts is not None
        and (record.signature, record.kinds) == (signature, task.kinds)
        and _has_memory(record, job)
    ):
        return TableResult(
            task.root, record, stored_facts[0], _remarks(job, task.root, stored_facts[1]), False
        )
    if task.log:
        folder = _locate(job, task.log)
        signature = f"{_VERSION}\n{kind}\n{reader.signature(folder)}"
    if not job.selection.has_table(folder.root):
        # The table is excluded from the scan, but its files are not separate datasets either.
        excluded = TableRecord(task.kinds, "", "", (task.log,), task.log)
        return TableResult(folder.root, excluded, None, [], False)
    has_same_reader = (
        stored_facts is not None and stored_facts[1].kind == kind and folder.root == task.root
    )
    reader_state = _load_memory(record, job.state_access) if has_same_reader else None
    facts, memory = reader.read(folder, reader_state, max_commits=job.selection.table_history)
    check_width(len(KnownSchema(facts.schema).leaves))
    if (
        facts.table_location
        and not task.log
        and (table := _read_elsewhere(job, task, kind)) is not None
    ):
        return table
    if others := ", ".join(other for other in task.kinds if other != kind):
        properties = {**facts.properties, "also": others}
        facts = replace(facts, properties=properties)
    encoded_facts = to_json(facts)
    path = f"{job.parts_folder}/{uuid.uuid4().hex}{_MEMORY_SUFFIX}"
    owned_paths = _owned_paths(facts, folder.root, job.selection.root, log=task.log)
    record = TableRecord(task.kinds, signature, path, owned_paths, task.log)
    storage = storage_of(path, job.state_access)
    storage.write(record.memory_path, memory)
    storage.write(record.facts_path, encoded_facts)
    return TableResult(folder.root, record, encoded_facts, _remarks(job, folder.root, facts), True)


def _locate(job: TableJob, log: str) -> StoredTableFolder:
    selection = job.selection
    storage = storage_of(selection.root, selection.access)
    return locate_table(storage, log, scanned=selection.root, excluded_uri=job.state)


def _read_elsewhere(job: TableJob, task: TableTask, kind: str) -> TableResult | None:
    """The table at the location in its metadata, if that location is inside the scanned root."""
    log = f"{task.root}/{METADATA_FOLDER}"
    try:
        folder = _locate(job, log)
    except UnreadableFile:
        # The metadata has no usable location, so the table is the folder that contains it.
        return None
    if folder.root == log:
        return None
    return _read(job, TableTask(folder.root, task.kinds, log=log), folder, kind)


def _has_memory(record: TableRecord, job: TableJob) -> bool:
    """Whether the reader's state is still stored; profiles and `lumos explain` need it."""
    try:
        with storage_of(record.memory_path, job.state_access).open(record.memory_path) as file:
            return file.size > 0
    except FileNotFoundError:
        return False


def _keep_last_facts(job: TableJob, task: TableTask, problems: list[Problem]) -> TableResult:
    """The last known facts of a table that cannot be read; the next scan tries again."""
    record, facts = task.record, _load_facts(task.record, job.state_access)
    if record is None or facts is None:
        unread = TableRecord(task.kinds, "", "", log=task.log)
        return TableResult(task.root, unread, None, problems, False)
    outdated = replace(record, kinds=task.kinds, signature="")
    return TableResult(task.root, outdated, facts[0], problems, False)


def _problem(root: str, code: str, reason: str) -> Problem:
    text = redact(" ".join(reason.split()).rstrip("."))
    return Problem(path=root, code=code, reason=f"{text}.", remark=code == STRAY_METADATA)


def _remarks(job: TableJob, root: str, facts: TableFacts) -> list[Problem]:
    remarks = list(facts.remarks)
    scanned = f"{job.selection.root.rstrip('/')}/"
    locations = (canonical(each, root) for each in facts.outside_locations)
    elsewhere = (each for each in locations if not f"{each.rstrip('/')}/".startswith(scanned))
    if outside := sorted(set(islice(map(folder_without_partitions, elsewhere), _MAX_OWNED_FILES))):
        folders = ", ".join(outside[:3]) + (" and elsewhere" if len(outside) > 3 else "")
        reason = f"Some live files lie outside of the scanned root, in {folders}."
        remarks.append(Remark("outside_data", reason))
    return [
        Problem(path=root, code=remark.code, reason=redact(remark.reason), remark=True)
        for remark in remarks
    ]


def _owned_paths(facts: TableFacts, root: str, scanned: str, *, log: str) -> tuple[str, ...]:
    """The paths outside of its root that a table owns and that the scan may list.

    A folder that contains the table itself is never owned. The paths are sent to every task, so
    if there are too many files, their folders are used instead.
    """
    prefix = f"{scanned.rstrip('/')}/"
    own_prefix = f"{root}/"
    locations = {canonical(each, root).rstrip("/") for each in facts.outside_locations}
    outside = {
        each for each in locations if each.startswith(prefix) and not each.startswith(own_prefix)
    }
    if len(outside) > _MAX_OWNED_FILES:
        outside = set(map(folder_without_partitions, outside))
    if log and not f"{log}/".startswith(own_prefix):
        outside.add(log)
    return tuple(sorted(each for each in outside if not own_prefix.startswith(f"{each}/")))


def dataset_of_table(root: str, facts: TableFacts) -> FoundDataset:
    """A table as a dataset."""
    partitions = tuple(field.name for field in facts.schema.fields if field.partition)
    return FoundDataset(
        path=root,
        format=facts.kind,
        location=Location(
            uri=root,
            partitioning=", ".join(facts.partition_by) or None,
            partition_keys=partitions,
            identity=facts.identity or None,
        ),
        schema=facts.schema,
        statistics=Statistics(
            file_count=facts.files,
            total_size_bytes=facts.bytes,
            row_count=facts.rows,
            row_count_exact=facts.rows is not None and facts.rows_exact,
            last_modified=facts.at,
        ),
        drift=(),
        content=facts.content,
        source_metadata=SourceMetadata(
            description=facts.description, properties=_properties(facts)
        ),
        table=TableState(
            version=facts.version,
            operation=facts.operation,
            at=facts.at,
            past=tuple(
                PastSchema(
                    schema=each.schema,
                    at=each.at,
                    version=each.version,
                    operation=each.operation,
                    author=each.author,
                    exact_time=each.exact_time,
                )
                for each in facts.past
            ),
            features=tuple(feature.name for feature in facts.features),
        ),
    )


def _properties(facts: TableFacts) -> dict[str, str]:
    features = [each.name if each.read else f"{each.name} (not read)" for each in facts.features]
    common = {
        f"{OF_TABLE}version": facts.version,
        f"{OF_TABLE}operation": facts.operation,
        f"{OF_TABLE}features": ", ".join(features),
    }
    return {**facts.properties, **{name: text for name, text in common.items() if text}}
