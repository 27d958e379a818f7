"""The parts of a manifest: Parquet files with a row per file and, in their footer, the sum.

A part is written by the task that scanned its stretches and never changed. A scan that finds its
files as they were refers to the same part again, so that an unchanged lake writes nothing.
"""

import uuid
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lumos.discovery.summaries import FileRow, Summary
from lumos.spark.arrays import arrow_array
from lumos.storage import KeyRange, StorageAccess, storage_of

# Raised whenever files must be read or placed anew because Lumos understands them better.
VERSION: Final = 5

_FILES: Final = pa.schema(
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
_IDENTITY: Final = ["path", "size", "modified", "etag", "storage_class"]

# What tells whether a file is as it was, and where: size, time, etag and storage class by path.
Identities = dict[str, tuple[int, int, str, str]]


class Part(msgspec.Struct, frozen=True, array_like=True):
    """A part, and in which places and between which paths its files lie."""

    path: str
    places: tuple[KeyRange, ...]
    first: str
    last: str
    files: int
    version: int = VERSION


class PartIndex:
    """Finds the parts that may hold files of a place."""

    def __init__(self, parts: Iterable[Part]) -> None:
        # Parts of an earlier version are left out: their files are read anew.
        self._parts = [part for part in parts if part.version == VERSION]
        self._by_folder: dict[str, list[tuple[int, KeyRange]]] = {}
        for number, part in enumerate(self._parts):
            for place in part.places:
                self._by_folder.setdefault(place.folder, []).append((number, place))
        self._folders = sorted(self._by_folder)

    def of(self, places: Iterable[KeyRange], *, first: str = "", last: str = "") -> list[Part]:
        """The parts that may hold files in the places and between the paths."""
        numbers = {
            number
            for place in places
            for number in self._touching(place)
            if _overlaps(self._parts[number], first or place.after, last or place.until)
        }
        return [self._parts[number] for number in sorted(numbers)]

    def _touching(self, place: KeyRange) -> Iterator[int]:
        folder = place.folder.rstrip("/")
        for same in {folder, f"{folder}/"}:
            ranges = self._by_folder.get(same, ())
            yield from (number for number, other in ranges if _meet(place, other))
        if place.deep:
            start = bisect_left(self._folders, f"{folder}/")
            for below in islice(self._folders, start, None):
                if not below.startswith(f"{folder}/"):
                    break
                yield from (number for number, _ in self._by_folder[below])
        while "/" in folder:
            folder = folder.rpartition("/")[0]
            for above in {folder, f"{folder}/"}:
                around = self._by_folder.get(above, ())
                yield from (number for number, other in around if other.deep)


def _meet(one: KeyRange, other: KeyRange) -> bool:
    """Whether two ranges of the paths in one folder have any in common."""
    ends_before = one.until and one.until <= other.after
    begins_behind = other.until and other.until <= one.after
    return not (ends_before or begins_behind)


def _overlaps(part: Part, first: str, last: str) -> bool:
    return not ((last and part.first > last) or (first and part.last < first))


def write_part(
    folder: str,
    rows: Sequence[FileRow],
    summary: Summary,
    places: Sequence[KeyRange],
    *,
    access: StorageAccess,
) -> Part:
    """Writes the rows of some places as a part below a folder."""
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(_FILES)
    arrays = [
        arrow_array(values, field.type) for values, field in zip(columns, _FILES, strict=True)
    ]
    footer = {_SUMMARY: msgspec.msgpack.encode(summary)}
    table = pa.Table.from_arrays(arrays, schema=_FILES.with_metadata(footer))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    # A task that is tried twice writes two parts; only the one that is reported counts.
    path = f"{folder}/{uuid.uuid4().hex}-{len(rows)}.parquet"
    storage_of(folder, access).write(path, sink.getvalue().to_pybytes())
    paths = [row.path for row in rows]
    first, last = (min(paths), max(paths)) if paths else ("", "")
    return Part(path, tuple(places), first, last, len(rows))


# What a part raises that was removed or damaged; without it, its files are only opened again.
LOST: Final = (FileNotFoundError, pa.ArrowException, msgspec.MsgspecError, KeyError)


def read_identities(path: str, *, access: StorageAccess) -> tuple[Identities, Summary]:
    """What tells whether the part's files are as they were, and what they came to."""
    file = _open(path, access)
    table = file.read(columns=_IDENTITY)
    paths, *identity = (table.column(name).to_pylist() for name in _IDENTITY)
    footer = file.schema_arrow.metadata[_SUMMARY]
    return dict(zip(paths, zip(*identity, strict=True), strict=True)), _DECODE(footer)


def read_summary(path: str, *, access: StorageAccess) -> Summary:
    """What the part's files came to, without a look at the files."""
    return _DECODE(_open(path, access).schema_arrow.metadata[_SUMMARY])


def read_part(path: str, *, access: StorageAccess) -> tuple[Iterator[FileRow], Summary | None]:
    """Every file of a part and what they came to; nothing where it is lost."""
    try:
        file = _open(path, access)
        table = file.read()
        columns = [table.column(name).to_pylist() for name in _FILES.names]
        summary = _DECODE(file.schema_arrow.metadata[_SUMMARY])
    except LOST:
        return iter(()), None
    return map(FileRow._make, zip(*columns, strict=True)), summary


_DECODE: Final = msgspec.msgpack.Decoder(Summary).decode


def _open(path: str, access: StorageAccess) -> pq.ParquetFile:
    return pq.ParquetFile(pa.BufferReader(storage_of(path, access).read(path)))
