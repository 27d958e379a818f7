"""What `lumos version` prints as JSON; these names are a promise."""

from datetime import datetime
from typing import Literal

from lumos.model.change import Cause, EventType, Verdict
from lumos.model.report import FORMAT_VERSION, Report
from lumos.model.version import ChangeType, Level
from lumos.schemas.changes import Milestone
from lumos.store import KnownDataset, State

Need = Literal["none", "first version", "schema", "prefix"]


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
    """What the last step of the cloud version was about."""

    event: EventType
    summary: str
    breaking: bool
    changes: tuple[str, ...]


class VersionShowReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos version show`: history oldest first, milestones newest first."""

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    state: State
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
    """The answer of `lumos version map`: the schema version of every cloud version."""

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    versions: dict[str, str]


class Versions(Report, frozen=True, kw_only=True):
    """Both versions of a dataset at one time."""

    cloud_version: str
    schema_version: str

    @classmethod
    def of(cls, known: KnownDataset) -> "Versions":
        return cls(cloud_version=known.cloud_version, schema_version=known.schema_version)


class VersionBumpReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos version bump`; not `applied` where its key was used before."""

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    event_id: str
    change_type: ChangeType
    level: Level
    before: Versions
    after: Versions
    applied: bool


class ScannedVersion(Report, frozen=True, kw_only=True):
    """The versions a dataset has, and those it needs."""

    urn: str
    name: str
    has: Versions
    needs: Versions
    need: Need
    level: Level
    changes: tuple[str, ...]


class VersionScanSummary(Report, frozen=True, kw_only=True):
    """How many datasets were looked at, need another version, and got it."""

    datasets: int
    outdated: int
    updated: int


class VersionScanReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos version scan`."""

    format_version: str = FORMAT_VERSION
    summary: VersionScanSummary
    datasets: tuple[ScannedVersion, ...]
