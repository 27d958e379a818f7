"""Facts that the suites of this folder share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.azurite import azurite
from servers.fake_gcs import fake_gcs
from servers.hdfs import Cluster, hdfs_cluster


@pytest.fixture(autouse=True)
def no_aws_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nobody has said anything about AWS."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="session")
def fake_gcs_url() -> Iterator[str]:
    """The address of an emulator of Google's storage."""
    with fake_gcs() as url:
        yield url


@pytest.fixture(scope="session")
def azurite_endpoint() -> Iterator[str]:
    """The address of Microsoft's emulator."""
    with azurite() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A real Hadoop file system."""
    with hdfs_cluster() as started:
        yield started
