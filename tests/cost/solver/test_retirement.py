"""What to retire together, against trying all choices."""

import random

import numpy as np
import pytest

from cost.solver.exact import best_retirement, random_graph
from lumos.cost.solver import retirement as retiring
from lumos.cost.solver.graph import CostGraph
from lumos.cost.solver.retirement import RetirementPlan, plan_retirement
from lumos.cost.solver.savings import savings_of

COSTS = {
    "raw": {"c": 100}, "core": {"c": 60}, "A": {"c": 10}, "B": {"c": 20},
    "other": {"c": 40}, "C": {"c": 5}, "old": {"c": 3},
}  # fmt: skip
FLOW = [("raw", "core"), ("core", "A"), ("core", "B"), ("other", "C"), ("raw", "old")]


@pytest.fixture(params=[True, False], ids=["exact", "greedy"])
def exact(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether all choices are tried."""
    if not request.param:
        monkeypatch.setattr(retiring, "_MAX_EXACT_ENDS", -1)
    return bool(request.param)


def group_names(graph: CostGraph, plan: RetirementPlan) -> list[tuple[str, int]]:
    return [
        (" ".join(graph.urns[node] for node in group.ends), int(group.saved.sum()))
        for group in plan.groups
    ]


@pytest.mark.parametrize(
    ("top", "groups"),
    [(0, []), (1, [("C", 45)]), (2, [("A B", 190)]), (3, [("A B", 190), ("C", 45)]), (9, [("A B", 190), ("C", 45)])],
)  # fmt: skip
def test_end_uses_are_retired_together_where_that_frees_most(
    exact: bool, top: int, groups: list[tuple[str, int]]
) -> None:
    graph = CostGraph.of(COSTS, FLOW, live={"old": False})
    plan = plan_retirement(graph, top)
    assert plan.exact is exact
    assert group_names(graph, plan) == groups
    assert plan.saved.sum() == sum(saved for _, saved in groups)
    assert [graph.urns[node] for node in plan.unneeded] == ["old"]
    assert plan.unneeded_saved.tolist() == [3]


@pytest.mark.usefixtures("exact")
def test_an_end_use_goes_only_with_those_that_read_it() -> None:
    graph = CostGraph.of(COSTS, FLOW[:3], live={"core": True})
    assert (
        "core" in " ".join(urns for urns, _ in group_names(graph, plan_retirement(graph, 2)))
    ) is False
    group = plan_retirement(graph, 3).groups[0]
    assert [graph.urns[node] for node in group.ends] == ["core", "A", "B"]
    assert [graph.urns[node] for node in group.obsolete] == ["raw", "core", "A", "B"]


@pytest.mark.usefixtures("exact")
def test_what_is_kept_stays_with_everything_it_needs() -> None:
    graph = CostGraph.of(COSTS, FLOW, live={"old": False})
    kept = frozenset([graph.urns.index("A")])
    found = group_names(graph, plan_retirement(graph, 9, excluded=kept))
    assert [urns for urns, _ in found] == ["C", "B"]
    gone = [
        graph.urns[node]
        for group in plan_retirement(graph, 9, excluded=kept).groups
        for node in group.obsolete
    ]
    assert not {"A", "core", "raw"} & set(gone)


@pytest.mark.usefixtures("exact")
def test_what_stays_due_is_not_counted() -> None:
    graph = CostGraph.of(COSTS, FLOW, live={"old": False})
    avoidable = np.array([False, True, True, True, True, True, True])
    assert group_names(graph, plan_retirement(graph, 2, avoidable))[0] == ("A B", 90)


def test_plans_against_all_choices(exact: bool) -> None:
    chance = random.Random(5)
    best = reached = 0
    for _ in range(300):
        graph, _ = random_graph(chance)
        top = chance.randint(0, 4)
        plan = plan_retirement(graph, top)
        most = best_retirement(graph, top)
        found = int(plan.saved.sum())
        assert found == most if exact else 0 <= found <= most
        best, reached = best + most, reached + found
        ends = [int(end) for group in plan.groups for end in group.ends]
        assert len(set(ends)) == len(ends) <= top
        together = savings_of(graph, ends)
        assert (together.saved == plan.saved).all()
        assert not graph.live[together.broken].any()
        gone = np.concatenate([group.obsolete for group in plan.groups] or [together.obsolete])
        assert sorted(gone.tolist()) == together.obsolete.tolist()
    assert reached >= 0.95 * best
