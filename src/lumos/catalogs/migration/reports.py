"""What `lumos migrate` and `lumos sync` print as JSON and the SDK returns."""

from typing import Literal, TypeAlias

from lumos.catalogs.reports import PublishReport
from lumos.discovery.reports import IngestReport
from lumos.model.discovery import Problem
from lumos.model.report import FORMAT_VERSION, Report
from lumos.snapshots.format.document import SnapshotCounts
from lumos.snapshots.reports import DiffSummary, ImportReport, MigratedCount, RefusedReport

NeedKind: TypeAlias = Literal["tag", "term", "owner", "domain", "service", "dataset"]


class Need(Report, frozen=True, kw_only=True):
    """A name that somebody should map by hand, on how many datasets, and what it may be.

    Nothing like it is there where the target did not take it. `by_title` says that a tag or a
    domain is only known by an id, and may be called by its title in the source; nothing is
    suggested where several have one title.
    """

    kind: NeedKind
    name: str
    like: tuple[str, ...] = ()
    datasets: int = 0
    by_title: bool = False


class AspectCount(Report, frozen=True, kw_only=True):
    """How many entries of the source and of the target have an aspect, and in how many it differs.

    Only entries that the source has are counted in the target.
    """

    source: int
    target: int
    changed: int


class Verification(Report, frozen=True, kw_only=True):
    """What reading every entry back by its name showed.

    `missing` are entries of the source that are not in the target, `unlike` those that are not as
    they were written. `summary` counts what differs from the source, edits of people included.
    `aspects` counts by kind of entry and aspect, such as `dataset.schema`; what only one catalog
    has is named with it, such as `dataset.datahub.browsePathsV2`.
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
        """Whether all that the source holds is in the target."""
        pairs = (self.datasets, self.lineage_edges, self.items)
        return not self.unlike and all(pair.source == pair.target for pair in pairs)


class MigrationReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos migrate`; a dry run verifies nothing.

    `snapshot` is the file of what was exported, where it was kept. `skipped` datasets cannot be
    migrated and were left out.
    """

    format_version: str = FORMAT_VERSION
    source: str
    target: str
    dry_run: bool
    resumed: bool
    exported: SnapshotCounts
    needs: tuple[Need, ...]
    imported: ImportReport
    verified: Verification | None
    remarks: tuple[str, ...]
    snapshot: str | None
    skipped: tuple[RefusedReport, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether everything arrived, as far as that was looked at."""
        was_taken = not self.imported.sums.refused and not self.skipped
        return was_taken and (self.verified is None or self.verified.is_whole)


class SyncReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos sync`: what was scanned, and what each catalog was told.

    `passed_over` are sources that this version cannot scan, `failed` those that could not be
    scanned now.
    """

    format_version: str = FORMAT_VERSION
    sources: tuple[str, ...]
    passed_over: tuple[str, ...]
    failed: tuple[Problem, ...]
    scanned: IngestReport | None
    told: tuple[PublishReport, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every source was scanned, and every catalog has heard of everything."""
        return not self.failed and all(each.is_complete for each in self.told)
