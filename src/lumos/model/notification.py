"""Notifications about changes, reminders, and their delivery state."""

from datetime import datetime
from typing import Final, Literal

import msgspec

# In the outbox, the channel of a subscriber is its name with this prefix.
SUBSCRIBER_PREFIX: Final = "subscriber:"

NotificationState = Literal["pending", "sent", "dead"]
AlertState = Literal["SENT", "PENDING", "FAILED"]


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A message to one channel about one change, or a reminder; `urgent` if consumers may fail.

    `recipient` is the owner who is reminded. For a subscriber, the body is empty: when the message
    is sent, the event is read from the change log.
    """

    event_id: str
    channel: str
    urn: str
    title: str
    body: str
    urgent: bool = False
    recipient: str | None = None


class ReminderRun(msgspec.Struct, frozen=True, kw_only=True):
    """A due time of a reminder that was handled; `position` is that of the digest's last change."""

    reminder: str
    due_at: datetime
    ran_at: datetime
    position: int


class QueuedNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A message in the outbox; `due_at` is the next attempt, `problem` the last failure.

    A `dead` message has used up its attempts and stays in the outbox until a user sends it again.
    """

    id: int
    notification: Notification
    state: NotificationState
    tries: int
    created_at: datetime
    due_at: datetime
    sent_at: datetime | None = None
    problem: str | None = None


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """The delivery state of a change: SENT once at least one channel has received a message."""

    state: AlertState
    sent_at: datetime | None
    channels: tuple[str, ...]
