"""Texts that would take too much time or memory are bounded; alike statements are analysed once."""

import gc

import pytest

from lineage.sql.edges import direct, of, uses
from lumos.lineage.sql import ScriptLineage, analyse, context, tokens


def doubling(levels: int) -> str:
    queries = ["c0 as (select a, b from src)"]
    for level in range(1, levels + 1):
        before = f"c{level - 1}"
        queries.append(f"c{level} as (select l.*, r.* from {before} l join {before} r using (a))")
    return f"create table wide as with {', '.join(queries)} select * from c{levels}"


def problem(script: ScriptLineage) -> str:
    (problem,) = script.unresolved
    assert problem.severity == "error"
    return problem.reason


def test_columns_that_double_at_each_level_are_a_problem_and_their_tables_stay() -> None:
    script = of(doubling(24), "duckdb")
    assert "more than 20,000 columns" in problem(script)
    (unparsed,) = script.unparsed
    assert ("src",) in unparsed.reads
    assert unparsed.writes == (("wide",),)


@pytest.mark.parametrize("star", ["*", "* except (b)"])
def test_a_star_of_unknown_columns_that_doubles_at_each_level_is_read_once(star: str) -> None:
    queries = ["c0 as (select * from src)"]
    for level in range(1, 60):
        before = f"c{level - 1}"
        query = f"select {star} from {before} union all select {star} from {before}"
        queries.append(f"c{level} as ({query})")
    script = of(f"create table t as with {', '.join(queries)} select *, a from c59", "bigquery")
    assert ("src", "a", "a") in {
        (each.from_table[-1], each.from_column, each.to_column) for each in script.edges
    }


def test_columns_that_double_a_few_times_are_read() -> None:
    script = of(doubling(8), "duckdb")
    assert not script.unresolved
    assert len(script.statements[0].writes[0].columns) > 256


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(
            "create table o as with c0 as (select {columns} from t), {chain} select * from c99",
            id="a chain of stars",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "create table o as with c0 as (select {columns} from t) select {rows} from c0",
            id="every column from all columns",
        ),
        pytest.param(
            "create table o as with c0 as (select {columns} from t) select {stars} from c0",
            id="many stars",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_work_for_one_statement_is_bounded(sql: str) -> None:
    script = of(
        sql.format(
            columns=", ".join(f"a{number}" for number in range(10_000)),
            chain=", ".join(
                f"c{number} as (select * from c{number - 1})" for number in range(1, 100)
            ),
            rows=", ".join(f"to_json(c0.*) as b{number}" for number in range(100)),
            stars=", ".join(["c0.*"] * 100),
        ),
        "postgres",
    )
    assert "too large" in problem(script)


def test_a_statement_after_one_that_is_too_large_is_read() -> None:
    script = of(f"{doubling(24)};\ninsert into o (x) select a from t")
    assert direct(script) == {"t.a -> o.x"}


def test_a_statement_of_too_many_words_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lumos.lineage.sql.analysis._MAX_TOKENS", 50)
    sql = f"insert into o select {', '.join('abcdefghijklmnopqrstuvwxyz')} from t"
    script = of(sql)
    assert "more than 50 tokens" in problem(script)
    assert script.unparsed[0].reads == (("t",),)


def test_a_text_that_cannot_be_cut_is_not_longer_than_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("analysis", "tokens"):
        monkeypatch.setattr(f"lumos.lineage.sql.{module}.MAX_STATEMENT_LENGTH", 60)
    monkeypatch.setattr(tokens, "_PORTION_LENGTH", 10)
    long = f"insert into o select {' + '.join('abcdefghij')} as x from t"
    script = of(f"{long};\ninsert into o (x) select a from t;\n")
    assert "too large" in problem(script)
    assert script.unparsed[0].reads == (("t",),)
    assert direct(script) == {"t.a -> o.x"}


def test_statements_that_differ_in_values_are_analysed_once() -> None:
    sql = "".join(
        f"insert into o (x) select a from t where day = '2024-01-{day}' and n > {day};\n"
        for day in range(10, 30)
    )
    script = of(sql)
    assert [(each.number, each.line) for each in script.statements] == [
        (number, number) for number in range(1, 21)
    ]
    assert {edge.statement for edge in script.edges} == {1}
    assert (script.coverage.columns, script.coverage.resolved) == (20, 20)
    assert script.storable_text.strip(" ;\n") == sql.splitlines()[0].rstrip(";")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("insert into o select a, b from t order by 1",
                     "insert into o select a, b from t order by 2", id="places of columns"),
        pytest.param("insert into o select a from 'one.parquet'",
                     "insert into o select a from 'two.parquet'", id="paths of tables"),
        pytest.param("insert into o select a from read_csv('one.csv')",
                     "insert into o select a from read_csv('two.csv')", id="arguments"),
        pytest.param("insert into o select a from t where b = 1",
                     "insert into o select a from t where c = 1", id="columns"),
        pytest.param("insert into o select a from t where b = 1",
                     "insert into o select a from t where b = '1'", id="types"),
    ],
)  # fmt: skip
def test_statements_that_differ_in_more_than_values_are_all_analysed(one: str, other: str) -> None:
    script = of(f"{one};\n{other};", "duckdb")
    apart = [of(each, "duckdb") for each in (one, other)]
    assert direct(script) == direct(apart[0]) | direct(apart[1])
    assert uses(script) == uses(apart[0]) | uses(apart[1])
    assert other in script.storable_text


def test_a_statement_is_analysed_again_once_a_table_in_it_is_another() -> None:
    insert = "insert into o select * from t where a = {}"
    script = of(
        f"create table t (a int);\n{insert.format(1)};\n"
        f"drop table t;\ncreate table t (a int, b int);\n{insert.format(2)};",
        schema={"o": ["x", "y"]},
    )
    assert "t.b -> o.y" in direct(script)


def test_rows_of_values_that_look_alike_are_read_once() -> None:
    script = of("insert into o values (1, 'a'), (2, 'b'),\n(3, (select max(c) from t)), (4, 'd')")
    assert direct(script) == {"t.c -> o.column2"}
    assert "(2" not in script.storable_text
    assert "max(c)" in script.storable_text


TEXTS = [
    "insert into a select x from b;\ninsert into c select ';\n' || y as y from d;\nselect 1;\n",
    "insert into a select x from b; -- one;\n/* two;\nthree; */ insert into c select y from d;\n",
    "insert into a select x from b;\ninsert into c select 'not closed;\n from d;\nselect 1",
    "create function f() returns void as $$ begin\ninsert into a select x from b;\nend;\n$$ "
    "language plpgsql;\ninsert into c select y from d;\n",
    "create trigger g before insert on b execute procedure f();\ncreate function f() returns "
    "trigger as $$ begin\ninsert into a select new.x;\nend;\n$$ language plpgsql;\n",
    "create temp table n as select x from b;\ninsert into a select * from n;\nselec;\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_in_portions_shows_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = of(text, "postgres")
    monkeypatch.setattr(tokens, "_PORTION_LENGTH", 1)
    assert of(text, "postgres") == whole


def test_progress_through_a_text_is_reported() -> None:
    shares: list[float] = []
    sql = "".join(f"insert into t{number} values (1);\n" for number in range(1_000))
    analyse(sql, progress=shares.append)
    assert len(shares) > 5
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] < 1


def subqueries(levels: int) -> str:
    queries = ["c0 as (select a from t)"]
    for level in range(1, levels + 1):
        before = f"c{level - 1}"
        queries.append(
            f"c{level} as (select (select max(a) from {before}) + (select min(a) from {before})"
            f" as a from {before} where exists (select 1 from {before}))"
        )
    return f"create table o as with {', '.join(queries)} select a from c{levels}"


def test_scalar_subqueries_over_the_query_before_do_not_double_at_each_level() -> None:
    script = of(subqueries(19), "duckdb")
    assert not script.unresolved
    assert direct(script) == {"t.a -> o.a"}
    assert script.statements[0].writes[0].sources == (("t",),)


def test_the_relations_that_scalar_subqueries_read_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = ", ".join(f"t{number}" for number in range(50))
    values = ", ".join(f"(select max(a) from c) as a{number}" for number in range(40))
    monkeypatch.setattr(context, "MAX_ORIGINS", 1_000)
    script = of(f"create table o as with c as (select t1.a from {tables}) select {values}")
    assert "columns and origins" in problem(script)


def test_trees_and_tokens_are_freed_without_the_garbage_collector() -> None:
    """Finding their cycles took a fifth of the time of reading many files."""
    columns = ", ".join(f"t.a{number} + 1 as a{number}" for number in range(300))
    text = f"create table x as select {columns} from t where t.a1 > 0"
    analyse(text)
    gc.collect()
    gc.disable()
    try:
        analyse(text)
        unreachable = gc.collect()
    finally:
        gc.enable()
    # There are about 2,400 tokens, and as many nodes.
    assert unreachable < 1_500
