"""Reads the rows of data files in any format and storage, in batches and without deleted rows."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.interface import RowDeletes
from lumos.model.types import INT64, STRING, DataType
from lumos.profiles.reader_process import read_in_child
from lumos.profiles.tasks import (
    HUDI_SLICE,
    FileTask,
    FormatReader,
    RangedFile,
    RowBatch,
    corrupt_file,
    open_file,
)
from lumos.storage import FileStorage, LocalStorage, StorageAccess, storage_of

# pyarrow reads these formats, and aborts the process on some damaged files.
_READ_IN_CHILD: Final = frozenset({"parquet", "orc"})
# The columns of Iceberg's position delete files.
_POSITION_COLUMNS: Final[dict[str, DataType]] = {"file_path": STRING, "pos": INT64}
# The first bytes of a deletion vector, in Delta and in Iceberg.
_VECTOR_MAGIC: Final = 1681511377
# This is enough for the deletion vector of a data file with 500 million rows, even uncompressed.
_MAX_VECTOR_BYTES: Final = 64 * 1024 * 1024
_MAX_CACHED_FILES: Final = 8


def read_batches(
    task: FileTask,
    storage: FileStorage,
    wanted: Mapping[str, DataType],
    deleted: BitMap64 | None = None,
) -> Iterator[RowBatch]:
    """Yield the rows of a task's file, with those of the wanted columns that the file has.

    Rows whose numbers are in `deleted` are skipped. Raises UnreadableFile, or an OSError.
    """
    remaining = task.max_rows
    partition_columns = dict(task.partitions)
    file_columns = {name: type for name, type in wanted.items() if name not in partition_columns}
    try:
        for batch in _read_all(task, storage, file_columns):
            flags = (
                None if deleted is None else undeleted_row_flags(batch.start, batch.rows, deleted)
            )
            if flags is not None:
                columns = {name: array.filter(flags) for name, array in batch.columns.items()}
                batch = batch._replace(rows=flags.true_count, columns=columns)
            batch = _sample_rows(batch)
            if remaining is not None:
                batch = batch._replace(
                    rows=min(batch.rows, remaining),
                    columns={name: each[:remaining] for name, each in batch.columns.items()},
                )
                remaining -= batch.rows
            yield batch
            if remaining == 0:
                return
    except UnreadableFile:
        raise
    except Exception as problem:
        # For truncated data, Arrow raises an OSError without an error number; storages set one.
        is_from_arrow = type(problem) is OSError and problem.errno is None
        if isinstance(problem, OSError) and not is_from_arrow:
            raise
        # Libraries raise all kinds of exceptions on damaged files, which must not end the profile.
        raise corrupt_file(problem) from None


def _read_all(
    task: FileTask, storage: FileStorage, wanted: Mapping[str, DataType]
) -> Iterator[RowBatch]:
    """Yield all rows of a task's file, including deleted rows and rows outside of the sample."""
    if task.format == HUDI_SLICE:
        from lumos.profiles.hudi_files import read_slice

        yield from read_slice(task, storage, wanted)
        return
    read_format = _format_reader(task.format)
    if task.format not in _READ_IN_CHILD:
        with open_file(storage, task.path) as file:
            yield from read_format(file, task, wanted)
    elif isinstance(storage, LocalStorage):
        yield from read_in_child(read_format, task, wanted, None)
    else:
        with storage.open(task.path) as remote:
            yield from read_in_child(read_format, task, wanted, RangedFile(remote))


def _format_reader(format: str) -> FormatReader:
    # Imported late: each module imports libraries that only its format requires.
    match format:
        case "parquet" | "orc":
            from lumos.profiles.columnar_files import read_orc, read_parquet

            return read_parquet if format == "parquet" else read_orc
        case "csv" | "json":
            from lumos.profiles.text_files import read_csv, read_json

            return read_csv if format == "csv" else read_json
        case "avro":
            from lumos.profiles.avro_files import read_avro

            return read_avro
        case _:
            raise UnreadableFile("unsupported_format", f"Rows of {format} files are not read.")


def _sample_rows(batch: RowBatch) -> RowBatch:
    """Select the batch's share of its rows, evenly spread over the file; includes the first row."""
    share, first = batch.share, batch.start
    if share >= 1.0:
        return batch
    selected = [
        row
        for row in range(batch.rows)
        if first + row == 0 or int((first + row) * share) > int((first + row - 1) * share)
    ]
    indices = pa.array(selected, pa.int64())
    columns = {name: array.take(indices) for name, array in batch.columns.items()}
    return batch._replace(rows=len(selected), columns=columns)


def deleted_rows(deletes: Sequence[RowDeletes], data_path: str, access: StorageAccess) -> BitMap64:
    """The numbers of deleted rows; raises UnreadableFile, or an OSError.

    The numbers are returned as a compressed bitmap, because a deletion vector of a few bytes may
    delete millions of rows. `data_path` is the path of the data file in position delete files, or
    the end of that path.
    """
    rows = BitMap64()
    for each in deletes:
        if each.kind == "dv":
            rows |= _read_vector(each, access)
        elif each.kind == "positions":
            rows |= _positions_of(data_path, _read_positions(each.path, access))
    return rows


def undeleted_row_flags(start: int, count: int, deleted: BitMap64) -> pa.Array | None:
    """A flag for each row, which is false for deleted rows; None if no row is deleted."""
    deleted_in_batch = deleted & BitMap64(range(start, start + count))
    if not deleted_in_batch:
        return None
    flags = np.ones(count, dtype=np.uint8)
    flags[np.asarray(deleted_in_batch.to_array(), dtype=np.int64) - start] = 0
    # Not with `pa.array`, which would import pandas to convert a numpy array.
    return pa.Array.from_buffers(pa.uint8(), count, [None, pa.py_buffer(flags)]).cast(pa.bool_())


def _read_vector(deletes: RowDeletes, access: StorageAccess) -> BitMap64:
    try:
        body = deletes.inline or _read_stored_vector(deletes, access)
        (magic,) = struct.unpack_from("<i", body)
        if magic != _VECTOR_MAGIC:
            raise ValueError(f"it begins with {magic}")
        rows = BitMap64.deserialize(body[4:])
        if deletes.count is not None and len(rows) != deletes.count:
            raise ValueError(
                f"it deletes {len(rows):,} rows, but its table lists {deletes.count:,}"
            )
    except (struct.error, ValueError, IndexError) as problem:
        raise UnreadableFile(
            "corrupt_file", f"The deletion vector {deletes.path} cannot be read: {problem}"
        ) from None
    return rows


def _read_stored_vector(deletes: RowDeletes, access: StorageAccess) -> bytes:
    with storage_of(deletes.path, access).open(deletes.path) as file:
        (length,) = struct.unpack(">i", file.part(deletes.offset, 4))
        if not 0 <= length <= _MAX_VECTOR_BYTES:
            raise ValueError(f"its length is {length:,} bytes")
        return file.part(deletes.offset + 4, length)


@lru_cache(maxsize=_MAX_CACHED_FILES)
def _read_positions(path: str, access: StorageAccess) -> dict[str, BitMap64]:
    """The deleted positions in a delete file, by data file.

    Cached, because several data files of a task may share a delete file.
    """
    format = path.rpartition(".")[2]
    task = FileTask(path, 0, format, 0, names=("file_path", "pos"))
    by_file: dict[str, BitMap64] = {}
    for batch in read_batches(task, storage_of(path, access), _POSITION_COLUMNS):
        files, positions = batch.columns["file_path"].cast(pa.string()), batch.columns["pos"]
        if (lowest := pc.min(positions).as_py()) is not None and lowest < 0:
            reason = f"The delete file {path} contains a negative position ({lowest})"
            raise UnreadableFile("corrupt_file", reason)
        for file in pc.unique(files).to_pylist():
            file_positions = positions.filter(pc.equal(files, file)).drop_null()
            by_file.setdefault(file, BitMap64()).update(file_positions.to_pylist())
    return by_file


def _positions_of(data_path: str, by_file: Mapping[str, BitMap64]) -> BitMap64:
    """The deleted positions of a data file; `data_path` may be only the end of its path."""
    if data_path in by_file:
        return by_file[data_path]
    matches = [path for path in by_file if path.endswith(f"/{data_path}")]
    return by_file[matches[0]] if len(matches) == 1 else BitMap64()
