"""Where ways lead from some nodes, along the edges or against them."""

import numpy as np

from lumos.cost.solver.graph import Bools, Integers
from lumos.cost.solver.peeling import grouped, spans


class Ways:
    """Edges from `at` to `to`, to be followed from any nodes."""

    def __init__(self, nodes: int, at: Integers, to: Integers) -> None:
        self._targets = to[grouped(at, nodes)]
        self._starts = np.concatenate(([0], np.cumsum(np.bincount(at, minlength=nodes))))

    def origins(self, start: Integers, *, closed: Bools | None = None) -> Integers:
        """For each node one of `start` that leads to it, itself if it is one, else -1.

        No way leads through `closed` nodes, nor starts there.
        """
        origin = np.full(len(self._starts) - 1, -1, dtype=np.int64)
        frontier = start if closed is None else start[~closed[start]]
        origin[frontier] = frontier
        while len(frontier):
            targets, steps = self.next_to(frontier)
            free = origin[targets] < 0
            if closed is not None:
                free &= ~closed[targets]
            targets = targets[free]
            origin[targets] = np.repeat(origin[frontier], steps)[free]
            # Of the ways to one node, the one that was written last stands for all.
            turn = np.arange(len(targets))
            order = np.empty(len(origin), dtype=np.int64)
            order[targets] = turn
            frontier = targets[order[targets] == turn]
        return origin

    def next_to(self, nodes: Integers) -> tuple[Integers, Integers]:
        """Where the edges of these nodes lead, in their order, and how many each of them has."""
        first = self._starts[nodes]
        steps = self._starts[nodes + 1] - first
        return self._targets[spans(first, steps)], steps
