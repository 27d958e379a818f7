"""Calls the routes of a DataHub server, and translates its errors.

DataHub's package is large and only imported when a server is used.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from threading import Lock
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from lumos.catalogs.http import (
    Caller,
    CatalogServer,
    Fault,
    no_response_fault,
    response_fault,
    unreachable_fault,
)
from lumos.config.platforms import DatahubPlatform
from lumos.errors import CatalogError, CatalogTooOld, CatalogUnavailable

T = TypeVar("T")

KIND: Final = "datahub"
# The maximum number of entities per request.
BATCH_SIZE: Final = 200
_PAGE_SIZE: Final = 1_000
_ROUTE_MISSING: Final = (404, 405)
_REQUIRED_VERSION: Final = "DataHub 1.0 or later"
_SCROLL_EXPIRED: Final = 400
_TYPES_ROUTE: Final = "/openapi/v1/registry/models/entity/specifications"
_TYPES_PAGE_SIZE: Final = 100
_WRITE_ROUTE: Final = "/aspects"
# JSON for an empty response.
_EMPTY_RESPONSE: Final = b"null"
_REDIRECTS: Final = (301, 302, 303)
_CONNECT_TIMEOUT: Final = 10.0
_JSON: Final = "application/json"
_PATCH: Final = "application/json-patch+json"


class MetadataProposal(NamedTuple):
    """A change of one aspect: a new body or a patch."""

    type: str
    urn: str
    aspect: str
    body: bytes
    patch: bool = False


@cache
def classes() -> ModuleType:
    _configure_package()
    import datahub.metadata.schema_classes as found

    return found


@cache
def _encoded_proposal_class() -> type[Any]:
    """A class for proposals whose aspects are already JSON, which is faster to serialize."""
    base: Any = classes().MetadataChangeProposalClass

    class EncodedProposal(base):  # type: ignore[misc]
        def to_obj(self, tuples: bool = False) -> dict[str, Any]:
            if tuples:
                plain: dict[str, Any] = super().to_obj(tuples)
                return plain
            return {
                "entityType": self.entityType,
                "entityUrn": self.entityUrn,
                "changeType": self.changeType,
                "aspectName": self.aspectName,
                "aspect": {"value": self.aspect.value, "contentType": self.aspect.contentType},
                "systemMetadata": {
                    name: getattr(self.systemMetadata, name)
                    for name in ("lastObserved", "runId", "lastRunId", "properties")
                },
            }

    return EncodedProposal


def to_proposals(changes: Iterable[MetadataProposal]) -> list[Any]:
    """Convert changes to proposals of DataHub's package."""
    ready, model = _encoded_proposal_class(), classes()
    metadata = model.SystemMetadataClass()
    return [
        ready(
            entityType=change.type,
            entityUrn=change.urn,
            aspectName=change.aspect,
            changeType="PATCH" if change.patch else "UPSERT",
            aspect=model.GenericAspectClass(
                value=change.body, contentType=_PATCH if change.patch else _JSON
            ),
            systemMetadata=metadata,
        )
        for change in changes
    ]


def open_graph(settings: DatahubPlatform) -> Any:
    """Open DataHub's graph client, without a call to the server."""
    _configure_package()
    from datahub.ingestion.graph.client import DataHubGraph
    from datahub.ingestion.graph.config import DatahubClientConfig

    graph = DataHubGraph(
        DatahubClientConfig(
            server=settings.address,
            timeout_sec=settings.timeout,
            # Lumos retries itself: it knows what was already written, and when to stop.
            retry_max_times=0,
            pool_maxsize=settings.parallel + 2,
            ca_certificate_path=None if settings.ca_file is None else str(settings.ca_file),
            # The OpenAPI mode reorders patches, and deletes the entity instead of an aspect.
            openapi_ingestion=False,
        )
    )
    _authenticate(graph.session, settings)
    return graph


def _configure_package() -> None:
    # The package reads this variable at its first import.
    os.environ.setdefault("DATAHUB_TELEMETRY_ENABLED", "false")
    log = logging.getLogger("datahub")
    if log.level < logging.WARNING:
        # Lower levels log complete request bodies.
        log.setLevel(logging.WARNING)


def _authenticate(session: Any, settings: DatahubPlatform) -> None:
    """Set the configured token and the timeouts of a session."""
    from requests import PreparedRequest
    from requests.auth import AuthBase

    secret = settings.secret()

    class Bearer(AuthBase):
        # Without an auth object, requests would use credentials of ~/.netrc.
        def __call__(self, request: PreparedRequest) -> PreparedRequest:
            request.headers.pop("Authorization", None)
            if secret is not None:
                request.headers["Authorization"] = f"Bearer {secret.reveal()}"
            return request

    session.auth = Bearer()
    timeout = (min(_CONNECT_TIMEOUT, settings.timeout), settings.timeout)
    session.request = partial(type(session).request, session, timeout=timeout)


class EntityAspects(NamedTuple):
    """An entity in a list, with the requested aspects."""

    urn: str
    aspects: Mapping[str, Any]


class _Page(msgspec.Struct):
    entities: list[dict[str, Any]] = []
    scrollId: str | None = None
    totalCount: int | None = None


class _Type(msgspec.Struct):
    name: str


class _Types(msgspec.Struct):
    elements: list[_Type] = []
    total: int = 0


class Gms:
    """DataHub's metadata service, through its own emitter and the session of its graph client."""

    def __init__(self, settings: DatahubPlatform, caller: Caller | None = None) -> None:
        self.settings = settings
        self._opened: Any = None
        self._opening = Lock()
        self.name = CatalogServer.of(KIND, settings).platform
        self.caller = caller or Caller.of(KIND, settings, self.fault_of)

    @property
    def _graph(self) -> Any:
        with self._opening:
            if self._opened is None:
                self._opened = open_graph(self.settings)
                self._opened.session.hooks["response"].append(self._check_write_response)
            return self._opened

    def version(self) -> str:
        config = self._request("its configuration", "get", "/config", dict[str, Any])
        if config.get("noCode") != "true":
            raise self._not_datahub()
        versions = config.get("versions") or {}
        server = versions.get("acryldata/datahub") or versions.get("linkedin/datahub") or {}
        return str(server.get("version", "(unknown version)"))

    def types(self) -> frozenset[str] | None:
        """The entity types that the server knows, or None if it does not list them."""
        found: set[str] = set()
        total = 1
        while len(found) < total:
            query = {"start": str(len(found)), "count": str(_TYPES_PAGE_SIZE)}
            try:
                page = self._request(
                    "the types of its entities", "get", _TYPES_ROUTE, _Types, params=query
                )
            except CatalogTooOld:
                return None
            if not page.elements:
                break
            found.update(each.name for each in page.elements)
            total = page.total
        return frozenset(found)

    def count(self, type: str) -> int | None:
        """The approximate number of entities of a type, or None if the server does not count."""
        return self._page([type], None, count=1, cursor=None).totalCount

    def list_entities(
        self, types: Sequence[str], aspects: Sequence[str] | None
    ) -> Iterator[EntityAspects]:
        """All entities of some types, including soft-deleted ones, beyond the search window.

        With `aspects`, only entities that have at least one of them.
        """
        cursor, received, total = None, 0, None
        while True:
            page = self._page(types, aspects, count=_PAGE_SIZE, cursor=cursor)
            for entity in page.entities:
                yield EntityAspects(self._urn_of(entity), _aspect_bodies(entity))
            received += len(page.entities)
            total, cursor = page.totalCount, page.scrollId
            if cursor is None or not page.entities:
                break
        if total is not None and received < total:
            raise CatalogError(
                f"{self.name} has {total} entities ({', '.join(types)}), but listed only "
                f"{received}. Run the command again.",
                platform=self.name,
                retryable=True,
            )

    def get_entities(
        self, type: str, urns: Sequence[str], aspects: Sequence[str] = ()
    ) -> dict[str, dict[str, Any]]:
        """All or the given aspects of the entities that exist, by URN."""
        wanted: dict[str, Any] = {aspect: {} for aspect in aspects}
        body = msgspec.json.encode([{"urn": urn, **wanted} for urn in urns])
        path = f"/openapi/v3/entity/{type}/batchGet"
        what = f"{len(urns)} entities ({type})"
        answer = self._request(what, "post", path, list[dict[str, Any]], data=body)
        found = {self._urn_of(entity): _aspect_bodies(entity) for entity in answer}
        key = key_aspect(type)
        # Some servers return missing entities with only their key.
        return {
            urn: {name: body for name, body in bodies.items() if name != key}
            for urn, bodies in found.items()
            if aspects or bodies.keys() != {key}
        }

    def send(self, proposals: Sequence[MetadataProposal]) -> None:
        """Send changes in one call, in order."""
        from datahub.emitter.emit_mode import EmitMode

        first, *others = proposals
        what = f"{len(proposals)} changes" if others else f"{first.urn} {first.aspect}"
        encoded = to_proposals(proposals)
        self.caller.call(
            what, lambda: self._graph.emit_mcps(encoded, emit_mode=EmitMode.SYNC_PRIMARY)
        )

    def remove_aspect(self, type: str, urn: str, aspect: str) -> None:
        path = f"/openapi/v3/entity/{type}/{quote(urn, safe='')}/{aspect}"
        self._request(f"{urn} {aspect}", "delete", path, Any)

    def erase(self, urn: str) -> None:
        self.caller.call(urn, lambda: self._graph.hard_delete_entity(urn))

    def close(self) -> None:
        with self._opening:
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    def _page(
        self, types: Sequence[str], aspects: Sequence[str] | None, *, count: int, cursor: str | None
    ) -> _Page:
        query = {"count": str(count), "includeSoftDelete": "true", "pitKeepAlive": "10m"}
        if cursor is not None:
            query["scrollId"] = cursor
        body: dict[str, Any] = {"entities": list(types)}
        if aspects is not None:
            body["aspects"] = list(aspects)
        return self._request(
            f"a page of its entities ({', '.join(types)})",
            "post",
            "/openapi/v3/entity/scroll",
            _Page,
            params=query,
            data=msgspec.json.encode(body),
        )

    def _request(self, what: str, method: str, path: str, type: type[T], **arguments: Any) -> T:
        def attempt() -> T:
            session = self._graph.session
            response = getattr(session, method)(f"{self.settings.address}{path}", **arguments)
            response.raise_for_status()
            return self._decode(response.content or _EMPTY_RESPONSE, type)

        try:
            return self.caller.call(what, attempt)
        except CatalogError as problem:
            if problem.status in _ROUTE_MISSING:
                missing = f"the route {path.partition('?')[0]}"
                raise CatalogTooOld(
                    self.name, missing, needed=_REQUIRED_VERSION, status=problem.status
                ) from problem
            raise

    def fault_of(self, exception: Exception) -> Fault | None:
        """Classify an exception of DataHub's package or of requests; None if no call failed."""
        from datahub.configuration.common import OperationalError
        from requests import exceptions

        message = ""
        if isinstance(exception, OperationalError):
            message = str((exception.info or {}).get("message") or exception.message)
            cause = exception.__cause__
            if not isinstance(cause, Exception):
                return None
            exception = cause
        if isinstance(exception, exceptions.HTTPError) and exception.response is not None:
            response = exception.response
            text = self._without_secret(
                message or _message(response.content) or response.reason or ""
            )
            return response_fault(response.status_code, text, response.headers.get("Retry-After"))
        if isinstance(exception, exceptions.SSLError | exceptions.ConnectTimeout):
            return unreachable_fault(self._without_secret(_reason(exception)))
        if isinstance(exception, exceptions.ConnectionError) and _is_unreachable(exception):
            return unreachable_fault(self._without_secret(_reason(exception)))
        if isinstance(exception, exceptions.RequestException):
            return no_response_fault(self._without_secret(_reason(exception)))
        return None

    def _decode(self, text: bytes, type: type[T]) -> T:
        from requests.exceptions import ConnectionError as Lost

        try:
            return msgspec.json.decode(text, type=type)
        except msgspec.ValidationError as problem:
            raise self._not_datahub() from problem
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            if text[:1] in (b"{", b"["):
                # Retried like a lost connection.
                raise Lost("the response is incomplete") from problem
            raise self._not_datahub() from problem

    def _check_write_response(self, response: Any, *_: Any, **__: Any) -> None:
        """Raise an error if another server answered a write; the emitter only checks the status."""
        path = response.request.path_url.partition("?")[0]
        if response.request.method != "POST" or not path.endswith(_WRITE_ROUTE):
            return
        if response.status_code in _REDIRECTS:
            # A redirect drops the body of the request.
            raise self._not_datahub()
        if response.ok and not response.is_redirect:
            self._decode(response.content, dict[str, Any])

    def _urn_of(self, entity: Mapping[str, Any]) -> str:
        if not isinstance(urn := entity.get("urn"), str):
            raise self._not_datahub()
        return urn

    def _not_datahub(self) -> CatalogUnavailable:
        return CatalogUnavailable(
            f"{self.name} is not DataHub's metadata service. Its address usually ends in :8080, "
            "or in /api/gms behind the frontend.",
            platform=self.name,
        )

    def _without_secret(self, text: str) -> str:
        secret = self.settings.secret()
        return text if secret is None else text.replace(secret.reveal(), "***")


def key_aspect(type: str) -> str:
    """The aspect of an entity type that is derived from the URN."""
    key = classes().KEY_ASPECTS.get(type)
    return f"{type}Key" if key is None else str(key.ASPECT_NAME)


def retry_once_if_interrupted(read: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Yield everything that `read` yields; start over once if it is interrupted."""
    try:
        found = list(read())
    except CatalogError as problem:
        if not problem.retryable and problem.status != _SCROLL_EXPIRED:
            raise
        found = list(read())
    yield from found


def unexpected_response(name: str, position: str, problem: str) -> CatalogError:
    """The error for an aspect that does not match DataHub's model."""
    return CatalogError(
        f"Unexpected value in {name} at {position}: {problem}. Check the version of the "
        f"server: Lumos supports {_REQUIRED_VERSION}.",
        platform=name,
    )


def _aspect_bodies(entity: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: aspect["value"]
        for name, aspect in entity.items()
        if name != "urn" and isinstance(aspect, dict) and "value" in aspect
    }


def _message(content: bytes) -> str:
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    return str(body.get("message") or "") if isinstance(body, dict) else ""


def _reason(problem: Exception) -> str:
    """The innermost message of an exception."""
    inner: Any = problem.args[0] if problem.args else problem
    return str(getattr(inner, "reason", None) or inner)


def _is_unreachable(problem: Exception) -> bool:
    """Whether no connection was established."""
    from urllib3.exceptions import NameResolutionError, NewConnectionError

    inner: Any = problem.args[0] if problem.args else None
    reason = getattr(inner, "reason", inner)
    return isinstance(reason, NewConnectionError | NameResolutionError)
