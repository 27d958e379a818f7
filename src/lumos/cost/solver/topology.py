"""Order of the cost graph: levels, strongly connected components and reachability."""

from dataclasses import dataclass

import numpy as np

from lumos.cost.solver.graph import Bools, Integers


class LevelPeeling:
    """Topological levels of nodes with their outgoing edges; levels follow their upstream nodes.

    `on_cycle` marks the nodes on cycles or downstream of them, which have no level.
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
        last_position = np.empty(nodes, dtype=np.int64)
        frontier = np.flatnonzero((in_degrees == 0) & present)
        self.levels: list[tuple[Integers, Integers]] = []
        while len(frontier):
            first = starts[frontier]
            outgoing = concatenate_ranges(first, starts[frontier + 1] - first)
            self.levels.append((frontier, edges[outgoing]))
            reached = target[outgoing]
            np.subtract.at(in_degrees, reached, 1)
            ready = reached[in_degrees[reached] == 0]
            sequence = np.arange(len(ready))
            last_position[ready] = sequence
            frontier = ready[last_position[ready] == sequence]
        self.on_cycle: Bools = in_degrees > 0
        self.complete = not self.on_cycle.any()


def concatenate_ranges(starts: Integers, lengths: Integers) -> Integers:
    """The concatenated ranges with the given starts and lengths."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)


def stable_order(keys: Integers, bound: int) -> Integers:
    """The stable sort order of keys up to `bound`; a radix sort by 16 bits is faster here."""
    order = np.argsort((keys & 0xFFFF).astype(np.uint16), kind="stable")
    shift = 16
    while bound >> shift:
        digits = ((keys[order] >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digits, kind="stable")]
        shift += 16
    return order


class Adjacency:
    """Adjacency lists of edges from `sources` to `targets`."""

    def __init__(self, nodes: int, sources: Integers, targets: Integers) -> None:
        self._targets = targets[stable_order(sources, nodes)]
        self._starts = np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=nodes))))

    def origins(self, start: Integers, *, closed: Bools | None = None) -> Integers:
        """For each node, a node of `start` from which it can be reached, or -1.

        No path passes through `closed` nodes or starts there.
        """
        origin = np.full(len(self._starts) - 1, -1, dtype=np.int64)
        frontier = start if closed is None else start[~closed[start]]
        origin[frontier] = frontier
        while len(frontier):
            targets, counts = self.edges_from(frontier)
            is_new = origin[targets] < 0
            if closed is not None:
                is_new &= ~closed[targets]
            targets = targets[is_new]
            origin[targets] = np.repeat(origin[frontier], counts)[is_new]
            # A node that several edges reach must occur once in the frontier.
            sequence = np.arange(len(targets))
            order = np.empty(len(origin), dtype=np.int64)
            order[targets] = sequence
            frontier = targets[order[targets] == sequence]
        return origin

    def edges_from(self, nodes: Integers) -> tuple[Integers, Integers]:
        """The targets of all edges of these nodes, and the number of edges of each node."""
        first = self._starts[nodes]
        counts = self._starts[nodes + 1] - first
        return self._targets[concatenate_ranges(first, counts)], counts


def strong_components(present: Bools, upstream: Integers, downstream: Integers) -> Integers:
    """A label for each node, equal for nodes of the same strongly connected component.

    Most cycles in practice are pairs of nodes with edges in both directions. These are merged for
    all nodes at once; Tarjan's slower algorithm only has to search the remaining nodes.
    """
    nodes = len(present)
    labels = np.arange(nodes)
    source, target = upstream, downstream
    while True:
        source, target = _between_cycles(present, source, target)
        keys = source * nodes + target
        is_mutual = np.isin(keys, target * nodes + source)
        if not is_mutual.any():
            break
        merged = _connected_groups(nodes, source[is_mutual], target[is_mutual])
        labels = merged[labels]
        source, target = merged[source], merged[target]
        is_edge = source != target
        source, target = source[is_edge], target[is_edge]
    components = _label_components(nodes, source, target)
    return components[labels]


def _between_cycles(
    present: Bools, source: Integers, target: Integers
) -> tuple[Integers, Integers]:
    """The edges on cycles or on paths between cycles."""
    for _ in range(2):
        on_cycle = LevelPeeling(present, source, target, np.arange(len(source))).on_cycle
        is_inside = on_cycle[source] & on_cycle[target]
        source, target = target[is_inside], source[is_inside]
    return source, target


def _connected_groups(nodes: int, first: Integers, second: Integers) -> Integers:
    """For each node, the smallest node of its connected group."""
    smallest = np.arange(nodes)
    while True:
        before = smallest.copy()
        smaller = np.minimum(before[first], before[second])
        np.minimum.at(smallest, before[first], smaller)
        np.minimum.at(smallest, before[second], smaller)
        smallest = smallest[smallest]
        if (smallest == before).all():
            return smallest


def _label_components(nodes: int, upstream: Integers, downstream: Integers) -> Integers:
    """Tarjan's algorithm with an explicit stack; a label is a member of its component."""
    labels = np.arange(nodes)
    counts = np.bincount(upstream, minlength=nodes)
    ends = np.cumsum(counts)
    targets: list[int] = downstream[np.argsort(upstream, kind="stable")].tolist()
    edge_ends: list[int] = ends.tolist()
    next_edges: list[int] = (ends - counts).tolist()
    visit_numbers = [0] * nodes
    low = [0] * nodes
    assigned = nodes + 1
    counter = 0
    unassigned: list[int] = []
    for root in np.unique(upstream).tolist():
        path = [] if visit_numbers[root] else [root]
        while path:
            node = path[-1]
            if not visit_numbers[node]:
                counter += 1
                visit_numbers[node] = low[node] = counter
                unassigned.append(node)
            lowest = low[node]
            next_edge, edge_end = next_edges[node], edge_ends[node]
            while next_edge < edge_end:
                target = targets[next_edge]
                if not visit_numbers[target]:
                    path.append(target)
                    break
                # A visited target has its final `low` value by now.
                lowest = min(lowest, low[target])
                next_edge += 1
            next_edges[node] = next_edge
            low[node] = lowest
            if next_edge < edge_end:
                continue
            path.pop()
            if lowest == visit_numbers[node]:
                members = _pop_component(unassigned, node)
                for each in members:
                    low[each] = assigned
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
    edges = np.flatnonzero(upstream != downstream)
    cycle_of = np.full(nodes, -1, dtype=np.int64)
    peeling = LevelPeeling(np.ones(nodes, dtype=np.bool_), upstream, downstream, edges)
    if peeling.complete:
        return _assemble(peeling, [], cycle_of, [])
    cycles = _cycles(peeling.on_cycle, upstream, downstream)
    representative = np.arange(nodes)
    for number, members in enumerate(cycles):
        cycle_of[members] = number
        representative[members] = members[0]
    source, target = representative[upstream], representative[downstream]
    outer_edges = np.flatnonzero(source != target)
    peeling = LevelPeeling(representative == np.arange(nodes), source, target, outer_edges)
    inner_edges = edges[source[edges] == target[edges]]
    edge_cycles = cycle_of[upstream[inner_edges]]
    bounds = np.cumsum(np.bincount(edge_cycles, minlength=len(cycles)))[:-1]
    inner = np.split(inner_edges[stable_order(edge_cycles, len(cycles))], bounds)
    return _assemble(peeling, cycles, cycle_of, inner)


def _cycles(on_cycle: Bools, upstream: Integers, downstream: Integers) -> list[Integers]:
    """The members of each component with more than one node."""
    edges = on_cycle[upstream] & on_cycle[downstream] & (upstream != downstream)
    labels = strong_components(on_cycle, upstream[edges], downstream[edges])
    sizes = np.bincount(labels, minlength=len(on_cycle))
    members = np.flatnonzero(sizes[labels] > 1)
    members = members[stable_order(labels[members], len(on_cycle))]
    return np.split(members, np.flatnonzero(np.diff(labels[members])) + 1)


def _assemble(
    peeling: LevelPeeling, cycles: list[Integers], cycle_of: Integers, inner: list[Integers]
) -> Topology:
    levels = []
    for nodes, edges in peeling.levels:
        cycles_of_nodes = cycle_of[nodes]
        levels.append(
            TopologyLevel(nodes=nodes, cycles=cycles_of_nodes[cycles_of_nodes >= 0], edges=edges)
        )
    return Topology(levels=levels, cycles=cycles, cycle_of=cycle_of, inner=inner)
