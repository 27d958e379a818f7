"""The transport for storages, with connections of http.client."""

import base64
import http.client
import os
import ssl
from collections.abc import Mapping
from functools import cached_property
from queue import Empty, Full, LifoQueue
from typing import Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from lumos.http.client import (
    CA_BUNDLE,
    INVALID_REQUEST,
    HttpRequest,
    HttpResponse,
    InvalidRequest,
    NotConnected,
    ResponseLost,
    ResponseTooLarge,
    TimeLimits,
    reason_of,
)

_MAX_IDLE_CONNECTIONS: Final = 64
_DEFAULT_LIMITS: Final = TimeLimits()


class _Connection(NamedTuple):
    """A connection; `proxy_headers` are for a proxy that forwards requests, if there is one."""

    raw: http.client.HTTPConnection
    proxy_headers: Mapping[str, str] | None

    def exchange(self, request: HttpRequest, parts: SplitResult) -> HttpResponse:
        method, url, headers, body, max_bytes = request
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        sent_headers = dict(headers)
        if self.proxy_headers is not None:
            target = f"http://{parts.netloc}{target}"
            sent_headers |= self.proxy_headers
        try:
            self.raw.request(method, target, body=body or None, headers=sent_headers)
            response = self.raw.getresponse()
            data = _read(response, max_bytes)
            if data is None:
                raise ResponseTooLarge(url, max_bytes or 0)
        except BaseException:
            self.raw.close()
            raise
        response_headers = {name.lower(): value for name, value in response.getheaders()}
        return HttpResponse(response.status, response_headers, data)


class PooledTransport:
    """Connections of http.client, kept open for each host.

    Storages use it since httpx takes 2.4 times the CPU of a small request, and 3.5 times with
    16 threads (docs/DECISIONS.md, 69).
    """

    def __init__(
        self,
        *,
        limits: TimeLimits = _DEFAULT_LIMITS,
        ca_variable: str = CA_BUNDLE,
        ca_file: str | None = None,
    ) -> None:
        self._limits = limits
        self._ca_variable = ca_variable
        self._ca_file = ca_file
        self._idle: dict[tuple[str, str], LifoQueue[_Connection]] = {}

    def exchange(self, request: HttpRequest) -> HttpResponse:
        try:
            return self._exchange(request, urlsplit(request.url))
        except (http.client.InvalidURL, ValueError) as problem:
            text = str(problem)
            # The texts of these exceptions repeat the request, which may contain a secret.
            is_quoting = isinstance(problem, http.client.InvalidURL | UnicodeError)
            if is_quoting or text.startswith("Invalid header"):
                text = INVALID_REQUEST
            raise InvalidRequest(request.url, text) from problem
        except (OSError, http.client.HTTPException) as problem:
            raise ResponseLost(request.url, reason_of(problem)) from problem

    def _exchange(self, request: HttpRequest, parts: SplitResult) -> HttpResponse:
        idle = self._idle.setdefault((parts.scheme, parts.netloc), LifoQueue(_MAX_IDLE_CONNECTIONS))
        try:
            connection, is_reused = idle.get_nowait(), True
        except Empty:
            connection, is_reused = self._connect(request.url, parts), False
        try:
            response = connection.exchange(request, parts)
        except (ConnectionError, http.client.HTTPException):
            if not is_reused:
                raise
            # Not counted as a failure: the server had closed the idle connection.
            connection = self._connect(request.url, parts)
            response = connection.exchange(request, parts)
        try:
            # There is no socket if the connection was closed at the request of the server.
            if connection.raw.sock is not None:
                idle.put_nowait(connection)
        except Full:
            connection.raw.close()
        return response

    def close(self) -> None:
        for idle in self._idle.values():
            while not idle.empty():
                idle.get_nowait().raw.close()

    def _connect(self, url: str, parts: SplitResult) -> _Connection:
        host, port = parts.hostname or "", parts.port
        proxy = _proxy(parts)
        address = (host, port) if proxy is None else (proxy.hostname or "", proxy.port)
        proxy_headers = {} if proxy is None else _proxy_headers(proxy)
        connection: http.client.HTTPConnection
        try:
            if parts.scheme == "https":
                connection = http.client.HTTPSConnection(
                    *address, timeout=self._limits.connect, context=self._tls
                )
                if proxy is not None:
                    connection.set_tunnel(host, port, headers=proxy_headers)
            else:
                connection = http.client.HTTPConnection(*address, timeout=self._limits.connect)
            connection.connect()
        except OSError as problem:
            raise NotConnected(url, reason_of(problem)) from problem
        connection.sock.settimeout(self._limits.read)
        return _Connection(
            connection, None if proxy is None or parts.scheme == "https" else proxy_headers
        )

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if bundle := self._ca_file or os.environ.get(self._ca_variable):
            context.load_verify_locations(bundle)
        return context


def _read(response: http.client.HTTPResponse, max_bytes: int | None) -> bytes | None:
    """The body, or None if it is longer than `max_bytes`."""
    length = response.length
    if max_bytes is None or (length is not None and length <= max_bytes):
        return response.read()
    if length is not None:
        return None
    # The length is unknown. `read` without a limit would not detect a truncated body.
    data = response.read(max_bytes + 1)
    return data if len(data) <= max_bytes else None


def _proxy(url: SplitResult) -> SplitResult | None:
    if proxy_bypass(url.netloc.rpartition("@")[2]):
        return None
    proxies = getproxies()
    address = proxies.get(url.scheme) or proxies.get("all", "")
    if not address:
        return None
    return urlsplit(address if "://" in address else f"http://{address}")


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    credentials = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}
