"""Tables and loose files of a lake, as their own libraries write them."""

from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.memory import InMemoryCatalog

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "c": ["x", "y", "x"]})


def write_delta(folder: Path, rows: pa.Table = ROWS, *, by: list[str] | None = None) -> None:
    deltalake.write_deltalake(str(folder), rows, mode="append", partition_by=by)


def write_loose(file: Path, rows: pa.Table = ROWS) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, file)


def write_iceberg(warehouse: Path, name: str, **properties: str) -> None:
    """A table at `warehouse/n/name`."""
    catalog = InMemoryCatalog("judge", warehouse=f"file://{warehouse}")
    catalog.create_namespace_if_not_exists("n")
    table = catalog.create_table(f"n.{name}", ROWS.schema, properties=properties)
    table.append(ROWS)
