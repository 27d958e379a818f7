"""The notification outbox: messages about events, each claimed and sent by one sender."""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Executable,
    Row,
    Select,
    bindparam,
    case,
    func,
    or_,
    select,
    update,
)

from lumos.model.notification import (
    SUBSCRIBER_PREFIX,
    Alert,
    Notification,
    NotificationState,
    QueuedNotification,
    ReminderRun,
)
from lumos.store.database import Database
from lumos.store.statements import batches, insert_if_new
from lumos.store.tables import notification as table
from lumos.store.tables import reminder_run


class ChannelCount(msgspec.Struct, frozen=True, kw_only=True):
    """The number of messages of a channel in one state, and the time of the oldest message."""

    channel: str
    state: NotificationState
    count: int
    oldest: datetime


def post(
    connection: Connection,
    notification: Notification,
    *,
    at: datetime,
    due_at: datetime | None = None,
) -> bool:
    """Put a message into the outbox; False if the channel has one for this event already."""
    row = msgspec.structs.asdict(notification)
    row |= {"state": "pending", "tries": 0, "created_at": at, "due_at": due_at or at}
    statement = insert_if_new(connection.dialect.name, table)
    return connection.execute(statement, row).first() is not None


def record_run(connection: Connection, run: ReminderRun) -> bool:
    """Record that a reminder was handled for a due time; False if it was recorded before."""
    row = msgspec.structs.asdict(run)
    statement = insert_if_new(connection.dialect.name, reminder_run)
    return connection.execute(statement, row).first() is not None


class NotificationOutbox:
    """Reads and claims messages to send."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(
        self, channels: Collection[str], *, sender: str, now: datetime, until: datetime
    ) -> QueuedNotification | None:
        """Claim the oldest due message of the channels until a time.

        After that time, other senders may claim it, in case this one has died.
        """
        parameters = {"channels": list(channels), "now": now}
        return self._claim(_select_due, parameters, sender=sender, until=until)

    def claim_after(
        self, id: int, channels: Collection[str], *, sender: str, now: datetime, until: datetime
    ) -> QueuedNotification | None:
        """Claim the next unsent message after another one, even if it is not due or is dead."""
        parameters = {"channels": list(channels), "now": now, "after": id}
        return self._claim(_select_unsent, parameters, sender=sender, until=until)

    def _claim(
        self,
        select_messages: Callable[[str], Executable],
        parameters: dict[str, Any],
        *,
        sender: str,
        until: datetime,
    ) -> QueuedNotification | None:
        with self._database.writing() as connection:
            row = connection.execute(
                select_messages(connection.dialect.name), parameters
            ).one_or_none()
            if row is None:
                return None
            values = {"claimed_by": sender, "claimed_until": until}
            connection.execute(update(table).where(table.c.id == row.id).values(values))
        return _queued_notification(row)

    def mark_sent(self, id: int, *, at: datetime) -> None:
        """Record that a message was sent, even if another sender has claimed it since."""
        self._record(table.c.id == id, state="sent", sent_at=at, problem=None)

    def mark_failed(self, id: int, *, sender: str, problem: str, due_at: datetime | None) -> None:
        """Record why a claimed message was not sent, and when to retry, if at all."""
        is_claimed = (table.c.id == id) & (table.c.claimed_by == sender) & (table.c.state != "sent")
        if due_at is None:
            self._record(is_claimed, state="dead", problem=problem)
        else:
            self._record(is_claimed, due_at=due_at, problem=problem)

    def _record(self, condition: ColumnElement[bool], **values: Any) -> None:
        values |= {"tries": table.c.tries + 1, "claimed_by": None, "claimed_until": None}
        statement = update(table).where(condition).values(**values)
        with self._database.writing() as connection:
            connection.execute(statement)

    def next_due(self, channels: Collection[str]) -> datetime | None:
        """When the next message is due, or None if no message waits."""
        is_claimed = table.c.claimed_until > table.c.due_at
        due = func.min(case((is_claimed, table.c.claimed_until), else_=table.c.due_at))
        is_pending = (table.c.state == "pending") & table.c.channel.in_(channels)
        with self._database.reading() as connection:
            found: datetime | None = connection.execute(select(due).where(is_pending)).scalar()
        return found

    def counts(self) -> tuple[ChannelCount, ...]:
        """The number of messages by channel and state."""
        keys = (table.c.channel, table.c.state)
        statement = select(*keys, func.count().label("count"), func.min(table.c.created_at))
        with self._database.reading() as connection:
            return tuple(
                ChannelCount(channel=channel, state=state, count=count, oldest=oldest)
                for channel, state, count, oldest in connection.execute(
                    statement.group_by(*keys).order_by(*keys)
                )
            )

    def list(
        self, *, states: Collection[NotificationState], limit: int
    ) -> tuple[QueuedNotification, ...]:
        """The messages in the given states, newest first."""
        statement = select(table).where(table.c.state.in_(states)).order_by(table.c.id.desc())
        with self._database.reading() as connection:
            return tuple(map(_queued_notification, connection.execute(statement.limit(limit))))

    def last_run(self, reminder: str) -> ReminderRun | None:
        """The newest due time of a reminder that was handled, or None."""
        statement = select(reminder_run).where(reminder_run.c.reminder == reminder)
        newest = statement.order_by(reminder_run.c.due_at.desc()).limit(1)
        with self._database.reading() as connection:
            row = connection.execute(newest).one_or_none()
        return None if row is None else ReminderRun(**row._mapping)

    def alerts(self, event_ids: Iterable[str]) -> Mapping[str, Alert]:
        """The state of the notifications sent to people about the given events, by event id."""
        rows_by_event: dict[str, list[Any]] = {}
        columns = (table.c.event_id, table.c.channel, table.c.state, table.c.sent_at)
        with self._database.reading() as connection:
            for batch in batches(set(event_ids)):
                statement = select(*columns).where(
                    table.c.event_id.in_(batch), ~table.c.channel.startswith(SUBSCRIBER_PREFIX)
                )
                for row in connection.execute(statement.order_by(table.c.id)):
                    rows_by_event.setdefault(row.event_id, []).append(row)
        return {event_id: _alert(rows) for event_id, rows in rows_by_event.items()}


_now = bindparam("now", type_=table.c.due_at.type)


@cache
def _select_due(dialect: str) -> Executable:
    due = select(table).where(table.c.state == "pending", table.c.due_at <= _now)
    return _first_unclaimed(due.order_by(table.c.due_at, table.c.id), dialect)


@cache
def _select_unsent(dialect: str) -> Executable:
    after = bindparam("after", type_=table.c.id.type)
    unsent = select(table).where(table.c.state.in_(("pending", "dead")), table.c.id > after)
    return _first_unclaimed(unsent.order_by(table.c.id), dialect)


def _first_unclaimed(messages: Select[Any], dialect: str) -> Executable:
    channels: BindParameter[Any] = bindparam("channels", expanding=True)
    is_unclaimed = or_(table.c.claimed_until.is_(None), table.c.claimed_until < _now)
    first = messages.where(is_unclaimed, table.c.channel.in_(channels)).limit(1)
    return first.with_for_update(skip_locked=True) if dialect == "postgresql" else first


def _queued_notification(row: Row[Any]) -> QueuedNotification:
    return QueuedNotification(
        notification=Notification(
            **{name: getattr(row, name) for name in Notification.__struct_fields__}
        ),
        **{
            name: getattr(row, name)
            for name in QueuedNotification.__struct_fields__
            if name != "notification"
        },
    )


def _alert(rows: list[Any]) -> Alert:
    times = [row.sent_at for row in rows if row.sent_at is not None]
    channels = tuple(row.channel for row in rows)
    if times:
        return Alert(state="SENT", sent_at=min(times), channels=channels)
    is_pending = any(row.state == "pending" for row in rows)
    return Alert(state="PENDING" if is_pending else "FAILED", sent_at=None, channels=channels)
