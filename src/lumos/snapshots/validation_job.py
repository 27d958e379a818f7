"""Validates a Parquet snapshot of any size on Spark.

Executors check the rows one by one. Then the references are joined with their targets, and the
totals of all pieces are collected.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

_FINDING_SCHEMA: Final = pa.schema(
    [(name, pa.string()) for name in ("what", "path", "code", "severity", "text", "kinds", "key")]
)
_FINDING_SQL: Final = ", ".join(f"{name} string" for name in _FINDING_SCHEMA.names)

# Checks rows of (file, row number, key, content hash, JSON), given their kind; returns findings.
Examine: TypeAlias = Callable[[str, Iterable[tuple[Any, ...]]], Iterable[dict[str, Any]]]


class KindFiles(NamedTuple):
    """The files with the entries of a kind, the key column, and the references they resolve."""

    name: str
    files: Sequence[str]
    key: str
    resolves: Sequence[str]


class SparkFindings(NamedTuple):
    """The problems and dangling references, sorted by path, and the totals of all pieces."""

    problems: list[dict[str, str]]
    problem_count: int
    codes: list[str]
    dangling: list[dict[str, str]]
    dangling_count: int
    sums: list[str]


def examine_snapshot(
    spark: SparkSession, kinds: Sequence[KindFiles], *, examine: Examine, limit: int
) -> SparkFindings:
    """Find the problems of a snapshot; returns at most `limit` problems and dangling references."""
    frames = {kind.name: _rows(spark, kind) for kind in kinds if kind.files}
    findings = reduce(
        DataFrame.unionByName,
        (
            frame.mapInArrow(_batch_examiner(examine, name), _FINDING_SQL)
            for name, frame in frames.items()
        ),
    ).persist()
    try:
        problems = findings.where("what = 'problem'").select("path", "code", "severity", "text")
        dangling = _dangling_references(findings, [kind for kind in kinds if kind.files], frames)
        return SparkFindings(
            problems=problems.orderBy("path").limit(limit).toArrow().to_pylist(),
            problem_count=problems.count(),
            codes=_column(problems.select("code").distinct()),
            dangling=dangling.orderBy("path").limit(limit).toArrow().to_pylist(),
            dangling_count=dangling.count(),
            sums=_column(findings.where("what = 'sums'").select("text")),
        )
    finally:
        findings.unpersist()


def _rows(spark: SparkSession, kind: KindFiles) -> DataFrame:
    """The rows of a kind, with their file names and row numbers."""
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


def _batch_examiner(
    examine: Examine, kind: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def examine_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            yield pa.RecordBatch.from_pylist(list(examine(kind, rows)), schema=_FINDING_SCHEMA)

    return examine_batches


def _dangling_references(
    findings: DataFrame, kinds: Sequence[KindFiles], frames: Mapping[str, DataFrame]
) -> DataFrame:
    """The references without a target; only references to kinds with entries are checked."""
    keys = [
        frames[kind.name].select(F.lit(resolved).alias("kinds"), "key")
        for kind in kinds
        for resolved in kind.resolves
    ]
    checked_kinds = sorted({resolved for kind in kinds for resolved in kind.resolves})
    references = findings.where("what = 'reference'").where(F.col("kinds").isin(checked_kinds))
    known = reduce(DataFrame.unionByName, keys)
    unresolved = references.join(known, on=["kinds", "key"], how="left_anti")
    return unresolved.select("path", "kinds", "key")


def _column(frame: DataFrame) -> list[str]:
    return list(frame.toArrow().column(0).to_pylist())
