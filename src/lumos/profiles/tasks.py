"""The tasks of a profile, one for each file or portion of a file, and the batches of their rows."""

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

import pyarrow as pa

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.interface import RowDeletes
from lumos.model.types import DataType
from lumos.profiles.columns import KnownField
from lumos.storage import FileStorage, LocalStorage, ReadableFile

# The minimum size of a read from a remote file: smaller reads are not faster.
_MIN_READ_BYTES: Final = 1024 * 1024
# The first read of a remote file, which also returns its size; many files fit into it.
_FIRST_READ_BYTES: Final = 64 * 1024
# The limits of a batch.
_BATCH_BYTES: Final = 32 * 1024 * 1024
_MAX_ROWS: Final = 256 * 1024
_MIN_ROWS: Final = 1024
# The format of a Hudi file slice: a base file with the log files that change its rows.
HUDI_SLICE: Final = "hudi-slice"


class FileTask(NamedTuple):
    """A file to measure, or one of several portions of the file.

    `portion` is the number of the portion and the number of all portions. `names` are the column
    names, for files that do not contain them. `constants` are columns whose values, as text, come
    from a table's metadata; columns in the file take precedence over them. `partitions` are columns
    whose values come from the path; they take precedence over the file, as in Spark. `sample` is
    the share of rows to read, and `max_rows` the maximum number of rows.

    For files of tables, `fields` are the columns with their names in files, `deletes` the deleted
    rows, `path_in_log` the path in the table's log, and `logs` the Hudi log files that change the
    rows of the file. Files outside of `table_root` are only opened below scanned roots: write
    access to a table's log must not give read access to other files that Lumos can read.
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
    max_rows: int | None = None
    fields: tuple[KnownField, ...] = ()
    deletes: tuple[RowDeletes, ...] = ()
    path_in_log: str = ""
    logs: tuple[str, ...] = ()
    table_root: str = ""


class RowBatch(NamedTuple):
    """Consecutive rows of a file, starting with row number `start`.

    `bad_records` is the number of records between them that could not be read. A sample consists of
    about this `share` of the rows.
    """

    start: int
    rows: int
    columns: dict[str, pa.Array]
    bad_records: int = 0
    share: float = 1.0


# Reads the wanted columns, whose types are given by name, from an open file.
FormatReader = Callable[[pa.NativeFile, FileTask, Mapping[str, DataType]], Iterator[RowBatch]]


class ChunksInput(io.RawIOBase):
    """A Python file whose content is an iterator of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._chunk = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        while not self._chunk:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._chunk = memoryview(chunk)
        length = min(len(buffer), len(self._chunk))
        buffer[:length] = self._chunk[:length]
        self._chunk = self._chunk[length:]
        return length


class SeekableFile(io.RawIOBase):
    """A file object over a function that fetches byte ranges."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        self._fetch = fetch
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        self._position = bases[whence] + offset
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        remaining = max(0, self._size - self._position)
        data = self._fetch(self._position, remaining if size < 0 else min(size, remaining))
        self._position += len(data)
        return data


class RangedFile:
    """Reads byte ranges of a remote file.

    The last range is cached, because readers read many small adjacent ranges.
    """

    def __init__(self, file: ReadableFile) -> None:
        self._file = file
        self._start = 0
        self._cached = file.head(_FIRST_READ_BYTES)
        self.size = file.size

    def fetch(self, start: int, length: int) -> bytes:
        end = start + length
        if not (self._start <= start and end <= self._start + len(self._cached)):
            if length >= _MIN_READ_BYTES:
                return self._file.part(start, length)
            self._start = start
            self._cached = self._file.part(start, _MIN_READ_BYTES)
        return self._cached[start - self._start : end - self._start]


@contextmanager
def open_file(storage: FileStorage, path: str) -> Iterator[pa.NativeFile]:
    """Open a file in any storage as an Arrow file."""
    if isinstance(storage, LocalStorage):
        with pa.OSFile(path) as file:
            yield file
        return
    with storage.open(path) as remote:
        ranged = RangedFile(remote)
        with pa.PythonFile(SeekableFile(ranged.fetch, ranged.size), "r") as file:
            yield file


def corrupt_file(problem: Exception) -> UnreadableFile:
    """The error for a file that a library failed to read."""
    reason = f"Its rows cannot be read: {type(problem).__name__}: {problem}"
    return UnreadableFile("corrupt_file", reason)


def batch_rows(bytes_per_row: float) -> int:
    """The number of rows of this size that fit into a batch."""
    return int(max(_MIN_ROWS, min(_MAX_ROWS, _BATCH_BYTES / max(1.0, bytes_per_row))))


def select_row_groups(count: int, task: FileTask) -> tuple[list[int], float]:
    """The row groups of a task's portion and sample, and the share of their rows to read.

    A sample consists of entire row groups, evenly spread over the file. Only if the sample is
    smaller than one row group, a share of its rows is read.
    """
    number, portions = task.portion
    groups = list(range(number * count // portions, (number + 1) * count // portions))
    if task.sample >= 1.0 or not groups:
        return groups, 1.0
    group_count = max(1, round(task.sample * len(groups)))
    selected = [groups[index * len(groups) // group_count] for index in range(group_count)]
    return selected, min(1.0, task.sample * len(groups) / group_count)
