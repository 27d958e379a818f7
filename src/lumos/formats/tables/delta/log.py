"""The files of a `_delta_log`, and the actions in its commits that Lumos uses."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from lumos.errors import LumosError
from lumos.formats.interface import MAX_COUNT
from lumos.formats.tables.interface import FileEntry

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]
# No storage has longer paths.
MAX_PATH_LENGTH: Final = 64 * 1024
Path: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_PATH_LENGTH)]


class CorruptDeltaLog(LumosError):
    """A part of a Delta log is damaged or missing."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A part of an action; the fields have Delta's names."""


class DeletionVector(_Part, frozen=True):
    """The location of a file's deletion vector, which contains the numbers of its deleted rows."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: Count = 0
    cardinality: Count | None = None
    offset: Count | None = None


class Add(_Part, frozen=True):
    """Adds a file to the table."""

    path: Path
    size: Count
    partition_values: dict[str, str | None] | None = None
    stats: str | None = None
    deletion_vector: DeletionVector | None = None
    # In milliseconds since 1970. Of any type: a wrong value must not make a table unreadable.
    modification_time: Any = None
    # False for a file that only contains rearranged rows of other files.
    data_change: Any = None


class Remove(_Part, frozen=True):
    """Removes a file from the table."""

    path: str
    deletion_vector: DeletionVector | None = None


class DataFileFormat(_Part, frozen=True):
    """The format of the data files."""

    provider: str | None = None


class DeltaMetadata(_Part, frozen=True):
    """Sets schema, partitioning and settings of the table."""

    id: str | None = None
    name: str | None = None
    description: str | None = None
    format: DataFileFormat | None = None
    schema_string: str | None = None
    partition_columns: list[str] | None = None
    configuration: dict[str, Any] | None = None

    @property
    def settings(self) -> dict[str, str]:
        """The configuration as text."""
        given = self.configuration or {}
        return {key: str(value) for key, value in given.items() if value is not None}


class DeltaProtocol(_Part, frozen=True):
    """The protocol versions and features that readers and writers must support."""

    min_reader_version: Count = 0
    min_writer_version: Count = 0
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None


class DomainMetadata(_Part, frozen=True):
    """Sets the configuration of a Delta feature."""

    domain: str
    configuration: str = ""
    removed: bool = False


class Sidecar(_Part, frozen=True):
    """A file with a part of a checkpoint's actions."""

    path: str


class Action(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A line of a commit; at most one field is set, and none for actions that Lumos ignores."""

    add: Add | None = None
    remove: Remove | None = None
    meta_data: DeltaMetadata | None = None
    protocol: DeltaProtocol | None = None
    domain_metadata: DomainMetadata | None = None
    commit_info: msgspec.Raw = msgspec.Raw()
    sidecar: Sidecar | None = None


class _SchemaAction(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The part of an action that sets a schema; used for commits before a checkpoint."""

    meta_data: DeltaMetadata | None = None
    commit_info: msgspec.Raw = msgspec.Raw()


class CommitInfo(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Author, operation and time of a commit, in `milliseconds` since 1970."""

    milliseconds: int | None = None
    operation: str | None = None
    author: str | None = None


class Stats(_Part, frozen=True):
    """The statistics of a file."""

    num_records: Count | None = None


_actions: Final = msgspec.json.Decoder(Action)
_schema_actions: Final = msgspec.json.Decoder(_SchemaAction)
_stats: Final = msgspec.json.Decoder(Stats)
_Line = TypeVar("_Line", Action, _SchemaAction)
# The lines of a commit are decoded in chunks of this size.
_CHUNK_BYTES: Final = 1 << 20
_METADATA_KEY: Final = b'"metaData"'


def read_actions(data: bytes) -> Iterator[Action]:
    """Yield the actions of a commit; raises CorruptDeltaLog."""
    return _lines(data, _actions)


def read_schema_actions(data: bytes) -> tuple[DeltaMetadata | None, CommitInfo]:
    """The metadata that a commit sets, and the commit's info; raises CorruptDeltaLog.

    The info is empty if the commit sets no metadata.
    """
    if _METADATA_KEY not in data:
        return None, CommitInfo()
    metadata: DeltaMetadata | None = None
    infos: list[msgspec.Raw] = []
    for line in _lines(data, _schema_actions):
        metadata = line.meta_data or metadata
        if line.commit_info:
            infos.append(line.commit_info)
    return metadata, parse_commit_info(infos)


def _lines(data: bytes, decoder: msgspec.json.Decoder[_Line]) -> Iterator[_Line]:
    # Decode in chunks: the first commit of a converted table may add millions of files.
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _CHUNK_BYTES) + 1 or len(data)
        try:
            yield from decoder.decode_lines(data[start:end])
        except RecursionError:
            raise CorruptDeltaLog("it nests too deeply") from None
        except ValueError as problem:
            raise CorruptDeltaLog(f"it is truncated or not valid JSON: {problem}") from None
        start = end


def parse_commit_info(lines: Iterable[msgspec.Raw]) -> CommitInfo:
    """The commit info of a commit; values of unexpected types are ignored."""
    info: dict[str, Any] = {}
    for line in lines:
        if line:
            try:
                info = msgspec.json.decode(line, type=dict[str, Any])
            except (ValueError, RecursionError):
                continue
    times = (info.get(key) for key in ("inCommitTimestamp", "timestamp"))
    return CommitInfo(
        milliseconds=next((time for time in times if type(time) is int), None),
        operation=_text(info.get("operation")),
        author=_text(info.get("userName")) or _text(info.get("userId")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def row_count_in(stats: str | None) -> int | None:
    """The row count in a file's statistics, or None; all statistics are optional."""
    if not stats:
        return None
    try:
        return _stats.decode(stats).num_records
    except (ValueError, RecursionError):
        return None


FOLDER: Final = "_delta_log"
SIDECARS: Final = f"{FOLDER}/_sidecars"

_COMMIT: Final = re.compile(r"(\d{20})\.json\Z", re.ASCII)
_COMPACTED: Final = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json\Z", re.ASCII)
_CHECKPOINT: Final = re.compile(
    r"(\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<uuid>[0-9A-Za-z-]+))?\.(?P<suffix>parquet|json)\Z",
    re.ASCII,
)


# The parts of checkpoints: for each (version, number of parts, name), the files by part number.
_Parts: TypeAlias = dict[tuple[int, int, str], dict[int, FileEntry]]


class CommitIdentity(NamedTuple):
    """Identifies the content of a commit file, which changes if the file is written again."""

    size: int
    modified: int
    etag: str


class DeltaCheckpoint(NamedTuple):
    """A complete checkpoint, with the names of its files in the order of its parts."""

    version: int
    names: tuple[str, ...]
    modified: int


class CompactedCommits(NamedTuple):
    """A file that contains the result of the commits from `first` to `last`."""

    first: int
    last: int
    entry: FileEntry


class DeltaLog(NamedTuple):
    """The files of a log; only complete checkpoints, newest first."""

    commits: dict[int, FileEntry]
    checkpoints: tuple[DeltaCheckpoint, ...]
    compacted: tuple[CompactedCommits, ...]
    # The versions of empty commits at the end, whose writers have not finished.
    unfinished: tuple[int, ...]

    @property
    def latest(self) -> int | None:
        """The newest version."""
        newest = [max(self.commits)] if self.commits else []
        newest += [self.checkpoints[0].version] if self.checkpoints else []
        return max(newest, default=None)

    def identity(self, version: int) -> CommitIdentity | None:
        """The identity of a commit's file, if it still exists."""
        entry = self.commits.get(version)
        return entry and CommitIdentity(entry.size, entry.modified, entry.etag)


def is_log_file(name: str) -> bool:
    """Whether a file is part of the log, unlike hints, checksums and temporary files."""
    return any(each.match(name) for each in (_COMMIT, _CHECKPOINT, _COMPACTED))


def delta_log(entries: Iterable[FileEntry]) -> DeltaLog:
    """The log that consists of these files."""
    commits: dict[int, FileEntry] = {}
    compacted: list[CompactedCommits] = []
    parts: _Parts = {}
    for entry in entries:
        if match := _COMMIT.match(entry.name):
            if (version := int(match[1])) <= MAX_COUNT:
                commits[version] = entry
        elif match := _CHECKPOINT.match(entry.name):
            _add_part(parts, match, entry)
        elif match := _COMPACTED.match(entry.name):
            commits_file = CompactedCommits(int(match[1]), int(match[2]), entry)
            if commits_file.first <= commits_file.last <= MAX_COUNT and entry.size:
                compacted.append(commits_file)
    checkpoints = _complete_checkpoints(parts)
    unfinished = _unfinished_commits(commits, checkpoints[0].version if checkpoints else -1)
    for version in unfinished:
        del commits[version]
    return DeltaLog(commits, checkpoints, tuple(compacted), unfinished)


def _add_part(parts: _Parts, match: re.Match[str], entry: FileEntry) -> None:
    version = int(match[1])
    if version > MAX_COUNT or entry.size == 0:
        return
    if match["parts"]:
        if match["suffix"] == "parquet":
            parts.setdefault((version, int(match["parts"]), ""), {})[int(match["part"])] = entry
    elif match["uuid"] or match["suffix"] == "parquet":
        # A version may have several checkpoints.
        parts[version, 1, entry.name] = {1: entry}


def _complete_checkpoints(parts: _Parts) -> tuple[DeltaCheckpoint, ...]:
    complete = [
        DeltaCheckpoint(
            version,
            tuple(files[number].name for number in sorted(files)),
            max(entry.modified for entry in files.values()),
        )
        for (version, count, _), files in parts.items()
        if len(files) == count and min(files) == 1 and max(files) == count
    ]
    return tuple(sorted(complete, key=lambda each: (-each.version, len(each.names))))


def _unfinished_commits(commits: dict[int, FileEntry], checkpoint: int) -> tuple[int, ...]:
    unfinished = []
    for version in sorted(commits, reverse=True):
        if commits[version].size or version <= checkpoint:
            break
        unfinished.append(version)
    return tuple(reversed(unfinished))


def log_path(name: str) -> str:
    """The path of a file of the log."""
    return f"{FOLDER}/{name}"
