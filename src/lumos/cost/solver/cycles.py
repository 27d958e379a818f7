"""Solves T = c + W'T for cycles of the graph: T are loaded costs, c inflows, W edge shares.

Small cycles are solved as dense matrices, large ones iteratively. If the iteration does not
converge, nodes are eliminated first.
"""

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

    def __init__(self, size: int, sources: Integers, targets: Integers, share: Floats) -> None:
        self._successors: list[dict[int, float]] = [{} for _ in range(size)]
        self._predecessors: list[set[int]] = [set() for _ in range(size)]
        for source, target, edge_share in zip(
            sources.tolist(), targets.tolist(), share.tolist(), strict=True
        ):
            if edge_share:
                self._successors[source][target] = edge_share
                self._predecessors[target].add(source)
        self._eliminated: list[tuple[int, float, list[tuple[int, float]]]] = []

    def reduce(self, inflow: list[float], *, max_new_edges: int) -> Integers:
        """Eliminate nodes that add at most `max_new_edges` edges; return the remaining nodes.

        `inflow` is updated to the inflow of the remaining nodes.
        """
        queue = [(self._count_new_edges(node), node) for node in range(len(inflow))]
        heapq.heapify(queue)
        is_remaining = [True] * len(inflow)
        while queue:
            new_edges, node = heapq.heappop(queue)
            if not is_remaining[node] or new_edges != self._count_new_edges(node):
                continue
            if new_edges > max_new_edges:
                break
            is_remaining[node] = False
            affected = self._eliminate(node, inflow)
            for other in affected:
                heapq.heappush(queue, (self._count_new_edges(other), other))
        return np.flatnonzero(is_remaining)

    def edges_between(self, nodes: Integers) -> tuple[Integers, Integers, Floats]:
        """Sources, targets and shares of the edges between remaining nodes, renumbered from 0."""
        index_of = {node: number for number, node in enumerate(nodes.tolist())}
        edges = [
            (index_of[node], index_of[other], edge_share)
            for node in nodes.tolist()
            for other, edge_share in self._successors[node].items()
        ]
        sources, targets, share = zip(*edges, strict=True) if edges else ((), (), ())
        return np.array(sources, np.int64), np.array(targets, np.int64), np.array(share, np.float64)

    def restore(self, loaded: list[float]) -> None:
        """Compute the amounts of eliminated nodes from those of the others."""
        for node, scale, sources in reversed(self._eliminated):
            amount = loaded[node]
            for source, edge_share in sources:
                amount += edge_share * loaded[source]
            loaded[node] = amount * scale

    def _count_new_edges(self, node: int) -> int:
        return len(self._predecessors[node]) * len(self._successors[node])

    def _eliminate(self, node: int, inflow: list[float]) -> set[int]:
        successors = self._successors[node]
        predecessors = self._predecessors[node]
        scale = 1.0 / (1.0 - successors.pop(node, 0.0))
        predecessors.discard(node)
        sources = [(source, self._successors[source].pop(node)) for source in predecessors]
        self._eliminated.append((node, scale, sources))
        for target, edge_share in successors.items():
            self._predecessors[target].discard(node)
            inflow[target] += inflow[node] * scale * edge_share
        for source, source_share in sources:
            targets = self._successors[source]
            for target, edge_share in successors.items():
                targets[target] = targets.get(target, 0.0) + source_share * scale * edge_share
                self._predecessors[target].add(source)
        return predecessors.union(successors)


# Relative residuals: a solution must reach the first, and restarts stop at the second.
_MAX_RESIDUAL: Final = 1e-12
_GOOD_RESIDUAL: Final = 1e-14
_STEPS_PER_RESTART: Final = 60
_STEP_REDUCTION: Final = 1e-8
# If the residual is above `_DIVERGENCE` after `_TRIALS` restarts, convergence is not expected.
_TRIALS: Final = 2
_DIVERGENCE: Final = 1e-3


class IterativeSolver:
    """Solves T = inflow + W'T for one cycle by BiCGSTAB with restarts."""

    def __init__(self, size: int, sources: Integers, targets: Integers, share: Floats) -> None:
        self._size, self._sources, self._targets, self._share = size, sources, targets, share
        self._pairs = _PairPreconditioner(size, sources, targets, share)

    def solution(self, inflow: Floats, max_restarts: int) -> tuple[Floats, float]:
        """The loaded costs after up to `max_restarts` restarts, and their relative residual."""
        current = best = inflow
        best_residual = np.inf
        for restart in range(max_restarts):
            difference = inflow - self._apply(current)
            scale = max(np.abs(current).max(), np.abs(inflow).max(), 1.0)
            residual = float(np.abs(difference).max() / scale)
            if residual < best_residual:
                best, best_residual = current, residual
            elif best_residual <= _MAX_RESIDUAL:
                break
            if best_residual <= _GOOD_RESIDUAL or (
                restart > _TRIALS and best_residual > _DIVERGENCE
            ):
                break
            current = best + self._improvement(inflow - self._apply(best))
        return best, best_residual

    def _apply(self, amounts: Floats) -> Floats:
        """The product (I - W') `amounts`, which equals the inflow for a solution."""
        inflow = np.bincount(
            self._targets, self._share * amounts[self._sources], minlength=self._size
        )
        return amounts - inflow

    def _improvement(self, difference: Floats) -> Floats:
        """Approximately solve the system for a difference, by steps of preconditioned BiCGSTAB.

        Greek names and `_hat` (preconditioned) are those of textbooks.
        """
        shadow = residual = direction = difference
        correction = np.zeros(self._size)
        product = float(shadow @ residual)
        goal = float(np.abs(difference).max()) * _STEP_REDUCTION
        for _ in range(_STEPS_PER_RESTART):
            direction_hat = self._pairs.solve(direction)
            direction_image = self._apply(direction_hat)
            denominator = float(shadow @ direction_image)
            if denominator == 0.0:
                break
            alpha = product / denominator
            intermediate = residual - alpha * direction_image
            intermediate_hat = self._pairs.solve(intermediate)
            intermediate_image = self._apply(intermediate_hat)
            norm = float(intermediate_image @ intermediate_image)
            omega = float(intermediate_image @ intermediate) / norm if norm else 0.0
            correction = correction + alpha * direction_hat + omega * intermediate_hat
            residual = intermediate - omega * intermediate_image
            next_product = float(shadow @ residual)
            if float(np.abs(residual).max()) <= goal or omega == 0.0 or product == 0.0:
                break
            beta = (next_product / product) * (alpha / omega)
            direction = residual + beta * (direction - omega * direction_image)
            product = next_product
        return correction


class _PairPreconditioner:
    """Preconditioner that solves pairs of nodes that pass cost to each other."""

    def __init__(self, size: int, sources: Integers, targets: Integers, share: Floats) -> None:
        forward_codes, backward_codes = sources * size + targets, targets * size + sources
        order = np.argsort(forward_codes)
        positions = np.minimum(
            np.searchsorted(forward_codes[order], backward_codes), len(forward_codes) - 1
        )
        opposite_edges = order[positions]
        mutual_edges = np.flatnonzero(
            (forward_codes[opposite_edges] == backward_codes) & (sources < targets)
        )
        mutual_edges = mutual_edges[
            np.argsort(-share[mutual_edges] * share[opposite_edges[mutual_edges]])
        ]
        # A pair is used if it has the largest product of shares among all pairs of both nodes.
        rank = np.arange(len(mutual_edges))
        best_rank = np.full(size, len(mutual_edges))
        np.minimum.at(best_rank, sources[mutual_edges], rank)
        np.minimum.at(best_rank, targets[mutual_edges], rank)
        chosen = mutual_edges[
            (best_rank[sources[mutual_edges]] == rank) & (best_rank[targets[mutual_edges]] == rank)
        ]
        self._one, self._other = sources[chosen], targets[chosen]
        self._forward_share, self._backward_share = share[chosen], share[opposite_edges[chosen]]
        self._pair_factor = 1.0 - self._forward_share * self._backward_share

    def solve(self, inflow: Floats) -> Floats:
        """The loaded costs if only these pairs of nodes passed on cost."""
        loaded = inflow.copy()
        one, other = inflow[self._one], inflow[self._other]
        loaded[self._one] = (one + self._backward_share * other) / self._pair_factor
        loaded[self._other] = (other + self._forward_share * one) / self._pair_factor
        return loaded


# The size of the largest cycle that is solved as a dense matrix.
_MAX_DENSE: Final = 600
# The number of edges that eliminating a node may add.
_MAX_NEW_EDGES: Final = 12
_MAX_RESTARTS: Final = 10
_MAX_RESTARTS_AFTER_ELIMINATION: Final = 200


class CycleNotSolved(LumosError):
    """A cycle that could not be solved: too many nodes pass on almost all of their cost."""

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
    """Solve cycles in place: `loaded` contains own cost and inflow before, loaded cost after."""
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
    matrix_of_edge = np.repeat(np.arange(len(cycles)), counts)
    size = members.shape[1]
    index_of = np.empty(graph.nodes, dtype=np.int64)
    index_of[members] = np.arange(size)
    sources, targets = index_of[graph.upstream[edges]], index_of[graph.downstream[edges]]
    for amounts, share in zip(loaded, values, strict=True):
        system = np.tile(np.eye(size), (len(cycles), 1, 1))
        np.subtract.at(system, (matrix_of_edge, targets, sources), share[edges])
        amounts[members] = np.linalg.solve(system, amounts[members][..., None])[..., 0]


def _solve_large(
    loaded: Floats, graph: CostGraph, order: Topology, cycle: int, values: Floats
) -> None:
    """Solve a large cycle iteratively; if that does not converge, after elimination."""
    members, edges = order.cycles[cycle], order.inner[cycle]
    sources = np.searchsorted(members, graph.upstream[edges])
    targets = np.searchsorted(members, graph.downstream[edges])
    for amounts, share in zip(loaded, values, strict=True):
        inflow = amounts[members]
        solution, residual = IterativeSolver(len(members), sources, targets, share[edges]).solution(
            inflow, _MAX_RESTARTS
        )
        if residual > _MAX_RESIDUAL:
            solution = _solve_reduced(
                Elimination(len(members), sources, targets, share[edges]), inflow
            )
        amounts[members] = solution


def _solve_reduced(elimination: Elimination, inflow: Floats) -> Floats:
    amounts: list[float] = inflow.tolist()
    remaining = elimination.reduce(amounts, max_new_edges=_MAX_NEW_EDGES)
    if len(remaining):
        sources, targets, share = elimination.edges_between(remaining)
        remaining_inflow = np.array(amounts)[remaining]
        if len(remaining) <= _MAX_DENSE:
            system = np.eye(len(remaining))
            np.subtract.at(system, (targets, sources), share)
            solution = np.linalg.solve(system, remaining_inflow)
        else:
            solution, residual = IterativeSolver(len(remaining), sources, targets, share).solution(
                remaining_inflow, _MAX_RESTARTS_AFTER_ELIMINATION
            )
            if residual > _MAX_RESIDUAL:
                raise CycleNotSolved(len(inflow), residual)
        for node, amount in zip(remaining.tolist(), solution.tolist(), strict=True):
            amounts[node] = amount
    elimination.restore(amounts)
    return np.array(amounts)
