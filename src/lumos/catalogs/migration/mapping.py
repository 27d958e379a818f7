"""What things are called in the target where that is not their name in the source."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from lumos.catalogs.datahub_model.labels import LabelName, renamed
from lumos.catalogs.openmetadata.renaming import Renaming, is_named_by_openmetadata, label_urn
from lumos.config.reader import SectionReader
from lumos.config.section import Section
from lumos.config.yaml_tree import ConfigurationError, read_yaml
from lumos.errors import MisuseError
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User
from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.schema import Schema
from lumos.model.urn import Urn
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

Names: TypeAlias = dict[str, str]


class Mapping(Section, frozen=True, kw_only=True):
    """Names in the source and what they are in the target.

    A service is a platform with its instance, as in `snowflake@eu`; a dataset is its URN, and goes
    before its service. A name that is given itself stays, and nobody is warned of it any more.
    """

    tags: Names = msgspec.field(default_factory=dict)
    terms: Names = msgspec.field(default_factory=dict)
    owners: Names = msgspec.field(default_factory=dict)
    domains: Names = msgspec.field(default_factory=dict)
    services: Names = msgspec.field(default_factory=dict)
    datasets: Names = msgspec.field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> "Mapping":
        """The mapping of a YAML file; every mistake is told with its line."""
        if not file.is_file():
            raise MisuseError(
                f"There is no mapping {file}. Run without --mapping to see what it should hold."
            )
        block, problems = read_yaml(file, environment={})
        reader = SectionReader({}, problems)
        found = reader.section(block, cls)
        if problems or not isinstance(found, cls):
            raise ConfigurationError(problems)
        for service in (*found.services, *found.services.values()):
            _checked(f"lumos://{service}/x", f"service '{service}' in {file}")
        for urn in (*found.datasets, *found.datasets.values()):
            _checked(urn, f"dataset '{urn}' in {file}")
        return found

    @property
    def is_empty(self) -> bool:
        """Whether everything keeps its name."""
        given = (getattr(self, name) for name in self.__struct_fields__)
        return not any(key != value for names in given for key, value in names.items())

    @property
    def labels(self) -> dict[LabelName, LabelName]:
        """Tags and domains that are called otherwise."""
        return {
            LabelName("tag", name): LabelName("tag", new)
            for name, new in _changed(self.tags).items()
        } | {
            LabelName("domain", name): LabelName("domain", new)
            for name, new in _changed(self.domains).items()
        }

    @property
    def targets(self) -> frozenset[str]:
        """The names that terms, people, tags and domains get, the last two as `known_as` says."""
        labels = (name for label in self.labels.values() for name in known_as(label))
        return frozenset((*self.terms.values(), *self.owners.values(), *labels))

    @property
    def renaming(self) -> Renaming:
        """The same for what came from OpenMetadata."""
        return Renaming(
            tags=_changed(self.tags),
            terms=_changed(self.terms),
            owners=_changed(self.owners),
            domains=_changed(self.domains),
            dataset=self.urn,
        )

    def urn(self, urn: str) -> str:
        """A dataset's URN in the target."""
        if urn in self.datasets:
            return self.datasets[urn]
        if not self.services or not urn.startswith("lumos://"):
            return urn
        parsed = Urn.parse(urn)
        service = self.services.get(service_of(parsed))
        if service is None:
            return urn
        platform, _, instance = service.partition("@")
        return str(msgspec.structs.replace(parsed, platform=platform, instance=instance))


def _changed(names: Names) -> Names:
    return {name: new for name, new in names.items() if name != new}


def known_as(label: LabelName) -> tuple[str, str]:
    """What a tag or a domain is called where it is a thing: in DataHub, and in OpenMetadata."""
    return label.urn, label_urn(label.kind, label.name)


def service_of(urn: Urn) -> str:
    """The platform of a dataset with its instance, as in `snowflake@eu`."""
    return f"{urn.platform}@{urn.instance}" if urn.instance else urn.platform


def _checked(urn: str, what: str) -> None:
    try:
        Urn.parse(urn)
    except MisuseError as problem:
        raise MisuseError(f"The {what} cannot be: {problem}") from None


def write_mapped(
    snapshot: OpenSnapshot, mapping: Mapping, file: Path, *, moved: frozenset[str] = frozenset()
) -> None:
    """Writes a snapshot as it is called in the target.

    A term, somebody, a tag or a domain under another name is one that the target has: it is
    referred to, and left as it is there. What gets one of the names in `moved` goes along under
    that name; of a tag or a domain that name is what `known_as` says.
    """
    _check_distinct(snapshot, mapping)
    given = {
        kind.plural: _mapped(kind, snapshot, mapping, moved)
        for kind in KINDS
        if kind is not DATASETS
    }
    datasets = _mapped(DATASETS, snapshot, mapping, moved)
    write_snapshot(file, snapshot.header.facts, datasets, **given)


def _check_distinct(snapshot: OpenSnapshot, mapping: Mapping) -> None:
    """Refuses to make one dataset of two."""
    if not (mapping.datasets or mapping.services):
        return
    origins: dict[str, str] = {}
    for entry in snapshot.entries(DATASETS):
        urn = mapping.urn(entry.urn)
        first = origins.setdefault(urn, entry.urn)
        if first != entry.urn:
            raise MisuseError(
                f"The mapping makes one dataset of two: {first} and {entry.urn} would both be "
                f"{urn}. Give one of them another name under 'datasets'."
            )


def _mapped(
    kind: EntryKind, snapshot: OpenSnapshot, mapping: Mapping, moved: frozenset[str]
) -> Iterator[Any]:
    change = _CHANGES.get(kind)
    names = _names_of(kind, mapping)
    # Of several that get one name the first goes along, unless one has that name already.
    taken = {getattr(each, kind.key) for each in snapshot.entries(kind)} if names else set()
    for value in snapshot.entries(kind):
        key = getattr(value, kind.key)
        name = names.get(key, key)
        if name != key:
            if name in taken or name not in moved:
                continue
            taken.add(name)
            if kind is not OTHERS:
                value = msgspec.structs.replace(value, **{kind.key: name})
        yield value if change is None else change(value, mapping)


def _names_of(kind: EntryKind, mapping: Mapping) -> Names:
    """What entries of a kind are known by, and what they are known by in the target."""
    if kind is GLOSSARY:
        return mapping.terms
    if kind is OTHERS:
        return {
            name: to
            for label, new in mapping.labels.items()
            for name, to in zip(known_as(label), known_as(new), strict=True)
        }
    return mapping.owners if kind in (USERS, GROUPS) else {}


def _dataset(entry: CatalogEntry, mapping: Mapping) -> CatalogEntry:
    urn = mapping.urn(entry.urn)
    changes: dict[str, Any] = {}
    if urn != entry.urn:
        changes |= {"urn": urn, "platform": Urn.parse(urn).platform}
    if entry.raw:
        changes["raw"] = mapping.renaming.raw(entry.raw)
    if entry.lineage is not None:
        changes["lineage"] = Lineage(
            upstream=_edges(entry.lineage.upstream, mapping),
            downstream=_edges(entry.lineage.downstream, mapping),
        )
    if entry.governance is not None:
        changes["governance"] = msgspec.structs.replace(
            entry.governance,
            tags=_named(entry.governance.tags, mapping.tags),
            terms=_named(entry.governance.terms, mapping.terms),
        )
    if entry.ownership is not None:
        owners = (
            msgspec.structs.replace(owner, name=mapping.owners.get(owner.name, owner.name))
            for owner in entry.ownership.owners
        )
        changes["ownership"] = msgspec.structs.replace(
            entry.ownership, owners=tuple(dict.fromkeys(owners))
        )
    if entry.documentation is not None:
        changes["documentation"] = msgspec.structs.replace(
            entry.documentation, domain=_other_domain(entry.documentation.domain, mapping)
        )
    if entry.schema is not None and (mapping.tags or mapping.terms):
        changes["schema"] = _schema(entry.schema, mapping)
    return msgspec.structs.replace(entry, **changes) if changes else entry


def _schema(schema: Schema, mapping: Mapping) -> Schema:
    fields = tuple(
        msgspec.structs.replace(
            _labelled(field, mapping),
            nested=tuple(_labelled(nested, mapping) for nested in field.nested),
        )
        for field in schema.fields
    )
    return msgspec.structs.replace(schema, fields=fields)


def _labelled(field: Any, mapping: Mapping) -> Any:
    return msgspec.structs.replace(
        field, tags=_named(field.tags, mapping.tags), terms=_named(field.terms, mapping.terms)
    )


def _edges(edges: Iterable[UpstreamEdge], mapping: Mapping) -> tuple[UpstreamEdge, ...]:
    return tuple(msgspec.structs.replace(edge, urn=mapping.urn(edge.urn)) for edge in edges)


def _term(term: GlossaryTerm, mapping: Mapping) -> GlossaryTerm:
    return msgspec.structs.replace(
        mapping.renaming.term(term),
        parent=None if term.parent is None else mapping.terms.get(term.parent, term.parent),
        related=_named(term.related, mapping.terms),
        domain=_other_domain(term.domain, mapping),
        owners=_named(term.owners, mapping.owners),
    )


def _user(user: User, mapping: Mapping) -> User:
    return msgspec.structs.replace(user, groups=_named(user.groups, mapping.owners))


def _group(group: Group, mapping: Mapping) -> Group:
    return msgspec.structs.replace(group, members=_named(group.members, mapping.owners))


def _job(job: Job, mapping: Mapping) -> Job:
    return msgspec.structs.replace(
        job,
        inputs=tuple(dict.fromkeys(map(mapping.urn, job.inputs))),
        outputs=tuple(dict.fromkeys(map(mapping.urn, job.outputs))),
        owner=None if job.owner is None else mapping.owners.get(job.owner, job.owner),
    )


def _other(other: CatalogEntity, mapping: Mapping) -> CatalogEntity:
    if is_named_by_openmetadata(other.urn):
        return mapping.renaming.thing(other)
    return renamed(other, mapping.labels)


def _other_domain(domain: str | None, mapping: Mapping) -> str | None:
    return None if domain is None else mapping.domains.get(domain, domain)


def _named(names: Iterable[str], mapping: Names) -> tuple[str, ...]:
    """The names in the target; two that become one stand once."""
    return tuple(dict.fromkeys(mapping.get(name, name) for name in names))


_CHANGES: Final[dict[EntryKind, Callable[[Any, Mapping], Any]]] = {
    DATASETS: _dataset,
    GLOSSARY: _term,
    USERS: _user,
    GROUPS: _group,
    JOBS: _job,
    OTHERS: _other,
}
