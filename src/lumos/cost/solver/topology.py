"""The order in which cost flows: levels of nodes, and the cycles that stand in it as one."""

from dataclasses import dataclass

import numpy as np

from lumos.cost.solver.graph import Bools, Integers
from lumos.cost.solver.peeling import Peeling, grouped
from lumos.cost.solver.strong import strong_components


@dataclass(frozen=True, kw_only=True, eq=False)
class Level:
    """Nodes that depend only on nodes of levels before, or on others of their own cycle."""

    nodes: Integers
    """Nodes outside of cycles, and one node for each cycle."""
    cycles: Integers
    """Which cycles stand on this level."""
    edges: Integers
    """The edges that leave the level, as their numbers in the graph."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Topology:
    """Levels in the order of the edges, and the members of each cycle."""

    levels: list[Level]
    cycles: list[Integers]
    cycle_of: Integers
    """[n] the cycle of a node, or -1."""
    inner: list[Integers]
    """The edges inside of each cycle, self-edges left out."""


def topology(nodes: int, upstream: Integers, downstream: Integers) -> Topology:
    """Levels and cycles of the edges; those of a node to itself are left out."""
    moving = np.flatnonzero(upstream != downstream)
    cycle_of = np.full(nodes, -1, dtype=np.int64)
    peeled = Peeling(np.ones(nodes, dtype=np.bool_), upstream, downstream, moving)
    if peeled.complete:
        return _laid_out(peeled, [], cycle_of, [])
    cycles = _cycles(peeled.left, upstream, downstream)
    stands_for = np.arange(nodes)
    for number, members in enumerate(cycles):
        cycle_of[members] = number
        stands_for[members] = members[0]
    source, target = stands_for[upstream], stands_for[downstream]
    between = np.flatnonzero(source != target)
    peeled = Peeling(stands_for == np.arange(nodes), source, target, between)
    within = moving[source[moving] == target[moving]]
    of_edge = cycle_of[upstream[within]]
    bounds = np.cumsum(np.bincount(of_edge, minlength=len(cycles)))[:-1]
    inner = np.split(within[grouped(of_edge, len(cycles))], bounds)
    return _laid_out(peeled, cycles, cycle_of, inner)


def _cycles(left: Bools, upstream: Integers, downstream: Integers) -> list[Integers]:
    """The members of each component of more than one node."""
    edges = left[upstream] & left[downstream] & (upstream != downstream)
    labels = strong_components(left, upstream[edges], downstream[edges])
    sizes = np.bincount(labels, minlength=len(left))
    members = np.flatnonzero(sizes[labels] > 1)
    members = members[grouped(labels[members], len(left))]
    return np.split(members, np.flatnonzero(np.diff(labels[members])) + 1)


def _laid_out(
    peeled: Peeling, cycles: list[Integers], cycle_of: Integers, inner: list[Integers]
) -> Topology:
    levels = []
    for nodes, edges in peeled.levels:
        of_node = cycle_of[nodes]
        levels.append(Level(nodes=nodes, cycles=of_node[of_node >= 0], edges=edges))
    return Topology(levels=levels, cycles=cycles, cycle_of=cycle_of, inner=inner)
