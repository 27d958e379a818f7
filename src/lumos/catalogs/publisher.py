"""Publishes committed changes of the store to a catalog, in batches.

Entries are published in their current state, merged with edits in the catalog. If a catalog is
down, its changes stay in the outbox; if it rejects an entry, only that entry stays there.
Publishing is idempotent, so a process can be killed at any point.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from lumos.catalogs import (
    Conflict,
    DeletesEntries,
    FailedEntry,
    MergedEntry,
    Platform,
    ReadsEntries,
    ReplacesEntries,
    StoresItems,
    WritesInBatches,
    WritesMany,
)
from lumos.catalogs.interface import merge_inputs, read_many
from lumos.catalogs.reports import PublishConflict, PublishReport, RefusedPublish
from lumos.catalogs.three_way_merge import merge_item
from lumos.errors import CatalogError, CatalogUnavailable, LumosError
from lumos.model.catalog import CatalogEntry
from lumos.model.json_codec import from_json, to_json
from lumos.model.privacy import for_catalogs
from lumos.progress import Progress
from lumos.snapshots.catalogs import without_unknown_datasets
from lumos.snapshots.format.document import (
    DATASETS,
    GLOSSARY,
    GROUPS,
    JOBS,
    OTHERS,
    USERS,
    EntryKind,
)
from lumos.snapshots.import_merge import merge_imported, written_by_lumos
from lumos.snapshots.store_entries import entry_of
from lumos.store import Store
from lumos.store.catalog_outbox import CatalogValues, OutboxEntry
from lumos.store.database import LockHeld

# Entries that others refer to come first.
_ORDER: Final = (GLOSSARY, USERS, GROUPS, OTHERS, DATASETS, JOBS)
# Large, since the whole file is rewritten for each batch.
_FILE_BATCH: Final = 5000
_SERVER_BATCH: Final = 200
# A dataset that is new to the catalog causes another round, with its downstream datasets and jobs.
_ROUNDS: Final = 3

_Batch: TypeAlias = list[tuple[EntryKind, Sequence[OutboxEntry]]]


class _PublishedEntry(NamedTuple):
    """A published change; `written` is what Lumos wrote, the base of the next merge."""

    kind: EntryKind
    change: OutboxEntry
    written: Any | None
    is_new: bool
    conflicts: tuple[CatalogValues, ...] = ()


class CatalogPublisher:
    """Publishes one store to one catalog.

    `omitted` aspects are those of disabled features; they are not changed in the catalog. If
    lineage is omitted, jobs stay in the outbox.
    """

    def __init__(
        self,
        store: Store,
        platform: Platform,
        *,
        omitted: Collection[str] = (),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._platform = platform
        self._omitted = tuple(omitted)
        self._clock = clock

    @property
    def is_first(self) -> bool:
        """Whether this store was never published to the catalog."""
        return not self._store.catalog_outbox.is_subscribed(self._platform.name)

    def add_all(self) -> None:
        """Put the whole store into the outbox of the catalog."""
        name = self._platform.name

        def add(transaction: Any) -> None:
            transaction.catalog_outbox.subscribe(name, at=self._clock())
            transaction.catalog_outbox.add_all(name)

        self._store.transact(add)

    def deliver(self, progress: "Progress | None" = None) -> PublishReport:
        """Publish all pending changes, or as many as the catalog accepts; one process at a time."""
        delivery = _Delivery(
            self._store, self._platform, progress, omitted=self._omitted, now=self._clock()
        )
        if self.is_first:
            self._store.transact(
                lambda transaction: transaction.catalog_outbox.subscribe(
                    self._platform.name, at=self._clock()
                )
            )
        elif not self._store.catalog_outbox.counts(self._platform.name):
            return delivery.report()
        try:
            with self._store.lock(f"catalog {self._platform.name}"):
                delivery.run()
        except LockHeld:
            delivery.postpone("another process is publishing to it")
        return delivery.report()


class _Delivery:
    """One delivery of pending changes, and its results so far."""

    def __init__(
        self,
        store: Store,
        platform: Platform,
        progress: "Progress | None",
        *,
        omitted: tuple[str, ...],
        now: datetime,
    ) -> None:
        self._store = store
        self._platform: Any = platform
        self._progress = progress
        self._omitted = omitted
        self._kinds = tuple(each for each in _ORDER if each is not JOBS or "lineage" not in omitted)
        self._sums = dict.fromkeys(("published", "unchanged", "hidden", "items"), 0)
        self._refused: dict[tuple[str, str], RefusedPublish] = {}
        self._conflicts: list[PublishConflict] = []
        self._problem: str | None = None
        self._status: int | None = None
        self._is_down = False
        self._now = now
        self._earlier_conflicts: dict[str, set[str]] = {}

    def postpone(self, problem: str, status: int | None = None, *, is_down: bool = False) -> None:
        """Leave the remaining changes in the outbox."""
        self._problem, self._status, self._is_down = problem, status, is_down

    def run(self) -> None:
        for _ in range(_ROUNDS):
            done, expected = 0, sum(self._pending().values())
            for batch in self._batches():
                if self._progress is not None:
                    share = done / max(expected, done, 1)
                    step = f"publishing to {self._platform.kind}"
                    self._progress(step, share=share, unit="entries")
                self._publish_batch(batch)
                done += sum(len(changes) for _, changes in batch)
                if self._problem is not None:
                    return
            if not done:
                return

    def report(self) -> PublishReport:
        pending = self._pending()
        return PublishReport(
            platform=self._platform.name,
            kind=self._platform.kind,
            published=self._sums["published"],
            unchanged=self._sums["unchanged"],
            hidden=self._sums["hidden"],
            items=self._sums["items"],
            waiting=pending.get(DATASETS.plural, 0) or sum(pending.values()),
            refused=tuple(self._refused.values()),
            conflicts=tuple(self._conflicts),
            problem=self._problem,
            status=self._status,
            is_down=self._is_down,
        )

    def _pending(self) -> dict[str, int]:
        """The number of pending changes by kind, without those that were just rejected."""
        counts = self._store.catalog_outbox.counts(self._platform.name)
        pending = {kind.plural: counts.get(kind.plural, 0) for kind in self._kinds}
        for kind, _ in self._refused:
            if pending.get(kind):
                pending[kind] -= 1
        return pending

    @cached_property
    def _batch_size(self) -> int:
        if isinstance(self._platform, WritesInBatches):
            return _FILE_BATCH
        return (
            self._platform.batch_size if isinstance(self._platform, WritesMany) else _SERVER_BATCH
        )

    @cached_property
    def _jobs_by_dataset(self) -> dict[str, set[str]]:
        return self._store.lineage.jobs_by_dataset()

    def _batches(self) -> Iterator[_Batch]:
        """All pending changes, in batches that are published together."""
        batch: _Batch = []
        remaining = self._batch_size
        for kind in self._kinds:
            after: str | None = None
            while page := self._store.catalog_outbox.pending(
                self._platform.name, kind.plural, after=after, limit=remaining
            ):
                after = page[-1].key
                changes = [each for each in page if (kind.plural, each.key) not in self._refused]
                if changes:
                    batch.append((kind, changes))
                remaining -= len(changes)
                if remaining <= 0:
                    yield batch
                    batch, remaining = [], self._batch_size
        if batch:
            yield batch

    def _publish_batch(self, batch: _Batch) -> None:
        """Publish a batch and record the written entries; a batch in a file is atomic."""
        published: list[_PublishedEntry] = []
        is_atomic = isinstance(self._platform, WritesInBatches)
        write_context: AbstractContextManager[None] = (
            self._platform.batch() if is_atomic else nullcontext()
        )
        before, conflicts = dict(self._sums), list(self._conflicts)
        try:
            with write_context:
                for kind, changes in batch:
                    publish = self._publish_datasets if kind is DATASETS else self._publish_items
                    # One by one, to record the entries that were published before a failure.
                    for entry in publish(kind, changes):
                        published.append(entry)
        except (LumosError, OSError) as problem:
            status = problem.status if isinstance(problem, CatalogError) else None
            is_down = isinstance(problem, CatalogUnavailable)
            self.postpone(str(problem), status, is_down=is_down)
            if is_atomic:
                published, self._sums, self._conflicts = [], before, conflicts
        self._store.transact(lambda transaction: self._record(transaction, published))

    def _record(self, transaction: Any, published: Sequence[_PublishedEntry]) -> None:
        name = self._platform.name
        if published:
            details = f"entries: {len(published):,}"
            transaction.audit("publish", name, at=self._now, details=details)
        for kind in _ORDER:
            entries_of_kind = [each for each in published if each.kind is kind]
            if not entries_of_kind:
                continue
            bases = {
                each.change.key: None if each.written is None else to_json(each.written)
                for each in entries_of_kind
            }
            transaction.journal.save_bases(name, kind.plural, bases)
            conflicts = {each.change.key: each.conflicts for each in entries_of_kind}
            transaction.catalog_outbox.save_conflicts(name, kind.plural, conflicts, at=self._now)
            if kind is DATASETS:
                new = [each.change.key for each in entries_of_kind if each.is_new]
                transaction.catalog_outbox.add_downstream(name, new)
                jobs = {job for urn in new for job in self._jobs_by_dataset.get(urn, ())}
                # Published jobs lack the new datasets; other jobs are still pending.
                published_jobs = transaction.journal.bases(name, JOBS.plural, jobs)
                transaction.catalog_outbox.add_again(name, JOBS.plural, published_jobs.keys())
            transaction.catalog_outbox.mark_published(
                name, kind.plural, [each.change for each in entries_of_kind]
            )

    def _bases(self, kind: EntryKind, keys: Sequence[str]) -> dict[str, Any]:
        known = self._store.journal.bases(self._platform.name, kind.plural, keys)
        return {key: from_json(body, kind.type) for key, body in known.items()}

    def _conflicting_paths(self, kind: EntryKind, keys: Sequence[str]) -> dict[str, set[str]]:
        outbox = self._store.catalog_outbox
        return outbox.conflicting_paths(self._platform.name, kind.plural, keys)

    def _refuse(self, kind: EntryKind, refused: FailedEntry) -> None:
        key = kind.plural, refused.urn
        self._refused[key] = RefusedPublish(
            kind=kind.singular, key=refused.urn, problem=str(refused.problem)
        )

    def _add_conflicts(self, key: str, conflicts: Sequence[Conflict]) -> None:
        self._conflicts += [
            PublishConflict(key=key, path=each.path, theirs=each.theirs, ours=each.ours)
            for each in conflicts
        ]

    def _conflicting_values(
        self, key: str, conflicts: Sequence[Conflict], differences: Callable[[], Sequence[Conflict]]
    ) -> tuple[CatalogValues, ...]:
        """The new conflicts of an entry, and earlier ones whose values still differ.

        A merge does not report an earlier conflict again, since our value is in its base.
        """
        conflicts_by_path = {each.path: each for each in conflicts}
        if earlier := self._earlier_conflicts.get(key):
            conflicts_by_path |= {each.path: each for each in differences() if each.path in earlier}
        return tuple(
            CatalogValues(path=each.path, theirs=each.theirs, ours=each.ours)
            for each in conflicts_by_path.values()
        )

    def _publish_datasets(
        self, kind: EntryKind, changes: Sequence[OutboxEntry]
    ) -> Iterator[_PublishedEntry]:
        keys = [each.key for each in changes]
        stored = self._store.entries.get_many(keys)
        bases: dict[str, CatalogEntry] = self._bases(kind, keys)
        by_key = {each.key: each for each in changes}
        live = {
            key: msgspec.structs.replace(
                for_catalogs(entry_of(each)), **dict.fromkeys(self._omitted)
            )
            for key, each in stored.items()
            if each.known.state == "live"
        }
        deleted = [key for key in keys if key not in live]
        # Only datasets that Lumos published are hidden.
        hidden = {
            key: CatalogEntry(urn=base.urn, name=base.name, platform=base.platform, deleted=True)
            for key in deleted
            if (base := bases.get(key)) is not None and not base.deleted
        }
        for key in deleted:
            if key not in hidden:
                yield _PublishedEntry(kind, by_key[key], bases.get(key), is_new=False)
        self._earlier_conflicts = self._conflicting_paths(kind, keys)
        for key, changed, conflicts in self._write_datasets(live, hidden, bases):
            written = written_by_lumos(
                bases.get(key), live.get(key) or hidden[key], omitted=self._omitted
            )
            is_new = key not in bases
            yield _PublishedEntry(kind, by_key[key], written, is_new, conflicts)
            self._sums["hidden" if key in hidden else "published"] += 1
            self._sums["unchanged"] += not changed and key in live

    def _write_datasets(
        self,
        live: Mapping[str, CatalogEntry],
        hidden: Mapping[str, CatalogEntry],
        bases: Mapping[str, CatalogEntry],
    ) -> Iterator[tuple[str, bool, tuple[CatalogValues, ...]]]:
        """Write datasets; yield each accepted one, whether the catalog changed, and conflicts."""
        platform = self._platform
        if not (isinstance(platform, ReadsEntries) and isinstance(platform, ReplacesEntries)):
            yield from self._emit_datasets(live, hidden)
            return
        theirs, unread = read_many(platform, [*live, *hidden])
        for refused in unread.values():
            self._refuse(DATASETS, refused)
        entries_of_lumos = {**live, **hidden}

        def merge(key: str, base: CatalogEntry | None) -> MergedEntry | None:
            ours = entries_of_lumos[key]
            sides = merge_inputs(platform, base, theirs.get(key), ours)
            return merge_imported(*sides, ours, omitted=self._omitted)

        def differences(key: str) -> Sequence[Conflict]:
            merged = merge(key, None)
            return () if merged is None else merged.conflicts

        merged = {
            key: each
            for key in entries_of_lumos
            if key not in unread and (each := merge(key, bases.get(key)))
        }
        # Do not create a dataset only to hide it.
        yield from ((key, False, ()) for key in hidden if key not in merged and key not in unread)
        entries = [each.entry for each in merged.values()]
        for written in platform.put_many(entries, current=theirs):
            if isinstance(written, FailedEntry):
                self._refuse(DATASETS, written)
            else:
                urn, conflicts = written.urn, merged[written.urn].conflicts
                self._add_conflicts(urn, conflicts)
                values = self._conflicting_values(urn, conflicts, partial(differences, urn))
                yield urn, written.changed, values

    def _emit_datasets(
        self, live: Mapping[str, CatalogEntry], hidden: Mapping[str, CatalogEntry]
    ) -> Iterator[tuple[str, bool, tuple[CatalogValues, ...]]]:
        """Write datasets to a catalog that can only emit them."""
        for key, entry in {**live, **hidden}.items():
            try:
                if key in live:
                    self._platform.emit(entry.dataset)
                elif isinstance(self._platform, DeletesEntries):
                    self._platform.delete(key)
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                self._refuse(DATASETS, FailedEntry(key, problem))
            else:
                yield key, True, ()

    def _publish_items(
        self, kind: EntryKind, changes: Sequence[OutboxEntry]
    ) -> Iterator[_PublishedEntry]:
        platform = self._platform
        if not isinstance(platform, StoresItems):
            yield from (_PublishedEntry(kind, each, None, is_new=False) for each in changes)
            return
        keys = [each.key for each in changes]
        bases, ours = self._bases(kind, keys), self._load_items(kind, keys)
        theirs: dict[str, Any] = platform.get_items(kind.type, keys)
        changed: dict[str, Any] = {}
        conflicts: dict[str, tuple[CatalogValues, ...]] = {}
        self._earlier_conflicts = self._conflicting_paths(kind, keys)
        for key, item in ours.items():
            base = bases.get(key)
            stored_base = None if base is None else platform.item_as_stored(base)
            merged = merge_item(stored_base, theirs.get(key), item)
            self._add_conflicts(key, merged.conflicts)
            conflicts[key] = self._conflicting_values(
                key,
                merged.conflicts,
                partial(_differences, theirs.get(key), item),
            )
            if platform.item_as_stored(merged.item) != theirs.get(key):
                changed[key] = merged.item
        refused = set()
        for problem in platform.put_items(list(changed.values())):
            self._refuse(kind, problem)
            refused.add(problem.urn)
        for each in changes:
            # Only items that Lumos published are deleted.
            is_deleted = each.key not in ours and each.key in bases and each.key in theirs
            if is_deleted:
                platform.erase_item(theirs[each.key])
            if each.key not in refused:
                self._sums["items"] += is_deleted or each.key in changed
                values = conflicts.get(each.key, ())
                yield _PublishedEntry(kind, each, ours.get(each.key), False, values)

    def _load_items(self, kind: EntryKind, keys: Sequence[str]) -> dict[str, Any]:
        bodies = self._store.entries.get_items(kind.plural, keys)
        items = {key: from_json(body, kind.type) for key, body in bodies.items()}
        if kind is not JOBS:
            return items
        return {job.urn: job for job in without_unknown_datasets(self._store, items.values())}


def _differences(theirs: Any, ours: Any) -> Sequence[Conflict]:
    return merge_item(None, theirs, ours).conflicts
