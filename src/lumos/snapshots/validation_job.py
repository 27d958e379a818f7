"""Validates a snapshot of Parquet files on Spark, however many datasets it has.

Executors examine the rows that they read; what only the whole can tell is joined or summed up.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

_FINDING: Final = pa.schema(
    [(name, pa.string()) for name in ("what", "path", "code", "severity", "text", "kinds", "key")]
)
_FINDING_IN_SPARK: Final = ", ".join(f"{name} string" for name in _FINDING.names)

# Gives findings as rows, from a kind and rows: file, number in it, key, content hash, JSON.
Examine: TypeAlias = Callable[[str, Iterable[tuple[Any, ...]]], Iterable[dict[str, Any]]]


class KindFiles(NamedTuple):
    """Where the entries of a kind are: its files, the name of their key, what they can resolve."""

    name: str
    files: Sequence[str]
    key: str
    resolves: Sequence[str]


class SparkFindings(NamedTuple):
    """Problems by path, references that lead nowhere by path, and the sums of all pieces."""

    problems: list[dict[str, str]]
    problem_count: int
    codes: list[str]
    dangling: list[dict[str, str]]
    dangling_count: int
    sums: list[str]


def examine_snapshot(
    spark: SparkSession, kinds: Sequence[KindFiles], *, examine: Examine, most: int
) -> SparkFindings:
    """What is wrong with a snapshot; of problems and dangling references `most` each are shown."""
    frames = {kind.name: _rows(spark, kind) for kind in kinds if kind.files}
    found = reduce(
        DataFrame.unionByName,
        (
            frame.mapInArrow(_examining(examine, name), _FINDING_IN_SPARK)
            for name, frame in frames.items()
        ),
    ).persist()
    try:
        problems = found.where("what = 'problem'").select("path", "code", "severity", "text")
        dangling = _dangling(found, [kind for kind in kinds if kind.files], frames)
        return SparkFindings(
            problems=problems.orderBy("path").limit(most).toArrow().to_pylist(),
            problem_count=problems.count(),
            codes=_column(problems.select("code").distinct()),
            dangling=dangling.orderBy("path").limit(most).toArrow().to_pylist(),
            dangling_count=dangling.count(),
            sums=_column(found.where("what = 'sums'").select("text")),
        )
    finally:
        found.unpersist()


def _rows(spark: SparkSession, kind: KindFiles) -> DataFrame:
    """The rows of a kind, with the place of each."""
    columns = (kind.key, "content_hash", "body")
    schema = ", ".join(f"{name} string" for name in columns)
    return (
        spark.read.schema(schema)
        .parquet(*kind.files)
        .select(
            F.col("_metadata.file_name").alias("file"),
            F.col("_metadata.row_index").alias("row"),
            F.col(kind.key).alias("key"),
            "content_hash",
            F.col("body").cast("binary").alias("body"),
        )
    )


def _examining(
    examine: Examine, kind: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def examined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            yield pa.RecordBatch.from_pylist(list(examine(kind, rows)), schema=_FINDING)

    return examined


def _dangling(
    found: DataFrame, kinds: Sequence[KindFiles], frames: Mapping[str, DataFrame]
) -> DataFrame:
    """The references that no entry resolves, of those that some entry could."""
    keys = [
        frames[kind.name].select(F.lit(resolved).alias("kinds"), "key")
        for kind in kinds
        for resolved in kind.resolves
    ]
    listed = sorted({resolved for kind in kinds for resolved in kind.resolves})
    references = found.where("what = 'reference'").where(F.col("kinds").isin(listed))
    known = reduce(DataFrame.unionByName, keys)
    unresolved = references.join(known, on=["kinds", "key"], how="left_anti")
    return unresolved.select("path", "kinds", "key")


def _column(frame: DataFrame) -> list[str]:
    return list(frame.toArrow().column(0).to_pylist())
