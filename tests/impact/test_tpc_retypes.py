"""Retyped columns of TPC-H and TPC-DS: no verdict is unsafe, and few are false alarms."""

import random

import pytest

from impact.tpc_retypes import (
    DuckdbEngine,
    Engine,
    Outcome,
    SparkEngine,
    all_retypes,
    outcomes,
)

pytestmark = pytest.mark.slow

# Of some thousand retypes; `python -m benchmarks impact_types` measures all of them.
SAMPLE = 60
MOST_FALSE_ALARMS = 0.1


@pytest.fixture(params=["spark", "duckdb"])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "spark":
        return SparkEngine(request.getfixturevalue("spark"))
    return DuckdbEngine(pytest.importorskip("duckdb").connect())


def _sampled(engine: Engine, *, widening: bool) -> list[Outcome]:
    changes = [each for benchmark in ("tpc-h", "tpc-ds")
               for each in all_retypes(benchmark, widening=widening)]  # fmt: skip
    return list(outcomes(engine, random.Random(7).sample(changes, SAMPLE)))


def test_a_retype_that_keeps_all_values_is_judged_as_the_engine_takes_it(engine: Engine) -> None:
    found = _sampled(engine, widening=True)
    assert [str(each) for each in found if each.is_unsafe] == []
    assert any(each.changed for each in found)
    kept = [each for each in found if each.is_kept]
    alarms = [str(each) for each in kept if each.is_false_alarm]
    assert len(kept) > SAMPLE
    assert len(alarms) < MOST_FALSE_ALARMS * len(kept), "\n".join(alarms)


def test_no_other_retype_is_called_safe_where_the_engine_refuses_it(engine: Engine) -> None:
    found = _sampled(engine, widening=False)
    assert [str(each) for each in found if each.is_unsafe] == []
    assert any(each.changed or each.fails for each in found)
