"""Run windows: the first run after a release, its partition, and when that is available."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumos.model.dataset import Schedule
from lumos.releases.windows import (
    PartitionTime,
    expected_partition,
    next_window,
    partition_time,
    windows_between,
)


def schedule(cron: str, timezone: str = "UTC", *, lag_hours: float = 0) -> Schedule:
    return Schedule(cron=cron, timezone=timezone, availability_lag_minutes=int(lag_hours * 60))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("each", "release", "run", "partition", "available"),
    [
        pytest.param(
            schedule("0 2 * * 1", lag_hours=6), "2026-11-18T12:00",
            "2026-11-23T02:00", "2026-11-16T02:00", "2026-11-23T08:00",
            id="in the middle of a week",
        ),
        pytest.param(
            schedule("0 2 * * *", lag_hours=24), "2026-11-18T02:00",
            "2026-11-19T02:00", "2026-11-18T02:00", "2026-11-20T02:00",
            id="at the start of a run",
        ),
        pytest.param(
            schedule("0 22 * * *", lag_hours=6), "2026-12-31T21:00",
            "2026-12-31T22:00", "2026-12-30T22:00", "2027-01-01T04:00",
            id="lag across midnight and the end of the year",
        ),
        pytest.param(
            schedule("0 0 1 * *", lag_hours=6), "2028-02-10T00:00",
            "2028-03-01T00:00", "2028-02-01T00:00", "2028-03-01T06:00",
            id="month with a leap day",
        ),
        pytest.param(
            schedule("0 3 29 2 *"), "2026-01-01T00:00",
            "2028-02-29T03:00", "2024-02-29T03:00", "2028-02-29T03:00",
            id="only on leap days",
        ),
        pytest.param(
            schedule("0 6 31 * *"), "2026-01-31T07:00",
            "2026-03-31T06:00", "2026-01-31T06:00", "2026-03-31T06:00",
            id="month end that not all months have",
        ),
        pytest.param(
            schedule("0 6 L * *"), "2026-01-31T07:00",
            "2026-02-28T06:00", "2026-01-31T06:00", "2026-02-28T06:00",
            id="last day of the month",
        ),
        pytest.param(
            schedule("30 2 * * *", "Europe/Berlin", lag_hours=1), "2026-03-28T12:00",
            "2026-03-29T01:00", "2026-03-28T01:30", "2026-03-29T02:00",
            id="night in which 02:30 does not exist",
        ),
        pytest.param(
            schedule("30 2 * * *", "Europe/Berlin", lag_hours=6), "2026-10-24T12:00",
            "2026-10-25T00:30", "2026-10-24T00:30", "2026-10-25T06:30",
            id="night in which 02:30 occurs twice",
        ),
    ],
)  # fmt: skip
def test_the_first_run_after_a_release(
    each: Schedule, release: str, run: str, partition: str, available: str
) -> None:
    window = next_window(each, at(release))
    assert window.run == at(run)
    assert window.partition == at(partition)
    assert window.available == at(available)


def test_a_partition_can_be_named_after_its_run() -> None:
    window = next_window(schedule("0 2 * * *"), at("2026-11-18T12:00"), partition_offset=0)
    assert window.partition == window.run == at("2026-11-19T02:00")


@given(
    st.sampled_from(["0 2 * * *", "*/15 * * * *", "0 0 1 * *", "30 2 * * 0", "0 5 * * 1-5"]),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1)),
)
def test_a_window_follows_the_release_and_its_partition_precedes_it(
    cron: str, timezone: str, release: datetime
) -> None:
    moment = release.replace(tzinfo=UTC)
    window = next_window(schedule(cron, timezone, lag_hours=6), moment)
    assert window.partition < window.run
    assert moment < window.run
    assert window.available - window.run == timedelta(hours=6)


def test_a_backfill_covers_each_partition_of_a_range_once() -> None:
    windows = list(
        windows_between(
            schedule("0 2 * * *", "Europe/Berlin"), at("2026-10-23T22:00"), at("2026-10-27T22:00")
        )
    )
    days = [
        expected_partition(each, schedule("0 2 * * *", "Europe/Berlin"), "day").text
        for each in windows
    ]
    assert days == ["2026-10-24", "2026-10-25", "2026-10-26", "2026-10-27"]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["2026-11-16"], "2026-11-16"),
        (["20261116"], "2026-11-16"),
        (["2026", "11", "6"], "2026-11-06"),
        (["2026-11-16", "05"], "2026-11-16T05"),
        (["2026-11"], "2026-11"),
        (["2026"], "2026"),
        (["2026-11-16T05:30:00Z"], "2026-11-16T05:30"),
    ],
)
def test_partition_values_name_a_time(values: list[str], text: str) -> None:
    time = partition_time(values)
    assert time is not None
    assert time.text == text


@pytest.mark.parametrize(
    "values", [[], ["abc"], ["2026", "13"], ["2026-02-30"], ["EU"], ["1700000000"], ["7"]]
)
def test_other_values_do_not(values: list[str]) -> None:
    assert partition_time(values) is None


def test_the_partition_of_a_window_is_that_of_its_time_zone() -> None:
    each = schedule("0 0 * * *", "Asia/Tokyo")
    window = next_window(each, at("2026-11-18T12:00"))
    assert expected_partition(window, each, "day") == PartitionTime(
        datetime(2026, 11, 18),
        "day",
    )
