"""A change on its way through a small world of SQL."""

import pytest

from impact.rules.sql_graph import AT, SqlGraph, of, verdict_text
from lumos.model.change import Verdict
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, Edge, UseKind

EVENTS = "user_id STRING NOT NULL\namount INT32\nday DATE"
AS_NUMBER = "user_id INT64 NOT NULL\namount INT32\nday DATE"
WITHOUT_ID = "amount INT32\nday DATE"
SESSIONS = "user_id STRING\nsid INT64"


def graph_of(**models: str) -> SqlGraph:
    return SqlGraph({"events": EVENTS, "sessions": SESSIONS}, models)


def test_the_example_of_a_join_a_pipeline_and_a_cast() -> None:
    moved = Edge(
        upstream="events", downstream="feature_store.user_features", origin="declared:x", at=AT,
        columns=(ColumnMapping(upstream="user_id", downstream="user_id"),),
    )  # fmt: skip
    graph = SqlGraph(
        {"events": EVENTS, "sessions": SESSIONS, "feature_store.user_features": "user_id STRING"},
        {
            "user_sessions": "select s.sid\nfrom events e\njoin sessions s\n"
            "  on e.user_id = s.user_id",
            "daily_users": "select day, count(distinct cast(user_id as string)) as users\n"
            "from events group by day",
        },
        edges=[moved],
        owners={"user_sessions": "analytics-team", "feature_store.user_features": "ml-platform",
                "daily_users": "bi-team"},
    )  # fmt: skip
    found = graph.change("events", AS_NUMBER)
    assert {each.urn: verdict_text(each) for each in found.downstream} == {
        "user_sessions": "breaking\nexpects STRING user_id in JOIN, models/user_sessions.sql:4",
        "feature_store.user_features": "breaking\ntype mismatch in pipeline: user_id becomes INT64",
        "daily_users": "compatible\ncasts user_id to STRING anyway, models/daily_users.sql:1",
    }
    assert found.recommendations[:3] == (
        "Notify analytics-team and ml-platform before deploying",
        "Consider backward-compatible approach: add new column first",
        "Update 2 downstream pipelines before schema change",
    )
    assert found.coverage.share == 1.0


def test_a_new_type_goes_on_until_a_cast_absorbs_it() -> None:
    found = graph_of(
        first="select user_id as uid from events",
        second="select cast(uid as string) as uid from first",
        third="select upper(uid) as u from second",
    ).change("events", AS_NUMBER)
    assert [(each.urn, each.verdict, each.distance) for each in found.downstream] == [
        ("first", Verdict.BREAKING, 1),
        ("second", Verdict.COMPATIBLE, 2),
        ("third", Verdict.COMPATIBLE, 3),
    ]


def test_columns_keep_the_way_by_which_they_change() -> None:
    found = graph_of(
        first="select user_id as uid from events",
        second="select max(uid) as last from first",
    ).change("events", AS_NUMBER)
    (column,) = of(found, "second").columns
    assert column.path == (("events", "user_id"), ("first", "uid"), ("second", "last"))
    assert column.after is not None
    assert column.after.type.text == "INT64"


def test_a_widening_is_compatible_all_the_way() -> None:
    found = graph_of(
        first="select amount, amount + 1 as more from events where amount > 3",
        second="select sum(more) as total from first group by amount",
        third="select a.total from second a join sessions s on a.total = s.sid",
    ).change("events", EVENTS.replace("INT32", "INT64"))
    assert {each.verdict for each in found.downstream} == {Verdict.COMPATIBLE}


def test_a_dropped_column_that_nobody_uses_harms_nobody() -> None:
    found = graph_of(
        first="select amount from events",
        second="select count(*) as n from events",
        third="select amount from (select * from events) where day > '2024-01-01'",
    ).change("events", WITHOUT_ID)
    assert {each.verdict for each in found.downstream} == {Verdict.COMPATIBLE}


def test_a_dropped_column_breaks_those_who_name_it_and_none_who_read_the_rest() -> None:
    found = graph_of(
        first="select amount from events where user_id = 'a'",
        second="select amount from first",
    ).change("events", WITHOUT_ID)
    assert (
        verdict_text(of(found, "first")) == "breaking\nneeds user_id in FILTER, models/first.sql:1"
    )
    assert of(found, "second").verdict is Verdict.COMPATIBLE
    assert found.order == ("first",)


def test_who_reads_what_cannot_be_computed_any_more_breaks_as_well() -> None:
    found = graph_of(
        first="select upper(user_id) as u, amount from events",
        reads_it="select u from first",
        reads_the_rest="select amount from first",
    ).change("events", AS_NUMBER)
    assert verdict_text(of(found, "reads_it")).startswith("breaking\nneeds u in PROJECTION")
    assert of(found, "reads_the_rest").verdict is Verdict.COMPATIBLE


def test_a_table_with_columns_of_its_own_keeps_them() -> None:
    graph = SqlGraph(
        {"events": EVENTS, "kept": "user_id STRING"},
        {"kept": "insert into kept select user_id from events", "page": "select * from kept"},
    )
    for after in (AS_NUMBER, WITHOUT_ID):
        found = graph.change("events", after)
        assert of(found, "kept").verdict is Verdict.BREAKING
        assert of(found, "page").verdict is Verdict.COMPATIBLE


def test_a_star_hands_on_that_a_column_is_gone() -> None:
    found = graph_of(first="select * from events", second="select user_id from first").change(
        "events", WITHOUT_ID
    )
    assert verdict_text(of(found, "first")).startswith("breaking\nno longer has user_id")
    assert verdict_text(of(found, "second")).startswith("breaking\nneeds user_id in PROJECTION")


def test_a_new_column_goes_on_by_a_star_and_breaks_where_places_count() -> None:
    graph = SqlGraph(
        {"events": EVENTS, "copy": EVENTS},
        {"starred": "select * from events", "copy": "insert into copy select * from starred"},
    )
    found = graph.change("events", f"{EVENTS}\nextra STRING")
    assert of(found, "starred").verdict is Verdict.COMPATIBLE
    assert of(found, "copy").verdict is Verdict.BREAKING


@pytest.mark.parametrize(
    ("query", "verdict"),
    [
        ("select sid from events e join sessions s on e.user_id = s.user_id", Verdict.BREAKING),
        ("select sid from sessions where user_id not in (select user_id from events)",
         Verdict.BREAKING),
        ("select coalesce(user_id, '-') as u from events", Verdict.COMPATIBLE),
        ("select user_id from events", Verdict.COMPATIBLE),
    ],
)  # fmt: skip
def test_nulls_are_judged_by_use(query: str, verdict: Verdict) -> None:
    found = graph_of(model=query).change("events", EVENTS.replace(" NOT NULL", ""))
    assert of(found, "model").verdict is verdict


def test_nulls_break_where_an_existing_column_refuses_them() -> None:
    graph = SqlGraph({"events": EVENTS, "kept": "user_id STRING NOT NULL"},
                   {"kept": "insert into kept select user_id from events"})  # fmt: skip
    found = graph.change("events", EVENTS.replace(" NOT NULL", ""))
    assert verdict_text(of(found, "kept")).startswith(
        "breaking\nstores user_id in a column that rejects"
    )


def test_without_sql_the_facts_of_edges_decide() -> None:
    graph = SqlGraph(
        {"events": EVENTS, "sessions": SESSIONS},
        {
            "joined": "select s.sid from events e join sessions s on e.user_id = s.user_id",
            "cast": "select cast(user_id as string) as u from events",
            "called": "select f(user_id) as u from events",
            "unused": "select amount from events",
            "behind": "select u from called",
        },
        without_sql={"joined", "cast", "called", "unused"},
    )
    found = graph.change("events", AS_NUMBER)
    assert {each.urn: each.verdict for each in found.downstream} == {
        "joined": Verdict.BREAKING,
        "cast": Verdict.COMPATIBLE,
        "called": Verdict.UNDETERMINED,
        "unused": Verdict.COMPATIBLE,
        "behind": Verdict.UNDETERMINED,
    }
    assert found.coverage.determined == 3


def test_an_edge_of_which_nothing_is_known_is_undetermined_and_so_is_what_lies_behind() -> None:
    bare = Edge(upstream="events", downstream="report", origin="declared:x", at=AT)
    after = Edge(
        upstream="report", downstream="page", origin="declared:x", at=AT,
        columns=(ColumnMapping(upstream="n", downstream="n", derivation=Derivation.IDENTITY),),
    )  # fmt: skip
    found = SqlGraph({"events": EVENTS}, {}, edges=[bare, after]).change("events", AS_NUMBER)
    assert {each.verdict for each in found.downstream} == {Verdict.UNDETERMINED}
    assert found.coverage.share == 0.0


def test_sql_that_is_not_understood_is_undetermined() -> None:
    graph = graph_of(model="select upper(user_id) as u from events")
    derivation = graph.derivations("model")[0]
    graph._derivations["model"] = [
        type(derivation)(
            origin="x", edges=derivation.edges, sql="create tabel ((user_id", file="x.sql"
        )
    ]
    found = graph.change("events", AS_NUMBER)
    assert of(found, "model").verdict in (Verdict.UNDETERMINED, Verdict.BREAKING)
    assert any("could not be parsed" in reason.text for reason in of(found, "model").reasons)


def test_a_star_over_unknown_columns_is_undetermined() -> None:
    graph = SqlGraph({"events": EVENTS}, {"model": "select e.* from events e, unknown u"})
    found = graph.change("events", f"{EVENTS}\nextra STRING")
    assert of(found, "model").verdict is Verdict.COMPATIBLE
    mapping = ColumnMapping(upstream="*", downstream="*", star=True)
    edge = Edge(upstream="events", downstream="copy", origin="x", at=AT, columns=(mapping,))
    found = SqlGraph({"events": EVENTS}, {}, edges=[edge]).change("events", AS_NUMBER)
    assert of(found, "copy").verdict is Verdict.UNDETERMINED


def test_data_that_flows_in_a_circle_comes_to_an_end() -> None:
    found = graph_of(
        first="select e.user_id from events e left join second s on e.amount = s.n",
        second="select length(user_id) as n, user_id from first",
    ).change("events", AS_NUMBER)
    assert {each.verdict for each in found.downstream} == {Verdict.BREAKING}


def test_schemas_that_nobody_stored_are_read_from_the_sql() -> None:
    found = graph_of(
        other="select cast(sid as bigint) as id, 'x' as name from sessions",
        model="select e.day from events e join other o on e.user_id = o.name",
    ).change("events", AS_NUMBER)
    assert verdict_text(of(found, "model")).startswith("breaking\nexpects STRING user_id in JOIN")


def test_only_statements_that_the_change_reaches_are_read() -> None:
    graph = graph_of(
        unused="select amount from events",
        handed_on="select user_id from events",
        cast="select cast(user_id as string) as user_id from handed_on",
        behind="select user_id from cast",
    )
    graph.schemas["handed_on"] = graph.schemas["cast"] = graph.schemas["events"]
    graph.change("events", AS_NUMBER)
    assert graph.reasoned == ["cast"]


def test_a_key_that_changes_breaks_those_who_join_on_it() -> None:
    graph = SqlGraph(
        {"events": "user_id STRING KEY\namount INT32", "sessions": SESSIONS},
        {
            "joined": "select sid from sessions s join events e on s.user_id = e.user_id",
            "summed": "select sum(amount) as total from events",
        },
    )
    found = graph.change("events", "user_id STRING\namount INT32")
    assert of(found, "joined").verdict is Verdict.BREAKING
    assert of(found, "summed").verdict is Verdict.COMPATIBLE


def test_words_alone_change_nothing_downstream() -> None:
    found = graph_of(model="select user_id from events").change(
        "events", EVENTS.replace("NOT NULL", "NOT NULL COMMENT 'who'")
    )
    assert {each.verdict for each in found.downstream} == {Verdict.COMPATIBLE}


def test_uses_reported_by_a_log_count_beside_the_sql() -> None:
    logged = Edge(
        upstream="events", downstream="model", origin="log:x", at=AT,
        uses=(ColumnUse(upstream="user_id", usage=UseKind.JOIN),),
    )  # fmt: skip
    graph = SqlGraph({"events": EVENTS}, {"model": "select amount from events"}, edges=[logged])
    assert of(graph.change("events", AS_NUMBER), "model").verdict is Verdict.BREAKING


def test_nothing_downstream_is_no_verdict() -> None:
    found = SqlGraph({"events": EVENTS}, {}).change("events", AS_NUMBER)
    assert found.downstream == ()
    assert found.verdict is None


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        (ColumnMapping(upstream="user_id", downstream="uid", derivation=Derivation.IDENTITY),
         "uid may be null from now on"),
        (ColumnMapping(upstream="user_id", downstream="uid"), "uid may be null from now on"),
        (ColumnMapping(upstream="user_id", downstream="uid",
                       derivation=Derivation.TRANSFORMATION), "uid may be null from now on"),
        (ColumnMapping(upstream="user_id", downstream="uid", cast_to="STRING"),
         "uid may be null from now on"),
        (ColumnMapping(upstream="user_id", downstream="open"), "open is already nullable"),
    ],
)  # fmt: skip
def test_nulls_that_an_edge_passes_on_are_reported(mapping: ColumnMapping, text: str) -> None:
    edges = [
        Edge(upstream="events", downstream="copy", origin="ol", at=AT, columns=(mapping,)),
        Edge(upstream="copy", downstream="further", origin="ol", at=AT, columns=(
            ColumnMapping(upstream=mapping.downstream, downstream="f"),)),
    ]  # fmt: skip
    graph = SqlGraph(
        {"events": EVENTS, "copy": "uid STRING NOT NULL\nopen STRING"}, {}, edges=edges
    )
    found = graph.change("events", EVENTS.replace(" NOT NULL", ""))
    assert of(found, "copy").is_affected
    assert verdict_text(of(found, "copy")) == f"compatible\n{text}"
    goes_on = text.endswith("from now on")
    assert of(found, "further").is_affected is goes_on
    assert of(found, "further").verdict is Verdict.COMPATIBLE


@pytest.mark.parametrize("statement", [
    "merge into stage t using events s on t.day = s.day\nwhen matched then update set *",
    "merge into stage t using events s on t.day = s.day\nwhen not matched then insert *",
    "insert into stage by name select * from events",
])  # fmt: skip
def test_a_star_has_to_bring_what_its_table_has_a_column_for(statement: str) -> None:
    graph = SqlGraph(
        {"events": EVENTS, "stage": "user_id STRING\nday DATE"},
        {"into": statement},
        dialect="spark",
    )
    found = of(graph.change("events", WITHOUT_ID), "stage")
    assert verdict_text(found).startswith("breaking\nneeds user_id in INSERT, models/into.sql:")


def test_the_stars_of_a_merge_leave_what_the_table_has_no_column_for() -> None:
    graph = SqlGraph(
        {"events": EVENTS, "stage": "user_id STRING\nday DATE"},
        {
            "into": "merge into stage t using events s on t.day = s.day when not matched then insert *"
        },
    )
    without_amount = "user_id STRING NOT NULL\nday DATE"
    assert of(graph.change("events", without_amount), "stage").verdict is Verdict.COMPATIBLE


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("select lag(amount) over (order by id) as la from orders", "select la + 1 as l from v"),
        ("select array_agg(amount) as la from orders", "select la[1] as l from v"),
    ],
)
def test_a_type_that_an_engine_keeps_wider_than_it_is_reckoned_does_not_change(
    first: str, second: str
) -> None:
    kept = "ARRAY<DECIMAL>" if "array" in first else "DECIMAL"
    graph = SqlGraph(
        {"orders": "id INT64\namount DECIMAL(12,2)", "v": f"la {kept}", "w": "l DECIMAL"},
        {"v": first, "w": second},
        dialect="postgres",
    )
    found = graph.change("orders", "id INT64\namount DECIMAL(14,2)")
    assert [(each.urn, each.verdict, each.columns) for each in found.downstream] == [
        ("v", Verdict.COMPATIBLE, ()),
        ("w", Verdict.COMPATIBLE, ()),
    ]
    # What does not fit into it goes on.
    as_text = graph.change("orders", "id INT64\namount STRING")
    assert of(as_text, "w").verdict is not Verdict.COMPATIBLE
