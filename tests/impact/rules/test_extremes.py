"""Largest and smallest values are judged by their own words as by reading the whole statement."""

import pytest

from impact.rules.sql_graph import SqlGraph
from lumos.impact.rules import propagation

ORDERS = (
    "id INT32 NOT NULL\nqty INT32 NOT NULL\namount DECIMAL(10,2)\nnote STRING(20)\nday DATE\n"
    "seen TIMESTAMP(ms)\nratio FLOAT32\nflag BOOLEAN"
)
OTHERS = {
    "qty": ("INT64", "STRING", "DECIMAL(12,2)"),
    "amount": ("DECIMAL(12,2)", "FLOAT64", "STRING"),
    "note": ("STRING", "INT64", "DATE"),
    "day": ("TIMESTAMP(us)", "STRING"),
    "seen": ("TIMESTAMP(us)", "DATE"),
    "ratio": ("FLOAT64", "DECIMAL"),
    "flag": ("INT8", "STRING"),
}
DIALECTS = [
    "spark",
    "bigquery",
    *(
        pytest.param(dialect, marks=pytest.mark.slow)
        for dialect in ("postgres", "snowflake", "duckdb", "mysql", "clickhouse", "tsql",
                        "redshift", "trino", "oracle")
    ),
]  # fmt: skip
PLAIN = (
    "select a.id, max(a.{0}) over (partition by a.id) as top from orders as a",
    "select id, MIN( {0} ) over (partition by id, a.id) as {0} from orders as a",
    "select a.id, max(a.{0}) as top, a.{0} from orders a join users b on b.id = a.id group by a.id",
    "select max(a.{0}) over (partition by a.id) as top from orders a where a.{0} <> 'test'",
    "select max(a.{0}) over (partition by b.id) as top, b.id from orders a "
    "join users b on b.{0} = a.{0} where a.{0} > 3",
    "select b.id, min(a.{0}) over (partition by a.id) as top from users b "
    "left join orders a on b.id = a.id",
)
OBSCURE = (
    "select max(a.{0}) as top from orders a",
    "select max({0}) as {0} from (select min({0}) as {0} from orders) as inside",
    "select distinct max(a.{0}) over (partition by a.id) as top from orders a",
    "select max(a.{0}) over (partition by a.{0}) as top from orders a",
    "select max(a.{0}) over (partition by a.id order by a.{0}) as top from orders a",
    "select max(a.{0}) + 1 as top from orders a group by a.id",
    "select max(distinct a.{0}) as top from orders a group by a.id",
    "select a.id from orders a group by a.id having max(a.{0}) > 3",
    "insert into top select max(a.{0}) over (partition by a.id) as top from orders a",
)


def retyped(column: str, type: str) -> str:
    lines = ORDERS.split("\n")
    place = next(place for place, line in enumerate(lines) if line.startswith(f"{column} "))
    ending = " NOT NULL" if "NOT NULL" in lines[place] else ""
    lines[place] = f"{column} {type}{ending}"
    return "\n".join(lines)


def graph_of(query: str, dialect: str = "spark", **scanned: str) -> SqlGraph:
    tables = {"orders": ORDERS, "users": ORDERS, **scanned}
    return SqlGraph(tables, {"top": query, "behind": "select * from top"}, dialect=dialect)


@pytest.mark.parametrize("is_scanned", [True, False], ids=["scanned", "unscanned"])
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("column", OTHERS)
def test_own_words_say_what_reasoning_says(
    column: str, dialect: str, is_scanned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = next(line for line in ORDERS.split("\n") if line.startswith(f"{column} "))
    scanned = {"top": f"id INT32\n{kept}\ntop {kept.split()[1]}"} if is_scanned else {}
    for query in (*PLAIN, *OBSCURE):
        graph = graph_of(query.format(column), dialect, **scanned)
        for type in OTHERS[column]:
            quick = graph.change("orders", retyped(column, type))
            with monkeypatch.context() as patched:
                patched.setattr(propagation, "simple_statement_effect", lambda *_: None)
                thorough = graph.change("orders", retyped(column, type))
            assert quick == thorough, query.format(column)


@pytest.mark.parametrize("query", PLAIN)
def test_plain_ones_need_no_parser(query: str) -> None:
    graph = graph_of(query.format("amount"), top="id INT32\namount DECIMAL(10,2)")
    graph.change("orders", retyped("amount", "FLOAT64"))
    assert "top" not in graph.reasoned


@pytest.mark.parametrize("query", OBSCURE[1:])
def test_others_are_reasoned_through(query: str) -> None:
    graph = graph_of(query.format("amount"), top="id INT32\namount DECIMAL(10,2)")
    graph.change("orders", retyped("amount", "FLOAT64"))
    assert "top" in graph.reasoned
