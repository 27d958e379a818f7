"""Edges name the field of a struct and the line that reads it."""

import pytest

from lumos.lineage.reported_lineage import TableName
from lumos.lineage.sql import analyse, report_script
from lumos.model.lineage import Derivation


def edges(sql: str, dialect: str | None = "spark") -> set[str]:
    """Edges into `m`, as `items[].sku -> sku`."""
    script = analyse(f"create table m as {sql}", dialect=dialect)
    return {f"{each.from_column} -> {each.to_column}" for each in script.edges}


VIEW = "from o lateral view"


@pytest.mark.parametrize(
    ("dialect", "sql", "expected"),
    [
        ("spark", "select c.address.geo.lat from o c", {"address.geo.lat -> lat"}),
        ("spark", f"select i.sku {VIEW} explode(o.items) t as i", {"items[].sku -> sku"}),
        (None, f"select i.sku {VIEW} explode(o.items) t as i", {"items[].sku -> sku"}),
        ("spark", f"select t.i.sku {VIEW} explode_outer(items) t as i", {"items[].sku -> sku"}),
        ("spark", f"select p, i.sku {VIEW} posexplode(o.items) t as p, i", {"items[].sku -> sku"}),
        ("spark", f"select k, v.x {VIEW} explode(o.m) t as k, v", {"m{key} -> k", "m{}.x -> x"}),
        ("spark", f"select i {VIEW} explode(o.items) t as i", {"items[] -> i"}),
        ("spark", f"select i.* {VIEW} explode(o.items) t as i", {"items[] -> *"}),
        ("spark", f"select a {VIEW} inline(o.items) t as a, b", {"items[] -> a"}),
        ("spark", "select e.sku from (select explode(items) as e from o)", {"items[].sku -> sku"}),
        ("spark", "select items.sku as skus from o", {"items.sku -> skus"}),
        (
            "spark",
            f"select d.code {VIEW} explode(o.items) t as i lateral view explode(i.parts) u as d",
            {"items[].parts[].code -> code"},
        ),
        ("spark", "select items[0].sku from o", {"items[].sku -> sku"}),
        ("spark", "select o.items[0].x.y from o", {"items[].x.y -> y"}),
        ("spark", "select element_at(items, 1).sku as s from o", {"items[].sku -> s"}),
        ("spark", "select notes['a'].x as x from o", {"notes{}.x -> x"}),
        ("spark", "select items[n].sku as s from o", {"items -> s", "n -> s"}),
        ("duckdb", "select i.sku from o, unnest(o.items) as t(i)", {"items[].sku -> sku"}),
        ("duckdb", "select i.sku from (select unnest(items) as i from o)", {"items[].sku -> sku"}),
        ("bigquery", "select i.sku from o, unnest(o.items) as i", {"items[].sku -> sku"}),
        ("bigquery", "select i.sku from o, o.items i", {"items[].sku -> sku"}),
        ("bigquery", "select e.v.s as s from o, unnest(params) as e", {"params[].v.s -> s"}),
        # Rows become columns, whose names say nothing about the fields.
        ("trino", "select t.a from o cross join unnest(o.items) as t(a, b)", {"items[] -> a"}),
        ("trino", "select t.a from o cross join unnest(o.tags) as t(a)", {"tags[] -> a"}),
        # A computed value has no fields of its own in the table.
        ("spark", f"select i.a {VIEW} explode(from_json(o.doc, 'x')) t as i", {"doc -> a"}),
        ("snowflake", "select f.value:a as a from o, lateral flatten(o.doc) f", {"doc -> a"}),
        # Names that need quotes.
        ("spark", "select address.`zip code` as z from o", {"address.`zip code` -> z"}),
        ("spark", "select `a.b`.c from o", {"`a.b` -> c"}),
    ],
)
def test_an_edge_starts_at_the_field(dialect: str | None, sql: str, expected: set[str]) -> None:
    assert edges(sql, dialect) == expected


def test_clauses_name_the_field_and_its_line() -> None:
    sql = """create table m as
select
    i.sku,
    i.qty * i.price as total
from o
lateral view explode(o.items) t as i
where i.cost > 1"""
    script = analyse(sql, dialect="spark")
    found = {(each.from_column, each.to_column, each.expression, each.line)
             for each in script.edges}  # fmt: skip
    assert found == {
        ("items[].sku", "sku", "i.sku", 3),
        ("items[].qty", "total", "i.qty * i.price", 4),
        ("items[].price", "total", "i.qty * i.price", 4),
        ("items[].cost", None, "where i.cost > 1", 7),
    }
    assert [each.columns for each in script.reads] == [("items",)]


def test_a_field_that_is_passed_on_is_the_same_value() -> None:
    script = analyse(
        "create table m as select address.city, upper(address.zip) as z from o", dialect="spark"
    )
    derivations = {each.from_column: each.derivation for each in script.edges}
    assert derivations == {
        "address.city": Derivation.IDENTITY,
        "address.zip": Derivation.TRANSFORMATION,
    }


def test_a_table_of_fields_is_not_a_copy() -> None:
    script = analyse("create table m as select address.city from o", dialect="spark")
    (edge,) = report_script(script, reporter="x").edges
    assert isinstance(edge.upstream, TableName)
    assert edge.type == "TRANSFORMED"


def test_a_recursive_query_into_a_struct_ends() -> None:
    sql = (
        "with recursive t as (select node from tree union all select t.node.child from t) "
        "select node from t"
    )
    assert "node -> node" in edges(sql)
