"""A lake that is scanned again and again."""

from pathlib import Path

import pytest

from discovery.lake.tables_scanned import Scans


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


@pytest.fixture
def scans(lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scans:
    return Scans(str(lake), tmp_path / "state", monkeypatch)
