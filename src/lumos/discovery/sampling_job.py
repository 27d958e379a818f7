"""Samples of databases, taken by tasks."""

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final, Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

from lumos.spark.session import is_local
from lumos.spark.tasks import Task, run_tasks

_PIECES: Final = pa.schema([("piece", pa.binary())])
_ANSWERS: Final = pa.schema([("task", pa.int64()), ("answer", pa.binary())])


class Observer(Protocol):
    """Looks at one piece after the other; it is pickled into tasks."""

    def __call__(self, work: bytes) -> bytes: ...

    def close(self) -> None: ...


def spread(spark: SparkSession, pieces: list[bytes], observer: Observer) -> list[bytes]:
    """What an observer sees of pieces, in their order."""
    rows = [(piece,) for piece in pieces]
    answers = "task bigint, answer binary"
    return run_tasks(spark, _PIECES, rows, _looking(observer), answers, tasks=_tasks(spark))


def _looking(observer: Observer) -> Task:
    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with closing(observer):
            for batch in batches:
                answers = [observer(piece) for piece in batch.column("piece").to_pylist()]
                numbered = [batch.column("task"), pa.array(answers, pa.binary())]
                yield pa.record_batch(numbered, schema=_ANSWERS)

    return look


def _tasks(spark: SparkSession) -> int:
    """Some for each core, since collections differ in size."""
    if is_local(spark.conf.get("spark.master", "") or ""):
        return 4 * max(2, os.cpu_count() or 2)
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 64)
