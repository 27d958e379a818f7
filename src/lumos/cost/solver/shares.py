"""The share of a node's cost that is passed on to each reader, and the share that it retains."""

from dataclasses import dataclass
from typing import Final, assert_never

import numpy as np

from lumos.cost.solver.graph import Bools, CostGraph, Floats, Integers
from lumos.cost.solver.topology import Topology, strong_components
from lumos.errors import MisuseError
from lumos.model.cost import AttributionMethod

# Upper bound of floating-point errors in sums of shares that users write as decimals.
NOISE: Final = 1e-9
# Sums of weights outside of this range, or their reciprocals, may overflow.
_MAX_SUM: Final = 1e300
_MIN_SUM: Final = 1e-300


class InvalidShare(MisuseError):
    """Shares that are negative or add up to more than 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """Shares by cost type; if all types have the same shares, the rows share their memory."""

    values: Floats
    """[k, m] share of the upstream cost that is passed on to the downstream node."""
    retained: Floats
    """[k, n] share that the node retains."""
    assumed: Bools
    """[k, m] whether the share is an equal split because usage is unknown."""

    @property
    def is_uniform(self) -> bool:
        """Whether all cost types have the same shares."""
        return len(self.values) == 1 or self.values.strides[0] == 0


def compute_shares(graph: CostGraph, method: AttributionMethod) -> Shares:
    """Divide the cost of each node: explicit shares first, the remainder by the method.

    An end use that also has readers retains a share as if it were one more reader.
    """
    weighted = method == "lineage_weighted"
    rows = max(len(graph.explicit), len(graph.weights) if weighted else 1)
    values = np.empty((rows, graph.edges))
    retained = np.empty((rows, graph.nodes))
    assumed = np.zeros((rows, graph.edges), dtype=np.bool_)
    is_flow = graph.upstream != graph.downstream
    default_division = _ShareDivision(graph, is_flow, np.ones(graph.nodes))
    for row in range(rows):
        explicit = graph.explicit[min(row, len(graph.explicit) - 1)]
        is_explicit = ~np.isnan(explicit) & is_flow
        division = default_division
        values[row] = 0.0
        if is_explicit.any():
            values[row] = np.where(is_explicit, explicit, 0.0)
            remaining = _remaining_shares(graph, values[row], row)
            division = _ShareDivision(graph, is_flow & ~is_explicit, remaining)
        match method:
            case "equal_split":
                retained[row] = division.split_equally(values[row])
            case "lineage_weighted":
                weights = graph.weights[min(row, len(graph.weights) - 1)]
                retained[row] = division.split_by_weight(weights, values[row], assumed[row])
            case "last_touch":
                retained[row] = division.by_last_read(values[row], assumed[row])
            case _:
                assert_never(method)
    types = len(graph.types)
    return Shares(
        values=np.broadcast_to(values, (types, graph.edges)),
        retained=np.broadcast_to(retained, (types, graph.nodes)),
        assumed=np.broadcast_to(assumed, (types, graph.edges)),
    )


class _ShareDivision:
    """Divides the remaining share of each node among its edges without an explicit share.

    The methods write to `values` and return the share that each node retains.
    """

    def __init__(self, graph: CostGraph, is_divided: Bools, remaining: Floats) -> None:
        self._graph = graph
        # A full slice avoids copying the largest arrays.
        self._divided: Integers | slice = (
            slice(None) if is_divided.all() else np.flatnonzero(is_divided)
        )
        self._remaining_shares = remaining
        self._source = graph.upstream[self._divided]
        self._readers = np.bincount(self._source, minlength=graph.nodes)
        parts = self._readers + graph.live
        self._equal_share = np.divide(remaining, parts, out=np.zeros(graph.nodes), where=parts > 0)
        without_readers = np.where(self._readers == 0, remaining, 0.0)
        self._retained = np.where(
            graph.live & (self._readers > 0), self._equal_share, without_readers
        )

    def split_equally(self, values: Floats) -> Floats:
        """Equal shares for all edges without an explicit share."""
        values[self._divided] = self._equal_share.take(self._source)
        return self._retained

    def split_by_weight(self, all_weights: Floats, values: Floats, assumed: Bools) -> Floats:
        """Shares by weight; equal shares if a weight is unknown (a sum with nan is nan)."""
        weights = all_weights[self._divided]
        if (weights < 0).any() or np.isinf(weights).any():
            raise InvalidShare("Weights of edges must be finite and not negative.")
        sums = np.bincount(self._source, weights, minlength=self._graph.nodes)
        if ((sums > _MAX_SUM) | ((sums > 0) & (sums < _MIN_SUM))).any():
            weights = self._relative_to_largest(weights)
            sums = np.bincount(self._source, weights, minlength=self._graph.nodes)
        is_unknown = ~(sums > 0) & (self._readers > 0)
        passed_on = self._remaining_shares - self._retained
        scale = np.divide(passed_on, sums, out=np.zeros(len(sums)), where=sums > 0)
        values[self._divided] = scale.take(self._source) * weights
        self._assume_equal_shares(is_unknown, values, assumed)
        return self._retained

    def _relative_to_largest(self, weights: Floats) -> Floats:
        """Weights relative to the largest weight of their node, to avoid extreme sums."""
        largest = np.zeros(self._graph.nodes)
        np.fmax.at(largest, self._source, weights)
        return np.divide(
            weights, largest[self._source], out=weights.copy(), where=largest[self._source] > 0
        )

    def by_last_read(self, values: Floats, assumed: Bools) -> Floats:
        """The entire share for the edge that was read last; equal shares for simultaneous reads."""
        nodes = self._graph.nodes
        times = self._graph.last_read[self._divided]
        times = np.where(np.isnan(times), -np.inf, times)
        latest = np.full(nodes, -np.inf)
        np.maximum.at(latest, self._source, times)
        is_unknown = np.isneginf(latest) & (self._readers > 0)
        is_last = (times == latest[self._source]) & ~is_unknown[self._source]
        count = np.bincount(self._source[is_last], minlength=nodes)
        values[self._divided] = (
            is_last * (self._remaining_shares / np.maximum(count, 1))[self._source]
        )
        self._assume_equal_shares(is_unknown, values, assumed)
        return np.where(is_unknown | (self._readers == 0), self._retained, 0.0)

    def _assume_equal_shares(self, is_unknown: Bools, values: Floats, assumed: Bools) -> None:
        if is_unknown.any():
            is_assumed = is_unknown[self._source]
            equal_shares = self._equal_share[self._source]
            values[self._divided] = np.where(is_assumed, equal_shares, values[self._divided])
            # The share of a single reader is not assumed: it gets everything, whatever its weight.
            assumed[self._divided] = is_assumed & (self._readers > 1)[self._source]


def _remaining_shares(graph: CostGraph, values: Floats, row: int) -> Floats:
    """The share of each node that remains after explicit shares; rounding noise becomes zero."""
    is_invalid = (values < 0) | (values > 1 + NOISE)
    if is_invalid.any():
        edge = int(np.argmax(is_invalid))
        raise InvalidShare(
            f"The share {values[edge]:g} of the edge {graph.urns[graph.upstream[edge]]} -> "
            f"{graph.urns[graph.downstream[edge]]} must be a number from 0 to 1, such as 0.6."
        )
    explicit_sums = np.bincount(graph.upstream, values, minlength=graph.nodes)
    if (explicit_sums > 1 + NOISE).any():
        node = int(np.argmax(explicit_sums))
        differs = f" of {graph.types[row]} cost" if len(graph.explicit) > 1 else ""
        raise InvalidShare(
            f"The shares{differs} on the edges out of {graph.urns[node]} add up to "
            f"{explicit_sums[node]:.6g}. They must add up to at most 1."
        )
    remaining: Floats = np.subtract(1.0, explicit_sums, dtype=np.float64)
    is_exhausted = remaining < NOISE
    if is_exhausted.any():
        # Scale the shares to add up to exactly 1, since the remaining noise is discarded.
        values /= np.where(is_exhausted, explicit_sums, 1.0)[graph.upstream]
    remaining[is_exhausted] = 0.0
    return remaining


def close_cycles(graph: CostGraph, order: Topology, shares: Shares) -> tuple[Shares, Bools]:
    """Set the shares inside closed cycles to zero; also return which cycles are closed.

    In a closed cycle, which no cost leaves, cost would circulate forever. Instead, each member
    retains its own cost and its inflow from outside.
    """
    types = len(graph.types)
    closed = np.zeros((types, len(order.cycles)), dtype=np.bool_)
    if not order.cycles:
        return shares, closed
    rows = 1 if shares.is_uniform else types
    circulating = [_circulating_edges(graph, order, shares.values[row]) for row in range(rows)]
    closed[:] = np.array([is_closed for _, is_closed in circulating])
    if not any(len(edges) for edges, _ in circulating):
        return shares, closed
    values, retained = shares.values[:rows].copy(), shares.retained[:rows].copy()
    for row, (edges, _) in enumerate(circulating):
        values[row][edges] = 0.0
        closed_nodes = np.unique(graph.upstream[edges])
        passed_on = np.bincount(graph.upstream, values[row], minlength=graph.nodes)
        retained[row][closed_nodes] = 1.0 - passed_on[closed_nodes]
    changed = Shares(
        values=np.broadcast_to(values, shares.values.shape),
        retained=np.broadcast_to(retained, shares.retained.shape),
        assumed=shares.assumed,
    )
    return changed, closed


def _circulating_edges(graph: CostGraph, order: Topology, values: Floats) -> tuple[Integers, Bools]:
    """The edges on which cost would circulate forever, and which cycles are closed."""
    count = len(order.cycles)
    inner = np.concatenate(order.inner)
    circulating_share = np.bincount(graph.upstream[inner], values[inner], minlength=graph.nodes)
    is_leaking = (circulating_share < 1.0 - NOISE) & (order.cycle_of >= 0)
    has_leak = np.bincount(order.cycle_of[is_leaking], minlength=count) > 0
    edges_without_share = inner[values[inner] <= 0.0]
    has_edge_without_share = (
        np.bincount(order.cycle_of[graph.upstream[edges_without_share]], minlength=count) > 0
    )
    is_closed = ~has_leak & ~has_edge_without_share
    circulating_edges = [inner[is_closed[order.cycle_of[graph.upstream[inner]]]]]
    # If an edge passes on no cost, only a part of the cycle may be closed.
    for cycle in np.flatnonzero(has_edge_without_share).tolist():
        members, edges = order.cycles[cycle], order.inner[cycle]
        source, target = graph.upstream[edges], graph.downstream[edges]
        circulating = _circulating_in_cycle(members, source, target, values[edges])
        circulating_edges.append(edges[circulating])
        is_closed[cycle] = len(np.unique(source[circulating])) == len(members)
    return np.concatenate(circulating_edges), is_closed


def _circulating_in_cycle(
    members: Integers, source: Integers, target: Integers, share: Floats
) -> Bools:
    """The edges inside the parts of a cycle that no cost leaves."""
    source_index, target_index = np.searchsorted(members, source), np.searchsorted(members, target)
    size = len(members)
    carries_cost = share > 0.0
    has_outflow = np.bincount(source_index, share, minlength=size) < 1.0 - NOISE
    while True:
        newly_open = np.zeros(size, dtype=np.bool_)
        newly_open[source_index[carries_cost & has_outflow[target_index]]] = True
        if not (newly_open & ~has_outflow).any():
            break
        has_outflow |= newly_open
    is_closed_part = ~has_outflow
    is_inner = carries_cost & is_closed_part[source_index] & is_closed_part[target_index]
    labels = strong_components(is_closed_part, source_index[is_inner], target_index[is_inner])
    has_exit = np.zeros(size, dtype=np.bool_)
    has_exit[labels[source_index[is_inner & (labels[source_index] != labels[target_index])]]] = True
    return is_inner & ~has_exit[labels[source_index]]
