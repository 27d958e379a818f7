"""The store as transport: workers poll SQLite, and PostgreSQL notifies them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

from lumos.jobs.transport import STEP_SECONDS, JobMessage, JobTransport
from lumos.store import Database, StoreNotUsable
from lumos.store.errors import translate_errors
from lumos.store.jobs import CHANNEL


class PollingTransport(JobTransport):
    """For SQLite: workers query the registry every few seconds.

    Only workers of the process that adds a job are woken at once.
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
        """Do nothing: the transaction that added the job has already notified the workers."""

    def subscribe(self) -> None:
        with self._listening():
            pass

    def unsubscribe(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            self._close_connection(connection)

    def wait(self, seconds: float, stop: threading.Event) -> JobMessage | None:
        deadline = monotonic() + seconds
        with self._listening() as connection:
            while not stop.is_set() and (left := deadline - monotonic()) > 0:
                notices = connection.notifies(timeout=min(left, STEP_SECONDS), stop_after=1)
                if any(True for _ in notices):
                    return JobMessage()
        return None

    def close(self) -> None:
        for connection in list(self._connections):
            self._close_connection(connection)

    @contextmanager
    def _listening(self) -> Iterator[Any]:
        """The listening connection of this thread; an error closes it."""
        import psycopg

        connection: Any = getattr(self._local, "connection", None)
        try:
            if connection is None:
                with translate_errors(self._database.location):
                    connection = self._database.engine.raw_connection()
                # Not returned to the pool, since it still receives notifications.
                connection.detach()
                self._local.connection = connection
                self._connections.append(connection)
                connection.dbapi_connection.autocommit = True
                connection.dbapi_connection.execute(f"LISTEN {CHANNEL}")
            yield connection.dbapi_connection
        except psycopg.Error as problem:
            self.unsubscribe()
            raise StoreNotUsable(
                f"The store {self._database.location} does not respond. Check that the server is "
                "running and that storage.connection_string is its address."
            ) from problem

    def _close_connection(self, connection: Any) -> None:
        if getattr(self._local, "connection", None) is connection:
            self._local.connection = None
        # Another thread may close all connections at the same time.
        with suppress(ValueError):
            self._connections.remove(connection)
        # Bypass the pool, which would first send a rollback over a connection that may be lost.
        connection.dbapi_connection.close()
