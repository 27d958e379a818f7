"""A tiny HTTP server on loopback that keeps every message it is sent."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Webhook:
    """What was received; while `status` is an error, every message is refused."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.paths: list[str] = []
        self.refuses: Callable[[str], bool] = lambda _path: False
        self.refused = 0
        self.status = 200
        self._arrived = threading.Condition()
        self._port = 0

    def address(self, path: str = "hook") -> str:
        """The address as apprise takes it."""
        return f"json://127.0.0.1:{self._port}/{path}"

    def url(self, path: str = "hook") -> str:
        """The address as HTTP clients take it."""
        return f"http://127.0.0.1:{self._port}/{path}"

    def wait_for(self, count: int, *, seconds: float = 60) -> list[dict[str, Any]]:
        """The messages, as soon as there are that many."""
        with self._arrived:
            self._arrived.wait_for(lambda: len(self.received) >= count, timeout=seconds)
            return list(self.received)

    def _take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        with self._arrived:
            status = 403 if self.refuses(path) else self.status
            if status >= 300:
                self.refused += 1
            else:
                self.received.append(json.loads(body))
                self.requests.append((headers, body))
                self.paths.append(path)
            self._arrived.notify_all()
            return status


@contextmanager
def webhook() -> Iterator[Webhook]:
    """A webhook that listens while the block runs."""
    hook = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(hook._take(self.path, headers, body))
            self.end_headers()

        def log_message(self, *_words: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook._port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hook
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
