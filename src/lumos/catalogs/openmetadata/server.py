"""Calls an OpenMetadata server: JSON over HTTP, with pages, bulk writes and patches.

OpenMetadata rejects custom properties that are not declared for an entity type. Each is declared
when it is first needed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

from lumos.catalogs import rest
from lumos.catalogs.http import Caller, Fault
from lumos.catalogs.rest import ErrorResponse, RestClient, UnexpectedServer, version_numbers
from lumos.config.platforms import OpenmetadataPlatform
from lumos.errors import CatalogError, CatalogTooOld

T = TypeVar("T")
R = TypeVar("R")

KIND: Final = "openmetadata"
OLDEST_VERSION: Final = (1, 9)
_PAGE_SIZE: Final = 1000
_NOT_FOUND: Final = 404
_INTERNAL: Final = 500
_OUTDATED: Final = 412
_ERROR: Final = 400
_SUCCESS: Final = ("success", "partialSuccess")
# The entity is not empty, or Lumos is not allowed to delete it.
_NOT_DELETABLE: Final = (400, 403)
ATTEMPTS: Final = 4
_PATCH: Final = "application/json-patch+json"
# Messages for a patch that does not match the entity; the status alone does not identify it.
_PATCH_MISMATCH: Final = ("JSON Patch", "Non-existing name/value pair", "array item index")
# The status was 500 before release 2.0.
_MISMATCH_STATUSES: Final = (400, _INTERNAL)


class Outdated(CatalogError):
    """The entity was changed since it was read."""


def retry_if_outdated(attempt: Callable[[], T]) -> T:
    """Call `attempt`, and again if an entity was changed since it was read, four times at most."""
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except Outdated:
            continue
    return attempt()


class IncompleteList(CatalogError):
    """A list with fewer entries than the total that the server reports."""

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


class Server:
    """One server; the first call opens connections, which later calls reuse."""

    def __init__(self, settings: OpenmetadataPlatform, caller: Caller | None = None) -> None:
        self.caller = caller or Caller.of(KIND, settings, fault_of)
        self._client = RestClient(KIND, settings, path="/api/v1/", caller=self.caller)
        self.platform = self._client.platform

    def close(self) -> None:
        """Close connections; the next call opens new ones."""
        self._client.close()

    def each(self, items: Sequence[T], work: Callable[[T], R]) -> Iterator[R]:
        """Run `work` for items in parallel, and yield the results as they are finished."""
        return map(work, items) if len(items) == 1 else self.caller.each(items, work)

    def get(self, path: str, **query: Any) -> Any:
        return self._call("GET", path, query=query)

    def named(self, route: str, fqn: str, **query: Any) -> Any:
        entity = self.get(f"{route}/name/{quote(fqn, safe='')}", **query)
        return None if entity is None else self._entity(entity)

    def put(self, path: str, body: Any, **query: Any) -> Any:
        return self._entity(self._call("PUT", path, body, query=query))

    def put_edge(
        self, upstream: Mapping[str, Any], downstream: Mapping[str, Any], details: Mapping[str, Any]
    ) -> None:
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
            raise UnexpectedServer(self.platform, "an entity has no identifier")
        return response

    def delete(self, path: str, **query: Any) -> bool:
        """Delete an object; return whether it existed."""
        try:
            self._call("DELETE", path, query=query)
        except CatalogError as problem:
            if problem.status != _NOT_FOUND:
                raise
            return False
        return True

    def delete_if_possible(self, path: str) -> bool:
        """Delete an entity permanently; return False if it is not empty, or may not be deleted."""
        try:
            self.delete(path, hardDelete=True)
        except CatalogError as problem:
            if problem.status not in _NOT_DELETABLE:
                raise
            return False
        return True

    def patch(self, path: str, operations: Sequence[Mapping[str, Any]]) -> Any:
        """Patch an entity; raises Outdated if it was changed since it was read."""
        try:
            response = self._call("PATCH", path, operations, content_type=_PATCH)
        except CatalogError as problem:
            is_mismatch = _is_patch_mismatch(problem.status, str(problem))
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
                raise UnexpectedServer(self.platform, f"the response to /{path} is not a list")
            for raw in data:
                if "fullyQualifiedName" not in self._entity(raw):
                    raise UnexpectedServer(self.platform, f"an entity in /{path} has no name")
                yield raw
            received += len(data)
            next_cursor = paging.get("after")
            if not next_cursor or next_cursor == after:
                break
            after = next_cursor
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
            raise UnexpectedServer(self.platform, f"the response to /{path} has no total")
        return total

    def bulk(self, path: str, bodies: Sequence[Mapping[str, Any]]) -> list[RequestRefused]:
        """Create or change many entities; return the rejected ones."""
        response = self._call("PUT", f"{path}/bulk", bodies)
        if "status" not in response:
            raise UnexpectedServer(self.platform, "the response to a bulk request has no status")
        refusals = [
            RequestRefused(
                row.get("request"), row.get("message") or "", row.get("status") or _ERROR
            )
            for row in response.get("failedRequest") or ()
        ]
        passed = response.get("numberOfRowsPassed", len(bodies) - len(refusals))
        failed = max(response.get("numberOfRowsFailed") or 0, len(bodies) - passed)
        has_unnamed_failures = len(refusals) < failed
        if has_unnamed_failures or (response["status"] not in _SUCCESS and not refusals):
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
        text = response.get("version", "")
        version = version_numbers(text)
        if not version:
            raise UnexpectedServer(self.platform, "it does not report its version")
        if version < OLDEST_VERSION:
            raise CatalogTooOld(
                self.platform, f"features newer than {text}", needed=_required_version()
            )
        return version

    def _call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Any:
        """The object in the response, or None if a GET finds nothing."""
        response = self._client.call(method, path, body, query=query, content_type=content_type)
        if response is None and method != "GET":
            # Responses to edges are empty.
            return {}
        if response is not None and not isinstance(response, dict):
            raise UnexpectedServer(self.platform, "its response is not an object")
        return response


def _is_patch_mismatch(status: int | None, text: str) -> bool:
    return status in _MISMATCH_STATUSES and any(words in text for words in _PATCH_MISMATCH)


def fault_of(problem: Exception) -> Fault | None:
    """Classify an exception of a call; None if no call failed."""
    fault = rest.fault_of(problem)
    is_mismatch = isinstance(problem, ErrorResponse) and _is_patch_mismatch(
        problem.status, problem.text
    )
    # A mismatch is not temporary.
    return fault._replace(is_temporary=False) if fault and is_mismatch else fault


def _required_version() -> str:
    return f"OpenMetadata {'.'.join(map(str, OLDEST_VERSION))} or later"


_DESCRIPTION: Final = "Written by Lumos: metadata that OpenMetadata has no field for."


class CustomProperties:
    """The custom properties that one server declares for its entity types."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._declared: dict[str, set[str]] = {}
        self._definitions: dict[str, dict[str, Any]] = {}
        self._ids: dict[str, str] = {}
        self._lock = Lock()

    def declare(self, type: str, names: Iterable[str]) -> None:
        """Declare missing properties of Lumos for an entity type."""
        with self._lock:
            missing = set(names)
            for name in sorted(missing - self._known(type) if missing else missing):
                self._server.put(
                    f"metadata/types/{self._ids[type]}",
                    {"name": name, "description": _DESCRIPTION, "propertyType": self._string},
                )
                self._declared[type].add(name)

    def declared(self, type: str) -> frozenset[str]:
        with self._lock:
            return frozenset(self._known(type))

    def definitions(self, type: str, names: Iterable[str]) -> dict[str, Any]:
        """The definitions of these properties, without identifiers of this server."""
        with self._lock:
            declared = self._known(type) & set(names)
            known = self._definitions[type]
            return {name: known[name] for name in sorted(declared & known.keys())}

    def define(self, type: str, definitions: Mapping[str, Any]) -> None:
        """Declare missing properties with the definitions of another server."""
        if not definitions:
            return
        with self._lock:
            for name in sorted(definitions.keys() - self._known(type)):
                definition = definitions[name]
                property_type = {"id": self._type(definition["type"])["id"], "type": "type"}
                body = {
                    "name": name,
                    "description": definition.get("description") or "",
                    "propertyType": property_type,
                }
                if "config" in definition:
                    body["customPropertyConfig"] = definition["config"]
                self._server.put(f"metadata/types/{self._ids[type]}", body)
                self._declared[type].add(name)
                self._definitions[type][name] = definition

    def incompatible(
        self, type: str, extension: Mapping[str, Any], declared: Any
    ) -> frozenset[str]:
        """The properties whose values this server rejects, because it defines them differently."""
        source = declared if isinstance(declared, dict) else {}
        target = self.definitions(type, extension)
        return frozenset(
            name
            for name, value in extension.items()
            if name in target
            and name in source
            and not _is_compatible(value, source[name], target[name])
        )

    def _known(self, type: str) -> set[str]:
        """The declared properties of an entity type, which are read once."""
        if type not in self._declared:
            entity_type = self._type(type, fields="customProperties")
            self._ids[type] = entity_type["id"]
            known = entity_type.get("customProperties") or ()
            self._definitions[type] = {each["name"]: _portable_definition(each) for each in known}
            self._declared[type] = set(self._definitions[type])
        return self._declared[type]

    @cached_property
    def _string(self) -> dict[str, str]:
        return {"id": self._type("string")["id"], "type": "type"}

    def _type(self, name: str, **query: Any) -> Any:
        response = self._server.get(f"metadata/types/name/{name}", **query)
        if response is None:
            raise CatalogTooOld(
                self._server.platform, f"the type '{name}'", needed="custom properties on it"
            )
        return response


def _portable_definition(declared: Mapping[str, Any]) -> dict[str, Any]:
    definition = {"type": declared["propertyType"].get("name", "string")}
    for key, field in (("description", "description"), ("config", "customPropertyConfig")):
        if declared.get(field):
            definition[key] = declared[field]
    return definition


def _is_compatible(value: Any, source: Mapping[str, Any], target: Mapping[str, Any]) -> bool:
    if source.get("type") != target.get("type"):
        return False
    match target.get("config"):
        case config if config == source.get("config"):
            return True
        case {"config": {"values": list(allowed)}} if isinstance(value, list):
            return all(each in allowed for each in value)
        case _:
            return False
