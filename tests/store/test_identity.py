"""A dataset that is renamed or becomes part of another keeps what is known of it."""

from lumos.model.change import EventType
from lumos.model.dataset import Documentation, Location, Owner, Ownership
from lumos.model.schema import parse_schema
from lumos.store import DatasetFilter, Facets, Store
from store.conftest import AT, dataset, event

ORDERS, SALES = "lumos://file/lake/orders", "lumos://file/lake/sales"
OWNED = Ownership(owners=(Owner(name="ann"),))


def test_a_renamed_dataset_is_found_under_both_urns_with_its_history(store: Store) -> None:
    with store.transaction() as transaction:
        hash = transaction.save_schema(parse_schema("id INT64"))
        known = dataset(schema_hash=hash)
        transaction.save(known)
        transaction.save_aspect(ORDERS, "ownership", OWNED, writer="user", at=AT)
        transaction.save_event(event())
        transaction.save_schema_version(known, event())
    with store.transaction() as transaction:
        transaction.rename(known, to=SALES, name="sales", at=AT)
        transaction.save_event(event("e2", urn=SALES, type=EventType.RENAMED))
    assert store.find(ORDERS) == SALES
    assert store.get(ORDERS).urn == SALES
    assert store.get(SALES).ownership == OWNED
    assert [each.event_id for each in store.events(ORDERS)] == ["e1", "e2"]
    assert [each.event_id for each in store.history(SALES)] == ["e1"]
    assert [each.urn for each in store.list(DatasetFilter())] == [SALES]
    found, hits = store.search("sales", Facets(), limit=5)
    assert ([each.urn for each in found], hits.total) == ([SALES], 1)
    assert store.search("orders", Facets(), limit=5)[1].total == 0


def test_a_rename_after_a_rename_keeps_the_first_name_too(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset())
        transaction.rename(dataset(), to=SALES, name="sales", at=AT)
        transaction.rename(dataset("sales"), to="lumos://file/lake/x", name="x", at=AT)
    assert store.find(ORDERS) == store.find(SALES) == "lumos://file/lake/x"


def test_a_dataset_that_takes_another_in_keeps_what_people_said_of_both(store: Store) -> None:
    own = Documentation(description="all sales")
    with store.transaction() as transaction:
        transaction.save(dataset())
        transaction.save(dataset("sales"))
        transaction.save_event(event())
        transaction.save_aspect(ORDERS, "ownership", OWNED, writer="user", at=AT)
        transaction.save_aspect(
            ORDERS, "documentation", Documentation(description="x"), writer="user", at=AT
        )
        transaction.save_aspect(ORDERS, "location", Location(uri="/o"), writer="scan", at=AT)
        transaction.save_aspect(SALES, "documentation", own, writer="user", at=AT)
        transaction.merge_into(dataset(), into=SALES, at=AT)
    got = store.get(ORDERS)
    assert (got.urn, got.ownership, got.documentation, got.location) == (SALES, OWNED, own, None)
    assert [each.event_id for each in store.events(SALES)] == ["e1"]
    assert [each.urn for each in store.list(DatasetFilter())] == [SALES]


def test_a_urn_may_become_a_dataset_of_its_own_again(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset())
        transaction.save(dataset("sales"))
        transaction.merge_into(dataset(), into=SALES, at=AT)
        transaction.drop_alias(ORDERS)
        transaction.save(dataset())
    assert store.get(ORDERS).urn == ORDERS


def test_locations_are_reported_by_source(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset())
        transaction.save(dataset("sales", source="s3:other"))
        for urn in (ORDERS, SALES):
            transaction.save_aspect(urn, "location", Location(uri=urn), writer="scan", at=AT)
    assert store.aspects("location", source="file:/lake") == {ORDERS: Location(uri=ORDERS)}
