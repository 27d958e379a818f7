"""Reads Hudi tables: properties, timeline and data files.

The newest base file of each file group and the log files after it are live.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import ClassVar, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from lumos.formats.interface import Remark, UnreadableFile
from lumos.formats.tables.hudi.properties import (
    DEFAULT_TIMELINES,
    META_FOLDER,
    PROPERTY_FILES,
    HudiProperties,
    hudi_schema,
    is_record,
)
from lumos.formats.tables.hudi.timeline import (
    HudiCommit,
    HudiInstant,
    HudiTimeline,
    archive_files,
    archived_writes,
    instant_time,
    parse_commit,
    parse_timeline,
)
from lumos.formats.tables.interface import (
    FileEntry,
    LiveFile,
    TableFacts,
    TableFeature,
    TableFolder,
    TableKind,
    TableReader,
    TableSchemaVersion,
    remarks_on_features,
    without_secrets,
)
from lumos.model.schema import Schema

_BASE_NAME: Final = re.compile(
    r"(?P<group>[^_]+)_[^_]+_(?P<instant>\d{14}(?:\d{3})?)\.(?P<format>parquet|orc|hfile|lance)\Z",
    re.ASCII,
)
# Names of change data capture logs end in `.cdc`; they contain no rows of the table.
_LOG_NAME: Final = re.compile(
    r"\.(?P<group>[^_]+)_(?P<instant>\d{14}(?:\d{3})?)\.log\.\d+(?:_[^_.]+)?\Z", re.ASCII
)
_NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
LOG_FORMAT: Final = "hudi-log"


class _Base(NamedTuple):
    """A base file and the instant of its slice."""

    instant: str
    entry: FileEntry
    format: str


class _Log(NamedTuple):
    """A log file and the time that decides to which slice it belongs."""

    time: str
    entry: FileEntry


class FileSlice(NamedTuple):
    """The newest slice of a file group: a base file, later log files, or both."""

    partition: str
    base: FileEntry | None
    format: str
    logs: tuple[FileEntry, ...]


class InstantTimes(NamedTuple):
    """Looks up instants, which file names contain, in the timeline."""

    # Whether the write of an instant completed.
    is_completed: Callable[[str], bool]
    # The completion time of an instant, if known.
    completion_time: Callable[[str], str | None]
    # The instants of scheduled compactions: newer log files have them in the name.
    pending_compactions: frozenset[str]


def live_slices(
    entries: Iterable[FileEntry],
    instants: InstantTimes,
    replaced: frozenset[tuple[str, str]],
    *,
    is_partitioned: bool | None,
) -> Iterator[FileSlice]:
    """Yield the slices of the current version in the order of file groups."""
    bases: dict[tuple[str, str], _Base] = {}
    logs: dict[tuple[str, str], list[_Log]] = {}
    for entry in entries:
        partition, _, name = entry.name.rpartition("/")
        if is_partitioned is not None and bool(partition) != is_partitioned:
            continue
        if match := _BASE_NAME.match(name) or _LOG_NAME.match(name):
            group, instant = (partition, match["group"]), match["instant"]
            is_log = name.startswith(".")
            is_valid = instants.is_completed(instant) or (
                is_log and instant in instants.pending_compactions
            )
            if group in replaced or not is_valid:
                continue
            if is_log:
                logs.setdefault(group, []).append(
                    _Log(instants.completion_time(instant) or instant, entry)
                )
            elif group not in bases or bases[group].instant < instant:
                bases[group] = _Base(instant, entry, match["format"])
    for group in sorted({**bases, **logs}):
        base = bases.get(group)
        base_instant = "" if base is None else base.instant
        newer_logs = tuple(log.entry for log in logs.get(group, ()) if log.time >= base_instant)
        yield FileSlice(
            partition=group[0],
            base=None if base is None else base.entry,
            format="" if base is None else base.format,
            logs=newer_logs,
        )


def live_files(
    slices: Iterable[FileSlice], rows: dict[str, int | None], properties: HudiProperties
) -> Iterator[LiveFile]:
    """Yield the files of slices; log files of a slice with a base file have no row count."""
    for each in slices:
        partition = partition_values(each.partition, properties)
        if each.base is not None:
            row_count = rows.get(each.base.name)
            base = each.base
            yield LiveFile(
                base.name, base.size, row_count, partition, (), each.format, base.modified
            )
        for log in each.logs:
            new_rows = rows.get(log.name) if each.base is None else None
            yield LiveFile(log.name, log.size, new_rows, partition, (), LOG_FORMAT, log.modified)


def partition_values(path: str, properties: HudiProperties) -> tuple[tuple[str, str | None], ...]:
    """The partition values in a path; empty if its parts do not match the partition columns."""
    columns = properties.partition_columns
    if not path or not columns:
        return ()
    # A date format may put slashes into a single value.
    parts = path.split("/") if len(columns) > 1 else [path]
    if len(parts) != len(columns):
        return ()
    return tuple(
        (name, _value(part.removeprefix(f"{column}="), properties))
        for name, column, part in zip(properties.partition_by, columns, parts, strict=True)
    )


def _value(text: str, properties: HudiProperties) -> str | None:
    if text == _NULL_PARTITION:
        return None
    is_encoded = properties.is_set("hoodie.datasource.write.partitionpath.urlencode")
    return unquote(text) if is_encoded else text


# Hudi's instant before all others.
_NO_INSTANT: Final = "00000000000000"
_MAX_VERSION: Final = 9
_BOOTSTRAP_PATH: Final = "hoodie.bootstrap.base.path"
_INCOMPLETE_HISTORY: Final = "incomplete_history"

# For each instant, the time of its write, and whether that time is certain.
_Times: TypeAlias = dict[str, tuple[datetime, bool]]


class _SavedWrite(msgspec.Struct, frozen=True, array_like=True):
    """What the next read needs of a write, so that its file is only opened once."""

    instant: str
    completion_time: str
    # Size, time and ETag of the write's file; None once it is archived.
    file_version: tuple[int, int, str] | None
    modified: int
    operation: str | None
    # The index of its schema in `_SavedState.schemas`; whether it sets the schema of the table.
    schema: int | None
    declares_schema: bool
    replaced: tuple[tuple[str, str], ...]


class _SavedState(msgspec.Struct, array_like=True):
    """The state that the next read continues from."""

    layout: int = 1
    schemas: list[tuple[str, str | None]] = []
    writes: list[_SavedWrite] = []
    archive: list[str] = []
    live: list[LiveFile] = []


class HudiReader(TableReader):
    kind: ClassVar[TableKind] = "hudi"
    title: ClassVar[str] = "Hudi"

    def signature(self, folder: TableFolder) -> str:
        entries = [
            entry
            for entry in _metadata_files(folder)
            # Requested actions change nothing, except compactions: newer logs are named after them.
            if not entry.name.endswith((".crc", ".inflight", ".requested"))
            or entry.name.endswith(".compaction.requested")
        ]
        return _hash(
            f"{entry.size} {entry.modified} {entry.etag} {entry.name}" for entry in entries
        )

    def read(
        self, folder: TableFolder, saved_state: bytes | None, *, max_commits: int
    ) -> tuple[TableFacts, bytes]:
        properties = read_properties(folder)
        timeline, remarks = _drop_unfinished_write(
            parse_timeline(folder.entries(properties.timeline))
        )
        table_read = _TableRead(folder, properties, timeline, _decode_saved_state(saved_state))
        table_read.remarks += remarks
        return table_read.facts(max_commits)

    def live(self, saved_state: bytes) -> Iterator[LiveFile]:
        yield from _decode_saved_state(saved_state).live


def _decode_saved_state(saved_state: bytes | None) -> _SavedState:
    if saved_state is None:
        return _SavedState()
    try:
        known = msgspec.msgpack.decode(saved_state, type=_SavedState)
    except msgspec.MsgspecError:
        return _SavedState()
    return known if known.layout == _SavedState().layout else _SavedState()


def _metadata_files(folder: TableFolder) -> list[FileEntry]:
    """The properties file and the instants, in the usual or the configured folder."""
    entries = [entry for path in DEFAULT_TIMELINES for entry in folder.entries(path)]
    if parse_timeline(entries).writes:
        return entries
    try:
        timeline = read_properties(folder).timeline
    except UnreadableFile:
        # Reading the table reports the error.
        return entries
    return entries if timeline in DEFAULT_TIMELINES else [*entries, *folder.entries(timeline)]


def read_properties(folder: TableFolder) -> HudiProperties:
    """The properties of the table in a folder; raises UnreadableFile."""
    for path in PROPERTY_FILES:
        try:
            data = folder.read(path)
        except FileNotFoundError:
            continue
        if data:
            return HudiProperties(data)
    for path in DEFAULT_TIMELINES:
        if parse_timeline(folder.entries(path)).writes:
            raise UnreadableFile("broken_table", "hoodie.properties is missing or empty")
    raise UnreadableFile("half_written_table", "The table has no properties and no commit yet")


def _drop_unfinished_write(timeline: HudiTimeline) -> tuple[HudiTimeline, list[Remark]]:
    """The timeline without its newest file if that is empty: its writer has not finished."""
    empty = [write.entry.name for write in timeline.writes if not write.entry.size]
    if not empty:
        return timeline, []
    if empty != [timeline.writes[-1].entry.name]:
        raise UnreadableFile("broken_table", f"{empty[0]} is empty, but is not the newest write")
    remark = Remark("half_written_table", f"{empty[0]} is empty; the version before it was read.")
    return timeline._replace(writes=timeline.writes[:-1]), [remark]


class _TableRead:
    """One read of a table, which continues from the state of the previous read."""

    def __init__(
        self,
        folder: TableFolder,
        properties: HudiProperties,
        timeline: HudiTimeline,
        earlier: _SavedState,
    ) -> None:
        self.folder = folder
        self.properties = properties
        self.timeline = timeline
        self.schemas = list(earlier.schemas)
        self.archive_read = list(earlier.archive)
        # The row counts of files by path.
        self.rows: dict[str, int | None] = {
            file.path: file.rows for file in earlier.live if file.rows is not None
        }
        self.all_writes: dict[str, _SavedWrite] = {}
        for write in earlier.writes:
            # Later writes that are missing from the timeline were rolled back.
            if write.instant < timeline.first:
                archived = replace(write, file_version=None)
                self.all_writes[write.instant] = archived
        self._earlier_writes: Final = {write.instant: write for write in earlier.writes}
        self.remarks: list[Remark] = []

    def facts(self, max_commits: int) -> tuple[TableFacts, bytes]:
        self._read_writes(max_commits)
        self._read_archive(max_commits)
        writes = sorted(
            self.all_writes.values(), key=lambda write: (write.completion_time, write.instant)
        )
        times = self._times(writes)
        past = tuple(self._schema_versions(writes, times))
        schema = past[-1].schema if past else self._created_schema()
        files = list(self._live_files(writes))
        at, version, operation = self._current_version(writes, times)
        features = tuple(self._features(files))
        facts = TableFacts(
            kind="hudi",
            version=version,
            at=at,
            operation=operation,
            schema=schema,
            partition_by=self.properties.partition_by,
            files=len(files),
            bytes=sum(file.size for file in files),
            rows=_rows(files),
            rows_exact=not any(file.format == LOG_FORMAT for file in files),
            properties=self._reported_properties(files),
            past=past,
            features=features,
            remarks=(*self.remarks, *remarks_on_features(features)),
            outside_locations=tuple(filter(None, [self.properties.values.get(_BOOTSTRAP_PATH)])),
            content=_hash(f"{file.size} {file.path}" for file in files),
        )
        new_state = _SavedState(
            schemas=self.schemas, writes=writes, archive=self.archive_read, live=files
        )
        return facts, msgspec.msgpack.encode(new_state)

    def _read_writes(self, max_commits: int) -> None:
        """Read the files of new writes in the timeline."""
        writes = self.timeline.writes
        recent = frozenset(write.instant for write in writes[max(0, len(writes) - max_commits) :])
        to_read: list[HudiInstant] = []
        for write in writes:
            earlier = self._earlier_writes.get(write.instant)
            if earlier is not None and earlier.file_version == _file_version(write.entry):
                self.all_writes[write.instant] = earlier
            # Replaced file groups must be known, even if the write is old.
            elif write.instant in recent or write.action == "replacecommit":
                to_read.append(write)
            else:
                self._record_write(write, None)
        paths = [f"{self.properties.timeline}/{write.entry.name}" for write in to_read]
        for write, data in zip(to_read, self.folder.read_many(paths), strict=True):
            if isinstance(data, FileNotFoundError) and write is not writes[-1]:
                # The write was archived after the listing.
                self._record_write(write, None)
            elif isinstance(data, FileNotFoundError):
                reason = f"{write.entry.name} is listed but missing"
                raise UnreadableFile("broken_table", reason)
            elif isinstance(data, OSError):
                raise data
            else:
                self._record_write(write, parse_commit(data, write.entry.name))

    def _record_write(self, write: HudiInstant, commit: HudiCommit | None) -> None:
        self.all_writes[write.instant] = self._saved_write(
            write.instant,
            write.completion_time,
            commit,
            _file_version(write.entry),
            write.entry.modified,
        )

    def _saved_write(
        self,
        instant: str,
        completion_time: str,
        commit: HudiCommit | None,
        file_version: tuple[int, int, str] | None,
        modified: int,
    ) -> _SavedWrite:
        if commit is None:
            return _SavedWrite(
                instant, completion_time or instant, file_version, modified, None, None, False, ()
            )
        for file in commit.files:
            self.rows[file.path] = file.rows
        return _SavedWrite(
            instant,
            completion_time or instant,
            file_version,
            modified,
            commit.operation,
            self._schema_index(commit),
            commit.declares_schema,
            commit.replaced,
        )

    def _schema_index(self, commit: HudiCommit) -> int | None:
        if commit.schema is None or not is_record(commit.schema):
            return None
        pair = commit.schema, commit.schema_with_ids
        if pair not in self.schemas:
            self.schemas.append(pair)
        return self.schemas.index(pair)

    def _read_archive(self, max_commits: int) -> None:
        """Read archived writes that no earlier read has seen."""
        path = self.properties.archive
        if not self.properties.has_timeline_folder:
            if any(not entry.name.endswith(".crc") for entry in self.folder.entries(path)):
                reason = f"Writes before {self.timeline.first} are archived and were not read"
                self.remarks.append(Remark(_INCOMPLETE_HISTORY, reason + "."))
            return
        try:
            names = archive_files(self.folder, path)
            for name in names:
                if name in self.archive_read or len(self.all_writes) >= max_commits:
                    continue
                for write in archived_writes(self.folder, f"{path}/{name}"):
                    if write.instant < self.timeline.first and write.instant not in self.all_writes:
                        self.all_writes[write.instant] = self._saved_write(
                            write.instant, write.completion_time, write.commit, None, 0
                        )
                self.archive_read.append(name)
            self.archive_read = [name for name in self.archive_read if name in names]
        except UnreadableFile as problem:
            # The current version does not need the archive.
            reason = f"Older writes are unknown: {problem.reason}"
            self.remarks.append(Remark(_INCOMPLETE_HISTORY, reason))

    def _schema_versions(
        self, writes: Sequence[_SavedWrite], times: _Times
    ) -> Iterator[TableSchemaVersion]:
        with_schema = [write for write in writes if write.schema is not None]
        declarations = [write for write in with_schema if write.declares_schema]
        last: Schema | None = None
        index: int | None = None
        # The schema of a table service is only used if no write has a schema.
        for write in declarations or with_schema[-1:]:
            assert write.schema is not None
            if write.schema == index:
                continue
            index = write.schema
            schema = hudi_schema(*self.schemas[write.schema], self.properties)
            if schema == last:
                continue
            last = schema
            at, exact = times[write.instant]
            yield TableSchemaVersion(
                schema=schema,
                at=at,
                version=write.instant,
                operation=write.operation,
                exact_time=exact,
            )

    def _times(self, writes: Sequence[_SavedWrite]) -> _Times:
        """The times of writes, adjusted so that they never decrease; whether they are certain."""
        times: _Times = {}
        latest = datetime.min.replace(tzinfo=UTC)
        for write in writes:
            is_in_utc = self.properties.is_in_utc
            at, exact = instant_time(write.completion_time, write.modified, is_in_utc=is_in_utc)
            latest = max(latest, at)
            times[write.instant] = latest, exact
        return times

    def _current_version(
        self, writes: Sequence[_SavedWrite], times: _Times
    ) -> tuple[datetime, str, str | None]:
        if not writes:
            modified = max((each.modified for each in self.folder.entries(META_FOLDER)), default=0)
            at = self.properties.saved_at or datetime.fromtimestamp(modified / 1_000_000, UTC)
            return at, _NO_INSTANT, None
        newest = writes[-1]
        return times[newest.instant][0], newest.instant, newest.operation

    def _created_schema(self) -> Schema:
        created = self.properties.created_schema
        if created is not None and is_record(created):
            return hudi_schema(created, None, self.properties)
        if self.timeline.writes:
            raise UnreadableFile("broken_table", "No write in the timeline has a schema")
        raise UnreadableFile("half_written_table", "The table has no schema and no commit yet")

    def _live_files(self, writes: Sequence[_SavedWrite]) -> Iterator[LiveFile]:
        slices = live_slices(
            self.folder.below(),
            self._instant_times(writes),
            frozenset(group for write in writes for group in write.replaced),
            is_partitioned=self.properties.is_partitioned,
        )
        return live_files(slices, self.rows, self.properties)

    def _instant_times(self, writes: Sequence[_SavedWrite]) -> InstantTimes:
        completed = frozenset(write.instant for write in self.timeline.writes)
        completion_times = {write.instant: write.completion_time for write in writes}
        has_completion_times = self.properties.has_timeline_folder
        return InstantTimes(
            is_completed=lambda instant: instant in completed or instant < self.timeline.first,
            completion_time=(
                lambda instant: completion_times.get(instant) if has_completion_times else None
            ),
            pending_compactions=self.timeline.pending_compactions,
        )

    def _reported_properties(self, files: Sequence[LiveFile]) -> dict[str, str]:
        properties = without_secrets(self.properties.reported)
        logs = [file for file in files if file.format == LOG_FORMAT]
        if logs:
            properties["hudi.log_files"] = str(len(logs))
            properties["hudi.log_bytes"] = str(sum(log.size for log in logs))
        if self.properties.has_meta_columns:
            properties["hudi.meta_columns"] = "left out of the schema"
        return properties

    def _features(self, files: Sequence[LiveFile]) -> Iterator[TableFeature]:
        properties = self.properties
        if properties.version > _MAX_VERSION:
            yield TableFeature(f"table version {properties.version}", False)
        if properties.is_merged_on_read:
            yield TableFeature("merge on read", True)
        if properties.is_set("hoodie.table.cdc.enabled"):
            yield TableFeature("change data capture", True)
        if properties.values.get(_BOOTSTRAP_PATH):
            yield TableFeature("bootstrapped from files elsewhere", False)
        for format in sorted({file.format for file in files} - {"parquet", LOG_FORMAT}):
            yield TableFeature(f"base files in {format}", True)


def _file_version(entry: FileEntry) -> tuple[int, int, str]:
    return entry.size, entry.modified, entry.etag


def _rows(files: Sequence[LiveFile]) -> int | None:
    """The rows of base files and, in file groups without a base file, the new rows of logs."""
    total = 0
    groups_with_base = {_group(file) for file in files if file.format != LOG_FORMAT}
    for file in files:
        if file.format == LOG_FORMAT and _group(file) in groups_with_base:
            continue
        if file.rows is None:
            return None
        total += file.rows
    return total


def _group(file: LiveFile) -> tuple[str, str]:
    folder, _, name = file.path.rpartition("/")
    return folder, name.removeprefix(".").partition("_")[0]


def _hash(lines: Iterable[str]) -> str:
    text = "\n".join(lines).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest()
