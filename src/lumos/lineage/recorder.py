"""What reporters say, written to the store: their own earlier words go, everybody else's stay."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Final, TypeVar

from lumos.lineage.name_index import Names
from lumos.lineage.reported import Described
from lumos.lineage.reports import Tally
from lumos.lineage.urns import Placed
from lumos.store import Store, Transaction
from lumos.store.actor import audit
from lumos.store.lineage import Reporting

Value = TypeVar("Value")

# Lets a reporter's descriptions of datasets count, all of them or all of some datasets; gives how
# many of them changed.
Describe = Callable[[str, Sequence[tuple[str, Described]], Collection[str] | None], int]

_TOGETHER: Final = 100


class _DryRun(Exception):
    """Ends a transaction of which nothing shall stay."""


class Recorder:
    """Writes what reporters say; a dry run only says what would change."""

    def __init__(
        self,
        store: Store | None,
        names: Names,
        *,
        at: datetime,
        dry_run: bool,
        describe: Describe,
    ) -> None:
        self._store = store
        self._names = names
        self._at = at
        self._dry_run = dry_run
        self._describe = describe

    def record(self, placed: Iterable[Placed]) -> Iterator[tuple[Placed, Tally, int]]:
        """Writes reports some at a time; gives what changed, and how many datasets were told of."""
        if self._store is None:
            # Nothing is known yet, so that all is new.
            for each in placed:
                edges = {(edge.upstream, edge.downstream, edge.job) for edge in each.edges}
                yield each, Tally(added=len(edges)), 0
            return
        for some in _some(placed):
            tallies = list(self._written(self._store, some))
            for each, tally in zip(some, tallies, strict=True):
                yield each, tally, self._described(each)

    def withdraw(self, reporters: Sequence[str]) -> Tally:
        """Takes back all that reporters said which are no more."""
        nothing = (Placed(reporter=name) for name in reporters)
        return sum((tally for _, tally, _ in self.record(nothing)), Tally())

    def _written(self, store: Store, placed: Sequence[Placed]) -> Iterator[Tally]:
        tallies: list[Tally] = []
        try:
            with store.transaction() as transaction:
                for each in placed:
                    done = transaction.lineage.report(
                        each.reporter, each.edges, each.jobs, each.scripts, each.owners,
                        unparsed=each.unparsed, at=self._at,
                    )  # fmt: skip
                    if each.memory is not None:
                        transaction.lineage.remember(each.reporter, each.memory)
                    tallies.append(_tally(done))
                    if done.touched:
                        self._audit(transaction, each, done)
                if self._dry_run:
                    raise _DryRun
        except _DryRun:
            pass
        yield from tallies

    def _described(self, placed: Placed) -> int:
        assert self._store is not None
        # Most files say nothing of datasets that are there, and never did.
        told = [each for each in placed.descriptions if each[0] in self._names]
        if not told and not self._store.remarks.urns(placed.reporter):
            return 0
        return self._describe(placed.reporter, told, placed.written)

    def _audit(self, transaction: Transaction, placed: Placed, done: Reporting) -> None:
        details = f"{done.added} new, {done.changed} changed, {done.removed} gone"
        audit(transaction, "lineage", placed.reporter, at=self._at, details=details)


def _tally(done: Reporting) -> Tally:
    return Tally(
        added=done.added, changed=done.changed, removed=done.removed, unchanged=done.unchanged
    )


def _some(values: Iterable[Value]) -> Iterator[list[Value]]:
    rest = iter(values)
    while some := list(islice(rest, _TOGETHER)):
        yield some
