"""Lumos on every database, without a scan."""

from pathlib import Path

import pytest

from engine.sightings import Sightings
from lumos import Lumos


@pytest.fixture(params=["sqlite", "postgres"])
def stored(request: pytest.FixtureRequest, workplace: Path) -> dict[str, object]:
    """The settings of an empty store of each kind."""
    if request.param == "sqlite":
        return {"storage.path": str(workplace / "lumos.db")}
    return {
        "storage.backend": "postgres",
        "storage.connection_string": request.getfixturevalue("emptied_postgres"),
    }


@pytest.fixture
def seen(stored: dict[str, object]) -> Sightings:
    """A lake that nobody has looked at yet."""
    return Sightings(Lumos(overrides=stored))
