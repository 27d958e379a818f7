"""Slices of merge-on-read tables: as they are now, and reached as their source is."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from formats.tables.hudi_tables import HudiTable
from lumos.discovery.lake.table_folder import StoredTableFolder
from lumos.formats.interface import UnreadableFile
from lumos.formats.tables.hudi.reader import HudiReader
from lumos.model.types import INT64
from lumos.profiles.rows import read_batches
from lumos.profiles.tasks import HUDI_SLICE, FileTask
from lumos.storage import DEFAULT_ACCESS, StorageAccess, storage_of
from lumos.storage.s3 import S3Access
from s3_server import S3Server

hudi = pytest.importorskip("hudi", reason="The library that merges slices is not installed.")


def ids(root: str, access: StorageAccess = DEFAULT_ACCESS) -> list[int]:
    """The column `id` of all live files, each read as a slice."""
    storage = storage_of(root, access)
    _, memory = HudiReader().read(StoredTableFolder(storage, root), None, max_commits=10)
    found: list[int] = []
    for live in HudiReader().live(memory):
        task = FileTask(
            f"{root}/{live.path}",
            live.size,
            HUDI_SLICE,
            unit=0,
            path_in_log=live.path,
            table_root=root,
        )
        for batch in read_batches(task, storage, {"id": INT64}):
            found += batch.columns["id"].to_pylist()
    return found


def files_of(table: HudiTable, *, below: str) -> Mapping[str, bytes]:
    return {f"{below}/{path}": data for path, data in table.files.items()}


@pytest.fixture(params=[6, 9])
def table(request: pytest.FixtureRequest) -> HudiTable:
    table = HudiTable(
        request.param,
        merged_on_read=True,
        properties={"hoodie.populate.meta.fields": "false"},
    )
    table.write({"a": 3})
    return table


def test_a_table_that_changed_is_read_anew_in_the_same_process(
    table: HudiTable, tmp_path: Path
) -> None:
    table.save(tmp_path)
    assert ids(str(tmp_path)) == [0, 1, 2]
    table.write({"a": 5})
    table.save(tmp_path)
    assert ids(str(tmp_path)) == [0, 1, 2, 3, 4]


def test_slices_are_reached_with_the_credentials_of_the_source(table: HudiTable) -> None:
    buckets = {"lake": files_of(table, below="trips")}
    with S3Server(buckets, keys={"ours": "secret"}) as server:
        access = S3Access(endpoint_url=server.url, access_key_id="ours", secret_access_key="secret")
        assert ids("s3://lake/trips", access) == [0, 1, 2]


def test_another_source_does_not_get_what_was_read_with_other_credentials(
    table: HudiTable,
) -> None:
    buckets = {"lake": files_of(table, below="trips")}
    with S3Server(buckets, keys={"ours": "secret"}) as server:
        ours = S3Access(endpoint_url=server.url, access_key_id="ours", secret_access_key="secret")
        theirs = S3Access(endpoint_url=server.url, access_key_id="theirs", secret_access_key="x")
        assert ids("s3://lake/trips", ours) == [0, 1, 2]
        task = slice_of(table, "s3://lake/trips")
        with pytest.raises(PermissionError):
            list(read_batches(task, storage_of("s3://lake", theirs), {"id": INT64}))


def slice_of(table: HudiTable, root: str) -> FileTask:
    path = next(path for path in table.files if path.endswith(".parquet"))
    return FileTask(f"{root}/{path}", 1, HUDI_SLICE, unit=0, path_in_log=path, table_root=root)


def test_a_slice_that_is_gone_is_not_found(table: HudiTable, tmp_path: Path) -> None:
    table.save(tmp_path)
    task = slice_of(table, str(tmp_path))
    Path(task.path).unlink()
    with pytest.raises(FileNotFoundError):
        list(read_batches(task, storage_of(str(tmp_path)), {"id": INT64}))


def test_a_timeline_outside_of_the_table_is_not_opened(table: HudiTable, tmp_path: Path) -> None:
    table.properties["hoodie.timeline.path"] = "../../outside"
    table.properties["hoodie.timeline.layout.version"] = "2"
    table.save_properties()
    table.save(tmp_path / "lake")
    with pytest.raises(UnreadableFile) as caught:
        list(read_batches(slice_of(table, str(tmp_path / "lake")), storage_of(""), {"id": INT64}))
    assert caught.value.code == "outside_path"
