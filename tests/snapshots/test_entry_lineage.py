"""A dataset gives out the lineage that it was told and what reporters say, and keeps them apart."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lumos import Lumos
from lumos.model.catalog import CatalogEntry, Job
from lumos.model.dataset import Lineage, UpstreamEdge
from lumos.model.json_codec import to_json
from lumos.model.lineage import ColumnMapping, ColumnUse, Edge, UseKind
from lumos.snapshots.catalogs import LocalCatalog
from lumos.snapshots.export import ExportOptions, export
from lumos.snapshots.format.document import JOBS
from lumos.snapshots.store_entries import entry_of, put_entry
from lumos.store import Store
from lumos.store.entries import StoredItem

AT = datetime(2024, 3, 1, tzinfo=UTC)
A, B, C, D = (f"lumos://s3/lake/{name}" for name in "abcd")
MAPPED = (ColumnMapping(upstream="x", downstream="y", transformation="upper(x)"),)
USED = (ColumnUse(upstream="day", usage=UseKind.FILTER, expression="day > 3"),)


@pytest.fixture
def store(stored: dict[str, object]) -> Store:
    opened = Store.open(Lumos(overrides=stored).database, create=True)
    for urn in (A, B, C):
        put(opened, entry(urn))
    return opened


def entry(urn: str, **facts: Any) -> CatalogEntry:
    return CatalogEntry(urn=urn, name=urn[-1], platform="s3", **facts)


def made_from(*upstream: UpstreamEdge | str, downstream: tuple[str, ...] = ()) -> Lineage:
    edges = (UpstreamEdge(urn=each) if isinstance(each, str) else each for each in upstream)
    return Lineage(
        upstream=tuple(edges), downstream=tuple(UpstreamEdge(urn=urn) for urn in downstream)
    )


def put(store: Store, entry: CatalogEntry) -> None:
    with store.transaction() as transaction:
        before = transaction.entries.get([entry.urn]).get(entry.urn)
        put_entry(transaction, entry, before=before, at=AT)


def report(store: Store, *edges: tuple[str, str], reporter: str = "sql:m", **facts: Any) -> None:
    with store.transaction() as transaction:
        given = [
            Edge(upstream=up, downstream=down, origin=reporter, at=AT, **facts)
            for up, down in edges
        ]
        transaction.lineage.report(reporter, given, at=AT)


def got(store: Store, urn: str) -> CatalogEntry:
    stored = store.entries.get(urn)
    assert stored is not None
    return entry_of(stored)


def stored_aspect(store: Store, urn: str) -> Lineage | None:
    with store.transaction() as transaction:
        given: Lineage | None = transaction.aspect(urn, "lineage")
        return given


def test_exports_merge_reported_edges_with_the_lineage_aspect(store: Store) -> None:
    put(store, entry(B, lineage=made_from(C)))
    report(store, (A, B), columns=MAPPED, uses=USED)
    reported = UpstreamEdge(urn=A, columns=MAPPED, uses=USED)
    assert got(store, B).lineage == made_from(C, reported)
    assert got(store, A).lineage is None
    assert stored_aspect(store, B) == made_from(C)


def test_what_is_said_of_one_edge_by_both_is_one_edge(store: Store) -> None:
    other = ColumnMapping(upstream="a", downstream="b")
    put(store, entry(B, lineage=made_from(UpstreamEdge(urn=A, type="COPIED", columns=(other,)))))
    report(store, (A, B), columns=MAPPED, uses=USED)
    assert got(store, B).lineage == made_from(
        UpstreamEdge(urn=A, type="COPIED", columns=(other, *MAPPED), uses=USED)
    )


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(None, id="nothing"),
        pytest.param(made_from(), id="empty"),
        pytest.param(made_from(C), id="another"),
        pytest.param(made_from(A), id="the-same"),
        pytest.param(made_from(UpstreamEdge(urn=A, type="VIEW")), id="another-type"),
        pytest.param(made_from(A, downstream=(C,)), id="downstream"),
    ],
)
def test_an_exported_edge_does_not_become_part_of_the_aspect(
    store: Store, given: Lineage | None
) -> None:
    put(store, entry(B, lineage=given))
    report(store, (A, B), columns=MAPPED)
    first = got(store, B)
    put(store, first)
    assert to_json(got(store, B)) == to_json(first)
    put(store, got(store, B))
    assert to_json(got(store, B)) == to_json(first)
    report(store)
    left = got(store, B).lineage
    assert all(edge.columns == () for edge in (left.upstream if left else ()))


def test_an_edge_that_a_reporter_retracts_is_deleted_although_it_was_exported_and_imported(
    store: Store,
) -> None:
    put(store, entry(B, lineage=made_from(C)))
    report(store, (A, B), columns=MAPPED)
    put(store, got(store, B))
    report(store)
    assert got(store, B).lineage == made_from(C)
    assert {edge.upstream for edge in store.lineage.all()} == {C}


def test_an_entry_keeps_its_own_order_until_reporters_say_something_else(store: Store) -> None:
    report(store, (A, B), columns=MAPPED)
    wanted = made_from(UpstreamEdge(urn=A, columns=MAPPED), C)
    put(store, entry(B, lineage=wanted))
    assert got(store, B).lineage == wanted
    assert stored_aspect(store, B) == made_from(C)
    report(store, (A, B), uses=USED)
    assert got(store, B).lineage == made_from(C, UpstreamEdge(urn=A, uses=USED))


def test_a_snapshot_does_not_silence_reporters(store: Store) -> None:
    report(store, (A, B), columns=MAPPED)
    put(store, entry(B))
    assert got(store, B).lineage == made_from(UpstreamEdge(urn=A, columns=MAPPED))


def test_edges_from_what_the_store_has_not_stay_inside(store: Store) -> None:
    report(store, (D, B), (A, B))
    assert got(store, B).lineage == made_from(A)
    put(store, entry(D))
    assert got(store, B).lineage == made_from(A, D)


def test_what_a_dangling_snapshot_says_comes_out_again(store: Store) -> None:
    report(store, (D, B))
    put(store, entry(B, lineage=made_from(D)))
    assert got(store, B).lineage == made_from(D)


def test_show_lists_both_directions_of_all_reporters(store: Store) -> None:
    put(store, entry(B, lineage=made_from(C)))
    report(store, (A, B), (B, D), columns=MAPPED)
    shown = store.get(B).lineage
    assert shown is not None
    assert [edge.urn for edge in shown.upstream] == [A, C]
    assert [edge.urn for edge in shown.downstream] == [D]
    assert store.get(C).lineage == made_from(downstream=(B,))


def test_told_lineage_goes_with_its_dataset(store: Store) -> None:
    put(store, entry(B, lineage=made_from(C, A)))
    put(store, msgspec.structs.replace(got(store, B), lineage=None))
    assert list(store.lineage.all()) == []


def test_an_entry_imported_again_keeps_when_its_edges_were_first_seen(store: Store) -> None:
    put(store, entry(B, lineage=made_from(C)))
    with store.transaction() as transaction:
        later = AT + timedelta(days=1)
        transaction.save_aspect(B, "lineage", made_from(C, A), writer="import", at=later)
    seen = {edge.upstream: edge.at for edge in store.lineage.all()}
    assert seen == {C: AT, A: AT + timedelta(days=1)}


def test_jobs_leave_without_what_only_reporters_speak_of(store: Store) -> None:
    given = Job(urn="lumos://airflow/told", name="told", platform="airflow", inputs=(D,))
    reported = Job(
        urn="lumos://dbt/m", name="m", platform="dbt", inputs=(A, D), outputs=(given.urn,)
    )
    with store.transaction() as transaction:
        transaction.entries.put_item(StoredItem("jobs", given.urn, to_json(given)), at=AT)
        transaction.lineage.report("dbt:shop", [], [reported], at=AT)
    assert list(LocalCatalog(store).items(JOBS)) == [
        given,
        msgspec.structs.replace(reported, inputs=(A,)),
    ]
    assert list(store.lineage.jobs()) == [given, reported]


def test_links_of_assumed_tables_are_counted_as_left_out(store: Store, tmp_path: Path) -> None:
    assumed, other = "lumos://sql/x", "lumos://sql/y"
    job = Job(urn="lumos://airflow/j", name="j", platform="airflow", inputs=(A,), outputs=(other,))
    with store.transaction() as transaction:
        transaction.entries.put_item(StoredItem("jobs", job.urn, to_json(job)), at=AT)
    report(store, (A, B), (assumed, B), (assumed, other), (A, job.urn))
    report(store, (assumed, other), reporter="sql:n")
    done = export(
        LocalCatalog(store),
        tmp_path / "s.json",
        ExportOptions(),
        at=AT,
        progress=lambda *_, **__: None,
    )
    assert (done.counts.lineage_edges, done.lineage_left_out) == (1, 2)
