"""Savings: the cost that ends when nodes are removed, unlike attributed cost.

A node is needed as long as a path leads from it to an end use. Removing a node saves its own cost
and that of all nodes whose paths to end uses all pass through it. These nodes are its subtree in
the post-dominator tree. Example: with raw -> core -> report and core as the only reader of raw,
removing report saves all three; if another end use reads raw, it saves core and report.
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
        # Skip pointers: each node also points to an ancestor farther up, so that common ancestors
        # are found in logarithmic time.
        self._skip = np.full(nodes + 1, nodes, dtype=np.int64)
        is_used = self.needed[graph.upstream] & self.needed[graph.downstream]
        is_used &= graph.upstream != graph.downstream
        sources, targets = graph.upstream[is_used], graph.downstream[is_used]
        self._successors = Adjacency(nodes, sources, targets)
        order = build_topology(nodes, targets, sources)
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
        """Attach the nodes of a level to the tree, which contains all nodes downstream of them."""
        single = level.nodes[(order.cycle_of[level.nodes] < 0) & self.needed[level.nodes]]
        if len(single):
            targets, counts = self._successors.edges_from(single)
            owner = np.repeat(np.arange(len(single)), counts)
            self._attach_nodes(
                single, self._common_ancestors(targets, owner, np.flatnonzero(self._live[single]))
            )
        if len(level.cycles):
            self._attach_cycles([order.cycles[cycle] for cycle in level.cycles])

    def _attach_cycles(self, cycles: list[Integers]) -> None:
        """Attach cycles: the parent of a cycle is the common ancestor of all its exits.

        Inside of a cycle, the tree is computed for the cycle alone, with one sink for all exits.
        """
        members = np.concatenate(cycles)
        sizes = np.array([len(each) for each in cycles])
        cycle_of = np.repeat(np.arange(len(cycles)), sizes)
        index_of = np.full(self._sink, -1, dtype=np.int64)
        index_of[members] = np.arange(len(members))
        targets, counts = self._successors.edges_from(members)
        owner = np.repeat(np.arange(len(members)), counts)
        # Members of other cycles on this level are not reachable from here.
        is_inside = index_of[targets] >= 0
        live = np.flatnonzero(self._live[members])
        exits, exit_cycles = targets[~is_inside], cycle_of[owner[~is_inside]]
        cycle_parents = self._common_ancestors(exits, exit_cycles, cycle_of[live])[cycle_of]
        is_exit = np.zeros(len(members), dtype=np.bool_)
        is_exit[owner[~is_inside]] = True
        is_exit[live] = True
        parent, depth = _trees_in_cycles(
            sizes, owner[is_inside], index_of[targets[is_inside]], is_exit
        )
        for layer in range(int(depth.max()) + 1):
            layer_nodes = np.flatnonzero(depth == layer)
            parents_inside = members[parent[layer_nodes]]
            self._attach_nodes(
                members[layer_nodes],
                np.where(parent[layer_nodes] < 0, cycle_parents[layer_nodes], parents_inside),
            )

    def _common_ancestors(self, targets: Integers, owner: Integers, live: Integers) -> Integers:
        """For each owner, the deepest common ancestor of its targets, and of the sink if live."""
        if len(live):
            targets = np.concatenate([targets, np.full(len(live), self._sink)])
            owner = np.concatenate([owner, live])
        by_owner = stable_order(owner, int(owner.max()))
        ancestors, owner = targets[by_owner], owner[by_owner]
        # Replace pairs of candidates of each owner by their common ancestor until one is left.
        while len(ancestors) > owner[-1] + 1:
            starts = np.flatnonzero(np.diff(owner, prepend=-1))
            is_first = (np.arange(len(owner)) - starts[owner]) % 2 == 0
            first_of_pairs = np.flatnonzero(is_first)
            paired = np.flatnonzero(is_first[:-1] & ~is_first[1:])
            ancestors[paired] = self._pairwise_ancestors(ancestors[paired], ancestors[paired + 1])
            ancestors, owner = ancestors[first_of_pairs], owner[first_of_pairs]
        return ancestors

    def _pairwise_ancestors(self, one: Integers, other: Integers) -> Integers:
        """The deepest common ancestors of pairs."""
        active = np.flatnonzero(one != other)
        while len(active):
            first, second = one[active], other[active]
            is_first_deeper = self._depth[first] >= self._depth[second]
            deep, shallow = (
                np.where(is_first_deeper, first, second),
                np.where(is_first_deeper, second, first),
            )
            skip, other_skip = self._skip[deep], self._skip[shallow]
            is_same_depth = self._depth[deep] == self._depth[shallow]
            # Nodes of equal depth skip to equal depths. If they skip to the same ancestor, there
            # may be a deeper common one, so they go to their parents instead.
            can_skip = np.where(
                is_same_depth, skip != other_skip, self._depth[skip] >= self._depth[shallow]
            )
            one[active] = np.where(can_skip, skip, self.parent[deep])
            next_other = np.where(can_skip, other_skip, self.parent[shallow])
            other[active] = np.where(is_same_depth, next_other, shallow)
            active = active[one[active] != other[active]]
        return one

    def _attach_nodes(self, nodes: Integers, parents: Integers) -> None:
        self.parent[nodes] = parents
        depth = self._depth
        depth[nodes] = depth[parents] + 1
        skip = self._skip[parents]
        skip_of_skip = self._skip[skip]
        has_equal_skips = depth[parents] - depth[skip] == depth[skip] - depth[skip_of_skip]
        self._skip[nodes] = np.where(has_equal_skips, skip_of_skip, parents)


def _trees_in_cycles(
    sizes: Integers, sources: Integers, targets: Integers, is_exit: Bools
) -> tuple[Integers, Integers]:
    """Parents (-1: the sink) and depths of the members of all cycles, numbered consecutively.

    `is_exit` is true for members that are end uses or have edges out of their cycle.
    """
    ends = np.cumsum(sizes)
    parent = np.full(len(is_exit), -1, dtype=np.int64)
    depth = np.zeros(len(is_exit), dtype=np.int64)
    pairs = ends[sizes == 2] - 2
    for one, other in ((pairs, pairs + 1), (pairs + 1, pairs)):
        is_dominated = ~is_exit[one]
        parent[one[is_dominated]] = other[is_dominated]
        depth[one[is_dominated]] = 1
    if (sizes > 2).any():
        by_source = stable_order(sources, len(is_exit))
        sources, targets = sources[by_source], targets[by_source]
        for end, size in zip(ends[sizes > 2].tolist(), sizes[sizes > 2].tolist(), strict=True):
            begin = end - size
            first, last = np.searchsorted(sources, (begin, end))
            edges = sources[first:last] - begin, targets[first:last] - begin
            parent[begin:end], depth[begin:end] = _tree_in_cycle(*edges, is_exit[begin:end])
            parent[begin:end][parent[begin:end] >= 0] += begin
    return parent, depth


def _tree_in_cycle(
    sources: Integers, targets: Integers, is_exit: Bools
) -> tuple[list[int], list[int]]:
    """Parents and depths in one cycle, by the algorithm of Cooper, Harvey and Kennedy."""
    size = len(is_exit)
    successors: list[list[int]] = [[] for _ in range(size)]
    predecessors: list[list[int]] = [[] for _ in range(size + 1)]
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        successors[source].append(target)
        predecessors[target].append(source)
    sink = size
    for node in np.flatnonzero(is_exit).tolist():
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
    return [-1 if node_parent == sink else node_parent for node_parent in parent[:size]], depth[
        :size
    ]


def _reverse_postorder(next_nodes: list[list[int]], root: int) -> list[int]:
    is_visited = [False] * len(next_nodes)
    is_visited[root] = True
    finished: list[int] = []
    path = [(root, iter(next_nodes[root]))]
    while path:
        node, remaining = path[-1]
        for target in remaining:
            if not is_visited[target]:
                is_visited[target] = True
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
    """[k] micro-units of removed nodes that must still be paid, such as commitments."""
    removed: Integers
    obsolete: Integers
    """The removed nodes, and nodes that no end use needs any more."""
    broken: Integers
    """Nodes that remain and lose a direct or indirect input."""
    remaining: Integers
    """Nodes upstream of the removed ones that are still needed, or that were not needed before."""
    needed_by: Integers
    """For each node of `remaining`, an end use that needs it, or -1 if there is none."""


def savings_of_all(graph: CostGraph, avoidable: Bools | None = None) -> Integers:
    """[n] the savings of removing each node alone, computed for all nodes at once."""
    return PostDominators(graph).subtree_sums(avoidable_costs(graph, avoidable).sum(axis=0))


def savings_of(
    graph: CostGraph, removed: Collection[int], avoidable: Bools | None = None
) -> Savings:
    """The effect of removing these nodes together.

    A node becomes obsolete if it led to an end use before and no longer does. End uses that lose
    an input are still end uses: their other inputs must still be paid.
    """
    downstream_adjacency = Adjacency(graph.nodes, graph.upstream, graph.downstream)
    upstream_adjacency = Adjacency(graph.nodes, graph.downstream, graph.upstream)
    end_uses = np.flatnonzero(graph.live)
    is_removed = np.zeros(graph.nodes, dtype=np.bool_)
    is_removed[list(removed)] = True
    end_use_before = upstream_adjacency.origins(end_uses)
    end_use_after = upstream_adjacency.origins(end_uses, closed=is_removed)
    obsolete = is_removed | ((end_use_before >= 0) & (end_use_after < 0))
    broken = downstream_adjacency.origins(np.flatnonzero(obsolete)) >= 0
    upstream = upstream_adjacency.origins(np.flatnonzero(is_removed)) >= 0
    remaining = np.flatnonzero(upstream & ~obsolete)
    saved = avoidable_costs(graph, avoidable)[:, obsolete].sum(axis=1)
    return Savings(
        saved=saved,
        unavoidable=graph.costs[:, obsolete].sum(axis=1) - saved,
        removed=np.flatnonzero(is_removed),
        obsolete=np.flatnonzero(obsolete),
        broken=np.flatnonzero(broken & ~obsolete),
        remaining=remaining,
        needed_by=end_use_after[remaining],
    )


def avoidable_costs(graph: CostGraph, avoidable: Bools | None) -> Integers:
    """[k, n] own costs that end when their node is removed; `avoidable` has shape [n] or [k, n]."""
    return graph.costs if avoidable is None else np.where(avoidable, graph.costs, 0)
