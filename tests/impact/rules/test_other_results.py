"""Queries that still run, and give something else."""

import pytest

from impact.rules.sql_graph import SqlGraph, of, verdict_text

ORDERS = "id INT64 NOT NULL\nuser_id STRING NOT NULL\nqty INT32\namount DECIMAL(12,2)\nd DATE"
USERS = "uid STRING NOT NULL\nname STRING"


def judged(query: str, after: str, dialect: str = "spark") -> str:
    graph = SqlGraph({"orders": ORDERS, "users": USERS}, {"m": query}, dialect=dialect)
    return verdict_text(of(graph.change("orders", after), "m"))


def retyped(column: str, type: str) -> str:
    lines = ORDERS.splitlines()
    return "\n".join(
        f"{column} {type}" if line.startswith(f"{column} ") else line for line in lines
    )


@pytest.mark.parametrize(
    ("query", "dialect"),
    [
        ("with t(a, b, c, e, f) as (select * from orders) select a, b from t", "spark"),
        ("select a from (select * from orders) as t(a, b, c, e, f)", "spark"),
        ("select a from orders as t(a, b, c, e, f)", "snowflake"),
        ("with t(a, b, c, e, f) as (select * from orders) select a, b from t", "tsql"),
    ],
)
def test_columns_that_get_names_by_their_places_do_not_take_one_more(
    query: str, dialect: str
) -> None:
    found = judged(query, f"{ORDERS}\nmore STRING", dialect)
    assert found == (
        "breaking\nrelies on column positions in PROJECTION, and more is added, models/m.sql:1"
    )


def test_columns_that_get_names_by_their_places_do_not_take_one_less() -> None:
    query = "select a from orders as t(a, b, c, e, f)"
    found = judged(query, ORDERS.replace("\nd DATE", ""))
    assert found.startswith("breaking\nrelies on column positions in PROJECTION, and d is removed")


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (f"{ORDERS}\nmore STRING", "compatible"),
        (f"more STRING\n{ORDERS}", "breaking"),
        (ORDERS.replace("\nd DATE", ""), "breaking"),
    ],
)
def test_where_some_names_suffice_only_what_comes_behind_them_is_ignored(
    after: str, verdict: str
) -> None:
    query = "with t(a, b, c, e, f) as (select * from orders) select a from t"
    assert judged(query, after, "postgres").startswith(verdict)


def test_a_natural_join_goes_by_a_new_name_that_both_sides_have() -> None:
    query = "select id from orders natural join (select uid as user_id, name from users)"
    assert judged(query, f"{ORDERS}\nname STRING") == (
        "breaking\nnow also joins by name, models/m.sql:1"
    )
    assert judged(query, f"{ORDERS}\nmore STRING").startswith("compatible")


@pytest.mark.parametrize(
    ("query", "column", "type", "verdict"),
    [
        ("select id from orders o join users u on cast(o.qty as string) = u.uid", "qty", "FLOAT64",
         "breaking"),
        ("select cast(d as string) as x from orders", "d", "TIMESTAMP(us)", "breaking"),
        ("select cast(amount as string) as x from orders", "amount", "DECIMAL(14,4)", "breaking"),
        ("select cast(amount as string) as x from orders", "amount", "DECIMAL(14,2)", "compatible"),
        ("select concat(qty, '-') as x from orders", "qty", "DECIMAL(12,2)", "breaking"),
        ("select concat(qty, '-') as x from orders", "qty", "INT64", "compatible"),
        ("select cast(user_id as string) as x from orders", "user_id", "INT64 NOT NULL",
         "compatible"),
        ("select cast(qty as string) as x from orders", "qty", "STRING", "compatible"),
    ],
)  # fmt: skip
def test_a_text_that_is_written_otherwise_is_another_result(
    query: str, column: str, type: str, verdict: str
) -> None:
    assert judged(query, retyped(column, type)).startswith(verdict)


@pytest.mark.parametrize(
    ("query", "type", "dialect", "verdict"),
    [
        ("select id from orders where qty / 2 = 1", "DECIMAL(12,2)", "postgres", "breaking"),
        ("select id from orders where qty / 2 = 1", "FLOAT64", "postgres", "breaking"),
        ("select id from orders where qty / 2 = 1", "INT64", "postgres", "compatible"),
        ("select id from orders where qty / 2.0 = 1", "DECIMAL(12,2)", "postgres", "compatible"),
        ("select id from orders where qty / 2 = 1", "FLOAT64", "spark", "compatible"),
        ("select d from orders group by d having sum(qty) > 10", "FLOAT64", "spark", "compatible"),
    ],
)
def test_whole_numbers_that_become_others_divide_otherwise(
    query: str, type: str, dialect: str, verdict: str
) -> None:
    assert judged(query, retyped("qty", type), dialect).startswith(verdict)


@pytest.mark.parametrize("operator", ["<> all", "> all"])
def test_one_null_among_all_and_no_row_comes(operator: str) -> None:
    query = f"select uid from users where uid {operator} (select user_id from orders)"
    found = judged(query, ORDERS.replace("user_id STRING NOT NULL", "user_id STRING"), "postgres")
    assert found == "breaking\nexpects no nulls of user_id in NOT IN, models/m.sql:1"
