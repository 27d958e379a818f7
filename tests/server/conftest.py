"""One store with something of every kind, copied for each test that writes."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from served_store import client_of, fill


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, to be copied."""
    folder = tmp_path_factory.mktemp("served")
    fill(folder).database.engine.dispose()
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a test."""
    work = tmp_path / "work"
    shutil.copytree(filled, work)
    monkeypatch.chdir(work)
    return work


@pytest.fixture
def lumos(folder: Path) -> Lumos:
    return Lumos(folder / "lumos.yaml")


@pytest.fixture
def client(lumos: Lumos) -> Iterator[Any]:
    """A client on this machine, which needs no token."""
    with client_of(lumos) as client:
        yield client
