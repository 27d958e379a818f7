"""The service behind `lumos notify`: the status of messages, sending them, and reminders."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from lumos.config.settings import Notifications
from lumos.errors import MisuseError, UnknownName
from lumos.model.notification import Notification, NotificationState
from lumos.notifications.delivery import DeliveryResult, NotificationSender
from lumos.notifications.reminders import Reminders, RemindReport
from lumos.store import NotificationOutbox

FORMAT_VERSION: Final = "1.0"
_MAX_SHOWN: Final = 20


class NotificationReport(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is pending, or was given up and is only sent on request."""

    channel: str
    urn: str
    event_id: str
    title: str
    state: NotificationState
    tries: int
    created_at: datetime
    due_at: datetime
    problem: str | None


class ChannelReport(msgspec.Struct, frozen=True, kw_only=True):
    """The number of messages of a channel by state; only configured channels receive any."""

    channel: str
    configured: bool
    pending: int = 0
    dead: int = 0
    sent: int = 0
    oldest_pending: datetime | None = None


class NotifyStatusReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of `lumos notify status`; `unsent` lists the newest unsent messages."""

    format_version: str = FORMAT_VERSION
    channels: tuple[ChannelReport, ...]
    unsent: tuple[NotificationReport, ...]


class NotifySendReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of `lumos notify send` and `lumos notify test`; `problems` by channel."""

    format_version: str = FORMAT_VERSION
    sent: int
    failed: int
    given_up: int
    problems: dict[str, str]


class NotificationService:
    """Shows and sends the messages about changes, and reminds owners."""

    def __init__(
        self,
        settings: Notifications,
        outbox: Callable[[], NotificationOutbox],
        sender: NotificationSender,
        reminders: Callable[[], Reminders],
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._sender = sender
        self._reminders = reminders

    def remind(self, name: str | None = None, *, dry_run: bool = False) -> RemindReport:
        """Write and send the messages of a reminder, or of all reminders, for the last due time.

        Each due time is handled once, however often this is called. With `dry_run`, nothing is
        written or sent, and the report contains the messages.
        """
        return self._reminders().run(name, dry_run=dry_run)

    def status(self) -> NotifyStatusReport:
        """Count pending, sent and given-up messages, and list the unsent ones."""
        outbox = self._outbox()
        rows: dict[str, ChannelReport] = {
            name: ChannelReport(channel=name, configured=True)
            for name in self._settings.destinations
        }
        for each in outbox.counts():
            row = rows.get(each.channel) or ChannelReport(channel=each.channel, configured=False)
            changes: dict[str, object] = {each.state: each.count}
            if each.state == "pending":
                changes["oldest_pending"] = each.oldest
            rows[each.channel] = msgspec.structs.replace(row, **changes)
        unsent = outbox.list(states=("pending", "dead"), limit=_MAX_SHOWN)
        return NotifyStatusReport(
            channels=tuple(rows[name] for name in sorted(rows)),
            unsent=tuple(
                NotificationReport(
                    channel=each.notification.channel,
                    urn=each.notification.urn,
                    event_id=each.notification.event_id,
                    title=each.notification.title,
                    state=each.state,
                    tries=each.tries,
                    created_at=each.created_at,
                    due_at=each.due_at,
                    problem=each.problem,
                )
                for each in unsent
            ),
        )

    def send(self, *, all: bool = False) -> NotifySendReport:
        """Send due messages; with `all`, also those that wait for a retry or were given up."""
        return _send_report(self._sender.deliver(all=all))

    def test(self, channel: str, *, owner: str | None = None) -> NotifySendReport:
        """Send a test message to one channel or subscriber.

        If the address of the channel depends on an owner, `owner` is required.
        """
        if channel not in self._settings.destinations:
            raise UnknownName(
                "channel",
                channel,
                self._settings.destinations,
                next="Add it to notifications.channels in lumos.yaml, then run: lumos config check",
            )
        is_subscriber = channel in self._settings.subscriber_channels
        if owner is None and not is_subscriber and self._settings.is_per_owner(channel):
            raise MisuseError(
                f"The address of the channel '{channel}' depends on an owner. Name one with: "
                f"lumos notify test {channel} --owner NAME"
            )
        message = Notification(
            event_id="",
            channel=channel,
            urn="",
            title="Lumos: test message",
            body=f"This is a test of the channel '{channel}'. Nothing has changed.",
            recipient=owner,
        )
        problem = self._sender.send_now(message)
        if problem is None:
            return _send_report(DeliveryResult(sent=1))
        return _send_report(DeliveryResult(failed=1, problems={channel: problem}))


def _send_report(result: DeliveryResult) -> NotifySendReport:
    return NotifySendReport(
        sent=result.sent,
        failed=result.failed,
        given_up=result.given_up,
        problems=result.problems,
    )
