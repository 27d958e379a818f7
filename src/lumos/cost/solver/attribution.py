"""Attribution along lineage: loaded and retained cost, contributions, and cost paths."""

import heapq
from dataclasses import dataclass, replace
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from lumos.cost.solver.cycles import solve_cycles
from lumos.cost.solver.graph import Bools, CostGraph, Floats, Integers
from lumos.cost.solver.shares import Shares, close_cycles, compute_shares
from lumos.cost.solver.topology import Adjacency, Topology, build_topology, stable_order
from lumos.errors import MisuseError
from lumos.model.cost import DEFAULT_METHOD, AttributionMethod

_MAX_AMOUNT: Final = 9e18


class AmountsTooLarge(MisuseError):
    """Amounts that do not fit into 64 bits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Component:
    """A cycle (strongly connected component), in which cost can circulate."""

    members: Integers
    loaded: Integers
    """[k] own cost of all members and inflow from outside, as if the cycle were one node."""
    closed: Bools
    """[k] whether no cost leaves the cycle, so that its members retain all of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Attribution:
    """Costs in micro-units by cost type and node.

    `loaded` is own cost and attributed upstream cost. Only `retained` adds up to the spend.
    """

    loaded: Integers
    retained: Integers
    shares: Shares
    components: list[Component]
    assumed: Integers
    """[k, n] the part of `loaded` that was passed on along an edge with an assumed share."""
    assumed_amount: Integers
    """[k] the part of the spend that was passed on along an edge with an assumed share."""


def attribute(graph: CostGraph, method: AttributionMethod = DEFAULT_METHOD) -> Attribution:
    """Attribute costs: solve T = c + W'T level by level, with the cycles of each level first.

    T are loaded costs, c own costs and W the shares of edges.
    """
    order = build_topology(graph.nodes, graph.upstream, graph.downstream)
    shares, closed = close_cycles(graph, order, compute_shares(graph, method))
    own = graph.costs.astype(np.float64)
    if np.abs(own).sum() > _MAX_AMOUNT:
        raise AmountsTooLarge("The amounts add up to more than 9 x 10^12, the largest sum allowed.")
    exact_loaded = propagate(graph, order, own, shares.values)
    sums = np.abs(exact_loaded).sum(axis=0)
    if sums.max(initial=0.0) > _MAX_AMOUNT:
        node = int(np.argmax(sums))
        raise AmountsTooLarge(
            f"A lineage cycle with {graph.urns[node]} retains so little of its cost that amounts "
            "in it become too large to be computed. Allocate explicit shares to the edges that "
            "lead back, so that less cost circulates."
        )
    retained = _round_retained(graph, shares.retained * exact_loaded)
    loaded = np.where(shares.retained == 1.0, retained, np.rint(exact_loaded).astype(np.int64))
    assumed = np.zeros_like(exact_loaded)
    if shares.assumed.any():
        rows = 1 if shares.is_uniform else len(graph.types)
        certain_shares = np.where(shares.assumed[:rows], 0.0, shares.values[:rows])
        assumed = exact_loaded - propagate(
            graph, order, own, np.broadcast_to(certain_shares, shares.values.shape)
        )
    return Attribution(
        loaded=loaded,
        retained=retained,
        shares=shares,
        components=_components(graph, order, exact_loaded, shares.values, closed),
        assumed=np.rint(assumed).astype(np.int64),
        assumed_amount=np.rint((shares.retained * assumed).sum(axis=1)).astype(np.int64),
    )


def propagate(graph: CostGraph, order: Topology, own: Floats, values: Floats) -> Floats:
    """[k, n] own cost and everything that flows in along the edges."""
    loaded = own.copy()
    for level in order.levels:
        if len(level.cycles):
            solve_cycles(loaded, graph, order, level.cycles, values)
        source, target = graph.upstream[level.edges], graph.downstream[level.edges]
        for amounts, share in zip(loaded, values, strict=True):
            np.add.at(amounts, target, amounts.take(source) * share.take(level.edges))
    return loaded


def _round_retained(graph: CostGraph, exact: Floats) -> Integers:
    """Round to micro-units so that each cost type adds up to the spend."""
    rounded = np.rint(exact).astype(np.int64)
    for row, amounts, spent in zip(rounded, exact, graph.costs.sum(axis=1), strict=True):
        missing = int(spent) - int(row.sum())
        step = 1 if missing > 0 else -1
        overshoot = step * (row - amounts)
        count = min(abs(missing), int(np.count_nonzero(overshoot < 0)))
        if count:
            row[np.argpartition(overshoot, count - 1)[:count]] += step
        # Add the remaining floating-point error to the largest amount, which has the most error.
        if missing != step * count:
            row[np.argmax(np.abs(amounts))] += missing - step * count
    return rounded


def _components(
    graph: CostGraph, order: Topology, exact: Floats, values: Floats, closed: Bools
) -> list[Component]:
    if not order.cycles:
        return []
    is_member = order.cycle_of >= 0
    inner = np.concatenate(order.inner)
    edge_cycles = order.cycle_of[graph.upstream[inner]]
    count = len(order.cycles)
    loaded = np.array(
        [
            np.bincount(order.cycle_of[is_member], amounts[is_member], minlength=count)
            - np.bincount(edge_cycles, (amounts[graph.upstream] * share)[inner], minlength=count)
            for amounts, share in zip(exact, values, strict=True)
        ]
    )
    rounded = np.rint(loaded).astype(np.int64)
    return [
        Component(members=members, loaded=rounded[:, number], closed=closed[:, number])
        for number, members in enumerate(order.cycles)
    ]


class Contributions(NamedTuple):
    """The upstream nodes that contribute to one node, itself included, in ascending order.

    `reach` ([k, a]) is the share of a node's own cost that arrives; in a cycle it can exceed 1.
    `amounts` ([k, a]) are micro-units that add up to the loaded cost exactly.
    """

    nodes: Integers
    reach: Floats
    amounts: Integers


def contributions(graph: CostGraph, attribution: Attribution, node: int) -> Contributions:
    """The contribution of each upstream node to the loaded cost of a node."""
    shares = attribution.shares.values
    edges = np.flatnonzero((graph.upstream != graph.downstream) & (shares > 0).any(axis=0))
    reversed_graph = Adjacency(graph.nodes, graph.downstream[edges], graph.upstream[edges])
    nodes = np.flatnonzero(reversed_graph.origins(np.array([node])) >= 0)
    reach = _reach(graph, shares, edges, nodes, node)
    own = graph.costs[:, nodes]
    amounts = [
        _round_to_total(own[row] * reach[row], int(attribution.loaded[row, node]))
        for row in range(len(own))
    ]
    return Contributions(nodes, reach, np.array(amounts, dtype=np.int64).reshape(own.shape))


def _reach(graph: CostGraph, shares: Floats, edges: Integers, nodes: Integers, node: int) -> Floats:
    """[k, a] the share of each node's own cost that arrives at `node` over all paths.

    Computed in reverse: one unit that flows from `node` against the edges arrives at each node
    with exactly that share.
    """
    index = np.full(graph.nodes, -1, dtype=np.int64)
    index[nodes] = np.arange(len(nodes))
    inner_edges = edges[(index[graph.upstream[edges]] >= 0) & (index[graph.downstream[edges]] >= 0)]
    reversed_graph = replace(
        graph,
        urns=[""] * len(nodes),
        is_job=graph.is_job[nodes],
        live=graph.live[nodes],
        costs=graph.costs[:, nodes],
        upstream=index[graph.downstream[inner_edges]],
        downstream=index[graph.upstream[inner_edges]],
        explicit=np.full((1, len(inner_edges)), np.nan),
        weights=np.full((1, len(inner_edges)), np.nan),
        last_read=graph.last_read[inner_edges],
    )
    unit = np.zeros((len(graph.types), len(nodes)))
    unit[:, index[node]] = 1.0
    order = build_topology(reversed_graph.nodes, reversed_graph.upstream, reversed_graph.downstream)
    return propagate(reversed_graph, order, unit, shares[:, inner_edges])


def _round_to_total(amounts: Floats, total: int) -> Integers:
    """Round amounts so that they add up to a total, with the smallest possible errors."""
    rounded = np.rint(amounts).astype(np.int64)
    missing = total - int(rounded.sum())
    step = 1 if missing > 0 else -1
    adjustable = np.argsort(step * (rounded - amounts), kind="stable")
    while missing:
        batch = adjustable[: abs(missing)]
        rounded[batch] += step
        missing -= step * len(batch)
    return rounded


# The number of paths that are examined for each path of the result.
_PATHS_PER_RESULT: Final = 500


@dataclass(frozen=True, kw_only=True, eq=False)
class AttributionPath:
    """A path without repeated nodes from the node that causes a cost to the explained node."""

    nodes: tuple[int, ...]
    """From the origin to the explained node; only the latter for its own cost."""
    edges: tuple[int, ...]
    shares: Floats
    """[k, hops] the share of each edge."""
    amounts: Integers
    """[k] own cost of the origin times all shares on the path, in micro-units."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """Paths and remainder, which add up to the loaded cost for each cost type."""

    paths: list[AttributionPath]
    remainder: Integers
    """[k] the cost that arrives on all other paths, including repeated passes through cycles."""
    complete: bool
    """Whether all paths are listed; the remainder is then due to rounding and cycles only."""


@dataclass(frozen=True, eq=False)
class _PartialPath:
    edges: tuple[int, ...]
    start: int
    visited: frozenset[int]
    factor: Floats


def explain_paths(
    graph: CostGraph, attribution: Attribution, node: int, *, limit: int = 20
) -> Explanation:
    """The paths that contribute most to a node, at most `limit`, by best-first search."""
    search = _PathSearch(graph, attribution)
    partial_paths = search.largest(node, limit)
    paths = [search.path(partial, node) for partial in partial_paths]
    explained = sum((each.amounts for each in paths), np.zeros(len(graph.types), dtype=np.int64))
    return Explanation(
        paths=paths,
        remainder=attribution.loaded[:, node] - explained,
        complete=search.exhausted,
    )


class _PathSearch:
    """A best-first search upstream, ordered by an upper bound of the contribution of a path."""

    def __init__(self, graph: CostGraph, attribution: Attribution) -> None:
        self._graph = graph
        self._own = graph.costs.astype(np.float64)
        self._loaded = attribution.loaded.astype(np.float64)
        self._shares = attribution.shares.values
        edges = np.flatnonzero(graph.upstream != graph.downstream)
        target = graph.downstream[edges]
        self._edges = edges[stable_order(target, graph.nodes)]
        self._starts = np.concatenate(([0], np.cumsum(np.bincount(target, minlength=graph.nodes))))
        self.exhausted = False

    def largest(self, node: int, limit: int) -> list[_PartialPath]:
        sequence = count()
        start = _PartialPath((), node, frozenset([node]), np.ones(len(self._graph.types)))
        open_paths = [(-self._upper_bound(start), next(sequence), start)]
        finished: list[tuple[float, int, _PartialPath]] = []
        result: list[_PartialPath] = []
        for _ in range(_PATHS_PER_RESULT * limit):
            # A candidate is final when no open path has a larger upper bound.
            while (
                finished
                and len(result) < limit
                and (not open_paths or finished[0][0] <= open_paths[0][0])
            ):
                result.append(heapq.heappop(finished)[2])
            if not open_paths or len(result) == limit:
                break
            partial = heapq.heappop(open_paths)[2]
            amount = float(np.abs(self._amounts(partial)).sum())
            if amount:
                heapq.heappush(finished, (-amount, next(sequence), partial))
            for extension in self._extensions(partial):
                heapq.heappush(
                    open_paths, (-self._upper_bound(extension), next(sequence), extension)
                )
        while finished and len(result) < limit:
            result.append(heapq.heappop(finished)[2])
        self.exhausted = not open_paths and not finished
        return result

    def path(self, partial: _PartialPath, node: int) -> AttributionPath:
        origins = tuple(int(self._graph.upstream[edge]) for edge in partial.edges)
        return AttributionPath(
            nodes=(*origins, node),
            edges=partial.edges,
            shares=self._shares[:, list(partial.edges)],
            amounts=np.rint(self._amounts(partial)).astype(np.int64),
        )

    def _amounts(self, partial: _PartialPath) -> Floats:
        return np.multiply(self._own[:, partial.start], partial.factor)

    def _upper_bound(self, partial: _PartialPath) -> float:
        """An upper bound of the contribution of this path and all its extensions."""
        loaded, own = self._loaded[:, partial.start], self._own[:, partial.start]
        return float((np.maximum(np.abs(loaded), np.abs(own)) * partial.factor).sum())

    def _extensions(self, partial: _PartialPath) -> list[_PartialPath]:
        incoming = self._edges[self._starts[partial.start] : self._starts[partial.start + 1]]
        extensions = []
        for edge in incoming.tolist():
            origin = int(self._graph.upstream[edge])
            factor = partial.factor * self._shares[:, edge]
            if origin not in partial.visited and factor.any():
                extensions.append(
                    _PartialPath((edge, *partial.edges), origin, partial.visited | {origin}, factor)
                )
        return extensions
