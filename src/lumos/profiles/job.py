"""The job that measures: tasks read rows and count, Spark sketches, sums come home.

Tasks travel as rows that say where the files to read are written down, so that the driver and the
code of the job stay small however many files there are.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lumos.discovery.table_paths import TablePaths
from lumos.formats import UnreadableFile
from lumos.model.discovery import Problem
from lumos.profiles.column_names import KnownField
from lumos.profiles.columns import Leaf, types_of
from lumos.profiles.deletes import deleted_rows
from lumos.profiles.rows import Batch, FileTask, batches
from lumos.profiles.sketches import Sent, Sketches, sent, sql_schema
from lumos.profiles.stored_tasks import StoredPart, stored_tasks
from lumos.profiles.tallies import Tally
from lumos.profiles.values import values_of
from lumos.spark.problems import MOST_OF_ALL, ProblemCount, ProblemList
from lumos.spark.tasks import task_rows
from lumos.storage import USUAL, Access, storage_of

# What a task counts of a unit's files, beside the values that Spark sketches.
_FIRST: Final = [
    ("unit", pa.int64()),
    ("rows", pa.int64()),
    ("files", pa.int64()),
    ("tallies", pa.binary()),
    ("problems", pa.list_(pa.struct([
        ("path", pa.string()), ("reason", pa.string()), ("code", pa.string()),
        ("remark", pa.bool_()),
    ]))),
    ("problem_counts", pa.list_(pa.struct([
        ("code", pa.string()), ("remark", pa.bool_()), ("count", pa.int64()),
    ]))),
]  # fmt: skip
_FIRST_IN_SPARK: Final = (
    "unit bigint, rows bigint, files bigint, tallies binary, "
    "problems array<struct<path string, reason string, code string, remark boolean>>, "
    "problem_counts array<struct<code string, remark boolean, count bigint>>"
)
_PARTS: Final = pa.schema([("files", pa.int64()), ("bytes", pa.int64()), ("tasks", pa.string())])


class Facts(msgspec.Struct, array_like=True):
    """What is known exactly of some files: a tally for each leaf, and which could not be read."""

    rows: int
    files: int
    tallies: list[Tally]
    problems: ProblemList = msgspec.field(default_factory=ProblemList)

    def join(self, other: "Facts") -> None:
        """Takes in what is known of other files."""
        self.rows += other.rows
        self.files += other.files
        self.problems.join(other.problems)
        self.add_tallies(other.tallies)

    def add_tallies(self, others: Sequence[Tally]) -> None:
        """Takes in what was counted of other files."""
        for mine, its in zip(self.tallies, others, strict=True):
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
    """What all tasks have in common: nothing in here grows with the number of files.

    `fields` are the columns of a table by what its files call them. Its files are opened only below
    `roots`; without any, below the table's own root.
    """

    leaves: tuple[Leaf, ...]
    access: Access
    fields: tuple[KnownField, ...] = ()
    marks: Marks | None = None
    parts_access: Access = USUAL
    roots: tuple[str, ...] = ()


def measure(spark: SparkSession, job: Job, parts: Sequence[StoredPart]) -> dict[int, Measured]:
    """Measures all files of some parts, each unit for itself."""
    going = sent(job.leaves)
    values = [field for each in going for field in each.fields]
    schema = pa.schema([*_FIRST, *values])
    in_spark = ", ".join(filter(None, (_FIRST_IN_SPARK, sql_schema(values))))
    rows = task_rows(spark, _PARTS, parts).mapInArrow(_reader(job, going, schema), in_spark)
    sketched = rows.groupBy("unit").agg(
        F.sum("rows").alias("rows"),
        F.sum("files").alias("files"),
        F.collect_list("tallies").alias("tallies"),
        F.slice(F.flatten(F.collect_list("problems")), 1, MOST_OF_ALL).alias("problems"),
        F.flatten(F.collect_list("problem_counts")).alias("problem_counts"),
        *(sketch for each in going for sketch in each.aggregates()),
    )
    return {row["unit"]: _measured(row, going) for row in sketched.toArrow().to_pylist()}


def _measured(row: dict[str, Any], going: Sequence[Sent]) -> Measured:
    first, *others = map(_decode_tallies, row["tallies"])
    facts = Facts(row["rows"], row["files"], first, ProblemList(MOST_OF_ALL))
    for other in others:
        facts.add_tallies(other)
    facts.problems.take(
        (Problem(**each) for each in row["problems"]),
        (ProblemCount(**each) for each in row["problem_counts"]),
    )
    sketches = {
        each.leaf: Sketches(*(row.get(f"{each.name}_{kind}") for kind in Sketches._fields))
        for each in going
        # A sketch of nothing tells nothing, and KLL will not even be asked.
        if facts.tallies[each.leaf].values
    }
    return Measured(facts, sketches)


_decode_tallies: Final = msgspec.msgpack.Decoder(list[Tally]).decode


def _reader(
    job: Job, going: Sequence[Sent], schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Reads the parts that it is given: rows for Spark and, last, what it counted."""

    def read(parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in parts:
            for part in batch.to_pylist():
                counted: dict[int, Facts] = {}
                tasks = stored_tasks(part["tasks"], job.parts_access)
                yield from read_tasks(job, tasks, counted, going, schema)
                yield from (_row(unit, facts, schema) for unit, facts in counted.items())
                if job.marks is not None:
                    job.marks.leave(part["task"], part["bytes"])

    return read


def _row(unit: int, facts: Facts, schema: pa.Schema) -> pa.RecordBatch:
    problems = facts.problems
    first: list[Any] = [
        unit,
        facts.rows,
        facts.files,
        msgspec.msgpack.encode(facts.tallies),
        list(map(msgspec.structs.asdict, problems.listed)),
        list(map(msgspec.structs.asdict, problems.counts)),
    ]
    types = [field.type for field in schema]
    arrays = [pa.array([value], type) for value, type in zip(first, types, strict=False)]
    rest = [pa.nulls(1, type) for type in types[len(_FIRST) :]]
    return pa.RecordBatch.from_arrays([*arrays, *rest], schema=schema)


def read_tasks(
    job: Job,
    tasks: Iterable[FileTask],
    counted: dict[int, Facts],
    going: Sequence[Sent],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """Gives the values that go to Spark, and adds what is counted to the facts of each unit."""
    wanted = types_of(job.leaves)
    for bare in tasks:
        task = bare._replace(fields=job.fields)
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
                    others = [pa.nulls(batch.rows, type) for _, type in _FIRST[1:]]
                    first = [pa.repeat(task.unit, batch.rows), *others]
                    yield pa.RecordBatch.from_arrays([*first, *arrays], schema=schema)
                bad += batch.bad
            facts.files += task.portion[0] == 0
            if bad:
                reason = f"{bad:,} records are no JSON objects; they are not counted."
                facts.problems.add(_problem(task, "bad_records", reason, remark=True))
        except UnreadableFile as problem:
            facts.problems.add(_problem(task, problem.code, problem.reason))
        except FileNotFoundError:
            facts.problems.add(_problem(task, "vanished", "The file is gone since the scan."))
        except OSError as problem:
            words = problem.strerror or str(problem) or type(problem).__name__
            reason = f"It could not be read: {words}"
            facts.problems.add(_problem(task, "unreadable", reason))


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
