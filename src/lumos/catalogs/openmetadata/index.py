"""Finds identifiers of entities, and creates the services, databases and buckets around them."""

from collections.abc import Collection, Iterable, Mapping
from math import ceil
from threading import Lock, RLock
from typing import Any, Final, NamedTuple

from lumos.catalogs.openmetadata.entries import HIDDEN, PARENT, URN
from lumos.catalogs.openmetadata.labels import PLACEHOLDER_TEXT
from lumos.catalogs.openmetadata.names import (
    DATASET_TYPES,
    EntityLocation,
    OpenMetadataNames,
    Service,
    join_fqn,
    split_fqn,
)
from lumos.catalogs.openmetadata.server import (
    CustomProperties,
    IncompleteList,
    Server,
    retry_if_outdated,
)
from lumos.catalogs.openmetadata.states import guard, property_operations
from lumos.model.urn import InvalidUrn, Urn

# A page is only requested if it replaces this many requests for single entities.
_ENTITIES_PER_PAGE: Final = 4
# Page sizes with all fields, and with only names.
_FULL_PAGE_SIZE: Final = 100
_NAME_PAGE_SIZE: Final = 1000


class EntityFolder(NamedTuple):
    """Entities that one request can list: tables of a schema, containers or topics of a service."""

    type: str
    field: str
    fqn: str

    @classmethod
    def of(cls, location: EntityLocation) -> "EntityFolder":
        if location.type == "table":
            return cls(location.type, "databaseSchema", join_fqn(*location.parts[:3]))
        return cls(location.type, "service", join_fqn(location.parts[0]))


def by_folder(
    locations: Iterable[EntityLocation],
) -> dict[EntityFolder, set[EntityLocation]]:
    groups: dict[EntityFolder, set[EntityLocation]] = {}
    for location in locations:
        groups.setdefault(EntityFolder.of(location), set()).add(location)
    return groups


def list_entities(
    server: Server,
    folder: EntityFolder,
    wanted: Collection[EntityLocation],
    *,
    fields: str = "",
    include: str,
) -> Mapping[EntityLocation, dict[str, Any]] | None:
    """List the existing entities; None if one request for each entity is cheaper."""
    if len(wanted) < 2 * _ENTITIES_PER_PAGE:
        return None
    route, folder_filter = DATASET_TYPES[folder.type].route, {folder.field: folder.fqn}
    limit = _FULL_PAGE_SIZE if fields else _NAME_PAGE_SIZE
    first = server.get(route, limit=0, include="all", **folder_filter)
    total = ((first or {}).get("paging") or {}).get("total")
    if not isinstance(total, int) or ceil(total / limit) > len(wanted) / _ENTITIES_PER_PAGE:
        return None
    query = {"fields": fields} if fields else {}
    pages = server.pages(route, include=include, limit=limit, whole=True, **folder_filter, **query)
    try:
        entities = (
            (EntityLocation(folder.type, split_fqn(raw["fullyQualifiedName"])), raw)
            for raw in pages
        )
        return {location: raw for location, raw in entities if location in wanted}
    except IncompleteList:
        # The list changed while it was read.
        return None


class IndexedEntity(NamedTuple):
    """An entity that exists and is not deleted."""

    id: str
    location: EntityLocation

    @property
    def reference(self) -> dict[str, str]:
        return {"id": self.id, "type": self.location.type}

    @property
    def parts(self) -> tuple[str, ...]:
        return self.location.parts


class Index:
    """A cache of the entities and services of one server."""

    def __init__(
        self, server: Server, properties: CustomProperties, meanings: dict[str, str]
    ) -> None:
        self._server = server
        self._properties = properties
        self._meanings = meanings
        self._names: OpenMetadataNames | None = None
        self._ids: dict[EntityLocation, str | None] = {}
        self._parents: dict[tuple[str, str], str] = {}
        self._existing_services: set[tuple[str, str]] = set()
        self._missing_services: set[tuple[str, str]] = set()
        self._lock = Lock()
        self._creation_lock = RLock()

    @property
    def names(self) -> OpenMetadataNames:
        """The names of datasets, given the services of the server."""
        with self._creation_lock:
            if self._names is None:
                self._names = OpenMetadataNames(self._services(), self._meanings)
            return self._names

    def locate(self, urn: str) -> EntityLocation | None:
        """The location of a dataset, or None if this is not the URN of a dataset."""
        try:
            return self.names.locate(Urn.parse(urn))
        except InvalidUrn:
            return None

    def clear_services(self) -> None:
        """Clear the cache, since a service was created or deleted."""
        with self._creation_lock, self._lock:
            self._names = None
            self._ids.clear()
            self._parents.clear()
            self._existing_services.clear()
            self._missing_services.clear()

    def _services(self) -> Iterable[Service]:
        for entity_type in DATASET_TYPES.values():
            for service in self._server.pages(f"services/{entity_type.services}"):
                self._existing_services.add((entity_type.services, service["name"]))
                yield Service(entity_type.services, service["name"], service.get("serviceType", ""))

    def has_service(self, location: EntityLocation) -> bool:
        service = (DATASET_TYPES[location.type].services, location.parts[0])
        with self._lock:
            if service in self._existing_services:
                return True
            if service in self._missing_services:
                return False
        exists = self._server.named(f"services/{service[0]}", join_fqn(service[1])) is not None
        with self._lock:
            (self._existing_services if exists else self._missing_services).add(service)
        return exists

    def forget_missing_services(self) -> None:
        """Clear the cache of missing services, which others may have created meanwhile."""
        with self._lock:
            self._missing_services.clear()

    def is_parent(self, location: EntityLocation) -> bool:
        """Whether an entity is known to contain others."""
        with self._creation_lock:
            return (location.route, location.fqn) in self._parents

    def add(self, location: EntityLocation, id: str | None) -> None:
        """Cache the identifier at a location, or None if there is no entity."""
        with self._lock:
            self._ids[location] = id

    def drop(self, location: EntityLocation) -> None:
        with self._lock:
            self._ids.pop(location, None)

    def find(self, location: EntityLocation) -> IndexedEntity | None:
        """The entity at a location, unless it is deleted."""
        with self._lock:
            is_cached, id = location in self._ids, self._ids.get(location)
        if not is_cached:
            raw = self._server.named(location.route, location.fqn)
            id = raw["id"] if raw else None
            self.add(location, id)
        return None if id is None else IndexedEntity(id, location)

    def find_many(self, locations: Collection[EntityLocation]) -> None:
        """Cache entities with list requests, if these are cheaper than one request for each."""
        with self._lock:
            unknown = [location for location in locations if location not in self._ids]
        for folder, members in by_folder(unknown).items():
            listed = list_entities(self._server, folder, members, include="non-deleted")
            if listed is not None:
                for location in members:
                    self.add(location, listed[location]["id"] if location in listed else None)

    def written_urn(self, location: EntityLocation, id: str) -> str | None:
        """The URN that Lumos stored in an entity with a shortened name."""
        raw = self._server.get(f"{location.route}/{id}", fields="extension", include="all")
        urn = ((raw or {}).get("extension") or {}).get(URN)
        return urn if isinstance(urn, str) else None

    def prepare(self, location: EntityLocation) -> dict[str, Any]:
        """Create the missing parents of a dataset; return the fields that refer to them."""
        service, *names = location.parts
        services = DATASET_TYPES[location.type].services
        with self._creation_lock:
            type = self.names.service_type(location)
            self._ensure_parent(f"services/{services}", (service,), {"serviceType": type})
            with self._lock:
                self._existing_services.add((services, service))
            match location.type:
                case "table":
                    database, schema = (service, names[0]), (service, *names[:2])
                    self._ensure_parent("databases", database, {"service": join_fqn(service)})
                    self._ensure_parent(
                        "databaseSchemas", schema, {"database": join_fqn(*database)}
                    )
                    return {"name": names[-1], "databaseSchema": join_fqn(*schema)}
                case "container":
                    body: dict[str, Any] = {"name": names[-1], "service": join_fqn(service)}
                    for depth in range(1, len(names)):
                        parent = self._ensure_container(
                            EntityLocation("container", (service, *names[:depth])), body
                        )
                        body["parent"] = {"id": parent, "type": "container"}
                    return body
                case _:
                    return {"name": names[-1], "service": join_fqn(service)}

    def _ensure_parent(self, route: str, parts: tuple[str, ...], body: dict[str, Any]) -> str:
        """The identifier of a service, database or schema; created if missing."""
        fqn = join_fqn(*parts)
        if (route, fqn) not in self._parents:
            existing = self._server.named(route, fqn, include="all")
            if existing is None or existing.get("deleted"):
                request = {"name": parts[-1], **body}
                if existing is None:
                    request["description"] = PLACEHOLDER_TEXT
                existing = self._server.put(route, request)
            self._parents[route, fqn] = existing["id"]
        return self._parents[route, fqn]

    def _ensure_container(self, location: EntityLocation, body: dict[str, Any]) -> str:
        """The identifier of a container that contains others; created if missing."""
        if ("containers", location.fqn) in self._parents:
            return self._parents["containers", location.fqn]
        existing = self._server.named("containers", location.fqn, include="all", fields="extension")
        if existing is None:
            self._properties.declare("container", [PARENT])
            request = {
                "name": location.parts[-1],
                "service": body["service"],
                "extension": {PARENT: PLACEHOLDER_TEXT},
            }
            if "parent" in body:
                request["parent"] = body["parent"]
            existing = self._server.put("containers", request)
        elif existing.get("deleted"):
            # A hidden container cannot contain others, so a property marks it as hidden.
            self._server.put("containers/restore", {"id": existing["id"]})
            self.mark_hidden("container", existing["id"])
        self._parents["containers", location.fqn] = existing["id"]
        return str(existing["id"])

    def mark_hidden(self, entity_type: str, id: str) -> None:
        """Mark an entity as hidden by a property, if the server cannot hide it."""
        path = f"{DATASET_TYPES[entity_type].route}/{id}"
        self._properties.declare(entity_type, [HIDDEN])

        def mark() -> None:
            raw = self._server.get(path, fields="extension") or {}
            if HIDDEN not in (raw.get("extension") or {}):
                operations = property_operations(raw, HIDDEN, "true")
                self._server.patch(path, [*guard(raw), *operations])

        retry_if_outdated(mark)

    def mark_erased(self, location: EntityLocation) -> None:
        """Record that an entity was deleted permanently."""
        with self._creation_lock:
            self._parents.pop((location.route, location.fqn), None)
        self.add(location, None)

    def clean_up(self) -> None:
        """Delete the empty containers that Lumos created for datasets."""
        for bucket in list(self._server.pages("containers", fields="extension", root="true")):
            if PARENT in (bucket.get("extension") or {}):
                self._server.delete_if_possible(f"containers/{bucket['id']}")
        self.clear_services()
