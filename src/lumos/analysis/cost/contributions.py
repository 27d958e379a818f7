"""What each dataset and job upstream adds to what one dataset costs."""

from typing import Final, NamedTuple

import numpy as np

from lumos.analysis.cost.graph import CostGraph, Floats, Integers
from lumos.analysis.cost.reach import Ways
from lumos.analysis.cost.solving import Attribution

_MOST_ROUNDS: Final = 100_000
_SMALL: Final = 1e-15


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
    place = np.full(graph.nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    kept = edges[(place[graph.upstream[edges]] >= 0) & (place[graph.downstream[edges]] >= 0)]
    ends = place[graph.upstream[kept]], place[graph.downstream[kept]]
    own = graph.costs[:, nodes]
    reach, amounts = np.zeros(own.shape), np.zeros(own.shape, dtype=np.int64)
    for row, share in enumerate(shares[:, kept]):
        reach[row] = _reach(*ends, share, len(nodes), int(place[node]))
        amounts[row] = _adding_up(own[row] * reach[row], int(attribution.loaded[row, node]))
    return Contributions(nodes, reach, amounts)


def _reach(above: Integers, below: Integers, share: Floats, nodes: int, target: int) -> Floats:
    """The share of each node's cost that comes to the target, by whichever ways.

    Each round follows the ways by one step more: without cycles it ends with the longest way, and
    inside them what goes round again becomes ever less.
    """
    arriving: Floats = np.zeros(nodes)
    arriving[target] = 1.0
    reach = arriving.copy()
    for _ in range(_MOST_ROUNDS):
        passed = share * arriving[below]
        arriving = np.asarray(np.bincount(above, weights=passed, minlength=nodes), np.float64)
        if not (arriving > _SMALL).any():
            break
        reach += arriving
    return reach


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
