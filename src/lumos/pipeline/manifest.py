"""Remembers what a scan saw, so that the next one opens only what is new or changed.

A manifest is a folder. `files` holds a row per file and is only ever seen by executors; `schemas`,
`shapes` and `settled` grow with the number of datasets and belong to the driver.
"""

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lumos.pipeline.columns import FILES, FILES_IN_SPARK, SETTLED, SETTLED_IN_SPARK

_SCHEMAS: Final = pa.schema([("full", pa.string()), ("body", pa.binary())])
_SHAPES: Final = pa.schema(
    [("dataset", pa.string()), ("shape", pa.string()), ("since", pa.int64())]
)


class Manifest:
    """The manifest in a folder, or an empty one."""

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else Path(folder)

    def files(self, spark: SparkSession) -> DataFrame | None:
        """Every file of the scan."""
        if self._folder is None:
            return None
        return spark.read.schema(FILES_IN_SPARK).parquet(str(self._folder / "files"))

    def write_files(self, spark: SparkSession, files: DataFrame) -> DataFrame:
        """Writes the files, which evaluates them once, and gives them back as written."""
        assert self._folder is not None
        files.write.mode("overwrite").parquet(str(self._folder / "files"))
        return spark.read.schema(FILES_IN_SPARK).parquet(str(self._folder / "files"))

    def schemas(self) -> dict[str, bytes]:
        """The body of every schema in use, by its full fingerprint."""
        return {row["full"]: row["body"] for row in self._rows("schemas", _SCHEMAS)}

    def write_schemas(self, bodies: dict[str, bytes]) -> None:
        self._write("schemas", _SCHEMAS, [{"full": full, "body": bodies[full]} for full in bodies])

    def shapes(self) -> dict[tuple[str, str], int]:
        """The number of the scan that first met each shape in each dataset."""
        rows = self._rows("shapes", _SHAPES)
        return {(row["dataset"], row["shape"]): row["since"] for row in rows}

    def write_shapes(self, shapes: dict[tuple[str, str], int]) -> None:
        rows = [
            {"dataset": dataset, "shape": shape, "since": since}
            for (dataset, shape), since in shapes.items()
        ]
        self._write("shapes", _SHAPES, rows)

    def settled(self, spark: SparkSession) -> DataFrame:
        """How the scan settled what folders and name patterns mean."""
        rows = self._rows("settled", SETTLED)
        return spark.createDataFrame(pa.Table.from_pylist(rows, SETTLED), SETTLED_IN_SPARK)

    def write_settled(self, rows: list[dict[str, Any]]) -> None:
        self._write("settled", SETTLED, rows)

    def _rows(self, name: str, schema: pa.Schema) -> list[dict[str, Any]]:
        if self._folder is None:
            return []
        rows: list[dict[str, Any]] = pq.read_table(
            self._folder / f"{name}.parquet", schema=schema
        ).to_pylist()
        return rows

    def _write(self, name: str, schema: pa.Schema, rows: list[dict[str, Any]]) -> None:
        assert self._folder is not None
        pq.write_table(pa.Table.from_pylist(rows, schema), self._folder / f"{name}.parquet")


def with_known(listed: DataFrame, before: DataFrame | None) -> DataFrame:
    """The listed files; those that are as they were carry what was known about them."""
    if before is None:
        return listed
    same = ["path", "size", "modified"]
    # What failed is tried again: a permission may have been granted since.
    known = before.where("code is null").drop("code", "reason", "body")
    joined = listed.join(known, same, "left").withColumn("body", F.lit(None).cast("binary"))
    return joined.select(*FILES.names)
