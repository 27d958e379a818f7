"""SQL that is broken, huge, nested, circular, or no SQL at all."""

import random

import pytest

from lumos.lineage.sql import analyse
from lumos.lineage.sql.script import ScriptLineage

DIALECTS = (None, "snowflake", "tsql", "postgres", "hive")
GOOD_FIRST = "insert into m.first (a) select s.a from m.s s;"
GOOD_LAST = "insert into m.last (b) select s.b from m.s s;"
GOOD_EDGES = {"m.s.a -> m.first.a", "m.s.b -> m.last.b"}


def of(text: str, dialect: str | None = None) -> ScriptLineage:
    return analyse(text, dialect=dialect, columns=lambda _: None)


def direct(script: ScriptLineage) -> set[str]:
    return {
        f"{'.'.join((*edge.from_table, edge.from_column))} -> "
        f"{'.'.join((*(edge.to_table or ()), str(edge.to_column)))}"
        for edge in script.edges
        if edge.usage is None
    }


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("selekt x fron t wher", id="misspelt"),
        pytest.param("insert into m.t (a select s.a from m.s s", id="bracket-left-open"),
        pytest.param("select a, from where group by", id="clauses-without-content"),
        pytest.param("create view m.v as", id="nothing-after-as"),
        pytest.param("merge into t using", id="half-a-merge"),
        pytest.param(")))) select 1 ((((", id="brackets-only"),
        pytest.param("select {{ columns }} from {{ ref('orders') }}", id="jinja-expression"),
        pytest.param(
            "select a {% if is_incremental() %} , b {% endif %} from {{ this }}", id="jinja-block"
        ),
        pytest.param("select a from @@@!!! ~~ ???", id="odd-characters"),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_broken_statement_is_reported_and_the_rest_goes_on(
    broken: str, dialect: str | None
) -> None:
    script = of(f"{GOOD_FIRST}\n\n{broken};\n{GOOD_LAST}\n", dialect)
    assert direct(script) >= GOOD_EDGES
    assert {3} == {unresolved.line for unresolved in script.unresolved}
    assert all(len(unresolved.reason) > 10 for unresolved in script.unresolved)


@pytest.mark.parametrize(
    "dialect",
    [DIALECTS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in DIALECTS[1:])],
)
def test_cases_nested_beyond_reason_are_reported_and_the_rest_goes_on(dialect: str | None) -> None:
    test_a_broken_statement_is_reported_and_the_rest_goes_on(
        "select " + "case when a then " * 3_000 + "1", dialect
    )


@pytest.mark.parametrize(
    "deep",
    [
        pytest.param("(" * 20_000 + "1" + ")" * 20_000, id="brackets"),
        pytest.param("- " * 20_000 + "1", id="signs"),
        pytest.param("not " * 20_000 + "true", id="negations"),
        pytest.param("coalesce(a, " * 5_000 + "1" + ")" * 5_000, id="calls"),
    ],
)
def test_what_is_nested_beyond_reason_is_reported_at_worst(deep: str) -> None:
    script = of(f"{GOOD_FIRST}\nselect {deep} from t;\n{GOOD_LAST}")
    assert direct(script) >= GOOD_EDGES
    assert {unresolved.line for unresolved in script.unresolved} <= {2}


def test_the_reason_of_a_broken_statement_is_short_and_without_terminal_codes() -> None:
    (unresolved,) = of("select a from t where (((").unresolved
    assert len(unresolved.reason) < 500
    assert unresolved.reason.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("  \n\t\r\n ", id="blank"),
        pytest.param(";;;\n;", id="semicolons"),
        pytest.param("-- nothing here\n/* nor here; select a from t */", id="comments"),
        pytest.param("\ufeff", id="byte-order-mark"),
    ],
)
def test_a_file_without_statements_says_nothing(text: str) -> None:
    script = of(text)
    assert (script.edges, script.statements, script.unresolved) == ((), (), ())
    assert (script.coverage.columns, script.coverage.resolved) == (0, 0)


@pytest.mark.parametrize("dialect", [None, "bigquery", "tsql", "mysql"])
def test_a_binary_file_is_reported_and_gives_no_edges(dialect: str | None) -> None:
    noise = random.Random(7).randbytes(20_000)
    for text in (noise.decode("latin-1"), noise.decode("utf-8", errors="replace")):
        script = of(text, dialect)
        assert script.edges == ()
        assert script.unresolved


@pytest.mark.parametrize(
    "text", ["select 'never closed from t", "select a /* never closed", 'select "a from t']
)
def test_what_is_never_closed_is_reported(text: str) -> None:
    script = of(text)
    assert script.edges == ()
    assert script.unresolved


def test_a_text_that_is_never_closed_does_not_hide_what_came_before() -> None:
    script = of(f"{GOOD_FIRST}\n{GOOD_LAST}\nselect 'oh no")
    assert direct(script) == GOOD_EDGES
    assert [unresolved.line for unresolved in script.unresolved] == [3]


def test_line_ends_and_a_byte_order_mark_do_not_matter() -> None:
    windows = f"\ufeff{GOOD_FIRST}\r\n\r\n{GOOD_LAST}\r\n"
    script = of(windows)
    assert direct(script) == GOOD_EDGES
    assert [statement.line for statement in script.statements] == [1, 3]


@pytest.mark.slow
def test_ten_thousand_lines_of_columns() -> None:
    lines = ",\n".join(f"  s.c{number} + 1 as d{number}" for number in range(10_000))
    script = of(f"create table m.wide as\nselect\n{lines}\nfrom m.s s")
    assert direct(script) == {f"m.s.c{number} -> m.wide.d{number}" for number in range(10_000)}
    last = max(script.edges, key=lambda edge: edge.line or 0)
    assert (last.line, last.to_column) == (10_002, "d9999")
    assert script.coverage.resolved == script.coverage.columns == 10_000


def test_a_slash_on_a_line_of_its_own_is_a_quotient_or_the_end_of_a_statement() -> None:
    quotient = "create table m.t as select s.a\n  /\n  s.b as q from m.s s"
    assert direct(of(quotient)) == {"m.s.a -> m.t.q", "m.s.b -> m.t.q"}
    statements = f"{GOOD_FIRST}\n/\n{GOOD_LAST}\n/\n"
    assert direct(of(statements, "oracle")) == direct(of(statements)) == GOOD_EDGES


def test_ten_thousand_lines_of_union() -> None:
    branches = "\nunion all\n".join(f"select\n  k\nfrom m.t{number}" for number in range(2_500))
    script = of(f"create table m.u as\n{branches}")
    assert direct(script) == {f"m.t{number}.k -> m.u.k" for number in range(2_500)}


def test_ten_thousand_lines_of_ctes() -> None:
    steps = ",\n".join(
        f"c{number} as (\n  select\n    v + 1 as v\n  from c{number - 1}\n)"
        for number in range(1, 2_000)
    )
    script = of(
        f"create table m.t as\nwith c0 as (select v from m.s),\n{steps}\nselect v from c1999"
    )
    assert direct(script) == {"m.s.v -> m.t.v"}


@pytest.mark.slow
def test_ten_thousand_lines_of_conditions() -> None:
    conditions = "\n  or ".join(f"s.c{number} = {number}" for number in range(10_000))
    script = of(f"create table m.t as\nselect s.a\nfrom m.s s\nwhere {conditions}")
    assert direct(script) == {"m.s.a -> m.t.a"}
    assert sum(edge.usage == "FILTER" for edge in script.edges) == 10_000


@pytest.mark.slow
def test_ten_thousand_statements() -> None:
    script = of("\n".join(f"insert into t{n} (a) select s.a from s{n} s;" for n in range(10_000)))
    assert len(script.statements) == len(direct(script)) == 10_000


@pytest.mark.parametrize("depth", [20, 200])
def test_subqueries_nested_deeply(depth: int) -> None:
    query = "select v from m.s"
    for _ in range(depth):
        query = f"select v from ({query}) q"
    assert direct(of(f"create table m.t as {query}")) == {"m.s.v -> m.t.v"}


@pytest.mark.slow
def test_subqueries_nested_beyond_reason_are_reported_at_worst() -> None:
    query = "select v from m.s"
    for _ in range(2_000):
        query = f"select v from ({query}) q"
    script = of(f"{GOOD_FIRST}\ncreate table m.t as {query};\n{GOOD_LAST}")
    assert direct(script) >= GOOD_EDGES
    assert script.unresolved or "m.s.v -> m.t.v" in direct(script)


def test_a_long_chain_of_operators() -> None:
    chain = " || ".join(f"s.c{number}" for number in range(3_000))
    script = of(f"create table m.t as select {chain} as all_of_them from m.s s", "postgres")
    assert len(direct(script)) == 3_000


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        pytest.param("insert into t (a) select b from t", {"t.b -> t.a"}, id="insert"),
        pytest.param("create view v as select a from v", {"v.a -> v.a"}, id="view"),
        pytest.param("update t set a = a + b", {"t.a -> t.a", "t.b -> t.a"}, id="update"),
        pytest.param(
            "create view a as select x from b; create view b as select x from a;",
            {"b.x -> a.x", "a.x -> b.x"},
            id="two-views-in-a-circle",
        ),
        pytest.param(
            "create temp table a as select x from b; create temp table b as select x from a;"
            "create table c as select x from b;",
            {"b.x -> c.x"},
            id="temporary-tables-in-a-circle",
        ),
        pytest.param(
            "create table t as with recursive r as (select x from r) select x from r",
            set(),
            id="recursion-without-a-beginning",
        ),
    ],
)
def test_self_references_come_to_an_end(text: str, edges: set[str]) -> None:
    assert direct(of(text, "postgres")) == edges


def test_a_temporary_table_that_feeds_itself_a_thousand_times() -> None:
    again = "insert into w (v) select v + 1 from w;\n" * 1_000
    script = of(
        f"create temp table w as select v from m.s;\n{again}insert into m.t (v) select v from w;",
        "postgres",
    )
    assert direct(script) == {"m.s.v -> m.t.v"}
