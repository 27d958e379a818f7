"""Users, groups and glossary terms of the store; resolves owner names in files."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from lumos.annotations.owner_names import OwnerOfUnknownKind
from lumos.annotations.writer import AnnotationWriter
from lumos.config.settings import OwnerKind
from lumos.model.catalog import GlossaryTerm, Group, User
from lumos.model.dataset import Owner
from lumos.model.json_codec import from_json, to_json
from lumos.store import Store, Transaction
from lumos.store.entries import StoredItem

ItemT = TypeVar("ItemT", User, Group, GlossaryTerm)
RegistryItem: TypeAlias = User | Group | GlossaryTerm


class ItemKind(NamedTuple):
    """The name of the collection in which items are stored, and the noun for one item."""

    collection: str
    singular: str


_KINDS: Final[dict[type[Any], ItemKind]] = {
    User: ItemKind("users", "user"),
    Group: ItemKind("groups", "group"),
    GlossaryTerm: ItemKind("glossary", "term"),
}


class ItemStore:
    """Reads and writes users, groups and terms, and publishes the changes."""

    def __init__(self, writer: AnnotationWriter) -> None:
        self._writer = writer

    @property
    def _store(self) -> Store:
        return self._writer.store

    def all(self, type: type[ItemT]) -> dict[str, ItemT]:
        """All items of one type, by name."""
        stored = self._store.entries.items(_KINDS[type].collection)
        return {each.key: from_json(each.body, type) for each in stored}

    def put(self, items: Iterable[RegistryItem], *, action: str) -> list[str]:
        """Write the items that are new or different, and return their labels."""
        at, written = self._writer.now(), []
        self._writer.check_catalog()
        with self._store.transaction() as transaction:
            for item in items:
                kind = kind_of(item)
                body = to_json(item)
                before = transaction.entries.item(kind.collection, item.name)
                if before == body:
                    continue
                if isinstance(item, User | Group):
                    self._erase_namesake(transaction, item, action=action)
                transaction.entries.put_item(StoredItem(kind.collection, item.name, body), at=at)
                transaction.audit(
                    action,
                    label_of(item),
                    at=at,
                    before=None if before is None else from_json(before, type(item)),
                    after=item,
                )
                written.append(label_of(item))
        if written:
            self._writer.publish()
        return written

    def _erase_namesake(self, transaction: Transaction, item: User | Group, *, action: str) -> None:
        """Erase the user with the name of a new group, or the reverse, if it has only a name."""
        other = Group(name=item.name) if isinstance(item, User) else User(name=item.name)
        if transaction.entries.item(kind_of(other).collection, other.name) == to_json(other):
            self.erase(transaction, other, action=action)

    def erase(self, transaction: Transaction, item: RegistryItem, *, action: str) -> str:
        """Erase an item and return its label; the caller publishes after the transaction."""
        collection = kind_of(item).collection
        body = transaction.entries.item(collection, item.name)
        transaction.entries.erase_item(collection, item.name)
        before = None if body is None else from_json(body, type(item))
        transaction.audit(action, label_of(item), at=self._writer.now(), before=before)
        return label_of(item)

    def new_owners(self, owners: Iterable[Owner]) -> list[User | Group]:
        """The users and groups to add for owners that are not registered."""
        users, groups = self.all(User), self.all(Group)
        new: dict[tuple[str, str], User | Group] = {}
        for owner in owners:
            if owner.kind == "group" and owner.name not in groups:
                new[owner.kind, owner.name] = Group(name=owner.name)
            elif owner.kind == "user" and owner.name not in users:
                email = owner.name if "@" in owner.name else None
                new[owner.kind, owner.name] = User(name=owner.name, email=email)
        return list(new.values())

    def new_terms(self, names: Iterable[str]) -> list[GlossaryTerm]:
        """The terms to add for names that the glossary does not have."""
        known = self.all(GlossaryTerm)
        return [GlossaryTerm(name=name) for name in dict.fromkeys(names) if name not in known]


def kind_of(item: RegistryItem) -> ItemKind:
    return _KINDS[item.__class__]


def label_of(item: RegistryItem) -> str:
    """Format an item as text: `term Customer`."""
    return f"{kind_of(item).singular} {item.name}"


def replace_given(item: ItemT, **fields: object) -> ItemT:
    """Replace the fields whose new value is not None."""
    given = {name: value for name, value in fields.items() if value is not None}
    return msgspec.structs.replace(item, **given)


class OwnerDirectory:
    """Resolves owner names in files to the users and groups of the store and of the file.

    A name belongs to either a user or a group: `@acme/data` is the group `data`, unless a user has
    that name. `@data` is the group `data` if that group exists, and otherwise a user.
    """

    def __init__(
        self, writer: AnnotationWriter, *, users: Iterable[str] = (), groups: Iterable[str] = ()
    ):
        items = ItemStore(writer)
        self._rules = writer.owner_rules
        known_users = self._confirmed_items(items.all(User), User, "user")
        known_groups = self._confirmed_items(items.all(Group), Group, "group")
        self._kinds: dict[str, OwnerKind] = {
            **dict.fromkeys((*known_users, *users), "user"),
            **dict.fromkeys((*known_groups, *groups), "group"),
        }
        self._names_by_alias: dict[str, str] = {}
        registered: list[User | Group] = [*known_groups.values(), *known_users.values()]
        for attribute in ("email", "display_name", "name"):
            for item in registered:
                if text := getattr(item, attribute):
                    self._names_by_alias[text.casefold()] = item.name

    def _confirmed_items(
        self, known: Mapping[str, ItemT], type: type[ItemT], kind: OwnerKind
    ) -> dict[str, ItemT]:
        """The items without those that only have a name and contradict the configured kind.

        A file may have added such an item before the configuration was written.
        """
        return {
            name: item
            for name, item in known.items()
            if item != type(name=name) or self._rules.configured_kind(name) in (None, kind)
        }

    def kind(self, name: str) -> OwnerKind | None:
        """Whether a name belongs to a user or a group; None if it is unknown."""
        return self._kinds.get(name)

    def resolve(self, owners: Iterable[Owner]) -> dict[Owner, Owner]:
        """Resolve the owners of one file to users and groups."""
        with_kind = {
            each: Owner(name=each.name, kind=self._rules.kind(each.name), type=each.type)
            if isinstance(each, OwnerOfUnknownKind)
            else each
            for each in owners
        }
        new_users = {
            each.name
            for each in with_kind.values()
            if each.kind == "user" and self._known_name(each) is None
        }
        return {each: self._resolve(owner, new_users) for each, owner in with_kind.items()}

    def _resolve(self, owner: Owner, new_users: set[str]) -> Owner:
        known = self._known_name(owner)
        if known is not None:
            return Owner(name=known, kind=self._kinds[known], type=owner.type)
        team = owner.name.rpartition("/")[2]
        if owner.kind == "user" or not team or team == owner.name:
            kind: OwnerKind = "user" if owner.name in new_users else owner.kind
            return Owner(name=owner.name, kind=kind, type=owner.type)
        is_user = team in new_users or self._kinds.get(team) == "user"
        return Owner(name=owner.name if is_user else team, kind="group", type=owner.type)

    def _known_name(self, owner: Owner) -> str | None:
        """The name under which an owner is registered."""
        if owner.name in self._kinds:
            return owner.name
        return self._names_by_alias.get(owner.name.casefold())
