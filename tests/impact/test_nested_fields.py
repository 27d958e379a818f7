"""Fields of structs in arrays and maps: Spark and DuckDB judge what a dropped field breaks."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pytest
from pyspark.errors import PySparkException

from impact.rules.sql_graph import SqlGraph, of, verdict_text
from lumos.model.change import Verdict

MEMBERS = {
    "sku": "STRING",
    "qty": "INT32",
    "price": "DECIMAL(9,2)",
    "cost": "FLOAT64",
    "parts": "ARRAY<STRUCT<code: STRING, n: INT32>>",
}
VALUES = {
    "spark": {
        "sku": "'a'", "qty": "2", "price": "cast(1.5 as decimal(9,2))", "cost": "double(0.5)",
        "parts": "array(named_struct({}))", "code": "'k'", "n": "3",
    },
    "duckdb": {
        "sku": "'a'", "qty": "cast(2 as int)", "price": "cast(1.5 as decimal(9,2))",
        "cost": "cast(0.5 as double)", "parts": "[struct_pack({})]", "code": "'k'",
        "n": "cast(3 as int)",
    },
}  # fmt: skip


class Shape(NamedTuple):
    """Models of `orders`, by name; a later one may read an earlier one."""

    dialect: str
    models: Mapping[str, str]
    # Whether the verdict has to be that of the engine, not undetermined.
    is_exact: bool = True

    def __str__(self) -> str:
        return f"{self.dialect}: {next(reversed(self.models.values()))}"


def _one(dialect: str, query: str, *, is_exact: bool = True) -> Shape:
    return Shape(dialect, {"m": query}, is_exact)


VIEW = "from orders o lateral view"
SHAPES = [
    _one("spark", f"select o.id, i.qty * i.price as v {VIEW} explode(o.items) t as i"),
    _one("spark", f"select id, i.sku {VIEW} explode(items) t as i where i.qty > 1"),
    _one("spark", f"select i.sku {VIEW} explode_outer(o.items) t as i order by i.cost"),
    _one("spark", f"select p, i.sku {VIEW} outer posexplode(o.items) t as p, i"),
    _one("spark", "select i.sku from orders o, lateral explode(o.items) as t(i)"),
    _one("spark", "select sum(i.qty) as n from (select explode(items) as i from orders)"),
    _one("spark", "with e as (select id, explode(items) as i from orders) select i.sku from e"),
    _one("spark", f"select p.code {VIEW} explode(o.items) t as i lateral view explode(i.parts) u as p"),
    _one("spark", f"select count(*) as c {VIEW} explode(o.items) t as i"),
    _one("spark", "select items[0].sku, element_at(items, 1).qty * 2 as q from orders"),
    _one("spark", "select items.sku as skus from orders"),
    _one("spark", "select size(items) as n from orders"),
    _one("spark", f"select k, v.qty {VIEW} explode(map('a', o.items[0])) t as k, v", is_exact=False),
    _one("spark", f"select i {VIEW} explode(o.items) t as i", is_exact=False),
    _one("spark", f"select i.* {VIEW} explode(o.items) t as i", is_exact=False),
    _one("spark", f"select t.* {VIEW} explode(o.items) t as i", is_exact=False),
    _one("spark", f"select to_json(i) as j {VIEW} explode(o.items) t as i", is_exact=False),
    _one("spark", f"select struct(i.*) as s {VIEW} explode(o.items) t as i", is_exact=False),
    _one("spark", f"select a, b {VIEW} inline(o.items) t as a, b, c, d, e", is_exact=False),
    _one("spark", "select inline(items) from orders", is_exact=False),
    _one("spark", "select explode(items) from orders", is_exact=False),
    _one("spark", f"select col.sku {VIEW} explode(o.items) t", is_exact=False),
    _one("spark", "select transform(items, i -> i.sku) as s from orders", is_exact=False),
    _one("spark", f"select distinct i {VIEW} explode(o.items) t as i", is_exact=False),
    Shape("spark", {
        "e": f"select o.id, i as item {VIEW} explode(o.items) t as i",
        "m": "select item.sku, item.qty * 2 as twice from e",
    }),
    Shape("spark", {
        "e": f"select i.* {VIEW} explode(o.items) t as i",
        "m": "select sku from e",
    }, is_exact=False),
    Shape("spark", {
        "e": "select id, items from orders",
        "m": "select i.sku from e lateral view explode(e.items) t as i",
    }),
    _one("duckdb", "select o.id, i.qty * i.price as v from orders o cross join unnest(o.items) as t(i)"),
    _one("duckdb", "select i.sku from orders o, unnest(o.items) as t(i) where i.qty > 1"),
    _one("duckdb", "select t.i.sku from orders o, unnest(o.items) as t(i)"),
    _one("duckdb", "select i.sku from (select unnest(items) as i from orders)"),
    _one("duckdb", "select p.code from orders o, unnest(o.items) as t(i), unnest(i.parts) as u(p)"),
    _one("duckdb", "select items[1].sku as s from orders"),
    _one("duckdb", "select t.unnest.sku from orders o, unnest(o.items) as t"),
    _one("duckdb", "select unnest.sku from orders o, unnest(o.items)"),
    _one("duckdb", "select count(*) as c from orders o, unnest(o.items) as t(i)"),
    _one("duckdb", "select i from orders o, unnest(o.items) as t(i)", is_exact=False),
    _one("duckdb", "select i.* from orders o, unnest(o.items) as t(i)", is_exact=False),
    _one("duckdb", "select t.* from orders o, unnest(o.items) as t(i)", is_exact=False),
    _one("duckdb", "select unnest(items, recursive := true) from orders", is_exact=False),
    Shape("duckdb", {
        "e": "select o.id, i as item from orders o, unnest(o.items) as t(i)",
        "m": "select item.sku from e",
    }),
]  # fmt: skip
DROPS = ("sku", "qty", "price", "cost", "parts", "parts.code", "parts.n")

Results = Callable[[Shape, str | None], dict[str, object]]


def _type(dropped: str | None = None, **retyped: str) -> str:
    inner, name = MEMBERS["parts"], (dropped or "").partition(".")[2]
    if name:
        inner = {"code": "ARRAY<STRUCT<n: INT32>>", "n": "ARRAY<STRUCT<code: STRING>>"}[name]
    members = {**MEMBERS, "parts": inner, **retyped}
    text = ", ".join(f"{name}: {type}" for name, type in members.items() if name != dropped)
    return f"id INT64\nitems ARRAY<STRUCT<{text}>>"


def _table(dialect: str, dropped: str | None) -> str:
    """The query of one row without a field."""
    values, inner = VALUES[dialect], (dropped or "").partition(".")[2]

    def fields(names: Mapping[str, str] | tuple[str, ...], without: str | None) -> Iterator[str]:
        for name in names:
            parts = ", ".join(fields(("code", "n"), inner)) if name == "parts" else ""
            value = values[name].format(parts)
            if name != without:
                yield f"'{name}', {value}" if dialect == "spark" else f"{name} := {value}"

    content = ", ".join(fields(MEMBERS, dropped))
    if dialect == "spark":
        return f"select bigint(1) as id, array(named_struct({content})) as items"
    return f"select cast(1 as bigint) as id, [struct_pack({content})] as items"


@pytest.fixture
def results(request: pytest.FixtureRequest) -> Results:
    """The result of each model of a shape, or only its schema; None if the engine refuses it."""
    spark = request.getfixturevalue("spark")
    connection = pytest.importorskip("duckdb").connect()

    def run(dialect: str, query: str) -> object:
        if dialect == "spark":
            # Analysed, not executed, to save time: values are compared on DuckDB only.
            return spark.sql(query).schema
        result = connection.execute(query)
        return result.description, result.fetchall()

    def results(shape: Shape, dropped: str | None) -> dict[str, object]:
        found: dict[str, object] = {}
        queries = {"orders": _table(shape.dialect, dropped), **shape.models}
        kind = "temporary view" if shape.dialect == "spark" else "view"
        for name, query in queries.items():
            try:
                found[name] = run(shape.dialect, query)
                if name != "m":
                    run(shape.dialect, f"create or replace {kind} {name} as {query}")
            except (PySparkException, connection_error()):
                found[name] = None
        return found

    def connection_error() -> type[Exception]:
        error: type[Exception] = pytest.importorskip("duckdb").Error
        return error

    return results


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_dropped_fields_break_what_the_engine_says(shape: Shape, results: Results) -> None:
    graph = SqlGraph({"orders": _type()}, shape.models, dialect=shape.dialect)
    before = results(shape, None)
    assert None not in before.values()
    for dropped in DROPS:
        impact = graph.change("orders", _type(dropped))
        after = results(shape, dropped)
        for model in shape.models:
            found = of(impact, model)
            where = f"{dropped} of {model}: {verdict_text(found)}"
            if after[model] != before[model]:
                assert found.verdict is not Verdict.COMPATIBLE, where
            else:
                assert found.verdict is not Verdict.BREAKING, where
            if shape.is_exact and model == "m":
                is_broken = after[model] != before[model]
                expected = Verdict.BREAKING if is_broken else Verdict.COMPATIBLE
                assert found.verdict is expected, where


@pytest.mark.parametrize("shape", [each for each in SHAPES if each.is_exact], ids=str)
def test_a_wider_field_keeps_models_working(shape: Shape) -> None:
    graph = SqlGraph({"orders": _type()}, shape.models, dialect=shape.dialect)
    impact = graph.change("orders", _type(qty="INT64"))
    assert of(impact, "m").verdict is Verdict.COMPATIBLE, verdict_text(of(impact, "m"))


def _explode(dialect: str | None = "spark") -> SqlGraph:
    query = """
select
    o.id,
    i.sku,
    i.qty * i.price as total
from orders o
lateral view explode(o.items) t as i
where i.cost > 1"""
    return SqlGraph({"orders": _type()}, {"m": query}, dialect=dialect or "")


@pytest.mark.parametrize(
    ("dropped", "expected"),
    [
        ("sku", "breaking\nneeds items[].sku in PROJECTION, models/m.sql:4"),
        ("qty", "breaking\nneeds items[].qty in PROJECTION, models/m.sql:5"),
        ("cost", "breaking\nneeds items[].cost in FILTER, models/m.sql:8"),
        ("parts", "compatible\ndoes not use what changes"),
    ],
)
@pytest.mark.parametrize("dialect", ["spark", None])
def test_each_field_has_its_own_answer_with_the_line_that_reads_it(
    dropped: str, expected: str, dialect: str | None
) -> None:
    impact = _explode(dialect).change("orders", _type(dropped))
    assert verdict_text(of(impact, "m")) == expected


def test_a_reason_names_the_field_and_not_its_neighbours() -> None:
    members = ", ".join(f"{name}: {MEMBERS[name]}" for name in ("sku", "price", "parts"))
    impact = _explode().change("orders", f"id INT64\nitems ARRAY<STRUCT<{members}>>")
    fields = {reason.fields for reason in of(impact, "m").reasons}
    assert fields == {("items[].qty",), ("items[].cost",)}


def test_the_new_type_of_a_field_is_followed_through_explode() -> None:
    impact = _explode().change("orders", _type(qty="INT64"))
    found = of(impact, "m")
    (column,) = found.columns
    assert column.before is not None
    assert column.after is not None
    assert (column.name, column.before.type.text, column.after.type.text) == (
        "total", "DECIMAL(20,2)", "DECIMAL(30,2)"
    )  # fmt: skip
    text = verdict_text(of(_explode().change("orders", _type(qty="STRING")), "m"))
    assert "calculates with items[].qty as INT32, models/m.sql:5" in text


def test_fields_of_unnested_rows_depend_on_their_order() -> None:
    query = "select t.a from orders cross join unnest(items) as t(a, b, c, d, e)"
    graph = SqlGraph({"orders": _type()}, {"m": query}, dialect="trino")
    for dropped in DROPS:
        assert of(graph.change("orders", _type(dropped)), "m").verdict is Verdict.UNDETERMINED


@pytest.mark.parametrize(
    ("dialect", "query"),
    [
        ("bigquery", "select i.sku from orders o, unnest(o.items) as i"),
        ("bigquery", "select i.sku from orders o, o.items i"),
        ("bigquery", "select sku from orders o, unnest(o.items)"),
        ("redshift", "select i.sku from orders o, o.items i"),
    ],
)
def test_other_dialects_follow_elements_too(dialect: str, query: str) -> None:
    graph = SqlGraph({"orders": _type()}, {"m": query}, dialect=dialect)
    assert of(graph.change("orders", _type("sku")), "m").verdict is Verdict.BREAKING
    assert of(graph.change("orders", _type("cost")), "m").verdict is Verdict.COMPATIBLE
    removed = of(graph.change("orders", "id INT64"), "m")
    assert removed.verdict is Verdict.BREAKING


def test_flattened_values_are_undetermined() -> None:
    query = "select f.value:sku::string as sku from orders o, lateral flatten(input => o.items) f"
    graph = SqlGraph({"orders": _type()}, {"m": query}, dialect="snowflake")
    for dropped in DROPS:
        assert of(graph.change("orders", _type(dropped)), "m").verdict is Verdict.UNDETERMINED


def test_edges_alone_distinguish_fields() -> None:
    """Without SQL, as from OpenLineage."""
    query = "select i.sku, i.qty * 2 as n from orders o lateral view explode(o.items) t as i"
    graph = SqlGraph({"orders": _type()}, {"m": query}, without_sql=["m"])
    assert of(graph.change("orders", _type("sku")), "m").verdict is Verdict.BREAKING
    assert of(graph.change("orders", _type("qty")), "m").verdict is Verdict.BREAKING
    assert of(graph.change("orders", _type("cost")), "m").verdict is Verdict.COMPATIBLE
