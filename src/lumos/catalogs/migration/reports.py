"""Reports of `lumos migrate` and `lumos sync`."""

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from lumos.catalogs.interface import AspectStorage
from lumos.catalogs.reports import PublishReport
from lumos.discovery.reports import IngestReport
from lumos.model.discovery import Problem
from lumos.model.report import FORMAT_VERSION, Report
from lumos.snapshots.format.document import SnapshotCounts
from lumos.snapshots.reports import DiffSummary, ImportReport, MigratedCount, RefusedReport

UnmappedNameKind: TypeAlias = Literal["tag", "term", "owner", "domain", "service", "dataset"]


class UnmappedName(Report, frozen=True, kw_only=True):
    """A name that should be mapped, and the number of datasets that use it.

    `like` are similar names in the target; it is empty if the target did not accept the name. If
    `by_title` is set, the name of a tag or domain is an id, and `like` has its display name if no
    other tag or domain has the same one.
    """

    kind: UnmappedNameKind
    name: str
    like: tuple[str, ...] = ()
    datasets: int = 0
    by_title: bool = False


class AspectCount(Report, frozen=True, kw_only=True):
    """The number of entries with an aspect in the source and in the target, and of differences.

    In the target, only entries of the source are counted.
    """

    source: int
    target: int
    changed: int


class Verification(Report, frozen=True, kw_only=True):
    """The result of reading every entry back.

    `missing` entries are not in the target, `unlike` entries differ from those that were written.
    `summary` counts differences to the source, including edits in the target. The keys of `aspects`
    are a kind of entry and an aspect, such as `dataset.schema`, or `dataset.datahub.browsePathsV2`
    for raw records.
    """

    datasets: MigratedCount
    lineage_edges: MigratedCount
    items: MigratedCount
    missing: tuple[str, ...]
    unlike: tuple[str, ...]
    missing_tags: tuple[str, ...]
    summary: DiffSummary
    aspects: dict[str, AspectCount]

    @property
    def is_whole(self) -> bool:
        """Whether everything in the source is in the target."""
        pairs = (self.datasets, self.lineage_edges, self.items)
        return not self.unlike and all(pair.source == pair.target for pair in pairs)


class MigrationReport(Report, frozen=True, kw_only=True):
    """The report of `lumos migrate`; a dry run verifies nothing.

    `snapshot` is the exported file, if it still exists. `skipped` datasets cannot be migrated.
    `lineage_left_out` counts links to or from tables that are not datasets of the source, which a
    snapshot cannot contain. `certificate` is the file with the evidence for auditors.
    """

    format_version: str = FORMAT_VERSION
    source: str
    target: str
    dry_run: bool
    resumed: bool
    exported: SnapshotCounts
    needs: tuple[UnmappedName, ...]
    imported: ImportReport
    verified: Verification | None
    remarks: tuple[str, ...]
    snapshot: str | None
    skipped: tuple[RefusedReport, ...] = ()
    lineage_left_out: int = 0
    certificate: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the target accepted everything and, unless this is a dry run, has everything."""
        was_accepted = not self.imported.sums.refused and not self.skipped
        return was_accepted and (self.verified is None or self.verified.is_whole)


Holding: TypeAlias = AspectStorage | Literal["store"]


class PlannedAspect(Report, frozen=True, kw_only=True):
    """The number of entries with an aspect, and how the target stores it.

    `native`: in fields of the target. `properties`: in custom properties. `partly`: in both.
    `store`: only in the store of Lumos and in snapshots. `counts` are the numbers of entries by
    these ways, and `holding` is the least exact of them.
    """

    source: int
    holding: Holding
    counts: dict[Holding, int]


class LossyAspect(Report, frozen=True, kw_only=True):
    """An aspect that the target cannot store exactly for some entries, and why."""

    aspect: str
    entries: int
    examples: tuple[str, ...]
    why: str


class PlannedCalls(Report, frozen=True, kw_only=True):
    """The minimum number of calls to the target."""

    read: int
    write: int

    @property
    def total(self) -> int:
        return self.read + self.write


class MigrationPlan(Report, frozen=True, kw_only=True):
    """The plan of `lumos migrate --plan`.

    `seconds` is an estimate: twice the time that the dry run took to read both sides, plus the
    measured `round_trip` for each write call. `runbook` is a list of steps with their commands.
    """

    format_version: str = FORMAT_VERSION
    source: str
    target: str
    aspects: dict[str, PlannedAspect]
    lossy: tuple[LossyAspect, ...]
    calls: PlannedCalls
    seconds: float
    round_trip: float
    runbook: tuple[str, ...]
    dry_run: MigrationReport


class CertificateCheck(Report, frozen=True, kw_only=True):
    """The report of `lumos migrate verify`: the entries that changed in the target since then.

    `exceptions` is the number of entries that, according to the certificate, already differed or
    were missing after the migration.
    """

    format_version: str = FORMAT_VERSION
    source: str
    target: str
    finished_at: datetime
    was_whole: bool
    exceptions: int
    entries: int
    missing: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def is_unchanged(self) -> bool:
        """Whether the target still has every entry as it was after the migration."""
        return not self.missing and not self.changed


class SyncReport(Report, frozen=True, kw_only=True):
    """The report of `lumos sync`: the scan, and the result of publishing to each catalog.

    Sources of types that are not installed are `passed_over`; `failed` sources raised an error.
    """

    format_version: str = FORMAT_VERSION
    sources: tuple[str, ...]
    passed_over: tuple[str, ...]
    failed: tuple[Problem, ...]
    scanned: IngestReport | None
    published: tuple[PublishReport, ...] = msgspec.field(name="told")

    @property
    def is_complete(self) -> bool:
        """Whether every source was scanned and everything was published."""
        return not self.failed and all(each.is_complete for each in self.published)
