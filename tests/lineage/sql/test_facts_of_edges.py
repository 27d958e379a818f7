"""What an edge says beside its ends: how, by which words, on which line."""

import pytest

from lineage.sql.edges import of
from lumos.lineage.sql import ColumnEdge
from lumos.model.lineage import Derivation, UseKind


def only(sql: str, dialect: str | None = None) -> ColumnEdge:
    (edge,) = of(sql, dialect).edges
    return edge


@pytest.mark.parametrize(
    ("expression", "derivation"),
    [
        ("a", Derivation.IDENTITY),
        ("(a)", Derivation.IDENTITY),
        ("a + 1", Derivation.TRANSFORMATION),
        ("upper(a)", Derivation.TRANSFORMATION),
        ("cast(a as int)", Derivation.TRANSFORMATION),
        ("sum(a)", Derivation.AGGREGATION),
        ("sum(a) + 1", Derivation.AGGREGATION),
        ("count(distinct a)", Derivation.AGGREGATION),
        ("lag(a) over ()", Derivation.TRANSFORMATION),
        ("sum(a) over ()", Derivation.AGGREGATION),
    ],
)
def test_how_a_value_comes_about(expression: str, derivation: Derivation) -> None:
    assert only(f"create table t as select {expression} as x from s").derivation is derivation


def test_derivations_in_a_cte_are_kept() -> None:
    edge = only("create table t as with c as (select sum(a) as x from s) select x as y from c")
    assert edge.derivation is Derivation.AGGREGATION
    assert edge.expression == "sum(a)"


def test_the_last_change_of_a_value_gives_the_text() -> None:
    edge = only("create table t as with c as (select a + 1 as x from s) select x * 2 as y from c")
    assert edge.expression == "x * 2"


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("cast(a as decimal(10, 2))", "DECIMAL(10, 2)"),
        ("a::int", "INT"),
        ("upper(cast(a as bigint))", "BIGINT"),
        ("try_cast(a as date)", "DATE"),
        ("cast(cast(a as date) as timestamp)", "TIMESTAMP"),
    ],
)
def test_a_cast_says_to_what(expression: str, type: str) -> None:
    assert only(f"create table t as select {expression} as x from s", "duckdb").cast_to == type


def test_a_cast_in_a_condition_is_reported_for_its_column_only() -> None:
    script = of(
        "create table t as select a.x from a join b on cast(a.id as string) = b.id", "spark"
    )
    casts = {
        edge.from_column + "@" + edge.from_table[0]: edge.cast_to
        for edge in script.edges
        if edge.usage is UseKind.JOIN
    }
    assert casts == {"id@a": "STRING", "id@b": None}


@pytest.mark.parametrize(
    ("clause", "usage", "expression"),
    [
        ("where s.b > 1", UseKind.FILTER, "where s.b > 1"),
        (
            "Where  s.b\n =  'x  y'  -- why\n and 1 = 1",
            UseKind.FILTER,
            "Where s.b = 'x  y' and 1 = 1",
        ),
        ("group by s.b, 1", UseKind.GROUP_BY, "group by s.b, 1"),
        ("group by a having max(s.b) > 1 limit 3", UseKind.FILTER, "having max(s.b) > 1"),
        ("order by s.b desc", UseKind.SORT, "order by s.b desc"),
        ("join lateral (select 1) r on s.b = 1", UseKind.JOIN, "on s.b = 1"),
        (
            "where s.b in (select 1 where 2 = 2) order by 1",
            UseKind.FILTER,
            "where s.b in (select 1 where 2 = 2)",
        ),
        ("where left(s.b, 3) = 'abc' limit 1", UseKind.FILTER, "where left(s.b, 3) = 'abc'"),
    ],
)
def test_a_use_has_the_text_of_its_clause(clause: str, usage: UseKind, expression: str) -> None:
    script = of(f"create table t as select s.a from s {clause}", "postgres")
    uses = [(edge.usage, edge.expression) for edge in script.edges if edge.from_column == "b"]
    assert uses == [(usage, expression)]


@pytest.mark.parametrize(
    ("expression", "usage", "words"),
    [
        ("case when b = 1 then 2 end", UseKind.CONDITIONAL, "when b = 1"),
        ("case b when 1 then 2 end", UseKind.CONDITIONAL, "case b when 1 then 2 end"),
        ("iff(b, 1, 2)", UseKind.CONDITIONAL, "iff(b, 1, 2)"),
        ("row_number() over (partition by b order by 1)", UseKind.WINDOW, "partition by b"),
        ("row_number() over (order by b)", UseKind.WINDOW, "order by b"),
    ],
)
def test_what_decides_about_one_column_leads_to_it(
    expression: str, usage: UseKind, words: str
) -> None:
    edge = only(f"create table t as select {expression} as x from s", "snowflake")
    assert (edge.usage, edge.to_column, edge.expression) == (usage, "x", words)


def test_the_line_is_that_of_the_word() -> None:
    sql = "\n\ncreate table t as\nselect\n  a,\n  b\nfrom s\nwhere\n  c = 1\n  and d = 2"
    lines = {edge.from_column: edge.line for edge in of(sql).edges}
    assert lines == {"a": 5, "b": 6, "c": 9, "d": 10}


@pytest.mark.parametrize(
    ("condition", "negated"),
    [("a in (1)", False), ("a not in (1)", True), ("not (a in (1))", True), ("not a = 1", False)],
)
def test_not_in_is_marked(condition: str, negated: bool) -> None:
    assert only(f"delete from s where {condition}").negated is negated


def test_the_columns_of_a_query_behind_not_in_are_marked_too() -> None:
    script = of("delete from t where a not in (select b from s)")
    assert {(edge.from_column, edge.negated) for edge in script.edges} == {("a", True), ("b", True)}


@pytest.mark.parametrize(
    ("sql", "schema", "to", "positional"),
    [
        ("insert into t select a from s", {"t": ["x"]}, "x", True),
        ("insert into t select a from s", {}, "a", True),
        ("insert into t select * from s", {}, "*", True),
        ("insert into t by name select a from s", {"t": ["x", "a"]}, "a", False),
        ("create table t as select a from s", {}, "a", False),
        ("update t set x = s.a from s", {}, "x", False),
    ],
)
def test_places_decide_where_nobody_names_the_columns(
    sql: str, schema: dict[str, list[str]], to: str, positional: bool
) -> None:
    found = of(sql, schema=schema, dialect="duckdb").edges
    assert [(edge.to_column, edge.positional) for edge in found] == [(to, positional)]


def test_a_star_is_reported_also_where_it_was_expanded() -> None:
    script = of("create table t as select * from s", schema={"s": ["a", "b"]})
    assert [(edge.to_column, edge.star) for edge in script.edges] == [("a", True), ("b", True)]


def test_a_long_clause_is_cut() -> None:
    conditions = " or ".join(f"c = {number}" for number in range(1000))
    assert len(only(f"delete from s where {conditions}").expression or "") < 1100


@pytest.mark.parametrize(
    ("sql", "dialect", "texts"),
    [
        ("create table o as select upper(a) as x from t union all select lower(a) from t", None,
         {"upper(a)", "lower(a)"}),
        ("select x = a + 1 into o from t", "tsql", {"a + 1"}),
        ("select top (10) with ties a + 1 as x into o from t", "tsql", {"a + 1"}),
        ("create table o as select 1 as x from t start with a is null connect by prior b = 1",
         "oracle", {"start with a is null", "connect by prior b = 1"}),
        ("insert into o (a) values (1) on duplicate key update a = a + values(a)", "mysql",
         {"a + values(a)"}),
    ],
)  # fmt: skip
def test_the_words_of_an_edge(sql: str, dialect: str | None, texts: set[str]) -> None:
    assert {edge.expression for edge in of(sql, dialect).edges} == texts


def test_the_words_of_a_natural_join() -> None:
    schema = {"t": ["a"], "u": ["a"]}
    script = of("create table o as select 1 as x from t natural join u", schema=schema)
    assert {edge.expression for edge in script.edges} == {"natural join u"}


@pytest.mark.parametrize("words", ["is distinct from", "is not distinct from"])
def test_a_comparison_with_from_in_its_name_is_reported_in_full(words: str) -> None:
    found = of(f"create table t as select x from s where a {words} 'de' and b = 1", "spark").edges
    clauses = {edge.expression for edge in found if edge.usage is UseKind.FILTER}
    assert clauses == {f"where a {words} 'de' and b = 1"}
