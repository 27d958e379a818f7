"""Who is meant where a file names an owner: one answer for all files."""

from collections.abc import Iterable, Mapping

from lumos.annotations.items import Items, Thing
from lumos.annotations.owner_names import UnmarkedOwner
from lumos.annotations.writer import AnnotationWriter
from lumos.config.settings import OwnerKind
from lumos.model.catalog import Group, User
from lumos.model.dataset import Owner


class Directory:
    """The users and groups that are known, besides those that are being named.

    No name is both a user's and a group's: `@acme/data` is the group `data`, unless a user is
    called so, and `@data` is the group where there is one.
    """

    def __init__(
        self, scribe: AnnotationWriter, *, users: Iterable[str] = (), groups: Iterable[str] = ()
    ):
        items = Items(scribe)
        self._rules = scribe.owner_rules
        known_users = self._undisputed(items.all(User), User, "user")
        known_groups = self._undisputed(items.all(Group), Group, "group")
        self._kinds: dict[str, OwnerKind] = {
            **dict.fromkeys((*known_users, *users), "user"),
            **dict.fromkeys((*known_groups, *groups), "group"),
        }
        self._spellings: dict[str, str] = {}
        people: list[User | Group] = [*known_groups.values(), *known_users.values()]
        for text in ("email", "display_name", "name"):
            for item in people:
                if spelled := getattr(item, text):
                    self._spellings[spelled.casefold()] = item.name

    def _undisputed(
        self, known: Mapping[str, Thing], type: type[Thing], kind: OwnerKind
    ) -> dict[str, Thing]:
        """Those of whom more is known than a name, or of whom the configuration says the same.

        A file that was read before the configuration was written may have added the others.
        """
        return {
            name: item
            for name, item in known.items()
            if item != type(name=name) or self._rules.configured_kind(name) in (None, kind)
        }

    def kind(self, name: str) -> OwnerKind | None:
        """What somebody of this name is."""
        return self._kinds.get(name)

    def meant(self, owners: Iterable[Owner]) -> dict[Owner, Owner]:
        """Whom some owners mean who are named together."""
        named = {each: self._marked(each) for each in owners}
        users = {
            each.name
            for each in named.values()
            if each.kind == "user" and self._known(each) is None
        }
        return {each: self._meant(marked, users) for each, marked in named.items()}

    def _marked(self, owner: Owner) -> Owner:
        """The owner with the kind that the configuration gives to its name, if it has none."""
        if not isinstance(owner, UnmarkedOwner):
            return owner
        return Owner(name=owner.name, kind=self._rules.kind(owner.name), type=owner.type)

    def _meant(self, owner: Owner, users: set[str]) -> Owner:
        known = self._known(owner)
        if known is not None:
            return Owner(name=known, kind=self._kinds[known], type=owner.type)
        team = owner.name.rpartition("/")[2]
        if owner.kind == "user" or not team or team == owner.name:
            kind: OwnerKind = "user" if owner.name in users else owner.kind
            return Owner(name=owner.name, kind=kind, type=owner.type)
        is_a_user = team in users or self._kinds.get(team) == "user"
        return Owner(name=owner.name if is_a_user else team, kind="group", type=owner.type)

    def _known(self, owner: Owner) -> str | None:
        """The name of somebody who is known already."""
        if owner.name in self._kinds:
            return owner.name
        return self._spellings.get(owner.name.casefold())
