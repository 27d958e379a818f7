"""Query logs of any length on Spark: statements are grouped, and one of each kind is analysed.

Tasks read parts of the log and identify statements by digest. They return a row of numbers per
statement, and the text of each kind once.
"""

import uuid
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lumos.model.query_log import DailyStatements, QueryRuns, QuerySample, StatementCount
from lumos.spark.arrays import arrow_array
from lumos.spark.tasks import task_rows
from lumos.storage import StorageAccess, storage_of

_STATEMENTS: Final = pa.schema(
    [
        ("query", pa.binary()),
        ("key", pa.int64()),
        ("reader", pa.string()),
        ("at", pa.int64()),
        ("times", pa.int64()),
        ("bytes", pa.int64()),
        ("rows", pa.int64()),
        # Daily totals, which replace earlier totals of the day.
        ("is_sum", pa.bool_()),
        ("example", pa.binary()),
        # Why statements were skipped; `times` is their number.
        ("left_out", pa.string()),
    ]
)
_STATEMENTS_DDL: Final = (
    "query binary, key bigint, reader string, at bigint, times bigint, bytes bigint, rows bigint, "
    "is_sum boolean, example binary, left_out string"
)
_BATCH_SIZE: Final = 10_000
_DAY_MICROSECONDS: Final = 86_400_000_000
_BROADCAST_LIMIT: Final = 5_000_000
_QUERIES_PER_TASK: Final = 250
# An encoded piece of a log; path and start are for debugging.
_PIECES: Final = pa.schema([("path", pa.string()), ("start", pa.int64()), ("piece", pa.binary())])
_KEY_FILES: Final = pa.schema([("path", pa.string()), ("keys", pa.int64())])
_KEY_BYTES: Final = 8
# Approximate number of keys per file.
_KEYS_PER_FILE: Final = 1_000_000

# Path, start offset, encoded piece.
PieceRow: TypeAlias = tuple[str, int, bytes]
# Returns the statements of an encoded piece as rows of _STATEMENTS.
Read: TypeAlias = Callable[[bytes], Iterable[tuple[Any, ...]]]
# Maps an encoded example to its encoded meaning.
Understand: TypeAlias = Callable[[bytes], bytes]


class KeyFolder(NamedTuple):
    """A folder for keys of counted statements that executors can read."""

    path: str
    access: StorageAccess


class QueryLog:
    """The statements of a log on Spark, read once."""

    def __init__(
        self, spark: SparkSession, read: Read, pieces: Sequence[PieceRow], keys: KeyFolder
    ) -> None:
        self._spark = spark
        self._keys = keys
        found = (
            task_rows(spark, _PIECES, pieces).mapInArrow(_read_task(read), _STATEMENTS_DDL)
            if pieces
            else spark.createDataFrame(_STATEMENTS.empty_table())
        )
        self._found = found.withColumn("day", F.expr(f"at div {_DAY_MICROSECONDS}")).persist()
        self._statements = self._found.where(F.col("left_out").isNull())

    def close(self) -> None:
        self._found.unpersist()
        storage = storage_of(self._keys.path, self._keys.access)
        # Also removes files that killed processes left.
        storage.discard([f"{self._keys.path}/{name}" for name in storage.files(self._keys.path)])

    def sums(self) -> list[StatementCount]:
        """Statements per day, and skipped ones by reason."""
        sums = self._found.groupBy("left_out", "day").agg(
            F.count("*").alias("statements"), F.sum("times").alias("times")
        )
        return [StatementCount(**row) for row in sums.toArrow().to_pylist()]

    def met(self, *, most: int) -> list[QuerySample]:
        """The `most` frequent kinds of statements."""
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
        return [QuerySample(**row) for row in kinds.toArrow().to_pylist()]

    def understood(self, met: Sequence[QuerySample], understand: Understand) -> list[bytes]:
        """The encoded meaning of each kind, computed on executors."""
        examples = pa.table({"example": pa.array([each.example for each in met], pa.binary())})
        tasks = max(2, len(met) // _QUERIES_PER_TASK)
        meanings = (
            self._spark.createDataFrame(examples)
            .repartition(tasks)
            .mapInArrow(_understand_task(understand), "meaning binary")
        )
        return list(meanings.toArrow()["meaning"].to_pylist())

    def fresh(self, counted: Iterable[bytes]) -> "NewStatementsOnSpark":
        """The statements that were not counted before, and all daily totals.

        `counted` are keys of counted statements, eight bytes each, in chunks of any length.
        """
        # Of two totals of the same reads, the larger one is newer.
        facts = F.struct("times", "at", "day", "query", "reader", "bytes", "rows", "is_sum")
        fresh = self._statements.groupBy("key").agg(F.max(facts).alias("facts"))
        fresh = fresh.select("key", "facts.*")
        files = list(self._key_files(counted))
        if not files:
            return NewStatementsOnSpark(fresh.withColumn("is_new", F.lit(True)))
        known = task_rows(self._spark, _KEY_FILES, files)
        known = known.mapInArrow(_keys_in(self._keys.access), "key bigint").distinct()
        if sum(keys for _, keys in files) <= _BROADCAST_LIMIT:
            known = F.broadcast(known)
        known = known.withColumn("is_known", F.lit(True))
        fresh = fresh.join(known, on="key", how="left")
        fresh = fresh.withColumn("is_new", F.col("is_known").isNull()).drop("is_known")
        return NewStatementsOnSpark(fresh.where("is_new or is_sum"))

    def _key_files(self, counted: Iterable[bytes]) -> Iterator[tuple[str, int]]:
        """Write keys to files that executors can read; yield each path with its number of keys."""
        storage = storage_of(self._keys.path, self._keys.access)
        for part in _rechunk(counted, _KEYS_PER_FILE * _KEY_BYTES):
            path = f"{self._keys.path}/{uuid.uuid4().hex}.keys"
            storage.write(path, part)
            yield path, len(part) // _KEY_BYTES


class NewStatementsOnSpark:
    """Statements that have not been counted before, on Spark."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame.persist()

    def close(self) -> None:
        self._frame.unpersist()

    def days(self) -> list[DailyStatements]:
        """The number of statements per day, sorted by day."""
        days = self._frame.groupBy("day").agg(
            F.count("*").alias("statements"), F.count_if("is_new").alias("new")
        )
        return sorted(DailyStatements(**row) for row in days.toArrow().to_pylist())

    def keys(self, first: int, last: int) -> dict[int, "array[int]"]:
        """The keys of the statements of each day in a period."""
        selected = self._between(first, last).select("day", "key")
        found = selected.toArrow().sort_by("day").combine_chunks()
        keys = memoryview(b"".join(_bytes(chunk) for chunk in found["key"].chunks)).cast("q")
        days: dict[int, array[int]] = {}
        start = 0
        for count in pc.value_counts(found["day"]).to_pylist():
            days[count["values"]] = array("q", keys[start : start + count["counts"]])
            start += count["counts"]
        return days

    def runs(self, first: int, last: int) -> Iterator[QueryRuns]:
        """Runs of each kind of statement by each reader in a period, sorted by day."""
        sums = (
            self._between(first, last)
            .groupBy("day", "query", "reader")
            .agg(
                F.sum("times").alias("times"),
                F.sum("bytes").alias("bytes"),
                F.sum("rows").alias("rows"),
                F.max("at").alias("last"),
            )
        )
        for batch in sums.toArrow().sort_by("day").to_batches(_BATCH_SIZE):
            yield from map(QueryRuns, *(each.to_pylist() for each in batch.columns))

    def _between(self, first: int, last: int) -> DataFrame:
        return self._frame.where(F.col("day").between(first, last))


def _rechunk(parts: Iterable[bytes], length: int) -> Iterator[bytes]:
    """The same bytes in chunks of about a length."""
    chunk = bytearray()
    for part in parts:
        chunk += part
        if len(chunk) >= length:
            yield bytes(chunk)
            chunk.clear()
    if chunk:
        yield bytes(chunk)


def _keys_in(
    access: StorageAccess,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    schema = pa.schema([("key", pa.int64())])

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column("path").to_pylist():
                data = storage_of(path, access).read(path)
                count = len(data) // _KEY_BYTES
                keys = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(data)])
                yield pa.RecordBatch.from_arrays([keys], schema=schema)

    return read


def _bytes(array: pa.Array) -> bytes:
    """The memory of an int64 array without nulls."""
    return bytes(array.buffers()[1])[array.offset * 8 : (array.offset + len(array)) * 8]


def _read_task(read: Read) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def reading(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in batch.column("piece").to_pylist():
                rows = iter(read(piece))
                while some := list(islice(rows, _BATCH_SIZE)):
                    yield _batch(some)

    return reading


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    arrays = [
        arrow_array(values, field.type)
        for values, field in zip(zip(*rows, strict=True), _STATEMENTS, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_STATEMENTS)


def _understand_task(
    understand: Understand,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    schema = pa.schema([("meaning", pa.binary())])

    def understanding(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            meanings = [understand(example) for example in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([arrow_array(meanings, pa.binary())], schema=schema)

    return understanding
