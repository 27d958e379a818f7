"""Stores of every database that is supported, each empty."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lumos.model.change import ChangeEvent, EventType
from lumos.store import Database, KnownDataset, Store

AT = datetime(2024, 1, 15, 10, 30, 0, 123456, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty database of each kind."""
    if request.param == "sqlite":
        opened = Database.sqlite(tmp_path / "lumos.db")
    else:
        opened = Database.postgres(request.getfixturevalue("postgres_store"))
    yield opened
    opened.engine.dispose()


@pytest.fixture
def store(database: Database) -> Store:
    return Store.open(database, create=True)


def dataset(name: str = "orders", **facts: object) -> KnownDataset:
    defaults: dict[str, object] = {
        "urn": f"lumos://file/lake/{name}",
        "name": name,
        "platform": "file",
        "format": "parquet",
        "source": "file:/lake",
        "state": "live",
        "cloud_version": "S-1",
        "schema_version": "1.0.0",
        "schema_hash": None,
        "fingerprint": "f" * 32,
        "content": "1-0",
        "created_at": AT,
        "updated_at": AT,
    }
    return KnownDataset(**{**defaults, **facts})  # type: ignore[arg-type]


def event(event_id: str = "e1", **facts: object) -> ChangeEvent:
    defaults: dict[str, object] = {
        "event_id": event_id,
        "urn": "lumos://file/lake/orders",
        "type": EventType.CREATED,
        "at": AT,
        "cause": "scan",
        "cloud_version": "S-1",
        "schema_version": "1.0.0",
    }
    return ChangeEvent(**{**defaults, **facts})  # type: ignore[arg-type]
