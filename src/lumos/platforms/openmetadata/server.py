"""The calls to an OpenMetadata server: JSON over HTTP, with pages, bulk writes and patches."""

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from lumos.config.platforms import OpenmetadataPlatform
from lumos.errors import CatalogError, CatalogTooOld
from lumos.platforms.calling import Caller, Fault, answered, lost, nobody

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
R = TypeVar("R")

KIND: Final = "openmetadata"
OLDEST: Final = (1, 9)
_BASE: Final = "/api/v1/"
_CONNECT: Final = 10.0
_PAGE: Final = 1000
_NOT_FOUND: Final = 404
_INTERNAL: Final = 500
_OUTDATED: Final = 412
_ERROR: Final = 400
_JSON: Final = "application/json"
_PATCH: Final = "application/json-patch+json"
# How the server words a patch that does not fit what it holds, beside the status of any mistake.
_UNFIT: Final = ("JSON Patch", "Non-existing name/value pair", "array index")


class Outdated(CatalogError):
    """A change that was made for something which is not there any more as it was read."""


class Refusal(NamedTuple):
    """One of many bodies that the server did not take."""

    body: Mapping[str, Any]
    message: str
    status: int


class _Answered(Exception):
    """An answer that tells of a failure."""

    def __init__(self, status: int, text: str, retry_after: str | None) -> None:
        self.status = status
        self.text = text
        self.retry_after = retry_after
        super().__init__(text)


class Server:
    """One server; connections are opened by the first call and used again by the next ones."""

    def __init__(self, settings: OpenmetadataPlatform, caller: Caller | None = None) -> None:
        self._settings = settings
        self.caller = caller or Caller.of(KIND, settings, fault_of)

    @property
    def platform(self) -> str:
        return f"{KIND}:{self._settings.address}"

    def close(self) -> None:
        """Lets go of connections."""
        if (client := self.__dict__.pop("_client", None)) is not None:
            client.close()

    def each(self, items: Sequence[T], work: Callable[[T], R]) -> Iterator[R]:
        """What the work gives back for each of the items, as it ends, some of them at a time."""
        return map(work, items) if len(items) == 1 else self.caller.each(items, work)

    def get(self, path: str, **query: Any) -> Any:
        """What is there, or nothing."""
        return self._call("GET", path, query=query)

    def named(self, route: str, fqn: str, **query: Any) -> Any:
        """What has a qualified name, or nothing."""
        return self.get(f"{route}/name/{quote(fqn, safe='')}", **query)

    def put(self, path: str, body: Any, **query: Any) -> Any:
        return self._call("PUT", path, body, query=query)

    def post(self, path: str, body: Any, **query: Any) -> Any:
        return self._call("POST", path, body, query=query)

    def delete(self, path: str, **query: Any) -> bool:
        """Whether it was there."""
        return self._call("DELETE", path, query=query) is not None

    def patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> Any:
        """Changes what is there; raises Outdated where it is not as the operations expect it."""
        try:
            answer = self._call("PATCH", path, operations, type=_PATCH)
        except CatalogError as problem:
            is_unfit = problem.status == _INTERNAL and _is_unfit(str(problem))
            if is_unfit or problem.status in (_OUTDATED, _NOT_FOUND):
                raise Outdated(
                    str(problem), platform=self.platform, status=problem.status, retryable=True
                ) from problem
            raise
        if answer is None:
            raise Outdated(
                f"{self.platform}: {path} is gone", platform=self.platform, status=_NOT_FOUND
            )
        return answer

    def pages(
        self, path: str, *, fields: str = "", include: str = "all", limit: int = _PAGE, **query: Any
    ) -> Iterator[dict[str, Any]]:
        """Everything in a list, page by page."""
        asked = {"limit": limit, "include": include, **query}
        if fields:
            asked["fields"] = fields
        after: str | None = None
        while True:
            page = self.get(path, **asked, **({} if after is None else {"after": after}))
            if page is None:
                raise CatalogTooOld(self.platform, f"the route /{path}", needed=_needed())
            yield from page["data"]
            following = page.get("paging", {}).get("after")
            if not following or following == after:
                return
            after = following

    def total(self, path: str, **query: Any) -> int:
        """How many are in a list."""
        page = self.get(path, limit=0, include="all", **query)
        return int(page["paging"]["total"]) if page else 0

    def bulk(self, path: str, bodies: Sequence[Mapping[str, Any]]) -> list[Refusal]:
        """Makes or changes many; gives back those that were not taken, the others are there."""
        answer = self.put(f"{path}/bulk", bodies)
        return [
            Refusal(
                failed.get("request") or {},
                failed.get("message") or "",
                failed.get("status") or _ERROR,
            )
            for failed in answer.get("failedRequest") or ()
        ]

    def version(self) -> tuple[int, ...]:
        """The server's version; raises where it is too old."""
        told = self.get("system/version")
        text = told.get("version", "") if isinstance(told, dict) else ""
        parts = text.partition("-")[0].split(".")
        version = tuple(int(part) for part in parts if part.isdecimal())
        if not version:
            raise CatalogTooOld(
                self.platform, "what an OpenMetadata server answers to system/version",
                needed=_needed(),
            )  # fmt: skip
        if version < OLDEST:
            raise CatalogTooOld(self.platform, f"what came after {text}", needed=_needed())
        return version

    def _call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        type: str = _JSON,
    ) -> Any:
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if content is None else {"Content-Type": type}
        asked = {key: _worded(value) for key, value in (query or {}).items()}

        def attempt() -> Any:
            answer = self._client.request(
                method, f"{_BASE}{path}", content=content, headers=headers, params=asked or None
            )
            if answer.status_code == _NOT_FOUND and method != "PUT":
                return None
            if answer.status_code >= _ERROR:
                raise _Answered(
                    answer.status_code, _message(answer.content), answer.headers.get("Retry-After")
                )
            return msgspec.json.decode(answer.content) if answer.content else {}

        return self.caller.call(f"{method} /{path}", attempt)

    @cached_property
    def _client(self) -> "httpx.Client":
        import httpx

        settings = self._settings
        secret = settings.secret()
        headers = {} if secret is None else {"Authorization": f"Bearer {secret.reveal()}"}
        verify: ssl.SSLContext | bool = True
        if settings.ca_file is not None:
            verify = ssl.create_default_context(cafile=str(settings.ca_file))
        return httpx.Client(
            base_url=settings.address,
            headers=headers,
            verify=verify,
            timeout=httpx.Timeout(settings.timeout, connect=min(_CONNECT, settings.timeout)),
            limits=httpx.Limits(max_keepalive_connections=settings.parallel + 1),
        )


def fault_of(problem: Exception) -> Fault | None:
    """What an exception of a call means."""
    import httpx

    match problem:
        case _Answered(status=status, text=text, retry_after=retry_after):
            fault = answered(status, text, retry_after)
            # What does not fit now will not fit later.
            is_unfit = status == _INTERNAL and _is_unfit(text)
            return fault._replace(passes=False, unsure=False) if is_unfit else fault
        case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.UnsupportedProtocol():
            return nobody(str(problem) or type(problem).__name__)
        case httpx.TransportError() | msgspec.DecodeError():
            return lost(str(problem) or type(problem).__name__)
        case _:
            return None


def _is_unfit(text: str) -> bool:
    return any(words in text for words in _UNFIT)


def _message(content: bytes) -> str:
    try:
        body = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return content.decode("utf-8", "replace")
    if isinstance(body, dict):
        return str(body.get("message") or body.get("error") or body)
    return str(body)


def _worded(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _needed() -> str:
    return f"OpenMetadata {'.'.join(map(str, OLDEST))} or later"
