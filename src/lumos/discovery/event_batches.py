"""Batches of storage events: many events about the same folder cause one scan."""

import threading
from collections.abc import Callable, Sequence
from itertools import chain, takewhile
from typing import Final

from lumos.sources.events import ReceivedMessage

# A batch is complete when no event has arrived for this long.
QUIET_SECONDS: Final = 0.25
# The longest time between the first event of a batch and its scan.
MAX_DELAY: Final = 5.0
# This many late messages at once are a backlog; the batch then waits until all have arrived.
BACKLOG_MESSAGES: Final = 50
BACKLOG_QUIET_SECONDS: Final = 2.0
MAX_BACKLOG_DELAY: Final = 120.0
# The maximum number of messages in memory; the others stay in the queue. SQS delivers at most
# 120,000 messages that are not deleted.
MAX_BUFFERED_MESSAGES: Final = 110_000
_MAX_BUFFERED_EVENTS: Final = 200_000


class EventBuffer:
    """Messages that are collected until their batch is scanned; thread-safe.

    A batch is ready when events stop arriving, when its first message has waited as long as the
    last scan took, or when the buffer is full. So fast scans lead to small batches and short
    delays, and slow scans to large batches, so that they do not fall behind. A backlog, such as the
    objects of a large copy or of a time without a watcher, is one batch as far as the buffer
    allows.
    `changed` is notified of new messages; `clock` is for intervals and `now` for times of day.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        now: Callable[[], float],
        changed: threading.Condition,
    ) -> None:
        self._clock = clock
        self._now = now
        self._changed = changed
        self._waiting: dict[str, ReceivedMessage] = {}
        self._taken: dict[str, ReceivedMessage] = {}
        # When each message was received or its lease was extended, the oldest first.
        self._leased_at: dict[str, float] = {}
        self._events = 0
        self._first_at = 0.0
        self._last_at = 0.0
        self._not_before = 0.0
        self._delay = QUIET_SECONDS
        self._is_backlog = False

    def add(self, messages: Sequence[ReceivedMessage]) -> None:
        """Add messages; a message that is delivered again replaces its first delivery."""
        with self._changed:
            now = self._clock()
            if not self._waiting:
                self._first_at = now
            self._last_at = now
            sent_at = messages[-1].sent_at
            self._is_backlog = (
                len(messages) >= BACKLOG_MESSAGES
                and sent_at is not None
                and self._now() - sent_at > MAX_DELAY
            )
            for message in messages:
                replaced = self._waiting.get(message.receipt)
                self._events += len(message.events) - (len(replaced.events) if replaced else 0)
                self._waiting[message.receipt] = message
                self._leased_at.pop(message.receipt, None)
                self._leased_at[message.receipt] = now
            self._changed.notify_all()

    @property
    def is_full(self) -> bool:
        """Whether no more messages should be received for now."""
        with self._changed:
            return (
                len(self._waiting) + len(self._taken) >= MAX_BUFFERED_MESSAGES
                or self._events >= _MAX_BUFFERED_EVENTS
            )

    @property
    def size(self) -> int:
        """The number of messages that were received and not scanned yet."""
        with self._changed:
            return len(self._taken) + len(self._waiting)

    @property
    def oldest_sent_at(self) -> float | None:
        """When the first message in the buffer was sent; None if the buffer is empty."""
        with self._changed:
            first = next(chain(self._taken.values(), self._waiting.values()), None)
            return None if first is None else first.sent_at

    def renew_leases(self, age: float) -> list[str]:
        """The receipts of messages whose leases are older than `age`; their age becomes zero."""
        with self._changed:
            now = self._clock()
            due = list(takewhile(lambda each: now - self._leased_at[each] > age, self._leased_at))
            for receipt in due:
                del self._leased_at[receipt]
                self._leased_at[receipt] = now
            return due

    @property
    def ready_at(self) -> float | None:
        """When the batch is ready; None if there are no messages."""
        with self._changed:
            if not self._waiting:
                return None
            quiet, delay = QUIET_SECONDS, self._delay
            if self._is_backlog:
                quiet, delay = BACKLOG_QUIET_SECONDS, MAX_BACKLOG_DELAY
            ready_at = min(self._first_at + delay, self._last_at + quiet)
            if self.is_full:
                ready_at = self._first_at
            return max(ready_at, self._not_before)

    def take(self) -> Sequence[ReceivedMessage]:
        """The messages of the batch, which stay in the buffer until `finish` or `put_back`."""
        with self._changed:
            self._taken, self._waiting = self._waiting, {}
            return list(self._taken.values())

    def finish(self, *, seconds: float) -> None:
        """Remove the messages of the batch; `seconds` is the duration of its scan."""
        with self._changed:
            for receipt, message in self._taken.items():
                self._events -= len(message.events)
                if receipt not in self._waiting:
                    del self._leased_at[receipt]
            self._taken = {}
            self._delay = min(max(QUIET_SECONDS, seconds), MAX_DELAY)

    def put_back(self, *, wait: float) -> None:
        """Return the messages of the batch to the buffer, to retry them after `wait` seconds."""
        with self._changed:
            for receipt in self._taken.keys() & self._waiting.keys():
                self._events -= len(self._taken[receipt].events)
            self._waiting = {**self._taken, **self._waiting}
            self._taken = {}
            self._not_before = self._clock() + wait
