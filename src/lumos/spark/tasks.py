"""Runs Spark tasks with rows of a table as input, instead of values in the code of the task.

Spark Connect limits the size of code and sends it to every executor. A row is only sent to the task
that needs it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
)  # fmt: skip

from lumos.spark.arrays import arrow_array
from lumos.spark.session import is_local

# Several tasks per core, so that one slow folder does not delay the rest.
_TASKS_PER_CORE: Final = 4
_MAX_TASKS: Final = 256

_PARALLELISM: Final = "spark.sql.leafNodeDefaultParallelism"
# Spark sends tables of up to 48 MB as one message, and partitions larger tables differently.
_MAX_LOCAL_BYTES: Final = 16 * 1024 * 1024
_SPARK_TYPES: Final[dict[pa.DataType, DataType]] = {
    pa.int64(): LongType(),
    pa.string(): StringType(),
    pa.bool_(): BooleanType(),
    pa.binary(): BinaryType(),
}

Task: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def task_count(spark: SparkSession) -> int:
    """The number of tasks into which a job is divided."""
    if is_local(spark.conf.get("spark.master", "") or ""):
        return min(_MAX_TASKS, _TASKS_PER_CORE * max(2, os.cpu_count() or 2))
    # The size of a cluster is not known in advance; its configured parallelism is the best guess.
    return min(_MAX_TASKS, int(spark.conf.get("spark.sql.shuffle.partitions") or 64))


def task_rows(
    spark: SparkSession,
    schema: pa.Schema,
    rows: Iterable[Sequence[Any]],
    *,
    tasks: int | None = None,
) -> DataFrame:
    """The rows with their number as column `task`, each in a separate Spark task.

    With fewer `tasks` than rows, a task has several consecutive rows. There must be at least one
    row.
    """
    table = task_table(schema, rows)
    count = table.num_rows
    partitions = min(count, tasks or count)
    partition = F.expr(f"cast(task * {partitions} div {count} as int)")
    return spark.createDataFrame(table).repartitionById(partitions, partition)


def task_table(schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """The rows with their number as first column `task`."""
    columns = list(zip(*rows, strict=True))
    arrays = [
        arrow_array(range(len(columns[0])), pa.int64()),
        *(arrow_array(values, field.type) for values, field in zip(columns, schema, strict=True)),
    ]
    return pa.Table.from_arrays(arrays, names=["task", *schema.names])


def run_tasks(
    spark: SparkSession,
    schema: pa.Schema,
    rows: Sequence[Sequence[Any]],
    function: Task,
    result_schema: pa.Schema,
    *,
    tasks: int | None = None,
) -> list[bytes]:
    """Run `function` on each row; returns the results in the order of the rows.

    `result_schema` is the schema of the columns that `function` yields: the first is `task`, the
    last is the result, and the others are only visible in Spark's UI.
    """
    if not rows:
        return []
    # Not a DDL string, since loading Spark's SQL parser takes a tenth of a second.
    columns = StructType(
        [StructField(each.name, _SPARK_TYPES[each.type]) for each in result_schema]
    )
    table = task_table(schema, rows)
    if table.nbytes > _MAX_LOCAL_BYTES:
        result = task_rows(spark, schema, rows, tasks=tasks).mapInArrow(function, columns).toArrow()
    else:
        with _local_tables_in(spark, min(len(rows), tasks or len(rows))):
            result = spark.createDataFrame(table).mapInArrow(function, columns).toArrow()
    by_task = dict(zip(result["task"].to_pylist(), result.columns[-1].to_pylist(), strict=True))
    return [by_task[number] for number in range(len(rows))]


@contextmanager
def _local_tables_in(spark: SparkSession, partitions: int) -> Iterator[None]:
    """Let Spark divide local tables into this many partitions, in order.

    A repartition would need a shuffle, which takes as long as a small scan.
    """
    before = spark.conf.get(_PARALLELISM, None)
    spark.conf.set(_PARALLELISM, str(partitions))
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_PARALLELISM)
        else:
            spark.conf.set(_PARALLELISM, before)
