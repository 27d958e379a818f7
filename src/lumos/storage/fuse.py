"""Stops asking a server for a while that has failed too often in a row."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from lumos.storage.errors import StorageBusy, StorageUnreachable

# Twice as many as a task has under way at a time.
_MOST_FAILURES: Final = 64
_REST_SECONDS: Final = 30.0


class Fuse:
    """Lets requests through until so many in a row came to nothing, and again after a rest.

    Each request is patient by itself. Without this, a server that is gone would cost that patience
    for every file of a lake, and a scan would not end in days.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._resting_until = 0.0

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Counts a request that is made inside."""
        if self._clock() < self._resting_until:
            raise StorageBusy(
                "the server kept failing and is left alone for a while", code="GivenUp"
            )
        try:
            yield
        except (StorageBusy, StorageUnreachable):
            self._failures += 1
            if self._failures >= _MOST_FAILURES:
                self._resting_until = self._clock() + _REST_SECONDS
            raise
        self._failures = 0
