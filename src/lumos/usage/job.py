"""Query logs of any length on Spark: statements are grouped, and only one of each kind is read.

Tasks read pieces of the log and know each statement by its digest. What leaves them is a row of
numbers for each statement, and the text of each that they had not met before.
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

from lumos.model.query_log import NewStatements, QueryRuns, QuerySample, StatementCount
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
# A piece of a log, encoded; its path and where it starts are for whoever looks at the rows.
_PIECES: Final = pa.schema([("path", pa.string()), ("start", pa.int64()), ("piece", pa.binary())])
_KEY_FILES: Final = pa.schema([("path", pa.string()), ("keys", pa.int64())])
_KEY_BYTES: Final = 8
# So many keys are in one file, about.
_KEYS_IN_A_FILE: Final = 1_000_000

# A piece: the path of its file, where it starts in there, and all of it, encoded.
PieceRow: TypeAlias = tuple[str, int, bytes]
# Gives the statements of an encoded piece, as rows like those above.
Read: TypeAlias = Callable[[bytes], Iterable[tuple[Any, ...]]]
# Says what an encoded example means, encoded.
Understand: TypeAlias = Callable[[bytes], bytes]


class KeyFolder(NamedTuple):
    """Where keys of statements wait for executors, which must reach it as well."""

    path: str
    access: StorageAccess


class QueryLog:
    """The statements of a log, read once."""

    def __init__(
        self, spark: SparkSession, read: Read, pieces: Sequence[PieceRow], keys: KeyFolder
    ) -> None:
        self._spark = spark
        self._keys = keys
        found = (
            task_rows(spark, _PIECES, pieces).mapInArrow(_reading(read), _STATEMENTS_IN_SPARK)
            if pieces
            else spark.createDataFrame(_STATEMENTS.empty_table())
        )
        self._found = found.withColumn("day", F.expr(f"at div {_A_DAY}")).persist()
        self._statements = self._found.where(F.col("left_out").isNull())

    def close(self) -> None:
        self._found.unpersist()
        storage = storage_of(self._keys.path, self._keys.access)
        # With them go those of processes that were killed.
        storage.discard([f"{self._keys.path}/{name}" for name in storage.files(self._keys.path)])

    def sums(self) -> list[StatementCount]:
        """How many statements there are by day, and how many are not counted, by the reason."""
        sums = self._found.groupBy("left_out", "day").agg(
            F.count("*").alias("statements"), F.sum("times").alias("times")
        )
        return [StatementCount(**row) for row in sums.toArrow().to_pylist()]

    def met(self, *, most: int) -> list[QuerySample]:
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
        return [QuerySample(**row) for row in kinds.toArrow().to_pylist()]

    def understood(self, met: Sequence[QuerySample], understand: Understand) -> list[bytes]:
        """What each kind means, found out on executors."""
        examples = pa.table({"example": pa.array([each.example for each in met], pa.binary())})
        tasks = max(2, len(met) // _QUERIES_IN_A_TASK)
        meanings = (
            self._spark.createDataFrame(examples)
            .repartition(tasks)
            .mapInArrow(_understanding(understand), "meaning binary")
        )
        return list(meanings.toArrow()["meaning"].to_pylist())

    def fresh(self, counted: Iterable[bytes]) -> "FreshStatements":
        """The statements that are not counted yet, and all sums.

        `counted` are the keys of statements, eight bytes each, in parts of any length.
        """
        # Of two sums of the same reads the larger one is the newer one.
        facts = F.struct("times", "at", "day", "query", "reader", "bytes", "rows", "is_sum")
        fresh = self._statements.groupBy("key").agg(F.max(facts).alias("facts"))
        fresh = fresh.select("key", "facts.*")
        files = list(self._key_files(counted))
        if not files:
            return FreshStatements(fresh.withColumn("is_new", F.lit(True)))
        known = task_rows(self._spark, _KEY_FILES, files)
        known = known.mapInArrow(_keys_in(self._keys.access), "key bigint").distinct()
        if sum(keys for _, keys in files) <= _FEW:
            known = F.broadcast(known)
        known = known.withColumn("is_known", F.lit(True))
        fresh = fresh.join(known, on="key", how="left")
        fresh = fresh.withColumn("is_new", F.col("is_known").isNull()).drop("is_known")
        return FreshStatements(fresh.where("is_new or is_sum"))

    def _key_files(self, counted: Iterable[bytes]) -> Iterator[tuple[str, int]]:
        """Writes keys where executors find them; gives each file and how many it holds."""
        storage = storage_of(self._keys.path, self._keys.access)
        for part in _joined(counted, _KEYS_IN_A_FILE * _KEY_BYTES):
            path = f"{self._keys.path}/{uuid.uuid4().hex}.keys"
            storage.write(path, part)
            yield path, len(part) // _KEY_BYTES


class FreshStatements:
    """Statements that count, each once."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame.persist()

    def close(self) -> None:
        self._frame.unpersist()

    def days(self) -> list[NewStatements]:
        """How many statements each day has, in their order."""
        days = self._frame.groupBy("day").agg(
            F.count("*").alias("statements"), F.count_if("is_new").alias("new")
        )
        return sorted(NewStatements(**row) for row in days.toArrow().to_pylist())

    def keys(self, first: int, last: int) -> dict[int, "array[int]"]:
        """What tells the statements of each of some days from all others."""
        wanted = self._between(first, last).select("day", "key")
        found = wanted.toArrow().sort_by("day").combine_chunks()
        keys = memoryview(b"".join(_bytes(chunk) for chunk in found["key"].chunks)).cast("q")
        days: dict[int, array[int]] = {}
        start = 0
        for count in pc.value_counts(found["day"]).to_pylist():
            days[count["values"]] = array("q", keys[start : start + count["counts"]])
            start += count["counts"]
        return days

    def runs(self, first: int, last: int) -> Iterator[QueryRuns]:
        """How often each kind was run by each reader on some days, day by day."""
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
        for batch in sums.toArrow().sort_by("day").to_batches(_BATCH):
            yield from map(QueryRuns, *(each.to_pylist() for each in batch.columns))

    def _between(self, first: int, last: int) -> DataFrame:
        return self._frame.where(F.col("day").between(first, last))


def _joined(parts: Iterable[bytes], length: int) -> Iterator[bytes]:
    """The same bytes in fewer parts, of about a length."""
    joined = bytearray()
    for part in parts:
        joined += part
        if len(joined) >= length:
            yield bytes(joined)
            joined.clear()
    if joined:
        yield bytes(joined)


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
    """Whole numbers, none of them missing, as they lie in memory."""
    return bytes(array.buffers()[1])[array.offset * 8 : (array.offset + len(array)) * 8]


def _reading(read: Read) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def reading(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in batch.column("piece").to_pylist():
                rows = iter(read(piece))
                while some := list(islice(rows, _BATCH)):
                    yield _batch(some)

    return reading


def _batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    arrays = [
        arrow_array(values, field.type)
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
            yield pa.RecordBatch.from_arrays([arrow_array(meanings, pa.binary())], schema=schema)

    return understanding
