"""Calls an OpenMetadata server: JSON over HTTP, with pages, bulk writes and patches."""

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar
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
OLDEST_VERSION: Final = (1, 9)
_BASE: Final = "/api/v1/"
_CONNECT_TIMEOUT: Final = 10.0
_PAGE_SIZE: Final = 1000
_NOT_FOUND: Final = 404
_INTERNAL: Final = 500
_OUTDATED: Final = 412
_ERROR: Final = 400
_REDIRECTED: Final = 300
_SUCCESS: Final = ("success", "partialSuccess")
_JSON: Final = "application/json"
_PATCH: Final = "application/json-patch+json"
# Messages for a patch that does not match the entity; the status alone does not identify it.
_PATCH_MISMATCH: Final = ("JSON Patch", "Non-existing name/value pair", "array index")


class Outdated(CatalogError):
    """The entity was changed since it was read."""


class NotOpenMetadata(CatalogUnavailable):
    """The address does not belong to an OpenMetadata server."""

    def __init__(self, platform: str, response: str) -> None:
        super().__init__(
            f"{platform} is not an OpenMetadata server: {response}. Use the address of the server, "
            "such as http://localhost:8585, without a path.",
            platform=platform,
        )


class IncompleteList(CatalogError):
    """A list that has fewer entries than the server counts."""

    def __init__(self, platform: str, path: str, *, received: int, total: int) -> None:
        super().__init__(
            f"{platform} listed only {received} of {total} in /{path}. Run the command again.",
            platform=platform,
            retryable=True,
        )


class RequestRefused(NamedTuple):
    """An entity of a bulk request that the server rejected, by its body or qualified name."""

    request: Any
    message: str
    status: int


class _ErrorResponse(Exception):
    """A response with an error status."""

    def __init__(self, status: int, text: str, retry_after: str | None) -> None:
        self.status = status
        self.text = text
        self.retry_after = retry_after
        super().__init__(text)


class Server:
    """One server; the first call opens connections, which later ones reuse."""

    def __init__(self, settings: OpenmetadataPlatform, caller: Caller | None = None) -> None:
        self._settings = settings
        self.caller = caller or Caller.of(KIND, settings, fault_of)

    @property
    def platform(self) -> str:
        return f"{KIND}:{self._settings.address}"

    def close(self) -> None:
        """Close connections."""
        if (client := self.__dict__.pop("_http", None)) is not None:
            client.close()

    def each(self, items: Sequence[T], work: Callable[[T], R]) -> Iterator[R]:
        """Run `work` for items in parallel, and yield the results as they are finished."""
        return map(work, items) if len(items) == 1 else self.caller.each(items, work)

    def get(self, path: str, **query: Any) -> Any:
        """The object at a path, or None."""
        return self._call("GET", path, query=query)

    def named(self, route: str, fqn: str, **query: Any) -> Any:
        """The entity with a qualified name, or None."""
        found = self.get(f"{route}/name/{quote(fqn, safe='')}", **query)
        return None if found is None else self._entity(found)

    def put(self, path: str, body: Any, **query: Any) -> Any:
        """Create or change an entity, and return it."""
        return self._entity(self._call("PUT", path, body, query=query))

    def put_edge(
        self, upstream: Mapping[str, Any], downstream: Mapping[str, Any], details: Mapping[str, Any]
    ) -> None:
        """Create or change an edge between two references."""
        edge = {"fromEntity": upstream, "toEntity": downstream, "lineageDetails": details}
        self._call("PUT", "lineage", {"edge": edge})

    def delete_edge(self, upstream: Mapping[str, Any], downstream: Mapping[str, Any]) -> bool:
        """Delete an edge between two references; return whether it existed."""
        ends = (f"{each['type']}/{each['id']}" for each in (upstream, downstream))
        return self.delete("/".join(("lineage", *ends)))

    def upstream_edges(
        self, type: str, id: str, *, fqn: str | None = None
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """The upstream nodes of an entity with the details of the edges.

        With the entity's own `fqn`, edges to itself are included.
        """
        response = self.get(f"lineage/{type}/{id}", upstreamDepth=1, downstreamDepth=0) or {}
        nodes = {node["id"]: node for node in response.get("nodes") or ()}
        if fqn is not None:
            nodes[id] = {"id": id, "type": type, "fullyQualifiedName": fqn}
        for edge in response.get("upstreamEdges") or ():
            upstream, downstream = (
                end["id"] if isinstance(end, dict) else str(end)
                for end in (edge["fromEntity"], edge["toEntity"])
            )
            if downstream == id and upstream in nodes:
                yield nodes[upstream], edge.get("lineageDetails") or {}

    def _entity(self, response: Any) -> dict[str, Any]:
        if not isinstance(response, dict) or "id" not in response:
            raise NotOpenMetadata(self.platform, "an entity has no identifier")
        return response

    def delete(self, path: str, **query: Any) -> bool:
        """Delete an object; return whether it existed."""
        return self._call("DELETE", path, query=query) is not None

    def patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> Any:
        """Patch an entity; raises Outdated if it was changed since it was read."""
        try:
            response = self._call("PATCH", path, operations, type=_PATCH)
        except CatalogError as problem:
            is_mismatch = problem.status == _INTERNAL and _is_patch_mismatch(str(problem))
            # The message is similar if a referenced entity is missing.
            is_deleted = problem.status == _NOT_FOUND and f"{path.rpartition('/')[2]} not" in str(
                problem
            )
            if is_mismatch or is_deleted or problem.status == _OUTDATED:
                raise Outdated(
                    str(problem), platform=self.platform, status=problem.status, retryable=True
                ) from problem
            raise
        return response

    def pages(
        self,
        path: str,
        *,
        fields: str = "",
        include: str = "all",
        limit: int = _PAGE_SIZE,
        whole: bool = False,
        **query: Any,
    ) -> Iterator[dict[str, Any]]:
        """Yield all entries of a list; with `whole`, raises IncompleteList if some are missing."""
        parameters = {"limit": limit, "include": include, **query}
        if fields:
            parameters["fields"] = fields
        after: str | None = None
        received = 0
        while True:
            page = self.get(path, **parameters, **({} if after is None else {"after": after}))
            if page is None:
                raise CatalogTooOld(self.platform, f"the route /{path}", needed=_required_version())
            data, paging = page.get("data"), page.get("paging") or {}
            if not isinstance(data, list) or not isinstance(paging, dict):
                raise NotOpenMetadata(self.platform, f"the response to /{path} is not a list")
            for raw in data:
                if "fullyQualifiedName" not in self._entity(raw):
                    raise NotOpenMetadata(self.platform, f"an entity in /{path} has no name")
                yield raw
            received += len(data)
            following = paging.get("after")
            if not following or following == after:
                break
            after = following
        total = paging.get("total")
        if whole and isinstance(total, int) and received < total:
            raise IncompleteList(self.platform, path, received=received, total=total)

    def total(self, path: str, **query: Any) -> int:
        """The number of entries in a list."""
        page = self.get(path, limit=0, include="all", **query)
        if page is None:
            return 0
        total = (page.get("paging") or {}).get("total")
        if not isinstance(total, int):
            raise NotOpenMetadata(self.platform, f"the response to /{path} has no total")
        return total

    def bulk(self, path: str, bodies: Sequence[Mapping[str, Any]]) -> list[RequestRefused]:
        """Create or change many entities; return the rejected ones."""
        response = self._call("PUT", f"{path}/bulk", bodies)
        if "status" not in response:
            raise NotOpenMetadata(self.platform, "the response to a bulk request has no status")
        refusals = [
            RequestRefused(
                row.get("request"), row.get("message") or "", row.get("status") or _ERROR
            )
            for row in response.get("failedRequest") or ()
        ]
        passed = response.get("numberOfRowsPassed", len(bodies) - len(refusals))
        failed = max(response.get("numberOfRowsFailed") or 0, len(bodies) - passed)
        is_unclear = len(refusals) < failed
        if is_unclear or (response["status"] not in _SUCCESS and not refusals):
            raise CatalogError(
                f"{self.platform} rejected some of {len(bodies)} entities in /{path}, but does not "
                f"say which: {response['status']} {response.get('abortReason') or ''}".rstrip(),
                platform=self.platform,
                status=_ERROR,
            )
        return refusals

    def version(self) -> tuple[int, ...]:
        """The server's version; raises an error if it is too old."""
        response = self.get("system/version") or {}
        text = str(response.get("version", ""))
        parts = text.partition("-")[0].split(".")
        version = tuple(int(part) for part in parts if part.isdecimal())
        if not version:
            raise NotOpenMetadata(self.platform, "it does not report its version")
        if version < OLDEST_VERSION:
            raise CatalogTooOld(
                self.platform, f"what came after {text}", needed=_required_version()
            )
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
        headers = {**self._authorization, **({"Content-Type": type} if content else {})}
        parameters = {key: _query_text(value) for key, value in (query or {}).items()}
        question = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
        url = f"{self._settings.address}{_BASE}{path}{question}"

        def attempt() -> Any:
            response = self._http.send(method, url, headers=lambda: headers, body=content)
            if response.status == _NOT_FOUND and method in ("GET", "DELETE"):
                return None
            if response.status >= _ERROR:
                raise _ErrorResponse(
                    response.status, _message(response.body), response.headers.get("retry-after")
                )
            return self._decode_object(method, response)

        return self.caller.call(f"{method} /{path}", attempt)

    def _decode_object(self, method: str, response: HttpResponse) -> dict[str, Any]:
        """Decode a response; only responses to edges may be empty."""
        if response.status >= _REDIRECTED:
            address = response.headers.get("location", "elsewhere")
            raise NotOpenMetadata(self.platform, f"it redirects to {shorten(address)}")
        if not response.body and method != "GET":
            return {}
        try:
            content = msgspec.json.decode(response.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise NotOpenMetadata(self.platform, "the response is not JSON") from None
        if not isinstance(content, dict):
            raise NotOpenMetadata(self.platform, "the response is not an object")
        return content

    def _tls_context(self) -> ssl.SSLContext:
        path = self._settings.ca_file
        if path is None:
            return ssl.create_default_context()
        try:
            return ssl.create_default_context(cafile=str(path))
        except OSError as problem:
            raise MisuseError(
                f"Cannot read certificates from '{path}' (platform_config.{KIND}.ca_file): "
                f"{problem.strerror or problem}."
            ) from None

    @cached_property
    def _http(self) -> HttpClient:
        settings = self._settings
        return HttpClient(
            HttpxTransport(
                limits=TimeLimits(min(_CONNECT_TIMEOUT, settings.timeout), settings.timeout),
                connections=settings.parallel + 1,
                tls=self._tls_context(),
            )
        )

    @cached_property
    def _authorization(self) -> Mapping[str, str]:
        secret = self._settings.secret()
        return {} if secret is None else {"Authorization": f"Bearer {secret.reveal()}"}


def _is_patch_mismatch(text: str) -> bool:
    return any(words in text for words in _PATCH_MISMATCH)


def fault_of(problem: Exception) -> Fault | None:
    """Classify an exception of a call; None if no call failed."""
    match problem:
        case _ErrorResponse(status=status, text=text, retry_after=retry_after):
            fault = response_fault(status, text, retry_after)
            # A mismatch is not temporary.
            is_mismatch = status == _INTERNAL and _is_patch_mismatch(text)
            return fault._replace(is_temporary=False, may_be_done=False) if is_mismatch else fault
        case NotConnected() | InvalidRequest():
            return unreachable_fault(problem.reason)
        case ResponseTooLarge():
            return Fault(shorten(problem.reason))
        case HttpError():
            return no_response_fault(problem.reason)
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


def _query_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _required_version() -> str:
    return f"OpenMetadata {'.'.join(map(str, OLDEST_VERSION))} or later"
