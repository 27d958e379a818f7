"""The planned writes of an import, and its progress in the journal."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import msgspec

from lumos.catalogs import AspectStorage, Conflict
from lumos.errors import LumosError
from lumos.model.json_codec import from_json, to_json
from lumos.snapshots.format.document import EntryKind
from lumos.snapshots.import_merge import differing_fields
from lumos.snapshots.reports import Change, ConflictReport, EntryReport, ImportTotals, RefusedReport
from lumos.store import Transaction
from lumos.store.journal import ImportRun, ImportStep, StepState

_MAX_REPORTED: Final = 1000
# The number of rejected entries that the journal stores.
_MAX_REFUSED: Final = 200


class EntryPlan:
    """The plan of an import for one entry.

    `before` is the entry before the import, and `after` the entry to write. `current` differs from
    `before` if an interrupted import has already written the entry. `base` is the JSON that earlier
    imports wrote, and `written` the part of `after` that comes from imports. `backup` is stored
    instead of `before` if a rollback needs more than the entry. `problem` is set if the catalog
    rejects the entry.
    """

    problem: LumosError | None = None

    def __init__(
        self,
        kind: EntryKind,
        key: str,
        *,
        before: Any | None,
        current: Any | None,
        after: Any | None,
        written: Any | None,
        base: bytes | None,
        conflicts: tuple[Conflict, ...] = (),
        seen_here: bool = False,
        backup: bytes | None = None,
    ) -> None:
        self.kind = kind
        self.key = key
        self.before = before
        self.current = current
        self.after = after
        self.base = base
        self.conflicts = conflicts
        self.seen_here = seen_here
        self._backup = backup
        self.new_base = base if written is None else to_json(written)

    @classmethod
    def of_rejected(
        cls, kind: EntryKind, key: str, base: bytes | None, problem: LumosError
    ) -> "EntryPlan":
        """The plan for an entry that the catalog rejects."""
        plan = cls(kind, key, before=None, current=None, after=None, written=None, base=base)
        plan.problem = problem
        return plan

    @cached_property
    def writes(self) -> bool:
        """Whether the entry has to be written."""
        return self.after is not None and self._after != to_json(self.current)

    @cached_property
    def is_step(self) -> bool:
        """Whether the import changes something that a rollback has to restore."""
        is_changed = self.after is not None and self._after != self._before
        return is_changed or self.new_base != self.base

    @cached_property
    def change(self) -> Change:
        """The kind of change that the import makes."""
        if self.after is None or self._after == self._before:
            return "unchanged"
        is_deleted = getattr(self.after, "deleted", False)
        if is_deleted and not getattr(self.before, "deleted", False):
            return "deleted"
        return "created" if self.before is None else "changed"

    def step(self, state: StepState) -> ImportStep:
        """The step for the journal."""
        before = None if self.before is None else self._backup or self._before
        after = self._after if self.after is not None else self._before
        return ImportStep(self.kind.plural, self.key, state, before, after, self.base)

    def report(self) -> EntryReport:
        """The entry for the import report."""
        assert self.after is not None, "the entry was not changed"
        return EntryReport(
            kind=self.kind.singular,
            key=self.key,
            change=self.change,
            aspects=differing_fields(self.before, self.after),
        )

    @cached_property
    def _before(self) -> bytes:
        return to_json(self.before)

    @cached_property
    def _after(self) -> bytes:
        return to_json(self.after)


class ImportProgress:
    """The progress of an import; without a run, entries are only counted."""

    def __init__(self, run: ImportRun | None, sums: ImportTotals) -> None:
        self._run = run
        self.sums = sums
        self.changes: list[EntryReport] = []
        self.conflicts: list[ConflictReport] = []

    def copy(self) -> "ImportProgress":
        """A copy that a transaction can change; `adopt` it when the transaction has succeeded."""
        copy = ImportProgress(self._run, from_json(to_json(self.sums), ImportTotals))
        copy.changes, copy.conflicts = [*self.changes], [*self.conflicts]
        return copy

    def adopt(self, other: "ImportProgress") -> None:
        """Adopt the state of a copy."""
        self._run, self.sums = other._run, other.sums
        self.changes, self.conflicts = other.changes, other.conflicts

    @property
    def run(self) -> ImportRun:
        assert self._run is not None, "a dry run has no journal"
        return self._run

    def count(
        self, plans: Iterable[EntryPlan], storage: Mapping[str, Mapping[str, AspectStorage]] = {}
    ) -> None:
        """Count entries; `storage` tells how the catalog stores the aspects of each entry."""
        for plan in plans:
            if plan.problem is not None:
                self._refuse(plan, plan.problem)
                continue
            self.sums.tally(plan.kind.plural).add(plan.change)
            self.sums.seen_here += plan.seen_here
            self.sums.conflicts += len(plan.conflicts)
            if plan.change != "unchanged" and len(self.changes) < _MAX_REPORTED:
                self.changes.append(plan.report())
            remaining = _MAX_REPORTED - len(self.conflicts)
            self.conflicts += [
                ConflictReport(key=plan.key, path=each.path, theirs=each.theirs, ours=each.ours)
                for each in plan.conflicts[:remaining]
            ]
            for aspect, kind_of_storage in storage.get(plan.key, {}).items():
                counts = self.sums.held.setdefault(aspect, {})
                counts[kind_of_storage] = counts.get(kind_of_storage, 0) + 1

    def record_position(
        self, transaction: Transaction, kind: EntryKind, key: str, *, at: datetime
    ) -> None:
        """Record that all entries up to and including this one were written and counted."""
        self._save(
            transaction,
            reached_kind=kind.plural,
            reached_key=key,
            sums=to_json(self.sums),
            updated_at=at,
        )

    def record_counts(self, transaction: Transaction, *, at: datetime) -> None:
        self._save(transaction, sums=to_json(self.sums), updated_at=at)

    def close(self, transaction: Transaction, *, at: datetime) -> None:
        """Record that the import is done."""
        transaction.journal.close(msgspec.structs.replace(self.run, updated_at=at))

    def record_state(self, transaction: Transaction, state: str, *, at: datetime) -> None:
        """Record a state of the rollback."""
        self._save(transaction, state=state, updated_at=at)

    def is_past(self, kind: EntryKind, key: str, order: Iterable[EntryKind]) -> bool:
        """Whether an entry was written before the import was interrupted."""
        run = self.run
        if run.reached_kind is None or run.reached_key is None:
            return False
        names = [each.plural for each in order]
        rank, reached_rank = names.index(kind.plural), names.index(run.reached_kind)
        return rank < reached_rank or (rank == reached_rank and key <= run.reached_key)

    def _refuse(self, plan: EntryPlan, problem: LumosError) -> None:
        self.sums.refused += 1
        if len(self.sums.refusals) < _MAX_REFUSED:
            report = RefusedReport(kind=plan.kind.singular, key=plan.key, problem=str(problem))
            self.sums.refusals.append(report)

    def _save(self, transaction: Transaction, **fields: Any) -> None:
        self._run = msgspec.structs.replace(self.run, **fields)
        transaction.journal.save_run(self._run)
