"""Validate a Parquet snapshot of any size on Spark.

Executors check rows one by one; references are then joined and counts summed up.
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

# Returns findings as rows, from a kind and rows of (file, row number, key, content hash, JSON).
Examine: TypeAlias = Callable[[str, Iterable[tuple[Any, ...]]], Iterable[dict[str, Any]]]


class KindFiles(NamedTuple):
    """The files with the entries of a kind, their key column, and the references they resolve."""

    name: str
    files: Sequence[str]
    key: str
    resolves: Sequence[str]


class SparkFindings(NamedTuple):
    """Problems and dangling references by path, and the sums of all pieces."""

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
            frame.mapInArrow(_batch_examiner(examine, name), _FINDING_IN_SPARK)
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
    """The rows of a kind, with the file and number of each."""
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
            yield pa.RecordBatch.from_pylist(list(examine(kind, rows)), schema=_FINDING)

    return examine_batches


def _dangling_references(
    findings: DataFrame, kinds: Sequence[KindFiles], frames: Mapping[str, DataFrame]
) -> DataFrame:
    """References without a target, to kinds that the snapshot contains."""
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
