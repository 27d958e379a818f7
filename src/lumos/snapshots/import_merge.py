"""The rules that decide what an import writes for an entry, and what a rollback restores.

A snapshot contains complete entries, except for omitted aspects. An import removes values that an
earlier import wrote and that the snapshot no longer contains. Edits by others are not undone.
"""

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs import MergedEntry, three_way_merge
from lumos.catalogs.three_way_merge import merge
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import (
    ASPECTS,
    Documentation,
    Governance,
    Lineage,
    Ownership,
    Quality,
)

# Aspects that scans determine: the store takes precedence over a snapshot.
SCANNED_ASPECTS: Final = ("schema", "location", "statistics", "drift", "definition")
_EMPTY: Final[dict[str, Any]] = {
    "lineage": Lineage(),
    "ownership": Ownership(),
    "governance": Governance(),
    "documentation": Documentation(),
    "properties": {},
}
_IDENTITY: Final = ("name", "platform", "format")


class RolledBackEntry(NamedTuple):
    """An entry after its import was rolled back; `value` is None if the entry is deleted.

    `kept` are the fields with later edits, which were not rolled back.
    """

    value: Any | None
    kept: tuple[str, ...]


def merge_imported(
    base: CatalogEntry | None,
    theirs: CatalogEntry | None,
    ours: CatalogEntry,
    *,
    omitted: Collection[str],
) -> MergedEntry | None:
    """The dataset to write, or None if it is deleted in the snapshot and missing in the target.

    `ours` is the entry in the snapshot, `theirs` the entry in the store or catalog, and `base` the
    entry that the last import wrote. A deleted dataset is still written if it has extras, such as
    a deletion time.
    """
    if ours.deleted and is_bare(ours):
        if theirs is None:
            return MergedEntry(entry=ours) if ours.raw else None
        return MergedEntry(entry=msgspec.structs.replace(theirs, deleted=True))
    merged = merge(base, theirs, ours)
    if base is None or theirs is None:
        return merged
    removed_aspects = {
        name: _remove_imported(name, getattr(base, name), getattr(theirs, name))
        for name in ASPECTS
        if name not in omitted and getattr(ours, name) is None and getattr(base, name) is not None
    }
    if base.raw and not ours.raw:
        removed_aspects["raw"] = three_way_merge.merge_raw(base, theirs, ours)
    return msgspec.structs.replace(
        merged, entry=msgspec.structs.replace(merged.entry, **removed_aspects)
    )


def written_by_lumos(
    base: CatalogEntry | None, ours: CatalogEntry, *, omitted: Collection[str]
) -> CatalogEntry:
    """The part of a dataset that comes from this import and earlier imports."""
    if base is None:
        return ours
    if ours.deleted and is_bare(ours):
        return msgspec.structs.replace(base, deleted=True)
    before = {name: getattr(base, name) for name in omitted if name in ASPECTS}
    return msgspec.structs.replace(ours, **before) if before else ours


def is_bare(entry: CatalogEntry) -> bool:
    """Whether an entry has no aspects."""
    return all(getattr(entry, name) is None for name in ASPECTS)


def without_scanned(entry: CatalogEntry, stored: CatalogEntry) -> CatalogEntry:
    """The entry without the aspects that scans determine; uses the store's name and platform."""
    return msgspec.structs.replace(
        entry,
        **dict.fromkeys(SCANNED_ASPECTS),
        **{name: getattr(stored, name) for name in (*_IDENTITY, "timestamps", "deleted")},
    )


def roll_back_entry(
    before_import: Any | None,
    imported: Any,
    current: Any | None,
    *,
    kept_fields: Collection[str] = (),
) -> RolledBackEntry:
    """The entry as it was before an import, but with later edits.

    The fields in `kept_fields` are not rolled back.
    """
    if current is None:
        return RolledBackEntry(before_import, ())
    is_dataset = isinstance(current, CatalogEntry)
    fields: dict[str, Any] = {}
    kept: list[str] = []
    for field in msgspec.structs.fields(type(current)):
        name = field.name
        current_value, earlier_value = getattr(current, name), getattr(before_import, name, None)
        if before_import is None:
            is_name = field.required or (is_dataset and name in _IDENTITY)
            earlier_value = current_value if is_name else three_way_merge.default_of(field)
        if name == "raw":
            fields[name] = three_way_merge.merge_raw(imported, current, before_import)
            kept += _edited_records(imported, current, before_import)
            continue
        if name in kept_fields:
            fields[name] = current_value
            continue
        fields[name] = _roll_back_value(
            name, earlier_value, getattr(imported, name), current_value, is_dataset=is_dataset
        )
        if fields[name] != earlier_value:
            kept.append(name)
    if before_import is None and not kept and not kept_fields:
        return RolledBackEntry(None, ())
    return RolledBackEntry(type(current)(**fields), tuple(kept))


def _roll_back_value(
    name: str, before: Any, imported: Any, current: Any, *, is_dataset: bool
) -> Any:
    """The value as it was before an import, but with later edits.

    The members of aspects are compared one by one, because an interrupted import may have written
    only a part of an aspect.
    """
    if current in (imported, before):
        return before
    if not is_dataset or name not in _EMPTY or None in (imported, current):
        return current
    empty = _EMPTY[name]
    merged = three_way_merge.merge_aspect(name, imported, current, before or empty)
    return before if merged == (before or empty) else merged


def _edited_records(imported: Any, current: Any, before_import: Any | None) -> list[str]:
    """The catalog extras that were edited since the import."""
    return [
        f"raw.{catalog}.{name}"
        for catalog, records in current.raw.items()
        for name, record in (records.items() if isinstance(records, dict) else ())
        if record not in (_record(side, catalog, name) for side in (imported, before_import))
    ]


def _record(entry: Any | None, catalog: str, name: str) -> Any:
    records = entry.raw.get(catalog) if entry is not None else None
    return records.get(name) if isinstance(records, dict) else None


def differing_fields(before: Any | None, after: Any) -> tuple[str, ...]:
    """The fields of an entry that differ; all fields of a new entry."""
    return tuple(
        field.name
        for field in msgspec.structs.fields(type(after))
        if not field.required
        and getattr(after, field.name)
        != (three_way_merge.default_of(field) if before is None else getattr(before, field.name))
    )


def _remove_imported(name: str, base: Any, theirs: Any) -> Any:
    """The aspect in the target, without the values that an earlier import wrote."""
    if isinstance(theirs, Quality) and theirs.profile not in (None, base.profile):
        # A profile that was measured after the import does not come from a snapshot.
        return Quality(profile=theirs.profile)
    if theirs == base or name not in _EMPTY:
        return None
    remaining = three_way_merge.merge_aspect(name, base, theirs, _EMPTY[name])
    return None if remaining == _EMPTY[name] else remaining
