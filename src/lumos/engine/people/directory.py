"""Who is meant where a file names an owner: one answer for all files."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from lumos.engine.people.items import Items
from lumos.engine.people.scribe import Scribe
from lumos.model.catalog import Group, User
from lumos.model.dataset import Owner

_Kind: TypeAlias = Literal["user", "group"]


class Directory:
    """The users and groups that are known, besides those that are being named.

    No name is both a user's and a group's: `@acme/data` is the group `data`, unless a user is
    called so, and `@data` is the group where there is one.
    """

    def __init__(self, scribe: Scribe, *, users: Iterable[str] = (), groups: Iterable[str] = ()):
        items = Items(scribe)
        known_users, known_groups = items.all(User), items.all(Group)
        self._kinds: dict[str, _Kind] = {
            **dict.fromkeys((*known_users, *users), "user"),
            **dict.fromkeys((*known_groups, *groups), "group"),
        }
        self._spellings: dict[str, str] = {}
        people: list[User | Group] = [*known_groups.values(), *known_users.values()]
        for text in ("email", "display_name", "name"):
            for item in people:
                if spelled := getattr(item, text):
                    self._spellings[spelled.casefold()] = item.name

    def kind(self, name: str) -> _Kind | None:
        """What somebody of this name is."""
        return self._kinds.get(name)

    def meant(self, owners: Iterable[Owner]) -> dict[Owner, Owner]:
        """Whom some owners mean who are named together."""
        named = list(dict.fromkeys(owners))
        users = {each.name for each in named if each.kind == "user" and self._known(each) is None}
        return {each: self._meant(each, users) for each in named}

    def _meant(self, owner: Owner, users: set[str]) -> Owner:
        known = self._known(owner)
        if known is not None:
            return Owner(name=known, kind=self._kinds[known], type=owner.type)
        team = owner.name.rpartition("/")[2]
        if owner.kind == "user" or not team or team == owner.name:
            kind: _Kind = "user" if owner.name in users else owner.kind
            return Owner(name=owner.name, kind=kind, type=owner.type)
        is_a_user = team in users or self._kinds.get(team) == "user"
        return Owner(name=owner.name if is_a_user else team, kind="group", type=owner.type)

    def _known(self, owner: Owner) -> str | None:
        """The name of somebody who is known already."""
        if owner.name in self._kinds:
            return owner.name
        return self._spellings.get(owner.name.casefold())
