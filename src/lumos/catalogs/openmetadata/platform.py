"""The catalog: an OpenMetadata server."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    Platform,
    Refused,
    Searches,
    WritesMany,
    WrittenEntry,
)
from lumos.catalogs.openmetadata import terms
from lumos.catalogs.openmetadata.cleanup import Tidier
from lumos.catalogs.openmetadata.entity_kinds import name_of
from lumos.catalogs.openmetadata.entries import NATIVE, OpenMetadataEntries
from lumos.catalogs.openmetadata.index import Index
from lumos.catalogs.openmetadata.items import OpenMetadataItems
from lumos.catalogs.openmetadata.labels import OpenMetadataLabels
from lumos.catalogs.openmetadata.other_entities import (
    OtherEntities,
    is_of_a_glossary,
    is_thing,
    named,
)
from lumos.catalogs.openmetadata.properties import CustomProperties
from lumos.catalogs.openmetadata.reader import Held, OpenMetadataReader
from lumos.catalogs.openmetadata.references import Referring
from lumos.catalogs.openmetadata.server import KIND, Server
from lumos.catalogs.openmetadata.writer import MOST, Writer
from lumos.catalogs.search import found
from lumos.config.platforms import OpenmetadataPlatform
from lumos.errors import CatalogUnavailable, LumosError, MissingDependency, MisuseError
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Job
from lumos.model.dataset import Dataset
from lumos.model.urn import Urn


class _Opened(NamedTuple):
    server: Server
    places: Index
    reader: OpenMetadataReader
    writer: Writer
    items: OpenMetadataItems
    others: OtherEntities
    tidier: Tidier


class Openmetadata(
    Platform, HasAddress, Connects, WritesMany, MergesWrites, Searches, HoldsItems, Tidies
):
    """An OpenMetadata server; nothing is asked of it before something is asked of this."""

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
        return found(entries, text, filters, limit=limit)

    def put_many(
        self, entries: Sequence[CatalogEntry], *, over: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | Refused]:
        opened = self._opened
        unknown = [entry.urn for entry in entries if entry.urn not in self._asked]
        known = {urn: held for urn, held in self._read.items() if urn in self._asked}
        there = {**known, **opened.reader.many(unknown)}
        # What is written now is not any more as it was read.
        self._asked -= {entry.urn for entry in entries}
        yield from opened.writer.write(entries, over=over, there=there, newer=set(unknown))
        # Something may have waited for them.
        if new := [entry.urn for entry in entries if entry.urn not in there]:
            opened.others.complete(new)

    def put(self, entry: CatalogEntry) -> WrittenEntry:
        return WritesMany.put(self, entry)

    def as_held(self, entry: CatalogEntry) -> CatalogEntry:
        # Whatever the server would not give back as it is travels beside it, exactly.
        Urn.parse(entry.urn)
        return entry

    def erase(self, urn: str) -> None:
        self.erase_many([urn])

    def erase_many(self, urns: Sequence[str]) -> None:
        self._forget()
        self._opened.writer.erase(list(dict.fromkeys(urns)))

    def items(self) -> Iterator[Item]:
        opened = self._opened
        yield from opened.items.all()
        for thing in opened.others.all():
            yield terms.as_term(thing) if is_of_a_glossary(thing) else thing

    def get_item(self, type: type[Item], key: str) -> Item | None:
        opened = self._opened
        if type is GlossaryTerm and terms.is_named_so(key):
            thing = opened.others.get(name_of(terms.TYPE, key))
            if thing is not None:
                return terms.as_term(thing)
        if type is CatalogEntity and named(key) is not None:
            return opened.others.get(key) or opened.items.get(type, key)
        return opened.items.get(type, key)

    def put_item(self, item: Item) -> None:
        for refused in self.put_items([item]):
            raise refused.problem

    def put_items(self, items: Sequence[Item]) -> Iterator[Refused]:
        opened = self._opened
        things: dict[str, CatalogEntity] = {}
        native: list[Item] = []
        foreign: list[Item] = []
        people: list[Item] = []
        for item in items:
            if (thing := _thing_of(item)) is not None:
                things[_name(item)] = thing
            if thing is not None and isinstance(item, GlossaryTerm):
                native.append(item)
            elif thing is None:
                (foreign if isinstance(item, CatalogEntity) else people).append(item)
        # Things refer to people; and where a thing has a name, nothing else is shown under it.
        yield from self._put_one_by_one(opened.items.put, people)
        refused = [*self._put_one_by_one(opened.items.release, native)]
        yield from refused
        for each in refused:
            del things[each.urn]
        names = {thing.urn: name for name, thing in things.items()}
        for each in opened.others.put_all(things.values()):
            yield Refused(names[each.urn], each.problem)
        yield from self._put_one_by_one(opened.items.put, foreign)
        if foreign:
            opened.others.complete_pipelines()

    @staticmethod
    def _put_one_by_one(put: Callable[[Any], None], items: Iterable[Item]) -> Iterator[Refused]:
        for item in items:
            try:
                put(item)
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                yield Refused(_name(item), problem)

    def item_as_held(self, item: Item) -> Item:
        return self._opened.items.as_held(item)

    def erase_item(self, item: Item) -> None:
        if (thing := _thing_of(item)) is not None:
            self._opened.others.erase(thing)
        else:
            self._opened.items.erase(item)

    def tidy(self) -> None:
        self._forget()
        self._opened.others.tidy()
        self._opened.tidier.tidy()
        self._opened.others.forget()

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
        items = OpenMetadataItems(server, labels, properties)
        others = OtherEntities(
            server, index, items.keeper, referring, items.shown_elsewhere, items.give_way
        )
        tidier = Tidier(server, index, labels, items)
        return _Opened(server, index, reader, writer, items, others, tidier)


def _name(item: Item) -> str:
    return item.urn if isinstance(item, Job | CatalogEntity) else item.name


def _thing_of(item: Item) -> CatalogEntity | None:
    """The thing of OpenMetadata's own that an item is, if it is one."""
    if isinstance(item, GlossaryTerm) and terms.is_native(item):
        return terms.as_thing(item)
    return item if isinstance(item, CatalogEntity) and is_thing(item) else None
