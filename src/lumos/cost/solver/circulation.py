"""What goes round in cycles: (I - W') T = c for each of them."""

from typing import Final

import numpy as np

from lumos.cost.solver.elimination import Elimination
from lumos.cost.solver.graph import CostGraph, Floats, Integers
from lumos.cost.solver.iteration import PRECISION, Iteration
from lumos.cost.solver.topology import Topology
from lumos.errors import LumosError

# Larger systems are not solved as a whole, for a matrix of them grows with the square.
_DENSE: Final = 600
# How many edges may come about where a node is taken out of a larger one.
_NEW_EDGES: Final = 12
_STARTS: Final = 10
_MORE_STARTS: Final = 200


class CycleNotSolved(LumosError):
    """A cycle so large and tight that its costs cannot be computed."""

    def __init__(self, size: int, residual: float) -> None:
        self.size = size
        super().__init__(
            f"The costs that go round in a cycle of {size:,} datasets and jobs could not be "
            f"computed to more than {residual:.1g} of their amount. Set explicit shares on edges "
            "that lead back, so that less of the cost goes round."
        )


def circulated(
    loaded: Floats, graph: CostGraph, order: Topology, cycles: Integers, values: Floats
) -> None:
    """Puts loaded costs into `loaded`, which holds own cost and inflow of these cycles' members."""
    sizes = np.array([len(order.cycles[cycle]) for cycle in cycles])
    for size in np.unique(sizes).tolist():
        alike = cycles[sizes == size]
        if size > _DENSE:
            for cycle in alike.tolist():
                _solved_alone(loaded, graph, order, cycle, values)
        else:
            _solved(loaded, graph, order, alike, values)


def _solved(
    loaded: Floats, graph: CostGraph, order: Topology, cycles: Integers, values: Floats
) -> None:
    """Cycles of one size, as a stack of matrices."""
    members = np.array([order.cycles[cycle] for cycle in cycles])
    edges = np.concatenate([order.inner[cycle] for cycle in cycles])
    counts = [len(order.inner[cycle]) for cycle in cycles]
    stack = np.repeat(np.arange(len(cycles)), counts)
    size = members.shape[1]
    place = np.empty(graph.nodes, dtype=np.int64)
    place[members] = np.arange(size)
    at, to = place[graph.upstream[edges]], place[graph.downstream[edges]]
    for amounts, share in zip(loaded, values, strict=True):
        system = np.tile(np.eye(size), (len(cycles), 1, 1))
        np.subtract.at(system, (stack, to, at), share[edges])
        amounts[members] = np.linalg.solve(system, amounts[members][..., None])[..., 0]


def _solved_alone(
    loaded: Floats, graph: CostGraph, order: Topology, cycle: int, values: Floats
) -> None:
    """A large cycle: iterated, and where that is slow, made smaller before."""
    members, edges = order.cycles[cycle], order.inner[cycle]
    at = np.searchsorted(members, graph.upstream[edges])
    to = np.searchsorted(members, graph.downstream[edges])
    for amounts, share in zip(loaded, values, strict=True):
        inflow = amounts[members]
        found, residual = Iteration(len(members), at, to, share[edges]).solution(inflow, _STARTS)
        if residual > PRECISION:
            found = _reduced(Elimination(len(members), at, to, share[edges]), inflow)
        amounts[members] = found


def _reduced(elimination: Elimination, inflow: Floats) -> Floats:
    amounts: list[float] = inflow.tolist()
    left = elimination.reduce(amounts, most=_NEW_EDGES)
    if len(left):
        at, to, share = elimination.remaining(left)
        inflow_left = np.array(amounts)[left]
        if len(left) <= _DENSE:
            system = np.eye(len(left))
            np.subtract.at(system, (to, at), share)
            found = np.linalg.solve(system, inflow_left)
        else:
            found, residual = Iteration(len(left), at, to, share).solution(
                inflow_left, _MORE_STARTS
            )
            if residual > PRECISION:
                raise CycleNotSolved(len(inflow), residual)
        for node, amount in zip(left.tolist(), found.tolist(), strict=True):
            amounts[node] = amount
    elimination.restore(amounts)
    return np.array(amounts)
