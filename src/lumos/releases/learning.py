"""Learns the schedule of a dataset from the arrival times of its partitions (pure).

A partition is named after the period that it covers, so its arrival is measured from the end of
that period. If partitions arrive before that end, it is measured from the start of the period.
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
# The shortest and the longest time between the starts of two partitions.
_LENGTHS: Final[dict[Period, tuple[timedelta, timedelta]]] = {
    "hour": (timedelta(hours=1), timedelta(hours=1)),
    "day": (timedelta(days=1), timedelta(days=1)),
    "week": (timedelta(days=7), timedelta(days=7)),
    "month": (timedelta(days=28), timedelta(days=31)),
}
_WEEKDAYS: Final = 7
# The share of arrivals that the learnt lag covers.
_COVERED_SHARE: Final = 0.95
_LAG_STEP_MINUTES: Final = 15


class LearntSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule that the arrivals of partitions suggest.

    `confidence` is the share of the observed partitions that arrived within the lag, reduced for
    few observations. A run writes the partition that begins `partition_offset` due times earlier.
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
    observed = [_Arrival(time.start.replace(tzinfo=zone), at) for time, at in newest]
    period = _period_of(observed)
    if period is None:
        return None
    separate_arrivals = _arrived_separately(observed, _LENGTHS[period][0])
    if len(separate_arrivals) < MIN_ARRIVALS:
        return None
    offset = 1 if _median(_lags(separate_arrivals, period, 1)) >= timedelta() else 0
    lags = sorted(_lags(separate_arrivals, period, offset))
    lag = _round_up(lags[min(len(lags) - 1, ceil(_COVERED_SHARE * len(lags)) - 1)])
    on_time = sum(timedelta() <= each <= lag for each in lags)
    return LearntSchedule(
        schedule=Schedule(
            cron=_cron(period, separate_arrivals[-1].start),
            timezone=timezone,
            availability_lag_minutes=int(lag.total_seconds()) // 60,
        ),
        partition_offset=offset,
        confidence=round(on_time / (len(observed) + 2), 2),
        partitions=len(observed),
        on_time=on_time,
    )


def _period_of(observed: list[_Arrival]) -> Period | None:
    """The most frequent time between two partitions, if it is that of more than half of them."""
    periods: Counter[Period | None] = Counter()
    for earlier, later in pairwise(observed):
        # In local time, so that a day of 23 hours is a day.
        gap = later.start.replace(tzinfo=None) - earlier.start.replace(tzinfo=None)
        matching = (name for name, (least, most) in _LENGTHS.items() if least <= gap <= most)
        periods[next(matching, None)] += 1
    if not periods:
        return None
    period, count = periods.most_common(1)[0]
    return period if count * 2 > periods.total() else None


def _arrived_separately(observed: list[_Arrival], period: timedelta) -> list[_Arrival]:
    """The partitions that did not arrive together with others; a backfill loads many at once."""
    max_gap = period / 4
    by_time = sorted(observed, key=lambda each: each.at)
    loaded_together = {
        each
        for earlier, later in pairwise(by_time)
        if later.at - earlier.at < max_gap
        for each in (earlier, later)
    }
    return [each for each in observed if each not in loaded_together]


def _lags(arrivals: list[_Arrival], period: Period, offset: int) -> list[timedelta]:
    """The time between the due time of each partition and its arrival."""
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
    return timedelta(minutes=ceil(minutes / _LAG_STEP_MINUTES) * _LAG_STEP_MINUTES)


def _median(values: list[timedelta]) -> timedelta:
    return sorted(values)[len(values) // 2]
