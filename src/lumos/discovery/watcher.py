"""`lumos watch`: sources looked at again and again, on one warm Spark session."""

import logging
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from time import monotonic
from typing import Any, Final

import msgspec

from lumos import plugins
from lumos.config import Settings
from lumos.config.check import unsupported_mode_note
from lumos.config.settings import SparkSettings, WatchedSource
from lumos.config.sources import SourceSettings
from lumos.discovery.polling import Watched, watch
from lumos.discovery.reports import IngestReport
from lumos.discovery.resolve import name_of, source_of
from lumos.errors import LumosError, MisuseError, UnknownName
from lumos.model.report import FORMAT_VERSION, Report
from lumos.sources import LakeSource, SampledSource
from lumos.store.locks import AlreadyHeld

# How often messages that could not be sent are looked at again.
_BETWEEN_MESSAGES: Final = 30.0
_MOST_PROBLEMS: Final = 20
# A page that nobody sees would otherwise be kept for the last thousand jobs.
_SHORT_MEMORY: Final = {
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
}
_log = logging.getLogger(__name__)


class WatchReport(Report, frozen=True, kw_only=True):
    """What a watcher did while it ran."""

    format_version: str = FORMAT_VERSION
    looks: int
    failures: int


class Watcher:
    """Watches the sources of a configuration; `scan` looks at one of them and records changes."""

    def __init__(
        self,
        settings: Settings,
        *,
        scan: Callable[[SourceSettings], IngestReport],
        send: Callable[[], None],
        begun: Callable[[str, float], None],
        started: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._scan = scan
        self._send = send
        self._begun = begun
        self._spark = _WarmSpark(settings.spark, started)
        self._lost: LumosError | None = None

    def run(self, stop: threading.Event, *, once: bool, interval: float | None) -> WatchReport:
        """Watches until somebody sets `stop`; fails where the JVM of Spark is lost for good."""
        chosen = list(watched_sources(self._settings))
        sources = [
            Watched(
                name_of(each.source),
                interval or each.polling_interval,
                partial(self._look, each.source, _Told(), stop),
            )
            for each in chosen
        ]
        for source in sources:
            self._begun(source.name, source.interval)
        looks = list(sources)
        if self._settings.notifications.channels:
            looks.append(Watched("messages", _BETWEEN_MESSAGES, self._send))
        with self._spark:
            self._start_spark(chosen, stop)
            tally = watch(
                looks,
                clock=monotonic,
                stopped=stop.wait,
                random=random.random,
                failed=partial(_tell_failure, once=once),
                once=once,
            )
        if self._lost is not None:
            raise self._lost
        return WatchReport(looks=tally.looks, failures=tally.failures)

    def _start_spark(self, chosen: list[WatchedSource], stop: threading.Event) -> None:
        """Starts Spark beforehand where something needs it and nobody has said to stop."""
        need_it = [_needs_spark(each.source) for each in chosen]
        if stop.is_set() or not any(need_it):
            return
        try:
            self._spark.start()
        except LumosError as problem:
            # Most databases do without it, and the rest is tried again.
            if all(need_it):
                raise
            _log.warning("only databases are watched until Spark starts: %s", problem)

    def _look(self, section: SourceSettings, told: "_Told", stop: threading.Event) -> None:
        from lumos.spark.session import SparkFailed, SparkLost

        try:
            if _needs_spark(section):
                self._spark.start_if_needed()
            report = self._scan(section)
        except AlreadyHeld as held:
            _log.info("passed over: %s", held)
            return
        except SparkLost as problem:
            self._lost = problem
            stop.set()
            raise
        except SparkFailed:
            self._spark.let_go()
            raise
        told.tell(name_of(section), report)


class _Told:
    """Names what is wrong in one source, and what is held back, when it is news."""

    def __init__(self) -> None:
        self._problems: frozenset[tuple[str, str]] = frozenset()
        self._held: frozenset[str] = frozenset()

    def tell(self, name: str, report: IngestReport) -> None:
        problems = {(each.path, each.code): each for each in report.problems if not each.remark}
        news = problems.keys() - self._problems
        for key in sorted(news)[:_MOST_PROBLEMS]:
            _log.warning("%s: %s (%s)", problems[key].path, problems[key].reason, key[1])
        if len(news) > _MOST_PROBLEMS:
            _log.warning("... and %d more problems in %s", len(news) - _MOST_PROBLEMS, name)
        held = frozenset(report.held)
        if held - self._held:
            _log.warning(
                "%d datasets of %s cannot be found, which is too much to believe; if they are "
                "really gone, run: lumos ingest --accept-removals",
                len(held),
                name,
            )
        self._problems = frozenset(problems)
        self._held = held


class _WarmSpark:
    """A session that is kept between looks, since starting one takes longer than a look."""

    def __init__(self, settings: SparkSettings, started: Callable[[], None]) -> None:
        self._settings = settings
        self._started = started
        self._kept = ExitStack()
        self._is_started = False

    def start(self) -> None:
        from lumos.spark.session import is_local, spark_session

        spark = self._settings
        remembered = _SHORT_MEMORY if is_local(spark.master) else {}
        settings = {**remembered, **spark.properties()}
        self._kept.enter_context(spark_session(master=spark.master, settings=settings))
        self._is_started = True
        self._started()

    def let_go(self) -> None:
        """Ends a session that failed, unless it is a local one, which answers or is lost."""
        self._kept.close()
        self._is_started = False

    def start_if_needed(self) -> None:
        """Starts a session where there is none, or the last one failed."""
        if not self._is_started:
            self.start()

    def __enter__(self) -> "_WarmSpark":
        return self

    def __exit__(self, *_problem: object) -> None:
        self._kept.close()


def _needs_spark(section: SourceSettings) -> bool:
    return isinstance(source_of(section), LakeSource | SampledSource)


def watched_sources(settings: Settings) -> Iterator[WatchedSource]:
    """The sources of `change_detection`, or else all, that this version can watch."""
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
            _log.warning("this version cannot watch '%s'; it is passed over", name_of(each.source))
    if not usable:
        raise UnknownName("source", listed[0].source.type, installed, listed="Installed")
    wanted = [chosen for each in usable if (chosen := _narrowed(each)) is not None]
    if not wanted:
        raise MisuseError(
            "Nothing to watch: 'watch_tables' is false or empty for every source. Name tables, or "
            "leave the key out to watch all of them."
        )
    yield from wanted


def _narrowed(watched: WatchedSource) -> WatchedSource | None:
    """A source with the tables that are watched; nothing where none are."""
    source: Any = watched.source
    if watched.watch_mode != "polling":
        _log.warning("%s: %s", name_of(source), unsupported_mode_note(watched))
    if watched.watch_tables is True or not hasattr(source, "watched"):
        return watched
    if watched.watch_tables is False:
        _log.warning("%s: watch_tables is false, so it is passed over", name_of(source))
        return None
    if not watched.watch_tables:
        _log.warning("%s: watch_tables is empty, so it is passed over", name_of(source))
        return None
    narrowed = msgspec.structs.replace(source, watched=watched.watch_tables)
    return msgspec.structs.replace(watched, source=narrowed)


def _tell_failure(
    watched: Watched, problem: Exception, *, failures: int, wait: float, once: bool
) -> None:
    foreseen = isinstance(problem, LumosError | OSError)
    again = "" if once else f" Failure {failures}, next try in {wait:.0f} s."
    _log.warning(
        "%s: %s%s",
        watched.name,
        problem if foreseen else f"{type(problem).__name__}: {problem}.",
        again,
        exc_info=None if foreseen else problem,
    )
