"""A DataHub server as a catalog."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self

import msgspec

from lumos.catalogs.datahub.aspects import CATALOG, Entity
from lumos.catalogs.datahub.dataset import NATIVE, adjust_merge_inputs
from lumos.catalogs.datahub.lineage import upstream_urns
from lumos.catalogs.datahub.names import check_dataset_urn
from lumos.catalogs.datahub.reader import DATASET, DataHubReader, possible_datahub_urns
from lumos.catalogs.datahub.server import KIND, Gms, check_installed
from lumos.catalogs.datahub.server_items import ServerItems
from lumos.catalogs.datahub.server_model import DataHubModel
from lumos.catalogs.datahub.writer import (
    Change,
    WriteJob,
    change_entity,
    check_urn,
    create_entity,
    plan_job,
    send_jobs,
)
from lumos.catalogs.http import Caller
from lumos.catalogs.interface import (
    NO_FILTERS,
    AspectStorage,
    CatalogItem,
    Connects,
    FailedEntry,
    Filters,
    HasAddress,
    MergesWrites,
    Platform,
    Searches,
    SeparatesUserEdits,
    StoresItems,
    WritesMany,
    WrittenEntry,
    each_or_raise,
)
from lumos.catalogs.search import search_entries
from lumos.config.platforms import DatahubPlatform
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset


class _Connection(NamedTuple):
    gms: Gms
    reader: DataHubReader
    items: ServerItems


class Datahub(
    Platform,
    HasAddress,
    Connects,
    WritesMany,
    MergesWrites,
    SeparatesUserEdits,
    Searches,
    StoresItems,
):
    """A DataHub server."""

    kind: ClassVar[str] = KIND
    native: ClassVar[frozenset[str]] = NATIVE
    batch_size: ClassVar[int] = 1_000
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
        version = self._connection.gms.version()
        # The version is public, so check the token with another call.
        count = self._connection.gms.count(DATASET)
        user = _token_owner(self._settings.secret())
        datasets = "" if count is None else f", {count} dataset{'' if count == 1 else 's'}"
        return (
            f"DataHub {version} at {self._settings.address}{datasets}; read as {user}; "
            "write access was not checked"
        )

    def close(self) -> None:
        self._connection.gms.close()

    def count(self) -> int | None:
        return self._connection.gms.count(DATASET)

    def emit(self, dataset: Dataset) -> None:
        self.write(CatalogEntry.of(dataset))

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        return self._connection.reader.get_many(urns)

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        return each_or_raise(self.export_each(after=after))

    def export_each(self, *, after: str | None = None) -> Iterator[CatalogEntry | FailedEntry]:
        return self._connection.reader.all(after)

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        return search_entries(self.export(), text, filters, limit=limit)

    def put_many(
        self, entries: Sequence[CatalogEntry], *, current: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | FailedEntry]:
        self._connection.reader.look_up_datasets(
            urn for entry in entries for urn in (entry.urn, *upstream_urns(entry))
        )
        for part in _without_repeats(entries):
            # Results of entries that need no call are yielded as soon as possible.
            finished: list[WrittenEntry | FailedEntry] = []
            for outcome in send_jobs(self._connection.gms, self._jobs(part, current, finished)):
                yield from finished
                finished.clear()
                written: WrittenEntry = outcome.subject
                if outcome.problem is None:
                    yield written
                else:
                    yield FailedEntry(written.urn, outcome.problem)
            yield from finished

    def as_stored(self, entry: CatalogEntry) -> CatalogEntry:
        check_dataset_urn(entry.urn)
        if (problem := check_urn(self.name, possible_datahub_urns(entry.urn)[0])) is not None:
            raise problem
        if CATALOG not in entry.raw:
            return entry
        return self._connection.reader.as_stored(entry)

    def storage_of(self, entry: CatalogEntry) -> dict[str, AspectStorage]:
        return self._connection.reader.render(entry).storage

    def adjust_for_merge(
        self, base: CatalogEntry | None, theirs: CatalogEntry | None, ours: CatalogEntry
    ) -> tuple[CatalogEntry | None, CatalogEntry | None]:
        return adjust_merge_inputs(base, theirs, ours)

    def erase(self, urn: str) -> None:
        self.erase_many([urn])

    def erase_many(self, urns: Sequence[str]) -> None:
        reader = self._connection.reader
        jobs = [
            WriteJob(name, [Change(Entity(DATASET, name), [], [], is_erased=True)])
            for name in reader.find_existing(urns)
        ]
        for outcome in send_jobs(self._connection.gms, jobs):
            if outcome.problem is not None:
                raise outcome.problem
            reader.naming.remove(outcome.subject)

    def items(self) -> Iterator[CatalogItem]:
        return self._connection.items.all()

    def get_item(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        return self.get_items(type, [key]).get(key)

    def get_items(self, type: type[CatalogItem], keys: Sequence[str]) -> dict[str, CatalogItem]:
        return self._connection.items.get_many(type, keys)

    def put_item(self, item: CatalogItem) -> None:
        for refused in self.put_items([item]):
            raise refused.problem

    def put_items(self, items: Sequence[CatalogItem]) -> Iterator[FailedEntry]:
        return self._connection.items.put_many(items)

    def item_as_stored(self, item: CatalogItem) -> CatalogItem:
        return self._connection.items.as_stored(item)

    def erase_item(self, item: CatalogItem) -> None:
        self._connection.items.erase(item)

    @cached_property
    def _connection(self) -> _Connection:
        gms, model = Gms(self._settings, self._caller), DataHubModel()
        reader = DataHubReader(gms, model)
        return _Connection(gms, reader, ServerItems(gms, model, reader))

    def _jobs(
        self,
        entries: Iterable[CatalogEntry],
        current: Mapping[str, CatalogEntry | None],
        finished: list[WrittenEntry | FailedEntry],
    ) -> Iterator[WriteJob]:
        for entry in entries:
            plan = partial(self._plan, entry, current.get(entry.urn))
            job = plan_job(self.name, entry.urn, plan)
            if isinstance(job, FailedEntry):
                finished.append(job)
            elif job.is_needed:
                self._connection.reader.mark_written(entry.urn, job.changes[0].entity.urn)
                yield job
            else:
                finished.append(job.subject)

    def _plan(self, entry: CatalogEntry, old: CatalogEntry | None) -> WriteJob:
        check_dataset_urn(entry.urn)
        reader = self._connection.reader
        wanted = reader.render(entry)
        if old is None:
            change = create_entity(wanted.entity, wanted.aspects)
        else:
            before = reader.render(old)
            change = change_entity(wanted.entity, before.aspects, wanted.aspects, reader.model)
        written = WrittenEntry(urn=entry.urn, changed=change.is_needed, held=wanted.storage)
        return WriteJob(written, [change])


def _without_repeats(entries: Sequence[CatalogEntry]) -> Iterator[list[CatalogEntry]]:
    """Split entries, in order, into parts without a repeated dataset."""
    part: dict[str, CatalogEntry] = {}
    for entry in entries:
        if entry.urn in part:
            yield list(part.values())
            part = {}
        part[entry.urn] = entry
    if part:
        yield list(part.values())


def _token_owner(secret: Any) -> str:
    """The user of a token, which DataHub's own tokens contain."""
    if secret is None:
        return "nobody (no token)"
    try:
        _, claims, _ = secret.reveal().split(".")
        claim = msgspec.json.decode(base64.urlsafe_b64decode(f"{claims}{'=' * (-len(claims) % 4)}"))
        return f"'{claim['actorId']}'"
    except (ValueError, KeyError, TypeError, binascii.Error, msgspec.DecodeError):
        return "the owner of the token"
