"""Which entity has which identifier, and the services, databases and buckets that hold them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from math import ceil
from threading import Lock, RLock
from typing import Any, Final, NamedTuple

from lumos.catalogs.openmetadata.entries import HIDDEN, PARENT, URN
from lumos.catalogs.openmetadata.labels import MADE
from lumos.catalogs.openmetadata.names import (
    HOMES,
    EntityLocation,
    OpenMetadataNames,
    Service,
    joined,
    split,
)
from lumos.catalogs.openmetadata.properties import CustomProperties
from lumos.catalogs.openmetadata.server import Outdated, Server, Short
from lumos.catalogs.openmetadata.states import guard
from lumos.errors import CatalogError

_ATTEMPTS: Final = 4
# A page costs the server more than one entity does.
_WORTH_A_PAGE: Final = 4
# Something is in it, or Lumos may not remove it.
_STAYS: Final = (400, 403)
# What is listed with all its columns, and what only by its name.
_WHOLE: Final = 100
_NAMES: Final = 1000


class EntityFolder(NamedTuple):
    """What can be listed alone: the tables of a schema, the containers or topics of a service."""

    home: str
    field: str
    fqn: str

    @classmethod
    def of(cls, place: EntityLocation) -> "EntityFolder":
        if place.home == "table":
            return cls(place.home, "databaseSchema", joined(*place.parts[:3]))
        return cls(place.home, "service", joined(place.parts[0]))


def by_shelf(
    places: Collection[EntityLocation],
) -> Iterator[tuple[EntityFolder, set[EntityLocation]]]:
    """Places by what they are listed with."""
    found: dict[EntityFolder, set[EntityLocation]] = {}
    for place in places:
        found.setdefault(EntityFolder.of(place), set()).add(place)
    yield from found.items()


def listed(
    server: Server,
    shelf: EntityFolder,
    wanted: Collection[EntityLocation],
    *,
    fields: str = "",
    include: str,
) -> Mapping[EntityLocation, dict[str, Any]] | None:
    """Those of some places that are there; nothing where asking for each is less work."""
    if len(wanted) < 2 * _WORTH_A_PAGE:
        return None
    route, narrowed = HOMES[shelf.home].route, {shelf.field: shelf.fqn}
    limit = _WHOLE if fields else _NAMES
    first = server.get(route, limit=0, include="all", **narrowed)
    total = ((first or {}).get("paging") or {}).get("total")
    if not isinstance(total, int) or ceil(total / limit) > len(wanted) / _WORTH_A_PAGE:
        return None
    asked = {"fields": fields} if fields else {}
    pages = server.pages(route, include=include, limit=limit, whole=True, **narrowed, **asked)
    try:
        told = (
            (EntityLocation(shelf.home, split(raw["fullyQualifiedName"])), raw) for raw in pages
        )
        return {place: raw for place, raw in told if place in wanted}
    except Short:
        # Somebody adds to the list or takes from it just now.
        return None


class IndexedEntity(NamedTuple):
    """An entity that is there and not deleted."""

    id: str
    place: EntityLocation


class Index:
    """What is where on one server; filled as answers come in, and never kept for longer."""

    def __init__(
        self, server: Server, properties: CustomProperties, meanings: dict[str, str]
    ) -> None:
        self._server = server
        self._properties = properties
        self._meanings = meanings
        self._names: OpenMetadataNames | None = None
        self._ids: dict[EntityLocation, str | None] = {}
        self._held: dict[tuple[str, str], str] = {}
        self._there: set[tuple[str, str]] = set()
        self._absent: set[tuple[str, str]] = set()
        self._lock = Lock()
        self._making = RLock()

    @property
    def names(self) -> OpenMetadataNames:
        """The names of datasets, given the services that there are."""
        with self._making:
            if self._names is None:
                self._names = OpenMetadataNames(self._services(), self._meanings)
            return self._names

    def forget_services(self) -> None:
        """Looks for services again, since one was made or is gone."""
        with self._making, self._lock:
            self._names = None
            for known in (self._ids, self._held, self._there, self._absent):
                known.clear()

    def _services(self) -> Iterable[Service]:
        for home in HOMES.values():
            for service in self._server.pages(f"services/{home.services}"):
                self._there.add((home.services, service["name"]))
                yield Service(home.services, service["name"], service.get("serviceType", ""))

    def may_be_there(self, place: EntityLocation) -> bool:
        """Whether the service of a place is there, so that it is worth asking for more."""
        service = (HOMES[place.home].services, place.parts[0])
        with self._lock:
            if service in self._there:
                return True
            if service in self._absent:
                return False
        is_there = self._server.named(f"services/{service[0]}", joined(service[1])) is not None
        with self._lock:
            (self._there if is_there else self._absent).add(service)
        return is_there

    def look_again(self) -> None:
        """Forgets which services are not there: others may have made them meanwhile."""
        with self._lock:
            self._absent.clear()

    def is_holder(self, place: EntityLocation) -> bool:
        """Whether others are known to be in an entity."""
        with self._making:
            return (HOMES[place.home].route, place.fqn) in self._held

    def learn(self, place: EntityLocation, id: str | None) -> None:
        """Notes what the server said of a place; None is for nothing there."""
        with self._lock:
            self._ids[place] = id

    def forget(self, place: EntityLocation) -> None:
        with self._lock:
            self._ids.pop(place, None)

    def find(self, place: EntityLocation) -> IndexedEntity | None:
        """The entity at a place, if one is there and not deleted."""
        with self._lock:
            known, id = place in self._ids, self._ids.get(place)
        if not known:
            raw = self._server.named(HOMES[place.home].route, place.fqn)
            id = raw["id"] if raw else None
            self.learn(place, id)
        return None if id is None else IndexedEntity(id, place)

    def find_many(self, places: Collection[EntityLocation]) -> None:
        """Looks for some entities at once where that is less work than one by one."""
        with self._lock:
            unknown = [place for place in places if place not in self._ids]
        for shelf, some in by_shelf(unknown):
            told = listed(self._server, shelf, some, include="non-deleted")
            if told is not None:
                for place in some:
                    self.learn(place, told[place]["id"] if place in told else None)

    def written_urn(self, place: EntityLocation, id: str) -> str | None:
        """The URN that Lumos wrote beside an entity whose name is only the beginning of it."""
        raw = self._server.get(f"{HOMES[place.home].route}/{id}", fields="extension", include="all")
        urn = ((raw or {}).get("extension") or {}).get(URN)
        return urn if isinstance(urn, str) else None

    def prepare(self, place: EntityLocation) -> dict[str, Any]:
        """Makes sure that what a dataset is in is there; gives the fields that say so."""
        home = HOMES[place.home]
        service, *names = place.parts
        with self._making:
            self._service(place)
            match place.home:
                case "table":
                    database, schema = (service, names[0]), (service, *names[:2])
                    self._hold("databases", database, {"service": joined(service)})
                    self._hold("databaseSchemas", schema, {"database": joined(*database)})
                    return {"name": names[-1], "databaseSchema": joined(*schema)}
                case "container":
                    body: dict[str, Any] = {"name": names[-1], "service": joined(service)}
                    for depth in range(1, len(names)):
                        parent = self._bucket(
                            EntityLocation(home.type, (service, *names[:depth])), body
                        )
                        body["parent"] = {"id": parent, "type": "container"}
                    return body
                case _:
                    return {"name": names[-1], "service": joined(service)}

    def _service(self, place: EntityLocation) -> None:
        route = f"services/{HOMES[place.home].services}"
        name = place.parts[0]
        self._hold(route, (name,), {"serviceType": self.names.service_type(place)})
        with self._lock:
            self._there.add((HOMES[place.home].services, name))

    def _hold(self, route: str, parts: tuple[str, ...], body: dict[str, Any]) -> str:
        """The identifier of something that holds datasets; made where it is not there."""
        fqn = joined(*parts)
        if (route, fqn) not in self._held:
            there = self._server.named(route, fqn, include="all")
            if there is None or there.get("deleted"):
                whole = {"name": parts[-1], **body}
                if there is None:
                    whole["description"] = MADE
                there = self._server.put(route, whole)
            self._held[route, fqn] = there["id"]
        return self._held[route, fqn]

    def _bucket(self, place: EntityLocation, body: dict[str, Any]) -> str:
        """The identifier of a container that others are in."""
        if ("containers", place.fqn) in self._held:
            return self._held["containers", place.fqn]
        there = self._server.named("containers", place.fqn, include="all", fields="extension")
        if there is None:
            self._properties.declare("container", [PARENT])
            whole = {
                "name": place.parts[-1],
                "service": body["service"],
                "extension": {PARENT: MADE},
            }
            if "parent" in body:
                whole["parent"] = body["parent"]
            there = self._server.put("containers", whole)
        elif there.get("deleted"):
            # Nothing can be put into one that is hidden; that it was so is noted beside it.
            self._server.put("containers/restore", {"id": there["id"]})
            self.mark_hidden("container", there["id"])
        self._held["containers", place.fqn] = there["id"]
        return str(there["id"])

    def mark_hidden(self, home: str, id: str) -> None:
        """Notes beside an entity that it is hidden, where the server cannot hide it."""
        path = f"{HOMES[home].route}/{id}"
        self._properties.declare(home, [HIDDEN])
        for attempt in range(_ATTEMPTS):
            raw = self._server.get(path, fields="extension") or {}
            extension = raw.get("extension") or {}
            if HIDDEN in extension:
                return
            # Nothing can be added to an extension that is not there.
            key, value = (f"/{HIDDEN}", "true") if extension else ("", {HIDDEN: "true"})
            operation = {"op": "add", "path": f"/extension{key}", "value": value}
            try:
                self._server.patch(path, [*guard(raw), operation])
                return
            except Outdated:
                if attempt == _ATTEMPTS - 1:
                    raise

    def dropped(self, place: EntityLocation) -> None:
        """Notes that an entity is gone for good."""
        with self._making:
            self._held.pop((HOMES[place.home].route, place.fqn), None)
        self.learn(place, None)

    def tidy(self) -> None:
        """Remove containers that Lumos created for datasets, if nothing is in them."""
        for bucket in list(self._server.pages("containers", fields="extension", root="true")):
            if PARENT in (bucket.get("extension") or {}):
                try:
                    self._server.delete(f"containers/{bucket['id']}", hardDelete=True)
                except CatalogError as problem:
                    if problem.status not in _STAYS:
                        raise
        self.forget_services()
