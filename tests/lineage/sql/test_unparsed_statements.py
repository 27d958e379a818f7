"""Statements that their dialect cannot parse: another dialect may, and tables in their text stay."""

import pytest

from lineage.sql.edges import direct, of
from lumos.lineage.sql.dialects import NameFolding, find_dialect
from lumos.lineage.sql.unparsed import tables_in


@pytest.mark.parametrize(
    ("dialect", "sql", "used", "edges"),
    [
        pytest.param(
            "duckdb", 'create table o as select "a" as `x y` from t', "spark", {"t.a -> o.x y"},
            id="backticks beside double quotes",
        ),
        pytest.param(
            None, "insert into [o] select [a b] from [dbo].[t]", "tsql", {"dbo.t.a b -> o.a b"},
            id="brackets around names",
        ),
        pytest.param(
            "postgres", "create table o as select a, 'it\\'s' as b from t", "spark",
            {"t.a -> o.a"}, id="a quote behind a backslash",
        ),
    ],
)  # fmt: skip
def test_another_dialect_parses_the_statement_and_is_named(
    dialect: str | None, sql: str, used: str, edges: set[str]
) -> None:
    script = of(sql, dialect)
    (problem,) = script.unresolved
    assert problem.severity == "remark"
    assert f"{used} SQL" in problem.reason
    assert direct(script) == edges
    assert not script.unparsed


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        # A comment in Snowflake, and a division here.
        pytest.param("duckdb", "insert into o select a // b as `c` from t", id="comment"),
        # A name in T-SQL, and a list here.
        pytest.param("duckdb", "insert into o select [a, b] c d from t", id="list"),
    ],
)
def test_a_dialect_that_reads_quotes_or_comments_otherwise_is_not_taken(
    dialect: str, sql: str
) -> None:
    (unparsed,) = of(sql, dialect).unparsed
    assert (unparsed.reads, unparsed.writes) == ((("t",),), (("o",),))


def test_a_double_quote_in_a_string_rules_out_dialects_where_it_begins_one() -> None:
    (problem,) = of("insert into o select 'a \"b' as `c`, d from t", "postgres").unresolved
    assert "read as clickhouse SQL" in problem.reason


def test_tables_of_a_statement_that_no_dialect_parses_are_kept_with_its_line() -> None:
    script = of(
        "create table a as select b from c;\ncreate table o as\nselect x y z from t", "duckdb"
    )
    (unparsed,) = script.unparsed
    assert (unparsed.number, unparsed.line) == (2, 2)
    assert (unparsed.reads, unparsed.writes) == ((("t",),), (("o",),))


@pytest.mark.parametrize(
    ("sql", "reads", "writes"),
    [
        ("select from a x, s.b as y, (select 1 from c, d) z where e, f", "a s.b c d", ""),
        ("select x from a join b on a.i = b.i, c left join lateral d group by e, f", "a b c d", ""),
        ("insert into o (a, b) selec 1 from t", "t", "o"),
        ("insert overwrite table s.o select from t", "t", "s.o"),
        ("create or replace view if not exists v as select from t", "t", "v"),
        ("merge into o using (select 1 from a) s on", "a", "o"),
        ("update o set a = 1 from t", "t", "o"),
        ("select 'from hidden' from `My_T`.u -- from comment", "my_t.u", ""),
        ("select from generate_series(1, 2), t", "t", ""),
        ("select from t; insert into o select from u", "t u", "o"),
        ("select from lake.-- a comment\nt", "lake.t", ""),
        ("select from lake./* from x */t join lake /**/ . u", "lake.t lake.u", ""),
        ("select from lake.\n-- join x\n`t`", "lake.t", ""),
        ("select from p-1.lake.t where a-b > 1", "p-1.lake.t", ""),
        ("select from x where a in (table sales)", "x sales", ""),
        ("with q as (table s.sales) select from q", "s.sales q", ""),
        ("select from x union all table sales", "x sales", ""),
        ("create table o as table sales", "sales", "o"),
        ("create table o as select from (pivot sales on a using sum(b))", "sales", "o"),
        ("unpivot sales on a, b", "sales", ""),
        ("select from identifier('s.sales') x", "s.sales", ""),
        ("select from table ( 'sales' ), t", "sales t", ""),
        ("insert into identifier('o') select from t", "t", "o"),
        ("select concat('a', 'b') from t", "t", ""),
    ],
)
def test_tables_are_found_by_the_keywords_before_them(sql: str, reads: str, writes: str) -> None:
    found = tables_in(sql, NameFolding(find_dialect("duckdb")))
    assert [".".join(parts) for parts in found[0]] == reads.split()
    assert [".".join(parts) for parts in found[1]] == writes.split()


def test_every_other_name_of_a_statement_that_was_given_up_may_be_a_table() -> None:
    sql = "create table o as select sum(a) as n b from t summon 'x' shop.sales over cast(c as int)"
    (unparsed,) = of(sql, "duckdb").unparsed
    assert (unparsed.reads, unparsed.writes) == ((("t",),), (("o",),))
    # Neither functions, keywords and texts nor names that are given here.
    assert unparsed.others == (("a",), ("b",), ("summon",), ("shop", "sales"), ("c",))


def test_where_a_word_may_be_a_secret_no_other_names_are_kept() -> None:
    (unparsed,) = of("insert into o select a b password hush from t", "duckdb").unparsed
    assert unparsed.others == ()
    assert "hush" not in str(unparsed)


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        ("select from `lake.t`", ("lake", "t")),
        ("select from `p-1.lake.t`", ("p-1", "lake", "t")),
        ("select from `p-1`.`lake.t`", ("p-1", "lake", "t")),
    ],
)
def test_a_quoted_name_with_dots_may_also_be_several_names(
    sql: str, table: tuple[str, ...]
) -> None:
    reads = tables_in(sql, NameFolding(find_dialect("duckdb"))).reads
    assert table in reads
    assert len(reads) == 2


def test_a_path_in_quotes_is_one_name() -> None:
    reads, *_ = tables_in("select from parquet.`s3://b/x.d`", NameFolding(find_dialect("spark")))
    assert reads == (("parquet", "s3://b/x.d"),)


def test_spaces_and_comments_behind_a_name_are_read_in_one_pass() -> None:
    sql = "select from t" + " -- --" * 50 + " " * 50 + "\n" + "/* */ " * 50 + "where a"
    assert tables_in(sql, NameFolding(find_dialect("duckdb")))[:2] == ((("t",),), ())


@pytest.mark.parametrize(
    ("dialect", "sql", "source", "target"),
    [
        ("duckdb", "create table o as select a from `lake.t`", ("lake", "t"), ("o",)),
        ("duckdb", "insert into `s.o` (a) select a from `lake.t` u", ("lake", "t"), ("s", "o")),
        (
            None, "create table o as select `p-1.lake.t`.a from `p-1.lake`.t",
            ("p-1", "lake", "t"), ("o",),
        ),
        # Its own dialect says what backticks mean.
        ("mysql", "create table o as select a from `lake.t`", ("lake.t",), ("o",)),
    ],
)  # fmt: skip
def test_a_name_in_backticks_of_another_dialect_has_dots_between_its_parts(
    dialect: str | None, sql: str, source: tuple[str, ...], target: tuple[str, ...]
) -> None:
    (edge,) = of(sql, dialect).edges
    assert (edge.from_table, edge.from_column) == (source, "a")
    assert (edge.to_table, edge.to_column) == (target, "a")


def test_a_column_in_backticks_keeps_its_dots() -> None:
    (edge,) = of("create table o as select a as `x.y` from t", "duckdb").edges
    assert edge.to_column == "x.y"


def test_a_quote_that_is_not_closed_hides_no_table() -> None:
    script = of("insert into o select 'it's', a from t where b = 'c'", "postgres")
    (unparsed,) = script.unparsed
    assert (unparsed.reads, unparsed.writes) == ((("t",),), (("o",),))


@pytest.mark.parametrize(
    "sql",
    [
        "create user u identified by 'HUSH; select 1",
        "create user u password 'HU'HUSH' valid 'x",
        "copy t from 's3://b' credentials 'aws_secret_access_key=HUSH; select a",
        "alter user u identified by 'a;HUSH' x 'y; select 1 from",
        "select 'postgres://me:HUSH@host/db from t",
        "set password = 'HUSH\n; select a b c d from t",
        "create user u password 'a'HUSH' x = 'y' z",
    ],
)
@pytest.mark.parametrize("dialect", ["postgres", "mysql", "tsql", "snowflake", None])
def test_a_secret_behind_an_open_quote_is_not_shown(dialect: str | None, sql: str) -> None:
    script = of(sql, dialect)
    assert "HUSH" not in str([each.reason for each in script.unresolved])
    assert "HUSH" not in script.storable_text
    assert "hush" not in str(script.unparsed).lower()


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark", None])
def test_words_behind_an_escaped_quote_are_not_shown(dialect: str | None) -> None:
    script = of("SELECT 'it\\'s hunter2' FROM ((' x", dialect)
    assert script.unresolved
    assert "hunter2" not in str([each.reason for each in script.unresolved])


IN_FUNCTION = (
    "create function f() returns void as $$ declare v int; begin {} end $$ language plpgsql"
)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("tsql", "if exists (select a from t) insert into x select b from y"),
        ("tsql", "while (select max(a) from t) < 10 begin insert into x select b from y end"),
        ("tsql", "exec('insert into x select a from t')"),
        ("tsql", "exec sp_executesql N'insert into x select a from t'"),
        ("tsql", "declare @sql nvarchar(max) = 'insert into x select a from t'; exec(@sql)"),
        ("oracle", "begin for r in (select a from t) loop insert into x values (1); end loop; end;"),
        ("bigquery", "if exists (select a from t) then insert into x select b from y; end if"),
        ("bigquery", "declare v int64 default (select max(a) from t); insert into x select b from y"),
        ("bigquery", "execute immediate 'insert into x select a from t'"),
        ("mysql", "create procedure p() begin case (select a from t) when 1 then "
                  "insert into x select b from y; end case; end"),
        ("snowflake", "begin let v int := (select a from t); insert into x select b from y; end"),
        ("postgres", "prepare p as insert into x select a from t"),
        ("postgres", IN_FUNCTION.format("select a into v from t; insert into x values (v);")),
        ("postgres", IN_FUNCTION.format("v := (select a from t); insert into x values (v);")),
        ("postgres", IN_FUNCTION.format("perform a from t; insert into x select b from y;")),
        ("postgres", IN_FUNCTION.format("return query select a from t;")),
        ("postgres", IN_FUNCTION.format("execute 'insert into x select a from t';")),
        ("postgres", IN_FUNCTION.format("v := 'select a from t'; execute v;")),
        ("postgres", IN_FUNCTION.format("if (select count(a) from t) > 0 then "
                                        "insert into x select b from y; end if;")),
    ],
)  # fmt: skip
def test_tables_read_by_control_flow_and_dynamic_sql_are_kept(dialect: str, sql: str) -> None:
    found = of(sql, dialect)
    assert ("t",) in {table for each in found.unparsed for table in each.reads}
    assert ("v",) not in {table for each in found.unparsed for table in each.writes}


@pytest.mark.parametrize(
    "sql",
    [
        "begin if v > 1 then insert into x select b from y; end if; end",
        "grant select on t to somebody",
        "set greeting = 'copied from t'",
        "insert into x select b from y where c = 'select a from t'",
    ],
)
def test_words_that_read_no_table_are_not_kept(sql: str) -> None:
    assert of(sql, "postgres").unparsed == ()
