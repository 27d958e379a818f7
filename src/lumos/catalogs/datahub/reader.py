"""Reads datasets and items from a server, and looks up which DataHub URNs exist.

Converts raw records of files to the form that servers have, so that both can be compared.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache, partial
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.chunks import batched
from lumos.catalogs.datahub.aspects import (
    CATALOG,
    CHANGE_PREFIX,
    Aspects,
    AspectWrite,
    Entity,
    InvalidAspect,
    aspects_after,
    check_writes,
    entity_of,
)
from lumos.catalogs.datahub.codec import Codec
from lumos.catalogs.datahub.dataset import INSTANCE, DatasetCodec, read_instance
from lumos.catalogs.datahub.items import DataHubItems, canonical_key, codec_of, entity_of_item
from lumos.catalogs.datahub.lineage import UPSTREAM, upstream_urns
from lumos.catalogs.datahub.names import Naming, dataset_urn, is_ambiguous, parse_dataset_urn
from lumos.catalogs.datahub.server import (
    BATCH_SIZE,
    Gms,
    key_aspect,
    retry_once_if_interrupted,
    unexpected_response,
)
from lumos.catalogs.datahub.server_model import DataHubModel
from lumos.catalogs.datahub.writer import (
    Change,
    WriteJob,
    change_entity,
    create_entity,
    plan_job,
    send_jobs,
)
from lumos.catalogs.interface import AspectStorage, CatalogItem, FailedEntry, item_key
from lumos.errors import CatalogError, LumosError
from lumos.model.catalog import CatalogEntity, CatalogEntry
from lumos.model.urn import Urn

DATASET: Final = "dataset"
_READ_BATCH_SIZE: Final = 100


class RenderedEntry(NamedTuple):
    """The aspects of an entry, and how DataHub stores each of them."""

    entity: Entity
    aspects: Aspects
    storage: dict[str, AspectStorage]


class DataHubReader:
    """The datasets of a server, and their DataHub URNs."""

    def __init__(self, gms: Gms, model: DataHubModel) -> None:
        self.naming = Naming()
        self.model = model
        self._datasets = DatasetCodec(self.naming, model)
        self._gms = gms
        self._looked_up: set[str] = set()

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        candidates = {urn: possible_datahub_urns(urn) for urn in urns}
        datahub_urns = [datahub_urn for possible in candidates.values() for datahub_urn in possible]
        aspects_by_urn: dict[str, dict[str, Any]] = {}
        for response in self._gms.caller.each(
            batched(datahub_urns, BATCH_SIZE), lambda batch: self._gms.get_entities(DATASET, batch)
        ):
            aspects_by_urn.update(response)
        for datahub_urn in datahub_urns:
            self._looked_up.add(datahub_urn)
            if datahub_urn in aspects_by_urn:
                self._add_name(datahub_urn, aspects_by_urn[datahub_urn])
            else:
                self.naming.remove(datahub_urn)
        self.look_up(_upstream_datahub_urns(aspects_by_urn.values()))
        entries = {}
        for urn, possible_urns in candidates.items():
            existing = self.naming.existing_datasets().get(urn)
            if existing in possible_urns and existing in aspects_by_urn:
                entries[urn] = self._entry(urn, existing, aspects_by_urn[existing])
        return entries

    def all(self, after: str | None) -> Iterator[CatalogEntry | FailedEntry]:
        """Yield all datasets after a URN, sorted by URN; FailedEntry if one cannot be read."""
        for listed in retry_once_if_interrupted(
            lambda: self._gms.list_entities([DATASET], (key_aspect(DATASET), INSTANCE))
        ):
            self._add_name(listed.urn, listed.aspects)
        wanted = sorted(
            pair
            for pair in self.naming.existing_datasets().items()
            if after is None or pair[0] > after
        )
        for batch, aspects_by_urn in _read_ahead(self._gms, wanted):
            for urn, datahub_urn in batch:
                # Missing datasets were deleted after they were listed.
                if datahub_urn not in aspects_by_urn:
                    continue
                try:
                    entry = self._entry(urn, datahub_urn, aspects_by_urn[datahub_urn])
                except CatalogError as problem:
                    yield FailedEntry(urn, problem)
                else:
                    yield entry

    def as_stored(self, entry: CatalogEntry) -> CatalogEntry:
        """The entry that the server returns after this one is written; makes no call."""
        rendered = self.render(entry)
        return self._entry(entry.urn, rendered.entity.urn, rendered.aspects)

    def render(self, entry: CatalogEntry) -> RenderedEntry:
        """Encode an entry as aspects, and reserve the names that it uses."""
        for urn in (entry.urn, *upstream_urns(entry)):
            self.naming.reserve(urn)
        rendered = self._datasets.render(entry)
        entity, aspects = self._datasets.entity(entry.urn), aspects_after(rendered.writes)
        if CATALOG in entry.raw:
            aspects = self.model.sendable(entity, aspects)
        return RenderedEntry(entity, aspects, rendered.storage)

    def find_existing(self, urns: Sequence[str]) -> list[str]:
        """The DataHub URNs of the datasets that exist."""
        datahub_urns = {datahub_urn for urn in urns for datahub_urn in possible_datahub_urns(urn)}
        self._looked_up -= datahub_urns
        self.look_up(datahub_urns, only_ambiguous=False)
        existing = self.naming.existing_datasets()
        return [existing[urn] for urn in urns if urn in existing]

    def look_up_datasets(self, urns: Iterable[str]) -> None:
        """Look up all DataHub URNs that these datasets may have."""
        self.look_up(datahub_urn for urn in urns for datahub_urn in possible_datahub_urns(urn))

    def mark_written(self, urn: str, datahub_urn: str) -> None:
        self.naming.add(datahub_urn, Urn.parse(urn).instance or None)
        self._looked_up.add(datahub_urn)

    def look_up(self, datahub_urns: Iterable[str], *, only_ambiguous: bool = True) -> None:
        """Ask the server which DataHub URNs exist, and to which datasets they belong.

        A URN that can only belong to one dataset needs no request, unless `only_ambiguous=False`.
        """
        new = dict.fromkeys(
            datahub_urn
            for datahub_urn in datahub_urns
            if datahub_urn not in self._looked_up
            and (is_ambiguous(datahub_urn) or not only_ambiguous)
        )
        aspects = (key_aspect(DATASET), INSTANCE)
        for aspects_by_urn in self._gms.caller.each(
            batched(new, BATCH_SIZE), lambda batch: self._gms.get_entities(DATASET, batch, aspects)
        ):
            for datahub_urn, bodies in aspects_by_urn.items():
                self._add_name(datahub_urn, bodies)
        for datahub_urn in new.keys() - self._looked_up:
            self.naming.remove(datahub_urn)
        self._looked_up.update(new)

    def _add_name(self, datahub_urn: str, aspects: Mapping[str, Any]) -> None:
        self.naming.add(datahub_urn, read_instance(aspects))
        self._looked_up.add(datahub_urn)

    def _entry(self, urn: str, datahub_urn: str, aspects: Mapping[str, Any]) -> CatalogEntry:
        aspects = self.model.read(Entity(DATASET, datahub_urn), aspects)
        try:
            writes = check_writes(
                AspectWrite(aspect=each, body=body) for each, body in aspects.items()
            )
        except InvalidAspect as invalid:
            position = f"{datahub_urn} {invalid.position}"
            raise unexpected_response(self._gms.name, position, invalid.problem) from invalid
        return self._datasets.read(urn, writes)


@lru_cache(maxsize=4_096)
def possible_datahub_urns(urn: str) -> tuple[str, ...]:
    """The DataHub URNs that a dataset may have: the default one, and an unambiguous one."""
    if (parsed := parse_dataset_urn(urn)) is None:
        return ()
    default = dataset_urn(parsed)
    if not is_ambiguous(default):
        return (default,)
    return tuple(dict.fromkeys((default, dataset_urn(parsed, explicit_instance=True))))


def _upstream_datahub_urns(states: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for aspects in states:
        body = aspects.get(UPSTREAM)
        for item in (body.get("upstreams") or ()) if isinstance(body, dict) else ():
            if isinstance(datahub_urn := item.get("dataset"), str):
                yield datahub_urn


def _read_ahead(
    gms: Gms, wanted: Iterable[tuple[str, str]]
) -> Iterator[tuple[list[tuple[str, str]], dict[str, dict[str, Any]]]]:
    """Read batches of datasets in order; the next one is requested while one is processed."""
    pending: deque[Any] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="lumos-catalog") as pool:
        for batch in batched(wanted, _READ_BATCH_SIZE):
            datahub_urns = [datahub_urn for _, datahub_urn in batch]
            pending.append((batch, pool.submit(gms.get_entities, DATASET, datahub_urns)))
            if len(pending) > 1:
                earlier, response = pending.popleft()
                yield earlier, response.result()
        for batch, response in pending:
            yield batch, response.result()


_ITEM_BATCH_SIZE: Final = 100
_PROPERTY_DEFINITION: Final = "urn:li:structuredProperty:"


class ServerItems:
    """Reads and writes the items of a server."""

    def __init__(self, gms: Gms, model: DataHubModel, reader: DataHubReader) -> None:
        self._gms = gms
        self._model = model
        self._reader = reader

    def all(self) -> Iterator[CatalogItem]:
        """All items, sorted by entity type and URN."""
        types = sorted(
            type for type in self._types if type != DATASET and not self._model.is_internal(type)
        )
        listed = retry_once_if_interrupted(lambda: self._gms.list_entities(types, None))
        entities = map(entity_of, sorted(each.urn for each in listed))
        urns = [entity.urn for entity in entities if self._model.can_store(entity)]
        known = frozenset(urns)
        for batch in batched(urns, _ITEM_BATCH_SIZE):
            items, buffer = self._load(map(entity_of, batch))
            yield from items.of((entity_of(urn) for urn in batch if urn in buffer), known)

    def get_many(self, type: type[CatalogItem], keys: Sequence[str]) -> dict[str, CatalogItem]:
        """The items of one type that exist, by key."""
        found = {}
        for batch in batched(keys, _ITEM_BATCH_SIZE):
            items, _ = self._load_items([(type, key) for key in batch])
            for key in batch:
                if (item := items.get(type, key)) is not None:
                    found[key] = item
        return found

    def as_stored(self, item: CatalogItem) -> CatalogItem:
        """The item that the server returns after this one is written."""
        return self._items(_EntityBuffer(self._gms.name, {})).as_stored(item)

    def put_many(self, items: Sequence[CatalogItem]) -> Iterator[FailedEntry]:
        """Replace items; yield those that the server rejects."""
        for batch in _batches(items):
            codec, buffer = self._load_items([(type(item), item_key(item)) for item in batch])
            self._reader.look_up_datasets(
                urn
                for item in batch
                if isinstance(item, CatalogEntity)
                for urns in item.references.values()
                for urn in urns
            )
            jobs = []
            for item in batch:
                job = plan_job(
                    self._gms.name, item_key(item), partial(self._plan, codec, buffer, item)
                )
                if isinstance(job, FailedEntry):
                    yield job
                    buffer.take_changes()
                elif job.is_needed:
                    jobs.append(job)
            for outcome in send_jobs(self._gms, jobs):
                if outcome.problem is not None:
                    yield FailedEntry(outcome.subject, outcome.problem)

    def erase(self, item: CatalogItem) -> None:
        items, buffer = self._load_items([(type(item), item_key(item))])
        items.erase(item)
        for outcome in send_jobs(self._gms, [WriteJob(item_key(item), self._changes(buffer))]):
            if outcome.problem is not None:
                raise outcome.problem

    @cached_property
    def _types(self) -> frozenset[str]:
        """The entity types that the server supports; requests for others fail."""
        return self._gms.types() or self._model.types()

    def _items(self, buffer: "_EntityBuffer") -> DataHubItems:
        return DataHubItems(buffer, self._reader.naming, self._model)

    def _load_items(
        self, keys: Iterable[tuple[type[CatalogItem], str]]
    ) -> tuple[DataHubItems, "_EntityBuffer"]:
        """Read the entities in which these items are stored."""
        empty = self._items(_EntityBuffer(self._gms.name, {}))
        return self._load(each for type, key in keys for each in empty.stored_in(type, key))

    def _load(self, entities: Iterable[Entity]) -> tuple[DataHubItems, "_EntityBuffer"]:
        """Read entities, and look up the datasets that they refer to."""
        by_type: dict[str, list[str]] = {}
        for entity in dict.fromkeys(entities):
            if entity.type in self._types:
                by_type.setdefault(entity.type, []).append(entity.urn)
        aspects_by_urn = {
            urn: normal
            for type, urns in by_type.items()
            for batch in batched(urns, BATCH_SIZE)
            for urn, aspects in self._gms.get_entities(type, batch).items()
            if (normal := self._model.read(Entity(type, urn), aspects))
        }
        buffer = _EntityBuffer(self._gms.name, aspects_by_urn)
        items = self._items(buffer)
        self._reader.look_up(
            name for entity in buffer.entities() for name in items.datasets(entity)
        )
        return items, buffer

    def _plan(self, items: DataHubItems, buffer: "_EntityBuffer", item: CatalogItem) -> WriteJob:
        items.put(item)
        return WriteJob(item_key(item), self._changes(buffer))

    def _changes(self, buffer: "_EntityBuffer") -> list[Change]:
        changes = []
        for entity, before, writes in buffer.take_changes():
            aspects = aspects_after(writes)
            if not writes:
                change = Change(entity, [], [], is_erased=bool(before))
            elif before:
                change = change_entity(entity, before, aspects, self._model)
            else:
                change = create_entity(entity, aspects)
            if change.is_needed:
                changes.append(change)
        return changes


class _EntityBuffer:
    """Aspects that were read from a server, and pending changes to them."""

    def __init__(self, name: str, aspects: Mapping[str, dict[str, Any]]) -> None:
        self._name = name
        self._aspects_by_urn = dict(aspects)
        self._before: dict[Entity, dict[str, Any]] = {}
        self._writes: dict[Entity, list[AspectWrite]] = {}

    def __contains__(self, urn: str) -> bool:
        return urn in self._aspects_by_urn

    def take_changes(self) -> list[tuple[Entity, dict[str, Any], list[AspectWrite]]]:
        """Return and clear the pending changes: entity, aspects before, writes."""
        changes = [(entity, self._before[entity], new) for entity, new in self._writes.items()]
        self._before.clear()
        self._writes.clear()
        return changes

    def entities(self) -> Iterator[Entity]:
        return map(entity_of, self._aspects_by_urn)

    def writes(self, urn: str, aspect: str | None = None) -> list[AspectWrite]:
        return [
            AspectWrite(aspect=name, body=body)
            for name, body in self._aspects_by_urn.get(urn, {}).items()
            if aspect is None or name == aspect
        ]

    def replace(self, entity: Entity, writes: Sequence[AspectWrite]) -> bool:
        before = self._aspects_by_urn.get(entity.urn, {})
        if not before and not writes:
            return False
        self._before.setdefault(entity, before)
        self._writes[entity] = list(writes)
        self._aspects_by_urn[entity.urn] = aspects_after(writes)
        return True

    def error(self, position: str, problem: str) -> LumosError:
        return unexpected_response(self._name, position, problem)


def _batches(items: Sequence[CatalogItem]) -> Iterator[list[CatalogItem]]:
    """Items without duplicates; definitions of properties first, since values refer to them."""
    unique = {(type(item), canonical_key(item)): item for item in items}.values()
    for is_definition in (True, False):
        yield from batched(
            (
                item
                for item in unique
                if item_key(item).startswith(_PROPERTY_DEFINITION) == is_definition
            ),
            _ITEM_BATCH_SIZE,
        )


def as_server_returns(value: Any) -> Any:
    """An entry or item of a file as a server returns it after loading it; None if all have it.

    The raw record has no defaults, audit stamps of writes or time series, and no values that the
    fields of the entry contain.
    """
    if find_spec("datahub") is None:
        return value
    naming, model = Naming(), DataHubModel()
    in_file, on_server = (_codec(value, naming, server) for server in (None, model))
    if in_file is None or on_server is None:
        return value
    key = value.urn if isinstance(value, CatalogEntry) else canonical_key(value)
    native: Entity = in_file.entity(key)
    if not model.can_store(native):
        return None
    try:
        aspects = aspects_after(in_file.render(value).writes)
    except InvalidAspect:
        # DataHub did not write this record.
        return value
    lasting = {name: body for name, body in aspects.items() if not model.is_time_series(name)}
    normal = model.normalize(native, lasting)
    writes = [AspectWrite(aspect=name, body=body) for name, body in normal.items()]
    return msgspec.structs.replace(value, raw=on_server.read(key, writes).raw)


def _codec(value: Any, naming: Naming, server: DataHubModel | None) -> Codec[Any] | None:
    if isinstance(value, CatalogEntry):
        for urn in (value.urn, *upstream_urns(value)):
            naming.reserve(urn)
        return DatasetCodec(naming, server)
    native = entity_of_item(type(value), item_key(value))
    if native is None or native.urn.startswith(CHANGE_PREFIX):
        return None
    return codec_of(type(value), native, naming, server)
