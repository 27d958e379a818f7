"""Tables of a lake: read by their own logs, each in a task, and only where something changed."""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa

from lumos.config.secret import redact
from lumos.discovery.table_folder import StoredFolder, folder_of, home_around
from lumos.formats.interface import KnownSchema, Remark, UnreadableFile, check_width
from lumos.formats.tables import KINDS, READERS
from lumos.formats.tables.interface import LiveFile, TableFacts
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
from lumos.spark.arrays import arrow_array
from lumos.storage import FileSelection, FileStorage, StorageAccess, storage_of
from lumos.storage.table_roots import LOG_FOLDERS, METADATA_FOLDER, is_iceberg
from lumos.storage.uris import absolute, canonical

# A table to read as a row for a task, and what came of it.
TABLE_WORKS: Final = pa.schema(
    [("root", pa.string()), ("kinds", pa.string()), ("work", pa.binary())]
)
_RESULTS: Final = pa.schema(
    [
        ("task", pa.int64()),
        ("root", pa.string()),
        ("is_read", pa.bool_()),
        ("problems", pa.int64()),
        ("done", pa.binary()),
    ]
)
TABLE_RESULTS_IN_SPARK: Final = (
    "task bigint, root string, is_read boolean, problems bigint, done binary"
)
_MOST_CLAIMS: Final = 20_000
_MEMORY: Final = ".table"
# A file lies no deeper in its table than this, partitions and all.
_DEEPEST: Final = 12
# Raised whenever tables must be read anew because Lumos understands them better.
_VERSION: Final = 1
# A writer that has not come to an end yet, or a folder that somebody left behind.
_NO_TABLE_YET: Final = "half_written_table"
# Metadata of which nobody can say where its table is.
STRAY: Final = "stray_metadata"


class TableKept(msgspec.Struct, frozen=True, array_like=True):
    """A table as a manifest remembers it: where what was read of it lies, and what it owns.

    Without a signature it is read anew, whatever its log says. `log` is the folder of its metadata
    where that lies elsewhere.
    """

    kinds: tuple[str, ...]
    signature: str
    memory: str
    claims: tuple[str, ...] = ()
    log: str = ""

    @property
    def facts(self) -> str:
        """Where the facts lie: apart, since a memory may be as long as the table has files."""
        return f"{self.memory.removesuffix(_MEMORY)}.facts"

    @property
    def files(self) -> tuple[str, ...]:
        """All that is kept of the table."""
        return (self.memory, self.facts) if self.memory else ()


class Memory(NamedTuple):
    """What was read of a table: facts as JSON, and what its reader wants to be given again."""

    kind: str
    facts: bytes
    memory: bytes


class TableWork(msgspec.Struct, array_like=True):
    """A table to read, and how it was the last time; one that was not `met` may be gone.

    Of metadata in a folder `log` that nobody knows yet, it tells itself where its table lies.
    """

    root: str
    kinds: tuple[str, ...]
    kept: TableKept | None = None
    met: bool = True
    log: str = ""


class TableDone(msgspec.Struct, array_like=True):
    """What came of a table: facts as JSON, those of an earlier scan where it can not be read.

    It is also `gone` where metadata turns out to be no table's.
    """

    root: str
    kept: TableKept
    facts: bytes | None
    problems: list[Problem]
    read: bool
    gone: bool = False


class TableJob(NamedTuple):
    """What all readings of tables in a scan have in common."""

    selection: FileSelection
    state: str
    parts_folder: str
    state_access: StorageAccess


def table_row(work: TableWork) -> tuple[str, str, bytes]:
    """A table to read as a row for a task."""
    return work.root, ", ".join(work.kinds), msgspec.msgpack.encode(work)


def table_worker(job: TableJob) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Reads the tables that it is given, and gives what each told."""

    def do(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("task", "work"))
            for number, work in zip(*columns, strict=True):
                yield _result(number, _do(job, decode_table_work(work)))

    return do


def _result(number: int, done: TableDone) -> pa.RecordBatch:
    row = (number, done.root, done.read, len(done.problems), msgspec.msgpack.encode(done))
    arrays = [arrow_array([value], field.type) for value, field in zip(row, _RESULTS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_RESULTS)


def decode_table_work(data: bytes) -> TableWork:
    """A table to read that came as a row; tasks take functions along, but no decoders."""
    return msgspec.msgpack.decode(data, type=TableWork)


decode_table: Final = msgspec.msgpack.Decoder(TableDone).decode


def memory_of(kept: TableKept, access: StorageAccess) -> Memory | None:
    """What was read of a table; nothing where that is lost."""
    known = _known_facts(kept, access)
    memory = _known_memory(kept, access)
    return None if known is None or memory is None else Memory(known[1].kind, known[0], memory)


def _known_facts(kept: TableKept | None, access: StorageAccess) -> tuple[bytes, TableFacts] | None:
    """The facts as JSON and as they are; nothing where they are lost."""
    if kept is None or not kept.memory:
        return None
    try:
        data = storage_of(kept.facts, access).read(kept.facts)
        return data, from_json(data, TableFacts)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def _known_memory(kept: TableKept | None, access: StorageAccess) -> bytes | None:
    if kept is None or not kept.memory:
        return None
    try:
        return storage_of(kept.memory, access).read(kept.memory)
    except FileNotFoundError:
        return None


def live_files(memory: Memory) -> Iterator[LiveFile]:
    """The files of a table's current version."""
    return READERS[memory.kind].live(memory.memory)


def live_paths(root: str, memory: Memory) -> Iterator[str]:
    """Where the files of a table's current version lie."""
    return (absolute(file.path, root) for file in live_files(memory))


def _do(job: TableJob, work: TableWork) -> TableDone:
    storage = storage_of(job.selection.root, job.selection.access)
    if work.log and work.root != work.log and not _shows_metadata(storage, work.log):
        # Perhaps it was put back into its usual place.
        work = msgspec.structs.replace(work, log="")
    folder = folder_of(storage, work.root, work.log, scanned=job.selection.root, left_out=job.state)
    problems: list[Problem] = []
    if not work.met and work.kept is not None and not _has_log(folder, work.kinds):
        return TableDone(work.root, work.kept, None, problems, False, gone=True)
    # Where several logs lie in one root, the first kind that is a table speaks for all.
    for kind in (kind for kind in KINDS if kind in work.kinds):
        try:
            done = _read(job, work, folder, kind)
            remarks = [msgspec.structs.replace(each, remark=True) for each in problems]
            return msgspec.structs.replace(done, problems=[*remarks, *done.problems])
        except UnreadableFile as problem:
            failed = _problem(work.root, problem.code, problem.reason)
        except FileNotFoundError as problem:
            failed = _problem(work.root, "broken_table", f"A file of its log is gone: {problem}")
        except PermissionError:
            reason = "No permission to read its log; grant read access"
            failed = _problem(work.root, "permission_denied", reason)
        except Exception as problem:  # noqa: BLE001 - one hostile table must never end a scan
            reason = f"It could not be read: {type(problem).__name__}: {problem}"
            failed = _problem(work.root, "unreadable", reason)
        problems.append(failed)
        if failed.code == STRAY:
            return TableDone(work.root, TableKept(work.kinds, "", ""), None, problems, False, True)
        if failed.code != _NO_TABLE_YET:
            break
    return _as_before(job, work, problems)


def _has_log(folder: StoredFolder, kinds: Sequence[str]) -> bool:
    """Whether a log is there that no listing showed: one may lag behind, or have failed."""
    try:
        return _shows_log(folder, kinds)
    except (OSError, UnreadableFile):
        # Reading the table reports why.
        return True


def _shows_log(folder: StoredFolder, kinds: Collection[str]) -> bool:
    logs = (name for name, kind in LOG_FOLDERS.items() if kind in kinds)
    in_logs = any(any(True for _ in folder.entries(name)) for name in logs)
    return in_logs or any(is_iceberg(each.name) for each in folder.entries(METADATA_FOLDER))


def _shows_metadata(storage: FileStorage, log: str) -> bool:
    return any(is_iceberg(each.path.rpartition("/")[2]) for each in storage.entries(log))


def table_around(selection: FileSelection) -> str | None:
    """The root of the table in the midst of which a scan begins, if it does."""
    storage = storage_of(selection.root, selection.access)
    folder = selection.root.rstrip("/")
    for _ in range(_DEEPEST if selection.tables else 0):
        folder = folder.rpartition("/")[0]
        if not folder or folder.endswith(":/"):
            return None
        try:
            if _shows_log(StoredFolder(storage, folder), KINDS):
                return folder
        except (OSError, UnreadableFile):
            # Who may scan a place need not be allowed to look above it.
            return None
    return None


def _read(job: TableJob, work: TableWork, folder: StoredFolder, kind: str) -> TableDone:
    reader = READERS[kind]
    signature = f"{_VERSION}\n{kind}\n{reader.signature(folder)}"
    kept, known = work.kept, _known_facts(work.kept, job.state_access)
    is_as_before = kept is not None and (kept.signature, kept.kinds) == (signature, work.kinds)
    if is_as_before and known is not None and kept is not None and _is_whole(kept, job):
        return TableDone(work.root, kept, known[0], _remarks(job, work.root, known[1]), False)
    if work.log:
        folder = _home(job, work.log)
        signature = f"{_VERSION}\n{kind}\n{reader.signature(folder)}"
    if not job.selection.has_table(folder.root):
        # No dataset, though its files are no other's, either.
        left_out = TableKept(work.kinds, "", "", (work.log,), work.log)
        return TableDone(folder.root, left_out, None, [], False)
    is_of_kind = known is not None and known[1].kind == kind and folder.root == work.root
    earlier = _known_memory(kept, job.state_access) if is_of_kind else None
    facts, memory = reader.read(folder, earlier, most_commits=job.selection.table_history)
    check_width(len(KnownSchema(facts.schema).leaves))
    if facts.elsewhere and not work.log and (apart := _read_apart(job, work, kind)) is not None:
        return apart
    body = to_json(_with_others(facts, kind, work.kinds))
    path = f"{job.parts_folder}/{uuid.uuid4().hex}{_MEMORY}"
    claims = _claims(facts, folder.root, job.selection.root, log=work.log)
    kept_now = TableKept(work.kinds, signature, path, claims, work.log)
    state = storage_of(path, job.state_access)
    state.write(kept_now.memory, memory)
    state.write(kept_now.facts, body)
    return TableDone(folder.root, kept_now, body, _remarks(job, folder.root, facts), True)


def _home(job: TableJob, log: str) -> StoredFolder:
    selection = job.selection
    storage = storage_of(selection.root, selection.access)
    return home_around(storage, log, scanned=selection.root, left_out=job.state)


def _read_apart(job: TableJob, work: TableWork, kind: str) -> TableDone | None:
    """A table that lies elsewhere, if that is where the scan looks."""
    log = f"{work.root}/{METADATA_FOLDER}"
    try:
        folder = _home(job, log)
    except UnreadableFile:
        # It is what it looks like: a table in the folder that holds its metadata.
        return None
    if folder.root == log:
        return None
    apart = TableWork(folder.root, work.kinds, log=log)
    return _read(job, apart, folder, kind)


def _is_whole(kept: TableKept, job: TableJob) -> bool:
    """Whether the memory is there, too, which others than a scan ask for."""
    try:
        with storage_of(kept.memory, job.state_access).open(kept.memory) as file:
            return file.size > 0
    except FileNotFoundError:
        return False


def _as_before(job: TableJob, work: TableWork, problems: list[Problem]) -> TableDone:
    """A table that cannot be read keeps what was known of it, and is read anew the next time."""
    kept, known = work.kept, _known_facts(work.kept, job.state_access)
    if kept is None or known is None:
        unread = TableKept(work.kinds, "", "", log=work.log)
        return TableDone(work.root, unread, None, problems, False)
    again = msgspec.structs.replace(kept, kinds=work.kinds, signature="")
    return TableDone(work.root, again, known[0], problems, False)


def _problem(root: str, code: str, reason: str) -> Problem:
    words = redact(" ".join(reason.split()).rstrip("."))
    return Problem(path=root, code=code, reason=f"{words}.", remark=code == STRAY)


def _remarks(job: TableJob, root: str, facts: TableFacts) -> list[Problem]:
    remarks = list(facts.remarks)
    scanned = f"{job.selection.root.rstrip('/')}/"
    places = (canonical(each, root) for each in facts.claims)
    elsewhere = (each for each in places if not f"{each.rstrip('/')}/".startswith(scanned))
    if outside := sorted(set(islice(map(_folder, elsewhere), _MOST_CLAIMS))):
        told = ", ".join(outside[:3]) + (" and elsewhere" if len(outside) > 3 else "")
        reason = f"Live files lie outside of what is scanned, in {told}; its log tells of them."
        remarks.append(Remark("outside_data", reason))
    return [
        Problem(path=root, code=remark.code, reason=redact(remark.reason), remark=True)
        for remark in remarks
    ]


def _with_others(facts: TableFacts, kind: str, kinds: Sequence[str]) -> TableFacts:
    others = ", ".join(other for other in kinds if other != kind)
    if not others:
        return facts
    return msgspec.structs.replace(facts, properties={**facts.properties, "also": others})


def _claims(facts: TableFacts, root: str, scanned: str, *, log: str) -> tuple[str, ...]:
    """What the table owns outside its root, as far as a scan may meet it.

    Never what holds a whole lake, or the table itself. They travel to every task, so that very many
    files are told by their folders.
    """
    inside = f"{scanned.rstrip('/')}/"
    own = f"{root}/"
    owned = {canonical(each, root).rstrip("/") for each in facts.claims}
    met = {each for each in owned if each.startswith(inside) and not each.startswith(own)}
    if len(met) > _MOST_CLAIMS:
        met = {_folder(each) for each in met}
    if log and not f"{log}/".startswith(own):
        met.add(log)
    return tuple(sorted(each for each in met if not own.startswith(f"{each}/")))


def _folder(path: str) -> str:
    """The folder of a file, above its partitions."""
    folder = path.rpartition("/")[0]
    while "=" in folder.rpartition("/")[2]:
        folder = folder.rpartition("/")[0]
    return folder


def found_of(root: str, facts: TableFacts) -> FoundDataset:
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
        told=SourceMetadata(description=facts.description, properties=_properties(facts)),
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
    told = {
        f"{OF_TABLE}version": facts.version,
        f"{OF_TABLE}operation": facts.operation,
        f"{OF_TABLE}features": ", ".join(features),
    }
    return {**facts.properties, **{name: text for name, text in told.items() if text}}
