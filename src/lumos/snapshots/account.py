"""What an import is about to write, and the account it keeps of what it has done."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import msgspec

from lumos.catalogs import Conflict, How
from lumos.errors import LumosError
from lumos.model.json_codec import from_json, to_json
from lumos.snapshots.format.document import Kind
from lumos.snapshots.import_merge import differing
from lumos.snapshots.reports import Change, ConflictReport, EntryReport, RefusedReport, Sums
from lumos.store import Transaction
from lumos.store.journal import ImportRun, ImportStep, StepState

_MOST: Final = 1000
# They are kept with the journal, so that none is forgotten where the import is broken off.
_MOST_REFUSED: Final = 200


class Plan:
    """One entry of an import.

    `before` is what was there before the import, `now` what is there now: the two differ where an
    import that was broken off had written it already. `claim` is what Lumos will have said of the
    entry, `base` what it had said before, as JSON. `kept` is what is needed to restore the entry
    where that is more than the entry itself. `problem` is why the catalog does not take it.
    """

    problem: LumosError | None = None

    def __init__(
        self,
        kind: Kind,
        key: str,
        *,
        before: Any | None,
        now: Any | None,
        after: Any | None,
        claim: Any | None,
        base: bytes | None,
        conflicts: tuple[Conflict, ...] = (),
        seen_here: bool = False,
        kept: bytes | None = None,
    ) -> None:
        self.kind = kind
        self.key = key
        self.before = before
        self.now = now
        self.after = after
        self.base = base
        self.conflicts = conflicts
        self.seen_here = seen_here
        self._kept = kept
        self.new_base = base if claim is None else to_json(claim)

    @classmethod
    def of_refused(cls, kind: Kind, key: str, base: bytes | None, problem: LumosError) -> "Plan":
        """An entry of which it is known beforehand that the catalog does not take it."""
        plan = cls(kind, key, before=None, now=None, after=None, claim=None, base=base)
        plan.problem = problem
        return plan

    @cached_property
    def writes(self) -> bool:
        """Whether the entry must be written."""
        return self.after is not None and self._after != to_json(self.now)

    @cached_property
    def is_step(self) -> bool:
        """Whether there will be something to take back."""
        has_moved = self.after is not None and self._after != self._before
        return has_moved or self.new_base != self.base

    @cached_property
    def change(self) -> Change:
        """What the import does to the entry."""
        if self.after is None or self._after == self._before:
            return "unchanged"
        is_gone = getattr(self.after, "deleted", False)
        if is_gone and not getattr(self.before, "deleted", False):
            return "deleted"
        return "created" if self.before is None else "changed"

    def step(self, state: StepState) -> ImportStep:
        """The entry as the journal has it."""
        before = None if self.before is None else self._kept or self._before
        after = self._after if self.after is not None else self._before
        return ImportStep(self.kind.plural, self.key, state, before, after, self.base)

    def report(self) -> EntryReport:
        """The entry for people."""
        assert self.after is not None, "only what changes is told"
        return EntryReport(
            kind=self.kind.singular,
            key=self.key,
            change=self.change,
            aspects=differing(self.before, self.after),
        )

    @cached_property
    def _before(self) -> bytes:
        return to_json(self.before)

    @cached_property
    def _after(self) -> bytes:
        return to_json(self.after)


class Account:
    """What an import has done so far; without a run it only counts."""

    def __init__(self, run: ImportRun | None, sums: Sums) -> None:
        self._run = run
        self.sums = sums
        self.changes: list[EntryReport] = []
        self.conflicts: list[ConflictReport] = []

    def copy(self) -> "Account":
        """An account of the same, to be taken over if what it goes on to count becomes true."""
        copy = Account(self._run, from_json(to_json(self.sums), Sums))
        copy.changes, copy.conflicts = [*self.changes], [*self.conflicts]
        return copy

    def take_over(self, other: "Account") -> None:
        """Makes this account the other one."""
        self._run, self.sums = other._run, other.sums
        self.changes, self.conflicts = other.changes, other.conflicts

    @property
    def run(self) -> ImportRun:
        """The import that is accounted for."""
        assert self._run is not None, "a trial writes nothing"
        return self._run

    def count(self, plans: Iterable[Plan], held: Mapping[str, Mapping[str, How]] = {}) -> None:
        """Counts some entries, and how the catalog holds the aspects of each."""
        for plan in plans:
            if plan.problem is not None:
                self._refuse(plan, plan.problem)
                continue
            self.sums.tally(plan.kind.plural).add(plan.change)
            self.sums.seen_here += plan.seen_here
            self.sums.conflicts += len(plan.conflicts)
            if plan.change != "unchanged" and len(self.changes) < _MOST:
                self.changes.append(plan.report())
            room = _MOST - len(self.conflicts)
            self.conflicts += [_conflict(plan.key, each) for each in plan.conflicts[:room]]
            for aspect, how in held.get(plan.key, {}).items():
                ways = self.sums.held.setdefault(aspect, {})
                ways[how] = ways.get(how, 0) + 1

    def reach(self, transaction: Transaction, kind: Kind, key: str, *, at: datetime) -> None:
        """Records that all up to an entry is done and counted."""
        self._save(
            transaction,
            reached_kind=kind.plural,
            reached_key=key,
            sums=to_json(self.sums),
            updated_at=at,
        )

    def note(self, transaction: Transaction, *, at: datetime) -> None:
        """Records what is counted so far, where not all up to an entry is done."""
        self._save(transaction, sums=to_json(self.sums), updated_at=at)

    def close(self, transaction: Transaction, *, at: datetime) -> None:
        """Records that the import is done."""
        transaction.journal.close(msgspec.structs.replace(self.run, updated_at=at))

    def turn(self, transaction: Transaction, state: str, *, at: datetime) -> None:
        """Records that the import is being taken back, or was."""
        self._save(transaction, state=state, updated_at=at)

    def is_past(self, kind: Kind, key: str, order: Iterable[Kind]) -> bool:
        """Whether an entry was done before the import was broken off."""
        run = self.run
        if run.reached_kind is None or run.reached_key is None:
            return False
        names = [each.plural for each in order]
        here, there = names.index(kind.plural), names.index(run.reached_kind)
        return here < there or (here == there and key <= run.reached_key)

    def _refuse(self, plan: Plan, problem: LumosError) -> None:
        self.sums.refused += 1
        if len(self.sums.refusals) < _MOST_REFUSED:
            report = RefusedReport(kind=plan.kind.singular, key=plan.key, problem=str(problem))
            self.sums.refusals.append(report)

    def _save(self, transaction: Transaction, **facts: Any) -> None:
        self._run = msgspec.structs.replace(self.run, **facts)
        transaction.journal.save_run(self._run)


def _conflict(key: str, conflict: Conflict) -> ConflictReport:
    return ConflictReport(key=key, path=conflict.path, theirs=conflict.theirs, ours=conflict.ours)
