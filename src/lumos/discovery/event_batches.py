"""Batches of storage events: many events about the same folder cause one scan."""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from lumos.sources.events import ReceivedMessage

# A batch is closed when no event has arrived for this long.
QUIET_SECONDS: Final = 0.25
# The longest time between the first event of a batch and its scan.
MAX_DELAY: Final = 5.0
MAX_BATCH_MESSAGES: Final = 5_000
# Messages that are held in memory; the others stay in the queue.
MAX_BUFFERED_MESSAGES: Final = 20_000
_MAX_BUFFERED_EVENTS: Final = 200_000


class EventBuffer:
    """Messages that are collected until their batch is scanned; thread-safe.

    A batch is ready when events stop arriving, when its first message has waited as long as the
    last scan took, or when it is large. So a fast scan makes small batches and short delays, and a
    slow one makes large batches instead of falling behind. `changed` is notified of new messages.
    """

    def __init__(self, *, clock: Callable[[], float], changed: threading.Condition) -> None:
        self._clock = clock
        self._changed = changed
        self._waiting: dict[str, ReceivedMessage] = {}
        self._taken: dict[str, ReceivedMessage] = {}
        self._first_at = 0.0
        self._last_at = 0.0
        self._not_before = 0.0
        self._delay = QUIET_SECONDS

    def add(self, messages: Iterable[ReceivedMessage]) -> None:
        """Add messages; a message that was delivered again replaces the first one."""
        with self._changed:
            now = self._clock()
            for message in messages:
                if not self._waiting:
                    self._first_at = now
                self._last_at = now
                self._waiting[message.receipt] = message
            self._changed.notify_all()

    @property
    def is_full(self) -> bool:
        """Whether no more messages should be received for now."""
        with self._changed:
            held = (*self._waiting.values(), *self._taken.values())
            return (
                len(held) >= MAX_BUFFERED_MESSAGES
                or sum(len(each.events) for each in held) >= _MAX_BUFFERED_EVENTS
            )

    @property
    def receipts(self) -> list[str]:
        """The receipts of all messages that are not finished."""
        with self._changed:
            return [*self._taken, *self._waiting]

    @property
    def ready_at(self) -> float | None:
        """When the batch is ready; None if there are no messages."""
        with self._changed:
            if not self._waiting:
                return None
            ready_at = min(self._first_at + self._delay, self._last_at + QUIET_SECONDS)
            if len(self._waiting) >= MAX_BATCH_MESSAGES:
                ready_at = self._first_at
            return max(ready_at, self._not_before)

    def take(self) -> Sequence[ReceivedMessage]:
        """The messages of the batch, which are held until `finish` or `put_back`."""
        with self._changed:
            self._taken, self._waiting = self._waiting, {}
            return list(self._taken.values())

    def finish(self, *, seconds: float) -> None:
        """Forget the messages of the batch, whose scan took so long."""
        with self._changed:
            self._taken = {}
            self._delay = min(max(QUIET_SECONDS, seconds), MAX_DELAY)

    def put_back(self, *, wait: float) -> None:
        """Keep the messages of the batch for another try after some seconds."""
        with self._changed:
            self._waiting = {**self._taken, **self._waiting}
            self._taken = {}
            self._not_before = self._clock() + wait
