"""Compares two Parquet snapshots of any size on Spark.

The content hashes are joined first. Only datasets with different hashes are read and decoded, on
executors.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lumos.schemas.comparison_job import apply_comparison, differing_datasets, differing_schemas

_TEXT: Final = pa.string()
_DIFFERENCE: Final = pa.schema(
    [
        *((name, _TEXT) for name in ("kind", "key", "aspect", "path", "change", "impact")),
        # Values of any type, as JSON.
        ("before", _TEXT),
        ("after", _TEXT),
        ("notes", pa.list_(_TEXT)),
    ]
)
_DIFFERENCE_IN_SPARK: Final = ", ".join(
    f"{field.name} {'string' if field.type == _TEXT else 'array<string>'}" for field in _DIFFERENCE
)
# Up to this many URNs are broadcast to the executors; more are joined with a shuffle.
_MAX_BROADCAST_URNS: Final = 500_000

# Compares a dataset in both snapshots, given its URN and its JSON in each (None if it is missing
# there); returns its differences as rows.
CompareDataset: TypeAlias = Callable[[str, bytes | None, bytes | None], Iterable[dict[str, Any]]]


class DatasetDiffTotals(NamedTuple):
    """The numbers of changed, added and removed datasets, and of differences by impact."""

    changed: int
    added: int
    removed: int
    impacts: dict[str, int]


def compare_datasets(
    spark: SparkSession,
    before: Sequence[str],
    after: Sequence[str],
    *,
    compare: CompareDataset,
    has_deleted: bool,
    to: str,
) -> DatasetDiffTotals:
    """Write the differences between the datasets of two lists of files to a new folder.

    Its subfolder `datasets` contains the datasets that were added, removed or changed, and its
    subfolder `differences` a row for each difference. URNs must be unique in each list.
    """
    old, new = (_datasets(spark, files, has_deleted=has_deleted) for files in (before, after))
    differing_datasets(old, new).write.parquet(f"{to}/datasets")
    datasets = spark.read.parquet(f"{to}/datasets")
    counts = _counts(datasets, "change")
    changed = datasets.where(F.col("change") == "changed").select("urn")
    pairs = differing_schemas(
        old, new, changed=changed, is_small=counts.get("changed", 0) <= _MAX_BROADCAST_URNS
    ).select("urn", "before", "after")
    # For datasets that only one snapshot contains, the content does not matter.
    empty_entry, missing = F.lit(b"{}"), F.lit(None).cast("binary")
    one_sided = datasets.where(F.col("change") != "changed").select(
        "urn",
        F.when(F.col("change") == "removed", empty_entry).otherwise(missing).alias("before"),
        F.when(F.col("change") == "added", empty_entry).otherwise(missing).alias("after"),
    )
    difference_rows = pairs.unionByName(one_sided).mapInArrow(
        apply_comparison(compare, _DIFFERENCE), _DIFFERENCE_IN_SPARK
    )
    difference_rows.write.parquet(f"{to}/differences")
    differences = spark.read.parquet(f"{to}/differences")
    return DatasetDiffTotals(
        changed=differences.where("aspect != 'entry'").select("key").distinct().count(),
        added=counts.get("added", 0),
        removed=counts.get("removed", 0),
        impacts=_counts(differences, "impact"),
    )


def _datasets(spark: SparkSession, files: Sequence[str], *, has_deleted: bool) -> DataFrame:
    """The datasets in the files, without deleted datasets."""
    schema = "urn string, content_hash string, body string"
    if not files:
        frame = spark.createDataFrame([], schema)
    else:
        frame = spark.read.schema(schema).parquet(*files)
    if has_deleted:
        is_deleted = F.get_json_object("body", "$.deleted") == "true"
        frame = frame.where(~F.coalesce(is_deleted, F.lit(False)))
    return frame.select(
        "urn",
        F.col("content_hash").alias("fingerprint"),
        F.col("body").cast("binary").alias("body"),
        F.lit(None).cast("string").alias("format"),
    )


def _counts(frame: DataFrame, column: str) -> dict[str, int]:
    rows = frame.groupBy(column).count().toArrow().to_pylist()
    return {row[column]: row["count"] for row in rows}
