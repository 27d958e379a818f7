"""Plans which files are measured: cached measurements, units of files, and tasks."""

import gzip
import hashlib
import io
import logging
import math
from array import array
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple, get_type_hints

import msgspec
import numpy as np
import numpy.typing as npt

from lumos.formats.interface import MAX_COUNT
from lumos.profiles.measurements import UnitMeasurement
from lumos.profiles.tasks import FileTask
from lumos.spark.spill import SpillSort, read_blocks, write_blocks
from lumos.storage import StorageAccess, storage_of

_log = logging.getLogger(__name__)

HASH_BYTES: Final = 8
_SUFFIX: Final = ".msgpack"


def decode_identities(hashes: bytes | bytearray) -> npt.NDArray[np.uint64]:
    """Concatenated hashes as numbers in the same order."""
    return np.frombuffer(hashes, ">u8").astype(np.uint64)


class MeasuredUnit(msgspec.Struct, array_like=True, frozen=True):
    """Files that were measured together: their identities, size and measurement.

    `spec` is a hash of the columns and of the values that were measured.
    """

    spec: str
    files: bytes
    size: int
    measurement: UnitMeasurement

    @property
    def identities(self) -> npt.NDArray[np.uint64]:
        """The identities of the files."""
        return decode_identities(self.files)

    @property
    def name(self) -> str:
        """The name of the unit's file in the cache."""
        digest = hashlib.blake2b(self.spec.encode() + self.files, digest_size=16)
        return f"{digest.hexdigest()}{_SUFFIX}"


class MeasurementCache:
    """The measured units of a dataset, in a folder of any storage."""

    def __init__(self, folder: str, access: StorageAccess) -> None:
        self._folder = folder
        self._storage = storage_of(folder, access)

    def read(self, spec: str) -> Iterator[MeasuredUnit]:
        """Yield the units that were measured with this spec."""
        for name in self._storage.files(self._folder):
            if not name.endswith(_SUFFIX):
                continue
            try:
                unit = _decode_unit(self._storage.read(f"{self._folder}/{name}"))
            except (msgspec.MsgspecError, FileNotFoundError):
                _log.warning(
                    "the cached profile %s cannot be read; its files are measured again", name
                )
                continue
            if unit.spec == spec:
                yield unit

    def replace(self, reused: Iterable[MeasuredUnit], new: Iterable[MeasuredUnit]) -> None:
        """Store the new units, and delete all units that are neither new nor reused.

        A new unit replaces a unit of the same name that is damaged or was measured differently.
        """
        names = {unit.name for unit in reused}
        for unit in new:
            names.add(unit.name)
            self._storage.write(f"{self._folder}/{unit.name}", msgspec.msgpack.encode(unit))
        outdated = {*self._storage.files(self._folder)} - names
        self._storage.discard([f"{self._folder}/{name}" for name in outdated])


_decode_unit: Final = msgspec.msgpack.Decoder(MeasuredUnit).decode


# msgspec does not accept a union of text and bytes.
_UNTYPED_FIELDS: Final = {"constants": tuple[tuple[str, Any], ...]}
_TYPES: Final = tuple(
    _UNTYPED_FIELDS.get(name, type)
    for name, type in get_type_hints(FileTask).items()
    if name in FileTask._fields
)
# A stored task: the values of its fields.
TASK_VALUES: Final[Any] = tuple[_TYPES]  # type: ignore[valid-type]

_decode_tasks: Final = msgspec.msgpack.Decoder(list[TASK_VALUES]).decode


class StoredPart(NamedTuple):
    """The tasks of a part, stored at `path`, with their number of files and bytes."""

    files: int
    bytes: int
    path: str


def store_part(
    path: str, access: StorageAccess, tasks: Collection[FileTask], *, size: int
) -> StoredPart:
    """Store the files, `size` bytes in total, that one Spark task reads."""
    data = io.BytesIO()
    with gzip.GzipFile(fileobj=data, mode="wb", compresslevel=1) as packed:
        write_blocks(packed, tasks)
    storage_of(path, access).write(path, data.getvalue())
    return StoredPart(len(tasks), size, path)


def stored_tasks(path: str, access: StorageAccess) -> Iterator[FileTask]:
    """Yield the tasks of a stored part."""
    data = io.BytesIO(storage_of(path, access).read(path))
    with gzip.GzipFile(fileobj=data) as packed:
        yield from map(FileTask._make, read_blocks(packed, _decode_tasks))


# Larger columnar files are read by several tasks.
_PORTION_BYTES: Final = 64 * 1024 * 1024
_DIVISIBLE_FORMATS: Final = frozenset({"parquet", "orc"})
# Every unit has sketches of every column, in memory and in the cache.
_MAX_UNITS: Final = 64
_MAX_SKETCHES: Final = 2048
# More files are spilled to disk; each may have a long path and its own columns.
_MAX_FILES_IN_MEMORY: Final = 10_000
# The maximum number of files of one task, even if they are small.
_MAX_FILES_PER_PART: Final = 10_000
_NO_UNIT: Final = -1


class SourceFile(NamedTuple):
    """A file to measure: a task without a unit, and its partition.

    `identity` changes with every change of the file's rows. `modified` is when the file, or its
    rows in a table, were added, in microseconds since 1970, and `rows` is their number, both if
    known.
    """

    task: FileTask
    partition: str
    identity: bytes
    modified: int | None = None
    rows: int | None = None


class SourceFiles:
    """The files in the order of partition and path; close it after use.

    Many files are spilled to disk. In memory each takes 20 bytes: its identity, its size and the
    number of its partition.
    """

    def __init__(self, files: Iterable[SourceFile]) -> None:
        self._sorted = SpillSort(
            _decode,
            key=lambda file: (file.partition, file.task.path),
            max_in_memory=_MAX_FILES_IN_MEMORY,
        )
        self._identities = bytearray()
        self.sizes = array("q")
        self.partitions = array("i")
        try:
            for file in files:
                self._sorted.add(file)
            self._collect()
        except BaseException:
            self.close()
            raise

    def _collect(self) -> None:
        number, last = -1, None
        for file in self:
            if file.partition != last:
                number, last = number + 1, file.partition
            self._identities += file.identity
            # The size in a table's log may be wrong.
            self.sizes.append(max(0, min(file.task.size, MAX_COUNT)))
            self.partitions.append(number)

    def close(self) -> None:
        """Remove the files on disk."""
        self._sorted.close()

    def __iter__(self) -> Iterator[SourceFile]:
        return self._sorted.in_order()

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def size(self) -> int:
        """The total size in bytes."""
        return sum(self.sizes)

    @property
    def identities(self) -> npt.NDArray[np.uint64]:
        """The identities of the files in order."""
        return decode_identities(self._identities)


def _decode(block: bytes) -> Iterator[SourceFile]:
    for task, partition, identity, modified, rows in _decode_values(block):
        yield SourceFile(FileTask._make(task), partition, identity, modified, rows)


_decode_values: Final = msgspec.msgpack.Decoder(
    list[tuple[TASK_VALUES, str, bytes, int | None, int | None]]
).decode


class Division(NamedTuple):
    """Cached units that are reused, and for each file the number of its new unit.

    The number is negative for files of reused units.
    """

    reused: list[MeasuredUnit]
    unit_numbers: "array[int]"

    @property
    def read(self) -> int:
        """The number of files to measure."""
        return sum(unit >= 0 for unit in self.unit_numbers)


class TaskPart(NamedTuple):
    """The files, or portions of files, that one Spark task reads, and their size."""

    tasks: list[FileTask]
    size: int


def identity_of(*values: object) -> bytes:
    """A short hash of values that change with the rows of a file."""
    text = "\n".join(map(str, values))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES).digest()


def divide(files: SourceFiles, units: Iterable[MeasuredUnit], *, leaves: int) -> Division:
    """Reuse the units whose files are all unchanged; other files form new units."""
    max_units = max(1, min(_MAX_UNITS, _MAX_SKETCHES // max(1, leaves)))
    identities = files.identities
    present = np.sort(identities)
    is_covered = np.zeros(len(present), np.bool_)
    reused: list[MeasuredUnit] = []
    for unit in sorted(units, key=lambda each: each.size, reverse=True):
        positions = _positions(unit.identities, present)
        if positions is not None and not is_covered[positions].any():
            reused.append(unit)
            is_covered[positions] = True
    if len(reused) > max_units:
        # Many small units are measured again as a single unit.
        for unit in reused[max_units // 2 :]:
            is_covered[_positions(unit.identities, present)] = False
        reused = reused[: max_units // 2]
    is_new = ~is_covered[np.searchsorted(present, identities)]
    return Division(reused, _assign_units(files, is_new, max_units=max(1, max_units - len(reused))))


def _positions(
    searched: npt.NDArray[np.uint64], present: npt.NDArray[np.uint64]
) -> npt.NDArray[np.intp] | None:
    """The positions of identities in a sorted array; None if any of them is missing."""
    positions = np.searchsorted(present, searched)
    are_present = (positions < len(present)).all() and (present[positions] == searched).all()
    return positions if are_present else None


def _assign_units(
    files: SourceFiles, is_new: npt.NDArray[np.bool_], *, max_units: int
) -> "array[int]":
    """The numbers of new units of about the same size, with neighbouring partitions together."""
    target = _bytes(files, is_new) / max_units
    groups = array("h")
    number, size, last = _NO_UNIT, 0.0, None
    for is_new_file, file_size, partition in zip(
        is_new, files.sizes, files.partitions, strict=True
    ):
        if not is_new_file:
            groups.append(_NO_UNIT)
            continue
        is_next = partition != last
        if number < 0 or (size >= target > 0 and is_next) or size >= 2 * target > 0:
            number, size = number + 1, 0.0
        groups.append(number)
        size += file_size
        last = partition
    return groups


def _bytes(files: SourceFiles, is_wanted: npt.NDArray[np.bool_]) -> float:
    return float(np.frombuffer(files.sizes, np.int64)[is_wanted].sum(dtype=np.float64))


def task_parts(files: SourceFiles, division: Division, *, parts: int) -> Iterator[TaskPart]:
    """Yield the files to measure in about `parts` or more parts of equal size.

    Neighbouring files stay together. Large files are divided into portions.
    """
    is_new = np.frombuffer(division.unit_numbers, np.int16) >= 0
    target = _bytes(files, is_new) / max(1, parts)
    part: list[FileTask] = []
    filled = 0.0
    for unit, file in zip(division.unit_numbers, files, strict=True):
        if unit < 0:
            continue
        whole = file.task._replace(unit=unit)
        is_divisible = (
            whole.format in _DIVISIBLE_FORMATS and whole.max_rows is None and whole.sample >= 1.0
        )
        count = max(1, math.ceil(whole.size / _PORTION_BYTES)) if is_divisible else 1
        for number in range(count):
            task = whole._replace(portion=(number, count)) if is_divisible else whole
            size = task.size / task.portion[1]
            if part and (filled + size / 2 > target or len(part) >= _MAX_FILES_PER_PART):
                yield TaskPart(part, int(filled))
                part, filled = [], 0.0
            part.append(task)
            filled += size
    if part:
        yield TaskPart(part, int(filled))


def limit_rows(files: SourceFiles, rows: int) -> Iterator[SourceFile]:
    """Yield files with a limit on their rows, about `rows` in total."""
    rows_per_file = -(-rows // max(1, len(files)))
    for file in islice(files, rows):
        yield file._replace(task=file.task._replace(max_rows=rows_per_file))


def sample_files(files: SourceFiles, share: float) -> Iterator[SourceFile]:
    """Yield files with a share of the bytes, always the same ones; the last one is read in part."""
    wanted_bytes = share * files.size
    hashes = b"".join(identity_of(file.task.path) for file in files)
    shares = np.zeros(len(files))
    for index in np.argsort(decode_identities(hashes), kind="stable"):
        if wanted_bytes <= 0:
            break
        size = files.sizes[index]
        shares[index] = min(1.0, wanted_bytes / max(1, size))
        wanted_bytes -= size
    for file_share, file in zip(shares, files, strict=True):
        if file_share:
            yield file._replace(task=file.task._replace(sample=float(file_share)))
