"""Parquet files of logs: all rows are read, and none of what is made to unpack without end."""

import io
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos.formats.tables import parquet_rows
from lumos.formats.tables.parquet_rows import ParquetRows
from lumos.formats.varints import MalformedData


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_every_row_is_read(compression: str, version: str, dictionary: bool) -> None:
    order = random.Random(1)
    texts = ["", "é", "x" * 3000, "y" * 2000, None]
    rows = [
        {"path": order.choice(texts), "tags": order.choices(texts, k=order.randrange(3)), "n": n}
        for n in range(5000)
    ]
    table = pa.table({"add": rows, "text": [str(n) for n in range(5000)]})
    data = written(
        table,
        compression=compression,
        data_page_version=version,
        use_dictionary=dictionary,
        row_group_size=2000,
    )
    file = ParquetRows(data)
    found = pa.Table.from_batches(file.batches(["add", "text"], rows=700))
    assert found.equals(table)
    assert max(batch.num_rows for batch in file.batches(["text"], rows=700)) == 700


def test_of_long_rows_few_are_decoded_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_rows, "_MAX_BATCH_BYTES", 100_000)
    long = ["x" * 30_000] * 50
    for dictionary in (True, False):
        file = ParquetRows(written(pa.table({"text": long}), use_dictionary=dictionary))
        batches = list(file.batches(["text"], rows=1000))
        assert max(batch.num_rows for batch in batches) == 3
        assert sum(batch.num_rows for batch in batches) == 50


@pytest.mark.parametrize(
    ("bound", "most", "column"),
    [
        ("_MAX_PAGE_BYTES", 20_000, "text"),
        ("_MAX_VALUES", 9, "text"),
        ("_MAX_LIST_BYTES", 100_000, "list"),
    ],
)
def test_what_is_out_of_bounds_is_refused(
    bound: str, most: int, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"text": ["x" * 30_000] * 10, "list": [["x" * 30_000]] * 10})
    file = ParquetRows(written(table))
    assert sum(batch.num_rows for batch in file.batches([column], rows=10)) == 10
    monkeypatch.setattr(parquet_rows, bound, most)
    with pytest.raises(MalformedData):
        list(file.batches([column], rows=10))


@pytest.mark.parametrize("compression", ["snappy", "lz4"])
def test_many_short_values_of_a_dictionary_are_not_taken_for_long_ones(
    compression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_rows, "_MAX_LIST_BYTES", 2_000_000)
    days = [f"day-{number:04}" for number in range(300)]
    maps = [[("d", days[number % 300])] for number in range(50_000)]
    table = pa.table({"map": pa.array(maps, pa.map_(pa.string(), pa.string()))})
    file = ParquetRows(written(table, compression=compression))
    assert pa.Table.from_batches(file.batches(["map"], rows=10_000)).equals(table)


def test_a_small_checkpoint_that_unpacks_to_gigabytes_takes_few_megabytes() -> None:
    program = """
import io, resource
import pyarrow as pa, pyarrow.parquet as pq
from formats.tables import delta_logs as log
from formats.tables.folder import MemoryFolder
from lumos.formats.interface import UnreadableFile
from lumos.formats.tables import table_reader

index = pa.array([0] * 20_000, pa.int32())
paths = pa.DictionaryArray.from_arrays(index, pa.array(["x" * 10**6]))
add = pa.StructArray.from_arrays([paths, pa.array([1] * 20_000)], ["path", "size"])
nothing = [None] * 19_999
told = log.metadata(log.field("id"))["metaData"]
told = {"id": "x", "schemaString": told["schemaString"], "partitionColumns": []}
protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
table = pa.table({"add": add, "metaData": [told, *nothing], "protocol": [protocol, *nothing]})
sink = io.BytesIO()
pq.write_table(table, sink, compression="zstd", dictionary_pagesize_limit=10**8)
assert len(sink.getvalue()) < 100_000
name = log.commit_name(0).replace(".json", ".checkpoint.parquet")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    table_reader("delta").read(MemoryFolder({name: sink.getvalue()}), None, max_commits=1)
except UnreadableFile as problem:
    assert problem.code == "broken_table", problem
else:
    raise SystemExit("It was read.")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < 400
