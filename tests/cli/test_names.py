"""Screens call datasets by name, by the end of the path where names collide, and by URN if asked."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.cli.text import Names
from lumos.store import Database, KnownDataset, Store

AT = datetime(2024, 3, 1, tzinfo=UTC)


@pytest.fixture
def datasets(workplace: Path) -> Store:
    store = Store.open(Database.sqlite(workplace / "lumos.db"), create=True)
    names = {"crm/customers": "customers", "old/customers": "customers", "sales/o.csv": "orders"}
    with store.transaction() as transaction:
        for path, name in names.items():
            transaction.save(
                KnownDataset(
                    urn=f"lumos://file/lake/{path}",
                    name=name,
                    platform="file",
                    format="csv",
                    source="file:/lake",
                    state="live",
                    cloud_version="S-1",
                    schema_version="1.0.0",
                    schema_hash=None,
                    fingerprint=path,
                    content="",
                    created_at=AT,
                    updated_at=AT,
                )
            )
    return store


@pytest.mark.usefixtures("datasets")
def test_names_stand_in_place_of_urns_unless_somebody_wants_these(lumos: Any) -> None:
    shown = lumos("list", "--store", "lumos.db").out
    assert [line.split()[0] for line in shown.splitlines()] == [
        "DATASET", "crm/customers", "old/customers", "orders",
    ]  # fmt: skip
    assert "lumos://" not in shown
    assert "lumos://file/lake/sales/o.csv" in lumos("list", "--store", "lumos.db", "-v").out


@pytest.mark.usefixtures("datasets")
def test_a_name_collides_with_datasets_that_are_not_on_the_screen(lumos: Any) -> None:
    shown = lumos("list", "crm", "--store", "lumos.db").words
    assert "crm/customers csv" in shown
    assert lumos("show", "crm/customers", "--store", "lumos.db").out.startswith("crm/customers\n")


@pytest.mark.usefixtures("datasets")
def test_urns_inside_a_sentence_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LUMOS_VERBOSE", raising=False)
    names = Names(Lumos(overrides={"storage.path": "lumos.db"}))
    text = "Dropping a of lumos://file/lake/sales/o.csv: breaks lumos://x/b, lumos://x/c."
    assert names(text) == "Dropping a of orders: breaks b, c."
    monkeypatch.setenv("LUMOS_VERBOSE", "1")
    assert Names(Lumos())(text) == text
