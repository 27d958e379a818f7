"""Publishes changes to the configured catalog right after they are committed."""

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from lumos.catalogs import Connects, Platform
from lumos.progress import Progress
from lumos.store import Store

if TYPE_CHECKING:
    from lumos.catalogs.reports import PublishReport

_log = logging.getLogger(__name__)

# More warnings of one kind would hide the others.
_MAX_WARNINGS: Final = 20
# The delay before retrying a catalog that is down; it doubles up to the maximum.
_FIRST_DELAY: Final = timedelta(minutes=1)
_MAX_DELAY: Final = timedelta(minutes=15)


class AutoPublisher:
    """Publishes to the configured catalog, if there is one; a failure never undoes a change.

    Failures are logged as warnings and listed in the report. `omitted` aspects are not published.
    """

    def __init__(
        self,
        platform: Callable[[], Platform | None],
        store: Callable[[], Store],
        *,
        omitted: Collection[str] = (),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._open_platform = platform
        self._store = store
        self._omitted = omitted
        self._clock = clock
        self._depth = 0
        self._is_due = False
        self._uses_backoff = False
        self._delay = _FIRST_DELAY
        self._last: PublishReport | None = None

    def check(self) -> None:
        """Raise an error now, before any change, if the catalog is not configured correctly."""
        self._open_platform()

    def publish(self, progress: "Progress | None" = None) -> "PublishReport | None":
        """Publish pending changes; inside a `batch` block, this is postponed to its end."""
        if self._depth:
            self._is_due = True
            return None
        platform = self._open_platform()
        if platform is None:
            return None
        if (waiting_report := self._backoff_report(platform)) is not None:
            return waiting_report
        # Imported late: only needed when a catalog is configured.
        from lumos.catalogs.publisher import CatalogPublisher

        try:
            report = CatalogPublisher(self._store(), platform, omitted=self._omitted).deliver(
                progress
            )
        finally:
            if isinstance(platform, Connects):
                platform.close()
        report = self._schedule_next_try(report)
        log_problems(report)
        return report

    @contextmanager
    def backing_off(self) -> Iterator[None]:
        """Wait longer and longer between attempts inside the block while the catalog is down.

        Each attempt takes the whole configured retry time, which would block a process that polls
        sources every few seconds.
        """
        self._uses_backoff, self._last, self._delay = True, None, _FIRST_DELAY
        try:
            yield
        finally:
            self._uses_backoff, self._last = False, None

    def _backoff_report(self, platform: Platform) -> "PublishReport | None":
        """The report while waiting for the next attempt, or None if one is due."""
        last = self._last
        if last is None or last.next_try is None or self._clock() >= last.next_try:
            return None
        waiting = self._store().catalog_outbox.counts(platform.name)
        report = msgspec.structs.replace(
            last, published=0, unchanged=0, hidden=0, items=0, refused=(), conflicts=(),
            waiting=waiting.get("datasets", 0) or sum(waiting.values()),
        )  # fmt: skip
        _log.debug("%s", report.pending_message)
        return report

    def _schedule_next_try(self, report: "PublishReport") -> "PublishReport":
        if not self._uses_backoff:
            return report
        if report.is_down:
            report = msgspec.structs.replace(report, next_try=self._clock() + self._delay)
            self._delay = min(2 * self._delay, _MAX_DELAY)
        else:
            self._delay = _FIRST_DELAY
        self._last = report
        return report

    @contextmanager
    def publish_after(self) -> Iterator[None]:
        """Check the catalog, and publish pending changes at the end of the block."""
        with self.batch():
            self.check()
            yield
            self._is_due = True

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Postpone calls of `publish` inside the block, and publish once at its end."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if self._is_due and not self._depth:
            self._is_due = False
            self.publish()


def log_problems(report: "PublishReport") -> None:
    """Log pending changes, rejected entries, and conflicts with edits in the catalog."""
    context = {"facts": {"catalog": report.platform}}
    if report.pending_message is not None:
        _log.warning("%s", report.pending_message, extra=context)
    rejected = [
        f"rejected the {each.kind} {each.key}, which will be retried: {each.problem}"
        for each in report.refused
    ]
    kept_edits = [
        f"kept the edit in the catalog: {each.path} of {each.key}" for each in report.conflicts
    ]
    for sentences, noun in ((rejected, "rejections"), (kept_edits, "kept edits")):
        for sentence in sentences[:_MAX_WARNINGS]:
            _log.warning("%s: %s", report.kind, sentence, extra=context)
        if (more := len(sentences) - _MAX_WARNINGS) > 0:
            _log.warning("%s: %d more %s", report.kind, more, noun, extra=context)
