"""Writes small data files for tests."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def write_parquet(file: Path, rows: int = 2, **types: pa.DataType) -> Path:
    """A Parquet file with nulls in columns of the given types."""
    file.parent.mkdir(parents=True, exist_ok=True)
    columns = {name: pa.nulls(rows, type) for name, type in types.items()}
    pq.write_table(pa.table(columns), file)
    return file


def write_text(file: Path, lines: Iterable[str]) -> Path:
    """A text file of the given lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
