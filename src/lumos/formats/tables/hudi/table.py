"""One Hudi table: properties, timeline and data files become facts."""

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import ClassVar, Final, TypeAlias

import msgspec

from lumos.formats.interface import Remark, UnreadableFile
from lumos.formats.tables.hudi.archive import archive_files, archived_writes
from lumos.formats.tables.hudi.commits import Commit, commit_of
from lumos.formats.tables.hudi.instants import Instant, Timeline, time_of, timeline_of
from lumos.formats.tables.hudi.properties import (
    META_FOLDER,
    USUAL_TIMELINES,
    TableProperties,
    candidates,
)
from lumos.formats.tables.hudi.schema import is_record, schema_of
from lumos.formats.tables.hudi.slices import (
    LOG_FORMAT,
    Timing,
    live_files,
    live_slices,
)
from lumos.formats.tables.interface import (
    Entry,
    Feature,
    Folder,
    Kind,
    LiveFile,
    Past,
    TableFacts,
    TableReader,
    remarks_on,
)
from lumos.formats.tables.secrets import without_secrets
from lumos.model.schema import Schema

# The instant before all others, in Hudi's own words.
_NO_INSTANT: Final = "00000000000000"
_NEWEST_VERSION: Final = 9
_NOT_READ: Final = "incomplete_history"

# When each write was, by its instant, and whether that is sure.
_Times: TypeAlias = dict[str, tuple[datetime, bool]]


class _Written(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a write, so that its file is opened once."""

    begun: str
    ended: str
    # Size, time and ETag of its file; empty once it is archived.
    stamp: tuple[int, int, str] | None
    modified: int
    operation: str | None
    # Which of the memory's schemas it carries, and whether the table has it from now on.
    schema: int | None
    declares_schema: bool
    replaced: tuple[tuple[str, str], ...]


class _Memory(msgspec.Struct, array_like=True):
    """What one reading leaves to the next."""

    form: int = 1
    schemas: list[tuple[str, str | None]] = []
    writes: list[_Written] = []
    archive: list[str] = []
    live: list[LiveFile] = []


class HudiReader(TableReader):
    kind: ClassVar[Kind] = "hudi"
    title: ClassVar[str] = "Hudi"

    def signature(self, folder: Folder) -> str:
        entries = [
            entry
            for entry in _metadata_files(folder)
            # Beginnings say nothing, but logs may be named after a compaction that is to come.
            if not entry.name.endswith((".crc", ".inflight", ".requested"))
            or entry.name.endswith(".compaction.requested")
        ]
        return _hashed(entries)

    def read(
        self, folder: Folder, memory: bytes | None, *, most_commits: int
    ) -> tuple[TableFacts, bytes]:
        properties = read_properties(folder)
        timeline, remarks = _without_unfinished(timeline_of(folder.entries(properties.timeline)))
        reading = _Reading(folder, properties, timeline, _known(memory))
        reading.remarks += remarks
        return reading.facts(most_commits)

    def live(self, memory: bytes) -> Iterator[LiveFile]:
        yield from _known(memory).live


def _known(memory: bytes | None) -> _Memory:
    if memory is None:
        return _Memory()
    try:
        known = msgspec.msgpack.decode(memory, type=_Memory)
    except msgspec.MsgspecError:
        return _Memory()
    return known if known.form == _Memory().form else _Memory()


def _metadata_files(folder: Folder) -> list[Entry]:
    """The properties and the instants, wherever these are kept."""
    entries = [entry for place in USUAL_TIMELINES for entry in folder.entries(place)]
    if timeline_of(entries).writes:
        return entries
    try:
        timeline = read_properties(folder).timeline
    except UnreadableFile:
        # Whoever reads the table says so.
        return entries
    return entries if timeline in USUAL_TIMELINES else [*entries, *folder.entries(timeline)]


def read_properties(folder: Folder) -> TableProperties:
    """The properties of the table in a folder; raises UnreadableFile."""
    for path in candidates():
        try:
            data = folder.read(path)
        except FileNotFoundError:
            continue
        if data:
            return TableProperties(data)
    for place in USUAL_TIMELINES:
        if timeline_of(folder.entries(place)).writes:
            raise UnreadableFile("broken_table", "hoodie.properties is missing or empty")
    raise UnreadableFile("half_written_table", "The table has no properties and no commit yet")


def _without_unfinished(timeline: Timeline) -> tuple[Timeline, list[Remark]]:
    """The timeline without an empty newest file: its writer made it and did not fill it yet."""
    empty = [write.entry.name for write in timeline.writes if not write.entry.size]
    if not empty:
        return timeline, []
    if empty != [timeline.writes[-1].entry.name]:
        raise UnreadableFile("broken_table", f"{empty[0]} is empty, though others followed")
    remark = Remark("half_written_table", f"{empty[0]} is empty: the write before it counts.")
    return timeline._replace(writes=timeline.writes[:-1]), [remark]


class _Reading:
    """One reading of a table, from what is known of it to its facts."""

    def __init__(
        self, folder: Folder, properties: TableProperties, timeline: Timeline, known: _Memory
    ) -> None:
        self.folder = folder
        self.properties = properties
        self.timeline = timeline
        self.schemas = list(known.schemas)
        self.archive_read = list(known.archive)
        self.rows: dict[str, int | None] = {
            file.path: file.rows for file in known.live if file.rows is not None
        }
        self.written: dict[str, _Written] = {}
        for write in known.writes:
            # Between the timeline's beginning and its end whatever is gone was rolled back.
            if write.begun < timeline.first:
                archived = msgspec.structs.replace(write, stamp=None)
                self.written[write.begun] = archived
        self._earlier: Final = {write.begun: write for write in known.writes}
        self.remarks: list[Remark] = []

    def facts(self, most_commits: int) -> tuple[TableFacts, bytes]:
        self._read_writes(most_commits)
        self._read_archive(most_commits)
        writes = sorted(self.written.values(), key=lambda write: (write.ended, write.begun))
        times = self._times(writes)
        past = tuple(self._past(writes, times))
        schema = past[-1].schema if past else self._created_schema()
        files = list(self._live(writes))
        at, version, operation = self._now(writes, times)
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
            properties=self._told(files),
            past=past,
            features=features,
            remarks=(*self.remarks, *remarks_on(features)),
            claims=self._claims(),
            content=_content(files),
        )
        kept = _Memory(schemas=self.schemas, writes=writes, archive=self.archive_read, live=files)
        return facts, msgspec.msgpack.encode(kept)

    def _read_writes(self, most_commits: int) -> None:
        """Opens the files of writes that are new since the last reading."""
        writes = self.timeline.writes
        recent = frozenset(write.begun for write in writes[max(0, len(writes) - most_commits) :])
        asked: list[Instant] = []
        for write in writes:
            earlier = self._earlier.get(write.begun)
            if earlier is not None and earlier.stamp == _stamp(write.entry):
                self.written[write.begun] = earlier
            # What was replaced must be known, however old.
            elif write.begun in recent or write.action == "replacecommit":
                asked.append(write)
            else:
                self._keep(write, None)
        paths = [f"{self.properties.timeline}/{write.entry.name}" for write in asked]
        for write, data in zip(asked, self.folder.read_many(paths), strict=True):
            if isinstance(data, FileNotFoundError) and write is not writes[-1]:
                # Archived since it was listed.
                self._keep(write, None)
            elif isinstance(data, FileNotFoundError):
                reason = f"{write.entry.name} is listed but gone"
                raise UnreadableFile("broken_table", reason)
            elif isinstance(data, OSError):
                raise data
            else:
                self._keep(write, commit_of(data, write.entry.name))

    def _keep(self, write: Instant, commit: Commit | None) -> None:
        self.written[write.begun] = self._noted(
            write.begun, write.ended, commit, _stamp(write.entry), write.entry.modified
        )

    def _noted(
        self,
        begun: str,
        ended: str,
        commit: Commit | None,
        stamp: tuple[int, int, str] | None,
        modified: int,
    ) -> _Written:
        if commit is None:
            return _Written(begun, ended or begun, stamp, modified, None, None, False, ())
        for file in commit.files:
            self.rows[file.path] = file.rows
        return _Written(
            begun,
            ended or begun,
            stamp,
            modified,
            commit.operation,
            self._schema_index(commit),
            commit.declares_schema,
            commit.replaced,
        )

    def _schema_index(self, commit: Commit) -> int | None:
        if commit.schema is None or not is_record(commit.schema):
            return None
        pair = commit.schema, commit.numbered
        if pair not in self.schemas:
            self.schemas.append(pair)
        return self.schemas.index(pair)

    def _read_archive(self, most_commits: int) -> None:
        """Opens what was archived before anything was known of this table."""
        place = self.properties.archive
        if not self.properties.has_folder_of_instants:
            if any(not entry.name.endswith(".crc") for entry in self.folder.entries(place)):
                reason = f"Writes before {self.timeline.first} are archived, and not read"
                self.remarks.append(Remark(_NOT_READ, reason + "."))
            return
        try:
            names = archive_files(self.folder, place)
            for name in names:
                if name in self.archive_read or len(self.written) >= most_commits:
                    continue
                for write in archived_writes(self.folder, f"{place}/{name}"):
                    if write.begun < self.timeline.first and write.begun not in self.written:
                        self.written[write.begun] = self._noted(
                            write.begun, write.ended, write.commit, None, 0
                        )
                self.archive_read.append(name)
            self.archive_read = [name for name in self.archive_read if name in names]
        except UnreadableFile as problem:
            # The table of today is known without it.
            reason = f"Older writes are not known: {problem.reason}"
            self.remarks.append(Remark(_NOT_READ, reason))

    def _past(self, writes: Sequence[_Written], times: _Times) -> Iterator[Past]:
        carrying = [write for write in writes if write.schema is not None]
        declaring = [write for write in carrying if write.declares_schema]
        last: Schema | None = None
        index: int | None = None
        # A service's schema counts only where nothing better is left.
        for write in declaring or carrying[-1:]:
            assert write.schema is not None
            if write.schema == index:
                continue
            index = write.schema
            schema = schema_of(*self.schemas[write.schema], self.properties)
            if schema == last:
                continue
            last = schema
            at, exact = times[write.begun]
            yield Past(
                schema=schema,
                at=at,
                version=write.begun,
                operation=write.operation,
                exact_time=exact,
            )

    def _times(self, writes: Sequence[_Written]) -> _Times:
        """When writes were, and whether that is sure; none is before the one that it follows."""
        times: _Times = {}
        latest = datetime.min.replace(tzinfo=UTC)
        for write in writes:
            is_in_utc = self.properties.is_in_utc
            at, exact = time_of(write.ended, write.modified, is_in_utc=is_in_utc)
            latest = max(latest, at)
            times[write.begun] = latest, exact
        return times

    def _now(self, writes: Sequence[_Written], times: _Times) -> tuple[datetime, str, str | None]:
        if not writes:
            return self.properties.saved_at or self._made_at(), _NO_INSTANT, None
        newest = writes[-1]
        return times[newest.begun][0], newest.begun, newest.operation

    def _made_at(self) -> datetime:
        """When the newest file beside the properties was written."""
        modified = (entry.modified for entry in self.folder.entries(META_FOLDER))
        return datetime.fromtimestamp(max(modified, default=0) / 1_000_000, UTC)

    def _created_schema(self) -> Schema:
        created = self.properties.created_schema
        if created is not None and is_record(created):
            return schema_of(created, None, self.properties)
        if self.timeline.writes:
            raise UnreadableFile("broken_table", "No write of the timeline tells a schema")
        raise UnreadableFile("half_written_table", "The table has no schema and no commit yet")

    def _live(self, writes: Sequence[_Written]) -> Iterator[LiveFile]:
        slices = live_slices(
            self.folder.below(),
            self._timing(writes),
            frozenset(group for write in writes for group in write.replaced),
            is_partitioned=self.properties.is_partitioned,
        )
        return live_files(slices, self.rows, self.properties)

    def _timing(self, writes: Sequence[_Written]) -> Timing:
        ended = frozenset(write.begun for write in self.timeline.writes)
        first = self.timeline.first
        ends = {write.begun: write.ended for write in writes}
        tells_ends = self.properties.has_folder_of_instants
        return Timing(
            is_ended=lambda instant: instant in ended or instant < first,
            end_of=lambda instant: ends.get(instant) if tells_ends else None,
            pending_compactions=self.timeline.pending_compactions,
        )

    def _told(self, files: Sequence[LiveFile]) -> dict[str, str]:
        told = without_secrets(self.properties.shown)
        logs = [file for file in files if file.format == LOG_FORMAT]
        if logs:
            told["hudi.log_files"] = str(len(logs))
            told["hudi.log_bytes"] = str(sum(log.size for log in logs))
        if self.properties.has_meta_columns:
            told["hudi.meta_columns"] = "left out of the schema"
        return told

    def _features(self, files: Sequence[LiveFile]) -> Iterator[Feature]:
        properties = self.properties
        if properties.version > _NEWEST_VERSION:
            yield Feature(f"table version {properties.version}", False)
        if properties.is_merged_on_read:
            yield Feature("merge on read", True)
        if properties.is_set("hoodie.table.cdc.enabled"):
            yield Feature("change data capture", True)
        if properties.values.get("hoodie.bootstrap.base.path"):
            yield Feature("bootstrapped from files elsewhere", False)
        for form in sorted({file.format for file in files} - {"parquet", LOG_FORMAT}):
            yield Feature(f"base files in {form}", True)

    def _claims(self) -> tuple[str, ...]:
        elsewhere = self.properties.values.get("hoodie.bootstrap.base.path")
        return (elsewhere,) if elsewhere else ()


def _stamp(entry: Entry) -> tuple[int, int, str]:
    return entry.size, entry.modified, entry.etag


def _rows(files: Sequence[LiveFile]) -> int | None:
    """The rows of base files; of a group without one, those that its logs added."""
    grouped: int = 0
    with_base = {_group(file) for file in files if file.format != LOG_FORMAT}
    for file in files:
        if file.format == LOG_FORMAT and _group(file) in with_base:
            continue
        if file.rows is None:
            return None
        grouped += file.rows
    return grouped


def _group(file: LiveFile) -> tuple[str, str]:
    folder, _, name = file.path.rpartition("/")
    return folder, name.removeprefix(".").partition("_")[0]


def _content(files: Sequence[LiveFile]) -> str:
    lines = "\n".join(f"{file.size} {file.path}" for file in files)
    return hashlib.blake2b(lines.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _hashed(entries: Sequence[Entry]) -> str:
    lines = "\n".join(
        f"{entry.size} {entry.modified} {entry.etag} {entry.name}" for entry in entries
    )
    return hashlib.blake2b(lines.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
