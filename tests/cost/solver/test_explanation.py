"""Which paths and shares make a number."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost.solver.exact import random_graph
from lumos.cost.solver.attribution import attribute, explain_paths
from lumos.cost.solver.graph import CostGraph

COSTS = {"raw": {"c": 100}, "a": {"c": 10}, "b": {"c": 1}, "out": {"c": 7}}
DIAMOND = [("raw", "a"), ("raw", "b"), ("a", "out"), ("b", "out")]
SHARES = {("raw", "a"): 0.7, ("raw", "b"): 0.3}


def path_amounts(graph: CostGraph, urn: str, limit: int) -> tuple[list[tuple[str, int]], int, bool]:
    found = explain_paths(graph, attribute(graph), list(graph.urns).index(urn), limit=limit)
    paths = [
        (" > ".join(graph.urns[node] for node in path.nodes), int(path.amounts.sum()))
        for path in found.paths
    ]
    return paths, int(found.remainder.sum()), found.complete


@pytest.mark.parametrize(
    ("limit", "rest", "complete"), [(5, 0, True), (4, 1, False), (2, 18, False), (0, 118, False)]
)
def test_paths_come_largest_first_and_the_rest_is_reported(
    limit: int, rest: int, complete: bool
) -> None:
    graph = CostGraph.of(COSTS, DIAMOND, shares=SHARES)
    ways = [
        ("raw > a > out", 70), ("raw > b > out", 30), ("a > out", 10), ("out", 7), ("b > out", 1)
    ]  # fmt: skip
    assert path_amounts(graph, "out", limit) == (ways[:limit], rest, complete)


def test_shares_stand_beside_their_edges_by_type() -> None:
    graph = CostGraph.of(
        {"a": {"c": 10, "s": 4}, "b": {"c": 0}, "d": {"c": 0}},
        [("a", "b"), ("b", "d")],
        shares={("a", "b"): {"c": 0.5, "s": 1.0}, ("b", "d"): 0.2},
    )
    (path,) = explain_paths(graph, attribute(graph), 2).paths
    assert (path.nodes, path.edges) == ((0, 1, 2), (0, 1))
    assert path.shares.tolist() == [[0.5, 0.2], [1.0, 0.2]]
    assert path.amounts.tolist() == [1, 1]


def test_what_goes_round_in_a_cycle_is_the_remainder() -> None:
    graph = CostGraph.of(
        {"a": {"c": 100}, "b": {"c": 0}, "out": {"c": 0}},
        [("a", "b"), ("b", "a"), ("b", "out")],
        shares={("b", "a"): 0.5},
    )
    assert path_amounts(graph, "out", 9) == ([("a > b > out", 50)], 50, True)


@given(seed=st.integers(0, 2**32))
def test_paths_and_remainder_give_the_loaded_cost(seed: int) -> None:
    chance = random.Random(seed)
    graph, method = random_graph(chance)
    attribution = attribute(graph, method)
    node = chance.randrange(graph.nodes)
    for limit in (1, 3, 10_000):
        found = explain_paths(graph, attribution, node, limit=limit)
        sums = sum((path.amounts for path in found.paths), np.zeros_like(found.remainder))
        assert (sums + found.remainder == attribution.loaded[:, node]).all()
        for path in found.paths:
            own = graph.costs[:, path.nodes[0]] * path.shares.prod(axis=1)
            assert (np.abs(own - path.amounts) <= 0.5 + 1e-9 * np.abs(own)).all()
    if found.complete and not attribution.components:
        assert (np.abs(found.remainder) <= len(found.paths)).all()
