"""Run windows: when a dataset is updated, with which partition, and when it is available.

A run at a due time of the schedule writes the partition that begins `partition_offset` due times
earlier. For example, a daily run at 02:00 usually writes the partition of the day before: the
offset is one. The partition is available `availability_lag_minutes` after the run has started.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from typing import Final, Literal
from zoneinfo import ZoneInfo

import msgspec

from lumos.model.cron import due_times, next_due
from lumos.model.dataset import Schedule

Granularity = Literal["year", "month", "day", "hour", "minute"]
_GRANULARITIES: Final[dict[int, Granularity]] = {
    4: "year",
    6: "month",
    8: "day",
    10: "hour",
    12: "minute",
}
_FORMATS: Final[dict[Granularity, str]] = {
    "year": "%Y",
    "month": "%Y-%m",
    "day": "%Y-%m-%d",
    "hour": "%Y-%m-%dT%H",
    "minute": "%Y-%m-%dT%H:%M",
}
_SEPARATED_DIGITS: Final = re.compile(r"[0-9]+(?:[-_/.: T]?[0-9]+)*Z?", re.ASCII)
# To find earlier due times, these periods are searched in turn. They suffice for schedules that are
# hourly, daily, monthly and rarer.
_LOOK_BACK: Final = (
    timedelta(hours=6),
    timedelta(days=8),
    timedelta(days=100),
    timedelta(days=3_000),
)
DEFAULT_OFFSET: Final = 1


class RunWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A run, the start of the partition that it writes, and when that partition is available."""

    run: datetime
    partition: datetime
    available: datetime


class PartitionTime(msgspec.Struct, frozen=True, order=True):
    """The time that a path's partition values stand for, in the time zone of the schedule."""

    start: datetime
    granularity: Granularity

    @property
    def text(self) -> str:
        return self.start.strftime(_FORMATS[self.granularity])


def next_window(
    schedule: Schedule, after: datetime, *, partition_offset: int = DEFAULT_OFFSET
) -> RunWindow:
    """The window of the first run that starts after a time, such as that of a release."""
    run = next_due(schedule.cron, schedule.timezone, after)
    return _window(schedule, run, partition_offset)


def windows_between(
    schedule: Schedule, first: datetime, last: datetime, *, partition_offset: int = DEFAULT_OFFSET
) -> Iterator[RunWindow]:
    """The windows of all runs whose partitions begin between two times, both included."""
    start = first - timedelta(microseconds=1)
    for run in due_times(schedule.cron, schedule.timezone, start):
        window = _window(schedule, run, partition_offset)
        if window.partition > last:
            return
        if window.partition >= first:
            yield window


def _window(schedule: Schedule, run: datetime, partition_offset: int) -> RunWindow:
    lag = timedelta(minutes=schedule.availability_lag_minutes)
    partition = run if not partition_offset else _due_before(schedule, run, partition_offset)
    return RunWindow(run=run, partition=partition, available=run + lag)


def _due_before(schedule: Schedule, run: datetime, count: int) -> datetime:
    """The due time that is `count` due times before that of a run."""
    for span in _LOOK_BACK:
        times = due_times(schedule.cron, schedule.timezone, run - span)
        earlier = list(takewhile(lambda due: due < run, times))
        if len(earlier) >= count:
            return earlier[-count]
    return run


def partition_time(values: Iterable[str]) -> PartitionTime | None:
    """The time that a path's partition values stand for, with a granularity from year to minute.

    One value may contain the whole time (`2026-11-16`, `2026111605`), or each value a part of it
    (`2026`, `11`).
    """
    digits = ""
    for value in values:
        if not _SEPARATED_DIGITS.fullmatch(value):
            return None
        parts = re.findall(r"[0-9]+", value)
        digits += "".join(part if len(part) % 2 == 0 else f"0{part}" for part in parts)
    # Seconds are ignored: no two partitions begin in the same minute.
    digits = digits[:12]
    granularity = _GRANULARITIES.get(len(digits))
    if granularity is None:
        return None
    padded = digits + "0101"[len(digits) - 4 :] if len(digits) < 8 else digits
    try:
        start = datetime.strptime(padded.ljust(12, "0"), "%Y%m%d%H%M")
    except ValueError:
        return None
    return PartitionTime(start, granularity)


def expected_partition(
    window: RunWindow, schedule: Schedule, granularity: Granularity
) -> PartitionTime:
    """The time that paths contain for the partition of a window, truncated to the granularity."""
    local = window.partition.astimezone(ZoneInfo(schedule.timezone))
    digits = local.strftime("%Y%m%d%H%M")
    length = next(length for length, each in _GRANULARITIES.items() if each == granularity)
    partition = partition_time([digits[:length]])
    assert partition is not None, f"{digits[:length]} is not a time"
    return partition


def period_of(schedule: Schedule, at: datetime) -> timedelta:
    """The median time between the runs that follow a time."""
    times: list[datetime] = []
    for due in due_times(schedule.cron, schedule.timezone, at.astimezone(UTC)):
        times.append(due)
        if len(times) > 10:
            break
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    return gaps[len(gaps) // 2]
