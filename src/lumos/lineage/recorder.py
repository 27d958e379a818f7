"""Writes reported lineage to the store; a reporter replaces only its own earlier edges."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Final, TypeVar

from lumos.lineage.name_index import NameIndex
from lumos.lineage.reported_lineage import ReportedAnnotations
from lumos.lineage.reports import EdgeCounts
from lumos.lineage.resolver import ResolvedLineage
from lumos.store import Store, Transaction
from lumos.store.lineage import LineageChanges
from lumos.store.transaction import record_audit

Value = TypeVar("Value")

# Applies a reporter's annotations to all datasets or some; returns how many datasets changed.
ApplyAnnotations = Callable[
    [str, Sequence[tuple[str, ReportedAnnotations]], Collection[str] | None], int
]

_BATCH_SIZE: Final = 100


class _DryRun(Exception):
    """Rolls back the transaction of a dry run."""


class LineageRecorder:
    """Writes lineage; a dry run only counts what would change."""

    def __init__(
        self,
        store: Store | None,
        names: NameIndex,
        *,
        at: datetime,
        dry_run: bool,
        apply_annotations: ApplyAnnotations,
    ) -> None:
        self._store = store
        self._names = names
        self._at = at
        self._dry_run = dry_run
        self._apply_annotations = apply_annotations

    def record(
        self, resolved: Iterable[ResolvedLineage]
    ) -> Iterator[tuple[ResolvedLineage, EdgeCounts, int]]:
        """Write lineage in batches; yields the counts of edges and of annotated datasets."""
        if self._store is None:
            # Without a store, everything is new.
            for each in resolved:
                edges = {(edge.upstream, edge.downstream, edge.job) for edge in each.edges}
                yield each, EdgeCounts(added=len(edges)), 0
            return
        for batch in _batches(resolved):
            counts_of_all = list(self._write(self._store, batch))
            for each, counts in zip(batch, counts_of_all, strict=True):
                yield each, counts, self._apply(each)

    def withdraw(self, reporters: Sequence[str]) -> EdgeCounts:
        """Remove everything from reporters that no longer exist."""
        empty_reports = (ResolvedLineage(reporter=name) for name in reporters)
        return sum((counts for _, counts, _ in self.record(empty_reports)), EdgeCounts())

    def _write(self, store: Store, resolved: Sequence[ResolvedLineage]) -> Iterator[EdgeCounts]:
        counts_of_all: list[EdgeCounts] = []
        try:
            with store.transaction() as transaction:
                for each in resolved:
                    done = transaction.lineage.report(
                        each.reporter, each.edges, each.jobs, each.scripts, each.owners,
                        unparsed=each.unparsed, at=self._at,
                    )  # fmt: skip
                    if each.memory is not None:
                        transaction.lineage.save_memory(each.reporter, each.memory)
                    counts_of_all.append(_counts(done))
                    if done.touched:
                        self._audit(transaction, each, done)
                if self._dry_run:
                    raise _DryRun
        except _DryRun:
            pass
        yield from counts_of_all

    def _apply(self, resolved: ResolvedLineage) -> int:
        assert self._store is not None
        # Most files have no annotations of known datasets, and never had any.
        descriptions = [each for each in resolved.descriptions if each[0] in self._names]
        if not descriptions and not self._store.annotations.urns(resolved.reporter):
            return 0
        return self._apply_annotations(resolved.reporter, descriptions, resolved.written)

    def _audit(
        self, transaction: Transaction, resolved: ResolvedLineage, done: LineageChanges
    ) -> None:
        details = f"{done.added} new, {done.changed} changed, {done.removed} gone"
        record_audit(transaction, "lineage", resolved.reporter, at=self._at, details=details)


def _counts(done: LineageChanges) -> EdgeCounts:
    return EdgeCounts(
        added=done.added, changed=done.changed, removed=done.removed, unchanged=done.unchanged
    )


def _batches(values: Iterable[Value]) -> Iterator[list[Value]]:
    rest = iter(values)
    while batch := list(islice(rest, _BATCH_SIZE)):
        yield batch
