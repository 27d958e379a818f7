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

Value = TypeVar("Value")

# Applies a reporter's annotations to all datasets or some; returns the number of changed datasets.
ApplyAnnotations = Callable[
    [str, Sequence[tuple[str, ReportedAnnotations]], Collection[str] | None], int
]

_BATCH_SIZE: Final = 100


class _DryRun(Exception):
    """Rolls back the transaction of a dry run."""


class LineageRecorder:
    """Writes lineage; a dry run only counts the changes."""

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
        """Write lineage in batches; yields it with its edge counts and annotated datasets."""
        if self._store is None:
            # In a dry run without a store, all edges are new.
            for each in resolved:
                edges = {(edge.upstream, edge.downstream, edge.job) for edge in each.edges}
                yield each, EdgeCounts(added=len(edges)), 0
            return
        for batch in _batches(resolved):
            for each, counts in zip(batch, self._write(self._store, batch), strict=True):
                yield each, counts, self._apply(each)

    def withdraw(self, reporters: Sequence[str]) -> EdgeCounts:
        """Remove the lineage of reporters that no longer exist."""
        empty = (ResolvedLineage(reporter=name) for name in reporters)
        return sum((counts for _, counts, _ in self.record(empty)), EdgeCounts())

    def _write(self, store: Store, resolved: Sequence[ResolvedLineage]) -> list[EdgeCounts]:
        counts: list[EdgeCounts] = []
        try:
            with store.transaction() as transaction:
                for each in resolved:
                    changes = transaction.lineage.report(
                        each.reporter, each.edges, each.jobs, each.scripts, each.owners,
                        unparsed=each.unparsed, at=self._at,
                    )  # fmt: skip
                    if each.memory is not None:
                        transaction.lineage.save_memory(each.reporter, each.memory)
                    counts.append(_counts(changes))
                    if changes.touched:
                        self._audit(transaction, each, changes)
                if self._dry_run:
                    raise _DryRun
        except _DryRun:
            pass
        return counts

    def _apply(self, resolved: ResolvedLineage) -> int:
        assert self._store is not None
        # A shortcut: most files neither have annotations of known datasets nor had any.
        descriptions = [each for each in resolved.descriptions if each[0] in self._names]
        if not descriptions and not self._store.annotations.urns(resolved.reporter):
            return 0
        return self._apply_annotations(resolved.reporter, descriptions, resolved.written)

    def _audit(
        self, transaction: Transaction, resolved: ResolvedLineage, changes: LineageChanges
    ) -> None:
        details = f"{changes.added} new, {changes.changed} changed, {changes.removed} removed"
        transaction.audit("lineage", resolved.reporter, at=self._at, details=details)


def _counts(changes: LineageChanges) -> EdgeCounts:
    return EdgeCounts(
        added=changes.added,
        changed=changes.changed,
        removed=changes.removed,
        unchanged=changes.unchanged,
    )


def _batches(values: Iterable[Value]) -> Iterator[list[Value]]:
    remaining = iter(values)
    while batch := list(islice(remaining, _BATCH_SIZE)):
        yield batch
