"""Files of all kinds that tell of lineage, into the store."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event as sqlalchemy_event

from lineage.dbt.dbt_projects import manifest, write_project
from lineage.openlineage.test_openlineage import event
from lumos import Lumos
from lumos.config.settings import Settings
from lumos.errors import MisuseError, UnknownName
from lumos.lineage.reported_lineage import ResolutionMethod
from lumos.lineage.reports import LineageIngestReport
from recorded_lake import RecordedLake

ORDERS = "lumos://file/lake/raw/orders"
# Old reads are forgotten.
YESTERDAY = (datetime.now(UTC) - timedelta(days=1)).isoformat()
EVENTS = "lumos://file/lake/raw/events"


@pytest.fixture
def lake(seen: RecordedLake, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedLake:
    """Two datasets, and a working folder for files that tell of them."""
    monkeypatch.chdir(workplace)
    seen.see("raw/orders", "id INT64\ncustomerId INT64\namount FLOAT64\ncountry STRING")
    seen.see("raw/events", "id INT64\nat TIMESTAMP(us)")
    return seen


def write(name: str, text: str) -> Path:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def near(*names: str) -> tuple[str, ...]:
    """Names from the working folder: a store on a server knows files by their whole paths."""
    return tuple(name.replace(f"{Path.cwd()}/", "") for name in names)


def ends(lake: RecordedLake) -> set[tuple[str, str, str]]:
    edges = lake.store.lineage.all()
    return {(each.upstream, each.downstream, *near(each.origin)) for each in edges}


def columns(lake: RecordedLake, downstream: str) -> set[tuple[str, str]]:
    return {
        (mapping.upstream, mapping.downstream)
        for edge in lake.store.lineage.edges_of(downstream, "upstream")
        for mapping in edge.columns
    }


def made_by(lake: RecordedLake, file: str) -> str:
    """The only dataset that a file of SQL writes."""
    (urn,) = {down for _, down, origin in ends(lake) if origin == f"sql:{file}"}
    return urn


def problems(report: LineageIngestReport) -> list[tuple[str, int | None]]:
    return [(*near(each.place), each.line) for each in report.problems]


def test_a_folder_of_sql_is_recorded_with_columns_from_the_store(lake):
    write(
        "models/totals.sql", "create table totals as\nselect * from raw.orders where country = 'DE'"
    )
    report = lake.lumos.lineage.ingest("models")
    assert ends(lake) == {(ORDERS, "lumos://sql/totals", "sql:models/totals.sql")}
    assert columns(lake, "lumos://sql/totals") == {
        ("id", "id"), ("customerId", "customerid"), ("amount", "amount"), ("country", "country"),
    }  # fmt: skip
    (use,) = lake.store.lineage.edges_of(ORDERS, "downstream")[0].uses
    assert (use.upstream, *near(use.file), use.line) == ("country", "models/totals.sql", 2)
    assert report.coverage.share == 1.0
    assert {each.name: each.way for each in report.tables} == {
        "raw.orders": ResolutionMethod.NAME,
        "totals": ResolutionMethod.ASSUMED,
    }


def test_it_is_announced_how_far_a_long_file_is(lake):
    write("models/load.sql", "".join(f"insert into t{n} values (1);\n" for n in range(1_000)))
    shares = []

    def progress(step, *, share=None, **_):
        shares.append((step, share))

    lake.lumos.lineage.ingest("models", progress=progress)
    reported = [share for step, share in shares if step == "Reading SQL"]
    assert reported[0] is None
    assert len(reported) > 5
    assert reported[1:] == sorted(reported[1:])


@pytest.mark.parametrize("file", ["tickets.jsonl", "tickets.csv.gz", "tickets.snappy.parquet"])
def test_a_query_on_a_table_reads_the_file_of_that_name_whatever_its_extensions(lake, file):
    lake.see(f"raw/{file}", "id INT64\nstatus STRING")
    write("models/open_tickets.sql", "create table open_tickets as select id from tickets")
    lake.lumos.lineage.ingest("models")
    for name in ("tickets", file):
        report = lake.lumos.impact.of(name, drop=["id"])
        assert [each.urn for each in report.downstream] == ["lumos://sql/open_tickets"]
        assert lake.lumos.show(name).dataset["name"] == "tickets"


def test_tables_that_match_no_dataset_are_counted_with_their_nearest_names(lake):
    write("models/totals.sql", "select id from raw.orderz")
    write("models/daily.sql", "select id from totals join raw.events using (id)")
    write("models/other.sql", "select id from archive.events join wholly_unlike using (id)")
    report = lake.lumos.lineage.ingest("models")
    assert (report.coverage.tables, report.coverage.tables_found) == (5, 2)
    assert [(each.name, each.urn, each.nearest) for each in report.not_found] == [
        ("archive.events", "lumos://sql/archive/events", "raw.events"),
        ("raw.orderz", "lumos://sql/raw/orderz", "raw.orders"),
        ("wholly_unlike", "lumos://sql/wholly_unlike", None),
    ]


def test_a_table_made_by_an_earlier_ingest_is_found(lake):
    write("models/totals.sql", "select id from raw.orders")
    lake.lumos.lineage.ingest("models")
    write("reports/daily.sql", "select id from totals")
    report = lake.lumos.lineage.ingest("reports")
    assert (report.coverage.tables, report.not_found) == (1, ())


def test_queries_in_files_with_a_generic_name_are_named_after_their_folders(lake):
    write("sql/sales/totals/query.sql", "select id from raw.orders")
    write("sql/sales/clicks/query.sql", "select id from raw.events")
    report = lake.lumos.lineage.ingest("sql")
    assert sorted(str(each.model) for each in report.reporters) == ["clicks", "totals"]
    assert {end[:2] for end in ends(lake)} == {
        (ORDERS, made_by(lake, "sql/sales/totals/query.sql")),
        (EVENTS, made_by(lake, "sql/sales/clicks/query.sql")),
    }
    if (Path.cwd() / "lumos.db").exists():
        # Beside the store; elsewhere the whole path is the name.
        assert made_by(lake, "sql/sales/totals/query.sql") == "lumos://sql/sql/sales/totals"


def test_the_names_of_queries_can_be_taken_from_their_paths(lake):
    write("sql/sales/totals/query.sql", "select * from {{ this }} union all select id from orders")
    report = lake.lumos.lineage.ingest("sql", name_from="{schema}/{table}/*.sql")
    assert [each.model for each in report.reporters] == ["sales.totals"]
    write("lumos.yaml", "sql_name_from: '{schema}_{table}/*.sql'\n")
    write("sql/crm_users/query.sql", "select id from raw.orders")
    lumos = Lumos(config="lumos.yaml")
    assert {each.model for each in lumos.lineage.ingest("sql", dry_run=True).reporters} == {
        "totals", "crm.users",
    }  # fmt: skip


def test_two_files_that_define_one_dataset_are_reported_with_both_names(lake):
    write("models/totals.sql", "select id from raw.orders")
    write("models/views.sql", "create view totals as select id from raw.events")
    write("models/load.sql", "insert into totals select id from raw.events")
    report = lake.lumos.lineage.ingest("models")
    (problem,) = report.problems
    assert (*near(problem.place), problem.severity) == ("models/totals.sql", "remark")
    assert near(problem.reason) == (
        f"{near(made_by(lake, 'models/totals.sql'))[0]} is defined in 2 files: models/totals.sql, "
        "models/views.sql. The lineage of all of them is kept.",
    )
    assert made_by(lake, "models/load.sql") == made_by(lake, "models/totals.sql")


@pytest.mark.parametrize(
    "maker",
    [
        "create table visits as select * except (a) replace (upper(b) as b), c from unknown",
        "insert into visits (c) select c from unknown",
        "update visits set c = 1 where true",
    ],
)
def test_a_file_that_names_some_columns_of_a_table_does_not_close_it(lake, maker):
    write("models/maker.sql", maker)
    write("models/reader.sql", "create table reader as select c, d from visits")
    report = lake.lumos.lineage.ingest("models", dialect="bigquery")
    assert columns(lake, "lumos://bigquery/reader") == {("c", "c"), ("d", "d")}
    assert not [each.reason for each in report.problems if "not among" in each.reason]


@pytest.mark.parametrize(
    "maker",
    [
        "create table visits as select a, b from unknown",
        "create view visits as select a, b from unknown",
        "select a, b into visits from unknown",
        "insert into visits select a, b from unknown",
    ],
)
def test_a_file_that_fills_all_columns_of_a_table_defines_them_for_other_files(lake, maker):
    write("models/maker.sql", maker)
    write("models/reader.sql", "create table reader as select * from visits")
    lake.lumos.lineage.ingest("models", dialect="tsql")
    assert columns(lake, "lumos://mssql/reader") == {("a", "a"), ("b", "b")}


def test_a_second_ingest_changes_nothing(lake):
    write("models/totals.sql", "-- All of it\nselect id from orders")
    write(
        "lineage.yaml", "lineage:\n  - {from: totals, to: lumos://tableau/sales, columns: [id]}\n"
    )
    write("events.ndjson", json.dumps(event()))
    write_project(Path("target"), manifest=manifest())
    first = lake.lumos.lineage.ingest(".")
    before = sorted(lake.store.lineage.all(), key=str)
    second = lake.lumos.lineage.ingest(".")
    after = sorted(lake.store.lineage.all(), key=str)
    assert first.edges.added == second.edges.unchanged == len(before) > 0
    assert (second.edges.added, second.edges.changed, second.edges.removed, second.described) == (
        0,
        0,
        0,
        0,
    )
    assert [(each.at, each.created_by) for each in before] == [
        (each.at, each.created_by) for each in after
    ]


def test_a_dry_run_writes_nothing(lake):
    write("a.sql", "create table a as select id from orders")
    report = lake.lumos.lineage.ingest("a.sql", dry_run=True)
    assert (report.dry_run, report.edges.added) == (True, 1)
    assert ends(lake) == set()


def test_a_dry_run_needs_no_store(workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    write("a.sql", "create table a as select id from orders")
    lumos = Lumos(overrides={"storage.path": str(workplace / "new.db")})
    assert lumos.lineage.ingest("a.sql", dry_run=True).edges.added == 1
    assert not (workplace / "new.db").exists()


def test_each_reporter_answers_for_its_own_edges_alone(lake):
    file = write("a.sql", "create table totals as select id from orders")
    lake.lumos.lineage.add(
        "raw/orders", "lumos://sql/totals", columns={"id": "id"}, allow_dangling=True
    )
    lake.lumos.lineage.ingest("a.sql")
    assert {origin for _, _, origin in ends(lake)} == {"user", "sql:a.sql"}
    file.write_text("create table totals as select id from events")
    lake.lumos.lineage.ingest("a.sql")
    assert ends(lake) == {
        (ORDERS, "lumos://sql/totals", "user"), (EVENTS, "lumos://sql/totals", "sql:a.sql"),
    }  # fmt: skip


def test_a_file_that_vanished_from_a_folder_says_nothing_more(lake):
    write("models/a.sql", "create table a as select id from orders")
    gone = write("models/b.sql", "create table b as select id from orders")
    write("other/b.sql", "create table c as select id from orders")
    lake.lumos.lineage.ingest("models", "other")
    gone.unlink()
    report = lake.lumos.lineage.ingest("models")
    assert (near(*report.gone), report.edges.removed) == (("sql:models/b.sql",), 1)
    assert {origin for _, _, origin in ends(lake)} == {"sql:models/a.sql", "sql:other/b.sql"}
    assert near(*lake.lumos.lineage.ingest("models").gone) == ()


def test_a_folder_with_nothing_left_is_doubted(lake):
    file = write("models/a.sql", "create table a as select id from orders")
    lake.lumos.lineage.ingest("models")
    file.unlink()
    assert near(*lake.lumos.lineage.ingest("models").held) == ("sql:models/a.sql",)
    assert len(ends(lake)) == 1
    assert near(*lake.lumos.lineage.ingest("models", accept_removals=True).gone) == (
        "sql:models/a.sql",
    )
    assert ends(lake) == set()


def test_a_folder_that_cannot_be_read_takes_nothing_away(lake, monkeypatch):
    write("models/a.sql", "create table a as select id from orders")
    hidden = write("models/deep/b.sql", "create table b as select id from orders")
    lake.lumos.lineage.ingest("models")
    real = os_walk_with_failure(hidden.parent)
    monkeypatch.setattr("lumos.lineage.input_files.os.walk", real)
    report = lake.lumos.lineage.ingest("models")
    assert near(*report.held) == ("sql:models/deep/b.sql",)
    assert len(ends(lake)) == 2
    assert ("models/deep", None) in problems(report)


def os_walk_with_failure(folder: Path):
    import os

    walk = os.walk

    def failing(top, onerror):
        for place, folders, files in walk(top):
            folders[:] = [name for name in folders if Path(place, name) != folder]
            yield place, folders, files
        onerror(PermissionError(13, "Permission denied", str(folder)))

    return failing


def test_a_file_that_can_no_longer_be_read_says_what_it_said_before(lake):
    file = write("edges.yaml", "lineage:\n  - {from: orders, to: events}\n")
    lake.lumos.lineage.ingest("edges.yaml")
    file.write_text("lineage:\n  - {from: orders}\n")
    report = lake.lumos.lineage.ingest("edges.yaml")
    assert near(*report.failed) == ("edges.yaml",)
    assert problems(report) == [("edges.yaml", 2)]
    assert len(ends(lake)) == 1


def test_a_statement_that_cannot_be_parsed_is_named_and_the_rest_goes_on(lake):
    write("a.sql", "select from where;\n\ncreate table b as select id from orders;")
    report = lake.lumos.lineage.ingest("a.sql")
    assert problems(report) == [("a.sql", 1)]
    assert ends(lake) == {(ORDERS, "lumos://sql/b", "sql:a.sql")}


@pytest.mark.parametrize(
    "text",
    [
        "create tabel a as selec id fro orders;",
        "create table a as selec id from orders;",
        "inser into a select",
        "create table a as select 'id from orders;",
    ],
)
def test_a_file_that_is_no_longer_understood_says_what_it_said_before(lake, text):
    good = "create table a as select id from orders;\n-- Owner: sales-team\n"
    file = write("models/a.sql", good + "insert into raw.events select id, null from orders;")
    lake.lumos.lineage.ingest("models")
    before = ends(lake)
    assert len(before) == 2
    file.write_text(text)
    report = lake.lumos.lineage.ingest("models")
    assert ends(lake) == before
    assert (report.edges.unchanged, report.edges.removed) == (2, 0)
    (remark,) = [each for each in report.problems if each.severity == "remark"]
    assert near(remark.place) == ("models/a.sql",)
    assert EVENTS in remark.reason


def test_of_a_broken_statement_alone_the_earlier_word_stays(lake):
    file = write(
        "a.sql",
        "create table a as select id from orders;\n"
        "-- All events\ninsert into raw.events select id, null from orders;",
    )
    lake.lumos.lineage.ingest("a.sql")
    broken = "-- All events\ninsert in raw.events selec id;\n"
    file.write_text(f"{broken}create table a as select id from events;")
    lake.lumos.lineage.ingest("a.sql")
    assert {(up, down) for up, down, _ in ends(lake)} == {
        (EVENTS, "lumos://sql/a"), (ORDERS, EVENTS),
    }  # fmt: skip
    assert lake.store.get(EVENTS).documentation.description == "All events"
    file.write_text("create table a as select id from events;")
    lake.lumos.lineage.ingest("a.sql")
    assert {(up, down) for up, down, _ in ends(lake)} == {(EVENTS, "lumos://sql/a")}
    assert lake.store.get(EVENTS).documentation.description is None


def test_models_made_from_models_know_their_columns(lake):
    write("m/c.sql", "select * from {{ ref('b') }}")
    write("m/b.sql", "select * from {{ ref('a') }}")
    write("m/a.sql", "select id, amount, 1 as flag from {{ source('raw', 'orders') }}")
    report = lake.lumos.lineage.ingest("m")
    assert report.coverage.share == 1.0
    assert columns(lake, made_by(lake, "m/c.sql")) == {
        ("id", "id"), ("amount", "amount"), ("flag", "flag"),
    }  # fmt: skip
    assert {each.model for each in report.reporters} == {"a", "b", "c"}


def test_the_same_table_meets_itself_under_another_casing_or_quoting(lake):
    write("m/a.sql", 'create table Mart.KPIS as select id from "raw"."orders"')
    write("m/b.sql", 'insert into other select * from "mart"."kpis"')
    write("m/c.sql", "create table more as select ID from Raw.ORDERS")
    lake.lumos.lineage.ingest("m")
    assert {(up, down) for up, down, _ in ends(lake)} == {
        (ORDERS, "lumos://sql/mart/kpis"),
        ("lumos://sql/mart/kpis", "lumos://sql/other"),
        (ORDERS, "lumos://sql/more"),
    }


def test_a_declared_column_that_a_dataset_does_not_have_is_a_remark(lake):
    write(
        "e.yaml",
        "lineage:\n"
        "  - from: raw/orders\n"
        "    to: raw/events\n"
        "    columns: [id, {from: CUSTOMERID, to: at}, {from: price, to: cost}]\n"
        "    uses: [{column: region, usage: FILTER}]\n"
        "  - {from: raw/orders, to: lumos://tableau/sales, columns: [amount]}\n",
    )
    report = lake.lumos.lineage.ingest("e.yaml")
    assert [(each.line, each.reason) for each in report.problems] == [
        (2, f"{ORDERS} has no column 'price'."),
        (2, f"{EVENTS} has no column 'cost'."),
        (2, f"{ORDERS} has no column 'region'."),
    ]
    assert {each.severity for each in report.problems} == {"remark"}


@pytest.mark.parametrize("together", [True, False])
def test_a_declared_name_meets_the_same_name_in_sql(lake, together):
    write("m.sql", "create table dw.t as select id from dw.s")
    write("e.yaml", "lineage:\n  - {from: DW.T, to: mart.kpis, columns: [id]}\n")
    report = lake.lumos.lineage.ingest("m.sql", *["e.yaml"] * together, dialect="postgres")
    if not together:
        report = lake.lumos.lineage.ingest("e.yaml")
    assert {(up, down) for up, down, _ in ends(lake)} == {
        ("lumos://postgres/dw/s", "lumos://postgres/dw/t"),
        ("lumos://postgres/dw/t", f"lumos://{'postgres' if together else 'sql'}/mart/kpis"),
    }
    assert ("dw.t", "lumos://postgres/dw/t") in {(each.name, each.urn) for each in report.tables}


def test_a_declared_name_meets_the_table_of_a_dbt_project(lake):
    write_project(Path("target"), manifest=manifest())
    write("e.yaml", "lineage:\n  - {from: shop.analytics.orders, to: lumos://tableau/sales}\n")
    lake.lumos.lineage.ingest("target", "e.yaml")
    (reported,) = lake.store.lineage.edges_of("lumos://tableau/sales", "upstream")
    assert reported.upstream.startswith("lumos://postgres")
    assert lake.store.lineage.edges_of(reported.upstream, "upstream")


def test_one_name_that_means_two_datasets_is_reported_twice(lake):
    write("m.sql", "create table dw.t as select id from public.orders")
    other = {"namespace": "snowflake://acc", "name": "dw.t"}
    write("ol.json", json.dumps(event(outputs=[other])))
    report = lake.lumos.lineage.ingest("m.sql", "ol.json", dialect="postgres")
    urns = {each.urn for each in report.tables if each.name.lower() == "dw.t"}
    assert urns == {down for _, down, _ in ends(lake)}
    assert len(urns) == 2


def test_a_name_that_several_datasets_have_is_reported_and_not_guessed(lake):
    lake.see("processed/orders", "id INT64")
    write("a.sql", "create table t as select id from orders")
    report = lake.lumos.lineage.ingest("a.sql")
    (ambiguous,) = [each for each in report.tables if each.way is ResolutionMethod.AMBIGUOUS]
    assert ambiguous.candidates == ("lumos://file/lake/processed/orders", ORDERS)
    assert any("sql_names" in each.reason for each in report.problems)
    assert {up for up, _, _ in ends(lake)} == {"lumos://sql/orders"}


def test_dbt_models_are_edges_with_columns_jobs_and_runs(lake):
    report = lake.lumos.lineage.ingest(
        write_project(Path("shop/target"), manifest=manifest()).parent
    )
    model = "lumos://postgres/shop/analytics/orders"
    assert columns(lake, model) == {("id", "id"), ("amount", "amount")}
    (edge,) = lake.store.lineage.edges_of(model, "upstream")
    assert (edge.upstream, edge.job) == (
        "lumos://postgres/shop/raw/orders",
        "lumos://dbt/shop/orders",
    )
    job = lake.store.lineage.job("lumos://dbt/shop/orders")
    assert (job.inputs, job.outputs) == (("lumos://postgres/shop/raw/orders",), (model,))
    assert [run.state for run in job.runs] == ["COMPLETE"]
    (view,) = {
        each.type
        for each in lake.store.lineage.edges_of(
            "lumos://postgres/shop/analytics/totals", "upstream"
        )
        if each.columns
    }
    assert (view, report.files, report.coverage.share) == ("VIEW", {"dbt": 1}, 1.0)


def test_sql_of_a_dbt_project_is_read_from_its_manifest_alone(lake):
    write("shop/dbt_project.yml", "name: shop")
    write("shop/models/orders.sql", "select * from {{ ref('stg_orders') }}")
    write("shop/lineage.yml", "lineage:\n  - {from: orders, to: events}\n")
    write_project(Path("shop/target"), manifest=manifest())
    report = lake.lumos.lineage.ingest("shop")
    assert report.files == {"dbt": 1, "declared": 1}


def test_events_of_several_files_are_one_run(lake):
    write("events/1.json", json.dumps(event("START", outputs=[])))
    write("events/2.ndjson", json.dumps(event("COMPLETE", at="2024-01-15T07:00:00Z", inputs=[])))
    report = lake.lumos.lineage.ingest("events")
    assert ends(lake) == {
        ("lumos://s3/lake/raw/orders", "lumos://s3/lake/gold/totals", "openlineage:nightly/totals"),
    }  # fmt: skip
    assert (report.jobs, report.runs, report.reads) == (1, 1, 1)


def test_events_that_come_late_do_not_overrule_newer_ones(lake):
    old = {"namespace": "s3://lake", "name": "raw/old"}
    write("new.json", json.dumps(event(run="2", at="2024-01-16T06:00:00Z")))
    write("old.json", json.dumps(event(run="1", at="2024-01-15T06:00:00Z", inputs=[old])))
    lake.lumos.lineage.ingest("new.json")
    lake.lumos.lineage.ingest("old.json")
    assert {up for up, _, _ in ends(lake)} == {"lumos://s3/lake/raw/orders"}
    assert len(lake.store.lineage.job("lumos://openlineage/nightly/totals").runs) == 2


def test_later_events_replace_what_a_job_said_of_the_same_output_only(lake):
    old = {"namespace": "s3://lake", "name": "raw/old"}
    other = {"namespace": "s3://lake", "name": "gold/other"}
    write(
        "1.json",
        json.dumps(
            event(
                run="1",
                at="2024-01-15T06:00:00Z",
                inputs=[old],
                outputs=[event()["outputs"][0], other],
            )
        ),
    )
    write("2.json", json.dumps(event(run="2", at="2024-01-16T06:00:00Z")))
    lake.lumos.lineage.ingest("1.json")
    lake.lumos.lineage.ingest("2.json")
    assert {(up.rpartition("/")[2], down.rpartition("/")[2]) for up, down, _ in ends(lake)} == {
        ("orders", "totals"), ("old", "other"),
    }  # fmt: skip


def test_comments_describe_datasets_and_go_with_their_file(lake):
    write(
        "m/load.sql",
        "-- All events, hourly\n-- Owner: data-team\n-- SLA: within the hour\ninsert into raw.events select id, null from raw.orders",
    )
    other = write("m/more.sql", "-- Owner: jane\ninsert into raw.orders select * from raw.events")
    report = lake.lumos.lineage.ingest("m")
    reported = lake.store.get(EVENTS)
    assert report.described == 2
    assert reported.documentation.description == "All events, hourly"
    assert [owner.name for owner in reported.ownership.owners] == ["data-team"]
    assert reported.properties["sla"] == "within the hour"
    other.unlink()
    lake.lumos.lineage.ingest("m")
    assert not lake.store.get(ORDERS).ownership.owners


def test_rules_of_the_configuration_name_datasets(lake):
    config = write(
        "lumos.yaml", "sql_names:\n  - match: dwh.*\n    urn: lumos://snowflake@eu/DWH/{table}\n"
    )
    lumos = Lumos(
        config,
        overrides={name: value for name, value in _storage(lake.lumos.settings).items() if value},
    )
    write("a.sql", "create table dwh.kpis as select id from orders")
    report = lumos.lineage.ingest("a.sql")
    assert {each.name: (each.urn, each.way) for each in report.tables}["dwh.kpis"] == (
        "lumos://snowflake@eu/DWH/kpis", ResolutionMethod.RULE,
    )  # fmt: skip


def _storage(settings: Settings) -> dict[str, object]:
    storage = settings.storage
    return {
        "storage.backend": storage.backend,
        "storage.path": storage.path,
        "storage.connection_string": storage.connection_string
        and storage.connection_string.reveal(),
    }


def test_files_without_lineage_are_named(lake):
    write("d/readme.md", "hello")
    write("d/config.yaml", "a: 1")
    write("d/data.json", '{"a": 1}')
    report = lake.lumos.lineage.ingest("d")
    assert report.files == {}
    assert near(*report.unrecognised) == ("d/config.yaml", "d/data.json", "d/readme.md")


@pytest.mark.parametrize("path", ["nowhere", "s3://bucket/models"])
def test_a_path_that_is_not_there_is_a_mistake(lake, path):
    with pytest.raises(MisuseError):
        lake.lumos.lineage.ingest(path)


def test_an_unknown_dialect_is_a_mistake(lake):
    write("a.sql", "select 1")
    with pytest.raises(UnknownName, match="klingon"):
        lake.lumos.lineage.ingest("a.sql", dialect="klingon")


def test_an_edge_is_added_and_removed_by_hand(lake):
    added = lake.lumos.lineage.add(
        "raw/orders", "raw/events", type="COPIED", columns={"ID": "id"}, job="lumos://airflow/x/y"
    )
    assert (added.change, added.upstream.urn, added.downstream.urn) == ("added", ORDERS, EVENTS)
    assert columns(lake, EVENTS) == {("id", "id")}
    assert (
        lake.lumos.lineage.add(
            "raw.orders", EVENTS, type="COPIED", columns={"id": "id"}, job="lumos://airflow/x/y"
        ).change
        == "unchanged"
    )
    write("a.sql", "insert into raw.events select id, null from raw.orders")
    lake.lumos.lineage.ingest("a.sql")
    removed = lake.lumos.lineage.remove(ORDERS, EVENTS)
    assert (removed.change, near(*removed.still_told_by)) == ("removed", ("sql:a.sql",))
    assert lake.lumos.lineage.remove(ORDERS, EVENTS).change == "not there"


def test_an_edge_by_hand_needs_names_that_are_clear(lake):
    lake.see("processed/orders", "id INT64")
    with pytest.raises(MisuseError, match="orders"):
        lake.lumos.lineage.add("orders", "raw/events")


def test_the_inputs_of_runs_are_reads_counted_once(lake):
    orders = {
        "namespace": "file",
        "name": "/lake/raw/orders",
        "inputFacets": {"inputStatistics": {"rowCount": 3, "size": 99}},
    }
    write("events.json", json.dumps(event(at=YESTERDAY, inputs=[orders])))
    assert lake.lumos.lineage.ingest("events.json").reads == 1
    assert lake.lumos.lineage.ingest("events.json").reads == 0
    (reader,) = lake.store.get(ORDERS).usage.readers
    assert (reader.name, reader.reads, reader.rows, reader.bytes) == ("nightly/totals", 1, 3, 99)


def test_query_logs_are_recognised_and_counted(lake):
    write(
        "log.csv",
        f"query_text,user_name,start_time\nSELECT id FROM raw.orders,jane,{YESTERDAY}\n",
    )
    report = lake.lumos.lineage.ingest("log.csv")
    assert report.files == {"query log": 1}
    assert (report.logs.logs[0].statements, report.logs.datasets) == (1, 1)
    assert lake.store.get(ORDERS).usage.readers[0].name == "jane"


def test_two_manifests_of_one_project_are_reported_once(lake):
    for folder in ("dev/target", "prod/target"):
        write_project(Path(folder), manifest=manifest())
    first = lake.lumos.lineage.ingest("dev", "prod")
    assert [each.reporter for each in first.reporters] == ["dbt:shop"]
    assert [each.place for each in first.problems if each.severity == "error"] == ["dbt:shop"]
    assert lake.lumos.lineage.ingest("dev", "prod").edges.added == 0


def test_the_number_of_queries_does_not_depend_on_the_number_of_files(lake: RecordedLake) -> None:
    queries: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("SELECT"):
            queries.append(statement)

    def count(files: list[Path]) -> int:
        queries.clear()
        lake.lumos.lineage.ingest(*files)
        return len(queries)

    few, many = (
        [
            write(f"{folder}/{folder}_{number}.sql", "select id, amount from raw.orders")
            for number in range(files)
        ]
        for folder, files in (("few", 2), ("many", 12))
    )
    sqlalchemy_event.listen(lake.store._database.engine, "before_cursor_execute", note)
    assert count(few) == count(many)
