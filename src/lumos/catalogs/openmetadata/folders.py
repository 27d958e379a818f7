"""Many entities of one schema or service by few calls.

The server has no call for some entities by their names. Where many of one schema are asked for, its
whole list takes fewer calls than asking for each, unless it is much longer than what is asked for.
"""

from collections.abc import Collection, Iterator, Mapping
from math import ceil
from typing import Any, Final, NamedTuple

from lumos.catalogs.openmetadata.names import HOMES, EntityLocation, joined, split
from lumos.catalogs.openmetadata.server import Server, Short

# A page costs the server more than one entity does.
_WORTH_A_PAGE: Final = 4
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
