"""Targets of imports: the interface, and external catalogs.

An external catalog cannot take part in a transaction of the store. So the journal first records the
planned steps and the previous entries, and marks the steps as done after the write. With these
steps, an interrupted import can be resumed or rolled back.

A catalog with atomic batches writes either all entries of a batch or none. Other catalogs report
for each entry whether it was written or rejected; a rejected entry does not stop the import.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Final, NamedTuple

from lumos.catalogs import (
    AspectStorage,
    Connects,
    FailedEntry,
    Platform,
    ReadsEntries,
    ReplacesEntries,
    StoredInFile,
    StoresItems,
    WritesInBatches,
    WritesMany,
)
from lumos.catalogs.cleanup import CleansUp
from lumos.catalogs.interface import merge_inputs
from lumos.catalogs.three_way_merge import merge_item
from lumos.errors import CatalogUnavailable, LumosError, MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.json_codec import from_json, to_json
from lumos.model.privacy import for_catalogs
from lumos.snapshots.catalogs import PlatformCatalog
from lumos.snapshots.format.document import DATASETS, KINDS, EntryKind
from lumos.snapshots.format.reader import OpenSnapshot
from lumos.snapshots.import_merge import (
    RolledBackEntry,
    merge_imported,
    roll_back_entry,
    written_by_lumos,
)
from lumos.snapshots.import_progress import EntryPlan, ImportProgress
from lumos.store import Store, Transaction
from lumos.store.journal import ImportStep

# A catalog in a file rewrites the entire file for each batch; a server gets a request per entry.
FILE_BATCH: Final = 5000
SERVER_BATCH: Final = 50
# The journal is updated after this many written entries.
_JOURNAL_INTERVAL: Final = 200
_KINDS: Final = {kind.plural: kind for kind in KINDS}


class ImportRefused(LumosError):
    """The catalog rejected an entry."""

    def __init__(self, kind: EntryKind, key: str, problem: LumosError) -> None:
        self.key = key
        super().__init__(f"The {kind.singular} {key} was refused: {problem}")


class UndoneStep(NamedTuple):
    """A step that was rolled back: the entry before the rollback, and the entry after it."""

    kind: EntryKind
    key: str
    current: Any | None
    result: RolledBackEntry


class ImportTarget(ABC):
    """The target of an import: the store or an external catalog."""

    name: str
    batch: int

    @abstractmethod
    def check(self) -> None:
        """Raise an error if the target cannot be read or written."""

    @abstractmethod
    def check_snapshot(self, snapshot: OpenSnapshot) -> None:
        """Raise ImportRefused if the target cannot store an entry; called before any write."""

    @abstractmethod
    def supports(self, kind: EntryKind) -> bool:
        """Whether the target can store entries of this kind."""

    @abstractmethod
    def plan(
        self, kind: EntryKind, values: Sequence[Any], *, omitted: Collection[str]
    ) -> list[EntryPlan]:
        """Plan what an import would write."""

    @abstractmethod
    def write(
        self,
        progress: ImportProgress,
        kind: EntryKind,
        values: Sequence[Any],
        *,
        omitted: Collection[str],
        at: datetime,
    ) -> None:
        """Import a batch of entries of one kind, and record the progress."""

    @abstractmethod
    def undo(
        self, progress: ImportProgress, steps: Sequence[ImportStep], *, at: datetime
    ) -> list[UndoneStep]:
        """Roll back a batch of steps, and record the progress."""

    def remove_unused(self) -> None:  # noqa: B027
        """Remove containers that were only created for entries that no longer exist."""


def by_kind(steps: Iterable[ImportStep]) -> Iterator[tuple[EntryKind, list[ImportStep]]]:
    """Group consecutive steps of the same kind."""
    for name, group in groupby(steps, key=lambda step: step.kind):
        yield _KINDS[name], list(group)


def values_of(kind: EntryKind, step: ImportStep) -> tuple[Any | None, Any]:
    """The entries before and after a step."""
    before = None if step.before is None else from_json(step.before, kind.type)
    return before, from_json(step.after, kind.type)


def item_plan(
    kind: EntryKind,
    item: Any,
    *,
    before: Any | None,
    current: Any | None,
    base: bytes | None,
    as_stored: Callable[[Any], Any] = lambda item: item,
) -> EntryPlan:
    """Plan the import of an entry that is not a dataset.

    `as_stored` converts an entry to the form in which the catalog stores it.
    """
    known = None if base is None else as_stored(from_json(base, kind.type))
    merged = merge_item(known, current, item)
    key = getattr(item, kind.key)
    return EntryPlan(
        kind, key, before=before, current=current, after=as_stored(merged.item), written=item,
        base=base, conflicts=merged.conflicts,
    )  # fmt: skip


class CatalogTarget(ImportTarget):
    """An external catalog; the journal is in the store."""

    def __init__(self, catalog: PlatformCatalog, store: Store) -> None:
        platform = catalog.platform
        if not (isinstance(platform, ReadsEntries) and isinstance(platform, ReplacesEntries)):
            raise MisuseError(f"This version of Lumos cannot import into '{catalog.kind}'.")
        self.name = catalog.name
        self._platform: Any = platform
        self._store = store
        self._is_all_or_nothing = isinstance(platform, WritesInBatches)
        self.batch = _batch_size(platform)

    def check(self) -> None:
        if isinstance(self._platform, Connects):
            self._platform.check()
        else:
            next(iter(self._platform.export()), None)
        if isinstance(self._platform, StoredInFile):
            self._platform.check_writable()

    def check_snapshot(self, snapshot: OpenSnapshot) -> None:
        """Do nothing, because a catalog only rejects entries when they are written."""

    def supports(self, kind: EntryKind) -> bool:
        return kind is DATASETS or isinstance(self._platform, StoresItems)

    def plan(
        self, kind: EntryKind, values: Sequence[Any], *, omitted: Collection[str]
    ) -> list[EntryPlan]:
        return self._plans(kind, values, {}, omitted=omitted)

    def write(
        self,
        progress: ImportProgress,
        kind: EntryKind,
        values: Sequence[Any],
        *,
        omitted: Collection[str],
        at: datetime,
    ) -> None:
        run = progress.run.id
        planned = self._store.journal.planned_steps(run, kind.plural, _keys(kind, values))
        # Skip entries that were written before an interruption, which are already counted.
        remaining = [
            value for value in values if not _is_done(planned.get(getattr(value, kind.key)))
        ]
        plans = self._plans(kind, remaining, planned, omitted=omitted)
        with self._store.transaction() as transaction:
            steps = [plan.step("planned") for plan in plans if plan.is_step]
            transaction.journal.plan(run, steps)
        # Also write planned entries that seem to be complete: after an interruption, the parts that
        # are written last, such as edges, may be missing.
        writes = [
            plan
            for plan in plans
            if plan.writes or (plan.key in planned and plan.after is not None)
        ]
        if self._is_all_or_nothing:
            storage = self._write_batch(writes)
            recorded: set[str] = set()
        else:
            storage, recorded = self._write_each(progress, kind, writes, at=at)
        with self._store.transaction() as transaction:
            unrecorded = [plan for plan in plans if plan.key not in recorded]
            self._record(transaction, progress, kind, unrecorded, storage)
            progress.record_position(transaction, kind, getattr(values[-1], kind.key), at=at)

    def undo(
        self, progress: ImportProgress, steps: Sequence[ImportStep], *, at: datetime
    ) -> list[UndoneStep]:
        undone = [
            step for kind, group in by_kind(steps) for step in self._plan_rollback(kind, group)
        ]
        refused: list[ImportRefused] = []
        # Only write if something changes, because the catalog may be read-only.
        if changed := [
            step for step in undone if to_json(step.result.value) != to_json(step.current)
        ]:
            if self._is_all_or_nothing:
                with self._platform.batch():
                    refused = self._restore(changed)
                    if refused:
                        raise refused[0]
            else:
                refused = self._restore(changed)
        refused_keys = {error.key for error in refused}
        with self._store.transaction() as transaction:
            for kind, group in by_kind(step for step in steps if step.key not in refused_keys):
                bases = {step.key: step.base for step in group}
                transaction.journal.save_bases(self.name, kind.plural, bases)
                transaction.journal.mark(progress.run.id, kind.plural, bases, "undone")
            progress.record_state(transaction, "rolling_back", at=at)
        if refused:
            raise refused[0]
        return undone

    def remove_unused(self) -> None:
        if isinstance(self._platform, CleansUp):
            self._platform.clean_up()

    def _plans(
        self,
        kind: EntryKind,
        values: Sequence[Any],
        planned: Mapping[str, ImportStep],
        *,
        omitted: Collection[str],
    ) -> list[EntryPlan]:
        keys = _keys(kind, values)
        bases = self._store.journal.bases(self.name, kind.plural, keys)
        stored = self._get(kind, keys)
        plans: list[EntryPlan] = []
        for key, value in zip(keys, values, strict=True):
            current, step, base = stored.get(key), planned.get(key), bases.get(key)
            before = current if step is None else values_of(kind, step)[0]
            try:
                if kind is DATASETS:
                    plan = self._dataset_plan(value, before, current, base, omitted=omitted)
                else:
                    plan = item_plan(
                        kind, value, before=before, current=current, base=base,
                        as_stored=self._platform.item_as_stored,
                    )  # fmt: skip
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                if self._is_all_or_nothing:
                    raise ImportRefused(kind, key, problem) from problem
                plan = EntryPlan.of_rejected(kind, key, base, problem)
            plans.append(plan)
        return plans

    def _dataset_plan(
        self,
        ours: CatalogEntry,
        before: CatalogEntry | None,
        current: CatalogEntry | None,
        base: bytes | None,
        *,
        omitted: Collection[str],
    ) -> EntryPlan:
        known = None if base is None else from_json(base, CatalogEntry)
        ours = for_catalogs(ours)
        inputs = merge_inputs(self._platform, known, current, ours)
        merged = merge_imported(*inputs, ours, omitted=omitted)
        return EntryPlan(
            DATASETS,
            ours.urn,
            before=before,
            current=current,
            after=None if merged is None else self._platform.as_stored(merged.entry),
            written=None if merged is None else written_by_lumos(known, ours, omitted=omitted),
            base=base,
            conflicts=() if merged is None else merged.conflicts,
        )

    def _write_batch(self, plans: Sequence[EntryPlan]) -> dict[str, dict[str, AspectStorage]]:
        storage: dict[str, dict[str, AspectStorage]] = {}
        with self._platform.batch():
            for plan in plans:
                try:
                    if plan.kind is DATASETS:
                        storage[plan.key] = self._platform.put(plan.after).held
                    else:
                        self._platform.put_item(plan.after)
                except LumosError as problem:
                    raise ImportRefused(plan.kind, plan.key, problem) from problem
        return storage

    def _write_each(
        self, progress: ImportProgress, kind: EntryKind, plans: Sequence[EntryPlan], *, at: datetime
    ) -> tuple[dict[str, dict[str, AspectStorage]], set[str]]:
        """Write entries, and record them in intervals.

        Returns where the catalog stores the aspects of each entry, and the keys of the recorded
        entries.
        """
        # Catalogs report the canonical URN of an entry, which may differ from that in the snapshot.
        by_key = {getattr(plan.after, kind.key, plan.key): plan for plan in plans}
        storage: dict[str, dict[str, AspectStorage]] = {}
        recorded: set[str] = set()
        unrecorded: list[EntryPlan] = []

        def record() -> None:
            with self._store.transaction() as transaction:
                self._record(transaction, progress, kind, unrecorded, storage)
                progress.record_counts(transaction, at=at)
            recorded.update(plan.key for plan in unrecorded)
            unrecorded.clear()

        try:
            for outcome in self._write_many(kind, plans):
                plan = by_key[outcome.urn]
                if isinstance(outcome, FailedEntry):
                    plan.problem = outcome.problem
                    continue
                storage[plan.key] = outcome.held
                unrecorded.append(plan)
                if len(unrecorded) >= _JOURNAL_INTERVAL:
                    record()
        finally:
            # Record the written entries, even if the catalog failed meanwhile.
            if unrecorded:
                record()
        return storage, recorded

    def _write_many(self, kind: EntryKind, plans: Sequence[EntryPlan]) -> Iterator[Any]:
        values = [plan.after for plan in plans]
        if not values:
            return iter(())
        if kind is DATASETS:
            current = {plan.key: plan.current for plan in plans}
            outcomes: Iterator[Any] = self._platform.put_many(values, current=current)
        else:
            outcomes = self._platform.put_items(values)
        return outcomes

    def _record(
        self,
        transaction: Transaction,
        progress: ImportProgress,
        kind: EntryKind,
        plans: Sequence[EntryPlan],
        storage: Mapping[str, Mapping[str, AspectStorage]],
    ) -> None:
        bases = {plan.key: plan.new_base for plan in plans if plan.is_step and plan.problem is None}
        transaction.journal.mark(progress.run.id, kind.plural, bases.keys(), "done")
        transaction.journal.save_bases(self.name, kind.plural, bases)
        progress.count(plans, storage)

    def _plan_rollback(self, kind: EntryKind, steps: Sequence[ImportStep]) -> Iterator[UndoneStep]:
        stored = self._get(kind, [step.key for step in steps])
        for step in steps:
            current = stored.get(step.key)
            before, after = values_of(kind, step)
            yield UndoneStep(kind, step.key, current, roll_back_entry(before, after, current))

    def _restore(self, undone: Sequence[UndoneStep]) -> list[ImportRefused]:
        """Restore entries; returns the errors of the entries that the catalog rejects."""
        platform = self._platform
        datasets = [step for step in undone if step.kind is DATASETS]
        changed = [step for step in datasets if step.result.value is not None]
        current = {step.key: step.current for step in changed}
        outcomes = platform.put_many([step.result.value for step in changed], current=current)
        refused = [
            ImportRefused(DATASETS, outcome.urn, outcome.problem)
            for outcome in (outcomes if changed else ())
            if isinstance(outcome, FailedEntry)
        ]
        if created := [step.key for step in datasets if step.result.value is None]:
            platform.erase_many(created)
        for step in undone:
            if step.kind is DATASETS:
                continue
            if step.result.value is None:
                platform.erase_item(step.current)
            else:
                refused += [
                    ImportRefused(step.kind, step.key, outcome.problem)
                    for outcome in platform.put_items([step.result.value])
                ]
        return refused

    def _get(self, kind: EntryKind, keys: Sequence[str]) -> dict[str, Any]:
        entries: dict[str, Any]
        if kind is DATASETS:
            entries = self._platform.get_many(keys)
        else:
            entries = self._platform.get_items(kind.type, keys)
        return entries


def _batch_size(platform: Platform) -> int:
    if isinstance(platform, WritesInBatches):
        return FILE_BATCH
    return platform.batch_size if isinstance(platform, WritesMany) else SERVER_BATCH


def _keys(kind: EntryKind, values: Iterable[Any]) -> list[str]:
    return [getattr(value, kind.key) for value in values]


def _is_done(step: ImportStep | None) -> bool:
    return step is not None and step.state == "done"
