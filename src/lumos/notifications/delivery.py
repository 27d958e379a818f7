"""Delivers messages from the outbox to channels and subscribers, with retries."""

import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Final, Protocol

import msgspec

from lumos.config.settings import Notifications
from lumos.errors import LumosError
from lumos.http.retries import RetryPolicy
from lumos.model.notification import Notification, QueuedNotification
from lumos.notifications.channels import (
    CHANNEL_DOWN,
    AppriseChannel,
    NotificationChannel,
    OwnerChannel,
)
from lumos.store import NotificationOutbox
from lumos.store.history import ChangeLog

# Other senders may claim a message again after this time; it is longer than any service takes.
_CLAIM_DURATION: Final = timedelta(minutes=2)
_RETRIES: Final = RetryPolicy(first_wait=30, max_wait=3600)
# For this time after the last wake-up, the background thread continues to send. Channels that fail
# are skipped for the same time.
_GRACE_SECONDS: Final = 30.0
_log = logging.getLogger(__name__)


class NotificationQueue(Protocol):
    """The operations of the outbox that delivery needs."""

    def claim(
        self, channels: Collection[str], *, sender: str, now: datetime, until: datetime
    ) -> QueuedNotification | None: ...

    def claim_after(
        self, id: int, channels: Collection[str], *, sender: str, now: datetime, until: datetime
    ) -> QueuedNotification | None: ...

    def mark_sent(self, id: int, *, at: datetime) -> None: ...

    def mark_failed(
        self, id: int, *, sender: str, problem: str, due_at: datetime | None
    ) -> None: ...


class DeliveryResult(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one round of sending; `problems` by channel."""

    sent: int = 0
    failed: int = 0
    given_up: int = 0
    problems: dict[str, str] = {}


def retry_delay(tries: int) -> timedelta:
    """The delay before the next attempt after this many tries."""
    return timedelta(seconds=_RETRIES.backoff(tries))


def deliver(
    outbox: NotificationQueue,
    channels: Mapping[str, NotificationChannel],
    *,
    sender: str,
    max_tries: int,
    clock: Callable[[], datetime],
    should_continue: Callable[[], bool] = lambda: True,
    all: bool = False,
) -> DeliveryResult:
    """Send due messages while `should_continue` returns true; skip channels that have failed.

    With `all`, messages that wait for a retry or were given up are tried once each, and only
    channels that do not respond are skipped.
    """
    available = set(channels)
    sent = failed = given_up = last_id = 0
    problems: dict[str, str] = {}
    while available and should_continue():
        now = clock()
        until = now + _CLAIM_DURATION
        queued = (
            outbox.claim_after(last_id, available, sender=sender, now=now, until=until)
            if all
            else outbox.claim(available, sender=sender, now=now, until=until)
        )
        if queued is None:
            break
        last_id = queued.id
        channel = queued.notification.channel
        problem = channels[channel].send(queued.notification)
        if problem is None:
            outbox.mark_sent(queued.id, at=clock())
            sent += 1
            continue
        tries = queued.tries + 1
        was_dead = queued.state == "dead"
        is_last = was_dead or tries >= max_tries
        due_at = None if is_last else clock() + retry_delay(tries)
        outbox.mark_failed(queued.id, sender=sender, problem=problem, due_at=due_at)
        problems[channel] = problem
        # If one owner cannot be reached, others may be.
        is_individual = isinstance(channels[channel], OwnerChannel)
        if not (all or is_individual) or problem in CHANNEL_DOWN:
            available.discard(channel)
        failed, given_up = failed + 1, given_up + (is_last and not was_dead)
    return DeliveryResult(sent=sent, failed=failed, given_up=given_up, problems=problems)


class NotificationSender:
    """Sends due messages in a background thread that ends when no message is due.

    At exit, the process waits briefly for that thread. Remaining messages are sent by the next
    process that records a change, by `lumos watch`, by a worker or by `lumos notify send`.
    """

    def __init__(
        self,
        settings: Notifications,
        outbox: Callable[[], NotificationOutbox],
        change_log: Callable[[], ChangeLog],
        email_of: Callable[[str], str | None] = lambda _owner: None,
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._change_log = change_log
        self._email_of = email_of
        self._sender_id = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._lock = threading.Lock()
        self._channels: dict[str, NotificationChannel] = {}
        self._running = False
        self._deadline = 0.0
        self._failed_at: dict[str, float] = {}

    def wake(self) -> None:
        """Start sending in the background."""
        with self._lock:
            self._deadline = monotonic() + _GRACE_SECONDS
            if self._running:
                return
            self._running = True
        threading.Thread(target=self._run, name="lumos-notifications").start()

    def deliver(self, *, all: bool = False) -> DeliveryResult:
        """Send due messages in this thread; with `all`, all unsent messages."""
        return self._deliver(self._settings.destinations, all=all)

    def _deliver(
        self,
        channels: Collection[str],
        *,
        all: bool = False,
        should_continue: Callable[[], bool] = lambda: True,
    ) -> DeliveryResult:
        connected = self._connected_channels()
        return deliver(
            self._outbox(),
            {name: connected[name] for name in channels},
            sender=self._sender_id,
            max_tries=self._settings.max_tries,
            clock=lambda: datetime.now(UTC),
            should_continue=should_continue,
            all=all,
        )

    def send_now(self, message: Notification) -> str | None:
        """Send one message without the outbox; return the reason if that failed."""
        return self._connected_channels()[message.channel].send(message)

    def _due_channels(self) -> list[str]:
        """The channels that have not failed recently, if a message is due on any of them."""
        channels = [
            name
            for name in self._settings.destinations
            if self._failed_at.get(name, -_GRACE_SECONDS) <= monotonic() - _GRACE_SECONDS
        ]
        due_at = self._outbox().next_due(channels)
        return channels if due_at is not None and due_at <= datetime.now(UTC) else []

    def _connected_channels(self) -> dict[str, NotificationChannel]:
        if not self._channels:
            self._channels = {
                name: OwnerChannel(address, self._email_of)
                if self._settings.is_per_owner(name)
                else AppriseChannel(address)
                for name, address in self._settings.channels.items()
            }
            for name, subscriber in self._settings.subscriber_channels.items():
                # Imported late: only subscribers need network libraries.
                from lumos.notifications.subscribers import SubscriberChannel

                self._channels[name] = SubscriberChannel(subscriber, self._change_log)
        return self._channels

    def _run(self) -> None:
        handled_deadline = None
        while True:
            with self._lock:
                # After a wake-up during the last round, more messages may be due.
                if handled_deadline == self._deadline:
                    self._running = False
                    return
                handled_deadline = self._deadline
            try:
                if not (channels := self._due_channels()):
                    continue
                result = self._deliver(
                    channels, should_continue=lambda: monotonic() < self._deadline
                )
            except LumosError as problem:
                _log.warning("notifications stay in the outbox: %s", problem)
            else:
                self._failed_at |= dict.fromkeys(result.problems, monotonic())
                _log_result(result)


def _log_result(result: DeliveryResult) -> None:
    for channel, problem in result.problems.items():
        _log.warning("channel '%s': %s; its messages will be retried later", channel, problem)
    if result.given_up:
        _log.warning(
            "messages given up after their last try: %d; lumos notify send --all tries them again",
            result.given_up,
        )
    if result.sent:
        _log.info("messages sent", extra={"facts": {"sent": result.sent}})
