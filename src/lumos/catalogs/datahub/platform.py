"""The catalog: entries and items of a DataHub server."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self

import msgspec

from lumos.catalogs.datahub.aspects import CATALOG, Entity
from lumos.catalogs.datahub.dataset import NATIVE, merge_sides
from lumos.catalogs.datahub.reader import DATASET, DataHubReader, names_of
from lumos.catalogs.datahub.server import KIND, Gms, check_installed
from lumos.catalogs.datahub.server_items import ServerItems
from lumos.catalogs.datahub.server_model import DataHubModel
from lumos.catalogs.datahub.writer import (
    Change,
    WriteJob,
    change_entity,
    create_entity,
    plan_job,
    refuse_name,
    send_jobs,
)
from lumos.catalogs.http import Caller
from lumos.catalogs.interface import (
    NO_FILTERS,
    Connects,
    Filters,
    HasAddress,
    HoldsItems,
    Item,
    KnowsPeople,
    MergesWrites,
    Platform,
    Refused,
    Searches,
    WritesMany,
    WrittenEntry,
    each_or_raise,
)
from lumos.catalogs.search import search_entries
from lumos.config.platforms import DatahubPlatform
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset


class _Parts(NamedTuple):
    gms: Gms
    reading: DataHubReader
    items: ServerItems


class Datahub(
    Platform, HasAddress, Connects, WritesMany, MergesWrites, KnowsPeople, Searches, HoldsItems
):
    """A DataHub server."""

    kind: ClassVar[str] = KIND
    native: ClassVar[frozenset[str]] = NATIVE
    most: ClassVar[int] = 1_000
    shows_display_names: ClassVar[bool] = True

    def __init__(self, settings: Any, caller: Caller | None = None) -> None:
        check_installed()
        self._settings: DatahubPlatform = settings or DatahubPlatform()
        self._caller = caller

    @classmethod
    def at(cls, address: str, configured: Any = None) -> Self:
        settings = DatahubPlatform() if configured is None else configured
        return cls(settings.at(address))

    @property
    def name(self) -> str:
        return f"{self.kind}:{self._settings.address}"

    def check(self) -> str:
        facts = self._parts.gms.config()
        # The configuration is public; this call needs the token.
        count = self._parts.gms.count(DATASET)
        who = _owner_of(self._settings.secret())
        datasets = "" if count is None else f", {count} dataset{'' if count == 1 else 's'}"
        return (
            f"DataHub {facts.version} at {self._settings.address}{datasets}; read as {who}; "
            "whether it may write is not checked"
        )

    def close(self) -> None:
        self._parts.gms.close()

    def count(self) -> int | None:
        return self._parts.gms.count(DATASET)

    def emit(self, dataset: Dataset) -> None:
        self.write(CatalogEntry.of(dataset))

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        return self._parts.reading.get_many(urns)

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        return each_or_raise(self.export_each(after=after))

    def export_each(self, *, after: str | None = None) -> Iterator[CatalogEntry | Refused]:
        return self._parts.reading.all(after)

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        return search_entries(self.export(), text, filters, limit=limit)

    def put_many(
        self, entries: Sequence[CatalogEntry], *, over: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | Refused]:
        self._parts.reading.prepare(entries)
        for some in _without_repeats(entries):
            # Entries that need no call are yielded as soon as possible.
            at_once: list[WrittenEntry | Refused] = []
            for outcome in send_jobs(self._parts.gms, self._jobs(some, over, at_once)):
                yield from at_once
                at_once.clear()
                written: WrittenEntry = outcome.subject
                if outcome.problem is None:
                    yield written
                else:
                    yield Refused(written.urn, outcome.problem)
            yield from at_once

    def as_held(self, entry: CatalogEntry) -> CatalogEntry:
        usual, *_ = names_of(entry.urn)
        if (problem := refuse_name(self.name, usual)) is not None:
            raise problem
        if CATALOG not in entry.raw:
            return entry
        return self._parts.reading.as_read(entry)

    def sides(
        self, base: CatalogEntry | None, theirs: CatalogEntry | None, ours: CatalogEntry
    ) -> tuple[CatalogEntry | None, CatalogEntry | None]:
        return merge_sides(base, theirs, ours)

    def erase(self, urn: str) -> None:
        self.erase_many([urn])

    def erase_many(self, urns: Sequence[str]) -> None:
        reading, gms = self._parts.reading, self._parts.gms
        names = reading.there(urns)
        jobs = [
            WriteJob(name, [Change(Entity(DATASET, name), [], [], erased=True)]) for name in names
        ]
        for outcome in send_jobs(gms, jobs):
            if outcome.problem is not None:
                raise outcome.problem
            reading.erased(outcome.subject)

    def items(self) -> Iterator[Item]:
        return self._parts.items.all()

    def get_item(self, type: type[Item], key: str) -> Item | None:
        return self.get_items(type, [key]).get(key)

    def get_items(self, type: type[Item], keys: Sequence[str]) -> dict[str, Item]:
        return self._parts.items.get_many(type, keys)

    def put_item(self, item: Item) -> None:
        for refused in self.put_items([item]):
            raise refused.problem

    def put_items(self, items: Sequence[Item]) -> Iterator[Refused]:
        return self._parts.items.put_many(items)

    def item_as_held(self, item: Item) -> Item:
        return self._parts.items.as_held(item)

    def erase_item(self, item: Item) -> None:
        self._parts.items.erase(item)

    @cached_property
    def _parts(self) -> _Parts:
        gms, model = Gms(self._settings, self._caller), DataHubModel()
        reader = DataHubReader(gms, model)
        return _Parts(gms, reader, ServerItems(gms, model, reader))

    def _jobs(
        self,
        entries: Iterable[CatalogEntry],
        over: Mapping[str, CatalogEntry | None],
        at_once: list[WrittenEntry | Refused],
    ) -> Iterator[WriteJob]:
        for entry in entries:
            plan = partial(self._plan, entry, over.get(entry.urn))
            job = plan_job(self.name, entry.urn, plan)
            if isinstance(job, Refused):
                at_once.append(job)
            elif job.is_needed:
                self._parts.reading.written(entry.urn, job.changes[0].entity.urn)
                yield job
            else:
                at_once.append(job.subject)

    def _plan(self, entry: CatalogEntry, old: CatalogEntry | None) -> WriteJob:
        # Raises if the URN is invalid.
        names_of(entry.urn)
        reading = self._parts.reading
        wanted = reading.render(entry)
        if old is None:
            change = create_entity(wanted.entity, wanted.aspects)
        else:
            there = reading.render(old)
            change = change_entity(wanted.entity, there.aspects, wanted.aspects, reading.model)
        written = WrittenEntry(urn=entry.urn, changed=change.is_needed, held=wanted.held)
        return WriteJob(written, [change])


def _without_repeats(entries: Sequence[CatalogEntry]) -> Iterator[list[CatalogEntry]]:
    """Entries in their order, in parts of which none has two of one dataset."""
    part: dict[str, CatalogEntry] = {}
    for entry in entries:
        if entry.urn in part:
            yield list(part.values())
            part = {}
        part[entry.urn] = entry
    if part:
        yield list(part.values())


def _owner_of(secret: Any) -> str:
    """The user of a token; DataHub's own tokens contain it."""
    if secret is None:
        return "nobody (no token)"
    try:
        _, claims, _ = secret.reveal().split(".")
        claim = msgspec.json.decode(base64.urlsafe_b64decode(f"{claims}{'=' * (-len(claims) % 4)}"))
        return f"'{claim['actorId']}'"
    except (ValueError, KeyError, TypeError, binascii.Error, msgspec.DecodeError):
        return "the owner of the token"
