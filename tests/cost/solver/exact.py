"""The cost model in exact fractions and by trying everything, for graphs of a few nodes."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from lumos.cost.solver.graph import CostGraph
from lumos.model.cost import METHODS, AttributionMethod

NONE = float("nan")


@dataclass(frozen=True, kw_only=True)
class Exact:
    """One cost type, solved in fractions."""

    shares: dict[int, Fraction]
    loaded: list[Fraction]
    retained: list[Fraction]


def exact_attribution(graph: CostGraph, method: AttributionMethod, row: int) -> Exact:
    """T = c + W'T by Gaussian elimination; what nothing leaves carries nothing inside."""
    nodes = range(graph.nodes)
    shares = _closed(graph, _shares(graph, method, row))
    matrix = [[Fraction(int(at == to)) for at in nodes] for to in nodes]
    kept = [Fraction(1)] * graph.nodes
    for edge, share in shares.items():
        at, to = int(graph.upstream[edge]), int(graph.downstream[edge])
        matrix[to][at] -= share
        kept[at] -= share
    loaded = _eliminated(matrix, [Fraction(int(cost)) for cost in graph.costs[row]])
    return Exact(
        shares=shares, loaded=loaded, retained=[kept[node] * loaded[node] for node in nodes]
    )


def _shares(graph: CostGraph, method: AttributionMethod, row: int) -> dict[int, Fraction]:
    found: dict[int, Fraction] = {}
    for node in range(graph.nodes):
        edges = [
            edge
            for edge in range(graph.edges)
            if graph.upstream[edge] == node and graph.downstream[edge] != node
        ]
        given = {
            edge: Fraction(str(float(share)))
            for edge in edges
            if not np.isnan(share := graph.explicit[min(row, len(graph.explicit) - 1), edge])
        }
        left = 1 - sum(given.values(), Fraction(0))
        free = [edge for edge in edges if edge not in given]
        found |= given | _divided(graph, method, row, free, left, bool(graph.live[node]))
    return found


def _divided(
    graph: CostGraph,
    method: AttributionMethod,
    row: int,
    free: list[int],
    left: Fraction,
    live: bool,
) -> dict[int, Fraction]:
    if not free:
        return {}
    equal = {edge: left / (len(free) + live) for edge in free}
    if method == "lineage_weighted":
        weights = [graph.weights[min(row, len(graph.weights) - 1), edge] for edge in free]
        if not np.isnan(weights).any() and sum(weights) > 0:
            rest = left * len(free) / (len(free) + live)
            total = sum(Fraction(float(weight)) for weight in weights)
            return {
                edge: rest * Fraction(float(weight)) / total
                for edge, weight in zip(free, weights, strict=True)
            }
    if method == "last_touch":
        reads = {
            edge: graph.last_read[edge] for edge in free if not np.isnan(graph.last_read[edge])
        }
        last = [edge for edge, read in reads.items() if read == max(reads.values())]
        if last:
            return {edge: left / len(last) if edge in last else Fraction(0) for edge in free}
    return equal


def _closed(graph: CostGraph, shares: dict[int, Fraction]) -> dict[int, Fraction]:
    """Nothing goes along edges between nodes that reach each other and nothing else."""
    carrying = [edge for edge, share in shares.items() if share > 0]
    pairs = [(int(graph.upstream[edge]), int(graph.downstream[edge])) for edge in carrying]
    reach = [reached({node}, pairs) for node in range(graph.nodes)]
    kept = [
        1 - sum(share for edge, share in shares.items() if graph.upstream[edge] == node)
        for node in range(graph.nodes)
    ]
    ends = {
        node
        for node in range(graph.nodes)
        if all(node in reach[other] and kept[other] == 0 for other in reach[node])
    }
    return {
        edge: Fraction(0) if int(graph.upstream[edge]) in ends else share
        for edge, share in shares.items()
    }


def reached(start: Iterable[int], pairs: list[tuple[int, int]]) -> set[int]:
    """Where the pairs lead from the start, which is part of it."""
    found = set(start)
    while more := {to for at, to in pairs if at in found} - found:
        found |= more
    return found


def _eliminated(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = next(row for row in range(column, size) if rows[row][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        first = rows[column][column]
        rows[column] = [value / first for value in rows[column]]
        for row in range(size):
            factor = rows[row][column]
            if row != column and factor:
                rows[row] = [
                    value - factor * other
                    for value, other in zip(rows[row], rows[column], strict=True)
                ]
    return [row[-1] for row in rows]


def tried_savings(graph: CostGraph, removed: set[int]) -> tuple[list[int], set[int]]:
    """What removing saves by type, and what is gone, by looking who still reaches an end use."""
    pairs = list(zip(graph.upstream.tolist(), graph.downstream.tolist(), strict=True))
    backwards = [(to, at) for at, to in pairs]
    ends = set(np.flatnonzero(graph.live).tolist())
    before = reached(ends, backwards)
    left = [(at, to) for at, to in backwards if not {at, to} & removed]
    gone = removed | (before - reached(ends - removed, left))
    return [sum(int(row[node]) for node in gone) for row in graph.costs], gone


def best_retirement(graph: CostGraph, top: int) -> int:
    """The most that giving up at most `top` end uses saves, no other end use being broken."""
    pairs = list(zip(graph.upstream.tolist(), graph.downstream.tolist(), strict=True))
    ends = set(np.flatnonzero(graph.live).tolist())
    sets = (set(chosen) for size in range(top + 1) for chosen in combinations(ends, size))
    return max(
        sum(tried_savings(graph, chosen)[0])
        for chosen in sets
        if reached(chosen, pairs) & ends == chosen
    )


def random_graph(chance: random.Random, *, most: int = 9) -> tuple[CostGraph, AttributionMethod]:
    """Cycles, self-edges, jobs, end uses, shares by type, weights, times of reading, credits."""
    nodes = chance.randint(1, most)
    types = ("storage", "compute", "egress")[: chance.randint(1, 3)]
    density = chance.choice((0.1, 0.2, 0.4))
    edges = [(at, to) for at in range(nodes) for to in range(nodes) if chance.random() < density]
    chance.shuffle(edges)
    upstream = np.array([at for at, _ in edges], dtype=np.int64)
    downstream = np.array([to for _, to in edges], dtype=np.int64)
    rows = chance.choice((1, len(types)))
    live = [
        chance.random() < 0.2 if at in upstream else chance.random() < 0.8 for at in range(nodes)
    ]
    known = chance.choice((0.0, 0.7, 1.0))
    weights = [
        [chance.choice((0, 1, 2, 1000)) if chance.random() < known else NONE for _ in edges]
        for _ in range(chance.choice((1, len(types))))
    ]
    graph = CostGraph(
        urns=[f"n{node}" for node in range(nodes)],
        types=types,
        is_job=np.array([chance.random() < 0.3 for _ in range(nodes)]),
        costs=np.array([[_cost(chance) for _ in range(nodes)] for _ in types], dtype=np.int64),
        live=np.array(live),
        upstream=upstream,
        downstream=downstream,
        explicit=np.array([_explicit(chance, upstream, downstream) for _ in range(rows)]),
        weights=np.array(weights, dtype=np.float64),
        last_read=np.array([chance.choice((NONE, 1.0, 2.0, 3.0)) for _ in edges]),
    )
    return graph, chance.choice(METHODS)


def _cost(chance: random.Random) -> int:
    return chance.choice((0, 1, 1_000_000, chance.randint(-5_000_000, 90_000_000_000)))


def _explicit(chance: random.Random, upstream: np.ndarray, downstream: np.ndarray) -> list[float]:
    """Shares in tenths that add up to at most one for each node."""
    often = chance.choice((0.0, 0.3, 1.0))
    left: dict[int, int] = {}
    found = []
    for at, to in zip(upstream.tolist(), downstream.tolist(), strict=True):
        if chance.random() >= often:
            found.append(NONE)
            continue
        tenths = chance.randint(0, left.get(at, 10))
        if at != to:
            left[at] = left.get(at, 10) - tenths
        found.append(tenths / 10)
    return found
