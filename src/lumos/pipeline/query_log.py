"""Query logs of any length on Spark: statements are grouped, and only one of each kind is read.

Tasks read pieces of the log and know each statement by its digest. What leaves them is a row of
numbers for each statement, and the text of each that they had not met before.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lumos.model.usage import LogSum, Met, Runs
from lumos.pipeline.arrays import column

_STATEMENTS: Final = pa.schema(
    [
        ("query", pa.binary()),
        ("key", pa.int64()),
        ("reader", pa.string()),
        ("at", pa.int64()),
        ("times", pa.int64()),
        ("bytes", pa.int64()),
        ("rows", pa.int64()),
        # Sums of a day's reads, which count anew in the place of those before.
        ("is_sum", pa.bool_()),
        ("example", pa.binary()),
        # Statements that are not counted: so many `times`, and why.
        ("left_out", pa.string()),
    ]
)
_STATEMENTS_IN_SPARK: Final = (
    "query binary, key bigint, reader string, at bigint, times bigint, bytes bigint, rows bigint, "
    "is_sum boolean, example binary, left_out string"
)
_BATCH: Final = 10_000
_A_DAY: Final = 86_400_000_000
_FEW: Final = 5_000_000
_QUERIES_IN_A_TASK: Final = 250

# Gives the statements of the piece with a number, as rows like those above.
Read: TypeAlias = Callable[[int], Iterable[tuple[Any, ...]]]
# Says what an encoded example means, encoded.
Understand: TypeAlias = Callable[[bytes], bytes]


class QueryLog:
    """The statements of a log, read once."""

    def __init__(self, spark: SparkSession, read: Read, *, pieces: int) -> None:
        self._spark = spark
        numbers = spark.range(0, pieces, 1, max(1, pieces))
        found = numbers.mapInArrow(_reading(read), _STATEMENTS_IN_SPARK)
        self._found = found.withColumn("day", F.expr(f"at div {_A_DAY}")).persist()
        self._statements = self._found.where(F.col("left_out").isNull())

    def close(self) -> None:
        self._found.unpersist()

    def sums(self) -> list[LogSum]:
        """How many statements there are by day, and how many are not counted, by the reason."""
        sums = self._found.groupBy("left_out", "day").agg(
            F.count("*").alias("statements"), F.sum("times").alias("times")
        )
        return [LogSum(**row) for row in sums.toArrow().to_pylist()]

    def met(self, *, most: int) -> list[Met]:
        """The kinds of statements, the most frequent first, and no more than `most`."""
        kinds = (
            self._statements.groupBy("query")
            .agg(
                F.max("example").alias("example"),
                F.sum("times").alias("times"),
                F.min("at").alias("first"),
                F.max("at").alias("last"),
            )
            .orderBy(F.desc("times"), "query")
            .limit(most)
        )
        return [Met(**row) for row in kinds.toArrow().to_pylist()]

    def understood(self, met: Sequence[Met], understand: Understand) -> list[bytes]:
        """What each kind means, found out on executors."""
        examples = pa.table({"example": pa.array([each.example for each in met], pa.binary())})
        tasks = max(2, len(met) // _QUERIES_IN_A_TASK)
        meanings = (
            self._spark.createDataFrame(examples)
            .repartition(tasks)
            .mapInArrow(_understanding(understand), "meaning binary")
        )
        return list(meanings.toArrow()["meaning"].to_pylist())

    def fresh(self, counted: "array[int]") -> "FreshStatements":
        """The statements that are not counted yet, and all sums."""
        # Of two sums of the same reads the larger one is the newer one.
        facts = F.struct("times", "at", "day", "query", "reader", "bytes", "rows", "is_sum")
        fresh = self._statements.groupBy("key").agg(F.max(facts).alias("facts"))
        fresh = fresh.select("key", "facts.*")
        if counted:
            known = self._spark.createDataFrame(
                pa.table({"key": pa.Array.from_buffers(
                    pa.int64(), len(counted), [None, pa.py_buffer(counted)]
                )})
            )  # fmt: skip
            known = F.broadcast(known) if len(counted) <= _FEW else known
            repeated = (F.col("fresh.key") == F.col("known.key")) & ~F.col("is_sum")
            fresh = fresh.alias("fresh").join(known.alias("known"), on=repeated, how="left_anti")
        return FreshStatements(fresh)


class FreshStatements:
    """Statements that count, each once."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame.persist()

    def close(self) -> None:
        self._frame.unpersist()

    def keys(self) -> dict[int, "array[int]"]:
        """What tells the statements of each day from all others."""
        found = self._frame.select("day", "key").toArrow().sort_by("day").combine_chunks()
        keys = memoryview(b"".join(_bytes(chunk) for chunk in found["key"].chunks)).cast("q")
        days: dict[int, array[int]] = {}
        start = 0
        for count in pc.value_counts(found["day"]).to_pylist():
            days[count["values"]] = array("q", keys[start : start + count["counts"]])
            start += count["counts"]
        return days

    def runs(self) -> Iterator[Runs]:
        """How often each kind was run by each reader, day by day."""
        sums = self._frame.groupBy("day", "query", "reader").agg(
            F.sum("times").alias("times"),
            F.sum("bytes").alias("bytes"),
            F.sum("rows").alias("rows"),
            F.max("at").alias("last"),
        )
        for batch in sums.toArrow().sort_by("day").to_batches(_BATCH):
            yield from map(Runs, *(each.to_pylist() for each in batch.columns))


def _bytes(array: pa.Array) -> bytes:
    """Whole numbers, none of them missing, as they lie in memory."""
    return bytes(array.buffers()[1])[array.offset * 8 : (array.offset + len(array)) * 8]


def _reading(read: Read) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def reading(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = iter(read(number))
                while some := list(islice(rows, _BATCH)):
                    yield _batch(some)

    return reading


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    arrays = [
        column(values, field.type)
        for values, field in zip(zip(*rows, strict=True), _STATEMENTS, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_STATEMENTS)


def _understanding(
    understand: Understand,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    schema = pa.schema([("meaning", pa.binary())])

    def understanding(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            meanings = [understand(example) for example in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([column(meanings, pa.binary())], schema=schema)

    return understanding
