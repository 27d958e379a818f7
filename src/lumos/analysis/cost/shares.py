"""What part of a node's loaded cost each of its readers carries, and what stays with it."""

from dataclasses import dataclass
from typing import Final, assert_never

import numpy as np

from lumos.analysis.cost.graph import Bools, CostGraph, Floats, Integers, Method
from lumos.errors import MisuseError

# Shares are decimals that people write; their sums in floats are off by less than this.
NOISE: Final = 1e-9


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
    division = _Division(graph, method)
    found = [division.of_type(row) for row in range(rows)]
    types = len(graph.types)
    return Shares(
        values=np.broadcast_to(np.array([each[0] for each in found]), (types, graph.edges)),
        kept=np.broadcast_to(np.array([each[1] for each in found]), (types, graph.nodes)),
        assumed=np.broadcast_to(np.array([each[2] for each in found]), (types, graph.edges)),
    )


class _Division:
    """Divides one cost type after the other; what they have in common is counted once."""

    def __init__(self, graph: CostGraph, method: Method) -> None:
        self._graph = graph
        self._method = method
        self._moving = graph.upstream != graph.downstream
        self._none_free = np.zeros(graph.edges, dtype=np.bool_)

    def of_type(self, row: int) -> tuple[Floats, Floats, Bools]:
        graph = self._graph
        given = graph.explicit[min(row, len(graph.explicit) - 1)]
        set_by_people = ~np.isnan(given) & self._moving
        values = np.where(set_by_people, given, 0.0)
        left = self._left(values, row) if set_by_people.any() else np.ones(graph.nodes)
        free = np.flatnonzero(self._moving & ~set_by_people)
        source = graph.upstream[free]
        readers = np.bincount(source, minlength=graph.nodes)
        parts = readers + graph.live
        each = np.divide(left, parts, out=np.zeros(graph.nodes), where=parts > 0)
        kept = np.where(readers == 0, left, np.where(graph.live, each, 0.0))
        match self._method:
            case "equal_split":
                values[free] = each[source]
                return values, kept, self._none_free
            case "lineage_weighted":
                weights = graph.weights[min(row, len(graph.weights) - 1)][free]
                portion, unknown = self._by_weight(source, weights)
                shared = (left - kept)[source] * portion
            case "last_touch":
                portion, unknown = self._by_last_read(source, graph.last_read[free])
                kept = np.where(unknown | (readers == 0), kept, 0.0)
                shared = left[source] * portion
            case _:
                assert_never(self._method)
        values[free] = np.where(unknown[source], each[source], shared)
        assumed = self._none_free.copy()
        assumed[free] = (unknown & (readers > 1))[source]
        return values, kept, assumed

    def _left(self, values: Floats, row: int) -> Floats:
        """What explicit shares leave of each node; noise of sums is taken for nothing."""
        graph = self._graph
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
        over = taken > 1
        if over.any():
            values /= np.where(over, taken, 1.0)[graph.upstream]
        left: Floats = np.subtract(1.0, taken, dtype=np.float64)
        left[left < NOISE] = 0.0
        return left

    def _by_weight(self, source: Integers, weights: Floats) -> tuple[Floats, Bools]:
        """The portion of each edge among those of its source; a sum of nan is an unknown one."""
        known = ~np.isnan(weights)
        if (~np.isfinite(weights) & known).any() or (weights[known] < 0).any():
            raise InvalidShare("Weights of edges must be finite and not negative.")
        sums = np.bincount(source, weights, minlength=self._graph.nodes)
        unknown = ~(sums > 0)
        return weights / np.where(unknown, 1.0, sums)[source], unknown

    def _by_last_read(self, source: Integers, read: Floats) -> tuple[Floats, Bools]:
        """All to the edge that was read last; those read at the same moment share it."""
        times = np.where(np.isnan(read), -np.inf, read)
        latest = np.full(self._graph.nodes, -np.inf)
        np.maximum.at(latest, source, times)
        unknown = np.isneginf(latest)
        last = (times == latest[source]) & ~unknown[source]
        count = np.bincount(source[last], minlength=self._graph.nodes)
        return last / np.maximum(count, 1)[source], unknown
