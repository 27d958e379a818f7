"""Rows are read alike from every store, and no more of a file than is needed."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lumos.profiles.columns import column_types, profiled_columns
from lumos.profiles.rows import read_batches
from lumos.profiles.tasks import FileTask
from storage_folders import SERVED, OnDisk, StorageFolder

from .test_rows import COUNT, RECORDS, WRITERS, schema_of


@pytest.fixture(params=["local", *SERVED])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorageFolder]:
    with ExitStack() as made:
        kind = request.param
        yield OnDisk(tmp_path / "raw") if kind == "local" else SERVED[kind](made)


@pytest.mark.parametrize("name", ["a.parquet", "a.orc", "snappy.avro", "a.json.gz"])
def test_rows_come_from_any_store(place: StorageFolder, tmp_path: Path, name: str) -> None:
    data = WRITERS[name](RECORDS)
    (tmp_path / name).write_bytes(data)
    format, schema = schema_of(tmp_path / name)
    place.put({name: data})
    names = tuple(field.name for field in schema.fields)
    task = FileTask(f"{place.root}/{name}", len(data), format, 0, names=names)
    found = list(read_batches(task, place.storage, column_types(profiled_columns(schema))))
    ids = [value for batch in found for value in batch.columns["id"].to_pylist()]
    assert [int(each) for each in ids] == list(range(COUNT))


@pytest.mark.parametrize(
    "size", [pytest.param(100, id="longer"), pytest.param(10**6, id="shorter")]
)
@pytest.mark.parametrize("name", ["a.parquet", "a.orc", "snappy.avro", "a.jsonl"])
def test_a_file_that_was_written_anew_is_read_as_it_is_now(
    place: StorageFolder, tmp_path: Path, name: str, size: int
) -> None:
    data = WRITERS[name](RECORDS)
    (tmp_path / name).write_bytes(data)
    format, schema = schema_of(tmp_path / name)
    place.put({name: data})
    names = tuple(field.name for field in schema.fields)
    task = FileTask(f"{place.root}/{name}", size, format, 0, names=names)
    found = read_batches(task, place.storage, column_types(profiled_columns(schema)))
    assert sum(batch.rows for batch in found) == COUNT


def test_a_file_that_is_not_there_is_said_to_be_missing(place: StorageFolder) -> None:
    place.put({"other": b"x"})
    task = FileTask(f"{place.root}/none.parquet", 100, "parquet", 0)
    with pytest.raises(FileNotFoundError):
        list(read_batches(task, place.storage, {}))
