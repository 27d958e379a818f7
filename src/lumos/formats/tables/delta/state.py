"""The state of a Delta table: live files, schema and history, built up action by action.

There may be millions of live files, so they are stored in encoded form, in buckets.
"""

import base64
import binascii
import posixpath
import re
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from lumos.formats.tables.delta.log import (
    Action,
    Add,
    CommitIdentity,
    CommitInfo,
    CorruptDeltaLog,
    DeletionVector,
    DeltaMetadata,
    DeltaProtocol,
    row_count_in,
)
from lumos.formats.tables.interface import RowDeletes, TableFolder, folder_without_partitions

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|/")
_FILE_SCHEME: Final = re.compile(r"file:/+")
# The slashes in the URI of a folder in a bucket, such as `s3://bucket/folder`.
_MIN_SLASHES: Final = 3


def resolve_path(path: str, folder: TableFolder) -> str:
    """The path relative to the table's root, or the URI of a file outside of it."""
    path = unquote(path) if "%" in path else path
    if not _is_uri(path):
        if ".." not in path:
            return path
        path = posixpath.normpath(path)
        if not path.startswith("../"):
            return path
        # The path leads out of the table, so convert it to a URI.
        scheme, separator, location = folder.root.rpartition("://")
        joined = posixpath.normpath(posixpath.join(location, path))
        path = f"{scheme}{separator}{joined}"
    if path.startswith("file:"):
        path = _FILE_SCHEME.sub("/", path, count=1)
    return folder.inside(path, folder.root) or path


def _is_uri(path: str) -> bool:
    return _URI.match(path) is not None


def folder_outside(path: str) -> str | None:
    """The folder of a file outside of the table, without partition folders; None for others."""
    if not _is_uri(path):
        return None
    folder = folder_without_partitions(path)
    # A file at the top of a bucket does not make the entire bucket part of the table.
    is_in_folder = folder.count("/") >= (1 if path.startswith("/") else _MIN_SLASHES)
    return folder if is_in_folder else path


# The alphabets of base 85 in Delta (ZeroMQ's) and in Python (git's).
_Z85: Final = (
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)
_B85: Final = (
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
)
_TO_B85: Final = bytes.maketrans(_Z85, _B85)
_UUID_LENGTH: Final = 20
_UUID_BYTES: Final = 16


def vector_id(vector: DeletionVector | None) -> str:
    """The identity of a deletion vector; empty if there is none."""
    if vector is None:
        return ""
    offset = "" if vector.offset is None else f"@{vector.offset}"
    return f"{vector.storage_type}{vector.path_or_inline_dv}{offset}"


def vector_location(vector: DeletionVector, resolve: Callable[[str], str]) -> RowDeletes:
    """The location of a deletion vector; raises CorruptDeltaLog."""
    path, inline = "", b""
    text = vector.path_or_inline_dv
    match vector.storage_type:
        case "u":
            prefix, name = text[:-_UUID_LENGTH], _decode_z85(text[-_UUID_LENGTH:])
            if len(name) != _UUID_BYTES:
                raise CorruptDeltaLog(f"the deletion vector '{text}' has an invalid name")
            folder = f"{prefix}/" if prefix else ""
            path = f"{folder}deletion_vector_{uuid.UUID(bytes=name)}.bin"
        case "p":
            path = resolve(text)
        case "i":
            inline = _decode_z85(text)[: vector.size_in_bytes]
        case kind:
            raise CorruptDeltaLog(f"unknown storage type '{kind}' of a deletion vector")
    return RowDeletes(
        kind="dv",
        path=path,
        offset=vector.offset or 0,
        length=vector.size_in_bytes,
        count=vector.cardinality,
        inline=inline,
    )


def _decode_z85(text: str) -> bytes:
    try:
        encoded = text.encode("ascii")
        if len(encoded) % 5 or encoded.translate(None, _Z85):
            raise ValueError
        return base64.b85decode(encoded.translate(_TO_B85))
    except (ValueError, binascii.Error):
        raise CorruptDeltaLog(
            f"the deletion vector '{text[:60]}' is not encoded in base 85"
        ) from None


# In a table of ten million files, each bucket contains 160,000.
_BUCKETS: Final = 64
# The year 10000 in milliseconds since 1970.
_END_OF_TIME: Final = 253_402_300_800_000
# Up to this number, files outside of the table are listed one by one, because their folders may
# contain files of other datasets.
_MAX_LISTED_FILES: Final = 10_000


class DeltaFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A live file; `partition` is the index of its partition in the list of partitions.

    `added` is when its rows were added, in milliseconds since 1970, or 0 if unknown.
    """

    path: str
    size: int
    rows: int | None
    partition: int
    deletes: RowDeletes | None = None
    vector: str = ""
    added: int = 0

    @property
    def key(self) -> str:
        """The key of the file, which includes its deletion vector."""
        return file_key(self.path, self.vector)


def _time_added(add: Add) -> int:
    """The time at which the rows of a file were added; 0 if the file was rewritten since."""
    time = add.modification_time
    is_rewritten = add.data_change is False or add.deletion_vector is not None
    if is_rewritten or not isinstance(time, int | float):
        return 0
    return int(time) if 0 < time < _END_OF_TIME else 0


def file_key(path: str, vector: str) -> str:
    """The key of a file in its table."""
    return f"{path}\n{vector}" if vector else path


class FileBucket(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A part of the live files, and their totals; `rows` is None if any row count is unknown."""

    encoded_files: bytes = b"\x90"
    file_count: int = 0
    size: int = 0
    rows: int | None = 0
    # Files outside of the table (at most one more than `_MAX_LISTED_FILES`), and their folders.
    outside: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


_encode: Final = msgspec.msgpack.Encoder().encode
_files_decoder: Final = msgspec.msgpack.Decoder(list[DeltaFile])
_changes_decoder: Final = msgspec.msgpack.Decoder(list[DeltaFile | str])


class DeltaFiles:
    """The live files; additions and removals are collected, and applied together."""

    def __init__(self, buckets: Sequence[FileBucket] = ()) -> None:
        self._buckets = list(buckets) or [FileBucket()] * _BUCKETS
        # For each bucket, the changes in encoded form: added files, and keys of removed files.
        self._changes = [bytearray() for _ in self._buckets]
        self._change_counts = [0] * len(self._buckets)

    def put(self, file: DeltaFile) -> None:
        """Add or replace a file."""
        self._append(file.key, file)

    def drop(self, key: str) -> None:
        """Remove the file with this key, if it is live."""
        self._append(key, key)

    def _append(self, key: str, change: DeltaFile | str) -> None:
        number = zlib.crc32(key.encode("utf-8", "surrogatepass")) % len(self._buckets)
        self._changes[number] += _encode(change)
        self._change_counts[number] += 1

    def buckets(self) -> list[FileBucket]:
        """The live files after all changes."""
        for number, count in enumerate(self._change_counts):
            if count:
                self._buckets[number] = self._apply_changes(number)
                self._changes[number] = bytearray()
                self._change_counts[number] = 0
        return self._buckets

    def _apply_changes(self, number: int) -> FileBucket:
        live = {
            each.key: each for each in _files_decoder.decode(self._buckets[number].encoded_files)
        }
        # The header of an array in msgpack.
        header = b"\xdd" + self._change_counts[number].to_bytes(4, "big")
        for change in _changes_decoder.decode(header + self._changes[number]):
            if isinstance(change, str):
                live.pop(change, None)
            else:
                live[change.key] = change
        return _bucket(list(live.values()))


def _bucket(files: list[DeltaFile]) -> FileBucket:
    size, rows, has_unknown_rows = 0, 0, False
    outside: dict[str, str] = {}
    for file in files:
        size += file.size
        deleted = 0 if file.deletes is None else file.deletes.count
        if file.rows is None or deleted is None:
            has_unknown_rows = True
        else:
            rows += max(0, file.rows - deleted)
        if folder := folder_outside(file.path):
            outside[file.path] = folder
    return FileBucket(
        encoded_files=_encode(files),
        file_count=len(files),
        size=size,
        rows=None if has_unknown_rows else rows,
        outside=tuple(sorted(outside)[: _MAX_LISTED_FILES + 1]),
        folders=tuple(sorted(set(outside.values()))),
    )


def files_in_buckets(buckets: Sequence[FileBucket]) -> Iterator[DeltaFile]:
    """Yield the files in the buckets."""
    for bucket in buckets:
        yield from _files_decoder.decode(bucket.encoded_files)


class LiveTotals(msgspec.Struct, frozen=True):
    """The totals of all live files."""

    files: int
    size: int
    rows: int | None
    # Files outside of the table; if there are very many, their folders instead.
    outside: tuple[str, ...]


def total_of_buckets(buckets: Sequence[FileBucket]) -> LiveTotals:
    """The totals of the files in the buckets."""
    rows = [bucket.rows for bucket in buckets]
    known_rows = [count for count in rows if count is not None]
    outside = {path for bucket in buckets for path in bucket.outside}
    if len(outside) > _MAX_LISTED_FILES:
        outside = {folder for bucket in buckets for folder in bucket.folders}
    return LiveTotals(
        files=sum(bucket.file_count for bucket in buckets),
        size=sum(bucket.size for bucket in buckets),
        rows=sum(known_rows) if len(known_rows) == len(rows) else None,
        outside=tuple(sorted(outside)),
    )


# Increment this when the layout changes; states with another layout are ignored.
_LAYOUT: Final = 3
_CLUSTERING: Final = "delta.clustering"
# Partitions without files are only removed if there are more than this many.
_MIN_UNUSED_PARTITIONS: Final = 1_000

Partition = tuple[tuple[str, str | None], ...]


class CommittedSchema(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A schema, and the commit that set it; `at` is in microseconds since 1970."""

    version: int
    at: int
    exact_time: bool
    schema_string: str | None
    partition_columns: list[str]
    operation: str | None = None
    author: str | None = None


class DeltaSavedState(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The state that the next read continues from."""

    layout: int = _LAYOUT
    version: int
    # Identifies the commit file of `version`; None if only a checkpoint remains.
    last: CommitIdentity | None
    at: int
    operation: str | None
    metadata: DeltaMetadata
    protocol: DeltaProtocol
    clustering: str
    partitions: list[Partition]
    live: list[FileBucket]
    schemas: list[CommittedSchema]
    # The versions of earlier commits that could not be read.
    unread: list[int]
    # The reasons why checkpoints could not be used, by version.
    damaged: dict[int, str]


class DeltaState:
    """The state of a table after the actions that were applied so far."""

    def __init__(self, folder: TableFolder) -> None:
        self._folder = folder
        self.live = DeltaFiles()
        self.partitions: dict[Partition, int] = {}
        self.metadata: DeltaMetadata | None = None
        self.protocol: DeltaProtocol | None = None
        self.clustering = ""

    @classmethod
    def of(cls, folder: TableFolder, saved_state: DeltaSavedState) -> "DeltaState":
        """The state of a table at the end of an earlier read."""
        state = cls(folder)
        state.live = DeltaFiles(saved_state.live)
        state.partitions = {each: number for number, each in enumerate(saved_state.partitions)}
        state.metadata = saved_state.metadata
        state.protocol = saved_state.protocol
        state.clustering = saved_state.clustering
        return state

    def apply(self, action: Action) -> None:
        """Apply an action of the log."""
        if action.add is not None:
            self.add(action.add, row_count_in(action.add.stats))
        elif action.remove is not None:
            vector = action.remove.deletion_vector
            self.live.drop(file_key(self._resolve(action.remove.path), vector_id(vector)))
        elif action.meta_data is not None:
            self.metadata = action.meta_data
        elif action.protocol is not None:
            self.protocol = action.protocol
        elif action.domain_metadata is not None:
            domain = action.domain_metadata
            if domain.domain == _CLUSTERING:
                self.clustering = "" if domain.removed else domain.configuration

    def add(self, add: Add, rows: int | None) -> None:
        """Add a live file."""
        vector = add.deletion_vector
        # The protocol defines an empty partition value as null, for every type.
        values = (add.partition_values or {}).items()
        partition = tuple((name, value or None) for name, value in values)
        self.live.put(
            DeltaFile(
                path=self._resolve(add.path),
                size=add.size,
                rows=rows,
                partition=self.partitions.setdefault(partition, len(self.partitions)),
                deletes=None if vector is None else vector_location(vector, self._resolve),
                vector=vector_id(vector),
                added=_time_added(add),
            )
        )

    def _resolve(self, path: str) -> str:
        return resolve_path(path, self._folder)

    def save(
        self,
        *,
        version: int,
        last: CommitIdentity | None,
        at: int,
        operation: str | None,
        schemas: list[CommittedSchema],
        unread: list[int],
        damaged: dict[int, str],
    ) -> DeltaSavedState:
        """The state for the next read; raises CorruptDeltaLog without a schema or protocol."""
        if self.metadata is None:
            raise CorruptDeltaLog("it contains no schema of the table")
        if self.protocol is None:
            raise CorruptDeltaLog("it contains no protocol version")
        if (
            len(self.partitions)
            > 2 * total_of_buckets(self.live.buckets()).files + _MIN_UNUSED_PARTITIONS
        ):
            self._drop_unused_partitions()
        return DeltaSavedState(
            version=version,
            last=last,
            at=at,
            operation=operation,
            metadata=self.metadata,
            protocol=self.protocol,
            clustering=self.clustering,
            partitions=list(self.partitions),
            live=self.live.buckets(),
            schemas=schemas,
            unread=unread,
            damaged=damaged,
        )

    def _drop_unused_partitions(self) -> None:
        """Remove the partitions without live files."""
        partitions, files = list(self.partitions), self.live
        self.partitions, self.live = {}, DeltaFiles()
        for file in files_in_buckets(files.buckets()):
            partition = partitions[file.partition]
            number = self.partitions.setdefault(partition, len(self.partitions))
            self.live.put(replace(file, partition=number))


def committed_schema(
    metadata: DeltaMetadata, version: int, info: CommitInfo, *, modified: int, exact: bool = True
) -> CommittedSchema:
    """The schema in the metadata that a commit sets."""
    at = commit_time(info, modified)
    return CommittedSchema(
        version=version,
        at=at,
        exact_time=exact and _is_time(info.milliseconds),
        schema_string=metadata.schema_string,
        partition_columns=metadata.partition_columns or [],
        operation=info.operation,
        author=info.author,
    )


def commit_time(info: CommitInfo, modified: int) -> int:
    """The time of a commit in microseconds: as in its info, or else the time of its file."""
    if info.milliseconds is None or not _is_time(info.milliseconds):
        return modified
    return info.milliseconds * 1000


def _is_time(milliseconds: int | None) -> bool:
    if milliseconds is None or milliseconds <= 0:
        return False
    try:
        datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return False
    return True


def without_repetitions(schemas: list[CommittedSchema]) -> list[CommittedSchema]:
    """The schemas that differ from the previous one, in the order of versions."""
    changes: list[CommittedSchema] = []
    for each in sorted(schemas, key=lambda schema: schema.version):
        is_same = changes and (
            changes[-1].schema_string == each.schema_string
            and changes[-1].partition_columns == each.partition_columns
        )
        if not is_same:
            changes.append(each)
    return changes


_decoder: Final = msgspec.msgpack.Decoder(DeltaSavedState)


def encode_saved_state(saved_state: DeltaSavedState) -> bytes:
    """Encode the state for the next read."""
    return _encode(saved_state)


def decode_saved_state(saved_state: bytes | None) -> DeltaSavedState | None:
    """Decode the state of an earlier read; None if it is unusable."""
    if saved_state is None:
        return None
    try:
        known = _decoder.decode(saved_state)
    except (ValueError, RecursionError):
        return None
    return known if known.layout == _LAYOUT else None
