"""Query logs of any length on Spark.

Tasks read chunks of the log and identify equal statements by digest. They return one row of numbers
per statement, and an example of each digest, which is analysed once.
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
        ("digest", pa.binary()),
        ("key", pa.int64()),
        ("reader", pa.string()),
        ("at", pa.int64()),
        ("run_count", pa.int64()),
        ("bytes", pa.int64()),
        ("rows", pa.int64()),
        # Whether the row is a daily total, which replaces earlier totals of the day.
        ("is_sum", pa.bool_()),
        ("example", pa.binary()),
        # The reason why statements were skipped; `run_count` is their number.
        ("skip_reason", pa.string()),
    ]
)
_STATEMENTS_DDL: Final = (
    "digest binary, key bigint, reader string, at bigint, run_count bigint, bytes bigint, "
    "rows bigint, is_sum boolean, example binary, skip_reason string"
)
_BATCH_SIZE: Final = 10_000
_DAY_MICROSECONDS: Final = 86_400_000_000
_BROADCAST_LIMIT: Final = 5_000_000
_QUERIES_PER_TASK: Final = 250
# An encoded chunk of a log; path and start are for debugging.
_CHUNKS: Final = pa.schema([("path", pa.string()), ("start", pa.int64()), ("chunk", pa.binary())])
_KEY_FILES: Final = pa.schema([("path", pa.string()), ("keys", pa.int64())])
_KEY_BYTES: Final = 8
# Approximate number of keys per file.
_KEYS_PER_FILE: Final = 1_000_000

# Path, start offset, encoded chunk.
ChunkRow: TypeAlias = tuple[str, int, bytes]
# Returns the statements of an encoded chunk as rows of _STATEMENTS.
ReadChunk: TypeAlias = Callable[[bytes], Iterable[tuple[Any, ...]]]
# Maps an encoded example to its encoded analysis.
Analyse: TypeAlias = Callable[[bytes], bytes]


class KeyFolder(NamedTuple):
    """A folder for keys of counted statements that executors can read."""

    path: str
    access: StorageAccess


class QueryLog:
    """The statements of a log on Spark, read once."""

    def __init__(
        self,
        spark: SparkSession,
        read_chunk: ReadChunk,
        chunks: Sequence[ChunkRow],
        keys: KeyFolder,
    ) -> None:
        self._spark = spark
        self._keys = keys
        rows = (
            task_rows(spark, _CHUNKS, chunks).mapInArrow(_read_task(read_chunk), _STATEMENTS_DDL)
            if chunks
            else spark.createDataFrame(_STATEMENTS.empty_table())
        )
        self._rows = rows.withColumn("day", F.expr(f"at div {_DAY_MICROSECONDS}")).persist()
        self._statements = self._rows.where(F.col("skip_reason").isNull())

    def close(self) -> None:
        self._rows.unpersist()
        storage = storage_of(self._keys.path, self._keys.access)
        # This also removes files that killed processes left behind.
        storage.discard([f"{self._keys.path}/{name}" for name in storage.files(self._keys.path)])

    def counts(self) -> list[StatementCount]:
        """Statements per day, and skipped ones by reason."""
        counts = self._rows.groupBy("skip_reason", "day").agg(
            F.count("*").alias("statements"), F.sum("run_count").alias("run_count")
        )
        return [StatementCount(**row) for row in counts.toArrow().to_pylist()]

    def frequent_queries(self, *, limit: int) -> list[QuerySample]:
        """The `limit` most frequent queries, each with an example."""
        queries = (
            self._statements.groupBy("digest")
            .agg(
                F.max("example").alias("example"),
                F.sum("run_count").alias("run_count"),
                F.min("at").alias("first"),
                F.max("at").alias("last"),
            )
            .orderBy(F.desc("run_count"), "digest")
            .limit(limit)
        )
        return [QuerySample(**row) for row in queries.toArrow().to_pylist()]

    def analyse(self, samples: Sequence[QuerySample], analyse: Analyse) -> list[bytes]:
        """The encoded analysis of each query, computed on executors."""
        examples = pa.table({"example": pa.array([each.example for each in samples], pa.binary())})
        tasks = max(2, len(samples) // _QUERIES_PER_TASK)
        analyses = (
            self._spark.createDataFrame(examples)
            .repartition(tasks)
            .mapInArrow(_analyse_task(analyse), "analysis binary")
        )
        return list(analyses.toArrow()["analysis"].to_pylist())

    def new_statements(self, counted: Iterable[bytes]) -> "NewStatementsOnSpark":
        """The statements that were not counted before, and all daily totals.

        `counted` are keys of counted statements, eight bytes each, in chunks of any length.
        """
        # Of two totals of the same reads, the larger one is newer.
        columns = F.struct("run_count", "at", "day", "digest", "reader", "bytes", "rows", "is_sum")
        frame = self._statements.groupBy("key").agg(F.max(columns).alias("columns"))
        frame = frame.select("key", "columns.*")
        files = list(self._key_files(counted))
        if not files:
            return NewStatementsOnSpark(frame.withColumn("is_new", F.lit(True)))
        counted_keys = task_rows(self._spark, _KEY_FILES, files)
        counted_keys = counted_keys.mapInArrow(_keys_in(self._keys.access), "key bigint").distinct()
        if sum(keys for _, keys in files) <= _BROADCAST_LIMIT:
            counted_keys = F.broadcast(counted_keys)
        counted_keys = counted_keys.withColumn("is_known", F.lit(True))
        frame = frame.join(counted_keys, on="key", how="left")
        frame = frame.withColumn("is_new", F.col("is_known").isNull()).drop("is_known")
        return NewStatementsOnSpark(frame.where("is_new or is_sum"))

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
        table = selected.toArrow().sort_by("day").combine_chunks()
        keys = memoryview(b"".join(_bytes(chunk) for chunk in table["key"].chunks)).cast("q")
        days: dict[int, array[int]] = {}
        start = 0
        for count in pc.value_counts(table["day"]).to_pylist():
            days[count["values"]] = array("q", keys[start : start + count["counts"]])
            start += count["counts"]
        return days

    def runs(self, first: int, last: int) -> Iterator[QueryRuns]:
        """Runs of each query by each reader in a period, sorted by day."""
        counts = (
            self._between(first, last)
            .groupBy("day", "digest", "reader")
            .agg(
                F.sum("run_count").alias("run_count"),
                F.sum("bytes").alias("bytes"),
                F.sum("rows").alias("rows"),
                F.max("at").alias("last"),
            )
        )
        for batch in counts.toArrow().sort_by("day").to_batches(_BATCH_SIZE):
            yield from map(QueryRuns, *(each.to_pylist() for each in batch.columns))

    def _between(self, first: int, last: int) -> DataFrame:
        return self._frame.where(F.col("day").between(first, last))


def _rechunk(parts: Iterable[bytes], length: int) -> Iterator[bytes]:
    """The same bytes in chunks of at least the given length, except for the last."""
    buffer = bytearray()
    for part in parts:
        buffer += part
        if len(buffer) >= length:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)


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


def _read_task(
    read_chunk: ReadChunk,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for chunk in batch.column("chunk").to_pylist():
                rows = iter(read_chunk(chunk))
                while batch_rows := list(islice(rows, _BATCH_SIZE)):
                    arrays = [
                        arrow_array(values, field.type)
                        for values, field in zip(
                            zip(*batch_rows, strict=True), _STATEMENTS, strict=True
                        )
                    ]
                    yield pa.RecordBatch.from_arrays(arrays, schema=_STATEMENTS)

    return run


def _analyse_task(
    analyse: Analyse,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    schema = pa.schema([("analysis", pa.binary())])

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            analyses = [analyse(example) for example in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([arrow_array(analyses, pa.binary())], schema=schema)

    return run
