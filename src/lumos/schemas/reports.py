"""What `lumos schema ...` prints as JSON and the SDK returns; these names are a promise."""

from datetime import datetime
from typing import Final

from msgspec import UNSET, UnsetType

from lumos.model.change import Verdict
from lumos.model.notification import AlertState
from lumos.model.report import FORMAT_VERSION, Report
from lumos.schemas.affected import AffectedReport
from lumos.schemas.changes import Milestone
from lumos.schemas.evolution import Evolution, changes_in
from lumos.schemas.findings import ChangeRow, Summary, change_rows
from lumos.schemas.schema_report import SchemaReport
from lumos.store.archive import Step, Version

SCHEMA_DIFF: Final = "schema_diff.json"


class DatasetDiff(Report, frozen=True, kw_only=True):
    """What changed in one dataset, worst for consumers first."""

    urn: str
    from_version: str | None
    to_version: str | None
    changes: tuple[ChangeRow, ...]


class DiffReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos schema diff`: the datasets that differ."""

    format_version: str = FORMAT_VERSION
    datasets: tuple[DatasetDiff, ...]
    summary: Summary


class RevisionsReport(DiffReport, frozen=True, kw_only=True):
    """The answer of `lumos schema diff --base`; what was left out at the base is remarked."""

    remarks: tuple[str, ...] | UnsetType = UNSET


class Proposed(Report, frozen=True, kw_only=True):
    """Where a proposed schema was read, and as what."""

    file: str
    kind: str


class PredictReport(DiffReport, frozen=True, kw_only=True):
    """The answer of `lumos schema predict`; `to_version` is what the version would be."""

    proposed: Proposed
    remarks: tuple[str, ...]


class VersionReport(Report, frozen=True, kw_only=True):
    """One schema version, why it began, and the schema itself.

    `timestamp` is when it happened, `recorded_at` when Lumos wrote it down. `source` is where it
    was seen, `author` the person behind it, if there is one. `affected_downstream` are the datasets
    that `affected` tells more of, as it was known then.
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
    def of(cls, urn: str, version: Version, alert: AlertState | None) -> "VersionReport":
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
    """The answer of `lumos schema history`, newest first.

    Milestones are when the dataset was gone, back, renamed, merged or split.
    """

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    versions: tuple[VersionReport, ...]
    milestones: tuple[Milestone, ...]


class TimelineEntry(Report, frozen=True, kw_only=True):
    """A schema version at a glance."""

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
    def of(cls, version: Version) -> "TimelineEntry":
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
    """The answer of `lumos schema timeline`, oldest version first."""

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
    def of(cls, step: Step) -> "EvolutionStep":
        return cls(
            schema_version=step.version,
            timestamp=step.recorded_at,
            changes=changes_in(step.event),
            breaking=step.event.breaking,
            summary=step.event.summary,
        )


class DatasetEvolution(Evolution, frozen=True, kw_only=True):
    """How one dataset's schema changed over the period."""

    urn: str
    name: str
    timeline: tuple[EvolutionStep, ...]


class EvolutionReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos schema evolution`: datasets with the most breaking changes first."""

    format_version: str = FORMAT_VERSION
    period_start: datetime
    period_end: datetime
    datasets: tuple[DatasetEvolution, ...]
    summary: Evolution


class ExportReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos schema export`: files by their path in the folder.

    Of those that were written, `replaced` are such as a person had put there.
    """

    format_version: str = FORMAT_VERSION
    folder: str
    datasets: int
    written: tuple[str, ...]
    replaced: tuple[str, ...]
    removed: tuple[str, ...]
