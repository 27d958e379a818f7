"""Learns the schedule of a dataset from the arrival times of its partitions (pure).

A partition is named after the period that it covers, so that its arrival is measured from the end
of that period; where partitions arrive within the period that names them, from its begin.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from lumos.model.dataset import Schedule
from lumos.releases.windows import PartitionTime

Period = Literal["hour", "day", "week", "month"]
MIN_ARRIVALS: Final = 5
MAX_ARRIVALS: Final = 60
_LENGTHS: Final[dict[Period, tuple[timedelta, timedelta]]] = {
    "hour": (timedelta(hours=1), timedelta(hours=1)),
    "day": (timedelta(days=1), timedelta(days=1)),
    "week": (timedelta(days=7), timedelta(days=7)),
    "month": (timedelta(days=28), timedelta(days=31)),
}
_WEEKDAYS: Final = 7
# The share of arrivals that the learnt lag covers.
_COVERED: Final = 0.95
_STEP_OF_LAG: Final = 15


class LearntSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that the arrivals of partitions suggest.

    `confidence` is the share of the observed partitions that arrived within the lag, reduced for
    few observations. `partition_offset` is how many due times before a run its partition begins.
    """

    schedule: Schedule
    partition_offset: int
    confidence: float
    partitions: int
    on_time: int


class _Arrival(NamedTuple):
    start: datetime
    at: datetime


def learn_schedule(
    arrivals: Mapping[PartitionTime, datetime], *, timezone: str = "UTC"
) -> LearntSchedule | None:
    """The schedule of the newest partitions, given with their arrival times; None if unclear."""
    zone = ZoneInfo(timezone)
    newest = sorted(arrivals.items())[-MAX_ARRIVALS:]
    seen = [_Arrival(time.start.replace(tzinfo=zone), at) for time, at in newest]
    period = _period_of(seen)
    if period is None:
        return None
    single = _arrived_alone(seen, _LENGTHS[period][0])
    if len(single) < MIN_ARRIVALS:
        return None
    offset = 1 if _median(_lags(single, period, 1)) >= timedelta() else 0
    lags = sorted(_lags(single, period, offset))
    lag = _round_up(lags[min(len(lags) - 1, ceil(_COVERED * len(lags)) - 1)])
    on_time = sum(timedelta() <= each <= lag for each in lags)
    return LearntSchedule(
        schedule=Schedule(
            cron=_cron(period, single[-1].start),
            timezone=timezone,
            availability_lag_minutes=int(lag.total_seconds()) // 60,
        ),
        partition_offset=offset,
        confidence=round(on_time / (len(seen) + 2), 2),
        partitions=len(seen),
        on_time=on_time,
    )


def _period_of(seen: list[_Arrival]) -> Period | None:
    """The period that most partitions are apart."""
    periods: Counter[Period | None] = Counter()
    for earlier, later in pairwise(seen):
        # In local time, so that a day of 23 hours is a day.
        gap = later.start.replace(tzinfo=None) - earlier.start.replace(tzinfo=None)
        fits = (name for name, (least, most) in _LENGTHS.items() if least <= gap <= most)
        periods[next(fits, None)] += 1
    if not periods:
        return None
    period, count = periods.most_common(1)[0]
    return period if count * 2 > periods.total() else None


def _arrived_alone(seen: list[_Arrival], period: timedelta) -> list[_Arrival]:
    """The partitions that were not loaded together with others, as in a backfill."""
    near = period / 4
    by_time = sorted(seen, key=lambda each: each.at)
    bulk = {
        each
        for earlier, later in pairwise(by_time)
        if later.at - earlier.at < near
        for each in (earlier, later)
    }
    return [each for each in seen if each not in bulk]


def _lags(arrivals: list[_Arrival], period: Period, offset: int) -> list[timedelta]:
    """How long after their due times partitions arrived."""
    return [
        each.at.astimezone(UTC) - _add_periods(each.start, period, offset).astimezone(UTC)
        for each in arrivals
    ]


def _add_periods(start: datetime, period: Period, count: int) -> datetime:
    """Add `count` periods to a time in local (wall-clock) time."""
    if period != "month":
        return start + count * _LENGTHS[period][0]
    months = start.year * 12 + start.month - 1 + count
    return start.replace(year=months // 12, month=months % 12 + 1)


def _cron(period: Period, start: datetime) -> str:
    if period == "hour":
        return "0 * * * *"
    time = f"{start.minute} {start.hour}"
    match period:
        case "day":
            return f"{time} * * *"
        case "week":
            return f"{time} * * {start.isoweekday() % _WEEKDAYS}"
        case "month":
            return f"{time} {start.day} * *"


def _round_up(lag: timedelta) -> timedelta:
    minutes = max(0.0, lag.total_seconds() / 60)
    return timedelta(minutes=ceil(minutes / _STEP_OF_LAG) * _STEP_OF_LAG)


def _median(values: list[timedelta]) -> timedelta:
    return sorted(values)[len(values) // 2]
