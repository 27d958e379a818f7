"""Cancelling the jobs of a session from another thread."""

import threading

from pyspark.sql import SparkSession

from lumos.spark.session import cancel_jobs


def test_a_running_job_is_cancelled(spark: SparkSession) -> None:
    problems: list[Exception] = []

    def run() -> None:
        try:
            spark.range(10**15).selectExpr("sum(id % 7)").collect()
        except Exception as problem:  # noqa: BLE001 - its kind is Spark's
            problems.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    pause = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    while not tracker.getActiveJobsIds():
        assert thread.is_alive()
        pause.wait(0.05)
    cancel_jobs()
    thread.join(120)
    assert not thread.is_alive()
    assert "cancel" in str(problems[0]).casefold()
