"""Which files are measured together, which need not be read again, and which task reads what."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from lumos.pipeline.profiling.kept import HASH, Unit
from lumos.pipeline.profiling.reading import FileTask

# A larger file of columns is read by several tasks.
_PORTION: Final = 64 * 1024 * 1024
_DIVIDED: Final = frozenset({"parquet", "orc"})
# Every unit has sketches of every leaf, in memory and in state.
_MOST_UNITS: Final = 64
_MOST_SKETCHED: Final = 2048


class SourceFile(NamedTuple):
    """A file to be measured: a task without a unit, the partition it lies in, what tells it apart.

    `identity` changes whenever its rows do.
    """

    task: FileTask
    partition: str
    identity: bytes


class Division(NamedTuple):
    """Units that are still true, and files to be measured, each list a new unit."""

    kept: list[Unit]
    fresh: list[list[SourceFile]]


def identity_of(*facts: object) -> bytes:
    """A short hash of what tells whether a file's rows are the same."""
    text = "\n".join(map(str, facts))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=HASH).digest()


def divide(files: Sequence[SourceFile], units: Iterable[Unit], *, leaves: int) -> Division:
    """Keeps units all of whose files are as they were; all other files make up new ones."""
    most = max(1, min(_MOST_UNITS, _MOST_SKETCHED // max(1, leaves)))
    present = {file.identity for file in files}
    kept: list[Unit] = []
    covered: set[bytes] = set()
    for unit in sorted(units, key=lambda each: each.size, reverse=True):
        own = unit.identities
        if own <= present and covered.isdisjoint(own):
            kept.append(unit)
            covered |= own
    if len(kept) > most:
        # Many small ones are soon measured again, as one.
        for unit in kept[most // 2 :]:
            covered -= unit.identities
        kept = kept[: most // 2]
    fresh = [file for file in files if file.identity not in covered]
    return Division(kept, _grouped(fresh, most=max(1, most - len(kept))))


def _grouped(files: Sequence[SourceFile], *, most: int) -> list[list[SourceFile]]:
    """Files of neighbouring partitions together, in groups of about the same size."""
    groups: list[list[SourceFile]] = []
    target = sum(file.task.size for file in files) / most
    size = 0.0
    for file in sorted(files, key=lambda each: (each.partition, each.task.path)):
        is_next = groups and file.partition != groups[-1][-1].partition
        if not groups or (size >= target and is_next) or size >= 2 * target > 0:
            groups.append([])
            size = 0.0
        groups[-1].append(file)
        size += file.task.size
    return groups


def tasks_of(groups: Sequence[Sequence[SourceFile]]) -> list[FileTask]:
    """A task for each file, or for each portion of a large one, numbered by group."""
    return [
        task
        for number, group in enumerate(groups)
        for file in group
        for task in _portions(file.task._replace(unit=number))
    ]


def _portions(task: FileTask) -> list[FileTask]:
    if task.format not in _DIVIDED or task.most_rows is not None or task.sample < 1.0:
        return [task]
    count = max(1, math.ceil(task.size / _PORTION))
    return [task._replace(portion=(number, count)) for number in range(count)]


def dealt(tasks: Sequence[FileTask], *, parts: int) -> tuple[tuple[FileTask, ...], ...]:
    """The tasks in about so many parts of the same size; neighbours stay together."""
    sizes = [task.size / task.portion[1] for task in tasks]
    target = sum(sizes) / max(1, parts)
    dealt: list[list[FileTask]] = [[]]
    filled = 0.0
    for task, size in zip(tasks, sizes, strict=True):
        if dealt[-1] and filled + size / 2 > target:
            dealt.append([])
            filled = 0.0
        dealt[-1].append(task)
        filled += size
    return tuple(map(tuple, dealt))


def sampled(files: Sequence[SourceFile], share: float) -> list[SourceFile]:
    """Whole files, always the same ones, that make up a share of the bytes; the last in part."""
    wanted = share * sum(file.task.size for file in files)
    some: list[SourceFile] = []
    for file in sorted(files, key=lambda each: identity_of(each.task.path)):
        if wanted <= 0:
            break
        part = min(1.0, wanted / max(1, file.task.size))
        some.append(file._replace(task=file.task._replace(sample=part)))
        wanted -= file.task.size
    return some
