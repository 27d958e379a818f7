"""lumos show tells what a dataset is made from and what is made from it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lumos.model.lineage import Edge
from lumos.store import Database, KnownDataset, Store

AT = datetime(2024, 3, 1, tzinfo=UTC)
URN = "lumos://file/lake/orders"


@pytest.fixture
def store(workplace: Path) -> Store:
    store = Store.open(Database.sqlite(workplace / "lumos.db"), create=True)
    known = KnownDataset(
        urn=URN, name="orders", platform="file", format="parquet", source="file:/lake",
        state="live", cloud_version="S-1", schema_version="1.0.0", schema_hash=None,
        fingerprint="", content="", created_at=AT, updated_at=AT,
    )  # fmt: skip
    with store.transaction() as transaction:
        transaction.save(known)
    return store


def report(store: Store, *links: tuple[str, str]) -> None:
    with store.transaction() as transaction:
        edges = [Edge(upstream=up, downstream=down, origin="sql:m", at=AT) for up, down in links]
        transaction.lineage.report("sql:m", edges, at=AT)


def test_both_sides_are_shown(lumos: Any, store: Store) -> None:
    report(store, ("lumos://x/a", URN), ("lumos://x/b", URN), (URN, "lumos://x/c"))
    shown = lumos("show", URN, "--store", "lumos.db")
    assert "upstream 2 datasets a b downstream 1 dataset c" in shown.words
    lineage = lumos("show", URN, "--store", "lumos.db", "--json").json["dataset"]["lineage"]
    assert [edge["urn"] for edge in lineage["upstream"]] == ["lumos://x/a", "lumos://x/b"]
    assert [edge["urn"] for edge in lineage["downstream"]] == ["lumos://x/c"]


def test_of_very_many_the_first_are_shown(lumos: Any, store: Store) -> None:
    report(store, *((f"lumos://x/{number:02}", URN) for number in range(12)))
    shown = lumos("show", URN, "--store", "lumos.db")
    assert (
        "upstream 12 datasets 00 01 02 03 04 05 06 07 08 09 and 2 more: lumos lineage show orders"
        in shown.words
    )


def test_without_lineage_nothing_is_said_of_it(lumos: Any, store: Store) -> None:
    assert store.lineage.count() == 0
    assert "stream" not in lumos("show", URN, "--store", "lumos.db").words
