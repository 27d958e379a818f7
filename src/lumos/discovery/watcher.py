"""`lumos watch`: scans sources after events and at intervals, with one Spark session."""

import logging
import random
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from time import monotonic
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from lumos import plugins
from lumos.config import Settings
from lumos.config.settings import SparkSettings, WatchedSource
from lumos.config.sources import SourceSettings
from lumos.discovery.event_consumer import EventConsumer
from lumos.discovery.reports import IngestReport
from lumos.discovery.targets import create_source, source_name
from lumos.discovery.watch_status import EventStatus
from lumos.errors import LumosError, MisuseError, UnknownName
from lumos.model.report import FORMAT_VERSION, Report
from lumos.model.urn import Urn
from lumos.rendering.text import join_names, plural
from lumos.sources import LakeSource, SampledSource
from lumos.sources.events.factory import create_event_sources
from lumos.store.database import LockHeld

# How often unsent messages are retried.
_RETRY_SEND_INTERVAL: Final = 30.0
_MAX_PROBLEMS: Final = 20
_MAX_MISSING: Final = 3
# How often Lumos tries again to open an event source that could not be opened.
_REOPEN_INTERVAL: Final = 60.0
_SAVE_STATUS_INTERVAL: Final = 10.0
# How often a wait for events checks whether watching has ended.
_CHECK_STOP_INTERVAL: Final = 0.5
# By default, the Spark UI keeps the last thousand jobs in memory.
_SMALL_UI_HISTORY: Final = {
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
}
# The maximum share of an interval by which a poll is randomly brought forward, so that watchers
# that were started together do not poll together.
_JITTER: Final = 0.1
# The longest wait after failures, unless the interval of the source is longer.
MAX_BACKOFF: Final = 900.0
_MAX_DOUBLINGS: Final = 20
_log = logging.getLogger(__name__)


class WatchReport(Report, frozen=True, kw_only=True):
    """The number of polls (`looks`) and of failed polls, and what successful scans found.

    A dataset is counted once for each scan. `changes` are new, changed and missing datasets.
    `batches` are batches of events.
    """

    format_version: str = FORMAT_VERSION
    looks: int
    failures: int
    scans: int = 0
    datasets: int = 0
    changes: int = 0
    batches: int = 0


class SourceWatcher:
    """Watches the sources of a configuration.

    `scan` scans one source and records changes; `scan_changed` only scans changed paths.
    `begun` is called with the name and interval of each source, and `started` after each start of
    Spark. Events about files in `state` are ignored.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        scan: Callable[[SourceSettings], IngestReport],
        send: Callable[[], None],
        begun: Callable[[str, float], None],
        started: Callable[[], None],
        scan_changed: Callable[[SourceSettings, Collection[str]], IngestReport] | None = None,
        report_status: Callable[[EventStatus], None] = lambda _status: None,
        state: str = "",
    ) -> None:
        self._settings = settings
        self._scan = scan
        self._scan_changed = scan_changed
        self._report_status = report_status
        self._state = state
        self._events = _EventLoop()
        self._problems: dict[str, _ProblemLog] = {}
        self._send = send
        self._begun = begun
        self._spark = _SharedSpark(settings.spark, started)
        self._spark_lost: LumosError | None = None
        self._totals: Counter[str] = Counter()

    def run(self, stop: threading.Event, *, once: bool, interval: float | None) -> WatchReport:
        """Watch until `stop` is set; raises SparkLost if the JVM of Spark ends."""
        watched = list(watched_sources(self._settings))
        consumers = [] if once or self._scan_changed is None else self._create_consumers(watched)
        with self._spark, self._events:
            self._events.consumers = consumers
            reopened = [each for each in consumers if not self._start_consumer(each)]
            polled = [self._polled_source(each, interval, stop) for each in watched]
            polled += [
                PolledSource(
                    each.events.name, _REOPEN_INTERVAL, partial(self._reopen_consumer, each)
                )
                for each in reopened
            ]
            if self._settings.notifications.destinations:
                polled.append(PolledSource("messages", _RETRY_SEND_INTERVAL, self._send))
            self._start_spark(watched, stop)
            counts = poll(
                polled,
                clock=monotonic,
                stopped=stop.wait
                if not consumers
                else partial(self._events.wait, stop, partial(self._process, stop)),
                random=random.random,
                failed=partial(_log_failure, once=once),
                once=once,
            )
        if self._spark_lost is not None:
            raise self._spark_lost
        totals = self._totals
        return WatchReport(
            looks=counts.polls,
            failures=counts.failures,
            scans=totals["scans"],
            datasets=totals["datasets"],
            changes=totals["changes"],
            batches=totals["batches"],
        )

    def _create_consumers(self, watched: list[WatchedSource]) -> list[EventConsumer]:
        consumers = [
            EventConsumer(
                events,
                sources,
                changed=self._events.changed,
                ignored_folder=self._state,
                report_status=self._report_status,
            )
            for events, sources in create_event_sources(watched, state=self._state)
        ]
        for each in consumers:
            each.peers = tuple(
                other for other in consumers
                if other is not each and any(source in each.watched for source in other.watched)
            )  # fmt: skip
        return consumers

    def _start_consumer(self, consumer: EventConsumer) -> bool:
        """Start to receive events; return False if that fails, so that sources are polled."""
        try:
            consumer.start()
        except (LumosError, OSError) as problem:
            names = ", ".join(source_name(each.source) for each in consumer.watched)
            _log.warning("%s: polled until events can be received: %s", names, problem)
            return False
        return True

    def _reopen_consumer(self, consumer: EventConsumer) -> None:
        if not consumer.is_started:
            consumer.start()
            _log.warning("%s is watched by events now.", consumer.events.name)

    def _polled_source(
        self, watched: WatchedSource, interval: float | None, stop: threading.Event
    ) -> "PolledSource":
        """A source that is scanned as a whole at intervals, longer ones while it sends events.

        A queue can fail or recover at any time, so each poll decides whether a scan is due.
        """
        name, seconds = source_name(watched.source), float(interval or watched.polling_interval)
        consumers = self._events.consumers_of(watched)
        is_by_events = bool(consumers) and watched.watch_mode == "events"
        reconciliation_seconds = float(watched.reconciliation_interval)
        if consumers and all(each.is_started for each in consumers):
            interval_shown = reconciliation_seconds if is_by_events else seconds
            self._begun(f"{name} by events, and as a whole", interval_shown)
        else:
            self._begun(name, seconds)
        if is_by_events:
            seconds = min(seconds, reconciliation_seconds)
        scanned_at: float | None = None

        def poll_source() -> None:
            nonlocal scanned_at
            started = monotonic()
            last = scanned_at
            is_covered = last is not None and all(
                each.has_received_since(last) for each in consumers
            )
            if (is_by_events and is_covered and last is not None
                    and started - last <= reconciliation_seconds - seconds):  # fmt: skip
                return
            report = self._poll_source(watched.source, stop)
            if report is None:
                return
            if consumers and is_covered:
                consumers[0].reconcile(report)
            scanned_at = started

        return PolledSource(name, seconds, poll_source)

    def _process(self, stop: threading.Event, consumer: EventConsumer) -> None:
        """Scan the paths that a batch of events reports."""

        def scan(section: SourceSettings, changed: Collection[str] | None) -> IngestReport:
            return self._scan_source(section, stop, changed=changed)

        try:
            reports = consumer.process(scan)
        except LumosError as problem:
            _log.warning("%s: %s The events are kept and tried again.",
                         consumer.events.name, problem)  # fmt: skip
        except Exception:  # noqa: BLE001 - no batch may stop the other sources
            _log.exception("%s: the events are kept and tried again.", consumer.events.name)
        else:
            self._totals["batches"] += bool(reports)

    def _start_spark(self, watched: list[WatchedSource], stop: threading.Event) -> None:
        """Start Spark in advance if a source needs it."""
        need_spark = [_needs_spark(each.source) for each in watched]
        if stop.is_set() or not any(need_spark):
            return
        try:
            self._spark.start()
        except LumosError as problem:
            # Most databases can be scanned without Spark, and each poll of a lake tries again.
            if all(need_spark):
                raise
            _log.warning("Only databases are watched until Spark starts: %s", problem)

    def _poll_source(self, section: SourceSettings, stop: threading.Event) -> IngestReport | None:
        try:
            return self._scan_source(section, stop)
        except LockHeld as locked:
            _log.info("Skipped: %s", locked)
            return None

    def _scan_source(
        self,
        section: SourceSettings,
        stop: threading.Event,
        *,
        changed: Collection[str] | None = None,
    ) -> IngestReport:
        """Scan a source, or only its changed paths."""
        from lumos.spark.session import SparkFailed, SparkLost

        try:
            if _needs_spark(section):
                self._spark.start_if_needed()
            if changed is None or self._scan_changed is None:
                report = self._scan(section)
            else:
                report = self._scan_changed(section, changed)
        except SparkLost as problem:
            self._spark_lost = problem
            stop.set()
            raise
        except SparkFailed:
            self._spark.close()
            raise
        summary = report.summary
        changes = summary.datasets_new + summary.datasets_changed + summary.datasets_missing
        datasets = summary.datasets_new + summary.datasets_changed + summary.datasets_unchanged
        self._totals.update(scans=1, datasets=datasets, changes=changes)
        name = source_name(section)
        problems = self._problems.setdefault(name, _ProblemLog())
        problems.log_new(name, report, is_whole=changed is None)
        return report


class _EventLoop:
    """Waits for the next poll, and processes batches of events in the meantime."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.consumers: list[EventConsumer] = []
        self._status_at = monotonic()

    def consumers_of(self, watched: WatchedSource) -> list[EventConsumer]:
        """The consumers of all queues with events of a source."""
        return [each for each in self.consumers if watched in each.watched]

    def wait(
        self,
        stop: threading.Event,
        process: Callable[[EventConsumer], None],
        seconds: float,
    ) -> bool:
        """Process batches for a number of seconds; return whether watching has ended."""
        deadline = monotonic() + seconds
        while not stop.is_set():
            due = [(each.ready_at, each) for each in self.consumers]
            ready = [each for ready_at, each in due if ready_at is not None
                     and ready_at <= monotonic()]  # fmt: skip
            for consumer in ready:
                if not stop.is_set():
                    process(consumer)
            if monotonic() - self._status_at > _SAVE_STATUS_INTERVAL:
                self._status_at = monotonic()
                for consumer in self.consumers:
                    consumer.save_status()
            remaining = deadline - monotonic()
            if remaining <= 0:
                return stop.is_set()
            if ready:
                continue
            next_ready = min((at for at, _ in due if at is not None), default=deadline)
            wait = min(remaining, _CHECK_STOP_INTERVAL, max(0.01, next_ready - monotonic()))
            with self.changed:
                self.changed.wait(wait)
        return True

    def __enter__(self) -> "_EventLoop":
        return self

    def __exit__(self, *_problem: object) -> None:
        for consumer in self.consumers:
            consumer.stop()
            consumer.save_status()


class _ProblemLog:
    """Logs the problems and missing datasets of one source that the last scan did not have."""

    def __init__(self) -> None:
        self._problems: frozenset[tuple[str, str]] = frozenset()
        self._unconfirmed: frozenset[str] = frozenset()

    def log_new(self, name: str, report: IngestReport, *, is_whole: bool = True) -> None:
        problems = {(each.path, each.code): each for each in report.problems if not each.remark}
        new = problems.keys() - self._problems
        for key in sorted(new)[:_MAX_PROBLEMS]:
            _log.warning("%s: %s (%s)", problems[key].path, problems[key].reason, key[1])
        if len(new) > _MAX_PROBLEMS:
            _log.warning("... and %d more problems in %s", len(new) - _MAX_PROBLEMS, name)
        unconfirmed = frozenset(report.held)
        if unconfirmed - self._unconfirmed:
            missing = [Urn.parse(urn).name for urn in report.held]
            _log.warning(
                "%s of %s cannot be found, too many to be recorded as deleted: %s. If they were "
                "deleted, run: lumos ingest --accept-removals",
                plural(len(missing), "dataset"),
                name,
                join_names(missing, _MAX_MISSING),
            )
        if is_whole:
            self._problems, self._unconfirmed = frozenset(), frozenset()
        # A scan after events does not see all problems.
        self._problems |= problems.keys()
        self._unconfirmed |= unconfirmed


class _SharedSpark:
    """A Spark session that stays open between scans: starting one takes longer than a scan."""

    def __init__(self, settings: SparkSettings, started: Callable[[], None]) -> None:
        self._settings = settings
        self._started = started
        self._session = ExitStack()
        self._is_started = False

    def start(self) -> None:
        from lumos.spark.session import is_local, spark_session

        spark = self._settings
        defaults = _SMALL_UI_HISTORY if is_local(spark.master) else {}
        settings = {**defaults, **spark.properties()}
        self._session.enter_context(spark_session(master=spark.master, settings=settings))
        self._is_started = True
        self._started()

    def start_if_needed(self) -> None:
        """Start a session if there is none, or if the last one failed."""
        if not self._is_started:
            self.start()

    def close(self) -> None:
        """End the session; a local one keeps running, because it is shared by the process."""
        self._session.close()
        self._is_started = False

    def __enter__(self) -> "_SharedSpark":
        return self

    def __exit__(self, *_problem: object) -> None:
        self._session.close()


def _needs_spark(section: SourceSettings) -> bool:
    return isinstance(create_source(section), LakeSource | SampledSource)


def watched_sources(settings: Settings) -> Iterator[WatchedSource]:
    """The sources of `change_detection` (or else all sources) that can be watched."""
    if settings.change_detection.enabled is False:
        raise MisuseError(
            "change_detection.enabled is false, so nothing is watched. Set it to true, or leave "
            "the key out."
        )
    listed = settings.change_detection.sources or tuple(
        WatchedSource(source=source) for source in settings.sources
    )
    if not listed:
        raise MisuseError(
            "Nothing to watch. List sources in lumos.yaml, under 'change_detection' or 'sources' "
            "(lumos init writes a file to start from)."
        )
    installed = plugins.names(plugins.SOURCES)
    usable = [each for each in listed if each.source.type in installed]
    for each in listed:
        if each not in usable:
            _log.warning("Skipped %s: this version cannot watch it.", source_name(each.source))
    if not usable:
        raise UnknownName("source", listed[0].source.type, installed, listed="Installed")
    selected = [chosen for each in usable if (chosen := _select_tables(each)) is not None]
    if not selected:
        raise MisuseError(
            "Nothing to watch: 'watch_tables' is false or empty for every source. Name tables, or "
            "leave the key out to watch all of them."
        )
    yield from selected


def _select_tables(watched: WatchedSource) -> WatchedSource | None:
    """A source with the tables that are watched; None if there are none."""
    source: Any = watched.source
    if watched.watch_tables is True or not hasattr(source, "watched"):
        return watched
    if watched.watch_tables is False:
        _log.warning("Skipped %s: watch_tables is false.", source_name(source))
        return None
    if not watched.watch_tables:
        _log.warning("Skipped %s: watch_tables is empty.", source_name(source))
        return None
    narrowed = msgspec.structs.replace(source, watched=watched.watch_tables)
    return msgspec.structs.replace(watched, source=narrowed)


def _log_failure(
    source: "PolledSource", problem: Exception, *, failures: int, wait: float, once: bool
) -> None:
    is_expected = isinstance(problem, LumosError | OSError)
    retry_note = "" if once else f" Failure {failures}, next try in {wait:.0f} s."
    _log.warning(
        "%s: %s%s",
        source.name,
        problem if is_expected else f"{type(problem).__name__}: {problem}.",
        retry_note,
        exc_info=None if is_expected else problem,
    )


class PolledSource(NamedTuple):
    """A source to poll: its name, the maximum seconds between two polls, and the poll function."""

    name: str
    interval: float
    poll: Callable[[], None]


class ReportPollFailure(Protocol):
    """Called after a failed poll, with the number of failures in a row and the wait."""

    def __call__(
        self, source: PolledSource, problem: Exception, *, failures: int, wait: float
    ) -> None: ...


class PollCounts(NamedTuple):
    """The number of polls, and how many of them failed."""

    polls: int = 0
    failures: int = 0


class _Schedule:
    """The time of the next poll of a source, and its number of failures in a row."""

    def __init__(self, source: PolledSource, due_at: float) -> None:
        self.source = source
        self.due_at = due_at
        self.failures = 0


def poll(
    sources: Sequence[PolledSource],
    *,
    clock: Callable[[], float],
    stopped: Callable[[float], bool],
    random: Callable[[], float],
    failed: ReportPollFailure,
    once: bool = False,
) -> PollCounts:
    """Poll every source at its interval until `stopped` returns True; with `once`, a single time.

    `stopped` waits for the given seconds and returns whether to stop. `random` returns numbers
    between 0 and 1.
    """
    schedules = [_Schedule(each, clock()) for each in sources]
    polls = failures = 0
    while schedules:
        schedule = min(schedules, key=lambda each: each.due_at)
        source = schedule.source
        if stopped(max(0.0, schedule.due_at - clock())):
            break
        started = clock()
        polls += 1
        try:
            source.poll()
        except Exception as problem:  # noqa: BLE001 - no source may stop the others
            failures += 1
            schedule.failures += 1
            wait = apply_jitter(backoff_seconds(schedule.failures, source.interval), random)
            # Count from the end of the poll, so that a source that takes minutes to fail does not
            # block the others.
            schedule.due_at = clock() + wait
            failed(source, problem, failures=schedule.failures, wait=wait)
        else:
            schedule.failures = 0
            # Count from the start of the poll, so that changes are found within one interval.
            schedule.due_at = max(clock(), started + apply_jitter(source.interval, random))
        if once:
            schedules.remove(schedule)
    return PollCounts(polls, failures)


def backoff_seconds(failures: int, interval: float) -> float:
    """The wait after the nth failure in a row, which doubles each time."""
    doubled: float = interval * 2 ** min(failures - 1, _MAX_DOUBLINGS)
    return min(max(interval, MAX_BACKOFF), doubled)


def apply_jitter(wait: float, random: Callable[[], float]) -> float:
    """Shorten a wait by a random share of at most `_JITTER`."""
    return wait * (1 - _JITTER * random())
