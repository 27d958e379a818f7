"""The interface of event sources, which deliver each message at least once."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

from lumos.config.settings import StorageEventType
from lumos.errors import LumosError


class EventSourceFailed(LumosError):
    """An event source that does not answer or refuses access; the message has the next step."""


class ObjectEvent(NamedTuple):
    """An object that was written or deleted, with the time in seconds since 1970, if known.

    `path` is the path of the storage, such as `s3://bucket/key`. If it ends with a slash, anything
    in this folder may have changed.
    """

    path: str
    type: StorageEventType
    at: float | None = None


class ReceivedMessage(NamedTuple):
    """A message that stays with its source until it is acknowledged.

    `outcome` is `events` if the message names objects, `ignored` if it is of another kind, such as
    the test message that S3 sends to a new queue, and `malformed` if it cannot be parsed. `sent_at`
    is in seconds since 1970, and `delivery` counts how often the message was delivered.
    """

    receipt: str
    outcome: Literal["events", "ignored", "malformed"] = "events"
    events: tuple[ObjectEvent, ...] = ()
    sent_at: float | None = None
    delivery: int = 1
    reason: str = ""


class Backlog(NamedTuple):
    """The numbers of messages that wait, are being processed, or are dead letters, if known."""

    waiting: int | None = None
    in_progress: int | None = None
    dead: int | None = None


class EventSource(ABC):
    """A stream of storage events.

    A message is delivered again unless it is acknowledged, so it is only acknowledged after its
    effect is stored. Failures are raised as EventSourceFailed.
    """

    name: str
    # The path in events that refer to the whole source; empty if events name files.
    root: str = ""
    # The seconds after which a message is delivered again, unless `keep` extends its lease.
    lease_seconds: float | None = None
    # The seconds after which the source deletes messages that were not acknowledged.
    retention_seconds: float | None = None
    # Whether changes are delivered later if they happen while no watcher runs.
    is_durable: ClassVar[bool] = True

    @abstractmethod
    def open(self) -> None:
        """Connect; from now on no event is missed."""

    @abstractmethod
    def receive(self, wait: float) -> list[ReceivedMessage]:
        """The next messages, after waiting for at most about `wait` seconds."""

    @abstractmethod
    def acknowledge(self, receipts: Sequence[str]) -> None:
        """Delete messages whose effect is stored."""

    def reject(self, messages: Sequence[ReceivedMessage]) -> None:
        """Delete malformed messages, or move them to the dead-letter queue."""
        self.acknowledge([each.receipt for each in messages])

    def keep(self, receipts: Sequence[str]) -> None:  # noqa: B027 - not all sources have leases
        """Extend the lease of messages that are being processed."""

    def backlog(self) -> Backlog:
        """The state of the queue."""
        return Backlog()

    def close(self) -> None:  # noqa: B027 - not all sources have connections
        """Disconnect; unacknowledged messages are delivered again."""
