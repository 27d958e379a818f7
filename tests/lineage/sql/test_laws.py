"""What never changes the edges of a statement."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from examples import examples
from lineage.gold.scoring import Case, cases
from lineage.sql.edges import direct, of, uses

_QUERIES = [
    case for case in cases()
    if case.dialect in (None, "snowflake", "bigquery", "spark") and not case.schema
    and re.match(r"\s*create (or replace )?(table|view) \S+ as\s+(select|with)\b", case.sql)
    and ";" not in case.sql.strip().rstrip(";")
]  # fmt: skip
_COLUMNS = ["a", "b", "c", "d"]


@some.composite
def statements(draw: some.DrawFn) -> tuple[str, dict[str, list[str]]]:
    """A statement over three tables whose columns all have a name of their own."""
    tables = {f"m.t{n}": [f"{column}{n}" for column in _COLUMNS] for n in range(3)}
    used = draw(some.lists(some.sampled_from(sorted(tables)), min_size=1, max_size=3, unique=True))
    column = some.sampled_from([f"x{table[-1]}.{name}" for table in used for name in tables[table]])
    value = some.recursive(
        column,
        lambda inner: some.one_of(
            inner.map(lambda v: f"upper({v})"),
            some.tuples(inner, inner).map(lambda pair: f"{pair[0]} + {pair[1]}"),
            some.tuples(inner, inner).map(
                lambda pair: f"case when {pair[0]} > 1 then {pair[1]} end"
            ),
            inner.map(lambda v: f"cast({v} as int)"),
            some.tuples(inner, inner).map(
                lambda pair: f"sum({pair[0]}) over (partition by {pair[1]})"
            ),
        ),
        max_leaves=4,
    )
    values = draw(some.lists(value, min_size=1, max_size=4))
    joins = "".join(
        f" join {table} x{table[-1]} on x{table[-1]}.a{table[-1]} = x{used[0][-1]}.a{used[0][-1]}"
        for table in used[1:]
    )
    where = draw(some.one_of(some.just(""), column.map(lambda name: f" where {name} = 1")))
    projections = ", ".join(f"{each} as o{number}" for number, each in enumerate(values))
    first = f"{used[0]} x{used[0][-1]}"
    return f"select {projections} from {first}{joins}{where}", tables


@given(statements())
@settings(max_examples=examples(60))
def test_a_named_query_around_it_changes_nothing(made: tuple[str, dict[str, list[str]]]) -> None:
    query, _ = made
    plain = of(f"create table m.z as {query}")
    wrapped = of(f"create table m.z as with w as ({query}) select * from w")
    nested = of(f"create table m.z as select * from (select * from ({query}) q) r")
    assert direct(plain) == direct(wrapped) == direct(nested)
    assert uses(plain) == uses(wrapped) == uses(nested)


@given(statements())
@settings(max_examples=examples(60))
def test_a_schema_loses_no_edge(made: tuple[str, dict[str, list[str]]]) -> None:
    query, schema = made
    unqualified = re.sub(r"\bx\d\.", "", query)
    assert direct(of(f"create table m.z as {query}")) == direct(
        of(f"create table m.z as {query}", None, schema)
    )
    assert direct(of(f"create table m.z as {unqualified}", None, schema)) == direct(
        of(f"create table m.z as {query}")
    )


@given(statements())
@settings(max_examples=examples(60))
def test_other_aliases_and_another_layout_change_nothing(
    made: tuple[str, dict[str, list[str]]],
) -> None:
    query, _ = made
    renamed = re.sub(r"\bx(\d)\b", r"other_\1", query)
    spread = "/* why */ " + re.sub(r"([ ,()])", r"\1\n  ", query) + " -- the end"
    plain = of(f"create table m.z as {query}")
    assert direct(plain) == direct(of(f"create table m.z as {renamed}"))
    assert uses(plain) == uses(of(f"create table m.z as {renamed}"))
    assert direct(plain) == direct(of(f"CREATE TABLE m.z AS\n{spread}"))


@given(statements())
@settings(max_examples=examples(40))
def test_a_temporary_table_on_the_way_changes_nothing(
    made: tuple[str, dict[str, list[str]]],
) -> None:
    query, _ = made
    plain = of(f"create table m.z as {query}", "postgres")
    through = of(
        f"create temp table w as {query}; create table m.z as select * from w; drop table w",
        "postgres",
    )
    assert direct(plain) == direct(through)
    assert uses(plain) == uses(through)


@pytest.mark.parametrize("case", _QUERIES, ids=[case.id for case in _QUERIES])
def test_a_case_of_the_gold_set_keeps_its_edges_in_a_named_query(case: Case) -> None:
    head, query = re.split(r"(?i)(?<=\bas)\s", case.sql.strip().rstrip(";"), maxsplit=1)
    wrapped = of(f"{head} with wrapped_once as ({query}) select * from wrapped_once", case.dialect)
    assert direct(wrapped) == direct(of(case.sql, case.dialect))


def test_two_runs_give_the_same_order() -> None:
    sql = "create table t as select a.*, b.x, max(c.y) from a, b, c where a.i = b.i and b.k = c.k"
    assert of(sql).edges == of(sql).edges
