"""Work for Spark as rows of a table: what tasks do travels as data, not inside their code.

Code is one message to Spark Connect, of limited size, and goes to every executor; a row goes to
the one task that needs it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lumos.spark.arrays import column

_PARALLELISM: Final = "spark.sql.leafNodeDefaultParallelism"
# Spark keeps tables as one message up to 48 MB, and divides larger ones otherwise.
_LARGE: Final = 16 * 1024 * 1024

Task: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def task_rows(
    spark: SparkSession,
    schema: pa.Schema,
    rows: Iterable[Sequence[Any]],
    *,
    tasks: int | None = None,
) -> DataFrame:
    """Rows with their number `task` before them, each for a Spark task of its own.

    Fewer `tasks` get several neighbouring rows. There must be a row.
    """
    table = task_table(schema, rows)
    count = table.num_rows
    several = min(count, tasks or count)
    chosen = F.expr(f"cast(task * {several} div {count} as int)")
    return spark.createDataFrame(table).repartitionById(several, chosen)


def task_table(schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Rows with their number `task` before them."""
    columns = list(zip(*rows, strict=True))
    arrays = [
        column(range(len(columns[0])), pa.int64()),
        *(column(values, field.type) for values, field in zip(columns, schema, strict=True)),
    ]
    return pa.Table.from_arrays(arrays, names=["task", *schema.names])


def run_tasks(
    spark: SparkSession,
    schema: pa.Schema,
    rows: Sequence[Sequence[Any]],
    do: Task,
    answers: str,
    *,
    tasks: int | None = None,
) -> list[bytes]:
    """What tasks answer to each row, in the order of the rows.

    `answers` are the columns that `do` gives, as Spark writes a schema: the first is `task`, the
    last is what the driver puts together, and those between are for whoever looks at the job.
    """
    if not rows:
        return []
    table = task_table(schema, rows)
    if table.nbytes > _LARGE:
        found = task_rows(spark, schema, rows, tasks=tasks).mapInArrow(do, answers).toArrow()
    else:
        with _local_tables_in(spark, min(len(rows), tasks or len(rows))):
            found = spark.createDataFrame(table).mapInArrow(do, answers).toArrow()
    by_task = dict(zip(found["task"].to_pylist(), found.columns[-1].to_pylist(), strict=True))
    return [by_task[number] for number in range(len(rows))]


@contextmanager
def _local_tables_in(spark: SparkSession, partitions: int) -> Iterator[None]:
    """Lets Spark divide tables that it is given into so many partitions, in their order.

    A repartition would do the same by a shuffle, which takes as long as a small scan.
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
