"""Sums the files of a dataset by the day in the values of their partition (pure)."""

from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta
from itertools import pairwise
from typing import Final

from lumos.discovery.grouping.patterns import is_time_partition
from lumos.model.report import Report
from lumos.profiles.plan import SourceFile
from lumos.releases.windows import Granularity, partition_time

# Partitions of a year or a month cover many days, so that no single day can be missing.
_AT_MOST_A_DAY: Final = ("day", "hour", "minute")
# Longer gaps are ignored: a placeholder such as the year 9999 would add centuries of missing days.
_MAX_GAP: Final = 366


class PartitionDay(Report, frozen=True, kw_only=True):
    """The files whose partitions name one day; `rows` is null if it is unknown for any file."""

    day: date
    partitions: int
    files: int
    bytes: int
    rows: int | None


class PartitionDays(Report, frozen=True, kw_only=True):
    """The days of a dataset, oldest first, and the days between them without any partition.

    A partition of a month or a year is listed under its first day. `undated` is the number of files
    without a time partition.
    """

    granularity: Granularity | None
    days: tuple[PartitionDay, ...]
    missing: tuple[date, ...]
    undated: int


def sum_by_day(files: Iterable[SourceFile]) -> PartitionDays:
    """The sums of the files of a dataset by day."""
    sums: dict[date, _Sums] = {}
    counts: Counter[Granularity] = Counter()
    undated = 0
    for file in files:
        pairs = (part.partition("=") for part in file.partition.split("/") if part)
        values = [value for key, _, value in pairs if is_time_partition(key, value)]
        if (time := partition_time(values)) is None:
            undated += 1
            continue
        counts[time.granularity] += 1
        sums.setdefault(time.start.date(), _Sums()).add(file)
    granularity = counts.most_common(1)[0][0] if counts else None
    days = tuple(sums[day].report(day) for day in sorted(sums))
    return PartitionDays(
        granularity=granularity,
        days=days,
        missing=tuple(_missing(sorted(sums))) if granularity in _AT_MOST_A_DAY else (),
        undated=undated,
    )


class _Sums:
    """The sums of one day."""

    def __init__(self) -> None:
        self._partitions: set[str] = set()
        self._files = 0
        self._bytes = 0
        self._rows: int | None = 0

    def add(self, file: SourceFile) -> None:
        self._partitions.add(file.partition)
        self._files += 1
        self._bytes += max(0, file.task.size)
        is_unknown = self._rows is None or file.rows is None
        self._rows = None if is_unknown else (self._rows or 0) + (file.rows or 0)

    def report(self, day: date) -> PartitionDay:
        return PartitionDay(
            day=day,
            partitions=len(self._partitions),
            files=self._files,
            bytes=self._bytes,
            rows=self._rows,
        )


def _missing(days: list[date]) -> Iterable[date]:
    for earlier, later in pairwise(days):
        gap = (later - earlier).days
        if gap <= _MAX_GAP:
            yield from (earlier + timedelta(days=number) for number in range(1, gap))
