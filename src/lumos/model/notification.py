"""A message about a change, and how far it came."""

from datetime import datetime
from typing import Literal

import msgspec

NotificationState = Literal["pending", "sent", "dead"]
AlertState = Literal["SENT", "PENDING", "FAILED"]


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """What one channel is told of one change; `urgent` where consumers may fail."""

    event_id: str
    channel: str
    urn: str
    title: str
    body: str
    urgent: bool = False


class PostedNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A message in the outbox; `due_at` is when it is tried next, `problem` why it last failed.

    A dead one was tried as often as is allowed. It stays until somebody sends it again.
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
    """Whether somebody was told of a change: SENT as soon as one channel has it."""

    state: AlertState
    sent_at: datetime | None
    channels: tuple[str, ...]
