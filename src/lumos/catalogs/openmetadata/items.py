"""What is no dataset: terms, users and teams as OpenMetadata has them, jobs as pipelines.

What it has no place for lies beside, whole, together with what was shown when it was written: so
people's later edits are told from what never came through. Terms and pipelines have a custom
property for that, users and teams a container in the storage service `lumos`. So has everything
that was brought from other catalogs, some of which is shown all the same. What people made is
never replaced, only changed in part.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.datahub_model.annotations import DataHubWords, with_words, words_of
from lumos.catalogs.interface import Item
from lumos.catalogs.openmetadata import users as people
from lumos.catalogs.openmetadata.extras import (
    KEPT,
    Kept,
    OpenMetadataExtras,
    holders,
    inside,
    text_of,
)
from lumos.catalogs.openmetadata.foreign import ForeignView, Paged, view_of
from lumos.catalogs.openmetadata.labels import OWN, OpenMetadataLabels, team_name
from lumos.catalogs.openmetadata.names import OWN_SERVICE, joined, meant, shortened, spelled, split
from lumos.catalogs.openmetadata.other_entities import WORD
from lumos.catalogs.openmetadata.patches import guard
from lumos.catalogs.openmetadata.properties import CustomProperties
from lumos.catalogs.openmetadata.server import Outdated, Server
from lumos.model.catalog import CatalogEntity, GlossaryTerm, Group, Job, User
from lumos.model.dataset import Owner

_TERM_FIELDS: Final = "relatedTerms,owners,domains,extension"
_ATTEMPTS: Final = 3


class _Kind(NamedTuple):
    """A kind of items: its type, what it is called in the catalog, and how it is read there."""

    type: type[Any]
    word: str
    route: str | None
    read: Callable[[Mapping[str, Any]], Any] | None
    is_bare: Callable[[Mapping[str, Any]], bool] | None
    facts: Callable[[Any], dict[str, Any]] | None
    view: ForeignView | None = None


_KINDS: Final = {
    kind.type: kind
    for kind in (
        _Kind(
            GlossaryTerm, "glossaryTerm", "glossaryTerms", people.read_term, people.is_bare_term,
            people.term_facts,
        ),
        _Kind(
            User, "users", "users", people.read_user, people.is_bare_user,
            lambda user: people.named(user.display_name),
        ),
        _Kind(
            Group, "teams", "teams", people.read_group, people.is_bare_group, people.group_facts
        ),
        _Kind(Job, "pipeline", "pipelines", people.read_job, None, people.job_facts),
        _Kind(CatalogEntity, "others", None, None, None, None),
    )
}  # fmt: skip
_BESIDE: Final = (User, Group, CatalogEntity)
# The fields that tell whether others refer to an entity.
_TELLS_USE: Final[Mapping[type[Any], str]] = {
    GlossaryTerm: "usageCount",
    User: "owns",
    Group: "owns",
}
OWN_HOLDERS: Final = holders((*(_KINDS[type].word for type in _BESIDE), WORD))


class OpenMetadataItems:
    """The items of one server."""

    def __init__(
        self, server: Server, labels: OpenMetadataLabels, properties: CustomProperties
    ) -> None:
        self._server = server
        self._labels = labels
        self._properties = properties
        self.keeper = OpenMetadataExtras(server, properties)
        self._in_use: list[Item] = []
        # What shows things of other catalogs, until one of these is put or goes.
        self._shown: dict[tuple[str, str], list[str]] | None = None

    def all(self) -> Iterator[Item]:
        """Every item."""
        kept = self._all_kept()
        for kind, entity in self._entities():
            beside = (
                kept[kind.type].pop(meant(entity["name"]), None)
                if kind.type in _BESIDE
                else _inside(kind, entity)
            )
            if (item := self._item(kind, entity, beside)) is not None:
                yield item
        paged = Paged(self._server)
        for type, left in kept.items():
            for key, each in left.items():
                kind = self._kind(type, key, paged if each.shown is not None else None)
                beside = None if kind.view is None else kind.view.found(each.entity)
                if (item := self._item(kind, beside, each)) is not None:
                    yield item

    def shown_elsewhere(self) -> dict[tuple[str, str], list[str]]:
        """The URNs of what other catalogs have, by type and qualified name of what shows it."""
        paged = Paged(self._server)
        found: dict[tuple[str, str], list[str]] = {}
        for key, kept in self._all_kept()[CatalogEntity].items():
            view = self._kind(CatalogEntity, key, paged).view if kept.made else None
            if view is not None and (entity := view.found(kept.entity)) is not None:
                place = view.type, view.home(entity)["fullyQualifiedName"]
                found.setdefault(place, []).append(key)
        return found

    def give_way(self, type: str, fqn: str) -> None:
        """Leaves an entity to what is named so in this catalog; what it showed is only kept."""
        if self._shown is None:
            self._shown = self.shown_elsewhere()
        for urn in self._shown.pop((type, fqn), ()):
            kept = self.keeper.kept(_KINDS[CatalogEntity].word, urn, CatalogEntity, DataHubWords)
            if kept is not None:
                now = self.get(CatalogEntity, urn)
                self.keeper.keep(_KINDS[CatalogEntity].word, urn, Kept(now, None, made=False))

    def get(self, type: type[Item], key: str) -> Item | None:
        kind = self._kind(type, key, self._server)
        return self._item(kind, *self._found(kind, key))

    def as_held(self, item: Item) -> Item:
        """The item that `get` gives back once this one is put."""
        return item

    def put(self, item: Item) -> None:
        """Makes an item exactly this, natively as far as that goes."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._put(item)
            except Outdated:
                if attempt == _ATTEMPTS:
                    raise
            else:
                return

    def _put(self, item: Item) -> None:
        key = _key(item)
        kind = self._kind(type(item), key, self._server)
        if kind.view is not None:
            self._shown = None
        entity, before = self._found(kind, key)
        is_begun = before is not None and before.begun
        if not is_begun and self._item(kind, entity, before) == item:
            return
        # What was only referred to so far was made by Lumos, too.
        is_new = entity is None or bool(kind.is_bare and kind.is_bare(entity))
        made = is_new if before is None else before.made
        if kind.view is not None:
            is_ours = entity is not None and before is not None and before.made
            made = is_ours or kind.view.is_free()
            if not made:
                # People have something of that name: it is theirs alone.
                kind, entity = kind._replace(view=None), None
        if before is None and is_new and self._can_show(kind, item, entity):
            before, entity = self._begin(kind, item, entity)
        entity = self._written(kind, item, entity)
        shown = kind.read(entity) if kind.read is not None and entity is not None else None
        is_shown = entity is not None and shown == item and not self._is_no_item(kind, entity)
        if kind.type is GlossaryTerm and is_shown:
            # In people's own glossaries there is more to a term than an item of this kind says.
            is_shown = _is_own(entity)
        kept = None if is_shown and not made else Kept(item, shown, made)
        if kept is not None and kind.view is not None and entity is not None:
            kept = kept._replace(entity=kind.view.home(entity)["id"])
        laid = before if kind.type in _BESIDE else _inside(kind, entity)
        if kept != laid:
            self._keep(kind, key, entity, kept)

    def _begin(self, kind: _Kind, item: Any, entity: Any) -> tuple[Kept, Any]:
        """Lays an item beside before it is shown, unless it comes with what is made for it."""
        begun = _begun(item)
        if kind.type in _BESIDE or entity is not None:
            self._keep(kind, _key(item), entity, begun)
            entity = self._entity(kind, _key(item))
        return begun, entity

    def erase(self, item: Item, *, at_last: bool = False) -> None:
        """Takes an item out; what people made or use stays, without what was kept of it."""
        key = _key(item)
        kind = self._kind(type(item), key, self._server)
        self._shown = None
        entity, kept = self._found(kind, key)
        is_ours = kept is not None and kept.made
        if kind.view is not None:
            if entity is not None and is_ours:
                kind.view.take_out(entity)
        elif entity is not None and is_ours and self._is_used(kind, entity):
            # Perhaps only by what goes next.
            if not at_last:
                self._in_use.append(item)
                return
            is_ours = False
        elif entity is not None and is_ours:
            self._server.delete(f"{kind.route}/{entity['id']}", hardDelete=True)
            self._labels.forget(entity["fullyQualifiedName"], entity["id"])
        if kept is not None and (kind.type in _BESIDE or not is_ours):
            self._keep(kind, key, entity, None)

    def erase_the_rest(self) -> None:
        """Takes out what was still in use when it was to go."""
        while self._in_use:
            self.erase(self._in_use.pop(), at_last=True)

    def _is_used(self, kind: _Kind, entity: Mapping[str, Any]) -> bool:
        """Whether people have come to rely on what was made for an item."""
        if kind.type not in _TELLS_USE:
            return False
        field = _TELLS_USE[kind.type]
        told = self._server.get(f"{kind.route}/{entity['id']}", fields=field) or {}
        return bool(told.get(field))

    def release(self, term: GlossaryTerm) -> None:
        """Takes away what was kept in a term that is in people's own glossary."""
        kind = _KINDS[GlossaryTerm]
        entity = self._entity(kind, term.name)
        if entity is not None and _inside(kind, entity) is not None and not _is_own(entity):
            self._keep(kind, term.name, entity, None)

    def forget_holders(self) -> None:
        """Looks again for what items are in when it is needed next."""
        self.keeper.forget()

    def _item(
        self, kind: _Kind, entity: Mapping[str, Any] | None, kept: Kept | None
    ) -> Item | None:
        if kept is None:
            if (
                entity is None
                or kind.type in (Job, CatalogEntity)
                or self._is_no_item(kind, entity)
            ):
                return None
            assert kind.read is not None
            found: Item = kind.read(entity)
            return found
        if kept.begun:
            unfinished: Item = people.bare(kept.item)
            return unfinished
        exact: Item = kept.item
        if entity is None or kept.shown is None or kind.read is None:
            return exact
        if isinstance(exact, CatalogEntity):
            return _with_edits(exact, kept.shown, kind.read(entity))
        now: Item = people.since(exact, kept.shown, kind.read(entity))
        return now

    @staticmethod
    def _is_no_item(kind: _Kind, entity: Mapping[str, Any]) -> bool:
        """Whether an entity by itself says nothing that would be an item."""
        is_bare = kind.is_bare is not None and kind.is_bare(entity)
        return bool(is_bare or entity.get("deleted") or people.is_built_in(entity))

    # Entities

    def _kind(self, type: type[Any], key: str, server: Server | Paged | None) -> _Kind:
        """The kind of an item; one of another catalog may be shown, as the server tells it."""
        kind = _KINDS[type]
        if type is not CatalogEntity or server is None:
            return kind
        labels = self._labels if server is self._server else OpenMetadataLabels(server)
        view = view_of(key, server, labels, self._made_for)
        if view is None:
            return kind
        return kind._replace(view=view, read=view.read, is_bare=view.is_bare)

    def _made_for(self, urn: str) -> str | None:
        kept = self.keeper.kept(_KINDS[CatalogEntity].word, urn, CatalogEntity, DataHubWords)
        return kept.entity if kept is not None and kept.made else None

    def _found(self, kind: _Kind, key: str) -> tuple[Any, Kept | None]:
        """The entity that an item is or that shows it, and what is kept of the item."""
        if kind.view is not None:
            kept = self._kept(kind, key, None)
            return kind.view.found(None if kept is None else kept.entity), kept
        entity = self._entity(kind, key)
        return entity, self._kept(kind, key, entity)

    def _entity(self, kind: _Kind, key: str) -> Any:
        """The entity that an item is, if there is one."""
        match kind.word:
            case "glossaryTerm":
                return self._labels.known_term(key, fields=_TERM_FIELDS)
            case "users":
                is_account = people.has_account(key)
                return self._labels.known_user(key, fields="teams") if is_account else None
            case "teams":
                return self._server.named(
                    "teams", joined(team_name(key)), fields="users", include="all"
                )
            case "pipeline":
                fqn = joined(OWN_SERVICE, shortened(spelled(key)))
                return self._server.named("pipelines", fqn, fields="extension", include="all")
            case _:
                return None if kind.view is None else kind.view.found()

    def _entities(self) -> Iterator[tuple[_Kind, Any]]:
        for type, fields in ((GlossaryTerm, _TERM_FIELDS), (User, ""), (Group, "users")):
            kind = _KINDS[type]
            assert kind.route is not None
            for entity in self._server.pages(kind.route, fields=fields):
                # Others are things of OpenMetadata's own.
                if type is not GlossaryTerm or _is_for_lumos(entity):
                    yield kind, entity
        if self._server.named("services/pipelineServices", OWN_SERVICE) is not None:
            for entity in self._server.pages("pipelines", fields="extension", service=OWN_SERVICE):
                yield _KINDS[Job], entity

    @staticmethod
    def _can_show(kind: _Kind, item: Any, entity: Any) -> bool:
        """Whether there is an entity, or can be one, that is for Lumos to change."""
        if kind.view is not None:
            return True
        if kind.facts is None or (entity is not None and people.is_built_in(entity)):
            return False
        return kind.type is not User or people.has_account(item.name)

    def _written(self, kind: _Kind, item: Any, entity: Any) -> Any:
        """The entity once it shows as much of an item as it can, or nothing."""
        if not self._can_show(kind, item, entity):
            return entity
        if kind.view is not None:
            return kind.view.written(item, entity)
        if entity is None or entity.get("deleted") or (kind.is_bare and kind.is_bare(entity)):
            return self._made(kind, item, entity)
        return self._changed(kind, item, entity)

    def _made(self, kind: _Kind, item: Any, entity: Any) -> Any:
        assert kind.facts is not None
        facts = kind.facts(item)
        match kind.word:
            case "glossaryTerm":
                known_as = None if entity is None else entity["name"]
                facts |= self._mark(kind, item, entity)
                self._labels.make_term(item.name, known_as=known_as, **facts)
            case "users":
                self._labels.make_user(item.name, people.mail_of(item), **facts, **_teams(entity))
            case "teams":
                users = [each["id"] for each in self._members(item)]
                body = {"name": team_name(item.name), "teamType": "Group", "users": users}
                self._server.put("teams", body | facts)
            case _:
                self.keeper.service("pipeline", "CustomPipeline")
                facts |= self._mark(kind, item, entity)
                body = {"name": shortened(spelled(item.urn)), "service": OWN_SERVICE}
                self._server.put("pipelines", body | facts)
        # A PUT by a bot keeps words that are there, and tells not all fields.
        return self._changed(kind, item, self._entity(kind, _key(item)))

    def _mark(self, kind: _Kind, item: Any, entity: Any) -> dict[str, Any]:
        """What says of a new entity from its first moment that it was made for an item."""
        if entity is not None:
            return {}
        self._properties.declare(kind.word, [KEPT])
        return {"extension": {KEPT: text_of(_begun(item))}}

    def _changed(self, kind: _Kind, item: Any, entity: Any) -> Any:
        assert kind.facts is not None
        facts = kind.facts(item)
        operations = _exchanged(entity, "description", facts.get("description"))
        if kind.type is Job:
            operations += _exchanged(entity, "scheduleInterval", facts.get("scheduleInterval"))
        if kind.type is Group:
            members = self._members(item)
            there = {each["id"] for each in entity.get("users") or ()}
            if there != {each["id"] for each in members}:
                operations.append({"op": "add", "path": "/users", "value": members})
        if not self._is_bot:
            operations += _exchanged(entity, "displayName", facts.get("displayName"))
        if not operations:
            return entity
        self._server.patch(f"{kind.route}/{entity['id']}", [*guard(entity), *operations])
        return self._entity(kind, _key(item))

    def _members(self, group: Group) -> list[dict[str, Any]]:
        owners = [Owner(name=name) for name in group.members]
        self._labels.ensure(owners=owners)
        found = {self._labels.owner(owner)["id"] for owner in owners}
        return [{"id": id, "type": "user"} for id in sorted(found)]

    @cached_property
    def _is_bot(self) -> bool:
        """Whether we are a bot, which may not change the names that people see."""
        return bool((self._server.get("users/loggedInUser") or {}).get("isBot"))

    # What is kept beside

    def _kept(self, kind: _Kind, key: str, entity: Any) -> Kept | None:
        if kind.type not in _BESIDE:
            return _inside(kind, entity)
        return self.keeper.kept(kind.word, key, kind.type, _shown_type(kind))

    def _all_kept(self) -> dict[type[Any], dict[str, Kept]]:
        kept: dict[type[Any], dict[str, Kept]] = {type: {} for type in _BESIDE}
        kinds = {_KINDS[type].word: (type, _shown_type(_KINDS[type])) for type in _BESIDE}
        for word, found in self.keeper.all(kinds):
            kept[kinds[word][0]][_key(found.item)] = found
        return kept

    def _keep(self, kind: _Kind, key: str, entity: Any, kept: Kept | None) -> None:
        """Lays an item beside its entity, or takes it away."""
        if kind.type in _BESIDE:
            self.keeper.keep(kind.word, key, kept)
        else:
            assert kind.route is not None
            self.keeper.lay(kind.route, entity, kind.word, kept)


def _inside(kind: _Kind, entity: Any) -> Kept | None:
    return inside(kind.type, _shown_type(kind), entity)


def _shown_type(kind: _Kind) -> type[Any]:
    """What is read of an entity that shows an item."""
    return DataHubWords if kind.type is CatalogEntity else kind.type


def _is_own(term: Mapping[str, Any]) -> bool:
    """Whether a term is in the glossary of Lumos."""
    return split(term["fullyQualifiedName"])[0] == OWN


def _is_for_lumos(term: Mapping[str, Any]) -> bool:
    return _is_own(term) or KEPT in (term.get("extension") or {})


def _key(item: Any) -> str:
    key: str = item.urn if isinstance(item, Job | CatalogEntity) else item.name
    return key


def _with_edits(exact: CatalogEntity, then: DataHubWords, now: DataHubWords) -> CatalogEntity:
    """What came from another catalog, with what people changed since it was shown."""
    changed = {
        name: getattr(now, name)
        for name in now.__struct_fields__
        if getattr(now, name) != getattr(then, name)
    }
    if not changed:
        return exact
    return with_words(exact, msgspec.structs.replace(words_of(exact), **changed))


def _begun(item: Any) -> Kept:
    """What is laid of an item before it is shown; one that says nothing is finished with that."""
    if isinstance(item, CatalogEntity) or item != people.bare(item):
        return Kept(item, None, made=True, begun=True)
    shown = people.read_job(people.job_facts(item)) if isinstance(item, Job) else item
    return Kept(item, shown, made=True)


def _teams(user: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """The teams of a user that is there, who would leave them all if they were not told again."""
    teams = (user or {}).get("teams") or ()
    ids = [each["id"] for each in teams if each["name"] != people.ROOT_TEAM]
    return {"teams": ids} if ids else {}


def _exchanged(entity: Mapping[str, Any], field: str, value: str | None) -> list[dict[str, Any]]:
    """Operations that give a field another value."""
    path = f"/{field}"
    if (entity.get(field) or None) == (value or None):
        return []
    if not value and field != "description":
        return [{"op": "remove", "path": path}]
    return [{"op": "add", "path": path, "value": value or ""}]
