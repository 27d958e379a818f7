"""What to retire together: which few end uses, given up, free most of what is upstream.

A node is free when all end uses that need it are given up. Which sets of end uses nodes serve
decides everything: giving up a set saves the cost of all nodes whose set lies inside of it. For one
end use these are its subtree among post-dominators.
"""

import heapq
from dataclasses import dataclass
from typing import Final

import numpy as np

from lumos.cost.solver.end_sets import Ends, EndSets, all_end_sets, small_end_sets
from lumos.cost.solver.graph import Bools, CostGraph, Integers
from lumos.cost.solver.savings import avoidable_costs

# All sets of so many end uses are tried: 65,536.
_EXACT: Final = 16
# Beyond these, groups of end uses that free little are not looked at.
_CANDIDATES: Final = 3000


@dataclass(frozen=True, kw_only=True, eq=False)
class RetirementGroup:
    """End uses that free something only together, and all that goes with them."""

    ends: Integers
    gone: Integers
    """The end uses, and what only they need."""
    saved: Integers
    """[k] micro-units."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Retirement:
    """A plan that breaks nothing which stays; its groups are independent, the largest first."""

    groups: list[RetirementGroup]
    saved: Integers
    """[k] by all groups."""
    exact: bool
    """Whether no other choice saves more; otherwise the choice is a greedy one."""
    unneeded: Integers
    """What no end use needs today, and may go in any case; no part of the groups."""
    unneeded_saved: Integers


def retirement(graph: CostGraph, top: int, avoidable: Bools | None = None) -> Retirement:
    """At most `top` end uses whose retirement together saves most."""
    costs = avoidable_costs(graph, avoidable)
    exact = int(graph.live.sum()) <= _EXACT
    sets = all_end_sets(graph) if exact else small_end_sets(graph, top)
    values = sets.values(costs.sum(axis=0))
    chosen = _best(values, top) if exact else _greedy(values, top)
    groups = _groups(sets, values, chosen, costs)
    none = np.zeros(len(graph.types), dtype=np.int64)
    return Retirement(
        groups=groups,
        saved=sum((each.saved for each in groups), none),
        exact=exact,
        unneeded=np.flatnonzero(~sets.needed),
        unneeded_saved=costs[:, ~sets.needed].sum(axis=1),
    )


def _best(values: dict[Ends, int], top: int) -> Ends:
    """All subsets at once: sums over subsets by adding, bit by bit, those without the bit."""
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
    most = allowed[sums[allowed] == sums[allowed].max()]
    # Of those that save the same, the one that gives up least.
    found = int(most[np.argmin(sizes[most])])
    return frozenset(end for end in ends if found >> bit[end] & 1)


def _greedy(values: dict[Ends, int], top: int) -> Ends:
    """The better of two ways to choose: what saves most next, and most for each end use."""
    of_end: dict[int, list[Ends]] = {}
    for members in values:
        for end in members:
            of_end.setdefault(end, []).append(members)

    def alone(members: Ends) -> float:
        inside = sum(values.get(frozenset([end]), 0) for end in members)
        return (inside + (values[members] if len(members) > 1 else 0)) / len(members)

    def freed(added: Ends, chosen: Ends) -> int:
        together = chosen | added
        inside = {other for end in added for other in of_end[end] if other <= together}
        return sum(values[other] for other in inside)

    candidates = heapq.nlargest(_CANDIDATES, values, key=alone)
    plans = []
    for weight in (0.0, 1.0):
        chosen: Ends = frozenset()
        while True:
            best, most = chosen, 0.0
            for members in candidates:
                added = members - chosen
                if added and len(chosen) + len(added) <= top:
                    worth = freed(added, chosen) / len(added) ** weight
                    best, most = (chosen | members, worth) if worth > most else (best, most)
            if best == chosen:
                break
            chosen = best
        plans.append(chosen)
    return max(plans, key=lambda plan: freed(plan, frozenset()))


def _groups(
    sets: EndSets, values: dict[Ends, int], chosen: Ends, costs: Integers
) -> list[RetirementGroup]:
    """The chosen end uses, apart where nothing needs both."""
    inside = [members for members in values if members <= chosen]
    parts: list[Ends] = []
    for members in inside:
        touching = [part for part in parts if part & members]
        parts = [part for part in parts if not part & members]
        parts.append(members.union(*touching))
    groups = []
    for part in parts:
        gone = sets.serving([members for members in inside if members <= part])
        saved = costs[:, gone].sum(axis=1)
        if saved.sum() > 0:
            ends = np.array(sorted(part), dtype=np.int64)
            groups.append(RetirementGroup(ends=ends, gone=gone, saved=saved))
    return sorted(groups, key=lambda group: -int(group.saved.sum()))
