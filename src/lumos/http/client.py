"""The HTTP client of storages and catalogs.

Redirects are never followed, so that credentials are only sent to their host. Proxies and trusted
certificates come from the environment (HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE).
"""

import re
import time
from collections.abc import Callable, Mapping
from typing import ClassVar, Final, NamedTuple, Protocol

from lumos.errors import LumosError
from lumos.http.retries import ONCE, RetryPolicy, RetryState, is_temporary, retry_after_seconds

# The environment variable of OpenSSL for trusted certificates.
CA_BUNDLE: Final = "SSL_CERT_FILE"
# Large enough for the listing of a folder with a million files.
MAX_RESPONSE_BYTES: Final = 512 * 1024 * 1024
INVALID_REQUEST: Final = "the request contains an invalid character, such as a line break"


class TimeLimits(NamedTuple):
    """The seconds to wait for a connection, and for the next bytes of a response."""

    connect: float = 5.0
    read: float = 30.0


class HttpResponse(NamedTuple):
    """A response of any status; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return is_temporary(self.status)

    @property
    def retry_after(self) -> float | None:
        """The seconds that the server asks to wait."""
        return retry_after_seconds(self.headers.get("retry-after"))


class HttpError(LumosError):
    """A request without a complete response; `reason` contains no part of the request."""

    is_temporary: ClassVar[bool] = True
    retry_after: ClassVar[float | None] = None
    problem: ClassVar[str] = "does not answer"

    def __init__(self, url: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{_origin(url)} {self.problem}: {reason}")


class NotConnected(HttpError):
    """The connection failed: unknown host, closed port, or untrusted certificate."""


class ResponseLost(HttpError):
    """The connection broke or timed out before the response was complete."""


class InvalidRequest(HttpError):
    """A URL or header that cannot be sent."""

    is_temporary = False


class ResponseTooLarge(HttpError):
    """A response that is longer than the limit."""

    is_temporary = False
    problem = "returned too much data"

    def __init__(self, url: str, max_bytes: int) -> None:
        super().__init__(url, f"the response is longer than {max_bytes:,} bytes")


class HttpRequest(NamedTuple):
    """A request, and the maximum size of its response."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""
    max_bytes: int | None = MAX_RESPONSE_BYTES


class HttpTransport(Protocol):
    """Exchanges one request for one response; may be used by many threads."""

    def exchange(self, request: HttpRequest) -> HttpResponse:
        """Return the response; raises HttpError."""

    def close(self) -> None:
        """Close idle connections."""


class HttpClient:
    """Sends requests to any server and retries them; may be used by many threads.

    `translate` converts errors into exceptions of the caller.
    """

    def __init__(
        self, transport: HttpTransport, *, translate: Callable[[HttpError], Exception] | None = None
    ) -> None:
        self._transport = transport
        self._translate = translate

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Callable[[], Mapping[str, str]] = dict,
        body: bytes = b"",
        retries: RetryPolicy = ONCE,
        max_bytes: int | None = MAX_RESPONSE_BYTES,
    ) -> HttpResponse:
        """Return the response, whatever its status; `headers` is called before each try."""
        state = RetryState(retries)
        while True:
            request = HttpRequest(method, url, headers(), body, max_bytes)
            outcome: HttpResponse | HttpError
            try:
                outcome = self._transport.exchange(request)
            except HttpError as problem:
                outcome = problem
            wait = state.next_wait(outcome.retry_after) if outcome.is_temporary else None
            if wait is not None:
                time.sleep(wait)
            elif isinstance(outcome, HttpResponse):
                return outcome
            elif self._translate is None:
                raise outcome
            else:
                raise self._translate(outcome) from outcome

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()


def reason_of(problem: Exception) -> str:
    """The text of an exception, or the name of its type if it has no text."""
    return getattr(problem, "strerror", None) or str(problem) or type(problem).__name__


def _origin(url: str) -> str:
    # Do not use urlsplit, which may have failed for this URL.
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{re.split('[/?#]', rest, maxsplit=1)[0].rpartition('@')[2]}"
