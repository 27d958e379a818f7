"""A small HTTP/1.1 server on the loopback interface, for catalogs that tests talk to.

    def application(request: Request) -> Answer: ...

    with Server(application) as server:
        ... server.address ...
        assert [request.path for request in server.requests] == ["/config"]

Connections stay open, each has a thread of its own, and the application answers one request at a
time. `before` and `after` hold functions that are called around the application, in the same lock:
a human who edits between two calls, a signal to the client after the n-th. `serve` runs one in a
process of its own, for measurements.
"""

import contextlib
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from email.message import Message
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qs, urlsplit

import msgspec

# However they are written; as Python's own server hands them over.
Headers: TypeAlias = Message | Mapping[str, str]
_LONGEST_SILENCE = 60.0
_TESTS = Path(__file__).parents[2]


class Request:
    """One request as it came; `number` counts from 1, faulty ones too."""

    def __init__(
        self, number: int, method: str, target: str, headers: Headers, body: bytes
    ) -> None:
        self.number = number
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        address = urlsplit(target)
        # Still percent-encoded: whether an identifier holds a slash is for the routes to know.
        self.path = address.path
        self.query = {
            key: values[-1]
            for key, values in parse_qs(address.query, keep_blank_values=True).items()
        }

    @cached_property
    def json(self) -> Any:
        """The body; raises ValueError where it is no JSON."""
        return msgspec.json.decode(self.body)

    def __repr__(self) -> str:
        return f"<{self.number}: {self.method} {self.target}, {len(self.body)} bytes>"


class Answer(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}

    @classmethod
    def of(cls, value: Any, status: int = 200) -> "Answer":
        """An answer of JSON."""
        return cls(status, msgspec.json.encode(value), {"Content-Type": "application/json"})


class Mishap(NamedTuple):
    """How a request goes wrong: whether it takes effect first, and what the client then sees.

    Without an `answer` the connection is reset or, where it is `silent`, nothing comes at all.
    """

    name: str
    takes_effect: bool = False
    answer: Answer | None = None
    silent: bool = False


Application = Callable[[Request], Answer]


class Server:
    """Serves an application until it is closed; `recording=False` only counts."""

    def __init__(
        self,
        application: Application,
        *,
        mishaps: Callable[[Request], Mishap | None] | None = None,
        recording: bool = True,
    ) -> None:
        self.application = application
        self.mishaps = mishaps
        self.recording = recording
        self.before: list[Callable[[Request], None]] = []
        self.after: list[Callable[[Request, Answer], None]] = []
        self.requests: list[Request] = []
        self.met: list[tuple[Request, Mishap]] = []
        self.errors: list[Exception] = []
        self.calls = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.connections = 0
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._listener = _Listener(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(
            target=self._listener.serve_forever, args=(0.01,), daemon=True
        )

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._listener.server_address[1]}"

    def __enter__(self) -> "Server":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        self._listener.shutdown()
        self._listener.server_close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        if self.errors and error is None:
            raise self.errors[0]

    def forget(self) -> None:
        """Counts and records from here on."""
        with self._lock:
            self.requests.clear()
            self.met.clear()
            self.calls = self.bytes_in = self.bytes_out = 0

    def counts(self) -> dict[str, int]:
        return {
            "calls": self.calls,
            "connections": self.connections,
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
        }

    def handle(self, method: str, target: str, headers: Headers, body: bytes) -> Answer | Mishap:
        """What becomes of a request."""
        with self._lock:
            self.calls += 1
            self.bytes_in += len(body)
            request = Request(self.calls, method, target, headers, body)
            if self.recording:
                self.requests.append(request)
            for tell in self.before:
                tell(request)
            mishap = self.mishaps(request) if self.mishaps else None
            if mishap:
                self.met.append((request, mishap))
            answer = None
            if mishap is None or mishap.takes_effect:
                answer = self.application(request)
                self.bytes_out += len(answer.body)
                for told in self.after:
                    told(request, answer)
            return mishap or answer or Answer(500)

    def broke(self, error: Exception) -> Answer:
        """A mistake of the stub or a hook is no fault that was asked for: closing raises it."""
        self.errors.append(error)
        return Answer.of({"message": f"the stub broke: {error!r}", "status": 500}, 500)

    def connected(self, connection: socket.socket) -> None:
        with self._lock:
            self.connections += 1
            self._open.add(connection)

    def disconnected(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)

    def wait_for_end(self, connection: socket.socket) -> None:
        """Returns when the client has given up."""
        waited = 0.0
        while waited < _LONGEST_SILENCE and not self._closing.is_set():
            if select.select([connection], [], [], 0.05)[0]:
                return
            waited += 0.05


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that goes away in the middle is what many tests are about.
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _handler_of(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        rbufsize = 1 << 16

        def setup(self) -> None:
            super().setup()
            server.connected(self.connection)

        def finish(self) -> None:
            server.disconnected(self.connection)
            super().finish()

        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            if len(body) < length:
                raise ConnectionResetError("the client went away in the middle of its request")
            try:
                outcome = server.handle(self.command, self.path, self.headers, body)
            except Exception as error:  # noqa: BLE001
                outcome = server.broke(error)
            if isinstance(outcome, Mishap) and outcome.answer is None:
                if outcome.silent:
                    server.wait_for_end(self.connection)
                self._reset()
                return
            answer = outcome.answer if isinstance(outcome, Mishap) else outcome
            assert answer is not None
            lines = [f"HTTP/1.1 {answer.status} {self.responses.get(answer.status, ('',))[0]}"]
            lines += [f"{name}: {value}" for name, value in answer.headers.items()]
            lines += [f"Content-Length: {len(answer.body)}", "", ""]
            # In one piece, so that no client waits for the second.
            self.wfile.write("\r\n".join(lines).encode("latin-1") + answer.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _do

        def _reset(self) -> None:
            at_once = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            self.connection.close()
            # Ends this connection's thread, which then closes what still holds it open.
            raise ConnectionResetError("as it was asked for")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def serve(server: Server, *, control: str = "/stub") -> None:
    """Serves until standard input ends; the first line printed is the address.

    GET of `control` answers the counts, DELETE of it begins to count anew.
    """
    application = server.application

    def with_control(request: Request) -> Answer:
        if request.path != control:
            return application(request)
        server.calls -= 1
        answer = Answer.of(server.counts())
        if request.method == "DELETE":
            server.forget()
        return answer

    server.application = with_control
    with server:
        sys.stdout.write(server.address + "\n")
        sys.stdout.flush()
        sys.stdin.read()


@contextlib.contextmanager
def in_its_own_process(module: str, *arguments: str) -> Iterator[str]:
    """The address of a server whose module (`catalogs.servers.gms`) calls `serve`."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_TESTS
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
