"""Who breaks by a change, asked of a store."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lumos import Lumos
from lumos.errors import MisuseError
from lumos.impact.context import ImpactContext
from lumos.impact.reports import DownstreamReport, ImpactReport
from lumos.model.catalog import Job
from lumos.model.dataset import Owner, Ownership
from lumos.model.json_codec import to_json
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, Edge, Script, UseKind
from lumos.store import Database, Store
from lumos.store.errors import UnknownDataset
from schema_histories import day, record

AT = datetime(2024, 3, 1, tzinfo=UTC)
EVENTS = "lumos://file/lake/events"
FIRST, SECOND = "lumos://file/lake/first", "lumos://file/lake/second"
SCHEMA = "user_id STRING NOT NULL\nday DATE\namount INT64"


@pytest.fixture
def store(workplace: Path) -> Store:
    store = Store.open(Database.sqlite(workplace / ".lumos/lumos.db"), create=True)
    record(store, EVENTS, SCHEMA, day("2024-01-01"))
    return store


def sql(
    store: Store, made: str, text: str, *, reads: Sequence[str] = (EVENTS,),
    columns: tuple[ColumnMapping, ...] = (), uses: tuple[ColumnUse, ...] = (),
) -> None:  # fmt: skip
    """A model as `lumos lineage ingest` takes it in; tables are called by the ends of paths."""
    name = made.rpartition("/")[2]
    origin = f"sql:{name}.sql"
    edges = [
        Edge(upstream=each, downstream=made, origin=origin, at=AT, columns=columns, uses=uses)
        for each in reads
    ]
    tables = tuple(((urn.rpartition("/")[2],), urn) for urn in (made, *reads))
    script = Script(
        sql=f"create table {name} as\n{text}",
        dialect="spark",
        file=f"{name}.sql",
        dataset=made,
        tables=tables,
    )
    with store.transaction() as transaction:
        transaction.lineage.report(origin, edges, scripts=[script], at=AT)


def edge(upstream: str, downstream: str, origin: str = "declared:x", **facts: object) -> Edge:
    return Edge(upstream=upstream, downstream=downstream, origin=origin, at=AT, **facts)  # type: ignore[arg-type]


def report(store: Store, *edges: Edge, jobs: Sequence[Job] = ()) -> None:
    with store.transaction() as transaction:
        for origin in dict.fromkeys(each.origin for each in edges):
            own = [each for each in edges if each.origin == origin]
            transaction.lineage.report(origin, own, jobs, at=AT)


def impact(change: str = "user_id: STRING -> INT64") -> ImpactReport:
    return Lumos().impact.of(EVENTS, change=[change])


def only(report: ImpactReport) -> DownstreamReport:
    (row,) = report.downstream
    return row


def test_a_change_is_followed_through_the_sql_that_is_kept(store: Store) -> None:
    sql(store, FIRST, "select user_id as uid, day from events")
    sql(store, SECOND, "select count(*) as n\nfrom first\nwhere uid like 'a%'", reads=[FIRST])
    found = impact()
    assert [(row.urn, row.verdict, row.distance) for row in found.downstream] == [
        (FIRST, "BREAKING", 1),
        (SECOND, "BREAKING", 2),
    ]
    first, second = found.downstream
    assert first.columns == ("uid",)
    (column,) = first.changed
    assert (column.before, column.after) == ("STRING NOT NULL", "INT64 NOT NULL")
    assert column.path == (f"{EVENTS}#user_id", f"{FIRST}#uid")
    reason = second.reasons[0]
    assert (reason.usage, reason.file, reason.line) == ("FILTER", "second.sql", 4)
    assert reason.path == column.path
    assert found.order == (FIRST, SECOND)
    assert found.coverage == 1.0
    assert found.summary.breaking == found.summary.datasets == 2


def test_what_uses_nothing_of_it_is_not_affected(store: Store) -> None:
    sql(store, FIRST, "select day from events")
    sql(store, SECOND, "select day from first", reads=[FIRST])
    found = impact()
    assert [(row.verdict, row.affected) for row in found.downstream] == [("COMPATIBLE", False)] * 2
    assert found.recommendations == ()
    assert (found.summary.affected, found.summary.compatible) == (0, 2)


def test_edges_decide_where_no_sql_is_kept(store: Store) -> None:
    mapping = ColumnMapping(
        upstream="user_id", downstream="uid", derivation=Derivation.IDENTITY, file="job.py", line=7
    )
    use = ColumnUse(upstream="user_id", usage=UseKind.JOIN, expression="a.user_id = b.user_id")
    report(store, edge(EVENTS, FIRST, columns=(mapping,)), edge(EVENTS, SECOND, uses=(use,)))
    rows = {row.urn: row for row in impact().downstream}
    assert [rows[each].verdict for each in (FIRST, SECOND)] == ["BREAKING", "BREAKING"]
    assert rows[FIRST].columns == ("uid",)
    assert rows[SECOND].reasons[0].clause == "a.user_id = b.user_id"


def test_an_edge_without_sql_and_columns_is_undetermined(store: Store) -> None:
    report(store, edge(EVENTS, FIRST))
    found = impact()
    row = only(found)
    assert row.verdict == "UNDETERMINED"
    assert "no SQL, no column lineage" in row.reasons[0].text
    assert found.coverage == 0.0
    assert found.recommendations == (
        f"Review {FIRST} manually: the impact could not be determined",
    )


def test_an_edge_that_only_repeats_what_the_sql_says_adds_no_doubt(store: Store) -> None:
    sql(store, FIRST, "select cast(user_id as string) as uid from events")
    assert only(impact()).verdict == "COMPATIBLE"
    report(store, edge(EVENTS, FIRST, origin="openlineage:run"))
    assert only(impact()).verdict == "COMPATIBLE"
    other = ColumnMapping(upstream="user_id", downstream="other")
    report(store, edge(EVENTS, FIRST, origin="openlineage:run", columns=(other,)))
    assert only(impact()).verdict != "COMPATIBLE"


def test_a_job_between_datasets_is_none_of_them(store: Store) -> None:
    job = "lumos://airflow/etl/load"
    report(
        store, edge(EVENTS, job), edge(job, FIRST),
        jobs=[Job(urn=job, name="load", platform="airflow", inputs=(EVENTS,), outputs=(FIRST,))],
    )  # fmt: skip
    context = ImpactContext(store, EVENTS)
    assert context.datasets == {FIRST}
    assert context.links(EVENTS) == ((EVENTS, FIRST),)
    row = only(impact())
    assert (row.urn, row.verdict, row.distance) == (FIRST, "UNDETERMINED", 1)


def test_of_several_texts_of_a_reporter_the_one_that_makes_it_counts(store: Store) -> None:
    texts = [
        Script(sql="create table first as select day from events", dialect="spark",
               tables=((("first",), FIRST), (("events",), EVENTS))),
        Script(sql="create table second as select user_id from events", dialect="spark",
               tables=((("second",), SECOND), (("events",), EVENTS))),
    ]  # fmt: skip
    with store.transaction() as transaction:
        edges = [edge(EVENTS, FIRST, "log:x"), edge(EVENTS, SECOND, "log:x")]
        transaction.lineage.report("log:x", edges, scripts=texts, at=AT)
    rows = {row.urn: row.verdict for row in impact().downstream}
    assert rows == {FIRST: "COMPATIBLE", SECOND: "BREAKING"}


def test_data_that_flows_in_a_circle_ends_the_walk(store: Store) -> None:
    sql(store, FIRST, "select e.user_id from events e join second s on e.user_id = s.user_id",
        reads=[EVENTS, SECOND])  # fmt: skip
    sql(store, SECOND, "select user_id from first", reads=[FIRST])
    found = impact()
    assert {row.verdict for row in found.downstream} == {"BREAKING"}
    assert f"the lineage has a cycle: {FIRST} and {SECOND}" in found.remarks


def test_owners_to_notify_are_named(store: Store) -> None:
    record(store, FIRST, "uid STRING", day("2024-01-02"))
    owners = Ownership(owners=(Owner(name="ml-platform", kind="group"), Owner(name="data-team")))
    with store.transaction() as transaction:
        transaction.save_aspect(FIRST, "ownership", owners, writer="test", at=AT)
    sql(store, FIRST, "select user_id as uid from events")
    found = impact()
    row = only(found)
    assert (row.owner, row.owners) == ("ml-platform", ("ml-platform", "data-team"))
    assert found.recommendations[0] == "Notify data-team and ml-platform before deploying"


def test_a_renaming_is_one_change(store: Store) -> None:
    sql(store, FIRST, "select user_id from events")
    found = Lumos().impact.of(EVENTS, rename=["user_id -> uid"], drop=["amount"])
    assert [(each.kind, each.path, each.before, each.after) for each in found.changes] == [
        ("renamed", "user_id", "user_id", "uid"),
        ("removed", "amount", "INT64", None),
    ]
    assert found.change == found.changes[0]
    assert "needs user_id" in only(found).reasons[0].text


def test_a_proposed_schema_is_compared_and_changed_further(store: Store, tmp_path: Path) -> None:
    sql(store, FIRST, "select user_id, amount from events")
    file = tmp_path / "events.schema"
    file.write_text(SCHEMA.replace("user_id STRING", "user_id INT64"), encoding="utf-8")
    found = Lumos().impact.of(EVENTS, proposed=file, drop=["amount"])
    assert [(each.kind, each.path) for each in found.changes] == [
        ("removed", "amount"),
        ("type_changed", "user_id"),
    ]
    file.write_text(SCHEMA, encoding="utf-8")
    with pytest.raises(MisuseError, match="Nothing changes"):
        Lumos().impact.of(EVENTS, proposed=file)
    file.write_text("user_id STRNG", encoding="utf-8")
    with pytest.raises(MisuseError, match=r"events.schema:1:9.*STRNG"):
        Lumos().impact.of(EVENTS, proposed=file)


def test_without_any_lineage_it_is_said_what_is_not_known(store: Store) -> None:
    assert store.lineage.count() == 0
    found = impact()
    assert (found.downstream, found.coverage) == ((), 0.0)
    assert f"no lineage of {EVENTS} is known, so its readers are unknown" in found.remarks[0]
    assert "lumos lineage ingest" in found.remarks[0]


def test_at_the_end_of_the_stream_nothing_is_known_to_read_it(store: Store) -> None:
    report(store, edge(FIRST, EVENTS))
    found = impact()
    assert (found.downstream, found.coverage) == ((), 1.0)
    assert "no ingested lineage reads" in found.remarks[0]


def test_a_dataset_that_only_lineage_knows_has_the_schema_that_its_sql_gives(store: Store) -> None:
    sql(store, FIRST, "select user_id as uid, day from events")
    sql(store, SECOND, "select upper(uid) as u from first", reads=[FIRST])
    found = Lumos().impact.of("first", change=["uid: STRING -> INT64"])
    assert only(found).urn == SECOND
    assert "inferred from the SQL that writes it" in found.remarks[0]
    with pytest.raises(MisuseError, match="has no column 'nobody'"):
        Lumos().impact.of("first", drop=["nobody"])


def test_a_dataset_without_any_schema_is_changed_by_words_alone(store: Store) -> None:
    use = ColumnUse(upstream="user_id", usage=UseKind.JOIN)
    report(store, edge("lumos://x/raw", FIRST, uses=(use,)))
    found = Lumos().impact.of("lumos://x/raw", change=["user_id: STRING -> INT64"])
    assert only(found).verdict == "BREAKING"
    with pytest.raises(MisuseError, match="The schema of lumos://x/raw is unknown"):
        Lumos().impact.of("lumos://x/raw", change=["user_id: INT64"])


def test_what_is_not_there_and_what_is_not_said_is_refused(store: Store) -> None:
    assert store.lineage.count() == 0
    with pytest.raises(UnknownDataset):
        Lumos().impact.of("nobody", drop=["x"])
    with pytest.raises(MisuseError, match="No changes given"):
        Lumos().impact.of(EVENTS)


def test_a_dataset_that_is_gone_is_marked(store: Store) -> None:
    record(store, FIRST, "uid STRING", day("2024-01-02"))
    sql(store, FIRST, "select user_id as uid from events")
    with store.transaction() as transaction:
        known = transaction.known(FIRST)
        assert known is not None
        transaction.save(type(known)(**{
            **{name: getattr(known, name) for name in known.__struct_fields__},
            "state": "missing",
        }))  # fmt: skip
    found = impact()
    assert only(found).gone
    assert f"deleted, but their pipelines may still run: {FIRST}" in found.remarks[0]


def diff_file(before: str, after: str, tmp_path: Path) -> Path:
    """What `lumos schema diff` writes for a folder in which one schema changes."""
    for folder, text in (("old", before), ("new", after)):
        file = tmp_path / folder / "file/lake/events.schema"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# urn: {EVENTS}\n{text}\n", encoding="utf-8")
    Lumos().schema.diff(tmp_path / "old", tmp_path / "new", output=tmp_path / "schema_diff.json")
    return tmp_path / "schema_diff.json"


CHANGED = "user_id INT64 NOT NULL\nday DATE NOT NULL\ncountry STRING"


OTHER = "user_id BOOLEAN\nday DATE"


@pytest.mark.parametrize("stored", [SCHEMA, CHANGED, OTHER])
def test_a_report_of_differences_is_judged_whichever_side_the_store_has(
    store: Store, tmp_path: Path, stored: str
) -> None:
    sql(store, FIRST, "select user_id as uid from events")
    sql(store, SECOND, "select amount from events")
    file = diff_file(SCHEMA, CHANGED, tmp_path)
    if stored != SCHEMA:
        record(store, EVENTS, stored, day("2024-02-01"))
    found = Lumos().impact.of_changes(file)
    assert found.headline == "This changes 1 schema, affecting 2 downstream datasets"
    (report,) = found.datasets
    assert {(each.kind, each.path) for each in report.changes} == {
        ("removed", "amount"), ("type_changed", "user_id"), ("nullability", "day"),
        ("added", "country"),
    }  # fmt: skip
    assert [row.verdict for row in report.downstream] == ["BREAKING", "BREAKING"]
    assert (found.summary.schemas, found.summary.breaking, found.coverage) == (1, 2, 1.0)
    assert ("matches neither the state before" in " ".join(found.remarks)) is (stored == OTHER)


def test_another_order_of_columns_is_called_so(store: Store, tmp_path: Path) -> None:
    sql(store, FIRST, "select user_id as uid from events")
    proposed = tmp_path / "events.schema"
    proposed.write_text("\n".join(reversed(SCHEMA.splitlines())), encoding="utf-8")
    found = Lumos().impact.of(EVENTS, proposed=proposed)
    assert found.headline.startswith(f"Reordering the columns of {EVENTS}: ")


def test_a_dataset_that_goes_breaks_all_that_hangs_on_it(store: Store, tmp_path: Path) -> None:
    sql(store, FIRST, "select count(*) as n from events")
    sql(store, SECOND, "select n from first", reads=[FIRST])
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "b.schema").write_text("# urn: lumos://file/lake/b\nid INT64\n")
    (tmp_path / "old/a.schema").write_text(f"# urn: {EVENTS}\n{SCHEMA}\n", encoding="utf-8")
    (tmp_path / "new/c.schema").write_text("# urn: lumos://file/lake/c\nid INT64\n")
    Lumos().schema.diff(tmp_path / "old", tmp_path / "new", output="schema_diff.json")
    found = Lumos().impact.of_changes("schema_diff.json")
    (report,) = found.datasets
    assert report.headline == f"Dropping {EVENTS}: of 2 downstream datasets, 2 break"
    assert [row.reasons[0].text for row in report.downstream] == [
        f"reads {EVENTS}, which is removed",
        f"is derived from {FIRST}, which breaks",
    ]
    assert found.remarks == ("1 dataset is new; new datasets have no readers yet",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a report of lumos schema diff"),
        ('{"datasets": 3}', "is not a report of lumos schema diff"),
        (None, "File not found"),
    ],
)
def test_a_file_that_is_no_report_is_refused(
    store: Store, tmp_path: Path, text: str | None, message: str
) -> None:
    assert store.lineage.count() == 0
    file = tmp_path / "changes.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(MisuseError, match=message):
        Lumos().impact.of_changes(file)


def test_the_json_has_the_promised_names(store: Store) -> None:
    sql(store, FIRST, "select user_id as uid from events")
    found = Lumos().impact.drawn(impact(), "json")
    assert to_json(impact(), indent=2).decode() + "\n" == found
    for name in (
        "format_version", "change", "urn", "path", "kind", "before", "after", "downstream",
        "verdict", "distance", "owner", "columns", "reasons", "text", "usage", "clause", "file",
        "line", "recommendations", "coverage",
    ):  # fmt: skip
        assert f'"{name}":' in found
