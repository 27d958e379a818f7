"""Lumos's column lineage on the gold set."""

from functools import cache

import pytest

from lineage import sqlglot_version
from lineage.gold import scoring
from lineage.gold.lumos_edges import edges
from lineage.gold.scoring import Case, Found, Score

# What is not understood yet, and why.
KNOWN_FAILURES: dict[str, str] = (
    {} if sqlglot_version.READS_TABLE_QUERIES else {"create-table-as-table": sqlglot_version.REASON}
)
CASES = scoring.cases()
BY_ID = {case.id: case for case in CASES}


def _parametrised() -> list[object]:
    return [
        pytest.param(
            case,
            id=case.id,
            marks=[pytest.mark.xfail(reason=KNOWN_FAILURES[case.id], strict=True)]
            if case.id in KNOWN_FAILURES
            else [],
        )
        for case in CASES
    ]


@cache
def found_for(id: str) -> Found:
    return edges(BY_ID[id])


@pytest.fixture(scope="module")
def lumos() -> Score:
    return scoring.score(CASES, lambda case: found_for(case.id))


@pytest.mark.parametrize("case", _parametrised())
def test_a_statement_gives_its_edges(case: Case) -> None:
    found = found_for(case.id)
    assert sorted(found.direct) == sorted(case.direct)
    if case.indirect is not None:
        assert sorted(found.indirect) == sorted(case.indirect)
    if case.unresolved is not None:
        assert _mentioned(case.unresolved, found)


def _mentioned(names: tuple[str, ...], found: Found) -> bool:
    """Every name is spoken of, and nothing else is unresolved."""
    return len(found.unresolved) == len(names) and all(
        any(name in reason for reason in found.unresolved) for name in names
    )


def test_direct_edges_reach_the_goal(lumos: Score) -> None:
    assert lumos.failed.total() == 0
    assert lumos.direct.share_exact() >= 0.93
    assert lumos.direct.precision() >= 0.97
    assert lumos.direct.recall() >= 0.97


def test_indirect_edges_reach_the_goal(lumos: Score) -> None:
    assert lumos.indirect.share_exact() >= 0.93
    assert lumos.indirect.precision() >= 0.97
    assert lumos.indirect.recall() >= 0.97


def test_the_set_is_broad() -> None:
    assert len(CASES) == len(BY_ID) >= 500
    assert len({case.dialect for case in CASES}) >= 15
    assert sum(case.indirect is not None for case in CASES) >= 90
    assert set(KNOWN_FAILURES) <= set(BY_ID)


def test_the_scorer_counts_wrong_and_missing_edges() -> None:
    cases = [case for case in CASES if case.id in {"projection-plain", "projection-renamed"}]
    half = Found(
        direct=frozenset({"sales.orders.order_id -> order_id", "sales.orders.order_id -> wrong"})
    )
    score = scoring.score(cases, lambda _: half)
    assert score.direct.figures() == {"cases": 2, "exact": 0.0, "precision": 0.25, "recall": 0.25}
