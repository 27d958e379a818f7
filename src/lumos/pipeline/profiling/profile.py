"""A profile of files: what was kept of them, what is measured now, and both together."""

import hashlib
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final, NamedTuple, TypeAlias

from pyspark.sql import SparkSession

from lumos.model.discovery import Problem
from lumos.pipeline.profiling.columns import Leaf
from lumos.pipeline.profiling.job import Facts, Job, Marks, Measured, measure
from lumos.pipeline.profiling.kept import KeptUnits, Unit
from lumos.pipeline.profiling.planning import Division, SourceFile, dealt, divide, tasks_of
from lumos.pipeline.profiling.sketching import Estimates, estimates
from lumos.pipeline.profiling.tallies import Tally
from lumos.pipeline.session import is_local
from lumos.storage import Access, storage_of

# Raised whenever what is kept of earlier profiles must not be used any more.
_VERSION: Final = 5
_PARTS_PER_CORE: Final = 4
_MOST_PARTS: Final = 256
_SECONDS_BETWEEN_LOOKS: Final = 0.5

# Is told how many bytes were seen to, and the share of all work that is done.
Watch: TypeAlias = Callable[[int, float], None]


class Place(NamedTuple):
    """Where things lie: the files, and what is kept of profiles of them.

    `roots` are the scanned roots, outside of which no file of a table is opened.
    """

    access: Access
    state: str
    state_access: Access
    roots: tuple[str, ...] = ()


class Profiled(NamedTuple):
    """What was measured of all files; `read` of them now, the others before.

    A tally and, where there are some, estimates for each leaf.
    """

    rows: int
    files: int
    read: int
    tallies: list[Tally]
    estimates: dict[int, Estimates]
    problems: list[Problem]


def profile(
    spark: SparkSession,
    files: Sequence[SourceFile],
    leaves: Sequence[Leaf],
    place: Place,
    *,
    keep: bool,
    anew: bool,
    watch: Watch,
) -> Profiled:
    """Measures files; with `keep`, only those that no earlier profile measured, unless `anew`."""
    spec = spec_of(leaves)
    kept = KeptUnits(place.state, place.state_access)
    known = kept.read(spec) if keep and not anew else ()
    division = divide(files, known, leaves=len(leaves))
    fresh = _measured(spark, division, leaves, place, watch)
    if keep:
        kept.replace(division.kept, _units(spec, division, fresh))
    parts = [*(unit.measured for unit in division.kept), *fresh.values()]
    facts = Facts(0, 0, [Tally() for _ in leaves])
    for part in parts:
        facts.join(part.facts)
    sketches = [(leaf, each) for part in parts for leaf, each in part.sketches.items()]
    read = sum(map(len, division.fresh))
    told = estimates(spark, sketches)
    return Profiled(facts.rows, facts.files, read, facts.tallies, told, facts.problems)


def spec_of(leaves: Sequence[Leaf]) -> str:
    """A hash of what is measured."""
    lines = [f"{each.names} {each.type} {each.values} {each.top}" for each in leaves]
    text = "\n".join([str(_VERSION), *lines])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _measured(
    spark: SparkSession, division: Division, leaves: Sequence[Leaf], place: Place, watch: Watch
) -> dict[int, Measured]:
    parts = dealt(tasks_of(division.fresh), parts=_parts(spark))
    if not division.fresh:
        return {}
    marks = Marks(f"{place.state}/under-way", place.state_access, uuid.uuid4().hex)
    with _watched(marks, watch, parts=len(parts)):
        return measure(spark, Job(tuple(leaves), place.access, parts, marks, place.roots))


def _units(spec: str, division: Division, fresh: dict[int, Measured]) -> Iterator[Unit]:
    for number, group in enumerate(division.fresh):
        measured = fresh.get(number)
        # A file that could not be read is tried again the next time.
        if measured is not None and all(each.remark for each in measured.facts.problems):
            identities = b"".join(sorted(file.identity for file in group))
            yield Unit(spec, identities, sum(file.task.size for file in group), measured)


def _parts(spark: SparkSession) -> int:
    if is_local(spark.conf.get("spark.master", "") or ""):
        return min(_MOST_PARTS, _PARTS_PER_CORE * max(2, os.cpu_count() or 2))
    # Of a cluster nobody knows the size beforehand; its own parallelism is the best guess.
    return min(_MOST_PARTS, int(spark.conf.get("spark.sql.shuffle.partitions") or 64))


@contextmanager
def _watched(marks: Marks, watch: Watch, *, parts: int) -> Iterator[None]:
    """Tells how far a job is, by the marks that its tasks leave."""
    storage = storage_of(marks.folder, marks.access)
    ended = Event()

    def look() -> None:
        while not ended.wait(_SECONDS_BETWEEN_LOOKS):
            try:
                found = storage.files(marks.folder)
            except OSError:
                # Whatever is wrong with the storage, the tasks will say it better.
                continue
            ours = [name.rpartition("-")[2] for name in found if name.startswith(marks.job)]
            # One that is just being written has another ending yet.
            sizes = [int(size) for size in ours if size.isdigit()]
            watch(sum(sizes), len(sizes) / parts)

    thread = Thread(target=look, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        # With them go those of jobs that were killed.
        storage.discard([f"{marks.folder}/{name}" for name in storage.files(marks.folder)])
