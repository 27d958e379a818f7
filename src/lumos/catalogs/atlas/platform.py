"""The catalog: an Apache Atlas server."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Self

from lumos.catalogs import interface
from lumos.catalogs.atlas import types
from lumos.catalogs.atlas.entries import NATIVE, AtlasEntity
from lumos.catalogs.atlas.items import AtlasItems, AtlasTerms
from lumos.catalogs.atlas.reader import AtlasReader
from lumos.catalogs.atlas.server import KIND, AtlasServer
from lumos.catalogs.atlas.writer import BATCH_SIZE, AtlasWriter
from lumos.catalogs.cleanup import CleansUp
from lumos.catalogs.interface import (
    NO_FILTERS,
    AspectStorage,
    CatalogItem,
    FailedEntry,
    Filters,
    WrittenEntry,
)
from lumos.catalogs.search import search_entries
from lumos.config.platforms import AtlasPlatform
from lumos.errors import MissingDependency, MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset
from lumos.model.urn import Urn


class _Opened(NamedTuple):
    server: AtlasServer
    reader: AtlasReader
    writer: AtlasWriter
    items: AtlasItems


class Atlas(
    interface.Platform, interface.HasAddress, interface.Connects, interface.WritesMany,
    interface.MergesWrites, interface.Searches, interface.StoresItems, CleansUp,
):  # fmt: skip
    """An Apache Atlas server; the first call connects."""

    kind: ClassVar[str] = KIND
    native: ClassVar[frozenset[str]] = NATIVE
    batch_size: ClassVar[int] = BATCH_SIZE

    def __init__(self, settings: Any) -> None:
        if find_spec("httpx") is None:
            raise MissingDependency("The platform 'atlas'", "httpx", "atlas")
        if settings is None:
            raise MisuseError(
                "The platform 'atlas' needs the address of its server. Set "
                "platform_config.atlas.server, or write atlas:http://localhost:21000."
            )
        self._settings: AtlasPlatform = settings
        # The entities that were read last, because usually they are written next.
        self._read: dict[str, AtlasEntity | None] = {}

    @classmethod
    def at(cls, address: str, configured: Any = None) -> Self:
        settings = AtlasPlatform(server=address) if configured is None else configured
        return cls(settings.at(address))

    @property
    def name(self) -> str:
        return f"{KIND}:{self._settings.address}"

    def check(self) -> str:
        server = self._opened.server
        version = server.version()
        return f"Atlas {version} at {self._settings.address}, as {server.user() or 'anonymous'}"

    def close(self) -> None:
        if "_opened" in self.__dict__:
            self._opened.server.close()
            del self.__dict__["_opened"]
        self._read = {}

    def emit(self, dataset: Dataset) -> None:
        self.write(CatalogEntry.of(dataset))

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        reader = self._opened.reader
        entities = reader.many(urns)
        self._read = {urn: entities.get(urn) for urn in urns}
        return {
            urn: reader.entry(urn, entity)
            for urn, entity in entities.items()
            if not entity.attributes.get("placeholder")
        }

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        reader = self._opened.reader
        for urn, entity in reader.all(after=after):
            yield reader.entry(urn, entity)

    def count(self) -> int:
        server = self._opened.server
        return server.count(types.DATASET) if types.DATASET in server.types else 0

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        # Atlas's own search finds whole words only, and not in packed aspects.
        return search_entries(self.export(), text, filters, limit=limit)

    def put_many(
        self,
        entries: Sequence[CatalogEntry],
        *,
        current: Mapping[str, CatalogEntry | None],  # noqa: ARG002
    ) -> Iterator[WrittenEntry | FailedEntry]:
        unread = [entry.urn for entry in entries if entry.urn not in self._read]
        known = {**self._read, **self._opened.reader.many(unread)}
        self._read = {}
        writer = self._opened.writer
        changes = []
        for entry in entries:
            change = writer.change(entry, known.get(entry.urn))
            if change.is_needed:
                changes.append(change)
            else:
                yield WrittenEntry(urn=entry.urn, changed=False, held=change.storage)
        for start in range(0, len(changes), BATCH_SIZE):
            yield from writer.write(changes[start : start + BATCH_SIZE])

    def as_stored(self, entry: CatalogEntry) -> CatalogEntry:
        Urn.parse(entry.urn)
        return entry

    def storage_of(self, entry: CatalogEntry) -> dict[str, AspectStorage]:
        return self._opened.reader.entries.render(entry)[1]

    def erase(self, urn: str) -> None:
        self.erase_many([urn])

    def erase_many(self, urns: Sequence[str]) -> None:
        self._read = {}
        self._opened.writer.erase(urns)

    def items(self) -> Iterator[CatalogItem]:
        return self._opened.items.all()

    def get_item(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        return self._opened.items.get(type, key)

    def put_item(self, item: CatalogItem) -> None:
        self._opened.items.put(item)

    def item_as_stored(self, item: CatalogItem) -> CatalogItem:
        return item

    def erase_item(self, item: CatalogItem) -> None:
        self._opened.items.erase(item)

    def clean_up(self) -> None:
        self._read = {}
        self._opened.writer.remove_placeholders()

    @cached_property
    def _opened(self) -> _Opened:
        server = AtlasServer(self._settings)
        terms = AtlasTerms(server)
        reader = AtlasReader(server, terms)
        writer = AtlasWriter(server, terms, reader)
        return _Opened(server, reader, writer, AtlasItems(server, terms))
