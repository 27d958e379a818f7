"""The mapping of a migration: names in the source and their names in the target."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from lumos.catalogs.interface import NewNames
from lumos.catalogs.raw_records import rename_raw
from lumos.config.reader import SectionReader
from lumos.config.section import Section
from lumos.config.yaml_tree import ConfigurationError, read_yaml
from lumos.errors import MisuseError
from lumos.model.catalog import (
    CatalogEntity,
    CatalogEntry,
    GlossaryTerm,
    Job,
    entity_id,
    entity_urn,
)
from lumos.model.dataset import Lineage, Owner, UpstreamEdge
from lumos.model.schema import Schema
from lumos.model.urn import SCHEME, Urn
from lumos.snapshots.format.document import (
    DATASETS,
    GLOSSARY,
    GROUPS,
    JOBS,
    KINDS,
    OTHERS,
    USERS,
    EntryKind,
)
from lumos.snapshots.format.reader import OpenSnapshot
from lumos.snapshots.format.writer import write_snapshot

RenamedNames: TypeAlias = dict[str, str]

# The kinds of entities that a mapping renames, and the section of each.
LABELS: Final = {"tag": "tags", "domain": "domains"}


class Mapping(Section, frozen=True, kw_only=True):
    """New names by the names in the source.

    A service is a platform with its instance, as in `snowflake@eu`; a dataset is its URN, and takes
    precedence over its service. A name that is mapped to itself stays, without a warning.
    """

    tags: RenamedNames = msgspec.field(default_factory=dict)
    terms: RenamedNames = msgspec.field(default_factory=dict)
    owners: RenamedNames = msgspec.field(default_factory=dict)
    domains: RenamedNames = msgspec.field(default_factory=dict)
    services: RenamedNames = msgspec.field(default_factory=dict)
    datasets: RenamedNames = msgspec.field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> "Mapping":
        """Read a YAML file; every mistake is reported with its line."""
        if not file.is_file():
            raise MisuseError(
                f"There is no mapping {file}. Run without --mapping to see what it should contain."
            )
        block, problems = read_yaml(file, environment={})
        reader = SectionReader({}, problems)
        mapping = reader.section(block, cls)
        if problems or not isinstance(mapping, cls):
            raise ConfigurationError(problems)
        for service in (*mapping.services, *mapping.services.values()):
            _check_urn(f"{SCHEME}{service}/x", f"service '{service}' in {file}")
        for urn in (*mapping.datasets, *mapping.datasets.values()):
            _check_urn(urn, f"dataset '{urn}' in {file}")
        return mapping

    @property
    def is_empty(self) -> bool:
        """Whether everything keeps its name."""
        sections = (getattr(self, name) for name in self.__struct_fields__)
        return not any(key != value for names in sections for key, value in names.items())

    @property
    def target_names(self) -> frozenset[str]:
        """The new names of terms and owners, and the new URNs of tags and domains."""
        labels = (
            entity_urn(kind, name)
            for kind, section in LABELS.items()
            for name in _changes(getattr(self, section)).values()
        )
        return frozenset((*self.terms.values(), *self.owners.values(), *labels))

    @property
    def new_names(self) -> NewNames:
        """The names that change, for raw records of catalogs."""
        return NewNames(
            tags=_changes(self.tags),
            terms=_changes(self.terms),
            owners=_changes(self.owners),
            domains=_changes(self.domains),
            dataset=self.urn,
        )

    def urn(self, urn: str) -> str:
        """The URN of a dataset or entity in the target."""
        if (label := label_name(urn)) is not None:
            kind, name = label
            return entity_urn(kind, getattr(self, LABELS[kind]).get(name, name))
        if urn in self.datasets:
            return self.datasets[urn]
        if not self.services or not urn.startswith(SCHEME):
            return urn
        parsed = Urn.parse(urn)
        service = self.services.get(service_of(parsed))
        if service is None:
            return urn
        platform, _, instance = service.partition("@")
        return str(msgspec.structs.replace(parsed, platform=platform, instance=instance))


def label_name(urn: str) -> tuple[str, str] | None:
    """The kind and name of a tag or domain, or None for any other URN."""
    for kind in LABELS:
        if urn.startswith(f"lumos:{kind}:") and (parts := entity_id(urn)) is not None:
            return kind, "/".join(parts)
    return None


def service_of(urn: Urn) -> str:
    """The platform of a dataset with its instance, as in `snowflake@eu`."""
    return f"{urn.platform}@{urn.instance}" if urn.instance else urn.platform


def write_mapped(
    snapshot: OpenSnapshot, mapping: Mapping, file: Path, *, created: frozenset[str] = frozenset()
) -> None:
    """Write a snapshot with the names of the target.

    A renamed term, owner, tag or domain is assumed to exist in the target and not written, unless
    its new name or URN is in `created`.
    """
    _check_distinct(snapshot, mapping)
    entries = {kind.plural: _map_entries(kind, snapshot, mapping, created) for kind in KINDS}
    datasets = entries.pop(DATASETS.plural)
    write_snapshot(file, snapshot.header.facts, datasets, **entries)


def _changes(names: RenamedNames) -> RenamedNames:
    return {name: new for name, new in names.items() if name != new}


def _check_urn(urn: str, what: str) -> None:
    try:
        Urn.parse(urn)
    except MisuseError as problem:
        raise MisuseError(f"Invalid {what}: {problem}") from None


def _check_distinct(snapshot: OpenSnapshot, mapping: Mapping) -> None:
    """Fail if two datasets would get the same URN."""
    if not (mapping.datasets or mapping.services):
        return
    origins: dict[str, str] = {}
    for entry in snapshot.entries(DATASETS):
        urn = mapping.urn(entry.urn)
        first = origins.setdefault(urn, entry.urn)
        if first != entry.urn:
            raise MisuseError(
                f"The mapping merges two datasets: {first} and {entry.urn} would both become "
                f"{urn}. Give one of them another name under 'datasets'."
            )


def _map_entries(
    kind: EntryKind, snapshot: OpenSnapshot, mapping: Mapping, created: frozenset[str]
) -> Iterator[Any]:
    rename = _new_key(kind, mapping)
    # If several entries get the same name, write the first, unless an entry already has that name.
    taken = {getattr(each, kind.key) for each in snapshot.entries(kind)} if rename else set()
    for value in snapshot.entries(kind):
        key = getattr(value, kind.key)
        name = rename(key) if rename else key
        if name != key:
            if name in taken or name not in created:
                continue
            taken.add(name)
            value = msgspec.structs.replace(value, **{kind.key: name})
        yield _MAPPERS[kind](value, mapping)


def _new_key(kind: EntryKind, mapping: Mapping) -> Callable[[str], str] | None:
    """The function that renames keys of a kind, or None for datasets and jobs."""
    if kind is OTHERS and (mapping.tags or mapping.domains):
        return mapping.urn
    names = mapping.terms if kind is GLOSSARY else mapping.owners if kind in (USERS, GROUPS) else {}
    return (lambda name: names.get(name, name)) if names else None


def _map_dataset(entry: CatalogEntry, mapping: Mapping) -> CatalogEntry:
    urn = mapping.urn(entry.urn)
    changes: dict[str, Any] = {"raw": rename_raw(entry.raw, mapping.new_names)}
    if urn != entry.urn:
        changes |= {"urn": urn, "platform": Urn.parse(urn).platform}
    if entry.lineage is not None:
        changes["lineage"] = Lineage(
            upstream=_map_edges(entry.lineage.upstream, mapping),
            downstream=_map_edges(entry.lineage.downstream, mapping),
        )
    if entry.governance is not None:
        changes["governance"] = _map_labels(entry.governance, mapping)
    if entry.ownership is not None:
        owners = _map_owners(entry.ownership.owners, mapping)
        changes["ownership"] = msgspec.structs.replace(entry.ownership, owners=owners)
    if entry.documentation is not None:
        domain = _map_domain(entry.documentation.domain, mapping)
        changes["documentation"] = msgspec.structs.replace(entry.documentation, domain=domain)
    if entry.schema is not None and (mapping.tags or mapping.terms):
        changes["schema"] = Schema(
            fields=tuple(
                msgspec.structs.replace(
                    _map_labels(field, mapping),
                    nested=tuple(_map_labels(nested, mapping) for nested in field.nested),
                )
                for field in entry.schema.fields
            )
        )
    return msgspec.structs.replace(entry, **changes)


def _map_labels(labelled: Any, mapping: Mapping) -> Any:
    tags, terms = _rename(labelled.tags, mapping.tags), _rename(labelled.terms, mapping.terms)
    return msgspec.structs.replace(labelled, tags=tags, terms=terms)


def _map_edges(edges: Iterable[UpstreamEdge], mapping: Mapping) -> tuple[UpstreamEdge, ...]:
    return tuple(msgspec.structs.replace(edge, urn=mapping.urn(edge.urn)) for edge in edges)


def _map_owners(owners: Iterable[Owner], mapping: Mapping) -> tuple[Owner, ...]:
    renamed = (
        msgspec.structs.replace(owner, name=mapping.owners.get(owner.name, owner.name))
        for owner in owners
    )
    return tuple(dict.fromkeys(renamed))


def _map_term(term: GlossaryTerm, mapping: Mapping) -> GlossaryTerm:
    return msgspec.structs.replace(
        term,
        parent=None if term.parent is None else mapping.terms.get(term.parent, term.parent),
        related=_rename(term.related, mapping.terms),
        domain=_map_domain(term.domain, mapping),
        owners=_rename(term.owners, mapping.owners),
        raw=rename_raw(term.raw, mapping.new_names),
    )


def _map_job(job: Job, mapping: Mapping) -> Job:
    return msgspec.structs.replace(
        job,
        inputs=tuple(dict.fromkeys(map(mapping.urn, job.inputs))),
        outputs=tuple(dict.fromkeys(map(mapping.urn, job.outputs))),
        owner=None if job.owner is None else mapping.owners.get(job.owner, job.owner),
    )


def _map_entity(entity: CatalogEntity, mapping: Mapping) -> CatalogEntity:
    references = {
        relation: _rename(keys, mapping.terms)
        if relation == "terms"
        else tuple(dict.fromkeys(map(mapping.urn, keys)))
        for relation, keys in entity.references.items()
    }
    label = label_name(entity.urn)
    return msgspec.structs.replace(
        entity,
        name=entity.name if label is None or entity.name is None else label[1],
        parent=None if entity.parent is None else mapping.urn(entity.parent),
        owners=_map_owners(entity.owners, mapping),
        tags=_rename(entity.tags, mapping.tags),
        references=references,
        raw=rename_raw(entity.raw, mapping.new_names),
    )


def _map_domain(domain: str | None, mapping: Mapping) -> str | None:
    return None if domain is None else mapping.domains.get(domain, domain)


def _rename(names: Iterable[str], changes: RenamedNames) -> tuple[str, ...]:
    """The names in the target, without duplicates."""
    return tuple(dict.fromkeys(changes.get(name, name) for name in names))


_MAPPERS: Final[dict[EntryKind, Callable[[Any, Mapping], Any]]] = {
    DATASETS: _map_dataset,
    GLOSSARY: _map_term,
    USERS: lambda user, mapping: msgspec.structs.replace(
        user, groups=_rename(user.groups, mapping.owners)
    ),
    GROUPS: lambda group, mapping: msgspec.structs.replace(
        group, members=_rename(group.members, mapping.owners)
    ),
    JOBS: _map_job,
    OTHERS: _map_entity,
}
