"""Consumes storage events: receives messages, scans the changed paths, and acknowledges."""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from lumos.config.settings import WatchedSource
from lumos.config.sources import SourceSettings
from lumos.discovery.event_batches import EventBuffer
from lumos.discovery.reports import IngestReport
from lumos.discovery.targets import SOURCE_FAILED, file_roots, is_below
from lumos.discovery.watch_status import EventCounts, EventStatus
from lumos.errors import LumosError
from lumos.model.urn import Urn
from lumos.rendering.text import plural
from lumos.sources.events import Backlog, EventSource, EventSourceFailed, ReceivedMessage
from lumos.storage.interface import is_hidden
from lumos.storage.table_roots import table_root_in
from lumos.store.database import LockHeld

_RECEIVE_SECONDS: Final = 2.0
_FULL_BUFFER_WAIT: Final = 0.2
_LOCKED_WAIT: Final = 1.0
_MAX_WAIT: Final = 300.0
# After this many consecutive failures, the whole source is scanned instead of the changed paths.
_MAX_FAILURES: Final = 3
# The share of the queue's retention period after which a message is treated as nearly expired:
# others have probably been deleted.
_EXPIRY_SHARE: Final = 0.9
# An event may arrive this long after a scan of the whole source has found its change.
_LATE_SECONDS: Final = 60.0
_MAX_LAGS: Final = 500
_BACKLOG_SECONDS: Final = 10.0
_log = logging.getLogger(__name__)

# A function that scans a source: only the given paths or, for None, the whole source.
ScanSource = Callable[[SourceSettings, Collection[str] | None], IngestReport]


class EventConsumer:
    """Watches sources by the events of one event source.

    A thread receives messages into a buffer of limited size; further messages stay in the queue.
    `process` scans the paths in the messages of a batch and acknowledges the messages afterwards.
    The scan reads the storage itself, so duplicated, late and reordered messages do no harm.
    """

    def __init__(
        self,
        events: EventSource,
        watched: Sequence[WatchedSource],
        *,
        changed: threading.Condition,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        ignored_folder: str = "",
        report_status: Callable[[EventStatus], None] = lambda _status: None,
    ) -> None:
        self.events = events
        self.watched = tuple(watched)
        self._clock = clock
        self._now = now
        self._ignored = f"{ignored_folder.rstrip('/')}/" if ignored_folder else ""
        self._report_status = report_status
        self._roots = [
            (each, [events.root] if events.root else file_roots(each.source))  # type: ignore[arg-type]
            for each in watched
        ]
        self._buffer = EventBuffer(clock=clock, now=now, changed=changed)
        self._counts: Counter[str] = Counter()
        self._lags: deque[float] = deque(maxlen=_MAX_LAGS)
        self._failures = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._receive, name=events.name, daemon=True)
        # The changes that a scan of the whole source found and no event has reported so far, with
        # the time of the scan, by the path in their URN.
        self._unreported: dict[str, float] = {}
        self._last_missed = 0
        self._backlog = Backlog()
        self._backlog_at = 0.0
        self._last_event_at: float | None = None
        self._problem = "Events were not received yet."
        # The time since when events have been received without a failure; None if they are not.
        self.receiving_since: float | None = None
        # Consumers of other queues with events of the same sources.
        self.peers: tuple[EventConsumer, ...] = ()

    def start(self) -> None:
        """Start to receive messages; raises EventSourceFailed if that is not possible."""
        try:
            self.events.open()
        except (LumosError, OSError) as problem:
            self._problem = str(problem)
            raise
        self.receiving_since = self._clock()
        self._thread.start()

    def stop(self) -> None:
        """Stop receiving; messages that are not acknowledged are delivered again."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=_RECEIVE_SECONDS + 5)
        if self.is_started:
            self.events.close()

    @property
    def is_started(self) -> bool:
        """Whether the event source could be opened."""
        return self._thread.ident is not None

    def has_received_since(self, time: float) -> bool:
        """Whether events have been received without a failure since then."""
        since = self.receiving_since
        return since is not None and since <= time

    @property
    def ready_at(self) -> float | None:
        """When the next batch is ready; None if no messages wait."""
        return self._buffer.ready_at

    def process(self, scan: ScanSource) -> list[IngestReport]:
        """Scan the paths in the messages of a batch, then acknowledge the messages.

        A batch that cannot be scanned is tried again. After three failures, the sources
        are scanned as a whole, so that no message can block those that follow.
        """
        messages = self._buffer.take()
        started = self._clock()
        changed = self._changed_paths(messages)
        changed_paths = frozenset[str]().union(*(paths for _, paths in changed))
        for consumer in (self, *self.peers):
            consumer._mark_reported(changed_paths)
        is_expired = self._is_expired(messages)
        if is_expired:
            _log.warning(
                "%s: messages are nearly as old as the queue keeps them, so some may have been "
                "deleted. All of its sources are scanned as a whole.",
                self.events.name,
            )
        scans_whole = is_expired or self._failures >= _MAX_FAILURES
        reports = []
        try:
            for watched, paths in changed:
                if paths or is_expired:
                    report = scan(watched.source, None if scans_whole else paths)
                    for problem in report.problems:
                        if problem.code == SOURCE_FAILED:
                            raise EventSourceFailed(f"{problem.path}: {problem.reason}.")
                    reports.append(report)
        except LockHeld as locked:
            _log.info("Waiting: %s", locked)
            self._buffer.put_back(wait=_LOCKED_WAIT)
            return reports
        except Exception:
            self._failures += 1
            self._counts["failed_batches"] += 1
            self._buffer.put_back(wait=min(_MAX_WAIT, 2.0**self._failures))
            self.save_status()
            raise
        self._acknowledge(messages)
        self._failures = 0
        self._counts["batches"] += 1
        self._counts["expired_batches"] += is_expired
        self._buffer.finish(seconds=self._clock() - started)
        self._lags.extend(
            max(0.0, self._now() - event.at)
            for message in messages
            for event in message.events
            if event.at is not None
        )
        self.save_status()
        return reports

    def reconcile(self, report: IngestReport) -> None:
        """Note the changes that a scan of the whole source found, to detect missed events."""
        self._counts["reconciliations"] += 1
        self._count_missed(all_changes=True)
        now = self._clock()
        # Databases notify of changed schemas, not of changed rows.
        ignored = {"MODIFIED", None} if self.events.root else {None}
        urns = [each.urn for each in report.datasets if each.event not in ignored]
        for urn in (*urns, *report.missing):
            self._unreported["/".join(Urn.parse(urn).path)] = now
        self.save_status()

    def save_status(self) -> None:
        """Report the current status."""
        self._count_missed()
        self._refresh_backlog()
        lags = sorted(self._lags)
        oldest = self._buffer.oldest_sent_at
        if oldest is not None:
            # The lag also grows while batches fail or take long and none is finished.
            waiting = self._now() - oldest
            lags = [max(each, waiting) for each in lags or [waiting]]
        self._report_status(
            EventStatus(
                name=self.events.name,
                sources=tuple(root for _, roots in self._roots for root in roots),
                lag_seconds=round(lags[-1], 3) if lags else None,
                lag_p95_seconds=round(lags[int(0.95 * (len(lags) - 1))], 3) if lags else None,
                buffered=self._buffer.size,
                waiting=self._backlog.waiting,
                in_progress=self._backlog.in_progress,
                dead=self._backlog.dead,
                problem=self._problem if self.receiving_since is None else "",
                last_event_at=self._last_event_at,
                counts=EventCounts(**dict(self._counts)),
            )
        )

    def _changed_paths(
        self, messages: Sequence[ReceivedMessage]
    ) -> list[tuple[WatchedSource, frozenset[str]]]:
        """The changed paths of each source."""
        events = {(event.path, event.type) for message in messages for event in message.events}
        changed = []
        for watched, roots in self._roots:
            types = watched.event_types
            below = frozenset(
                path
                for path, kind in events
                if kind in types and any(is_below(path, root) for root in roots)
            )
            changed.append((watched, below))
        return changed

    def _is_expired(self, messages: Sequence[ReceivedMessage]) -> bool:
        retention = self.events.retention_seconds
        oldest = min((each.sent_at for each in messages if each.sent_at), default=None)
        if retention is None or oldest is None:
            return False
        return self._now() - oldest > _EXPIRY_SHARE * retention

    def _acknowledge(self, messages: Sequence[ReceivedMessage]) -> None:
        try:
            self.events.acknowledge([each.receipt for each in messages])
        except EventSourceFailed as problem:
            # The changes are stored; if the messages are delivered again, nothing happens.
            _log.warning("%s", problem)
        else:
            self._counts["acknowledged"] += len(messages)

    def _receive(self) -> None:
        failures = 0
        while not self._stop.is_set():
            lease = self.events.lease_seconds
            try:
                if lease is not None and (due := self._buffer.renew_leases(lease / 2)):
                    self.events.keep(due)
                if self._buffer.is_full:
                    self._stop.wait(_FULL_BUFFER_WAIT)
                    continue
                messages = self.events.receive(_RECEIVE_SECONDS)
                if messages:
                    self._sort(messages)
                failures = 0
                if self.receiving_since is None:
                    self.receiving_since = self._clock()
                    _log.warning("%s is watched by events again.", self.events.name)
            except (LumosError, OSError) as problem:
                failures += 1
                self._problem, self.receiving_since = str(problem), None
                wait = min(_MAX_WAIT, 2.0**failures)
                _log.warning(
                    "%s Its sources are polled until events can be received. Next try in %.0f s.",
                    problem, wait,
                )  # fmt: skip
                self._stop.wait(wait)
            except Exception as problem:  # noqa: BLE001 - the thread must not end silently
                failures += 1
                self._problem, self.receiving_since = f"{type(problem).__name__}: {problem}", None
                _log.exception("Receiving the events of %s failed.", self.events.name)
                self._stop.wait(min(_MAX_WAIT, 2.0**failures))

    def _sort(self, messages: Sequence[ReceivedMessage]) -> None:
        """Buffer messages about watched sources; reject or acknowledge all others at once."""
        self._counts["received"] += len(messages)
        self._counts["delivered_again"] += sum(each.delivery > 1 for each in messages)
        malformed = [each for each in messages if each.outcome == "malformed"]
        # A malformed message is delivered again until it is moved to the dead-letter queue.
        new = [each for each in malformed if each.delivery == 1]
        self._counts["malformed"] += len(new)
        for message in new[:1]:
            _log.warning(
                "%s: %s cannot be parsed; the first is %s.",
                self.events.name, plural(len(new), "message"), message.reason,
            )  # fmt: skip
        relevant, others = [], []
        for message in messages:
            if message.outcome == "malformed":
                continue
            self._counts["events"] += len(message.events)
            events = tuple(each for each in message.events if self._is_relevant(each.path))
            if events:
                relevant.append(message._replace(events=events))
            else:
                others.append(message)
                self._counts["foreign" if message.events else "ignored"] += 1
        if relevant:
            self._last_event_at = self._now()
            self._buffer.add(relevant)
        # These requests may fail, so they come last.
        if malformed:
            self.events.reject(malformed)
        if others:
            self.events.acknowledge([each.receipt for each in others])

    def _is_relevant(self, path: str) -> bool:
        """Whether a path may be data of a watched source."""
        if self._ignored and path.startswith(self._ignored):
            return False
        for root in (root for _, roots in self._roots for root in roots):
            if is_below(path, root):
                relative = path[len(root.rstrip("/")) + 1 :].rstrip("/")
                is_log = table_root_in(f"{relative}/log") or table_root_in(relative)
                if is_log is not None or not any(map(is_hidden, relative.split("/"))):
                    return True
        return False

    def _count_missed(self, *, all_changes: bool = False) -> None:
        """Count the changes for which no event has arrived in time as missed."""
        now = self._clock()
        due = [
            urn_path
            for urn_path, found_at in self._unreported.items()
            if all_changes or now - found_at > _LATE_SECONDS
        ]
        for urn_path in due:
            del self._unreported[urn_path]
        if not due:
            return
        self._counts["missed"] += len(due)
        log = _log.warning if len(due) > self._last_missed else _log.info
        log(
            "%s: a scan found %s that no event had reported: %s. Check the notifications of the "
            "storage: lumos watch status",
            self.events.name, plural(len(due), "change"), ", ".join(due[:3]),
        )  # fmt: skip
        self._last_missed = len(due)

    def _mark_reported(self, paths: Collection[str]) -> None:
        """Forget the changes at these paths: events have reported them, so they were not missed."""
        if self.events.root and paths:
            self._unreported.clear()
        if not self._unreported:
            return
        folders: set[str] = set()
        named: set[str] = set()
        for path in paths:
            authority, slash, rest = path.partition("://")[2].partition("/")
            # Containers of Azure are `container@account`, and URNs name the container.
            location = f"{authority.partition('@')[0]}{slash}{rest}" or path.lstrip("/")
            if location.endswith("/"):
                folders.add(location.rstrip("/"))
            named.update(_with_parents(location.rstrip("/")))
        for urn_path in list(self._unreported):
            base = urn_path
            if "{" in base:
                # Names of files may be patterns, such as `orders_{date}.csv`.
                base = base.partition("{")[0].rpartition("/")[0]
            if base in named or not folders.isdisjoint(_with_parents(base)):
                del self._unreported[urn_path]

    def _refresh_backlog(self) -> None:
        if self._clock() - self._backlog_at < _BACKLOG_SECONDS and self._backlog_at:
            return
        self._backlog_at = self._clock()
        if self.receiving_since is None:
            self._backlog = Backlog()
            return
        try:
            self._backlog = self.events.backlog()
        except EventSourceFailed as problem:
            _log.info("%s", problem)


def _with_parents(location: str) -> Iterator[str]:
    """A location and all folders that contain it."""
    while location:
        yield location
        location = location.rpartition("/")[0]
