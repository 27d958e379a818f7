"""Rows of data files, batch by batch, whatever their format and wherever they lie."""

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Final, NamedTuple

import pyarrow as pa
from pyroaring import BitMap64

from lumos.formats import UnreadableFile
from lumos.formats.tables.interface import Deletes
from lumos.model.types import DataType
from lumos.profiles.column_names import KnownField
from lumos.profiles.deletes import kept_rows
from lumos.storage import LocalStorage, ReadableFile, Storage

# What is read of a remote file at once, at least: one request costs more time than this.
_READ_AHEAD: Final = 1024 * 1024
# What is read of it first, by which its size is told; many files are no longer.
_HEAD: Final = 64 * 1024
# A batch holds no more than about so many bytes, and so many rows.
_BATCH_BYTES: Final = 32 * 1024 * 1024
_MOST_ROWS: Final = 256 * 1024
_LEAST_ROWS: Final = 1024
# Formats that pyarrow reads, which aborts the process on some damaged files.
_READ_IN_CHILD: Final = frozenset({"parquet", "orc"})
# A base file of Hudi with the logs that are laid over it.
HUDI_SLICE: Final = "hudi-slice"


class FileTask(NamedTuple):
    """A file, or one of several portions of it, and what its rows mean.

    `names` are the columns of files that do not name them. `constants` are columns whose value a
    table tells, as text; files that hold them know better. `partitions` are those that the path
    tells, which knows better than files, as it does for Spark. `sample` is
    the share of rows that is wanted, `most_rows` how many at most. Of a table, `fields` are its
    columns by what files call them, `deletes` says which rows count no more, `spelled` is how it
    spells the path, `logs` are what Hudi lays over the file, and `near` is its root: whoever writes
    a log must not lead elsewhere with our rights.
    """

    path: str
    size: int
    format: str
    unit: int
    names: tuple[str, ...] = ()
    constants: tuple[tuple[str, str | bytes | None], ...] = ()
    partitions: tuple[tuple[str, str | None], ...] = ()
    portion: tuple[int, int] = (0, 1)
    sample: float = 1.0
    most_rows: int | None = None
    fields: tuple[KnownField, ...] = ()
    deletes: tuple[Deletes, ...] = ()
    spelled: str = ""
    table: str = ""
    logs: tuple[str, ...] = ()
    near: str = ""


class Batch(NamedTuple):
    """Some rows of a file, the first of which is row number `start` of it.

    Between them stood `bad` records, which are none. About a `share` of them is wanted.
    """

    start: int
    rows: int
    columns: dict[str, pa.Array]
    bad: int = 0
    share: float = 1.0


# Reads the wanted columns of an opened file, by their types.
Read = Callable[[pa.NativeFile, FileTask, Mapping[str, DataType]], Iterator[Batch]]


class SeekableFile(io.RawIOBase):
    """A file of so many bytes over a function that fetches ranges of it."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        self._fetch = fetch
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        self._position = bases[whence] + offset
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        left = max(0, self._size - self._position)
        data = self._fetch(self._position, left if size < 0 else min(size, left))
        self._position += len(data)
        return data


class RangedFile:
    """Ranges of a remote file, the last of which is kept: small ones are next to each other."""

    def __init__(self, file: ReadableFile) -> None:
        self._file = file
        self._start = 0
        self._kept = file.head(_HEAD)
        self.size = file.size

    def fetch(self, start: int, length: int) -> bytes:
        end = start + length
        if not (self._start <= start and end <= self._start + len(self._kept)):
            if length >= _READ_AHEAD:
                return self._file.part(start, length)
            self._start = start
            self._kept = self._file.part(start, _READ_AHEAD)
        return self._kept[start - self._start : end - self._start]


@contextmanager
def opened(storage: Storage, path: str) -> Iterator[pa.NativeFile]:
    """A file of any storage as Arrow reads files, as long as it is now."""
    if isinstance(storage, LocalStorage):
        with pa.OSFile(path) as file:
            yield file
        return
    with storage.open(path) as remote:
        ranged = RangedFile(remote)
        with pa.PythonFile(SeekableFile(ranged.fetch, ranged.size), "r") as file:
            yield file


def batches(
    task: FileTask,
    storage: Storage,
    wanted: Mapping[str, DataType],
    deleted: BitMap64 | None = None,
) -> Iterator[Batch]:
    """The rows of a file's portion with those of the wanted columns that it holds.

    Rows with `deleted` numbers are left out. Raises UnreadableFile, or an OSError.
    """
    left = task.most_rows
    in_path = dict(task.partitions)
    own = {name: type for name, type in wanted.items() if name not in in_path}
    try:
        for whole in _read(task, storage, own):
            batch = thinned(whole if deleted is None else _without(whole, deleted))
            if left is not None:
                batch = batch._replace(
                    rows=min(batch.rows, left),
                    columns={name: each[:left] for name, each in batch.columns.items()},
                )
                left -= batch.rows
            yield batch
            if left == 0:
                return
    except UnreadableFile:
        raise
    except Exception as problem:
        if isinstance(problem, OSError) and not _is_of_arrow(problem):
            raise
        # Libraries raise whatever comes to them over damaged files, and none may end a profile.
        raise corrupt(problem) from None


def corrupt(problem: Exception) -> UnreadableFile:
    """The error for a file over which a library raised this one."""
    reason = f"Its rows cannot be read: {type(problem).__name__}: {problem}"
    return UnreadableFile("corrupt_file", reason)


def _is_of_arrow(problem: OSError) -> bool:
    """Whether it is Arrow's word for data that is cut off, and not a storage's for its troubles."""
    return type(problem) is OSError and problem.errno is None


def _read(task: FileTask, storage: Storage, wanted: Mapping[str, DataType]) -> Iterator[Batch]:
    if task.format == HUDI_SLICE:
        from lumos.profiles.hudi_slices import read_slice

        yield from read_slice(task, storage, wanted)
        return
    read = _reader_of(task.format)
    if task.format not in _READ_IN_CHILD:
        with opened(storage, task.path) as file:
            yield from read(file, task, wanted)
        return
    from lumos.profiles.reader_process import read_in_child

    if isinstance(storage, LocalStorage):
        yield from read_in_child(read, task, wanted, None)
        return
    with storage.open(task.path) as remote:
        yield from read_in_child(read, task, wanted, RangedFile(remote))


def _without(batch: Batch, deleted: BitMap64) -> Batch:
    kept = kept_rows(batch.start, batch.rows, deleted)
    if kept is None:
        return batch
    columns = {name: array.filter(kept) for name, array in batch.columns.items()}
    return batch._replace(rows=kept.true_count, columns=columns)


def batch_rows(bytes_per_row: float) -> int:
    """How many rows of that size make a batch."""
    return int(max(_LEAST_ROWS, min(_MOST_ROWS, _BATCH_BYTES / max(1.0, bytes_per_row))))


def chosen(count: int, task: FileTask) -> tuple[list[int], float]:
    """Which of a file's row groups belong to the portion and its sample, and the share of rows.

    A sample takes whole row groups, spread evenly; rows only where one group is too much.
    """
    number, portions = task.portion
    mine = list(range(number * count // portions, (number + 1) * count // portions))
    if task.sample >= 1.0 or not mine:
        return mine, 1.0
    wanted = max(1, round(task.sample * len(mine)))
    some = [mine[index * len(mine) // wanted] for index in range(wanted)]
    return some, min(1.0, task.sample * len(mine) / wanted)


def thinned(batch: Batch) -> Batch:
    """The wanted share of the rows, evenly spread over the file, whose first row is one of them."""
    share, first = batch.share, batch.start
    if share >= 1.0:
        return batch
    kept = [
        row
        for row in range(batch.rows)
        if first + row == 0 or int((first + row) * share) > int((first + row - 1) * share)
    ]
    indices = pa.array(kept, pa.int64())
    columns = {name: array.take(indices) for name, array in batch.columns.items()}
    return batch._replace(rows=len(kept), columns=columns)


def _reader_of(format: str) -> Read:
    if format not in _READERS:
        raise UnreadableFile("unsupported_format", f"Rows of {format} files are not read.")
    module, name = _READERS[format]
    read: Read = getattr(import_module(f"lumos.profiles.{module}"), name)
    return read


# Each brings libraries of its own, which only its files need.
_READERS: Final = {
    "parquet": ("column_files", "read_parquet"),
    "orc": ("column_files", "read_orc"),
    "avro": ("record_files", "read_avro"),
    "json": ("record_files", "read_json"),
    "csv": ("text_files", "read_csv"),
}
