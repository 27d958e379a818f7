"""Which files are measured together, which need not be read again, and which task reads what."""

import hashlib
import math
from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from lumos.formats.interface import LARGEST
from lumos.profiles.cache import HASH, Unit, identities_in
from lumos.profiles.rows import FileTask
from lumos.profiles.stored_tasks import TASK_VALUES
from lumos.spark.spill import Pile

# A larger file of columns is read by several tasks.
_PORTION: Final = 64 * 1024 * 1024
_DIVIDED: Final = frozenset({"parquet", "orc"})
# Every unit has sketches of every leaf, in memory and in state.
_MOST_UNITS: Final = 64
_MOST_SKETCHED: Final = 2048
# More files wait on disk; each may tell a long path, and the columns of its own.
_MOST_IN_MEMORY: Final = 10_000
# So many files are read by one task, however small they are.
_MOST_IN_A_PART: Final = 10_000
_NO_UNIT: Final = -1


class SourceFile(NamedTuple):
    """A file to be measured: a task without a unit, the partition it lies in, what tells it apart.

    `identity` changes whenever its rows do.
    """

    task: FileTask
    partition: str
    identity: bytes


class SourceFiles:
    """Files by partition and path, as often as they are wanted; use it in a `with`.

    Many wait on a disk of this machine: memory holds 20 bytes for each of them, which are its
    identity, its size and the number of its partition.
    """

    def __init__(self, files: Iterable[SourceFile]) -> None:
        self._pile = Pile(_decode, key=_partition_and_path, most=_MOST_IN_MEMORY)
        self._identities = bytearray()
        self.sizes = array("q")
        self.partitions = array("i")
        try:
            for file in files:
                self._pile.add(file)
            self._note()
        except BaseException:
            self.close()
            raise

    def _note(self) -> None:
        number, last = -1, None
        for file in self:
            if file.partition != last:
                number, last = number + 1, file.partition
            self._identities += file.identity
            # A log may claim any size.
            self.sizes.append(max(0, min(file.task.size, LARGEST)))
            self.partitions.append(number)

    def close(self) -> None:
        """Removes what waits on disk."""
        self._pile.close()

    def __iter__(self) -> Iterator[SourceFile]:
        return self._pile.in_order()

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(self.sizes)

    @property
    def identities(self) -> npt.NDArray[np.uint64]:
        """What each file is known by, in their order."""
        return identities_in(self._identities)


def _decode(block: bytes) -> Iterator[SourceFile]:
    for task, partition, identity in _decode_values(block):
        yield SourceFile(FileTask._make(task), partition, identity)


_decode_values: Final = msgspec.msgpack.Decoder(list[tuple[TASK_VALUES, str, bytes]]).decode


def _partition_and_path(file: SourceFile) -> tuple[str, str]:
    return file.partition, file.task.path


class Division(NamedTuple):
    """Units that are still true, and for each file the number of the new unit that measures it.

    Files of units that are still true have no number: it is below 0.
    """

    kept: list[Unit]
    fresh: "array[int]"

    @property
    def read(self) -> int:
        """How many files are to be measured."""
        return sum(unit >= 0 for unit in self.fresh)


class TaskPart(NamedTuple):
    """What one Spark task reads: so many files, or portions of them, of so many bytes."""

    tasks: list[FileTask]
    size: int


def identity_of(*facts: object) -> bytes:
    """A short hash of what tells whether a file's rows are the same."""
    text = "\n".join(map(str, facts))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=HASH).digest()


def divide(files: SourceFiles, units: Iterable[Unit], *, leaves: int) -> Division:
    """Keeps units all of whose files are as they were; all other files make up new ones."""
    most = max(1, min(_MOST_UNITS, _MOST_SKETCHED // max(1, leaves)))
    identities = files.identities
    present = np.sort(identities)
    is_covered = np.zeros(len(present), np.bool_)
    kept: list[Unit] = []
    for unit in sorted(units, key=lambda each: each.size, reverse=True):
        at = _positions(unit.identities, present)
        if at is not None and not is_covered[at].any():
            kept.append(unit)
            is_covered[at] = True
    if len(kept) > most:
        # Many small ones are soon measured again, as one.
        for unit in kept[most // 2 :]:
            is_covered[_positions(unit.identities, present)] = False
        kept = kept[: most // 2]
    is_fresh = ~is_covered[np.searchsorted(present, identities)]
    return Division(kept, _grouped(files, is_fresh, most=max(1, most - len(kept))))


def _positions(
    wanted: npt.NDArray[np.uint64], present: npt.NDArray[np.uint64]
) -> npt.NDArray[np.intp] | None:
    """Where some identities stand among all in order; nothing where one is not there."""
    at = np.searchsorted(present, wanted)
    is_there = (at < len(present)).all() and (present[at] == wanted).all()
    return at if is_there else None


def _grouped(files: SourceFiles, is_fresh: npt.NDArray[np.bool_], *, most: int) -> "array[int]":
    """Numbers of groups of about the same size; files of neighbouring partitions are together."""
    target = _bytes(files, is_fresh) / most
    groups = array("h")
    number, size, last = _NO_UNIT, 0.0, None
    for fresh, own, partition in zip(is_fresh, files.sizes, files.partitions, strict=True):
        if not fresh:
            groups.append(_NO_UNIT)
            continue
        is_next = partition != last
        if number < 0 or (size >= target > 0 and is_next) or size >= 2 * target > 0:
            number, size = number + 1, 0.0
        groups.append(number)
        size += own
        last = partition
    return groups


def _bytes(files: SourceFiles, is_wanted: npt.NDArray[np.bool_]) -> float:
    return float(np.frombuffer(files.sizes, np.int64)[is_wanted].sum(dtype=np.float64))


def parts_of(files: SourceFiles, division: Division, *, parts: int) -> Iterator[TaskPart]:
    """The files to be measured in about so many parts of the same size, or in more of few files.

    Neighbours stay together. A large file is in portions.
    """
    is_fresh = np.frombuffer(division.fresh, np.int16) >= 0
    target = _bytes(files, is_fresh) / max(1, parts)
    some: list[FileTask] = []
    filled = 0.0
    for unit, file in zip(division.fresh, files, strict=True):
        if unit < 0:
            continue
        for task in _portions(file.task._replace(unit=unit)):
            size = task.size / task.portion[1]
            if some and (filled + size / 2 > target or len(some) >= _MOST_IN_A_PART):
                yield TaskPart(some, int(filled))
                some, filled = [], 0.0
            some.append(task)
            filled += size
    if some:
        yield TaskPart(some, int(filled))


def _portions(task: FileTask) -> list[FileTask]:
    if task.format not in _DIVIDED or task.most_rows is not None or task.sample < 1.0:
        return [task]
    count = max(1, math.ceil(task.size / _PORTION))
    return [task._replace(portion=(number, count)) for number in range(count)]


def limited(files: SourceFiles, rows: int) -> Iterator[SourceFile]:
    """Some rows of each file, no more than `rows` in about all."""
    each = -(-rows // max(1, len(files)))
    for file in islice(files, rows):
        yield file._replace(task=file.task._replace(most_rows=each))


def sampled(files: SourceFiles, share: float) -> Iterator[SourceFile]:
    """Whole files, always the same ones, that make up a share of the bytes; the last in part."""
    wanted = share * files.size
    hashes = b"".join(identity_of(file.task.path) for file in files)
    parts = np.zeros(len(files))
    for at in np.argsort(identities_in(hashes), kind="stable"):
        if wanted <= 0:
            break
        size = files.sizes[at]
        parts[at] = min(1.0, wanted / max(1, size))
        wanted -= size
    for part, file in zip(parts, files, strict=True):
        if part:
            yield file._replace(task=file.task._replace(sample=float(part)))
