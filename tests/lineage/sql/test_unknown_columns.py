"""Queries on tables without a schema: which columns still resolve."""

import pytest

from lineage.sql.edges import direct, of, uses
from lumos.lineage.sql.script import ALL


def resolves(sql: str, edges: set[str], dialect: str = "bigquery") -> None:
    script = of(sql, dialect)
    assert not [each.reason for each in script.unresolved if each.severity == "error"]
    assert direct(script) == edges
    assert script.coverage.resolved == script.coverage.columns


OPEN_STAR = "select * except (a) replace (upper(b) as b), c from raw.visits"


@pytest.mark.parametrize(
    "sql",
    [
        f"create table mart.v as select b, c, d from ({OPEN_STAR})",
        f"create table mart.v as with v as ({OPEN_STAR}) select v.b, v.c, v.d from v",
        f"create table mart.v as select b, c, d from ({OPEN_STAR} union all {OPEN_STAR})",
    ],
)
def test_a_star_with_except_and_replace_leaves_the_columns_open(sql: str) -> None:
    resolves(sql, {f"raw.visits.{name} -> mart.v.{name}" for name in "bcd"})


def test_a_column_that_except_leaves_out_is_not_there() -> None:
    (problem,) = of(f"select a from ({OPEN_STAR})", "bigquery").unresolved
    assert problem.reason.startswith("no source has a column 'a'")


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        (OPEN_STAR, (ALL, "b", "c")),
        ("select * from raw.visits", (ALL,)),
        ("select c from raw.visits", ("c",)),
    ],
)
def test_the_columns_of_a_written_table_say_that_there_are_unknown_ones(
    sql: str, columns: tuple[str, ...]
) -> None:
    (write,) = of(f"create table mart.v as {sql}", "bigquery").writes
    assert write.columns == columns


@pytest.mark.parametrize(
    "source",
    [
        "raw.pings",
        "raw.pings, unnest(events)",
        "raw.pings cross join unnest(events) as event",
        "(select * from raw.pings)",
        "(select * except (x) from raw.pings), unnest(events) as event",
    ],
)
def test_a_qualifier_that_is_no_source_is_a_struct_of_the_only_table(source: str) -> None:
    resolves(
        f"create table mart.c as select device.id, device.os.name as os from {source}",
        {"raw.pings.device -> mart.c.id", "raw.pings.device -> mart.c.os"},
    )


def test_a_struct_may_come_from_both_branches_of_a_union() -> None:
    resolves(
        "create table mart.c as with both as "
        "(select * from raw.ios union all select * from raw.android) select device.id from both",
        {"raw.ios.device -> mart.c.id", "raw.android.device -> mart.c.id"},
    )


def test_a_struct_in_a_join_belongs_to_the_table_that_is_seen_to_have_it() -> None:
    resolves(
        "create table mart.c as select device.id from raw.pings p join raw.users u "
        "on p.device.user = u.user",
        {"raw.pings.device -> mart.c.id"},
    )


def test_a_struct_that_two_tables_may_have_is_ambiguous() -> None:
    script = of("select device.id from raw.pings join raw.users on true", "bigquery")
    (problem,) = script.unresolved
    assert problem.reason == "column 'device' is ambiguous: it may come from pings, users"


def test_a_qualifier_that_is_no_source_is_no_struct_where_there_are_none() -> None:
    (problem,) = of("select device.id from raw.pings", "mysql").unresolved
    assert problem.reason == "no source is called 'device'"


@pytest.mark.parametrize("dialect", ["bigquery", "postgres", "snowflake", "tsql"])
@pytest.mark.parametrize(
    "tables",
    [
        "(raw.a join (raw.b as x join raw.c as y on x.k = y.k) on a.k = x.k)",
        "raw.a join ((raw.b as x join raw.c as y on x.k = y.k)) on a.k = x.k",
        "((raw.a join raw.b as x on a.k = x.k) join (raw.c as y join raw.d on y.k = d.k) on y.k = x.k)",
        "((raw.a join (select * from raw.b) as x on a.k = x.k) join raw.c as y on x.k = y.k)",
    ],
)
def test_aliases_inside_nested_brackets_are_found(tables: str, dialect: str) -> None:
    resolves(
        f"create view mart.v as select a.i, x.j, y.l from {tables}",
        {"raw.a.i -> mart.v.i", "raw.b.j -> mart.v.j", "raw.c.l -> mart.v.l"},
        dialect,
    )


def test_a_query_in_two_brackets_stays_a_query() -> None:
    resolves(
        "create view mart.v as select n from ((select k as n from raw.a)) as q",
        {"raw.a.k -> mart.v.n"},
        "postgres",
    )


@pytest.mark.parametrize(
    "row",
    [
        "if(new.k is null, old, new)",
        "coalesce(new, old)",
        "case when new.k is null then old else new end",
        "any_value(if(new.k is null, old, new))",
    ],
)
def test_the_fields_of_one_of_two_rows_come_from_both(row: str) -> None:
    resolves(
        f"create table mart.s as select v from (select {row}.* from raw.old full join raw.new "
        "using (k))",
        {"raw.old.v -> mart.s.v", "raw.new.v -> mart.s.v"},
    )


def test_what_decides_between_two_rows_decides_about_all_columns() -> None:
    script = of(
        "create table mart.s as select if(new.k is null, old, new).* from raw.old, raw.new",
        "bigquery",
    )
    assert direct(script) == {"raw.old.* -> mart.s.*", "raw.new.* -> mart.s.*"}
    assert uses(script) == {"raw.new.k -> mart.s CONDITIONAL"}


def test_the_fields_of_a_struct_that_is_picked_are_known() -> None:
    resolves(
        "create table mart.s as select k, array_agg(struct(a as x, b) order by t limit 1)"
        "[offset(0)].* from raw.r group by k",
        {"raw.r.k -> mart.s.k", "raw.r.a -> mart.s.x", "raw.r.b -> mart.s.b"},
    )


def test_the_fields_of_what_a_function_returns_are_not_the_columns_of_the_table() -> None:
    script = of("create table mart.s as select k, f(a).* from raw.r", "bigquery")
    assert direct(script) == {"raw.r.k -> mart.s.k", "raw.r.a -> mart.s.*"}


def test_the_fields_of_array_elements_are_open() -> None:
    resolves(
        "create table mart.s as select id, n from "
        "(select e.*, r.n from raw.r cross join unnest(entries) as e)",
        {"raw.r.entries -> mart.s.id", "raw.r.n -> mart.s.n"},
    )
