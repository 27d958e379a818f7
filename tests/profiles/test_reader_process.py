"""Damaged Parquet and ORC files end a child process at most, never the process that profiles."""

import io
import os
import random
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from lumos.formats.interface import UnreadableFile
from lumos.model.types import INT64, DataType
from lumos.profiles import reader_process
from lumos.profiles.rows import read_batches
from lumos.profiles.tasks import FileTask
from lumos.storage import LocalStorage

WANTED: dict[str, DataType] = {"id": INT64}
ROWS = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "price": pa.array([Decimal("1.50")] * 1000, pa.decimal128(12, 2)),
        "tags": pa.array([["a", "b"]] * 1000, pa.list_(pa.string())),
    }
)
# The type of the price in the footer: a decimal (14) of 12 digits, two of them after the point.
DECIMAL_12 = bytes([0x08, 14, 0x20, 0, 0x28, 12, 0x30, 2])
DECIMAL_76 = bytes([0x08, 14, 0x20, 0, 0x28, 76, 0x30, 2])


def orc_bytes() -> bytes:
    sink = io.BytesIO()
    orc.write_table(ROWS, sink, compression="uncompressed")
    return sink.getvalue()


def parquet_bytes() -> bytes:
    sink = io.BytesIO()
    pq.write_table(ROWS, sink, row_group_size=100, compression="none")
    return sink.getvalue()


def rows_of(path: Path, format: str) -> list[int]:
    task = FileTask(str(path), path.stat().st_size, format, 0)
    return [
        number
        for batch in read_batches(task, LocalStorage(), WANTED)
        for number in batch.columns["id"].to_pylist()
    ]


def child_pid() -> int:
    assert reader_process._process is not None
    return reader_process._process._child


def test_a_file_that_aborts_pyarrow_is_a_damaged_file_and_the_next_one_is_read(
    tmp_path: Path,
) -> None:
    good, bad = tmp_path / "good.orc", tmp_path / "bad.orc"
    good.write_bytes(orc_bytes())
    assert orc_bytes().count(DECIMAL_12) == 1
    bad.write_bytes(orc_bytes().replace(DECIMAL_12, DECIMAL_76))
    crash = f"import pyarrow.orc as orc; orc.ORCFile({str(bad)!r}).schema"
    alone = subprocess.run([sys.executable, "-c", crash], capture_output=True, check=False)
    assert alone.returncode < 0, "pyarrow no longer aborts: is the child process still needed?"
    assert rows_of(good, "orc") == list(range(1000))
    with pytest.raises(UnreadableFile, match="SIGABRT") as problem:
        rows_of(bad, "orc")
    assert problem.value.code == "corrupt_file"
    assert rows_of(good, "orc") == list(range(1000))


def test_one_child_reads_all_files_even_those_that_are_left_early(tmp_path: Path) -> None:
    file = tmp_path / "file.parquet"
    file.write_bytes(parquet_bytes())
    rows_of(file, "parquet")
    first = child_pid()
    task = FileTask(str(file), file.stat().st_size, "parquet", 0, max_rows=10)
    (batch,) = read_batches(task, LocalStorage(), WANTED)
    assert batch.rows == 10
    assert rows_of(file, "parquet") == list(range(1000))
    assert child_pid() == first


def test_a_file_that_is_gone_is_reported_as_such(tmp_path: Path) -> None:
    task = FileTask(str(tmp_path / "gone.parquet"), 1, "parquet", 0)
    with pytest.raises(FileNotFoundError):
        list(read_batches(task, LocalStorage(), WANTED))


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_no_damage_ends_this_process(tmp_path: Path, format: str) -> None:
    whole = parquet_bytes() if format == "parquet" else orc_bytes()
    chance = random.Random(5)
    file = tmp_path / f"file.{format}"
    unreadable = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 2, 5))):
            last = chance.choice((len(data), 400))
            data[len(data) - 1 - chance.randrange(last)] = chance.randrange(256)
        file.write_bytes(data)
        try:
            rows_of(file, format)
        except UnreadableFile:
            unreadable += 1
    assert unreadable > 50
    file.write_bytes(whole)
    assert rows_of(file, format) == list(range(1000))


PARENT = """
import os, sys
from lumos.profiles import reader_process
reader = reader_process.ReaderProcess()
print(reader._child, flush=True)
os._exit(0)
"""


def test_the_child_ends_with_its_parent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PARENT], capture_output=True, text=True, check=True
    )
    for _ in range(100):
        try:
            os.kill(int(done.stdout), 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("the child is still running")
