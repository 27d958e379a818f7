"""Work for Spark as rows of a table: what tasks do travels as data, not inside their code.

Code is one message to Spark Connect, of limited size, and goes to every executor; a row goes to
the one task that needs it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lumos.pipeline.arrays import column


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
    columns = list(zip(*rows, strict=True))
    count = len(columns[0])
    arrays = [
        column(range(count), pa.int64()),
        *(column(values, field.type) for values, field in zip(columns, schema, strict=True)),
    ]
    table = pa.Table.from_arrays(arrays, names=["task", *schema.names])
    several = min(count, tasks or count)
    chosen = F.expr(f"cast(task * {several} div {count} as int)")
    return spark.createDataFrame(table).repartitionById(several, chosen)
