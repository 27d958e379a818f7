"""What single dialects write in their own way."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from lineage.sql.edges import direct, of, uses


class Case(NamedTuple):
    dialect: str
    sql: str
    direct: set[str]
    uses: set[str] | None = None
    schema: Mapping[str, Sequence[str]] | None = None


def holds(case: Case) -> None:
    script = of(case.sql, case.dialect, case.schema)
    assert direct(script) == case.direct
    if case.uses is not None:
        assert uses(script) == case.uses
    assert not [each for each in script.unresolved if each.severity == "error"]


NAMED_QUERIES_AS_TARGETS = [
    Case(
        "tsql",
        "with c as (select id, v, id2 from dbo.t) update c set v = id2",
        {"dbo.t.id2 -> dbo.t.v"},
        set(),
    ),
    Case(
        "tsql",
        "with c as (select id, v as w from dbo.t) "
        "update x set w = s.q from c x join dbo.s s on s.id = x.id",
        {"dbo.s.q -> dbo.t.v"},
        {"dbo.s.id -> dbo.t JOIN", "dbo.t.id -> dbo.t JOIN"},
    ),
    Case(
        "tsql",
        "with c as (select *, row_number() over (partition by k order by id) rn from dbo.t) "
        "delete from c where rn > 1",
        set(),
        {"dbo.t.k -> dbo.t FILTER", "dbo.t.id -> dbo.t FILTER"},
    ),
    Case(
        "tsql",
        "with c as (select * from dbo.t) merge into c using dbo.s s on s.id = c.id "
        "when matched then update set c.v = s.v;",
        {"dbo.s.v -> dbo.t.v"},
    ),
    Case(
        "oracle",
        "delete from (select a.x from a join b on a.i = b.i) where x = 1",
        set(),
        {"a.x -> a FILTER", "a.i -> a JOIN", "b.i -> a JOIN"},
    ),
]


@pytest.mark.parametrize("case", NAMED_QUERIES_AS_TARGETS)
def test_a_named_query_as_target_is_the_table_behind_it(case: Case) -> None:
    holds(case)


VARIABLES = [
    Case(
        "tsql",
        "declare @t table (id int, v int); insert into @t select a, b from dbo.src;"
        "insert into dbo.fin (x, y) select id, v from @t;",
        {"dbo.src.a -> dbo.fin.x", "dbo.src.b -> dbo.fin.y"},
    ),
    Case(
        "tsql",
        "declare @x int; select @x = max(id) from dbo.t; insert into dbo.o (a) select @x;",
        {"dbo.t.id -> dbo.o.a"},
    ),
    Case(
        "tsql",
        "declare @x int = (select max(id) from dbo.t); "
        "insert into dbo.o (a) select d from dbo.y where d > @x",
        {"dbo.y.d -> dbo.o.a"},
        {"dbo.y.d -> dbo.o FILTER", "dbo.t.id -> dbo.o FILTER"},
    ),
    Case(
        "tsql",
        "declare @id int, @v money; declare c cursor for select s.id, s.v from dbo.s s; open c;"
        "fetch next from c into @id, @v; update dbo.t set seen = @v where id = @id;",
        {"dbo.s.v -> dbo.t.seen"},
        {"dbo.t.id -> dbo.t FILTER", "dbo.s.id -> dbo.t FILTER"},
    ),
    Case(
        "postgres",
        "create function f() returns void as $$ declare v int; w int; r record; begin "
        "select a, b into v, w from s.t; insert into s.o (x, y) values (v, w + 1);"
        "select * into strict r from s.u; insert into s.o (z) values (r.k); end; $$ language plpgsql",
        {"s.t.a -> s.o.x", "s.t.b -> s.o.y", "s.u.k -> s.o.z"},
    ),
    Case(
        "oracle",
        "create procedure p is v_total number; begin "
        "select sum(b.amount) into v_total from hr.bonus b;"
        "insert into rpt.b (t) values (v_total); end;",
        {"hr.bonus.amount -> rpt.b.t"},
    ),
    Case(
        "snowflake",
        "create procedure p() returns string language sql as $$ declare v int; begin "
        "select max(id) into :v from s.t; insert into s.o (a) values (:v); end; $$",
        {"s.t.id -> s.o.a"},
    ),
]


@pytest.mark.parametrize("case", VARIABLES)
def test_values_go_through_variables(case: Case) -> None:
    holds(case)


SQL_SERVER = [
    Case("tsql", "insert into dbo.o with (tablock) (a) select b from dbo.t", {"dbo.t.b -> dbo.o.a"}),
    Case(
        "tsql",
        "update dbo.a set n += b.k, m = 1 from dbo.b b where b.id = a.id",
        {"dbo.a.n -> dbo.a.n", "dbo.b.k -> dbo.a.n"},
    ),
    Case(
        "tsql",
        "update dbo.a set n = b.k output inserted.n, deleted.n, b.z into dbo.log (n1, n0, z) "
        "from dbo.b b where b.id = a.id",
        {
            "dbo.b.k -> dbo.a.n", "dbo.a.n -> dbo.log.n1", "dbo.a.n -> dbo.log.n0",
            "dbo.b.z -> dbo.log.z",
        },
    ),
    Case(
        "tsql",
        "delete from dbo.a output deleted.id, deleted.n into dbo.arch (id, n) where old = 1",
        {"dbo.a.id -> dbo.arch.id", "dbo.a.n -> dbo.arch.n"},
    ),
    Case(
        "tsql",
        "merge into dbo.t using dbo.s s on t.a = s.a when matched then update set t.b = s.b "
        "output $action, inserted.b into dbo.log (x, y);",
        {"dbo.s.b -> dbo.t.b", "dbo.t.b -> dbo.log.y"},
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", SQL_SERVER)
def test_what_sql_server_adds_to_statements_that_write(case: Case) -> None:
    holds(case)


JOINS_AND_PLACES = [
    Case(
        "spark",
        "create table o as select * from t left anti join u using (id)",
        {"t.id -> o.id", "t.a -> o.a"},
        {"t.id -> o JOIN", "u.id -> o JOIN"},
        {"t": ["id", "a"], "u": ["id", "z"]},
    ),
    Case(
        "spark",
        "insert overwrite table s.t partition (region = 'eu', dt) select a, b, d from s.u",
        {"s.u.a -> s.t.x", "s.u.b -> s.t.y", "s.u.d -> s.t.dt"},
        schema={"s.t": ["x", "y", "region", "dt"]},
    ),
    Case(
        "postgres",
        "create table s.t2 (like s.t1, z int); insert into s.t2 select q, r, w from s.u",
        {"s.u.q -> s.t2.x", "s.u.r -> s.t2.y", "s.u.w -> s.t2.z"},
        schema={"s.t1": ["x", "y"]},
    ),
    Case(
        "mysql",
        "create table s.t2 like s.t1; insert into s.t2 select q, r from s.u",
        {"s.u.q -> s.t2.x", "s.u.r -> s.t2.y"},
        schema={"s.t1": ["x", "y"]},
    ),
    Case(
        "mysql",
        "insert into x.t (id, last, cnt) select u.id, u.d, u.c from u "
        "on duplicate key update last = u.d, cnt = cnt + values(cnt)",
        {"u.id -> x.t.id", "u.d -> x.t.last", "u.c -> x.t.cnt", "x.t.cnt -> x.t.cnt"},
    ),
    Case(
        "bigquery",
        "create table o as select * from b pivot(sum(amt) as tot for qtr in ('Q1', 'Q2'))",
        {"b.k -> o.k", "b.amt -> o.tot_q1", "b.amt -> o.tot_q2"},
        schema={"b": ["k", "amt", "qtr"]},
    ),
    Case(
        "teradata",
        "create multiset volatile table o, no fallback, no log as (select a from t) with data "
        "on commit preserve rows; insert into p (x) select a from o",
        {"t.a -> p.x"},
    ),
]


@pytest.mark.parametrize("case", JOINS_AND_PLACES)
def test_columns_go_where_the_dialect_puts_them(case: Case) -> None:
    holds(case)


POSITIONS = [
    Case(
        "postgres",
        "create table o as select id, u.tag, u.n from t "
        "cross join lateral unnest(tags) with ordinality as u(tag, n)",
        {"t.id -> o.id", "t.tags -> o.tag"},
    ),
    Case(
        "postgres",
        "create table o as select e.v, e.n from t, jsonb_array_elements(t.x) with ordinality as e(v, n)",
        {"t.x -> o.v"},
    ),
    Case(
        "spark",
        "create table o as select posexplode(tags) as (pos, val) from t",
        {"t.tags -> o.val"},
    ),
    Case(
        "snowflake",
        "create table o as select f.index as n, f.value as v from t, table(flatten(t.x)) f",
        {"t.x -> o.v"},
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", POSITIONS)
def test_the_place_of_an_element_is_no_value(case: Case) -> None:
    holds(case)


INSIDE_OF_VALUES = [
    Case(
        "postgres",
        "create table o as select a, exists (select 1 from u where u.k = t.k) as has from t",
        {"t.a -> o.a"},
        {"u.k -> o.has FILTER", "t.k -> o.has FILTER"},
    ),
    Case(
        "postgres",
        "update t set c = (select max(x) from u where u.k = t.k)",
        {"u.x -> t.c"},
        {"u.k -> t.c FILTER", "t.k -> t.c FILTER"},
    ),
    Case(
        "oracle",
        "update t set (a, b) = (select x, y from u where u.k = 1)",
        {"u.x -> t.a", "u.y -> t.b"},
        {"u.k -> t.a FILTER", "u.k -> t.b FILTER"},
    ),
    Case(
        "postgres",
        "insert into x (id, n) select id, n from s "
        "on conflict (id) do update set n = excluded.n where x.n <> excluded.n",
        {"s.id -> x.id", "s.n -> x.n"},
        {"x.n -> x FILTER", "s.n -> x FILTER"},
    ),
]


@pytest.mark.parametrize("case", INSIDE_OF_VALUES)
def test_what_a_query_inside_of_a_value_decides_it_decides_about_that_value(case: Case) -> None:
    holds(case)


def test_one_table_has_one_spelling_and_quotes_yield() -> None:
    script = of(
        'create table s.o as select a from s.t; create table s.p as select "A" as b from "S"."O"',
        "snowflake",
    )
    assert direct(script) == {"s.t.a -> s.o.a", "s.o.a -> s.p.b"}
    assert [write.sources for write in script.writes] == [(("s", "t"),), (("s", "o"),)]


def test_a_table_that_is_always_quoted_keeps_its_case() -> None:
    assert direct(of('create table "S"."O" as select a from s.t', "snowflake")) == {
        "s.t.a -> S.O.a"
    }


OTHER_NAMES = [
    Case(
        "snowflake",
        "create table identifier('db.sc.o') as select a from identifier('db.sc.t')",
        {"db.sc.t.a -> db.sc.o.a"},
    ),
    Case("databricks", "create table o as select a from stream(live.src)", {"live.src.a -> o.a"}),
    Case(
        "snowflake",
        "create table o as select * ilike '%x%' from t",
        {"t.ax -> o.ax"},
        schema={"t": ["ax", "b"]},
    ),
    Case(
        "clickhouse",
        "create table o as with x * 2 as dbl select dbl + 1 as r from db.s",
        {"db.s.x -> o.r"},
    ),
    Case(
        "postgres",
        "with n as (insert into s.a (id, v) select i, w from s.src returning id, made) "
        "insert into s.b (id, made) select id, made from n",
        {
            "s.src.i -> s.a.id", "s.src.w -> s.a.v", "s.src.i -> s.b.id", "s.a.made -> s.b.made",
        },
    ),
    Case("postgres", "create table o as select (h), d::int from t", {"t.h -> o.h", "t.d -> o.d"}),
    Case("duckdb", "create table o as select (h) from t", {"t.h -> o.h"}),
    Case(
        "duckdb",
        "create table o as select a from read_parquet('s3://b/x.parquet')",
        {"s3://b/x.parquet.a -> o.a"},
    ),
    Case(
        "postgres",
        "copy t (a, b) from stdin;\n1\tit's\n2\tselect; b\n\\.\n\ninsert into o (a) select a from t;",
        {"t.a -> o.a"},
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", OTHER_NAMES)
def test_names_that_dialects_write_in_their_own_way(case: Case) -> None:
    holds(case)


REMARKS = [
    ("postgres", "insert into t (x, y) select a, b, c from s", {"s.a -> t.x", "s.b -> t.y"}),
    ("spark", "insert into ${db}.o select a from ${hiveconf:db}.t", {"t.a -> o.a"}),
    ("tsql", "exec sp_executesql @sql", set()),
    ("postgres", "do $$ begin execute 'insert into a select b from c'; end $$;", set()),
]


@pytest.mark.parametrize(("dialect", "sql", "edges"), REMARKS)
def test_what_costs_no_edge_is_remarked(dialect: str, sql: str, edges: set[str]) -> None:
    script = of(sql, dialect)
    assert direct(script) == edges
    assert {each.severity for each in script.unresolved} == {"remark"}


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("duckdb", "create table o as select min(columns(*)) from t"),
        ("snowflake", "create table o as select a from identifier($t)"),
    ],
)
def test_names_known_only_at_run_time_are_unresolved(dialect: str, sql: str) -> None:
    assert [each.severity for each in of(sql, dialect).unresolved] == ["error"]


ROUTINES_AND_FUNCTIONS = [
    Case(
        "postgres",
        "create function f() returns trigger as $$ begin "
        "insert into hist.t (id, old_v, new_v) values (new.id, old.v, new.v); return new; end "
        "$$ language plpgsql;"
        "create trigger g after update on app.t for each row execute function f();",
        {"app.t.id -> hist.t.id", "app.t.v -> hist.t.old_v", "app.t.v -> hist.t.new_v"},
    ),
    Case(
        "tsql",
        "create proc p as begin try insert into t (a) select s.a from s; end try "
        "begin catch rollback; throw; end catch",
        {"s.a -> t.a"},
    ),
    Case(
        "tsql",
        "create view v as select x.value('(/a)[1]', 'int') as b, dbo.f(y) as c from s",
        {"s.x -> v.b", "s.y -> v.c"},
    ),
    Case(
        "bigquery",
        "create table o as select any_value(v having max ts) as v from s",
        {"s.v -> o.v"},
        {"s.ts -> o.v SORT"},
    ),
    Case(
        "hive",
        "create table o as select transform (a) using 'x.py' as (c, d) from s",
        {"s.a -> o.c", "s.a -> o.d"},
    ),
    Case(
        "teradata",
        "replace view v as locking row for access select a (named x), b (title 'B') from t",
        {"t.a -> v.x", "t.b -> v.b"},
    ),
]


@pytest.mark.parametrize("case", ROUTINES_AND_FUNCTIONS)
def test_routines_and_functions_of_dialects(case: Case) -> None:
    holds(case)


TURNED_AND_NESTED = [
    Case(
        "bigquery",
        "create table o as select a.* from (select struct(x as p, y as q) as a from s)",
        {"s.x -> o.p", "s.y -> o.q"},
    ),
    Case(
        "spark",
        "create table o as select a.q from (select named_struct('p', x, 'q', y) as a from s)",
        {"s.y -> o.q"},
    ),
    Case(
        "snowflake",
        "create table o as select * from t match_recognize(partition by k order by ts "
        "measures first(a.v) as fv, last(b.w) as lw pattern (a b+) define b as b.v > a.v) mr",
        {"t.k -> o.k", "t.v -> o.fv", "t.w -> o.lw"},
        {"t.v -> o FILTER"},
    ),
    Case(
        "duckdb",
        "create table o as pivot s on m using sum(v) group by k",
        {"s.k -> o.k", "s.v -> o.*"},
        {"s.m -> o.* CONDITIONAL"},
        {"s": ["k", "m", "v"]},
    ),
    Case(
        "duckdb",
        "create table o as unpivot s on q1, q2 into name mon value amt",
        {"s.k -> o.k", "s.q1 -> o.amt", "s.q2 -> o.amt"},
        schema={"s": ["k", "q1", "q2"]},
    ),
    Case(
        "bigquery",
        "create table o as select * from b pivot(sum(amt) as tot, count(*) as n for q in ('A'))",
        {"b.k -> o.k", "b.amt -> o.tot_a"},
        schema={"b": ["k", "amt", "q"]},
    ),
]


@pytest.mark.parametrize("case", TURNED_AND_NESTED)
def test_turned_tables_and_structs_made_on_the_way(case: Case) -> None:
    holds(case)
