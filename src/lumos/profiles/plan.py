"""Plans a profile: which cached measurements are reused, and which task reads which files.

The files that have to be measured are divided into units. Each unit is measured and cached
separately.
"""

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
    """Convert concatenated hashes to numbers, which sort like the hashes."""
    return np.frombuffer(hashes, ">u8").astype(np.uint64)


class MeasuredUnit(msgspec.Struct, array_like=True, frozen=True):
    """A unit of files that were measured together: their identities, total size and measurement.

    `spec` is a hash of the measured columns, and of what was measured of each. `files` are the
    encoded identities of the files.
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
    """A list of tasks that is stored at `path`, and the number and total size of their files."""

    files: int
    bytes: int
    path: str


def store_part(
    path: str, access: StorageAccess, tasks: Collection[FileTask], *, size: int
) -> StoredPart:
    """Store the list of files that one Spark task reads; `size` is their total size in bytes."""
    data = io.BytesIO()
    with gzip.GzipFile(fileobj=data, mode="wb", compresslevel=1) as stream:
        write_blocks(stream, tasks)
    storage_of(path, access).write(path, data.getvalue())
    return StoredPart(len(tasks), size, path)


def stored_tasks(path: str, access: StorageAccess) -> Iterator[FileTask]:
    """Yield the tasks of a stored part."""
    data = io.BytesIO(storage_of(path, access).read(path))
    with gzip.GzipFile(fileobj=data) as stream:
        yield from map(FileTask._make, read_blocks(stream, _decode_tasks))


# Larger files in divisible formats are read by several tasks.
_PORTION_BYTES: Final = 64 * 1024 * 1024
_DIVISIBLE_FORMATS: Final = frozenset({"parquet", "orc"})
# Each unit has a sketch for each column; these limits bound their size in memory and in the cache.
_MAX_UNITS: Final = 64
_MAX_SKETCHES: Final = 2048
# More files are spilled to disk, because each may have a long path and its own columns.
_MAX_FILES_IN_MEMORY: Final = 10_000
# The maximum number of files of one task, even if they are small.
_MAX_FILES_PER_PART: Final = 10_000
_NO_UNIT: Final = -1


class SourceFile(NamedTuple):
    """A file that can be measured: its task, without a unit yet, and its partition.

    `identity` changes with every change of the file's rows. `modified` is when the file was written
    or, in a table, when its rows were added, in microseconds since 1970. `modified` and the number
    of `rows` are None if unknown.
    """

    task: FileTask
    partition: str
    identity: bytes
    modified: int | None = None
    rows: int | None = None


class SourceFiles:
    """The files of a dataset, sorted by partition and path; has to be closed after use.

    If there are many files, they are spilled to disk. In memory, each takes 20 bytes: its identity,
    its size and the number of its partition.
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
        number, last_partition = -1, None
        for file in self:
            if file.partition != last_partition:
                number, last_partition = number + 1, file.partition
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
        """The identities of the files, in the order of the files."""
        return decode_identities(self._identities)


def _decode(block: bytes) -> Iterator[SourceFile]:
    for task, partition, identity, modified, rows in _decode_values(block):
        yield SourceFile(FileTask._make(task), partition, identity, modified, rows)


_decode_values: Final = msgspec.msgpack.Decoder(
    list[tuple[TASK_VALUES, str, bytes, int | None, int | None]]
).decode


class Division(NamedTuple):
    """The cached units to reuse, and the number of the new unit of each file.

    The number is negative for files in reused units.
    """

    reused: list[MeasuredUnit]
    unit_numbers: "array[int]"

    @property
    def files_to_read(self) -> int:
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
    """Reuse each unit whose files are all unchanged; the other files form new units."""
    max_units = max(1, min(_MAX_UNITS, _MAX_SKETCHES // max(1, leaves)))
    identities = files.identities
    sorted_identities = np.sort(identities)
    is_covered = np.zeros(len(sorted_identities), np.bool_)
    reused: list[MeasuredUnit] = []
    for unit in sorted(units, key=lambda each: each.size, reverse=True):
        positions = _positions(unit.identities, sorted_identities)
        if positions is not None and not is_covered[positions].any():
            reused.append(unit)
            is_covered[positions] = True
    if len(reused) > max_units:
        # Many small units are measured again as a single unit.
        for unit in reused[max_units // 2 :]:
            is_covered[_positions(unit.identities, sorted_identities)] = False
        reused = reused[: max_units // 2]
    is_new = ~is_covered[np.searchsorted(sorted_identities, identities)]
    return Division(reused, _assign_units(files, is_new, max_units=max(1, max_units - len(reused))))


def _positions(
    identities: npt.NDArray[np.uint64], sorted_identities: npt.NDArray[np.uint64]
) -> npt.NDArray[np.intp] | None:
    """The positions of identities in a sorted array; None if any of them is missing there."""
    positions = np.searchsorted(sorted_identities, identities)
    if not (positions < len(sorted_identities)).all():
        return None
    return positions if (sorted_identities[positions] == identities).all() else None


def _assign_units(
    files: SourceFiles, is_new: npt.NDArray[np.bool_], *, max_units: int
) -> "array[int]":
    """Assign the new files to units of about the same size; returns the unit number of each file.

    Neighbouring partitions are in the same unit.
    """
    target = _bytes(files, is_new) / max_units
    unit_numbers = array("h")
    number, size, last_partition = _NO_UNIT, 0.0, None
    for is_new_file, file_size, partition in zip(
        is_new, files.sizes, files.partitions, strict=True
    ):
        if not is_new_file:
            unit_numbers.append(_NO_UNIT)
            continue
        is_next_partition = partition != last_partition
        if number < 0 or (size >= target > 0 and is_next_partition) or size >= 2 * target > 0:
            number, size = number + 1, 0.0
        unit_numbers.append(number)
        size += file_size
        last_partition = partition
    return unit_numbers


def _bytes(files: SourceFiles, is_selected: npt.NDArray[np.bool_]) -> float:
    return float(np.frombuffer(files.sizes, np.int64)[is_selected].sum(dtype=np.float64))


def task_parts(files: SourceFiles, division: Division, *, parts: int) -> Iterator[TaskPart]:
    """Divide the files to measure into about `parts` parts of equal size, or more.

    Neighbouring files are in the same part. Large files are divided into portions.
    """
    is_new = np.frombuffer(division.unit_numbers, np.int16) >= 0
    target = _bytes(files, is_new) / max(1, parts)
    part: list[FileTask] = []
    part_size = 0.0
    for unit, file in zip(division.unit_numbers, files, strict=True):
        if unit < 0:
            continue
        file_task = file.task._replace(unit=unit)
        is_divisible = (
            file_task.format in _DIVISIBLE_FORMATS
            and file_task.max_rows is None
            and file_task.sample >= 1.0
        )
        count = max(1, math.ceil(file_task.size / _PORTION_BYTES)) if is_divisible else 1
        for number in range(count):
            task = file_task._replace(portion=(number, count)) if is_divisible else file_task
            size = task.size / task.portion[1]
            if part and (part_size + size / 2 > target or len(part) >= _MAX_FILES_PER_PART):
                yield TaskPart(part, int(part_size))
                part, part_size = [], 0.0
            part.append(task)
            part_size += size
    if part:
        yield TaskPart(part, int(part_size))


def limit_rows(files: SourceFiles, rows: int) -> Iterator[SourceFile]:
    """Yield files, each with a limit on its rows, so that about `rows` are read in total."""
    rows_per_file = -(-rows // max(1, len(files)))
    for file in islice(files, rows):
        yield file._replace(task=file.task._replace(max_rows=rows_per_file))


def sample_files(files: SourceFiles, share: float) -> Iterator[SourceFile]:
    """Select files with about this share of all bytes; only a part of the last one is read.

    The selection is always the same for the same files.
    """
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
