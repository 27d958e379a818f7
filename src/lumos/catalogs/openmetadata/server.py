"""The calls to an OpenMetadata server: JSON over HTTP, with pages, bulk writes and patches."""

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from lumos.catalogs.http import (
    Caller,
    Fault,
    lost_fault,
    response_fault,
    shorten,
    unreachable_fault,
)
from lumos.config.platforms import OpenmetadataPlatform
from lumos.errors import CatalogError, CatalogTooOld, CatalogUnavailable, MisuseError
from lumos.http.client import (
    HttpClient,
    HttpError,
    HttpResponse,
    InvalidRequest,
    NotConnected,
    ResponseTooLarge,
    TimeLimits,
)
from lumos.http.httpx_transport import HttpxTransport

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
_REDIRECTED: Final = 300
_DONE: Final = ("success", "partialSuccess")
_JSON: Final = "application/json"
_PATCH: Final = "application/json-patch+json"
# How the server words a patch that does not fit what it holds, beside the status of any mistake.
_UNFIT: Final = ("JSON Patch", "Non-existing name/value pair", "array index")


class Outdated(CatalogError):
    """A change that was made for something which is not there any more as it was read."""


class Another(CatalogUnavailable):
    """An address where something else than OpenMetadata answers."""

    def __init__(self, platform: str, answer: str) -> None:
        super().__init__(
            f"{platform} answers, but not as OpenMetadata does: {answer}. Give the address of the "
            "server itself, such as http://localhost:8585, without a page of it.",
            platform=platform,
        )


class Short(CatalogError):
    """A list that ended before all was told that there is."""

    def __init__(self, platform: str, path: str, *, told: int, total: int) -> None:
        super().__init__(
            f"{platform} told {told} of {total} in /{path} and then said that there are no more.",
            platform=platform,
            retryable=True,
        )


class RequestRefused(NamedTuple):
    """One of many bodies that the server did not take, by the body or by its qualified name."""

    request: Any
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
        if (client := self.__dict__.pop("_http", None)) is not None:
            client.close()

    def each(self, items: Sequence[T], work: Callable[[T], R]) -> Iterator[R]:
        """What the work gives back for each of the items, as it ends, some of them at a time."""
        return map(work, items) if len(items) == 1 else self.caller.each(items, work)

    def get(self, path: str, **query: Any) -> Any:
        """What is there, or nothing."""
        return self._call("GET", path, query=query)

    def named(self, route: str, fqn: str, **query: Any) -> Any:
        """What has a qualified name, or nothing."""
        found = self.get(f"{route}/name/{quote(fqn, safe='')}", **query)
        return None if found is None else self._entity(found)

    def put(self, path: str, body: Any, **query: Any) -> Any:
        """Makes or changes an entity, and gives it back."""
        return self._entity(self._call("PUT", path, body, query=query))

    def link(self, edge: Mapping[str, Any]) -> None:
        """Draws an edge between two entities."""
        self._call("PUT", "lineage", {"edge": edge})

    def _entity(self, answer: Any) -> dict[str, Any]:
        if not isinstance(answer, dict) or "id" not in answer:
            raise Another(self.platform, "it tells of something without an identifier")
        return answer

    def delete(self, path: str, **query: Any) -> bool:
        """Whether it was there."""
        return self._call("DELETE", path, query=query) is not None

    def patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> Any:
        """Changes what is there; raises Outdated where it is not as the operations expect it."""
        try:
            answer = self._call("PATCH", path, operations, type=_PATCH)
        except CatalogError as problem:
            is_unfit = problem.status == _INTERNAL and _is_unfit(str(problem))
            # Of what it refers to, the server says the same as of itself.
            is_gone = problem.status == _NOT_FOUND and f"{path.rpartition('/')[2]} not" in str(
                problem
            )
            if is_unfit or is_gone or problem.status == _OUTDATED:
                raise Outdated(
                    str(problem), platform=self.platform, status=problem.status, retryable=True
                ) from problem
            raise
        return answer

    def pages(
        self,
        path: str,
        *,
        fields: str = "",
        include: str = "all",
        limit: int = _PAGE,
        whole: bool = False,
        **query: Any,
    ) -> Iterator[dict[str, Any]]:
        """Everything in a list, page by page; raises Short where a `whole` one ends too early."""
        asked = {"limit": limit, "include": include, **query}
        if fields:
            asked["fields"] = fields
        after: str | None = None
        told = 0
        while True:
            page = self.get(path, **asked, **({} if after is None else {"after": after}))
            if page is None:
                raise CatalogTooOld(self.platform, f"the route /{path}", needed=_needed())
            data, paging = page.get("data"), page.get("paging") or {}
            if not isinstance(data, list) or not isinstance(paging, dict):
                raise Another(self.platform, f"its answer to /{path} is no list")
            for raw in data:
                if "fullyQualifiedName" not in self._entity(raw):
                    raise Another(self.platform, f"something in /{path} has no name")
                yield raw
            told += len(data)
            following = paging.get("after")
            if not following or following == after:
                break
            after = following
        total = paging.get("total")
        if whole and isinstance(total, int) and told < total:
            raise Short(self.platform, path, told=told, total=total)

    def total(self, path: str, **query: Any) -> int:
        """How many are in a list."""
        page = self.get(path, limit=0, include="all", **query)
        if page is None:
            return 0
        total = (page.get("paging") or {}).get("total")
        if not isinstance(total, int):
            raise Another(self.platform, f"its answer to /{path} has no total")
        return total

    def bulk(self, path: str, bodies: Sequence[Mapping[str, Any]]) -> list[RequestRefused]:
        """Makes or changes many; gives back those that were not taken, the others are there."""
        answer = self._call("PUT", f"{path}/bulk", bodies)
        if "status" not in answer:
            raise Another(self.platform, "it does not say what became of many entities")
        refusals = [
            RequestRefused(
                row.get("request"), row.get("message") or "", row.get("status") or _ERROR
            )
            for row in answer.get("failedRequest") or ()
        ]
        passed = answer.get("numberOfRowsPassed", len(bodies) - len(refusals))
        failed = max(answer.get("numberOfRowsFailed") or 0, len(bodies) - passed)
        is_unclear = len(refusals) < failed
        if is_unclear or (answer["status"] not in _DONE and not refusals):
            raise CatalogError(
                f"{self.platform} did not take all of {len(bodies)} in /{path}, and does not say "
                f"which: {answer['status']} {answer.get('abortReason') or ''}".rstrip(),
                platform=self.platform,
                status=_ERROR,
            )
        return refusals

    def version(self) -> tuple[int, ...]:
        """The server's version; raises where it is too old."""
        told = self.get("system/version") or {}
        text = str(told.get("version", ""))
        parts = text.partition("-")[0].split(".")
        version = tuple(int(part) for part in parts if part.isdecimal())
        if not version:
            raise Another(self.platform, "it does not say which version it is")
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
        content = b"" if body is None else msgspec.json.encode(body)
        headers = {**self._login, **({"Content-Type": type} if content else {})}
        asked = {key: _worded(value) for key, value in (query or {}).items()}
        question = f"?{urlencode(asked, quote_via=quote)}" if asked else ""
        url = f"{self._settings.address}{_BASE}{path}{question}"

        def attempt() -> Any:
            answer = self._http.send(method, url, headers=lambda: headers, body=content)
            if answer.status == _NOT_FOUND and method in ("GET", "DELETE"):
                return None
            if answer.status >= _ERROR:
                raise _Answered(
                    answer.status, _message(answer.body), answer.headers.get("retry-after")
                )
            return self._reported(method, answer)

        return self.caller.call(f"{method} /{path}", attempt)

    def _reported(self, method: str, answer: HttpResponse) -> dict[str, Any]:
        """The object in an answer; only an edge is taken without a word."""
        if answer.status >= _REDIRECTED:
            address = answer.headers.get("location", "elsewhere")
            raise Another(self.platform, f"it sends us to {shorten(address)}")
        if not answer.body and method != "GET":
            return {}
        try:
            told = msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Another(self.platform, "its answer is no JSON") from None
        if not isinstance(told, dict):
            raise Another(self.platform, "its answer is no object")
        return told

    def _trusted(self) -> ssl.SSLContext:
        path = self._settings.ca_file
        if path is None:
            return ssl.create_default_context()
        try:
            return ssl.create_default_context(cafile=str(path))
        except OSError as problem:
            raise MisuseError(
                f"'{path}' under platform_config.{KIND}.ca_file is no file of certificates: "
                f"{problem.strerror or problem}."
            ) from None

    @cached_property
    def _http(self) -> HttpClient:
        settings = self._settings
        return HttpClient(
            HttpxTransport(
                limits=TimeLimits(min(_CONNECT, settings.timeout), settings.timeout),
                connections=settings.parallel + 1,
                tls=self._trusted(),
            )
        )

    @cached_property
    def _login(self) -> Mapping[str, str]:
        secret = self._settings.secret()
        return {} if secret is None else {"Authorization": f"Bearer {secret.reveal()}"}


def _is_unfit(text: str) -> bool:
    return any(words in text for words in _UNFIT)


def fault_of(problem: Exception) -> Fault | None:
    """What an exception of a call means."""
    match problem:
        case _Answered(status=status, text=text, retry_after=retry_after):
            fault = response_fault(status, text, retry_after)
            # What does not fit now will not fit later.
            is_unfit = status == _INTERNAL and _is_unfit(text)
            return fault._replace(is_temporary=False, may_be_done=False) if is_unfit else fault
        case NotConnected() | InvalidRequest():
            return unreachable_fault(problem.reason)
        case ResponseTooLarge():
            return Fault(shorten(problem.reason))
        case HttpError():
            return lost_fault(problem.reason)
        case _:
            return None


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
