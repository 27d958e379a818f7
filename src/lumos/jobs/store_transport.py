"""The store as transport: SQLite is polled, PostgreSQL notifies."""

import threading
from contextlib import closing
from time import monotonic
from typing import Any

from lumos.jobs.transport import STEP_SECONDS, JobMessage, JobTransport
from lumos.store import Database
from lumos.store.errors import clear_errors
from lumos.store.jobs import CHANNEL


class PollingTransport(JobTransport):
    """For SQLite: workers look into the registry every few seconds.

    Workers of the same process are woken at once.
    """

    def __init__(self, poll_seconds: float) -> None:
        self._poll_seconds = poll_seconds
        self._announced = threading.Event()

    def announce(self, jobs: int = 1) -> None:  # noqa: ARG002 - wakes all threads
        self._announced.set()

    def wait(self, seconds: float, stop: threading.Event) -> JobMessage | None:
        deadline = monotonic() + min(seconds, self._poll_seconds)
        while not stop.is_set() and (left := deadline - monotonic()) > 0:
            if self._announced.wait(min(left, STEP_SECONDS)):
                self._announced.clear()
                return JobMessage()
        return None


class PostgresTransport(JobTransport):
    """For PostgreSQL: the transaction that makes a job ready notifies all workers (LISTEN)."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._local = threading.local()
        self._connections: list[Any] = []

    def announce(self, jobs: int = 1) -> None:
        """Nothing to do: the registry's transaction has notified."""

    def subscribe(self) -> None:
        with clear_errors(self._database.location):
            self._connection()

    def unsubscribe(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            self._forget(connection)

    def wait(self, seconds: float, stop: threading.Event) -> JobMessage | None:
        deadline = monotonic() + seconds
        with clear_errors(self._database.location):
            connection = self._connection()
            try:
                while not stop.is_set() and (left := deadline - monotonic()) > 0:
                    notices = connection.notifies(timeout=min(left, STEP_SECONDS), stop_after=1)
                    if any(True for _ in notices):
                        return JobMessage()
            except Exception:
                # The next call connects again.
                self._forget(connection)
                raise
        return None

    def close(self) -> None:
        for connection in list(self._connections):
            self._forget(connection)

    def _connection(self) -> Any:
        """A connection of this thread that listens, apart from the pool."""
        connection = getattr(self._local, "connection", None)
        if connection is None or connection.closed:
            pooled = self._database.engine.raw_connection()
            pooled.detach()
            connection = pooled.driver_connection
            assert connection is not None, "it was opened just now"
            connection.autocommit = True
            connection.execute(f"LISTEN {CHANNEL}")
            self._local.connection = connection
            self._connections.append(connection)
        return connection

    def _forget(self, connection: Any) -> None:
        self._connections.remove(connection)
        with closing(connection):
            if getattr(self._local, "connection", None) is connection:
                self._local.connection = None
