"""A DataHub server: its routes, one call each, and what its failures mean.

DataHub's own package is large and imported only where a server is used.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from threading import Lock
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from lumos.catalogs.http import (
    Caller,
    CatalogServer,
    Fault,
    lost_fault,
    response_fault,
    unreachable_fault,
)
from lumos.config.platforms import DatahubPlatform
from lumos.errors import CatalogError, CatalogTooOld, CatalogUnavailable, MissingDependency

T = TypeVar("T")

KIND: Final = "datahub"
# As many entities as one question may name.
ASKED_AT_ONCE: Final = 200
_PAGE: Final = 1_000
_NO_ROUTE: Final = (404, 405)
_NEEDED: Final = "DataHub 1.0 or later"
_EXPIRED: Final = 400
_TYPES: Final = "/openapi/v1/registry/models/entity/specifications"
_TYPES_AT_ONCE: Final = 100
_WRITES: Final = "/aspects"
# Stands for an empty response.
_NOTHING: Final = b"null"
_ELSEWHERE: Final = (301, 302, 303)
_CONNECTING: Final = 10.0
_JSON: Final = "application/json"
_PATCH: Final = "application/json-patch+json"


class MetadataProposal(NamedTuple):
    """A change of one aspect: what it is from now on, or a patch of what it is."""

    type: str
    urn: str
    aspect: str
    body: bytes
    patch: bool = False


def check_installed() -> None:
    """Fails where the package is not there, and imports nothing."""
    if find_spec("datahub") is None:
        raise MissingDependency("The platform 'datahub'", "acryl-datahub", "datahub")


@cache
def classes() -> ModuleType:
    """The classes of DataHub's model."""
    _prepare()
    import datahub.metadata.schema_classes as found

    return found


@cache
def _ready() -> type[Any]:
    """A proposal whose aspect is JSON already, so that little is left to turn into it."""
    base: Any = classes().MetadataChangeProposalClass

    class Ready(base):  # type: ignore[misc]
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
                "systemMetadata": _metadata_json(self.systemMetadata),
            }

    return Ready


def proposals_of(changes: Iterable[MetadataProposal]) -> list[Any]:
    """Changes as the package's own proposals."""
    ready, model = _ready(), classes()
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


def graph_of(settings: DatahubPlatform) -> Any:
    """DataHub's graph client for a server; nothing is asked of the server yet."""
    _prepare()
    from datahub.ingestion.graph.client import DataHubGraph
    from datahub.ingestion.graph.config import DatahubClientConfig

    graph = DataHubGraph(
        DatahubClientConfig(
            server=settings.address,
            timeout_sec=settings.timeout,
            # Lumos itself tries again: it knows what is already there, and when to stop.
            retry_max_times=0,
            pool_maxsize=settings.parallel + 2,
            ca_certificate_path=None if settings.ca_file is None else str(settings.ca_file),
            # The other form changes the order of patches, and takes deletions for too much.
            openapi_ingestion=False,
        )
    )
    _authenticate(graph.session, settings)
    return graph


def _metadata_json(metadata: Any) -> dict[str, Any]:
    return {
        "lastObserved": metadata.lastObserved,
        "runId": metadata.runId,
        "lastRunId": metadata.lastRunId,
        "properties": metadata.properties,
    }


def _prepare() -> None:
    check_installed()
    # Honoured only if it is set before the first import.
    os.environ.setdefault("DATAHUB_TELEMETRY_ENABLED", "false")
    log = logging.getLogger("datahub")
    if log.level < logging.WARNING:
        # At lower levels it writes whole bodies.
        log.setLevel(logging.WARNING)


def _authenticate(session: Any, settings: DatahubPlatform) -> None:
    """Lets a session carry the token that was asked for, and no other, and not wait for ever."""
    from requests import PreparedRequest
    from requests.auth import AuthBase

    secret = settings.secret()

    class Bearer(AuthBase):
        # Without an object here, requests would take whatever ~/.netrc has for the host.
        def __call__(self, request: PreparedRequest) -> PreparedRequest:
            request.headers.pop("Authorization", None)
            if secret is not None:
                request.headers["Authorization"] = f"Bearer {secret.reveal()}"
            return request

    session.auth = Bearer()
    timeout = (min(_CONNECTING, settings.timeout), settings.timeout)
    session.request = partial(type(session).request, session, timeout=timeout)


class ServerFacts(NamedTuple):
    """The version of a server."""

    version: str


class EntityAspects(NamedTuple):
    """An entity that a server lists, with the aspects that were asked for."""

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
                self._opened = graph_of(self.settings)
                self._opened.session.hooks["response"].append(self._check_written)
            return self._opened

    def config(self) -> ServerFacts:
        """Asks the server who it is."""
        config = self._request("its configuration", "get", "/config", dict[str, Any])
        if config.get("noCode") != "true":
            raise self._not_datahub()
        versions = config.get("versions") or {}
        server = versions.get("acryldata/datahub") or versions.get("linkedin/datahub") or {}
        return ServerFacts(version=str(server.get("version", "of an unknown version")))

    def types(self) -> frozenset[str] | None:
        """The types of entities that the server knows, if it lists them."""
        found: set[str] = set()
        total = 1
        while len(found) < total:
            query = {"start": str(len(found)), "count": str(_TYPES_AT_ONCE)}
            try:
                page = self._request(
                    "the types of its entities", "get", _TYPES, _Types, params=query
                )
            except CatalogTooOld:
                return None
            if not page.elements:
                break
            found.update(each.name for each in page.elements)
            total = page.total
        return frozenset(found)

    def count(self, type: str) -> int | None:
        """About how many entities of a type there are, if the server counts them."""
        return self._page([type], None, count=1, cursor=None).totalCount

    def list_entities(
        self, types: Sequence[str], aspects: Sequence[str] | None
    ) -> Iterator[EntityAspects]:
        """Every entity of some types, hidden ones too, page by page and not by any window.

        With aspects, only entities that have one of them.
        """
        cursor, came, total = None, 0, None
        while True:
            page = self._page(types, aspects, count=_PAGE, cursor=cursor)
            for entity in page.entities:
                yield EntityAspects(self._urn_of(entity), _bodies(entity))
            came += len(page.entities)
            total, cursor = page.totalCount, page.scrollId
            if cursor is None or not page.entities:
                break
        if total is not None and came < total:
            raise CatalogError(
                f"{self.name} says that it has {total} entities ({', '.join(types)}) and listed "
                f"{came} of them.",
                platform=self.name,
                retryable=True,
            )

    def get_entities(
        self, type: str, urns: Sequence[str], aspects: Sequence[str] = ()
    ) -> dict[str, dict[str, Any]]:
        """The aspects of those entities that are there, all or those that are named."""
        wanted: dict[str, Any] = {aspect: {} for aspect in aspects}
        body = msgspec.json.encode([{"urn": urn, **wanted} for urn in urns])
        path = f"/openapi/v3/entity/{type}/batchGet"
        what = f"{len(urns)} entities ({type})"
        answer = self._request(what, "post", path, list[dict[str, Any]], data=body)
        found = {self._urn_of(entity): _bodies(entity) for entity in answer}
        key = key_aspect(type)
        # Some servers answer for what is not there, with its key.
        return {
            urn: {name: body for name, body in bodies.items() if name != key}
            for urn, bodies in found.items()
            if aspects or bodies.keys() != {key}
        }

    def send(self, proposals: Sequence[MetadataProposal]) -> None:
        """Makes changes by one call, in their order."""
        from datahub.emitter.emit_mode import EmitMode

        made = proposals_of(proposals)
        what = f"{len(made)} changes" if len(made) > 1 else _label(proposals[0])
        self.caller.call(what, lambda: self._graph.emit_mcps(made, emit_mode=EmitMode.SYNC_PRIMARY))

    def drop(self, type: str, urn: str, aspect: str) -> None:
        """Takes one aspect of an entity out."""
        path = f"/openapi/v3/entity/{type}/{quote(urn, safe='')}/{aspect}"
        self._request(f"{urn} {aspect}", "delete", path, Any)

    def erase(self, urn: str) -> None:
        """Takes an entity out with all that is known of it."""
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
            return self._decode(response.content or _NOTHING, type)

        try:
            return self.caller.call(what, attempt)
        except CatalogError as problem:
            if problem.status in _NO_ROUTE:
                lacking = f"the route {path.partition('?')[0]}"
                raise CatalogTooOld(
                    self.name, lacking, needed=_NEEDED, status=problem.status
                ) from problem
            raise

    def fault_of(self, problem: Exception) -> Fault | None:
        """What an exception of the package or of requests means."""
        from datahub.configuration.common import OperationalError
        from requests import exceptions

        message = ""
        if isinstance(problem, OperationalError):
            message = str((problem.info or {}).get("message") or problem.message)
            cause = problem.__cause__
            if not isinstance(cause, Exception):
                return None
            problem = cause
        if isinstance(problem, exceptions.HTTPError) and problem.response is not None:
            response = problem.response
            text = self._scrubbed(message or _message(response.content) or response.reason or "")
            return response_fault(response.status_code, text, response.headers.get("Retry-After"))
        if isinstance(problem, exceptions.SSLError | exceptions.ConnectTimeout):
            return unreachable_fault(self._scrubbed(_reason(problem)))
        if isinstance(problem, exceptions.ConnectionError) and _is_unreachable(problem):
            return unreachable_fault(self._scrubbed(_reason(problem)))
        if isinstance(problem, exceptions.RequestException):
            return lost_fault(self._scrubbed(_reason(problem)))
        return None

    def _decode(self, text: bytes, type: type[T]) -> T:
        from requests.exceptions import ConnectionError as Lost

        try:
            return msgspec.json.decode(text, type=type)
        except msgspec.ValidationError as problem:
            raise self._not_datahub() from problem
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            if text[:1] in (b"{", b"["):
                # As with any other answer that was lost.
                raise Lost("the answer broke off") from problem
            raise self._not_datahub() from problem

    def _check_written(self, response: Any, *_: Any, **__: Any) -> None:
        """Fails where something else answered a write; the emitter looks at failures only."""
        path = response.request.path_url.partition("?")[0]
        if response.request.method != "POST" or not path.endswith(_WRITES):
            return
        if response.status_code in _ELSEWHERE:
            # A proposal would not go along.
            raise self._not_datahub()
        if response.ok and not response.is_redirect:
            self._decode(response.content, dict[str, Any])

    def _urn_of(self, entity: Mapping[str, Any]) -> str:
        if not isinstance(urn := entity.get("urn"), str):
            raise self._not_datahub()
        return urn

    def _not_datahub(self) -> CatalogUnavailable:
        return CatalogUnavailable(
            f"{self.name} answers, but not as DataHub's metadata service does. Its address "
            "usually ends in :8080, or in /api/gms behind the frontend.",
            platform=self.name,
        )

    def _scrubbed(self, text: str) -> str:
        secret = self.settings.secret()
        return text if secret is None else text.replace(secret.reveal(), "***")


def key_aspect(type: str) -> str:
    """The aspect that every entity of a type has because of its name alone."""
    key = classes().KEY_ASPECTS.get(type)
    return f"{type}Key" if key is None else str(key.ASPECT_NAME)


def pages_of(urns: Iterable[T], size: int = ASKED_AT_ONCE) -> Iterator[list[T]]:
    """Things in their order, as many together as one question may name."""
    page: list[T] = []
    for urn in urns:
        page.append(urn)
        if len(page) == size:
            yield page
            page = []
    if page:
        yield page


def repeat_if_broken(read: Callable[[], Iterator[T]]) -> Iterator[T]:
    """The results of reading, which starts once more where it broke off."""
    try:
        found = list(read())
    except CatalogError as problem:
        if not problem.retryable and problem.status != _EXPIRED:
            raise
        found = list(read())
    yield from found


def _label(proposal: MetadataProposal) -> str:
    return f"{proposal.urn} {proposal.aspect}"


def _bodies(entity: Mapping[str, Any]) -> dict[str, Any]:
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
    """Whether no connection came about at all."""
    from urllib3.exceptions import NameResolutionError, NewConnectionError

    inner: Any = problem.args[0] if problem.args else None
    reason = getattr(inner, "reason", inner)
    return isinstance(reason, NewConnectionError | NameResolutionError)
