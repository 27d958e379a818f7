"""What could be saved on a dataset, where it is known who reads."""

import json
from datetime import date, timedelta
from pathlib import Path

import pytest

from cost.documented_example import NOW, urn, write_example
from lumos import Lumos
from lumos.cost.savings_report import _without_reads
from lumos.cost.service import Costs
from lumos.model.catalog import Job
from lumos.model.lineage import JobRun
from lumos.store.usage import Reads

DAY = NOW.date() - timedelta(days=1)


def read(shop: Lumos, name: str, reader: str, *, days_ago: int) -> None:
    at = NOW - timedelta(days=days_ago)
    with shop._store.open().transaction() as transaction:
        transaction.usage.add("log:x", [Reads(urn(name), at.date(), reader, 3, at)])


@pytest.fixture
def shop(workplace: Path) -> Lumos:
    """The documented example, whose reads are known for a year."""
    made = write_example(workplace)
    read(made, "core/cleaned_events", "ann", days_ago=365)
    return made


def test_an_end_that_nobody_reads_could_be_saved(shop: Lumos) -> None:
    report = shop.cost.report("event_metrics")
    [hint] = report.optimization
    assert hint == "nobody reads event_metrics: removing it saves $1,000.00 per month"
    assert report.potential_savings == 1000


def test_what_somebody_reads_is_no_waste(shop: Lumos) -> None:
    read(shop, "core/event_metrics", "bob", days_ago=20)
    report = shop.cost.report("event_metrics")
    assert report.optimization == ()
    assert report.is_live


def test_what_somebody_reads_is_not_proposed_for_retirement(shop: Lumos) -> None:
    before = shop.cost.retire()
    assert {urn("core/event_metrics"), urn("raw/raw_events")} <= {
        each for step in before.steps for each in step.datasets
    } | {each.urn for each in before.unneeded}
    read(shop, "core/event_metrics", "bob", days_ago=20)
    read(shop, "ml/feature_store", "bob", days_ago=20)
    after = shop.cost.retire()
    proposed = {each for step in after.steps for each in step.datasets}
    proposed |= {each.urn for each in after.unneeded}
    assert proposed == {urn("ml/ml_predictions")}
    assert after.in_use >= 2


def test_nothing_is_said_where_reads_are_not_known(workplace: Path) -> None:
    assert write_example(workplace).cost.report("event_metrics").optimization == ()


def test_runs_after_which_nobody_read_could_be_saved(shop: Lumos, workplace: Path) -> None:
    events = [
        {
            "eventType": "COMPLETE", "eventTime": (NOW - timedelta(days=back)).isoformat(),
            "run": {"runId": f"00000000-0000-4000-8000-{back:012}"},
            "job": {"namespace": "airflow", "name": "count_events"},
            "inputs": [{"namespace": "lumos", "name": urn("raw/raw_events")}],
            "outputs": [{"namespace": "lumos", "name": urn("core/event_metrics")}],
        }
        for back in (24, 16, 8)
    ]  # fmt: skip
    (workplace / "events.ndjson").write_text("\n".join(map(json.dumps, events)))
    shop.lineage.ingest(workplace / "events.ndjson")
    # Taking something in forgets reads of long ago.
    read(shop, "core/cleaned_events", "ann", days_ago=365)
    read(shop, "core/event_metrics", "bob", days_ago=5)
    [job] = [each.urn for each in shop._store.open().lineage.jobs()]
    text = (workplace / "lumos.yaml").read_text()
    cost = f"    - {{job: {job}, costs: {{compute: 90}}}}\n  allocations:\n"
    text = text.replace("  allocations:\n", cost)
    text = text.replace("    - {from: raw_events, to: event_metrics, share: 0.4}\n", "")
    (workplace / "lumos.yaml").write_text(text)
    settings = Lumos(workplace / "lumos.yaml", environment={}).settings
    report = Costs(settings, shop._store.open, clock=lambda: NOW).report("event_metrics")
    [hint] = report.optimization
    assert hint == (
        "2 of 3 runs of the job count_events wrote data that nobody read before the next run: "
        "skipping them saves $60.00 per month"
    )


def test_runs_before_reads_were_known_are_no_waste(workplace: Path) -> None:
    shop = write_example(workplace)
    outputs = (urn("core/event_metrics"),)
    job = Job(
        urn="lumos://airflow/count", name="count", platform="airflow",
        inputs=(urn("raw/raw_events"),), outputs=outputs,
        runs=tuple(
            JobRun(run_id=str(back), job="lumos://airflow/count", state="COMPLETE",
                   started_at=NOW - timedelta(days=back), ended_at=NOW - timedelta(days=back))
            for back in (24, 16, 8)
        ),
    )  # fmt: skip
    with shop._store.open().transaction() as transaction:
        transaction.lineage.report("airflow", [], jobs=(job,), at=NOW)
    text = (workplace / "lumos.yaml").read_text()
    cost = f"    - {{job: {job.urn}, costs: {{compute: 90}}}}\n  allocations:\n"
    text = text.replace("  allocations:\n", cost)
    text = text.replace("    - {from: raw_events, to: event_metrics, share: 0.4}\n", "")
    (workplace / "lumos.yaml").write_text(text)
    settings = Lumos(workplace / "lumos.yaml", environment={}).settings
    costs_feature = Costs(settings, shop._store.open, clock=lambda: NOW)
    # The log begins ten days ago; the job reads since long before.
    read(shop, "raw/raw_events", "count", days_ago=200)
    read(shop, "core/event_metrics", "bob", days_ago=10)
    [hint] = costs_feature.report("event_metrics").optimization
    assert "1 of 3 runs of the job count" in hint
    read(shop, "core/event_metrics", "bob", days_ago=5)
    assert costs_feature.report("event_metrics").optimization == ()


@pytest.mark.parametrize(
    ("runs", "reads", "idle"),
    [
        pytest.param([1, 2, 3], [], 3, id="nobody reads"),
        pytest.param([1, 2, 3], [1, 2, 3], 0, id="everything is read"),
        pytest.param([1, 5, 9], [6], 2, id="one of three is read"),
        pytest.param([1, 5], [5], 0, id="on the day of the next run it may be either"),
        pytest.param([1], [9], 0, id="the last run is read later"),
        pytest.param([], [3], 0, id="no runs"),
    ],
)
def test_runs_before_another_without_a_read_between_are_idle(
    runs: list[int], reads: list[int], idle: int
) -> None:
    days = [date(2024, 1, day) for day in runs]
    assert _without_reads(days, {date(2024, 1, day) for day in reads}, date(2024, 1, 31)) == idle
