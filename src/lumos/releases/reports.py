"""Reports of `lumos release`."""

from datetime import datetime

from lumos.model.dataset import Schedule
from lumos.model.release import Release, ReleaseRefresh
from lumos.model.report import FORMAT_VERSION, Report


class ReleaseReport(Report, frozen=True, kw_only=True):
    """A release and the refresh of each of its datasets."""

    format_version: str = FORMAT_VERSION
    release: Release
    refreshes: tuple[ReleaseRefresh, ...]


class ReleaseSummary(Report, frozen=True, kw_only=True):
    """A release, and the number of its datasets by state."""

    release: Release
    states: dict[str, int]


class ReleaseListReport(Report, frozen=True, kw_only=True):
    """The report of `lumos release list`, newest first."""

    format_version: str = FORMAT_VERSION
    releases: tuple[ReleaseSummary, ...]


class BackfillPartition(Report, frozen=True, kw_only=True):
    """A partition that is expected by the schedule, and whether it exists."""

    partition: str
    run: datetime
    available: datetime
    present: bool
    arrived: datetime | None = None


class BackfillReport(Report, frozen=True, kw_only=True):
    """The report of `lumos release backfill`."""

    format_version: str = FORMAT_VERSION
    urn: str
    schedule: Schedule
    partitions: tuple[BackfillPartition, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """The partitions that do not exist."""
        return tuple(each.partition for each in self.partitions if not each.present)


class ScheduledDataset(Report, frozen=True, kw_only=True):
    """A dataset, its schedule, and its next run."""

    urn: str
    schedule: Schedule
    next_run: datetime
    next_available: datetime


class DatasetSchedulesReport(Report, frozen=True, kw_only=True):
    """The report of `lumos release schedule list`."""

    format_version: str = FORMAT_VERSION
    datasets: tuple[ScheduledDataset, ...]


class LearntDatasetSchedule(Report, frozen=True, kw_only=True):
    """A schedule that the arrivals of partitions suggest, or the reason why there is none.

    `on_time` of the observed `partitions` arrived within the availability lag.
    """

    urn: str
    schedule: Schedule | None = None
    confidence: float = 0.0
    partitions: int = 0
    on_time: int = 0
    reason: str | None = None
    applied: bool = False


class LearntSchedulesReport(Report, frozen=True, kw_only=True):
    """The report of `lumos release schedule learn`."""

    format_version: str = FORMAT_VERSION
    datasets: tuple[LearntDatasetSchedule, ...]
