"""What part of a node's loaded cost each of its readers carries, and what stays with it."""

from dataclasses import dataclass
from typing import Final, assert_never

import numpy as np

from lumos.cost.solver.graph import Bools, CostGraph, Floats, Integers, Method
from lumos.errors import MisuseError

# Shares are decimals that people write; their sums in floats are off by less than this.
NOISE: Final = 1e-9
# Sums of weights beyond these, or one divided by them, may be infinite.
_LARGEST: Final = 1e300
_SMALLEST: Final = 1e-300


class InvalidShare(MisuseError):
    """Shares that would carry more than there is, or less than nothing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shares:
    """Shares by cost type; where no type differs from another, the rows are one in memory."""

    values: Floats
    """[k, m] of what is upstream, carried downstream."""
    kept: Floats
    """[k, n] what stays."""
    assumed: Bools
    """[k, m] whether the share is an equal one for want of anything known."""

    @property
    def uniform(self) -> bool:
        """Whether all cost types are known to be divided the same way."""
        return len(self.values) == 1 or self.values.strides[0] == 0


def shares(graph: CostGraph, method: Method) -> Shares:
    """Explicit shares first; the method divides what they leave among the other edges.

    A live end use that has readers counts as one reader more.
    """
    weighted = method == "lineage_weighted"
    rows = max(len(graph.explicit), len(graph.weights) if weighted else 1)
    values = np.empty((rows, graph.edges))
    kept = np.empty((rows, graph.nodes))
    assumed = np.zeros((rows, graph.edges), dtype=np.bool_)
    moving = graph.upstream != graph.downstream
    nothing_set = _Division(graph, moving, np.ones(graph.nodes))
    for row in range(rows):
        given = graph.explicit[min(row, len(graph.explicit) - 1)]
        set_by_people = ~np.isnan(given) & moving
        division = nothing_set
        values[row] = 0.0
        if set_by_people.any():
            values[row] = np.where(set_by_people, given, 0.0)
            left = _left(graph, values[row], row)
            division = _Division(graph, moving & ~set_by_people, left)
        match method:
            case "equal_split":
                kept[row] = division.equally(values[row])
            case "lineage_weighted":
                weights = graph.weights[min(row, len(graph.weights) - 1)]
                kept[row] = division.by_weight(weights, values[row], assumed[row])
            case "last_touch":
                kept[row] = division.by_last_read(values[row], assumed[row])
            case _:
                assert_never(method)
    types = len(graph.types)
    return Shares(
        values=np.broadcast_to(values, (types, graph.edges)),
        kept=np.broadcast_to(kept, (types, graph.nodes)),
        assumed=np.broadcast_to(assumed, (types, graph.edges)),
    )


class _Division:
    """Divides what is left of each node among its free edges; gives what the nodes keep."""

    def __init__(self, graph: CostGraph, free: Bools, left: Floats) -> None:
        self._graph = graph
        # A slice of everything spares copies of the largest arrays there are.
        self._free: Integers | slice = slice(None) if free.all() else np.flatnonzero(free)
        self._left = left
        self._source = graph.upstream[self._free]
        self._readers = np.bincount(self._source, minlength=graph.nodes)
        parts = self._readers + graph.live
        self._equal = np.divide(left, parts, out=np.zeros(graph.nodes), where=parts > 0)
        without = np.where(self._readers == 0, left, 0.0)
        self._kept = np.where(graph.live & (self._readers > 0), self._equal, without)

    def equally(self, values: Floats) -> Floats:
        """Every free edge the same."""
        values[self._free] = self._equal.take(self._source)
        return self._kept

    def by_weight(self, all_weights: Floats, values: Floats, assumed: Bools) -> Floats:
        """By weight, and equally where one is unknown: a sum with nan in it is nan."""
        weights = all_weights[self._free]
        if (weights < 0).any() or np.isinf(weights).any():
            raise InvalidShare("Weights of edges must be finite and not negative.")
        sums = np.bincount(self._source, weights, minlength=self._graph.nodes)
        if ((sums > _LARGEST) | ((sums > 0) & (sums < _SMALLEST))).any():
            weights = self._of_largest(weights)
            sums = np.bincount(self._source, weights, minlength=self._graph.nodes)
        unknown = ~(sums > 0) & (self._readers > 0)
        shared = self._left - self._kept
        scale = np.divide(shared, sums, out=np.zeros(len(sums)), where=sums > 0)
        values[self._free] = scale.take(self._source) * weights
        self._assume(unknown, values, assumed)
        return self._kept

    def _of_largest(self, weights: Floats) -> Floats:
        """Weights as parts of the largest of their node, whose sums are no extreme floats."""
        largest = np.zeros(self._graph.nodes)
        np.fmax.at(largest, self._source, weights)
        return np.divide(
            weights, largest[self._source], out=weights.copy(), where=largest[self._source] > 0
        )

    def by_last_read(self, values: Floats, assumed: Bools) -> Floats:
        """All to the edge that was read last; those read at the same moment share it."""
        nodes = self._graph.nodes
        times = self._graph.last_read[self._free]
        times = np.where(np.isnan(times), -np.inf, times)
        latest = np.full(nodes, -np.inf)
        np.maximum.at(latest, self._source, times)
        unknown = np.isneginf(latest) & (self._readers > 0)
        last = (times == latest[self._source]) & ~unknown[self._source]
        count = np.bincount(self._source[last], minlength=nodes)
        values[self._free] = last * (self._left / np.maximum(count, 1))[self._source]
        self._assume(unknown, values, assumed)
        return np.where(unknown | (self._readers == 0), self._kept, 0.0)

    def _assume(self, unknown: Bools, values: Floats, assumed: Bools) -> None:
        if unknown.any():
            instead = unknown[self._source]
            equal = self._equal[self._source]
            values[self._free] = np.where(instead, equal, values[self._free])
            # A single reader carries the same whatever it reads.
            assumed[self._free] = instead & (self._readers > 1)[self._source]


def _left(graph: CostGraph, values: Floats, row: int) -> Floats:
    """What explicit shares leave of each node; noise of sums is taken for nothing."""
    wrong = (values < 0) | (values > 1 + NOISE)
    if wrong.any():
        edge = int(np.argmax(wrong))
        raise InvalidShare(
            f"The share {values[edge]:g} of the edge {graph.urns[graph.upstream[edge]]} -> "
            f"{graph.urns[graph.downstream[edge]]} must be a number from 0 to 1, such as 0.6."
        )
    taken = np.bincount(graph.upstream, values, minlength=graph.nodes)
    if (taken > 1 + NOISE).any():
        node = int(np.argmax(taken))
        differs = f" of {graph.types[row]} cost" if len(graph.explicit) > 1 else ""
        raise InvalidShare(
            f"The shares{differs} on the edges out of {graph.urns[node]} add up to "
            f"{taken[node]:.6g}. They must add up to at most 1."
        )
    left: Floats = np.subtract(1.0, taken, dtype=np.float64)
    whole = left < NOISE
    if whole.any():
        # What is taken for nothing must not get lost: the shares become exactly all there is.
        values /= np.where(whole, taken, 1.0)[graph.upstream]
    left[whole] = 0.0
    return left
