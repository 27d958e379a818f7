"""Rows of a data file that a table has deleted: deletion vectors and files of positions."""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from lumos.formats import UnreadableFile
from lumos.formats.tables.interface import Deletes
from lumos.model.types import INT64, STRING, DataType
from lumos.storage import Access, storage_of

_COLUMNS: Final[dict[str, DataType]] = {"file_path": STRING, "pos": INT64}
# How both Delta and Iceberg begin a vector.
_MAGIC: Final = 1681511377
# Without any compression a vector of this length covers a data file of 500 million rows.
_LONGEST_VECTOR: Final = 64 * 1024 * 1024
_MOST_KEPT: Final = 8


def deleted_rows(deletes: Sequence[Deletes], data: str, access: Access) -> BitMap64:
    """The numbers of deleted rows; raises UnreadableFile, or an OSError.

    They stay compressed: a vector of a few bytes may delete millions of rows. `data` is the data
    file as positions spell it, or the end of that.
    """
    rows = BitMap64()
    for each in deletes:
        if each.kind == "dv":
            rows |= _vector(each, access)
        elif each.kind == "positions":
            rows |= _positions(each.path, access).get(data, BitMap64())
    return rows


def kept_rows(start: int, count: int, deleted: BitMap64) -> pa.Array | None:
    """Which of some rows are left, as flags; nothing where all are."""
    gone = deleted & BitMap64(range(start, start + count))
    if not gone:
        return None
    flags = np.ones(count, dtype=np.uint8)
    flags[np.asarray(gone.to_array(), dtype=np.int64) - start] = 0
    # Arrow would import pandas to look at an array of numpy.
    return pa.Array.from_buffers(pa.uint8(), count, [None, pa.py_buffer(flags)]).cast(pa.bool_())


def _vector(deletes: Deletes, access: Access) -> BitMap64:
    try:
        body = deletes.inline or _stored_vector(deletes, access)
        (magic,) = struct.unpack_from("<i", body)
        if magic != _MAGIC:
            raise ValueError(f"it begins with {magic}")
        rows = BitMap64.deserialize(body[4:])
        if deletes.count is not None and len(rows) != deletes.count:
            raise ValueError(f"it deletes {len(rows):,} rows, but its table says {deletes.count:,}")
    except (struct.error, ValueError, IndexError) as problem:
        raise UnreadableFile(
            "corrupt_file", f"The deletion vector {deletes.path} cannot be read: {problem}"
        ) from None
    return rows


def _stored_vector(deletes: Deletes, access: Access) -> bytes:
    with storage_of(deletes.path, access).open(deletes.path) as file:
        (length,) = struct.unpack(">i", file.part(deletes.offset, 4))
        if not 0 <= length <= _LONGEST_VECTOR:
            raise ValueError(f"its length is {length:,} bytes")
        return file.part(deletes.offset + 4, length)


@lru_cache(maxsize=_MOST_KEPT)
def _positions(path: str, access: Access) -> "_Positions":
    """The positions in a delete file; several data files of a task may share it."""
    from lumos.profiles.rows import FileTask, batches

    format = path.rpartition(".")[2]
    task = FileTask(path, 0, format, 0, names=("file_path", "pos"))
    found = _Positions()
    for batch in batches(task, storage_of(path, access), _COLUMNS):
        files, positions = batch.columns["file_path"].cast(pa.string()), batch.columns["pos"]
        if (lowest := pc.min(positions).as_py()) is not None and lowest < 0:
            reason = f"The delete file {path} holds a negative position ({lowest})"
            raise UnreadableFile("corrupt_file", reason)
        for file in pc.unique(files).to_pylist():
            own = positions.filter(pc.equal(files, file)).drop_null()
            found.setdefault(file, BitMap64()).update(own.to_pylist())
    return found


class _Positions(dict[str, BitMap64]):
    """Positions by the path of their data file, as the writer spelled it."""

    def get(self, data: str, otherwise: BitMap64) -> BitMap64:  # type: ignore[override]
        """The positions in a file, of whose path only the end may be known."""
        if data in self:
            return self[data]
        ends = [path for path in self if path.endswith(f"/{data}")]
        return self[ends[0]] if len(ends) == 1 else otherwise
