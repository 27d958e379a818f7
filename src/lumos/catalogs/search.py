"""Full-text search over entries, for catalogs whose own search is not used."""

from collections.abc import Iterable, Iterator, Sequence

from lumos.catalogs.interface import Filters
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset
from lumos.model.type_path import field_paths


def search_entries(
    entries: Iterable[CatalogEntry], text: str, filters: Filters, *, limit: int | None
) -> Iterator[Dataset]:
    """Yield the datasets that contain every word; matches by name first."""
    words = text.casefold().split()
    hits = [entry for entry in entries if _matches(entry, words, filters)]
    hits.sort(key=lambda entry: not all(word in entry.name.casefold() for word in words))
    for entry in hits[:limit]:
        yield entry.dataset


def _matches(entry: CatalogEntry, words: Sequence[str], filters: Filters) -> bool:
    if entry.deleted:
        return False
    governance, ownership = entry.governance, entry.ownership
    checks = (
        (filters.platform, (entry.platform,)),
        (filters.format, (entry.format,)),
        (filters.tag, governance.tags if governance else ()),
        (filters.owner, [owner.name for owner in ownership.owners] if ownership else ()),
    )
    if any(value is not None and value not in values for value, values in checks):
        return False
    text = "\n".join(_texts(entry)).casefold()
    return all(word in text for word in words)


def _texts(entry: CatalogEntry) -> Iterator[str]:
    yield entry.urn
    yield entry.name
    if entry.documentation is not None:
        yield entry.documentation.description or ""
    if entry.governance is not None:
        yield from (*entry.governance.tags, *entry.governance.terms)
    if entry.schema is not None:
        yield from field_paths(entry.schema)
        yield from (field.description or "" for field in entry.schema.fields)
