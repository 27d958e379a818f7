"""A small server that keeps every request and can be made slow or faulty, for tests."""

import socketserver
import ssl
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit


class Request(NamedTuple):
    """A request as it came; `query` decoded, `headers` with names in lower case."""

    method: str
    target: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Response(NamedTuple):
    """What to answer; a status of 0 breaks the connection off."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = MappingProxyType({})


BROKEN_OFF = Response(0)


class RecordingServer(ABC):
    """Answers on a free port of this machine."""

    def __init__(
        self,
        *,
        latency: float = 0.0,
        answer: Callable[[Request], Response | None] = lambda _request: None,
        certificate: Path | None = None,
    ) -> None:
        self.latency = latency
        self.answer = answer
        self.certificate = certificate
        self.requests: list[Request] = []
        self.sent = 0

    @abstractmethod
    def respond(self, request: Request) -> Response:
        """The answer to a request for which none was prepared."""

    def __enter__(self) -> Self:
        owner = self

        class Handler(socketserver.StreamRequestHandler):
            disable_nagle_algorithm = True

            def handle(self) -> None:
                for request in _requests(self.rfile):
                    owner.requests.append(request)
                    if owner.latency:
                        time.sleep(owner.latency)
                    response = owner.answer(request) or owner.respond(request)
                    if response.status == 0:
                        return
                    owner.sent += len(response.body)
                    self.wfile.write(_encoded(response, request.method))

        class Listener(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 128

        self._listener = Listener(("127.0.0.1", 0), Handler)
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self._listener.socket = context.wrap_socket(self._listener.socket, server_side=True)
        scheme = "http" if self.certificate is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._listener.server_address[1]}"
        threading.Thread(target=self._listener.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()


def _requests(stream: object) -> Iterator[Request]:
    """The requests of one connection, until it is closed."""
    readline, read = stream.readline, stream.read  # type: ignore[attr-defined]
    while line := readline().decode():
        method, target, _ = line.split(" ", 2)
        headers = {}
        while (header := readline().decode("latin-1").strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        body = read(int(headers.get("content-length", "0")))
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        yield Request(method, target, parts.path, query, headers, body)


def _encoded(response: Response, method: str) -> bytes:
    headers = {"Content-Length": str(len(response.body)), **response.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {response.status} Answer\r\n{lines}\r\n".encode()
    return head if method == "HEAD" else head + response.body
