"""What entries refer to, and which of it a snapshot does not hold."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from lumos.model.catalog import Entry, GlossaryTerm, Group, Job, User
from lumos.model.dataset import Owner
from lumos.snapshot.document import DATASETS, GLOSSARY, GROUPS, JOBS, USERS, Kind

# What data flows between; a job is a node of lineage as well.
_NODES: Final = (DATASETS.plural, JOBS.plural)


class Reference(NamedTuple):
    """That an entry names another one: where in the entry it does, and whom it names."""

    path: str
    kinds: tuple[str, ...]
    key: str

    @property
    def is_lineage(self) -> bool:
        """Whether data flows along it."""
        return DATASETS.plural in self.kinds


class Dangling(NamedTuple):
    """A reference that leads nowhere, and the entry that it stands in."""

    kind: Kind
    position: int
    reference: Reference


class References:
    """The entries seen so far, and the references that none of them resolves yet."""

    def __init__(self) -> None:
        self._known: dict[str, set[str]] = {
            kind.plural: set() for kind in (GLOSSARY, USERS, GROUPS, JOBS, DATASETS)
        }
        self._open: list[Dangling] = []

    def add(self, kind: Kind, position: int, key: str, value: Any) -> None:
        """Takes an entry and what it refers to."""
        if kind.plural in self._known:
            self._known[kind.plural].add(key)
        for reference in references_of(value):
            if not any(reference.key in self._known[name] for name in reference.kinds):
                self._open.append(Dangling(kind, position, reference))

    def dangling(self) -> Iterator[Dangling]:
        """What is unresolved now that all has been seen.

        Of people and words that the snapshot does not list at all, nobody can say what is missing.
        """
        for each in self._open:
            known = [self._known[name] for name in each.reference.kinds]
            is_listed = any(known) or each.reference.is_lineage
            if is_listed and not any(each.reference.key in keys for keys in known):
                yield each


def references_of(value: Any) -> Iterator[Reference]:
    """All that an entry refers to."""
    match value:
        case Entry():
            if value.lineage is not None:
                yield from _named("lineage.upstream", _NODES, _urns(value.lineage.upstream))
                yield from _named("lineage.downstream", _NODES, _urns(value.lineage.downstream))
            if value.ownership is not None:
                yield from _owners(value.ownership.owners)
            if value.governance is not None:
                yield from _named("governance.terms", (GLOSSARY.plural,), value.governance.terms)
        case Job():
            yield from _named("inputs", _NODES, value.inputs)
            yield from _named("outputs", _NODES, value.outputs)
            if value.owner is not None:
                yield Reference("owner", (USERS.plural, GROUPS.plural), value.owner)
        case GlossaryTerm():
            if value.parent is not None:
                yield Reference("parent", (GLOSSARY.plural,), value.parent)
            yield from _named("related", (GLOSSARY.plural,), value.related)
            yield from _named("owners", (USERS.plural, GROUPS.plural), value.owners)
        case User():
            yield from _named("groups", (GROUPS.plural,), value.groups)
        case Group():
            yield from _named("members", (USERS.plural,), value.members)


def _urns(edges: Iterable[Any]) -> Iterator[str]:
    return (edge.urn for edge in edges)


def _named(path: str, kinds: tuple[str, ...], keys: Iterable[str]) -> Iterator[Reference]:
    for index, key in enumerate(keys):
        yield Reference(f"{path}[{index}]", kinds, key)


def _owners(owners: Iterable[Owner]) -> Iterator[Reference]:
    for index, owner in enumerate(owners):
        kind = GROUPS if owner.kind == "group" else USERS
        yield Reference(f"ownership.owners[{index}]", (kind.plural,), owner.name)
