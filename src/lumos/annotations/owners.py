"""The service behind `lumos owner`: users, groups, and the datasets that they own."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Final, Literal

from lumos.annotations.items import ItemStore, replace_given
from lumos.annotations.reports import (
    AnnotationReport,
    OwnedDataset,
    OwnerAddReport,
    OwnerImportReport,
    OwnerListReport,
    OwnerReport,
    OwnerShowReport,
)
from lumos.annotations.rules import owner_key
from lumos.annotations.writer import AnnotationChanges, AnnotationWriter
from lumos.config import Settings
from lumos.errors import MisuseError, UnknownName, did_you_mean
from lumos.model.annotation import AnnotationKey, AnnotationMap
from lumos.model.catalog import Group, User
from lumos.model.dataset import Dataset, Owner
from lumos.model.urn import name_in
from lumos.names import find_datasets
from lumos.store import DatasetFilter

OWNERSHIP_TYPES: Final = (
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
    """A user or group that is not registered."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        super().__init__(
            f"No owner named '{name}'.{did_you_mean(name, known)} "
            f"Add one (--group or --user) with: lumos owner add {quote(name)}"
        )


class Owners:
    """Registers users and groups, and assigns them to datasets."""

    def __init__(self, settings: Settings, writer: AnnotationWriter) -> None:
        self._settings = settings
        self._writer = writer
        self._items = ItemStore(writer)

    def add(
        self,
        name: str,
        *,
        group: bool | None = None,
        email: str | None = None,
        display_name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        members: Sequence[str] = (),
    ) -> OwnerAddReport:
        """Add or update a user or a group; `members` are added to the existing ones.

        Without `group`, the kind of an existing owner does not change, and the configuration
        decides the kind of a new owner.
        """
        name = name.strip()
        if not name:
            raise MisuseError("An owner needs a name.")
        users, groups = self._items.all(User), self._items.all(Group)
        if group is None:
            group = name not in users and (
                name in groups or self._writer.owner_rules.kind(name) == "group"
            )
        if members and not group:
            raise MisuseError("Only groups have members. Add --group to create a group.")
        kind: Literal["user", "group"] = "group" if group else "user"
        if name in (users if group else groups):
            other = "user" if group else "group"
            raise MisuseError(f"'{name}' is already a {other}. Choose another name.")
        before: User | Group | None
        after: User | Group
        new_users: list[User | Group] = []
        if group:
            before = groups.get(name)
            known = before or Group(name=name)
            all_members = tuple(dict.fromkeys((*known.members, *members)))
            after = replace_given(
                known,
                email=email,
                display_name=display_name,
                description=description,
                members=all_members,
            )
            for each in all_members:
                if each == name or each in groups:
                    raise MisuseError(f"'{each}' is a group; only users can be members of a group.")
            new_users = [User(name=each) for each in all_members if each not in users]
        else:
            before = users.get(name)
            after = replace_given(
                before or User(name=name), email=email, display_name=display_name, title=title
            )
        self._items.put([*new_users, after], action="owner add")
        return OwnerAddReport(name=name, kind=kind, created=before is None, changed=before != after)

    def assign(
        self,
        owner: str,
        dataset: str,
        *,
        type: str = OWNERSHIP_TYPES[0],
        remove: bool = False,
        dry_run: bool = False,
    ) -> AnnotationReport:
        """Add an owner to datasets or, with `remove`, remove the owner."""
        urns = [each.urn for each in find_datasets(self._writer.store, dataset)]
        type = owner_type(type)
        kind = self._kind_of_assigned(owner, dataset) if remove else self._kind(owner)
        new_owner = Owner(name=owner, kind=kind, type=type)

        def edit(dataset: Dataset, _own: AnnotationMap) -> AnnotationChanges:
            if not remove:
                return {AnnotationKey("", "owner", owner_key(new_owner)): ""}
            # The data source may have reported the owner with another kind.
            return {
                AnnotationKey("", "owner", owner_key(each)): None
                for each in (dataset.ownership.owners if dataset.ownership else ())
                if (each.name, each.type) == (owner, type)
            }

        return self._writer.write(
            urns,
            edit,
            action="owner remove" if remove else "owner assign",
            target=dataset,
            dry_run=dry_run,
        )

    def list(self, dataset: str | None = None, *, unowned: bool = False) -> OwnerListReport:
        """Count datasets by owner, and those without an owner.

        With `dataset`, these datasets are also listed; with `unowned`, those without an owner.
        """
        store = self._writer.store
        known = (
            list(store.list(DatasetFilter())) if dataset is None else find_datasets(store, dataset)
        )
        ownership = store.aspects("ownership")
        owners_of = {
            each.urn: ownership[each.urn].owners if each.urn in ownership else () for each in known
        }
        without_owner = [each for each in known if not owners_of[each.urn]]
        listed = without_owner if unowned else known if dataset is not None else []
        return OwnerListReport(
            datasets=len(known),
            unowned=len(without_owner),
            unowned_share=round(len(without_owner) / len(known), 4) if known else 0.0,
            owners=tuple(
                self._owner_reports(
                    owners_of.values()
                    if dataset is not None
                    else (*owners_of.values(), *self._owners_in_lineage().values()),
                    include_unused=dataset is None,
                )
            ),
            owned=tuple(
                _owned_dataset(each.urn, each.name, owners_of[each.urn]) for each in listed
            ),
        )

    def show(self, name: str) -> OwnerShowReport:
        """Show a user or group and the datasets they own."""
        store = self._writer.store
        live = {each.urn: each.name for each in store.list(DatasetFilter())}
        stored = store.aspects("ownership")
        ownership = {urn: stored[urn].owners for urn in live if urn in stored}
        ownership |= self._owners_in_lineage()
        known = {
            each.name: each for each in self._owner_reports(ownership.values(), include_unused=True)
        }
        if name not in known:
            raise UnknownOwner(name, known)
        return OwnerShowReport(
            owner=known[name],
            owned=tuple(
                _owned_dataset(urn, live.get(urn) or name_in(urn), own_entries)
                for urn, owners in ownership.items()
                if (own_entries := [owner for owner in owners if owner.name == name])
            ),
        )

    def load(
        self,
        file: str | Path,
        *,
        root: str | Path | None = None,
        name: str | None = None,
        type: str = OWNERSHIP_TYPES[0],
        dry_run: bool = False,
    ) -> OwnerImportReport:
        """Import owners from a CODEOWNERS file or a dbt manifest.

        Paths in CODEOWNERS are relative to `root`, by default the repository of the file. Owners
        from an earlier import of the same file, or under the same `name`, are retracted unless
        they are repeated.
        """
        from lumos.annotations.owner_import import import_owners

        return import_owners(
            self._settings,
            self._writer,
            Path(file),
            root=None if root is None else Path(root),
            name=name,
            type=owner_type(type),
            dry_run=dry_run,
        )

    def _kind(self, name: str) -> Literal["user", "group"]:
        """Whether an owner is a user or a group; fails for unknown owners.

        An owner that is only known from SQL, for a table that no scan has found, is registered.
        """
        users, groups = self._items.all(User), self._items.all(Group)
        if name in groups:
            return "group"
        if name in users:
            return "user"
        owners_by_table = self._writer.store.lineage.owners()
        reported = {owner for owners in owners_by_table.values() for owner in owners}
        if name not in reported:
            raise UnknownOwner(name, [*users, *groups, *reported])
        kind = self._writer.owner_rules.kind(name)
        self._items.put(
            self._items.new_owners([Owner(name=name, kind=kind)]), action="owner assign"
        )
        return kind

    def _kind_of_assigned(self, name: str, dataset: str) -> Literal["user", "group"]:
        """Whether an owner to remove is a user or a group; fails for unknown owners."""
        if name in self._items.all(Group):
            return "group"
        ownership = self._writer.store.aspects("ownership").values()
        users = self._items.all(User)
        assigned = {owner.name for each in ownership for owner in each.owners}
        if name in users or name in assigned:
            return "user"
        nearest = did_you_mean(name, [*users, *self._items.all(Group), *assigned])
        raise MisuseError(
            f"No owner named '{name}'.{nearest} See the owners with: "
            f"lumos owner list {quote(dataset)}"
        )

    def _owners_in_lineage(self) -> dict[str, tuple[Owner, ...]]:
        """The owners in SQL of tables that no scan has found, by URN."""
        store, rules = self._writer.store, self._writer.owner_rules
        reported = store.lineage.owners()
        stored = store.names_like(list(reported))
        return {
            urn: tuple(Owner(name=name, kind=rules.kind(name)) for name in names)
            for urn, names in reported.items()
            if urn not in stored
        }

    def _owner_reports(
        self, owned: Iterable[Sequence[Owner]], *, include_unused: bool
    ) -> Iterable[OwnerReport]:
        counts: dict[tuple[str, str], Counter[str]] = {}
        for owners in owned:
            for owner in owners:
                counts.setdefault((owner.kind, owner.name), Counter())[owner.type] += 1
        people: Mapping[tuple[str, str], User | Group] = {
            **{("user", name): user for name, user in self._items.all(User).items()},
            **{("group", name): group for name, group in self._items.all(Group).items()},
        }
        for kind, name in sorted({*counts, *(people if include_unused else ())}):
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


def _owned_dataset(urn: str, name: str, owners: Iterable[Owner]) -> OwnedDataset:
    entries = ({"name": each.name, "kind": each.kind, "type": each.type} for each in owners)
    return OwnedDataset(urn=urn, name=name, owners=tuple(entries))


def owner_type(text: str) -> str:
    """Convert an ownership type to its canonical form."""
    type = text.strip().upper().replace("-", "_").replace(" ", "_")
    if type not in OWNERSHIP_TYPES:
        raise UnknownName("ownership type", text, OWNERSHIP_TYPES)
    return type
