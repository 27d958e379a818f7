"""Who hears of events, and when."""

import pytest

from lumos.model.change import ChangeEvent
from lumos.store import Database, Store, Transaction
from store.conftest import AT, dataset, event

pytestmark = pytest.mark.usefixtures("store")

ORDERS = "lumos://file/lake/orders"


class Ear:
    """Notes what it hears, and writes an audit row beside each event."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.heard: list[str] = []

    def before_commit(self, transaction: Transaction, event: ChangeEvent) -> None:
        assert transaction.known(event.urn) is not None, "all of the transaction is written"
        self.heard.append(f"within {event.event_id}")
        transaction.audit("heard", event.urn, at=AT)

    def after_commit(self, event: ChangeEvent) -> None:
        recorded = [each.event_id for each in Store(self.database).events(event.urn)]
        assert event.event_id in recorded, "the event is committed"
        self.heard.append(f"after {event.event_id}")


@pytest.fixture
def ear(database: Database) -> Ear:
    return Ear(database)


def test_a_listener_hears_of_each_new_event_inside_and_after_its_transaction(
    database: Database, ear: Ear
) -> None:
    with Store(database, [ear]).transaction() as transaction:
        transaction.save_event(event("e1"))
        transaction.save_event(event("e2"))
        transaction.save(dataset())
    assert ear.heard == ["within e1", "within e2", "after e1", "after e2"]
    assert Store(database).counts()["audit"] == 2


def test_listeners_are_not_called_for_recorded_events(database: Database, ear: Ear) -> None:
    with Store(database).transaction() as transaction:
        transaction.save(dataset())
        transaction.save_event(event("e1"))
    with Store(database, [ear]).transaction() as transaction:
        transaction.save_event(event("e1"))
    assert ear.heard == []


def test_listeners_are_not_called_for_a_failed_transaction(database: Database, ear: Ear) -> None:
    with pytest.raises(RuntimeError, match="refuses"):
        _record(Store(database, [ear]), and_then=RuntimeError("the catalog refuses"))
    assert ear.heard == []


def test_a_listener_that_fails_inside_takes_the_event_back(database: Database) -> None:
    class Broken(Ear):
        def before_commit(self, transaction: Transaction, event: ChangeEvent) -> None:
            super().before_commit(transaction, event)
            raise RuntimeError("no room")

    with pytest.raises(RuntimeError, match="no room"):
        _record(Store(database, [Broken(database)]))
    store = Store(database)
    assert (store.events(ORDERS), store.counts()["audit"]) == ((), 0)


def _record(store: Store, and_then: Exception | None = None) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset())
        transaction.save_event(event("e1"))
        if and_then is not None:
            raise and_then
