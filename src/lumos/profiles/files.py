"""Finds the files that a dataset had at its last scan, as tasks for a profile."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from lumos.config import Settings
from lumos.config.sources import FileStoreSettings
from lumos.discovery.grouping.patterns import NULL_PARTITION
from lumos.discovery.hints.listing import with_stored_hints
from lumos.discovery.lake.contents import DataFile, LakeContents
from lumos.discovery.lake.manifest import ManifestStore, ScanManifest
from lumos.discovery.lake.table_reader import TableMemory, live_files, load_table_memory
from lumos.discovery.scans import state_folder
from lumos.discovery.targets import file_roots, selection_for, urns_for
from lumos.errors import MisuseError
from lumos.formats.tables import KINDS
from lumos.formats.tables.iceberg.schema import INITIAL_DEFAULT
from lumos.formats.tables.interface import LiveFile, TableFacts
from lumos.model.dataset import Dataset
from lumos.model.discovery import Problem
from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.model.types import Array, Map, Struct
from lumos.model.urn import Urn
from lumos.profiles.columns import KnownField, known_fields, value_kind
from lumos.profiles.plan import SourceFile, identity_of
from lumos.profiles.tasks import HUDI_SLICE, FileTask
from lumos.sources.addresses import access_of, is_root
from lumos.storage import FileSelection, StorageAccess
from lumos.storage.uris import absolute, is_same_store
from lumos.store import Store

_HUDI_LOG: Final = "hudi-log"
# Bytes as Delta's protocol encodes them; Spark writes them unescaped.
_ESCAPED_BYTES: Final = re.compile(r"(\\u00[0-9a-fA-F]{2})+")
_MISSING_STATE: Final = "the state of its last scan is missing. Run lumos ingest."


class NotProfiled(MisuseError):
    """The dataset cannot be profiled."""

    def __init__(self, urn: str, reason: str) -> None:
        self.urn = urn
        self.reason = reason
        super().__init__(f"{urn} cannot be profiled: {reason}")


class HasFileCount(Protocol):
    """The statistics of a dataset, or of a dataset in a report."""

    @property
    def file_count(self) -> int: ...


class LocatedFiles(NamedTuple):
    """A dataset and its files; `remarks` are about deletes that a profile does not apply.

    `files` can only be iterated once. `fields` are the columns of a table with their names in
    files. `roots` are the locations in which files of a table may be opened.
    """

    dataset: Dataset
    files: Iterator[SourceFile]
    access: StorageAccess
    fields: tuple[KnownField, ...] = ()
    remarks: tuple[Problem, ...] = ()
    roots: tuple[str, ...] = ()


class _ScannedRoot(NamedTuple):
    """A root, and the manifest of its last scan."""

    root: str
    selection: FileSelection
    state_access: StorageAccess
    manifest: ScanManifest

    def contents(self, urn_of: Callable[[str], Urn]) -> dict[str, Callable[[], Iterator[DataFile]]]:
        """For each dataset, by URN, a function that reads the list of its files."""
        contents = LakeContents.of_scan(
            self.selection, self.manifest, state_access=self.state_access
        )
        return {
            str(urn_of(group.dataset)): partial(contents.files_of, group)
            for group in contents.groups
        }


class ScannedDatasets:
    """Finds the files of datasets; the manifest of each root is read once."""

    def __init__(self, settings: Settings, store: Store, *, state: str) -> None:
        self._settings = settings
        self._store = store
        self._state = state
        self._roots: dict[str, _ScannedRoot] = {}
        self._files: dict[str, dict[str, Callable[[], Iterator[DataFile]]]] = {}

    def locate(self, urn: str) -> LocatedFiles:
        """Find the files of a dataset; raises NotProfiled if there are none to read."""
        return self.files_of(self._store.get(urn))

    def files_of(self, dataset: Dataset) -> LocatedFiles:
        """Like `locate`, for a dataset that was already read from the store."""
        urn = dataset.urn
        known = self._store.known_dataset(urn)
        if known.state == "missing":
            raise NotProfiled(urn, "it was missing at the last scan.")
        if known.state == "split":
            raise NotProfiled(urn, "it was split into other datasets. Profile those.")
        if not has_files(dataset.format, dataset.statistics):
            raise NotProfiled(urn, "it has no files. Rows of databases and streams are not read.")
        scanned = self._root(known.source, urn)
        access = scanned.selection.access
        location = dataset.location.uri if dataset.location else ""
        if location in scanned.manifest.tables:
            memory = load_table_memory(scanned.manifest.tables[location], scanned.state_access)
            if memory is None:
                raise NotProfiled(urn, _MISSING_STATE)
            files, fields, remarks = table_files(location, memory)
            roots = _scanned_roots(self._settings, self._store, scanned.root)
            return LocatedFiles(dataset, files, access, fields, tuple(remarks), roots)
        if known.source not in self._files:
            self._files[known.source] = scanned.contents(urns_for(self._settings, scanned.root))
        read_files = self._files[known.source].get(urn)
        group_files = iter(()) if read_files is None else map(_source_file, read_files())
        first = next(group_files, None)
        if first is None:
            raise NotProfiled(urn, _MISSING_STATE)
        return LocatedFiles(dataset, chain([first], group_files), access)

    def _root(self, source: str, urn: str) -> _ScannedRoot:
        if source not in self._roots:
            scan = self._store.last_scan(source)
            if scan is None:
                raise NotProfiled(
                    urn, "it has not been scanned with this store. Run lumos ingest first."
                )
            root = source.partition(":")[2]
            selection = selection_for(with_stored_hints(self._settings, self._store), root)
            access = access_of(self._state, self._settings.sources)
            folder = state_folder(self._state, source)
            manifest = ManifestStore(folder, access).read(scan.manifest)
            self._roots[source] = _ScannedRoot(root, selection, access, manifest)
        return self._roots[source]


def has_files(format: str | None, statistics: HasFileCount | None) -> bool:
    """Whether a dataset consists of files; tables do, even if they have no files at the moment."""
    return statistics is not None and (statistics.file_count > 0 or format in KINDS)


def _scanned_roots(settings: Settings, store: Store, root: str) -> tuple[str, ...]:
    """The root of a scan, and all scanned or configured roots in the same storage."""
    scanned = [scan.source.partition(":")[2] for scan in store.scans()]
    configured = [
        each
        for section in settings.sources
        if isinstance(section, FileStoreSettings)
        for each in file_roots(section)
    ]
    files = (each for each in (*scanned, *configured) if is_root(each))
    return tuple(dict.fromkeys([root, *(each for each in files if is_same_store(each, root))]))


def _source_file(file: DataFile) -> SourceFile:
    row = file.row
    assert row.format is not None, f"{row.path} has no format"
    task = FileTask(
        row.path,
        row.size,
        row.format,
        unit=0,
        names=tuple(field.name for field in file.schema.fields),
        partitions=tuple(
            (key, None if value == NULL_PARTITION else value)
            for key, value in file.partitions
            if not key.startswith("{")
        ),
    )
    partition = "/".join(f"{key}={value}" for key, value in file.partitions)
    identity = identity_of(row.path, row.size, row.modified, row.etag)
    return SourceFile(task, partition, identity, row.modified, row.row_count)


class TableFiles(NamedTuple):
    """The files of a table, its columns, and remarks on deletes that a profile does not apply."""

    files: Iterator[SourceFile]
    fields: tuple[KnownField, ...]
    remarks: list[Problem]


def table_files(root: str, memory: TableMemory) -> TableFiles:
    """The live files of a table as tasks, with the deletes and constants in the table's log.

    The fields of the table, which are the same for all tasks, are returned separately.
    """
    facts = from_json(memory.facts, TableFacts)
    fields = known_fields(facts.schema, facts.properties)
    return TableFiles(_files(root, memory, facts, fields), fields, _remarks(root, memory))


def _files(
    root: str, memory: TableMemory, facts: TableFacts, fields: tuple[KnownField, ...]
) -> Iterator[SourceFile]:
    fields_hash = identity_of(fields)
    names = tuple(field.name for field in facts.schema.fields)
    initial = _initial_values(facts.schema)
    binary = {each.name for each in facts.schema.fields if value_kind(each.type) == "bytes"}
    for live, logs in _with_logs(live_files(memory)):
        is_slice = bool(logs) or live.format == _HUDI_LOG
        path = absolute(live.path, root)
        constants = initial | {
            name: _decode_delta_value(text, name in binary) if memory.kind == "delta" else text
            for name, text in live.partition
        }
        deletes = tuple(
            replace(each, path=each.path and absolute(each.path, root))
            for each in live.deletes
            if each.kind != "equality"
        )
        task = FileTask(
            path,
            live.size + sum(log.size for log in logs),
            HUDI_SLICE if is_slice else live.format,
            unit=0,
            names=names,
            constants=tuple(constants.items()),
            deletes=deletes,
            path_in_log=live.path,
            logs=tuple(log.path for log in logs),
            table_root=root,
        )
        partition = "/".join(f"{name}={value}" for name, value in live.partition)
        yield SourceFile(task, partition, _identity(task, fields_hash), live.added, live.rows)


def _with_logs(files: Iterable[LiveFile]) -> Iterator[tuple[LiveFile, list[LiveFile]]]:
    """Yield each file with the log files that change its rows."""
    base: LiveFile | None = None
    logs: list[LiveFile] = []
    for file in files:
        if file.format == _HUDI_LOG and base is not None and _file_group(file) == _file_group(base):
            logs.append(file)
            continue
        if base is not None:
            yield base, logs
        base, logs = file, []
    if base is not None:
        yield base, logs


def _file_group(file: LiveFile) -> tuple[str, str]:
    folder, _, name = file.path.rpartition("/")
    return folder, name.lstrip(".").partition("_")[0]


def _decode_delta_value(text: str | None, is_binary: bool) -> str | bytes | None:
    """Decode a partition value of Delta, which is encoded as text; empty text is null."""
    if is_binary and text and _ESCAPED_BYTES.fullmatch(text):
        return bytes.fromhex(text.replace(r"\u00", ""))
    return text or None


def _initial_values(schema: Schema) -> dict[str, str | bytes | None]:
    """The values of columns in files that do not have the columns: Iceberg's initial defaults."""
    defaults: dict[str, str | bytes | None] = {}
    for field in schema.fields:
        text = field.properties.get(INITIAL_DEFAULT)
        if text is None or isinstance(field.type, Struct | Array | Map):
            continue
        is_bytes = value_kind(field.type) == "bytes"
        defaults[field.name] = _decode_hex(text) if is_bytes else text
    return defaults


def _decode_hex(text: str) -> bytes:
    """Decode bytes or a UUID in hexadecimal digits."""
    try:
        return bytes.fromhex(text.replace("-", ""))
    except ValueError:
        return text.encode("utf-8", "replace")


def _identity(task: FileTask, fields_hash: bytes) -> bytes:
    """The identity of a task's rows; it also changes if columns of the table are renamed."""
    values = (task.path, task.size, task.format, fields_hash.hex(), task.constants)
    deletes = (
        f"{each.kind} {each.path} {each.offset} {each.inline.hex()}" for each in task.deletes
    )
    return identity_of(*values, *deletes, *task.logs)


def _remarks(root: str, memory: TableMemory) -> list[Problem]:
    if memory.kind != "iceberg":
        return []
    file_count = sum(
        any(each.kind == "equality" for each in live.deletes) for live in live_files(memory)
    )
    if not file_count:
        return []
    reason = (
        f"{file_count:,} files have equality deletes, which are not supported: the deleted rows "
        "are counted."
    )
    return [Problem(path=root, code="unsupported_feature", reason=reason, remark=True)]
