"""Plans which end uses to retire together for the largest savings.

A node can be removed when all end uses that need it are retired. Each node therefore has a set: the
end uses that need it. Retiring end uses saves the cost of the nodes whose set contains no others.
For example, if reports a and b both read core, its set is {a, b}: only retiring both saves its
cost.
"""

import heapq
from dataclasses import dataclass
from typing import Final

import numpy as np

from lumos.cost.solver.graph import Bools, CostGraph, Integers
from lumos.cost.solver.savings import avoidable_costs
from lumos.cost.solver.topology import Adjacency, Topology, build_topology

EndUses = frozenset[int]


class EndUseSets:
    """The distinct sets of end uses, and the nodes that have each set."""

    def __init__(self, needed: Bools, set_of: Integers, numbers: dict[EndUses, int]) -> None:
        self.needed = needed
        self._set_of = set_of
        self._numbers = numbers

    def values(self, amounts: Integers) -> dict[EndUses, int]:
        """The sum of amounts over the nodes with each set."""
        sums = np.zeros(len(self._numbers), dtype=np.int64)
        has_set = self._set_of >= 0
        np.add.at(sums, self._set_of[has_set], amounts[has_set])
        return dict(zip(self._numbers, sums.tolist(), strict=True))

    def nodes_of(self, sets: list[EndUses]) -> Integers:
        """The nodes that have one of these sets, in ascending order."""
        numbers = [self._numbers[members] for members in sets]
        return np.flatnonzero(np.isin(self._set_of, numbers))


def all_end_sets(graph: CostGraph) -> EndUseSets:
    """The sets of all nodes, computed as bit masks for up to 62 end uses."""
    bits = np.zeros(graph.nodes, dtype=np.int64)
    ends = np.flatnonzero(graph.live)
    bits[ends] = 1 << np.arange(len(ends))
    order = _reverse_topology(graph)
    for level in order.levels:
        for cycle in level.cycles.tolist():
            members = order.cycles[cycle]
            bits[members] = np.bitwise_or.reduce(bits[members])
        np.bitwise_or.at(bits, graph.upstream[level.edges], bits[graph.downstream[level.edges]])
    needed = bits > 0
    masks, set_of = np.unique(bits[needed], return_inverse=True)
    sets = {
        frozenset(int(end) for position, end in enumerate(ends) if mask >> position & 1): number
        for number, mask in enumerate(masks.tolist())
    }
    numbers = np.full(graph.nodes, -1, dtype=np.int64)
    numbers[needed] = set_of
    return EndUseSets(needed, numbers, sets)


def small_end_sets(graph: CostGraph, max_size: int) -> EndUseSets:
    """The sets of up to `max_size` end uses; nodes with larger sets are omitted."""
    upstream_adjacency = Adjacency(graph.nodes, graph.downstream, graph.upstream)
    needed: Bools = upstream_adjacency.origins(np.flatnonzero(graph.live)) >= 0
    order = _reverse_topology(graph)
    unions = _SetUnions(graph, max_size)
    for level in order.levels:
        nodes = level.nodes[needed[level.nodes]]
        unions.unite([[node] for node in nodes[order.cycle_of[nodes] < 0].tolist()])
        cycles = order.cycle_of[nodes]
        unions.unite([order.cycles[cycle].tolist() for cycle in cycles[cycles >= 0].tolist()])
    return EndUseSets(needed, unions.set_of, unions.numbers)


class _SetUnions:
    """Computes the set of a node as the union of the sets of its readers.

    Nodes must be added after their readers. Sets are numbered, so that equal sets are stored once.
    """

    def __init__(self, graph: CostGraph, max_size: int) -> None:
        self._downstream = Adjacency(graph.nodes, graph.upstream, graph.downstream)
        self._live = graph.live
        self._max_size = max_size
        self._has_large_set = np.zeros(graph.nodes, dtype=np.bool_)
        self._sets: list[EndUses] = []
        self.numbers: dict[EndUses, int] = {}
        self.set_of: Integers = np.full(graph.nodes, -1, dtype=np.int64)

    def unite(self, groups: list[list[int]]) -> None:
        """Assign a set to each group of nodes: a single node or the members of a cycle."""
        nodes = np.array([node for group in groups for node in group], dtype=np.int64)
        targets, counts = self._downstream.edges_from(nodes)
        ends = np.cumsum(counts)
        reader_sets: list[int] = self.set_of[targets].tolist()
        is_too_large: list[bool] = self._has_large_set[targets].tolist()
        reader_ends: list[int] = ends.tolist()
        is_end_use: list[bool] = self._live[nodes].tolist()
        numbers = np.full(len(nodes), -1, dtype=np.int64)
        first_reader = first_node = 0
        for group in groups:
            end_node = first_node + len(group)
            readers = slice(first_reader, reader_ends[end_node - 1])
            if not any(is_too_large[readers]):
                own_end_uses = [
                    node
                    for node, live in zip(group, is_end_use[first_node:end_node], strict=True)
                    if live
                ]
                numbers[first_node:end_node] = self._number(own_end_uses, set(reader_sets[readers]))
            first_node, first_reader = end_node, readers.stop
        self.set_of[nodes] = numbers
        self._has_large_set[nodes] = numbers < 0

    def _number(self, own_end_uses: list[int], set_numbers: set[int]) -> int:
        set_numbers.discard(-1)
        if len(set_numbers) == 1 and not own_end_uses:
            return set_numbers.pop()
        members = frozenset(own_end_uses).union(*(self._sets[number] for number in set_numbers))
        if len(members) > self._max_size:
            return -1
        number = self.numbers.setdefault(members, len(self._sets))
        if number == len(self._sets):
            self._sets.append(members)
        return number


def _reverse_topology(graph: CostGraph) -> Topology:
    """The topology of the reversed graph, whose levels start with nodes without readers."""
    return build_topology(graph.nodes, graph.downstream, graph.upstream)


# Up to this number of end uses, all subsets (65,536) are tried.
_MAX_EXACT_ENDS: Final = 16
# Of more candidates, only those with the largest savings are examined.
_MAX_CANDIDATES: Final = 3000


@dataclass(frozen=True, kw_only=True, eq=False)
class RetirementGroup:
    """End uses to retire together, since they share nodes that only they need."""

    ends: Integers
    obsolete: Integers
    """The end uses, and the nodes that only they need."""
    saved: Integers
    """[k] micro-units."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RetirementPlan:
    """Independent groups, largest savings first; nodes outside of the groups keep all inputs."""

    groups: list[RetirementGroup]
    saved: Integers
    """[k] savings of all groups."""
    exact: bool
    """Whether no other choice saves more; otherwise the choice is greedy."""
    unneeded: Integers
    """Nodes that no end use needs today; they can be removed anyway and are not in the groups."""
    unneeded_saved: Integers


def plan_retirement(
    graph: CostGraph, top: int, avoidable: Bools | None = None, *, excluded: EndUses = frozenset()
) -> RetirementPlan:
    """Find at most `top` end uses that save most if retired together; never those in `excluded`."""
    costs = avoidable_costs(graph, avoidable)
    exact = int(graph.live.sum()) <= _MAX_EXACT_ENDS
    sets = all_end_sets(graph) if exact else small_end_sets(graph, top)
    values = {
        members: value
        for members, value in sets.values(costs.sum(axis=0)).items()
        if not members & excluded
    }
    chosen = _best_subset(values, top) if exact else _greedy_subset(values, top)
    groups = _groups(sets, values, chosen, costs)
    no_savings = np.zeros(len(graph.types), dtype=np.int64)
    return RetirementPlan(
        groups=groups,
        saved=sum((each.saved for each in groups), no_savings),
        exact=exact,
        unneeded=np.flatnonzero(~sets.needed),
        unneeded_saved=costs[:, ~sets.needed].sum(axis=1),
    )


def _best_subset(values: dict[EndUses, int], top: int) -> EndUses:
    """The best subset of end uses, found by computing the savings of all subsets.

    A zeta transform adds to each bit mask the values of all its submasks, one bit at a time.
    """
    ends = sorted(frozenset().union(*values))
    bit = {end: position for position, end in enumerate(ends)}
    sums = np.zeros(1 << len(ends), dtype=np.int64)
    for members, value in values.items():
        sums[sum(1 << bit[end] for end in members)] += value
    for position in range(len(ends)):
        halves = sums.reshape(-1, 2, 1 << position)
        halves[:, 1] += halves[:, 0]
    sets = np.arange(len(sums))
    sizes = np.bitwise_count(sets)
    small_enough = np.flatnonzero(sizes <= top)
    best_masks = small_enough[sums[small_enough] == sums[small_enough].max()]
    # Among equal savings, retire the fewest end uses.
    best_mask = int(best_masks[np.argmin(sizes[best_masks])])
    return frozenset(end for end in ends if best_mask >> bit[end] & 1)


def _greedy_subset(values: dict[EndUses, int], top: int) -> EndUses:
    """The better of two greedy choices: by savings, and by savings per end use."""
    sets_of_end: dict[int, list[EndUses]] = {}
    for members in values:
        for end in members:
            sets_of_end.setdefault(end, []).append(members)

    def savings_per_end(members: EndUses) -> float:
        subsets = sum(values.get(frozenset([end]), 0) for end in members)
        return (subsets + (values[members] if len(members) > 1 else 0)) / len(members)

    def savings_of_added(added: EndUses, chosen: EndUses) -> int:
        all_chosen = chosen | added
        subsets = {other for end in added for other in sets_of_end[end] if other <= all_chosen}
        return sum(values[other] for other in subsets)

    candidates = heapq.nlargest(_MAX_CANDIDATES, values, key=savings_per_end)
    plans = []
    for weight in (0.0, 1.0):
        chosen: EndUses = frozenset()
        while True:
            best, best_value = chosen, 0.0
            for members in candidates:
                added = members - chosen
                if added and len(chosen) + len(added) <= top:
                    value = savings_of_added(added, chosen) / len(added) ** weight
                    if value > best_value:
                        best, best_value = chosen | members, value
            if best == chosen:
                break
            chosen = best
        plans.append(chosen)
    return max(plans, key=lambda plan: savings_of_added(plan, frozenset()))


def _groups(
    sets: EndUseSets, values: dict[EndUses, int], chosen: EndUses, costs: Integers
) -> list[RetirementGroup]:
    """The chosen end uses in groups that share no node."""
    subsets = [members for members in values if members <= chosen]
    parts: list[EndUses] = []
    for members in subsets:
        overlapping = [part for part in parts if part & members]
        parts = [part for part in parts if not part & members]
        parts.append(members.union(*overlapping))
    groups = []
    for part in parts:
        obsolete = sets.nodes_of([members for members in subsets if members <= part])
        saved = costs[:, obsolete].sum(axis=1)
        if saved.sum() > 0:
            ends = np.array(sorted(part), dtype=np.int64)
            groups.append(RetirementGroup(ends=ends, obsolete=obsolete, saved=saved))
    return sorted(groups, key=lambda group: -int(group.saved.sum()))
