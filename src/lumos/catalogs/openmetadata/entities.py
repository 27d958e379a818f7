"""Items that are not datasets: terms, users, groups, jobs and all other entities of a server.

Each is mapped by `kinds` to a record of one entity. What the entity does not show completely is in
a custom property, exactly, together with what it showed when it was written, so that later edits
by people can be told from what was never shown. Kinds without custom properties hold only what
they show; `as_held` returns that. Tasks are parts of a pipeline and are written with it.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from lumos.catalogs.interface import Item, Refused
from lumos.catalogs.openmetadata.index import Index
from lumos.catalogs.openmetadata.kinds import (
    CATALOG,
    GENERIC,
    JOB,
    KEPT,
    KINDS,
    NOTHING_SAID,
    OWN_TERM,
    RANKS,
    TASKS,
    EntityKind,
    Record,
    is_placeholder,
    key_of,
    labels,
    labels_in,
    locate,
    name_of,
    own_query_fqn,
    read_item,
    record_of,
    task_of,
    task_urn,
    write_record,
)
from lumos.catalogs.openmetadata.labels import (
    MADE,
    OWN,
    OpenMetadataLabels,
    own_fqn,
    team_name,
    user_name,
)
from lumos.catalogs.openmetadata.names import (
    HOMES,
    OWN_SERVICE,
    joined,
    shortened,
    spelled,
    split,
)
from lumos.catalogs.openmetadata.properties import CustomProperties
from lumos.catalogs.openmetadata.references import Referring
from lumos.catalogs.openmetadata.server import Outdated, Server
from lumos.catalogs.openmetadata.states import guard
from lumos.catalogs.openmetadata.texts import shown_text
from lumos.catalogs.three_way_merge import merge_item
from lumos.errors import CatalogError, CatalogTooOld, CatalogUnavailable, LumosError
from lumos.model.catalog import CatalogEntity, GlossaryTerm, Group, Job, User, entity_id
from lumos.model.json_codec import from_plain, to_json, to_plain

T = TypeVar("T")

_ATTEMPTS: Final = 3
# Something is in it, or Lumos may not remove it.
_STAYS: Final = (400, 403)
_TAKEN: Final = (400, 409)
_TASK_FIELDS: Final = ("taskType", "taskSQL", "sourceUrl", "startDate", "endDate")


class Kept(NamedTuple):
    """An item exactly, and what its entity showed when it was written."""

    item: Any
    shown: Any

    @property
    def text(self) -> str:
        return to_json({"item": to_plain(self.item), "shown": to_plain(self.shown)}).decode()


class Entities:
    """The items of one server."""

    def __init__(
        self,
        server: Server,
        index: Index,
        labels: OpenMetadataLabels,
        properties: CustomProperties,
        referring: Referring,
    ) -> None:
        self._server = server
        self._index = index
        self._labels = labels
        self._properties = properties
        self._referring = referring
        # Items that refer to something that is not there, and to what.
        self._waiting: dict[str, tuple[Item, frozenset[tuple[str, str]]]] = {}
        self._has_searched = False

    # Reading

    def all(self) -> Iterator[Item]:
        """Every item that somebody said something about."""
        for spec in (*KINDS.values(), GENERIC):
            entities = [each for each in self._pages(spec) if not _is_left_out(spec, each)]
            found: list[Item] = []
            for some in self._server.each(entities, partial(self._items_of, spec)):
                found += some
            yield from sorted(found, key=key_of)

    def _pages(self, spec: EntityKind) -> list[dict[str, Any]]:
        query: dict[str, Any] = {}
        if spec is GENERIC:
            if self._server.named("services/storageServices", OWN_SERVICE) is None:
                return []
            query = {"service": OWN_SERVICE}
        try:
            pages = self._server.pages(
                spec.route, fields=spec.asked, include="non-deleted", **query
            )
            return list(pages)
        except CatalogTooOld:
            # A server without this kind of entity.
            return []

    def _items_of(self, spec: EntityKind, entity: dict[str, Any]) -> list[Item]:
        spec = _variant_of(spec, entity)
        whole = self._entity(spec, entity["fullyQualifiedName"]) if spec.alone else entity
        if whole is None:
            return []
        found = (
            [] if is_placeholder(spec, entity) else [self._item(spec, self._linked(spec, whole))]
        )
        if spec.type == "pipeline" and spec is not JOB:
            found += self._tasks(whole).values()
        return [each for each in found if each is not None]

    def get(self, type: type[Item], key: str) -> Item | None:
        """One item by its name or URN."""
        if type is CatalogEntity and (task := task_of(key)) is not None:
            pipeline = self._pipeline(task[0])
            return None if pipeline is None else self._tasks(pipeline).get(task[1])
        spec, fqn = self._place(type, key)
        entity = self._entity(spec, fqn)
        if entity is None or entity.get("deleted") or is_placeholder(spec, entity):
            return None
        found: Item | None = self._item(spec, self._linked(spec, entity))
        return found

    def _place(self, type: type[Item], key: str, item: Any = None) -> tuple[EntityKind, str]:
        """Where an item is, or is to be written."""
        if type is User:
            return KINDS["user"], joined(user_name(key))
        if type is Group:
            return KINDS["team"], joined(team_name(key))
        if type is Job:
            return JOB, joined(OWN_SERVICE, shortened(spelled(key)))
        if type is GlossaryTerm:
            return self._term_place(key, item)
        if (place := locate(key)) is None:
            return GENERIC, joined(OWN_SERVICE, shortened(spelled(key)))
        kind, fqn = place
        parts = entity_id(key)
        if kind in ("tag", "domain") and parts is not None and len(split(fqn)) > 1:
            name = "/".join(parts)
            flat = own_fqn(name) if kind == "tag" else joined(shortened(spelled(name)))
            fqn = self._first(kind, fqn, flat) or (fqn if _is_inside(item, fqn) else flat)
        elif kind == "query" and parts is not None and len(parts) > 1:
            own, above = own_query_fqn(key), joined(split(fqn)[0])
            is_own = self._first("query", fqn, own) == own
            if is_own or self._server.named(KINDS["databaseService"].route, above) is None:
                fqn = own
        return KINDS[kind], fqn

    def _term_place(self, name: str, item: GlossaryTerm | None) -> tuple[EntityKind, str]:
        known = self._labels.known_term(name)
        fqn = own_fqn(name) if known is None else known["fullyQualifiedName"]
        if known is None and item is not None and _is_inside(item, name):
            fqn = name
        return (OWN_TERM if split(fqn)[0] == OWN else KINDS["glossaryTerm"]), fqn

    def _first(self, kind: str, *names: str) -> str | None:
        route = KINDS[kind].route
        return next((fqn for fqn in names if self._server.named(route, fqn)), None)

    def _entity(self, spec: EntityKind, fqn: str) -> dict[str, Any] | None:
        found = self._server.named(spec.route, fqn, fields=spec.asked, include="all")
        return None if found is None else dict(found)

    def _linked(self, spec: EntityKind, entity: dict[str, Any]) -> dict[str, Any]:
        if spec.linked and not entity.get("deleted"):
            entity["edges"] = self._referring.edges(spec.type, entity)
        return entity

    def _record(self, spec: EntityKind, entity: Mapping[str, Any]) -> Record:
        record: Record = self._referring.portable(record_of(spec, entity))
        if entity.get("edges"):
            record["edges"] = entity["edges"]
        if "extension" in record:
            declared = self._properties.definitions(spec.type, record["extension"])
            record["declared"] = declared
        return record

    def _shown(self, spec: EntityKind, entity: Mapping[str, Any]) -> Any:
        return read_item(spec, entity["fullyQualifiedName"], self._record(spec, entity))

    def _item(self, spec: EntityKind, entity: Mapping[str, Any]) -> Any:
        shown, kept = self._shown(spec, entity), _kept(spec, entity)
        if kept is None:
            return None if spec in (JOB, GENERIC) else shown
        return _with_edits(kept, shown)

    # Writing

    def as_held(self, item: Item) -> Item:
        """The item that `get` returns after this one is written."""
        if isinstance(item, CatalogEntity):
            item = _in_new_form(item)
            if (place := locate(item.urn)) is None:
                return item
            spec, fqn = KINDS[place[0]], place[1]
            urn = name_of(*place)
            if entity_id(urn) is None and entity_id(item.urn) is not None:
                urn = item.urn
        elif isinstance(item, User | Group):
            spec = KINDS["user" if isinstance(item, User) else "team"]
            fqn = joined((user_name if isinstance(item, User) else team_name)(item.name))
        else:
            return item
        if spec.extends:
            return item
        held = read_item(spec, fqn, write_record(spec, item))
        return held if isinstance(held, User | Group) else msgspec.structs.replace(held, urn=urn)

    def put_all(self, items: Iterable[Item]) -> Iterator[Refused]:
        """Write some items, those that others refer to first."""
        given = [(key_of(item), each) for item in items for each in _with_former_tasks(item)]
        arrived = set()
        for key, item in sorted(given, key=lambda each: _rank(each[1])):
            try:
                arrived |= self._retry(item)
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                yield Refused(key, problem)
        self._complete(arrived)

    def complete(self, datasets: Iterable[str]) -> None:
        """Complete items that refer to datasets that are there now, also those of earlier runs."""
        if not self._has_searched:
            self._has_searched = True
            for spec in KINDS.values():
                if spec.linked and KEPT in self._properties.known(spec.type):
                    for entity in self._pages(spec):
                        kept = _kept(_variant_of(spec, entity), entity)
                        if kept is not None and (missing := _missing(spec, kept)):
                            self._waiting.setdefault(key_of(kept.item), (kept.item, missing))
        self._complete({("dataset", urn) for urn in datasets})

    def _complete(self, arrived: set[tuple[str, str]]) -> None:
        while ready := [key for key, (_, missing) in self._waiting.items() if missing & arrived]:
            arrived = set()
            for item in sorted((self._waiting.pop(key)[0] for key in ready), key=_rank):
                now = self.get(type(item), key_of(item))
                try:
                    # Of a kind without custom properties, nobody but Lumos knows what is missing.
                    arrived |= self._retry(item if now is None or _is_plain(item) else now)
                except CatalogUnavailable:
                    raise
                except LumosError:
                    # The caller writes something else; the exact form of this one is held.
                    continue

    def _retry(self, item: Item) -> set[tuple[str, str]]:
        """Write an item, again where somebody else was faster; returns what is there now."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._put(item)
            except Outdated:
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("the last attempt raises")

    def _put(self, item: Item) -> set[tuple[str, str]]:
        if isinstance(item, CatalogEntity) and task_of(item.urn) is not None:
            return self._put_task(item)
        if isinstance(item, CatalogEntity):
            item = _in_new_form(item)
        spec, fqn = self._place(type(item), key_of(item), item)
        entity = self._entity(spec, fqn)
        if entity is not None and _is_built_in(entity):
            return set()
        self._referring.missed.clear()
        record = write_record(spec, item)
        if not record and _may_be_placeholder(spec, fqn):
            record["description"] = NOTHING_SAID
        is_new = entity is None
        if entity is None:
            predicted = read_item(spec, fqn, record)
            kept = Kept(item, predicted)
            entity = self._create(spec, fqn, record, item, kept if predicted != item else None)
        elif entity.get("deleted") or self._is_renamed(spec, entity, record):
            entity = self._create(spec, fqn, record, item, None, over=entity)
        try:
            entity = self._changed(spec, self._linked(spec, entity), record)
        except (CatalogUnavailable, Outdated):
            raise
        except LumosError:
            # Nothing stays of an item that is refused.
            if is_new:
                self._delete(spec, entity)
            raise
        if spec.extends:
            self._keep(spec, entity, item)
        missed = frozenset(self._referring.missed)
        if missed:
            self._waiting[key_of(item)] = (item, missed)
        fqn = entity["fullyQualifiedName"]
        return {(spec.type, fqn), (spec.type, (locate(key_of(item)) or ("", fqn))[1])}

    def _is_renamed(self, spec: EntityKind, entity: Mapping[str, Any], record: Record) -> bool:
        """Whether something differs that only a PUT may change: a bot may not patch titles."""
        there = record_of(spec, entity)
        is_other = there.get("displayName") != record.get("displayName") and self._is_bot
        return is_other or ("email" in spec.fields and there.get("email") != record.get("email"))

    def _create(
        self,
        spec: EntityKind,
        fqn: str,
        record: Record,
        item: Any,
        kept: Kept | None,
        *,
        over: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Create an entity, or write it again with all that a PUT would otherwise remove."""
        body = self._referring.body(spec, fqn, record)
        if kept is not None and spec.extends:
            self._properties.declare(spec.type, [KEPT])
            body["extension"] = {**body.get("extension", {}), KEPT: kept.text}
        if over is not None and over.get("tasks"):
            body["tasks"] = [_sent_task(task) for task in over["tasks"]]
        match spec.type:
            case "user":
                teams = [
                    t["id"] for t in (over or {}).get("teams") or () if t["name"] != "Organization"
                ]
                said = {**body, **({"teams": teams} if teams else {})}
                del said["name"]
                self._labels.make_user(item.name, said.pop("email", None), **said)
            case "glossaryTerm" if spec is OWN_TERM:
                name = split(fqn)[-1] if over is not None else None
                said = {
                    key: value for key, value in body.items() if key not in ("name", "glossary")
                }
                made = self._labels.make_term(item.name, known_as=name, **said)
                fqn = made["fullyQualifiedName"]
            case _:
                self._server.put(spec.route, body)
        if spec.is_service:
            self._index.forget_services()
        found = self._entity(spec, fqn)
        assert found is not None, "it was just written"
        return found

    def _changed(self, spec: EntityKind, entity: dict[str, Any], record: Record) -> dict[str, Any]:
        """The entity after it shows as much of a record as it can."""
        there = self._record(spec, entity)
        words = entity.get("description")
        if words in (MADE, NOTHING_SAID):
            there["description"] = words
        operations = self._referring.operations(spec, entity, there, record)
        if operations:
            self._server.patch(f"{spec.route}/{entity['id']}", [*guard(entity), *operations])
        drawn = spec.linked and self._referring.draw(spec.type, entity, there, record)
        if operations or drawn:
            found = self._entity(spec, entity["fullyQualifiedName"])
            assert found is not None, "it was just written"
            return self._linked(spec, found)
        return entity

    def _keep(self, spec: EntityKind, entity: dict[str, Any], item: Any) -> None:
        """Put the exact form of an item into a custom property, if the entity shows less."""
        shown, before = self._shown(spec, entity), _kept(spec, entity)
        is_shown = shown == item and spec not in (JOB, GENERIC)
        kept = None if is_shown else Kept(item, shown)
        if kept != before:
            self._write_property(spec, entity, KEPT, None if kept is None else kept.text)

    def _write_property(self, spec: EntityKind, entity: Any, key: str, text: str | None) -> None:
        operations = self._property(spec, entity, key, text)
        self._server.patch(f"{spec.route}/{entity['id']}", [*guard(entity), *operations])

    def _property(
        self, spec: EntityKind, entity: Any, key: str, text: str | None
    ) -> list[dict[str, Any]]:
        extension = entity.get("extension") or {}
        if text is None:
            return [{"op": "remove", "path": f"/extension/{key}"}] if key in extension else []
        self._properties.declare(spec.type, [key])
        path, value = (f"/extension/{key}", text) if extension else ("/extension", {key: text})
        return [{"op": "add", "path": path, "value": value}]

    @cached_property
    def _is_bot(self) -> bool:
        return bool((self._server.get("users/loggedInUser") or {}).get("isBot"))

    # Tasks

    def _pipeline(self, urn: str) -> dict[str, Any] | None:
        place = locate(urn)
        return None if place is None else self._entity(KINDS["pipeline"], place[1])

    def _tasks(self, pipeline: Mapping[str, Any]) -> dict[str, CatalogEntity]:
        """The tasks of a pipeline by their names."""
        parent = name_of("pipeline", pipeline["fullyQualifiedName"])
        shown = _read_tasks(parent, pipeline.get("tasks") or ())
        kept = _kept_tasks(pipeline)
        return {
            name: _with_edits(kept[name], task) if name in kept else task
            for name, task in shown.items()
        }

    def _put_task(self, item: CatalogEntity) -> set[tuple[str, str]]:
        found = task_of(item.urn)
        assert found is not None, "only tasks are written here"
        urn, name = found
        place = locate(urn)
        assert place is not None, "a task names its pipeline"
        if (pipeline := self._pipeline(urn)) is None:
            body = self._referring.body(KINDS["pipeline"], place[1], {"description": MADE})
            self._server.put("pipelines", body)
            pipeline = self._pipeline(urn)
            assert pipeline is not None, "it was just written"
        self._write_tasks(pipeline, {**self._tasks(pipeline), name: item})
        return set()

    def _write_tasks(self, pipeline: dict[str, Any], tasks: Mapping[str, CatalogEntity]) -> None:
        """Make the tasks of a pipeline exactly these."""
        spec = KINDS["pipeline"]
        parent = name_of("pipeline", pipeline["fullyQualifiedName"])
        there = {task["name"]: _sent_task(task) for task in pipeline.get("tasks") or ()}
        native = {
            name: self._native_task(there.get(name, {}), name, task) for name, task in tasks.items()
        }
        following: dict[str, list[str]] = {name: [] for name in native}
        for name, task in tasks.items():
            for earlier in task.references.get("upstream", ()):
                before = task_of(earlier)
                if before is not None and before[0] == parent and before[1] in native:
                    following[before[1]].append(name)
        for name, names in following.items():
            native[name] |= {"downstreamTasks": sorted(set(names))} if names else {}
        shown = _read_tasks(parent, native.values())
        kept = {
            name: Kept(task, shown[name]) for name, task in tasks.items() if shown[name] != task
        }
        operations = []
        if native != there:
            operations.append({"op": "add", "path": "/tasks", "value": list(native.values())})
        if kept != _kept_tasks(pipeline):
            text = to_json({name: to_plain(each._asdict()) for name, each in kept.items()}).decode()
            operations += self._property(spec, pipeline, TASKS, text if kept else None)
        if operations:
            self._server.patch(f"pipelines/{pipeline['id']}", [*guard(pipeline), *operations])

    def _native_task(self, there: Record, name: str, task: CatalogEntity) -> Record:
        modelled = ("displayName", "description", "tags", "downstreamTasks", *_TASK_FIELDS)
        native = {key: value for key, value in there.items() if key not in modelled}
        mine = task.raw.get(CATALOG)
        for key in _TASK_FIELDS:
            if isinstance(mine, dict) and isinstance(mine.get(key), str):
                native[key] = mine[key]
        if task.display_name:
            native["displayName"] = shown_text(task.display_name)
        if task.description:
            native["description"] = shown_text(task.description)
        wanted = labels(task.tags, task.references.get("terms", ()))
        possible = [
            {**label, "tagFQN": fqn}
            for label in wanted
            if (fqn := self._labels.find(label["source"], label["tagFQN"])) is not None
        ]
        return {"name": name, **native, **({"tags": possible} if possible else {})}

    # Removing

    def erase(self, item: Item) -> None:
        """Remove an item; an entity that others are in or use becomes a placeholder."""
        self._waiting.pop(key_of(item), None)
        if isinstance(item, CatalogEntity) and (task := task_of(item.urn)) is not None:
            if (pipeline := self._pipeline(task[0])) is not None:
                left = {n: each for n, each in self._tasks(pipeline).items() if n != task[1]}
                self._write_tasks(pipeline, left)
                if not left and pipeline.get("description") == MADE:
                    self._delete(KINDS["pipeline"], pipeline)
            return
        spec, fqn = self._place(type(item), key_of(item))
        entity = self._entity(spec, fqn)
        if entity is None or _is_built_in(entity):
            return
        # What is in a domain is only known once everything is looked at, which `tidy` does.
        if spec.type == "domain" or self._is_used(spec, entity) or not self._delete(spec, entity):
            self._empty(spec, fqn, entity, item)
        if spec.is_service:
            self._index.forget_services()
        self._referring.forget()
        self._labels.forget()

    def _empty(self, spec: EntityKind, fqn: str, entity: dict[str, Any], item: Any) -> None:
        """Make a placeholder of an entity."""
        record = {
            **{key: entity[key] for key in spec.needed if key in entity},
            "description": MADE,
        }
        if self._is_renamed(spec, entity, record):
            entity = self._create(spec, fqn, record, item, None, over=entity)
        entity = self._changed(spec, self._linked(spec, entity), record)
        if KEPT in (entity.get("extension") or {}):
            self._write_property(spec, entity, KEPT, None)

    def _delete(self, spec: EntityKind, entity: Mapping[str, Any]) -> bool:
        try:
            self._server.delete(f"{spec.route}/{entity['id']}", hardDelete=True)
        except CatalogError as problem:
            if problem.status not in _STAYS:
                raise
            return False
        return True

    def _is_used(self, spec: EntityKind, entity: Mapping[str, Any]) -> bool:
        asked = {
            "tag": "usageCount",
            "glossaryTerm": "usageCount",
            "user": "owns,teams",
            "team": "owns",
        }
        if spec.type == "pipeline":
            return bool(entity.get("tasks"))
        if spec.type not in asked:
            return False
        told = self._server.get(f"{spec.route}/{entity['id']}", fields=asked[spec.type]) or {}
        teams = {each["name"] for each in told.get("teams") or ()} - {"Organization"}
        return bool(told.get("usageCount") or told.get("owns") or teams)

    def tidy(self) -> None:
        """Remove placeholders that nothing refers to or is in, and services of Lumos."""
        self._index.tidy()
        for spec in reversed(KINDS.values()):
            left = [
                entity
                for entity in self._pages(spec)
                if entity.get("description") == MADE and is_placeholder(spec, entity)
            ]
            if left and spec.type == "domain":
                in_use = self._domains_in_use()
                left = [entity for entity in left if entity["id"] not in in_use]
            # What is in others goes before them.
            for entity in sorted(left, key=lambda each: -len(split(each["fullyQualifiedName"]))):
                if not self._is_used(spec, entity):
                    self._delete(spec, entity)
        self._labels.forget()
        self._referring.forget()

    def _domains_in_use(self) -> set[str]:
        """Domains that something is in; no route of the server tells what is in one."""
        routes = [home.route for home in HOMES.values()]
        routes += [spec.route for spec in KINDS.values() if "domains" in spec.refers]
        return {
            domain["id"]
            for route in routes
            for entity in self._server.pages(route, fields="domains", include="non-deleted")
            for domain in entity.get("domains") or ()
            if not domain.get("inherited")
        }


def _variant_of(spec: EntityKind, entity: Mapping[str, Any]) -> EntityKind:
    """The variant of a kind for what is Lumos's own."""
    home = split(entity["fullyQualifiedName"])[0]
    if spec.type == "pipeline" and home == OWN_SERVICE:
        return JOB
    return OWN_TERM if spec.type == "glossaryTerm" and home == OWN else spec


def _may_be_placeholder(spec: EntityKind, fqn: str) -> bool:
    """Whether an entity that says nothing would be taken for a placeholder."""
    is_own = split(fqn)[0] == OWN and spec.type in ("tag", "glossaryTerm")
    return is_own or spec.type in ("user", "team", "domain")


def _is_built_in(entity: Mapping[str, Any]) -> bool:
    """Whether an entity came with the server."""
    is_first = entity.get("isAdmin") and entity["name"] == "admin"
    is_system = entity.get("provider") == "system" or entity.get("isBot")
    return bool(is_first or is_system or entity.get("teamType") == "Organization")


def _is_left_out(spec: EntityKind, entity: Mapping[str, Any]) -> bool:
    if _is_built_in(entity):
        return True
    is_empty = is_placeholder(spec, entity) and not (
        spec.type == "pipeline" and entity.get("tasks")
    )
    return is_empty or (spec.is_service and entity["name"] == OWN_SERVICE)


def _is_inside(item: Any, fqn: str) -> bool:
    """Whether an item says that it is inside of what its name begins with."""
    above = split(fqn)[:-1]
    match item:
        case CatalogEntity(kind="domain"):
            return item.parent == name_of("domain", joined(*above))
        case CatalogEntity() | GlossaryTerm():
            parts = split(fqn)
            is_name = len(parts) > 1 and parts[0] != OWN and all(parts) and joined(*parts) == fqn
            return is_name and isinstance(item.raw.get(CATALOG), dict)
        case _:
            return False


def _in_new_form(item: CatalogEntity) -> CatalogEntity:
    """An item under its canonical URN; records of format 1.0 become fields."""
    place = locate(item.urn)
    if place is None:
        return item
    spec, urn = KINDS[place[0]], name_of(*place)
    mine = item.raw.get(CATALOG)
    is_former = isinstance(mine, dict) and item == CatalogEntity(
        urn=item.urn, kind=item.kind, raw=item.raw
    )
    if is_former:
        others = {key: value for key, value in item.raw.items() if key != CATALOG}
        read: CatalogEntity = read_item(spec, place[1], write_record(spec, item))
        return msgspec.structs.replace(read, raw={**read.raw, **others})
    if item.urn.startswith(f"{CATALOG}:"):
        return msgspec.structs.replace(item, urn=urn, kind=spec.kind or spec.type)
    return item


def _with_former_tasks(item: Item) -> Iterator[Item]:
    """An item, and the tasks that format 1.0 had in the record of a pipeline."""
    yield item
    mine = item.raw.get(CATALOG) if isinstance(item, CatalogEntity) else None
    if isinstance(item, CatalogEntity) and isinstance(mine, dict) and "tasks" in mine:
        place = locate(item.urn)
        if place is not None and isinstance(mine["tasks"], list):
            yield from _read_tasks(name_of(*place), mine["tasks"]).values()


def _is_plain(item: Item) -> bool:
    """Whether the kind of an item has no custom properties."""
    place = locate(item.urn) if isinstance(item, CatalogEntity) else None
    return place is not None and not KINDS[place[0]].extends


def _rank(item: Item) -> tuple[int, int, str]:
    match item:
        case User():
            return RANKS["user"], 0, item.name
        case Group():
            return RANKS["team"], 0, item.name
        case GlossaryTerm():
            return RANKS["glossaryTerm"], len(split(item.name)), item.name
        case Job():
            return len(RANKS) + 1, 0, item.urn
        case _:
            place = locate(item.urn)
            if place is None:
                return len(RANKS), 0, item.urn
            return RANKS[place[0]], len(split(place[1])), item.urn


def _missing(spec: EntityKind, kept: Kept) -> frozenset[tuple[str, str]]:
    """The datasets and entities that an item refers to and its entity does not."""
    mine, shown = (set(_references_in(write_record(spec, each))) for each in kept)
    return frozenset(mine - shown)


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


def _with_edits(kept: Kept, now: Any) -> Any:
    """An item exactly as written, with what people changed since."""
    if now == kept.shown:
        return kept.item
    if isinstance(now, Job) and now.schedule and kept.item.schedule:
        schedule = msgspec.structs.replace(kept.item.schedule, cron=now.schedule.cron)
        before = msgspec.structs.replace(kept.shown, schedule=kept.item.schedule)
        kept, now = Kept(kept.item, before), msgspec.structs.replace(now, schedule=schedule)
    return merge_item(kept.shown, now, kept.item).item


def _kept(spec: EntityKind, entity: Mapping[str, Any]) -> Kept | None:
    """What Lumos put into a custom property; anything else there is ignored."""
    types = {"glossaryTerm": GlossaryTerm, "pipeline": Job if spec == JOB else CatalogEntity}
    type = types.get(spec.type, CatalogEntity)
    text = (entity.get("extension") or {}).get(KEPT)
    found: Kept | None = _decoded(text, lambda said: _kept_from(said, type))
    return found


def _kept_tasks(pipeline: Mapping[str, Any]) -> dict[str, Kept]:
    text = (pipeline.get("extension") or {}).get(TASKS)
    return (
        _decoded(text, lambda said: {n: _kept_from(e, CatalogEntity) for n, e in said.items()})
        or {}
    )


def _kept_from(said: Any, type: type[Any]) -> Kept:
    return Kept(from_plain(said["item"], type), from_plain(said["shown"], type))


def _decoded(text: Any, read: Any) -> Any:
    if not isinstance(text, str):
        return None
    try:
        return read(msgspec.json.decode(text))
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError):
        return None


def _read_tasks(pipeline: str, tasks: Iterable[Mapping[str, Any]]) -> dict[str, CatalogEntity]:
    """Tasks as their pipeline shows them, by their names."""
    found = list(tasks)
    earlier: dict[str, list[str]] = {}
    for task in found:
        for name in task.get("downstreamTasks") or ():
            earlier.setdefault(name, []).append(task_urn(pipeline, task["name"]))
    return {task["name"]: _read_task(pipeline, task, earlier) for task in found}


def _read_task(
    pipeline: str, task: Mapping[str, Any], earlier: Mapping[str, list[str]]
) -> CatalogEntity:
    tags, terms = labels_in(task.get("tags") or ())
    references = {"terms": terms, "upstream": tuple(sorted(earlier.get(task["name"], ())))}
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


def _sent_task(task: Mapping[str, Any]) -> Record:
    """A task as it may be written again."""
    told = {key: value for key, value in task.items() if value not in (None, [])}
    told.pop("fullyQualifiedName", None)
    if "tags" in told:
        keys = ("tagFQN", "source", "labelType", "state")
        told["tags"] = [{key: each[key] for key in keys if key in each} for each in told["tags"]]
    return told
