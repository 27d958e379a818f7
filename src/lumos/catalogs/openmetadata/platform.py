"""An OpenMetadata server as a catalog."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from lumos.catalogs.adapter import ServerCatalog
from lumos.catalogs.cleanup import CleansUp
from lumos.catalogs.interface import (
    NO_FILTERS,
    AspectStorage,
    CatalogItem,
    FailedEntry,
    Filters,
    NewNames,
    RenamesRaw,
    WrittenEntry,
)
from lumos.catalogs.openmetadata.entities import Entities
from lumos.catalogs.openmetadata.entries import NATIVE, OpenMetadataEntryCodec, with_canonical_edges
from lumos.catalogs.openmetadata.index import Index
from lumos.catalogs.openmetadata.labels import OpenMetadataLabels
from lumos.catalogs.openmetadata.reader import OpenMetadataReader
from lumos.catalogs.openmetadata.references import References, rename_record
from lumos.catalogs.openmetadata.server import KIND, CustomProperties, Server
from lumos.catalogs.openmetadata.writer import BATCH_SIZE, Writer
from lumos.catalogs.search import search_entries
from lumos.config.platforms import OpenmetadataPlatform
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset
from lumos.model.urn import Urn


class _OpenServer(NamedTuple):
    server: Server
    entity_index: Index
    reader: OpenMetadataReader
    writer: Writer
    items: Entities


class Openmetadata(ServerCatalog, RenamesRaw, CleansUp):
    """An OpenMetadata server; the first call connects to it."""

    kind: ClassVar[str] = KIND
    native: ClassVar[frozenset[str]] = NATIVE
    batch_size: ClassVar[int] = BATCH_SIZE
    settings_type: ClassVar[Any] = OpenmetadataPlatform

    @classmethod
    def rename_raw(cls, raw: Any, names: NewNames) -> Any:
        return rename_record(raw, names) if isinstance(raw, dict) else raw

    def check(self) -> str:
        server = self._opened.server
        version = ".".join(map(str, server.version()))
        user = server.get("users/loggedInUser") or {}
        user_text = f"as {user['name']}" if user.get("name") else "as an unknown user"
        permissions = (server.get("permissions/table") or {}).get("permissions") or ()
        allowed = {
            each.get("operation")
            for each in permissions
            if each.get("access") in ("allow", "conditionalAllow")
        }
        can_write = {"Create", "EditAll"} <= allowed or "All" in allowed
        rights = "which may write" if can_write else "which may not write"
        return f"OpenMetadata {version} at {self._settings.address}, {user_text}, {rights}"

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        opened = self._opened
        opened.entity_index.forget_missing_services()
        found = opened.reader.read_many(urns)
        self._read = {urn: found.get(urn) for urn in urns}
        return {
            urn: opened.reader.entry(dataset)
            for urn, dataset in self._read.items()
            if dataset is not None and dataset.is_dataset
        }

    def export_each(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        reader = self._opened.reader
        for dataset in reader.all(after=after):
            yield reader.entry(dataset)

    def count(self) -> int:
        return self._opened.reader.count()

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        # Without edges, which need a request for each dataset.
        reader = self._opened.reader
        entries = (reader.entry(dataset) for dataset in reader.all(edges=False))
        return search_entries(entries, text, filters, limit=limit)

    def put_many(
        self, entries: Sequence[CatalogEntry], *, current: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | FailedEntry]:
        opened = self._opened
        entries = list(map(with_canonical_edges, entries))
        unknown = [entry.urn for entry in entries if entry.urn not in self._read]
        known = {urn: dataset for urn, dataset in self._read.items() if dataset is not None}
        existing = {**known, **opened.reader.read_many(unknown)}
        # The cached datasets are outdated once their entries are written.
        for entry in entries:
            self._read.pop(entry.urn, None)
        yield from opened.writer.write(
            entries, current=current, existing=existing, newer=set(unknown)
        )
        # Items may refer to the new datasets.
        if new := [entry.urn for entry in entries if entry.urn not in existing]:
            opened.items.complete(new)

    def as_stored(self, entry: CatalogEntry) -> CatalogEntry:
        # Fields that the server would not return unchanged are stored in custom properties.
        Urn.parse(entry.urn)
        return with_canonical_edges(entry)

    def storage_of(self, entry: CatalogEntry) -> dict[str, AspectStorage]:
        return self._opened.writer.storage_of(entry)

    def erase_many(self, urns: Sequence[str]) -> None:
        self._read = {}
        self._opened.writer.erase(list(dict.fromkeys(urns)))

    def item_as_stored(self, item: CatalogItem) -> CatalogItem:
        return self._opened.items.as_stored(item)

    def clean_up(self) -> None:
        self._read = {}
        self._opened.items.clean_up()

    @cached_property
    def _opened(self) -> _OpenServer:
        server = Server(self._settings)
        properties = CustomProperties(server)
        labels = OpenMetadataLabels(server)
        codec = OpenMetadataEntryCodec(labels, properties)
        index = Index(server, properties, dict(self._settings.services))
        reader = OpenMetadataReader(server, index, codec)
        references = References(server, labels, properties, index)
        writer = Writer(reader, references)
        return _OpenServer(server, index, reader, writer, Entities(references))
