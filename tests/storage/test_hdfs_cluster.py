"""What a real Hadoop file system with two name nodes does."""

import pytest

from lumos.http.retries import RetryPolicy
from lumos.storage import KeyRange, ListedFile
from lumos.storage.hdfs import HdfsAccess, HdfsStorage
from servers.hdfs import Cluster
from storage_folders import InCluster

pytestmark = pytest.mark.slow

PATIENT = RetryPolicy(seconds=60, tries=20)


@pytest.fixture
def place(cluster: Cluster) -> InCluster:
    made = InCluster(cluster.urls)
    made.put({"a.csv": b"data", "sub/b.csv": b"more"})
    return made


def storage_at(*urls: str, **facts: object) -> HdfsStorage:
    access = HdfsAccess(urls=urls, nameservice="cluster", **facts)  # type: ignore[arg-type]
    return HdfsStorage(access, environment={}, retries=PATIENT)


def test_reading_and_writing_go_on_when_the_other_name_node_becomes_active(
    cluster: Cluster, place: InCluster
) -> None:
    storage = storage_at(*cluster.urls, user="root")
    before = sorted(each.path for each in storage.walk(KeyRange(place.root)))
    for turn in range(2):
        cluster.fail_over()
        assert sorted(each.path for each in storage.walk(KeyRange(place.root))) == before
        path = f"{place.root}/_state/{turn}"
        storage.write(path, b"kept")
        assert storage.read(path) == b"kept"
        fresh = storage_at(*reversed(cluster.urls), user="root")
        assert fresh.read(f"{place.root}/a.csv") == b"data"


def test_a_token_is_given_taken_and_ended(cluster: Cluster, place: InCluster) -> None:
    """Without Kerberos the cluster looks at nobody's token; what it refuses is told elsewhere."""
    client = storage_at(*cluster.urls, user="root").client("cluster")
    token = client.new_token("root")
    storage = storage_at(*cluster.urls, token=token)
    assert storage.read(f"{place.root}/a.csv") == b"data"
    assert storage.files(place.root) == ["a.csv"]
    client.cancel_token(token)


def test_permissions_are_checked_and_reported(cluster: Cluster, place: InCluster) -> None:
    stranger = storage_at(*cluster.urls, user="stranger")
    assert stranger.read(f"{place.root}/a.csv") == b"data"
    with pytest.raises(PermissionError, match="Permission denied: user=stranger") as refused:
        stranger.write(f"{place.root}/c.csv", b"1")
    assert "\n" not in str(refused.value)


def test_a_file_that_is_written_anew_is_another_one(place: InCluster) -> None:
    (before,) = (each for each in place.storage.entries(place.root))
    place.put({"a.csv": b"DATA"})
    (after,) = (each for each in place.storage.entries(place.root))
    assert isinstance(after, ListedFile)
    assert before.size == after.size
    assert before.etag != after.etag
