"""The catalog: an Apache Atlas server."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

from lumos.catalogs.adapter import ServerCatalog
from lumos.catalogs.atlas import types
from lumos.catalogs.atlas.entries import NATIVE
from lumos.catalogs.atlas.items import AtlasItems, AtlasTerms
from lumos.catalogs.atlas.reader import AtlasReader
from lumos.catalogs.atlas.server import KIND, AtlasServer
from lumos.catalogs.atlas.writer import BATCH_SIZE, AtlasWriter
from lumos.catalogs.chunks import batched
from lumos.catalogs.cleanup import CleansUp
from lumos.catalogs.http import shorten
from lumos.catalogs.interface import (
    NO_FILTERS,
    AspectStorage,
    CatalogChange,
    FailedEntry,
    Filters,
    ReadsHistory,
    WrittenEntry,
)
from lumos.catalogs.search import search_entries
from lumos.config.platforms import AtlasPlatform
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset
from lumos.model.urn import Urn

# Texts that need no escaping in Atlas's DSL.
_QUERYABLE: Final = re.compile(r"[A-Za-z0-9_.+-]+", re.ASCII)


class _OpenAtlas(NamedTuple):
    server: AtlasServer
    reader: AtlasReader
    writer: AtlasWriter
    items: AtlasItems


class Atlas(ServerCatalog, ReadsHistory, CleansUp):
    """An Apache Atlas server; the first call connects."""

    kind: ClassVar[str] = KIND
    native: ClassVar[frozenset[str]] = NATIVE
    batch_size: ClassVar[int] = BATCH_SIZE
    settings_type: ClassVar[Any] = AtlasPlatform

    def check(self) -> str:
        server = self._opened.server
        version = server.version()
        return f"Atlas {version} at {self._settings.address}, as {server.user() or 'anonymous'}"

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        reader = self._opened.reader
        entities = reader.many(urns)
        self._read = {urn: entities.get(urn) for urn in urns}
        return {
            urn: reader.entry(urn, entity)
            for urn, entity in entities.items()
            if not entity.attributes.get("placeholder")
        }

    def export_each(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        reader = self._opened.reader
        for urn, entity in reader.all(after=after):
            yield reader.entry(urn, entity)

    def count(self) -> int:
        server = self._opened.server
        return server.count(types.DATASET) if types.DATASET in server.types else 0

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        """The datasets that contain every word; Atlas selects by platform and format.

        Atlas's own full-text search only finds whole words, and none in aspects that Lumos stores
        in properties.
        """
        opened = self._opened
        wanted = {"platform": filters.platform, "format": filters.format}
        attributes = {name: value for name, value in wanted.items() if value is not None}
        # Datasets of other tools have no such attributes; their platform is the catalog.
        can_query = attributes and filters.platform != KIND and types.DATASET in opened.server.types
        if not can_query or not all(map(_QUERYABLE.fullmatch, attributes.values())):
            return super().search(text, filters, limit=limit)
        found = opened.reader.with_attributes(**attributes)
        entries = (opened.reader.entry(urn, entity) for urn, entity in found)
        return search_entries(entries, text, filters, limit=limit)

    def history(self, urn: str) -> Iterator[CatalogChange]:
        opened = self._opened
        entities = opened.reader.versions([urn]).get(urn) or opened.reader.many([urn]).values()
        changes = [
            CatalogChange(
                at=datetime.fromtimestamp(each["timestamp"] / 1000, UTC),
                author=each.get("user") or "",
                action=each.get("action") or "",
                details=shorten(each.get("details") or ""),
                column=column,
            )
            for entity in entities
            for column, part in ((None, entity), *entity.columns.items())
            for each in opened.server.audit(part.guid)
        ]
        return iter(sorted(changes, key=lambda each: each.at, reverse=True))

    def put_many(
        self,
        entries: Sequence[CatalogEntry],
        *,
        current: Mapping[str, CatalogEntry | None],  # noqa: ARG002
    ) -> Iterator[WrittenEntry | FailedEntry]:
        unread = [entry.urn for entry in entries if entry.urn not in self._read]
        known = {**self._read, **self._opened.reader.many(unread)}
        self._read = {}
        self._opened.reader.find_targets(entries)
        writer = self._opened.writer
        changes = []
        for entry in entries:
            change = writer.change(entry, known.get(entry.urn))
            if change.is_needed:
                changes.append(change)
            else:
                yield WrittenEntry(urn=entry.urn, changed=False, held=change.storage)
        for batch in batched(changes, BATCH_SIZE):
            yield from writer.write(batch)

    def as_stored(self, entry: CatalogEntry) -> CatalogEntry:
        Urn.parse(entry.urn)
        return entry

    def storage_of(self, entry: CatalogEntry) -> dict[str, AspectStorage]:
        return self._opened.reader.codec.render(entry)[1]

    def erase_many(self, urns: Sequence[str]) -> None:
        self._read = {}
        self._opened.writer.erase(urns)

    def clean_up(self) -> None:
        self._read = {}
        self._opened.writer.remove_placeholders()

    @cached_property
    def _opened(self) -> _OpenAtlas:
        server = AtlasServer(self._settings)
        terms = AtlasTerms(server)
        reader = AtlasReader(server, terms)
        writer = AtlasWriter(server, terms, reader)
        return _OpenAtlas(server, reader, writer, AtlasItems(server, terms))
