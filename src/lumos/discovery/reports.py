"""Reports of ingest, discover and explain; the field names are part of the JSON contract."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from lumos.catalogs.reports import PublishReport
from lumos.datasets.reports import LocationReport, StatisticsReport, flags_of
from lumos.model.change import (
    ChangeEvent,
    Verdict,
)
from lumos.model.dataset import (
    Dataset,
    DriftedShape,
    Versioning,
)
from lumos.model.discovery import Problem, Suggestion
from lumos.model.privacy import allowed_statistics
from lumos.model.report import FORMAT_VERSION, Report
from lumos.schemas.changes import SplitDataset
from lumos.schemas.findings import ChangeRow, change_rows
from lumos.schemas.report_parts import AffectedReport, SchemaReport

ScanChange = Literal["new", "changed", "unchanged"]


class VersioningReport(Report, frozen=True, kw_only=True):
    cloud_version: str
    schema_version: str

    @classmethod
    def of(cls, versioning: Versioning | None) -> "VersioningReport | None":
        if versioning is None:
            return None
        return cls(cloud_version=versioning.cloud_version, schema_version=versioning.schema_version)


class DatasetReport(Report, frozen=True, kw_only=True):
    """A dataset of a scan, how it changed, and the last event that was recorded.

    If a table's log reports several changes since the last scan, all of them are listed; `events`
    are the types of all events, such as RENAMED and MODIFIED. `affected` lists the downstream
    datasets that break; it is null if no downstream dataset is known.
    """

    urn: str
    name: str
    platform: str
    format: str | None
    location: LocationReport | None
    schema: SchemaReport
    statistics: StatisticsReport | None
    versioning: VersioningReport | None
    change: ScanChange
    changes: tuple[ChangeRow, ...]
    event: str | None
    events: tuple[str, ...]
    summary: str
    flags: tuple[str, ...]
    drift: tuple[DriftedShape, ...]
    affected: AffectedReport | None = None

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        *,
        change: ScanChange,
        event: ChangeEvent | None = None,
        earlier: tuple[ChangeEvent, ...] = (),
    ) -> "DatasetReport":
        events = [each for each in (*earlier, event) if each is not None]
        return cls(
            urn=dataset.urn,
            name=dataset.name,
            platform=dataset.platform,
            format=dataset.format,
            location=LocationReport.of(dataset.location),
            schema=SchemaReport.of(dataset.schema),
            statistics=StatisticsReport.of(allowed_statistics(dataset)),
            versioning=VersioningReport.of(dataset.versioning),
            change=change,
            changes=tuple(
                row for each in events for row in change_rows(dataset.urn, each.findings)
            ),
            event=None if event is None else event.type.value,
            events=tuple(each.type.value for each in events),
            summary="; ".join(each.summary for each in events),
            flags=flags_of(dataset.schema),
            drift=dataset.drift or (),
            affected=AffectedReport.of(*events),
        )


class IngestSummary(Report, frozen=True, kw_only=True):
    files_listed: int = 0
    files_read: int = 0
    files_unchanged: int = 0
    files_failed: int = 0
    files_skipped: int = 0
    tables: int = 0
    tables_read: int = 0
    datasets_new: int = 0
    datasets_changed: int = 0
    datasets_unchanged: int = 0
    datasets_missing: int = 0
    # Changes of fields, and deleted datasets.
    breaking_changes: int = 0
    undetermined_changes: int = 0
    seconds: float = 0.0


class Measurement(Report, frozen=True, kw_only=True):
    """A profiled dataset: its number of rows, and the share of cells that are not null."""

    urn: str
    rows: int
    completeness: float | None
    seconds: float


class GoneDataset(Report, frozen=True, kw_only=True):
    """A deleted dataset, and the downstream datasets that break."""

    urn: str
    affected: AffectedReport | None


class IngestReport(Report, frozen=True, kw_only=True):
    """The report of `lumos ingest`; `held` are missing datasets that were not recorded as deleted.

    `gone` lists for each of the `missing` datasets the downstream datasets that break. `splits` are
    datasets that were split because their files are grouped differently now. `catalog` reports what
    was published to the configured catalog, if there is one. `measured` are the datasets that were
    profiled.
    """

    format_version: str = FORMAT_VERSION
    summary: IngestSummary
    roots: tuple[str, ...]
    datasets: Sequence[DatasetReport]
    missing: tuple[str, ...]
    held: tuple[str, ...]
    problems: tuple[Problem, ...]
    gone: tuple[GoneDataset, ...] = ()
    splits: tuple[SplitDataset, ...] = ()
    catalog: PublishReport | None = None
    measured: tuple[Measurement, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()

    @property
    def affected(self) -> tuple[AffectedReport, ...]:
        """The downstream effects of all changes, as far as they are known."""
        effects = [each.affected for each in self.datasets]
        effects += [each.affected for each in self.gone]
        return tuple(each for each in effects if each is not None)

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all changes and their downstream effects."""
        if self.summary.breaking_changes or any(each.breaking for each in self.affected):
            return Verdict.BREAKING
        is_undetermined = any(each.undetermined or each.problem for each in self.affected)
        return (
            Verdict.UNDETERMINED
            if is_undetermined or self.summary.undetermined_changes
            else Verdict.COMPATIBLE
        )


class DiscoverSummary(Report, frozen=True, kw_only=True):
    files_listed: int
    files_failed: int
    files_skipped: int = 0
    tables: int = 0
    datasets: int
    complete: bool
    seconds: float


class DiscoverReport(Report, frozen=True, kw_only=True):
    """The report of `lumos discover`; `config` is the configuration file that was written."""

    format_version: str = FORMAT_VERSION
    summary: DiscoverSummary
    roots: tuple[str, ...]
    datasets: Sequence[DatasetReport]
    problems: tuple[Problem, ...]
    config: str | None = None
    suggestions: tuple[Suggestion, ...] = ()


class ExplainedDataset(Report, frozen=True, kw_only=True):
    """A dataset and the rule that formed it; `files_here` counts files of the explained path."""

    urn: str
    location: str
    format: str
    rule: str
    reason: str
    files_here: int
    files: int


class PartitionValue(Report, frozen=True, kw_only=True):
    """A Hive partition key, or the placeholder of a date in the path, and its value."""

    key: str
    value: str


class FileCount(Report, frozen=True, kw_only=True):
    """A reason why files of a folder belong to no dataset, and the number of these files."""

    verdict: str
    reason: str
    files: int


class ExplainReport(Report, frozen=True, kw_only=True):
    """The report of `lumos explain`; `scanned_at` is null if the files were read without a scan.

    `verdict` is one of dataset, hidden, excluded, not_data, accompanies, unreadable and folder; for
    paths in a table also log and not_live. `is_new` is set if the last scan did not find the file.
    """

    format_version: str = FORMAT_VERSION
    path: str
    kind: Literal["file", "folder"]
    root: str
    scanned_at: datetime | None
    verdict: str
    reason: str
    code: str | None = None
    datasets: tuple[ExplainedDataset, ...]
    partitions: tuple[PartitionValue, ...] = ()
    shape: str | None = None
    drifts: bool = False
    is_new: bool = False
    others: tuple[FileCount, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
