"""Compares two schema inventories of any size on Spark.

The fingerprints are joined first. Only schemas with different fingerprints are read and decoded, on
executors.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lumos.errors import MisuseError
from lumos.schemas.inventory_file import INVENTORY_COLUMNS

_TEXT: Final = pa.string()
_CHANGES: Final = pa.schema(
    [
        ("urn", _TEXT),
        ("path", _TEXT),
        ("kind", _TEXT),
        # The values before and after are JSON: they may be strings, lists of names, or booleans.
        ("before", _TEXT),
        ("after", _TEXT),
        ("consumer", _TEXT),
        ("storage", _TEXT),
        ("rule", _TEXT),
        ("flags", pa.list_(_TEXT)),
        ("notes", pa.list_(_TEXT)),
        ("fingerprint", _TEXT),
    ]
)
_CHANGES_IN_SPARK: Final = ", ".join(
    f"{field.name} {'string' if field.type == _TEXT else 'array<string>'}" for field in _CHANGES
)

# Compares the schemas of a dataset, given its URN, both schemas as JSON and its format; returns the
# changes with their verdicts as rows.
CompareSchemaJson: TypeAlias = Callable[[str, bytes, bytes, str | None], list[dict[str, Any]]]

# Up to this many URNs are broadcast to the executors; more are joined with a shuffle.
_MAX_BROADCAST_URNS: Final = 500_000


class InventoryDiffCounts(NamedTuple):
    """The numbers of changed, added and removed datasets, and of changes by consumer verdict."""

    changed: int
    added: int
    removed: int
    verdicts: dict[str, int]


def compare_inventories(
    before: DataFrame, after: DataFrame, *, compare: CompareSchemaJson, to: str
) -> InventoryDiffCounts:
    """Write the differences of two inventories to a new folder, as Parquet, and count them.

    Its subfolder `datasets` has a row for each dataset that was added, removed or changed, and its
    subfolder `changes` a row for each change. URNs must be unique in each inventory.
    """
    spark = before.sparkSession
    for frame in (before, after):
        _check_columns(frame)
    differing_datasets(before, after).write.parquet(f"{to}/datasets")
    datasets = spark.read.parquet(f"{to}/datasets")
    counts = _counts(datasets, "change")
    changed = datasets.where(F.col("change") == "changed").select("urn")
    pairs = differing_schemas(
        before, after, changed=changed, is_small=counts.get("changed", 0) <= _MAX_BROADCAST_URNS
    )
    pairs.mapInArrow(apply_comparison(compare, _CHANGES), _CHANGES_IN_SPARK).write.parquet(
        f"{to}/changes"
    )
    changes = spark.read.parquet(f"{to}/changes")
    return InventoryDiffCounts(
        changed=changes.select("urn").distinct().count(),
        added=counts.get("added", 0),
        removed=counts.get("removed", 0),
        verdicts=_counts(changes, "consumer"),
    )


def _check_columns(frame: DataFrame) -> None:
    missing = [name for name in INVENTORY_COLUMNS.names if name not in frame.columns]
    if missing:
        raise MisuseError(
            f"This is not a schema inventory: it has no column {', '.join(missing)}. "
            f"An inventory has {', '.join(INVENTORY_COLUMNS.names)}."
        )


def _counts(frame: DataFrame, column: str) -> dict[str, int]:
    rows = frame.groupBy(column).count().toArrow().to_pylist()
    return {row[column]: row["count"] for row in rows}


def differing_datasets(before: DataFrame, after: DataFrame) -> DataFrame:
    """The datasets that were added, removed or changed; only fingerprints are read, no schemas."""
    old = before.select("urn", F.col("fingerprint").alias("old_fingerprint"))
    new = after.select("urn", F.col("fingerprint").alias("new_fingerprint"))
    joined = old.join(new, on="urn", how="full_outer")
    change = (
        F.when(F.col("old_fingerprint").isNull(), "added")
        .when(F.col("new_fingerprint").isNull(), "removed")
        .otherwise("changed")
    )
    differs = ~F.col("old_fingerprint").eqNullSafe(F.col("new_fingerprint"))
    return joined.where(differs).select("urn", change.alias("change"))


def differing_schemas(
    before: DataFrame, after: DataFrame, *, changed: DataFrame, is_small: bool
) -> DataFrame:
    """Both schemas of the datasets that changed."""
    # Schemas compress so well that Spark would underestimate an inventory and broadcast it.
    changed_urns = F.broadcast(changed) if is_small else changed.hint("merge")
    old = before.join(changed_urns, on="urn", how="left_semi").hint("merge")
    new = after.join(changed_urns, on="urn", how="left_semi")
    return (
        old.select("urn", F.col("body").alias("before"))
        .join(new.select("urn", F.col("body").alias("after"), "format"), on="urn")
        .select("urn", "before", "after", "format")
    )


def apply_comparison(
    compare: Callable[..., Iterable[dict[str, Any]]], row_schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for mapInArrow that calls `compare` with the columns of each row."""

    def compare_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            datasets = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            rows = [row for dataset in datasets for row in compare(*dataset)]
            yield pa.RecordBatch.from_pylist(rows, schema=row_schema)

    return compare_batches
