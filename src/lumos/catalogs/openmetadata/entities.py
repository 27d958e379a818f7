"""Reads and writes items: terms, users, groups, jobs and all other entities of a server.

`kinds` encodes each item as the record of one entity. If the entity cannot store all of it, the
exact item is stored in a custom property, together with the record at that time, so that later
edits of users are recognized. Items of kinds without custom properties lose the fields that their
entity cannot store; see `as_stored`. Tasks are parts of a pipeline and are written with it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from lumos.catalogs.interface import CatalogItem, FailedEntry, item_key
from lumos.catalogs.openmetadata.kinds import (
    CATALOG,
    EMPTY_DESCRIPTION,
    EXACT_ITEM,
    GENERIC,
    JOB,
    KINDS,
    LUMOS_TERM,
    RANKS,
    TASKS,
    EntityKind,
    Record,
    is_placeholder,
    is_shared,
    labels,
    locate,
    lumos_query_fqn,
    read_item,
    record_of,
    task_of,
    task_urn,
    urn_of,
    write_record,
)
from lumos.catalogs.openmetadata.labels import (
    LUMOS,
    PLACEHOLDER_TEXT,
    is_qualified,
    lumos_fqn,
    read_labels,
    team_name,
    user_name,
)
from lumos.catalogs.openmetadata.names import (
    DATASET_TYPES,
    LUMOS_SERVICE,
    encode_name,
    join_fqn,
    shorten_name,
    split_fqn,
    without_nul,
)
from lumos.catalogs.openmetadata.references import References
from lumos.catalogs.openmetadata.server import Outdated, retry_if_outdated
from lumos.catalogs.openmetadata.states import Operation, guard, property_operations
from lumos.catalogs.three_way_merge import merge_item
from lumos.errors import CatalogTooOld, CatalogUnavailable, LumosError
from lumos.model.catalog import CatalogEntity, GlossaryTerm, Group, Job, User, entity_id
from lumos.model.json_codec import from_plain, to_json, to_plain

T = TypeVar("T")

_TASK_FIELDS: Final = ("taskType", "taskSQL", "sourceUrl", "startDate", "endDate")


class ExactItem(NamedTuple):
    """An exact item, and the item that its entity showed right after it was written."""

    item: Any
    shown: Any

    @property
    def text(self) -> str:
        return to_json({"item": to_plain(self.item), "shown": to_plain(self.shown)}).decode()


class Entities:
    """Reads and writes the items of one server."""

    def __init__(self, references: References) -> None:
        self._references = references
        self._server = references.server
        self._index = references.index
        self._labels = references.labels
        self._properties = references.properties
        # By key: an item that refers to missing entities, and their types and names.
        self._waiting: dict[str, tuple[CatalogItem, frozenset[tuple[str, str]]]] = {}
        self._has_found_waiting = False

    # Reading

    def all(self) -> Iterator[CatalogItem]:
        """All items, without placeholders."""
        foreign_urns: set[str] = set()
        for spec in (*KINDS.values(), GENERIC):
            entities = [each for each in self._pages(spec) if not _is_skipped(spec, each)]
            visible_items: list[CatalogItem] = []
            for items in self._server.each(entities, partial(self._items_of, spec)):
                visible_items += items
            if spec is GENERIC:
                # Earlier versions stored entities of other catalogs as generic ones.
                visible_items = [
                    each for each in visible_items if item_key(each) not in foreign_urns
                ]
            # Without terms and users: their name may look like the URN of an entity.
            urns = {each.urn for each in visible_items if isinstance(each, CatalogEntity)}
            foreign_urns |= {urn for urn in urns if entity_id(urn) is None}
            yield from sorted(visible_items, key=item_key)

    def _pages(self, spec: EntityKind) -> list[dict[str, Any]]:
        query: dict[str, Any] = {}
        if spec is GENERIC:
            if self._server.named("services/storageServices", LUMOS_SERVICE) is None:
                return []
            query = {"service": LUMOS_SERVICE}
        try:
            pages = self._server.pages(
                spec.route, fields=spec.requested_fields, include="non-deleted", **query
            )
            return list(pages)
        except CatalogTooOld:
            # A server without this kind of entity.
            return []

    def _items_of(self, spec: EntityKind, entity: dict[str, Any]) -> list[CatalogItem]:
        spec = _lumos_variant(spec, entity)
        complete_entity = (
            self._entity(spec, entity["fullyQualifiedName"]) if spec.lists_partly else entity
        )
        if complete_entity is None:
            return []
        items = (
            []
            if is_placeholder(spec, entity)
            else [self._item(spec, self._with_edges(spec, complete_entity))]
        )
        if spec.type == "pipeline" and spec is not JOB:
            items += self._tasks(complete_entity).values()
        return [each for each in items if each is not None]

    def get_many(self, type: type[CatalogItem], keys: Iterable[str]) -> dict[str, CatalogItem]:
        """The items of one type that exist, by key."""
        candidates = ((key, self.get(type, key)) for key in keys)
        return {key: item for key, item in candidates if item is not None}

    def get(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        """The item with a name or URN, or None."""
        if type is CatalogEntity and (task := task_of(key)) is not None:
            pipeline = self._pipeline(task[0])
            return None if pipeline is None else self._tasks(pipeline).get(task[1])
        spec, fqn = self._locate(type, key)
        entity = self._entity(spec, fqn)
        if entity is None and type is CatalogEntity and not is_shared(key):
            spec, fqn = _generic_location(key)
            entity = self._entity(spec, fqn)
        if entity is None or entity.get("deleted") or is_placeholder(spec, entity):
            return None
        found: CatalogItem | None = self._item(spec, self._with_edges(spec, entity))
        return found

    def _locate(
        self, type: type[CatalogItem], key: str, item: Any = None
    ) -> tuple[EntityKind, str]:
        """The kind and qualified name of an item, whether or not it exists."""
        if type is User:
            return KINDS["user"], join_fqn(user_name(key))
        if type is Group:
            return KINDS["team"], join_fqn(team_name(key))
        if type is Job:
            return JOB, join_fqn(LUMOS_SERVICE, shorten_name(encode_name(key)))
        if type is GlossaryTerm:
            return self._locate_term(key, item)
        if (location := locate(key)) is None:
            return _generic_location(key)
        kind, fqn = location
        parts = entity_id(key)
        if kind in ("tag", "domain") and parts is not None and len(split_fqn(fqn)) > 1:
            name = "/".join(parts)
            lumos_name = (
                lumos_fqn(name) if kind == "tag" else join_fqn(shorten_name(encode_name(name)))
            )
            fqn = self._first_existing(kind, fqn, lumos_name) or (
                fqn if _is_inside(item, fqn) else lumos_name
            )
        elif kind == "query" and parts is not None and len(parts) > 1:
            lumos_query, service = lumos_query_fqn(key), join_fqn(split_fqn(fqn)[0])
            is_in_lumos = self._first_existing("query", fqn, lumos_query) == lumos_query
            if is_in_lumos or self._server.named(KINDS["databaseService"].route, service) is None:
                fqn = lumos_query
        return KINDS[kind], fqn

    def _locate_term(self, name: str, item: GlossaryTerm | None) -> tuple[EntityKind, str]:
        known = self._labels.known_term(name)
        fqn = lumos_fqn(name) if known is None else known["fullyQualifiedName"]
        if known is None and item is not None and _is_inside(item, name):
            fqn = name
        return (LUMOS_TERM if split_fqn(fqn)[0] == LUMOS else KINDS["glossaryTerm"]), fqn

    def _first_existing(self, kind: str, *names: str) -> str | None:
        route = KINDS[kind].route
        return next((fqn for fqn in names if self._server.named(route, fqn)), None)

    def _entity(self, spec: EntityKind, fqn: str) -> dict[str, Any] | None:
        found = self._server.named(spec.route, fqn, fields=spec.requested_fields, include="all")
        return None if found is None else dict(found)

    def _with_edges(self, spec: EntityKind, entity: dict[str, Any]) -> dict[str, Any]:
        if spec.has_edges and not entity.get("deleted"):
            entity["edges"] = self._references.edges(spec.type, entity)
        return entity

    def _record(self, spec: EntityKind, entity: Mapping[str, Any]) -> Record:
        record: Record = self._references.portable(record_of(spec, entity))
        if entity.get("edges"):
            record["edges"] = entity["edges"]
        if "extension" in record:
            declared = self._properties.definitions(spec.type, record["extension"])
            record["declared"] = declared
        return record

    def _visible_item(self, spec: EntityKind, entity: Mapping[str, Any]) -> Any:
        return read_item(spec, entity["fullyQualifiedName"], self._record(spec, entity))

    def _item(self, spec: EntityKind, entity: Mapping[str, Any]) -> Any:
        visible, exact = self._visible_item(spec, entity), _exact_item(spec, entity)
        if exact is None:
            return None if spec in (JOB, GENERIC) else visible
        return _with_edits(exact, visible)

    # Writing

    def as_stored(self, item: CatalogItem) -> CatalogItem:
        """The item that `get` returns after this one is written."""
        if isinstance(item, CatalogEntity):
            item = _upgrade(item)
            if (location := locate(item.urn)) is None:
                return item
            spec, fqn = KINDS[location[0]], location[1]
            urn = urn_of(*location)
            if entity_id(urn) is None and entity_id(item.urn) is not None:
                urn = item.urn
        elif isinstance(item, User | Group):
            spec = KINDS["user" if isinstance(item, User) else "team"]
            fqn = join_fqn((user_name if isinstance(item, User) else team_name)(item.name))
        else:
            return item
        if spec.has_properties:
            return item
        stored = read_item(spec, fqn, write_record(spec, item))
        return (
            stored if isinstance(stored, User | Group) else msgspec.structs.replace(stored, urn=urn)
        )

    def put_many(self, items: Iterable[CatalogItem]) -> Iterator[FailedEntry]:
        """Write items, beginning with those that others refer to; yield the rejected ones."""
        ordered = [(item_key(item), each) for item in items for each in _with_tasks_in_raw(item)]
        written = set()
        for key, item in sorted(ordered, key=lambda each: _rank(each[1])):
            try:
                written |= retry_if_outdated(partial(self._put, item))
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                yield FailedEntry(key, problem)
        self._complete(written)

    def complete(self, datasets: Iterable[str]) -> None:
        """Write references to new datasets that items, also of earlier runs, are waiting for."""
        if not self._has_found_waiting:
            self._has_found_waiting = True
            for spec in KINDS.values():
                if spec.has_edges and EXACT_ITEM in self._properties.declared(spec.type):
                    for entity in self._pages(spec):
                        exact = _exact_item(_lumos_variant(spec, entity), entity)
                        if exact is not None and (missing := _missing(spec, exact)):
                            self._waiting.setdefault(item_key(exact.item), (exact.item, missing))
        self._complete({("dataset", urn) for urn in datasets})

    def _complete(self, written: set[tuple[str, str]]) -> None:
        while ready := [key for key, (_, missing) in self._waiting.items() if missing & written]:
            written = set()
            for item in sorted((self._waiting.pop(key)[0] for key in ready), key=_rank):
                current = self.get(type(item), item_key(item))
                location = locate(item_key(item)) if isinstance(item, CatalogEntity) else None
                # Without custom properties, only this process knows the missing references.
                if current is not None and (location is None or KINDS[location[0]].has_properties):
                    item = current
                try:
                    written |= retry_if_outdated(partial(self._put, item))
                except CatalogUnavailable:
                    raise
                except LumosError:
                    # Not an error for the caller, since the exact item is stored.
                    continue

    def _put(self, item: CatalogItem) -> set[tuple[str, str]]:
        """Write an item; return each type and name by which other items may refer to it."""
        if isinstance(item, CatalogEntity) and task_of(item.urn) is not None:
            return self._put_task(item)
        if isinstance(item, CatalogEntity):
            item = _upgrade(item)
        spec, fqn = self._locate(type(item), item_key(item), item)
        entity = self._entity(spec, fqn)
        if entity is not None and _is_built_in(entity):
            return set()
        self._references.missing.clear()
        record = write_record(spec, item)
        if not record and _looks_like_placeholder(spec, fqn):
            record["description"] = EMPTY_DESCRIPTION
        is_new = entity is None
        if entity is None:
            predicted = read_item(spec, fqn, record)
            exact = ExactItem(item, predicted)
            entity = self._create(spec, fqn, record, item, exact if predicted != item else None)
        elif entity.get("deleted") or self._needs_put(spec, entity, record):
            entity = self._create(spec, fqn, record, item, None, current=entity)
        try:
            entity = self._update(spec, self._with_edges(spec, entity), record)
        except (CatalogUnavailable, Outdated):
            raise
        except LumosError:
            # A rejected item must not leave an entity.
            if is_new:
                self._delete(spec, entity)
            raise
        if spec.has_properties:
            self._save_exact(spec, entity, item)
        missing = frozenset(self._references.missing)
        if missing:
            self._waiting[item_key(item)] = (item, missing)
        fqn = entity["fullyQualifiedName"]
        return {(spec.type, fqn), (spec.type, (locate(item_key(item)) or ("", fqn))[1])}

    def _needs_put(self, spec: EntityKind, entity: Mapping[str, Any], record: Record) -> bool:
        """Whether a PUT is needed: patches cannot change emails or, by bots, display names."""
        existing = record_of(spec, entity)
        has_new_title = existing.get("displayName") != record.get("displayName")
        has_new_email = "email" in spec.fields and existing.get("email") != record.get("email")
        return has_new_email or (has_new_title and self._is_bot)

    def _create(
        self,
        spec: EntityKind,
        fqn: str,
        record: Record,
        item: Any,
        exact: ExactItem | None,
        *,
        current: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Create or replace an entity; the request repeats all values that a PUT would remove."""
        body = self._references.body(spec, fqn, record)
        if exact is not None and spec.has_properties:
            self._properties.declare(spec.type, [EXACT_ITEM])
            body["extension"] = {**body.get("extension", {}), EXACT_ITEM: exact.text}
        if current is not None and current.get("tasks"):
            body["tasks"] = [_task_request(task) for task in current["tasks"]]
        match spec.type:
            case "user":
                teams = [
                    t["id"]
                    for t in (current or {}).get("teams") or ()
                    if t["name"] != "Organization"
                ]
                fields = {**body, **({"teams": teams} if teams else {})}
                del fields["name"]
                self._labels.make_user(item.name, fields.pop("email", None), **fields)
            case "glossaryTerm" if spec is LUMOS_TERM:
                name = split_fqn(fqn)[-1] if current is not None else None
                fields = {
                    key: value for key, value in body.items() if key not in ("name", "glossary")
                }
                new_term = self._labels.make_term(item.name, stored_name=name, **fields)
                fqn = new_term["fullyQualifiedName"]
            case _:
                self._server.put(spec.route, body)
        if spec.is_service:
            self._index.clear_services()
        new_entity = self._entity(spec, fqn)
        assert new_entity is not None, "it was just written"
        return new_entity

    def _update(self, spec: EntityKind, entity: dict[str, Any], record: Record) -> dict[str, Any]:
        """Patch an entity to match a record as far as possible; return the new entity."""
        existing = self._record(spec, entity)
        description = entity.get("description")
        if description in (PLACEHOLDER_TEXT, EMPTY_DESCRIPTION):
            existing["description"] = description
        operations = self._references.operations(spec, entity, existing, record)
        if operations:
            self._server.patch(f"{spec.route}/{entity['id']}", [*guard(entity), *operations])
        has_new_edges = spec.has_edges and self._references.write_edges(
            spec.type, entity, existing, record
        )
        if operations or has_new_edges:
            new_entity = self._entity(spec, entity["fullyQualifiedName"])
            assert new_entity is not None, "it was just written"
            return self._with_edges(spec, new_entity)
        return entity

    def _save_exact(self, spec: EntityKind, entity: dict[str, Any], item: Any) -> None:
        """Store the exact item in a custom property, if the entity does not show all of it."""
        shown, before = self._visible_item(spec, entity), _exact_item(spec, entity)
        is_shown = shown == item and spec not in (JOB, GENERIC)
        exact = None if is_shown else ExactItem(item, shown)
        if exact != before:
            self._write_property(spec, entity, EXACT_ITEM, None if exact is None else exact.text)

    def _write_property(
        self,
        spec: EntityKind,
        entity: Any,
        key: str,
        text: str | None,
        others: Iterable[Operation] = (),
    ) -> None:
        """Set a custom property together with other operations; None removes it."""
        if text is not None:
            self._properties.declare(spec.type, [key])
        operations = [*guard(entity), *others, *property_operations(entity, key, text)]
        self._server.patch(f"{spec.route}/{entity['id']}", operations)

    @cached_property
    def _is_bot(self) -> bool:
        return bool((self._server.get("users/loggedInUser") or {}).get("isBot"))

    # Tasks

    def _pipeline(self, urn: str) -> dict[str, Any] | None:
        location = locate(urn)
        return None if location is None else self._entity(KINDS["pipeline"], location[1])

    def _tasks(self, pipeline: Mapping[str, Any]) -> dict[str, CatalogEntity]:
        parent = urn_of("pipeline", pipeline["fullyQualifiedName"])
        visible = _read_tasks(parent, pipeline.get("tasks") or ())
        exact = _exact_tasks(pipeline)
        return {
            name: _with_edits(exact[name], task) if name in exact else task
            for name, task in visible.items()
        }

    def _put_task(self, item: CatalogEntity) -> set[tuple[str, str]]:
        task = task_of(item.urn)
        assert task is not None, f"{item.urn} is not a task"
        urn, name = task
        location = locate(urn)
        assert location is not None, f"{urn} is not a pipeline"
        if (pipeline := self._pipeline(urn)) is None:
            body = self._references.body(
                KINDS["pipeline"], location[1], {"description": PLACEHOLDER_TEXT}
            )
            self._server.put("pipelines", body)
            pipeline = self._pipeline(urn)
            assert pipeline is not None, f"the server lost the pipeline {urn}"
        self._write_tasks(pipeline, {**self._tasks(pipeline), name: item})
        return set()

    def _write_tasks(self, pipeline: dict[str, Any], tasks: Mapping[str, CatalogEntity]) -> None:
        parent = urn_of("pipeline", pipeline["fullyQualifiedName"])
        existing = {task["name"]: _task_request(task) for task in pipeline.get("tasks") or ()}
        native = {
            name: self._native_task(existing.get(name, {}), name, task)
            for name, task in tasks.items()
        }
        downstream: dict[str, list[str]] = {name: [] for name in native}
        for name, task in tasks.items():
            for upstream in task.references.get("upstream", ()):
                before = task_of(upstream)
                if before is not None and before[0] == parent and before[1] in native:
                    downstream[before[1]].append(name)
        for name, names in downstream.items():
            native[name] |= {"downstreamTasks": sorted(set(names))} if names else {}
        visible = _read_tasks(parent, native.values())
        exact = {
            name: ExactItem(task, visible[name])
            for name, task in tasks.items()
            if visible[name] != task
        }
        if native != existing or exact != _exact_tasks(pipeline):
            operation = {"op": "add", "path": "/tasks", "value": list(native.values())}
            plain = {name: to_plain(each._asdict()) for name, each in exact.items()}
            text = to_json(plain).decode() if exact else None
            self._write_property(KINDS["pipeline"], pipeline, TASKS, text, [operation])

    def _native_task(self, existing: Record, name: str, task: CatalogEntity) -> Record:
        modelled = ("displayName", "description", "tags", "downstreamTasks", *_TASK_FIELDS)
        native = {key: value for key, value in existing.items() if key not in modelled}
        record_in_raw = task.raw.get(CATALOG)
        for key in _TASK_FIELDS:
            if isinstance(record_in_raw, dict) and isinstance(record_in_raw.get(key), str):
                native[key] = record_in_raw[key]
        if task.display_name:
            native["displayName"] = without_nul(task.display_name)
        if task.description:
            native["description"] = without_nul(task.description)
        wanted = labels(task.tags, task.references.get("terms", ()))
        stored_labels = [
            {**label, "tagFQN": fqn}
            for label in wanted
            if (fqn := self._labels.find(label["source"], label["tagFQN"])) is not None
        ]
        return {"name": name, **native, **({"tags": stored_labels} if stored_labels else {})}

    # Removing

    def erase(self, item: CatalogItem) -> None:
        """Delete an item; an entity that is used or contains others becomes a placeholder."""
        self._waiting.pop(item_key(item), None)
        if isinstance(item, CatalogEntity) and (task := task_of(item.urn)) is not None:
            if (pipeline := self._pipeline(task[0])) is not None:
                remaining = {n: each for n, each in self._tasks(pipeline).items() if n != task[1]}
                self._write_tasks(pipeline, remaining)
                if not remaining and pipeline.get("description") == PLACEHOLDER_TEXT:
                    self._delete(KINDS["pipeline"], pipeline)
            return
        spec, fqn = self._locate(type(item), item_key(item))
        entity = self._entity(spec, fqn)
        if isinstance(item, CatalogEntity) and spec is not GENERIC and not is_shared(item.urn):
            generic = self._entity(*_generic_location(item.urn))
            if generic is not None:
                self._delete(GENERIC, generic)
        if entity is None or _is_built_in(entity):
            return
        # The contents of a domain are only known after reading everything, which `clean_up` does.
        if spec.type == "domain" or self._is_used(spec, entity) or not self._delete(spec, entity):
            self._turn_into_placeholder(spec, fqn, entity, item)
        if spec.is_service:
            self._index.clear_services()
        self._references.clear_cache()
        self._labels.clear_cache()

    def _turn_into_placeholder(
        self, spec: EntityKind, fqn: str, entity: dict[str, Any], item: Any
    ) -> None:
        record = {
            **{key: entity[key] for key in spec.required if key in entity},
            "description": PLACEHOLDER_TEXT,
        }
        if self._needs_put(spec, entity, record):
            entity = self._create(spec, fqn, record, item, None, current=entity)
        entity = self._update(spec, self._with_edges(spec, entity), record)
        if EXACT_ITEM in (entity.get("extension") or {}):
            self._write_property(spec, entity, EXACT_ITEM, None)

    def _delete(self, spec: EntityKind, entity: Mapping[str, Any]) -> bool:
        return self._server.delete_if_possible(f"{spec.route}/{entity['id']}")

    def _is_used(self, spec: EntityKind, entity: Mapping[str, Any]) -> bool:
        usage_fields = {
            "tag": "usageCount",
            "glossaryTerm": "usageCount",
            "user": "owns,teams",
            "team": "owns",
        }
        if spec.type == "pipeline":
            return bool(entity.get("tasks"))
        if spec.type not in usage_fields:
            return False
        response = (
            self._server.get(f"{spec.route}/{entity['id']}", fields=usage_fields[spec.type]) or {}
        )
        teams = {each["name"] for each in response.get("teams") or ()} - {"Organization"}
        return bool(response.get("usageCount") or response.get("owns") or teams)

    def clean_up(self) -> None:
        """Delete unused placeholders and empty services of Lumos."""
        self._index.clean_up()
        for spec in reversed(KINDS.values()):
            placeholders = [
                entity
                for entity in self._pages(spec)
                if entity.get("description") == PLACEHOLDER_TEXT and is_placeholder(spec, entity)
            ]
            if placeholders and spec.type == "domain":
                in_use = self._domains_in_use()
                placeholders = [entity for entity in placeholders if entity["id"] not in in_use]
            # Children before their parents.
            for entity in sorted(
                placeholders, key=lambda each: -len(split_fqn(each["fullyQualifiedName"]))
            ):
                if not self._is_used(spec, entity):
                    self._delete(spec, entity)
        self._labels.clear_cache()
        self._references.clear_cache()

    def _domains_in_use(self) -> set[str]:
        """The domains that contain something; the server has no route for this."""
        routes = [entity_type.route for entity_type in DATASET_TYPES.values()]
        routes += [spec.route for spec in KINDS.values() if "domains" in spec.references]
        return {
            domain["id"]
            for route in routes
            for entity in self._server.pages(route, fields="domains", include="non-deleted")
            for domain in entity.get("domains") or ()
            if not domain.get("inherited")
        }


def _generic_location(key: str) -> tuple[EntityKind, str]:
    """The kind and qualified name of an item whose kind OpenMetadata does not have."""
    return GENERIC, join_fqn(LUMOS_SERVICE, shorten_name(encode_name(key)))


def _lumos_variant(spec: EntityKind, entity: Mapping[str, Any]) -> EntityKind:
    """The variant of a kind for entities in the service or glossary of Lumos."""
    root = split_fqn(entity["fullyQualifiedName"])[0]
    if spec.type == "pipeline" and root == LUMOS_SERVICE:
        return JOB
    return LUMOS_TERM if spec.type == "glossaryTerm" and root == LUMOS else spec


def _looks_like_placeholder(spec: EntityKind, fqn: str) -> bool:
    """Whether an empty entity would be mistaken for a placeholder."""
    is_in_lumos = split_fqn(fqn)[0] == LUMOS and spec.type in ("tag", "glossaryTerm")
    return is_in_lumos or spec.type in ("user", "team", "domain")


def _is_built_in(entity: Mapping[str, Any]) -> bool:
    """Whether an entity came with the server."""
    is_admin = entity.get("isAdmin") and entity["name"] == "admin"
    is_system = entity.get("provider") == "system" or entity.get("isBot")
    return bool(is_admin or is_system or entity.get("teamType") == "Organization")


def _is_skipped(spec: EntityKind, entity: Mapping[str, Any]) -> bool:
    if _is_built_in(entity):
        return True
    is_empty = is_placeholder(spec, entity) and not (
        spec.type == "pipeline" and entity.get("tasks")
    )
    return is_empty or (spec.is_service and entity["name"] == LUMOS_SERVICE)


def _is_inside(item: Any, fqn: str) -> bool:
    """Whether the qualified name of an item starts with the name of its parent."""
    parent_parts = split_fqn(fqn)[:-1]
    match item:
        case CatalogEntity(kind="domain"):
            return item.parent == urn_of("domain", join_fqn(*parent_parts))
        case CatalogEntity() | GlossaryTerm():
            return is_qualified(fqn) and isinstance(item.raw.get(CATALOG), dict)
        case _:
            return False


def _upgrade(item: CatalogEntity) -> CatalogEntity:
    """Convert an item of snapshot format 1.0: its URN, and its record to fields."""
    location = locate(item.urn)
    if location is None:
        return item
    spec, urn = KINDS[location[0]], urn_of(*location)
    record_in_raw = item.raw.get(CATALOG)
    is_format_1_0 = isinstance(record_in_raw, dict) and item == CatalogEntity(
        urn=item.urn, kind=item.kind, raw=item.raw
    )
    if is_format_1_0:
        others = {key: value for key, value in item.raw.items() if key != CATALOG}
        decoded: CatalogEntity = read_item(spec, location[1], write_record(spec, item))
        return msgspec.structs.replace(decoded, raw={**decoded.raw, **others})
    if item.urn.startswith(f"{CATALOG}:"):
        return msgspec.structs.replace(item, urn=urn, kind=spec.kind or spec.type)
    return item


def _with_tasks_in_raw(item: CatalogItem) -> Iterator[CatalogItem]:
    """An item, and the tasks that snapshot format 1.0 has in the record of a pipeline."""
    yield item
    record_in_raw = item.raw.get(CATALOG) if isinstance(item, CatalogEntity) else None
    if (
        isinstance(item, CatalogEntity)
        and isinstance(record_in_raw, dict)
        and "tasks" in record_in_raw
    ):
        location = locate(item.urn)
        if location is not None and isinstance(record_in_raw["tasks"], list):
            yield from _read_tasks(urn_of(*location), record_in_raw["tasks"]).values()


def _rank(item: CatalogItem) -> tuple[int, int, str]:
    match item:
        case User():
            return RANKS["user"], 0, item.name
        case Group():
            return RANKS["team"], 0, item.name
        case GlossaryTerm():
            return RANKS["glossaryTerm"], len(split_fqn(item.name)), item.name
        case Job():
            return len(RANKS) + 1, 0, item.urn
        case _:
            location = locate(item.urn)
            if location is None:
                return len(RANKS), 0, item.urn
            return RANKS[location[0]], len(split_fqn(location[1])), item.urn


def _missing(spec: EntityKind, exact: ExactItem) -> frozenset[tuple[str, str]]:
    """The references of an item that its entity lacks."""
    wanted, visible = (set(_references_in(write_record(spec, each))) for each in exact)
    return frozenset(wanted - visible)


def _references_in(value: Any) -> Iterator[tuple[str, str]]:
    match value:
        case {"type": str(type), "fullyQualifiedName": str(fqn)}:
            yield type, fqn
        case {"from": str(start)}:
            yield locate(start) or ("dataset", start)
        case dict():
            for each in value.values():
                yield from _references_in(each)
        case list():
            for each in value:
                yield from _references_in(each)


def _with_edits(exact: ExactItem, current: Any) -> Any:
    """Merge the edits of users into an exact item."""
    if current == exact.shown:
        return exact.item
    if isinstance(current, Job) and current.schedule and exact.item.schedule:
        schedule = msgspec.structs.replace(exact.item.schedule, cron=current.schedule.cron)
        before = msgspec.structs.replace(exact.shown, schedule=exact.item.schedule)
        exact, current = (
            ExactItem(exact.item, before),
            msgspec.structs.replace(current, schedule=schedule),
        )
    return merge_item(exact.shown, current, exact.item).item


def _exact_item(spec: EntityKind, entity: Mapping[str, Any]) -> ExactItem | None:
    """The exact item in a custom property; invalid values are ignored."""
    types = {"glossaryTerm": GlossaryTerm, "pipeline": Job if spec == JOB else CatalogEntity}
    text = (entity.get("extension") or {}).get(EXACT_ITEM)
    return _decode_exact(f'{{"": {text}}}', types.get(spec.type, CatalogEntity)).get("")


def _exact_tasks(pipeline: Mapping[str, Any]) -> dict[str, ExactItem]:
    return _decode_exact((pipeline.get("extension") or {}).get(TASKS), CatalogEntity)


def _decode_exact(text: Any, type: type[Any]) -> dict[str, ExactItem]:
    try:
        return {
            name: ExactItem(from_plain(fields["item"], type), from_plain(fields["shown"], type))
            for name, fields in msgspec.json.decode(text).items()
        }
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError):
        return {}


def _read_tasks(pipeline: str, tasks: Iterable[Mapping[str, Any]]) -> dict[str, CatalogEntity]:
    task_list = list(tasks)
    upstream: dict[str, list[str]] = {}
    for task in task_list:
        for name in task.get("downstreamTasks") or ():
            upstream.setdefault(name, []).append(task_urn(pipeline, task["name"]))
    return {task["name"]: _read_task(pipeline, task, upstream) for task in task_list}


def _read_task(
    pipeline: str, task: Mapping[str, Any], upstream: Mapping[str, list[str]]
) -> CatalogEntity:
    tags, terms = read_labels(task.get("tags") or ())
    references = {"terms": terms, "upstream": tuple(sorted(upstream.get(task["name"], ())))}
    rest = {key: task[key] for key in _TASK_FIELDS if task.get(key)}
    return CatalogEntity(
        urn=task_urn(pipeline, task["name"]),
        kind="task",
        display_name=task.get("displayName") or None,
        description=task.get("description") or None,
        parent=pipeline,
        tags=tags,
        references={relation: ends for relation, ends in references.items() if ends},
        raw={CATALOG: rest} if rest else {},
    )


def _task_request(task: Mapping[str, Any]) -> Record:
    """Encode a task of the server for a request."""
    request = {key: value for key, value in task.items() if value not in (None, [])}
    request.pop("fullyQualifiedName", None)
    if "tags" in request:
        keys = ("tagFQN", "source", "labelType", "state")
        request["tags"] = [
            {key: each[key] for key in keys if key in each} for each in request["tags"]
        ]
    return request
