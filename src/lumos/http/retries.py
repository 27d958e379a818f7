"""The retry policy of requests and messages."""

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

TOO_MANY_REQUESTS: Final = 429
_TEMPORARY: Final = frozenset((408, TOO_MANY_REQUESTS, 500, 502, 503, 504))
# Higher powers exceed every maximum wait, and would overflow.
_MAX_EXPONENT: Final = 64


def is_temporary(status: int) -> bool:
    """Whether a status means that the same request may succeed later."""
    return status in _TEMPORARY


def retry_after_seconds(value: str | None, now: datetime | None = None) -> float | None:
    """The wait in a `Retry-After` header, which is a number of seconds or a date."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    then = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The maximum number of tries of a request, and the maximum time in seconds.

    Waits grow by `factor` from `first_wait` to `max_wait`. If a server requests a longer wait,
    it is used unless it exceeds the remaining time.
    """

    tries: int = 11
    seconds: float = 60.0
    first_wait: float = 0.1
    max_wait: float = 10.0
    factor: float = 2.0

    def backoff(self, tries: int) -> float:
        """Return the maximum wait in seconds after this many tries."""
        growth = self.factor ** min(tries - 1, _MAX_EXPONENT)
        return min(self.max_wait, self.first_wait * growth)


ONCE: Final = RetryPolicy(tries=1)


class RetryState:
    """The tries of one request under a policy."""

    def __init__(
        self,
        policy: RetryPolicy,
        *,
        clock: Callable[[], float] = time.monotonic,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.tries = 0
        self._policy = policy
        self._clock = clock
        self._uniform = uniform
        self._started = clock()

    @property
    def seconds(self) -> float:
        """The seconds since the first try began."""
        return self._clock() - self._started

    def next_wait(self, retry_after: float | None = None) -> float | None:
        """Count a failed try and return the wait before the next one; None if it was the last."""
        self.tries += 1
        longest = self._policy.backoff(self.tries)
        # Jitter, so that tasks that failed together do not retry together.
        wait = max(retry_after or 0.0, self._uniform(longest / 2, longest))
        is_last = self.tries >= self._policy.tries
        return None if is_last or self.seconds + wait > self._policy.seconds else wait
