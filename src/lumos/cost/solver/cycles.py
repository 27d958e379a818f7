"""Solves (I - W') T = c for the cycles of the graph: dense, iterative, or after elimination."""

import heapq
from typing import Final

import numpy as np

from lumos.cost.solver.graph import CostGraph, Floats, Integers
from lumos.cost.solver.topology import Topology
from lumos.errors import LumosError


class Elimination:
    """Reduces a large cycle by eliminating nodes that add few new edges.

    An eliminated node is replaced by edges from its predecessors to its successors, so the
    reduced system has the same solution. A ring, on which iteration is slowest, is eliminated
    completely.
    """

    def __init__(self, size: int, at: Integers, to: Integers, share: Floats) -> None:
        self._successors: list[dict[int, float]] = [{} for _ in range(size)]
        self._predecessors: list[set[int]] = [set() for _ in range(size)]
        for source, target, carried in zip(at.tolist(), to.tolist(), share.tolist(), strict=True):
            if carried:
                self._successors[source][target] = carried
                self._predecessors[target].add(source)
        self._eliminated: list[tuple[int, float, list[tuple[int, float]]]] = []

    def reduce(self, inflow: list[float], *, max_new_edges: int) -> Integers:
        """Eliminate nodes that add at most `max_new_edges` edges; return the remaining nodes.

        `inflow` is updated to the inflow of the remaining nodes.
        """
        queue = [(self._effort(node), node) for node in range(len(inflow))]
        heapq.heapify(queue)
        remaining = [True] * len(inflow)
        while queue:
            effort, node = heapq.heappop(queue)
            if not remaining[node] or effort != self._effort(node):
                continue
            if effort > max_new_edges:
                break
            remaining[node] = False
            affected = self._eliminate(node, inflow)
            for other in affected:
                heapq.heappush(queue, (self._effort(other), other))
        return np.flatnonzero(remaining)

    def remaining(self, remaining: Integers) -> tuple[Integers, Integers, Floats]:
        """The edges among the remaining nodes, renumbered."""
        index_of = {node: number for number, node in enumerate(remaining.tolist())}
        edges = [
            (index_of[node], index_of[other], carried)
            for node in remaining.tolist()
            for other, carried in self._successors[node].items()
        ]
        at, to, share = zip(*edges, strict=True) if edges else ((), (), ())
        return np.array(at, np.int64), np.array(to, np.int64), np.array(share, np.float64)

    def restore(self, loaded: list[float]) -> None:
        """Compute the amounts of eliminated nodes from those of the others."""
        for node, scale, sources in reversed(self._eliminated):
            amount = loaded[node]
            for source, carried in sources:
                amount += carried * loaded[source]
            loaded[node] = amount * scale

    def _effort(self, node: int) -> int:
        return len(self._predecessors[node]) * len(self._successors[node])

    def _eliminate(self, node: int, inflow: list[float]) -> set[int]:
        successors = self._successors[node]
        predecessors = self._predecessors[node]
        scale = 1.0 / (1.0 - successors.pop(node, 0.0))
        predecessors.discard(node)
        sources = [(source, self._successors[source].pop(node)) for source in predecessors]
        self._eliminated.append((node, scale, sources))
        for target, carried in successors.items():
            self._predecessors[target].discard(node)
            inflow[target] += inflow[node] * scale * carried
        for source, arriving in sources:
            targets = self._successors[source]
            for target, carried in successors.items():
                targets[target] = targets.get(target, 0.0) + arriving * scale * carried
                self._predecessors[target].add(source)
        return predecessors.union(successors)


# Restarts continue while they improve; a larger residual is not accepted.
PRECISION: Final = 1e-12
_GOOD_PRECISION: Final = 1e-14
_STEPS: Final = 60
_STEP_GOAL: Final = 1e-8
# With a residual like this after the trial restarts, convergence is unlikely.
_TRIALS: Final = 2
_DIVERGENCE: Final = 1e-3


class IterativeSolver:
    """Solves T = inflow + W'T for one cycle by BiCGSTAB with restarts."""

    def __init__(self, size: int, at: Integers, to: Integers, share: Floats) -> None:
        self._size, self._at, self._to, self._share = size, at, to, share
        self._pairs = _Pairs(size, at, to, share)

    def solution(self, inflow: Floats, starts: int) -> tuple[Floats, float]:
        """The loaded costs after at most `starts` restarts, and the residual."""
        found = best = inflow
        nearest = np.inf
        for start in range(starts):
            missing = inflow - self._residual_of(found)
            scale = max(np.abs(found).max(), np.abs(inflow).max(), 1.0)
            residual = float(np.abs(missing).max() / scale)
            if residual < nearest:
                best, nearest = found, residual
            elif nearest <= PRECISION:
                break
            if nearest <= _GOOD_PRECISION or (start > _TRIALS and nearest > _DIVERGENCE):
                break
            found = best + self._improvement(inflow - self._residual_of(best))
        return best, nearest

    def _residual_of(self, amounts: Floats) -> Floats:
        carried = np.bincount(self._to, self._share * amounts[self._at], minlength=self._size)
        return amounts - carried

    def _improvement(self, missing: Floats) -> Floats:
        shadow = residual = direction = missing
        found = np.zeros(self._size)
        product = float(shadow @ residual)
        goal = float(np.abs(missing).max()) * _STEP_GOAL
        for _ in range(_STEPS):
            ahead = self._pairs.solve(direction)
            moved = self._residual_of(ahead)
            along = float(shadow @ moved)
            if along == 0.0:
                break
            step = product / along
            half = residual - step * moved
            aside = self._pairs.solve(half)
            turned = self._residual_of(aside)
            norm = float(turned @ turned)
            weight = float(turned @ half) / norm if norm else 0.0
            found = found + step * ahead + weight * aside
            residual = half - weight * turned
            after = float(shadow @ residual)
            if float(np.abs(residual).max()) <= goal or weight == 0.0 or product == 0.0:
                break
            turn = (after / product) * (step / weight)
            direction = residual + turn * (direction - weight * moved)
            product = after
        return found


class _Pairs:
    """Preconditioner that solves pairs of nodes which pass cost to each other."""

    def __init__(self, size: int, at: Integers, to: Integers, share: Floats) -> None:
        forward_codes, backward_codes = at * size + to, to * size + at
        order = np.argsort(forward_codes)
        found = np.minimum(
            np.searchsorted(forward_codes[order], backward_codes), len(forward_codes) - 1
        )
        opposite = order[found]
        mutual = np.flatnonzero((forward_codes[opposite] == backward_codes) & (at < to))
        mutual = mutual[np.argsort(-share[mutual] * share[opposite[mutual]])]
        # A pair is used if it is the tightest one of both its nodes.
        rank = np.arange(len(mutual))
        tightest = np.full(size, len(mutual))
        np.minimum.at(tightest, at[mutual], rank)
        np.minimum.at(tightest, to[mutual], rank)
        chosen = mutual[(tightest[at[mutual]] == rank) & (tightest[to[mutual]] == rank)]
        self._one, self._other = at[chosen], to[chosen]
        self._forward_share, self._backward_share = share[chosen], share[opposite[chosen]]
        self._pair_factor = 1.0 - self._forward_share * self._backward_share

    def solve(self, inflow: Floats) -> Floats:
        """The loaded costs if only these pairs passed on cost."""
        loaded = inflow.copy()
        one, other = inflow[self._one], inflow[self._other]
        loaded[self._one] = (one + self._backward_share * other) / self._pair_factor
        loaded[self._other] = (other + self._forward_share * one) / self._pair_factor
        return loaded


# Largest cycle that is solved as a dense matrix.
_MAX_DENSE: Final = 600
# How many edges the elimination of a node may add.
_MAX_NEW_EDGES: Final = 12
_STARTS: Final = 10
_MORE_STARTS: Final = 200


class CycleNotSolved(LumosError):
    """A cycle that is too large and too tight to be solved."""

    def __init__(self, size: int, residual: float) -> None:
        self.size = size
        super().__init__(
            f"The costs in a lineage cycle of {size:,} datasets and jobs could not be computed to "
            f"more than {residual:.1g} of their amount. Set explicit shares on edges that lead "
            "back, so that less cost circulates."
        )


def solve_cycles(
    loaded: Floats, graph: CostGraph, order: Topology, cycles: Integers, values: Floats
) -> None:
    """Solve these cycles in place: `loaded` holds own cost and inflow, and gets the loaded cost."""
    sizes = np.array([len(order.cycles[cycle]) for cycle in cycles])
    for size in np.unique(sizes).tolist():
        same_size = cycles[sizes == size]
        if size > _MAX_DENSE:
            for cycle in same_size.tolist():
                _solve_large(loaded, graph, order, cycle, values)
        else:
            _solve_dense(loaded, graph, order, same_size, values)


def _solve_dense(
    loaded: Floats, graph: CostGraph, order: Topology, cycles: Integers, values: Floats
) -> None:
    """Solve cycles of equal size as a stack of matrices."""
    members = np.array([order.cycles[cycle] for cycle in cycles])
    edges = np.concatenate([order.inner[cycle] for cycle in cycles])
    counts = [len(order.inner[cycle]) for cycle in cycles]
    stack = np.repeat(np.arange(len(cycles)), counts)
    size = members.shape[1]
    index_of = np.empty(graph.nodes, dtype=np.int64)
    index_of[members] = np.arange(size)
    at, to = index_of[graph.upstream[edges]], index_of[graph.downstream[edges]]
    for amounts, share in zip(loaded, values, strict=True):
        system = np.tile(np.eye(size), (len(cycles), 1, 1))
        np.subtract.at(system, (stack, to, at), share[edges])
        amounts[members] = np.linalg.solve(system, amounts[members][..., None])[..., 0]


def _solve_large(
    loaded: Floats, graph: CostGraph, order: Topology, cycle: int, values: Floats
) -> None:
    """Solve a large cycle by iteration; if that converges slowly, after elimination."""
    members, edges = order.cycles[cycle], order.inner[cycle]
    at = np.searchsorted(members, graph.upstream[edges])
    to = np.searchsorted(members, graph.downstream[edges])
    for amounts, share in zip(loaded, values, strict=True):
        inflow = amounts[members]
        found, residual = IterativeSolver(len(members), at, to, share[edges]).solution(
            inflow, _STARTS
        )
        if residual > PRECISION:
            found = _solve_reduced(Elimination(len(members), at, to, share[edges]), inflow)
        amounts[members] = found


def _solve_reduced(elimination: Elimination, inflow: Floats) -> Floats:
    amounts: list[float] = inflow.tolist()
    remaining = elimination.reduce(amounts, max_new_edges=_MAX_NEW_EDGES)
    if len(remaining):
        at, to, share = elimination.remaining(remaining)
        inflow_left = np.array(amounts)[remaining]
        if len(remaining) <= _MAX_DENSE:
            system = np.eye(len(remaining))
            np.subtract.at(system, (to, at), share)
            found = np.linalg.solve(system, inflow_left)
        else:
            found, residual = IterativeSolver(len(remaining), at, to, share).solution(
                inflow_left, _MORE_STARTS
            )
            if residual > PRECISION:
                raise CycleNotSolved(len(inflow), residual)
        for node, amount in zip(remaining.tolist(), found.tolist(), strict=True):
            amounts[node] = amount
    elimination.restore(amounts)
    return np.array(amounts)
