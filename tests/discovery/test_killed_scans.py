"""A scan that is killed at any moment and run again leaves what an undisturbed one leaves."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from files import write_parquet, write_text

_NAMES = (
    "orders", "users", "clicks", "carts", "prices", "stock", "returns", "visits", "reviews", "taxes",
)  # fmt: skip
_INGEST = [sys.executable, "-m", "lumos", "ingest", "lake", "--quiet"]
# What a run may tell differently: when it was, and the numbers that rows happen to get.
_TABLES = {
    "dataset": "urn, name, format, state, cloud_version, schema_version, schema_hash, content",
    "change_event": "event_id, urn, type, breaking",
    "schema_version": "urn, number, version, cloud_version, schema_hash, event_id",
    "aspect": "urn, name, body",
    "search_entry": "urn, name, path, fields, facets",
}


def table(folder: Path, number: int) -> Path:
    """One of many tables that nobody would take for parts of one."""
    return folder / f"{_NAMES[number % 7]}_of_{_NAMES[number // 7]}"


def columns(number: int) -> dict[str, pa.DataType]:
    name = _NAMES[number % 7]
    return {f"{name}_id": pa.int64(), f"{name}_{_NAMES[number // 7]}": pa.string()}


def write_lake(folder: Path) -> None:
    for number in range(60):
        write_parquet(table(folder, number) / "part-0.parquet", **columns(number))
    write_text(folder / "users/users.csv", ["id,name", "1,Ann"])
    write_commits(folder / "tables/trips", {"id": [1]}, {"id": [2], "town": ["x"]})


def write_commits(folder: Path, *commits: dict[str, list[Any]]) -> None:
    """Rows for a Delta table, commit by commit, perhaps with more columns."""
    for rows in commits:
        write_deltalake(str(folder), pa.table(rows), mode="append", schema_mode="merge")


def change_lake(folder: Path) -> None:
    """New datasets, changed ones, ones that are gone, and files that are broken."""
    for number in range(0, 60, 3):
        wider = {**columns(number), "price": pa.float64()}
        write_parquet(table(folder, number) / "part-1.parquet", **wider)
    for number in range(60, 70):
        write_parquet(table(folder, number) / "part-0.parquet", **columns(number))
    write_commits(folder / "tables/trips", {"id": [3], "km": [1.5]}, {"id": [4], "fare": [2]})
    write_commits(folder / "tables/cars", {"id": [1]}, {"id": [2], "make": ["y"]}, {"id": [3]})
    shutil.rmtree(table(folder, 1))
    (table(folder, 2) / "part-1.parquet").write_bytes(b"PAR1 no footer")


def recorded(folder: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(folder / ".lumos/lumos.db")) as connection:
        return {
            table: sorted(connection.execute(f"SELECT {columns} FROM {table}"))
            for table, columns in _TABLES.items()
        }


def ingest(folder: Path, *, kill_after: float | None = None) -> None:
    process = subprocess.Popen(
        _INGEST,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "LUMOS_SPARK__MASTER": "local[2]"},
    )
    if kill_after is None:
        _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()
        return
    time.sleep(kill_after)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("points", [2, 20], ids=["few", "many"])
def test_killed_at_random_points_and_run_again(tmp_path: Path, points: int) -> None:
    quiet = tmp_path / "quiet"
    write_lake(quiet / "lake")
    ingest(quiet)
    before = tmp_path / "before"
    shutil.copytree(quiet / ".lumos", before)
    change_lake(quiet / "lake")
    started = time.monotonic()
    ingest(quiet)
    seconds = time.monotonic() - started
    expected = recorded(quiet)
    chance = random.Random(points)
    latest = seconds * 0.8
    in_time = 0
    # A busy machine may make kills come too late, which shows nothing: then earlier ones follow.
    for attempt in range(points + 6):
        if attempt >= points and in_time:
            break
        # Always in the same place, so that paths and times are the same.
        shutil.rmtree(quiet / ".lumos")
        shutil.copytree(before, quiet / ".lumos")
        moment = latest * chance.uniform(0.4, 1)
        ingest(quiet, kill_after=moment)
        if recorded(quiet) == expected:
            latest = moment
        else:
            in_time += 1
        ingest(quiet)
        assert recorded(quiet) == expected
    assert in_time
