"""What could be saved on one dataset and everything upstream of it, as far as reads are known."""

from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lumos.config import Settings
from lumos.cost.inputs.readers import jobs_by_reader, known_since
from lumos.cost.ledger import Books
from lumos.cost.solver.savings import savings_of
from lumos.model.money import written
from lumos.store import Store
from lumos.usage.unread import place_of


class Hint(NamedTuple):
    """A sentence, and the micro-units that it would save in a month."""

    text: str
    monthly: int


def hints(store: Store, settings: Settings, books: Books, node: int) -> list[Hint]:
    """Datasets that nobody reads, and runs whose results nobody reads; the largest first."""
    ending = _unread(books, node)
    if ending is not None:
        # All that is upstream for it alone ends with it, its runs included.
        return [ending]
    upstream = [int(each) for each in books.made_of(node).nodes if books.graph.is_job[each]]
    known = _Known(store, settings)
    found = [_idle_runs(store, books, job, known) for job in upstream]
    return sorted(filter(None, found), key=lambda hint: -hint.monthly)


class _Known:
    """From which day on the reads of datasets are known, as far as people read there."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def since(self, urn: str) -> date:
        """Of what nobody ever read, nothing is known here; whether it is read is judged before."""
        source = self._sources.get(urn)
        found = None if source is None else self._places.get(place_of(urn, source))
        return found or date.min

    @cached_property
    def _sources(self) -> dict[str, str]:
        return self._store.usage.sources()

    @cached_property
    def _places(self) -> dict[str, date]:
        jobs = jobs_by_reader(self._settings, self._store.lineage.jobs())
        return known_since(self._store, self._sources.get, jobs)


def _unread(books: Books, node: int) -> Hint | None:
    is_end = not (books.graph.upstream == node).any()
    if not (is_end and books.is_verified(node)) or books.urn(node) in books.inputs.read:
        return None
    gone = savings_of(books.graph, books.with_writers([node]), books.avoidable).gone
    monthly = int(books.saved_by(gone).sum())
    if monthly <= 0:
        return None
    saved = written(monthly, books.inputs.currency)
    return Hint(f"nobody reads {books.name(node)}: removing it saves {saved} per month", monthly)


def _idle_runs(store: Store, books: Books, job: int, known: _Known) -> Hint | None:
    """Runs of a job after which nobody read what it writes, until the next one."""
    period = books.inputs.period
    outputs = books.graph.downstream[books.graph.upstream == job]
    if not len(outputs) or not all(_is_known(books, int(each)) for each in outputs):
        return None
    runs = [
        day for day in books.labels.run_days(books.urn(job)) if period.first <= day <= period.last
    ]
    if not runs:
        return None
    since = max(known.since(books.urn(int(each))) for each in outputs)
    told = sorted(day for day in runs if day >= since)
    reads = {
        each.day for node in outputs for each in store.usage.of(books.urn(node), since=period.first)
    }
    idle = _without_reads(told, reads, period.last)
    own = books.monthly(int(books.own[job]))
    monthly = round(Fraction(own * idle, len(runs))) if idle else 0
    if monthly <= 0:
        return None
    saved = written(monthly, books.inputs.currency)
    text = (
        f"{idle:,} of {len(runs):,} runs of the job {books.name(job)} wrote data that nobody read "
        f"before the next run: skipping them saves {saved} per month"
    )
    return Hint(text, monthly)


def _is_known(books: Books, node: int) -> bool:
    """Whether all that reads a dataset, jobs included, would be seen."""
    edges = np.flatnonzero((books.graph.upstream == node) & (books.graph.downstream != node))
    is_counted = not np.isnan(books.graph.weights[:, edges]).any()
    return books.is_verified(node) and is_counted


def _without_reads(runs: Sequence[date], reads: set[date], last: date) -> int:
    """How many runs were followed by another one, or the end, before any read."""
    ends = [*(after for _, after in pairwise(runs)), last]
    return sum(
        not any(start <= day <= end for day in reads)
        for start, end in zip(runs, ends[: len(runs)], strict=True)
    )
