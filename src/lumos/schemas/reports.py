"""The reports of `lumos schema` and `lumos version`, which the SDK returns and --json prints."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from lumos.model.change import DECLARED_BREAKING, Cause, ChangeEvent, EventType, Verdict
from lumos.model.notification import AlertState
from lumos.model.report import FORMAT_VERSION, Report
from lumos.model.version import ChangeType, Level
from lumos.schemas.changes import Milestone
from lumos.schemas.findings import ChangeCounts, ChangeRow, change_rows, kind_of
from lumos.schemas.report_parts import AffectedReport, SchemaReport
from lumos.store import DatasetState, KnownDataset
from lumos.store.history import RecordedSchemaVersion, SchemaStep

_DAY: Final = timedelta(days=1)
_DECLARED_KIND: Final = "declared"


class Evolution(msgspec.Struct, frozen=True, kw_only=True):
    """The number of changes in a period; `change_frequency` is the number of changes per day."""

    total_versions: int
    breaking_versions: int
    total_changes: int
    breaking_changes: int
    changes_by_kind: dict[str, int]
    change_frequency: float


def count_changes(event: ChangeEvent) -> int:
    """The number of changes in an event, including a change that a user declared as breaking."""
    return len(event.findings) + (DECLARED_BREAKING in event.flags)


def summarise_evolution(
    events: Sequence[ChangeEvent], *, start: datetime, end: datetime
) -> Evolution:
    """Count the changes in a period, given the events that started a schema version in it."""
    findings = [finding for event in events for finding in event.findings]
    declared = sum(DECLARED_BREAKING in event.flags for event in events)
    kinds = Counter(kind_of(finding.change) for finding in findings)
    if declared:
        kinds[_DECLARED_KIND] = declared
    total = sum(map(count_changes, events))
    days = max((end - start) / _DAY, 1.0)
    return Evolution(
        total_versions=len(events),
        breaking_versions=sum(event.breaking for event in events),
        total_changes=total,
        breaking_changes=sum(event.breaking_changes for event in events),
        changes_by_kind=dict(sorted(kinds.items())),
        change_frequency=round(total / days, 4),
    )


class DatasetDiff(Report, frozen=True, kw_only=True):
    """The changes of one dataset, worst for consumers first."""

    urn: str
    from_version: str | None
    to_version: str | None
    changes: tuple[ChangeRow, ...]


class DiffReport(Report, frozen=True, kw_only=True):
    """The result of `lumos schema diff`: the datasets that differ."""

    format_version: str = FORMAT_VERSION
    datasets: tuple[DatasetDiff, ...]
    summary: ChangeCounts


class RevisionsReport(DiffReport, frozen=True, kw_only=True):
    """The result of `lumos schema diff --base`; `remarks` are about files that were skipped."""

    remarks: tuple[str, ...] | UnsetType = UNSET


class ProposalSource(Report, frozen=True, kw_only=True):
    """The file of a proposed schema, and its kind."""

    file: str
    kind: str


class PredictReport(DiffReport, frozen=True, kw_only=True):
    """The result of `lumos schema predict`; `to_version` is the version after the change."""

    proposed: ProposalSource
    remarks: tuple[str, ...]


class VersionReport(Report, frozen=True, kw_only=True):
    """A schema version, the event that started it, and the schema.

    `timestamp` is when the schema changed, and `recorded_at` when the change was recorded. `source`
    is the location of the data, and `author` the person who made the change, if any.
    `affected_downstream` are the datasets that the change affected, as far as known at that time;
    `affected` has the details.
    """

    schema_version: str
    cloud_version: str
    timestamp: datetime
    recorded_at: datetime
    event: str
    cause: str
    author: str | None
    source: str | None
    summary: str
    breaking: bool
    fingerprint: str
    changes: tuple[ChangeRow, ...]
    affected_downstream: tuple[str, ...]
    affected: AffectedReport | None
    breaking_change_alert: AlertState | None
    schema: SchemaReport

    @classmethod
    def of(
        cls, urn: str, version: RecordedSchemaVersion, alert: AlertState | None
    ) -> "VersionReport":
        record, event = version.record, version.event
        return cls(
            schema_version=record.version,
            cloud_version=record.cloud_version,
            timestamp=event.at,
            recorded_at=record.recorded_at,
            event=event.type.value,
            cause=event.cause,
            author=event.author,
            source=event.source_path or str(event.metadata.get("source", "")) or None,
            summary=event.summary,
            breaking=event.breaking,
            fingerprint=record.schema.shape,
            changes=change_rows(urn, event.findings),
            affected_downstream=event.affected_downstream,
            affected=AffectedReport.of(event),
            breaking_change_alert=alert if event.breaking else None,
            schema=SchemaReport.of(record.schema),
        )


class HistoryReport(Report, frozen=True, kw_only=True):
    """The result of `lumos schema history`; the newest version comes first.

    Milestones are events such as the deletion or renaming of the dataset.
    """

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    versions: tuple[VersionReport, ...]
    milestones: tuple[Milestone, ...]


class TimelineEntry(Report, frozen=True, kw_only=True):
    """A schema version, without its schema and the details of its changes."""

    schema_version: str
    cloud_version: str
    timestamp: datetime
    field_count: int
    added: int
    removed: int
    changed: int
    breaking: bool
    verdict: Verdict | None
    summary: str

    @classmethod
    def of(cls, version: RecordedSchemaVersion) -> "TimelineEntry":
        event = version.event
        tags = [finding.change.__struct_config__.tag for finding in event.findings]
        added, removed = tags.count("added"), tags.count("removed")
        return cls(
            schema_version=version.record.version,
            cloud_version=version.record.cloud_version,
            timestamp=event.at,
            field_count=len(version.record.schema.fields),
            added=added,
            removed=removed,
            changed=len(tags) - added - removed,
            breaking=event.breaking,
            verdict=event.verdict,
            summary=event.summary,
        )


class TimelineReport(Report, frozen=True, kw_only=True):
    """The result of `lumos schema timeline`; the oldest version comes first."""

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    versions: tuple[TimelineEntry, ...]


class EvolutionStep(Report, frozen=True, kw_only=True):
    """A schema version that started in the period."""

    schema_version: str
    timestamp: datetime
    changes: int
    breaking: bool
    summary: str

    @classmethod
    def of(cls, step: SchemaStep) -> "EvolutionStep":
        return cls(
            schema_version=step.version,
            timestamp=step.recorded_at,
            changes=count_changes(step.event),
            breaking=step.event.breaking,
            summary=step.event.summary,
        )


class DatasetEvolution(Evolution, frozen=True, kw_only=True):
    """The number of changes to the schema of a dataset in the period, and its versions."""

    urn: str
    name: str
    timeline: tuple[EvolutionStep, ...]


class EvolutionReport(Report, frozen=True, kw_only=True):
    """The result of `lumos schema evolution`; datasets with most breaking changes come first."""

    format_version: str = FORMAT_VERSION
    period_start: datetime
    period_end: datetime
    datasets: tuple[DatasetEvolution, ...]
    summary: Evolution


class SchemaExportReport(Report, frozen=True, kw_only=True):
    """The result of `lumos schema export`; files are listed by their path in the folder.

    `replaced` lists those written files that replaced files of users.
    """

    format_version: str = FORMAT_VERSION
    folder: str
    datasets: int
    written: tuple[str, ...]
    replaced: tuple[str, ...]
    removed: tuple[str, ...]


VersionNeed = Literal["none", "first version", "schema", "prefix"]


class VersionEntry(Report, frozen=True, kw_only=True):
    """A schema version in the history of a dataset; `version` is its first cloud version."""

    version: str
    schema_version: str
    timestamp: datetime
    change_type: ChangeType
    author: str | None
    breaking: bool
    verdict: Verdict | None
    changes: tuple[str, ...]


class ChangeDetails(Report, frozen=True, kw_only=True):
    """The event that last raised the cloud version."""

    event: EventType
    summary: str
    breaking: bool
    changes: tuple[str, ...]


class VersionShowReport(Report, frozen=True, kw_only=True):
    """The result of `lumos version show`.

    The oldest version comes first in `version_history`, the newest milestone in `milestones`.
    """

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    state: DatasetState
    cloud_version: str
    schema_version: str
    timestamp: datetime
    author: str | None
    cause: Cause | None
    change_type: ChangeType
    change_details: ChangeDetails
    previous_version: str | None
    version_history: tuple[VersionEntry, ...]
    milestones: tuple[Milestone, ...]


class VersionMapReport(Report, frozen=True, kw_only=True):
    """The result of `lumos version map`: the schema version of each cloud version."""

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    versions: dict[str, str]


class DatasetVersions(Report, frozen=True, kw_only=True):
    """The cloud version and the schema version of a dataset."""

    cloud_version: str
    schema_version: str

    @classmethod
    def of(cls, dataset: KnownDataset) -> "DatasetVersions":
        return cls(cloud_version=dataset.cloud_version, schema_version=dataset.schema_version)


class VersionBumpReport(Report, frozen=True, kw_only=True):
    """The result of `lumos version bump`; `applied` is false if the key was used before."""

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    event_id: str
    change_type: ChangeType
    level: Level
    before: DatasetVersions
    after: DatasetVersions
    applied: bool


class ScannedVersion(Report, frozen=True, kw_only=True):
    """The versions that a dataset has, and those that it needs."""

    urn: str
    name: str
    has: DatasetVersions
    needs: DatasetVersions
    need: VersionNeed
    level: Level
    changes: tuple[str, ...]


class VersionScanSummary(Report, frozen=True, kw_only=True):
    """The numbers of datasets that were checked, were outdated, and were updated."""

    datasets: int
    outdated: int
    updated: int


class VersionScanReport(Report, frozen=True, kw_only=True):
    """The result of `lumos version scan`."""

    format_version: str = FORMAT_VERSION
    summary: VersionScanSummary
    datasets: tuple[ScannedVersion, ...]


class UpdatedVersion(Report, frozen=True, kw_only=True):
    """A dataset whose versions changed since the last tag.

    `before` is null if the dataset is new, and `after` is null if it was deleted.
    """

    urn: str
    name: str
    before: DatasetVersions | None
    after: DatasetVersions | None
    level: Level


class VersionUpdateReport(Report, frozen=True, kw_only=True):
    """The result of `lumos version update`.

    `cloud_version` and `schema_version` are the versions of the run, which cover all datasets, or
    those of the last tag if no version changed. `previous_tag` is the tag with which the run was
    compared. `git_tag` is the created tag or, with `dry_run`, the tag that would be created; it is
    null if no version changed or no tag was requested. `datasets` lists the datasets whose versions
    changed since the previous tag, and `changes_detected` is their number. `raised` is the number
    of datasets whose versions this run raised.
    """

    format_version: str = FORMAT_VERSION
    cloud_version: str | None
    schema_version: str | None
    previous_tag: str | None
    git_tag: str | None
    commit: str | None
    changes_detected: int
    raised: int
    dry_run: bool
    datasets: tuple[UpdatedVersion, ...]
