"""What catalogs have not heard of yet, on every database."""

import threading
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from lumos.model.catalog import Job
from lumos.model.dataset import Governance, Lineage, UpstreamEdge
from lumos.model.lineage import Edge
from lumos.store import Store, Transaction
from lumos.store.catalog_outbox import DATASETS, OutboxEntry
from lumos.store.entries import StoredItem
from lumos.store.usage import Reads
from store.conftest import AT, dataset

ORDERS, SALES = dataset().urn, dataset("sales").urn
JOB = "lumos://airflow/daily"


def save(store: Store, *names: str) -> None:
    with store.transaction() as transaction:
        for name in names:
            transaction.save(dataset(name))


def follow(store: Store, *catalogs: str) -> None:
    with store.transaction() as transaction:
        for name in catalogs:
            transaction.catalog_outbox.subscribe(name, at=AT)


def news(store: Store, catalog: str = "datahub", kind: str = DATASETS) -> set[str]:
    return {each.key for each in store.catalog_outbox.pending(catalog, kind, after=None, limit=100)}


def publish_all(store: Store, catalog: str = "datahub") -> None:
    with store.transaction() as transaction:
        for kind in store.catalog_outbox.counts(catalog):
            waiting = store.catalog_outbox.pending(catalog, kind, after=None, limit=100)
            transaction.catalog_outbox.mark_published(catalog, kind, waiting)


def test_a_new_catalog_gets_everything_in_the_store(
    store: Store,
) -> None:
    save(store, "orders", "sales")
    with store.transaction() as transaction:
        transaction.entries.put_item(StoredItem("glossary", "revenue", b"{}"), at=AT)
    assert news(store) == set()
    follow(store, "datahub")
    assert store.catalog_outbox.counts("datahub") == {DATASETS: 2, "glossary": 1}
    publish_all(store)
    follow(store, "datahub")
    assert store.catalog_outbox.counts("datahub") == {}
    with store.transaction() as transaction:
        transaction.catalog_outbox.add_all("datahub")
    assert news(store) == {ORDERS, SALES}


def test_without_a_catalog_nothing_is_collected(store: Store) -> None:
    save(store, "orders")
    assert (store.catalog_outbox.catalogs(), store.counts()["catalog_news"]) == ((), 0)


def test_every_catalog_hears_by_itself_and_changes_of_one_dataset_are_one(store: Store) -> None:
    follow(store, "datahub", "openmetadata")
    save(store, "orders")
    save(store, "orders", "sales")
    publish_all(store, "openmetadata")
    assert (news(store), news(store, "openmetadata")) == ({ORDERS, SALES}, set())


def test_what_changes_while_it_is_published_stays_in_the_outbox(store: Store) -> None:
    follow(store, "datahub")
    save(store, "orders", "sales")
    read = store.catalog_outbox.pending("datahub", DATASETS, after=None, limit=10)
    save(store, "orders")
    with store.transaction() as transaction:
        transaction.catalog_outbox.mark_published("datahub", DATASETS, read)
    assert news(store) == {ORDERS}


def test_news_are_read_in_pages_by_code_point(store: Store) -> None:
    follow(store, "datahub")
    save(store, "a", "B", "é", "Z")
    seen: list[str] = []
    while page := store.catalog_outbox.pending(
        "datahub", DATASETS, after=seen[-1] if seen else None, limit=2
    ):
        assert all(isinstance(each, OutboxEntry) for each in page)
        seen += [each.key for each in page]
    assert seen == sorted(dataset(name).urn for name in ("a", "B", "é", "Z"))


def edge(upstream: str, downstream: str, **facts: Any) -> Edge:
    return Edge(upstream=upstream, downstream=downstream, origin="sql", at=AT, **facts)


def derive_usage(transaction: Transaction) -> None:
    usage = transaction.usage
    reads = Reads(ORDERS, date(2024, 1, 15), "anna", 1, AT, None, None, {"id": 1})
    usage.derive(usage.add("log", [reads]), at=AT)


WRITES: dict[str, tuple[Callable[[Transaction], object], dict[str, set[str]]]] = {
    "an aspect": (
        lambda transaction: transaction.save_aspect(
            ORDERS, "governance", Governance(tags=("pii",)), writer="user", at=AT
        ),
        {DATASETS: {ORDERS}},
    ),
    "an edge": (
        lambda transaction: transaction.lineage.report("sql", [edge(ORDERS, SALES)], at=AT),
        {DATASETS: {SALES}},
    ),
    "a job": (
        lambda transaction: transaction.lineage.add(
            "sql", [], [Job(urn=JOB, name="daily", platform="airflow")], at=AT
        ),
        {"jobs": {JOB}},
    ),
    "reads": (derive_usage, {DATASETS: {ORDERS}}),
    "another name": (
        lambda transaction: transaction.rename(dataset(), to=dataset("new").urn, name="new", at=AT),
        {DATASETS: {ORDERS, dataset("new").urn}},
    ),
    "the end of a dataset": (
        lambda transaction: transaction.entries.erase(ORDERS),
        {DATASETS: {ORDERS}},
    ),
    "an item": (
        lambda transaction: transaction.entries.put_item(StoredItem("users", "anna", b"{}"), at=AT),
        {"users": {"anna"}},
    ),
    "the end of an item": (
        lambda transaction: transaction.entries.erase_item("users", "anna"),
        {"users": {"anna"}},
    ),
}


@pytest.mark.parametrize("what", WRITES)
def test_whoever_writes_something_makes_it_news(store: Store, what: str) -> None:
    write, expected = WRITES[what]
    save(store, "orders", "sales")
    follow(store, "datahub")
    publish_all(store)
    store.transact(write)
    assert {
        kind: news(store, kind=kind) for kind in store.catalog_outbox.counts("datahub")
    } == expected


def test_edges_that_go_or_change_are_news_of_what_is_made_from_them(store: Store) -> None:
    save(store, "orders", "sales")
    follow(store, "datahub")

    def report(*edges: Edge) -> set[str]:
        publish_all(store)
        with store.transaction() as transaction:
            transaction.lineage.report("sql", edges, at=AT)
        return news(store)

    assert report(edge(ORDERS, SALES)) == {SALES}
    assert report(edge(ORDERS, SALES)) == set()
    assert report(edge(ORDERS, SALES, type="VIEW")) == {SALES}
    assert report() == {SALES}


def test_what_is_made_from_a_renamed_dataset_is_news(store: Store) -> None:
    save(store, "orders", "sales", "told")
    with store.transaction() as transaction:
        transaction.lineage.report("sql", [edge(ORDERS, SALES)], at=AT)
        lineage = Lineage(downstream=(UpstreamEdge(urn=ORDERS),))
        transaction.save_aspect(dataset("told").urn, "lineage", lineage, writer="import", at=AT)
    follow(store, "datahub")
    publish_all(store)
    with store.transaction() as transaction:
        transaction.rename(dataset(), to=dataset("new").urn, name="new", at=AT)
    assert news(store) == {ORDERS, SALES, *(dataset(name).urn for name in ("new", "told"))}


def test_nothing_is_lost_between_subscription_and_a_concurrent_writer(store: Store) -> None:
    """On PostgreSQL both may run at once; on SQLite one waits for the other."""
    started = threading.Event()

    def write() -> None:
        with store.transaction() as transaction:
            transaction.save(dataset())
            transaction.finish()
            started.set()
            # The one who follows must wait for the end of this.
            follower.join(timeout=0.3)

    follower = threading.Thread(target=lambda: (started.wait(), follow(store, "datahub")))
    writer = threading.Thread(target=write)
    for thread in (follower, writer):
        thread.start()
    for thread in (writer, follower):
        thread.join()
    assert news(store) == {ORDERS}
