"""Transports, which wake workers when a job is ready.

A transport only wakes workers: what is ready, and who may run it, is decided in the registry. So a
lost or repeated message costs a query and never a job.
"""

import threading
from abc import ABC, abstractmethod
from typing import Final

# Waits are divided into steps of this length, so that a worker can be stopped.
STEP_SECONDS: Final = 0.5


class JobMessage:
    """A wake-up message; this kind is not delivered again."""

    def refresh(self) -> None:
        """Prevent other workers from claiming the message."""

    def settle(self) -> None:
        """Do not deliver the message again."""


class JobTransport(ABC):
    """Wakes workers."""

    @abstractmethod
    def announce(self, jobs: int = 1) -> None:
        """Wake as many workers as there are new jobs; never fails because of the transport."""

    def subscribe(self) -> None:  # noqa: B027 - only some transports drop messages nobody waits for
        """From now on, messages wait for this thread's next call of `wait`."""

    def unsubscribe(self) -> None:  # noqa: B027 - see `subscribe`
        """This thread waits for no more messages."""

    @abstractmethod
    def wait(self, seconds: float, stop: threading.Event) -> JobMessage | None:
        """The next message, or None after some time or when `stop` is set."""

    def close(self) -> None:  # noqa: B027 - only some transports have connections
        """Close connections."""
