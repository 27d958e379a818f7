"""Samples of databases, taken by tasks."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final, Protocol, TypeAlias

import pyarrow as pa
from pyspark.sql import SparkSession

from lumos.pipeline.session import is_local

_SCHEMA: Final = pa.schema([("answer", pa.binary())])
_Task: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Observer(Protocol):
    """Looks at one piece after the other; it is pickled into tasks."""

    def __call__(self, work: bytes) -> bytes: ...

    def close(self) -> None: ...


def spread(spark: SparkSession, pieces: list[bytes], observer: Observer) -> list[bytes]:
    """What an observer sees of pieces, in their order."""
    if not pieces:
        return []
    numbers = spark.range(0, len(pieces), 1, min(len(pieces), _tasks(spark)))
    answers = numbers.mapInArrow(_looking(pieces, observer), "answer binary").toArrow()
    found: list[bytes] = answers.column("answer").to_pylist()
    return found


def _looking(pieces: list[bytes], observer: Observer) -> _Task:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with closing(observer):
            for batch in batches:
                answers = [observer(pieces[number]) for number in batch.column(0).to_pylist()]
                yield pa.record_batch([pa.array(answers, pa.binary())], schema=_SCHEMA)

    return look


def _tasks(spark: SparkSession) -> int:
    """Some for each core, since collections differ in size."""
    if is_local(spark.conf.get("spark.master", "") or ""):
        return 4 * max(2, os.cpu_count() or 2)
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 64)
