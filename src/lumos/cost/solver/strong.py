"""Strong components: which nodes lead to each other."""

import numpy as np

from lumos.cost.solver.graph import Bools, Integers
from lumos.cost.solver.peeling import Peeling


def strong_components(present: Bools, upstream: Integers, downstream: Integers) -> Integers:
    """A label for each node, the same for those that lead to each other.

    Pairs that point at each other are most cycles of real estates. They are merged for all nodes
    at once, so that the search that goes node by node has little left to do.
    """
    nodes = len(present)
    labels = np.arange(nodes)
    source, target = upstream, downstream
    while True:
        source, target = _between_cycles(present, source, target)
        keys = source * nodes + target
        mutual = np.isin(keys, target * nodes + source)
        if not mutual.any():
            break
        merged = _smallest(nodes, source[mutual], target[mutual])
        labels = merged[labels]
        source, target = merged[source], merged[target]
        moving = source != target
        source, target = source[moving], target[moving]
    searched = _searched(nodes, source, target)
    return searched[labels]


def _between_cycles(
    present: Bools, source: Integers, target: Integers
) -> tuple[Integers, Integers]:
    """The edges on cycles or on ways from one to another."""
    for _ in range(2):
        left = Peeling(present, source, target, np.arange(len(source))).left
        stays = left[source] & left[target]
        source, target = target[stays], source[stays]
    return source, target


def _smallest(nodes: int, one: Integers, other: Integers) -> Integers:
    """The smallest node of each group that links hold together."""
    smallest = np.arange(nodes)
    while True:
        before = smallest.copy()
        low = np.minimum(before[one], before[other])
        np.minimum.at(smallest, before[one], low)
        np.minimum.at(smallest, before[other], low)
        smallest = smallest[smallest]
        if (smallest == before).all():
            return smallest


def _searched(nodes: int, upstream: Integers, downstream: Integers) -> Integers:
    """Tarjan's search, with a stack of its own; a label is a member of its component."""
    labels = np.arange(nodes)
    counts = np.bincount(upstream, minlength=nodes)
    ends = np.cumsum(counts)
    targets: list[int] = downstream[np.argsort(upstream, kind="stable")].tolist()
    last: list[int] = ends.tolist()
    position: list[int] = (ends - counts).tolist()
    found = [0] * nodes
    low = [0] * nodes
    done = nodes + 1
    counter = 0
    unassigned: list[int] = []
    for root in np.unique(upstream).tolist():
        path = [] if found[root] else [root]
        while path:
            node = path[-1]
            if not found[node]:
                counter += 1
                found[node] = low[node] = counter
                unassigned.append(node)
            lowest = low[node]
            at, end = position[node], last[node]
            while at < end:
                target = targets[at]
                if not found[target]:
                    path.append(target)
                    break
                # A node that was entered from here has told by now what it leads back to.
                lowest = min(lowest, low[target])
                at += 1
            position[node] = at
            low[node] = lowest
            if at < end:
                continue
            path.pop()
            if lowest == found[node]:
                members = _popped(unassigned, node)
                for each in members:
                    low[each] = done
                labels[members] = node
    return labels


def _popped(stack: list[int], down_to: int) -> list[int]:
    first = len(stack) - 1
    while stack[first] != down_to:
        first -= 1
    members = stack[first:]
    del stack[first:]
    return members
