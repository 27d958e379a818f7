"""What is no dataset: entities of any other type, read and written some at a time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

from lumos.catalogs.datahub.aspects import AspectWrite, Entity, aspects_after, entity_of
from lumos.catalogs.datahub.items import DataHubItems, canonical_key, key_of
from lumos.catalogs.datahub.reader import DATASET, DataHubReader
from lumos.catalogs.datahub.server import Gms, pages_of, repeat_if_broken
from lumos.catalogs.datahub.server_model import DataHubModel
from lumos.catalogs.datahub.writer import (
    Change,
    WriteJob,
    change_entity,
    create_entity,
    plan_job,
    send_jobs,
)
from lumos.catalogs.interface import Item, Refused
from lumos.errors import CatalogError, LumosError
from lumos.model.catalog import CatalogEntity

_AT_ONCE: Final = 100
_DEFINITION: Final = "urn:li:structuredProperty:"


class ServerItems:
    """The items of a server."""

    def __init__(self, gms: Gms, model: DataHubModel, reader: DataHubReader) -> None:
        self._gms = gms
        self._model = model
        self._reader = reader

    def all(self) -> Iterator[Item]:
        """Every item, by the types of their entities and their URNs."""
        types = sorted(
            type for type in self._types if type != DATASET and not self._model.is_internal(type)
        )
        listed = repeat_if_broken(lambda: self._gms.list_entities(types, None))
        entities = map(entity_of, sorted(found.urn for found in listed))
        urns = [entity.urn for entity in entities if self._model.holds(entity)]
        known = frozenset(urns)
        for page in pages_of(urns, _AT_ONCE):
            held = self._read_entities(map(entity_of, page))
            items = self._items(held)
            self._learn_datasets(items, held)
            yield from items.of((entity_of(urn) for urn in page if urn in held), known)

    def get_many(self, type: type[Item], keys: Sequence[str]) -> dict[str, Item]:
        """Those of one type that are there."""
        found = {}
        for page in pages_of(keys, _AT_ONCE):
            items, _ = self._with([(type, key) for key in page])
            for key in page:
                if (item := items.get(type, key)) is not None:
                    found[key] = item
        return found

    def as_held(self, item: Item) -> Item:
        return self._items(_ReadEntities(self._gms.name, {})).as_held(item)

    def put_many(self, wanted: Sequence[Item]) -> Iterator[Refused]:
        """Makes items exactly these; yields those that the server refuses."""
        for page in _pages(wanted):
            items, held = self._with([(type(item), key_of(item)) for item in page])
            self._reader.prepare_names(
                urn
                for item in page
                if isinstance(item, CatalogEntity)
                for urns in item.references.values()
                for urn in urns
            )
            jobs = []
            for item in page:
                job = plan_job(self._gms.name, key_of(item), partial(self._plan, items, held, item))
                if isinstance(job, Refused):
                    yield job
                    held.take_changes()
                elif job.is_needed:
                    jobs.append(job)
            for outcome in send_jobs(self._gms, jobs):
                if outcome.problem is not None:
                    yield Refused(outcome.subject, outcome.problem)

    def erase(self, item: Item) -> None:
        items, held = self._with([(type(item), key_of(item))])
        items.erase(item)
        for outcome in send_jobs(self._gms, [WriteJob(key_of(item), self._changes(held))]):
            if outcome.problem is not None:
                raise outcome.problem

    @cached_property
    def _types(self) -> frozenset[str]:
        """What may be asked for: a server is asked in vain for types that it does not know."""
        return self._gms.types() or self._model.types()

    def _with(
        self, wanted: Iterable[tuple[type[Item], str]]
    ) -> tuple[DataHubItems, "_ReadEntities"]:
        """Items over all that has to be known of some of them."""
        none = self._items(_ReadEntities(self._gms.name, {}))
        held = self._read_entities(each for type, key in wanted for each in none.needed(type, key))
        items = self._items(held)
        self._learn_datasets(items, held)
        return items, held

    def _items(self, held: "_ReadEntities") -> DataHubItems:
        return DataHubItems(held, self._reader.naming, self._model)

    def _learn_datasets(self, items: DataHubItems, held: "_ReadEntities") -> None:
        """Asks which datasets the names mean that entities refer to."""
        self._reader.learn_names(
            name for entity in held.entities() for name in items.datasets(entity)
        )

    def _read_entities(self, entities: Iterable[Entity]) -> "_ReadEntities":
        by_type: dict[str, list[str]] = {}
        for entity in dict.fromkeys(entities):
            if entity.type in self._types:
                by_type.setdefault(entity.type, []).append(entity.urn)
        found = {
            urn: normal
            for type, urns in by_type.items()
            for page in pages_of(urns)
            for urn, aspects in self._gms.get_entities(type, page).items()
            if (normal := self._model.read(Entity(type, urn), aspects))
        }
        return _ReadEntities(self._gms.name, found)

    def _plan(self, items: DataHubItems, held: "_ReadEntities", item: Item) -> WriteJob:
        items.put(item)
        return WriteJob(key_of(item), self._changes(held))

    def _changes(self, held: "_ReadEntities") -> list[Change]:
        changes = []
        for entity, old, new in held.take_changes():
            if new:
                aspects = aspects_after(new)
                made = (
                    change_entity(entity, old, aspects, self._model)
                    if old
                    else create_entity(entity, aspects)
                )
            else:
                made = Change(entity, [], [], erased=bool(old))
            if made.is_needed:
                changes.append(made)
        return changes


class _ReadEntities:
    """The writes about some entities as a server has them, and what shall replace them."""

    has_unnamed: bool = False

    def __init__(self, name: str, aspects: Mapping[str, dict[str, Any]]) -> None:
        self._name = name
        self._aspects_of = dict(aspects)
        self._before: dict[Entity, dict[str, Any]] = {}
        self._new: dict[Entity, list[AspectWrite]] = {}

    def __contains__(self, urn: str) -> bool:
        return urn in self._aspects_of

    def take_changes(self) -> list[tuple[Entity, dict[str, Any], list[AspectWrite]]]:
        """What was replaced since this was last asked: the entity, what it was and what it is."""
        found = [(entity, self._before[entity], new) for entity, new in self._new.items()]
        self._before.clear()
        self._new.clear()
        return found

    def entities(self) -> Iterator[Entity]:
        return map(entity_of, self._aspects_of)

    def writes(self, urn: str, aspect: str | None = None) -> list[AspectWrite]:
        return [
            AspectWrite(aspect=name, body=body)
            for name, body in self._aspects_of.get(urn, {}).items()
            if aspect is None or name == aspect
        ]

    def replace(self, entity: Entity, writes: Sequence[AspectWrite]) -> bool:
        old = self._aspects_of.get(entity.urn, {})
        if not old and not writes:
            return False
        self._before.setdefault(entity, old)
        self._new[entity] = list(writes)
        self._aspects_of[entity.urn] = aspects_after(writes)
        return True

    def unnamed(self) -> Mapping[str, Any]:
        return {}

    def add_unnamed(self, name: str, change: Any) -> bool:
        raise AssertionError(f"a server has no changes without an entity: {name} {change}")

    def remove_unnamed(self, name: str) -> None:
        raise AssertionError(f"a server has no changes without an entity: {name}")

    def error(self, place: str, problem: str) -> LumosError:
        return CatalogError(
            f"{self._name} has something that is not as DataHub writes it: {place}: {problem}",
            platform=self._name,
        )


def _pages(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Items once each, those first that others may not be assigned before they are there."""
    last = {(type(item), canonical_key(item)): item for item in items}.values()
    for is_first in (True, False):
        yield from pages_of(
            (item for item in last if key_of(item).startswith(_DEFINITION) == is_first), _AT_ONCE
        )
