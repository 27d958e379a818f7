"""What disappears when datasets are shut down, against trying it out."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost.solver.exact import random_graph, reached, tried_savings
from lumos.cost.solver.graph import CostGraph
from lumos.cost.solver.savings import Savings, savings_of, savings_of_all

COSTS = {"raw": {"c": 100}, "core": {"c": 60}, "A": {"c": 10}, "B": {"c": 20}}
FLOW = [("raw", "core"), ("core", "A"), ("core", "B")]


def names(graph: CostGraph, nodes: np.ndarray) -> list[str]:
    return [graph.urns[node] for node in nodes]


def removal(graph: CostGraph, *urns: str, avoidable: np.ndarray | None = None) -> Savings:
    return savings_of(graph, [list(graph.urns).index(urn) for urn in urns], avoidable)


@pytest.mark.parametrize(
    ("urns", "saved"),
    [(["A"], 10), (["B"], 20), (["A", "B"], 190), (["core"], 160), (["raw"], 100)],
)
def test_the_example_of_the_model(urns: list[str], saved: int) -> None:
    graph = CostGraph.of(COSTS, FLOW)
    assert removal(graph, *urns).saved.tolist() == [saved]
    if len(urns) == 1:
        assert savings_of_all(graph)[list(graph.urns).index(urns[0])] == saved


def test_broken_and_remaining_nodes_are_distinguished_from_savings() -> None:
    graph = CostGraph.of(COSTS, FLOW)
    found = removal(graph, "A")
    assert names(graph, found.obsolete) == ["A"]
    assert names(graph, found.remaining) == ["raw", "core"]
    assert names(graph, found.needed_by) == ["B", "B"]
    assert names(graph, found.broken) == []
    assert names(graph, removal(graph, "core").broken) == ["A", "B"]


def test_what_was_not_needed_before_is_saved_only_where_it_is_removed() -> None:
    graph = CostGraph.of(COSTS, FLOW, live={"A": False, "B": False})
    assert savings_of_all(graph).tolist() == [100, 60, 10, 20]
    found = removal(graph, "core")
    assert names(graph, found.obsolete) == ["core"]
    assert found.needed_by.tolist() == [-1]
    assert names(graph, found.broken) == ["A", "B"]


def test_an_end_use_inside_keeps_what_is_above_it() -> None:
    graph = CostGraph.of(COSTS, FLOW, live={"core": True})
    assert removal(graph, "A", "B").saved.tolist() == [30]


def test_a_job_goes_with_its_only_output() -> None:
    costs = {"raw": {"c": 1}, "job": {"c": 2}, "out": {"c": 4}, "other": {"c": 8}}
    graph = CostGraph.of(costs, [("raw", "job"), ("job", "out"), ("raw", "other")], jobs=["job"])
    assert removal(graph, "out").saved.tolist() == [6]


def test_what_stays_due_is_not_saved() -> None:
    graph = CostGraph.of(COSTS, FLOW)
    committed = np.array([True, False, True, True])
    found = removal(graph, "A", "B", avoidable=committed)
    assert (found.saved.tolist(), found.unavoidable.tolist()) == ([130], [60])
    assert savings_of_all(graph, committed).tolist() == [100, 100, 10, 20]
    by_type = removal(graph, "A", avoidable=np.array([[True, True, False, True]]))
    assert (by_type.saved.tolist(), by_type.unavoidable.tolist()) == ([0], [10])


@pytest.mark.parametrize(
    ("graphs", "most"),
    [(1000, 9), (40, 30), pytest.param(10_000, 9, marks=pytest.mark.slow, id="many")],
)
def test_savings_equal_trying_it_out(graphs: int, most: int) -> None:
    chance = random.Random(graphs)
    for _ in range(graphs):
        graph, _ = random_graph(chance, most=most)
        tried = [sum(tried_savings(graph, {node})[0]) for node in range(graph.nodes)]
        assert savings_of_all(graph).tolist() == tried
        together = {node for node in range(graph.nodes) if chance.random() < 0.4}
        saved, gone = tried_savings(graph, together)
        found = savings_of(graph, together)
        assert found.saved.tolist() == saved
        assert set(found.obsolete.tolist()) == gone


@given(seed=st.integers(0, 2**32))
def test_what_is_removed_gone_broken_and_staying_fits_together(seed: int) -> None:
    chance = random.Random(seed)
    graph, _ = random_graph(chance, most=15)
    together = [node for node in range(graph.nodes) if chance.random() < 0.3]
    found = savings_of(graph, together)
    edges = list(zip(graph.upstream.tolist(), graph.downstream.tolist(), strict=True))
    gone = set(found.obsolete.tolist())
    assert set(found.broken.tolist()) == reached(gone, edges) - gone
    for node, end in zip(found.remaining.tolist(), found.needed_by.tolist(), strict=True):
        open_ways = [(at, to) for at, to in edges if not {at, to} & set(together)]
        assert end < 0 or (graph.live[end] and end in reached({node}, open_ways))
    alone = savings_of_all(graph)
    assert all(sum(savings_of(graph, [node]).saved) == alone[node] for node in together)
