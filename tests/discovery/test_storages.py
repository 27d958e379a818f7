"""One lake in every store: the same datasets are found, known again and explained as on a disk."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from azure_server import ACCOUNT, SAS, AzureServer
from files import write_parquet, write_text
from gcs_server import GcsServer
from hdfs_server import TOKEN, HdfsServer
from lumos import Lumos
from lumos.doctor import _state
from servers.azurite import KEY, azurite
from servers.fake_gcs import fake_gcs
from servers.hdfs import hdfs_cluster
from storage_folders import InAzurite, InCluster, InFakeGcs

pytestmark = pytest.mark.usefixtures("workplace", "spark")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Partitions, text, a Delta table beside its files, a broken file and scratch space."""
    folder = tmp_path / "lake"
    for day in ("2024-05-01", "2024-05-02"):
        for part in range(2):
            write_parquet(folder / f"raw/orders/dt={day}/part-{part}.parquet", id=pa.int64())
    write_text(folder / "ref/customers & co+ü.csv", ["id,name", "1,Ann"])
    write_text(folder / "inbox/upload.parquet", ["cut off"])
    write_text(folder / "raw/orders/_SUCCESS", [""])
    data = write_parquet(folder / "tables/events/part-0.parquet", id=pa.int64())
    write_parquet(folder / "tables/events/removed.parquet", id=pa.int64())
    _write_delta_log(folder / "tables/events", data)
    return folder


def _write_delta_log(table: Path, data: Path) -> None:
    schema = {"type": "struct", "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    ]}  # fmt: skip
    actions: list[Mapping[str, object]] = [
        {"commitInfo": {"timestamp": 1_700_000_000_000, "operation": "WRITE"}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "a-table", "format": {"provider": "parquet", "options": {}},
                      "schemaString": json.dumps(schema), "partitionColumns": [],
                      "configuration": {}, "createdTime": 1_700_000_000_000}},
        {"add": {"path": data.name, "partitionValues": {}, "size": data.stat().st_size,
                 "modificationTime": 1_700_000_000_000, "dataChange": True,
                 "stats": '{"numRecords": 2}'}},
    ]  # fmt: skip
    write_text(table / "_delta_log/00000000000000000000.json", map(json.dumps, actions))


class Store:
    """Where a lake was put: its section, and what no report may show."""

    def __init__(self, section: dict[str, object], root: str, *secrets: str) -> None:
        self.section = section
        self.root = root
        self.secrets = secrets


def _in_gcs(files: Mapping[str, bytes], made: ExitStack) -> Store:
    server = made.enter_context(GcsServer({"lake": dict(files)}))
    login = {"endpoint_url": server.url, "credentials": server.account()}
    return Store({"type": "gcs", "bucket": "lake", **login}, "gs://lake", "PRIVATE", "hush")


def _in_azure(files: Mapping[str, bytes], made: ExitStack) -> Store:
    server = made.enter_context(AzureServer({"lake": dict(files)}, page=3))
    login = {"account": ACCOUNT, "endpoint_url": server.endpoint, "sas_token": SAS}
    root = f"abfss://lake@{ACCOUNT}.dfs.core.windows.net"
    return Store({"type": "azure", "container": "lake", **login}, root, SAS, "hush")


def _in_hdfs(files: Mapping[str, bytes], made: ExitStack) -> Store:
    standby = made.enter_context(HdfsServer(standby=True, secure=True))
    tree = {f"/lake/{name}": data for name, data in files.items()}
    server = made.enter_context(HdfsServer(tree, page=2, secure=True))
    login = {"urls": [standby.url, server.url], "nameservice": "cluster", "token": TOKEN}
    return Store({"type": "hdfs", "path": "/lake", **login}, "hdfs://cluster/lake", "hush")


EMULATED = {"gcs": _in_gcs, "azure": _in_azure, "hdfs": _in_hdfs}
REAL = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("fake-gcs", "azurite", "hadoop")]


@pytest.fixture(params=[*EMULATED, *REAL])
def store(request: pytest.FixtureRequest, lake: Path) -> Iterator[Store]:
    files = {
        str(file.relative_to(lake)): file.read_bytes() for file in lake.rglob("*") if file.is_file()
    }
    with ExitStack() as made:
        match request.param:
            case "fake-gcs":
                google = InFakeGcs(made.enter_context(fake_gcs()))
                google.put(files)
                yield Store(google.section, google.root)
            case "azurite":
                emulator = InAzurite(made.enter_context(azurite()))
                emulator.put(files)
                yield Store(emulator.section, emulator.root, KEY)
            case "hadoop":
                cluster = InCluster(made.enter_context(hdfs_cluster()).urls)
                cluster.put(files)
                yield Store(cluster.section, cluster.root)
            case kind:
                yield EMULATED[kind](files, made)


def _facts(report: Any, root: str) -> dict[str, object]:
    """What is told of each dataset, by its path below the root, without the times."""
    return {
        each.location.uri.removeprefix(f"{root}/"): (
            each.format,
            each.location.partitioning,
            each.schema,
            each.statistics.file_count,
            each.statistics.total_size_bytes,
            each.statistics.row_count,
        )
        for each in report.datasets
    }


def test_a_lake_is_the_same_in_every_store(lake: Path, store: Store) -> None:
    here = Lumos(overrides={"storage.path": "here.db"}).discover(lake)
    there = Lumos(overrides={"sources": [store.section], "state_uri": f"{store.root}/_state"})
    (checked,) = _state(there.settings)
    assert checked.status == "ok"
    first = there.ingest()
    assert first.roots == (store.root,)
    assert _facts(first, store.root) == _facts(here, str(lake))
    assert {each.code for each in first.problems} == {each.code for each in here.problems}
    again = there.ingest()
    assert (again.summary.datasets_unchanged, again.summary.files_read) == (len(first.datasets), 0)
    explained = there.explain(f"{store.root}/raw/orders/dt=2024-05-01/part-0.parquet")
    output = f"{first} {again} {explained} {there.settings}"
    assert explained.verdict == "dataset"
    assert explained.scanned_at is not None
    assert not [secret for secret in store.secrets if secret in output]
