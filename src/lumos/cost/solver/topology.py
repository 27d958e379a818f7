"""Order of the cost graph: levels, strongly connected components and reachability."""

from dataclasses import dataclass

import numpy as np

from lumos.cost.solver.graph import Bools, Integers


class LevelPeeling:
    """The levels of `edges` by topological sorting.

    `on_cycle` are the nodes on cycles or downstream of them.
    """

    def __init__(
        self, present: Bools, upstream: Integers, downstream: Integers, edges: Integers
    ) -> None:
        nodes = len(present)
        source, target = upstream[edges], downstream[edges]
        order = stable_order(source, nodes)
        target, edges = target[order], edges[order]
        starts = np.concatenate(([0], np.cumsum(np.bincount(source, minlength=nodes))))
        in_degrees = np.bincount(target, minlength=nodes)
        mark = np.empty(nodes, dtype=np.int64)
        frontier = np.flatnonzero((in_degrees == 0) & present)
        self.levels: list[tuple[Integers, Integers]] = []
        while len(frontier):
            first = starts[frontier]
            leaving = spans(first, starts[frontier + 1] - first)
            self.levels.append((frontier, edges[leaving]))
            reached = target[leaving]
            np.subtract.at(in_degrees, reached, 1)
            free = reached[in_degrees[reached] == 0]
            sequence = np.arange(len(free))
            mark[free] = sequence
            frontier = free[mark[free] == sequence]
        self.on_cycle: Bools = in_degrees > 0
        self.complete = not self.on_cycle.any()


def spans(starts: Integers, lengths: Integers) -> Integers:
    """The concatenated ranges that begin at each start with the given lengths."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)


def stable_order(keys: Integers, bound: int) -> Integers:
    """The stable sort order of the keys; two radix passes over 16 bits beat one sort over 64."""
    order = np.argsort((keys & 0xFFFF).astype(np.uint16), kind="stable")
    shift = 16
    while bound >> shift:
        digits = ((keys[order] >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digits, kind="stable")]
        shift += 16
    return order


class Adjacency:
    """Adjacency lists of edges from `at` to `to`."""

    def __init__(self, nodes: int, at: Integers, to: Integers) -> None:
        self._targets = to[stable_order(at, nodes)]
        self._starts = np.concatenate(([0], np.cumsum(np.bincount(at, minlength=nodes))))

    def origins(self, start: Integers, *, closed: Bools | None = None) -> Integers:
        """For each node one of `start` from which it is reachable, else -1.

        No path passes through `closed` nodes or starts there.
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
            # Of several edges to one node, the last one counts.
            sequence = np.arange(len(targets))
            order = np.empty(len(origin), dtype=np.int64)
            order[targets] = sequence
            frontier = targets[order[targets] == sequence]
        return origin

    def next_to(self, nodes: Integers) -> tuple[Integers, Integers]:
        """The targets of the edges of these nodes, in order, and the number of edges of each."""
        first = self._starts[nodes]
        steps = self._starts[nodes + 1] - first
        return self._targets[spans(first, steps)], steps


def strong_components(present: Bools, upstream: Integers, downstream: Integers) -> Integers:
    """A label for each node, equal for nodes of the same strongly connected component.

    Most real cycles are pairs that point at each other. These are merged for all nodes at once,
    so that little is left for the search node by node.
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
        merged = _connected_groups(nodes, source[mutual], target[mutual])
        labels = merged[labels]
        source, target = merged[source], merged[target]
        moving = source != target
        source, target = source[moving], target[moving]
    searched = _tarjan(nodes, source, target)
    return searched[labels]


def _between_cycles(
    present: Bools, source: Integers, target: Integers
) -> tuple[Integers, Integers]:
    """The edges on cycles or on paths between cycles."""
    for _ in range(2):
        on_cycle = LevelPeeling(present, source, target, np.arange(len(source))).on_cycle
        is_kept = on_cycle[source] & on_cycle[target]
        source, target = target[is_kept], source[is_kept]
    return source, target


def _connected_groups(nodes: int, one: Integers, other: Integers) -> Integers:
    """The smallest node of each connected group."""
    smallest = np.arange(nodes)
    while True:
        before = smallest.copy()
        low = np.minimum(before[one], before[other])
        np.minimum.at(smallest, before[one], low)
        np.minimum.at(smallest, before[other], low)
        smallest = smallest[smallest]
        if (smallest == before).all():
            return smallest


def _tarjan(nodes: int, upstream: Integers, downstream: Integers) -> Integers:
    """Tarjan's algorithm with an explicit stack; a label is a member of its component."""
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
                # A visited target has its final `low` value by now.
                lowest = min(lowest, low[target])
                at += 1
            position[node] = at
            low[node] = lowest
            if at < end:
                continue
            path.pop()
            if lowest == found[node]:
                members = _pop_component(unassigned, node)
                for each in members:
                    low[each] = done
                labels[members] = node
    return labels


def _pop_component(stack: list[int], down_to: int) -> list[int]:
    first = len(stack) - 1
    while stack[first] != down_to:
        first -= 1
    members = stack[first:]
    del stack[first:]
    return members


@dataclass(frozen=True, kw_only=True, eq=False)
class TopologyLevel:
    """Nodes that depend only on nodes of earlier levels or of their own cycle."""

    nodes: Integers
    """Nodes outside of cycles, and one representative of each cycle."""
    cycles: Integers
    """The cycles on this level."""
    edges: Integers
    """The edges that leave the level, as edge numbers of the graph."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Topology:
    """Levels in topological order, and the members of each cycle."""

    levels: list[TopologyLevel]
    cycles: list[Integers]
    cycle_of: Integers
    """[n] the cycle of a node, or -1."""
    inner: list[Integers]
    """The edges inside of each cycle, without self-edges."""


def build_topology(nodes: int, upstream: Integers, downstream: Integers) -> Topology:
    """The levels and cycles of the graph, ignoring self-edges."""
    moving = np.flatnonzero(upstream != downstream)
    cycle_of = np.full(nodes, -1, dtype=np.int64)
    peeled = LevelPeeling(np.ones(nodes, dtype=np.bool_), upstream, downstream, moving)
    if peeled.complete:
        return _assemble(peeled, [], cycle_of, [])
    cycles = _cycles(peeled.on_cycle, upstream, downstream)
    representative = np.arange(nodes)
    for number, members in enumerate(cycles):
        cycle_of[members] = number
        representative[members] = members[0]
    source, target = representative[upstream], representative[downstream]
    between = np.flatnonzero(source != target)
    peeled = LevelPeeling(representative == np.arange(nodes), source, target, between)
    within = moving[source[moving] == target[moving]]
    edge_cycles = cycle_of[upstream[within]]
    bounds = np.cumsum(np.bincount(edge_cycles, minlength=len(cycles)))[:-1]
    inner = np.split(within[stable_order(edge_cycles, len(cycles))], bounds)
    return _assemble(peeled, cycles, cycle_of, inner)


def _cycles(on_cycle: Bools, upstream: Integers, downstream: Integers) -> list[Integers]:
    """The members of each component with more than one node."""
    edges = on_cycle[upstream] & on_cycle[downstream] & (upstream != downstream)
    labels = strong_components(on_cycle, upstream[edges], downstream[edges])
    sizes = np.bincount(labels, minlength=len(on_cycle))
    members = np.flatnonzero(sizes[labels] > 1)
    members = members[stable_order(labels[members], len(on_cycle))]
    return np.split(members, np.flatnonzero(np.diff(labels[members])) + 1)


def _assemble(
    peeled: LevelPeeling, cycles: list[Integers], cycle_of: Integers, inner: list[Integers]
) -> Topology:
    levels = []
    for nodes, edges in peeled.levels:
        of_node = cycle_of[nodes]
        levels.append(TopologyLevel(nodes=nodes, cycles=of_node[of_node >= 0], edges=edges))
    return Topology(levels=levels, cycles=cycles, cycle_of=cycle_of, inner=inner)
