"""Compares two snapshots, streaming both in the order of their keys.

Entries whose JSON is the same are never decoded.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from lumos.snapshots.format.codec import MalformedJson, canonical, entry_of
from lumos.snapshots.format.differences import (
    COMPARED,
    Difference,
    Judge,
    differences_of,
    entry_difference,
    is_compared,
)
from lumos.snapshots.format.document import DATASETS, KINDS, EntryKind, SnapshotHeader
from lumos.snapshots.format.errors import SnapshotError
from lumos.snapshots.format.reader import EntryRecord, OpenSnapshot, open_snapshot


def compare(
    before: str | Path | OpenSnapshot,
    after: str | Path | OpenSnapshot,
    *,
    judge: Judge,
    aspects: Iterable[str] = COMPARED,
    kinds: Iterable[EntryKind] = KINDS,
) -> Iterator[Difference]:
    """What differs between two snapshots, by kind and key.

    What one of them does not speak of is no difference: aspects that were left out of it, and
    datasets outside of its selection or untouched since its base.
    """
    old, new = _opened(before), _opened(after)
    for snapshot in (old, new):
        snapshot.check_header()
    left_out = {*old.header.omitted, *new.header.omitted}
    looked_at = tuple(aspect for aspect in aspects if aspect not in left_out)
    for kind in kinds:
        if is_compared(kind, looked_at):
            yield from _Comparison(kind, old, new, judge, looked_at).differences()


def _opened(snapshot: str | Path | OpenSnapshot) -> OpenSnapshot:
    return snapshot if isinstance(snapshot, OpenSnapshot) else open_snapshot(snapshot)


class _Comparison:
    """The entries of one kind in two snapshots."""

    def __init__(
        self,
        kind: EntryKind,
        before: OpenSnapshot,
        after: OpenSnapshot,
        judge: Judge,
        aspects: tuple[str, ...],
    ) -> None:
        self._kind = kind
        self._before = before
        self._after = after
        self._judge = judge
        self._aspects = aspects
        self._before_is_part = is_part(before.header, of=after.header)
        self._after_is_part = is_part(after.header, of=before.header)

    def differences(self) -> Iterator[Difference]:
        old, new = self._before.records(self._kind), self._after.records(self._kind)
        was, now = next(old, None), next(new, None)
        while was is not None or now is not None:
            if now is None or (was is not None and was.key < now.key):
                yield from self._gone(was)
                was = next(old, None)
            elif was is None or now.key < was.key:
                yield from self._come(now)
                now = next(new, None)
            else:
                if was.body != now.body:
                    yield from self._changed(was, now)
                was, now = next(old, None), next(new, None)

    def _gone(self, record: EntryRecord | None) -> Iterator[Difference]:
        assert record is not None
        if not self._after_is_part and not self._is_deleted(self._before, record):
            yield entry_difference(self._kind, record.key, added=False)

    def _come(self, record: EntryRecord) -> Iterator[Difference]:
        if not self._before_is_part and not self._is_deleted(self._after, record):
            yield entry_difference(self._kind, record.key, added=True)

    def _changed(self, was: EntryRecord, now: EntryRecord) -> Iterator[Difference]:
        before = self._before.entry(self._kind, was)
        after = self._after.entry(self._kind, now)
        if is_deleted(before) or is_deleted(after):
            if is_deleted(before) != is_deleted(after):
                yield entry_difference(self._kind, was.key, added=is_deleted(before))
            return
        yield from differences_of(
            self._kind, was.key, before, after, judge=self._judge, aspects=self._aspects
        )

    def _is_deleted(self, snapshot: OpenSnapshot, record: EntryRecord) -> bool:
        might_be = self._kind is DATASETS and b'"deleted"' in record.body
        return might_be and is_deleted(snapshot.entry(self._kind, record))


def is_deleted(value: Any) -> bool:
    """Whether an entry only says that there is none any more."""
    return bool(getattr(value, "deleted", False))


def is_part(header: SnapshotHeader, *, of: SnapshotHeader) -> bool:
    """Whether a snapshot may lack what the other one has without its being gone."""
    is_other_selection = header.scope == "selected" and header.selection != of.selection
    return header.scope == "incremental" or is_other_selection


def difference_rows(
    urn: str,
    before: bytes | None,
    after: bytes | None,
    *,
    judge: Judge,
    aspects: Iterable[str] = COMPARED,
) -> list[dict[str, Any]]:
    """What differs of one dataset as rows of a table, from both JSONs; None is not there."""
    if before is None or after is None:
        found = [entry_difference(DATASETS, urn, added=before is None)]
    else:
        try:
            old, new = entry_of(DATASETS, before), entry_of(DATASETS, after)
        except MalformedJson as problem:
            raise SnapshotError(urn, problem.path, f"{problem.problem}.") from None
        found = list(differences_of(DATASETS, urn, old, new, judge=judge, aspects=aspects))
    return [
        msgspec.structs.asdict(each)
        | {"before": canonical(each.before).decode(), "after": canonical(each.after).decode()}
        for each in found
    ]
