"""Peeling a graph off by levels: again and again what nothing points to any more."""

import numpy as np

from lumos.cost.solver.graph import Bools, Integers


class Peeling:
    """The levels of `edges`, and the nodes that are left: those on a cycle or behind one."""

    def __init__(
        self, present: Bools, upstream: Integers, downstream: Integers, edges: Integers
    ) -> None:
        nodes = len(present)
        source, target = upstream[edges], downstream[edges]
        order = grouped(source, nodes)
        target, edges = target[order], edges[order]
        starts = np.concatenate(([0], np.cumsum(np.bincount(source, minlength=nodes))))
        waiting = np.bincount(target, minlength=nodes)
        mark = np.empty(nodes, dtype=np.int64)
        frontier = np.flatnonzero((waiting == 0) & present)
        self.levels: list[tuple[Integers, Integers]] = []
        while len(frontier):
            first = starts[frontier]
            leaving = spans(first, starts[frontier + 1] - first)
            self.levels.append((frontier, edges[leaving]))
            reached = target[leaving]
            np.subtract.at(waiting, reached, 1)
            free = reached[waiting[reached] == 0]
            turn = np.arange(len(free))
            mark[free] = turn
            frontier = free[mark[free] == turn]
        self.left: Bools = waiting > 0
        self.complete = not self.left.any()


def spans(starts: Integers, lengths: Integers) -> Integers:
    """The numbers from each start on, as many as its length says, one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)


def grouped(keys: Integers, bound: int) -> Integers:
    """The order that sorts the keys, stable; two passes over 16 bits beat one over 64."""
    order = np.argsort((keys & 0xFFFF).astype(np.uint16), kind="stable")
    shift = 16
    while bound >> shift:
        digits = ((keys[order] >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digits, kind="stable")]
        shift += 16
    return order
