"""The inputs of OpenLineage's runs as reads: one for each run and dataset, however it is told."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lineage.openlineage.test_openlineage import event
from lumos.lineage.reports import LineageIngestReport
from recorded_lake import RecordedLake

ORDERS = "lumos://file/lake/raw/orders"
INPUTS = [{"namespace": "file", "name": "/lake/raw/orders"}]
YESTERDAY = datetime.now(UTC) - timedelta(days=1)


@pytest.fixture
def lake(seen: RecordedLake, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> RecordedLake:
    monkeypatch.chdir(workplace)
    return seen


def ingest(
    lake: RecordedLake, *events: dict[str, Any], name: str = "events"
) -> LineageIngestReport:
    file = Path(f"{name}.json")
    file.write_text("".join(json.dumps(each) + "\n" for each in events))
    return lake.lumos.lineage.ingest(file)


def run(type: str, at: datetime = YESTERDAY, **facts: Any) -> dict[str, Any]:
    return event(type, at=at.isoformat(), inputs=INPUTS, **facts)


def test_a_run_counts_once_though_its_start_and_its_end_come_apart(lake: RecordedLake) -> None:
    lake.see("raw/orders", "id INT64")
    start, end = run("START", YESTERDAY - timedelta(days=2)), run("COMPLETE")
    assert ingest(lake, start, name="first").reads == 1
    assert ingest(lake, end, name="second").reads == 0
    assert ingest(lake, run("COMPLETE", run="run-2"), name="third").reads == 1
    assert lake.lumos.usage.show(ORDERS).reads == 2


def test_a_run_counts_once_though_its_input_became_a_dataset_since(lake: RecordedLake) -> None:
    inputs = [{"namespace": "", "name": "raw.orders"}]
    run_event = event("COMPLETE", at=YESTERDAY.isoformat(), inputs=inputs)
    assert ingest(lake, run_event).reads == 1
    assert len(lake.store.usage.unknown_datasets()) == 1
    lake.see("raw/orders", "id INT64")
    assert ingest(lake, run_event).reads == 0
    assert lake.store.usage.unknown_datasets() == ()
    assert lake.lumos.usage.show(ORDERS).reads == 1


@pytest.mark.parametrize("state", ["FAIL", "ABORT"])
def test_a_run_that_failed_has_read_nothing(lake: RecordedLake, state: str) -> None:
    lake.see("raw/orders", "id INT64")
    assert ingest(lake, run("START", YESTERDAY), run(state, YESTERDAY)).reads == 0
    assert lake.lumos.usage.show(ORDERS).readers == ()


def test_a_run_in_the_future_is_reported_and_does_not_count(lake: RecordedLake) -> None:
    lake.see("raw/orders", "id INT64")
    report = ingest(lake, run("COMPLETE", datetime(2099, 1, 1, tzinfo=UTC)))
    assert report.reads == 0
    assert [each.reason for each in report.problems] == [
        "1 reads have a time in the future and were not counted."
    ]
