"""Cycles that nothing leaves: their cost stays in them, with the member it came in at."""

import numpy as np

from lumos.analysis.cost.graph import Bools, CostGraph, Floats, Integers
from lumos.analysis.cost.shares import NOISE, Shares
from lumos.analysis.cost.strong import strong_components
from lumos.analysis.cost.topology import Topology


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
    values, kept = divided.values[:rows], divided.kept[:rows]
    suspects = [
        (row, int(cycle)) for row in range(rows) for cycle in _suspects(graph, order, values[row])
    ]
    if not suspects:
        return divided, closed
    values, kept = values.copy(), kept.copy()
    for row, cycle in suspects:
        edges = order.inner[cycle]
        source, target = graph.upstream[edges], graph.downstream[edges]
        going_round = _going_round(order.cycles[cycle], source, target, values[row][edges])
        np.add.at(kept[row], source[going_round], values[row][edges[going_round]])
        values[row][edges[going_round]] = 0.0
        inside = np.unique(source[going_round])
        closed[row if rows > 1 else slice(None), cycle] = len(inside) == len(order.cycles[cycle])
    return Shares(
        values=np.broadcast_to(values, divided.values.shape),
        kept=np.broadcast_to(np.where(np.abs(kept - 1.0) < NOISE, 1.0, kept), divided.kept.shape),
        assumed=divided.assumed,
    ), closed


def _suspects(graph: CostGraph, order: Topology, values: Floats) -> Integers:
    """Cycles with no member that lets money out, or with an edge that lets none through."""
    inner = np.concatenate(order.inner)
    source = graph.upstream[inner]
    circling = np.bincount(source, values[inner], minlength=graph.nodes)
    count = len(order.cycles)
    leaking = (circling < 1.0 - NOISE) & (order.cycle_of >= 0)
    leaks = np.bincount(order.cycle_of[leaking], minlength=count)
    blocked = inner[values[inner] <= 0.0]
    blocks = np.bincount(order.cycle_of[graph.upstream[blocked]], minlength=count)
    return np.flatnonzero((leaks == 0) | (blocks > 0))


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
