"""Which names of the source would stand beside the same thing under another name in the target.

Nobody can be sure that `pii` and `PII.Sensitive` mean the same. So they are told, with the lines of
a mapping that would join them, and a migration goes on without. So are tags and domains that the
source knows by ids which say nothing to anybody, with the titles that they have there.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from lumos.catalogs.datahub_model.annotations import words_of
from lumos.catalogs.datahub_model.labels import LabelKind, label_of
from lumos.catalogs.migration.mapping import Mapping, Names, service_of
from lumos.catalogs.migration.reports import Need, NeedKind
from lumos.catalogs.openmetadata.renaming import label_named
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, User
from lumos.model.schema import Field, NestedField
from lumos.model.urn import Urn

_MARKS: Final = re.compile(r"[\W_]+")
_PARTS: Final = re.compile(r"[./:]")
_MOST_LIKE: Final = 5
# What a catalog makes up itself where nobody gives a name: a UUID, or as many digits in one piece.
_ID: Final = re.compile(r"(?=.*\d)[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)


class Survey:
    """The names that the datasets of a catalog are called by, and those they speak of."""

    def __init__(self) -> None:
        self.tags: Counter[str] = Counter()
        self.terms: Counter[str] = Counter()
        self.owners: Counter[str] = Counter()
        self.domains: Counter[str] = Counter()
        # What people call tags and domains that are known by other names.
        self.titles: dict[LabelKind, Names] = {"tag": {}, "domain": {}}
        self.datasets: dict[str, str] = {}

    @classmethod
    def of(cls, entries: Iterable[CatalogEntry], items: Iterable[object] = ()) -> "Survey":
        """The survey of some entries, and of terms and people that nobody need speak of."""
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

    def add_label(self, other: CatalogEntity) -> None:
        """Takes note of a tag or a domain that is a thing of its own in its catalog."""
        if (thing := label_named(other.urn)) is not None:
            kind, name = thing
            self.labels(kind)[name] += 0
        label = label_of(other.urn)
        if label is None:
            return
        self.labels(label.kind)[label.name] += 0
        if title := words_of(other).title:
            self.titles[label.kind][label.name] = title

    def labels(self, kind: LabelKind) -> Counter[str]:
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
    source: Survey, target: Survey, mapping: Mapping, *, keeps_ids: bool = False
) -> tuple[Need, ...]:
    """What somebody should decide on before the target has two names for one thing, or none.

    A target that `keeps_ids` shows tags and domains of such names by their titles itself.
    """
    return (
        *_labels("tag", source, target, mapping.tags, keeps_ids=keeps_ids),
        *_alike("term", source.terms, target.terms, mapping.terms),
        *_alike("owner", source.owners, target.owners, mapping.owners),
        *_labels("domain", source, target, mapping.domains, keeps_ids=keeps_ids),
        *_services(source, target, mapping),
        *_cased(source, target, mapping),
    )


def _labels(
    kind: LabelKind, source: Survey, target: Survey, mapping: Names, *, keeps_ids: bool
) -> list[Need]:
    """Tags or domains that are like others in the target, and those whose names say nothing."""
    known, titles = source.labels(kind), source.titles[kind]
    found = list(_alike(kind, known, target.labels(kind), mapping, titles))
    if keeps_ids:
        return found
    told, shared = {need.name for need in found}, Counter(titles.values())
    for name, count in known.items():
        title = titles.get(name)
        if not count or not title or name in mapping or name in told or not _ID.fullmatch(name):
            continue
        # Two of one title would become one thing by lines that are only pasted.
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
