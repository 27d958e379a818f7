"""Calls to a catalog's server: made again where that may help, given up where it does not.

All of a catalog's calls go through one Caller. So it knows when the server asked for patience, lets
fewer calls run at once, and keeps the others waiting, too.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random
from threading import Condition, Event, Lock, local
from typing import Final, NamedTuple, TypeVar

import msgspec

from lumos.config.platforms import ServerPlatform
from lumos.config.secret import redact
from lumos.errors import CatalogBusy, CatalogError, CatalogRefused, CatalogUnreachable, LumosError

T = TypeVar("T")
R = TypeVar("R")

_log = logging.getLogger(__name__)
# Set where the work that a thread does is no longer wanted.
_stop: ContextVar[Event] = ContextVar("_stop", default=Event())  # noqa: B039

_NOT_ALLOWED: Final = (401, 403)
_TOO_MANY: Final = 429
_INTERNAL: Final = 500
_PASSING: Final = frozenset((408, _TOO_MANY, _INTERNAL, 502, 503, 504))
# An answer of these says that nothing was done.
_SURE: Final = frozenset((_TOO_MANY,))
# A server that fails at one and the same thing again does so because of the thing.
_INTERNAL_AGAIN: Final = 2
_GOOD_ANSWERS: Final = 20
_LONGEST_TEXT: Final = 400


class Fault(NamedTuple):
    """A call that failed.

    `passes`: the same call may work later. `unsure`: what it asked for may have been done.
    `nobody`: there was nobody to take it, which passes only where somebody was there before.
    """

    text: str
    status: int | None = None
    retry_after: float | None = None
    passes: bool = False
    unsure: bool = False
    nobody: bool = False


def answered(status: int, text: str, retry_after: str | None = None) -> Fault:
    """The fault that a server's own answer tells of."""
    passes = status in _PASSING
    return Fault(
        shortened(text),
        status,
        seconds_of(retry_after),
        passes=passes,
        unsure=passes and status not in _SURE,
    )


def lost(text: str) -> Fault:
    """A call whose answer never came: reset, timed out."""
    return Fault(shortened(text), passes=True, unsure=True)


def unreachable(text: str) -> Fault:
    """A call that reached no server: no such host, nothing listens, no trusted certificate."""
    return Fault(shortened(text), passes=True, nobody=True)


def seconds_of(retry_after: str | None, now: datetime | None = None) -> float | None:
    """How long a `Retry-After` asks to wait, which is a number of seconds or a date."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    then = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())


def shortened(text: str) -> str:
    """What a server said, in one line without secrets."""
    line = redact(" ".join(text.split()))
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}..."


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long: waits grow from `first` by `factor` up to `most` seconds each, and
    all tries and waits of a call take no longer than `longest`."""

    attempts: int = 12
    first: float = 0.5
    factor: float = 2
    most: float = 60
    longest: float = 900


class Counterpart(NamedTuple):
    """Whom calls go to, and the keys that errors name so that people know what to change."""

    platform: str
    address: str
    token_key: str
    variable: str
    ca_key: str

    @classmethod
    def of(cls, kind: str, settings: ServerPlatform) -> "Counterpart":
        """The server of a catalog's settings."""
        return cls(
            platform=f"{kind}:{settings.address}",
            address=settings.address,
            token_key=f"{kind}.{settings.token_key}",
            variable=settings.variable,
            ca_key=f"platform_config.{kind}.ca_file",
        )


class Lanes:
    """How many calls run at once: fewer after each complaint, one more after each good stretch."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = most
        self._running = 0
        self._good = 0
        self._changed = Condition()
        self._mine = local()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Waits for a free lane and holds it; calls inside of a call run on the same one."""
        if getattr(self._mine, "held", False):
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: self._running < self.limit)
            self._running += 1
        self._mine.held = True
        try:
            yield
        finally:
            self._mine.held = False
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def complained(self) -> None:
        """The server had too much to do."""
        with self._changed:
            self.limit = max(1, self.limit // 2)
            self._good = 0

    def went_well(self) -> None:
        """The server answered."""
        with self._changed:
            self._good += 1
            if self._good >= _GOOD_ANSWERS and self.limit < self.most:
                self.limit += 1
                self._good = 0
                self._changed.notify_all()


class Caller:
    """Makes the calls to one server, from any number of threads.

    `fault_of` says what an exception of the client library means; one that is no fault of a call
    is raised as it is. `calls` and `faults` count what was sent and what came of it.
    """

    def __init__(
        self,
        patience: RetryPolicy,
        fault_of: Callable[[Exception], Fault | None],
        *,
        counterpart: Counterpart,
        parallel: int = 1,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
        random: Random | None = None,
    ) -> None:
        self.calls = 0
        self.faults: Counter[int | str] = Counter()
        self.lanes = Lanes(parallel)
        self._patience = patience
        self._fault_of = fault_of
        self._counterpart = counterpart
        self._clock = clock
        self._sleep = sleep
        self._random = random or Random()
        self._lock = Lock()
        self._was_answered = False
        self._not_before = clock()
        self._told_of_waiting = False

    @classmethod
    def of(
        cls,
        kind: str,
        settings: ServerPlatform,
        fault_of: Callable[[Exception], Fault | None],
    ) -> "Caller":
        """The caller that a catalog's settings ask for."""
        retries = settings.retries
        return cls(
            RetryPolicy(attempts=retries.attempts, longest=retries.longest),
            fault_of,
            counterpart=Counterpart.of(kind, settings),
            parallel=settings.parallel,
        )

    def call(
        self, what: str, attempt: Callable[[], T], *, again: Callable[[], T] | None = None
    ) -> T:
        """What an attempt gives back in the end; `what` is what errors call it.

        `again` is tried instead after a fault that leaves open whether the attempt did its work.
        """
        started, internal, tries = self._clock(), 0, 0
        while True:
            self._wait_until_welcome()
            fault, problem, result = self._tried(attempt)
            tries += 1
            if fault is None:
                return result[0]
            internal += fault.status == _INTERNAL
            if not self._may_pass(fault) or internal > _INTERNAL_AGAIN:
                raise self._given_up(what, fault) from problem
            pause = self._pause(fault, tries)
            spent = self._clock() - started
            is_over = tries >= self._patience.attempts or spent + pause > self._patience.longest
            if not is_over:
                self._wait(what, fault, pause, tries)
            if is_over or _stop.get().is_set():
                raise CatalogBusy(
                    self._counterpart.platform, what, attempts=tries,
                    seconds=self._clock() - started, last=_said(fault), status=fault.status,
                ) from problem  # fmt: skip
            if fault.unsure and again is not None:
                attempt = again

    def each(self, items: Iterable[T], work: Callable[[T], R]) -> Generator[R, None, None]:
        """What the work gives back for each of the items, as it ends, some of them at a time.

        Where one fails, nothing new is begun; what was under way is yielded before it raises.
        """
        stop = Event()

        def worked(item: T) -> R:
            _stop.set(stop)
            return work(item)

        waiting = iter(items)
        running: set[Future[R]] = set()
        failure: BaseException | None = None
        pool = ThreadPoolExecutor(self.lanes.most, thread_name_prefix="lumos-catalog")
        try:
            while True:
                while failure is None and len(running) < self.lanes.most + 1:
                    try:
                        running.add(pool.submit(worked, next(waiting)))
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
            # Also where the caller stops listening: those who wait for better times must not.
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _tried(
        self, attempt: Callable[[], T]
    ) -> tuple[Fault | None, Exception | None, tuple[T, ...]]:
        try:
            with self.lanes.one():
                with self._lock:
                    self.calls += 1
                result = attempt()
        except Exception as problem:
            fault = self._fault_of(problem)
            if fault is None:
                raise
            self._note(fault)
            return fault, problem, ()
        self._was_answered = True
        self.lanes.went_well()
        return None, None, (result,)

    def _note(self, fault: Fault) -> None:
        with self._lock:
            self.faults[fault.status or ("nobody" if fault.nobody else "lost")] += 1
        if fault.status is not None:
            self._was_answered = True
        if fault.status == _TOO_MANY:
            self.lanes.complained()

    def _may_pass(self, fault: Fault) -> bool:
        return fault.passes and (self._was_answered or not fault.nobody)

    def _pause(self, fault: Fault, tries: int) -> float:
        patience = self._patience
        longest = min(patience.most, patience.first * patience.factor ** (tries - 1))
        return max(fault.retry_after or 0.0, self._random.uniform(0, longest))

    def _wait(self, what: str, fault: Fault, pause: float, tries: int) -> None:
        platform, most = self._counterpart.platform, self._patience.most
        _log.info("%s: %s; %s again in %.1f s (try %d of %d)", platform, _said(fault), what, pause,
                  tries + 1, self._patience.attempts)  # fmt: skip
        if fault.retry_after is not None:
            with self._lock:
                self._not_before = max(self._not_before, self._clock() + fault.retry_after)
                is_news = pause > most and not self._told_of_waiting
                self._told_of_waiting = self._told_of_waiting or is_news
            if is_news:
                _log.warning("%s asks to wait for %.0f s; waiting", platform, pause)
        self._rest(pause)

    def _wait_until_welcome(self) -> None:
        """Waits where the server asked any of the others to."""
        if (left := self._not_before - self._clock()) > 0:
            self._rest(left)

    def _rest(self, seconds: float) -> None:
        if self._sleep is not None:
            self._sleep(seconds)
        else:
            _stop.get().wait(seconds)

    def _given_up(self, what: str, fault: Fault) -> LumosError:
        there = self._counterpart
        if fault.status in _NOT_ALLOWED:
            return CatalogRefused(
                there.platform, status=fault.status or 0, key=there.token_key,
                variable=there.variable,
            )  # fmt: skip
        if fault.nobody:
            return CatalogUnreachable(
                there.platform, there.address, fault.text, ca_file=there.ca_key
            )
        return CatalogError(
            f"{there.platform} did not take {what}: {_said(fault)}",
            platform=there.platform,
            status=fault.status,
        )


def _said(fault: Fault) -> str:
    if fault.status is None:
        return fault.text
    return f"{fault.status} {fault.text}".rstrip()
