"""What the models of a dbt run used."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lumos.cost.meters.compression import UnreadableUsageFile
from lumos.cost.meters.reader import MeterReading, find_meters, read_meter

SCHEMA = "https://schemas.getdbt.com/dbt/run-results/v6.json"


def result(name: str, seconds: float, **more: Any) -> dict[str, Any]:
    timing = [
        {
            "name": "compile",
            "started_at": "2024-01-01T01:00:00Z",
            "completed_at": "2024-01-01T01:00:01Z",
        },
        {
            "name": "execute",
            "started_at": "2024-01-01T01:00:01Z",
            "completed_at": "2024-01-01T01:10:00Z",
        },
    ]
    return {
        "unique_id": f"model.shop.{name}",
        "status": "success",
        "execution_time": seconds,
        "timing": timing,
        **more,
    }


def read(
    folder: Path, *results: dict[str, Any], elapsed: float = 0, **options: str
) -> MeterReading:
    about = {
        "dbt_schema_version": SCHEMA,
        "generated_at": "2024-01-01T02:00:00Z",
        "invocation_id": "i1",
    }
    path = folder / "run_results.json"
    path.write_text(
        json.dumps({"metadata": about, "results": results, "elapsed_time": elapsed, "args": {}})
    )
    (meter,) = find_meters([path])
    return read_meter(meter, **options)


def test_each_model_counts_by_its_time(tmp_path: Path) -> None:
    reading = read(tmp_path, result("a", 1800), result("b", 900), elapsed=3000)
    first, second = reading.metered
    assert (reading.reporter, first.target, first.engine) == ("dbt", "model.shop.a", "dbt")
    assert first.quantities == {"hour": Decimal("0.5")}
    assert second.quantities == {"hour": Decimal("0.25")}
    assert first.run == "i1/model.shop.a"
    assert first.started_at == datetime(2024, 1, 1, 1, tzinfo=UTC)
    assert first.ended_at == datetime(2024, 1, 1, 1, 10, tzinfo=UTC)


def test_threads_share_the_time_that_went_by(tmp_path: Path) -> None:
    reading = read(tmp_path, result("a", 3600), result("b", 1200), elapsed=2400)
    hours = [each.quantities["hour"] for each in reading.metered]
    assert hours == [Decimal("0.5"), pytest.approx(Decimal("0.166666667"))]
    assert sum(hours) == pytest.approx(Decimal(2400) / 3600)


def test_what_did_not_run_does_not_count_and_what_failed_does(tmp_path: Path) -> None:
    reading = read(tmp_path, result("a", 60, status="skipped"), result("b", 60, status="error"))
    assert [each.target for each in reading.metered] == ["model.shop.b"]


def test_what_the_warehouse_says_is_kept_too(tmp_path: Path) -> None:
    response = {"bytes_billed": 5 * 1024**3, "bytes_processed": 1, "slot_ms": 7_200_000}
    reading = read(tmp_path, result("a", 36, adapter_response=response), engine="bigquery")
    (metered,) = reading.metered
    assert metered.engine == "bigquery"
    assert metered.quantities == {"hour": Decimal("0.01"), "gb_processed": 5, "slot_hour": 2}


def test_a_result_without_times_ended_when_the_file_was_written(tmp_path: Path) -> None:
    (metered,) = read(tmp_path, result("a", 600, timing=[])).metered
    assert metered.ended_at == datetime(2024, 1, 1, 2, tzinfo=UTC)
    assert metered.started_at == datetime(2024, 1, 1, 1, 50, tzinfo=UTC)


def test_broken_results_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "run_results.json"
    path.write_text(json.dumps({"metadata": {"dbt_schema_version": SCHEMA}, "results": 3}))
    (meter,) = find_meters([path])
    with pytest.raises(UnreadableUsageFile, match=r"not a run_results\.json"):
        read_meter(meter)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"execution_time": 1e300, "timing": []}, id="time"),
        pytest.param({"adapter_response": {"bytes_billed": 10**40}}, id="bytes"),
    ],
)
def test_numbers_out_of_range_are_reported(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(UnreadableUsageFile, match="too large"):
        read(tmp_path, result("a", 60) | wrong)


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        pytest.param({"bytes_billed": 1024**3}, {}, id="another node of the run tells bytes"),
        pytest.param({"bytes_billed": None}, {}, id="its adapter knows bytes"),
        pytest.param({}, {"engine": "bigquery"}, id="it ran where bytes are billed"),
    ],
)
def test_a_view_reads_no_bytes_where_others_are_reported_by_bytes(
    tmp_path: Path, answer: dict[str, Any], options: dict[str, str]
) -> None:
    table, view = read(
        tmp_path, result("t", 3600, adapter_response=answer), result("v", 3600), **options
    ).metered
    assert view.quantities == {"hour": 1, "gb_processed": 0}
    assert table.quantities["gb_processed"] == bool(answer.get("bytes_billed"))


def test_bytes_are_not_reported_where_nobody_knows_them(tmp_path: Path) -> None:
    (metered,) = read(tmp_path, result("a", 3600), engine="snowflake").metered
    assert metered.quantities == {"hour": 1}
