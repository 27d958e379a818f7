"""An OpenMetadata server as a catalog."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Self

from lumos.catalogs.cleanup import CleansUp
from lumos.catalogs.interface import (
    NO_FILTERS,
    AspectStorage,
    CatalogItem,
    Connects,
    FailedEntry,
    Filters,
    HasAddress,
    MergesWrites,
    NewNames,
    Platform,
    RenamesRaw,
    Searches,
    StoresItems,
    WritesMany,
    WrittenEntry,
)
from lumos.catalogs.openmetadata.entities import Entities
from lumos.catalogs.openmetadata.entries import NATIVE, OpenMetadataEntries, with_canonical_edges
from lumos.catalogs.openmetadata.index import Index
from lumos.catalogs.openmetadata.labels import OpenMetadataLabels
from lumos.catalogs.openmetadata.properties import CustomProperties
from lumos.catalogs.openmetadata.reader import OpenMetadataReader, ReadDataset
from lumos.catalogs.openmetadata.references import References
from lumos.catalogs.openmetadata.renaming import rename_record
from lumos.catalogs.openmetadata.server import KIND, Server
from lumos.catalogs.openmetadata.writer import BATCH_SIZE, Writer
from lumos.catalogs.search import search_entries
from lumos.config.platforms import OpenmetadataPlatform
from lumos.errors import MissingDependency, MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset
from lumos.model.urn import Urn


class _Opened(NamedTuple):
    server: Server
    entity_index: Index
    reader: OpenMetadataReader
    writer: Writer
    entities: Entities


class Openmetadata(
    Platform,
    HasAddress,
    Connects,
    WritesMany,
    MergesWrites,
    Searches,
    StoresItems,
    RenamesRaw,
    CleansUp,
):
    """An OpenMetadata server; the first call connects to it."""

    kind: ClassVar[str] = KIND
    native: ClassVar[frozenset[str]] = NATIVE
    batch_size: ClassVar[int] = BATCH_SIZE

    def __init__(self, settings: Any) -> None:
        if find_spec("httpx") is None:
            raise MissingDependency("The platform 'openmetadata'", "httpx", "openmetadata")
        if settings is None:
            raise MisuseError(
                "The platform 'openmetadata' needs the address of its server, as 'server' under "
                "platform_config.openmetadata, or as in openmetadata:https://catalog.example.com."
            )
        self._settings: OpenmetadataPlatform = settings
        # The datasets that were requested last, and the existing ones of them.
        self._requested: set[str] = set()
        self._read: dict[str, ReadDataset] = {}

    @classmethod
    def rename_raw(cls, raw: Any, names: NewNames) -> Any:
        return rename_record(raw, names) if isinstance(raw, dict) else raw

    @classmethod
    def at(cls, address: str, configured: Any = None) -> Self:
        settings = OpenmetadataPlatform(server=address) if configured is None else configured
        return cls(settings.at(address))

    @property
    def name(self) -> str:
        return f"{self.kind}:{self._settings.address}"

    def check(self) -> str:
        server = self._opened.server
        version = ".".join(map(str, server.version()))
        user = server.get("users/loggedInUser") or {}
        user_text = f"as {user['name']}" if user.get("name") else "as an unknown user"
        rights = "which may write" if self._can_write() else "which may not write"
        return f"OpenMetadata {version} at {self._settings.address}, {user_text}, {rights}"

    def _can_write(self) -> bool:
        response = self._opened.server.get("permissions/table") or {}
        allowed = {
            each.get("operation")
            for each in response.get("permissions") or ()
            if each.get("access") in ("allow", "conditionalAllow")
        }
        return {"Create", "EditAll"} <= allowed or "All" in allowed

    def close(self) -> None:
        if "_opened" in self.__dict__:
            self._opened.server.close()
            del self.__dict__["_opened"]
        self._clear_cache()

    def emit(self, dataset: Dataset) -> None:
        self.write(CatalogEntry.of(dataset))

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        opened = self._opened
        opened.entity_index.look_again_for_missing_services()
        # Cache the entities, because usually they are written next.
        self._read = opened.reader.read_many(urns)
        self._requested = set(urns)
        return {
            urn: opened.reader.entry(self._read[urn])
            for urn in dict.fromkeys(urns)
            if urn in self._read and self._read[urn].is_dataset
        }

    def get(self, urn: str) -> CatalogEntry | None:
        return self.get_many([urn]).get(urn)

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        reader = self._opened.reader
        for dataset in reader.all(after=after):
            yield reader.entry(dataset)

    def count(self) -> int:
        return self._opened.reader.count()

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        # The server's search lags behind, ends at 10,000 and does not cover packed fields.
        reader = self._opened.reader
        entries = (reader.entry(dataset) for dataset in reader.all(edges=False))
        return search_entries(entries, text, filters, limit=limit)

    def put_many(
        self, entries: Sequence[CatalogEntry], *, current: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | FailedEntry]:
        opened = self._opened
        entries = list(map(with_canonical_edges, entries))
        unknown = [entry.urn for entry in entries if entry.urn not in self._requested]
        known = {urn: dataset for urn, dataset in self._read.items() if urn in self._requested}
        existing = {**known, **opened.reader.read_many(unknown)}
        # The cache is outdated for the entries that are written.
        self._requested -= {entry.urn for entry in entries}
        yield from opened.writer.write(
            entries, current=current, existing=existing, newer=set(unknown)
        )
        # Items may refer to the new datasets.
        if new := [entry.urn for entry in entries if entry.urn not in existing]:
            opened.entities.complete(new)

    def put(self, entry: CatalogEntry) -> WrittenEntry:
        return WritesMany.put(self, entry)

    def as_stored(self, entry: CatalogEntry) -> CatalogEntry:
        # Fields that the server would not return unchanged are packed.
        Urn.parse(entry.urn)
        return with_canonical_edges(entry)

    def storage_of(self, entry: CatalogEntry) -> dict[str, AspectStorage]:
        return self._opened.writer.storage_of(entry)

    def erase(self, urn: str) -> None:
        self.erase_many([urn])

    def erase_many(self, urns: Sequence[str]) -> None:
        self._clear_cache()
        self._opened.writer.erase(list(dict.fromkeys(urns)))

    def items(self) -> Iterator[CatalogItem]:
        return self._opened.entities.all()

    def get_item(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        return self._opened.entities.get(type, key)

    def put_item(self, item: CatalogItem) -> None:
        for refused in self.put_items([item]):
            raise refused.problem

    def put_items(self, items: Sequence[CatalogItem]) -> Iterator[FailedEntry]:
        return self._opened.entities.put_all(items)

    def item_as_stored(self, item: CatalogItem) -> CatalogItem:
        return self._opened.entities.as_stored(item)

    def erase_item(self, item: CatalogItem) -> None:
        self._opened.entities.erase(item)

    def clean_up(self) -> None:
        self._clear_cache()
        self._opened.entities.clean_up()

    def _clear_cache(self) -> None:
        self._requested, self._read = set(), {}

    @cached_property
    def _opened(self) -> _Opened:
        server = Server(self._settings)
        properties = CustomProperties(server)
        labels = OpenMetadataLabels(server)
        entries = OpenMetadataEntries(labels, properties.definitions)
        index = Index(server, properties, dict(self._settings.services))
        reader = OpenMetadataReader(server, index, entries)
        references = References(server, labels, properties, index)
        writer = Writer(server, index, entries, labels, properties, reader, references)
        items = Entities(server, index, labels, properties, references)
        return _Opened(server, index, reader, writer, items)
