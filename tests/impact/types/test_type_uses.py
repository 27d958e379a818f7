"""What statements do with values whose type, nulls or existence change."""

import gc
import weakref

import pytest

from lumos.impact.rules.type_uses import OutputColumn, StatementEffect, TableVersions, TypeUse
from lumos.impact.types.effects import effects
from lumos.impact.types.sqlglot_types import from_sqlglot, to_sqlglot
from lumos.model.schema import parse_schema
from lumos.model.types import parse_type

BEFORE = """
user_id STRING NOT NULL
amount INT32
country STRING
day DATE
tags ARRAY<STRING>
address STRUCT<zip: STRING, city: STRING>
"""
OTHER = "user_id STRING\nsid INT64\nat DATE"


def effect(sql: str, after: str, *, dialect: str = "spark", create: bool = True) -> StatementEffect:
    """What a change of `events` does to the only table that is written."""
    versions = {
        ("events",): TableVersions.of("events", parse_schema(BEFORE), parse_schema(after)),
        ("sessions",): TableVersions.of("sessions", parse_schema(OTHER)),
    }
    (found,) = effects(
        f"create table t as {sql}" if create else sql,
        dialect=dialect,
        tables=versions.get,
        is_wanted=lambda _: True,
    )
    return found


def retyped(**types: str) -> str:
    """The schema of `events` with other types."""
    lines = []
    for line in BEFORE.strip().splitlines():
        name, _, rest = line.partition(" ")
        lines.append(f"{name} {types.get(name, rest)}")
    return "\n".join(line for line in lines if not line.endswith(" GONE"))


def shown(use: TypeUse) -> str:
    met = ""
    if use.partner is not None:
        met = f" {use.partner.type.text}"
    elif use.accepts is not None:
        met = " " + " ".join(kind.value for kind in use.accepts)
    return f"{use.clause_kind.value} {use.operation.value}{met}"


def acts(sql: str, **types: str) -> set[str]:
    return {shown(each) for each in effect(sql, retyped(**types or {"user_id": NUMBER})).type_uses}


def output(sql: str, after: str, dialect: str = "spark") -> OutputColumn | None:
    found = effect(sql, after, dialect=dialect).outputs
    return next((each for each in found if each.before != each.after or each.is_unknown), None)


NUMBER = "INT64 NOT NULL"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select sid from sessions s join events e on s.user_id = e.user_id", {"JOIN compared STRING"}),
        ("select sid from sessions join events using (user_id)", {"JOIN compared STRING"}),
        ("select sid from sessions natural join events", {"JOIN compared STRING"}),
        ("select amount from events where user_id = 'a'", {"FILTER compared STRING"}),
        ("select amount from events where user_id > 3", {"FILTER compared INT32"}),
        ("select amount from events where user_id in ('a', 'b')", {"FILTER compared STRING"}),
        ("select amount from events where user_id between 'a' and 'b'", {"FILTER compared STRING"}),
        ("select amount from events where user_id like 'a%'", {"FILTER called text"}),
        ("select amount from events where user_id is not null", {"FILTER counted"}),
        ("select sid from sessions where user_id in (select user_id from events)",
         {"FILTER compared STRING"}),
        ("select sid from sessions where user_id not in (select user_id from events)",
         {"FILTER not_in STRING"}),
        ("select sid from sessions s where exists (select 1 from events e "
         "where e.user_id = s.user_id)", {"FILTER compared STRING"}),
        ("select count(*) as n from events group by user_id", {"GROUP_BY grouped"}),
        ("select amount from events order by user_id", {"SORT sorted"}),
        ("select row_number() over (partition by user_id order by day) as n from events",
         {"WINDOW grouped"}),
        ("select row_number() over (order by user_id) as n from events", {"WINDOW sorted"}),
        ("select count(user_id) as n from events", {"PROJECTION counted"}),
        ("select count(distinct user_id) as n from events",
         {"PROJECTION grouped", "PROJECTION counted"}),
        ("select max(user_id) as m from events", {"PROJECTION aggregated any"}),
        ("select sum(amount) as s from events", set()),
        ("select upper(user_id) as u from events", {"PROJECTION called text"}),
        ("select my_function(user_id) as u from events", {"PROJECTION called"}),
        ("select user_id || '-' as u from events", {"PROJECTION formatted"}),
        ("select user_id + 1 as u from events", {"PROJECTION calculated INT32"}),
        ("select coalesce(user_id, 'none') as u from events", {"PROJECTION combined STRING"}),
        ("select case when amount > 1 then user_id else 'x' end as u from events",
         {"PROJECTION combined STRING"}),
        ("select case when user_id = 'x' then 1 end as u from events",
         {"CONDITIONAL compared STRING"}),
        ("select case user_id when 'x' then 1 end as u from events",
         {"CONDITIONAL compared STRING"}),
        ("select cast(user_id as string) as u from events", {"PROJECTION cast STRING"}),
        ("select distinct user_id from events", {"PROJECTION grouped"}),
        ("select user_id from events union all select user_id from sessions",
         {"UNION combined STRING"}),
        ("select user_id from events union select user_id from sessions",
         {"UNION combined STRING", "UNION grouped"}),
        ("select user_id from events", set()),
        ("select amount from events", set()),
        ("select count(*) as n from events", set()),
    ],
)  # fmt: skip
def test_what_is_done_with_a_column_of_another_type(query: str, expected: set[str]) -> None:
    assert acts(query) == expected


def test_a_cast_ends_what_a_named_query_hands_on() -> None:
    query = (
        "with c as (select cast(user_id as string) as u from events)\nselect u from c where u = 'a'"
    )
    assert acts(query) == {"PROJECTION cast STRING"}
    assert output(query, retyped(user_id=NUMBER)) is None


def test_a_named_query_hands_another_type_on() -> None:
    found = effect(
        "with c as (select user_id as u from events)\nselect upper(u) as x\nfrom c\nwhere u = 'a'",
        retyped(user_id=NUMBER),
    )
    assert {(shown(each), each.line, each.clause) for each in found.type_uses} == {
        ("PROJECTION called text", 2, "upper(u)"),
        ("FILTER compared STRING", 4, "where u = 'a'"),
    }


@pytest.mark.parametrize(
    ("query", "type"),
    [
        ("select user_id from events", "INT64"),
        ("select max(user_id) as user_id from events", "INT64"),
        ("select * from events", "INT64"),
        ("select e.* from events e join sessions s on true", "INT64"),
        ("select u from (select user_id as u from events)", "INT64"),
        ("select array(user_id) as u from events", "ARRAY<INT64>"),
        ("select (select max(user_id) from events) as u from sessions", "INT64"),
        ("select lag(user_id) over (order by day) as u from events", "INT64"),
    ],
)
def test_the_type_that_goes_on(query: str, type: str) -> None:
    found = output(query, retyped(user_id=NUMBER))
    assert found is not None
    assert found.after is not None
    assert found.after.type == parse_type(type)
    assert not found.is_unknown


@pytest.mark.parametrize("query", [
    "select my_function(user_id) as u from events",
    "select u from events lateral view my_table(user_id) f as u",
])  # fmt: skip
def test_what_cannot_be_typed_is_lost_and_not_unchanged(query: str) -> None:
    found = output(query, retyped(user_id=NUMBER))
    assert found is not None
    assert found.is_unknown


def test_fields_of_a_structure_change_by_themselves() -> None:
    after = retyped(address="STRUCT<zip: INT32, city: STRING>")
    found = effect("select address.city, address.zip, e.address.zip as z from events e", after)
    assert {
        each.name: each.after.type.text for each in found.outputs if each.after != each.before
    } == {
        "zip": "INT32", "z": "INT32",
    }  # fmt: skip


def test_a_field_that_is_gone_is_missed_where_it_is_named() -> None:
    found = effect("select upper(address.city) as c, address.zip from events",
                   retyped(address="STRUCT<zip: STRING>"))  # fmt: skip
    assert [shown(each) for each in found.type_uses] == ["PROJECTION missing"]


@pytest.mark.parametrize(
    ("query", "nullable"),
    [
        ("select user_id from events", True),
        ("select upper(user_id) as u from events", True),
        ("select coalesce(user_id, 'x') as u from events", None),
        ("select user_id from events where user_id is not null", None),
        ("select count(user_id) as n from events", None),
        ("select e.user_id from sessions s left join events e on e.amount = s.sid", None),
        ("select case when amount = 1 then user_id end as u from events", None),
        ("select max(user_id) as u from events group by day", True),
        ("select max(user_id) as u from events", None),
        ("select concat(user_id, 'x') as u from events", True),
    ],
)
def test_nulls_go_on_unless_something_replaces_them(query: str, nullable: bool | None) -> None:
    found = output(query, retyped(user_id="STRING"))
    if nullable is None:
        assert found is None
    else:
        assert found is not None
        assert found.after is not None
        assert found.after.nullable is nullable


@pytest.mark.parametrize(
    ("query", "is_unknown"),
    [
        ("select amount from events order by my_function(country)", False),
        ("select my_function(country) as c from events order by c", False),
        ("select my_function(country) as c from events group by 1", False),
        ("select amount from events order by my_function(user_id)", True),
        ("select my_function(user_id) as c from events order by c", True),
    ],
)
def test_a_column_that_loses_its_nulls_harms_nobody(query: str, is_unknown: bool) -> None:
    found = effect(query, retyped(country="STRING NOT NULL", user_id="STRING"))
    assert ("unknown" in {each.operation.value for each in found.type_uses}) is is_unknown
    assert any(each.is_unknown for each in found.outputs) is (is_unknown and "as c" in query)


def test_values_inside_a_cast_are_typed() -> None:
    found = effect("select cast(sum(coalesce(amount, 0)) as decimal(15, 4)) as x from events",
                   retyped(amount="INT64"))  # fmt: skip
    assert [(each.operation.value, each.after and each.after.type.text) for each in found.type_uses] == [
        ("combined", "INT64"), ("aggregated", "INT64"),
    ]  # fmt: skip


def test_a_gone_column_is_missed_where_it_is_named_and_not_where_a_star_stands() -> None:
    after = retyped(user_id="GONE")
    named = effect("with c as (select * from events) select amount, user_id from c", after)
    starred = effect("with c as (select * from events) select * from c", after)
    unused = effect("with c as (select * from events) select amount from c", after)
    assert [shown(each) for each in named.type_uses] == ["PROJECTION missing"]
    assert not starred.type_uses
    assert [(each.name, each.after) for each in starred.outputs] == [("user_id", None)]
    assert unused == StatementEffect()


ADDED = "extra INT32\n" + BEFORE.strip()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("create table t as select * from events", []),
        ("insert into sessions select * from events", ["INSERT used_by_position"]),
        ("insert into sessions select user_id, amount, day from events", []),
        ("create view t (a, b, c, d, e, f) as select * from events", ["INSERT used_by_position"]),
        ("create view t as select * from events union all select *, 1, 2, 3 from sessions",
         ["UNION used_by_position"]),
        ("create view t as select * from events union all select * from events", []),
        ("create view t as select extra from events join (select 1 as extra) x",
         ["PROJECTION ambiguous"]),
    ],
)  # fmt: skip
def test_a_new_column_harms_where_places_or_bare_names_count(sql: str, expected: list[str]) -> None:
    found = effect(sql, ADDED, create=False)
    assert [
        f"{each.clause_kind.value} {each.operation.value}" for each in found.type_uses
    ] == expected


def test_moved_columns_harm_where_a_star_goes_by_place() -> None:
    moved = "\n".join(reversed(BEFORE.strip().splitlines()))
    into = effect("insert into sessions select * from events", moved, create=False)
    listed = effect("insert into sessions select user_id, amount, day from events", moved,
                    create=False)  # fmt: skip
    assert [each.operation.value for each in into.type_uses] == ["used_by_position"]
    assert not listed.type_uses


def test_a_column_with_a_type_of_its_own_takes_the_value_or_refuses_it() -> None:
    found = effect("insert into sessions select user_id, 1, day from events",
                   retyped(user_id=NUMBER), create=False)  # fmt: skip
    assert [shown(each) for each in found.type_uses] == ["INSERT stored STRING"]
    assert not found.outputs


def test_a_merge_compares_and_stores() -> None:
    found = effect(
        "merge into sessions t using events s on t.user_id = s.user_id "
        "when not matched then insert (user_id, sid) values (s.user_id, 1)",
        retyped(user_id=NUMBER), create=False,
    )  # fmt: skip
    assert {shown(each) for each in found.type_uses} == {
        "JOIN compared STRING", "INSERT stored STRING",
    }  # fmt: skip


def test_statements_of_a_script_are_distinguished() -> None:
    versions = {
        ("events",): TableVersions.of(
            "events", parse_schema(BEFORE), parse_schema(retyped(user_id=NUMBER))
        )
    }
    first, second = effects(
        "create temporary table x as select upper(user_id) as u, amount from events;\n"
        "create table a as select u from x;\n"
        "create table b as select amount from events;",
        dialect="spark",
        tables=versions.get,
        is_wanted=lambda _: True,
    )
    assert [shown(each) for each in first.type_uses] == ["PROJECTION called text"]
    assert second == StatementEffect()


@pytest.mark.parametrize(
    ("dialect", "expression", "type"),
    [
        ("spark", "sum(price)", "DECIMAL(22,2)"),
        ("snowflake", "sum(price)", "DECIMAL(38,2)"),
        ("postgres", "sum(price)", "DECIMAL"),
        ("tsql", "sum(pieces)", "INT32"),
        ("spark", "sum(pieces)", "INT64"),
        ("duckdb", "price - weight", "FLOAT64"),
        ("duckdb", "coalesce(price, 0) - coalesce(price, 0)", "DECIMAL(13,2)"),
        ("duckdb", "coalesce(price, weight)", "FLOAT64"),
        ("snowflake", "price * 12", "DECIMAL(14,2)"),
        ("spark", "case when pieces > 1 then price else 0 end", "DECIMAL(12,2)"),
        ("spark", "upper(code)", "STRING(20)"),
        ("spark", "coalesce(pieces, 'none')", "UNKNOWN"),
    ],
)
def test_what_is_calculated_has_the_type_that_the_dialect_gives_it(
    dialect: str, expression: str, type: str
) -> None:
    schema = "price DECIMAL(12,2)\nweight FLOAT64\npieces INT32\ncode STRING(20)"
    (found,) = effects(
        f"create table t as select {expression} as x from goods",
        dialect=dialect,
        tables={("goods",): TableVersions.of("goods", parse_schema(schema))}.get,
        is_wanted=lambda _: True,
        with_fields=True,
    )
    assert found.fields[0].type == parse_type(type)


@pytest.mark.parametrize(
    ("dialect", "query", "after", "types"),
    [
        ("spark", "select a / b as x from goods", "DECIMAL(12,2)", ("DECIMAL(23,13)", "DECIMAL(25,13)")),
        ("spark", "select sum(c) / sum(c) as x from goods", "DECIMAL(12,2)", ("DECIMAL(37,20)", "DECIMAL(38,16)")),
        ("spark", "select coalesce(c, 0.0) as x from goods", "DECIMAL(9,4)", ("DECIMAL(7,2)", "DECIMAL(9,4)")),
        ("spark", "select coalesce(c, 0) as x from goods", "DECIMAL(12,2)", None),
        ("spark", "select x - coalesce(x, 0.0) as x from (select c as x from goods union select b from goods)",
         "DECIMAL(9,4)", ("DECIMAL(11,2)", "DECIMAL(13,4)")),
        ("spark", "select c as x from goods except select d from goods", "DECIMAL(9,4)",
         ("DECIMAL(7,2)", "DECIMAL(9,4)")),
        ("spark", "select d as x from goods except select c from goods", "DECIMAL(9,4)",
         ("DECIMAL(7,2)", "DECIMAL(9,4)")),
        ("duckdb", "select a / b as x from goods", "DECIMAL(12,2)", None),
        ("duckdb", "select avg(c) as x from goods", "DECIMAL(12,2)", None),
        ("duckdb", "select sum(c) as x from goods", "DECIMAL(12,2)", None),
        ("duckdb", "select avg(c) / sum(c) as x from goods", "DECIMAL(9,4)", None),
        ("duckdb", "select a * c as x from goods", "DECIMAL(12,2)", ("DECIMAL(17,4)", "DECIMAL(18,4)")),
        ("snowflake", "select sum(c) / sum(c) as x from goods", "DECIMAL(9,4)", ("DECIMAL(38,8)", "DECIMAL(38,10)")),
    ],
)  # fmt: skip
def test_a_decimal_of_another_size_changes_what_the_dialect_computes_from_it(
    dialect: str, query: str, after: str, types: tuple[str, str] | None
) -> None:
    before = "a DECIMAL(10,2)\nb DECIMAL(10,2)\nc DECIMAL(7,2)\nd DECIMAL(7,2)"
    column = "a DECIMAL(10,2)" if "a /" in query else "c DECIMAL(7,2)"
    changed = before.replace(column, f"{column[0]} {after}")
    versions = TableVersions.of("goods", parse_schema(before), parse_schema(changed))
    (found,) = effects(
        f"create table t as {query}",
        dialect=dialect,
        tables={("goods",): versions}.get,
        is_wanted=lambda _: True,
    )
    (output,) = found.outputs
    assert not output.is_unknown
    assert output.before is not None
    assert output.after is not None
    if types is None:
        assert output.before.type == output.after.type
    else:
        assert (output.before.type.text, output.after.type.text) == types


@pytest.mark.parametrize("dialect", ["", "mysql", "trino", "redshift"])
def test_decimals_that_a_dialect_without_rules_computes_are_lost(dialect: str) -> None:
    before = "c DECIMAL(7,2)"
    versions = TableVersions.of("goods", parse_schema(before), parse_schema("c DECIMAL(12,2)"))
    (found,) = effects(
        "create table t as select c * 2 as x, count(c) as n from goods",
        dialect=dialect,
        tables={("goods",): versions}.get,
        is_wanted=lambda _: True,
    )
    assert {each.name: each.is_unknown for each in found.outputs} == {"x": True, "n": False}


def test_elements_of_a_list_have_its_type() -> None:
    before = "items ARRAY<STRUCT<price: DECIMAL(10,2), name: STRING>>"
    versions = TableVersions.of(
        "orders", parse_schema(before), parse_schema(before.replace("DECIMAL(10,2)", "FLOAT64"))
    )
    (found,) = effects(
        "create table t as select i.price, i.name from orders o, unnest(o.items) as i",
        dialect="bigquery",
        tables={("orders",): versions}.get,
        is_wanted=lambda _: True,
    )
    changed = [each for each in found.outputs if each.before != each.after]
    assert [(each.name, each.after and each.after.type.text) for each in changed] == [
        ("price", "FLOAT64")
    ]


def test_a_column_that_takes_a_failing_expression_says_which() -> None:
    found = effect("with c as (select upper(user_id) as u, amount from events) "
                   "select u || '-' as x, amount from c", retyped(user_id=NUMBER))  # fmt: skip
    (failing,) = [
        number for number, each in enumerate(found.type_uses) if each.operation.value == "called"
    ]
    assert [each.name for each in found.outputs if failing in each.type_uses] == ["x"]


def test_all_columns_are_typed_where_somebody_asks() -> None:
    (found,) = effects(
        "create table t as select user_id, amount + 1 as more, count(*) as n, f(day) as x "
        "from events group by 1, 2, 4",
        dialect="spark",
        tables={("events",): TableVersions.of("events", parse_schema(BEFORE))}.get,
        is_wanted=lambda _: True,
        with_fields=True,
    )
    assert [str(field) for field in found.fields] == [
        "user_id STRING NOT NULL", "more INT32", "n INT64 NOT NULL", "x UNKNOWN",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "type",
    ["INT8", "INT64", "UINT32", "FLOAT64", "DECIMAL(10,2)", "STRING", "STRING(20)", "DATE",
     "TIMESTAMP(us)", "TIMESTAMPTZ(us)", "BOOLEAN", "ARRAY<INT64>", "MAP<STRING, INT64>",
     "STRUCT<a: INT32, b: ARRAY<STRING>>", "JSON", "UUID"],
)  # fmt: skip
def test_types_come_back_from_the_parser_as_they_went(type: str) -> None:
    assert from_sqlglot(to_sqlglot(parse_type(type))) == parse_type(type)


def test_the_tables_of_a_statement_are_freed_without_the_garbage_collector() -> None:
    tables = {
        ("events",): TableVersions.of(
            "events", parse_schema(BEFORE), parse_schema(retyped(user_id="INT64"))
        ),
        ("sessions",): TableVersions.of("sessions", parse_schema(OTHER)),
    }

    def table(parts: tuple[str, ...]) -> TableVersions | None:
        return tables.get(parts)

    sql = (
        "create table t as with c as (select upper(user_id) as u, amount from events) "
        "select coalesce(u, '') as u, s.sid from c left join sessions s on c.u = s.user_id"
    )
    gc.disable()
    try:
        assert effects(
            sql, dialect="spark", tables=table, is_wanted=lambda _: True, with_fields=True
        )
        freed = weakref.ref(table)
        del table
        assert freed() is None
    finally:
        gc.enable()
