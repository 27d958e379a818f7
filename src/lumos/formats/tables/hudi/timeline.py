"""The timeline of a Hudi table: instants, the commits in their files, and the archive.

Commits are JSON in Hudi 0.x and Avro since 1.0, with the same content.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.avro_containers import AvroContainer
from lumos.formats.tables.interface import FileEntry, TableFolder
from lumos.formats.tables.parquet_rows import READ_ERRORS, ParquetRows
from lumos.formats.varints import MalformedData, TruncatedData

_NAME: Final = re.compile(
    r"(?P<instant>\d{14}(?:\d{3})?)(?:_(?P<completion_time>\d{14}(?:\d{3})?))?"
    r"(?:\.(?P<action>[a-z]+))?(?:\.(?P<state>requested|inflight))?\Z",
    re.ASCII,
)
# The actions that change the data. A completed compaction is named `commit` or `deltacommit`, a
# completed clustering `replacecommit`.
WRITES: Final = frozenset({"commit", "deltacommit", "replacecommit"})
# The names of these actions until they complete.
_PENDING_WRITES: Final = WRITES | {"compaction", "logcompaction", "clustering"}
# If the time of a file differs from its instant by more than any time zone, the file was copied.
_MAX_ZONE_DIFFERENCE: Final = timedelta(hours=15)


class HudiInstant(NamedTuple):
    """A completed action: its instant, its completion time (empty if unknown) and its file."""

    instant: str
    completion_time: str
    action: str
    entry: FileEntry

    @property
    def order(self) -> tuple[str, str]:
        """The key to sort by completion time."""
        return (self.completion_time or self.instant, self.instant)


class HudiTimeline(NamedTuple):
    """The instants that are not archived, beginning with `first`."""

    writes: tuple[HudiInstant, ...]
    first: str
    pending_compactions: frozenset[str]


def parse_timeline(entries: Iterable[FileEntry]) -> HudiTimeline:
    """The timeline of a folder's files; other files are ignored."""
    writes: dict[str, HudiInstant] = {}
    instants: set[str] = set()
    compactions: set[str] = set()
    saved: set[str] = set()
    for entry in entries:
        match = _NAME.match(entry.name)
        if match is None:
            continue
        instant, action, state = match["instant"], match["action"], match["state"]
        # The first versions of Hudi named a commit `<instant>.inflight`.
        if action in ("inflight", None):
            instants.add(instant)
        elif state is not None:
            if action in _PENDING_WRITES:
                instants.add(instant)
            if action == "compaction":
                compactions.add(instant)
        elif action == "savepoint":
            saved.add(instant)
        elif action in WRITES:
            instants.add(instant)
            writes[instant] = HudiInstant(instant, match["completion_time"] or "", action, entry)
    ordered = tuple(sorted(writes.values(), key=lambda write: write.order))
    # Archiving leaves saved instants in place, so the timeline does not begin with them.
    first = min(instants - saved, default=min(instants, default=""))
    return HudiTimeline(ordered, first, frozenset(compactions - writes.keys()))


def instant_time(instant: str, modified: int, *, is_in_utc: bool) -> tuple[datetime, bool]:
    """The time of an instant, and whether it is certain; `modified` is the time of its file."""
    file_time = datetime.fromtimestamp(modified / 1_000_000, UTC)
    parsed = _parse_instant(instant)
    if parsed is None:
        return file_time, False
    if is_in_utc:
        return parsed, True
    # The writer's time zone is unknown, so use the time of the file unless it was copied.
    return (file_time if abs(file_time - parsed) <= _MAX_ZONE_DIFFERENCE else parsed), False


def _parse_instant(instant: str) -> datetime | None:
    try:
        # Much faster than strptime.
        parsed = datetime.fromisoformat(f"{instant[:8]}T{instant[8:14]}+00:00")
    except ValueError:
        return None
    return parsed + timedelta(milliseconds=int(instant[14:] or 0))


_AVRO: Final = b"Obj\x01"
# Table services only rewrite rows: the schema in their commits may be older than the table's.
_TABLE_SERVICES: Final = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})
_NUMBERED_SCHEMA: Final = ("latest_schema", "latestSchema")


class WrittenFile(msgspec.Struct, frozen=True, array_like=True):
    """A file of a write and its row count; for a log file, only the number of new rows."""

    path: str
    rows: int | None


class HudiCommit(msgspec.Struct, frozen=True):
    """The content of a commit; `schema_with_ids` is its schema with field ids."""

    operation: str | None
    schema: str | None
    schema_with_ids: str | None
    replaced: tuple[tuple[str, str], ...]
    files: tuple[WrittenFile, ...]

    @property
    def declares_schema(self) -> bool:
        """Whether the commit sets the schema of the table."""
        return self.schema is not None and self.operation not in _TABLE_SERVICES


def parse_commit(data: bytes, name: str) -> HudiCommit:
    """Parse the file of a commit; raises UnreadableFile."""
    try:
        content = _first_record(data) if data.startswith(_AVRO) else msgspec.json.decode(data)
        return _commit(_object(content))
    except TruncatedData:
        raise UnreadableFile("broken_table", f"{name} is truncated") from None
    except RecursionError:
        raise UnreadableFile("broken_table", f"{name} nests too deeply to be read") from None
    except (MalformedData, ValueError, TypeError) as problem:
        raise UnreadableFile("broken_table", f"{name} is damaged: {problem}"[:300]) from None


def _first_record(data: bytes) -> object:
    for record in AvroContainer(data).records():
        return record
    raise TruncatedData


def _commit(content: dict[str, Any]) -> HudiCommit:
    extra = _object(content.get("extraMetadata"))
    schema_with_ids = next(
        (text for key in _NUMBERED_SCHEMA if (text := _text(extra.get(key)))), None
    )
    replaced = _object(content.get("partitionToReplaceFileIds"))
    written = _object(content.get("partitionToWriteStats"))
    return HudiCommit(
        operation=_text(content.get("operationType")),
        schema=_text(extra.get("schema")),
        schema_with_ids=schema_with_ids,
        replaced=tuple(
            (partition, str(file_id))
            for partition, file_ids in replaced.items()
            for file_id in _list(file_ids)
        ),
        files=tuple(
            file
            for stats in written.values()
            for stat in _list(stats)
            for file in _written_files(_object(stat))
        ),
    )


def _written_files(stat: dict[str, Any]) -> list[WrittenFile]:
    path = _text(stat.get("path"))
    if path is None:
        return []
    # Log files also contain changed rows; only new ones add to the table.
    is_log = path.rpartition("/")[2].startswith(".")
    rows = stat.get("numInserts" if is_log else "numWrites")
    is_count = isinstance(rows, int) and not isinstance(rows, bool) and rows >= 0
    return [WrittenFile(path, rows if is_count else None)]


def _object(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"It contains a {type(value).__name__} instead of an object.")
    return value


def _list(value: object) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"It contains a {type(value).__name__} instead of a list.")
    return value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


_VERSION: Final = "_version_"
_COLUMNS: Final = ["instantTime", "completionTime", "action", "metadata"]
_BATCH_SIZE: Final = 64


class ArchivedWrite(NamedTuple):
    """A write in the archive."""

    instant: str
    completion_time: str
    action: str
    commit: HudiCommit


class _ListedFile(msgspec.Struct):
    fileName: str


class _Manifest(msgspec.Struct):
    files: tuple[_ListedFile, ...] = ()


def archive_files(folder: TableFolder, path: str) -> list[str]:
    """The files in the archive of Hudi 1.x, newest first; empty if nothing was archived yet."""
    entries = {entry.name for entry in folder.entries(path)}
    if _VERSION not in entries:
        return []
    try:
        number = folder.read(f"{path}/{_VERSION}").decode("ascii").strip()
        manifest = msgspec.json.decode(folder.read(f"{path}/manifest_{number}"), type=_Manifest)
    except (FileNotFoundError, ValueError) as problem:
        reason = f"The manifest of the archive cannot be read: {problem}"
        raise UnreadableFile("broken_table", reason) from None
    # Names begin with the first instant in the file.
    return sorted((file.fileName for file in manifest.files), reverse=True)


def archived_writes(folder: TableFolder, path: str) -> Iterator[ArchivedWrite]:
    """Yield the writes in a file of the archive; raises UnreadableFile."""
    try:
        for batch in ParquetRows(folder.read(path)).batches(_COLUMNS, rows=_BATCH_SIZE):
            for row in batch.to_pylist():
                yield from _write(row, path)
    except FileNotFoundError:
        raise UnreadableFile("broken_table", f"{path} is listed but missing") from None
    except READ_ERRORS as problem:
        raise UnreadableFile("broken_table", f"{path} is damaged: {problem}"[:300]) from None


def _write(row: dict[str, object], path: str) -> Iterator[ArchivedWrite]:
    instant, completion_time, action, data = (row[column] for column in _COLUMNS)
    if action in WRITES and isinstance(instant, str) and isinstance(data, bytes) and data:
        yield ArchivedWrite(
            instant,
            str(completion_time or ""),
            str(action),
            parse_commit(data, f"{instant} in {path}"),
        )
