"""Finds references between entries, and references without a target."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple

from lumos.model.catalog import CatalogEntry, GlossaryTerm, Group, Job, User
from lumos.snapshots.format.codec import MalformedJson, key_of
from lumos.snapshots.format.document import DATASETS, GLOSSARY, GROUPS, JOBS, USERS, EntryKind

# Nodes of lineage: datasets and jobs.
_LINEAGE_NODES: Final = (DATASETS.plural, JOBS.plural)
_TERMS: Final = (GLOSSARY.plural,)
_USERS: Final = (USERS.plural,)
_GROUPS: Final = (GROUPS.plural,)
_PARENT: Final = "parent"
_PEOPLE: Final = (USERS.plural, GROUPS.plural)


class EntryReference(NamedTuple):
    """A reference from an entry: its path and index inside the entry, and its target."""

    path: str
    number: int | None
    kinds: tuple[str, ...]
    key: str

    @property
    def full_path(self) -> str:
        """The path inside the entry."""
        return self.path if self.number is None else f"{self.path}[{self.number}]"

    @property
    def is_checked(self) -> bool:
        """Whether the target must exist; the parent of a term may be missing from the snapshot."""
        return self.path != _PARENT

    @property
    def is_lineage(self) -> bool:
        """Whether the reference is a lineage edge."""
        return self.kinds is _LINEAGE_NODES


class DanglingReference(NamedTuple):
    """A reference without a target, and the entry that contains it."""

    kind: EntryKind
    position: int
    reference: EntryReference


class ReferenceIndex:
    """The entries seen so far, and the references that are not resolved yet."""

    def __init__(self) -> None:
        self._known: dict[str, set[str]] = {
            kind.plural: set() for kind in (GLOSSARY, USERS, GROUPS, JOBS, DATASETS)
        }
        self._unresolved: list[DanglingReference] = []

    def add(self, kind: EntryKind, position: int, key: str, value: Any) -> None:
        if kind.plural in self._known:
            self._known[kind.plural].add(key)
        for reference in references_of(value):
            if not reference.is_checked:
                continue
            # All users, groups and terms are known by now, because datasets come last.
            is_complete = kind is DATASETS and reference.kinds is not _LINEAGE_NODES
            if not self._is_resolved(reference) and (
                not is_complete or self._has_entries_for(reference)
            ):
                self._unresolved.append(DanglingReference(kind, position, reference))

    def add_broken(self, kind: EntryKind, body: bytes) -> None:
        """Add an entry that cannot be decoded, so that references to it are not reported."""
        with suppress(MalformedJson):
            if kind.plural in self._known:
                self._known[kind.plural].add(key_of(kind, body))

    def dangling(self) -> Iterator[DanglingReference]:
        """Yield the references without a target; call it after all entries were added.

        References to kinds of which the snapshot has no entries are not checked, except for
        lineage.
        """
        for entry in self._unresolved:
            is_checked = entry.reference.is_lineage or self._has_entries_for(entry.reference)
            if is_checked and not self._is_resolved(entry.reference):
                yield entry

    def _is_resolved(self, reference: EntryReference) -> bool:
        return any(reference.key in self._known[name] for name in reference.kinds)

    def _has_entries_for(self, reference: EntryReference) -> bool:
        return any(self._known[name] for name in reference.kinds)


def references_of(value: Any) -> Iterable[EntryReference]:
    match value:
        case CatalogEntry():
            return _dataset_references(value)
        case Job():
            return _job_references(value)
        case GlossaryTerm():
            return _term_references(value)
        case User():
            return _references("groups", _GROUPS, value.groups)
        case Group():
            return _references("members", _USERS, value.members)
        case _:
            return ()


def _dataset_references(dataset: CatalogEntry) -> Iterator[EntryReference]:
    if dataset.lineage is not None:
        for index, edge in enumerate(dataset.lineage.upstream):
            yield EntryReference("lineage.upstream", index, _LINEAGE_NODES, edge.urn)
        for index, edge in enumerate(dataset.lineage.downstream):
            yield EntryReference("lineage.downstream", index, _LINEAGE_NODES, edge.urn)
    if dataset.ownership is not None:
        for index, owner in enumerate(dataset.ownership.owners):
            kinds = _GROUPS if owner.kind == "group" else _USERS
            yield EntryReference("ownership.owners", index, kinds, owner.name)
    if dataset.governance is not None and dataset.governance.terms:
        yield from _references("governance.terms", _TERMS, dataset.governance.terms)
    for index, field in enumerate(dataset.schema.fields if dataset.schema else ()):
        if field.terms:
            yield from _references(f"schema.fields[{index}].terms", _TERMS, field.terms)
        for number, nested in enumerate(field.nested):
            if nested.terms:
                path = f"schema.fields[{index}].nested[{number}].terms"
                yield from _references(path, _TERMS, nested.terms)


def _job_references(job: Job) -> Iterator[EntryReference]:
    yield from _references("inputs", _LINEAGE_NODES, job.inputs)
    yield from _references("outputs", _LINEAGE_NODES, job.outputs)
    if job.owner is not None:
        yield EntryReference("owner", None, _PEOPLE, job.owner)


def _term_references(term: GlossaryTerm) -> Iterator[EntryReference]:
    if term.parent is not None:
        yield EntryReference(_PARENT, None, _TERMS, term.parent)
    yield from _references("related", _TERMS, term.related)
    yield from _references("owners", _PEOPLE, term.owners)


def _references(path: str, kinds: tuple[str, ...], keys: Iterable[str]) -> Iterator[EntryReference]:
    for index, key in enumerate(keys):
        yield EntryReference(path, index, kinds, key)
