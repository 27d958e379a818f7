"""What an application used, from its event log."""

import bz2
import gzip
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cost.meters.spark_logs import (
    HOUR,
    START,
    added,
    configured,
    ended,
    removed,
    staged,
    started,
    written,
)
from lumos.cost.meters.compression import UnreadableUsageFile
from lumos.cost.meters.reader import MeterReading, find_meters, read_meter


def read(path: Path, **options: str) -> MeterReading:
    (meter,) = find_meters([path])
    return read_meter(meter, **options)


def test_executors_count_as_long_as_they_were_there(tmp_path: Path) -> None:
    log = written(
        tmp_path / "app-1",
        started(),
        added("1", cores=4),
        added("2", cores=8, at=START + HOUR),
        removed("2", START + 2 * HOUR),
        staged(2 * 1024**3),
        staged(str(1024**3)),
        ended(START + 3 * HOUR),
    )
    reading = read(log)
    (metered,) = reading.metered
    assert (reading.reporter, metered.target, metered.engine, metered.run) == (
        "spark",
        "nightly",
        "spark",
        "app-1",
    )
    assert metered.started_at == datetime(2024, 1, 1, tzinfo=UTC)
    assert metered.ended_at == datetime(2024, 1, 1, 3, tzinfo=UTC)
    # 4 cores for three hours, 8 for one.
    assert metered.quantities == {
        "core_hour": Decimal(20),
        "hour": Decimal(3),
        "gb_processed": Decimal(3),
    }
    assert reading.remarks == ()


def test_an_application_that_runs_still_counts_up_to_its_last_event(tmp_path: Path) -> None:
    log = written(
        tmp_path / "app-1.inprogress", started(), added("1", cores=2), staged(0, START + HOUR)
    )
    reading = read(log)
    assert reading.metered[0].quantities["core_hour"] == 2
    assert "is still running or was killed" in reading.remarks[0]


def test_a_driver_in_the_cluster_has_cores_of_its_own(tmp_path: Path) -> None:
    properties = configured(spark_submit_deployMode="cluster", spark_driver_cores="2")
    log = written(
        tmp_path / "app-1", properties, started(), added("1", cores=4), ended(START + HOUR)
    )
    assert read(log).metered[0].quantities["core_hour"] == 6


def test_attempts_of_one_application_are_runs_of_their_own(tmp_path: Path) -> None:
    first = written(tmp_path / "app_1", started(**{"App Attempt ID": "1"}), ended(START + HOUR))
    second = written(tmp_path / "app_2", started(**{"App Attempt ID": "2"}), ended(START + HOUR))
    assert {read(log).metered[0].run for log in (first, second)} == {"app-1/1", "app-1/2"}


def test_the_parts_of_a_rolling_log_are_one_application(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_app-1"
    written(folder / "events_10_app-1", removed("1", START + HOUR), ended(START + 2 * HOUR))
    written(folder / "events_2_app-1", added("1", cores=3))
    written(folder / "events_1_app-1", started())
    written(folder / "appstatus_app-1")
    assert read(folder).metered[0].quantities["core_hour"] == 3
    # A folder of logs is looked through.
    assert read(tmp_path).metered[0].run == "app-1"


def test_a_compacted_log_says_that_something_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_app-1"
    written(folder / "events_1_app-1", started(), added("0", cores=100))
    written(folder / "events_2_app-1.compact", started(), added("1", cores=3))
    written(folder / "events_3_app-1", ended(START + HOUR))
    reading = read(folder)
    assert reading.metered[0].quantities["core_hour"] == 3
    assert "compacted" in reading.remarks[0]


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, bz2.compress, lambda data: pa.compress(data, codec="zstd", asbytes=True)],
    ids=["gzip", "bzip2", "zstd"],
)
def test_compressed_logs_are_read(tmp_path: Path, pack: object) -> None:
    plain = written(tmp_path / "plain", started(), added("1", cores=1), ended(START + HOUR))
    packed = tmp_path / "packed"
    packed.write_bytes(pack(plain.read_bytes()))  # type: ignore[operator]
    assert read(packed).metered == read(plain).metered


def test_a_log_that_is_still_written_is_read_up_to_its_end(tmp_path: Path) -> None:
    plain = written(tmp_path / "plain", started(), *[added(str(n), cores=1) for n in range(5_000)])
    packed = pa.compress(plain.read_bytes(), codec="zstd", asbytes=True)
    cut = tmp_path / "cut"
    cut.write_bytes(packed[: len(packed) // 2])
    assert read(cut).metered[0].target == "nightly"


def test_a_bomb_is_not_unfolded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lumos.decompression.ALWAYS_ALLOWED", 1024)
    monkeypatch.setattr("lumos.decompression.MAX_COMPRESSION_RATIO", 10)
    plain = written(tmp_path / "plain", started()).read_bytes()
    bomb = tmp_path / "bomb"
    bomb.write_bytes(gzip.compress(plain + b'{"Event":"x"}\n' * 1_000_000))
    (meter,) = find_meters([tmp_path / "plain"])
    with pytest.raises(UnreadableUsageFile, match="decompressed size is implausible"):
        read_meter(meter._replace(paths=(str(bomb),)))


def test_lines_that_are_no_events_are_reported_and_harm_nothing(tmp_path: Path) -> None:
    log = written(tmp_path / "app-1", started(), added("1", cores=1), ended(START + HOUR))
    log.write_text(
        log.read_text() + "nonsense\n" + '{"Event":"SparkListenerExecutorAdded","Timestamp":"x"}\n'
    )
    reading = read(log)
    assert reading.metered[0].quantities["core_hour"] == 1
    assert "2 lines could not be read" in reading.remarks[0]


def test_a_log_without_an_application_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableUsageFile, match="has no application start event"):
        read(written(tmp_path / "app-1", ended(START)))


def test_damaged_lz4_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "app-1.lz4"
    log.write_bytes(b"LZ4Block" + b"\xff" * 40)
    (meter,) = find_meters([written(tmp_path / "plain", started())])
    with pytest.raises(UnreadableUsageFile, match="damaged"):
        read_meter(meter._replace(paths=(str(log),)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("codec", "rolling"), [(None, "false"), ("zstd", "true"), ("lz4", "false"), ("snappy", "true")]
)
def test_what_spark_itself_writes_is_read(tmp_path: Path, codec: str | None, rolling: str) -> None:
    import subprocess
    import sys

    script = f"""
from pyspark.sql import SparkSession
settings = {{"spark.eventLog.enabled": "true", "spark.eventLog.dir": r"{tmp_path}", "spark.ui.enabled": "false",
    "spark.eventLog.rolling.enabled": "{rolling}", "spark.eventLog.compress": "{str(codec is not None).lower()}",
    "spark.eventLog.compression.codec": "{codec or "zstd"}"}}
builder = SparkSession.builder.master("local[2]").appName("nightly")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.range(1000).write.parquet(r"{tmp_path}/lake/out")
spark.read.parquet(r"{tmp_path}/lake/out").agg({{"id": "sum"}}).collect()
spark.stop()
"""
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    (reading,) = (read_meter(meter) for meter in find_meters([tmp_path]))
    (metered,) = reading.metered
    assert (metered.target, reading.remarks) == ("nightly", ())
    assert metered.outputs == (f"file:{tmp_path}/lake/out",)
    assert Decimal(0) < metered.quantities["core_hour"] <= 2 * metered.quantities["hour"]
    assert metered.quantities["gb_processed"] > 0


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([started(at=10**17)], id="time"),
        pytest.param([started(), added("1", cores=10**15), ended(10**13)], id="cores"),
        pytest.param([started(), staged(10**40), ended(START + HOUR)], id="bytes"),
    ],
)
def test_numbers_out_of_range_make_one_log_unreadable(
    tmp_path: Path, events: list[dict[str, Any]]
) -> None:
    log = written(tmp_path / "app-1", *events)
    with pytest.raises(UnreadableUsageFile, match=r"app-1 cannot be read: a time or a quantity"):
        read(log)


def test_a_number_of_thousands_of_digits_counts_nothing(tmp_path: Path) -> None:
    log = written(tmp_path / "app-1", started(), staged("9" * 5000), ended(START + HOUR))
    assert read(log).metered[0].quantities["gb_processed"] == 0
