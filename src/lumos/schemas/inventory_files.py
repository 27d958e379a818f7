"""A snapshot of the schemas of an estate: one Parquet file or folder, a dataset on each row."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

SNAPSHOT: Final = pa.schema(
    [
        ("urn", pa.string()),
        ("fingerprint", pa.string()),
        ("body", pa.binary()),
        ("format", pa.string()),
    ]
)
_ROWS_AT_ONCE: Final = 10_000


class SnapshotRow(NamedTuple):
    """A dataset: the full fingerprint of its schema, and the schema's JSON."""

    urn: str
    fingerprint: str
    body: bytes
    format: str | None


def write_snapshot(rows: Iterable[SnapshotRow], file: str | Path) -> int:
    """Writes a snapshot and gives the number of its rows, of which it holds few at a time."""
    remaining = iter(rows)
    written = 0
    with pq.ParquetWriter(str(file), SNAPSHOT, compression="zstd") as writer:
        while some := list(islice(remaining, _ROWS_AT_ONCE)):
            columns = [
                pa.array(values, type=field.type)
                for values, field in zip(zip(*some, strict=True), SNAPSHOT, strict=True)
            ]
            writer.write_batch(pa.record_batch(columns, schema=SNAPSHOT))
            written += len(some)
    return written
