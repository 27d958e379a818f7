"""Changes of HDFS, found by comparing folders."""

import time
from collections.abc import Iterator
from urllib.parse import unquote

import pytest

from hdfs_server import HdfsServer, error
from lumos.config.settings import StorageEventType
from lumos.config.sources import HdfsSourceSettings
from lumos.sources.events import EventSourceFailed
from lumos.sources.events.hdfs import HdfsChanges
from servers.hdfs import hdfs_cluster
from storage_folders import BRIEF, InCluster

ROOT = "hdfs://cluster/lake"


@pytest.fixture
def server() -> Iterator[HdfsServer]:
    with HdfsServer() as started:
        for partition in range(4):
            started.put(f"/lake/raw/orders/dt={partition}/a.parquet", b"1")
        started.put("/lake/raw/notes.txt", b"1")
        yield started


@pytest.fixture
def changes(server: HdfsServer) -> Iterator[HdfsChanges]:
    source = HdfsSourceSettings(paths=("/lake",), urls=(server.url,), nameservice="cluster")
    found = HdfsChanges(source, interval=0, retries=BRIEF)
    found.open()
    assert found.receive(1) == []
    yield found
    found.close()


def next_changes(changes: HdfsChanges) -> set[tuple[str, str]]:
    """What the next round finds, with paths below the root."""
    changes._next_at = 0
    return {
        (event.path.removeprefix(f"{ROOT}/"), event.type.value)
        for message in changes.receive(1)
        for event in message.events
    }


def listed_folders(server: HdfsServer) -> list[str]:
    return [
        unquote(request.path).removeprefix("/webhdfs/v1/lake")
        for request in server.requests
        if request.query["op"].startswith("LISTSTATUS")
    ]


def test_a_round_lists_only_folders_of_folders_and_changed_ones(
    server: HdfsServer, changes: HdfsChanges
) -> None:
    server.requests.clear()
    assert next_changes(changes) == set()
    assert listed_folders(server) == ["", "/raw", "/raw/orders"]
    server.put("/lake/raw/orders/dt=2/b.parquet", b"2")
    server.requests.clear()
    assert next_changes(changes) == {("raw/orders/dt=2/", "ObjectCreated")}
    assert listed_folders(server) == ["", "/raw", "/raw/orders", "/raw/orders/dt=2"]
    assert next_changes(changes) == set()


def test_files_beside_folders_are_named_by_themselves(
    server: HdfsServer, changes: HdfsChanges
) -> None:
    server.put("/lake/raw/more.txt", b"2")
    server.put("/lake/raw/notes.txt", b"longer")
    assert next_changes(changes) == {
        ("raw/more.txt", "ObjectCreated"),
        ("raw/notes.txt", "ObjectCreated"),
    }
    server.remove("/lake/raw/more.txt")
    assert next_changes(changes) == {("raw/more.txt", "ObjectDeleted")}


def test_new_and_deleted_folders_are_named_as_a_whole(
    server: HdfsServer, changes: HdfsChanges
) -> None:
    server.put("/lake/raw/visits/dt=1/a.parquet", b"1")
    assert ("raw/visits/", "ObjectCreated") in next_changes(changes)
    server.remove("/lake/raw/visits/dt=1/a.parquet")
    assert next_changes(changes) == {("raw/visits/", "ObjectDeleted")}
    # It is new again, not as it was.
    server.put("/lake/raw/visits/dt=1/a.parquet", b"1")
    assert ("raw/visits/", "ObjectCreated") in next_changes(changes)


def test_logs_of_tables_are_watched_and_scratch_space_is_not(
    server: HdfsServer, changes: HdfsChanges
) -> None:
    server.put("/lake/raw/orders/_delta_log/0.json", b"{}")
    server.put("/lake/raw/orders/_temporary/0/x.parquet", b"1")
    found = next_changes(changes)
    assert ("raw/orders/_delta_log/", "ObjectCreated") in found
    assert not any("_temporary" in path for path, _ in found)
    server.put("/lake/raw/orders/_delta_log/1.json", b"{}")
    assert next_changes(changes) == {("raw/orders/_delta_log/", "ObjectCreated")}


def test_what_was_found_before_a_failure_is_delivered_after_it(
    server: HdfsServer, changes: HdfsChanges
) -> None:
    server.put("/lake/raw/more.txt", b"2")
    server.put("/lake/raw/orders/dt=1/b.parquet", b"2")
    server.answer = lambda request: (
        error(500, "IOException", "Busy.") if unquote(request.path).endswith("dt=1") else None
    )
    with pytest.raises(EventSourceFailed, match=r"orders/dt=1 cannot be listed: .*Busy"):
        next_changes(changes)
    server.answer = lambda _request: None
    assert next_changes(changes) == {
        ("raw/more.txt", "ObjectCreated"),
        ("raw/orders/dt=1/", "ObjectCreated"),
    }


def test_a_root_that_does_not_exist_is_refused(server: HdfsServer) -> None:
    source = HdfsSourceSettings(paths=("/nothing",), urls=(server.url,), nameservice="cluster")
    with pytest.raises(EventSourceFailed, match="hdfs://cluster/nothing cannot be watched"):
        HdfsChanges(source, retries=BRIEF).open()


@pytest.mark.slow
def test_a_real_file_system_has_the_times_that_this_relies_on() -> None:
    with hdfs_cluster() as cluster:
        folder = InCluster(cluster.urls)
        folder.put({"raw/orders/dt=1/a.parquet": b"1", "raw/orders/dt=2/a.parquet": b"1"})
        source = HdfsSourceSettings(
            paths=(str(folder.section["path"]),), urls=cluster.urls, nameservice="cluster",
            user="root",
        )  # fmt: skip
        changes = HdfsChanges(source, interval=0)
        changes.open()
        # All of it was written within the allowance for different clocks.
        assert changes.receive(1)
        changes._next_at = 0
        assert changes.receive(1) == []
        time.sleep(0.05)

        def paths() -> set[tuple[str, StorageEventType]]:
            changes._next_at = 0
            return {
                (event.path.removeprefix(f"{folder.root}/"), event.type)
                for message in changes.receive(1)
                for event in message.events
            }

        folder.put({"raw/orders/dt=2/b.parquet": b"2"})
        assert paths() == {("raw/orders/dt=2/", StorageEventType.CREATED)}
        folder.put({"raw/visits/dt=1/a.parquet": b"2"})
        assert ("raw/visits/", StorageEventType.CREATED) in paths()
        folder.storage.discard([f"{folder.root}/raw/orders/dt=1/a.parquet"])
        assert paths() == {("raw/orders/dt=1/", StorageEventType.CREATED)}
        changes.close()
