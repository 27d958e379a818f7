"""Cycles that nothing leaves: their cost stays in them, with the member it came in at."""

import numpy as np

from lumos.cost.solver.graph import Bools, CostGraph, Floats, Integers
from lumos.cost.solver.shares import NOISE, Shares
from lumos.cost.solver.strong import strong_components
from lumos.cost.solver.topology import Topology


def with_ends_closed(graph: CostGraph, order: Topology, divided: Shares) -> tuple[Shares, Bools]:
    """The shares with nothing carried around where nothing leaves, and which cycles that are.

    Money would go round in such a cycle for ever. Each member retains instead what it costs and
    what flows to it from outside.
    """
    types = len(graph.types)
    closed = np.zeros((types, len(order.cycles)), dtype=np.bool_)
    if not order.cycles:
        return divided, closed
    rows = 1 if divided.uniform else types
    found = [_going_round_of_all(graph, order, divided.values[row]) for row in range(rows)]
    closed[:] = np.array([is_shut for _, is_shut in found])
    if not any(len(edges) for edges, _ in found):
        return divided, closed
    values, kept = divided.values[:rows].copy(), divided.kept[:rows].copy()
    for row, (edges, _) in enumerate(found):
        values[row][edges] = 0.0
        shut = np.unique(graph.upstream[edges])
        carried = np.bincount(graph.upstream, values[row], minlength=graph.nodes)
        kept[row][shut] = 1.0 - carried[shut]
    changed = Shares(
        values=np.broadcast_to(values, divided.values.shape),
        kept=np.broadcast_to(kept, divided.kept.shape),
        assumed=divided.assumed,
    )
    return changed, closed


def _going_round_of_all(
    graph: CostGraph, order: Topology, values: Floats
) -> tuple[Integers, Bools]:
    """The edges on which money would go round for ever, and which cycles nothing leaves."""
    count = len(order.cycles)
    inner = np.concatenate(order.inner)
    circling = np.bincount(graph.upstream[inner], values[inner], minlength=graph.nodes)
    leaking = (circling < 1.0 - NOISE) & (order.cycle_of >= 0)
    leaks = np.bincount(order.cycle_of[leaking], minlength=count) > 0
    blocked = inner[values[inner] <= 0.0]
    blocks = np.bincount(order.cycle_of[graph.upstream[blocked]], minlength=count) > 0
    is_shut = ~leaks & ~blocks
    found = [inner[is_shut[order.cycle_of[graph.upstream[inner]]]]]
    # Where an edge lets nothing through, a part of the cycle may be shut.
    for cycle in np.flatnonzero(blocks).tolist():
        members, edges = order.cycles[cycle], order.inner[cycle]
        source, target = graph.upstream[edges], graph.downstream[edges]
        going_round = _going_round(members, source, target, values[edges])
        found.append(edges[going_round])
        is_shut[cycle] = len(np.unique(source[going_round])) == len(members)
    return np.concatenate(found), is_shut


def _going_round(members: Integers, source: Integers, target: Integers, share: Floats) -> Bools:
    """The edges inside of those parts of a cycle that no money leaves."""
    at, to = np.searchsorted(members, source), np.searchsorted(members, target)
    size = len(members)
    open_to = share > 0.0
    lets_out = np.bincount(at, share, minlength=size) < 1.0 - NOISE
    while True:
        also = np.zeros(size, dtype=np.bool_)
        also[at[open_to & lets_out[to]]] = True
        if not (also & ~lets_out).any():
            break
        lets_out |= also
    stuck = ~lets_out
    among = open_to & stuck[at] & stuck[to]
    labels = strong_components(stuck, at[among], to[among])
    passing = np.zeros(size, dtype=np.bool_)
    passing[labels[at[among & (labels[at] != labels[to])]]] = True
    return among & ~passing[labels[at]]
