"""The job that measures: tasks read rows and count, Spark sketches, sums come home."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lumos.formats import UnreadableFile
from lumos.model.discovery import Problem
from lumos.pipeline.profiling.columns import Leaf, types_of
from lumos.pipeline.profiling.deletes import deleted_rows
from lumos.pipeline.profiling.reading import Batch, FileTask, batches
from lumos.pipeline.profiling.sketching import Sent, Sketches, sent, sql_schema
from lumos.pipeline.profiling.tallies import Tally
from lumos.pipeline.profiling.values import values_of
from lumos.pipeline.table_paths import TablePaths
from lumos.storage import Access, storage_of

_FIRST: Final = [("unit", pa.int64()), ("facts", pa.binary())]


class Facts(msgspec.Struct, array_like=True):
    """What is known exactly of some files: a tally for each leaf, and which could not be read."""

    rows: int
    files: int
    tallies: list[Tally]
    problems: list[Problem] = []

    def join(self, other: "Facts") -> None:
        """Takes in what is known of other files."""
        self.rows += other.rows
        self.files += other.files
        self.problems += other.problems
        for mine, its in zip(self.tallies, other.tallies, strict=True):
            mine.join(its)


class Measured(msgspec.Struct, array_like=True):
    """All that was measured of one unit; sketches stand by the numbers of their leaves."""

    facts: Facts
    sketches: dict[int, Sketches]


class Marks(NamedTuple):
    """Where tasks of a job leave a mark when they are done, so that somebody sees how far it is."""

    folder: str
    access: Access
    job: str

    def leave(self, number: int, size: int) -> None:
        """Marks a part of so many bytes as done."""
        path = f"{self.folder}/{self.job}-{number}-{size}"
        storage_of(self.folder, self.access).write(path, b"")


class Job(NamedTuple):
    """What all tasks have in common; each does one of `parts`.

    Of a table, files are opened only below `roots`; without any, below the table's own root.
    """

    leaves: tuple[Leaf, ...]
    access: Access
    parts: tuple[tuple[FileTask, ...], ...]
    marks: Marks | None = None
    roots: tuple[str, ...] = ()


def measure(spark: SparkSession, job: Job) -> dict[int, Measured]:
    """Measures all files of a job, each unit for itself."""
    going = sent(job.leaves)
    fields = [*_FIRST, *(field for each in going for field in each.fields)]
    numbers = spark.range(0, len(job.parts), 1, len(job.parts))
    rows = numbers.mapInArrow(_reader(job, going, pa.schema(fields)), sql_schema(fields))
    sketched = rows.groupBy("unit").agg(
        F.collect_list("facts").alias("facts"),
        *(sketch for each in going for sketch in each.aggregates()),
    )
    return {row["unit"]: _measured(row, going) for row in sketched.toArrow().to_pylist()}


def _measured(row: dict[str, Any], going: Sequence[Sent]) -> Measured:
    first, *others = map(_decode, row["facts"])
    for other in others:
        first.join(other)
    sketches = {
        each.leaf: Sketches(*(row.get(f"{each.name}_{kind}") for kind in Sketches._fields))
        for each in going
        # A sketch of nothing tells nothing, and KLL will not even be asked.
        if first.tallies[each.leaf].values
    }
    return Measured(first, sketches)


_decode: Final = msgspec.msgpack.Decoder(Facts).decode


def _reader(
    job: Job, going: Sequence[Sent], schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Reads the parts whose numbers it is given: rows for Spark and, last, what it counted."""

    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from _part(job, number, going, schema)

    return read


def _part(
    job: Job, number: int, going: Sequence[Sent], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    wanted = types_of(job.leaves)
    counted: dict[int, Facts] = {}
    tasks = job.parts[number]
    for task in tasks:
        facts = counted.setdefault(task.unit, Facts(0, 0, [Tally() for _ in job.leaves]))
        bad = 0
        try:
            found = _resolved(task, job.roots)
            storage = storage_of(found.path, job.access)
            deleted = (
                deleted_rows(found.deletes, found.spelled, job.access) if found.deletes else None
            )
            for batch in batches(found, storage, wanted, deleted):
                values = _counted(job.leaves, batch, task, facts)
                if going:
                    arrays = [array for each in going for array in each.arrays(values[each.leaf])]
                    first = [pa.repeat(task.unit, batch.rows), pa.nulls(batch.rows, pa.binary())]
                    yield pa.RecordBatch.from_arrays([*first, *arrays], schema=schema)
                bad += batch.bad
            facts.files += task.portion[0] == 0
            if bad:
                reason = f"{bad:,} records are no JSON objects; they are not counted."
                facts.problems.append(_problem(task, "bad_records", reason, remark=True))
        except UnreadableFile as problem:
            facts.problems.append(_problem(task, problem.code, problem.reason))
        except FileNotFoundError:
            facts.problems.append(_problem(task, "vanished", "The file is gone since the scan."))
        except OSError as problem:
            words = problem.strerror or str(problem) or type(problem).__name__
            reason = f"It could not be read: {words}"
            facts.problems.append(_problem(task, "unreadable", reason))
    for unit, facts in counted.items():
        first = [pa.array([unit], pa.int64()), pa.array([msgspec.msgpack.encode(facts)])]
        rest = [pa.nulls(1, each.type) for each in list(schema)[len(_FIRST) :]]
        yield pa.RecordBatch.from_arrays([*first, *rest], schema=schema)
    if job.marks is not None:
        job.marks.leave(number, sum(task.size // task.portion[1] for task in tasks))


def _resolved(task: FileTask, roots: tuple[str, ...]) -> FileTask:
    """A task whose paths are those to open; raises UnreadableFile where a log leads elsewhere."""
    if not task.near:
        return task
    resolve = TablePaths(task.near, roots or (task.near,)).resolve
    return task._replace(
        path=resolve(task.path),
        deletes=tuple(
            msgspec.structs.replace(each, path=each.path and resolve(each.path))
            for each in task.deletes
        ),
        logs=tuple(map(resolve, task.logs)),
    )


def _counted(leaves: Sequence[Leaf], batch: Batch, task: FileTask, facts: Facts) -> list[pa.Array]:
    """Counts a batch, and gives the values of each leaf in it."""
    facts.rows += batch.rows
    constants = dict(task.constants + task.partitions)
    found: list[pa.Array] = []
    for leaf, tally in zip(leaves, facts.tallies, strict=True):
        name = leaf.names[0]
        column = batch.columns.get(name)
        if column is None and name in constants:
            value = constants[name]
            type = pa.binary() if isinstance(value, bytes) else pa.string()
            column = pa.repeat(pa.scalar(value, type), batch.rows)
        found.append(tally.add(leaf, values_of(leaf, column, batch.rows)))
    return found


def _problem(task: FileTask, code: str, reason: str, *, remark: bool = False) -> Problem:
    return Problem(path=task.path, code=code, reason=reason, remark=remark)
