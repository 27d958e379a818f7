"""Reads and writes the entities of a DataHub server that are not datasets, in batches."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

from lumos.catalogs.chunks import batched
from lumos.catalogs.datahub.aspects import AspectWrite, Entity, aspects_after, entity_of
from lumos.catalogs.datahub.items import DataHubItems, canonical_key
from lumos.catalogs.datahub.reader import DATASET, DataHubReader
from lumos.catalogs.datahub.server import (
    BATCH_SIZE,
    Gms,
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
from lumos.catalogs.interface import CatalogItem, FailedEntry, item_key
from lumos.errors import LumosError
from lumos.model.catalog import CatalogEntity

_ITEM_BATCH_SIZE: Final = 100
_PROPERTY_DEFINITION: Final = "urn:li:structuredProperty:"


class ServerItems:
    """The items of a server."""

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
        """Delete an item permanently."""
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
        """Read the entities that some items are stored in."""
        empty = self._items(_EntityBuffer(self._gms.name, {}))
        return self._load(each for type, key in keys for each in empty.stored_in(type, key))

    def _load(self, entities: Iterable[Entity]) -> tuple[DataHubItems, "_EntityBuffer"]:
        """Read entities, and look up the datasets that they refer to."""
        by_type: dict[str, list[str]] = {}
        for entity in dict.fromkeys(entities):
            if entity.type in self._types:
                by_type.setdefault(entity.type, []).append(entity.urn)
        found = {
            urn: normal
            for type, urns in by_type.items()
            for batch in batched(urns, BATCH_SIZE)
            for urn, aspects in self._gms.get_entities(type, batch).items()
            if (normal := self._model.read(Entity(type, urn), aspects))
        }
        buffer = _EntityBuffer(self._gms.name, found)
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
    """The aspects of some entities on a server, and pending changes to them."""

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
    for is_first in (True, False):
        yield from batched(
            (
                item
                for item in unique
                if item_key(item).startswith(_PROPERTY_DEFINITION) == is_first
            ),
            _ITEM_BATCH_SIZE,
        )
