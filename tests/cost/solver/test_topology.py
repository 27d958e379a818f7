"""Levels and cycles of random graphs, against plain reachability."""

import numpy as np
import pytest

from lumos.cost.solver.topology import build_topology, strong_components


def reach(nodes: int, pairs: np.ndarray) -> np.ndarray:
    """Which node leads to which, itself included, by squaring."""
    leads = np.eye(nodes, dtype=np.bool_)
    leads[pairs[:, 0], pairs[:, 1]] = True
    for _ in range(nodes.bit_length()):
        leads = leads @ leads
    return leads


@pytest.mark.parametrize("edges", [20, 60, 90, 120, 300])
@pytest.mark.parametrize("seed", range(8))
def test_cycles_are_what_leads_to_each_other_and_levels_keep_their_order(
    seed: int, edges: int
) -> None:
    nodes = 80
    chance = np.random.default_rng(seed)
    pairs = np.unique(chance.integers(0, nodes, (edges, 2)), axis=0)
    chance.shuffle(pairs)
    leads = reach(nodes, pairs)
    mutual = leads & leads.T
    moving = pairs[pairs[:, 0] != pairs[:, 1]]
    labels = strong_components(np.ones(nodes, dtype=np.bool_), moving[:, 0], moving[:, 1])
    assert (mutual == (labels[:, None] == labels[None, :])).all()

    found = build_topology(nodes, pairs[:, 0], pairs[:, 1])
    expected = {tuple(np.flatnonzero(row)) for row in mutual if row.sum() > 1}
    assert {tuple(members) for members in found.cycles} == expected
    level_of = np.full(nodes, -1)
    for number, level in enumerate(found.levels):
        level_of[level.nodes] = number
        for cycle in level.cycles:
            level_of[found.cycles[cycle]] = number
    assert (level_of >= 0).all()
    between = ~mutual[pairs[:, 0], pairs[:, 1]]
    assert (level_of[pairs[between, 0]] < level_of[pairs[between, 1]]).all()
    level_edges = np.concatenate([level.edges for level in found.levels])
    assert sorted(level_edges.tolist()) == np.flatnonzero(between).tolist()
    inner = [edge for edges_inside in found.inner for edge in edges_inside.tolist()]
    inside = ~between & (pairs[:, 0] != pairs[:, 1])
    assert sorted(inner) == np.flatnonzero(inside).tolist()
