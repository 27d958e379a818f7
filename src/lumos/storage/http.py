"""An HTTP client with pooled connections, a retry policy and a circuit breaker."""

import http.client
import os
import random
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from queue import Empty, Full, LifoQueue
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from lumos.storage.errors import StorageBusy, StorageUnreachable, is_temporary

_CONNECT_SECONDS: Final = 5.0
_READ_SECONDS: Final = 30.0
_MAX_IDLE_CONNECTIONS: Final = 64
# The variable of OpenSSL for certificates to trust, which Python reads by itself.
CA_BUNDLE: Final = "SSL_CERT_FILE"


class StorageRetryPolicy(NamedTuple):
    """How long and how often a request is tried, with exponential backoff."""

    seconds: float = 60.0
    tries: int = 11
    first_wait: float = 0.1
    longest_wait: float = 10.0

    def wait(self, tried: int) -> float:
        """The seconds before the next try, with jitter so that tasks do not retry in step."""
        longest = min(self.longest_wait, self.first_wait * 2.0 ** (tried - 1))
        return random.uniform(longest / 2, longest)


ONCE: Final = StorageRetryPolicy(tries=1)


class HttpResponse(NamedTuple):
    """A response of any status; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class StorageHttpClient:
    """Sends requests to any server; may be used by many threads."""

    def __init__(self, bundle_variable: str = CA_BUNDLE) -> None:
        self._bundle_variable = bundle_variable
        self._idle: dict[tuple[str, str], LifoQueue[http.client.HTTPConnection]] = {}
        self._tls: ssl.SSLContext | None = None

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Callable[[], Mapping[str, str]] = dict,
        body: bytes = b"",
        retries: StorageRetryPolicy = ONCE,
        connect_seconds: float = _CONNECT_SECONDS,
    ) -> HttpResponse:
        """The response, whatever its status; `headers` are made, and so signed, for each try."""
        started, tried = time.monotonic(), 0
        while True:
            tried += 1
            failure: Exception | None = None
            answer: HttpResponse | None = None
            to_send = headers()
            try:
                answer = self._send_once(method, urlsplit(url), to_send, body, connect_seconds)
            except (OSError, http.client.HTTPException, ValueError) as problem:
                # A ValueError is a URL that cannot be parsed.
                failure = problem
            if answer is not None and not is_temporary(answer.status):
                return answer
            wait = retries.wait(tried)
            too_late = time.monotonic() - started + wait > retries.seconds
            if tried >= retries.tries or too_late:
                if answer is not None:
                    return answer
                raise StorageUnreachable(_describe(failure, url)) from failure
            time.sleep(wait)

    def _send_once(
        self,
        method: str,
        url: SplitResult,
        headers: Mapping[str, str],
        body: bytes,
        connect_seconds: float,
    ) -> HttpResponse:
        idle = self._idle.setdefault((url.scheme, url.netloc), LifoQueue(_MAX_IDLE_CONNECTIONS))
        try:
            connection, is_fresh = idle.get_nowait(), False
        except Empty:
            connection, is_fresh = self._connect(url, connect_seconds), True
        try:
            answer = _exchange(connection, method, url, headers, body)
        except (ConnectionError, http.client.HTTPException):
            if is_fresh:
                raise
            # The server closed the idle connection, which is not a failure.
            connection = self._connect(url, connect_seconds)
            answer = _exchange(connection, method, url, headers, body)
        try:
            idle.put_nowait(connection)
        except Full:
            connection.close()
        return answer

    def _connect(self, url: SplitResult, seconds: float) -> http.client.HTTPConnection:
        host, port = url.hostname or "", url.port
        proxy = "" if proxy_bypass(host) else getproxies().get(url.scheme, "")
        via = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        connection: http.client.HTTPConnection
        if url.scheme == "https":
            to = (via.hostname or "", via.port) if proxy else (host, port)
            connection = http.client.HTTPSConnection(*to, timeout=seconds, context=self._context())
            if proxy:
                connection.set_tunnel(host, port)
        else:
            to = (via.hostname or "", via.port) if proxy else (host, port)
            connection = http.client.HTTPConnection(*to, timeout=seconds)
        connection.connect()
        connection.sock.settimeout(_READ_SECONDS)
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
            if bundle := os.environ.get(self._bundle_variable):
                self._tls.load_verify_locations(bundle)
        return self._tls


def _exchange(
    connection: http.client.HTTPConnection,
    method: str,
    url: SplitResult,
    headers: Mapping[str, str],
    body: bytes,
) -> HttpResponse:
    target = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
    if url.scheme == "http" and connection.host != url.hostname:
        # A proxy needs the full URL.
        target = f"http://{url.netloc}{target}"
    try:
        connection.request(method, target, body=body or None, headers=dict(headers))
        response = connection.getresponse()
        data = response.read()
    except BaseException:
        connection.close()
        raise
    # http.client has closed the connection if the server wants that, and reopens it on demand.
    found = {name.lower(): value for name, value in response.getheaders()}
    return HttpResponse(response.status, found, data)


def _describe(problem: Exception | None, url: str) -> str:
    # Not by urlsplit, which may be what failed.
    scheme, _, rest = url.partition("://")
    host = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    where = f"{scheme}://{host}"
    text = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    is_invalid = isinstance(problem, http.client.InvalidURL | UnicodeError)
    if is_invalid or text.startswith("Invalid header"):
        # Their text repeats what was sent, which may hold a secret.
        text = "the request holds an invalid character, such as a line break"
    return f"{where} does not answer: {text}"


# Twice the concurrency of a task.
_MAX_FAILURES: Final = 64
_OPEN_SECONDS: Final = 30.0


class StorageCircuitBreaker:
    """Refuses requests for a while after too many failures in a row.

    Each request is retried by itself. Without this, a server that is gone would cost all retries
    for every file of a lake, and a scan would take days.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Count the outcome of the request inside; raise at once while the breaker is open."""
        if self._clock() < self._open_until:
            raise StorageBusy(
                "too many requests failed in a row, so that requests are paused", code="GivenUp"
            )
        try:
            yield
        except (StorageBusy, StorageUnreachable):
            self._failures += 1
            if self._failures >= _MAX_FAILURES:
                self._open_until = self._clock() + _OPEN_SECONDS
            raise
        self._failures = 0
