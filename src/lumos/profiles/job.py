"""The Spark job of a profile: its tasks read and count rows, and Spark builds sketches.

Distinct values are estimated with Spark's HLL sketches, quantiles with its KLL sketches. A KLL
sketch contains some of the values, so none is built for columns whose values must not be stored.

The lists of files are stored in the state folder, and the job's input table only contains the paths
of these lists. So the driver and the job's closures stay small for any number of files.
"""

import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lumos.discovery.lake.table_paths import TablePaths
from lumos.formats.interface import UnreadableFile
from lumos.model.discovery import Problem
from lumos.profiles.columns import (
    INTEGRAL_KINDS,
    ORDERED_KINDS,
    KnownField,
    ProfiledColumn,
    column_types,
)
from lumos.profiles.measurements import (
    RANKS,
    ColumnTally,
    Estimates,
    FileTotals,
    ProfileResult,
    Sketches,
    UnitMeasurement,
)
from lumos.profiles.plan import (
    Division,
    MeasuredUnit,
    MeasurementCache,
    SourceFiles,
    StoredPart,
    divide,
    store_part,
    stored_tasks,
    task_parts,
)
from lumos.profiles.rows import deleted_rows, read_batches
from lumos.profiles.tasks import FileTask, RowBatch
from lumos.profiles.values import column_values
from lumos.spark.problems import MAX_LISTED_IN_TOTAL, ProblemCount, ProblemList
from lumos.spark.tasks import task_count, task_rows
from lumos.storage import DEFAULT_ACCESS, StorageAccess, storage_of
from lumos.storage.polling import polled_files

_HLL_BITS: Final = 12
# With this size, the rank error is about 0.45 % of the rows. With Spark's default of 200, it would
# be 1.3 %, which is too much for the 1st and 99th percentile.
_KLL_SIZE: Final = 1000
_SQL_TYPES: Final = {
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
}


class SketchInput(NamedTuple):
    """The column `name` with the values of a leaf column, from which Spark builds sketches.

    `doubles` is the name of a second column with the values as doubles, if quantiles need them.
    """

    leaf: int
    name: str
    type: pa.DataType
    doubles: str | None
    quantiles: bool

    @property
    def fields(self) -> list[tuple[str, pa.DataType]]:
        """Names and types of the columns for Spark."""
        doubles = [(self.doubles, pa.float64())] if self.doubles else []
        return [(self.name, self.type), *doubles]

    def arrays(self, values: pa.Array) -> list[pa.Array]:
        """Convert the values that `ColumnTally.add` returned to the columns for Spark."""
        array = values
        if pa.types.is_uint64(array.type):
            array = array.view(pa.int64())
        arrays = [array if array.type == self.type else array.cast(self.type)]
        if self.doubles:
            arrays.append(values.cast(pa.float64(), safe=False))
        return arrays

    def aggregates(self) -> list[Column]:
        """The aggregates that build the sketches.

        Doubles are hashed, because HLL does not accept them.
        """
        values = F.col(self.name)
        hashed = F.xxhash64(values) if self.type == pa.float64() else values
        without_nulls = F.when(values.isNotNull(), hashed) if hashed is not values else values
        sketches = [
            F.hll_sketch_agg(without_nulls, F.lit(_HLL_BITS)).alias(f"{self.name}_distinct")
        ]
        if self.quantiles:
            is_integral = self.type == pa.int64() and self.doubles is None
            sketch = F.kll_sketch_agg_bigint if is_integral else F.kll_sketch_agg_double
            quantiles = sketch(F.col(self.doubles or self.name), F.lit(_KLL_SIZE))
            kind = "integers" if is_integral else "numbers"
            sketches.append(quantiles.alias(f"{self.name}_{kind}"))
        return sketches


def sketch_inputs(leaves: Sequence[ProfiledColumn]) -> list[SketchInput]:
    """The columns for which sketches are built."""
    inputs: list[SketchInput] = []
    for number, leaf in enumerate(leaves):
        name = f"v{number}"
        quantiles = leaf.values and leaf.kind in ORDERED_KINDS
        if leaf.kind in INTEGRAL_KINDS:
            inputs.append(SketchInput(number, name, pa.int64(), None, quantiles))
        elif leaf.kind in ("unsigned", "decimal"):
            type = pa.int64() if leaf.kind == "unsigned" else pa.string()
            inputs.append(
                SketchInput(number, name, type, f"d{number}" if quantiles else None, quantiles)
            )
        elif leaf.kind == "float":
            inputs.append(SketchInput(number, name, pa.float64(), None, quantiles))
        elif leaf.kind in ("text", "bytes"):
            type = pa.string() if leaf.kind == "text" else pa.binary()
            inputs.append(SketchInput(number, name, type, None, False))
    return inputs


_SKETCHES_SCHEMA: Final = pa.schema(
    [
        ("leaf", pa.int64()),
        ("distinct", pa.binary()),
        ("integers", pa.binary()),
        ("numbers", pa.binary()),
    ]
)


def estimate(spark: SparkSession, sketches: Iterable[tuple[int, Sketches]]) -> dict[int, Estimates]:
    """The estimates for each column, from all of its sketches."""
    rows = list(sketches)
    if not rows:
        return {}
    columns: list[Sequence[Any]] = [[leaf for leaf, _ in rows]]
    columns += zip(*(each for _, each in rows), strict=True)
    arrays = [
        pa.array(values, each.type) for values, each in zip(columns, _SKETCHES_SCHEMA, strict=True)
    ]
    frame = spark.createDataFrame(pa.Table.from_arrays(arrays, schema=_SKETCHES_SCHEMA))
    return {
        row["leaf"]: Estimates(row["distinct"], tuple(row["integers"] or row["numbers"] or ()))
        for row in _estimates_by_leaf(frame).toArrow().to_pylist()
    }


def _estimates_by_leaf(frame: DataFrame) -> DataFrame:
    """One row per leaf column, with the estimates from its merged sketches."""
    ranks = F.array(*map(F.lit, RANKS))
    integers = _merge_sketches("integers", F.kll_sketch_merge_bigint)
    numbers = _merge_sketches("numbers", F.kll_sketch_merge_double)
    return (
        frame.groupBy("leaf")
        .agg(
            F.hll_union_agg("distinct").alias("distinct"),
            F.collect_list("integers").alias("integers"),
            F.collect_list("numbers").alias("numbers"),
        )
        .select(
            "leaf",
            F.hll_sketch_estimate("distinct").alias("distinct"),
            F.when(F.size("integers") > 0, F.kll_sketch_get_quantile_bigint(integers, ranks)).alias(
                "integers"
            ),
            F.when(F.size("numbers") > 0, F.kll_sketch_get_quantile_double(numbers, ranks)).alias(
                "numbers"
            ),
        )
    )


def _merge_sketches(name: str, merge: Any) -> Column:
    """Merge a list of sketches; Spark has an aggregate for this only since 4.1.2."""
    sketches = F.col(name)
    rest = F.slice(sketches, F.lit(2), F.greatest(F.size(sketches) - 1, F.lit(0)))
    return F.reduce(rest, F.get(sketches, F.lit(0)), lambda one, other: merge(one, other))


# The columns of a unit's totals; the columns with values for sketches follow them.
_TOTALS_COLUMNS: Final = [
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
_TOTALS_SQL: Final = (
    "unit bigint, rows bigint, files bigint, tallies binary, "
    "problems array<struct<path string, reason string, code string, remark boolean>>, "
    "problem_counts array<struct<code string, remark boolean, count bigint>>"
)
_PARTS_SCHEMA: Final = pa.schema(
    [("files", pa.int64()), ("bytes", pa.int64()), ("tasks", pa.string())]
)


class ProgressMarkers(NamedTuple):
    """The folder to which tasks write a marker file for each completed part, to report progress."""

    folder: str
    access: StorageAccess
    job: str

    def write(self, number: int, size: int) -> None:
        """Write the marker of a completed part of `size` bytes."""
        path = f"{self.folder}/{self.job}-{number}-{size}"
        storage_of(self.folder, self.access).write(path, b"")


class ProfileJob(NamedTuple):
    """The parameters of all tasks; their size does not depend on the number of files.

    `fields` are the columns of a table with their names in files. Files of tables are only opened
    below `roots` or, if there are none, below the root of the table.
    """

    leaves: tuple[ProfiledColumn, ...]
    access: StorageAccess
    fields: tuple[KnownField, ...] = ()
    markers: ProgressMarkers | None = None
    parts_access: StorageAccess = DEFAULT_ACCESS
    roots: tuple[str, ...] = ()


def measure(
    spark: SparkSession, job: ProfileJob, parts: Sequence[StoredPart]
) -> dict[int, UnitMeasurement]:
    """Measure all files of the parts, each unit separately."""
    inputs = sketch_inputs(job.leaves)
    fields = [field for each in inputs for field in each.fields]
    schema = pa.schema([*_TOTALS_COLUMNS, *fields])
    sql_schema = ", ".join([_TOTALS_SQL, *(f"{name} {_SQL_TYPES[type]}" for name, type in fields)])
    rows = task_rows(spark, _PARTS_SCHEMA, parts).mapInArrow(
        _part_reader(job, inputs, schema), sql_schema
    )
    measurements = rows.groupBy("unit").agg(
        F.sum("rows").alias("rows"),
        F.sum("files").alias("files"),
        F.collect_list("tallies").alias("tallies"),
        F.slice(F.flatten(F.collect_list("problems")), 1, MAX_LISTED_IN_TOTAL).alias("problems"),
        F.flatten(F.collect_list("problem_counts")).alias("problem_counts"),
        *(sketch for each in inputs for sketch in each.aggregates()),
    )
    return {
        row["unit"]: _measurement_from_row(row, inputs)
        for row in measurements.toArrow().to_pylist()
    }


def _measurement_from_row(row: dict[str, Any], inputs: Sequence[SketchInput]) -> UnitMeasurement:
    first, *other_tallies = map(_decode_tallies, row["tallies"])
    totals = FileTotals(row["rows"], row["files"], first, ProblemList(MAX_LISTED_IN_TOTAL))
    for other in other_tallies:
        totals.add_tallies(other)
    totals.problems.take(
        (Problem(**each) for each in row["problems"]),
        (ProblemCount(**each) for each in row["problem_counts"]),
    )
    sketches = {
        each.leaf: Sketches(*(row.get(f"{each.name}_{kind}") for kind in Sketches._fields))
        for each in inputs
        # Without values, merging KLL sketches would fail.
        if totals.tallies[each.leaf].values
    }
    return UnitMeasurement(totals, sketches)


_decode_tallies: Final = msgspec.msgpack.Decoder(list[ColumnTally]).decode


def _part_reader(
    job: ProfileJob, inputs: Sequence[SketchInput], schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that reads parts, and yields rows with values, then rows with totals."""

    def read(parts: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in parts:
            for part in batch.to_pylist():
                totals_by_unit: dict[int, FileTotals] = {}
                tasks = stored_tasks(part["tasks"], job.parts_access)
                yield from read_tasks(job, tasks, totals_by_unit, inputs, schema)
                for unit, totals in totals_by_unit.items():
                    yield _totals_row(unit, totals, schema)
                if job.markers is not None:
                    job.markers.write(part["task"], part["bytes"])

    return read


def _totals_row(unit: int, totals: FileTotals, schema: pa.Schema) -> pa.RecordBatch:
    problems = totals.problems
    values: list[Any] = [
        unit,
        totals.rows,
        totals.files,
        msgspec.msgpack.encode(totals.tallies),
        list(map(msgspec.structs.asdict, problems.listed)),
        list(map(msgspec.structs.asdict, problems.counts)),
    ]
    types = [field.type for field in schema]
    arrays = [pa.array([value], type) for value, type in zip(values, types, strict=False)]
    empty_columns = [pa.nulls(1, type) for type in types[len(_TOTALS_COLUMNS) :]]
    return pa.RecordBatch.from_arrays([*arrays, *empty_columns], schema=schema)


def read_tasks(
    job: ProfileJob,
    tasks: Iterable[FileTask],
    totals_by_unit: dict[int, FileTotals],
    inputs: Sequence[SketchInput],
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """Read files; yield the values for sketches, and add the counts to the totals of their unit."""
    wanted = column_types(job.leaves)
    for stored_task in tasks:
        task = stored_task._replace(fields=job.fields)
        totals = totals_by_unit.setdefault(
            task.unit, FileTotals(0, 0, [ColumnTally() for _ in job.leaves])
        )
        bad_records = 0
        try:
            resolved = _resolve_paths(task, job.roots)
            storage = storage_of(resolved.path, job.access)
            deleted = (
                deleted_rows(resolved.deletes, resolved.path_in_log, job.access)
                if resolved.deletes
                else None
            )
            for batch in read_batches(resolved, storage, wanted, deleted):
                values = _add_to_totals(job.leaves, batch, task, totals)
                if inputs:
                    arrays = [array for each in inputs for array in each.arrays(values[each.leaf])]
                    others = [pa.nulls(batch.rows, type) for _, type in _TOTALS_COLUMNS[1:]]
                    unit = pa.repeat(task.unit, batch.rows)
                    yield pa.RecordBatch.from_arrays([unit, *others, *arrays], schema=schema)
                bad_records += batch.bad_records
            totals.files += task.portion[0] == 0
            if bad_records:
                reason = f"{bad_records:,} records are not JSON objects and were skipped."
                totals.problems.add(_problem(task, "bad_records", reason, remark=True))
        except UnreadableFile as problem:
            totals.problems.add(_problem(task, problem.code, problem.reason))
        except FileNotFoundError:
            totals.problems.add(_problem(task, "vanished", "The file was removed after the scan."))
        except OSError as problem:
            cause = problem.strerror or str(problem) or type(problem).__name__
            reason = f"The file could not be read: {cause}"
            totals.problems.add(_problem(task, "unreadable", reason))


def _resolve_paths(task: FileTask, roots: tuple[str, ...]) -> FileTask:
    """Resolve the paths of a task; raises UnreadableFile for paths outside of the roots."""
    if not task.table_root:
        return task
    resolve = TablePaths(task.table_root, roots or (task.table_root,)).resolve
    return task._replace(
        path=resolve(task.path),
        deletes=tuple(
            replace(each, path=each.path and resolve(each.path)) for each in task.deletes
        ),
        logs=tuple(map(resolve, task.logs)),
    )


def _add_to_totals(
    leaves: Sequence[ProfiledColumn], batch: RowBatch, task: FileTask, totals: FileTotals
) -> list[pa.Array]:
    """Add a batch to the totals; returns the values of each leaf column in it."""
    totals.rows += batch.rows
    constants = dict(task.constants + task.partitions)
    arrays: list[pa.Array] = []
    for leaf, tally in zip(leaves, totals.tallies, strict=True):
        name = leaf.names[0]
        column = batch.columns.get(name)
        if column is None and name in constants:
            value = constants[name]
            type = pa.binary() if isinstance(value, bytes) else pa.string()
            column = pa.repeat(pa.scalar(value, type), batch.rows)
        arrays.append(tally.add(leaf, column_values(leaf, column, batch.rows)))
    return arrays


def _problem(task: FileTask, code: str, reason: str, *, remark: bool = False) -> Problem:
    return Problem(path=task.path, code=code, reason=reason, remark=remark)


# Increment this to invalidate the measurements that earlier versions of Lumos cached.
_VERSION: Final = 6

# Reports the number of bytes that were read, and the completed share of the work.
ReportRead: TypeAlias = Callable[[int, float], None]


class ProfileLocations(NamedTuple):
    """The access to the files, and the folder `state` with their cached measurements.

    `roots` are the scanned roots; files of tables outside of them are not opened.
    """

    access: StorageAccess
    state: str
    state_access: StorageAccess
    roots: tuple[str, ...] = ()


def measure_files(
    spark: SparkSession,
    files: SourceFiles,
    leaves: Sequence[ProfiledColumn],
    locations: ProfileLocations,
    *,
    fields: Sequence[KnownField] = (),
    keep: bool,
    remeasure: bool,
    report: ReportRead,
) -> ProfileResult:
    """Measure files.

    With `keep`, measurements are cached, and files with cached measurements are not read again,
    unless `remeasure`. `fields` are the columns of a table with their names in files.
    """
    spec = spec_of(leaves)
    cache = MeasurementCache(locations.state, locations.state_access)
    cached = cache.read(spec) if keep and not remeasure else ()
    division = divide(files, cached, leaves=len(leaves))
    new_units = _measure_new_files(spark, files, division, leaves, locations, fields, report)
    if keep:
        cache.replace(division.reused, _measured_units(spec, files, division, new_units))
    parts = [*(unit.measurement for unit in division.reused), *new_units.values()]
    totals = FileTotals(0, 0, [ColumnTally() for _ in leaves], ProblemList(MAX_LISTED_IN_TOTAL))
    for part in parts:
        totals.join(part.totals)
    sketches = [(leaf, each) for part in parts for leaf, each in part.sketches.items()]
    estimated = estimate(spark, sketches)
    return ProfileResult(
        totals.rows,
        totals.files,
        division.files_to_read,
        totals.tallies,
        estimated,
        totals.problems,
    )


def spec_of(leaves: Sequence[ProfiledColumn]) -> str:
    """A hash of the measured columns, and of what is measured of each."""
    lines = [f"{each.names} {each.type} {each.values} {each.top}" for each in leaves]
    text = "\n".join([str(_VERSION), *lines])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _measure_new_files(
    spark: SparkSession,
    files: SourceFiles,
    division: Division,
    leaves: Sequence[ProfiledColumn],
    locations: ProfileLocations,
    fields: Sequence[KnownField],
    report: ReportRead,
) -> dict[int, UnitMeasurement]:
    if not division.files_to_read:
        return {}
    markers = ProgressMarkers(
        f"{locations.state}/under-way", locations.state_access, uuid.uuid4().hex
    )
    with _remove_files_after(markers):
        parts = [
            store_part(
                f"{markers.folder}/{markers.job}.{number}.tasks",
                locations.state_access,
                part.tasks,
                size=part.size,
            )
            for number, part in enumerate(task_parts(files, division, parts=task_count(spark)))
        ]
        job = ProfileJob(
            tuple(leaves),
            locations.access,
            tuple(fields),
            markers,
            locations.state_access,
            locations.roots,
        )
        with _report_markers(markers, report, parts=len(parts)):
            return measure(spark, job, parts)


def _measured_units(
    spec: str, files: SourceFiles, division: Division, new_units: dict[int, UnitMeasurement]
) -> Iterator[MeasuredUnit]:
    identities = files.identities
    sizes = np.frombuffer(files.sizes, np.int64)
    for number, measurement in new_units.items():
        # A unit with files that could not be read is measured again by the next profile.
        if not measurement.totals.problems.failures:
            is_in_unit = np.frombuffer(division.unit_numbers, np.int16) == number
            file_hashes = np.sort(identities[is_in_unit]).astype(">u8").tobytes()
            yield MeasuredUnit(spec, file_hashes, sum(sizes[is_in_unit].tolist()), measurement)


@contextmanager
def _remove_files_after(markers: ProgressMarkers) -> Iterator[None]:
    """At the end, remove the files of this job, and of earlier jobs that were killed."""
    storage = storage_of(markers.folder, markers.access)
    try:
        yield
    finally:
        storage.discard([f"{markers.folder}/{name}" for name in storage.files(markers.folder)])


@contextmanager
def _report_markers(markers: ProgressMarkers, report: ReportRead, *, parts: int) -> Iterator[None]:
    """Report the progress of a job from the marker files of its tasks."""

    def report_files(names: list[str]) -> None:
        suffixes = [name.rpartition("-")[2] for name in names if name.startswith(f"{markers.job}-")]
        # Skip files that are still being written, which have another suffix.
        sizes = [int(size) for size in suffixes if size.isdigit()]
        report(sum(sizes), len(sizes) / parts)

    with polled_files(storage_of(markers.folder, markers.access), markers.folder, report_files):
        yield
