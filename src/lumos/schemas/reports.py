"""Reports of `lumos schema` and `lumos version`, as the SDK returns and --json prints them."""

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
_DECLARED: Final = "declared"


class Evolution(msgspec.Struct, frozen=True, kw_only=True):
    """The changes in a period; `change_frequency` is changes per day."""

    total_versions: int
    breaking_versions: int
    total_changes: int
    breaking_changes: int
    changes_by_kind: dict[str, int]
    change_frequency: float


def count_changes(event: ChangeEvent) -> int:
    """The number of changes of an event; a manually declared breaking change is one more."""
    return len(event.findings) + (DECLARED_BREAKING in event.flags)


def summarise_evolution(
    events: Sequence[ChangeEvent], *, start: datetime, end: datetime
) -> Evolution:
    """The counts over events that began a schema version within the period."""
    findings = [finding for event in events for finding in event.findings]
    declared = sum(DECLARED_BREAKING in event.flags for event in events)
    kinds = Counter(kind_of(finding.change) for finding in findings)
    if declared:
        kinds[_DECLARED] = declared
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
    """The result of `lumos schema diff --base`; `remarks` name files that were left out."""

    remarks: tuple[str, ...] | UnsetType = UNSET


class ProposalSource(Report, frozen=True, kw_only=True):
    """The file of a proposed schema, and its kind."""

    file: str
    kind: str


class PredictReport(DiffReport, frozen=True, kw_only=True):
    """The result of `lumos schema predict`; `to_version` is what the version would become."""

    proposed: ProposalSource
    remarks: tuple[str, ...]


class VersionReport(Report, frozen=True, kw_only=True):
    """One schema version, the event that began it, and the schema itself.

    `timestamp` is the time of the change, `recorded_at` that of its recording. `source` is the
    location of the data, `author` the person who made the change, if any. `affected_downstream` are
    the datasets that it affected, with details in `affected`, as known at that time.
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
    """The result of `lumos schema history`, newest first.

    Milestones are events such as the deletion or renaming of the dataset.
    """

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    versions: tuple[VersionReport, ...]
    milestones: tuple[Milestone, ...]


class TimelineEntry(Report, frozen=True, kw_only=True):
    """A schema version in brief."""

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
    """The result of `lumos schema timeline`, oldest version first."""

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    versions: tuple[TimelineEntry, ...]


class EvolutionStep(Report, frozen=True, kw_only=True):
    """A schema version that began in the period."""

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
    """How one dataset's schema changed over the period."""

    urn: str
    name: str
    timeline: tuple[EvolutionStep, ...]


class EvolutionReport(Report, frozen=True, kw_only=True):
    """The result of `lumos schema evolution`: datasets with the most breaking changes first."""

    format_version: str = FORMAT_VERSION
    period_start: datetime
    period_end: datetime
    datasets: tuple[DatasetEvolution, ...]
    summary: Evolution


class SchemaExportReport(Report, frozen=True, kw_only=True):
    """The result of `lumos schema export`: files by their path in the folder.

    `replaced` are the written files that replaced files of users.
    """

    format_version: str = FORMAT_VERSION
    folder: str
    datasets: int
    written: tuple[str, ...]
    replaced: tuple[str, ...]
    removed: tuple[str, ...]


VersionNeed = Literal["none", "first version", "schema", "prefix"]


class VersionEntry(Report, frozen=True, kw_only=True):
    """One schema version in a dataset's history; `version` is the cloud version it began with."""

    version: str
    schema_version: str
    timestamp: datetime
    change_type: ChangeType
    author: str | None
    breaking: bool
    verdict: Verdict | None
    changes: tuple[str, ...]


class ChangeDetails(Report, frozen=True, kw_only=True):
    """The event that raised the cloud version last."""

    event: EventType
    summary: str
    breaking: bool
    changes: tuple[str, ...]


class VersionShowReport(Report, frozen=True, kw_only=True):
    """The result of `lumos version show`: history oldest first, milestones newest first."""

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
    """The result of `lumos version map`: the schema version of every cloud version."""

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    versions: dict[str, str]


class DatasetVersions(Report, frozen=True, kw_only=True):
    """Both versions of a dataset."""

    cloud_version: str
    schema_version: str

    @classmethod
    def of(cls, dataset: KnownDataset) -> "DatasetVersions":
        return cls(cloud_version=dataset.cloud_version, schema_version=dataset.schema_version)


class VersionBumpReport(Report, frozen=True, kw_only=True):
    """The result of `lumos version bump`; not `applied` if its key was used before."""

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
    """The versions a dataset has, and those it needs."""

    urn: str
    name: str
    has: DatasetVersions
    needs: DatasetVersions
    need: VersionNeed
    level: Level
    changes: tuple[str, ...]


class VersionScanSummary(Report, frozen=True, kw_only=True):
    """How many datasets were checked, are outdated, and were updated."""

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

    `before` is null if it is new, `after` if it was deleted.
    """

    urn: str
    name: str
    before: DatasetVersions | None
    after: DatasetVersions | None
    level: Level


class VersionUpdateReport(Report, frozen=True, kw_only=True):
    """The result of `lumos version update`.

    `cloud_version` and `schema_version` are those of the run, for all datasets together, or of the
    last tag if no version changed. `previous_tag` is the tag that the run is compared with.
    `git_tag` is the created tag, or with `dry_run` the one that would be created; it is null if no
    version changed or no tag was requested. `datasets` are those whose versions changed since the
    previous tag, `changes_detected` is their number, `raised` the number that this run raised.
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
