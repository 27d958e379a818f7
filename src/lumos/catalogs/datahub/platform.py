"""A DataHub server as a catalog."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import msgspec

from lumos.catalogs.adapter import ServerCatalog
from lumos.catalogs.datahub.aspects import CATALOG, Entity
from lumos.catalogs.datahub.dataset import DataHubCatalog
from lumos.catalogs.datahub.lineage import upstream_urns
from lumos.catalogs.datahub.names import check_dataset_urn
from lumos.catalogs.datahub.reader import (
    DATASET,
    DataHubReader,
    ServerItems,
    as_server_returns,
    possible_datahub_urns,
)
from lumos.catalogs.datahub.server import KIND, Gms
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
    AspectStorage,
    CatalogItem,
    FailedEntry,
    NormalizesRaw,
    WrittenEntry,
)
from lumos.config.platforms import DatahubPlatform
from lumos.model.catalog import CatalogEntry


class _OpenServer(NamedTuple):
    server: Gms
    reader: DataHubReader
    items: ServerItems


class Datahub(DataHubCatalog, NormalizesRaw, ServerCatalog):
    """A DataHub server."""

    kind: ClassVar[str] = KIND
    batch_size: ClassVar[int] = 1_000
    settings_type: ClassVar[Any] = DatahubPlatform
    package: ClassVar[tuple[str, str]] = ("datahub", "acryl-datahub")

    def __init__(self, settings: Any, caller: Caller | None = None) -> None:
        super().__init__(settings or DatahubPlatform())
        self._caller = caller

    @classmethod
    def normalize_raw(cls, value: Any) -> Any:
        return as_server_returns(value)

    def check(self) -> str:
        version = self._opened.server.version()
        # The version is public, so check the token with another call.
        count = self._opened.server.count(DATASET)
        user = _token_owner(self._settings.secret())
        datasets = "" if count is None else f", {count} dataset{'' if count == 1 else 's'}"
        return (
            f"DataHub {version} at {self._settings.address}{datasets}; read as {user}; "
            "write access was not checked"
        )

    def close(self) -> None:
        self._opened.server.close()

    def count(self) -> int | None:
        return self._opened.server.count(DATASET)

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        return self._opened.reader.get_many(urns)

    def export_each(self, *, after: str | None = None) -> Iterator[CatalogEntry | FailedEntry]:
        return self._opened.reader.all(after)

    def put_many(
        self, entries: Sequence[CatalogEntry], *, current: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | FailedEntry]:
        self._opened.reader.look_up_datasets(
            urn for entry in entries for urn in (entry.urn, *upstream_urns(entry))
        )
        for part in _without_repeats(entries):
            # Results of entries that need no call are yielded as soon as possible.
            finished: list[WrittenEntry | FailedEntry] = []
            for outcome in send_jobs(self._opened.server, self._jobs(part, current, finished)):
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
        return self._opened.reader.as_stored(entry)

    def storage_of(self, entry: CatalogEntry) -> dict[str, AspectStorage]:
        return self._opened.reader.render(entry).storage

    def erase_many(self, urns: Sequence[str]) -> None:
        reader = self._opened.reader
        jobs = [
            WriteJob(name, [Change(Entity(DATASET, name), [], [], is_erased=True)])
            for name in reader.find_existing(urns)
        ]
        for outcome in send_jobs(self._opened.server, jobs):
            if outcome.problem is not None:
                raise outcome.problem
            reader.naming.remove(outcome.subject)

    def item_as_stored(self, item: CatalogItem) -> CatalogItem:
        return self._opened.items.as_stored(item)

    @cached_property
    def _opened(self) -> _OpenServer:
        gms, model = Gms(self._settings, self._caller), DataHubModel()
        reader = DataHubReader(gms, model)
        return _OpenServer(gms, reader, ServerItems(gms, model, reader))

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
                self._opened.reader.mark_written(entry.urn, job.changes[0].entity.urn)
                yield job
            else:
                finished.append(job.subject)

    def _plan(self, entry: CatalogEntry, old: CatalogEntry | None) -> WriteJob:
        check_dataset_urn(entry.urn)
        reader = self._opened.reader
        wanted = reader.render(entry)
        if old is None:
            change = create_entity(wanted.entity, wanted.aspects)
        else:
            before = reader.render(old)
            change = change_entity(wanted.entity, before.aspects, wanted.aspects, reader.model)
        written = WrittenEntry(urn=entry.urn, changed=change.is_needed, held=wanted.storage)
        return WriteJob(written, [change])


def _without_repeats(entries: Sequence[CatalogEntry]) -> Iterator[list[CatalogEntry]]:
    """Split entries, in order, into parts that contain no dataset twice."""
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
