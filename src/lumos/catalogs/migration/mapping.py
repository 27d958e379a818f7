"""The mapping of a migration: names in the source and their names in the target."""

from collections.abc import Callable, Iterator
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
    Group,
    Job,
    User,
    entity_id,
    entity_urn,
)
from lumos.model.dataset import (
    Documentation,
    Governance,
    Lineage,
    Owner,
    Ownership,
    UpstreamEdge,
)
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.urn import SCHEME, Urn
from lumos.snapshots.format.document import (
    DATASETS,
    GLOSSARY,
    GROUPS,
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
_TAGS_AND_TERMS: Final = {"tags": "tags", "terms": "terms"}
# By type: each field with names, and the section of the mapping that renames them. An empty section
# means that the names are in the parts of the field; `urns` are URNs of datasets and entities.
_SECTIONS: Final[dict[type[Any], dict[str, str]]] = {
    CatalogEntry: {
        "urn": "urns", "lineage": "", "ownership": "", "governance": "", "documentation": "",
        "schema": "",
    },
    Lineage: {"upstream": "", "downstream": ""},
    UpstreamEdge: {"urn": "urns"},
    Ownership: {"owners": ""},
    Owner: {"name": "owners"},
    Governance: _TAGS_AND_TERMS,
    Documentation: {"domain": "domains"},
    Schema: {"fields": ""},
    Field: {**_TAGS_AND_TERMS, "nested": ""},
    NestedField: _TAGS_AND_TERMS,
    GlossaryTerm: {"parent": "terms", "related": "terms", "domain": "domains", "owners": "owners"},
    User: {"groups": "owners"},
    Group: {"members": "owners"},
    Job: {"inputs": "urns", "outputs": "urns", "owner": "owners"},
    CatalogEntity: {"parent": "urns", "owners": "", "tags": "tags"},
}  # fmt: skip


class Mapping(Section, frozen=True, kw_only=True):
    """New names by the names in the source.

    A service is a platform with its instance, as in `snowflake@eu`. A dataset is named by its URN;
    its mapping takes precedence over that of its service. Mapping a name to itself keeps the name
    and suppresses the warning about it.
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
        """Whether no name changes."""
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

    def rename(self, section: str, names: Any) -> Any:
        """The new name, or the new names without duplicates; None stays None."""
        if names is None:
            return None
        if not isinstance(names, str):
            return tuple(dict.fromkeys(self.rename(section, name) for name in names))
        return self.urn(names) if section == "urns" else getattr(self, section).get(names, names)

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

    A renamed term, owner, tag or domain is assumed to exist in the target. It is only written if
    its new name or URN is in `created`.
    """
    _check_distinct(snapshot, mapping)
    entries = {kind.plural: _map_entries(kind, snapshot, mapping, created) for kind in KINDS}
    datasets = entries.pop(DATASETS.plural)
    write_snapshot(file, snapshot.header.facts, datasets, **entries)


def _changes(names: RenamedNames) -> RenamedNames:
    return {name: new for name, new in names.items() if name != new}


def _check_urn(urn: str, description: str) -> None:
    try:
        Urn.parse(urn)
    except MisuseError as problem:
        raise MisuseError(f"Invalid {description}: {problem}") from None


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
    # If several entries get the same name, only the first is written, and none if another entry
    # has that name already.
    taken = {getattr(each, kind.key) for each in snapshot.entries(kind)} if rename else set()
    for value in snapshot.entries(kind):
        key = getattr(value, kind.key)
        name = rename(key) if rename else key
        if name != key:
            if name in taken or name not in created:
                continue
            taken.add(name)
            value = msgspec.structs.replace(value, **{kind.key: name})
        yield _map(value, mapping)


def _new_key(kind: EntryKind, mapping: Mapping) -> Callable[[str], str] | None:
    """The function that renames the keys of a kind, or None if the mapping does not rename any."""
    if kind is OTHERS and (mapping.tags or mapping.domains):
        return mapping.urn
    names = mapping.terms if kind is GLOSSARY else mapping.owners if kind in (USERS, GROUPS) else {}
    return (lambda name: names.get(name, name)) if names else None


def _map(value: Any, mapping: Mapping) -> Any:
    """Replace the names in an entry, an item, or a part of an entry or item."""
    if isinstance(value, tuple):
        mapped = (_map(each, mapping) for each in value)
        # Two owners may become one.
        is_set = bool(value) and isinstance(value[0], Owner)
        return tuple(dict.fromkeys(mapped) if is_set else mapped)
    sections = _SECTIONS.get(type(value))
    if sections is None:
        return value
    changes = {
        field: mapping.rename(section, getattr(value, field))
        if section
        else _map(getattr(value, field), mapping)
        for field, section in sections.items()
    }
    if raw := getattr(value, "raw", None):
        changes["raw"] = rename_raw(raw, mapping.new_names)
    if isinstance(value, CatalogEntry) and changes["urn"] != value.urn:
        changes["platform"] = Urn.parse(changes["urn"]).platform
    if isinstance(value, CatalogEntity):
        changes["references"] = {
            relation: mapping.rename("terms" if relation == "terms" else "urns", keys)
            for relation, keys in value.references.items()
        }
        if value.name is not None and (label := label_name(value.urn)) is not None:
            changes["name"] = label[1]
    return msgspec.structs.replace(value, **changes)


def names_used(value: Any) -> Iterator[tuple[str, str]]:
    """The names in an entry, an item, or a part of an entry or item, each with its section."""
    if isinstance(value, tuple):
        for each in value:
            yield from names_used(each)
    for field, section in _SECTIONS.get(type(value), {}).items():
        names = getattr(value, field)
        if not section:
            yield from names_used(names)
        elif names is not None:
            yield from ((section, name) for name in ([names] if isinstance(names, str) else names))
