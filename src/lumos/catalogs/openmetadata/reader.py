"""Reads datasets from an OpenMetadata server, by URN or all of them sorted by URN."""

from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile
from typing import IO, Any, Final, NamedTuple

import msgspec

from lumos.catalogs.chunks import batched
from lumos.catalogs.openmetadata import lineage
from lumos.catalogs.openmetadata.entries import (
    HIDDEN,
    URN,
    OpenMetadataEntryCodec,
    is_placeholder_parent,
)
from lumos.catalogs.openmetadata.index import Index, by_folder, list_entities
from lumos.catalogs.openmetadata.kinds import urn_of
from lumos.catalogs.openmetadata.lineage import Edges, NativeEdge
from lumos.catalogs.openmetadata.names import (
    DATASET_TYPES,
    LUMOS_SERVICE,
    EntityLocation,
    split_fqn,
)
from lumos.catalogs.openmetadata.server import IncompleteList, Server
from lumos.catalogs.openmetadata.states import FIELDS, EntityState, state_of
from lumos.model.catalog import CatalogEntry

_PAGE_SIZE: Final = 100
_CONTAINERS: Final = DATASET_TYPES["container"].route


class ReadDataset(NamedTuple):
    """The entity of a dataset, and its upstream edges."""

    urn: str
    location: EntityLocation
    raw: dict[str, Any]
    state: EntityState
    edges: Edges

    @property
    def id(self) -> str:
        return str(self.raw["id"])

    @property
    def is_deleted(self) -> bool:
        """Whether the dataset is hidden, by the server or by a property."""
        return bool(self.raw.get("deleted")) or HIDDEN in (self.raw.get("extension") or {})

    @property
    def is_dataset(self) -> bool:
        """Whether the entity is a dataset, and not a placeholder that only contains others."""
        return not is_placeholder_parent(self.raw)


class OpenMetadataReader:
    """Reads datasets from one server."""

    def __init__(self, server: Server, index: Index, codec: OpenMetadataEntryCodec) -> None:
        self.server = server
        self.index = index
        self.codec = codec

    def entry(self, dataset: ReadDataset) -> CatalogEntry:
        return self.codec.read(
            dataset.urn, dataset.location, dataset.state, dataset.edges, deleted=dataset.is_deleted
        )

    def read(self, urn: str) -> ReadDataset | None:
        """Read the entity of a dataset, or return None."""
        if (location := self._find_location(urn)) is None:
            return None
        raw = self.server.named(
            location.route, location.fqn, fields=FIELDS[location.type], include="all"
        )
        if raw is None:
            self.index.add(location, None)
            return None
        self.index.add(location, None if raw.get("deleted") else raw["id"])
        return self.entity(urn, location, raw)

    def read_many(self, urns: Iterable[str]) -> dict[str, ReadDataset]:
        """Read the entities of the datasets that exist, with list requests if these are cheaper."""
        locations = {
            urn: location for urn in urns if (location := self._find_location(urn)) is not None
        }
        raws: dict[EntityLocation, dict[str, Any]] = {}
        to_read_singly = set(locations.values())
        for folder, members in by_folder(locations.values()).items():
            response = list_entities(
                self.server, folder, members, fields=FIELDS[folder.type], include="all"
            )
            if response is not None:
                raws |= response
                to_read_singly -= members
                for location in members:
                    raw = raws.get(location, {})
                    self.index.add(location, None if raw.get("deleted", True) else raw["id"])

        def find(urn: str) -> ReadDataset | None:
            location = locations[urn]
            if location in to_read_singly:
                return self.read(urn)
            return self.entity(urn, location, raws[location]) if location in raws else None

        read_datasets = self.server.each(list(locations), find)
        return {each.urn: each for each in read_datasets if each is not None}

    def _find_location(self, urn: str) -> EntityLocation | None:
        """The location of a dataset, or None if its service does not exist."""
        location = self.index.locate(urn)
        return location if location is not None and self.index.has_service(location) else None

    def entity(
        self, urn: str, location: EntityLocation, raw: dict[str, Any], *, edges: bool = True
    ) -> ReadDataset:
        # The server returns no edges of deleted entities.
        has_edges = edges and not raw.get("deleted")
        known = self.edges(location, raw["id"]) if has_edges else lineage.no_edges(location.parts)
        return ReadDataset(urn, location, raw, state_of(location.type, raw), known)

    def all(self, *, after: str | None = None, edges: bool = True) -> Iterator[ReadDataset]:
        """All datasets sorted by URN.

        The server sorts differently and has no request for several names. Therefore, all pages are
        first written to a temporary file, and memory only holds their offsets.
        """
        with TemporaryFile() as file:
            try:
                locations = self._write_pages(file, after)
            except IncompleteList:
                # The list changed while it was read.
                locations = self._write_pages(file, after)
            for batch in batched(sorted(locations, key=lambda each: each[0]), _PAGE_SIZE):
                raws = []
                for urn, location, offset, length in batch:
                    file.seek(offset)
                    raws.append((urn, location, msgspec.json.decode(file.read(length))))
                read_datasets = self.server.each(raws, lambda each: self.entity(*each, edges=edges))
                by_urn = {dataset.urn: dataset for dataset in read_datasets}
                yield from (by_urn[urn] for urn, _, _ in raws)

    def _write_pages(
        self, file: IO[bytes], after: str | None
    ) -> list[tuple[str, EntityLocation, int, int]]:
        """Write all pages to a file; return the offset and length of each dataset."""
        locations = []
        offset = file.seek(0)
        for location, raw in self._pages():
            urn = self._urn(location, (raw.get("extension") or {}).get(URN))
            if after is not None and urn <= after:
                continue
            line = msgspec.json.encode(raw)
            file.write(line)
            locations.append((urn, location, offset, len(line)))
            offset += len(line)
        return locations

    def count(self) -> int:
        """The number of datasets, including hidden ones."""
        total = sum(self.server.total(entity_type.route) for entity_type in DATASET_TYPES.values())
        lumos_entities = self.server.total(_CONTAINERS, service=LUMOS_SERVICE)
        # Only containers at the top can be placeholders for parents.
        roots = self.server.pages(_CONTAINERS, fields="extension", root=True)
        return total - lumos_entities - sum(map(is_placeholder_parent, roots))

    def _pages(self) -> Iterator[tuple[EntityLocation, dict[str, Any]]]:
        for entity_type in DATASET_TYPES.values():
            pages = self.server.pages(
                entity_type.route, fields=FIELDS[entity_type.type], limit=_PAGE_SIZE, whole=True
            )
            for raw in pages:
                parts = split_fqn(raw["fullyQualifiedName"])
                if parts[0] != LUMOS_SERVICE and not is_placeholder_parent(raw):
                    yield EntityLocation(entity_type.type, parts), raw

    def _urn(self, location: EntityLocation, stored_urn: Any) -> str:
        """The URN of a dataset; if its name is shortened, Lumos has stored it as `stored_urn`."""
        is_shortened = isinstance(stored_urn, str) and location.is_shortened
        if is_shortened and self.index.locate(stored_urn) == location:
            return str(stored_urn)
        return str(self.index.names.urn(location))

    def edges(self, location: EntityLocation, id: str) -> Edges:
        edges: dict[str, NativeEdge] = {}
        others: dict[str, NativeEdge] = {}
        for node, details in self.server.upstream_edges(location.type, id, fqn=location.fqn):
            type, fqn = node["type"], node["fullyQualifiedName"]
            parts = split_fqn(fqn)
            if parts[0] == LUMOS_SERVICE:
                continue
            native = NativeEdge(node["id"], type, parts, lineage.columns_in(details), details)
            if type in DATASET_TYPES:
                start = EntityLocation(type, parts)
                written = self.index.written_urn(start, native.id) if start.is_shortened else None
                edges[self._urn(start, written)] = native
            else:
                others[urn_of(type, fqn)] = native
        return Edges(location.parts, edges, self._exists, others)

    def _exists(self, id: str) -> bool:
        """Whether an entity exists and is not hidden, so that the server must have its edges."""
        routes = (entity_type.route for entity_type in DATASET_TYPES.values())
        return any(self.server.get(f"{route}/{id}") is not None for route in routes)
