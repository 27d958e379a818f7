"""Samples of a file: how many rows, and which."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos.model.types import INT64
from lumos.profiles.rows import read_batches
from lumos.profiles.tasks import FileTask
from lumos.storage import LocalStorage


def taken(file: Path, share: float) -> list[int]:
    task = FileTask(str(file), 0, "parquet", 0, names=("id",), sample=share)
    found = read_batches(task, LocalStorage(), {"id": INT64})
    return [each for batch in found for each in batch.columns["id"].to_pylist()]


@pytest.mark.parametrize("count", [1, 3, 49, 98, 103, 1000])
def test_as_many_rows_are_taken_as_are_asked_for(tmp_path: Path, count: int) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(count)}), file)
    for rows in {1, max(1, count // 3), max(1, count - 1)}:
        assert len(taken(file, rows / count)) == rows


def test_some_row_is_taken_however_small_the_share_is(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(1000)}), file, row_group_size=100)
    assert taken(file, 0.00001) == [0]


def test_rows_are_spread_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": range(1000)}), file)
    assert taken(file, 0.2) == list(range(0, 1000, 5))
