"""Every way on which cost comes to a dataset, with the shares on it, largest first."""

import heapq
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np

from lumos.cost.solver.attribution import Attribution
from lumos.cost.solver.graph import CostGraph, Floats, Integers
from lumos.cost.solver.peeling import grouped

# How many ways are looked at for each one told, before the rest is told as one.
_EFFORT: Final = 500


@dataclass(frozen=True, kw_only=True, eq=False)
class CostPath:
    """A way from where cost arises to the node in question; no node stands on it twice."""

    nodes: tuple[int, ...]
    """From the origin on; the node in question is last, and alone for its own cost."""
    edges: tuple[int, ...]
    shares: Floats
    """[k, hops] the share that each edge carries."""
    amounts: Integers
    """[k] own cost of the origin times all shares on the way, in micro-units."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """Paths and remainder add up to the loaded cost, type by type."""

    paths: list[CostPath]
    remainder: Integers
    """[k] what comes on all other ways, those that go round in a cycle included."""
    complete: bool
    """Whether there is no other way, so that the remainder is but rounding and cycles."""


@dataclass(frozen=True, eq=False)
class _Way:
    edges: tuple[int, ...]
    start: int
    seen: frozenset[int]
    factor: Floats


def explain(
    graph: CostGraph, attribution: Attribution, node: int, *, limit: int = 20
) -> Explanation:
    """The paths that bring most to a node, at most `limit`, found without looking at all."""
    search = _Search(graph, attribution)
    chosen = search.largest(node, limit)
    paths = [search.path(way, node) for way in chosen]
    told = sum((each.amounts for each in paths), np.zeros(len(graph.types), dtype=np.int64))
    return Explanation(
        paths=paths,
        remainder=attribution.loaded[:, node] - told,
        complete=search.exhausted,
    )


class _Search:
    """Goes upstream from the node, always on from where most may come from."""

    def __init__(self, graph: CostGraph, attribution: Attribution) -> None:
        self._graph = graph
        self._own = graph.costs.astype(np.float64)
        self._loaded = attribution.loaded.astype(np.float64)
        self._shares = attribution.shares.values
        moving = np.flatnonzero(graph.upstream != graph.downstream)
        target = graph.downstream[moving]
        self._edges = moving[grouped(target, graph.nodes)]
        self._starts = np.concatenate(([0], np.cumsum(np.bincount(target, minlength=graph.nodes))))
        self.exhausted = False

    def largest(self, node: int, limit: int) -> list[_Way]:
        turn = count()
        start = _Way((), node, frozenset([node]), np.ones(len(self._graph.types)))
        to_follow = [(-self._most(start), next(turn), start)]
        found: list[tuple[float, int, _Way]] = []
        settled: list[_Way] = []
        for _ in range(_EFFORT * limit):
            # What is found is the largest as soon as no way that is left can bring more.
            while (
                found and len(settled) < limit and (not to_follow or found[0][0] <= to_follow[0][0])
            ):
                settled.append(heapq.heappop(found)[2])
            if not to_follow or len(settled) == limit:
                break
            way = heapq.heappop(to_follow)[2]
            amount = float(np.abs(self._amounts(way)).sum())
            if amount:
                heapq.heappush(found, (-amount, next(turn), way))
            for longer in self._longer(way):
                heapq.heappush(to_follow, (-self._most(longer), next(turn), longer))
        while found and len(settled) < limit:
            settled.append(heapq.heappop(found)[2])
        self.exhausted = not to_follow and not found
        return settled

    def path(self, way: _Way, node: int) -> CostPath:
        origins = tuple(int(self._graph.upstream[edge]) for edge in way.edges)
        return CostPath(
            nodes=(*origins, node),
            edges=way.edges,
            shares=self._shares[:, list(way.edges)],
            amounts=np.rint(self._amounts(way)).astype(np.int64),
        )

    def _amounts(self, way: _Way) -> Floats:
        return np.multiply(self._own[:, way.start], way.factor)

    def _most(self, way: _Way) -> float:
        """What may come on this way and on all that lead into it."""
        loaded, own = self._loaded[:, way.start], self._own[:, way.start]
        return float((np.maximum(np.abs(loaded), np.abs(own)) * way.factor).sum())

    def _longer(self, way: _Way) -> list[_Way]:
        into = self._edges[self._starts[way.start] : self._starts[way.start + 1]]
        longer = []
        for edge in into.tolist():
            origin = int(self._graph.upstream[edge])
            factor = way.factor * self._shares[:, edge]
            if origin not in way.seen and factor.any():
                longer.append(_Way((edge, *way.edges), origin, way.seen | {origin}, factor))
        return longer
