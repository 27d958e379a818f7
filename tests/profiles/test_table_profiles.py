"""Profiles of tables by whole scans: live files alone, and only new ones are read again."""

from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from formats.tables.delta_logs import add, commit_name, field, lines, metadata, protocol
from lumos import Lumos
from lumos.profiles.reports import ProfileReport

pytestmark = pytest.mark.usefixtures("workplace", "spark")


def profiled(lake: Path) -> ProfileReport:
    lumos = Lumos()
    lumos.ingest(lake)
    return lumos.profiles.profile("table")


def rows(first: int, last: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(first, last), pa.int64()),
            "part": pa.array([f"p{number % 2}" for number in range(first, last)]),
        }
    )


def test_a_delta_table_is_its_live_files_with_partition_values_and_only_new_ones_are_read(
    tmp_path: Path,
) -> None:
    lake = tmp_path / "lake"
    place = str(lake / "table")
    deltalake.write_deltalake(place, rows(0, 100), partition_by=["part"])
    deltalake.write_deltalake(place, rows(100, 300), partition_by=["part"], mode="append")
    deltalake.DeltaTable(place).delete("id < 100")
    first = profiled(lake)
    assert first.profile.rows == 200
    assert first.profile.columns["id"].minimum == "100"
    assert (first.profile.columns["part"].nulls, first.profile.columns["part"].distinct) == (0, 2)
    deltalake.write_deltalake(place, rows(300, 310), partition_by=["part"], mode="append")
    more = profiled(lake)
    assert (more.profile.rows, more.files_read, more.files_known) == (210, 2, first.files_read)
    deltalake.write_deltalake(place, rows(0, 5), mode="overwrite")
    assert Lumos().profiles.profile("table").profile.rows == 210, "the version that was scanned"
    deltalake.DeltaTable(place).delete()
    (emptied,) = Lumos().ingest(lake, profile=True).measured
    assert (emptied.rows, emptied.completeness) == (0, None)
    shown = Lumos().show("table").dataset["quality"]["profile"]["columns"]["id"]
    assert "minimum" not in shown, "rows that are gone are told of no more"
    assert Lumos().profiles.profile("table", rows=5).profile.rows == 0


def test_files_of_a_table_in_another_root_are_read_once_that_is_scanned(tmp_path: Path) -> None:
    lake, archive = tmp_path / "lake", tmp_path / "archive"
    archive.mkdir()
    pq.write_table(pa.table({"a": pa.array(range(7), pa.int64())}), archive / "old.parquet")
    size = (archive / "old.parquet").stat().st_size
    commit = [protocol(), metadata(field("a")), add(f"file://{archive}/old.parquet", size, rows=7)]
    (lake / "table/_delta_log").mkdir(parents=True)
    (lake / "table" / commit_name(0)).write_bytes(lines(commit))
    refused = profiled(lake)
    assert (refused.profile.rows, [each.code for each in refused.problems]) == (0, ["outside_path"])
    Lumos().ingest(archive)
    read = Lumos().profiles.profile("table")
    assert (read.profile.rows, read.problems) == (7, ())
