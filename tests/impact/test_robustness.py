"""Graphs that nobody would draw: nothing raises, and every dataset in reach gets a verdict."""

import random
from itertools import pairwise

import pytest

from impact.rules.sql_graph import SqlGraph, of
from lumos.impact.rules import propagation
from lumos.impact.rules.propagation import impact_of
from lumos.impact.rules.results import Impact
from lumos.model.change import Verdict
from lumos.model.schema import parse_schema
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify

SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 60))]
COLUMNS = ("key", "day", "amount", "label", "flag")
SCHEMA = "key INT32 NOT NULL\nday DATE\namount DECIMAL(10,2)\nlabel STRING\nflag BOOLEAN"
AFTERWARDS = (
    SCHEMA.replace("key INT32", "key INT64"),
    SCHEMA.replace("key INT32", "key STRING"),
    SCHEMA.replace("key INT32 NOT NULL", "key INT32"),
    SCHEMA.replace("DECIMAL(10,2)", "DECIMAL(14,4)"),
    SCHEMA.replace("label STRING", "label INT64"),
    SCHEMA.replace("day DATE", "day TIMESTAMP(us)"),
    SCHEMA.replace("\nlabel STRING", ""),
    SCHEMA.replace("label STRING", "tag STRING"),
    f"{SCHEMA}\nextra ARRAY<STRUCT<a: INT32>>",
    "amount DECIMAL(10,2)\nkey INT32 NOT NULL\nday DATE\nlabel STRING\nflag BOOLEAN",
)
EXPRESSIONS = (
    "{0}.{1}", "{0}.{1}", "{0}.{1}", "{0}.{1}", "max({0}.{1}) over (partition by {0}.key)",
    "coalesce({0}.{1}, null)", "cast({0}.{1} as string)", "case when {0}.flag then {0}.{1} end",
    "min({0}.{1})", "concat({0}.{1}, '!')", "nobody_knows({0}.{1})", "{0}.{1} + 1", "-{0}.{1}",
    "count({0}.{1})",
)  # fmt: skip
CONDITIONS = (
    "{0}.{1} is not null", "{0}.{1} = 'x'", "{0}.{1} > 3", "{0}.{1} in (select {1} from raw)",
    "{0}.{1} not in (select {1} from raw)", "{0}.{1} between 1 and 2", "not {0}.flag",
    "{0}.{1} like 'a%' or {0}.key = 1",
)  # fmt: skip
SHAPES = ("plain", "plain", "plain", "star", "union", "nested", "with", "broken", "nothing")


def model(name: str, sources: list[str], chance: random.Random) -> str:
    """A query over some tables, of which one may be the table that it makes."""
    first = sources[0]
    shape = chance.choice(SHAPES)
    if shape == "star":
        return f"select * from {first}"
    if shape == "broken":
        return f"select from where {first} ((("
    if shape == "nothing":
        return "select 1 as key"
    query = _query(sources, chance)
    if shape == "union":
        return f"select * from {first} union all {query}"
    if shape == "nested":
        return f"select key, day, label from ({query}) as inside where key = 1"
    if shape == "with":
        return f"with {name}_inside as ({query}) select * from {name}_inside"
    return query


def _query(sources: list[str], chance: random.Random) -> str:
    aliases = [f"t{number}" for number in range(len(sources))]
    items = [f"{chance.choice(EXPRESSIONS).format(chance.choice(aliases), column)} as {column}"
             if chance.random() < 0.4 else f"{aliases[0]}.{column}" for column in COLUMNS]  # fmt: skip
    sql = f"select {', '.join(items)} from {sources[0]} as t0"
    for alias, source in zip(aliases[1:], sources[1:], strict=True):
        kind = chance.choice(("join", "left join", "full join"))
        sql += f" {kind} {source} as {alias} on {alias}.key = t0.{chance.choice(COLUMNS)}"
    if chance.random() < 0.5:
        sql += " where " + chance.choice(CONDITIONS).format("t0", chance.choice(COLUMNS))
    return sql


def random_graph(seed: int, *, models: int = 12, scanned: float = 0.5) -> SqlGraph:
    """Models that read each other, forwards, backwards and themselves; some were scanned."""
    chance = random.Random(seed)
    names = [f"m{number}" for number in range(models)]
    texts = {}
    for place, name in enumerate(names):
        near = ["raw", *names[max(0, place - 3) : place + 2]]
        sources = list(dict.fromkeys(["raw" if place == 0 else chance.choice(near)]))
        sources += [each for each in chance.sample(near, 1) if each not in sources]
        texts[name] = model(name, sources, chance)
    known = {name: SCHEMA for name in names if chance.random() < scanned}
    return SqlGraph({"raw": SCHEMA, **known}, texts, without_sql=names[::5])


def check(found: Impact, graph: SqlGraph) -> None:
    reached = {"raw"}
    while True:
        more = {down for up, down in graph.links("raw") if up in reached} - reached
        if not more:
            break
        reached |= more
    assert {each.urn for each in found.downstream} == reached - {"raw"}
    assert all(each.distance >= 1 and each.reasons for each in found.downstream)
    breaking = [each.urn for each in found.downstream if each.verdict is Verdict.BREAKING]
    assert sorted(found.order) == sorted(breaking)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs_with_circles_get_a_verdict_each(seed: int) -> None:
    graph = random_graph(seed)
    for after in AFTERWARDS:
        check(graph.change("raw", after), graph)
        check(graph.change("raw", after, with_reason=False), graph)


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_words_say_what_reasoning_says_in_random_graphs(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of what was not scanned, types are guessed from where the way round a circle begins.
    graph = random_graph(seed, scanned=1.0)
    for after in AFTERWARDS:
        quick = graph.change("raw", after)
        with monkeypatch.context() as patched:
            patched.setattr(propagation, "simple_statement_effect", lambda *_: None)
            thorough = graph.change("raw", after)
        assert _summary(quick) == _summary(thorough)


def _summary(impact: Impact) -> dict[str, object]:
    return {
        each.urn: (each.verdict, {*each.columns}, {*each.reasons}) for each in impact.downstream
    }


@pytest.mark.parametrize(
    ("query", "after"),
    [
        pytest.param("select key, label from {0}", "key INT64\nlabel STRING", id="handed-on"),
        pytest.param(
            "select * from {0}", "key INT64\nlabel STRING", id="stars", marks=pytest.mark.slow
        ),
        pytest.param(
            "select * from {0}", "key INT32", id="stars-lose-a-column", marks=pytest.mark.slow
        ),
        pytest.param(
            "select key + 0 as key, label from {0}",
            "key INT64\nlabel STRING",
            id="calculated",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.parametrize("is_scanned", [True, False], ids=["scanned", "unscanned"])
def test_a_long_row_of_datasets_needs_no_deep_stack(
    query: str, after: str, is_scanned: bool
) -> None:
    length = 2000
    schema = "key INT32\nlabel STRING"
    names = ["raw", *(f"m{number}" for number in range(length))]
    models = {name: query.format(before) for before, name in pairwise(names)}
    known = names if is_scanned else names[:1]
    graph = SqlGraph(dict.fromkeys(known, schema), models)
    found = graph.change("raw", after)
    assert len(found.downstream) == length
    assert of(found, names[-1]).distance == length
    assert not any(each.verdict is Verdict.UNDETERMINED for each in found.downstream)
    assert all(each.columns for each in found.downstream)


@pytest.mark.slow
def test_very_wide_tables_are_followed() -> None:
    width = 2000
    lines = [f"c{number} INT32" for number in range(width)]
    names = [f"c{number}" for number in range(width)]
    graph = SqlGraph(
        {"raw": "\n".join(lines), "listed": "\n".join(lines), "starred": "\n".join(lines)},
        {"listed": f"select {', '.join(names)} from raw", "starred": "select * from listed",
         "changed": f"select {', '.join(f'{each} + 1 as {each}' for each in names)} from starred"},
    )  # fmt: skip
    every = "\n".join(line.replace("INT32", "INT64") for line in lines)
    found = graph.change("raw", every)
    for name in ("listed", "starred", "changed"):
        assert of(found, name).verdict is Verdict.COMPATIBLE
        assert len(of(found, name).columns) == width


def test_a_sum_of_very_many_columns_is_followed() -> None:
    names = [f"c{number}" for number in range(2000)]
    lines = [f"{name} INT32" for name in names]
    graph = SqlGraph(
        {"raw": "\n".join(lines)}, {"summed": f"select {' + '.join(names)} as total from raw"}
    )
    found = graph.change("raw", "\n".join([*lines[:-1], f"{names[-1]} STRING"]))
    assert of(found, "summed").verdict is Verdict.BREAKING


def test_what_is_nested_too_deeply_is_not_determined() -> None:
    nested = "(" * 1500 + "key" + ")" * 1500
    graph = SqlGraph({"raw": SCHEMA}, {"deep": f"select {nested} as key from raw"})
    found = graph.change("raw", SCHEMA.replace("key INT32", "key STRING"))
    assert all(each.verdict is not Verdict.COMPATIBLE for each in found.downstream)


def test_a_table_that_is_made_from_itself_is_looked_at_once() -> None:
    graph = SqlGraph(
        {"raw": "key INT32\namount INT32", "total": "key INT32\namount INT32"},
        {"total": "select t.key, t.amount + r.amount as amount from total t "
                  "join raw r on r.key = t.key"},
    )  # fmt: skip
    found = graph.change("raw", "key STRING\namount INT32")
    assert [each.urn for each in found.downstream] == ["total"]
    itself = impact_of(
        "total",
        classify(compare(graph.schemas["total"], parse_schema("key INT64\namount INT32"))),
        graph,
        graph.reason,
    )
    assert itself.downstream == ()


def test_a_ring_of_many_comes_to_an_end() -> None:
    size = 300
    names = [f"m{number}" for number in range(size)]
    models = {name: f"select a.key, b.label from {names[place - 1]} a join raw b on b.key = a.key"
              for place, name in enumerate(names)}  # fmt: skip
    graph = SqlGraph(dict.fromkeys(["raw", *names], "key INT32\nlabel STRING"), models)
    found = graph.change("raw", "key INT64\nlabel INT64")
    assert len(found.downstream) == size
    assert {each.verdict for each in found.downstream} == {Verdict.BREAKING}
