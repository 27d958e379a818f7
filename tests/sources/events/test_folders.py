"""Events of local folders from the kernel."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumos.sources.events.folders import FolderEvents


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


@pytest.fixture
def opened(lake: Path) -> Iterator[FolderEvents]:
    source = FolderEvents("lake", [str(lake)])
    source.open()
    yield source
    source.close()


def wait_for(source: FolderEvents, path: str) -> None:
    """Receives until an event names the path."""
    deadline = time.monotonic() + 60
    found: list[str] = []
    while path not in found:
        assert time.monotonic() < deadline, found
        found += [event.path for each in source.receive(1) for event in each.events]


def test_a_folder_that_was_replaced_is_watched_and_scanned_as_a_whole(
    opened: FolderEvents, lake: Path, tmp_path: Path
) -> None:
    lake.rename(tmp_path / "old")
    (tmp_path / "old" / "a.csv").write_text("1")
    wait_for(opened, f"{lake}/")
    lake.mkdir()
    wait_for(opened, f"{lake}/")
    (lake / "b.csv").write_text("1")
    wait_for(opened, f"{lake}/b.csv")
    shutil.rmtree(lake)
    lake.mkdir()
    wait_for(opened, f"{lake}/")
    (lake / "c.csv").write_text("1")
    wait_for(opened, f"{lake}/c.csv")


def test_a_folder_that_is_missing_is_watched_when_it_exists(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    source = FolderEvents("lake", [str(lake)])
    source.open()
    assert source.receive(1) == []
    lake.mkdir()
    wait_for(source, f"{lake}/")
    (lake / "a.csv").write_text("1")
    wait_for(source, f"{lake}/a.csv")
    source.close()
