"""Messages about changes: written with the event, sent beside the work, looked after by people."""

import logging
import os
import socket
import threading
import uuid
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Final

import msgspec

from lumos.config.settings import ChangeRule, Notifications
from lumos.errors import LumosError, MissingDependency, UnknownName
from lumos.model.change import BlastRadius, ChangeEvent, EventType, Verdict
from lumos.model.dataset import Ownership
from lumos.model.notification import Notification, NotificationState
from lumos.model.urn import Urn
from lumos.notifications.channels import AppriseChannel
from lumos.notifications.delivery import Delivery, deliver
from lumos.notifications.routing import RoutedChange, is_about, routes
from lumos.notifications.templates import filled, plain
from lumos.schemas.wording import affected_sentence_of, blast_radius_of, sentence_of
from lumos.store import NotificationOutbox, Transaction

FORMAT_VERSION: Final = "1.0"
# How long a process that has nothing else to do goes on sending what it wrote last.
_PATIENCE_SECONDS: Final = 30.0
_MOST_LINES: Final = 20
_MOST_SHOWN: Final = 20
_log = logging.getLogger(__name__)


class Notifier:
    """Hears of events and writes what channels are told of them into the same transaction."""

    def __init__(self, rules: tuple[ChangeRule, ...], courier: "NotificationSender") -> None:
        self._rules = rules
        self._courier = courier
        self._has_posted = False

    def within(self, transaction: Transaction, event: ChangeEvent) -> None:
        if event.type is EventType.SPLIT:
            self._post_splits(transaction, event)
            return
        verdicts = _verdicts(event)
        # Most events of a first scan match no rule, and one message about a split covers all
        # events of its parts.
        if "split_from" in event.metadata or not any(
            is_about(rule, event.type, verdicts) for rule in self._rules
        ):
            return
        change = _routed(transaction, event)
        facts = _facts(event, change)
        for channel, rule in routes(change, self._rules).items():
            message = Notification(
                event_id=event.event_id,
                channel=channel,
                urn=event.urn,
                title=filled(rule.title, facts),
                body=filled(rule.template, facts),
                urgent=event.breaking,
            )
            transaction.post(message, at=event.at)
            self._has_posted = True

    def _post_splits(self, transaction: Transaction, event: ChangeEvent) -> None:
        """Writes one message per channel about all datasets that a scan split."""
        splits = [each for each in transaction.new_events if each.type is EventType.SPLIT]
        if event is not splits[0]:
            return
        by_channel: dict[str, list[ChangeEvent]] = {}
        for each in splits:
            for channel in routes(_routed(transaction, each), self._rules):
                by_channel.setdefault(channel, []).append(each)
        for channel, events in by_channel.items():
            datasets = "1 dataset was" if len(events) == 1 else f"{len(events):,} datasets were"
            parts = sum(int(each.metadata["part_count"]) for each in events)
            lines = [f"{each.urn}: {each.summary}" for each in events]
            message = Notification(
                event_id=events[0].event_id,
                channel=channel,
                urn=events[0].urn,
                title=f"Grouping changed: {datasets} split into {parts:,}",
                body=_list(lines, len(lines)),
                urgent=False,
            )
            transaction.post(message, at=event.at)
            self._has_posted = True

    def after(self, event: ChangeEvent) -> None:  # noqa: ARG002 - the outbox says what is due
        if self._has_posted:
            self._has_posted = False
            self._courier.wake()


def _routed(transaction: Transaction, event: ChangeEvent) -> RoutedChange:
    known = transaction.known(event.urn)
    ownership: Ownership | None = transaction.aspect(event.urn, "ownership")
    return RoutedChange(
        urn=event.urn,
        name=Urn.parse(event.urn).name if known is None else known.name,
        type=event.type,
        verdicts=_verdicts(event),
        owners=tuple(owner.name for owner in ownership.owners) if ownership else (),
    )


def _verdicts(event: ChangeEvent) -> frozenset[Verdict]:
    declared = {Verdict.BREAKING} if event.breaking else set()
    return frozenset({finding.consumer for finding in event.findings} | declared)


def _facts(event: ChangeEvent, change: RoutedChange) -> dict[str, str]:
    # Verdicts are defined from the worst to the most harmless.
    worst = next((each for each in Verdict if each in change.verdicts), None)
    changes = [f"{sentence_of(each.change)} ({each.consumer})" for each in event.findings]
    down = event.affected or BlastRadius()
    affected = [affected_sentence_of(each) for each in down.datasets]
    facts = {
        "dataset_name": change.name,
        "urn": event.urn,
        "location": event.source_path or "",
        "owner_name": ", ".join(change.owners),
        "event": event.type.value,
        "event_id": event.event_id,
        "verdict": worst or event.type.value.lower(),
        "summary": event.summary,
        "schema_version": event.schema_version,
        "cloud_version": event.cloud_version,
        "time": f"{event.at:%Y-%m-%d %H:%M:%S} UTC",
        "blast_radius": blast_radius_of(down),
        "affected_owners": ", ".join(down.owners),
    }
    return {
        **{name: plain(fact) for name, fact in facts.items()},
        "changes": _list(changes, len(changes)),
        "affected": _list(affected, down.count),
    }


def _list(sentences: Sequence[str], count: int) -> str:
    """A line for each of the first, and how many there are beside."""
    lines = [f"- {plain(each)}" for each in sentences[:_MOST_LINES]]
    if (more := count - len(lines)) > 0:
        lines.append(f"- and {more:,} more")
    return "\n".join(lines)


class NotificationSender:
    """Sends what is due in a thread of its own, which ends when nothing is due any more.

    The process waits for that thread at its end, but not for long: what is left over is sent by
    the next process that records something, by `lumos watch` or by `lumos notify send`.
    """

    def __init__(self, settings: Notifications, outbox: Callable[[], NotificationOutbox]) -> None:
        self._settings = settings
        self._outbox = outbox
        self._sender = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self._lock = threading.Lock()
        self._channels: dict[str, AppriseChannel] = {}
        self._running = False
        self._deadline = 0.0
        # A channel that failed is left alone for a while, however many events come meanwhile.
        self._failed_at: dict[str, float] = {}

    def wake(self) -> None:
        """Begins to send beside whatever this thread goes on with."""
        with self._lock:
            self._deadline = monotonic() + _PATIENCE_SECONDS
            if self._running:
                return
            self._running = True
        threading.Thread(target=self._run, name="lumos-courier").start()

    def deliver(self, *, all: bool = False) -> Delivery:
        """Sends what is due, in this thread; with `all`, everything that is not sent."""
        return self._deliver(self._settings.channels, all=all)

    def _deliver(
        self,
        channels: Collection[str],
        *,
        all: bool = False,
        go_on: Callable[[], bool] = lambda: True,
    ) -> Delivery:
        connected = self._connected()
        return deliver(
            self._outbox(),
            {name: connected[name] for name in channels},
            sender=self._sender,
            max_tries=self._settings.max_tries,
            clock=lambda: datetime.now(UTC),
            go_on=go_on,
            all=all,
        )

    def send_now(self, message: Notification) -> str | None:
        """Sends one message past the outbox; gives the reason where that failed."""
        return self._connected()[message.channel].send(message)

    def _due_channels(self) -> list[str]:
        """The channels that work as far as is known, where something is due on any of them."""
        channels = [
            name
            for name in self._settings.channels
            if self._failed_at.get(name, -_PATIENCE_SECONDS) <= monotonic() - _PATIENCE_SECONDS
        ]
        due_at = self._outbox().next_due(channels)
        return channels if due_at is not None and due_at <= datetime.now(UTC) else []

    def _connected(self) -> dict[str, AppriseChannel]:
        if not self._channels:
            addresses = self._settings.channels
            self._channels = {name: AppriseChannel(each) for name, each in addresses.items()}
        return self._channels

    def _run(self) -> None:
        seen = None
        while True:
            with self._lock:
                # Whoever woke us since the last round may have written more.
                if seen == self._deadline:
                    self._running = False
                    return
                seen = self._deadline
            try:
                if not (channels := self._due_channels()):
                    continue
                done = self._deliver(channels, go_on=lambda: monotonic() < self._deadline)
            except MissingDependency as problem:
                _log.warning("messages wait in the store: %s", problem)
            except LumosError as problem:
                _log.warning("messages wait to be sent: %s", problem)
            else:
                self._failed_at |= dict.fromkeys(done.problems, monotonic())
                _tell(done)


def _tell(done: Delivery) -> None:
    for channel, problem in done.problems.items():
        _log.warning("channel '%s': %s; what waits is tried again later", channel, problem)
    if done.given_up:
        _log.warning(
            "messages given up after their last try: %d; lumos notify send --all tries them again",
            done.given_up,
        )
    if done.sent:
        _log.info("messages sent", extra={"facts": {"sent": done.sent}})


class NotificationReport(msgspec.Struct, frozen=True, kw_only=True):
    """A message that is not sent yet, or never will be unless somebody asks for it."""

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
    """How the messages of a channel stand; only a configured one is sent to."""

    channel: str
    configured: bool
    pending: int = 0
    dead: int = 0
    sent: int = 0
    oldest_pending: datetime | None = None


class NotifyStatusReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `lumos notify status`; of unsent messages the newest are named."""

    format_version: str = FORMAT_VERSION
    channels: tuple[ChannelReport, ...]
    unsent: tuple[NotificationReport, ...]


class NotifySendReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `lumos notify send` and `lumos notify test`; `problems` by channel."""

    format_version: str = FORMAT_VERSION
    sent: int
    failed: int
    given_up: int
    problems: dict[str, str]


class NotificationService:
    """What people do with messages."""

    def __init__(
        self,
        settings: Notifications,
        outbox: Callable[[], NotificationOutbox],
        courier: NotificationSender,
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._courier = courier

    def status(self) -> NotifyStatusReport:
        """How many messages wait, were sent and were given up, and which are unsent."""
        outbox = self._outbox()
        configured = self._settings.channels
        rows: dict[str, ChannelReport] = {
            name: ChannelReport(channel=name, configured=True) for name in configured
        }
        for each in outbox.counts():
            row = rows.get(each.channel) or ChannelReport(channel=each.channel, configured=False)
            facts: dict[str, object] = {each.state: each.count}
            if each.state == "pending":
                facts["oldest_pending"] = each.oldest
            rows[each.channel] = msgspec.structs.replace(row, **facts)
        unsent = outbox.list(states=("pending", "dead"), limit=_MOST_SHOWN)
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
        """Sends what is due; with `all` also what waits for a later try or was given up."""
        return _sent(self._courier.deliver(all=all))

    def test(self, channel: str) -> NotifySendReport:
        """Sends a message that says nothing over one channel."""
        if channel not in self._settings.channels:
            raise UnknownName(
                "channel",
                channel,
                self._settings.channels,
                next="Channels are configured under notifications in lumos.yaml.",
            )
        words = f"A trial of the channel '{channel}'. Nothing has changed."
        message = Notification(
            event_id="", channel=channel, urn="", title="Lumos: a trial", body=words
        )
        problem = self._courier.send_now(message)
        if problem is None:
            return _sent(Delivery(sent=1))
        return _sent(Delivery(failed=1, problems={channel: problem}))


def _sent(done: Delivery) -> NotifySendReport:
    return NotifySendReport(
        sent=done.sent, failed=done.failed, given_up=done.given_up, problems=done.problems
    )
