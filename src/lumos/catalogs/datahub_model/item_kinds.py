"""The kinds of items: which entities of DataHub they are, and how those are read and written."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from lumos.catalogs.datahub_model import facts
from lumos.catalogs.datahub_model.lenses import State, changed, listed, values
from lumos.catalogs.datahub_model.names import entity_name, entity_urn
from lumos.catalogs.datahub_model.statements import Entity, entity_of
from lumos.catalogs.interface import Item
from lumos.model.catalog import CatalogEntity, GlossaryTerm, Group, Job, User
from lumos.model.dataset import Owner, Ownership


class DataHubItemKind(NamedTuple):
    """A kind of items, the type of entity that it is in DataHub, and how that is read."""

    word: str
    type: type[Any]
    entity: str | None
    read: Callable[[str, State], Any]
    write: Callable[[State, Any], None]


def kind_and_key(entity: Entity) -> tuple[DataHubItemKind, str]:
    """What item an entity is, and the name or URN that it is known by."""
    kind = _ENTITIES.get(entity.type)
    name = None if kind is None else entity_name(entity.type, entity.urn)
    # A name that Lumos would spell in another way stays what it is.
    if kind is None or name is None or entity_urn(entity.type, name) != entity.urn:
        return KINDS[CatalogEntity], entity.urn
    return kind, name


def key_of(item: Item) -> str:
    """The name or URN that an item is known by."""
    return item.urn if isinstance(item, Job | CatalogEntity) else item.name


def home_of(kind: DataHubItemKind, key: str) -> Entity | None:
    """The entity that an item is in DataHub."""
    if kind.entity is not None:
        return Entity(kind.entity, entity_urn(kind.entity, key))
    return entity_of(key) if kind.type is CatalogEntity and key.startswith("urn:li:") else None


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


def _read_other(urn: str, _state: State) -> CatalogEntity:
    return CatalogEntity(urn=urn)


def _write_nothing(_state: State, _item: Any) -> None:
    """Lumos says nothing of these; whatever is said of them is carried."""


KINDS: Final[dict[type[Any], DataHubItemKind]] = {
    kind.type: kind
    for kind in (
        DataHubItemKind("lumos-term", GlossaryTerm, "glossaryTerm", _read_term, _write_term),
        DataHubItemKind("lumos-user", User, "corpuser", _read_user, _write_user),
        DataHubItemKind("lumos-group", Group, "corpGroup", _read_group, _write_group),
        DataHubItemKind("lumos-job", Job, None, _read_other, _write_nothing),
        DataHubItemKind("lumos-other", CatalogEntity, None, _read_other, _write_nothing),
    )
}
WORDS: Final = {kind.word: kind for kind in KINDS.values()}
_ENTITIES: Final = {kind.entity: kind for kind in KINDS.values() if kind.entity is not None}
