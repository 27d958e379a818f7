"""The catalog: an OpenMetadata server."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Self

from lumos.catalogs.cleanup import Tidies
from lumos.catalogs.interface import (
    NO_FILTERS,
    Connects,
    Filters,
    HasAddress,
    HoldsItems,
    Item,
    MergesWrites,
    NewNames,
    Platform,
    Refused,
    RenamesRaw,
    Searches,
    WritesMany,
    WrittenEntry,
)
from lumos.catalogs.openmetadata.entities import Entities
from lumos.catalogs.openmetadata.entries import NATIVE, OpenMetadataEntries, with_canonical_edges
from lumos.catalogs.openmetadata.index import Index
from lumos.catalogs.openmetadata.labels import OpenMetadataLabels
from lumos.catalogs.openmetadata.properties import CustomProperties
from lumos.catalogs.openmetadata.reader import Held, OpenMetadataReader
from lumos.catalogs.openmetadata.references import Referring
from lumos.catalogs.openmetadata.renaming import rename_record
from lumos.catalogs.openmetadata.server import KIND, Server
from lumos.catalogs.openmetadata.writer import MOST, Writer
from lumos.catalogs.search import search_entries
from lumos.config.platforms import OpenmetadataPlatform
from lumos.errors import MissingDependency, MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset
from lumos.model.urn import Urn


class _Opened(NamedTuple):
    server: Server
    places: Index
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
    HoldsItems,
    RenamesRaw,
    Tidies,
):
    """An OpenMetadata server; it is connected to by the first call."""

    kind: ClassVar[str] = KIND
    native: ClassVar[frozenset[str]] = NATIVE
    most: ClassVar[int] = MOST

    def __init__(self, settings: Any) -> None:
        if find_spec("httpx") is None:
            raise MissingDependency("The platform 'openmetadata'", "httpx", "openmetadata")
        if settings is None:
            raise MisuseError(
                "The platform 'openmetadata' needs the address of its server, as 'server' under "
                "platform_config.openmetadata, or as in openmetadata:https://catalog.example.com."
            )
        self._settings: OpenmetadataPlatform = settings
        # What was asked for last, and what of it was there.
        self._asked: set[str] = set()
        self._read: dict[str, Held] = {}

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
        whom = f"as {user['name']}" if user.get("name") else "by somebody it does not name"
        may = "which may write" if self._may_write() else "which may not write"
        return f"OpenMetadata {version} at {self._settings.address}, {whom}, {may}"

    def _may_write(self) -> bool:
        told = self._opened.server.get("permissions/table") or {}
        allowed = {
            each.get("operation")
            for each in told.get("permissions") or ()
            if each.get("access") in ("allow", "conditionalAllow")
        }
        return {"Create", "EditAll"} <= allowed or "All" in allowed

    def close(self) -> None:
        if "_opened" in self.__dict__:
            self._opened.server.close()
            del self.__dict__["_opened"]
        self._forget()

    def emit(self, dataset: Dataset) -> None:
        self.write(CatalogEntry.of(dataset))

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        opened = self._opened
        opened.places.look_again()
        # Kept for the write that mostly follows, so that nothing is asked for twice.
        self._read = opened.reader.many(urns)
        self._asked = set(urns)
        return {
            urn: opened.reader.entry(self._read[urn])
            for urn in dict.fromkeys(urns)
            if urn in self._read and self._read[urn].is_dataset
        }

    def get(self, urn: str) -> CatalogEntry | None:
        return self.get_many([urn]).get(urn)

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        reader = self._opened.reader
        for held in reader.all(after=after):
            yield reader.entry(held)

    def count(self) -> int:
        return self._opened.reader.count()

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        # The server's own search lags behind, ends at 10,000 and knows nothing of what is carried.
        reader = self._opened.reader
        entries = (reader.entry(held) for held in reader.all(edges=False))
        return search_entries(entries, text, filters, limit=limit)

    def put_many(
        self, entries: Sequence[CatalogEntry], *, over: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | Refused]:
        opened = self._opened
        entries = list(map(with_canonical_edges, entries))
        unknown = [entry.urn for entry in entries if entry.urn not in self._asked]
        known = {urn: held for urn, held in self._read.items() if urn in self._asked}
        there = {**known, **opened.reader.many(unknown)}
        # What is written now is not any more as it was read.
        self._asked -= {entry.urn for entry in entries}
        yield from opened.writer.write(entries, over=over, there=there, newer=set(unknown))
        # Something may have waited for them.
        if new := [entry.urn for entry in entries if entry.urn not in there]:
            opened.entities.complete(new)

    def put(self, entry: CatalogEntry) -> WrittenEntry:
        return WritesMany.put(self, entry)

    def as_held(self, entry: CatalogEntry) -> CatalogEntry:
        # Whatever the server would not give back as it is travels beside it, exactly.
        Urn.parse(entry.urn)
        return with_canonical_edges(entry)

    def erase(self, urn: str) -> None:
        self.erase_many([urn])

    def erase_many(self, urns: Sequence[str]) -> None:
        self._forget()
        self._opened.writer.erase(list(dict.fromkeys(urns)))

    def items(self) -> Iterator[Item]:
        return self._opened.entities.all()

    def get_item(self, type: type[Item], key: str) -> Item | None:
        return self._opened.entities.get(type, key)

    def put_item(self, item: Item) -> None:
        for refused in self.put_items([item]):
            raise refused.problem

    def put_items(self, items: Sequence[Item]) -> Iterator[Refused]:
        return self._opened.entities.put_all(items)

    def item_as_held(self, item: Item) -> Item:
        return self._opened.entities.as_held(item)

    def erase_item(self, item: Item) -> None:
        self._opened.entities.erase(item)

    def tidy(self) -> None:
        self._forget()
        self._opened.entities.tidy()

    def _forget(self) -> None:
        self._asked, self._read = set(), {}

    @cached_property
    def _opened(self) -> _Opened:
        server = Server(self._settings)
        properties = CustomProperties(server)
        labels = OpenMetadataLabels(server)
        entries = OpenMetadataEntries(labels, properties.definitions)
        index = Index(server, properties, dict(self._settings.services))
        reader = OpenMetadataReader(server, index, entries)
        referring = Referring(server, labels, properties, index)
        writer = Writer(server, index, entries, labels, properties, reader, referring)
        items = Entities(server, index, labels, properties, referring)
        return _Opened(server, index, reader, writer, items)
