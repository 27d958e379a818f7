"""Post-dominators: single nodes that all ways from a node to any end use lead through."""

from typing import Final

import numpy as np

from lumos.cost.solver.graph import Bools, CostGraph, Integers
from lumos.cost.solver.peeling import grouped
from lumos.cost.solver.reach import Ways
from lumos.cost.solver.topology import Level, Topology, topology

UNNEEDED: Final = -1


class PostDominators:
    """A tree over the nodes that end uses need; its root, the sink behind all of them, is n."""

    def __init__(self, graph: CostGraph) -> None:
        nodes = graph.nodes
        self._sink = nodes
        self._live = graph.live
        against = Ways(nodes, graph.downstream, graph.upstream)
        self.needed: Bools = against.origins(np.flatnonzero(graph.live)) >= 0
        self.parent: Integers = np.full(nodes + 1, UNNEEDED, dtype=np.int64)
        self.parent[nodes] = nodes
        self._depth = np.zeros(nodes + 1, dtype=np.int64)
        # A second way upwards, which skips; with it, ancestors are found in few steps.
        self._skip = np.full(nodes + 1, nodes, dtype=np.int64)
        kept = self.needed[graph.upstream] & self.needed[graph.downstream]
        kept &= graph.upstream != graph.downstream
        at, to = graph.upstream[kept], graph.downstream[kept]
        self._ways = Ways(nodes, at, to)
        order = topology(nodes, to, at)
        for level in order.levels:
            self._attach(level, order)

    def subtree_sums(self, amounts: Integers) -> Integers:
        """The sum of amounts over each node's subtree; of nodes that nothing needs, their own."""
        sums = np.append(amounts, 0)
        deepest_first = np.flatnonzero(self.needed)
        deepest_first = deepest_first[np.argsort(-self._depth[deepest_first], kind="stable")]
        bounds = np.flatnonzero(np.diff(self._depth[deepest_first])) + 1
        for nodes in np.split(deepest_first, bounds):
            np.add.at(sums, self.parent[nodes], sums[nodes])
        return sums[:-1]

    def _attach(self, level: Level, order: Topology) -> None:
        """Gives the nodes of a level their places below those of the levels before."""
        single = level.nodes[(order.cycle_of[level.nodes] < 0) & self.needed[level.nodes]]
        if len(single):
            targets, steps = self._ways.next_to(single)
            owner = np.repeat(np.arange(len(single)), steps)
            self._place(single, self._above(targets, owner, np.flatnonzero(self._live[single])))
        if len(level.cycles):
            self._attach_cycles([order.cycles[cycle] for cycle in level.cycles])

    def _attach_cycles(self, cycles: list[Integers]) -> None:
        """All members lead to all exits, so what is above a cycle is above all its exits.

        Inside, the tree is that of the cycle alone, with one sink for all exits.
        """
        members = np.concatenate(cycles)
        sizes = np.array([len(each) for each in cycles])
        cycle_of = np.repeat(np.arange(len(cycles)), sizes)
        number = np.full(self._sink, -1, dtype=np.int64)
        number[members] = np.arange(len(members))
        targets, steps = self._ways.next_to(members)
        owner = np.repeat(np.arange(len(members)), steps)
        # Members of other cycles on this level cannot be reached from here.
        inside = number[targets] >= 0
        live = np.flatnonzero(self._live[members])
        exits, of_exits = targets[~inside], cycle_of[owner[~inside]]
        above = self._above(exits, of_exits, cycle_of[live])[cycle_of]
        leaves = np.zeros(len(members), dtype=np.bool_)
        leaves[owner[~inside]] = True
        leaves[live] = True
        parent, depth = _trees_in_cycles(sizes, owner[inside], number[targets[inside]], leaves)
        for layer in range(int(depth.max()) + 1):
            here = np.flatnonzero(depth == layer)
            below = members[parent[here]]
            self._place(members[here], np.where(parent[here] < 0, above[here], below))

    def _above(self, targets: Integers, owner: Integers, live: Integers) -> Integers:
        """For each owner, the deepest node above all its targets, and above the sink if live."""
        if len(live):
            targets = np.concatenate([targets, np.full(len(live), self._sink)])
            owner = np.concatenate([owner, live])
        by_owner = grouped(owner, int(owner.max()))
        above, owner = targets[by_owner], owner[by_owner]
        # Of the candidates of each owner, pairs are joined until one is left.
        while len(above) > owner[-1] + 1:
            starts = np.flatnonzero(np.diff(owner, prepend=-1))
            is_left = (np.arange(len(owner)) - starts[owner]) % 2 == 0
            left = np.flatnonzero(is_left)
            paired = np.flatnonzero(is_left[:-1] & ~is_left[1:])
            above[paired] = self._common(above[paired], above[paired + 1])
            above, owner = above[left], owner[left]
        return above

    def _common(self, one: Integers, other: Integers) -> Integers:
        """The deepest common ancestors of pairs."""
        active = np.flatnonzero(one != other)
        while len(active):
            first, second = one[active], other[active]
            climbs = self._depth[first] >= self._depth[second]
            deep, shallow = np.where(climbs, first, second), np.where(climbs, second, first)
            skip, skip_beside = self._skip[deep], self._skip[shallow]
            level = self._depth[deep] == self._depth[shallow]
            # From one depth, both skip to one depth; where they meet, they may meet lower.
            far = np.where(level, skip != skip_beside, self._depth[skip] >= self._depth[shallow])
            one[active] = np.where(far, skip, self.parent[deep])
            beside = np.where(far, skip_beside, self.parent[shallow])
            other[active] = np.where(level, beside, shallow)
            active = active[one[active] != other[active]]
        return one

    def _place(self, nodes: Integers, parents: Integers) -> None:
        self.parent[nodes] = parents
        depth = self._depth
        depth[nodes] = depth[parents] + 1
        skip = self._skip[parents]
        twice = self._skip[skip]
        even = depth[parents] - depth[skip] == depth[skip] - depth[twice]
        self._skip[nodes] = np.where(even, twice, parents)


def _trees_in_cycles(
    sizes: Integers, at: Integers, to: Integers, leaves: Bools
) -> tuple[Integers, Integers]:
    """Parents (-1: the sink) and depths of the members of all cycles, numbered on and on."""
    ends = np.cumsum(sizes)
    parent = np.full(len(leaves), -1, dtype=np.int64)
    depth = np.zeros(len(leaves), dtype=np.int64)
    pairs = ends[sizes == 2] - 2
    for one, other in ((pairs, pairs + 1), (pairs + 1, pairs)):
        behind = ~leaves[one]
        parent[one[behind]] = other[behind]
        depth[one[behind]] = 1
    if (sizes > 2).any():
        by_source = grouped(at, len(leaves))
        at, to = at[by_source], to[by_source]
        for end, size in zip(ends[sizes > 2].tolist(), sizes[sizes > 2].tolist(), strict=True):
            begin = end - size
            first, last = np.searchsorted(at, (begin, end))
            within = at[first:last] - begin, to[first:last] - begin
            parent[begin:end], depth[begin:end] = _tree_in_cycle(*within, leaves[begin:end])
            parent[begin:end][parent[begin:end] >= 0] += begin
    return parent, depth


def _tree_in_cycle(at: Integers, to: Integers, leaves: Bools) -> tuple[list[int], list[int]]:
    """Cooper, Harvey and Kennedy: ancestors meet until nothing changes, from the sink on."""
    size = len(leaves)
    successors: list[list[int]] = [[] for _ in range(size)]
    predecessors: list[list[int]] = [[] for _ in range(size + 1)]
    for source, target in zip(at.tolist(), to.tolist(), strict=True):
        successors[source].append(target)
        predecessors[target].append(source)
    sink = size
    for node in np.flatnonzero(leaves).tolist():
        successors[node].append(sink)
        predecessors[sink].append(node)
    order = _reverse_postorder(predecessors, sink)
    rank = [0] * (size + 1)
    for position, node in enumerate(order):
        rank[node] = position
    parent = [-1] * (size + 1)
    parent[sink] = sink
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            meeting = -1
            for target in successors[node]:
                if parent[target] < 0:
                    continue
                if meeting < 0:
                    meeting = target
                other = target
                while meeting != other:
                    if rank[meeting] > rank[other]:
                        meeting = parent[meeting]
                    else:
                        other = parent[other]
            if meeting != parent[node]:
                parent[node] = meeting
                changed = True
    depth = [0] * (size + 1)
    for node in order[1:]:
        depth[node] = 0 if parent[node] == sink else depth[parent[node]] + 1
    return [-1 if above == sink else above for above in parent[:size]], depth[:size]


def _reverse_postorder(next_nodes: list[list[int]], root: int) -> list[int]:
    seen = [False] * len(next_nodes)
    seen[root] = True
    finished: list[int] = []
    path = [(root, iter(next_nodes[root]))]
    while path:
        node, rest = path[-1]
        for target in rest:
            if not seen[target]:
                seen[target] = True
                path.append((target, iter(next_nodes[target])))
                break
        else:
            finished.append(node)
            path.pop()
    finished.reverse()
    return finished
