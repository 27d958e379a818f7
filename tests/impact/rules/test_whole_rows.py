"""Rows and structures that are taken as a whole: all that is in them counts, though by no name."""

import pytest

from impact.rules.sql_graph import SqlGraph, of, verdict_text

ORDERS = "id INT64\nnote STRING\nqty INT32\naddress STRUCT<zip: DECIMAL(7,2), city: INT32>"
CHANGES = {
    "a column goes": ORDERS.replace("note STRING\n", ""),
    "a column comes": f"{ORDERS}\nmore STRING",
    "a column gets another type": ORDERS.replace("qty INT32", "qty INT64"),
    "columns change places": "\n".join(reversed(ORDERS.splitlines())),
}
GROWN = ORDERS.replace("city: INT32", "city: INT32, street: STRING")
WIDER = ORDERS.replace("DECIMAL(7,2)", "DECIMAL(12,2)")
MOVED = ORDERS.replace("zip: DECIMAL(7,2), city: INT32", "city: INT32, zip: DECIMAL(7,2)")


def judged(query: str, after: str, dialect: str) -> str:
    schemas = {"orders": ORDERS, "others": ORDERS}
    graph = SqlGraph(schemas, {"m": query, "n": "select * from m"}, dialect=dialect)
    return verdict_text(of(graph.change("orders", after), "m"))


@pytest.mark.parametrize("after", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize(
    ("query", "dialect"),
    [
        ("select orders as r from orders", "duckdb"),
        ("select o as r from orders as o", "postgres"),
        ("select to_json(o) as r from orders as o", "postgres"),
        ("with w as (select o as r from orders o) select to_json(r) as q from w", "duckdb"),
        ("select min(columns(*)) from orders", "duckdb"),
        ("select columns(*) + 1 from orders", "duckdb"),
        ("select struct_pack(*columns(*)) as r from orders", "duckdb"),
        ("select id from others where id > (select max(hash(o)) from orders o)", "duckdb"),
        ("select * like '%t%' from orders", "duckdb"),
        ("select * glob '*t*' from orders", "duckdb"),
        ("select struct(*) as r from orders", "spark"),
        ("select to_json(struct(o.*)) as r from orders o", "spark"),
        ("select named_struct('k', struct(*)) as r from orders", "spark"),
    ],
)
def test_a_row_that_is_one_value_changes_with_each_of_its_columns(
    query: str, after: str, dialect: str
) -> None:
    assert judged(query, after, dialect).startswith("undetermined")


def test_what_reads_a_row_that_was_kept_as_one_value_is_undetermined_as_well() -> None:
    graph = SqlGraph({"orders": ORDERS}, {"m": "select o as r from orders o", "n": "select r from m"},
                  dialect="duckdb")  # fmt: skip
    for after in CHANGES.values():
        assert of(graph.change("orders", after), "n").verdict.value == "undetermined"


@pytest.mark.parametrize(
    ("query", "dialect"),
    [
        ("select count(*) as n from orders", "spark"),
        ("select count(o.*) as n from orders o", "postgres"),
        ("select b as r from orders a join others b on a.id = b.id", "duckdb"),
        ("select struct(b.*) as r from orders a join others b on a.id = b.id", "spark"),
    ],
)
def test_what_takes_no_row_of_the_table_is_compatible(query: str, dialect: str) -> None:
    for after in CHANGES.values():
        assert judged(query, after, dialect).startswith("compatible")


def test_a_structure_whose_fields_are_all_taken_is_needed() -> None:
    query = "select struct(address.*) as r from orders"
    without = ORDERS.replace("\naddress STRUCT<zip: DECIMAL(7,2), city: INT32>", "")
    assert judged(query, without, "spark").startswith("breaking\nneeds *")
    for after in (GROWN, WIDER, MOVED):
        assert judged(query, after, "spark").startswith("undetermined")
    assert judged(query, CHANGES["a column goes"], "spark").startswith("compatible")


# All of them were asked of Spark 4, which refuses at least one of the three.
@pytest.mark.parametrize("after", [GROWN, WIDER, MOVED])
@pytest.mark.parametrize(
    "query",
    [
        "select a.address = b.address as r from orders a join others b on a.id = b.id",
        "select 1 as r from orders a join others b on a.address = b.address",
        "select 1 as r from orders a join others b using (address)",
        "select a.address in (select address from others) as r from orders a",
        "select id from others where address not in (select address from orders)",
        "select nullif(a.address, b.address) as r from orders a join others b on a.id = b.id",
        "select coalesce(a.address, b.address) as r from orders a join others b on a.id = b.id",
        "select array(a.address, b.address) as r from orders a join others b on a.id = b.id",
        "select case when a.id > 1 then a.address else b.address end as r "
        "from orders a join others b on a.id = b.id",
        "select address from orders except select address from others",
        "select address from orders intersect select address from others",
        "select address from orders union all select named_struct('zip', 1.00, 'city', 2)",
        "select * from others except select * from orders",
    ],
)
def test_a_structure_beside_one_that_is_built_otherwise_is_not_compatible(
    query: str, after: str
) -> None:
    assert not judged(query, after, "spark").startswith("compatible")


def test_structures_that_change_alike_still_fit() -> None:
    query = "select a.address = b.address as r from orders a join orders b on a.id = b.id"
    assert judged(query, GROWN, "spark").startswith("compatible")
