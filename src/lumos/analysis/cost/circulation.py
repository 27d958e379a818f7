"""What goes round in cycles: (I - W') T = c for each of them."""

from typing import Final

import numpy as np

from lumos.analysis.cost.elimination import Elimination
from lumos.analysis.cost.graph import CostGraph, Floats, Integers
from lumos.analysis.cost.topology import Topology
from lumos.errors import LumosError

# Larger systems are not solved as a whole, for a matrix of them grows with the square.
_DENSE: Final = 600
# How many edges may come about where a node is taken out of a larger one.
_NEW_EDGES: Final = 12
# Starts go on while they come nearer; being off by more than this is no solution.
_PRECISION: Final = 1e-12
_ENOUGH: Final = 1e-14
_PATIENCE: Final = 10
# What is as far off as this after some starts will hardly arrive.
_TRIALS: Final = 2
_HOPELESS: Final = 1e-3
_STEPS: Final = 60


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
        found, residual = _Cycle(len(members), at, to, share[edges]).solution(inflow, _PATIENCE)
        if residual > _PRECISION:
            found = _reduced(Elimination(len(members), at, to, share[edges]), inflow)
        amounts[members] = found


def _reduced(elimination: Elimination, inflow: Floats) -> Floats:
    amounts: list[float] = inflow.tolist()
    left = elimination.reduce(amounts, most=_NEW_EDGES)
    if len(left):
        rest = _Cycle(len(left), *elimination.remaining(left))
        found, residual = rest.solution(np.array(amounts)[left], 20 * _PATIENCE)
        if residual > _PRECISION:
            raise CycleNotSolved(len(inflow), residual)
        for node, amount in zip(left.tolist(), found.tolist(), strict=True):
            amounts[node] = amount
    elimination.restore(amounts)
    return np.array(amounts)


class _Cycle:
    """One cycle; a large one by stabilised biconjugate gradients, started anew until exact."""

    def __init__(self, size: int, at: Integers, to: Integers, share: Floats) -> None:
        self._size, self._at, self._to, self._share = size, at, to, share

    def solution(self, inflow: Floats, patience: int) -> tuple[Floats, float]:
        """The loaded costs after so many starts, and how far off they are at most."""
        if self._size <= _DENSE:
            system = np.eye(self._size)
            np.subtract.at(system, (self._to, self._at), self._share)
            solved: Floats = np.linalg.solve(system, inflow).astype(np.float64)
            return solved, 0.0
        found = best = inflow
        nearest = np.inf
        for start in range(patience):
            missing = inflow - self._staying(found)
            scale = max(np.abs(found).max(), np.abs(inflow).max(), 1.0)
            residual = float(np.abs(missing).max() / scale)
            if residual < nearest:
                best, nearest = found, residual
            elif nearest <= _PRECISION:
                break
            if nearest <= _ENOUGH or (start > _TRIALS and nearest > _HOPELESS):
                break
            found = best + self._improvement(inflow - self._staying(best))
        return best, nearest

    def _staying(self, amounts: Floats) -> Floats:
        carried = np.bincount(self._to, self._share * amounts[self._at], minlength=self._size)
        return amounts - carried

    def _improvement(self, missing: Floats) -> Floats:
        shadow = residual = missing
        found = np.zeros(self._size)
        direction = residual
        product = float(shadow @ residual)
        goal = float(np.abs(missing).max()) * 1e-8
        for _ in range(_STEPS):
            moved = self._staying(direction)
            along = float(shadow @ moved)
            if along == 0.0:
                break
            step = product / along
            half = residual - step * moved
            turned = self._staying(half)
            norm = float(turned @ turned)
            weight = float(turned @ half) / norm if norm else 0.0
            found = found + step * direction + weight * half
            residual = half - weight * turned
            after = float(shadow @ residual)
            if float(np.abs(residual).max()) <= goal or weight == 0.0 or product == 0.0:
                break
            direction = residual + (after / product) * (step / weight) * (
                direction - weight * moved
            )
            product = after
        return found
