"""Operators and functions that do not take every number, condition or value."""

import pytest

from impact.rules.sql_graph import SqlGraph, of

ORDERS = """
id INT64 NOT NULL
user_id STRING NOT NULL
qty INT32
price FLOAT64
d DATE
flag BOOLEAN
country STRING
addr STRUCT<city: STRING, zip: INT32>
items ARRAY<STRUCT<sku: STRING, price: FLOAT64>>
"""


def verdict(query: str, column: str, type: str, dialect: str = "spark") -> str:
    """The verdict on a query when a column of `orders` gets another type, or goes."""
    kept = [line for line in ORDERS.strip().splitlines() if not line.startswith(f"{column} ")]
    after = "\n".join(kept if type == "GONE" else [*kept, f"{column} {type}"])
    graph = SqlGraph({"orders": ORDERS}, {"m": query}, dialect=dialect)
    return of(graph.change("orders", after), "m").verdict.value


# All of them were asked of Spark 4 or PostgreSQL 15, which refuse them.
@pytest.mark.parametrize(
    ("query", "column", "type", "dialect"),
    [
        ("select qty div 2 as x from orders", "qty", "FLOAT64", "spark"),
        ("select 7 div qty as x from orders", "qty", "FLOAT64", "spark"),
        ("select qty as x, x div 2 as y from orders", "qty", "FLOAT64", "spark"),
        ("with a as (select qty as x from orders) select x div 2 as y from a", "qty", "FLOAT64",
         "spark"),
        ("select array(1, 2)[qty] as x from orders", "qty", "FLOAT64", "spark"),
        ("select array(1, 2)[qty] as x from orders", "qty", "DECIMAL(12,0)", "spark"),
        ("select items[qty].sku as x from orders", "qty", "DECIMAL(12,2)", "spark"),
        ("select element_at(array(1, 2), qty) as x from orders", "qty", "INT64", "spark"),
        ("select element_at(array(1, 2), qty) as x from orders", "qty", "FLOAT64", "spark"),
        ("select date_add(d, qty) as x from orders", "qty", "INT64", "spark"),
        ("select bit_or(qty) as x from orders", "qty", "DECIMAL(12,0)", "spark"),
        ("select qty & 1 as x from orders", "qty", "DECIMAL(12,0)", "spark"),
        ("select unix_date(d) as x from orders", "d", "TIMESTAMP(us)", "spark"),
        ("select to_json(addr) as x from orders", "addr", "STRING", "spark"),
        ("select to_char(qty, '999') as x from orders", "qty", "BOOLEAN", "spark"),
        ("select exists(items, i -> i.sku = 'a') as x from orders", "items", "STRING", "spark"),
        ("select addr = addr as x from orders", "addr", "MAP<STRING, STRING>", "spark"),
        ("select count(*) filter (where flag) as x from orders", "flag", "INT32", "spark"),
        ("select count(*) filter (where flag) as x from orders", "flag", "STRING", "postgres"),
        ("select sum(id) over (order by d range between 7 preceding and current row) as x "
         "from orders", "d", "TIMESTAMP(us)", "spark"),
        ("select id from orders where qty % 2 = 0", "qty", "FLOAT64", "postgres"),
        ("select mod(qty, 2) as x from orders", "qty", "FLOAT64", "postgres"),
        ("select round(qty, 1) as x from orders", "qty", "FLOAT64", "postgres"),
        ("select qty::bool as x from orders", "qty", "INT64", "postgres"),
        ("select lag(country, qty) over (order by id) as x from orders", "qty", "INT64",
         "postgres"),
        ("select nth_value(country, qty) over (order by id) as x from orders", "qty", "INT64",
         "postgres"),
        ("select ntile(qty) over (order by id) as x from orders", "qty", "INT64", "postgres"),
    ],
)  # fmt: skip
def test_what_an_engine_refuses_breaks(query: str, column: str, type: str, dialect: str) -> None:
    assert verdict(query, column, type, dialect) == "breaking"


@pytest.mark.parametrize(
    ("query", "column", "type", "dialect"),
    [
        ("select qty div 2 as x from orders", "qty", "INT64", "spark"),
        ("select qty div 2 as x from orders", "qty", "DECIMAL(12,2)", "spark"),
        ("select array(1, 2)[qty] as x from orders", "qty", "INT64", "spark"),
        ("select qty & 1 = 1 as x from orders", "qty", "INT64", "spark"),
        ("select substring(country, 1, qty) as x from orders", "qty", "INT64", "spark"),
        ("select repeat('a', qty) as x from orders", "qty", "FLOAT64", "spark"),
        ("select qty % 2 = 0 as x from orders", "qty", "FLOAT64", "spark"),
        ("select qty % 2 = 0 as x from orders", "qty", "FLOAT64", "duckdb"),
        ("select round(qty) as x from orders", "qty", "FLOAT64", "postgres"),
        ("select cast(qty as boolean) as x from orders", "qty", "INT64", "spark"),
        ("select sum(id) over (order by d range between interval 7 days preceding and current row) "
         "as x from orders", "d", "TIMESTAMP(us)", "spark"),
    ],
)  # fmt: skip
def test_what_an_engine_takes_does_not_break(
    query: str, column: str, type: str, dialect: str
) -> None:
    assert verdict(query, column, type, dialect) == "compatible"


@pytest.mark.parametrize(
    "query",
    [
        "select array_insert(array(1, 2), qty, 5) as x from orders",
        "select sequence(1, qty) as x from orders",
        "select bit_get(qty, 1) as x from orders",
        "select my_function(qty) as x from orders",
    ],
)
def test_of_functions_that_nobody_knows_nothing_is_called_safe(query: str) -> None:
    assert verdict(query, "qty", "DECIMAL(12,0)") == "undetermined"


@pytest.mark.parametrize(
    "query",
    [
        "select hash(*) as x from orders",
        "select to_json(struct(*)) as x from orders",
        "select coalesce(*) as x from (select country, user_id from orders)",
    ],
)
def test_all_columns_as_arguments_are_not_called_safe(query: str) -> None:
    assert verdict(query, "country", "MAP<STRING, STRING>") == "undetermined"
    assert verdict("select count(*) as x from orders", "country", "GONE") == "compatible"
