"""Loaded and retained cost: worked examples, conservation, and equality with exact fractions."""

import random

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from cost.solver.exact import exact_attribution, random_graph
from lumos.cost.solver import cycles as circulation
from lumos.cost.solver.attribution import AmountsTooLarge, Attribution, attribute
from lumos.cost.solver.graph import CostGraph
from lumos.cost.solver.shares import InvalidShare, compute_shares
from lumos.errors import MisuseError
from lumos.model.cost import METHODS, AttributionMethod

MILLION = 1_000_000
FOUNDING = {
    "raw_events": {"storage": 500 * MILLION},
    "cleaned_events": {"compute": 3000 * MILLION},
    "event_metrics": {"compute": 1000 * MILLION},
    "feature_store": {"compute": 2000 * MILLION, "storage": 200 * MILLION},
    "ml_predictions": {"compute": 1500 * MILLION},
}
SPLIT = {("raw_events", "cleaned_events"): 0.6, ("raw_events", "event_metrics"): 0.4}
FLOW = [*SPLIT, ("cleaned_events", "feature_store"), ("feature_store", "ml_predictions")]


def units(graph: CostGraph, figures: np.ndarray) -> dict[str, float]:
    """The sum over all types of each node that has any, in whole units of money."""
    sums = figures.sum(axis=0) / MILLION
    return {urn: float(sums[node]) for node, urn in enumerate(graph.urns) if sums[node]}


def test_the_founding_example_with_an_allocation_by_type() -> None:
    allocated = {("cleaned_events", "feature_store"): {"compute": 0.6, "storage": 1.0}}
    graph = CostGraph.of(FOUNDING, FLOW, shares=SPLIT | allocated)
    found = attribute(graph)
    assert units(graph, found.loaded)["ml_predictions"] == 5800
    assert units(graph, found.retained) == {
        "cleaned_events": 1200, "event_metrics": 1200, "ml_predictions": 5800
    }  # fmt: skip
    last = dict(zip(graph.types, found.loaded[:, 4] / MILLION, strict=True))
    assert last == {"storage": 500, "compute": 5300}


def test_the_founding_example_without_an_allocation() -> None:
    graph = CostGraph.of(FOUNDING, FLOW, shares=SPLIT)
    found = attribute(graph)
    assert units(graph, found.loaded)["ml_predictions"] == 7000
    assert units(graph, found.retained) == {"event_metrics": 1200, "ml_predictions": 7000}


DIAMOND = {"u": {"c": 12 * MILLION}, "a": {"c": 0}, "b": {"c": 0}, "d": {"c": 0}}
FAN = [("u", "a"), ("u", "b"), ("u", "d")]


@pytest.mark.parametrize(
    ("method", "known", "carried", "stays"),
    [
        pytest.param("equal_split", {}, [4, 4, 4], 0, id="equal"),
        pytest.param("equal_split", {"live": {"u": True}}, [3, 3, 3], 3, id="an end use is one reader more"),
        pytest.param("equal_split", {"shares": {("u", "a"): 0.5}}, [6, 3, 3], 0, id="explicit first"),
        pytest.param("equal_split", {"shares": {("u", "a"): 0.5}, "live": {"u": True}}, [6, 2, 2], 2, id="explicit, then an end use"),
        pytest.param("equal_split", {"shares": dict.fromkeys(FAN, 0.25)}, [3, 3, 3], 3, id="explicit everywhere leaves the rest"),
        pytest.param("equal_split", {"shares": dict.fromkeys(FAN, 0.0)}, [0, 0, 0], 12, id="explicit nothing"),
        pytest.param("lineage_weighted", {"weights": dict(zip(FAN, (1, 2, 3), strict=True))}, [2, 4, 6], 0, id="by weight"),
        pytest.param("lineage_weighted", {"weights": dict(zip(FAN, (1, 2, 3), strict=True)), "live": {"u": True}}, [1.5, 3, 4.5], 3, id="weights beside an end use"),
        pytest.param("lineage_weighted", {"weights": dict(zip(FAN, (1, 0, 3), strict=True)), "shares": {("u", "b"): 0.5}}, [1.5, 6, 4.5], 0, id="weights of what is left"),
        pytest.param("lineage_weighted", {"weights": {("u", "a"): 7}}, [4, 4, 4], 0, id="one known is not enough"),
        pytest.param("lineage_weighted", {"weights": dict.fromkeys(FAN, 0)}, [4, 4, 4], 0, id="nothing was read"),
        pytest.param("last_touch", {"last_read": dict(zip(FAN, (1, 3, 2), strict=True))}, [0, 12, 0], 0, id="last"),
        pytest.param("last_touch", {"last_read": {("u", "d"): 1}}, [0, 0, 12], 0, id="only one was seen"),
        pytest.param("last_touch", {"last_read": dict.fromkeys(FAN, 5)}, [4, 4, 4], 0, id="at the same moment"),
        pytest.param("last_touch", {"last_read": {("u", "d"): 1}, "shares": {("u", "d"): 0.25}}, [4.5, 4.5, 3], 0, id="last of those that are free"),
        pytest.param("last_touch", {"live": {"u": True}}, [3, 3, 3], 3, id="nobody was seen"),
    ],
)  # fmt: skip
def test_how_cost_is_divided(
    method: AttributionMethod,
    known: dict[str, dict[object, object]],
    carried: list[float],
    stays: float,
) -> None:
    found = attribute(CostGraph.of(DIAMOND, FAN, **known), method)  # type: ignore[arg-type]
    assert (found.loaded[0, 1:] / MILLION).tolist() == carried
    assert found.retained[0, 0] / MILLION == stays


def test_reports_contain_the_assumed_share() -> None:
    graph = CostGraph.of(
        {"raw": {"c": 90}, "a": {"c": 1}, "b": {"c": 2}, "c": {"c": 4}},
        [("raw", "a"), ("raw", "b"), ("b", "c")],
        weights={("raw", "a"): 5},
    )
    found = attribute(graph)
    assert found.assumed.tolist() == [[0, 45, 45, 45]]
    assert found.assumed_amount.tolist() == [90]
    # One reader carries all, whatever it reads.
    assert found.shares.assumed.tolist() == [[True, True, False]]
    assert attribute(graph, "equal_split").assumed_amount.tolist() == [0]


def test_a_job_with_two_outputs_is_shared_by_them() -> None:
    graph = CostGraph.of(
        {"raw": {"c": 10}, "job": {"c": 30}, "one": {"c": 0}, "two": {"c": 0}},
        [("raw", "job"), ("job", "one"), ("job", "two")],
        jobs=["job"],
    )
    assert attribute(graph).retained.tolist() == [[0, 0, 20, 20]]


def test_a_self_edge_changes_nothing() -> None:
    graph = CostGraph.of({"a": {"c": 8}, "b": {"c": 1}}, [("a", "a"), ("a", "b"), ("b", "b")])
    assert attribute(graph).loaded.tolist() == [[8, 9]]


def test_cost_in_a_tight_cycle_is_reported_for_the_component() -> None:
    graph = CostGraph.of(
        {"in": {"c": 100}, "a": {"c": 0}, "b": {"c": 0}, "out": {"c": 0}},
        [("in", "a"), ("a", "b"), ("b", "a"), ("b", "out")],
        shares={("b", "a"): 0.9},
    )
    found = attribute(graph)
    assert found.loaded.tolist() == [[100, 1000, 1000, 100]]
    (component,) = found.components
    assert component.members.tolist() == [1, 2]
    assert component.loaded.tolist() == [100]
    assert not component.closed.any()


def test_what_nothing_leaves_keeps_cost_where_it_came_in() -> None:
    graph = CostGraph.of(
        {"in": {"c": 100}, "a": {"c": 5}, "b": {"c": 7}}, [("in", "a"), ("a", "b"), ("b", "a")]
    )
    found = attribute(graph)
    assert found.retained.tolist() == [[0, 105, 7]]
    (component,) = found.components
    assert component.loaded.tolist() == [112]
    assert component.closed.all()


def test_a_cycle_may_be_an_end_for_one_type_only() -> None:
    graph = CostGraph.of(
        {"a": {"c": 5, "s": 1}, "b": {"c": 7, "s": 2}, "out": {"c": 0, "s": 0}},
        [("a", "b"), ("b", "a"), ("b", "out")],
        shares={("b", "out"): {"c": 0.0}},
    )
    found = attribute(graph)
    assert found.retained.tolist() == [[5, 7, 0], [0, 0, 3]]
    assert found.components[0].closed.tolist() == [True, False]


def test_credits_stay_signed() -> None:
    graph = CostGraph.of({"a": {"c": -8}, "b": {"c": 3}, "d": {"c": 0}}, [("a", "b"), ("a", "d")])
    assert attribute(graph).retained.tolist() == [[0, -1, -4]]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({("u", "a"): -0.1}, "The share -0.1 of the edge u -> a must be a number from 0 to 1", id="negative"),
        pytest.param({("u", "a"): 1.5}, "The share 1.5 of the edge u -> a must", id="above one"),
        pytest.param({("u", "a"): {"c": 0.7}, ("u", "b"): {"c": 0.4}}, "The shares on the edges out of u add up to 1.1", id="sum"),
    ],
)  # fmt: skip
def test_shares_that_cannot_be_are_refused(given: dict[tuple[str, str], float], words: str) -> None:
    with pytest.raises(InvalidShare, match=words):
        compute_shares(CostGraph.of(DIAMOND, FAN, shares=given), "equal_split")


def test_shares_whose_sum_is_off_by_a_float_are_whole() -> None:
    costs = {"u": {"c": 10**15}} | {f"r{number}": {"c": 0} for number in range(10)}
    edges = [("u", f"r{number}") for number in range(10)]
    found = attribute(CostGraph.of(costs, edges, shares=dict.fromkeys(edges, 0.1)))
    assert found.retained.tolist() == [[0, *[10**14] * 10]]


@pytest.mark.parametrize(
    ("known", "retained"),
    [
        pytest.param({"shares": {("u", "a"): 0.9999999995}}, [0, 4 * 10**18, 0, 0], id="explicit, beside free edges"),
        pytest.param({"shares": {("u", "a"): 0.333333333, ("u", "b"): 0.333333333, ("u", "d"): 0.3333333335}}, None, id="explicit everywhere"),
        pytest.param({"weights": {("u", "a"): 2e9, ("u", "b"): 1, ("u", "d"): 0, ("a", "u"): 1}}, None, id="a cycle that next to nothing leaves"),
    ],
)  # fmt: skip
def test_nothing_gets_lost_for_being_next_to_nothing(
    known: dict[str, dict[tuple[str, str], float]], retained: list[int] | None
) -> None:
    """The least part of a large amount is money, and no dataset apart from it may get that."""
    costs = DIAMOND | {"u": {"c": 4 * 10**18}, "apart": {"c": 7}, "end": {"c": 0}}
    back = [("a", "u")] if "weights" in known else []
    graph = CostGraph.of(costs, [*FAN, *back, ("apart", "end")], **known)  # type: ignore[arg-type]
    found = attribute(graph)
    assert found.retained[0, 4:].tolist() == [0, 7]
    assert found.retained.sum() == 4 * 10**18 + 7
    assert np.abs(found.retained - found.shares.retained * found.loaded).max() < 10_000
    if retained:
        assert found.retained[0, :4].tolist() == retained


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("weights", "carried"),
    [
        pytest.param((1e308, 1.5e308, 0), [4.8, 7.2, 0], id="largest"),
        pytest.param((5e-324, 5e-324, 0), [6, 6, 0], id="smallest"),
        pytest.param((1e308, 1e308, np.nan), [4, 4, 4], id="one unknown"),
    ],
)
def test_weights_at_the_ends_of_floats_are_weights(
    weights: tuple[float, ...], carried: list[float]
) -> None:
    graph = CostGraph.of(DIAMOND, FAN, weights=dict(zip(FAN, weights, strict=True)))
    assert (attribute(graph).loaded[0, 1:] / MILLION).tolist() == carried


@pytest.mark.parametrize(
    ("costs", "back", "words"),
    [
        pytest.param([4 * 10**18] * 3, 0.5, "add up to more than 9 x 10", id="spent"),
        pytest.param(
            [10**15, 10**15, 0],
            1 - 1e-8,
            r"A lineage cycle with [ab] retains so little",
            id="loaded",
        ),
    ],
)
def test_amounts_beyond_64_bits_are_refused(costs: list[int], back: float, words: str) -> None:
    graph = CostGraph.of(
        {urn: {"c": cost} for urn, cost in zip("abd", costs, strict=True)},
        [("a", "b"), ("b", "a"), ("b", "d")],
        shares={("b", "a"): back},
    )
    with pytest.raises(MisuseError, match=words):
        attribute(graph)


def agrees_with_fractions(graph: CostGraph, method: AttributionMethod) -> Attribution:
    found = attribute(graph, method)
    for row in range(len(graph.types)):
        exact = exact_attribution(graph, method, row)
        most = max(1, *(abs(int(cost)) for cost in exact.loaded))
        spent = max(1, int(np.abs(graph.costs[row]).sum()))
        # Rounding of floats grows with how often money goes round in a cycle.
        near = 1.5 + most * (most / spent) * 1e-15
        for node in range(graph.nodes):
            assert abs(exact.loaded[node] - int(found.loaded[row, node])) <= near
            assert abs(exact.retained[node] - int(found.retained[row, node])) <= near
    return found


@pytest.mark.parametrize("graphs", [1000, pytest.param(20_000, marks=pytest.mark.slow, id="many")])
def test_attribution_equals_exact_fractions_on_random_graphs(graphs: int) -> None:
    chance = random.Random(graphs)
    cyclic = closed = assumed = 0
    for _ in range(graphs):
        found = agrees_with_fractions(*random_graph(chance))
        cyclic += bool(found.components)
        closed += any(each.closed.any() for each in found.components)
        assumed += bool(found.shares.assumed.any())
    assert min(cyclic, closed, assumed) > 50


@given(seed=st.integers(0, 2**32))
def test_what_is_retained_adds_up_to_what_was_spent(seed: int) -> None:
    graph, method = random_graph(random.Random(seed), most=20)
    try:
        found = attribute(graph, method)
    except AmountsTooLarge:
        # A cycle that retains next to nothing is refused.
        reject()
    assert (found.retained.sum(axis=1) == graph.costs.sum(axis=1)).all()
    assert (
        found.loaded[found.shares.retained == 1] == found.retained[found.shares.retained == 1]
    ).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "limits", [{}, {"_MAX_RESTARTS": 0, "_MAX_NEW_EDGES": 10**9}, {"_MAX_RESTARTS": 0}],
    ids=["iterated", "eliminated", "eliminated and iterated"],
)  # fmt: skip
def test_large_cycles_are_solved_like_small_ones(
    method: AttributionMethod, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = np.random.default_rng(4)
    nodes, edges = 500, 1500
    pairs = np.unique(chance.integers(0, nodes, (edges, 2)), axis=0)
    costs = {f"n{node}": {"c": int(chance.integers(0, 10**9))} for node in range(nodes)}
    links = [(f"n{at}", f"n{to}") for at, to in pairs.tolist()]
    graph = CostGraph.of(costs, links, shares=dict.fromkeys(links[::3], 0.1))
    whole = attribute(graph, method)
    assert len(whole.components[0].members) > 300
    monkeypatch.setattr(circulation, "_MAX_DENSE", 5)
    for name, limit in limits.items():
        monkeypatch.setattr(circulation, name, limit)
    assert np.abs(attribute(graph, method).loaded - whole.loaded).max() <= 1


def test_cost_goes_round_a_long_ring_as_often_as_it_must() -> None:
    nodes = 3000
    costs = {f"n{node}": {"c": 1000} for node in range(nodes)}
    links = [(f"n{node}", f"n{(node + 1) % nodes}") for node in range(nodes)]
    found = attribute(CostGraph.of(costs, links, live={"n0": True}))
    # Half of what comes to n0 stays, so that twice of all that is spent comes to it.
    assert found.loaded[0, 0] == 2 * 1000 * nodes
    assert found.retained[0].tolist() == [1000 * nodes, *[0] * (nodes - 1)]
