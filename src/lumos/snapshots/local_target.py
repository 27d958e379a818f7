"""Imports into the store: writes the entries, journal and events of a batch in one transaction.

If the store has scanned a dataset, scanned aspects such as schema, location and size are not
imported; all other aspects are merged. If a dataset was only imported, all aspects are merged.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Any, Final, Literal, NamedTuple

import msgspec

from lumos.errors import LumosError
from lumos.model.annotation import AnnotationsByReporter
from lumos.model.catalog import CatalogEntry
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Versioning
from lumos.model.json_codec import from_json, to_json
from lumos.model.schema import Schema
from lumos.schemas.wording import summary_of
from lumos.snapshots.catalogs import LocalCatalog
from lumos.snapshots.format.document import DATASETS, KINDS, EntryKind
from lumos.snapshots.format.reader import OpenSnapshot
from lumos.snapshots.import_merge import (
    SCANNED_ASPECTS,
    differing_fields,
    is_bare,
    merge_imported,
    roll_back_entry,
    without_scanned,
    written_by_lumos,
)
from lumos.snapshots.import_progress import EntryPlan, ImportProgress
from lumos.snapshots.store_entries import (
    entry_of,
    erase_entry,
    findings_between,
    names_in,
    put_entry,
    stored_versioning,
    versions_after,
    versions_of,
)
from lumos.snapshots.targets import (
    ImportRefused,
    ImportTarget,
    UndoneStep,
    by_kind,
    item_plan,
    values_of,
)
from lumos.store import Transaction
from lumos.store.datasets import IMPORTED
from lumos.store.entries import StoredEntry, StoredItem, is_scanned
from lumos.store.journal import ImportRun, ImportStep
from lumos.store.transaction import current_user

# A rollback does not change these fields of scanned datasets.
_SCANNED_FIELDS: Final = frozenset(
    {*SCANNED_ASPECTS, "name", "platform", "format", "timestamps", "deleted"}
)


class _EntryBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset before an import, and its versions as the store counts them."""

    entry: CatalogEntry
    counted: Versioning


class _StoreReader(NamedTuple):
    """Functions that read the store, either in a transaction or outside of one."""

    entries: Callable[[Collection[str]], dict[str, StoredEntry]]
    former_names: Callable[[Collection[str]], dict[str, str]]
    item: Callable[[str, str], bytes | None]
    bases: Callable[[str, str, Collection[str]], dict[str, bytes]]


class LocalTarget(ImportTarget):
    """The store itself."""

    batch = 200

    def __init__(self, catalog: LocalCatalog, *, prefix: str, now: Callable[[], datetime]) -> None:
        self.name = catalog.name
        self._store = catalog.store
        self._prefix = prefix
        self._now = now
        self.renamed: dict[str, str] = {}
        self.written: list[str] = []

    def check(self) -> None:
        """Do nothing, because the store is open."""

    def check_snapshot(self, snapshot: OpenSnapshot) -> None:
        if not self._store.limits_names:
            return
        for kind in KINDS:
            for value in snapshot.entries(kind):
                try:
                    names = names_in(value) if kind is DATASETS else (getattr(value, kind.key),)
                    self._store.check_names(names)
                except LumosError as problem:
                    raise ImportRefused(kind, getattr(value, kind.key)[:120], problem) from problem

    def supports(self, kind: EntryKind) -> bool:  # noqa: ARG002
        return True

    def plan(
        self, kind: EntryKind, values: Sequence[Any], *, omitted: Collection[str]
    ) -> list[EntryPlan]:
        entries, journal = self._store.entries, self._store.journal
        reader = _StoreReader(entries.get_many, entries.former_names, entries.item, journal.bases)
        return [plan for plan, _ in self._plans(reader, kind, values, omitted, at=self._now())]

    def write(
        self,
        progress: ImportProgress,
        kind: EntryKind,
        values: Sequence[Any],
        *,
        omitted: Collection[str],
        at: datetime,
    ) -> None:
        if kind is DATASETS:
            self._store.save_schemas(_schemas(values))

        def write_batch(transaction: Transaction) -> tuple[ImportProgress, list[str]]:
            # The transaction may be retried, so only its copy of the progress is changed.
            new_progress = progress.copy()
            return new_progress, self._write(
                transaction, new_progress, kind, values, omitted, at=at
            )

        new_progress, written = self._store.transact(write_batch)
        progress.adopt(new_progress)
        self.written += written

    def undo(
        self, progress: ImportProgress, steps: Sequence[ImportStep], *, at: datetime
    ) -> list[UndoneStep]:
        def undo_batch(
            transaction: Transaction,
        ) -> tuple[ImportProgress, list[UndoneStep], list[str]]:
            new_progress = progress.copy()
            return new_progress, *self._undo(transaction, new_progress, steps, at=at)

        new_progress, undone, written = self._store.transact(undo_batch)
        progress.adopt(new_progress)
        self.written += written
        return undone

    def _write(
        self,
        transaction: Transaction,
        progress: ImportProgress,
        kind: EntryKind,
        values: Sequence[Any],
        omitted: Collection[str],
        *,
        at: datetime,
    ) -> list[str]:
        """Write entries and record the progress; returns the URNs of the written datasets."""
        if kind is DATASETS:
            for urn in sorted(value.urn for value in values):
                transaction.known(urn)
        plans = self._plans(_transaction_reader(transaction), kind, values, omitted, at=at)
        existing = [plan.key for plan, stored in plans if plan.writes and stored is not None]
        annotations = transaction.annotations.of(existing)
        for plan, stored in plans:
            if plan.writes and kind is DATASETS:
                current = annotations.get(plan.key, {})
                self._put(transaction, progress.run, plan, stored, current, at=at)
            elif plan.writes:
                item = StoredItem(kind.plural, plan.key, to_json(plan.after))
                transaction.entries.put_item(item, at=at)
        steps = [plan for plan, _ in plans if plan.is_step]
        transaction.journal.plan(progress.run.id, [plan.step("done") for plan in steps])
        bases = {plan.key: plan.new_base for plan in steps}
        transaction.journal.save_bases(self.name, kind.plural, bases)
        progress.count(plan for plan, _ in plans)
        progress.record_position(transaction, kind, getattr(values[-1], kind.key), at=at)
        return [plan.key for plan, _ in plans if plan.writes and kind is DATASETS]

    def _undo(
        self,
        transaction: Transaction,
        progress: ImportProgress,
        steps: Sequence[ImportStep],
        *,
        at: datetime,
    ) -> tuple[list[UndoneStep], list[str]]:
        """Roll back steps and record the progress; also returns the URNs of written datasets."""
        undone: list[UndoneStep] = []
        written: list[str] = []
        for kind, group in by_kind(steps):
            if kind is DATASETS:
                undone += self._undo_datasets(transaction, progress.run, group, written, at=at)
            else:
                undone += [_undo_item(transaction, kind, step, at=at) for step in group]
            bases = {step.key: step.base for step in group}
            transaction.journal.save_bases(self.name, kind.plural, bases)
            transaction.journal.mark(progress.run.id, kind.plural, bases, "undone")
        progress.record_state(transaction, "rolling_back", at=at)
        return undone, written

    def _plans(
        self,
        reader: _StoreReader,
        kind: EntryKind,
        values: Sequence[Any],
        omitted: Collection[str],
        *,
        at: datetime,
    ) -> list[tuple[EntryPlan, StoredEntry | None]]:
        keys = [getattr(value, kind.key) for value in values]
        bases = reader.bases(self.name, kind.plural, keys)
        if kind is not DATASETS:
            return [
                (_item_plan(reader, kind, value, bases.get(key)), None)
                for key, value in zip(keys, values, strict=True)
            ]
        stored = reader.entries(keys)
        renamed = reader.former_names([key for key in keys if key not in stored])
        self.renamed |= renamed
        return [
            (
                self._dataset_plan(entry, stored.get(urn), bases.get(urn), omitted, at=at),
                stored.get(urn),
            )
            for urn, entry in zip(keys, values, strict=True)
            if urn not in renamed
        ]

    def _dataset_plan(
        self,
        ours: CatalogEntry,
        stored: StoredEntry | None,
        base: bytes | None,
        omitted: Collection[str],
        *,
        at: datetime,
    ) -> EntryPlan:
        known = None if base is None else from_json(base, CatalogEntry)
        theirs = None if stored is None else entry_of(stored)
        has_scan = stored is not None and is_scanned(stored)
        if has_scan:
            assert theirs is not None
            if is_bare(ours):
                return EntryPlan(
                    DATASETS, ours.urn, before=theirs, current=theirs, after=None, written=None,
                    base=base, seen_here=True,
                )  # fmt: skip
            imported, ours = ours, without_scanned(ours, theirs)
            known = known and msgspec.structs.replace(known, **dict.fromkeys(SCANNED_ASPECTS))
        else:
            imported = ours
        merged = merge_imported(known, theirs, ours, omitted=omitted)
        after = None if merged is None else merged.entry
        if after is not None and theirs is not None and stored is not None:
            after = msgspec.structs.replace(after, versioning=theirs.versioning)
            versioning = versions_after(
                stored,
                theirs,
                imported,
                after,
                changed=to_json(after) != to_json(theirs),
                prefix=self._prefix,
                at=at,
            )
            after = msgspec.structs.replace(after, versioning=versioning)
        return EntryPlan(
            DATASETS,
            ours.urn,
            before=theirs,
            current=theirs,
            after=after,
            written=None if after is None else written_by_lumos(known, ours, omitted=omitted),
            base=base,
            conflicts=() if merged is None else merged.conflicts,
            seen_here=has_scan,
            backup=None if stored is None or theirs is None else _backup(stored, theirs),
        )

    def _put(
        self,
        transaction: Transaction,
        run: ImportRun,
        plan: EntryPlan,
        stored: StoredEntry | None,
        annotations: AnnotationsByReporter,
        *,
        at: datetime,
    ) -> None:
        assert plan.after is not None, "the plan deletes the entry"
        event = _ImportEvents(run, "import", at).event(transaction, stored, plan.before, plan.after)
        put_entry(
            transaction, plan.after, before=stored, at=at, annotations=annotations, event=event
        )
        transaction.save_event(event)

    def _undo_datasets(
        self,
        transaction: Transaction,
        run: ImportRun,
        steps: Sequence[ImportStep],
        written: list[str],
        *,
        at: datetime,
    ) -> Iterable[UndoneStep]:
        for urn in sorted(step.key for step in steps):
            transaction.known(urn)
        stored = transaction.entries.get([step.key for step in steps])
        annotations = transaction.annotations.of(stored)
        for step in steps:
            dataset = stored.get(step.key)
            current = None if dataset is None else entry_of(dataset)
            backup = None if step.before is None else from_json(step.before, _EntryBackup)
            before = None if backup is None else backup.entry
            after = from_json(step.after, CatalogEntry)
            kept_fields = (
                _SCANNED_FIELDS if dataset is not None and is_scanned(dataset) else frozenset()
            )
            result = roll_back_entry(before, after, current, kept_fields=kept_fields)
            if to_json(result.value) != to_json(current):
                versioning = None if backup is None else backup.counted
                event = _ImportEvents(run, "rollback", at).event(
                    transaction, dataset, current, result.value, versioning=versioning
                )
                if result.value is not None:
                    put_entry(
                        transaction,
                        result.value,
                        before=dataset,
                        at=at,
                        annotations=annotations.get(step.key, {}),
                        event=event,
                        versioning=versioning,
                    )
                elif dataset is not None:
                    erase_entry(transaction, dataset)
                transaction.save_event(event)
                written.append(step.key)
            yield UndoneStep(DATASETS, step.key, current, result)


def _schemas(entries: Iterable[CatalogEntry]) -> Iterator[Schema]:
    """The current schemas of entries, and those in their history."""
    for entry in entries:
        records = entry.versioning.history if entry.versioning else ()
        for schema in (entry.schema, *(record.schema for record in records)):
            if schema is not None:
                yield schema


def _backup(stored: StoredEntry, entry: CatalogEntry) -> bytes:
    return to_json(_EntryBackup(entry=entry, counted=stored_versioning(stored)))


def _transaction_reader(transaction: Transaction) -> _StoreReader:
    entries = transaction.entries
    return _StoreReader(entries.get, entries.former_names, entries.item, transaction.journal.bases)


def _item_plan(reader: _StoreReader, kind: EntryKind, item: Any, base: bytes | None) -> EntryPlan:
    body = reader.item(kind.plural, getattr(item, kind.key))
    current = None if body is None else from_json(body, kind.type)
    return item_plan(kind, item, before=current, current=current, base=base)


def _undo_item(
    transaction: Transaction, kind: EntryKind, step: ImportStep, *, at: datetime
) -> UndoneStep:
    body = transaction.entries.item(kind.plural, step.key)
    current = None if body is None else from_json(body, kind.type)
    result = roll_back_entry(*values_of(kind, step), current)
    if result.value is None:
        transaction.entries.erase_item(kind.plural, step.key)
    elif to_json(result.value) != body:
        item = StoredItem(kind.plural, step.key, to_json(result.value))
        transaction.entries.put_item(item, at=at)
    return UndoneStep(kind, step.key, current, result)


class _ImportEvents(NamedTuple):
    """Creates the events of datasets for an import or its rollback."""

    run: ImportRun
    action: Literal["import", "rollback"]
    at: datetime

    def event(
        self,
        transaction: Transaction,
        stored: StoredEntry | None,
        before: CatalogEntry | None,
        after: CatalogEntry | None,
        *,
        versioning: Versioning | None = None,
    ) -> ChangeEvent:
        """The event for a change to a dataset, which is deleted if `after` is None."""
        entry = after or before
        assert entry is not None, "the dataset neither existed before nor exists after"
        type = _event_type(before, after)
        old_schema = None if stored is None else stored.known.schema_hash
        schema = None if after is None else after.schema
        findings = findings_between(before.schema if before else None, schema, entry.format)
        cloud_version, schema_version = versions_of(entry.versioning or versioning, stored)
        file = PurePath(self.run.file).name
        summary = (
            f"import of {file} rolled back" if self.action == "rollback" else f"import of {file}"
        )
        if before is not None and after is not None:
            changes = (
                summary_of(type, findings)
                or f"{', '.join(differing_fields(before, after))} changed"
            )
            summary = f"{changes}; {summary}"
        return ChangeEvent(
            event_id=_event_id(self.action, self.run.id, entry.urn),
            urn=entry.urn,
            type=type,
            at=self.at,
            cause="import",
            cloud_version=cloud_version,
            schema_version=schema_version,
            author=current_user(),
            source_path=entry.location.uri if entry.location else None,
            old_schema=old_schema,
            new_schema=None if schema is None else transaction.save_schema(schema),
            findings=findings,
            summary=summary,
            metadata={"source": IMPORTED, "import": self.run.id},
        )


def _event_type(before: CatalogEntry | None, after: CatalogEntry | None) -> EventType:
    if after is None or (after.deleted and not (before and before.deleted)):
        return EventType.DELETED
    if before is None:
        return EventType.CREATED
    if before.deleted and not after.deleted:
        return EventType.RESTORED
    is_same = before.schema == after.schema or (
        before.schema is not None
        and after.schema is not None
        and before.schema.shape == after.schema.shape
    )
    return EventType.METADATA_CHANGED if is_same else EventType.SCHEMA_CHANGED


def _event_id(*parts: str) -> str:
    text = "\n".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest()
