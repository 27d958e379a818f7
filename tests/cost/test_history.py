"""What is recorded of periods, trends that follow from it, and costs in snapshots."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest

from cost.documented_example import NOW, urn, write_example
from lumos import Lumos
from lumos.cost.service import Costs
from lumos.model.dataset import Cost


@pytest.fixture
def shop(workplace: Path) -> Lumos:
    return write_example(workplace, unattributed=True)


def dearer(shop: Lumos, compute: int) -> Lumos:
    """The same shop with another cost of the predictions' compute."""
    file = Path(shop.settings.origin.folder or "") / "lumos.yaml"
    text = file.read_text().replace("ml_predictions, costs: {compute: 1500}",
                                    f"ml_predictions, costs: {{compute: {compute}}}")  # fmt: skip
    file.write_text(text)
    lumos = Lumos(file, environment={})
    lumos.cost = Costs(lumos.settings, lumos._store.open, clock=lambda: NOW)
    return lumos


def test_the_last_whole_month_is_recorded_unless_another_is_named(shop: Lumos) -> None:
    assert shop.cost.record().period == "2024-02"
    assert shop.cost.record("2024-01").period == "2024-01"
    names = [each.name for each in shop._store.open().costs.periods()]
    assert names == ["2024-01", "2024-02"]


def test_recording_again_replaces_what_was_recorded(shop: Lumos) -> None:
    first = shop.cost.record("2024-02")
    again = shop.cost.record("2024-02")
    assert (first.is_again, again.is_again) == (False, True)
    assert shop.cost.trend().points[0].cost == first.spent
    assert again.aspects_written == 0


def test_trends_compare_with_what_was_recorded(shop: Lumos) -> None:
    shop.cost.record("2023-12")
    shop.cost.record("2024-02")
    now = dearer(shop, compute=2080)
    trends = now.cost.report("ml_predictions").trends
    assert trends.vs_last_month == pytest.approx(10.0)
    assert trends.vs_last_quarter == pytest.approx(10.0)
    assert trends.last_quarter is not None
    assert trends.last_quarter.periods == ("2023-12",)
    untouched = now.cost.report("event_metrics").trends
    assert untouched.vs_last_month == 0


def test_a_trend_shows_what_was_spent_with_what_lineage_does_not_carry(shop: Lumos) -> None:
    shop.cost.record("2024-01")
    shop.cost.record("2024-02")
    report = shop.cost.trend()
    assert [point.period for point in report.points] == ["2024-01", "2024-02"]
    spent = shop.cost.top().spent
    assert {point.cost for point in (*report.points, report.now)} == {spent}
    assert sum(report.now.by_type.values()) == spent


def test_the_trend_of_a_dataset_is_that_of_its_total(shop: Lumos) -> None:
    shop.cost.record("2024-02")
    report = shop.cost.trend("ml_predictions")
    assert [float(point.cost) for point in (*report.points, report.now)] == [5800, 5800]


def test_what_was_shared_by_another_method_is_not_compared(shop: Lumos) -> None:
    shop.cost.record("2024-02")
    report = shop.cost.report("ml_predictions", method="equal_split")
    assert report.trends.last_month is None
    assert any("with lineage_weighted are not compared" in each for each in report.remarks)
    # What was spent is the same by any method.
    assert shop.cost.trend(method="equal_split").trends.vs_last_month == 0


def test_a_record_that_is_no_month_says_what_becomes_of_it(shop: Lumos) -> None:
    assert any("whole months" in each for each in shop.cost.record("2024-02-05").remarks)
    assert not any("whole months" in each for each in shop.cost.record("2024-02").remarks)


def test_a_period_is_compared_with_what_came_before_it_alone(shop: Lumos) -> None:
    shop.cost.record("2024-02")
    report = shop.cost.report("ml_predictions", period="2024-01")
    assert report.trends.last_month is None
    day = shop.cost.report("ml_predictions", period="2024-03-05")
    assert day.trends.vs_last_month == pytest.approx(0, abs=0.1)


def test_datasets_carry_the_cost_of_the_latest_period(shop: Lumos) -> None:
    assert shop.cost.record("2024-02").aspects_written == 5
    assert shop.cost.record("2024-01").aspects_written == 0
    cost = shop._store.open().get(urn("ml/ml_predictions")).cost
    assert isinstance(cost, Cost)
    assert (cost.period, cost.currency) == ("2024-02", "USD")
    assert cost.own == {"compute": 1500.0}
    assert cost.attributed == {"storage": 500.0, "compute": 3800.0}


def test_without_aspects_datasets_stay_as_they_are(shop: Lumos) -> None:
    assert shop.cost.record(aspects=False).aspects_written == 0
    assert shop._store.open().get(urn("ml/ml_predictions")).cost is None


def test_a_snapshot_carries_costs(shop: Lumos, workplace: Path) -> None:
    shop.cost.record()
    shop.snapshot.export(workplace / "all.json")
    snapshot = json.loads((workplace / "all.json").read_text())
    cost_by_urn = {each["urn"]: each.get("cost") for each in snapshot["datasets"]}
    assert cost_by_urn[urn("raw/raw_events")]["own"] == {"storage": 500.0}


def test_reports_write_nothing(shop: Lumos) -> None:
    before = shop._store.open().counts()
    shop.cost.report("ml_predictions", period="2024-01")
    shop.cost.top()
    shop.cost.page()
    assert shop._store.open().counts() == before


def test_every_database_returns_the_same(workplace: Path, stored: dict[str, object]) -> None:
    shop = write_example(workplace, unattributed=True, stored=stored)
    shop.cost.record("2024-01")
    shop.cost.record("2024-02")
    trend = shop.cost.trend("ml_predictions")
    assert [float(point.cost) for point in trend.points] == [5800, 5800]
    assert shop.cost.report("ml_predictions").trends.vs_last_month == 0
    assert shop.cost.by("team").spent == shop.cost.trend().points[-1].cost
    assert shop.cost.savings("ml_predictions").monthly_savings == 6700


def meter(shop: Lumos, workplace: Path, first: date, last: date) -> None:
    """Usage of the raw events for 1 USD per day."""
    days = [first + timedelta(days=count) for count in range((last - first).days + 1)]
    rows = (f"raw_events,{day}T03:00:00Z,{day}T04:00:00Z,1,USD" for day in days)
    file = workplace / f"{first}.csv"
    file.write_text("\n".join(("dataset,started_at,ended_at,amount,currency", *rows)))
    shop.cost_sources.ingest(file)


def test_a_month_that_is_metered_in_part_is_marked_and_not_compared(
    shop: Lumos, workplace: Path
) -> None:
    meter(shop, workplace, date(2024, 2, 18), date(2024, 3, 9))
    recorded = shop.cost.record("2024-02")
    assert any("metered from 2024-02-18, 12 of 29 days" in each for each in recorded.remarks)
    report = shop.cost.trend(period="2024-03")
    assert report.points[0].metered_from == date(2024, 2, 18)
    assert report.now.metered_from is None
    month = report.trends.last_month
    assert month is not None
    assert (month.percent, month.metered_from) == (None, date(2024, 2, 18))
    assert report.trends.vs_last_month is None


def test_a_quarter_is_compared_by_the_months_that_are_metered_in_full(
    shop: Lumos, workplace: Path
) -> None:
    meter(shop, workplace, date(2023, 11, 10), date(2024, 3, 9))
    for month in ("2023-11", "2023-12", "2024-02"):
        shop.cost.record(month)
    trends = shop.cost.trend(period="2024-03").trends
    assert trends.last_quarter is not None
    assert trends.last_quarter.periods == ("2023-12",)
    assert trends.vs_last_quarter is not None
    assert trends.vs_last_month is not None


def test_a_period_that_is_metered_in_part_is_not_compared(shop: Lumos, workplace: Path) -> None:
    shop.cost.record("2024-02")
    meter(shop, workplace, date(2024, 3, 5), date(2024, 3, 9))
    report = shop.cost.report("ml_predictions", period="2024-03")
    assert report.trends.vs_last_month is None
    assert any("metered from 2024-03-05, 27 of 31 days" in each for each in report.remarks)
