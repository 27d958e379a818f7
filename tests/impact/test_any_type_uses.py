"""Uses that take any type: none is called safe that fails or gives another result on an engine."""

import random
from collections.abc import Sequence

import pytest

from impact.any_type_uses import (
    FEW_PAIRS,
    PAIRS,
    DuckdbEngine,
    Engine,
    Outcome,
    SparkEngine,
    judged,
    outcomes,
    uses,
)
from lumos.model.change import Verdict

Pairs = Sequence[tuple[str, str]]
# Values that differ before still do afterwards, and all of them can be as they were.
ONE_TO_ONE = (("STRING", "INT64"), ("INT64", "STRING"), ("INT64", "INT32"), ("DATE", "STRING"),
              ("BOOLEAN", "INT32"), ("DECIMAL(12,0)", "INT64"), ("INT32", "DECIMAL(12,2)"))  # fmt: skip
SAMPLE = (("STRING", "INT64"), ("INT32", "DECIMAL(12,2)"), ("TIMESTAMP(us)", "DATE"))
MANY_PAIRS = random.Random(7).sample(PAIRS, 60)
# Only nulls, or which values are equal, decide here, and the type of the result is fixed.
SAFE = (
    "select count(x) as r from t", "select count(distinct x) as r from t",
    "select count(distinct x, k) as r from t", "select approx_count_distinct(x) as r from t",
    "select count(distinct case when k > 1 then x end) as r from t",
    "select count(distinct x) filter (where k > 1) as r from t",
    "select count_if(x is null) as r from t", "select bool_or(x is not null) as r from t",
    "select any_value(x) is null as r from t", "select x is null as r from t",
    "select case when x is null then 0 else 1 end as r from t", "select x = z as r from t",
    "select x is distinct from z as r from t", "select count(*) over (partition by x) as r from t",
    "select row_number() over (partition by x order by k) as r from t",
    "select count(*) as r from t group by x",
    "select k, count(*) as r from t group by grouping sets ((x, k), (k))",
    "select grouping(x) as r, count(*) as n from t group by rollup (x)",
    "select count(*) as r from (select distinct x from t)",
    "select count(*) as r from (select x from t union select z from t)",
    "select count(*) as r from (select x from t intersect select z from t)",
    "select a.k as r from t a join t b on a.x = b.x",
    "select k as r from t group by k having count(distinct x) > 0",
    "select size(collect_set(x)) as r from t", "select count(distinct struct(x, k)) as r from t",
    "select len(list(distinct x)) as r from t", "select count(distinct (x, k)) as r from t",
)  # fmt: skip
# False alarms that are left where a text becomes a number and DuckDB gives the same result.
LEFT = {
    # Both sides are compared as they are; that an engine casts one of them is not relied on.
    "x = o", "x between z and z", "select x as r from t union select o from t",
    "select count(*) as r from (select x from t union select o from t)",
    "select a.k as r from t a join t b on a.x = b.o",
    # Texts and numbers have the same first value by chance.
    "min_by(k, x)", "arg_min(k, x)", "first_value(k) over (order by x, k)",
    # Functions of a list and an element are not followed.
    "list_contains([x], z)",
}  # fmt: skip


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "spark":
        return SparkEngine(request.getfixturevalue("spark"))
    return DuckdbEngine(pytest.importorskip("duckdb").connect())


def _of(engine: Engine, pairs: Pairs, *, with_values: bool = True) -> list[Outcome]:
    return list(outcomes(engine, pairs, with_values=with_values))


@pytest.mark.parametrize(
    ("engine", "pairs", "with_values"),
    [
        pytest.param("duckdb", SAMPLE, True, id="duckdb"),
        pytest.param("spark", SAMPLE[:1], False, id="spark"),
        pytest.param("spark", FEW_PAIRS[:5], True, id="spark values", marks=pytest.mark.slow),
        pytest.param("spark", MANY_PAIRS, False, id="spark many", marks=pytest.mark.slow),
        pytest.param("duckdb", MANY_PAIRS, True, id="duckdb many", marks=pytest.mark.slow),
    ],
    indirect=["engine"],
)
def test_no_use_is_called_safe_that_the_engine_refuses_or_answers_otherwise(
    engine: Engine, pairs: Pairs, with_values: bool
) -> None:
    found = _of(engine, pairs, with_values=with_values)
    assert [str(each) for each in found if each.is_unsafe] == []
    assert any(each.fails for each in found)
    assert any(each.changed for each in found)
    assert any(each.has_other_values for each in found) is with_values
    assert len({each.query for each in found}) == len(uses(engine.dialect))


@pytest.mark.parametrize(("before", "after"), ONE_TO_ONE)
@pytest.mark.parametrize("dialect", ["spark", "duckdb"])
def test_what_depends_only_on_nulls_and_on_equal_values_is_safe(
    dialect: str, before: str, after: str
) -> None:
    known = [each.query for each in uses(dialect) if each.query in SAFE]
    assert len(known) > 20
    for query in known:
        assert judged(query, dialect, before, after) == (Verdict.COMPATIBLE, {}), query


def test_false_alarms_on_a_text_that_becomes_a_number_are_known() -> None:
    engine = DuckdbEngine(pytest.importorskip("duckdb").connect())
    found = {each.query for each in _of(engine, [("STRING", "INT64")]) if each.is_false_alarm}
    assert found == {each if each.startswith("select") else f"select {each} as r from t"
                     for each in LEFT}  # fmt: skip


@pytest.mark.parametrize(
    ("dialect", "query", "before", "after", "verdict"),
    [
        pytest.param("spark", "select count(distinct x) as r from t", "DATE", "TIMESTAMP(us)",
                     Verdict.BREAKING, id="finer values"),
        pytest.param("spark", "select count(distinct x) as r from t", "TIMESTAMP(us)", "DATE",
                     Verdict.BREAKING, id="coarser values"),
        pytest.param("spark", "select count(distinct x) as r from t", "STRING", "DATE",
                     Verdict.UNDETERMINED, id="texts with more than a day"),
        pytest.param("spark", "select count(distinct x) as r from t", "FLOAT64", "STRING",
                     Verdict.UNDETERMINED, id="0.0 and -0.0"),
        pytest.param("oracle", "select count(distinct x) as r from t", "INT64", "STRING",
                     Verdict.UNDETERMINED, id="CLOB"),
        pytest.param("oracle", "select count(*) as r from t group by x", "INT64", "STRING",
                     Verdict.UNDETERMINED, id="CLOB in GROUP BY"),
        pytest.param("oracle", "select count(distinct x) as r from t", "STRING", "INT64",
                     Verdict.COMPATIBLE, id="no CLOB any more"),
        pytest.param("spark", "select row_number() over (order by x) as r from t", "STRING",
                     "INT64", Verdict.BREAKING, id="another order"),
        pytest.param("spark", "select k from t where x < z", "STRING", "INT64",
                     Verdict.BREAKING, id="another order of two columns"),
        pytest.param("spark", "select max_by(k, x) as r from t", "STRING", "INT64",
                     Verdict.BREAKING, id="another largest value"),
        pytest.param("spark", "select hash(x) as r from t", "STRING", "INT64",
                     Verdict.BREAKING, id="another hash"),
        pytest.param("spark", "select hash(x) as r from t", "INT32", "INT64",
                     Verdict.UNDETERMINED, id="a hash of a longer number"),
        pytest.param("spark", "select to_json(struct(x)) as r from t", "INT32", "FLOAT64",
                     Verdict.BREAKING, id="1 and 1.0 in JSON"),
        pytest.param("spark", "select to_json(struct(x)) as r from t", "INT32", "INT64",
                     Verdict.COMPATIBLE, id="1 and 1 in JSON"),
        pytest.param("spark", "select upper(x) as r from t", "INT32", "DECIMAL(12,2)",
                     Verdict.BREAKING, id="1 and 1.00 in a function of texts"),
        pytest.param("spark", "select cast(any_value(x) as string) as r from t", "STRING", "INT64",
                     Verdict.COMPATIBLE, id="handed on and cast"),
        pytest.param("spark", "select any_value(x) as r from t", "STRING", "INT64",
                     Verdict.BREAKING, id="handed on"),
        pytest.param("spark", "select lag(x, 1, 'none') over (order by k) is null as r from t",
                     "STRING", "INT64", Verdict.BREAKING, id="a default of another type"),
        pytest.param("trino", "select mode(x) is null as r from t", "STRING", "INT64",
                     Verdict.UNDETERMINED, id="not documented"),
    ],
)  # fmt: skip
def test_verdicts_on_uses_of_any_type(
    dialect: str, query: str, before: str, after: str, verdict: Verdict
) -> None:
    assert judged(query, dialect, before, after)[0] is verdict
