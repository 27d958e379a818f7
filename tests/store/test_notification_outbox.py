"""The outbox: messages share the fate of their event, and one sender at a time has each."""

import threading
from datetime import timedelta

import pytest

from lumos.model.notification import Notification, QueuedNotification
from lumos.store import Database, Store
from store.conftest import AT, dataset, event
from store.test_concurrency import place_of, reopened

MINUTE = timedelta(minutes=1)


def message(event_id: str = "e1", channel: str = "chat", **facts: object) -> Notification:
    defaults: dict[str, object] = {
        "event_id": event_id,
        "channel": channel,
        "urn": "lumos://file/lake/orders",
        "title": "orders changed",
        "body": "user_id: STRING -> INT64",
    }
    return Notification(**{**defaults, **facts})  # type: ignore[arg-type]


def post(store: Store, *messages: Notification) -> list[bool]:
    with store.transaction() as transaction:
        return [transaction.post(each, at=AT) for each in messages]


def claim(
    store: Store, *channels: str, sender: str = "a", later: timedelta = timedelta()
) -> QueuedNotification | None:
    now = AT + later
    return store.notification_outbox.claim(
        channels or ("chat",), sender=sender, now=now, until=now + MINUTE
    )


def test_a_message_that_was_sent_is_not_sent_again(store: Store) -> None:
    post(store, message(urgent=True))
    found = claim(store)
    assert found is not None
    assert (found.notification, found.state, found.tries) == (message(urgent=True), "pending", 0)
    store.notification_outbox.mark_sent(found.id, at=AT + MINUTE)
    assert claim(store, later=timedelta(days=9)) is None
    (kept,) = store.notification_outbox.list(states=("sent",), limit=9)
    assert (kept.tries, kept.sent_at, kept.problem) == (1, AT + MINUTE, None)


def test_an_event_is_sent_to_a_channel_once(store: Store) -> None:
    assert post(store, message(), message(title="other words")) == [True, False]
    assert post(store, message(), message(channel="mail")) == [False, True]
    assert [(each.channel, each.count) for each in store.notification_outbox.counts()] == [
        ("chat", 1),
        ("mail", 1),
    ]


def test_a_transaction_that_fails_leaves_neither_event_nor_message(store: Store) -> None:
    with pytest.raises(RuntimeError), store.transaction() as transaction:  # noqa: PT012
        transaction.save(dataset())
        transaction.save_event(event())
        transaction.post(message(), at=AT)
        raise RuntimeError
    assert store.events(dataset().urn) == ()
    assert store.notification_outbox.counts() == ()


def test_the_oldest_message_comes_first_and_only_from_the_channels_one_knows(store: Store) -> None:
    post(store, message("e1", "mail"), message("e2"), message("e3"))
    first, second = claim(store), claim(store)
    assert first is not None
    assert second is not None
    assert (first.notification.event_id, second.notification.event_id) == ("e2", "e3")
    assert claim(store) is None
    other = claim(store, "mail")
    assert other is not None
    assert other.notification.event_id == "e1"


def test_a_claim_holds_until_its_sender_must_be_dead(store: Store) -> None:
    post(store, message())
    assert claim(store, sender="a") is not None
    assert claim(store, sender="b", later=MINUTE / 2) is None
    assert store.notification_outbox.next_due(["chat"]) == AT + MINUTE
    assert claim(store, sender="b", later=MINUTE * 2) is not None


def test_who_lost_a_claim_changes_nothing_unless_the_message_went_out(store: Store) -> None:
    post(store, message())
    lost = claim(store, sender="a")
    assert lost is not None
    assert claim(store, sender="b", later=MINUTE * 2) is not None
    store.notification_outbox.mark_failed(lost.id, sender="a", problem="answered 500", due_at=None)
    assert [
        each.state for each in store.notification_outbox.list(states=("pending", "dead"), limit=9)
    ] == ["pending"]
    store.notification_outbox.mark_sent(lost.id, at=AT)
    store.notification_outbox.mark_failed(lost.id, sender="b", problem="answered 500", due_at=None)
    assert [
        each.state for each in store.notification_outbox.list(states=("sent", "dead"), limit=9)
    ] == ["sent"]


def test_a_message_that_failed_is_due_again_later_and_given_up_at_last(store: Store) -> None:
    post(store, message())
    found = claim(store)
    assert found is not None
    store.notification_outbox.mark_failed(
        found.id, sender="a", problem="answered 503", due_at=AT + 2 * MINUTE
    )
    assert claim(store, later=MINUTE) is None
    assert store.notification_outbox.next_due(["chat"]) == AT + 2 * MINUTE
    again = claim(store, later=2 * MINUTE)
    assert again is not None
    assert (again.tries, again.problem) == (1, "answered 503")
    store.notification_outbox.mark_failed(found.id, sender="a", problem="answered 503", due_at=None)
    assert claim(store, later=timedelta(days=9)) is None
    assert store.notification_outbox.next_due(["chat"]) is None
    (dead,) = store.notification_outbox.list(states=("dead",), limit=9)
    assert (dead.tries, dead.problem) == (2, "answered 503")
    wanted = {"sender": "b", "now": AT + timedelta(days=9), "until": AT + timedelta(days=10)}
    assert store.notification_outbox.claim_after(0, ["mail"], **wanted) is None
    assert store.notification_outbox.claim_after(dead.id, ["chat"], **wanted) is None
    once_more = store.notification_outbox.claim_after(0, ["chat"], **wanted)
    assert once_more is not None
    assert (once_more.id, once_more.tries) == (dead.id, 2)
    store.notification_outbox.mark_failed(dead.id, sender="b", problem="answered 500", due_at=None)
    (dead,) = store.notification_outbox.list(states=("dead",), limit=9)
    assert (dead.tries, dead.problem) == (3, "answered 500")


def test_the_history_can_show_whether_an_alert_was_sent(store: Store) -> None:
    post(store, message("e1"), message("e1", "mail"), message("e2"), message("e3"))
    for _ in range(2):
        found = claim(store)
        assert found is not None
        if found.notification.event_id == "e1":
            store.notification_outbox.mark_sent(found.id, at=AT + MINUTE)
        else:
            store.notification_outbox.mark_failed(
                found.id, sender="a", problem="answered 410", due_at=None
            )
    alerts = store.notification_outbox.alerts(["e1", "e2", "e3", "e4"])
    assert {key: (alert.state, alert.sent_at) for key, alert in alerts.items()} == {
        "e1": ("SENT", AT + MINUTE),
        "e2": ("FAILED", None),
        "e3": ("PENDING", None),
    }
    assert alerts["e1"].channels == ("chat", "mail")


def test_many_senders_at_once_claim_each_message_once(database: Database) -> None:
    store = Store.open(database, create=True)
    post(store, *(message(f"e{number}") for number in range(60)))
    claimed: list[int] = []

    def send(sender: str) -> None:
        mine = reopened(place_of(database))
        while (found := claim(mine, sender=sender)) is not None:
            claimed.append(found.id)
        mine.close()

    threads = [threading.Thread(target=send, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claimed) == len(set(claimed)) == 60
