"""Which names of the source would stand beside the same thing under another name in the target.

Nobody can be sure that `pii` and `PII.Sensitive` mean the same. So they are told, with the lines of
a mapping that would join them, and a migration goes on without.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from lumos.engine.migration.mapping import Mapping, Names, service_of
from lumos.engine.migration.reports import Need, NeedKind
from lumos.model.catalog import Entry, GlossaryTerm, Group, User
from lumos.model.schema import Field, NestedField
from lumos.model.urn import Urn

_MARKS: Final = re.compile(r"[\W_]+")
_PARTS: Final = re.compile(r"[./:]")
_MOST_LIKE: Final = 5


class Survey:
    """The names that the datasets of a catalog are called by, and those they speak of."""

    def __init__(self) -> None:
        self.tags: Counter[str] = Counter()
        self.terms: Counter[str] = Counter()
        self.owners: Counter[str] = Counter()
        self.datasets: dict[str, str] = {}

    @classmethod
    def of(cls, entries: Iterable[Entry], items: Iterable[object] = ()) -> "Survey":
        """The survey of some entries, and of terms and people that nobody need speak of."""
        survey = cls()
        for entry in entries:
            if not entry.deleted:
                survey.add(entry)
        for item in items:
            match item:
                case GlossaryTerm():
                    survey.terms[item.name] += 0
                case User() | Group():
                    survey.owners[item.name] += 0
        return survey

    def add(self, entry: Entry) -> None:
        """Takes note of one dataset."""
        self.datasets[entry.urn] = entry.urn.casefold()
        if entry.governance is not None:
            self.tags.update(entry.governance.tags)
            self.terms.update(entry.governance.terms)
        if entry.ownership is not None:
            self.owners.update({owner.name for owner in entry.ownership.owners})
        for field in entry.schema.fields if entry.schema else ():
            self._label(field)
            for nested in field.nested:
                self._label(nested)

    @property
    def services(self) -> set[str]:
        """The platforms of the datasets, with their instances."""
        return {service_of(Urn.parse(urn)) for urn in self.datasets}

    def _label(self, labelled: Field | NestedField) -> None:
        self.tags.update(labelled.tags)
        self.terms.update(labelled.terms)


def needs(source: Survey, target: Survey, mapping: Mapping) -> tuple[Need, ...]:
    """What somebody should decide on before the target has two names for one thing."""
    return (
        *_alike("tag", source.tags, target.tags, mapping.tags),
        *_alike("term", source.terms, target.terms, mapping.terms),
        *_alike("owner", source.owners, target.owners, mapping.owners),
        *_services(source, target, mapping),
        *_cased(source, target, mapping),
    )


def _alike(
    kind: NeedKind, source: Counter[str], target: Counter[str], mapping: Names
) -> Iterator[Need]:
    by_form: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(target):
        for form in _forms(kind, name):
            by_form[form].append(name)
    for name, count in sorted(source.items()):
        if name in target or name in mapping:
            continue
        like = dict.fromkeys(each for form in _forms(kind, name) for each in by_form.get(form, ()))
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
