"""The verbs of `lumos owner`."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Final, Literal

from lumos.annotations.items import Items, changed
from lumos.annotations.reports import (
    OwnedDataset,
    OwnerAddReport,
    OwnerImportReport,
    OwnerListReport,
    OwnerReport,
    WordsReport,
)
from lumos.annotations.rules import owner_name
from lumos.annotations.selection import chosen, is_dataset
from lumos.annotations.writer import AnnotationWriter, Wanted
from lumos.config import Settings
from lumos.errors import MisuseError, UnknownName, did_you_mean
from lumos.model.catalog import Group, User
from lumos.model.dataset import Dataset, Owner
from lumos.model.words import Key, Words
from lumos.store import DatasetFilter

TYPES: Final = (
    "TECHNICAL_OWNER",
    "BUSINESS_OWNER",
    "DATA_STEWARD",
    "DATA_OWNER",
    "DEVELOPER",
    "PRODUCER",
    "CONSUMER",
    "DELEGATE",
    "STAKEHOLDER",
)


class UnknownOwner(MisuseError):
    """A user or group that was never added."""

    def __init__(self, name: str, known: Iterable[str], *, then: str = "") -> None:
        self.name = name
        assign = f" && {then}" if then else ""
        super().__init__(
            f"No owner named '{name}'.{did_you_mean(name, known)} "
            f"Add one (--group for a group) with: lumos owner add {quote(name)}{assign}"
        )


class Owners:
    """Users and groups, and the datasets that they answer for."""

    def __init__(self, settings: Settings, scribe: AnnotationWriter) -> None:
        self._settings = settings
        self._scribe = scribe
        self._items = Items(scribe)

    def add(
        self,
        name: str,
        *,
        group: bool = False,
        email: str | None = None,
        display_name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        members: Sequence[str] = (),
    ) -> OwnerAddReport:
        """Adds a user or a group, or what is new about one; members join those it has."""
        name = name.strip()
        if not name:
            raise MisuseError("An owner needs a name.")
        if members and not group:
            raise MisuseError("Only a group has members. Add --group to make it one.")
        kind: Literal["user", "group"] = "group" if group else "user"
        users, groups = self._items.all(User), self._items.all(Group)
        if name in (users if group else groups):
            other = "user" if group else "group"
            raise MisuseError(f"'{name}' is a {other} already; owners are told apart by name.")
        before: User | Group | None
        after: User | Group
        new: list[User | Group] = []
        if group:
            before = groups.get(name)
            known = before or Group(name=name)
            joined = tuple(dict.fromkeys((*known.members, *members)))
            after = changed(
                known,
                email=email,
                display_name=display_name,
                description=description,
                members=joined,
            )
            for each in joined:
                if each == name or each in groups:
                    raise MisuseError(f"'{each}' is a group, and the members of one are users.")
            new = [User(name=each) for each in joined if each not in users]
        else:
            before = users.get(name)
            after = changed(
                before or User(name=name), email=email, display_name=display_name, title=title
            )
        self._items.put([*new, after], action="owner add")
        return OwnerAddReport(name=name, kind=kind, created=before is None, changed=before != after)

    def assign(
        self,
        owner: str,
        dataset: str,
        *,
        type: str = TYPES[0],
        remove: bool = False,
        dry_run: bool = False,
    ) -> WordsReport:
        """Makes somebody an owner of datasets, or with `remove` no longer one."""
        urns = [each.urn for each in chosen(self._scribe.store, dataset)]
        kind = self._kind(owner, may_be_told=remove)
        wanted = Owner(name=owner, kind=kind, type=owner_type(type))
        value = None if remove else ""

        def edit(each: Dataset, _own: Words) -> Wanted:
            if not remove:
                return {Key("", "owner", owner_name(wanted)): value}
            # Whoever is named as no owner is meant whatever kind the place took them for.
            owners = each.ownership.owners if each.ownership else ()
            gone = [one for one in owners if (one.name, one.type) == (owner, wanted.type)]
            return {Key("", "owner", owner_name(one)): value for one in gone}

        return self._scribe.write(
            urns,
            edit,
            action="owner remove" if remove else "owner assign",
            target=dataset,
            dry_run=dry_run,
        )

    def in_order(self, first: str, second: str) -> tuple[str, str]:
        """The dataset and the owner that two words mean; the owner came first in earlier versions.

        The new order counts where both are possible.
        """
        known = {*self._items.all(User), *self._items.all(Group), *self._told()}
        store = self._scribe.store
        if not is_dataset(store, second):
            return first, second
        if is_dataset(store, first) and (second in known or first not in known):
            return first, second
        if first in known:
            return second, first
        then = f"lumos owner assign {quote(second)} {quote(first)}"
        raise UnknownOwner(first, known, then=then)

    def list(self, dataset: str | None = None, *, unowned: bool = False) -> OwnerListReport:
        """Who owns how much, and how much nobody owns; of some datasets also which."""
        store = self._scribe.store
        known = list(store.list(DatasetFilter())) if dataset is None else chosen(store, dataset)
        ownership = store.aspects("ownership")
        owners_of = {
            each.urn: ownership[each.urn].owners if each.urn in ownership else () for each in known
        }
        lacking = [each for each in known if not owners_of[each.urn]]
        shown = lacking if unowned else known if dataset is not None else []
        return OwnerListReport(
            datasets=len(known),
            unowned=len(lacking),
            unowned_share=round(len(lacking) / len(known), 4) if known else 0.0,
            owners=tuple(self._reports(owners_of.values(), every=dataset is None)),
            owned=tuple(
                OwnedDataset(
                    urn=each.urn,
                    name=each.name,
                    owners=tuple(
                        {"name": owner.name, "kind": owner.kind, "type": owner.type}
                        for owner in owners_of[each.urn]
                    ),
                )
                for each in shown
            ),
        )

    def load(
        self,
        file: str | Path,
        *,
        root: str | Path | None = None,
        name: str | None = None,
        type: str = TYPES[0],
        dry_run: bool = False,
    ) -> OwnerImportReport:
        """Takes owners over from a CODEOWNERS file or a dbt manifest.

        Paths of CODEOWNERS hang on `root`, else on the folder of the repository it lies in. What
        an earlier import of the same file, or under the same `name`, said and this one does not is
        taken back.
        """
        from lumos.annotations.owner_import import import_owners

        return import_owners(
            self._settings,
            self._scribe,
            Path(file),
            root=None if root is None else Path(root),
            name=name,
            type=owner_type(type),
            dry_run=dry_run,
        )

    def _kind(self, name: str, *, may_be_told: bool) -> Literal["user", "group"]:
        """What an owner is; one that nobody added may be one whom a place told of."""
        users, groups = self._items.all(User), self._items.all(Group)
        if name in groups:
            return "group"
        if name in users or (may_be_told and name in self._told()):
            return "user"
        raise UnknownOwner(name, [*users, *groups])

    def _told(self) -> set[str]:
        ownership = self._scribe.store.aspects("ownership").values()
        return {owner.name for each in ownership for owner in each.owners}

    def _reports(self, owned: Iterable[Sequence[Owner]], *, every: bool) -> Iterable[OwnerReport]:
        counts: dict[tuple[str, str], Counter[str]] = {}
        for owners in owned:
            for owner in owners:
                counts.setdefault((owner.kind, owner.name), Counter())[owner.type] += 1
        people: Mapping[tuple[str, str], User | Group] = {
            **{("user", name): user for name, user in self._items.all(User).items()},
            **{("group", name): group for name, group in self._items.all(Group).items()},
        }
        for kind, name in sorted({*counts, *(people if every else ())}):
            item = people.get((kind, name))
            yield OwnerReport(
                name=name,
                kind="group" if kind == "group" else "user",
                registered=item is not None,
                email=None if item is None else item.email,
                display_name=None if item is None else item.display_name,
                members=item.members if isinstance(item, Group) else (),
                datasets=dict(sorted(counts.get((kind, name), Counter()).items())),
            )


def owner_type(text: str) -> str:
    """A kind of responsibility as it is written everywhere."""
    type = text.strip().upper().replace("-", "_").replace(" ", "_")
    if type not in TYPES:
        raise UnknownName("ownership type", text, TYPES)
    return type
