"""Which end uses need a node: for all nodes where end uses are few, else where few need it."""

import numpy as np

from lumos.cost.solver.graph import Bools, CostGraph, Integers
from lumos.cost.solver.reach import Ways
from lumos.cost.solver.topology import Topology, topology

Ends = frozenset[int]


class EndSets:
    """Sets of end uses, numbered, and which node is needed by exactly which of them."""

    def __init__(self, needed: Bools, set_of: Integers, numbers: dict[Ends, int]) -> None:
        self.needed = needed
        self._set_of = set_of
        self._numbers = numbers

    def values(self, amounts: Integers) -> dict[Ends, int]:
        """For each set, the sum of amounts over the nodes that exactly its end uses need."""
        sums = np.zeros(len(self._numbers), dtype=np.int64)
        known = self._set_of >= 0
        np.add.at(sums, self._set_of[known], amounts[known])
        return dict(zip(self._numbers, sums.tolist(), strict=True))

    def serving(self, sets: list[Ends]) -> Integers:
        """The nodes that exactly the end uses of one of these sets need, in ascending order."""
        numbers = [self._numbers[members] for members in sets]
        return np.flatnonzero(np.isin(self._set_of, numbers))


def all_end_sets(graph: CostGraph) -> EndSets:
    """The sets of all nodes, as bits; for no more than 62 end uses."""
    bits = np.zeros(graph.nodes, dtype=np.int64)
    ends = np.flatnonzero(graph.live)
    bits[ends] = 1 << np.arange(len(ends))
    order = _upwards(graph)
    for level in order.levels:
        for cycle in level.cycles.tolist():
            members = order.cycles[cycle]
            bits[members] = np.bitwise_or.reduce(bits[members])
        np.bitwise_or.at(bits, graph.upstream[level.edges], bits[graph.downstream[level.edges]])
    needed = bits > 0
    masks, set_of = np.unique(bits[needed], return_inverse=True)
    sets = {
        frozenset(int(end) for place, end in enumerate(ends) if mask >> place & 1): number
        for number, mask in enumerate(masks.tolist())
    }
    numbers = np.full(graph.nodes, -1, dtype=np.int64)
    numbers[needed] = set_of
    return EndSets(needed, numbers, sets)


def small_end_sets(graph: CostGraph, most: int) -> EndSets:
    """The sets of no more than `most` end uses; the nodes of larger ones have none."""
    against = Ways(graph.nodes, graph.downstream, graph.upstream)
    needed: Bools = against.origins(np.flatnonzero(graph.live)) >= 0
    order = _upwards(graph)
    joining = _Joining(graph, most)
    for level in order.levels:
        nodes = level.nodes[needed[level.nodes]]
        joining.join([[node] for node in nodes[order.cycle_of[nodes] < 0].tolist()])
        cycles = order.cycle_of[nodes]
        joining.join([order.cycles[cycle].tolist() for cycle in cycles[cycles >= 0].tolist()])
    return EndSets(needed, joining.set_of, joining.numbers)


class _Joining:
    """Joins the sets of what nodes lead to, from what nothing reads on."""

    def __init__(self, graph: CostGraph, most: int) -> None:
        self._along = Ways(graph.nodes, graph.upstream, graph.downstream)
        self._live = graph.live
        self._most = most
        self._too_many = np.zeros(graph.nodes, dtype=np.bool_)
        self._sets: list[Ends] = []
        self.numbers: dict[Ends, int] = {}
        self.set_of: Integers = np.full(graph.nodes, -1, dtype=np.int64)

    def join(self, groups: list[list[int]]) -> None:
        """Gives each group, a node or the members of a cycle, its set."""
        nodes = np.array([node for group in groups for node in group], dtype=np.int64)
        targets, steps = self._along.next_to(nodes)
        ends = np.cumsum(steps)
        known: list[int] = self.set_of[targets].tolist()
        above: list[bool] = self._too_many[targets].tolist()
        until: list[int] = ends.tolist()
        is_end: list[bool] = self._live[nodes].tolist()
        found = np.full(len(nodes), -1, dtype=np.int64)
        first = at = 0
        for group in groups:
            last = at + len(group)
            through = slice(first, until[last - 1])
            if not any(above[through]):
                own = [node for node, live in zip(group, is_end[at:last], strict=True) if live]
                found[at:last] = self._number(own, set(known[through]))
            at, first = last, through.stop
        self.set_of[nodes] = found
        self._too_many[nodes] = found < 0

    def _number(self, own: list[int], joined: set[int]) -> int:
        joined.discard(-1)
        if len(joined) == 1 and not own:
            return joined.pop()
        members = frozenset(own).union(*(self._sets[number] for number in joined))
        if len(members) > self._most:
            return -1
        number = self.numbers.setdefault(members, len(self._sets))
        if number == len(self._sets):
            self._sets.append(members)
        return number


def _upwards(graph: CostGraph) -> Topology:
    """Levels from what nothing reads on, against the edges."""
    return topology(graph.nodes, graph.downstream, graph.upstream)
