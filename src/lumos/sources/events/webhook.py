"""Storage events that MinIO sends to a webhook of the watcher.

A message is confirmed once it is stored in a file on this machine, and deleted from the file after
its effect is stored, so no message is lost if the watcher or MinIO stops.
"""

import hmac
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from lumos.config.settings import EventWebhook
from lumos.sources.events.interface import (
    Backlog,
    EventSource,
    EventSourceFailed,
    ReceivedMessage,
)
from lumos.sources.events.messages import MAX_MESSAGE_BYTES, parse_message, read_message

_MAX_RECEIVED: Final = 1_000
# Further messages are refused; MinIO sends them again later.
_MAX_QUEUED: Final = 500_000
_MAX_CONNECTIONS: Final = 64
_REQUEST_SECONDS: Final = 10.0
_LOCK_SECONDS: Final = 30.0
_CREATE: Final = """CREATE TABLE IF NOT EXISTS message
    (id INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL, received_at REAL NOT NULL)"""


class WebhookEvents(EventSource):
    """An HTTP endpoint for the events of buckets, and its messages that are not processed yet."""

    def __init__(self, settings: EventWebhook, folder: Path) -> None:
        self.name = f"webhook {settings.listen}"
        self._settings = settings
        self._file = folder / f"webhook-{settings.listen.replace(':', '-')}.db"
        self._connection: sqlite3.Connection | None = None
        self._server: _Server | None = None
        self._changed = threading.Condition()
        self._last_id = 0
        self._count = 0

    def open(self) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            # All threads share the connection, one at a time.
            connection = sqlite3.connect(
                self._file, timeout=_LOCK_SECONDS, check_same_thread=False, isolation_level=None
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(_CREATE)
            (self._count,) = connection.execute("SELECT count(*) FROM message").fetchone()
        except (OSError, sqlite3.Error) as problem:
            raise EventSourceFailed(f"{self._file} cannot be opened: {problem}.") from None
        self._connection, self._last_id = connection, 0
        host, port = self._settings.address
        try:
            self._server = _Server((host, port), self)
        except OSError as problem:
            self.close()
            raise EventSourceFailed(
                f"Cannot listen on {self._settings.listen}: {problem.strerror or problem}. Choose "
                "another address as event_webhook.listen."
            ) from None
        thread = threading.Thread(target=self._server.serve_forever, name=self.name, daemon=True)
        thread.start()

    @property
    def port(self) -> int:
        """The port of the endpoint."""
        assert self._server is not None
        return int(self._server.server_address[1])

    def is_authorized(self, authorization: str) -> bool:
        """Whether a request has the configured token, if any."""
        token = self._settings.token
        if token is None:
            return True
        # MinIO writes `Bearer` before a token that is one word.
        given = authorization.removeprefix("Bearer ").encode("utf-8", "surrogateescape")
        expected = token.reveal().removeprefix("Bearer ").encode()
        return hmac.compare_digest(given, expected)

    def accept(self, body: bytes) -> bool:
        """Store a message; False if too many wait."""
        with self._changed, self._database() as connection:
            if self._count >= _MAX_QUEUED:
                return False
            connection.execute(
                "INSERT INTO message (body, received_at) VALUES (?, ?)", (body, time.time())
            )
            self._count += 1
            self._changed.notify_all()
        return True

    def receive(self, wait: float) -> list[ReceivedMessage]:
        deadline = time.monotonic() + wait
        with self._changed:
            while True:
                with self._database() as connection:
                    rows = connection.execute(
                        "SELECT id, body, received_at FROM message WHERE id > ? "
                        "ORDER BY id LIMIT ?",
                        (self._last_id, _MAX_RECEIVED),
                    ).fetchall()
                if rows:
                    self._last_id = rows[-1][0]
                    return [
                        read_message(str(id), partial(parse_message, body), sent_at=received_at)
                        for id, body, received_at in rows
                    ]
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return []
                self._changed.wait(remaining)

    def acknowledge(self, receipts: Sequence[str]) -> None:
        with self._changed, self._database() as connection:
            connection.execute("BEGIN IMMEDIATE")
            deleted = connection.executemany(
                "DELETE FROM message WHERE id = ?", [(int(each),) for each in receipts]
            )
            self._count -= deleted.rowcount
            connection.execute("COMMIT")

    def backlog(self) -> Backlog:
        with self._changed, self._database() as connection:
            (waiting,) = connection.execute(
                "SELECT count(*) FROM message WHERE id > ?", (self._last_id,)
            ).fetchone()
            return Backlog(waiting, self._count - waiting)

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        with self._changed:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        if self._connection is None:
            raise EventSourceFailed(f"{self.name} is closed.")
        try:
            yield self._connection
        except sqlite3.Error as problem:
            if self._connection.in_transaction:
                self._connection.rollback()
            raise EventSourceFailed(f"{self._file} cannot be used: {problem}.") from None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], events: WebhookEvents) -> None:
        self.events = events
        self._slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        # More connections wait in the backlog of the socket.
        self._slots.acquire()
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do not log broken connections: MinIO sends its events again."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _REQUEST_SECONDS
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        # MinIO checks that the webhook exists.
        self._answer(200)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not self.server.events.is_authorized(self.headers.get("Authorization", "")):
            self._answer(401)
        elif not length.isdecimal():
            self._answer(411)
        elif int(length) > MAX_MESSAGE_BYTES:
            self._answer(413)
        else:
            body = self.rfile.read(int(length))
            try:
                is_accepted = len(body) == int(length) and self.server.events.accept(body)
            except EventSourceFailed:
                is_accepted = False
            self._answer(200 if is_accepted else 503)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        if status != 200:
            # Close the connection: part of the request may be unread, or the watcher may be closed.
            # On an open connection, MinIO would never reach the next watcher.
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()

    def version_string(self) -> str:
        return "Lumos"

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are counted in `lumos watch status`."""
