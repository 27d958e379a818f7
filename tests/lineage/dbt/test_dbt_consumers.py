"""Exposures, metrics and saved queries of a dbt project, as far as impact."""

import json
import shutil
from pathlib import Path

import pytest

from lineage.dbt.semantic_project import RECORDED, run_dbt, write_files
from lumos import Lumos

ORDERS = "lumos://duckdb/shop/main/orders"
METRIC = "lumos://dbt/metric/shop"


@pytest.fixture
def lumos(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Lumos:
    monkeypatch.chdir(workplace)
    write_files(Path())
    return Lumos(overrides={"storage.path": str(workplace / "lumos.db")})


def verdicts(lumos: Lumos, column: str) -> dict[str, str]:
    """The verdict on each consumer without a column, with its first reason."""
    found = {}
    for row in lumos.impact.of(ORDERS, drop=[column]).downstream:
        reason = row.reasons[0]
        place = f", {reason.file}:{reason.line}" if reason.file else ""
        found[f"{row.kind} {row.name}"] = f"{row.verdict}: {reason.text}{place}"
    return found


WITHOUT_AMOUNT = {
    "metric Revenue": "BREAKING: needs amount in PROJECTION, models/semantics.yml:19",
    "metric EU orders": "COMPATIBLE: does not use what changes",
    "metric Average order": f"BREAKING: reads {METRIC}.revenue, which breaks",
    "saved query revenue_by_day": f"BREAKING: reads {METRIC}.revenue, which breaks",
    "dashboard Weekly revenue": f"BREAKING: reads {METRIC}.average_order, which breaks",
    "notebook churn": (
        f"UNDETERMINED: the columns used from {ORDERS} are unknown: no SQL, no column lineage"
    ),
}


def test_a_column_of_a_measure_breaks_metrics_and_what_is_made_of_them(lumos: Lumos) -> None:
    Path("target").mkdir()
    shutil.copy(RECORDED, "target/manifest.json")
    lumos.lineage.ingest("target")
    assert verdicts(lumos, "amount") == WITHOUT_AMOUNT
    in_filter = verdicts(lumos, "region")
    assert in_filter["metric EU orders"].startswith("BREAKING: needs region in FILTER")
    assert in_filter["metric Revenue"].startswith("COMPATIBLE")
    (weekly,) = (
        each
        for each in lumos.impact.of(ORDERS, drop=["amount"]).downstream
        if each.name == "Weekly revenue"
    )
    assert (weekly.owners, weekly.url) == (("Finance",), "https://bi.example.com/7")


def test_exposures_in_yaml_are_read_without_artefacts(lumos: Lumos) -> None:
    report = lumos.lineage.ingest("models")
    assert report.failed == ()
    consumers = lumos._store.create().lineage.consumers()
    churn = consumers["lumos://dbt/dashboard/shop.churn"]
    assert (churn.properties["type"], churn.owners[0].name) == ("notebook", "ds@example.com")
    assert churn.references == {"datasets": ("lumos://sql/models/orders",)}
    weekly = consumers["lumos://dbt/dashboard/shop.weekly"]
    assert weekly.references == {"metrics": ("lumos:metric:dbt/shop.average_order",)}


def test_with_a_manifest_the_yaml_of_its_project_is_not_read_again(lumos: Lumos) -> None:
    Path("target").mkdir()
    shutil.copy(RECORDED, "target/manifest.json")
    assert lumos.lineage.ingest(".").files == {"dbt": 1}


@pytest.mark.parametrize(
    ("depends_on", "reason"),
    [
        ("[orders]", "'orders' of the exposure x is not a ref, source or metric."),
        ("[source('raw')]", "is not a ref, source or metric"),
        ("ref('orders')", ""),
        ("[{a: b}]", "is not a ref, source or metric"),
    ],
)
def test_what_an_exposure_cannot_depend_on_is_named(lumos: Lumos, depends_on, reason) -> None:
    text = f"exposures:\n  - name: x\n    depends_on: {depends_on}\n"
    Path("x.yml").write_text(text)
    report = lumos.lineage.ingest("x.yml")
    assert [reason in each.reason for each in report.problems] == [True] * bool(reason)


def test_metrics_that_depend_on_each_other_or_on_nothing_end(lumos: Lumos) -> None:
    manifest = json.loads(RECORDED.read_text())
    metrics = manifest["metrics"]
    metrics["metric.shop.average_order"]["depends_on"]["nodes"].append("metric.shop.average_order")
    metrics["metric.shop.revenue"]["depends_on"]["nodes"].append("metric.shop.average_order")
    metrics["metric.shop.eu_orders"]["type_params"] = {"measure": {"name": ["odd"]}}
    manifest["exposures"]["exposure.shop.weekly"]["depends_on"]["nodes"] = ["metric.shop.gone"]
    manifest["exposures"]["exposure.shop.churn"]["original_file_path"] = "../../etc/passwd"
    Path("target").mkdir()
    Path("target/manifest.json").write_text(json.dumps(manifest))
    assert lumos.lineage.ingest("target").failed == ()
    assert verdicts(lumos, "amount")["metric Average order"].startswith("BREAKING")


@pytest.mark.slow
def test_a_real_run_of_dbt_gives_the_same(lumos: Lumos) -> None:
    run_dbt(Path())
    lumos.lineage.ingest(".")
    assert verdicts(lumos, "amount") == WITHOUT_AMOUNT
