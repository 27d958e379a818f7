"""Samples databases in Spark tasks."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from lumos.sources.interface import SampleReader
from lumos.spark.tasks import Task, run_tasks, task_count

_TASK_COLUMNS: Final = pa.schema([("task_body", pa.binary())])
_RESULTS: Final = pa.schema([("task", pa.int64()), ("result", pa.binary())])


def run_samples(spark: SparkSession, tasks: list[bytes], reader: SampleReader) -> list[bytes]:
    """Run a reader on sample tasks of a database in Spark; return its results in order."""
    rows = [(task,) for task in tasks]
    return run_tasks(spark, _TASK_COLUMNS, rows, _worker(reader), _RESULTS, tasks=task_count(spark))


def _worker(reader: SampleReader) -> Task:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with closing(reader):
            for batch in batches:
                results = [reader(task) for task in batch.column("task_body").to_pylist()]
                columns = [batch.column("task"), pa.array(results, pa.binary())]
                yield pa.record_batch(columns, schema=_RESULTS)

    return work
