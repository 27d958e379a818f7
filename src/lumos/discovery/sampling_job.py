"""Takes samples of databases in Spark tasks."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from lumos.discovery.lake.job import task_count
from lumos.sources.interface import SampleReader
from lumos.spark.tasks import Task, run_tasks

_TASKS: Final = pa.schema([("piece", pa.binary())])
_ANSWERS: Final = pa.schema([("task", pa.int64()), ("answer", pa.binary())])


def run_samples(spark: SparkSession, pieces: list[bytes], observer: SampleReader) -> list[bytes]:
    """Run an observer on parts of a database in Spark tasks; returns its results in order."""
    rows = [(piece,) for piece in pieces]
    return run_tasks(spark, _TASKS, rows, _worker(observer), _ANSWERS, tasks=task_count(spark))


def _worker(observer: SampleReader) -> Task:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with closing(observer):
            for batch in batches:
                answers = [observer(piece) for piece in batch.column("piece").to_pylist()]
                numbered = [batch.column("task"), pa.array(answers, pa.binary())]
                yield pa.record_batch(numbered, schema=_ANSWERS)

    return work
