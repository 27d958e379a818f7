"""Calls the routes of a DataHub server.

Proposals have the form in which DataHub's own emitter sends them. DataHub's package is large and
only imported when a server is used.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from lumos.catalogs.http import Caller
from lumos.catalogs.rest import RestClient, UnexpectedServer
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
_TYPES_ROUTE: Final = "openapi/v1/registry/models/entity/specifications"
_TYPES_PAGE_SIZE: Final = 100
_NO_RUN: Final = "no-run-id-provided"
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
    import datahub.metadata.schema_classes as schema_classes

    return schema_classes


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
    """DataHub's metadata service."""

    def __init__(self, settings: DatahubPlatform, caller: Caller | None = None) -> None:
        # The package reads this variable at its first import.
        os.environ.setdefault("DATAHUB_TELEMETRY_ENABLED", "false")
        headers = {"X-RestLi-Protocol-Version": "2.0.0"}
        self._client = RestClient(KIND, settings, path="/", headers=headers, caller=caller)
        self.name, self.caller, self.close = (
            self._client.platform, self._client.caller, self._client.close
        )  # fmt: skip

    def version(self) -> str:
        config = self._request(
            "GET", "config", dict[str, Any], description="the server's configuration"
        )
        if config.get("noCode") != "true":
            raise self._not_datahub()
        versions = config.get("versions") or {}
        server = versions.get("acryldata/datahub") or versions.get("linkedin/datahub") or {}
        return str(server.get("version", "(unknown version)"))

    def types(self) -> frozenset[str] | None:
        """The entity types that the server knows, or None if it does not list them."""
        names: set[str] = set()
        total = 1
        while len(names) < total:
            query = {"start": str(len(names)), "count": str(_TYPES_PAGE_SIZE)}
            try:
                page = self._request(
                    "GET", _TYPES_ROUTE, _Types, query=query, description="the types of entities"
                )
            except CatalogTooOld:
                return None
            if not page.elements:
                break
            names.update(each.name for each in page.elements)
            total = page.total
        return frozenset(names)

    def count(self, type: str) -> int | None:
        """The approximate number of entities of a type, or None if the server does not count."""
        return self._page([type], None, count=1, cursor=None).totalCount

    def list_entities(
        self, types: Sequence[str], aspects: Sequence[str] | None
    ) -> Iterator[EntityAspects]:
        """All entities of these types, including soft-deleted ones.

        Uses the scroll API, so it is not limited to the first results of a search. With `aspects`,
        only entities that have at least one of them.
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
        """The aspects of the entities that exist, by URN: all, or those in `aspects`."""
        wanted: dict[str, Any] = {aspect: {} for aspect in aspects}
        body = [{"urn": urn, **wanted} for urn in urns]
        path = f"openapi/v3/entity/{type}/batchGet"
        description = f"{len(urns)} entities ({type})"
        answer = self._request("POST", path, list[dict[str, Any]], body, description=description)
        entities = {self._urn_of(entity): _aspect_bodies(entity) for entity in answer}
        key = key_aspect(type)
        # Some servers return missing entities with only their key.
        return {
            urn: {name: body for name, body in bodies.items() if name != key}
            for urn, bodies in entities.items()
            if aspects or bodies.keys() != {key}
        }

    def send(self, proposals: Sequence[MetadataProposal]) -> None:
        """Send changes in one call, in order."""
        from datahub._version import __package_name__, __version__

        first, *others = proposals
        description = f"{len(proposals)} changes" if others else f"{first.urn} {first.aspect}"
        metadata = {
            "lastObserved": int(time.time() * 1000), "runId": _NO_RUN, "lastRunId": _NO_RUN,
            "properties": {"clientId": __package_name__, "clientVersion": __version__},
        }  # fmt: skip
        bodies = [
            {
                "entityType": each.type, "entityUrn": each.urn, "aspectName": each.aspect,
                "changeType": "PATCH" if each.patch else "UPSERT",
                "aspect": {
                    "value": each.body.decode(), "contentType": _PATCH if each.patch else _JSON,
                },
                "systemMetadata": metadata,
            }
            for each in proposals
        ]  # fmt: skip
        body, query = {"proposals": bodies, "async": "false"}, {"action": "ingestProposalBatch"}
        self._request("POST", "aspects", dict[str, Any], body, query=query, description=description)

    def remove_aspect(self, type: str, urn: str, aspect: str) -> None:
        path = f"openapi/v3/entity/{type}/{quote(urn, safe='')}/{aspect}"
        self._request("DELETE", path, Any, description=f"{urn} {aspect}")

    def erase(self, urn: str) -> None:
        query = {"action": "delete"}
        self._request(
            "POST", "entities", dict[str, Any], {"urn": urn}, query=query, description=urn
        )

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
            "POST",
            "openapi/v3/entity/scroll",
            _Page,
            body,
            query=query,
            description=f"a page of entities ({', '.join(types)})",
        )

    def _request(
        self,
        method: str,
        path: str,
        type: type[T],
        body: Any = None,
        *,
        description: str,
        query: Mapping[str, Any] | None = None,
    ) -> T:
        """Send a request; `description` names it in error messages."""
        status = _ROUTE_MISSING[0]
        try:
            answer = self._client.call(method, path, body, query=query, description=description)
            if answer is not None or method != "GET":
                return msgspec.convert(answer, type)
        except (UnexpectedServer, msgspec.ValidationError) as problem:
            raise self._not_datahub() from problem
        except CatalogError as problem:
            if problem.status not in _ROUTE_MISSING:
                raise
            status = problem.status
        raise CatalogTooOld(
            self.name, f"the route /{path}", needed=_REQUIRED_VERSION, status=status
        )

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


def key_aspect(type: str) -> str:
    """The aspect of an entity type that is derived from the URN."""
    key = classes().KEY_ASPECTS.get(type)
    return f"{type}Key" if key is None else str(key.ASPECT_NAME)


def retry_once_if_interrupted(read: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Yield everything that `read` yields; start over once if it is interrupted."""
    try:
        items = list(read())
    except CatalogError as problem:
        if not problem.retryable and problem.status != _SCROLL_EXPIRED:
            raise
        items = list(read())
    yield from items


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
