"""Where statements begin and end, and what is no SQL in a text of SQL."""

import pytest

from lineage.sql.edges import direct, of, uses

LOAD = "insert into m.t (a) select s.a from m.s s"
EDGES = {"m.s.a -> m.t.a"}


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        pytest.param(
            f"declare @x int = 1 if @x = 1 {LOAD} else print 'no'", "tsql", id="if-without-block"
        ),
        pytest.param(f"use db\ngo\n{LOAD}\ngo 3\n", "tsql", id="go"),
        pytest.param(f"begin tran {LOAD} commit tran", "tsql", id="transaction"),
        pytest.param(f"while @i < 3 begin set @i = @i + 1 {LOAD} end", "tsql", id="while"),
        pytest.param(
            f"{LOAD} where s.x = case when 1 = 1 then 2 end update m.u set z = 1",
            "tsql",
            id="case-is-no-block",
        ),
        pytest.param(
            f"create or alter proc p with execute as owner as {LOAD}", "tsql", id="execute-as"
        ),
        pytest.param(
            f"create function f() returns int language sql as $x$ {LOAD}; select 1 $x$",
            "postgres",
            id="tagged-dollars",
        ),
        pytest.param(
            f"create procedure p() language sql as 'begin {LOAD} where s.n = ''x''; end'",
            "snowflake",
            id="quoted-body",
        ),
        pytest.param(
            f"create procedure p() returns string language javascript as $$ var x = 1; $$; {LOAD}",
            "snowflake",
            id="another-language",
        ),
        pytest.param(
            f"begin\n if x > 1 then\n {LOAD};\n elseif x > 2 then select 1; end if;\nend",
            "bigquery",
            id="scripting",
        ),
        pytest.param(
            f"declare v number; begin loop exit when v > 1; {LOAD}; end loop; end;\n/\n",
            "oracle",
            id="loop",
        ),
        pytest.param(
            f"delimiter $$\ncreate procedure p() begin {LOAD}; end$$\ndelimiter ;\n",
            "mysql",
            id="delimiter",
        ),
        pytest.param(
            f"grant select on m.t to x; {LOAD}; vacuum m.t; comment on table m.t is 'y'",
            "postgres",
            id="harmless-statements",
        ),
        pytest.param(
            f"{{{{ config(materialized='table') }}}}\n{LOAD}", None, id="config-of-a-template"
        ),
        pytest.param(
            "insert into m.t (a) select s.a from {{ source('m', 's') }} s",
            None,
            id="source-of-a-template",
        ),
    ],
)
def test_a_statement_is_found_within(text: str, dialect: str) -> None:
    script = of(text, dialect)
    assert direct(script) >= EDGES
    assert [each for each in script.unresolved if each.severity == "error"] == []


def test_variables_are_no_columns() -> None:
    script = of(
        "create procedure p(in p_day date) begin declare n int; insert into m.t (a, b, c) "
        "select s.a, p_day, n from m.s s, m.r where s.day = p_day; end",
        "mysql",
    )
    assert direct(script) == EDGES
    assert uses(script) == {"m.s.day -> m.t FILTER"}


def test_a_cursor_hands_its_rows_on() -> None:
    script = of(
        "create procedure p is cursor c is select s.a from m.s s; begin for r in c loop "
        "insert into m.t (a) values (r.a); end loop; end;",
        "oracle",
    )
    assert direct(script) == EDGES


def test_a_statement_that_is_not_understood_leaves_the_rest() -> None:
    script = of(f"{LOAD};\nselect from from where;\n{LOAD.replace('m.t', 'm.u')}")
    assert direct(script) == {"m.s.a -> m.t.a", "m.s.a -> m.u.a"}
    assert [(each.statement, each.line) for each in script.unresolved] == [(2, 2)]


def test_a_quote_that_is_never_closed_spoils_one_statement() -> None:
    script = of(f"{LOAD};\nselect 'oops from m.s;\n{LOAD.replace('m.t', 'm.u')}")
    assert "m.s.a -> m.t.a" in direct(script)
    assert 2 in {each.line for each in script.unresolved}


def test_lines_count_from_the_beginning_of_the_file_also_in_bodies() -> None:
    text = (
        "create function f() returns void as $$\nbegin\n  " + LOAD + ";\nend $$ language plpgsql;"
    )
    assert {edge.line for edge in of(text, "postgres").edges} == {3}


def test_a_template_that_nobody_rendered_is_reported_and_gives_no_edge() -> None:
    script = of("create table m.t as select s.a, {{ fields() }} from m.s s")
    assert direct(script) == EDGES
    assert "{{ fields() }}" in script.unresolved[0].reason


@pytest.mark.parametrize(
    ("written", "read", "dialect", "meets"),
    [
        ("[Orders]", "orders", "tsql", True),
        ("`Orders`", "ORDERS", "mysql", True),
        ('"ORDERS"', "orders", "snowflake", True),
        ('"Orders"', "orders", "snowflake", False),
        ('"orders"', "Orders", "postgres", True),
        ('"Orders"', "orders", "postgres", False),
    ],
)
def test_a_table_meets_itself_under_another_quoting(
    written: str, read: str, dialect: str, meets: bool
) -> None:
    script = of(
        f"create temporary table {written} as select s.a from m.s s; insert into m.t (a) select a from {read}",
        dialect,
    )
    assert (direct(script) == EDGES) is meets


@pytest.mark.parametrize(
    "renaming", ["alter table w.new rename to w.t", "alter table w.t swap with w.new"]
)
def test_a_table_that_is_renamed_in_the_end_has_its_last_name(renaming: str) -> None:
    script = of(f"create table w.new as select s.a from m.s s; {renaming};", "snowflake")
    assert direct(script) == {"m.s.a -> w.t.a"}
    assert [write.table for write in script.writes] == [("w", "t")]


def test_sql_that_is_made_while_it_runs_is_remarked() -> None:
    (remark,) = of("execute immediate 'insert into t select a from s'", "snowflake").unresolved
    assert remark.severity == "remark"
