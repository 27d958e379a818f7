"""Tells the configured catalog of changes, right after they are safe."""

import logging
from collections.abc import Callable, Iterator
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

# More of one sort would hide all else that is said.
_MOST: Final = 20
# How long a catalog that is down is left in peace: at first, and at most.
_FIRST_REST: Final = timedelta(minutes=1)
_LONGEST_REST: Final = timedelta(minutes=15)


class AutoPublisher:
    """Publishes to the configured catalog, if there is one; a failure never undoes a change.

    Failures are logged as warnings and listed in the report.
    """

    def __init__(
        self,
        platform: Callable[[], Platform | None],
        store: Callable[[], Store],
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._platform_of = platform
        self._store = store
        self._clock = clock
        self._depth = 0
        self._is_due = False
        self._rests = False
        self._rest = _FIRST_REST
        self._last: PublishReport | None = None

    def check(self) -> None:
        """Raise an error now, before any change, if the catalog is not configured correctly."""
        self._platform_of()

    def publish(self, progress: "Progress | None" = None) -> "PublishReport | None":
        """Publish what is pending; inside `together`, when that ends."""
        if self._depth:
            self._is_due = True
            return None
        platform = self._platform_of()
        if platform is None:
            return None
        if (resting := self._resting(platform)) is not None:
            return resting
        # Imported late: only needed when a catalog is configured.
        from lumos.catalogs.publisher import CatalogPublisher

        try:
            report = CatalogPublisher(self._store(), platform).deliver(progress)
        finally:
            if isinstance(platform, Connects):
                platform.close()
        report = self._with_rest(report)
        complain(report)
        return report

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Inside, a catalog that is down is not asked again at once, but after growing rests.

        Each time that it is asked costs all the patience that is configured for it, and whoever
        looks at sources every few seconds would do nothing else.
        """
        self._rests, self._last, self._rest = True, None, _FIRST_REST
        try:
            yield
        finally:
            self._rests, self._last = False, None

    def _resting(self, platform: Platform) -> "PublishReport | None":
        """What is to say of a catalog that is left in peace for now."""
        last = self._last
        if last is None or last.next_try is None or self._clock() >= last.next_try:
            return None
        waiting = self._store().catalog_outbox.counts(platform.name)
        report = msgspec.structs.replace(
            last, told=0, unchanged=0, hidden=0, items=0, refused=(), conflicts=(),
            waiting=waiting.get("datasets", 0) or sum(waiting.values()),
        )  # fmt: skip
        _log.debug("%s", report.complaint)
        return report

    def _with_rest(self, report: "PublishReport") -> "PublishReport":
        if not self._rests:
            return report
        if report.is_down:
            report = msgspec.structs.replace(report, next_try=self._clock() + self._rest)
            self._rest = min(2 * self._rest, _LONGEST_REST)
        else:
            self._rest = _FIRST_REST
        self._last = report
        return report

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Publish at the end of the block what changes inside it."""
        with self.together():
            self.check()
            yield
            self._is_due = True

    @contextmanager
    def together(self) -> Iterator[None]:
        """Publish all changes of the block once, at its end."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if self._is_due and not self._depth:
            self._is_due = False
            self.publish()


def complain(report: "PublishReport") -> None:
    """Warns of what a catalog has not heard of, and why, and of people's words that stay."""
    facts = {"facts": {"catalog": report.platform}}
    if report.complaint is not None:
        _log.warning("%s", report.complaint, extra=facts)
    refused = [
        f"the {each.kind} {each.key} was rejected and will be retried: {each.problem}"
        for each in report.refused
    ]
    kept = [f"{each.path} of {each.key} stays as people wrote it" for each in report.conflicts]
    for sentences, rest in ((refused, "were refused"), (kept, "stay as people wrote them")):
        for sentence in sentences[:_MOST]:
            _log.warning("%s: %s", report.kind, sentence, extra=facts)
        if (more := len(sentences) - _MOST) > 0:
            _log.warning("%s: %d more %s", report.kind, more, rest, extra=facts)
