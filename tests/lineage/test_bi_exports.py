"""Charts and dashboards from exports of Superset and Metabase, as far as impact and search."""

import json
import zipfile
from pathlib import Path

import pytest

from lineage.bi_exports import (
    BUILT,
    DASHBOARD,
    METABASE,
    QUESTION,
    SUPERSET,
    write_metabase,
    write_superset,
)
from lumos import Lumos
from lumos.lineage.reports import LineageIngestReport
from recorded_lake import RecordedLake

ORDERS = "lumos://file/lake/orders"


SCHEMA = "id INT64\namount FLOAT64\ncountry STRING\nday DATE"


@pytest.fixture
def lake(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedLake:
    monkeypatch.chdir(workplace)
    lake = RecordedLake(Lumos(overrides={"storage.path": str(workplace / "lumos.db")}))
    lake.see("orders", SCHEMA)
    return lake


def ingest(lake: RecordedLake, *paths: str | Path) -> LineageIngestReport:
    return lake.lumos.lineage.ingest(*paths)


def broken(lake: RecordedLake, column: str) -> dict[str, list[str]]:
    """What breaks without a column of the orders, by name, and where."""
    report = lake.lumos.impact.of(ORDERS, drop=[column])
    return {
        f"{row.kind} {row.name}": [
            f"{reason.text} {reason.file}:{reason.line}" if reason.file else reason.text
            for reason in row.reasons
        ]
        for row in report.downstream
        if row.verdict == "BREAKING"
    }


def test_a_dropped_column_breaks_charts_and_the_dashboards_that_show_them(lake) -> None:
    report = ingest(lake, write_superset(Path("superset.zip")))
    assert (report.failed, report.coverage.share) == ((), 1.0)
    chart = "lumos://superset/chart"
    virtual = "lumos://superset/virtual_dataset/70a2"
    assert broken(lake, "amount") == {
        "chart Revenue by day": [
            "needs amount in PROJECTION superset.zip/charts/Revenue_by_day_1.yaml:4"
        ],
        "virtual dataset eu_orders": [
            "needs amount in PROJECTION superset.zip/datasets/lake/eu_orders.yaml:5"
        ],
        "chart EU gross": [
            f"reads {virtual}, which breaks",
            "needs gross in PROJECTION superset.zip/charts/EU_gross_2.yaml:3",
        ],
        "dashboard Revenue": [
            f"reads {chart}/c4a1, which breaks", f"reads {chart}/c4a2, which breaks",
        ],
    }  # fmt: skip


def test_a_column_in_a_filter_breaks_the_dashboard_too(lake) -> None:
    ingest(lake, write_superset(Path("superset.zip")))
    found = broken(lake, "country")
    assert found["chart Revenue by day"] == [
        "needs country in FILTER superset.zip/charts/Revenue_by_day_1.yaml:4"
    ]
    assert found["virtual dataset eu_orders"] == [
        "needs country in FILTER superset.zip/datasets/lake/eu_orders.yaml:7"
    ]
    assert (
        "needs country in FILTER superset.zip/dashboards/Revenue_1.yaml:15"
        in (found["dashboard Revenue"])
    )
    assert broken(lake, "id").keys() == {
        "virtual dataset eu_orders", "chart EU gross", "dashboard Revenue"
    }  # fmt: skip


def test_columns_of_maps_and_timelines_are_read_under_their_own_keys(lake) -> None:
    chart = """\
slice_name: Map
viz_type: deck_scatter
params:
  start_time: day
  spatial: {type: latlong, latCol: latitude, lonCol: amount}
  point_radius_fixed: {type: metric, value: revenue}
  tooltip_columns: [id]
  y_axis_title: country
uuid: c4a1
dataset_uuid: 70a1
"""
    orders = SUPERSET["datasets/lake/orders.yaml"].replace(
        "columns:\n",
        "columns:\n" + "".join(f"- column_name: {n}\n" for n in ("day", "id", "country")),
    )
    ingest(lake, write_superset(Path("superset.zip"), Revenue_by_day_1=chart, orders=orders))
    for column, is_read in {"day": True, "amount": True, "id": True, "country": False}.items():
        assert ("chart Map" in broken(lake, column)) == is_read, column


def test_an_unpacked_export_is_the_same_and_its_files_are_not_read_alone(lake) -> None:
    with zipfile.ZipFile(write_superset(Path("superset.zip"))) as archive:
        archive.extractall("unpacked")
    report = ingest(lake, "unpacked")
    assert (report.unrecognised, report.files) == ((), {"superset": 1})
    place = "unpacked/dashboard_export_20260101T000000/datasets/lake/eu_orders.yaml:5"
    assert broken(lake, "amount")["virtual dataset eu_orders"] == [
        f"needs amount in PROJECTION {place}"
    ]


def test_questions_of_metabase_have_lines_and_owners(lake) -> None:
    report = ingest(lake, write_metabase(Path("metabase")))
    assert (report.failed, report.problems) == ((), ())
    found = broken(lake, "amount")
    assert found["chart Top customers"][0] == (
        "needs amount in PROJECTION metabase/collections/main/top_customers.yaml:10"
    )
    assert found["chart Orders by country"] == [
        "needs amount in PROJECTION metabase/collections/main/by_country.yaml:5"
    ]
    assert len(found["dashboard Customers"]) == 2
    # The column stands in a template, a snippet and an optional part.
    assert "chart Top customers" in broken(lake, "country")
    owners = {
        row.name: row.owners for row in lake.lumos.impact.of(ORDERS, drop=["amount"]).downstream
    }
    assert owners["Customers"] == ("ann@example.com",)


def field(column: str) -> str:
    return f"[field, {{}}, [lake, null, orders, {column}]]"


def test_filters_of_questions_and_dashboards_of_metabase_are_reads(lake) -> None:
    question = METABASE["collections/main/top_customers.yaml"]
    question = question.replace(
        "type: dimension", f"type: dimension\n        dimension: {field('day')}"
    )
    # Mappings of dashboards have the options last.
    board = METABASE["collections/main/customers.yaml"].replace(
        "  series:",
        "  parameter_mappings:\n"
        "  - target: [dimension, [field, [lake, null, orders, country], null]]\n"
        "  - target: [variable, [template-tag, min_total]]\n"
        "  series:",
    )
    ingest(lake, write_metabase(Path("mb"), top_customers=question, customers=board))
    assert broken(lake, "day") == {
        "chart Top customers": ["needs day in FILTER mb/collections/main/top_customers.yaml:12"],
        "dashboard Customers": ["reads lumos://metabase/chart/" + QUESTION + ", which breaks"],
    }
    assert (
        "needs country in FILTER mb/collections/main/customers.yaml:9"
        in broken(lake, "country")["dashboard Customers"]
    )


def test_metrics_measures_and_segments_of_metabase_are_followed(lake) -> None:
    question = """\
name: Saved clauses
entity_id: kBjQ5VXJ5z3vYSW72J6qa
dataset_query:
  database: lake
  stages:
  - source-table: [lake, null, orders]
    aggregation:
    - [metric, {}, metric-of-amount]
    - [measure, {}, measure-of-id]
    filters:
    - [segment, {}, segment-of-country]
    - [segment, {}, not-in-the-export]
serdes/meta: [{id: kBjQ5VXJ5z3vYSW72J6qa, model: Card}]
"""
    saved = {
        "collections/main/metric.yaml": f"""\
name: Revenue
entity_id: metric-of-amount
type: metric
dataset_query:
  database: lake
  stages:
  - source-table: [lake, null, orders]
    aggregation: [[sum, {{}}, {field("amount")}], [metric, {{}}, metric-of-amount]]
serdes/meta: [{{model: Card}}]
""",
        "databases/lake/tables/orders/measures/ids.yaml": f"""\
name: Ids
entity_id: measure-of-id
definition: {{database: lake, query: {{aggregation: [[distinct, {field("id")}]]}}}}
serdes/meta: [{{model: Measure}}]
""",
        "databases/lake/tables/orders/segments/eu.yaml": f"""\
name: EU
entity_id: segment-of-country
definition: {{source-table: [lake, null, orders], filter: [=, {field("country")}, EU]}}
serdes/meta: [{{model: Segment}}]
""",
    }
    folder = write_metabase(Path("mb"), top_customers=question)
    for name, text in saved.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    report = ingest(lake, folder)
    assert report.failed == ()
    assert [each.reason for each in report.problems if "Saved clauses" in each.reason] == [
        "The question 'Saved clauses' uses the segment not-in-the-export, which the export does "
        "not contain. Its columns are left out."
    ]
    for column in ("amount", "id", "country"):
        assert "chart Saved clauses" in broken(lake, column), column
    assert "chart Saved clauses" not in broken(lake, "day")


def test_a_question_is_the_source_of_another(lake) -> None:
    question = f"""\
name: Totals
entity_id: {BUILT}
dataset_query:
  database: lake
  query: {{source-table: {QUESTION}, aggregation: [[sum, [field, total, null]]]}}
serdes/meta: [{{id: {BUILT}, model: Card}}]
"""
    report = ingest(lake, write_metabase(Path("mb"), by_country=question))
    assert (report.failed, report.problems) == ((), ())
    assert broken(lake, "amount")["chart Totals"] == [
        f"reads lumos://metabase/chart/{QUESTION}, which breaks",
        "needs total in PROJECTION mb/collections/main/by_country.yaml:4",
    ]


def test_the_api_of_metabase_gives_the_same_question(lake) -> None:
    card = {
        "id": 7, "entity_id": QUESTION, "name": "Top customers", "archived": False,
        "creator_id": 1, "creator": {"email": "ann@example.com"}, "database_id": 2,
        "dataset_query": {
            "database": 2, "type": "native",
            "native": {"query": "SELECT id,\nSUM(amount) FROM orders GROUP BY id"},
        },
    }  # fmt: skip
    other = {
        "id": 8, "name": "Again", "dataset_query": {
            "database": 2, "type": "native",
            "native": {"query": "SELECT * FROM {{#7-top-customers}} AS t"},
        },
    }  # fmt: skip
    built = {
        "id": 9,
        "name": "Built",
        "dataset_query": {"type": "query", "query": {"source-table": 4}},
    }
    board = {"id": 3, "entity_id": DASHBOARD, "name": "Customers", "dashcards": [{"card": card}]}
    Path("cards.json").write_text(json.dumps([card, other, built]))
    Path("board.json").write_text(json.dumps(board))
    report = ingest(lake, "cards.json", "board.json")
    (remark,) = report.problems
    assert "its tables are numeric ids. Use the serialized YAML files" in remark.reason
    found = broken(lake, "amount")
    assert found["chart Top customers"] == [
        f"needs amount in PROJECTION {file}.json#{QUESTION}:2" for file in ("board", "cards")
    ]
    assert found.keys() == {"chart Top customers", "chart Again", "dashboard Customers"}


def test_consumers_are_found_shown_and_exported(
    seen: RecordedLake, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workplace)
    lake = seen
    lake.see("orders", SCHEMA)
    ingest(lake, write_superset(Path("superset.zip")))
    found = lake.lumos.datasets.search("revenue board")
    assert found.consumers == {"lumos://superset/dashboard/da51": "dashboard Revenue"}
    shown = lake.lumos.datasets.show("dashboard Revenue")
    assert (shown.kind, shown.dataset["name"]) == ("dashboard", "Revenue")
    boxes = {box.name: box for box in lake.lumos.lineage.view.show("Revenue").nodes}
    assert boxes["Revenue by day"].kind == "chart"
    # Tables to scan are listed apart from consumers.
    assert lake.lumos.datasets.list(lineage_only=True).lineage_only_count == 0
    lake.lumos.snapshot.export("snapshot.json")
    others = {each["urn"]: each for each in json.loads(Path("snapshot.json").read_text())["others"]}
    assert others["lumos:dashboard:superset/da51"]["references"]["charts"] == [
        "lumos:chart:superset/c4a1", "lumos:chart:superset/c4a2"
    ]  # fmt: skip
    assert others["lumos:dashboard:superset/da51"]["properties"]["slug"] == "revenue"


def test_charts_and_dashboards_are_published_with_what_they_read(lake) -> None:
    ingest(lake, write_superset(Path("superset.zip")))
    lake.lumos.migration.migrate("local", "datahub-file:copy.json")
    aspects: dict[str, set[str]] = {}
    for each in json.loads(Path("copy.json").read_text()):
        aspects.setdefault(each["entityUrn"], set()).add(each["aspectName"])
        if each["entityUrn"] == "urn:li:dashboard:(superset,da51)":
            text = json.dumps(each["aspect"])
            if each["aspectName"] == "dashboardInfo":
                assert "urn:li:chart:(superset,c4a1)" in text
    assert "dashboardInfo" in aspects["urn:li:dashboard:(superset,da51)"]
    assert "chartInfo" in aspects["urn:li:chart:(superset,c4a1)"]


def test_a_deleted_chart_and_a_deleted_export_leave_nothing(lake) -> None:
    Path("other.sql").write_text("CREATE TABLE a AS SELECT id FROM orders")
    ingest(lake, write_superset(Path("exports.zip")), "other.sql")
    ingest(lake, write_superset(Path("exports.zip"), EU_gross_2=None))
    names = {each.display_name for each in lake.store.lineage.consumers().values()}
    assert names == {"Revenue by day", "Revenue", "eu_orders"}
    Path("exports.zip").unlink()
    report = ingest(lake, ".")
    assert (report.gone, report.held) == (("superset:exports.zip",), ())
    assert lake.store.lineage.consumers() == {}


DASHBOARD_OF_NOTHING = SUPERSET["dashboards/Revenue_1.yaml"].replace("c4a1", "gone")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"Revenue_1": DASHBOARD_OF_NOTHING}, "The chart 'Revenue by day' of the dashboard is missing"),
        ({"orders": None}, "The dataset of the chart 'Revenue by day' is missing"),
        ({"orders": "a: [b"}, "This is not valid YAML"),
        ({"orders": "a: !!python/object/apply:os.system [ls]"}, "has no uuid or table_name"),
        ({"orders": "[1, 2]"}, "must be a mapping"),
        ({"orders": "x: " + "[" * 200 + "]" * 200}, "nests deeper"),
        ({"EU_gross_2": "slice_name: EU"}, "The chart has no uuid"),
        (
            {"lake": SUPERSET["databases/lake.yaml"].replace("awsathena+rest", "quux")},
            "'quux' is not a known SQL dialect",
        ),
        (
            {"eu_orders": SUPERSET["datasets/lake/eu_orders.yaml"].replace("FROM orders", "FRM (")},
            "not understood",
        ),
    ],
)  # fmt: skip
def test_a_bad_part_of_an_export_is_named_and_the_rest_read(lake, changes, reason) -> None:
    report = ingest(lake, write_superset(Path("superset.zip"), **changes))
    assert report.failed == ()
    assert any(reason in each.reason for each in report.problems), report.problems
    assert "dashboard Revenue" in {
        f"{each.kind} {each.display_name}" for each in lake.store.lineage.consumers().values()
    }


def test_sql_that_cannot_be_parsed_makes_the_dashboard_undetermined(lake) -> None:
    sql = SUPERSET["datasets/lake/eu_orders.yaml"].replace("SELECT id,", "SELECT id id id,")
    ingest(lake, write_superset(Path("superset.zip"), eu_orders=sql, Revenue_by_day_1=None))
    verdicts = {
        row.name: row.verdict for row in lake.lumos.impact.of(ORDERS, drop=["amount"]).downstream
    }
    assert verdicts["eu_orders"] == verdicts["EU gross"] == verdicts["Revenue"] == "UNDETERMINED"


def test_broken_and_hostile_archives_are_refused(lake, monkeypatch) -> None:
    Path("broken.zip").write_bytes(b"PK\x03\x04 not really")
    content = write_superset(Path("cut.zip")).read_bytes()
    # The first file is damaged, the directory at the end is not.
    Path("cut.zip").write_bytes(content[:60] + bytes(40) + content[100:])
    monkeypatch.setattr("lumos.lineage.superset._MAX_TOTAL_BYTES", 1_000)
    write_superset(Path("bomb.zip"), orders="a: b\n" + "# " + "x" * 100_000)
    report = ingest(lake, "broken.zip", "bomb.zip")
    assert report.failed == ("bomb.zip", "broken.zip")
    reasons = {each.place: each.reason for each in report.problems}
    assert "cannot be read" in reasons["broken.zip"]
    assert reasons["bomb.zip"] == "It contains more than 0 MB."
    assert ingest(lake, "cut.zip").failed == ("cut.zip",)


def test_other_archives_are_not_exports(lake) -> None:
    with zipfile.ZipFile("photos.zip", "w") as archive:
        archive.writestr("a.jpg", b"x")
    assert ingest(lake, "photos.zip").unrecognised == ("photos.zip",)


def test_hostile_names_are_harmless(lake) -> None:
    name = "\"x'; DROP TABLE a; --\\e[31m lumos://file/lake/orders"
    title = SUPERSET["dashboards/Revenue_1.yaml"].replace("Revenue\n", json.dumps(name) + "\n", 1)
    metric = SUPERSET["charts/Revenue_by_day_1.yaml"].replace("x_axis: day", 'x_axis: "da\\"y; --"')
    report = ingest(
        lake, write_superset(Path("superset.zip"), Revenue_1=title, Revenue_by_day_1=metric)
    )
    assert report.failed == ()
    assert f"dashboard {name}" in broken(lake, "amount")


def test_questions_that_read_each_other_in_a_cycle_end(lake) -> None:
    def question(id: str, other: str) -> str:
        text = METABASE["collections/main/top_customers.yaml"].replace(QUESTION, id)
        return text.replace("FROM orders", f"FROM {{{{#{other}}}}} AS q, orders")

    folder = write_metabase(Path("mb"), top_customers=question("a" * 21, "b" * 21))
    Path("mb/collections/main/second.yaml").write_text(question("b" * 21, "a" * 21))
    assert ingest(lake, folder).failed == ()
    assert broken(lake, "amount")["chart Top customers"]
