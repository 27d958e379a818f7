"""Finds names of the source that may mean the same as other names of the target.

Nobody can be sure that `pii` and `PII.Sensitive` mean the same. The report lists them, with the
lines of a mapping that would join them, and the migration continues without. The same goes for
tags and domains whose names are ids, with their display names.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from lumos.catalogs.migration.mapping import LABELS, Mapping, Names, label_name, service_of
from lumos.catalogs.migration.reports import Need, NeedKind
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, User
from lumos.model.schema import Field, NestedField
from lumos.model.urn import Urn

_MARKS: Final = re.compile(r"[\W_]+")
_PARTS: Final = re.compile(r"[./:]")
_MOST_LIKE: Final = 5
# An id that a catalog generated: a UUID, with or without dashes.
_ID: Final = re.compile(r"(?=.*\d)[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)


class Survey:
    """The names in a catalog: of datasets, and of the tags, terms, owners and domains they have."""

    def __init__(self) -> None:
        self.tags: Counter[str] = Counter()
        self.terms: Counter[str] = Counter()
        self.owners: Counter[str] = Counter()
        self.domains: Counter[str] = Counter()
        # Display names of tags and domains, by kind and name.
        self.display_names: dict[str, Names] = {kind: {} for kind in LABELS}
        self.datasets: dict[str, str] = {}

    @classmethod
    def of(cls, entries: Iterable[CatalogEntry], items: Iterable[object] = ()) -> "Survey":
        """The survey of datasets, and of other items, whether or not a dataset refers to them."""
        survey = cls()
        for entry in entries:
            if not entry.deleted:
                survey.add(entry)
        for item in items:
            match item:
                case GlossaryTerm():
                    survey.terms[item.name] += 0
                    if item.domain:
                        survey.domains[item.domain] += 0
                case User() | Group():
                    survey.owners[item.name] += 0
                case CatalogEntity():
                    survey.add_label(item)
        return survey

    def add(self, entry: CatalogEntry) -> None:
        """Takes note of one dataset."""
        self.datasets[entry.urn] = entry.urn.casefold()
        if entry.governance is not None:
            self.tags.update(entry.governance.tags)
            self.terms.update(entry.governance.terms)
        if entry.ownership is not None:
            self.owners.update({owner.name for owner in entry.ownership.owners})
        if entry.documentation is not None and entry.documentation.domain:
            self.domains[entry.documentation.domain] += 1
        for field in entry.schema.fields if entry.schema else ():
            self._label(field)
            for nested in field.nested:
                self._label(nested)

    def add_label(self, entity: CatalogEntity) -> None:
        """Add a tag or domain; other entities are ignored."""
        if (label := label_name(entity.urn)) is None:
            return
        kind, name = label
        self.labels(kind)[name] += 0
        if entity.display_name:
            self.display_names[kind][name] = entity.display_name

    def labels(self, kind: str) -> Counter[str]:
        """The names of tags or of domains."""
        return self.tags if kind == "tag" else self.domains

    @property
    def services(self) -> set[str]:
        """The platforms of the datasets, with their instances."""
        return {service_of(Urn.parse(urn)) for urn in self.datasets}

    def _label(self, labelled: Field | NestedField) -> None:
        self.tags.update(labelled.tags)
        self.terms.update(labelled.terms)


def needs(
    source: Survey, target: Survey, mapping: Mapping, *, shows_display_names: bool = False
) -> tuple[Need, ...]:
    """Names that a person should map, so that the target does not have two names for one concept.

    A target that shows display names needs no other names for tags and domains that are ids.
    """
    return (
        *_labels("tag", source, target, mapping.tags, shows_display_names=shows_display_names),
        *_alike("term", source.terms, target.terms, mapping.terms),
        *_alike("owner", source.owners, target.owners, mapping.owners),
        *_labels(
            "domain", source, target, mapping.domains, shows_display_names=shows_display_names
        ),
        *_services(source, target, mapping),
        *_cased(source, target, mapping),
    )


def _labels(
    kind: NeedKind, source: Survey, target: Survey, mapping: Names, *, shows_display_names: bool
) -> list[Need]:
    """Tags or domains that resemble others in the target, and those whose names are ids."""
    known, titles = source.labels(kind), source.display_names[kind]
    found = list(_alike(kind, known, target.labels(kind), mapping, titles))
    if shows_display_names:
        return found
    listed, shared = {need.name for need in found}, Counter(titles.values())
    for name, count in known.items():
        title = titles.get(name)
        if not count or not title or name in mapping or name in listed or not _ID.fullmatch(name):
            continue
        # The suggested lines must not join two tags that only share a display name.
        like = (title,) if shared[title] == 1 else ()
        found.append(Need(kind=kind, name=name, like=like, datasets=count, by_title=True))
    return sorted(found, key=lambda need: need.name)


def _alike(
    kind: NeedKind,
    source: Counter[str],
    target: Counter[str],
    mapping: Names,
    titles: Names | None = None,
) -> Iterator[Need]:
    by_form: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(target):
        for form in _forms(kind, name):
            by_form[form].append(name)
    for name, count in sorted(source.items()):
        if name in target or name in mapping:
            continue
        forms = _forms(kind, name) | _forms(kind, (titles or {}).get(name, ""))
        like = dict.fromkeys(each for form in sorted(forms) for each in by_form.get(form, ()))
        if like:
            yield Need(kind=kind, name=name, like=tuple(like)[:_MOST_LIKE], datasets=count)


def _forms(kind: str, name: str) -> set[str]:
    """What stays of a name without case, marks, and the group or address that it belongs to."""
    last = name.partition("@")[0] if kind == "owner" else _PARTS.split(name)[-1]
    return {form for part in (name, last) if (form := _MARKS.sub("", part.casefold()))}


def _services(source: Survey, target: Survey, mapping: Mapping) -> Iterator[Need]:
    """Instances of one platform that hold datasets of the same names."""
    there: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    known: set[str] = set()
    for urn in map(Urn.parse, target.datasets):
        known.add(service_of(urn))
        there[_place(urn)].add(service_of(urn))
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for urn in map(Urn.parse, source.datasets):
        service = service_of(urn)
        if service not in known and service not in mapping.services:
            found[service].update(there.get(_place(urn), ()))
    for service, like in sorted(found.items()):
        if like:
            (_, most), *_ = ranked = like.most_common(_MOST_LIKE)
            yield Need(
                kind="service", name=service, like=tuple(name for name, _ in ranked), datasets=most
            )


def _place(urn: Urn) -> tuple[str, str, str]:
    return urn.platform, urn.path_text.casefold(), urn.environment


def _cased(source: Survey, target: Survey, mapping: Mapping) -> Iterator[Need]:
    """Datasets whose names differ in nothing but case."""
    folded: defaultdict[str, list[str]] = defaultdict(list)
    for urn, form in target.datasets.items():
        folded[form].append(urn)
    for urn, form in sorted(source.datasets.items()):
        like = folded.get(form, [])
        if like and urn not in target.datasets and mapping.urn(urn) == urn:
            if urn in mapping.datasets:
                continue
            yield Need(kind="dataset", name=urn, like=tuple(like)[:_MOST_LIKE], datasets=1)
