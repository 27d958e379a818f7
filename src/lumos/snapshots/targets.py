"""Where an import writes: the contract, and catalogs of others.

A catalog has no transaction that the journal could share. So the journal says beforehand what will
be written and what was there, and afterwards that it is done; an import that ends in between is
known by what it planned.

A catalog that writes in batches takes all entries of one or none. Any other one says of each entry
when it is there, or why it is refused, and the others go on.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Final, NamedTuple

from lumos.catalogs import (
    Connects,
    HoldsItems,
    How,
    KeptInFile,
    Platform,
    ReadsEntries,
    Refused,
    ReplacesEntries,
    WritesInBatches,
    WritesMany,
)
from lumos.catalogs.cleanup import Tidies
from lumos.catalogs.interface import sides_in
from lumos.catalogs.three_way_merge import merged_item
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

# A file is written anew for each batch, a server is asked once for each entry.
TOGETHER: Final = 5000
ONE_BY_ONE: Final = 50
# How many entries that are there may be on record as planned only.
_ON_RECORD_EACH: Final = 200
_KINDS: Final = {kind.plural: kind for kind in KINDS}


class ImportRefused(LumosError):
    """A catalog that does not take an entry."""

    def __init__(self, kind: EntryKind, key: str, problem: LumosError) -> None:
        self.key = key
        super().__init__(f"The {kind.singular} {key} was refused: {problem}")


class UndoneStep(NamedTuple):
    """A step that was taken back: its kind and key, how the entry was, and what is left of it."""

    kind: EntryKind
    key: str
    now: Any | None
    left: RolledBackEntry


class ImportTarget(ABC):
    """Something that snapshots are imported into, some entries at a time."""

    name: str
    batch: int

    @abstractmethod
    def check(self) -> None:
        """Fails now rather than halfway where nothing can be read or written."""

    @abstractmethod
    def admit(self, snapshot: OpenSnapshot) -> None:
        """Refuses a snapshot with something that there is no room for, before any is written."""

    @abstractmethod
    def holds(self, kind: EntryKind) -> bool:
        """Whether it has a place for entries of that kind."""

    @abstractmethod
    def plan(
        self, kind: EntryKind, values: Sequence[Any], *, omitted: Collection[str]
    ) -> list[EntryPlan]:
        """What an import would write."""

    @abstractmethod
    def write(
        self,
        account: ImportProgress,
        kind: EntryKind,
        values: Sequence[Any],
        *,
        omitted: Collection[str],
        at: datetime,
    ) -> None:
        """Imports some entries of one kind, and accounts for them."""

    @abstractmethod
    def undo(
        self, account: ImportProgress, steps: Sequence[ImportStep], *, at: datetime
    ) -> list[UndoneStep]:
        """Takes some steps of an import back, and accounts for it."""

    def tidy(self) -> None:  # noqa: B027
        """Takes out what was only made for entries that are gone, where that is a thing."""


def by_kind(steps: Iterable[ImportStep]) -> Iterator[tuple[EntryKind, list[ImportStep]]]:
    """Steps of the same kind together."""
    for name, some in groupby(steps, key=lambda step: step.kind):
        yield _KINDS[name], list(some)


def values_of(kind: EntryKind, step: ImportStep) -> tuple[Any | None, Any]:
    """How the entry of a step was, and how it was meant to be."""
    before = None if step.before is None else from_json(step.before, kind.type)
    return before, from_json(step.after, kind.type)


def item_plan(
    kind: EntryKind,
    item: Any,
    *,
    before: Any | None,
    now: Any | None,
    base: bytes | None,
    as_held: Callable[[Any], Any] = lambda item: item,
) -> EntryPlan:
    """What to write of an entity that is not a dataset; `as_held` is how it will be read again."""
    known = None if base is None else as_held(from_json(base, kind.type))
    merged = merged_item(known, now, item)
    key = getattr(item, kind.key)
    return EntryPlan(
        kind, key, before=before, now=now, after=as_held(merged.item), claim=item, base=base,
        conflicts=merged.conflicts,
    )  # fmt: skip


class CatalogTarget(ImportTarget):
    """A catalog of others; the journal lies in the store."""

    def __init__(self, catalog: PlatformCatalog, store: Store) -> None:
        platform = catalog.platform
        if not (isinstance(platform, ReadsEntries) and isinstance(platform, ReplacesEntries)):
            raise MisuseError(f"Nothing can be imported into '{catalog.kind}' by this version.")
        self.name = catalog.name
        self._platform: Any = platform
        self._store = store
        self._takes_all_or_none = isinstance(platform, WritesInBatches)
        self.batch = _at_once(platform)

    def check(self) -> None:
        if isinstance(self._platform, Connects):
            self._platform.check()
        else:
            next(iter(self._platform.export()), None)
        if isinstance(self._platform, KeptInFile):
            self._platform.check_writable()

    def admit(self, snapshot: OpenSnapshot) -> None:
        """A catalog says itself what it refuses."""

    def holds(self, kind: EntryKind) -> bool:
        return kind is DATASETS or isinstance(self._platform, HoldsItems)

    def plan(
        self, kind: EntryKind, values: Sequence[Any], *, omitted: Collection[str]
    ) -> list[EntryPlan]:
        return self._plans(kind, values, {}, omitted=omitted)

    def write(
        self,
        account: ImportProgress,
        kind: EntryKind,
        values: Sequence[Any],
        *,
        omitted: Collection[str],
        at: datetime,
    ) -> None:
        run = account.run.id
        planned = self._store.journal.planned(run, kind.plural, _keys(kind, values))
        # What was done before the import was broken off is counted, too.
        left = [value for value in values if not _is_done(planned.get(getattr(value, kind.key)))]
        plans = self._plans(kind, left, planned, omitted=omitted)
        with self._store.transaction() as transaction:
            steps = [plan.step("planned") for plan in plans if plan.is_step]
            transaction.journal.plan(run, steps)
        # One that was under way when an import was broken off may read as written and yet lack what
        # is written last, such as edges.
        moves = [
            plan
            for plan in plans
            if plan.writes or (plan.key in planned and plan.after is not None)
        ]
        if self._takes_all_or_none:
            held = self._put_all(moves)
            recorded: set[str] = set()
        else:
            held, recorded = self._put_each(account, kind, moves, at=at)
        with self._store.transaction() as transaction:
            rest = [plan for plan in plans if plan.key not in recorded]
            self._record(transaction, account, kind, rest, held)
            account.reach(transaction, kind, getattr(values[-1], kind.key), at=at)

    def undo(
        self, account: ImportProgress, steps: Sequence[ImportStep], *, at: datetime
    ) -> list[UndoneStep]:
        undone = [each for kind, some in by_kind(steps) for each in self._undone(kind, some)]
        refused: list[ImportRefused] = []
        # Where nothing is to be restored, nothing need be writable.
        if moved := [each for each in undone if to_json(each.left.value) != to_json(each.now)]:
            if self._takes_all_or_none:
                with self._platform.batch():
                    refused = self._restored(moved)
                    if refused:
                        raise refused[0]
            else:
                refused = self._restored(moved)
        kept = {each.key for each in refused}
        with self._store.transaction() as transaction:
            for kind, some in by_kind(step for step in steps if step.key not in kept):
                bases = {step.key: step.base for step in some}
                transaction.journal.save_bases(self.name, kind.plural, bases)
                transaction.journal.mark(account.run.id, kind.plural, bases, "undone")
            account.turn(transaction, "rolling_back", at=at)
        if refused:
            raise refused[0]
        return undone

    def tidy(self) -> None:
        if isinstance(self._platform, Tidies):
            self._platform.tidy()

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
        there = self._get(kind, keys)
        plans: list[EntryPlan] = []
        for key, value in zip(keys, values, strict=True):
            now, step, base = there.get(key), planned.get(key), bases.get(key)
            before = now if step is None else values_of(kind, step)[0]
            try:
                if kind is DATASETS:
                    plan = self._dataset_plan(value, before, now, base, omitted=omitted)
                else:
                    plan = item_plan(
                        kind, value, before=before, now=now, base=base,
                        as_held=self._platform.item_as_held,
                    )  # fmt: skip
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                if self._takes_all_or_none:
                    raise ImportRefused(kind, key, problem) from problem
                plan = EntryPlan.of_refused(kind, key, base, problem)
            plans.append(plan)
        return plans

    def _dataset_plan(
        self,
        ours: CatalogEntry,
        before: CatalogEntry | None,
        now: CatalogEntry | None,
        base: bytes | None,
        *,
        omitted: Collection[str],
    ) -> EntryPlan:
        known = None if base is None else from_json(base, CatalogEntry)
        ours = for_catalogs(ours)
        sides = sides_in(self._platform, known, now, ours)
        merged = merge_imported(*sides, ours, omitted=omitted)
        return EntryPlan(
            DATASETS,
            ours.urn,
            before=before,
            now=now,
            after=None if merged is None else self._platform.as_held(merged.entry),
            claim=None if merged is None else written_by_lumos(known, ours, omitted=omitted),
            base=base,
            conflicts=() if merged is None else merged.conflicts,
        )

    def _put_all(self, plans: Sequence[EntryPlan]) -> dict[str, dict[str, How]]:
        held: dict[str, dict[str, How]] = {}
        with self._platform.batch():
            for plan in plans:
                try:
                    if plan.kind is DATASETS:
                        held[plan.key] = self._platform.put(plan.after).held
                    else:
                        self._platform.put_item(plan.after)
                except LumosError as problem:
                    raise ImportRefused(plan.kind, plan.key, problem) from problem
        return held

    def _put_each(
        self, account: ImportProgress, kind: EntryKind, plans: Sequence[EntryPlan], *, at: datetime
    ) -> tuple[dict[str, dict[str, How]], set[str]]:
        """Writes entries, and records in between which are there; gives what is on record."""
        by_key = {plan.key: plan for plan in plans}
        held: dict[str, dict[str, How]] = {}
        recorded: set[str] = set()
        arrived: list[EntryPlan] = []

        def record() -> None:
            with self._store.transaction() as transaction:
                self._record(transaction, account, kind, arrived, held)
                account.note(transaction, at=at)
            recorded.update(plan.key for plan in arrived)
            arrived.clear()

        try:
            for outcome in self._outcomes(kind, plans):
                plan = by_key[outcome.urn]
                if isinstance(outcome, Refused):
                    plan.problem = outcome.problem
                    continue
                held[plan.key] = outcome.held
                arrived.append(plan)
                if len(arrived) >= _ON_RECORD_EACH:
                    record()
        finally:
            # Also where the catalog failed: what has arrived by then stays.
            if arrived:
                record()
        return held, recorded

    def _outcomes(self, kind: EntryKind, plans: Sequence[EntryPlan]) -> Iterator[Any]:
        values = [plan.after for plan in plans]
        if not values:
            return iter(())
        if kind is DATASETS:
            over = {plan.key: plan.now for plan in plans}
            outcomes: Iterator[Any] = self._platform.put_many(values, over=over)
        else:
            outcomes = self._platform.put_items(values)
        return outcomes

    def _record(
        self,
        transaction: Transaction,
        account: ImportProgress,
        kind: EntryKind,
        plans: Sequence[EntryPlan],
        held: Mapping[str, Mapping[str, How]],
    ) -> None:
        steps = [plan for plan in plans if plan.is_step and plan.problem is None]
        transaction.journal.mark(account.run.id, kind.plural, _plan_keys(steps), "done")
        bases = {plan.key: plan.new_base for plan in steps}
        transaction.journal.save_bases(self.name, kind.plural, bases)
        account.count(plans, held)

    def _undone(self, kind: EntryKind, steps: Sequence[ImportStep]) -> Iterator[UndoneStep]:
        there = self._get(kind, [step.key for step in steps])
        for step in steps:
            now = there.get(step.key)
            before, after = values_of(kind, step)
            yield UndoneStep(kind, step.key, now, roll_back_entry(before, after, now))

    def _restored(self, undone: Sequence[UndoneStep]) -> list[ImportRefused]:
        """Makes entries what they were; gives those that the catalog does not take."""
        platform = self._platform
        datasets = [each for each in undone if each.kind is DATASETS]
        changed = [each for each in datasets if each.left.value is not None]
        over = {each.key: each.now for each in changed}
        outcomes = platform.put_many([each.left.value for each in changed], over=over)
        refused = [
            ImportRefused(DATASETS, each.urn, each.problem)
            for each in (outcomes if changed else ())
            if isinstance(each, Refused)
        ]
        if founded := [each.key for each in datasets if each.left.value is None]:
            platform.erase_many(founded)
        for each in undone:
            if each.kind is DATASETS:
                continue
            if each.left.value is None:
                platform.erase_item(each.now)
            else:
                refused += [
                    ImportRefused(each.kind, each.key, one.problem)
                    for one in platform.put_items([each.left.value])
                ]
        return refused

    def _get(self, kind: EntryKind, keys: Sequence[str]) -> dict[str, Any]:
        found: dict[str, Any]
        if kind is DATASETS:
            found = self._platform.get_many(keys)
        else:
            found = self._platform.get_items(kind.type, keys)
        return found


def _at_once(platform: Platform) -> int:
    if isinstance(platform, WritesInBatches):
        return TOGETHER
    return platform.most if isinstance(platform, WritesMany) else ONE_BY_ONE


def _keys(kind: EntryKind, values: Iterable[Any]) -> list[str]:
    return [getattr(value, kind.key) for value in values]


def _plan_keys(plans: Iterable[EntryPlan]) -> list[str]:
    return [plan.key for plan in plans]


def _is_done(step: ImportStep | None) -> bool:
    return step is not None and step.state == "done"
