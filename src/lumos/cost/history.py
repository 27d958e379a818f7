"""Keeps a period's costs: as history, and with the datasets, so that snapshots carry them."""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Final

import msgspec
import numpy as np

from lumos.cost.ledger import Books
from lumos.cost.solver.graph import Integers
from lumos.model.dataset import Cost
from lumos.model.money import MICRO
from lumos.store import Store
from lumos.store.costs import Figure

_WRITER: Final = "cost"
_BESIDE_TYPE: Final = "other"
_TOGETHER: Final = 500


def record(store: Store, books: Books, *, aspects: bool, at: datetime) -> tuple[int, int]:
    """Gives how many datasets and jobs were kept, and how many cost aspects were written.

    Datasets carry the cost of the latest period on record only.
    """
    inputs = books.inputs
    latest = max((each.last for each in store.costs.periods()), default=inputs.period.last)
    with store.transaction() as transaction:
        transaction.costs.record(
            inputs.period,
            _figures(books),
            method=books.method,
            currency=inputs.currency,
            at=at,
        )
    kept = int(((books.own != 0) | (books.totals != 0)).sum())
    is_latest = inputs.period.last >= latest
    return kept, _write_aspects(store, books, at) if aspects and is_latest else 0


def _figures(books: Books) -> Iterator[Figure]:
    graph, attribution = books.graph, books.attribution
    costing = (graph.costs != 0) | (attribution.loaded != 0)
    for row, node in zip(*np.nonzero(costing), strict=True):
        own, total = int(graph.costs[row, node]), int(attribution.loaded[row, node])
        retained = int(attribution.retained[row, node])
        yield Figure(books.urn(node), graph.types[row], own, total - own, total, retained)
    for name, amount in books.beside.items():
        yield Figure(name, _BESIDE_TYPE, amount, 0, amount, amount)


def _write_aspects(store: Store, books: Books, at: datetime) -> int:
    """Writes the cost aspect of datasets where it is another than before."""
    before = store.aspects("cost")
    known = {each.urn for each in store.directory.datasets() if each.state == "live"}
    changed = (
        (urn, cost)
        for urn, cost in _costs(books, at)
        if urn in known and not _is_same(before.get(urn), cost)
    )
    written = 0
    while some := list(islice(changed, _TOGETHER)):
        with store.transaction() as transaction:
            for urn, cost in some:
                transaction.save_aspect(urn, "cost", cost, writer=_WRITER, at=at)
        written += len(some)
    return written


def _costs(books: Books, at: datetime) -> Iterator[tuple[str, Cost]]:
    graph, loaded = books.graph, books.attribution.loaded
    for node in map(int, np.flatnonzero(~graph.is_job)):
        own = _by_type(books, graph.costs[:, node])
        attributed = _by_type(books, loaded[:, node] - graph.costs[:, node])
        if own or attributed:
            yield (
                books.urn(node),
                Cost(
                    currency=books.inputs.currency,
                    period=books.inputs.period.name,
                    own=own,
                    attributed=attributed,
                    calculated_at=at,
                ),
            )


def _by_type(books: Books, amounts: Integers) -> dict[str, float]:
    named = zip(books.graph.types, amounts.tolist(), strict=True)
    return {name: amount / MICRO for name, amount in named if amount}


def _is_same(before: Cost | None, after: Cost) -> bool:
    return before is not None and msgspec.structs.replace(before, calculated_at=None) == (
        msgspec.structs.replace(after, calculated_at=None)
    )
