"""A profile of files: what was kept of them, what is measured now, and both together."""

import hashlib
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from pyspark.sql import SparkSession

from lumos.profiles.cache import KeptUnits, Unit
from lumos.profiles.column_names import KnownField
from lumos.profiles.columns import Leaf
from lumos.profiles.job import Facts, Job, Marks, Measured, measure
from lumos.profiles.plan import Division, SourceFiles, divide, parts_of
from lumos.profiles.sketches import Estimates, estimates
from lumos.profiles.stored_tasks import store_part
from lumos.profiles.tallies import Tally
from lumos.spark.problems import MOST_OF_ALL, ProblemList
from lumos.spark.session import is_local
from lumos.storage import Access, storage_of

# Raised whenever what is kept of earlier profiles must not be used any more.
_VERSION: Final = 6
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
    problems: ProblemList


def profile(
    spark: SparkSession,
    files: SourceFiles,
    leaves: Sequence[Leaf],
    place: Place,
    *,
    fields: Sequence[KnownField] = (),
    keep: bool,
    remeasure: bool,
    watch: Watch,
) -> Profiled:
    """Measures files; with `keep`, only those that no earlier profile measured, unless `remeasure`.

    `fields` are the columns of a table by what its files call them.
    """
    spec = spec_of(leaves)
    kept = KeptUnits(place.state, place.state_access)
    known = kept.read(spec) if keep and not remeasure else ()
    division = divide(files, known, leaves=len(leaves))
    fresh = _measured(spark, files, division, leaves, place, fields, watch)
    if keep:
        kept.replace(division.kept, _units(spec, files, division, fresh))
    parts = [*(unit.measured for unit in division.kept), *fresh.values()]
    facts = Facts(0, 0, [Tally() for _ in leaves], ProblemList(MOST_OF_ALL))
    for part in parts:
        facts.join(part.facts)
    sketches = [(leaf, each) for part in parts for leaf, each in part.sketches.items()]
    told = estimates(spark, sketches)
    return Profiled(facts.rows, facts.files, division.read, facts.tallies, told, facts.problems)


def spec_of(leaves: Sequence[Leaf]) -> str:
    """A hash of what is measured."""
    lines = [f"{each.names} {each.type} {each.values} {each.top}" for each in leaves]
    text = "\n".join([str(_VERSION), *lines])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _measured(
    spark: SparkSession,
    files: SourceFiles,
    division: Division,
    leaves: Sequence[Leaf],
    place: Place,
    fields: Sequence[KnownField],
    watch: Watch,
) -> dict[int, Measured]:
    if not division.read:
        return {}
    marks = Marks(f"{place.state}/under-way", place.state_access, uuid.uuid4().hex)
    with _cleared(marks):
        parts = [
            store_part(
                f"{marks.folder}/{marks.job}.{number}.tasks",
                place.state_access,
                part.tasks,
                size=part.size,
            )
            for number, part in enumerate(parts_of(files, division, parts=_parts(spark)))
        ]
        job = Job(
            tuple(leaves), place.access, tuple(fields), marks, place.state_access, place.roots
        )
        with _watched(marks, watch, parts=len(parts)):
            return measure(spark, job, parts)


def _units(
    spec: str, files: SourceFiles, division: Division, fresh: dict[int, Measured]
) -> Iterator[Unit]:
    identities = files.identities
    sizes = np.frombuffer(files.sizes, np.int64)
    for number, measured in fresh.items():
        # A file that could not be read is tried again the next time.
        if not measured.facts.problems.failures:
            is_own = np.frombuffer(division.fresh, np.int16) == number
            own = np.sort(identities[is_own]).astype(">u8").tobytes()
            yield Unit(spec, own, sum(sizes[is_own].tolist()), measured)


def _parts(spark: SparkSession) -> int:
    if is_local(spark.conf.get("spark.master", "") or ""):
        return min(_MOST_PARTS, _PARTS_PER_CORE * max(2, os.cpu_count() or 2))
    # Of a cluster nobody knows the size beforehand; its own parallelism is the best guess.
    return min(_MOST_PARTS, int(spark.conf.get("spark.sql.shuffle.partitions") or 64))


@contextmanager
def _cleared(marks: Marks) -> Iterator[None]:
    """Removes what a job leaves in its folder, with what jobs left that were killed."""
    storage = storage_of(marks.folder, marks.access)
    try:
        yield
    finally:
        storage.discard([f"{marks.folder}/{name}" for name in storage.files(marks.folder)])


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
            ours = [name.rpartition("-")[2] for name in found if name.startswith(f"{marks.job}-")]
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
