"""The parts of a manifest: Parquet files with a row per file and a summary in their footer.

A part is written once, by the task that scanned its key ranges. A scan that finds the same files
unchanged refers to the same part again, so that scanning an unchanged lake writes nothing.
"""

import uuid
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lumos.discovery.lake.summaries import FileRow, FileSummary
from lumos.spark.arrays import arrow_array
from lumos.storage import KeyRange, StorageAccess, storage_of

# Increment this when rules change so that files must be read or grouped again.
VERSION: Final = 5

_FILE_COLUMNS: Final = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("modified", pa.int64()),
        ("etag", pa.string()),
        ("format", pa.string()),
        ("full", pa.string()),
        ("row_count", pa.int64()),
        ("row_count_exact", pa.bool_()),
        ("failed", pa.bool_()),
        ("code", pa.string()),
        ("reason", pa.string()),
        ("columns", pa.binary()),
        ("storage_class", pa.string()),
    ]
)
_SUMMARY: Final = b"lumos.summary"
# Most footers are shorter than this.
_FOOTER_BYTES: Final = 64 * 1024
_IDENTITY_COLUMNS: Final = ["path", "size", "modified", "etag", "storage_class"]

# Size, modification time, etag and storage class by path. If all are equal, a file is unchanged.
Identities = dict[str, tuple[int, int, str, str]]


class ManifestPart(msgspec.Struct, frozen=True, array_like=True):
    """A part, the key ranges of its files, and their first and last path."""

    path: str
    key_ranges: tuple[KeyRange, ...]
    first: str
    last: str
    files: int
    version: int = VERSION


class PartIndex:
    """An index of parts by the key ranges of their files."""

    def __init__(self, parts: Iterable[ManifestPart]) -> None:
        # Files of parts of an earlier version are read again.
        self._parts = [part for part in parts if part.version == VERSION]
        self._by_folder: dict[str, list[tuple[int, KeyRange]]] = {}
        for number, part in enumerate(self._parts):
            for key_range in part.key_ranges:
                self._by_folder.setdefault(key_range.folder, []).append((number, key_range))
        self._folders = sorted(self._by_folder)

    def find(
        self, key_ranges: Iterable[KeyRange], *, first: str = "", last: str = ""
    ) -> list[ManifestPart]:
        """Find the parts that may contain files in the key ranges from `first` to `last`."""
        numbers = {
            number
            for key_range in key_ranges
            for number in self._find_overlapping(key_range)
            if _overlaps(self._parts[number], first or key_range.after, last or key_range.until)
        }
        return [self._parts[number] for number in sorted(numbers)]

    def _find_overlapping(self, key_range: KeyRange) -> Iterator[int]:
        folder = key_range.folder.rstrip("/")
        for spelling in {folder, f"{folder}/"}:
            ranges = self._by_folder.get(spelling, ())
            yield from (number for number, other in ranges if _has_common_paths(key_range, other))
        if key_range.deep:
            start = bisect_left(self._folders, f"{folder}/")
            for subfolder in islice(self._folders, start, None):
                if not subfolder.startswith(f"{folder}/"):
                    break
                yield from (number for number, _ in self._by_folder[subfolder])
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            for parent in {folder, f"{folder}/"}:
                ranges = self._by_folder.get(parent, ())
                yield from (number for number, other in ranges if other.deep)


class KeyRangeSet:
    """A set of key ranges, to check whether they contain a path."""

    def __init__(self, key_ranges: Iterable[KeyRange]) -> None:
        self._by_folder: dict[str, list[KeyRange]] = {}
        for key_range in key_ranges:
            self._by_folder.setdefault(key_range.folder.rstrip("/"), []).append(key_range)

    def covers(self, path: str) -> bool:
        """Whether a file is in one of the key ranges."""
        folder = parent = path.rpartition("/")[0]
        while True:
            for key_range in self._by_folder.get(folder, ()):
                is_before_end = not key_range.until or path <= key_range.until
                is_deep_enough = key_range.deep or folder == parent
                if is_deep_enough and path > key_range.after and is_before_end:
                    return True
            if "/" not in folder:
                return False
            folder = folder.rpartition("/")[0]


def _has_common_paths(left: KeyRange, right: KeyRange) -> bool:
    """Whether two key ranges of one folder overlap."""
    ends_before = left.until and left.until <= right.after
    begins_after = right.until and right.until <= left.after
    return not (ends_before or begins_after)


def _overlaps(part: ManifestPart, first: str, last: str) -> bool:
    return not ((last and part.first > last) or (first and part.last < first))


def write_part(
    folder: str,
    rows: Sequence[FileRow],
    summary: FileSummary,
    key_ranges: Sequence[KeyRange],
    *,
    access: StorageAccess,
) -> ManifestPart:
    """Write a part with the rows of all files in the given key ranges."""
    columns: Iterable[Sequence[Any]] = (
        zip(*rows, strict=True) if rows else [()] * len(_FILE_COLUMNS)
    )
    arrays = [
        arrow_array(values, field.type)
        for values, field in zip(columns, _FILE_COLUMNS, strict=True)
    ]
    footer = {_SUMMARY: msgspec.msgpack.encode(summary)}
    table = pa.Table.from_arrays(arrays, schema=_FILE_COLUMNS.with_metadata(footer))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    # A task that Spark retries writes two parts; only the part in its result is used.
    path = f"{folder}/{uuid.uuid4().hex}-{len(rows)}.parquet"
    storage_of(folder, access).write(path, sink.getvalue().to_pybytes())
    paths = [row.path for row in rows]
    first, last = (min(paths), max(paths)) if paths else ("", "")
    return ManifestPart(path, tuple(key_ranges), first, last, len(rows))


# Raised if a part was deleted or damaged. Its files are then read again.
LOST_PART_ERRORS: Final = (FileNotFoundError, pa.ArrowException, msgspec.MsgspecError, KeyError)


def read_identities(path: str, *, access: StorageAccess) -> tuple[Identities, FileSummary]:
    """The identities of a part's files, and their summary."""
    file = _open(path, access)
    table = file.read(columns=_IDENTITY_COLUMNS)
    paths, *identity = (table.column(name).to_pylist() for name in _IDENTITY_COLUMNS)
    footer = file.schema_arrow.metadata[_SUMMARY]
    return dict(zip(paths, zip(*identity, strict=True), strict=True)), _DECODE(footer)


def read_summary(path: str, *, access: StorageAccess) -> FileSummary:
    """The summary of a part; only the end of its file is read."""
    with storage_of(path, access).open(path) as file:
        tail = file.tail(_FOOTER_BYTES)
        # A Parquet file ends with the footer, its length and a magic number.
        length = int.from_bytes(tail[-8:-4], "little") + 8
        if length > len(tail):
            tail = file.tail(length)
    schema = pq.read_schema(pa.BufferReader(tail))
    return _DECODE(schema.metadata[_SUMMARY])


def read_summaries(
    parts: Sequence[ManifestPart], *, access: StorageAccess
) -> list[FileSummary] | None:
    """The summaries of many parts; None if one is lost or was written by an earlier version."""
    if not parts:
        return []
    if any(part.version != VERSION for part in parts):
        return None
    paths = [part.path for part in parts]
    try:
        with ThreadPoolExecutor(storage_of(paths[0], access).concurrency) as threads:
            return list(threads.map(partial(read_summary, access=access), paths))
    except LOST_PART_ERRORS:
        return None


def read_part(path: str, *, access: StorageAccess) -> tuple[Iterator[FileRow], FileSummary | None]:
    """Read all files of a part and their summary; both empty if the part is missing."""
    try:
        file = _open(path, access)
        table = file.read()
        columns = [table.column(name).to_pylist() for name in _FILE_COLUMNS.names]
        summary = _DECODE(file.schema_arrow.metadata[_SUMMARY])
    except LOST_PART_ERRORS:
        return iter(()), None
    return map(FileRow._make, zip(*columns, strict=True)), summary


class DataFileEntry(NamedTuple):
    """A data file of a part, without statistics of its columns."""

    path: str
    size: int
    modified: int
    format: str
    schema_fingerprint: str
    row_count: int | None


_DATA_FILE_COLUMNS: Final = ["path", "size", "modified", "format", "full", "row_count"]


def read_files(path: str, *, access: StorageAccess) -> Iterator[DataFileEntry]:
    """The data files of a part; none if it is missing."""
    try:
        table = _open(path, access).read(columns=_DATA_FILE_COLUMNS)
    except LOST_PART_ERRORS:
        return
    columns = (table.column(name).to_pylist() for name in _DATA_FILE_COLUMNS)
    for entry in map(DataFileEntry._make, zip(*columns, strict=True)):
        if entry.format is not None and entry.schema_fingerprint is not None:
            yield entry


_DECODE: Final = msgspec.msgpack.Decoder(FileSummary).decode


def _open(path: str, access: StorageAccess) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(storage_of(path, access).read(path)))


class ListedFiles:
    """Looks up single files in the parts of a scan, which are read when needed."""

    def __init__(self, parts: Iterable[ManifestPart], access: StorageAccess) -> None:
        self._index = PartIndex(parts)
        self._access = access
        self._paths: dict[str, frozenset[str]] = {}

    def has(self, path: str) -> bool:
        """Whether the scan listed a file."""
        folder = path.rpartition("/")[0]
        for part in self._index.find([KeyRange(folder)], first=path, last=path):
            if part.path not in self._paths:
                try:
                    identities, _ = read_identities(part.path, access=self._access)
                except LOST_PART_ERRORS:
                    identities = {}
                self._paths[part.path] = frozenset(identities)
            if path in self._paths[part.path]:
                return True
        return False
