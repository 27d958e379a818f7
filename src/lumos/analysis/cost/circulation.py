"""What goes round in cycles: (I - W') T = c for each of them."""

from typing import Final

import numpy as np

from lumos.analysis.cost.graph import CostGraph, Floats, Integers
from lumos.analysis.cost.topology import Topology
from lumos.errors import LumosError

# Larger systems are not solved as a whole, for a matrix of them grows with the square.
_DENSE: Final = 600
_PRECISION: Final = 1e-14
_RESTARTS: Final = 200
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
                _iterated(loaded, graph, order, cycle, values)
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


def _iterated(
    loaded: Floats, graph: CostGraph, order: Topology, cycle: int, values: Floats
) -> None:
    members, edges = order.cycles[cycle], order.inner[cycle]
    at = np.searchsorted(members, graph.upstream[edges])
    to = np.searchsorted(members, graph.downstream[edges])
    for amounts, share in zip(loaded, values, strict=True):
        amounts[members] = _Cycle(len(members), at, to, share[edges]).solution(amounts[members])


class _Cycle:
    """One large cycle, solved by stabilised biconjugate gradients, started anew until exact."""

    def __init__(self, size: int, at: Integers, to: Integers, share: Floats) -> None:
        self._size, self._at, self._to, self._share = size, at, to, share

    def solution(self, inflow: Floats) -> Floats:
        found = inflow.copy()
        best, best_residual = found, np.inf
        for _ in range(_RESTARTS):
            missing = inflow - self._staying(found)
            scale = max(np.abs(found).max(), np.abs(inflow).max(), 1.0)
            residual = float(np.abs(missing).max() / scale)
            if residual <= _PRECISION:
                return found
            if residual < best_residual:
                best, best_residual = found, residual
            elif best_residual < 1e-11:
                return best
            found = best + self._improvement(inflow - self._staying(best))
        raise CycleNotSolved(self._size, best_residual)

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
