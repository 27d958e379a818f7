"""DataHub's own tools, with a home of their own."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from servers.atlas import atlas_server

from .contract_catalogs import atlas_at

_SAMPLES = Path(__file__).parents[2] / "build" / "datahub"
_JUDGE = Path(__file__).parent / "datahub" / "datahub_judge.py"


class DataHub:
    """DataHub's command line and package; `home` is where it keeps its settings."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def check(self, file: Path) -> str:
        """What `datahub check metadata-file` says of a file."""
        return self._run("-m", "datahub", "check", "metadata-file", str(file))

    def read(self, file: Path) -> Counter[str]:
        """Every aspect in a file as the package's classes hold it, as JSON."""
        read = json.loads(self._run(str(_JUDGE), "read", str(file)))
        return Counter(json.dumps(change, sort_keys=True) for change in read)

    def through_lite(self, file: Path, back: Path) -> None:
        """Imports a file into DataHub Lite and exports all that it then holds."""
        lite = {"type": "sqlite", "config": {"file": str(self.home / "lite.db")}}
        settings = {"gms": {"server": "http://localhost:1"}, "lite": lite}
        (self.home / ".datahubenv").write_text(json.dumps(settings), encoding="utf-8")
        self._run("-m", "datahub", "lite", "import", "--file", str(file))
        self._run("-m", "datahub", "lite", "export", "--file", str(back))

    def sample(self, name: str) -> list[Path]:
        """The files of a public sample, from where the package says that they are."""
        done = _sample(name)
        if done.returncode != 0:
            last = done.stderr.strip().splitlines()[-1]
            pytest.skip(f"DataHub's sample '{name}' cannot be had here: {last[-300:]}")
        return [Path(path) for path in json.loads(done.stdout)]

    def _run(self, *arguments: str) -> str:
        done = _python(*arguments, home=self.home)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


@cache
def _sample(name: str) -> subprocess.CompletedProcess[str]:
    # What was fetched once is kept there.
    _SAMPLES.mkdir(parents=True, exist_ok=True)
    return _python(str(_JUDGE), "sample", name, home=_SAMPLES)


def _python(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "HOME": str(home), "DATAHUB_TELEMETRY_ENABLED": "false"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def real_atlas() -> Iterator[str]:
    """The address of a real Atlas, which takes a minute to start."""
    with atlas_server() as address:
        yield address


@pytest.fixture
def emptied_atlas(real_atlas: str) -> str:
    """The address of that server, without what an earlier test wrote."""
    catalog = atlas_at(real_atlas)
    catalog.erase_many([entry.urn for entry in catalog.export()])
    for item in list(catalog.items()):
        catalog.erase_item(item)
    catalog.clean_up()
    return real_atlas


@pytest.fixture
def datahub(tmp_path: Path) -> DataHub:
    home = tmp_path / "home"
    home.mkdir()
    return DataHub(home)
