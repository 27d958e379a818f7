"""Rows of work on Spark: who gets which, and what comes back."""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lumos.spark import tasks
from lumos.spark.tasks import Task, run_tasks, task_rows

SCHEMA = pa.schema([("work", pa.binary())])
ANSWERS = pa.schema([("task", pa.int64()), ("answer", pa.binary())])
ROWS = [(str(number).encode(),) for number in range(11)]


def answering() -> Task:
    """A function that is sent to workers as code: they cannot import the tests."""

    def answer(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Each work with the number of the task that got it."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        partition = context.partitionId()
        for batch in batches:
            numbers, works = (batch.column(name).to_pylist() for name in ("task", "work"))
            found = [work + b" in %d" % partition for work in works]
            yield pa.record_batch(
                {"task": pa.array(numbers, pa.int64()), "answer": pa.array(found)}
            )

    return answer


@pytest.mark.parametrize("large", [pytest.param(2**40, id="small"), pytest.param(0, id="large")])
@pytest.mark.parametrize("several", [None, 4])
def test_rows_are_divided_evenly_and_answers_come_in_order(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, large: int, several: int | None
) -> None:
    monkeypatch.setattr(tasks, "_MAX_LOCAL_BYTES", large)
    before = spark.conf.get("spark.sql.leafNodeDefaultParallelism", None)
    found = run_tasks(spark, SCHEMA, ROWS, answering(), ANSWERS, tasks=several)
    works, partitions = zip(*(each.split(b" in ") for each in found), strict=True)
    assert list(works) == [work for (work,) in ROWS]
    sizes = [partitions.count(each) for each in set(partitions)]
    assert len(sizes) == (several or len(ROWS))
    assert max(sizes) - min(sizes) <= 1
    assert spark.conf.get("spark.sql.leafNodeDefaultParallelism", None) == before


def test_no_rows_are_no_job(spark: SparkSession) -> None:
    assert run_tasks(spark, SCHEMA, [], answering(), ANSWERS) == []


def test_every_row_of_a_table_has_a_task_of_its_own(spark: SparkSession) -> None:
    frame = task_rows(spark, SCHEMA, ROWS).mapInArrow(answering(), "task bigint, answer binary")
    assert sorted(frame.toArrow()["answer"].to_pylist()) == sorted(
        b"%d in %d" % (number, number) for number in range(11)
    )
