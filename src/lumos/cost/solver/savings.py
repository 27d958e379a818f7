"""Savings: the cost that really disappears when nodes are removed, unlike attributed cost.

A node is needed as long as a path leads from it to an end use. What removing one node saves is the
sum over its subtree in the post-dominator tree: all nodes whose paths to any end use pass through
it.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from lumos.cost.solver.graph import Bools, CostGraph, Integers
from lumos.cost.solver.topology import (
    Adjacency,
    Topology,
    TopologyLevel,
    build_topology,
    stable_order,
)

UNNEEDED: Final = -1


class PostDominators:
    """The post-dominator tree of needed nodes; its root n is a sink after all end uses."""

    def __init__(self, graph: CostGraph) -> None:
        nodes = graph.nodes
        self._sink = nodes
        self._live = graph.live
        upstream_adjacency = Adjacency(nodes, graph.downstream, graph.upstream)
        self.needed: Bools = upstream_adjacency.origins(np.flatnonzero(graph.live)) >= 0
        self.parent: Integers = np.full(nodes + 1, UNNEEDED, dtype=np.int64)
        self.parent[nodes] = nodes
        self._depth = np.zeros(nodes + 1, dtype=np.int64)
        # Skip pointers, with which ancestors are found in logarithmic time.
        self._skip = np.full(nodes + 1, nodes, dtype=np.int64)
        is_kept = self.needed[graph.upstream] & self.needed[graph.downstream]
        is_kept &= graph.upstream != graph.downstream
        at, to = graph.upstream[is_kept], graph.downstream[is_kept]
        self._successors = Adjacency(nodes, at, to)
        order = build_topology(nodes, to, at)
        for level in order.levels:
            self._attach(level, order)

    def subtree_sums(self, amounts: Integers) -> Integers:
        """The sum of amounts over each node's subtree; unneeded nodes have their own amount."""
        sums = np.append(amounts, 0)
        deepest_first = np.flatnonzero(self.needed)
        deepest_first = deepest_first[np.argsort(-self._depth[deepest_first], kind="stable")]
        bounds = np.flatnonzero(np.diff(self._depth[deepest_first])) + 1
        for nodes in np.split(deepest_first, bounds):
            np.add.at(sums, self.parent[nodes], sums[nodes])
        return sums[:-1]

    def _attach(self, level: TopologyLevel, order: Topology) -> None:
        """Attach the nodes of a level to those of earlier levels."""
        single = level.nodes[(order.cycle_of[level.nodes] < 0) & self.needed[level.nodes]]
        if len(single):
            targets, steps = self._successors.next_to(single)
            owner = np.repeat(np.arange(len(single)), steps)
            self._attach_nodes(
                single, self._common_ancestors(targets, owner, np.flatnonzero(self._live[single]))
            )
        if len(level.cycles):
            self._attach_cycles([order.cycles[cycle] for cycle in level.cycles])

    def _attach_cycles(self, cycles: list[Integers]) -> None:
        """Attach cycles: the parent of a cycle is the common ancestor of all its exits.

        Inside of a cycle the tree is that of the cycle alone, with one sink for all exits.
        """
        members = np.concatenate(cycles)
        sizes = np.array([len(each) for each in cycles])
        cycle_of = np.repeat(np.arange(len(cycles)), sizes)
        number = np.full(self._sink, -1, dtype=np.int64)
        number[members] = np.arange(len(members))
        targets, steps = self._successors.next_to(members)
        owner = np.repeat(np.arange(len(members)), steps)
        # Members of other cycles on this level are not reachable from here.
        inside = number[targets] >= 0
        live = np.flatnonzero(self._live[members])
        exits, of_exits = targets[~inside], cycle_of[owner[~inside]]
        above = self._common_ancestors(exits, of_exits, cycle_of[live])[cycle_of]
        leaves = np.zeros(len(members), dtype=np.bool_)
        leaves[owner[~inside]] = True
        leaves[live] = True
        parent, depth = _trees_in_cycles(sizes, owner[inside], number[targets[inside]], leaves)
        for layer in range(int(depth.max()) + 1):
            layer_nodes = np.flatnonzero(depth == layer)
            below = members[parent[layer_nodes]]
            self._attach_nodes(
                members[layer_nodes], np.where(parent[layer_nodes] < 0, above[layer_nodes], below)
            )

    def _common_ancestors(self, targets: Integers, owner: Integers, live: Integers) -> Integers:
        """For each owner the deepest common ancestor of its targets, and of the sink if live."""
        if len(live):
            targets = np.concatenate([targets, np.full(len(live), self._sink)])
            owner = np.concatenate([owner, live])
        by_owner = stable_order(owner, int(owner.max()))
        above, owner = targets[by_owner], owner[by_owner]
        # Pairs of candidates of each owner are joined until one is left.
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
            skip, other_skip = self._skip[deep], self._skip[shallow]
            level = self._depth[deep] == self._depth[shallow]
            # Nodes of equal depth skip to equal depths; if they coincide there, a deeper one may
            # too.
            far = np.where(level, skip != other_skip, self._depth[skip] >= self._depth[shallow])
            one[active] = np.where(far, skip, self.parent[deep])
            other_node = np.where(far, other_skip, self.parent[shallow])
            other[active] = np.where(level, other_node, shallow)
            active = active[one[active] != other[active]]
        return one

    def _attach_nodes(self, nodes: Integers, parents: Integers) -> None:
        self.parent[nodes] = parents
        depth = self._depth
        depth[nodes] = depth[parents] + 1
        skip = self._skip[parents]
        skip_of_skip = self._skip[skip]
        even = depth[parents] - depth[skip] == depth[skip] - depth[skip_of_skip]
        self._skip[nodes] = np.where(even, skip_of_skip, parents)


def _trees_in_cycles(
    sizes: Integers, at: Integers, to: Integers, leaves: Bools
) -> tuple[Integers, Integers]:
    """Parents (-1: the sink) and depths of the members of all cycles, numbered consecutively."""
    ends = np.cumsum(sizes)
    parent = np.full(len(leaves), -1, dtype=np.int64)
    depth = np.zeros(len(leaves), dtype=np.int64)
    pairs = ends[sizes == 2] - 2
    for one, other in ((pairs, pairs + 1), (pairs + 1, pairs)):
        behind = ~leaves[one]
        parent[one[behind]] = other[behind]
        depth[one[behind]] = 1
    if (sizes > 2).any():
        by_source = stable_order(at, len(leaves))
        at, to = at[by_source], to[by_source]
        for end, size in zip(ends[sizes > 2].tolist(), sizes[sizes > 2].tolist(), strict=True):
            begin = end - size
            first, last = np.searchsorted(at, (begin, end))
            within = at[first:last] - begin, to[first:last] - begin
            parent[begin:end], depth[begin:end] = _tree_in_cycle(*within, leaves[begin:end])
            parent[begin:end][parent[begin:end] >= 0] += begin
    return parent, depth


def _tree_in_cycle(at: Integers, to: Integers, leaves: Bools) -> tuple[list[int], list[int]]:
    """The algorithm of Cooper, Harvey and Kennedy for one cycle."""
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
            ancestor = -1
            for target in successors[node]:
                if parent[target] < 0:
                    continue
                if ancestor < 0:
                    ancestor = target
                other = target
                while ancestor != other:
                    if rank[ancestor] > rank[other]:
                        ancestor = parent[ancestor]
                    else:
                        other = parent[other]
            if ancestor != parent[node]:
                parent[node] = ancestor
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Savings:
    """The effect of removing nodes; nodes are numbers in ascending order."""

    saved: Integers
    """[k] micro-units saved."""
    unavoidable: Integers
    """[k] micro-units of removed nodes that are still due: commitments, retention, legal holds."""
    removed: Integers
    gone: Integers
    """The removed nodes, and nodes that no end use needs any more."""
    broken: Integers
    """Nodes that remain and lose a direct or indirect input."""
    staying: Integers
    """Nodes upstream of the removed ones that remain."""
    needed_by: Integers
    """For each node of `staying` an end use that still needs it, or -1 if none ever did."""


def savings_of_all(graph: CostGraph, avoidable: Bools | None = None) -> Integers:
    """[n] what removing each node alone would save, in one pass."""
    return PostDominators(graph).subtree_sums(avoidable_costs(graph, avoidable).sum(axis=0))


def savings_of(
    graph: CostGraph, removed: Collection[int], avoidable: Bools | None = None
) -> Savings:
    """What removing these nodes together saves, breaks, and leaves in place.

    A node is gone if it led to an end use before and no longer does. End uses that break still
    count: their owners go on paying for their other inputs.
    """
    downstream_adjacency = Adjacency(graph.nodes, graph.upstream, graph.downstream)
    upstream_adjacency = Adjacency(graph.nodes, graph.downstream, graph.upstream)
    ends = np.flatnonzero(graph.live)
    is_removed = np.zeros(graph.nodes, dtype=np.bool_)
    is_removed[list(removed)] = True
    end_before = upstream_adjacency.origins(ends)
    end_after = upstream_adjacency.origins(ends, closed=is_removed)
    gone = is_removed | ((end_before >= 0) & (end_after < 0))
    broken = downstream_adjacency.origins(np.flatnonzero(gone)) >= 0
    upstream = upstream_adjacency.origins(np.flatnonzero(is_removed)) >= 0
    staying = np.flatnonzero(upstream & ~gone)
    saved = avoidable_costs(graph, avoidable)[:, gone].sum(axis=1)
    return Savings(
        saved=saved,
        unavoidable=graph.costs[:, gone].sum(axis=1) - saved,
        removed=np.flatnonzero(is_removed),
        gone=np.flatnonzero(gone),
        broken=np.flatnonzero(broken & ~gone),
        staying=staying,
        needed_by=end_after[staying],
    )


def avoidable_costs(graph: CostGraph, avoidable: Bools | None) -> Integers:
    """[k, n] own costs that end when their node is removed; `avoidable` is [n] or [k, n]."""
    return graph.costs if avoidable is None else np.where(avoidable, graph.costs, 0)
