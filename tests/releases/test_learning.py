"""Schedules learnt from the arrival times of partitions."""

import random
from datetime import UTC, datetime, timedelta

from lumos.releases.learning import learn_schedule
from lumos.releases.windows import PartitionTime

START = datetime(2026, 9, 1)
DAY = timedelta(days=1)


def arrivals(
    lags: list[timedelta], *, period: timedelta = DAY, start: datetime = START
) -> dict[PartitionTime, datetime]:
    """Partitions of consecutive periods, each arriving so long after the end of its period."""
    times = [start + number * period for number in range(len(lags))]
    return {
        PartitionTime(time, "day" if period >= DAY else "hour"): (time + period + lag).replace(
            tzinfo=UTC
        )
        for time, lag in zip(times, lags, strict=True)
    }


def test_daily_partitions_that_arrive_at_night() -> None:
    noise = random.Random(3)
    lags = [timedelta(hours=3, minutes=noise.randrange(0, 50)) for _ in range(40)]
    learnt = learn_schedule(arrivals(lags))
    assert learnt is not None
    assert learnt.schedule.cron == "0 0 * * *"
    assert (
        timedelta(hours=3, minutes=30)
        <= timedelta(minutes=learnt.schedule.availability_lag_minutes)
        <= timedelta(hours=4)
    )
    assert learnt.partition_offset == 1
    assert learnt.confidence > 0.9


def test_weekly_partitions_keep_their_weekday() -> None:
    learnt = learn_schedule(
        arrivals([timedelta(hours=5)] * 12, period=7 * DAY, start=datetime(2026, 6, 1))
    )
    assert learnt is not None
    assert learnt.schedule.cron == "0 0 * * 1"
    assert learnt.schedule.availability_lag_minutes == 300


def test_monthly_partitions() -> None:
    months = [datetime(2025 + number // 12, number % 12 + 1, 1) for number in range(20)]
    following = [*months[1:], datetime(2026, 9, 1)]
    found = {
        PartitionTime(month, "month"): end.replace(tzinfo=UTC) + timedelta(hours=30)
        for month, end in zip(months, following, strict=True)
    }
    learnt = learn_schedule(found)
    assert learnt is not None
    assert learnt.schedule.cron == "0 0 1 * *"
    assert learnt.schedule.availability_lag_minutes == 30 * 60


def test_hourly_partitions() -> None:
    learnt = learn_schedule(arrivals([timedelta(minutes=20)] * 48, period=timedelta(hours=1)))
    assert learnt is not None
    assert learnt.schedule.cron == "0 * * * *"
    assert learnt.schedule.availability_lag_minutes == 30


def test_partitions_named_after_the_day_of_their_run() -> None:
    learnt = learn_schedule(arrivals([timedelta(hours=-20)] * 20))
    assert learnt is not None
    assert learnt.partition_offset == 0
    assert learnt.schedule.availability_lag_minutes == 4 * 60


def test_a_time_zone_with_daylight_saving_keeps_the_lag() -> None:
    start = datetime(2026, 10, 10)
    lags = [timedelta(hours=1 if number < 14 else 2) for number in range(28)]
    learnt = learn_schedule(arrivals(lags, start=start), timezone="Europe/Berlin")
    assert learnt is not None
    assert learnt.schedule.availability_lag_minutes == 3 * 60


def test_a_backfill_is_not_taken_for_a_schedule() -> None:
    loaded = datetime(2026, 11, 1, tzinfo=UTC)
    found = {PartitionTime(START + number * DAY, "day"): loaded for number in range(40)}
    assert learn_schedule(found) is None


def test_days_after_a_backfill_are_learnt_with_less_confidence() -> None:
    loaded = datetime(2026, 9, 30, 12, tzinfo=UTC)
    found = arrivals([timedelta(hours=2)] * 45)
    usual = {time: max(arrived, loaded) for time, arrived in found.items()}
    learnt = learn_schedule(usual)
    assert learnt is not None
    assert learnt.schedule.availability_lag_minutes == 120
    assert learnt.confidence < 0.5


def test_few_or_irregular_partitions_suggest_no_schedule() -> None:
    assert learn_schedule({}) is None
    assert learn_schedule(arrivals([timedelta(hours=2)] * 4)) is None
    noise = random.Random(5)
    odd = {
        PartitionTime(START + timedelta(days=noise.randrange(2, 400)), "day"): datetime(
            2026, 11, 1, tzinfo=UTC
        )
        + timedelta(hours=number * 30)
        for number in range(20)
    }
    assert learn_schedule(odd) is None
