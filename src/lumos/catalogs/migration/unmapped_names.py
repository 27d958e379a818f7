"""Finds names in the source that may mean the same as different names in the target.

Whether `pii` and `PII.Sensitive` mean the same cannot be decided automatically: the report only
suggests entries of a mapping, without stopping the migration. Tags and domains whose names are ids
are listed with their display names.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from lumos.catalogs.migration.mapping import (
    LABELS,
    Mapping,
    RenamedNames,
    label_name,
    names_used,
    service_of,
)
from lumos.catalogs.migration.reports import UnmappedName, UnmappedNameKind
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, User
from lumos.model.urn import Urn

_PUNCTUATION: Final = re.compile(r"[\W_]+")
_SEPARATORS: Final = re.compile(r"[./:]")
_MAX_SUGGESTIONS: Final = 5
# An id that a catalog generated: a UUID, with or without dashes.
_ID: Final = re.compile(r"(?=.*\d)[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)


class CatalogNames:
    """The names of datasets, tags, terms, owners and domains in a catalog.

    The counts of names are the numbers of datasets that use them.
    """

    def __init__(self) -> None:
        self.tags: Counter[str] = Counter()
        self.terms: Counter[str] = Counter()
        self.owners: Counter[str] = Counter()
        self.domains: Counter[str] = Counter()
        # Display names of tags and domains, by kind and name.
        self.display_names: dict[str, RenamedNames] = {kind: {} for kind in LABELS}
        self.datasets: dict[str, str] = {}

    @classmethod
    def of(cls, entries: Iterable[CatalogEntry], items: Iterable[object] = ()) -> "CatalogNames":
        """Collect the names in datasets and items."""
        names = cls()
        for entry in entries:
            if not entry.deleted:
                names.add(entry)
        for item in items:
            match item:
                case GlossaryTerm():
                    names.terms[item.name] += 0
                    if item.domain:
                        names.domains[item.domain] += 0
                case User() | Group():
                    names.owners[item.name] += 0
                case CatalogEntity():
                    names.add_label(item)
        return names

    def add(self, entry: CatalogEntry) -> None:
        self.datasets[entry.urn] = entry.urn.casefold()
        for section, name in set(names_used(entry)):
            if section != "urns":
                getattr(self, section)[name] += 1

    def add_label(self, entity: CatalogEntity) -> None:
        """Add a tag or domain; other entities are ignored."""
        if (label := label_name(entity.urn)) is None:
            return
        kind, name = label
        self.labels(kind)[name] += 0
        if entity.display_name:
            self.display_names[kind][name] = entity.display_name

    def labels(self, kind: str) -> Counter[str]:
        return self.tags if kind == "tag" else self.domains

    @property
    def services(self) -> set[str]:
        """The platforms of the datasets, with their instances."""
        return {service_of(Urn.parse(urn)) for urn in self.datasets}


def find_unmapped_names(
    source: CatalogNames,
    target: CatalogNames,
    mapping: Mapping,
    *,
    shows_display_names: bool = False,
) -> tuple[UnmappedName, ...]:
    """Names that a person should map, so that the target does not have two names for one concept.

    With `shows_display_names`, tags and domains are not listed only because their names are ids.
    """
    return (
        *_find_unmapped_labels(
            "tag", source, target, mapping.tags, shows_display_names=shows_display_names
        ),
        *_find_similar("term", source.terms, target.terms, mapping.terms),
        *_find_similar("owner", source.owners, target.owners, mapping.owners),
        *_find_unmapped_labels(
            "domain", source, target, mapping.domains, shows_display_names=shows_display_names
        ),
        *_find_services(source, target, mapping),
        *_find_case_differences(source, target, mapping),
    )


def _find_unmapped_labels(
    kind: UnmappedNameKind,
    source: CatalogNames,
    target: CatalogNames,
    mapping: RenamedNames,
    *,
    shows_display_names: bool,
) -> list[UnmappedName]:
    """Tags or domains that resemble others in the target, and those whose names are ids."""
    names, titles = source.labels(kind), source.display_names[kind]
    unmapped = list(_find_similar(kind, names, target.labels(kind), mapping, titles))
    if shows_display_names:
        return unmapped
    listed, title_counts = {each.name for each in unmapped}, Counter(titles.values())
    for name, count in names.items():
        title = titles.get(name)
        if not count or not title or name in mapping or name in listed or not _ID.fullmatch(name):
            continue
        # The suggested lines must not join two tags that only share a display name.
        like = (title,) if title_counts[title] == 1 else ()
        unmapped.append(
            UnmappedName(kind=kind, name=name, like=like, datasets=count, by_title=True)
        )
    return sorted(unmapped, key=lambda each: each.name)


def _find_similar(
    kind: UnmappedNameKind,
    source: Counter[str],
    target: Counter[str],
    mapping: RenamedNames,
    titles: RenamedNames | None = None,
) -> Iterator[UnmappedName]:
    by_form: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(target):
        for form in _normalized_forms(kind, name):
            by_form[form].append(name)
    for name, count in sorted(source.items()):
        if name in target or name in mapping:
            continue
        forms = _normalized_forms(kind, name) | _normalized_forms(
            kind, (titles or {}).get(name, "")
        )
        similar = dict.fromkeys(each for form in sorted(forms) for each in by_form.get(form, ()))
        if similar:
            yield UnmappedName(
                kind=kind, name=name, like=tuple(similar)[:_MAX_SUGGESTIONS], datasets=count
            )


def _normalized_forms(kind: str, name: str) -> set[str]:
    """Forms of a name for comparison: lower case, without punctuation, and also without prefix."""
    last = name.partition("@")[0] if kind == "owner" else _SEPARATORS.split(name)[-1]
    return {form for part in (name, last) if (form := _PUNCTUATION.sub("", part.casefold()))}


def _find_services(
    source: CatalogNames, target: CatalogNames, mapping: Mapping
) -> Iterator[UnmappedName]:
    """Services of the source whose datasets have the same names as those of another instance."""
    target_services: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    known: set[str] = set()
    for urn in map(Urn.parse, target.datasets):
        known.add(service_of(urn))
        target_services[_comparison_key(urn)].add(service_of(urn))
    similar: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for urn in map(Urn.parse, source.datasets):
        service = service_of(urn)
        if service not in known and service not in mapping.services:
            similar[service].update(target_services.get(_comparison_key(urn), ()))
    for service, counts in sorted(similar.items()):
        if counts:
            (_, most), *_ = ranked = counts.most_common(_MAX_SUGGESTIONS)
            names = tuple(name for name, _ in ranked)
            yield UnmappedName(kind="service", name=service, like=names, datasets=most)


def _comparison_key(urn: Urn) -> tuple[str, str, str]:
    return urn.platform, urn.path_text.casefold(), urn.environment


def _find_case_differences(
    source: CatalogNames, target: CatalogNames, mapping: Mapping
) -> Iterator[UnmappedName]:
    """Datasets whose URNs differ only in case."""
    by_folded: defaultdict[str, list[str]] = defaultdict(list)
    for urn, folded in target.datasets.items():
        by_folded[folded].append(urn)
    for urn, folded in sorted(source.datasets.items()):
        similar = by_folded.get(folded, [])
        is_mapped = urn in mapping.datasets or mapping.urn(urn) != urn
        if similar and urn not in target.datasets and not is_mapped:
            like = tuple(similar)[:_MAX_SUGGESTIONS]
            yield UnmappedName(kind="dataset", name=urn, like=like, datasets=1)
