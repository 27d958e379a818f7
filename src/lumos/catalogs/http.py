"""Calls the server of a catalog with retries and a concurrency limit.

All calls to a server go through one Caller. If the server asks for a pause, all calls wait, and
fewer of them run in parallel afterwards.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random
from threading import Condition, Event, Lock, local
from typing import Final, NamedTuple, TypeVar

import msgspec

from lumos.config.platforms import ServerPlatform
from lumos.config.secret import redact
from lumos.errors import CatalogBusy, CatalogError, CatalogRefused, CatalogUnreachable, LumosError
from lumos.http.retries import (
    TOO_MANY_REQUESTS,
    RetryPolicy,
    RetryState,
    is_temporary,
    retry_after_seconds,
)

T = TypeVar("T")
R = TypeVar("R")

CATALOG_RETRIES: Final = RetryPolicy(tries=12, seconds=900, first_wait=0.5, max_wait=60)
_log = logging.getLogger(__name__)
# Set when the result of a thread is no longer needed.
_stop: ContextVar[Event] = ContextVar("_stop", default=Event())  # noqa: B039

_NOT_ALLOWED: Final = (401, 403)
_INTERNAL: Final = 500
# More internal errors of the same call mean that the request itself causes them.
_MAX_INTERNAL_RETRIES: Final = 2
_SUCCESSES_PER_INCREASE: Final = 20
_MAX_TEXT: Final = 400


class Fault(NamedTuple):
    """A call that failed.

    `is_temporary`: the same call may succeed later. `is_unreachable`: there was no connection,
    which is temporary only if the server responded before.
    """

    text: str
    status: int | None = None
    retry_after: float | None = None
    is_temporary: bool = False
    is_unreachable: bool = False

    def __str__(self) -> str:
        return self.text if self.status is None else f"{self.status} {self.text}".rstrip()


def response_fault(status: int, text: str, retry_after: str | None = None) -> Fault:
    """A fault for a response with an error status."""
    seconds = retry_after_seconds(retry_after)
    return Fault(shorten(text), status, seconds, is_temporary=is_temporary(status))


def no_response_fault(text: str) -> Fault:
    """A fault for a call without a response: the connection was reset or timed out."""
    return Fault(shorten(text), is_temporary=True)


def unreachable_fault(text: str) -> Fault:
    """A fault for a call without a connection: unknown host or untrusted certificate."""
    return Fault(shorten(text), is_temporary=True, is_unreachable=True)


def shorten(text: str) -> str:
    """The text of a server in one line, without secrets."""
    line = redact(" ".join(text.split()))
    return line if len(line) <= _MAX_TEXT else f"{line[:_MAX_TEXT]}..."


class CatalogServer(NamedTuple):
    """The server to call, and the keys of its settings for error messages."""

    platform: str
    address: str
    token_key: str
    variable: str
    ca_key: str

    @classmethod
    def of(cls, kind: str, settings: ServerPlatform) -> "CatalogServer":
        return cls(
            platform=f"{kind}:{settings.address}",
            address=settings.address,
            token_key=f"{kind}.{settings.token_key}",
            variable=settings.variable,
            ca_key=f"platform_config.{kind}.ca_file",
        )


class ConcurrencyLimit:
    """Limits parallel calls: halved after a 429, one more after 20 successes."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.limit = maximum
        self._running = 0
        self._successes = 0
        self._changed = Condition()
        self._thread = local()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Wait for a free slot and hold it; nested calls use the same slot."""
        if getattr(self._thread, "has_slot", False):
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: self._running < self.limit)
            self._running += 1
        self._thread.has_slot = True
        try:
            yield
        finally:
            self._thread.has_slot = False
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def decrease(self) -> None:
        """Halve the limit after a 429."""
        with self._changed:
            self.limit = max(1, self.limit // 2)
            self._successes = 0

    def count_success(self) -> None:
        """Count a success, and raise the limit after enough of them."""
        with self._changed:
            self._successes += 1
            if self._successes >= _SUCCESSES_PER_INCREASE and self.limit < self.maximum:
                self.limit += 1
                self._successes = 0
                self._changed.notify_all()


class Caller:
    """Calls one server, from any number of threads.

    `fault_of` classifies exceptions of the client library; exceptions that are not faults are
    raised unchanged. `calls` and `faults` count calls and failed calls.
    """

    def __init__(
        self,
        retries: RetryPolicy,
        fault_of: Callable[[Exception], Fault | None],
        *,
        server: CatalogServer,
        parallel: int = 1,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
        random: Random | None = None,
    ) -> None:
        self.calls = 0
        self.faults: Counter[int | str] = Counter()
        self.concurrency = ConcurrencyLimit(parallel)
        self._retries = retries
        self._fault_of = fault_of
        self._server = server
        self._clock = clock
        self._sleep = sleep
        self._random = random or Random()
        self._lock = Lock()
        self._has_answered = False
        self._not_before = clock()
        self._has_warned = False

    @classmethod
    def of(
        cls, kind: str, settings: ServerPlatform, fault_of: Callable[[Exception], Fault | None]
    ) -> "Caller":
        configured = settings.retries
        return cls(
            msgspec.structs.replace(
                CATALOG_RETRIES, tries=configured.attempts, seconds=configured.longest
            ),
            fault_of,
            server=CatalogServer.of(kind, settings),
            parallel=settings.parallel,
        )

    def call(self, description: str, attempt: Callable[[], T]) -> T:
        """Call `attempt` with retries; `description` names the request in error messages."""
        state = RetryState(self._retries, clock=self._clock, uniform=self._random.uniform)
        internal_errors = 0
        while True:
            if (remaining := self._not_before - self._clock()) > 0:
                self._pause(remaining)
            try:
                with self.concurrency.slot():
                    with self._lock:
                        self.calls += 1
                    result = attempt()
            except Exception as exception:
                classified = self._fault_of(exception)
                if classified is None:
                    raise
                fault, problem = classified, exception
                self._count(fault)
            else:
                self._has_answered = True
                self.concurrency.count_success()
                return result
            internal_errors += fault.status == _INTERNAL
            may_succeed_later = self._has_answered or not fault.is_unreachable
            if (
                not (fault.is_temporary and may_succeed_later)
                or internal_errors > _MAX_INTERNAL_RETRIES
            ):
                raise self._error(description, fault) from problem
            seconds_to_wait = state.next_wait(fault.retry_after)
            if seconds_to_wait is not None:
                self._wait(description, fault, seconds_to_wait, state.tries)
            if seconds_to_wait is None or _stop.get().is_set():
                raise CatalogBusy(
                    self._server.platform, description, attempts=state.tries, seconds=state.seconds,
                    last=str(fault), status=fault.status,
                ) from problem  # fmt: skip

    def each(self, items: Iterable[T], work: Callable[[T], R]) -> Generator[R, None, None]:
        """Run `work` for items in parallel, and yield the results as they are finished.

        After a failure, no further item is started, and the results of running items are yielded
        before the failure is raised.
        """
        stop = Event()

        def run(item: T) -> R:
            _stop.set(stop)
            return work(item)

        remaining_items = iter(items)
        running: set[Future[R]] = set()
        failure: BaseException | None = None
        maximum = self.concurrency.maximum
        pool = ThreadPoolExecutor(maximum, thread_name_prefix="lumos-catalog")
        try:
            while True:
                while failure is None and len(running) < maximum + 1:
                    try:
                        running.add(pool.submit(run, next(remaining_items)))
                    except StopIteration:
                        break
                if not running:
                    break
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    if (problem := future.exception()) is None:
                        yield future.result()
                    else:
                        failure = failure or problem
                        stop.set()
            if failure is not None:
                raise failure
        finally:
            # Calls that wait for a retry must end, even if the generator is closed.
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _count(self, fault: Fault) -> None:
        with self._lock:
            kind = "unreachable" if fault.is_unreachable else "lost"
            self.faults[fault.status or kind] += 1
        if fault.status is not None:
            self._has_answered = True
        if fault.status == TOO_MANY_REQUESTS:
            self.concurrency.decrease()

    def _wait(self, description: str, fault: Fault, pause: float, tried: int) -> None:
        platform = self._server.platform
        _log.info("%s: %s; retrying %s in %.1f s (attempt %d of %d)", platform, fault, description,
                  pause, tried + 1, self._retries.tries)  # fmt: skip
        if fault.retry_after is not None:
            with self._lock:
                self._not_before = max(self._not_before, self._clock() + fault.retry_after)
                is_new = pause > self._retries.max_wait and not self._has_warned
                self._has_warned = self._has_warned or is_new
            if is_new:
                _log.warning("%s asks for a pause of %.0f s; waiting", platform, pause)
        self._pause(pause)

    def _pause(self, seconds: float) -> None:
        if self._sleep is not None:
            self._sleep(seconds)
        else:
            _stop.get().wait(seconds)

    def _error(self, description: str, fault: Fault) -> LumosError:
        server = self._server
        if fault.status in _NOT_ALLOWED:
            return CatalogRefused(
                server.platform, status=fault.status or 0, key=server.token_key,
                variable=server.variable,
            )  # fmt: skip
        if fault.is_unreachable:
            return CatalogUnreachable(
                server.platform, server.address, fault.text, ca_file=server.ca_key
            )
        return CatalogError(
            f"{server.platform} rejected {description}: {fault}",
            platform=server.platform,
            status=fault.status,
        )
