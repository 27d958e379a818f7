"""Looking at the lineage in a store."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lumos.errors import LumosError
from lumos.lineage.view import LineageViewer
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, Edge, UseKind
from lumos.store import Database, Store

AT = datetime(2026, 1, 1, tzinfo=UTC)
RAW, CLEAN, REPORT, USERS = (
    f"lumos://s3/lake/{name}" for name in ("raw", "clean", "report", "users")
)


def edge(
    upstream: str, downstream: str, *columns: tuple[str, str], uses: tuple[ColumnUse, ...] = ()
) -> Edge:
    return Edge(
        upstream=upstream,
        downstream=downstream,
        origin="",
        at=AT,
        columns=tuple(
            ColumnMapping(upstream=a, downstream=b, derivation=Derivation.IDENTITY)
            for a, b in columns
        ),
        uses=uses,
    )


JOINED = ColumnUse(
    upstream="id", usage=UseKind.JOIN, expression="ON r.user_id = u.id", file="m.sql", line=4
)


@pytest.fixture
def viewer(tmp_path: Path) -> LineageViewer:
    store = Store.open(Database.sqlite(tmp_path / "lumos.db"), create=True)
    edges = [
        edge(RAW, CLEAN, ("user_id", "user_id"), ("ts", "at")),
        edge(USERS, CLEAN, ("country", "country"), uses=(JOINED,)),
        edge(CLEAN, REPORT, ("user_id", "reader")),
    ]
    with store.transaction() as transaction:
        transaction.lineage.report("sql:m.sql", edges, at=AT)
    return LineageViewer(lambda: store)


def test_both_sides_of_a_dataset_with_signed_distances(viewer: LineageViewer) -> None:
    report = viewer.show(CLEAN)
    assert {node.urn: node.depth for node in report.nodes} == {
        RAW: -1,
        USERS: -1,
        CLEAN: 0,
        REPORT: 1,
    }
    assert len(report.edges) == 3
    assert report.format_version == "1.0"
    assert not report.truncated


@pytest.mark.parametrize(
    ("side", "depth", "found"),
    [
        ("upstream", None, {REPORT, CLEAN, RAW, USERS}),
        ("upstream", 1, {REPORT, CLEAN}),
        ("downstream", None, {REPORT}),
    ],
)
def test_one_side_and_a_depth(
    viewer: LineageViewer, side: str, depth: int | None, found: set[str]
) -> None:
    report = viewer.show(REPORT, side=side, depth=depth)  # type: ignore[arg-type]
    assert {node.urn for node in report.nodes} == found
    assert report.truncated == (depth == 1)


def test_a_column_alone_with_what_only_decides_about_it(viewer: LineageViewer) -> None:
    report = viewer.show(USERS, column="id", side="downstream")
    assert [edge.uses for edge in report.edges if edge.upstream == USERS] == [(JOINED,)]
    assert REPORT in {node.urn for node in report.nodes}
    values = viewer.show(USERS, column="id", side="downstream", direct=True)
    assert (values.edges, [node.urn for node in values.nodes]) == ((), [USERS])
    raw = viewer.show(RAW, column="user_id")
    assert {(m.upstream, m.downstream) for edge in raw.edges for m in edge.columns} == {
        ("user_id", "user_id"),
        ("user_id", "reader"),
    }


def test_ways_between_two_columns(viewer: LineageViewer) -> None:
    report = viewer.paths((RAW, "user_id"), (REPORT, "reader"))
    assert [
        [(step.upstream_column, step.downstream_column) for step in path] for path in report.paths
    ] == [[("user_id", "user_id"), ("user_id", "reader")]]
    assert viewer.paths((RAW, "ts"), (REPORT, "reader")).paths == ()


def test_what_a_column_decides_about_is_reached_by_a_walk_and_by_a_way_alike(
    viewer: LineageViewer,
) -> None:
    ways = viewer.paths((USERS, "id"), (REPORT, "reader"))
    assert [[step.kind for step in way] for way in ways.paths] == [["INDIRECT", "INDIRECT"]]
    assert viewer.paths((USERS, "id"), (REPORT, "reader"), direct=True).paths == ()


@pytest.mark.parametrize("name", ["report", "lake/report", "lake.report", "REPORT"])
def test_what_only_lineage_speaks_of_is_found_by_its_name(viewer: LineageViewer, name: str) -> None:
    assert viewer.show(name).urn == REPORT


def test_a_dataset_that_nobody_knows_is_an_error(viewer: LineageViewer) -> None:
    with pytest.raises(LumosError, match="nothing"):
        viewer.show("lumos://s3/lake/nothing")


@pytest.mark.parametrize("format", ["json", "dot", "mermaid", "openlineage", "html"])
def test_every_format_names_every_dataset(viewer: LineageViewer, format: str) -> None:
    text = viewer.drawn(CLEAN, format)
    names = (
        ("raw", "users", "clean", "report") if format == "mermaid" else (RAW, USERS, CLEAN, REPORT)
    )
    assert all(name in text for name in names)
    if format == "openlineage":
        assert all(json.loads(line)["job"]["namespace"] == "lumos" for line in text.splitlines())


def test_another_format_is_refused(viewer: LineageViewer) -> None:
    with pytest.raises(LumosError, match="Unknown format 'png'"):
        viewer.drawn(CLEAN, "png")


def test_a_field_has_its_own_lineage(tmp_path: Path) -> None:
    store = Store.open(Database.sqlite(tmp_path / "lumos.db"), create=True)
    edges = [
        edge(RAW, CLEAN, ("address.geo.lat", "lat"), ("items[]", "item")),
        edge(CLEAN, REPORT, ("item.sku", "sku")),
    ]
    with store.transaction() as transaction:
        transaction.lineage.report("sql:m.sql", edges, at=AT)
    viewer = LineageViewer(lambda: store)

    def reached(column: str) -> set[tuple[str, str]]:
        report = viewer.show(RAW, column=column, side="downstream")
        return {(each.urn, name) for each in report.nodes for name in each.columns} - {
            (RAW, column)
        }

    assert reached("address.street") == set()
    assert (CLEAN, "lat") in reached("address")
    assert (REPORT, "sku") in reached("items.sku")
    assert REPORT not in {urn for urn, _ in reached("items[].cost")}
    assert viewer.show(RAW, column="address.geo.lat").edges[0].type == "TRANSFORMED"
    (path,) = viewer.paths((RAW, "items"), (REPORT, "sku")).paths
    assert [step.downstream_column for step in path] == ["item", "sku"]
