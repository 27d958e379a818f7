"""Rows of a data file that a table has deleted: deletion vectors and files of positions."""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lumos.formats import UnreadableFile
from lumos.formats.tables.interface import Deletes
from lumos.model.types import INT64, STRING, DataType
from lumos.storage import Access, storage_of

_COLUMNS: Final[dict[str, DataType]] = {"file_path": STRING, "pos": INT64}
# How both Delta and Iceberg begin a vector.
_MAGIC: Final = 1681511377
_WITH_RUNS: Final = 12347
_WITHOUT_RUNS: Final = 12346
# Fewer containers with runs among them have no list of where they begin.
_FEW: Final = 4
_MOST_IN_ARRAY: Final = 4096
_BITMAP: Final = 8192
_MOST_KEPT: Final = 8


def deleted_rows(deletes: Sequence[Deletes], data: str, access: Access) -> "array[int]":
    """The numbers of rows that are deleted, in order; raises UnreadableFile, or an OSError.

    `data` is the data file as positions spell it, or the end of that.
    """
    rows: set[int] = set()
    for each in deletes:
        if each.kind == "dv":
            rows.update(_vector(each, access))
        elif each.kind == "positions":
            rows.update(_positions(each.path, access).get(data, ()))
    return array("q", sorted(rows))


def kept_rows(start: int, count: int, deleted: "array[int]") -> pa.Array | None:
    """Which of some rows are left, as flags; nothing where all are."""
    first, last = bisect_left(deleted, start), bisect_left(deleted, start + count)
    if first == last:
        return None
    flags = bytearray(b"\x01") * count
    for row in deleted[first:last]:
        flags[row - start] = 0
    return pa.Array.from_buffers(pa.uint8(), count, [None, pa.py_buffer(flags)]).cast(pa.bool_())


def _vector(deletes: Deletes, access: Access) -> Iterator[int]:
    body = deletes.inline
    if not body:
        with storage_of(deletes.path, access).open(deletes.path) as file:
            (length,) = struct.unpack(">i", file.part(deletes.offset, 4))
            body = file.part(deletes.offset + 4, max(0, length))
    try:
        (magic,) = struct.unpack_from("<i", body)
        if magic != _MAGIC:
            raise ValueError(f"it begins with {magic}")
        yield from _roaring(memoryview(body)[4:])
    except (struct.error, ValueError, IndexError) as problem:
        raise UnreadableFile(
            "corrupt_file", f"The deletion vector {deletes.path} cannot be read: {problem}"
        ) from None


def _roaring(body: memoryview) -> Iterator[int]:
    """The numbers of a 64-bit bitmap in Roaring's portable format."""
    (buckets,) = struct.unpack_from("<Q", body)
    at = 8
    for _ in range(buckets):
        (high,) = struct.unpack_from("<I", body, at)
        numbers, at = _bucket(body, at + 4)
        yield from (high << 32 | number for number in numbers)


def _bucket(body: memoryview, at: int) -> tuple[list[int], int]:
    (cookie,) = struct.unpack_from("<I", body, at)
    at += 4
    runs = b""
    if cookie & 0xFFFF == _WITH_RUNS:
        count = (cookie >> 16) + 1
        size = (count + 7) // 8
        runs = bytes(body[at : at + size])
        at += size
    elif cookie == _WITHOUT_RUNS:
        (count,) = struct.unpack_from("<I", body, at)
        at += 4
    else:
        raise ValueError(f"a bitmap begins with {cookie}")
    heads = list(struct.iter_unpack("<HH", body[at : at + 4 * count]))
    at += 4 * count
    if not runs or count >= _FEW:
        at += 4 * count
    numbers: list[int] = []
    for place, (key, less_one) in enumerate(heads):
        base = key << 16
        if runs and runs[place // 8] >> (place % 8) & 1:
            (pairs,) = struct.unpack_from("<H", body, at)
            at += 2
            for first, more in struct.iter_unpack("<HH", body[at : at + 4 * pairs]):
                numbers.extend(range(base + first, base + first + more + 1))
            at += 4 * pairs
        elif less_one + 1 <= _MOST_IN_ARRAY:
            size = 2 * (less_one + 1)
            numbers.extend(base + low for (low,) in struct.iter_unpack("<H", body[at : at + size]))
            at += size
        else:
            bits = int.from_bytes(body[at : at + _BITMAP], "little")
            numbers.extend(base + low for low in range(65536) if bits >> low & 1)
            at += _BITMAP
    return numbers, at


@lru_cache(maxsize=_MOST_KEPT)
def _positions(path: str, access: Access) -> "_Positions":
    """The positions in a delete file; several data files of a task may share it."""
    from lumos.pipeline.profiling.reading import FileTask, batches

    format = path.rpartition(".")[2]
    task = FileTask(path, 0, format, 0, names=("file_path", "pos"))
    found: dict[str, list[int]] = {}
    for batch in batches(task, storage_of(path, access), _COLUMNS):
        files = batch.columns["file_path"].cast(pa.string())
        for file in pc.unique(files).to_pylist():
            own = batch.columns["pos"].filter(pc.equal(files, file))
            found.setdefault(file, []).extend(own.to_pylist())
    return _Positions(found)


class _Positions(dict[str, list[int]]):
    """Positions by the path of their data file, as the writer spelled it."""

    def get(self, data: str, otherwise: Sequence[int] = ()) -> Sequence[int]:  # type: ignore[override]
        """The positions in a file, of whose path only the end may be known."""
        if data in self:
            return self[data]
        ends = [path for path in self if path.endswith(f"/{data}")]
        return self[ends[0]] if len(ends) == 1 else otherwise
