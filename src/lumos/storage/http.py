"""Sends requests over connections that are kept, and again where a failure may pass."""

import http.client
import os
import random
import re
import ssl
import time
from collections.abc import Callable, Mapping
from queue import Empty, Full, LifoQueue
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from lumos.storage.errors import StorageUnreachable, is_passing

_CONNECT_SECONDS: Final = 5.0
_READ_SECONDS: Final = 30.0
_MOST_KEPT: Final = 64
# The variable of OpenSSL, which Python heeds by itself, for certificates to trust.
CA_BUNDLE: Final = "SSL_CERT_FILE"


class Patience(NamedTuple):
    """How long and how often a request is tried; waits double from the first to the longest."""

    seconds: float = 60.0
    tries: int = 11
    first_wait: float = 0.1
    longest_wait: float = 10.0

    def wait(self, tried: int) -> float:
        """The seconds before the next try; chance keeps many tasks from coming back at once."""
        longest = min(self.longest_wait, self.first_wait * 2.0 ** (tried - 1))
        return random.uniform(longest / 2, longest)


ONCE: Final = Patience(tries=1)


class Answer(NamedTuple):
    """What a server said; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport:
    """The way to any server; may be used by many threads."""

    def __init__(self, own_bundle: str = CA_BUNDLE) -> None:
        self._own_bundle = own_bundle
        self._kept: dict[tuple[str, str], LifoQueue[http.client.HTTPConnection]] = {}
        self._tls: ssl.SSLContext | None = None

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Callable[[], Mapping[str, str]] = dict,
        body: bytes = b"",
        patience: Patience = ONCE,
        connect_seconds: float = _CONNECT_SECONDS,
    ) -> Answer:
        """The answer, whatever its status; `headers` are made anew, and so signed, for each try."""
        started, tried = time.monotonic(), 0
        while True:
            tried += 1
            failure: Exception | None = None
            answer: Answer | None = None
            to_send = headers()
            try:
                answer = self._once(method, urlsplit(url), to_send, body, connect_seconds)
            except (OSError, http.client.HTTPException, ValueError) as problem:
                # An address that cannot be taken apart is one that nobody answers at.
                failure = problem
            if answer is not None and not is_passing(answer.status):
                return answer
            wait = patience.wait(tried)
            too_late = time.monotonic() - started + wait > patience.seconds
            if tried >= patience.tries or too_late:
                if answer is not None:
                    return answer
                raise StorageUnreachable(_in_words(failure, url)) from failure
            time.sleep(wait)

    def _once(
        self,
        method: str,
        url: SplitResult,
        headers: Mapping[str, str],
        body: bytes,
        connect_seconds: float,
    ) -> Answer:
        kept = self._kept.setdefault((url.scheme, url.netloc), LifoQueue(_MOST_KEPT))
        try:
            connection, is_fresh = kept.get_nowait(), False
        except Empty:
            connection, is_fresh = self._connected(url, connect_seconds), True
        try:
            answer = _exchanged(connection, method, url, headers, body)
        except (ConnectionError, http.client.HTTPException):
            if is_fresh:
                raise
            # The server closed the connection while it was idle; that is no failure.
            connection = self._connected(url, connect_seconds)
            answer = _exchanged(connection, method, url, headers, body)
        try:
            kept.put_nowait(connection)
        except Full:
            connection.close()
        return answer

    def _connected(self, url: SplitResult, seconds: float) -> http.client.HTTPConnection:
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
            if bundle := os.environ.get(self._own_bundle):
                self._tls.load_verify_locations(bundle)
        return self._tls


def _exchanged(
    connection: http.client.HTTPConnection,
    method: str,
    url: SplitResult,
    headers: Mapping[str, str],
    body: bytes,
) -> Answer:
    target = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
    if url.scheme == "http" and connection.host != url.hostname:
        # A proxy has to be told where to.
        target = f"http://{url.netloc}{target}"
    try:
        connection.request(method, target, body=body or None, headers=dict(headers))
        response = connection.getresponse()
        data = response.read()
    except BaseException:
        connection.close()
        raise
    # A connection that the server wants closed is closed by now, and opens anew on its next use.
    found = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, found, data)


def _in_words(problem: Exception | None, url: str) -> str:
    # Not taken apart as addresses are, since that may be what failed.
    scheme, _, rest = url.partition("://")
    host = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    where = f"{scheme}://{host}"
    told = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
    is_odd = isinstance(problem, http.client.InvalidURL | UnicodeError)
    if is_odd or told.startswith("Invalid header"):
        # Their words repeat what was to be sent, and that may let one in.
        told = "what was to be sent holds a character that nobody may send, such as a line break"
    return f"{where} does not answer: {told}"
