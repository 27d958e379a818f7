"""JSON over HTTP, for catalogs that are servers with a REST interface."""

import base64
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from lumos.catalogs.http import (
    Caller,
    Fault,
    no_response_fault,
    response_fault,
    shorten,
    unreachable_fault,
)
from lumos.config.platforms import ServerPlatform
from lumos.config.secret import Secret
from lumos.errors import CatalogUnavailable, MisuseError
from lumos.http.client import (
    HttpClient,
    HttpError,
    InvalidRequest,
    NotConnected,
    ResponseLost,
    ResponseTooLarge,
    TimeLimits,
)
from lumos.http.httpx_transport import HttpxTransport

_CONNECT: Final = 10.0
_JSON: Final = "application/json"
_NO_CONTENT: Final = 204
_NOT_FOUND: Final = 404
_ERROR: Final = 400
_REDIRECTED: Final = 300
# Keys under which servers report the reason of a failure.
_MESSAGE_KEYS: Final = ("errorMessage", "message", "error", "msg")


class UnexpectedServer(CatalogUnavailable):
    """The server at the address is not the catalog."""

    def __init__(self, platform: str, answer: str) -> None:
        super().__init__(
            f"Unexpected response from {platform}: {answer}. Use the address of the server "
            "itself, without the path of a page, and check it with: lumos doctor",
            platform=platform,
        )


class ErrorResponse(Exception):
    """A response with an error status."""

    def __init__(self, status: int, text: str, retry_after: str | None) -> None:
        self.status = status
        self.text = text
        self.retry_after = retry_after
        super().__init__(text)


class RestClient:
    """Calls one server below a path; the first call connects, and failed calls are retried."""

    def __init__(
        self,
        kind: str,
        settings: ServerPlatform,
        *,
        path: str,
        login: tuple[str, Secret | None] | None = None,
        headers: Mapping[str, str] | None = None,
        caller: Caller | None = None,
    ) -> None:
        self.platform = f"{kind}:{settings.address}"
        self.caller = caller or Caller.of(kind, settings, fault_of)
        self._kind = kind
        self._settings = settings
        self._path = path
        self._basic_login = login
        self._headers = headers or {}

    def close(self) -> None:
        """Close connections; the next call opens new ones."""
        if (client := self.__dict__.pop("_http", None)) is not None:
            client.close()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        content_type: str = _JSON,
        description: str | None = None,
    ) -> Any:
        """The JSON of the response, or None if it is empty or a GET finds nothing.

        `description` names the request in error messages.
        """
        content = b"" if body is None else msgspec.json.encode(body)
        headers = {
            **self._authorization,
            **self._headers,
            "Accept": _JSON,
            **({"Content-Type": content_type} if content else {}),
        }
        url = f"{self._settings.address}{self._path}{path}"
        if query:
            parameters = {
                key: str(value).lower() if isinstance(value, bool) else value
                for key, value in query.items()
            }
            url += f"?{urlencode(parameters, doseq=True, quote_via=quote)}"

        def attempt() -> Any:
            answer = self._http.send(method, url, headers=lambda: headers, body=content)
            if answer.status == _NOT_FOUND and method == "GET":
                return None
            if answer.status >= _ERROR:
                retry_after = answer.headers.get("retry-after")
                raise ErrorResponse(answer.status, self._message(answer.body), retry_after)
            if answer.status >= _REDIRECTED:
                address = shorten(answer.headers.get("location", "another page"))
                raise UnexpectedServer(self.platform, f"it redirects to {address}")
            if not answer.body and (method != "GET" or answer.status == _NO_CONTENT):
                return None
            try:
                return msgspec.json.decode(answer.body)
            except (msgspec.DecodeError, UnicodeDecodeError):
                if answer.body[:1] in (b"{", b"["):
                    raise ResponseLost(url, "the response is incomplete") from None
                raise UnexpectedServer(self.platform, "its response is not JSON") from None

        return self.caller.call(description or f"{method} /{path}", attempt)

    def _message(self, content: bytes) -> str:
        """The reason of a failure in a response, without the token."""
        text = content.decode("utf-8", "replace")
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            body = msgspec.json.decode(content)
            text = str(body)
            if isinstance(body, dict):
                text = str(next((body[key] for key in _MESSAGE_KEYS if body.get(key)), body))
        secret = self._settings.secret()
        return text if secret is None else text.replace(secret.reveal(), "***")

    @cached_property
    def _http(self) -> HttpClient:
        settings = self._settings
        return HttpClient(
            HttpxTransport(
                limits=TimeLimits(min(_CONNECT, settings.timeout), settings.timeout),
                connections=settings.parallel + 1,
                tls=self._tls(),
            )
        )

    def _tls(self) -> ssl.SSLContext:
        path = self._settings.ca_file
        try:
            return ssl.create_default_context(cafile=None if path is None else str(path))
        except OSError as problem:
            raise MisuseError(
                f"Cannot read certificates from '{path}' (platform_config.{self._kind}.ca_file): "
                f"{problem.strerror or problem}."
            ) from None

    @cached_property
    def _authorization(self) -> Mapping[str, str]:
        if (token := self._settings.secret()) is not None:
            return {"Authorization": f"Bearer {token.reveal()}"}
        if self._basic_login is None:
            return {}
        user, password = self._basic_login
        text = f"{user}:{'' if password is None else password.reveal()}"
        return {"Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


def fault_of(problem: Exception) -> Fault | None:
    """Classify an exception of a call; None if no call failed."""
    match problem:
        case ErrorResponse(status=status, text=text, retry_after=retry_after):
            return response_fault(status, text, retry_after)
        case NotConnected() | InvalidRequest():
            return unreachable_fault(problem.reason)
        case ResponseTooLarge():
            return Fault(shorten(problem.reason))
        case HttpError():
            return no_response_fault(problem.reason)
        case _:
            return None


def version_numbers(text: Any) -> tuple[int, ...]:
    """The numbers of a version, without a suffix: 1 and 9 in `1.9-SNAPSHOT`."""
    parts = str(text).partition("-")[0].split(".")
    return tuple(int(part) for part in parts if part.isdecimal())
