"""What is no dataset and only OpenMetadata has: services, tags, dashboards, pipelines and so on.

Each is an `Other` named `openmetadata:<type>:<qualified name>`, which carries a record of it. Put
into a server it becomes what it was: made where it is not there, else changed by the differences.
What a record says that cannot be shown (yet), because something that it refers to is not there, is
kept beside it and shown once the other one is there.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Final

from lumos.catalogs.interface import Refused
from lumos.catalogs.openmetadata.containers import HOMES
from lumos.catalogs.openmetadata.entity_kinds import (
    CATALOG,
    MADE,
    RANKS,
    THINGS,
    Record,
    Thing,
    name_of,
    record_of,
    says_more,
    says_nothing,
)
from lumos.catalogs.openmetadata.extras import ABOUT, KEPT, Kept, OpenMetadataExtras
from lumos.catalogs.openmetadata.index import Index
from lumos.catalogs.openmetadata.labels import ABOUT as ABOUT_LABELS
from lumos.catalogs.openmetadata.labels import OWN
from lumos.catalogs.openmetadata.names import OWN_SERVICE, split
from lumos.catalogs.openmetadata.patches import guard
from lumos.catalogs.openmetadata.references import DATASET, Referring
from lumos.catalogs.openmetadata.server import Outdated, Server
from lumos.catalogs.plain_merge import merged_objects
from lumos.errors import CatalogError, CatalogTooOld, CatalogUnavailable, LumosError
from lumos.model.catalog import CatalogEntity

WORD: Final = "things"
"""The folder that their exact forms are kept in."""
_NAMED: Final = re.compile(rf"{CATALOG}:(?P<type>[A-Za-z]+):(?P<fqn>.+)\Z", re.DOTALL)
_BY_LUMOS: Final = frozenset({MADE, ABOUT, ABOUT_LABELS})
_ATTEMPTS: Final = 3
_NOT_EMPTY: Final = 400
_FORBIDDEN: Final = 403
# What other things an entity may show, and how those are told to leave it.
_SHOWS_OTHERS: Final = ("tag", "domain", "pipeline")
Known = Callable[[], Container[tuple[str, str]]]
GiveWay = Callable[[str, str], None]


def named(urn: str) -> tuple[Thing, str] | None:
    """The kind and the qualified name that a URN stands for, if it is of an entity."""
    match = _NAMED.match(urn)
    thing = THINGS.get(match["type"]) if match else None
    return None if match is None or thing is None else (thing, match["fqn"])


def is_thing(item: Any) -> bool:
    """Whether an item is an entity of OpenMetadata that is no dataset, as reading tells it."""
    if not isinstance(item, CatalogEntity) or (found := named(item.urn)) is None:
        return False
    record = item.raw.get(CATALOG)
    thing = found[0]
    allowed = {*thing.fields, "extension", "declared", "deleted", "edges"}
    is_record = isinstance(record, dict) and record.keys() <= allowed and len(item.raw) == 1
    return is_record and all(split(found[1])) and thing.type != "glossaryTerm"


def is_of_a_glossary(thing: CatalogEntity) -> bool:
    """Whether a thing is a term."""
    found = named(thing.urn)
    return found is not None and found[0].type == "glossaryTerm"


class OtherEntities:
    """The things of one server."""

    def __init__(
        self,
        server: Server,
        index: Index,
        keeper: OpenMetadataExtras,
        referring: Referring,
        shown_elsewhere: Known,
        give_way: GiveWay,
    ) -> None:
        self._server = server
        self._index = index
        self._keeper = keeper
        self._referring = referring
        self._shown_elsewhere = shown_elsewhere
        self._give_way = give_way
        # Those that refer to something which was not there when they were put, and to what; nothing
        # where an earlier process put them.
        self._waiting: dict[str, frozenset[tuple[str, str]] | None] = {}
        self._asked_who_waits = False

    # Reading

    def all(self) -> Iterator[CatalogEntity]:
        """Every thing that somebody said something of."""
        kept = {
            found.item.urn: found
            for _, found in self._keeper.all({WORD: (CatalogEntity, CatalogEntity)})
        }
        elsewhere = self._shown_elsewhere()
        for thing in THINGS.values():
            entities = [
                entity
                for entity in self._listed(thing)
                # What people say of one beside is theirs to keep.
                if (thing.type, entity["fullyQualifiedName"]) not in elsewhere
                or says_more(thing, entity)
            ]
            told = dict(self._server.each(entities, partial(self._reported, thing)))
            for urn in sorted(told):
                item = self._item(thing, urn, told[urn], kept.pop(urn, None))
                if item is not None:
                    yield item
        yield from (_is_standalone(each) for each in kept.values())

    def get(self, urn: str) -> CatalogEntity | None:
        found = named(urn)
        assert found is not None, "only things are asked for"
        thing, fqn = found
        return self._item(thing, urn, self._entity(thing, fqn), self._kept(urn))

    def _listed(self, thing: Thing) -> list[dict[str, Any]]:
        return self._pages(thing.route, thing.asked)

    def _pages(self, route: str, fields: str) -> list[dict[str, Any]]:
        try:
            return list(self._server.pages(route, fields=fields))
        except CatalogTooOld:
            # A server that has no such things.
            return []

    def _reported(self, thing: Thing, entity: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """An entity as it is told by itself, where lists leave something out."""
        fqn = entity["fullyQualifiedName"]
        whole = self._entity(thing, fqn) if thing.alone or thing.linked else entity
        return name_of(thing.type, fqn), entity if whole is None else whole

    def _entity(self, thing: Thing, fqn: str) -> dict[str, Any] | None:
        found = self._server.named(thing.route, fqn, fields=thing.asked, include="all")
        if found is not None and thing.linked and not found.get("deleted"):
            found["edges"] = self._referring.edges(thing.type, found)
        return dict(found) if found is not None else None

    def _record(self, thing: Thing, entity: Mapping[str, Any]) -> Record:
        record: Record = self._referring.portable(record_of(thing, entity))
        if entity.get("edges"):
            record["edges"] = entity["edges"]
        if "extension" in record:
            record["declared"] = self._referring.declared(thing.type, record["extension"])
        return record

    def _item(
        self, thing: Thing, urn: str, entity: Mapping[str, Any] | None, kept: Kept | None
    ) -> CatalogEntity | None:
        if kept is None:
            if entity is None or _is_no_item(thing, entity):
                return None
            return CatalogEntity(urn=urn, raw={CATALOG: self._record(thing, entity)})
        exact: CatalogEntity = kept.item
        if kept.begun or entity is None or kept.shown is None:
            return _is_standalone(kept)
        then, now = kept.shown.raw[CATALOG], self._record(thing, entity)
        if then == now:
            return exact
        merged = merged_objects(CATALOG, then, now, exact.raw[CATALOG], _untold)
        return CatalogEntity(urn=urn, raw={**exact.raw, CATALOG: merged})

    def _kept(self, urn: str) -> Kept | None:
        return self._keeper.kept(WORD, urn, CatalogEntity)

    # Writing

    def put_all(self, items: Iterable[CatalogEntity]) -> Iterator[Refused]:
        """Puts some, what others are in or refer to first."""
        arrived = set()
        for item in sorted(items, key=lambda each: _rank(each.urn)):
            try:
                if self.put(item):
                    arrived.add(_named_as_reference(item.urn))
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                yield Refused(item.urn, problem)
        self._complete(arrived)

    def put(self, item: CatalogEntity) -> bool:
        """Makes a thing exactly this; says whether it is there, and not only kept."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._put(item)
            except Outdated:
                continue
        return self._put(item)

    def complete(self, datasets: Iterable[str]) -> None:
        """Shows what waited for datasets that are there now; not only since this process began."""
        if not self._asked_who_waits:
            self._asked_who_waits = True
            if self._keeper.holds_any(WORD):
                for _, found in self._keeper.all({WORD: (CatalogEntity, CatalogEntity)}):
                    if _is_waiting(found.item, found.shown):
                        self._waiting.setdefault(found.item.urn, None)
        self._complete({(DATASET, urn) for urn in datasets})

    def complete_pipelines(self) -> None:
        """Shows what waited for services of pipelines, which flows of other catalogs bring, too."""
        missed = {each for some in self._waiting.values() for each in some or ()}
        self._complete({each for each in missed if each[0] == "pipelineService"})

    def _complete(self, arrived: set[tuple[str, str]]) -> None:
        """Shows what waited for something that has arrived, and in turn what waited for that."""
        while ready := [
            urn
            for urn, missed in self._waiting.items()
            if missed is None or not missed.isdisjoint(arrived)
        ]:
            arrived = set()
            for urn in sorted(ready, key=_rank):
                del self._waiting[urn]
                if self._is_put_again(urn):
                    arrived.add(_named_as_reference(urn))

    def _is_put_again(self, urn: str) -> bool:
        item = self.get(urn)
        if item is None or not item.raw:
            return False
        try:
            return self._put(item, again=True)
        except CatalogUnavailable:
            raise
        except LumosError:
            # It concerns nobody who writes now: what is kept says all of it.
            return False

    def _put(self, item: CatalogEntity, *, again: bool = False) -> bool:
        found = named(item.urn)
        assert found is not None, "only things are put"
        thing, fqn = found
        record: Record = item.raw[CATALOG]
        entity, before = self._entity(thing, fqn), self._kept(item.urn)
        is_begun = before is not None and before.begun
        if not is_begun and not again and self._item(thing, item.urn, entity, before) == item:
            return entity is not None
        is_new = entity is None or says_nothing(thing, entity)
        made = is_new if before is None else before.made
        shown: CatalogEntity | None = None
        if not _is_built_in(entity) and not (entity is None and record.get("deleted")):
            if before is None and is_new:
                before = Kept(item, None, made=True, begun=True)
                self._keeper.keep(WORD, item.urn, before)
            elif before is None and thing.type in _SHOWS_OTHERS:
                self._give_way(thing.type, fqn)
            self._referring.missed.clear()
            was_there = entity is not None and not is_begun
            try:
                entity = self._written(thing, fqn, record, entity)
            except (CatalogUnavailable, Outdated):
                raise
            except LumosError:
                if before is not None and before.begun:
                    self._take_back(thing, item.urn, fqn, was_there=was_there)
                raise
            if entity is not None:
                shown = CatalogEntity(urn=item.urn, raw={CATALOG: self._record(thing, entity)})
        if _is_waiting(item, shown):
            self._waiting[item.urn] = frozenset(self._referring.missed)
        kept = None if shown == item and not made else Kept(item, shown, made)
        if kept != before:
            self._keeper.keep(WORD, item.urn, kept)
        return shown is not None

    def _take_back(self, thing: Thing, urn: str, fqn: str, *, was_there: bool) -> None:
        """Leaves nothing of something that was refused half way."""
        if was_there:
            self._say_nothing(thing, fqn)
        elif (entity := self._entity(thing, fqn)) is not None:
            self._remove(thing, fqn, entity)
        self._keeper.keep(WORD, urn, None)

    def _written(
        self, thing: Thing, fqn: str, record: Record, entity: Any
    ) -> dict[str, Any] | None:
        """The entity once it says as much of a record as it can."""
        referring = self._referring
        referring.declare(thing.type, record)
        is_hidden = entity is not None and bool(entity.get("deleted"))
        is_bare = entity is None or says_nothing(thing, entity)
        if is_bare or (is_hidden and not record.get("deleted")):
            body = referring.body(thing, fqn, record)
            if body is None:
                return None
            self._server.put(thing.route, body)
            if thing.is_service:
                self._index.forget_services()
            entity = self._entity(thing, fqn)
        if entity is None:
            return None
        if not entity.get("deleted"):
            there = self._record(thing, entity)
            operations = referring.operations(thing, entity, there, record, is_bot=self._is_bot)
            if operations:
                self._server.patch(f"{thing.route}/{entity['id']}", [*guard(entity), *operations])
            drawn = thing.linked and referring.draw(thing.type, entity, there, record)
            if record.get("deleted"):
                self._server.delete(f"{thing.route}/{entity['id']}")
            if operations or drawn or record.get("deleted"):
                entity = self._entity(thing, fqn)
        return dict(entity) if entity is not None else None

    def erase(self, item: CatalogEntity) -> None:
        """Takes a thing out; what people made stays, without what was kept of it."""
        found = named(item.urn)
        assert found is not None, "only things are erased"
        thing, fqn = found
        kept = self._kept(item.urn)
        if kept is None:
            return
        entity = self._entity(thing, fqn)
        if entity is not None and kept.made:
            self._remove(thing, fqn, entity)
        self._keeper.keep(WORD, item.urn, None)
        self._waiting.pop(item.urn, None)

    def _remove(self, thing: Thing, fqn: str, entity: Mapping[str, Any]) -> None:
        # What is in a domain only a look at everything tells, which is taken once, at the end.
        if thing.type == "domain" or not self._is_gone(thing, entity):
            # Others are in it or use it: it says nothing any more, and goes with the last of them.
            if body := self._referring.body(thing, fqn, {**thing.needed, "description": MADE}):
                self._server.put(thing.route, body)
            self._say_nothing(thing, fqn)
        if thing.is_service:
            self._index.forget_services()
        self._referring.forget(thing.type, fqn)

    def _say_nothing(self, thing: Thing, fqn: str) -> None:
        if (entity := self._entity(thing, fqn)) is None:
            return
        there, wanted = self._record(thing, entity), _without_values(thing, entity)
        operations = self._referring.operations(thing, entity, there, wanted, is_bot=self._is_bot)
        if operations:
            self._server.patch(f"{thing.route}/{entity['id']}", operations)

    def tidy(self) -> None:
        """Takes out what is only there because others were in it."""
        for thing in reversed(THINGS.values()):
            left = [
                entity
                for entity in self._listed(thing)
                if entity.get("description") == MADE and says_nothing(thing, entity)
            ]
            if left and thing.type == "domain":
                in_use = self._domains_in_use()
                left = [entity for entity in left if entity["id"] not in in_use]
            # What is in others goes before them.
            for entity in sorted(left, key=lambda each: -len(split(each["fullyQualifiedName"]))):
                self._is_gone(thing, entity)
                self._referring.forget(thing.type, entity["fullyQualifiedName"])

    def forget(self) -> None:
        """Looks for everything again when it is needed next."""
        self._referring.forget_all()

    def _is_gone(self, thing: Thing, entity: Mapping[str, Any]) -> bool:
        """Takes an entity out that nobody uses; says whether that was so."""
        if self._is_used(thing, entity):
            return False
        try:
            self._server.delete(f"{thing.route}/{entity['id']}", hardDelete=True)
        except CatalogError as problem:
            if problem.status not in (_NOT_EMPTY, _FORBIDDEN):
                raise
            return False
        return True

    def _is_used(self, thing: Thing, entity: Mapping[str, Any]) -> bool:
        match thing.type:
            case "tag" | "glossaryTerm":
                told = self._server.get(f"{thing.route}/{entity['id']}", fields="usageCount") or {}
                return bool(told.get("usageCount"))
            case _:
                return False

    def _domains_in_use(self) -> set[str]:
        """Domains that something is in; no route of the server tells what is in one."""
        routes = [home.route for home in HOMES.values()]
        routes += [thing.route for thing in THINGS.values() if "domains" in thing.refers]
        return {
            domain["id"]
            for route in routes
            for entity in self._pages(route, "domains")
            for domain in entity.get("domains") or ()
            if not domain.get("inherited")
        }

    @cached_property
    def _is_bot(self) -> bool:
        return bool((self._server.get("users/loggedInUser") or {}).get("isBot"))


def _is_standalone(kept: Kept) -> CatalogEntity:
    """What is told of a thing by what is kept of it; of one that was only begun, that it is one."""
    item: CatalogEntity = kept.item
    return CatalogEntity(urn=item.urn) if kept.begun else item


def _named_as_reference(urn: str) -> tuple[str, str]:
    """The type and the qualified name that others refer to a thing by."""
    _, type, fqn = urn.split(":", 2)
    return type, fqn


def _rank(urn: str) -> tuple[int, int, str]:
    found = named(urn)
    if found is None:
        return len(RANKS), 0, urn
    return RANKS[found[0].type], len(split(found[1])), urn


def _without_values(thing: Thing, entity: Mapping[str, Any]) -> Record:
    """A record of an entity of which nothing is said any more."""
    record = record_of(thing, entity)
    return {key: record[key] for key in thing.own if key in record} | {"description": MADE}


def _is_waiting(item: CatalogEntity, shown: CatalogEntity | None) -> bool:
    """Whether something of an item is not shown that may be one day."""
    record: Record = item.raw[CATALOG]
    return not record.get("deleted") and (shown is None or shown.raw[CATALOG] != record)


def _is_built_in(entity: Mapping[str, Any] | None) -> bool:
    return entity is not None and entity.get("provider") == "system"


def _is_no_item(thing: Thing, entity: Mapping[str, Any]) -> bool:
    """Whether an entity came with the server, or is there for Lumos alone."""
    if _is_built_in(entity) or says_nothing(thing, entity):
        return True
    home = split(entity["fullyQualifiedName"])[0]
    if thing.type == "pipeline" and home == OWN_SERVICE:
        return True
    if thing.type == "glossaryTerm" and (home == OWN or KEPT in (entity.get("extension") or {})):
        return True
    said = record_of(thing, entity).keys() - thing.needed.keys() - {"description"}
    return not said and entity.get("description") in _BY_LUMOS


def _untold(path: str, theirs: Any, ours: Any) -> None:
    """Conflicts are told by the merge of the whole item."""
