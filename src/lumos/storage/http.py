"""The HTTP client of storages, and their circuit breaker."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from lumos.http.client import CA_BUNDLE, HttpClient, HttpError, ResponseTooLarge
from lumos.http.pooled_transport import PooledTransport
from lumos.http.retries import RetryPolicy
from lumos.storage.errors import StorageBusy, StorageFault, StorageUnreachable

STORAGE_RETRIES: Final = RetryPolicy(tries=11, seconds=60.0, first_wait=0.1, max_wait=10.0)
# Twice the number of requests that a task sends concurrently.
_MAX_FAILURES: Final = 64
_OPEN_SECONDS: Final = 30.0


def storage_http_client(ca_variable: str = CA_BUNDLE) -> HttpClient:
    """An HTTP client that raises StorageFault; `ca_variable` contains the path of a CA bundle."""
    return HttpClient(PooledTransport(ca_variable=ca_variable), translate=_storage_error)


def _storage_error(problem: HttpError) -> StorageFault:
    is_too_large = isinstance(problem, ResponseTooLarge)
    return (StorageFault if is_too_large else StorageUnreachable)(str(problem))


class StorageCircuitBreaker:
    """Stops sending requests for a while after too many failures in a row.

    Each request has its own retries. Without the breaker, a scan of an unavailable server would
    retry every file of a lake and take days.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Count the outcome of the request inside; raise StorageBusy while the breaker is open."""
        if self._clock() < self._open_until:
            raise StorageBusy(
                "too many requests failed in a row; requests are paused", code="GivenUp"
            )
        try:
            yield
        except (StorageBusy, StorageUnreachable):
            self._failures += 1
            if self._failures >= _MAX_FAILURES:
                self._open_until = self._clock() + _OPEN_SECONDS
            raise
        self._failures = 0
