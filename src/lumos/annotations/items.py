"""Users, groups and glossary terms of the store; the herald tells a catalog of them."""

from collections.abc import Iterable
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from lumos.annotations.writer import AnnotationWriter
from lumos.model.catalog import GlossaryTerm, Group, User
from lumos.model.dataset import Owner
from lumos.model.json_codec import from_json, to_json
from lumos.snapshots.format.document import GLOSSARY, GROUPS, USERS, Kind
from lumos.store import Store, Transaction
from lumos.store.actor import audit
from lumos.store.entries import StoredItem

Thing = TypeVar("Thing", User, Group, GlossaryTerm)
Item: TypeAlias = User | Group | GlossaryTerm

_KINDS: Final[dict[type[Any], Kind]] = {
    User: USERS,
    Group: GROUPS,
    GlossaryTerm: GLOSSARY,
}


class Items:
    """The people and words of a store."""

    def __init__(self, scribe: AnnotationWriter) -> None:
        self._scribe = scribe

    @property
    def _store(self) -> Store:
        return self._scribe.store

    def all(self, type: type[Thing]) -> dict[str, Thing]:
        """Everything of one kind, by name."""
        stored = self._store.entries.items(_KINDS[type].plural)
        return {each.key: from_json(each.body, type) for each in stored}

    def get(self, type: type[Thing], name: str) -> Thing | None:
        """One of a kind."""
        body = self._store.entries.item(_KINDS[type].plural, name)
        return None if body is None else from_json(body, type)

    def put(self, items: Iterable[Item], *, action: str) -> list[str]:
        """Writes those that are new or different; gives them in words."""
        at, written = self._scribe.now(), []
        self._scribe.herald.check()
        with self._store.transaction() as transaction:
            for item in items:
                kind = kind_of(item)
                body = to_json(item)
                if transaction.entries.item(kind.plural, item.name) == body:
                    continue
                if isinstance(item, User | Group):
                    self._erase_other(transaction, item, action=action)
                transaction.entries.put_item(StoredItem(kind.plural, item.name, body), at=at)
                audit(transaction, action, f"{kind.singular} {item.name}", at=at)
                written.append(f"{kind.singular} {item.name}")
        if written:
            self._scribe.herald.tell()
        return written

    def _erase_other(self, transaction: Transaction, item: User | Group, *, action: str) -> None:
        """Takes out a user who is a group by now, or the reverse, and of whom no more is known."""
        other = Group(name=item.name) if isinstance(item, User) else User(name=item.name)
        if transaction.entries.item(kind_of(other).plural, other.name) == to_json(other):
            self.erase(transaction, other, action=action)

    def erase(self, transaction: Transaction, item: Item, *, action: str) -> str:
        """Takes one out; gives it in words. Whoever ends the transaction lets the herald tell."""
        kind = kind_of(item)
        transaction.entries.erase_item(kind.plural, item.name)
        audit(transaction, action, f"{kind.singular} {item.name}", at=self._scribe.now())
        return f"{kind.singular} {item.name}"

    def unknown_owners(self, owners: Iterable[Owner]) -> list[User | Group]:
        """Those owners that nobody has added, as they would be added."""
        users, groups = self.all(User), self.all(Group)
        new: dict[tuple[str, str], User | Group] = {}
        for owner in owners:
            if owner.kind == "group" and owner.name not in groups:
                new[owner.kind, owner.name] = Group(name=owner.name)
            elif owner.kind == "user" and owner.name not in users:
                email = owner.name if "@" in owner.name else None
                new[owner.kind, owner.name] = User(name=owner.name, email=email)
        return list(new.values())

    def unknown_terms(self, names: Iterable[str]) -> list[GlossaryTerm]:
        """Those terms that the glossary does not have, as they would be added."""
        known = self.all(GlossaryTerm)
        return [GlossaryTerm(name=name) for name in dict.fromkeys(names) if name not in known]


def kind_of(item: Item) -> Kind:
    """Of which kind an item is."""
    return _KINDS[item.__class__]


def changed(item: Thing, **facts: object) -> Thing:
    """The item with those facts that are given."""
    given = {name: value for name, value in facts.items() if value is not None}
    return msgspec.structs.replace(item, **given)
