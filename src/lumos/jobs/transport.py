"""Transports, which wake workers when a job is ready.

A transport only wakes workers. Only the registry of jobs decides which jobs are ready and who may
run them, so a lost or repeated message costs a query and never a job.
"""

import threading
from abc import ABC, abstractmethod
from typing import Final

# Waits are divided into steps of this length, so that a worker can be stopped.
STEP_SECONDS: Final = 0.5


class JobMessage:
    """A message that wakes a worker; subclasses are delivered again until they are settled."""

    def refresh(self) -> None:
        """Prevent other workers from claiming the message."""

    def settle(self) -> None:
        """Do not deliver the message again."""


class JobTransport(ABC):
    """Wakes workers."""

    @abstractmethod
    def announce(self, jobs: int = 1) -> None:
        """Wake a worker for each of `jobs` new jobs; errors of the transport are not raised."""

    def subscribe(self) -> None:  # noqa: B027 - only some transports drop messages nobody waits for
        """Keep messages from now on for the next call of `wait` by this thread."""

    def unsubscribe(self) -> None:  # noqa: B027 - see `subscribe`
        """Keep no more messages for this thread."""

    @abstractmethod
    def wait(self, seconds: float, stop: threading.Event) -> JobMessage | None:
        """The next message, or None after some time or when `stop` is set."""

    def close(self) -> None:  # noqa: B027 - only some transports have connections
        """Close connections."""
