"""Edges by reporter, jobs and walks, on every database."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from lumos.model.catalog import Job
from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, Edge, JobRun, Script, UseKind
from lumos.store import Store
from lumos.store.lineage import LineageChanges, ReporterContents, StoredEdge
from lumos.store.lineage import reader as lineage_reading
from lumos.store.lineage.edges import merge_edges
from lumos.store.lineage.reported_items import MAX_RUNS
from store.conftest import AT, dataset

A, B, C, D = (f"lumos://file/lake/{name}" for name in "abcd")
LATER = AT + timedelta(days=1)
MAPPING = ColumnMapping(
    upstream="id",
    downstream="order_id",
    transformation="CAST(id AS BIGINT)",
    derivation=Derivation.TRANSFORMATION,
    cast_to="BIGINT",
    positional=True,
    file="models/b.sql",
    line=14,
)
USE = ColumnUse(upstream="day", usage=UseKind.JOIN, expression="a.day = b.day", negated=True)


def edge(upstream: str, downstream: str, **facts: Any) -> Edge:
    return Edge(upstream=upstream, downstream=downstream, **{"origin": "sql:b", "at": AT, **facts})


def report(
    store: Store, reporter: str, *edges: Edge, at: datetime = AT, **more: Any
) -> LineageChanges:
    with store.transaction() as transaction:
        return transaction.lineage.report(reporter, edges, at=at, **more)


def links(store: Store) -> set[tuple[str, str, str]]:
    return {(each.origin, each.upstream, each.downstream) for each in store.lineage.all()}


def revision(store: Store) -> object:
    with store._database.reading() as connection:
        return connection.exec_driver_sql("SELECT revision FROM lineage_revision").scalar()


def test_an_edge_comes_out_as_it_was_reported(store: Store) -> None:
    reported_edge = edge(
        A, B, type="VIEW", confidence=0.3, created_by="ann", job="lumos://dbt/b",
        columns=(MAPPING,), uses=(USE,),
    )  # fmt: skip
    assert report(store, "sql:b", reported_edge, at=LATER) == LineageChanges(
        added=1, touched=(A, B)
    )
    kept = StoredEdge(**msgspec.structs.asdict(reported_edge), last_seen=LATER)
    assert store.lineage.edges_of(A, "downstream") == (kept,)
    assert store.lineage.edges_of(B, "upstream") == (kept,)
    assert store.lineage.edges_of(A, "upstream") == ()
    assert [(each.name, each.edges) for each in store.lineage.reporters()] == [("sql:b", 1)]


def test_the_same_report_again_changes_nothing_but_when_it_was_last_seen(store: Store) -> None:
    report(store, "sql:b", edge(A, B, created_by="ann", columns=(MAPPING,)))
    before = revision(store)
    again = report(
        store, "sql:b", edge(A, B, created_by="bob", columns=(MAPPING,), at=LATER), at=LATER
    )
    assert again == LineageChanges(unchanged=1)
    (kept,) = store.lineage.edges_of(A, "downstream")
    assert (kept.at, kept.last_seen, kept.created_by) == (AT, LATER, "ann")
    assert revision(store) == before


def test_a_reporter_replaces_its_own_word_and_nobody_elses(store: Store) -> None:
    report(store, "sql:b", edge(A, B), edge(A, C))
    report(store, "dbt:shop", edge(A, B))
    changed = report(store, "sql:b", edge(A, B, uses=(USE,)), edge(B, C), at=LATER)
    assert changed == LineageChanges(added=1, changed=1, removed=1, touched=(A, B, C))
    assert links(store) == {("sql:b", A, B), ("sql:b", B, C), ("dbt:shop", A, B)}
    assert report(store, "sql:b") == LineageChanges(removed=2, touched=(A, B, C))
    assert links(store) == {("dbt:shop", A, B)}


def test_several_reporters_report_at_once_as_they_do_one_by_one(store: Store) -> None:
    job = Job(urn="lumos://dbt/job", name="job", platform="dbt")

    def scripts(text: str, dataset: str) -> tuple[Script, ...]:
        return (Script(sql=text, dataset=dataset),)

    first = [
        ReporterContents("sql:b", (edge(A, B),), (job,), scripts("b", B), {B: ("ann",)}),
        ReporterContents("sql:c", (edge(A, C), edge(B, C)), (), scripts("c", C), {C: ("bob",)}),
        ReporterContents("sql:d", ()),
    ]
    second = [
        ReporterContents("sql:b", (edge(A, B, type="VIEW"),), (), scripts("b2", B), {B: ("eve",)}),
        ReporterContents("sql:c", (edge(A, C),)),
        ReporterContents("sql:d", (edge(A, D),), (), scripts("d", D), {C: ("dan",), D: ("dan",)}),
    ]
    with store.transaction() as transaction:
        assert transaction.lineage.report_all(first, at=AT) == [
            LineageChanges(added=1, touched=(A, B)),
            LineageChanges(added=2, touched=(A, B, C)),
            LineageChanges(),
        ]
    assert [each.urn for each in store.lineage.jobs()] == [job.urn]
    with store.transaction() as transaction:
        assert transaction.lineage.report_all(second, at=LATER) == [
            LineageChanges(changed=1, touched=(A, B)),
            LineageChanges(removed=1, unchanged=1, touched=(B, C)),
            LineageChanges(added=1, touched=(A, D)),
        ]
    assert links(store) == {("sql:b", A, B), ("sql:c", A, C), ("sql:d", A, D)}
    assert not [*store.lineage.jobs()]
    assert {urn: [text.sql for _, text in texts] for urn, texts in
            store.lineage.scripts([B, C, D]).items()} == {B: ["b2"], C: [], D: ["d"]}  # fmt: skip
    assert store.lineage.owners([B, C, D]) == {B: ("eve",), C: ("dan",), D: ("dan",)}


def test_edges_of_several_reporters_merge_and_each_origin_is_seen(store: Store) -> None:
    plain = ColumnMapping(upstream="id", downstream="order_id")
    other = ColumnMapping(upstream="x", downstream="y")
    report(store, "declared:l.yaml", edge(A, B, confidence=0.5, columns=(plain, other)))
    report(store, "sql:b", edge(A, B, type="COPIED", columns=(MAPPING,), uses=(USE,)))
    (merged,) = merge_edges(store.lineage.edges_of(A, "downstream"))
    assert (merged.type, merged.confidence, merged.uses) == ("COPIED", 1.0, (USE,))
    assert merged.columns == (other, MAPPING)
    assert [each.origin for each in merged.origins] == ["declared:l.yaml", "sql:b"]
    assert store.lineage.between([(A, B), (B, A)]) == (merged,)


def test_duplicate_edges_in_a_report_are_merged(store: Store) -> None:
    other = ColumnMapping(upstream="x", downstream="y")
    reported_edge = report(
        store, "sql:b", edge(A, B, type="COPIED", columns=(MAPPING,)),
        edge(A, B, columns=(MAPPING, other), uses=(USE,)), edge(A, B, job="lumos://dbt/b"),
    )  # fmt: skip
    assert reported_edge.added == 2
    first, second = store.lineage.edges_of(A, "downstream")
    assert (first.type, first.columns, first.uses) == ("TRANSFORMED", (MAPPING, other), (USE,))
    assert (second.job, second.columns) == ("lumos://dbt/b", ())


def test_single_edges_are_added_and_retracted(store: Store) -> None:
    report(store, "user", edge(A, B))
    with store.transaction() as transaction:
        added = transaction.lineage.add("user", [edge(B, C), edge(A, B)], at=LATER)
    assert added == LineageChanges(added=1, unchanged=1, touched=(B, C))
    with store.transaction() as transaction:
        gone = transaction.lineage.retract("user", [(A, B), (C, D)])
    assert gone == LineageChanges(removed=1, touched=(A, B))
    assert links(store) == {("user", B, C)}


def test_a_name_that_no_reporter_mentions_any_more_is_not_found(store: Store) -> None:
    text = Script(sql="select 1 as one", dataset=C)
    report(store, "sql:b", edge(A, B, job="lumos://dbt/nightly"), scripts=[text])
    found = [store.lineage.find_by_name(name) for name in ("a", "b", "c", "nightly")]
    assert found == [(A,), (B,), (C,), ("lumos://dbt/nightly",)]
    report(store, "sql:b", edge(A, D))
    found = [store.lineage.find_by_name(name) for name in ("a", "b", "c", "nightly", "d")]
    assert found == [(A,), (), (), (), (D,)]
    with store.transaction() as transaction:
        transaction.lineage.retract("sql:b", [(A, D)])
    assert store.lineage.find_by_name("d") == ()


def test_retracting_for_an_unknown_reporter_changes_nothing(store: Store) -> None:
    with store.transaction() as transaction:
        assert transaction.lineage.retract("nobody", [(A, B)]) == LineageChanges()


def test_what_fails_leaves_nothing_behind(store: Store) -> None:
    report(store, "sql:b", edge(A, B))
    before = revision(store)
    broken = edge(B, C, uses=(object(),))
    with pytest.raises(TypeError):
        report(store, "sql:b", edge(B, D), broken)
    assert (links(store), revision(store)) == ({("sql:b", A, B)}, before)


def test_a_walk_has_distances_states_cycles_and_truncation(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset("a"))
        transaction.save(dataset("b", state="missing"))
        edges = [edge(A, B), edge(B, C), edge(C, A), edge(C, D), edge(D, D)]
        transaction.lineage.report("sql:b", edges, at=AT)
    walk = store.lineage.walk(A, direction="downstream")
    assert walk.nodes == ((A, 0, "live"), (B, 1, "missing"), (C, 2, None), (D, 3, None))
    assert walk.links == ((A, B), (B, C), (C, A), (C, D), (D, D))
    assert (walk.total, walk.truncated, walk.cycles) == (4, False, ((A, B, C), (D,)))
    short = store.lineage.walk(A, direction="downstream", depth=1)
    assert ([each.urn for each in short.nodes], short.truncated) == ([A, B], True)
    up = store.lineage.walk(D, direction="upstream", depth=2)
    assert [(each.urn, each.depth) for each in up.nodes] == [(D, 0), (C, 1), (B, 2)]
    assert (up.links, up.truncated) == (((B, C), (C, D), (D, D)), True)


def test_a_walk_from_what_nobody_speaks_of_comes_to_itself(store: Store) -> None:
    walk = store.lineage.walk(A, direction="upstream")
    assert (walk.nodes, walk.links, walk.truncated) == (((A, 0, None),), (), False)


def test_a_walk_may_begin_at_several_of_which_some_are_not_spoken_of(store: Store) -> None:
    report(store, "sql:b", edge(A, C), edge(B, C), edge(C, D))
    walk = store.lineage.walk(B, A, "lumos://x/alone", direction="downstream")
    assert [(each.urn, each.depth) for each in walk.nodes] == [
        (A, 0), (B, 0), ("lumos://x/alone", 0), (C, 1), (D, 2)
    ]  # fmt: skip
    assert (walk.start, walk.links, walk.total) == (B, ((A, C), (B, C), (C, D)), 5)


def test_wide_walks_find_the_same_as_narrow_ones(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = [edge(f"lumos://x/{n}", f"lumos://x/{n * 7 % 60}") for n in range(60)]
    edges += [edge(f"lumos://x/{n}", f"lumos://x/{n + 1}") for n in range(59)]
    report(store, "sql:b", *edges)
    walks = [
        ("lumos://x/3", side, depth) for side in ("upstream", "downstream") for depth in (3, None)
    ]
    narrow = [store.lineage.walk(urn, direction=side, depth=depth) for urn, side, depth in walks]  # type: ignore[arg-type]
    monkeypatch.setattr(lineage_reading, "_MAX_QUERIED_NODES", 2)
    wide = [store.lineage.walk(urn, direction=side, depth=depth) for urn, side, depth in walks]  # type: ignore[arg-type]
    assert wide == narrow
    report(store, "dbt:x", edge("lumos://x/3", A), edge(A, B), edge(A, C))
    after = store.lineage.walk(A, direction="upstream")
    assert A in {each.urn for each in after.nodes}
    assert after.total == narrow[1].total + 1


def test_a_limited_walk_lists_the_nearest_and_counts_the_rest(store: Store) -> None:
    report(store, "sql:b", edge(A, B), edge(A, C), edge(B, D))
    walk = store.lineage.walk(A, direction="downstream", limit=3)
    assert [each.depth for each in walk.nodes] == [0, 1, 1]
    assert (walk.total, walk.truncated) == (4, True)
    whole = store.lineage.walk(A, direction="downstream", limit=4)
    assert (len(whole.nodes), whole.truncated) == (4, False)


def test_columns_are_walked_through_datasets(store: Store) -> None:
    def mapped(up: str, down: str) -> dict[str, Any]:
        return {"columns": (ColumnMapping(upstream=up, downstream=down),)}

    with store.transaction() as transaction:
        transaction.save(dataset("b"))
        edges = [edge(A, B, **mapped("id", "key"), uses=(USE,)), edge(B, C, **mapped("KEY", "k"))]
        transaction.lineage.report("sql:b", edges, at=AT)
    walk = store.lineage.columns(A, "id", direction="downstream")
    assert walk.nodes == (
        (A, "id", 0, False, None),
        (B, "key", 1, False, "live"),
        (C, "k", 2, False, None),
    )
    decided = store.lineage.columns(A, "day", direction="downstream")
    assert decided.nodes[1:] == ((B, None, 1, True, "live"),)
    back = store.lineage.columns(C, "k", direction="upstream")
    assert [(each.urn, each.column, each.indirect) for each in back.nodes] == [
        (C, "k", False), (B, "KEY", False), (A, "day", True), (A, "id", False),
    ]  # fmt: skip
    assert back.nodes[2].depth == 2


def test_paths_between_columns_come_shortest_first(store: Store) -> None:
    def mapped(*pairs: str) -> dict[str, Any]:
        ends = [pair.split(">") for pair in pairs]
        return {"columns": tuple(ColumnMapping(upstream=u, downstream=d) for u, d in ends)}

    report(
        store, "sql:b", edge(A, B, **mapped("x>y")), edge(B, D, **mapped("y>z")),
        edge(A, D, **mapped("x>z")), edge(A, C, **mapped("x>x")), edge(C, B, **mapped("x>y")),
    )  # fmt: skip
    found = store.lineage.paths((A, "x"), (D, "z"))
    ways = [[step.downstream.urn for step in path] for path in found.paths]
    assert (ways, found.truncated) == ([[D], [B, D], [C, B, D]], False)
    assert len(store.lineage.paths((A, "x"), (D, "z"), limit=2).paths) == 2
    assert store.lineage.paths((D, "z"), (A, "x")).paths == ()


def job(urn: str = "lumos://airflow/daily", **facts: Any) -> Job:
    return Job(**{"urn": urn, "name": "daily", "platform": "airflow", **facts})


def run(id: str, state: Any = "COMPLETE", start: int = 0, end: int | None = None) -> JobRun:
    ended = None if end is None else AT + timedelta(hours=end)
    started = AT + timedelta(hours=start)
    return JobRun(
        run_id=id, job="lumos://airflow/daily", started_at=started, ended_at=ended, state=state
    )


def test_jobs_and_runs_are_kept_once_in_whatever_order_events_come(store: Store) -> None:
    report(store, "openlineage:x/daily", jobs=[job(runs=(run("1", "COMPLETE", 0, 2),))])
    report(
        store,
        "openlineage:x/daily",
        jobs=[job(runs=(run("1", "RUNNING", 0), run("2", "FAILED", 3, 4)))],
    )
    report(
        store,
        "openlineage:x/daily",
        jobs=[job(runs=(run("2", "COMPLETE", 3, 5), run("2", "RUNNING", 3)))],
    )
    (kept,) = store.lineage.jobs()
    assert kept.runs == (run("1", "COMPLETE", 0, 2), run("2", "COMPLETE", 3, 5))


def test_only_the_latest_runs_are_kept(store: Store) -> None:
    runs = tuple(run(f"{number:04}", start=number) for number in range(MAX_RUNS + 5))
    report(store, "openlineage:x/daily", jobs=[job(runs=runs)])
    (kept,) = store.lineage.jobs()
    assert kept.runs == runs[5:]


def test_several_reporters_speak_of_one_job_and_each_takes_back_its_own(store: Store) -> None:
    report(store, "openlineage:x/daily", jobs=[job(inputs=(A,), outputs=(B,), runs=(run("1"),))])
    report(store, "dbt:shop", jobs=[job(inputs=(A, C), owner="ann", properties={"tag": "x"})])
    (both,) = store.lineage.jobs()
    assert (both.inputs, both.outputs, both.owner, both.runs) == ((A, C), (B,), "ann", (run("1"),))
    report(store, "dbt:shop", jobs=[job(inputs=(D,), owner="bob")])
    (changed,) = store.lineage.jobs()
    assert (changed.inputs, changed.owner, changed.properties) == ((A, D), "bob", {})
    report(store, "dbt:shop")
    report(store, "openlineage:x/daily", jobs=[job(inputs=(A,), outputs=(B,))])
    (left,) = store.lineage.jobs()
    assert (left.inputs, left.outputs, left.owner) == ((A,), (B,), None)
    report(store, "openlineage:x/daily")
    assert list(store.lineage.jobs()) == []


def report_upstream(store: Store, name: str, *upstream: str) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset(name))
        lineage = Lineage(
            upstream=tuple(UpstreamEdge(urn=urn, columns=(MAPPING,)) for urn in upstream)
        )
        transaction.save_aspect(
            f"lumos://file/lake/{name}", "lineage", lineage, writer="import", at=AT
        )


def test_a_lineage_aspect_counts_in_the_graph(store: Store) -> None:
    report_upstream(store, "b", A)
    (kept,) = store.lineage.edges_of(B, "upstream")
    assert (kept.origin, kept.created_by, kept.columns) == (f"snapshot:{B}", "import", (MAPPING,))
    report_upstream(store, "b", C)
    assert links(store) == {(f"snapshot:{B}", C, B)}
    report_upstream(store, "b")
    assert (links(store), store.lineage.reporters()) == (set(), ())


def test_edges_follow_a_dataset_to_another_urn(store: Store) -> None:
    report_upstream(store, "a", D)
    report_upstream(store, "b", A)
    report(store, "sql:b", edge(A, C), edge(A, A))
    renamed = "lumos://file/lake/renamed"
    with store.transaction() as transaction:
        transaction.rename(dataset("a"), to=renamed, name="renamed", at=LATER)
    assert links(store) == {
        (f"snapshot:{renamed}", D, renamed), (f"snapshot:{B}", renamed, B),
        ("sql:b", renamed, C), ("sql:b", renamed, renamed),
    }  # fmt: skip
    with store.transaction() as transaction:
        reported_edge = transaction.aspect(B, "lineage")
    assert [each.urn for each in reported_edge.upstream] == [renamed]
    assert report(store, "sql:b", edge(A, C), edge(A, A)) == LineageChanges(unchanged=2)
    assert store.lineage.walk(A, direction="downstream").start == renamed


def test_a_dataset_that_takes_another_in_takes_its_edges(store: Store) -> None:
    report_upstream(store, "a", D)
    with store.transaction() as transaction:
        transaction.save(dataset("b"))
    report(
        store,
        "sql:b",
        edge(A, C, columns=(MAPPING,)),
        edge(B, C, uses=(USE,)),
        edge(A, B),
        edge(D, A),
    )
    with store.transaction() as transaction:
        transaction.merge_into(dataset("a"), into=B, at=LATER)
    assert links(store) == {("sql:b", B, C), ("sql:b", D, B), (f"snapshot:{B}", D, B)}
    (out,) = store.lineage.edges_of(B, "downstream")
    assert (out.columns, out.uses) == ((MAPPING,), (USE,))


def test_edges_stay_where_a_dataset_is_gone(store: Store) -> None:
    report_upstream(store, "b", A)
    report(store, "sql:b", edge(B, C))
    with store.transaction() as transaction:
        transaction.save(dataset("b", state="missing"))
    assert [each.state for each in store.lineage.walk(B, direction="downstream").nodes] == [
        "missing",
        None,
    ]
    with store.transaction() as transaction:
        transaction.entries.erase(B)
    assert links(store) == {("sql:b", B, C)}


def test_reporters_that_speak_at_once_all_count(store: Store) -> None:
    def speak(number: int) -> None:
        urns = [f"lumos://x/{each}" for each in range(12)]
        ends = urns if number % 2 else urns[::-1]
        for turn in range(3):
            reported_edge = [edge(A, urn, job="lumos://dbt/j") for urn in ends[turn:]]
            report(store, f"sql:{number}", *reported_edge, jobs=[job(outputs=tuple(ends[turn:]))])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(speak, range(6)))
    assert store.lineage.count() == 6 * 10
    assert [each.edges for each in store.lineage.reporters()] == [10] * 6
    (kept,) = store.lineage.jobs()
    assert set(kept.outputs) == {f"lumos://x/{each}" for each in range(12)}
