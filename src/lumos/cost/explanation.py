"""The ways and shares that make a total."""

import numpy as np

from lumos.cost.ledger import Books
from lumos.cost.report_builder import answer, what_if
from lumos.cost.reports import CostPath, ExplainReport, PathStep
from lumos.cost.solver.paths import CostPath as Way
from lumos.cost.solver.paths import explain
from lumos.model.money import amount_of


def explain_report(
    books: Books, node: int, *, limit: int, before: Books | None, changes: tuple[str, ...]
) -> ExplainReport:
    """Every way along which cost comes to a dataset or job, the largest first."""
    found = explain(books.graph, books.attribution, node, limit=limit)
    paths = [
        (int(way.amounts[row]), _path(books, way, int(row)))
        for way in found.paths
        for row in np.flatnonzero(way.amounts)
    ]
    paths.sort(key=lambda each: (-abs(each[0]), len(each[1].steps)))
    total = int(books.totals[node])
    rest = total - sum(amount for amount, _ in paths)
    supposed = None
    if before is not None:
        supposed = what_if(changes, int(before.totals[before.places[books.urn(node)]]), total)
    cycle = books.cycle_of(node)
    return ExplainReport(
        **answer(books, assumed=int(books.attribution.assumed[:, node].sum())),
        what_if=supposed,
        dataset=books.urn(node),
        name=books.name(node),
        total_cost=amount_of(total),
        paths=tuple(path for _, path in paths),
        rest=amount_of(rest),
        complete=found.complete,
        cycles=(cycle,) if cycle else (),
    )


def _path(books: Books, way: Way, row: int) -> CostPath:
    shares = books.attribution.shares
    steps = [
        PathStep(
            urn=books.urn(node),
            name=books.name(node),
            kind=books.kind(node),
            share=float(way.shares[row, place]) if place < len(way.edges) else None,
            assumed=place < len(way.edges) and bool(shares.assumed[row, way.edges[place]]),
        )
        for place, node in enumerate(way.nodes)
    ]
    return CostPath(
        type=books.graph.types[row],
        own_cost=amount_of(int(books.graph.costs[row, way.nodes[0]])),
        share=float(np.prod(way.shares[row])),
        cost=amount_of(int(way.amounts[row])),
        steps=tuple(steps),
    )
