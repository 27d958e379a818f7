"""A look at a place before anything is recorded."""

from pathlib import Path

import pyarrow as pa
import pytest

from files import write_parquet, write_text
from lumos import Lumos
from lumos.errors import MisuseError

pytestmark = pytest.mark.usefixtures("spark", "workplace")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / "a lake"
    write_parquet(lake / "events/dt=2024-01-01/part-0.parquet", id=pa.int64())
    write_text(lake / "ref/users.csv", ["id,name", "1,Ann"])
    return lake


def test_datasets_are_shown_and_nothing_is_recorded(lake: Path) -> None:
    found = Lumos().discover(lake)
    assert {each.name for each in found.datasets} == {"events", "users"}
    assert (found.summary.files_listed, found.summary.complete) == (2, True)
    assert not Path(".lumos/lumos.db").exists()


def test_a_written_configuration_ingests_what_was_found(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere" / "sources.yaml"
    file.parent.mkdir()
    found = Lumos().discover(lake, write_config=file)
    assert found.config == str(file)
    assert "events" in file.read_text()
    ingested = Lumos(file).ingest()
    assert {each.urn for each in ingested.datasets} == {each.urn for each in found.datasets}


def test_an_existing_file_is_only_replaced_with_force(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "sources.yaml"
    file.write_text("mine")
    with pytest.raises(MisuseError, match="exists already"):
        Lumos().discover(lake, write_config=file)
    assert file.read_text() == "mine"
    Lumos().discover(lake, write_config=file, force=True)
    assert "sources:" in file.read_text()
