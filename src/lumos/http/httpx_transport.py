"""The transport for catalogs, with connections of httpx."""

import ssl
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from lumos.http.client import (
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

if TYPE_CHECKING:
    import httpx

# Repeating a request with one of these methods has no further effect on the server.
_IDEMPOTENT: Final = frozenset(("DELETE", "GET", "HEAD", "OPTIONS", "PUT"))


class HttpxTransport:
    """Connections of httpx, which is imported at the first request."""

    def __init__(self, *, limits: TimeLimits, connections: int, tls: ssl.SSLContext) -> None:
        self._limits = limits
        self._connections = connections
        self._tls = tls

    def exchange(self, request: HttpRequest) -> HttpResponse:
        import httpx

        url, is_reused = request.url, True

        def trace(event: str, _details: Mapping[str, Any]) -> None:
            nonlocal is_reused
            is_reused = is_reused and not event.startswith("connection.connect")

        try:
            try:
                return self._exchange(request, {"trace": trace})
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                if not is_reused or request.method not in _IDEMPOTENT:
                    raise
                # Not counted as a failure: the server had closed the idle connection.
                return self._exchange(request, {})
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as problem:
            raise NotConnected(url, reason_of(problem)) from problem
        except httpx.UnsupportedProtocol as problem:
            raise InvalidRequest(url, str(problem)) from problem
        except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeError) as problem:
            raise InvalidRequest(url, INVALID_REQUEST) from problem
        except (httpx.TransportError, httpx.DecodingError) as problem:
            raise ResponseLost(url, reason_of(problem)) from problem

    def _exchange(self, request: HttpRequest, extensions: dict[str, Any]) -> HttpResponse:
        method, url, headers, body, max_bytes = request
        data, size = [], 0
        with self._client.stream(
            method, url, headers=dict(headers), content=body or None, extensions=extensions
        ) as response:
            for chunk in response.iter_bytes():
                data.append(chunk)
                size += len(chunk)
                if max_bytes is not None and size > max_bytes:
                    raise ResponseTooLarge(url, max_bytes)
        return HttpResponse(response.status_code, dict(response.headers), b"".join(data))

    def close(self) -> None:
        if (client := self.__dict__.pop("_client", None)) is not None:
            client.close()

    @cached_property
    def _client(self) -> "httpx.Client":
        import httpx

        return httpx.Client(
            verify=self._tls,
            timeout=httpx.Timeout(self._limits.read, connect=self._limits.connect),
            limits=httpx.Limits(max_keepalive_connections=self._connections),
            follow_redirects=False,
        )
