"""Compares two snapshots, reading both as streams in the order of their keys.

Entries with the same JSON are not decoded.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from lumos.snapshots.format.codec import MalformedJson, canonical, decode_entry
from lumos.snapshots.format.differences import (
    COMPARED,
    CompareSchemas,
    Difference,
    differences_of,
    entry_difference,
    is_compared,
)
from lumos.snapshots.format.document import DATASETS, KINDS, EntryKind, SnapshotHeader
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.reader import EntryRecord, OpenSnapshot, open_snapshot

Normalize: TypeAlias = Callable[[Any], Any]


def compare(
    before: str | Path | OpenSnapshot,
    after: str | Path | OpenSnapshot,
    *,
    compare_schemas: CompareSchemas,
    aspects: Iterable[str] = COMPARED,
    kinds: Iterable[EntryKind] = KINDS,
    normalize: Normalize | None = None,
) -> Iterator[Difference]:
    """The differences between two snapshots, by kind and key.

    Aspects that one of the snapshots omits are not compared. If a snapshot only contains a
    selection, or the changes since another snapshot, entries that it lacks are not reported as
    removed or added. `normalize` converts entries with different extras (`raw`); an entry for which
    it returns None is not compared.
    """
    old, new = _open(before), _open(after)
    for snapshot in (old, new):
        snapshot.check_header()
    omitted_aspects = {*old.header.omitted, *new.header.omitted}
    aspects_to_compare = tuple(aspect for aspect in aspects if aspect not in omitted_aspects)
    for kind in kinds:
        if is_compared(kind, aspects_to_compare):
            yield from _Comparison(
                kind, old, new, compare_schemas, aspects_to_compare, normalize
            ).differences()


def _open(snapshot: str | Path | OpenSnapshot) -> OpenSnapshot:
    return snapshot if isinstance(snapshot, OpenSnapshot) else open_snapshot(snapshot)


class _Comparison:
    """The entries of one kind in two snapshots."""

    def __init__(
        self,
        kind: EntryKind,
        before: OpenSnapshot,
        after: OpenSnapshot,
        compare_schemas: CompareSchemas,
        aspects: tuple[str, ...],
        normalize: Normalize | None,
    ) -> None:
        self._kind = kind
        self._before = before
        self._after = after
        self._compare_schemas = compare_schemas
        self._aspects = aspects
        self._normalize = normalize
        self._before_is_part = is_part(before.header, of=after.header)
        self._after_is_part = is_part(after.header, of=before.header)

    def differences(self) -> Iterator[Difference]:
        old, new = self._before.records(self._kind), self._after.records(self._kind)
        old_record, new_record = next(old, None), next(new, None)
        while old_record is not None or new_record is not None:
            if new_record is None or (old_record is not None and old_record.key < new_record.key):
                yield from self._removed_entry(old_record)
                old_record = next(old, None)
            elif old_record is None or new_record.key < old_record.key:
                yield from self._added_entry(new_record)
                new_record = next(new, None)
            else:
                if old_record.body != new_record.body:
                    yield from self._changed(old_record, new_record)
                old_record, new_record = next(old, None), next(new, None)

    def _removed_entry(self, record: EntryRecord | None) -> Iterator[Difference]:
        assert record is not None
        if not self._after_is_part and not self._is_ignored(self._before, record):
            yield entry_difference(self._kind, record.key, added=False)

    def _added_entry(self, record: EntryRecord) -> Iterator[Difference]:
        if not self._before_is_part and not self._is_ignored(self._after, record):
            yield entry_difference(self._kind, record.key, added=True)

    def _changed(self, old_record: EntryRecord, new_record: EntryRecord) -> Iterator[Difference]:
        before = self._before.entry(self._kind, old_record)
        after = self._after.entry(self._kind, new_record)
        if is_deleted(before) or is_deleted(after):
            if is_deleted(before) != is_deleted(after):
                yield entry_difference(self._kind, old_record.key, added=is_deleted(before))
            return
        has_other_raw = getattr(before, "raw", None) != getattr(after, "raw", None)
        if self._normalize is not None and has_other_raw:
            before, after = self._normalize(before), self._normalize(after)
            if before is None or after is None:
                return
        yield from differences_of(
            self._kind,
            old_record.key,
            before,
            after,
            compare_schemas=self._compare_schemas,
            aspects=self._aspects,
        )

    def _is_ignored(self, snapshot: OpenSnapshot, record: EntryRecord) -> bool:
        """Whether an entry that the other snapshot lacks is not a difference."""
        if self._kind is DATASETS:
            may_be_deleted = b'"deleted"' in record.body
            return may_be_deleted and is_deleted(snapshot.entry(self._kind, record))
        if self._normalize is None or b'"raw"' not in record.body:
            return False
        return self._normalize(snapshot.entry(self._kind, record)) is None


def is_deleted(value: Any) -> bool:
    """Whether an entry marks a deleted dataset."""
    return bool(getattr(value, "deleted", False))


def is_part(header: SnapshotHeader, *, of: SnapshotHeader) -> bool:
    """Whether a snapshot may lack entries that were not removed; `of` is the other snapshot."""
    is_other_selection = header.scope == "selected" and header.selection != of.selection
    return header.scope == "incremental" or is_other_selection


def difference_rows(
    urn: str,
    before: bytes | None,
    after: bytes | None,
    *,
    compare_schemas: CompareSchemas,
    aspects: Iterable[str] = COMPARED,
) -> list[dict[str, Any]]:
    """The differences of one dataset as table rows, given its JSON in both snapshots."""
    if before is None or after is None:
        differences = [entry_difference(DATASETS, urn, added=before is None)]
    else:
        try:
            old, new = decode_entry(DATASETS, before), decode_entry(DATASETS, after)
        except MalformedJson as problem:
            raise SnapshotError(urn, problem.path, f"{problem.problem}.") from None
        differences = list(
            differences_of(
                DATASETS, urn, old, new, compare_schemas=compare_schemas, aspects=aspects
            )
        )
    return [
        msgspec.structs.asdict(difference)
        | {
            "before": canonical(difference.before).decode(),
            "after": canonical(difference.after).decode(),
        }
        for difference in differences
    ]
