"""Calls an Atlas server: types, searches with pages, and entities in bulk."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

from lumos.catalogs.atlas import types
from lumos.catalogs.chunks import batched, chunked
from lumos.catalogs.http import shorten
from lumos.catalogs.rest import RestClient, UnexpectedServer, version_numbers
from lumos.config.platforms import AtlasPlatform
from lumos.errors import CatalogError, CatalogTooOld

KIND: Final = "atlas"
OLDEST: Final = (2, 1)
# Atlas resets a limit above its own maximum (by default 10,000) to 100.
_PAGE: Final = 1_000
_AUDIT_PAGE: Final = 500
# Each entity takes the server tens of milliseconds.
_MAX_POSTED: Final = 250
# Atlas sends searches to its index as URLs of at most 8 KB; longer ones fail with 500.
_MAX_QUERIED: Final = 60
# Atlas accepts 8 KB of URL and headers.
_MAX_GUIDS: Final = 120
_MAX_NAMES: Final = 4_000
# Deleting or purging an entity with its relations takes the server up to a second.
_MAX_DELETED: Final = 20
_CONFLICT: Final = 409
_ERROR: Final = 400


class AtlasServer:
    """Calls the REST interface of one server."""

    def __init__(self, settings: AtlasPlatform) -> None:
        login = None if settings.user is None else (settings.user, settings.password)
        # Servers with CSRF protection require this header, with any value.
        headers = {"X-XSRF-HEADER": KIND}
        self._client = RestClient(KIND, settings, path="/api/atlas/", login=login, headers=headers)
        self._call = self._client.call
        self._has_defined = False
        self._first_ends: dict[str, str] = {}
        self.platform = self._client.platform

    def close(self) -> None:
        self._client.close()

    def version(self) -> str:
        """The version of the server; raises CatalogTooOld if it is too old."""
        answer = self._call("GET", "admin/version")
        text = str(answer.get("Version", "")) if isinstance(answer, dict) else ""
        version = version_numbers(text)
        if not version:
            raise UnexpectedServer(self.platform, "it does not report a version of Atlas")
        if version < OLDEST:
            raise CatalogTooOld(self.platform, "labels and purging", needed="Atlas 2.1 or later")
        return text

    def user(self) -> str | None:
        return (self._call("GET", "admin/session") or {}).get("userName")

    @cached_property
    def types(self) -> dict[str, str]:
        """The categories of all types by name."""
        headers = self._call("GET", "v2/types/typedefs/headers")
        if not isinstance(headers, list):
            raise UnexpectedServer(self.platform, "it does not list types of Atlas")
        return {each["name"]: each["category"] for each in headers}

    @cached_property
    def business_metadata(self) -> dict[str, list[dict[str, Any]]]:
        """The attributes of all business metadata by name."""
        answer = self._call("GET", "v2/types/typedefs", query={"type": "business_metadata"}) or {}
        return {
            each["name"]: each.get("attributeDefs") or []
            for each in answer.get("businessMetadataDefs") or ()
        }

    def define_business_metadata(self, definitions: Mapping[str, Any]) -> None:
        # `types` does not contain business metadata.
        for name in definitions.keys() - self.business_metadata.keys():
            row = {"name": name, "typeVersion": types.VERSION, "attributeDefs": definitions[name]}
            try:
                self._call("POST", "v2/types/typedefs", {"businessMetadataDefs": [row]})
            except CatalogError as problem:
                # Another writer created it.
                if problem.status != _CONFLICT:
                    raise
        if definitions.keys() - self.business_metadata.keys():
            del self.__dict__["business_metadata"]

    def set_business_metadata(self, guid: str, values: Mapping[str, Any]) -> None:
        path = f"v2/entity/guid/{guid}/businessmetadata"
        self._call("POST", path, values, query={"isOverwrite": True})

    def define_types(self) -> None:
        """Create the types of Lumos, or upgrade them to the version of this release."""
        if self._has_defined:
            return
        missing = types.OWN_TYPES - self.types.keys()
        existing = self._call("GET", f"v2/types/typedef/name/{types.DATASET}") or {}
        if missing:
            self._define("POST", types.definitions(missing))
        if existing and version_numbers(existing.get("typeVersion")) < version_numbers(
            types.VERSION
        ):
            self._define("PUT", types.definitions(types.OWN_TYPES - missing))
        self._has_defined = True

    def define_classifications(self, names: set[str]) -> None:
        if new := sorted(names - self.types.keys()):
            self._define("POST", types.classification_definitions(new))

    def _define(self, method: str, definitions: Mapping[str, Any]) -> None:
        try:
            self._call(method, "v2/types/typedefs", definitions)
        except CatalogError as problem:
            # Types exist already if a response was lost or another writer created them.
            if problem.status != _CONFLICT:
                raise
            self.__dict__.pop("types", None)
            for kind, rows in definitions.items():
                for each in rows:
                    if each["name"] not in self.types:
                        self._call(method, "v2/types/typedefs", {kind: [each]})
        for kind, rows in definitions.items():
            category = kind.removesuffix("Defs").upper()
            self.types.update((each["name"], category) for each in rows)

    def find(self, type: str, lookups: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The headers of entities with these lookup hashes, including deleted ones.

        A lookup hash is the hash of a qualified name. It is indexed, and short enough for queries.
        """
        for batch in batched(lookups, _MAX_QUERIED):
            yield from self._pages(type, entityFilters=_filters("OR", "=", batch))

    def all(self, type: str) -> Iterator[dict[str, Any]]:
        """The headers of all entities of a Lumos type, including deleted ones."""
        last = " "
        while True:
            page = self._page(
                type, entityFilters=_filters("AND", ">", [last]), sortBy="lookup",
                attributes=["lookup", "placeholder"],
            )  # fmt: skip
            yield from page
            if len(page) < _PAGE:
                return
            last = page[-1]["attributes"]["lookup"]
            # An active entity and its deleted predecessors share a hash.
            seen = {each["guid"] for each in page}
            yield from (each for each in self.find(type, [last]) if each["guid"] not in seen)

    def active(self, type: str) -> Iterator[dict[str, Any]]:
        """The headers of all active entities of a type."""
        return self._pages(type, excludeDeletedEntities=True)

    def query(self, type: str, **attributes: str) -> Iterator[dict[str, Any]]:
        """The headers of active entities of a Lumos type with these attributes, by Atlas's DSL."""
        conditions = " and ".join(f'{name} = "{value}"' for name, value in attributes.items())
        text, offset = f"{type} where {conditions} orderby lookup", 0
        while True:
            page = {"query": text, "limit": _PAGE, "offset": offset}
            rows = (self._call("GET", "v2/search/dsl", query=page) or {}).get("entities") or []
            yield from (each for each in rows if each["status"] == "ACTIVE")
            offset += len(rows)
            if len(rows) < _PAGE:
                return

    def named(
        self, type: str, names: Sequence[str]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """The active entities with these qualified names, each with those that it refers to."""
        for chunk in chunked(
            names, max_parts=_MAX_QUERIED, max_bytes=_MAX_NAMES, size=_quoted_size
        ):
            query = {f"attr_{number}:qualifiedName": name for number, name in enumerate(chunk)}
            path = f"v2/entity/bulk/uniqueAttribute/type/{type}"
            answer = self._call("GET", path, query=query) or {}
            referred = answer.get("referredEntities") or {}
            yield from ((entity, referred) for entity in answer.get("entities") or ())

    def count(self, type: str) -> int:
        query = {"typeName": type, "excludeDeletedEntities": False, "limit": 1}
        return int((self._call("POST", "v2/search/basic", query) or {}).get("approximateCount", 0))

    def _pages(self, type: str, **query: Any) -> Iterator[dict[str, Any]]:
        offset = 0
        while page := self._page(type, offset=offset, attributes=["placeholder"], **query):
            yield from page
            offset += len(page)
            if len(page) < _PAGE:
                return

    def _page(self, type: str, **query: Any) -> list[dict[str, Any]]:
        request = {"typeName": type, "excludeDeletedEntities": False, "limit": _PAGE, **query}
        answer = self._call("POST", "v2/search/basic", request)
        if not isinstance(answer, dict):
            raise UnexpectedServer(self.platform, "its search does not return an object")
        return answer.get("entities") or []

    def entities(
        self, guids: Sequence[str], **options: bool
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield entities, each with the entities that it refers to, by GUID."""
        for batch in batched(guids, _MAX_GUIDS):
            answer = self._call("GET", "v2/entity/bulk", query={"guid": batch, **options})
            if not isinstance(answer, dict):
                raise CatalogError(
                    f"{self.platform} removed entities while they were read. Try again.",
                    platform=self.platform, retryable=True,
                )  # fmt: skip
            referred = answer.get("referredEntities") or {}
            yield from ((entity, referred) for entity in answer.get("entities") or ())

    def audit(self, guid: str) -> Iterator[dict[str, Any]]:
        """The recorded changes of an entity, in an order that depends on the server's storage."""
        query: dict[str, Any] = {"count": _AUDIT_PAGE}
        while True:
            page = self._call("GET", f"v2/entity/{guid}/audit", query=query) or []
            # A page starts with the last change of the page before.
            yield from (each for each in page if each["eventKey"] != query.get("startKey"))
            if len(page) < _AUDIT_PAGE:
                return
            query["startKey"] = page[-1]["eventKey"]

    def post(self, entities: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Create or update entities; return the new GUIDs by temporary GUID.

        An entity may refer to earlier ones. More than 250 entities are sent in several calls.
        """
        guids: dict[str, str] = {}
        for batch in batched(entities, _MAX_POSTED):
            chunk = [_replace_temporary_guids(each, guids) for each in batch]
            answer = self._call("POST", "v2/entity/bulk", {"entities": chunk})
            guids |= (answer or {}).get("guidAssignments") or {}
        return guids

    def relate(self, wanted: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        """Set the relationships of entities, by GUID, name of the end, and GUID of the target.

        Bulk writes do not restore relationships that were deleted before, and may even delete one
        that was created again.
        """
        for entity, _ in self.entities(list(wanted), minExtInfo=True):
            own = {key: entity[key] for key in ("guid", "typeName")}
            for end, targets in wanted[own["guid"]].items():
                value = (entity.get("relationshipAttributes") or {}).get(end) or ()
                headers = [value] if isinstance(value, dict) else value
                active = {each["guid"]: each for each in headers if is_active(each)}
                for target in active.keys() - targets.keys():
                    guid = active[target]["relationshipGuid"]
                    self._call("DELETE", f"v2/relationship/guid/{guid}")
                for target, body in targets.items():
                    other = {"guid": target, "typeName": body["end"]}
                    ends = (own, other) if self._is_first(body["typeName"], end) else (other, own)
                    row = {"typeName": body["typeName"], "attributes": body["attributes"],
                           "end1": ends[0], "end2": ends[1]}  # fmt: skip
                    if target not in active:
                        self._call("POST", "v2/relationship", row)
                    elif body["attributes"] != relationship_attributes(active[target]):
                        guid = active[target]["relationshipGuid"]
                        self._call("PUT", "v2/relationship", {**row, "guid": guid})

    def _is_first(self, type: str, end: str) -> bool:
        """Whether an entity with this end is the first one of a relationship."""
        if type not in self._first_ends:
            definition = self._call("GET", f"v2/types/typedef/name/{type}") or {}
            # The end of an entity is named in the definition of its own side.
            self._first_ends[type] = (definition.get("endDef1") or {}).get("name", "")
        return self._first_ends[type] == end

    def set_classifications(self, headers: Mapping[str, Any]) -> None:
        """Replace the classifications of entities, by GUID."""
        body = {"guidHeaderMap": headers}
        answer = self._call("POST", "v2/entity/bulk/setClassifications", body) if headers else []
        failed = [str(line) for line in answer or () if not str(line).endswith("(Done)")]
        if failed:
            raise CatalogError(
                f"{self.platform} did not set all classifications: {shorten(failed[0])}",
                platform=self.platform, status=_ERROR,
            )  # fmt: skip

    def set_labels(self, guid: str, labels: Sequence[str]) -> None:
        self._call("POST", f"v2/entity/guid/{guid}/labels", list(labels))

    def delete(self, guids: Sequence[str]) -> None:
        """Soft-delete entities; the columns of datasets are deleted with them."""
        for chunk in batched(guids, _MAX_DELETED):
            self._call("DELETE", "v2/entity/bulk", query={"guid": chunk})

    def purge(self, guids: Sequence[str]) -> None:
        """Remove soft-deleted entities permanently."""
        for chunk in batched(guids, _MAX_DELETED):
            self._call("PUT", "admin/purge", chunk)


def is_active(relation: Mapping[str, Any]) -> bool:
    """Whether neither a relationship nor the entity that it leads to is deleted."""
    return "ACTIVE" == relation.get("relationshipStatus") == relation.get("entityStatus")


def relationship_attributes(relation: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a relationship that have values."""
    values = (relation.get("relationshipAttributes") or {}).get("attributes") or {}
    return {key: value for key, value in values.items() if value is not None}


def _quoted_size(name: str) -> int:
    return len(quote(name, safe=""))


def _filters(condition: str, operator: str, lookups: Sequence[str]) -> dict[str, Any]:
    criteria = [
        {"attributeName": "lookup", "operator": operator, "attributeValue": each}
        for each in lookups
    ]
    return {"condition": condition, "criterion": criteria}


def _replace_temporary_guids(value: Any, guids: Mapping[str, str]) -> Any:
    """Replace temporary GUIDs by the GUIDs of entities that an earlier call created."""
    if isinstance(value, dict):
        return {
            key: guids.get(each, each) if key == "guid" else _replace_temporary_guids(each, guids)
            for key, each in value.items()
        }
    return (
        [_replace_temporary_guids(each, guids) for each in value]
        if isinstance(value, list)
        else value
    )
