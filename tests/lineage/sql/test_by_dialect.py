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
