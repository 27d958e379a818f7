"""Datasets as an OpenMetadata server holds them: one by its name, or all of them in order."""

from collections.abc import Iterable, Iterator
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any, Final, NamedTuple

import msgspec

from lumos.catalogs.openmetadata import lineage
from lumos.catalogs.openmetadata.entries import HIDDEN, URN, OpenMetadataEntries, is_parent_only
from lumos.catalogs.openmetadata.index import Index, by_shelf, listed
from lumos.catalogs.openmetadata.kinds import name_of
from lumos.catalogs.openmetadata.lineage import Edges, NativeEdge
from lumos.catalogs.openmetadata.names import HOMES, OWN_SERVICE, EntityLocation, split
from lumos.catalogs.openmetadata.server import Server, Short
from lumos.catalogs.openmetadata.states import FIELDS, State, state_of
from lumos.errors import LumosError
from lumos.model.catalog import CatalogEntry
from lumos.model.urn import InvalidUrn, Urn

_AT_ONCE: Final = 100
_CONTAINERS: Final = HOMES["container"].route


class Held(NamedTuple):
    """An entity as the server told it, and the edges that lead to it."""

    urn: str
    place: EntityLocation
    raw: dict[str, Any]
    state: State
    edges: Edges

    @property
    def id(self) -> str:
        return str(self.raw["id"])

    @property
    def is_deleted(self) -> bool:
        """Whether it is hidden, by the server or in words where the server cannot hide it."""
        return bool(self.raw.get("deleted")) or HIDDEN in (self.raw.get("extension") or {})

    @property
    def is_dataset(self) -> bool:
        """Whether it is there for itself, and not only because others are in it."""
        return not is_parent_only(self.raw)


class OpenMetadataReader:
    """Reads entities and makes entries of them."""

    def __init__(self, server: Server, index: Index, entries: OpenMetadataEntries) -> None:
        self._server = server
        self._index = index
        self._entries = entries

    def entry(self, held: Held) -> CatalogEntry:
        return self._entries.read(
            held.urn, held.place, held.state, held.edges, deleted=held.is_deleted
        )

    def held(self, urn: str) -> Held | None:
        """What is there under a dataset's name."""
        if (place := self._place(urn)) is None:
            return None
        home = HOMES[place.home]
        raw = self._server.named(home.route, place.fqn, fields=FIELDS[place.home], include="all")
        if raw is None:
            self._index.learn(place, None)
            return None
        self._index.learn(place, None if raw.get("deleted") else raw["id"])
        return self.entity(urn, place, raw)

    def many(self, urns: Iterable[str]) -> dict[str, Held]:
        """What is there under some names: by lists where that is less work, else one by one."""
        places = {urn: place for urn in urns if (place := self._place(urn)) is not None}
        raws: dict[EntityLocation, dict[str, Any]] = {}
        alone = set(places.values())
        for shelf, some in by_shelf(places.values()):
            told = listed(self._server, shelf, some, fields=FIELDS[shelf.home], include="all")
            if told is not None:
                raws |= told
                alone -= some
                for place in some:
                    raw = raws.get(place, {})
                    self._index.learn(place, None if raw.get("deleted", True) else raw["id"])

        def read(urn: str) -> Held | None:
            place = places[urn]
            if place in alone:
                return self.held(urn)
            return self.entity(urn, place, raws[place]) if place in raws else None

        found = self._server.each(list(places), read)
        return {held.urn: held for held in found if held is not None}

    def _place(self, urn: str) -> EntityLocation | None:
        """Where a dataset is or would be; nothing where not even its service is there."""
        try:
            place = self._index.names.place(Urn.parse(urn))
        except InvalidUrn:
            return None
        return place if self._index.may_be_there(place) else None

    def entity(
        self, urn: str, place: EntityLocation, raw: dict[str, Any], *, edges: bool = True
    ) -> Held:
        state = state_of(place.home, raw)
        known = self._edges(place, raw) if edges else lineage.no_edges(place.parts)
        return Held(urn, place, raw, state, known)

    def all(self, *, after: str | None = None, edges: bool = True) -> Iterator[Held]:
        """Every dataset by its URN.

        The server's order is another, and there is no call for many by their names. So all pages
        go into a file first, and only where each begins is kept in memory.
        """
        with TemporaryFile() as file:
            try:
                places = self._kept(file, after)
            except Short:
                # Somebody may have added to the list or taken from it while it was told.
                places = self._kept(file, after)
            waiting = iter(sorted(places, key=lambda each: each[0]))
            while chunk := list(islice(waiting, _AT_ONCE)):
                raws = []
                for urn, place, start, length in chunk:
                    file.seek(start)
                    raws.append((urn, place, msgspec.json.decode(file.read(length))))
                told = self._server.each(raws, lambda each: self.entity(*each, edges=edges))
                found = {held.urn: held for held in told}
                yield from (found[urn] for urn, _, _ in raws)

    def _kept(
        self, file: IO[bytes], after: str | None
    ) -> list[tuple[str, EntityLocation, int, int]]:
        """Writes all pages into a file; says which dataset begins where and how long it is."""
        places = []
        offset = file.seek(0)
        for place, raw in self._pages():
            urn = self._urn(place, raw)
            if after is not None and urn <= after:
                continue
            line = msgspec.json.encode(raw)
            file.write(line)
            places.append((urn, place, offset, len(line)))
            offset += len(line)
        return places

    def count(self) -> int:
        """How many datasets there are, hidden ones too."""
        every = sum(self._server.total(home.route) for home in HOMES.values())
        own = self._server.total(_CONTAINERS, service=OWN_SERVICE)
        # Only what is at the top can be there for others alone.
        tops = self._server.pages(_CONTAINERS, fields="extension", root=True)
        return every - own - sum(map(is_parent_only, tops))

    def _pages(self) -> Iterator[tuple[EntityLocation, dict[str, Any]]]:
        for home in HOMES.values():
            pages = self._server.pages(
                home.route, fields=FIELDS[home.type], limit=_AT_ONCE, whole=True
            )
            for raw in pages:
                parts = split(raw["fullyQualifiedName"])
                if parts[0] != OWN_SERVICE and not is_parent_only(raw):
                    yield EntityLocation(home.type, parts), raw

    def _urn(self, place: EntityLocation, raw: dict[str, Any]) -> str:
        """The dataset at a place; where its name is cut short, Lumos wrote it beside."""
        told = (raw.get("extension") or {}).get(URN)
        if isinstance(told, str) and place.is_shortened and self._is_at(told, place):
            return told
        return str(self._index.names.urn(place))

    def _is_at(self, urn: str, place: EntityLocation) -> bool:
        try:
            return self._index.names.place(Urn.parse(urn)) == place
        except LumosError:
            return False

    def _edges(self, place: EntityLocation, raw: dict[str, Any]) -> Edges:
        if raw.get("deleted"):
            # The server tells no edges of what is deleted.
            return lineage.no_edges(place.parts)
        return self.edges(place, raw["id"])

    def edges(self, place: EntityLocation, id: str) -> Edges:
        """The edges that lead to an entity from other datasets."""
        told = self._server.get(f"lineage/{place.home}/{id}", upstreamDepth=1, downstreamDepth=0)
        if told is None:
            return lineage.no_edges(place.parts)
        nodes = {node["id"]: node for node in told.get("nodes") or ()}
        nodes[id] = {"id": id, "type": place.home, "fullyQualifiedName": place.fqn}
        edges: dict[str, NativeEdge] = {}
        others: dict[str, NativeEdge] = {}
        for edge in told.get("upstreamEdges") or ():
            start, end = _id(edge["fromEntity"]), _id(edge["toEntity"])
            node = nodes.get(start, {})
            if end != id or not node:
                continue
            parts = split(node["fullyQualifiedName"])
            if parts[0] == OWN_SERVICE:
                continue
            at = EntityLocation(node["type"], parts)
            details = edge.get("lineageDetails") or {}
            native = NativeEdge(start, at.home, parts, lineage.columns_in(details), details)
            if at.home in HOMES:
                edges[self._urn_of_node(at, start)] = native
            else:
                others[name_of(at.home, node["fullyQualifiedName"])] = native
        return Edges(place.parts, edges, self._is_there, others)

    def _urn_of_node(self, place: EntityLocation, id: str) -> str:
        if place.is_shortened:
            told = self._index.written_urn(place, id)
            if told is not None and self._is_at(told, place):
                return told
        return str(self._index.names.urn(place))

    def _is_there(self, id: str) -> bool:
        """Whether an entity is there and not hidden, so that its edges must be told."""
        return any(self._server.get(f"{home.route}/{id}") is not None for home in HOMES.values())


def _id(reference: Any) -> str:
    return reference["id"] if isinstance(reference, dict) else str(reference)
