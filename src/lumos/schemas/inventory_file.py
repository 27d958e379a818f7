"""The Parquet file of a schema inventory, with one row per dataset."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

INVENTORY_COLUMNS: Final = pa.schema(
    [
        ("urn", pa.string()),
        ("fingerprint", pa.string()),
        ("body", pa.binary()),
        ("format", pa.string()),
    ]
)
_BATCH_ROWS: Final = 10_000


class InventoryRow(NamedTuple):
    """A dataset with the full fingerprint and the JSON of its schema."""

    urn: str
    fingerprint: str
    body: bytes
    format: str | None


def write_inventory(rows: Iterable[InventoryRow], file: str | Path) -> int:
    """Write rows in batches and return their number."""
    remaining = iter(rows)
    written = 0
    with pq.ParquetWriter(str(file), INVENTORY_COLUMNS, compression="zstd") as writer:
        while batch := list(islice(remaining, _BATCH_ROWS)):
            columns = [
                pa.array(values, type=field.type)
                for values, field in zip(zip(*batch, strict=True), INVENTORY_COLUMNS, strict=True)
            ]
            writer.write_batch(pa.record_batch(columns, schema=INVENTORY_COLUMNS))
            written += len(batch)
    return written
