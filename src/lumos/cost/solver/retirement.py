"""Plans which end uses to retire together to save most.

A node can be removed when all end uses that need it are retired. So each node belongs to the set of
end uses that need it, and retiring a set of end uses saves the cost of all nodes whose set is a
subset. For one end use these are its subtree in the post-dominator tree.
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
    """The distinct sets of end uses, and which nodes are needed by exactly which set."""

    def __init__(self, needed: Bools, set_of: Integers, numbers: dict[EndUses, int]) -> None:
        self.needed = needed
        self._set_of = set_of
        self._numbers = numbers

    def values(self, amounts: Integers) -> dict[EndUses, int]:
        """For each set, the sum of amounts over the nodes that exactly its end uses need."""
        sums = np.zeros(len(self._numbers), dtype=np.int64)
        known = self._set_of >= 0
        np.add.at(sums, self._set_of[known], amounts[known])
        return dict(zip(self._numbers, sums.tolist(), strict=True))

    def nodes_of(self, sets: list[EndUses]) -> Integers:
        """The nodes that belong to one of these sets, in ascending order."""
        numbers = [self._numbers[members] for members in sets]
        return np.flatnonzero(np.isin(self._set_of, numbers))


def all_end_sets(graph: CostGraph) -> EndUseSets:
    """The sets of all nodes, computed as bit masks; for at most 62 end uses."""
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
    """The sets of at most `max_size` end uses; nodes with larger sets have none."""
    upstream_adjacency = Adjacency(graph.nodes, graph.downstream, graph.upstream)
    needed: Bools = upstream_adjacency.origins(np.flatnonzero(graph.live)) >= 0
    order = _reverse_topology(graph)
    set_join = _SetJoin(graph, max_size)
    for level in order.levels:
        nodes = level.nodes[needed[level.nodes]]
        set_join.join([[node] for node in nodes[order.cycle_of[nodes] < 0].tolist()])
        cycles = order.cycle_of[nodes]
        set_join.join([order.cycles[cycle].tolist() for cycle in cycles[cycles >= 0].tolist()])
    return EndUseSets(needed, set_join.set_of, set_join.numbers)


class _SetJoin:
    """Joins the sets of downstream nodes, beginning with nodes without readers."""

    def __init__(self, graph: CostGraph, max_size: int) -> None:
        self._downstream = Adjacency(graph.nodes, graph.upstream, graph.downstream)
        self._live = graph.live
        self._max_size = max_size
        self._too_many = np.zeros(graph.nodes, dtype=np.bool_)
        self._sets: list[EndUses] = []
        self.numbers: dict[EndUses, int] = {}
        self.set_of: Integers = np.full(graph.nodes, -1, dtype=np.int64)

    def join(self, groups: list[list[int]]) -> None:
        """Assign the joined set to each group: a single node or the members of a cycle."""
        nodes = np.array([node for group in groups for node in group], dtype=np.int64)
        targets, steps = self._downstream.next_to(nodes)
        ends = np.cumsum(steps)
        known: list[int] = self.set_of[targets].tolist()
        is_too_large: list[bool] = self._too_many[targets].tolist()
        until: list[int] = ends.tolist()
        is_end: list[bool] = self._live[nodes].tolist()
        found = np.full(len(nodes), -1, dtype=np.int64)
        first = position_in_nodes = 0
        for group in groups:
            last = position_in_nodes + len(group)
            through = slice(first, until[last - 1])
            if not any(is_too_large[through]):
                own = [
                    node
                    for node, live in zip(group, is_end[position_in_nodes:last], strict=True)
                    if live
                ]
                found[position_in_nodes:last] = self._number(own, set(known[through]))
            position_in_nodes, first = last, through.stop
        self.set_of[nodes] = found
        self._too_many[nodes] = found < 0

    def _number(self, own: list[int], joined: set[int]) -> int:
        joined.discard(-1)
        if len(joined) == 1 and not own:
            return joined.pop()
        members = frozenset(own).union(*(self._sets[number] for number in joined))
        if len(members) > self._max_size:
            return -1
        number = self.numbers.setdefault(members, len(self._sets))
        if number == len(self._sets):
            self._sets.append(members)
        return number


def _reverse_topology(graph: CostGraph) -> Topology:
    """Levels against the edges, beginning with nodes without readers."""
    return build_topology(graph.nodes, graph.downstream, graph.upstream)


# Up to this number of end uses all subsets are tried: 65,536.
_MAX_EXACT_ENDS: Final = 16
# With more candidates, sets that save little are not examined.
_MAX_CANDIDATES: Final = 3000


@dataclass(frozen=True, kw_only=True, eq=False)
class RetirementGroup:
    """End uses that only save something together, and everything that is removed with them."""

    ends: Integers
    gone: Integers
    """The end uses, and the nodes that only they need."""
    saved: Integers
    """[k] micro-units."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RetirementPlan:
    """Independent groups, the largest savings first; nothing that remains breaks."""

    groups: list[RetirementGroup]
    saved: Integers
    """[k] savings of all groups."""
    exact: bool
    """Whether no other choice saves more; otherwise the choice is greedy."""
    unneeded: Integers
    """Nodes that no end use needs today; they can be removed anyway and are not in the groups."""
    unneeded_saved: Integers


def plan_retirement(
    graph: CostGraph, top: int, avoidable: Bools | None = None, *, kept: EndUses = frozenset()
) -> RetirementPlan:
    """At most `top` end uses whose retirement together saves most; those in `kept` stay."""
    costs = avoidable_costs(graph, avoidable)
    exact = int(graph.live.sum()) <= _MAX_EXACT_ENDS
    sets = all_end_sets(graph) if exact else small_end_sets(graph, top)
    values = {
        members: value
        for members, value in sets.values(costs.sum(axis=0)).items()
        if not members & kept
    }
    chosen = _best(values, top) if exact else _greedy(values, top)
    groups = _groups(sets, values, chosen, costs)
    none = np.zeros(len(graph.types), dtype=np.int64)
    return RetirementPlan(
        groups=groups,
        saved=sum((each.saved for each in groups), none),
        exact=exact,
        unneeded=np.flatnonzero(~sets.needed),
        unneeded_saved=costs[:, ~sets.needed].sum(axis=1),
    )


def _best(values: dict[EndUses, int], top: int) -> EndUses:
    """The best subset of end uses: sums over all subsets by a zeta transform."""
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
    allowed = np.flatnonzero(sizes <= top)
    best = allowed[sums[allowed] == sums[allowed].max()]
    # Among equal savings, retire the fewest end uses.
    found = int(best[np.argmin(sizes[best])])
    return frozenset(end for end in ends if found >> bit[end] & 1)


def _greedy(values: dict[EndUses, int], top: int) -> EndUses:
    """The better of two greedy choices: by savings, and by savings per end use."""
    sets_of_end: dict[int, list[EndUses]] = {}
    for members in values:
        for end in members:
            sets_of_end.setdefault(end, []).append(members)

    def savings_per_end(members: EndUses) -> float:
        inside = sum(values.get(frozenset([end]), 0) for end in members)
        return (inside + (values[members] if len(members) > 1 else 0)) / len(members)

    def savings_of_added(added: EndUses, chosen: EndUses) -> int:
        all_chosen = chosen | added
        inside = {other for end in added for other in sets_of_end[end] if other <= all_chosen}
        return sum(values[other] for other in inside)

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
    inside = [members for members in values if members <= chosen]
    parts: list[EndUses] = []
    for members in inside:
        overlapping = [part for part in parts if part & members]
        parts = [part for part in parts if not part & members]
        parts.append(members.union(*overlapping))
    groups = []
    for part in parts:
        gone = sets.nodes_of([members for members in inside if members <= part])
        saved = costs[:, gone].sum(axis=1)
        if saved.sum() > 0:
            ends = np.array(sorted(part), dtype=np.int64)
            groups.append(RetirementGroup(ends=ends, gone=gone, saved=saved))
    return sorted(groups, key=lambda group: -int(group.saved.sum()))
