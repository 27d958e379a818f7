"""What is no dataset: terms, users and groups as DataHub has them, and everything else as it is.

What DataHub has no place for lies beside in a platform resource, DataHub's own kind of entity for
things that only a tool knows of. So do jobs, and what was brought from other catalogs.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from lumos.model.catalog import GlossaryTerm, Group, Job, Other, User
from lumos.model.codec import from_json, to_json
from lumos.model.dataset import Owner, Ownership
from lumos.platforms.datahub_model import facts
from lumos.platforms.datahub_model.carrying import (
    CATALOG,
    carried_in,
    folded,
    left_over,
    over,
    stated,
    without,
)
from lumos.platforms.datahub_model.lenses import State, changed, listed, values
from lumos.platforms.datahub_model.names import entity_name, entity_urn
from lumos.platforms.datahub_model.shapes import statements_of
from lumos.platforms.datahub_model.statements import Entity, Holder, Statement, entity_of
from lumos.platforms.interface import Item

_RESOURCE: Final = "platformResource"
_INFO: Final = "platformResourceInfo"
_LOOSE: Final = "urn:lumos:change:"


class Items:
    """The items that one place holds."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder

    def all(self) -> Iterator[Item]:
        """Every item, in the order of the place."""
        for entity in list(self._holder.entities()):
            if entity.type == "dataset":
                continue
            kind, key = _kind_and_key(entity)
            if entity.type == _RESOURCE and (exact := self._exact(entity)) is not None:
                home = _home(_KINDS[type(exact)], _key(exact))
                if home is None or not statements_of(self._holder, home.urn):
                    yield exact
            elif (item := self.get(kind.type, key)) is not None:
                yield item
        for name in self._holder.loose():
            yield self._change(name)

    def get(self, type: type[Item], key: str) -> Item | None:
        kind = _KINDS[type]
        if key.startswith(_LOOSE):
            name = key.removeprefix(_LOOSE)
            return self._change(name) if name in self._holder.loose() else None
        home = _home(kind, key)
        statements = [] if home is None else statements_of(self._holder, home.urn)
        return _read(kind, key, statements, self._exact(_companion(kind, key)))

    def settled(self, item: Item) -> Item:
        """The item that `get` gives back once this one is put."""
        kind, key = _KINDS[type(item)], _key(item)
        if CATALOG not in item.carried or key.startswith(_LOOSE):
            return item
        rendered = _rendered(kind, key, item)
        settled = _read(kind, key, rendered.statements, rendered.exact)
        assert settled is not None, "something is said of what is there"
        return settled

    def put(self, item: Item) -> None:
        """Makes an item exactly this, natively as far as that goes."""
        kind, key = _KINDS[type(item)], _key(item)
        if key.startswith(_LOOSE):
            change = carried_in(item.carried)[""][0].body
            self._holder.add_loose(key.removeprefix(_LOOSE), change)
            return
        rendered = _rendered(kind, key, item)
        if (home := _home(kind, key)) is not None:
            self._holder.replace(home, rendered.statements)
        self._put_companion(kind, key, rendered.exact)

    def erase(self, item: Item) -> None:
        kind, key = _KINDS[type(item)], _key(item)
        if key.startswith(_LOOSE):
            self._holder.remove_loose(key.removeprefix(_LOOSE))
            return
        if (home := _home(kind, key)) is not None:
            self._holder.replace(home, [])
        self._put_companion(kind, key, None)

    def _change(self, name: str) -> Other:
        change = self._holder.loose()[name]
        return Other(urn=f"{_LOOSE}{name}", carried={CATALOG: {"": [{"body": change}]}})

    def _exact(self, companion: Entity) -> Item | None:
        """The item that Lumos laid into a platform resource, or nothing."""
        info = folded(statements_of(self._holder, companion.urn)).get(_INFO) or {}
        kind = _WORDS.get(info.get("resourceType", ""))
        if kind is None:
            return None
        try:
            exact: Item = from_json(info["value"]["blob"], kind.type)
        except (msgspec.MsgspecError, KeyError, TypeError):
            # Not as Lumos wrote it; it comes out again as what it is now.
            return None
        return exact

    def _put_companion(self, kind: "_Kind", key: str, item: Item | None) -> None:
        statements = []
        if item is not None:
            value = {"blob": to_json(item).decode(), "contentType": "JSON"}
            body = {"resourceType": kind.word, "primaryKey": key, "value": value}
            statements = [Statement(aspect=_INFO, body=body)]
        self._holder.replace(_companion(kind, key), statements)


class _Kind(NamedTuple):
    """A kind of items, the type of entity that it is in DataHub, and how that is read."""

    word: str
    type: type[Any]
    entity: str | None
    read: Callable[[str, State], Any]
    write: Callable[[State, Any], None]


class _Rendered(NamedTuple):
    """What is said of an item as DataHub has it, and all of it where that is more."""

    statements: list[Statement]
    exact: Item | None


def _rendered(kind: _Kind, key: str, item: Item) -> _Rendered:
    bare = msgspec.structs.replace(item, carried=without(item.carried))
    if _home(kind, key) is None:
        return _Rendered([], bare)
    carried = carried_in(item.carried)
    state: State = {}
    kind.write(state, bare)
    state = over(state, carried)
    if kind.read(key, state) != bare:
        kind.write(state, bare)
    shown = kind.read(key, state) if state or carried else None
    return _Rendered(stated(state, carried), None if bare == shown else bare)


def _read(kind: _Kind, key: str, statements: list[Statement], exact: Item | None) -> Item | None:
    """The item that statements are about, with those that must be carried along."""
    if not statements:
        return exact
    item: Item = _since(kind, kind.read(key, folded(statements)), exact)
    made: State = {}
    kind.write(made, item)
    if carried := left_over(statements, made):
        return msgspec.structs.replace(item, carried={**item.carried, CATALOG: carried})
    return item


def _kind_and_key(entity: Entity) -> tuple[_Kind, str]:
    kind = _ENTITIES.get(entity.type)
    name = None if kind is None else entity_name(entity.type, entity.urn)
    # A name that Lumos would spell in another way stays what it is.
    if kind is None or name is None or entity_urn(entity.type, name) != entity.urn:
        return _KINDS[Other], entity.urn
    return kind, name


def _key(item: Item) -> str:
    return item.urn if isinstance(item, Job | Other) else item.name


def _home(kind: _Kind, key: str) -> Entity | None:
    """The entity that an item is in DataHub."""
    if kind.entity is not None:
        return Entity(kind.entity, entity_urn(kind.entity, key))
    return entity_of(key) if kind.type is Other and key.startswith("urn:li:") else None


def _companion(kind: _Kind, key: str) -> Entity:
    return Entity(_RESOURCE, entity_urn(_RESOURCE, f"{kind.word}.{key}"))


def _since(kind: _Kind, shown: Any, exact: Any) -> Any:
    """The exact item, with what changed in DataHub since."""
    if exact is None:
        return shown
    state: State = {}
    kind.write(state, exact)
    then = kind.read(_key(exact), state)
    now = {
        field: getattr(shown, field)
        for field in shown.__struct_fields__
        if getattr(shown, field) != getattr(then, field)
    }
    return msgspec.structs.replace(exact, **now)


def _read_user(name: str, state: State) -> User:
    info = state.get("corpUserInfo") or {}
    return User(
        name=name,
        display_name=info.get("displayName"),
        email=info.get("email"),
        title=info.get("title"),
        active=info.get("active", True),
        groups=_names(state.get("groupMembership"), "groups", "corpGroup"),
        properties=info.get("customProperties") or {},
    )


def _write_user(state: State, user: User) -> None:
    now = _read_user(user.name, state)
    if "corpUserInfo" not in state or now != user:
        facts = {"displayName": user.display_name, "email": user.email, "title": user.title}
        changed(state, "corpUserInfo", active=user.active, **facts)
    if now.properties != user.properties:
        changed(state, "corpUserInfo", customProperties=user.properties)
    if now.groups != user.groups:
        _write_names(state, "groupMembership", "groups", "corpGroup", user.groups)


def _read_group(name: str, state: State) -> Group:
    info = state.get("corpGroupInfo") or {}
    return Group(
        name=name,
        display_name=info.get("displayName"),
        description=info.get("description"),
        email=info.get("email"),
        members=_names(info, "members", "corpuser"),
    )


def _write_group(state: State, group: Group) -> None:
    now = _read_group(group.name, state)
    if "corpGroupInfo" not in state or now != group:
        changed(
            state,
            "corpGroupInfo",
            {"admins": [], "members": [], "groups": []},
            displayName=group.display_name,
            description=group.description,
            email=group.email,
        )
    if now.members != group.members:
        _write_names(state, "corpGroupInfo", "members", "corpuser", group.members)


def _read_term(name: str, state: State) -> GlossaryTerm:
    info = state.get("glossaryTermInfo") or {}
    owners = facts.read_ownership(state) or Ownership()
    return GlossaryTerm(
        name=name,
        display_name=info.get("name"),
        definition=info.get("definition") or None,
        parent=entity_name("glossaryNode", info.get("parentNode") or ""),
        related=_names(state.get("glossaryRelatedTerms"), "relatedTerms", "glossaryTerm"),
        domain=facts.read_domain(state),
        owners=tuple(owner.name for owner in owners.owners),
        properties=info.get("customProperties") or {},
    )


def _write_term(state: State, term: GlossaryTerm) -> None:
    now = _read_term(term.name, state)
    if "glossaryTermInfo" not in state or now != term:
        parent = entity_urn("glossaryNode", term.parent) if term.parent else None
        changed(
            state,
            "glossaryTermInfo",
            {"termSource": "INTERNAL"},
            definition=term.definition or "",
            name=term.display_name,
            parentNode=parent,
        )
    if now.properties != term.properties:
        changed(state, "glossaryTermInfo", customProperties=term.properties)
    if now.related != term.related:
        _write_names(state, "glossaryRelatedTerms", "relatedTerms", "glossaryTerm", term.related)
    if now.domain != term.domain:
        facts.write_domain(state, term.domain)
    if now.owners != term.owners:
        known = {owner.name: owner for owner in (facts.read_ownership(state) or Ownership()).owners}
        owners = tuple(known.get(name) or Owner(name=name) for name in term.owners)
        facts.write_ownership(state, Ownership(owners=owners))


def _names(body: Any, key: str, entity: str) -> tuple[str, ...]:
    return values((body or {}).get(key) or (), lambda urn: entity_name(entity, urn))


def _write_names(state: State, aspect: str, key: str, entity: str, names: tuple[str, ...]) -> None:
    urns = listed(
        (state.get(aspect) or {}).get(key) or (),
        lambda urn: entity_name(entity, urn),
        names,
        lambda name: entity_urn(entity, name),
    )
    changed(state, aspect, **{key: urns})


def _read_other(urn: str, _state: State) -> Other:
    return Other(urn=urn)


def _write_nothing(_state: State, _item: Any) -> None:
    """Lumos says nothing of these; whatever is said of them is carried."""


_KINDS: Final[dict[type[Any], _Kind]] = {
    kind.type: kind
    for kind in (
        _Kind("lumos-term", GlossaryTerm, "glossaryTerm", _read_term, _write_term),
        _Kind("lumos-user", User, "corpuser", _read_user, _write_user),
        _Kind("lumos-group", Group, "corpGroup", _read_group, _write_group),
        _Kind("lumos-job", Job, None, _read_other, _write_nothing),
        _Kind("lumos-other", Other, None, _read_other, _write_nothing),
    )
}
_WORDS: Final = {kind.word: kind for kind in _KINDS.values()}
_ENTITIES: Final = {kind.entity: kind for kind in _KINDS.values() if kind.entity is not None}
