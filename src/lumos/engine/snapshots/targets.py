"""Where an import writes: the contract, and catalogs of others.

A catalog has no transaction that the journal could share. So the journal says beforehand what will
be written and what was there, and afterwards that it is done; an import that ends in between is
known by what it planned.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

from lumos.engine.snapshots.account import Account, Plan
from lumos.engine.snapshots.catalogs import PlatformCatalog
from lumos.engine.snapshots.merging import (
    TakenBack,
    claimed,
    merged_entry,
    taken_back,
)
from lumos.errors import LumosError, MisuseError
from lumos.model.catalog import Entry
from lumos.model.codec import from_json, to_json
from lumos.platforms import (
    HoldsItems,
    How,
    KeptInFile,
    ReadsEntries,
    ReplacesEntries,
    WritesInBatches,
)
from lumos.platforms.merging import merged_item
from lumos.snapshot import Snapshot
from lumos.snapshot.document import DATASETS, KINDS, Kind
from lumos.store import Store
from lumos.store.journal import ImportStep

# A file is written anew for each batch, a server is asked once for each entry.
TOGETHER: Final = 5000
ONE_BY_ONE: Final = 50
_KINDS: Final = {kind.plural: kind for kind in KINDS}


class RefusedEntry(LumosError):
    """A catalog that does not take an entry."""

    def __init__(self, kind: Kind, key: str, problem: LumosError) -> None:
        self.key = key
        super().__init__(f"The {kind.singular} {key} was refused: {problem}")


class Undone(NamedTuple):
    """A step that was taken back: its kind and key, how the entry was, and what is left of it."""

    kind: Kind
    key: str
    now: Any | None
    left: TakenBack


class Target(ABC):
    """Something that snapshots are imported into, some entries at a time."""

    name: str
    batch: int

    @abstractmethod
    def check(self) -> None:
        """Fails now rather than halfway where nothing can be read or written."""

    @abstractmethod
    def admit(self, snapshot: Snapshot) -> None:
        """Refuses a snapshot with something that there is no room for, before any is written."""

    @abstractmethod
    def holds(self, kind: Kind) -> bool:
        """Whether it has a place for entries of that kind."""

    @abstractmethod
    def plan(self, kind: Kind, values: Sequence[Any], *, omitted: Collection[str]) -> list[Plan]:
        """What an import would write."""

    @abstractmethod
    def write(
        self,
        account: Account,
        kind: Kind,
        values: Sequence[Any],
        *,
        omitted: Collection[str],
        at: datetime,
    ) -> None:
        """Imports some entries of one kind, and accounts for them."""

    @abstractmethod
    def undo(self, account: Account, steps: Sequence[ImportStep], *, at: datetime) -> list[Undone]:
        """Takes some steps of an import back, and accounts for it."""


def by_kind(steps: Iterable[ImportStep]) -> Iterator[tuple[Kind, list[ImportStep]]]:
    """Steps of the same kind together."""
    for name, some in groupby(steps, key=lambda step: step.kind):
        yield _KINDS[name], list(some)


def values_of(kind: Kind, step: ImportStep) -> tuple[Any | None, Any]:
    """How the entry of a step was, and how it was meant to be."""
    before = None if step.before is None else from_json(step.before, kind.type)
    return before, from_json(step.after, kind.type)


def item_plan(
    kind: Kind,
    item: Any,
    *,
    before: Any | None,
    now: Any | None,
    base: bytes | None,
    settled: Callable[[Any], Any] = lambda merged: merged,
) -> Plan:
    """What to write of something that is no dataset; `settled` is how it will be read again."""
    known = None if base is None else from_json(base, kind.type)
    merged = merged_item(known, now, item)
    key = getattr(item, kind.key)
    return Plan(
        kind, key, before=before, now=now, after=settled(merged.item), claim=item, base=base,
        conflicts=merged.conflicts,
    )  # fmt: skip


class CatalogTarget(Target):
    """A catalog of others; the journal lies in the store."""

    def __init__(self, catalog: PlatformCatalog, store: Store) -> None:
        platform = catalog.platform
        if not (isinstance(platform, ReadsEntries) and isinstance(platform, ReplacesEntries)):
            raise MisuseError(f"Nothing can be imported into '{catalog.kind}' by this version.")
        self.name = catalog.name
        self.batch = TOGETHER if isinstance(platform, WritesInBatches) else ONE_BY_ONE
        self._platform: Any = platform
        self._store = store

    def check(self) -> None:
        next(iter(self._platform.export()), None)
        if isinstance(self._platform, KeptInFile):
            self._platform.check_writable()

    def admit(self, snapshot: Snapshot) -> None:
        """A catalog says itself what it refuses."""

    def holds(self, kind: Kind) -> bool:
        return kind is DATASETS or isinstance(self._platform, HoldsItems)

    def plan(self, kind: Kind, values: Sequence[Any], *, omitted: Collection[str]) -> list[Plan]:
        return self._plans(kind, values, {}, omitted=omitted)

    def write(
        self,
        account: Account,
        kind: Kind,
        values: Sequence[Any],
        *,
        omitted: Collection[str],
        at: datetime,
    ) -> None:
        run = account.run.id
        planned = self._store.journal.planned(run, kind.plural, _keys(kind, values))
        plans = self._plans(kind, values, planned, omitted=omitted)
        steps = [plan for plan in plans if plan.is_step]
        with self._store.transaction() as transaction:
            transaction.journal.plan(run, [plan.step("planned") for plan in steps])
        held = self._put(plans)
        with self._store.transaction() as transaction:
            transaction.journal.mark(run, kind.plural, [plan.key for plan in steps], "done")
            bases = {plan.key: plan.new_base for plan in steps}
            transaction.journal.save_bases(self.name, kind.plural, bases)
            account.count(plans, held)
            account.reach(transaction, kind, plans[-1].key, at=at)

    def undo(self, account: Account, steps: Sequence[ImportStep], *, at: datetime) -> list[Undone]:
        undone = [self._undone(kind, step) for kind, some in by_kind(steps) for step in some]
        # Where nothing is to be restored, nothing need be writable.
        if moved := [each for each in undone if to_json(each.left.value) != to_json(each.now)]:
            with self._together():
                for each in moved:
                    self._restore(each)
        with self._store.transaction() as transaction:
            for kind, some in by_kind(steps):
                bases = {step.key: step.base for step in some}
                transaction.journal.save_bases(self.name, kind.plural, bases)
                transaction.journal.mark(account.run.id, kind.plural, bases, "undone")
            account.turn(transaction, "rolling_back", at=at)
        return undone

    def _plans(
        self,
        kind: Kind,
        values: Sequence[Any],
        planned: Mapping[str, ImportStep],
        *,
        omitted: Collection[str],
    ) -> list[Plan]:
        bases = self._store.journal.bases(self.name, kind.plural, _keys(kind, values))
        plans: list[Plan] = []
        for value in values:
            key = getattr(value, kind.key)
            now = self._get(kind, key)
            step = planned.get(key)
            before = now if step is None else values_of(kind, step)[0]
            base = bases.get(key)
            if kind is DATASETS:
                plans.append(self._dataset_plan(value, before, now, base, omitted=omitted))
            else:
                settled = partial(self._settled, kind)
                plans.append(
                    item_plan(kind, value, before=before, now=now, base=base, settled=settled)
                )
        return plans

    def _dataset_plan(
        self,
        ours: Entry,
        before: Entry | None,
        now: Entry | None,
        base: bytes | None,
        *,
        omitted: Collection[str],
    ) -> Plan:
        known = None if base is None else from_json(base, Entry)
        merged = merged_entry(known, now, ours, omitted=omitted)
        after = None if merged is None else self._settled(DATASETS, merged.entry)
        return Plan(
            DATASETS,
            ours.urn,
            before=before,
            now=now,
            after=after,
            claim=None if merged is None else claimed(known, ours, omitted=omitted),
            base=base,
            conflicts=() if merged is None else merged.conflicts,
        )

    def _settled(self, kind: Kind, value: Any) -> Any:
        platform = self._platform
        try:
            return platform.settled(value) if kind is DATASETS else platform.settled_item(value)
        except LumosError as problem:
            raise RefusedEntry(kind, getattr(value, kind.key), problem) from problem

    def _put(self, plans: Sequence[Plan]) -> dict[str, dict[str, How]]:
        held: dict[str, dict[str, How]] = {}
        with self._together():
            for plan in plans:
                if not plan.writes:
                    continue
                try:
                    if plan.kind is DATASETS:
                        held[plan.key] = self._platform.put(plan.after).held
                    else:
                        self._platform.put_item(plan.after)
                except LumosError as problem:
                    raise RefusedEntry(plan.kind, plan.key, problem) from problem
        return held

    def _undone(self, kind: Kind, step: ImportStep) -> Undone:
        now = self._get(kind, step.key)
        before, after = values_of(kind, step)
        return Undone(kind, step.key, now, taken_back(before, after, now))

    def _restore(self, undone: Undone) -> None:
        value, now = undone.left.value, undone.now
        match (undone.kind is DATASETS, value):
            case (True, None):
                self._platform.erase(undone.key)
            case (False, None):
                self._platform.erase_item(now)
            case (True, entry):
                self._platform.put(entry)
            case (False, item):
                self._platform.put_item(item)

    def _get(self, kind: Kind, key: str) -> Any | None:
        if kind is DATASETS:
            return self._platform.get(key)
        return self._platform.get_item(kind.type, key)

    def _together(self) -> AbstractContextManager[None]:
        is_able = isinstance(self._platform, WritesInBatches)
        return self._platform.batch() if is_able else nullcontext()


def _keys(kind: Kind, values: Iterable[Any]) -> list[str]:
    return [getattr(value, kind.key) for value in values]
