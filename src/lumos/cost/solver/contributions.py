"""What each dataset and job upstream adds to what one dataset costs."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lumos.cost.solver.attribution import Attribution, flowed
from lumos.cost.solver.graph import CostGraph, Floats, Integers
from lumos.cost.solver.reach import Ways
from lumos.cost.solver.topology import topology


class Contributions(NamedTuple):
    """The nodes that some cost of comes to one node, that node included, in ascending order.

    `reach` is the share of each one's own cost that arrives, [k, a]; inside a cycle it may be more
    than 1. `amounts` are micro-units, [k, a], and give the loaded cost exactly.
    """

    nodes: Integers
    reach: Floats
    amounts: Integers


def contributions(graph: CostGraph, attribution: Attribution, node: int) -> Contributions:
    """What a node's loaded cost is made of."""
    shares = attribution.shares.values
    edges = np.flatnonzero((graph.upstream != graph.downstream) & (shares > 0).any(axis=0))
    against = Ways(graph.nodes, graph.downstream[edges], graph.upstream[edges])
    nodes = np.flatnonzero(against.origins(np.array([node])) >= 0)
    reach = _reach(graph, shares, edges, nodes, node)
    own = graph.costs[:, nodes]
    amounts = [
        _adding_up(own[row] * reach[row], int(attribution.loaded[row, node]))
        for row in range(len(own))
    ]
    return Contributions(nodes, reach, np.array(amounts, dtype=np.int64).reshape(own.shape))


def _reach(graph: CostGraph, shares: Floats, edges: Integers, nodes: Integers, node: int) -> Floats:
    """[k, a] the share of each node's own cost that comes to one of them, by whichever ways.

    One unit that flows against the edges, by their shares, comes to a node as often as a unit of
    that node's cost comes down.
    """
    place = np.full(graph.nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    kept = edges[(place[graph.upstream[edges]] >= 0) & (place[graph.downstream[edges]] >= 0)]
    against = replace(
        graph,
        urns=[""] * len(nodes),
        is_job=graph.is_job[nodes],
        live=graph.live[nodes],
        costs=graph.costs[:, nodes],
        upstream=place[graph.downstream[kept]],
        downstream=place[graph.upstream[kept]],
        explicit=np.full((1, len(kept)), np.nan),
        weights=np.full((1, len(kept)), np.nan),
        last_read=graph.last_read[kept],
    )
    unit = np.zeros((len(graph.types), len(nodes)))
    unit[:, place[node]] = 1.0
    order = topology(against.nodes, against.upstream, against.downstream)
    return flowed(against, order, unit, shares[:, kept])


def _adding_up(amounts: Floats, total: int) -> Integers:
    """Whole numbers near some amounts that give a total; what rounding moved most gives way."""
    whole = np.rint(amounts).astype(np.int64)
    missing = total - int(whole.sum())
    step = 1 if missing > 0 else -1
    gives_way = np.argsort(step * (whole - amounts), kind="stable")
    while missing:
        some = gives_way[: abs(missing)]
        whole[some] += step
        missing -= step * len(some)
    return whole
