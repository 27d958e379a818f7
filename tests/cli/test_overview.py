"""lumos overview."""

import json
from pathlib import Path
from typing import Any

import pytest

from served_store import fill


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fill(tmp_path).database.engine.dispose()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_overview_lists_sources_and_counts_what_datasets_have(lumos: Any) -> None:
    done = lumos("overview")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].split() == ["SOURCE", "DATASETS", "LAST", "SCAN", "(UTC)", "LAST", "CHANGE", "(UTC)"]  # fmt: skip
    assert lines[1].split()[:3] == ["file:/lake", "2", "-"]
    assert lines[-1] == "2 datasets: 1 owned, 1 documented, 2 with lineage."
    assert json.loads(lumos("overview", "--json").out)["owned"] == 1


def test_overview_without_a_store_says_how_to_fill_one(
    lumos: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = lumos("overview")
    assert done.code == 1
    assert "lumos ingest PATH" in done.err
