"""What would truly disappear, what stays, what breaks and how risky that is."""

from pathlib import Path

import pytest

from cost.documented_example import NOW, urn, write_example
from lumos import Lumos
from lumos.model.catalog import Job


@pytest.fixture
def shop(workplace: Path) -> Lumos:
    return write_example(workplace)


def test_the_end_of_an_output_saves_what_only_it_needs(shop: Lumos) -> None:
    report = shop.cost.savings("ml_predictions", period="2024-01")
    # Predictions, features and cleaned events end; raw events go on for the metrics.
    assert report.monthly_savings == 1500 + 2200 + 3000
    assert report.annual_savings == 12 * 6700
    assert (report.storage_savings, report.compute_savings) == (200, 6500)
    assert {each.name: float(each.monthly) for each in report.disappears} == {
        "ml_predictions": 1500, "feature_store": 2200, "cleaned_events": 3000
    }  # fmt: skip
    [stays] = report.stays
    assert (stays.name, float(stays.monthly)) == ("raw_events", 500)
    assert stays.reason == "needed by event_metrics"
    assert not report.broken
    assert report.attributed_cost == 5800


def test_what_is_asked_for_stands_first_and_adds_up(shop: Lumos) -> None:
    report = shop.cost.savings("feature_store", "event_metrics", period="2024-01")
    assert [each.is_asked for each in report.disappears][:2] == [True, True]
    assert sum(each.monthly for each in report.disappears) == report.monthly_savings
    assert sum(report.breakdown.by_type.values()) == report.monthly_savings


def test_a_dataset_in_the_middle_breaks_what_is_made_from_it(shop: Lumos) -> None:
    report = shop.cost.savings("cleaned_events", period="2024-01")
    assert [(each.name, each.owners) for each in report.broken] == [
        ("feature_store", ("ml-platform",)),
        ("ml_predictions", ("ml-platform",)),
    ]
    assert report.impact_analysis.risk_level == "HIGH"
    # Nothing in the store says that somebody does, or that nobody does.
    assert report.impact_analysis.reasons[0] == (
        "breaks ml_predictions; no query log shows who reads it"
    )
    assert not any("in use" in reason for reason in report.impact_analysis.reasons)
    assert report.impact_analysis.downstream_datasets == 2
    assert report.monthly_savings == 3000
    assert urn("ml/ml_predictions") in report.datasets_affected


def test_a_feature_is_all_its_datasets(shop: Lumos) -> None:
    report = shop.cost.savings(feature="predictions", period="2024-01")
    assert report.feature_name == "predictions"
    assert report.impact_analysis.direct_datasets == 2
    everything = shop.cost.savings(feature="everything", period="2024-01")
    assert everything.monthly_savings == 8200
    assert not everything.stays


def test_a_tag_means_all_that_have_it(shop: Lumos) -> None:
    report = shop.cost.savings(tag="gold", period="2024-01")
    assert {each.name for each in report.disappears if each.is_asked} == {
        "event_metrics", "feature_store"
    }  # fmt: skip


def test_datasets_whose_readers_nobody_knows_are_reported(shop: Lumos) -> None:
    report = shop.cost.savings("ml_predictions", period="2024-01")
    assert urn("ml/ml_predictions") in report.unverified
    assert report.impact_analysis.risk_level == "MEDIUM"
    assert any("no query log shows" in reason for reason in report.impact_analysis.reasons)


def test_what_a_day_would_save_is_reported_as_a_month(shop: Lumos) -> None:
    report = shop.cost.savings("ml_predictions", period="2024-01-15")
    assert float(report.monthly_savings) == pytest.approx(6700, abs=0.001)


def test_supposed_prices_change_what_would_be_saved(workplace: Path) -> None:
    shop = write_example(workplace, more="  storage_pricing: {aws_s3: {standard: 0.02}}\n")
    report = shop.cost.savings("ml_predictions", prices={"s3.standard": 0.01}, period="2024-01")  # type: ignore[dict-item]
    assert report.what_if is not None
    assert report.what_if.changes == ("price s3.standard at 0.01",)
    assert report.what_if.difference == report.what_if.after - report.what_if.before


def test_what_to_retire_together_breaks_nothing_and_is_the_best_there_is(shop: Lumos) -> None:
    report = shop.cost.retire(1, period="2024-01")
    [step] = report.steps
    assert (step.names, float(step.monthly_savings)) == (("ml_predictions",), 6700)
    assert report.exact
    both = shop.cost.retire(2, period="2024-01")
    assert both.monthly_savings == 8200
    assert sum(each.monthly_savings for each in both.steps) == both.monthly_savings
    assert both.steps[-1].cumulative == both.monthly_savings


def test_a_job_that_breaks_is_of_those_who_own_what_it_writes(shop: Lumos) -> None:
    flow = {"inputs": (urn("raw/raw_events"),), "outputs": (urn("core/event_metrics"),)}
    job = Job(urn="lumos://airflow/nightly", name="nightly", platform="airflow", **flow)
    with shop._store.open().transaction() as transaction:
        transaction.lineage.report("airflow", [], jobs=(job,), at=NOW)
    broken = {each.name: each.owners for each in shop.cost.savings("raw_events").broken}
    assert broken["nightly"] == ("analytics",)


def test_a_job_that_writes_nothing_else_ends_with_what_it_writes(workplace: Path) -> None:
    job = "lumos://airflow/nightly"
    prices = f"    - {{job: {job}, costs: {{compute: 40}}}}\n"
    shop = write_example(workplace)
    shop.lineage.add(urn("raw/raw_events"), urn("core/event_metrics"), job=job)
    text = (workplace / "lumos.yaml").read_text()
    text = text.replace("  allocations:\n", prices + "  allocations:\n")
    text = text.replace("    - {from: raw_events, to: event_metrics, share: 0.4}\n", "")
    (workplace / "lumos.yaml").write_text(text)
    cost = Lumos(workplace / "lumos.yaml", environment={}).cost
    report = cost.savings("event_metrics")
    assert {each.name: each.kind for each in report.disappears} == {
        "event_metrics": "dataset", "nightly": "job"
    }  # fmt: skip
    assert report.monthly_savings == 1040
