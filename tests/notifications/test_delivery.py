"""Messages go out once, are tried again later, and are never lost."""

from datetime import UTC, datetime, timedelta

import pytest

from lumos.model.notification import Notification
from lumos.notifications.delivery import DeliveryResult, deliver, retry_delay
from lumos.store import Database, NotificationOutbox, Store

START = datetime(2024, 1, 15, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


class Recording:
    """A channel that keeps what it is given, unless it is down."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.problem: str | None = None
        self.tries = 0

    def send(self, notification: Notification) -> str | None:
        self.tries += 1
        if self.problem is None:
            self.titles.append(notification.title)
        return self.problem


@pytest.fixture
def outbox(tmp_path_factory: pytest.TempPathFactory) -> NotificationOutbox:
    file = tmp_path_factory.mktemp("store") / "lumos.db"
    store = Store.open(Database.sqlite(file), create=True)
    with store.transaction() as transaction:
        for number in range(3):
            for channel in ("chat", "mail"):
                message = Notification(
                    event_id=f"e{number}", channel=channel, urn="u", title=f"{number}", body=""
                )
                transaction.post(message, at=START)
    return store.notification_outbox


def send(
    outbox: NotificationOutbox, channels: dict[str, Recording], clock: Clock, tries: int = 9
) -> DeliveryResult:
    return deliver(outbox, channels, sender="me", max_tries=tries, clock=clock)


def states(outbox: NotificationOutbox) -> dict[tuple[str, str], int]:
    return {(each.channel, each.state): each.count for each in outbox.counts()}


def test_everything_due_is_sent_in_order_and_once(outbox: NotificationOutbox) -> None:
    chat, mail, clock = Recording(), Recording(), Clock()
    assert send(outbox, {"chat": chat, "mail": mail}, clock) == DeliveryResult(sent=6)
    assert chat.titles == mail.titles == ["0", "1", "2"]
    assert send(outbox, {"chat": chat, "mail": mail}, clock) == DeliveryResult()


def test_a_channel_that_is_down_is_tried_once_a_round_and_holds_up_no_other(
    outbox: NotificationOutbox,
) -> None:
    chat, mail, clock = Recording(), Recording(), Clock()
    mail.problem = "the service answered 503"
    done = send(outbox, {"chat": chat, "mail": mail}, clock)
    assert done == DeliveryResult(sent=3, failed=1, problems={"mail": "the service answered 503"})
    assert (chat.titles, mail.tries) == (["0", "1", "2"], 1)


def test_nothing_is_lost_while_a_channel_is_down_for_a_day(outbox: NotificationOutbox) -> None:
    chat, clock = Recording(), Clock()
    chat.problem = "the service cannot be reached"
    while clock.now < START + timedelta(days=1):
        send(outbox, {"chat": chat}, clock, tries=60)
        clock.now += timedelta(minutes=5)
    assert states(outbox)["chat", "pending"] == 3
    assert chat.tries < 3 * 24 * 2
    chat.problem = None
    clock.now += timedelta(hours=2)
    assert send(outbox, {"chat": chat}, clock, tries=60).sent == 3
    assert sorted(chat.titles) == ["0", "1", "2"]


def test_a_message_that_fails_too_often_is_given_up_and_kept(outbox: NotificationOutbox) -> None:
    chat, clock = Recording(), Clock()
    chat.problem = "the service answered 410"
    given_up = 0
    for _ in range(20):
        given_up += send(outbox, {"chat": chat}, clock, tries=3).given_up
        clock.now += timedelta(hours=2)
    assert given_up == 3
    assert states(outbox) == {("chat", "dead"): 3, ("mail", "pending"): 3}
    assert chat.tries == 9


def test_messages_of_channels_that_are_not_configured_are_left_alone(
    outbox: NotificationOutbox,
) -> None:
    assert send(outbox, {"other": Recording()}, Clock()) == DeliveryResult()
    assert states(outbox) == {("chat", "pending"): 3, ("mail", "pending"): 3}


def test_sending_ends_between_two_messages_when_it_should(outbox: NotificationOutbox) -> None:
    chat = Recording()
    deliver(
        outbox,
        {"chat": chat},
        sender="me",
        max_tries=9,
        clock=Clock(),
        should_continue=lambda: len(chat.titles) < 2,
    )
    assert chat.titles == ["0", "1"]


class Forgetful:
    """A channel whose sender dies after the message is out and before that is noted."""

    def send(self, notification: Notification) -> str | None:
        raise KeyboardInterrupt(notification.title)


def test_a_sender_that_dies_leaves_its_message_to_the_next(outbox: NotificationOutbox) -> None:
    clock, chat = Clock(), Recording()
    with pytest.raises(KeyboardInterrupt):
        deliver(outbox, {"chat": Forgetful()}, sender="dead", max_tries=9, clock=clock)
    assert send(outbox, {"chat": chat}, clock).sent == 2
    clock.now += timedelta(minutes=3)
    assert send(outbox, {"chat": chat}, clock).sent == 1
    assert chat.titles == ["1", "2", "0"]


def test_of_all_each_has_one_try_and_one_that_fails_blocks_no_other(
    outbox: NotificationOutbox,
) -> None:
    clock, chat = Clock(), Recording()
    chat.problem = "the service answered 500"
    for _ in range(3):
        send(outbox, {"chat": chat}, clock, tries=1)
    assert states(outbox)["chat", "dead"] == 3
    chat.tries = 0
    done = deliver(outbox, {"chat": chat}, sender="me", max_tries=9, clock=clock, all=True)
    assert (chat.tries, done.failed, done.given_up) == (3, 3, 0)
    assert states(outbox)["chat", "dead"] == 3
    picky = Picky()
    done = deliver(outbox, {"chat": picky}, sender="me", max_tries=9, clock=clock, all=True)
    assert (done.sent, done.failed, picky.titles) == (2, 1, ["1", "2"])
    (kept,) = outbox.list(states=("dead",), limit=9)
    assert kept.tries == 3


class Picky(Recording):
    """A channel that takes all messages but the first."""

    def send(self, notification: Notification) -> str | None:
        self.problem = "the service answered 400" if notification.title == "0" else None
        return super().send(notification)


def test_of_all_a_channel_that_does_not_answer_is_tried_once(outbox: NotificationOutbox) -> None:
    clock, chat = Clock(), Recording()
    chat.problem = "the service cannot be reached"
    done = deliver(outbox, {"chat": chat}, sender="me", max_tries=9, clock=clock, all=True)
    assert (chat.tries, done.failed) == (1, 1)


def test_waits_double_up_to_an_hour() -> None:
    waits = [retry_delay(tries).total_seconds() for tries in range(1, 12)]
    assert waits[:4] == [30, 60, 120, 240]
    assert waits == sorted(waits)
    assert waits[-1] == retry_delay(10**6).total_seconds() == 3600
