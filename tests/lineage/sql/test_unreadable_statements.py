"""Statements that cannot be read are told, in plain words, and count against the coverage."""

import logging
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlglot

from lineage.sql.edges import of
from lumos.impact.rules.type_uses import TableVersions, ValueType
from lumos.impact.types.effects import effects
from lumos.lineage.sql.analysis import analyse
from lumos.model.schema import parse_schema
from lumos.model.types import INT64


@pytest.mark.parametrize(
    ("sql", "dialect", "line"),
    [
        ("create table o as select a from t\ncreate table o2 as select b from t;", "postgres", 2),
        ("create view v as\nselect a b c from t;", "postgres", 2),
        ("create rule r as on insert to t do also insert into u select new.a;", "postgres", 1),
    ],
)
def test_a_query_that_the_parser_rejects_is_reported(sql: str, dialect: str, line: int) -> None:
    script = of(sql, dialect)
    (problem,) = script.unresolved
    assert (problem.severity, problem.line) == ("error", line)
    assert script.coverage.columns > script.coverage.resolved


def test_a_policy_reads_no_rows() -> None:
    assert not of("create policy p on t for select using (a = 1)", "postgres").unresolved


def test_a_statement_that_failed_counts_against_the_coverage() -> None:
    coverage = of("insert into t (a) select s.a from s; selekt b fron s").coverage
    assert (coverage.resolved, coverage.columns) == (1, 2)


def test_a_column_of_an_unrendered_template_counts_against_the_coverage() -> None:
    coverage = of("create table o as select {{ macro() }} as a, b from t").coverage
    assert (coverage.resolved, coverage.columns) == (1, 2)


def test_a_template_belongs_to_its_own_statement() -> None:
    script = of("select a from s;\nselect {{ macro() }} from t;\nselect b from u;")
    assert [(each.statement, each.line) for each in script.unresolved] == [(2, 2)]


@pytest.mark.parametrize(
    "sql", ["create table t as select a from", "update t set a + = 3", "select a from (select"]
)
def test_reasons_are_plain_words(sql: str) -> None:
    (problem,) = of(sql, "tsql").unresolved
    assert "<" not in problem.reason
    assert "sqlglot" not in problem.reason


def test_the_language_of_a_routine_is_no_statement() -> None:
    body = "begin insert into o (a) select a from t; end"
    script = of(f"create function f() returns void as $$ {body} $$ language plpgsql", "postgres")
    assert not script.unresolved


DEEP = f"SELECT {'(' * 1500}a{')' * 1500} AS a FROM t"
UNSUPPORTED = "ALTER TABLE t ENABLE ROW LEVEL SECURITY"


def test_texts_nested_deeply_leave_the_limits_of_the_process_as_they_were() -> None:
    before = sys.getrecursionlimit(), threading.stack_size()
    together = threading.Barrier(4)

    def read(_: int) -> int:
        together.wait()
        return len(analyse(DEEP, dialect="spark").statements)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(read, range(4))) == [1, 1, 1, 1]
    assert (sys.getrecursionlimit(), threading.stack_size()) == before


def test_no_thread_ever_sees_another_recursion_limit() -> None:
    seen: set[int] = set()
    is_done = threading.Event()

    def watch() -> None:
        while not is_done.wait(0.001):
            seen.add(sys.getrecursionlimit())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        analyse(DEEP, dialect="spark")
    finally:
        is_done.set()
        watching.join()
    assert seen == {sys.getrecursionlimit()}


def test_schemas_are_known_where_a_text_is_nested_deeply() -> None:
    shares: list[float] = []
    sql = f"create table o as select *, {'(' * 1500}a{')' * 1500} as c from t"
    columns = {("t",): {"a": "INT", "b": "INT"}}.get
    script = analyse(sql, dialect="spark", columns=columns, file="o.sql", progress=shares.append)
    found = {(edge.from_column, edge.to_column) for edge in script.edges}
    assert found == {("a", "a"), ("b", "b"), ("a", "c")}
    assert script.file == "o.sql"
    assert shares


def test_what_the_schemas_raise_is_raised_where_a_text_is_nested_deeply() -> None:
    def fail(_: object) -> None:
        raise OSError("no store")

    with pytest.raises(OSError, match="no store"):
        analyse(DEEP, dialect="spark", columns=fail)


def test_without_a_child_process_only_the_deep_statement_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    script = analyse(f"select b from u;\n{DEEP};\nselect c from v", dialect="spark")
    assert [each.line for each in script.statements] == [1, 3]
    (problem,) = script.unresolved
    assert (problem.line, problem.reason) == (2, "not understood: nested too deeply")
    assert effects(f"create table o as {DEEP}", dialect="spark", tables=lambda _: None,
                   is_wanted=lambda _: True) == ()  # fmt: skip


def test_what_a_change_does_to_a_text_that_is_nested_deeply_is_known() -> None:
    before, after = (parse_schema(f"a {type}") for type in ("INT32", "INT64"))
    tables = {("t",): TableVersions.of("t", before, after)}
    (effect,) = effects(
        f"create table o as {DEEP}", dialect="spark", tables=tables.get, is_wanted=lambda _: True
    )
    (output,) = effect.outputs
    assert output.name == "a"
    assert output.after == ValueType(type=INT64, nullable=True)


def test_the_parser_s_log_stays_usable_for_others(caplog: pytest.LogCaptureFixture) -> None:
    level = logging.getLogger("sqlglot").level
    analyse(UNSUPPORTED, dialect="postgres")
    assert caplog.records == []
    assert logging.getLogger("sqlglot").level == level
    assert logging.getLogger("sqlglot").filters == []
    sqlglot.parse(UNSUPPORTED, dialect="postgres")
    assert [record.name for record in caplog.records] == ["sqlglot"]
