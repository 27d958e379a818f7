"""Makes a large cycle small: nodes with few neighbours are taken out, one after the other."""

import heapq

import numpy as np

from lumos.cost.solver.graph import Floats, Integers


class Elimination:
    """Nodes of one cycle, of which those are taken out that cause few new edges.

    What a node passes on goes straight from those before it to those behind it, so that what is
    left has the same solution. Of a ring nothing is left, which iteration would have to go round
    from node to node.
    """

    def __init__(self, size: int, at: Integers, to: Integers, share: Floats) -> None:
        self._behind: list[dict[int, float]] = [{} for _ in range(size)]
        self._before: list[set[int]] = [set() for _ in range(size)]
        for source, target, carried in zip(at.tolist(), to.tolist(), share.tolist(), strict=True):
            if carried:
                self._behind[source][target] = carried
                self._before[target].add(source)
        self._taken: list[tuple[int, float, list[tuple[int, float]]]] = []

    def reduce(self, inflow: list[float], *, most: int) -> Integers:
        """Takes out nodes while none of them causes more than `most` edges; gives those left.

        `inflow` is changed to what comes to the nodes that are left.
        """
        waiting = [(self._effort(node), node) for node in range(len(inflow))]
        heapq.heapify(waiting)
        left = [True] * len(inflow)
        while waiting:
            effort, node = heapq.heappop(waiting)
            if not left[node] or effort != self._effort(node):
                continue
            if effort > most:
                break
            left[node] = False
            touched = self._take_out(node, inflow)
            for other in touched:
                heapq.heappush(waiting, (self._effort(other), other))
        return np.flatnonzero(left)

    def remaining(self, left: Integers) -> tuple[Integers, Integers, Floats]:
        """The edges among the nodes that are left, by their places among these."""
        place = {node: number for number, node in enumerate(left.tolist())}
        edges = [
            (place[node], place[other], carried)
            for node in left.tolist()
            for other, carried in self._behind[node].items()
        ]
        at, to, share = zip(*edges, strict=True) if edges else ((), (), ())
        return np.array(at, np.int64), np.array(to, np.int64), np.array(share, np.float64)

    def restore(self, loaded: list[float]) -> None:
        """Puts in the amounts of nodes that were taken out; the others, and inflows, are there."""
        for node, scale, sources in reversed(self._taken):
            amount = loaded[node]
            for source, carried in sources:
                amount += carried * loaded[source]
            loaded[node] = amount * scale

    def _effort(self, node: int) -> int:
        return len(self._before[node]) * len(self._behind[node])

    def _take_out(self, node: int, inflow: list[float]) -> set[int]:
        behind = self._behind[node]
        before = self._before[node]
        scale = 1.0 / (1.0 - behind.pop(node, 0.0))
        before.discard(node)
        sources = [(source, self._behind[source].pop(node)) for source in before]
        self._taken.append((node, scale, sources))
        for target, carried in behind.items():
            self._before[target].discard(node)
            inflow[target] += inflow[node] * scale * carried
        for source, arriving in sources:
            passed = self._behind[source]
            for target, carried in behind.items():
                passed[target] = passed.get(target, 0.0) + arriving * scale * carried
                self._before[target].add(source)
        return before.union(behind)
