"""What an import writes for an entry, and what taking it back leaves.

A snapshot speaks of an entry as a whole, but for the aspects that it leaves out. So what an earlier
import brought and the snapshot no longer has goes again, while what was edited since stays.
"""

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs import Merged, three_way_merge
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

# What a scan sees of data itself: there the store's word counts, and no snapshot's.
SEEN: Final = ("schema", "location", "statistics", "drift", "definition")
_EMPTY: Final[dict[str, Any]] = {
    "lineage": Lineage(),
    "ownership": Ownership(),
    "governance": Governance(),
    "documentation": Documentation(),
    "properties": {},
}
_IDENTITY: Final = ("name", "platform", "format")


class TakenBack(NamedTuple):
    """An entry as it is after its import was taken back, if anything is left of it.

    `kept` names the parts that were edited since and therefore stay.
    """

    value: Any | None
    kept: tuple[str, ...]


def merged_entry(
    base: CatalogEntry | None,
    theirs: CatalogEntry | None,
    ours: CatalogEntry,
    *,
    omitted: Collection[str],
) -> Merged | None:
    """What to write of a dataset, or nothing where it is gone on both sides."""
    if ours.deleted and is_bare(ours):
        if theirs is None:
            return None
        return Merged(entry=msgspec.structs.replace(theirs, deleted=True))
    merged = merge(base, theirs, ours)
    if base is None or theirs is None:
        return merged
    withdrawn = {
        name: _without(name, getattr(base, name), getattr(theirs, name))
        for name in ASPECTS
        if name not in omitted and getattr(ours, name) is None and getattr(base, name) is not None
    }
    if base.carried and not ours.carried:
        withdrawn["carried"] = three_way_merge.merged_carried(base, theirs, ours)
    return msgspec.structs.replace(merged, entry=msgspec.structs.replace(merged.entry, **withdrawn))


def claimed(
    base: CatalogEntry | None, ours: CatalogEntry, *, omitted: Collection[str]
) -> CatalogEntry:
    """What Lumos has said of a dataset once a snapshot is imported, and by those before it."""
    if base is None:
        return ours
    if ours.deleted and is_bare(ours):
        return msgspec.structs.replace(base, deleted=True)
    before = {name: getattr(base, name) for name in omitted if name in ASPECTS}
    return msgspec.structs.replace(ours, **before) if before else ours


def is_bare(entry: CatalogEntry) -> bool:
    """Whether an entry says no more than that there is, or is not, such a dataset."""
    return all(getattr(entry, name) is None for name in ASPECTS)


def as_seen(entry: CatalogEntry, seen: CatalogEntry) -> CatalogEntry:
    """An entry of a snapshot without what the store has seen itself."""
    return msgspec.structs.replace(
        entry,
        **dict.fromkeys(SEEN),
        **{name: getattr(seen, name) for name in (*_IDENTITY, "timestamps", "deleted")},
    )


def taken_back(
    before: Any | None, after: Any, now: Any | None, *, seen: Collection[str] = ()
) -> TakenBack:
    """An entry as it was before an import, with what was edited since; `seen` stays as it is."""
    if now is None:
        return TakenBack(before, ())
    is_dataset = isinstance(now, CatalogEntry)
    fields: dict[str, Any] = {}
    kept: list[str] = []
    for field in msgspec.structs.fields(type(now)):
        name = field.name
        there, was = getattr(now, name), getattr(before, name, None)
        if before is None:
            is_name = field.required or (is_dataset and name in _IDENTITY)
            was = there if is_name else three_way_merge.default_of(field)
        if name == "carried":
            fields[name] = three_way_merge.merged_carried(after, now, before)
            kept += _edited_records(after, now, before)
            continue
        is_edited = there not in (getattr(after, name), was)
        stays = is_edited or name in seen
        fields[name] = there if stays else was
        if is_edited and name not in seen:
            kept.append(name)
    if before is None and not kept and not seen:
        return TakenBack(None, ())
    return TakenBack(type(now)(**fields), tuple(kept))


def _edited_records(after: Any, now: Any, before: Any | None) -> list[str]:
    """The records of catalogs that are neither as they were nor as an import made them."""
    return [
        f"carried.{catalog}.{name}"
        for catalog, records in now.carried.items()
        for name, record in (records.items() if isinstance(records, dict) else ())
        if record not in (_record(side, catalog, name) for side in (after, before))
    ]


def _record(entry: Any | None, catalog: str, name: str) -> Any:
    records = entry.carried.get(catalog) if entry is not None else None
    return records.get(name) if isinstance(records, dict) else None


def differing(before: Any | None, after: Any) -> tuple[str, ...]:
    """The parts of an entry that differ, or all that a new one has."""
    return tuple(
        field.name
        for field in msgspec.structs.fields(type(after))
        if not field.required
        and getattr(after, field.name)
        != (three_way_merge.default_of(field) if before is None else getattr(before, field.name))
    )


def _without(name: str, base: Any, theirs: Any) -> Any:
    """An aspect of the catalog without what an earlier import brought."""
    if isinstance(theirs, Quality) and theirs.profile not in (None, base.profile):
        # What was measured since is no snapshot's.
        return Quality(profile=theirs.profile)
    if theirs == base or name not in _EMPTY:
        return None
    left = three_way_merge.merged_aspect(name, base, theirs, _EMPTY[name])
    return None if left == _EMPTY[name] else left
