"""What a total is made of, on hand-made and random graphs."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some

from examples import examples
from lumos.cost.solver.attribution import attribute, contributions
from lumos.cost.solver.graph import CostGraph

MILLION = 1_000_000
EXAMPLE = CostGraph.of(
    {
        "raw": {"storage": 500 * MILLION},
        "cleaned": {"compute": 3000 * MILLION},
        "metrics": {"compute": 1000 * MILLION},
        "features": {"compute": 2000 * MILLION, "storage": 200 * MILLION},
        "predictions": {"compute": 1500 * MILLION},
    },
    [("raw", "cleaned"), ("raw", "metrics"), ("cleaned", "features"), ("features", "predictions")],
    shares={
        ("raw", "cleaned"): 0.6,
        ("raw", "metrics"): 0.4,
        ("cleaned", "features"): {"compute": 0.6, "storage": 1.0},
    },
)


def test_the_documented_example_is_attributed_to_its_sources() -> None:
    made = contributions(EXAMPLE, attribute(EXAMPLE), EXAMPLE.urns.index("predictions"))
    amounts = {
        EXAMPLE.urns[node]: int(amount) // MILLION
        for node, amount in zip(made.nodes, made.amounts.sum(axis=0), strict=True)
    }
    assert amounts == {"raw": 300, "cleaned": 1800, "features": 2200, "predictions": 1500}


@some.composite
def graphs(draw: some.DrawFn) -> CostGraph:
    size = draw(some.integers(1, 8))
    names = [f"d{number}" for number in range(size)]
    pairs = [(a, b) for a in names for b in names if a != b]
    edges = draw(some.lists(some.sampled_from(pairs), unique=True)) if pairs else []
    amounts = some.integers(-50, 5_000_000)
    return CostGraph.of(
        {name: {"storage": draw(amounts), "compute": draw(amounts)} for name in names},
        edges,
        live={names[0]: True, names[-1]: True},
    )


@settings(max_examples=examples(200))
@given(graphs())
def test_what_a_total_is_made_of_gives_the_total(graph: CostGraph) -> None:
    attribution = attribute(graph, "equal_split")
    for node in range(graph.nodes):
        made = contributions(graph, attribution, node)
        assert node in made.nodes
        assert (made.amounts.sum(axis=1) == attribution.loaded[:, node]).all()
        exact = graph.costs[:, made.nodes] * made.reach
        assert np.allclose(made.amounts, exact, atol=3, rtol=1e-6)
