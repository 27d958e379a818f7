"""Reports of `lumos export`, `validate`, `import` and `diff`, as JSON and in the SDK."""

from datetime import datetime
from typing import Literal

import msgspec

from lumos.catalogs import AspectStorage
from lumos.model.report import FORMAT_VERSION, Report
from lumos.snapshots.format.checks import SnapshotProblem
from lumos.snapshots.format.differences import Difference
from lumos.snapshots.format.document import SnapshotCounts

Change = Literal["created", "changed", "unchanged", "deleted"]


class SnapshotExportReport(Report, frozen=True, kw_only=True):
    """The result of `lumos export`; snapshots of the same state have the same `hash`.

    `lineage_left_out` counts links to or from tables that are not datasets of the store, because
    snapshots store lineage as a part of datasets.
    """

    format_version: str = FORMAT_VERSION
    file: str
    platform: str
    scope: str
    exported_at: datetime
    counts: SnapshotCounts
    omitted: tuple[str, ...]
    hash: str
    size_bytes: int
    lineage_left_out: int = 0


class ValidateReport(Report, frozen=True, kw_only=True):
    """The result of `lumos validate`: counts, and each problem with its path.

    `left_out` counts the problems that are not listed.
    """

    format_version: str = FORMAT_VERSION
    file: str
    valid: bool
    platform: str | None
    scope: str | None
    exported_at: datetime | None
    hash: str | None
    counts: SnapshotCounts
    errors: int
    warnings: int
    problems: tuple[SnapshotProblem, ...]
    left_out: int


class EntryCounts(msgspec.Struct, kw_only=True):
    """The number of created, changed, unchanged and deleted entries of one kind."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0

    def add(self, change: Change) -> None:
        """Count one entry."""
        setattr(self, change, getattr(self, change) + 1)

    @property
    def total(self) -> int:
        """The number of all entries."""
        return self.created + self.changed + self.unchanged + self.deleted


class ConflictReport(Report, frozen=True, kw_only=True):
    """A value that was edited in the catalog and differs in the snapshot; it was not changed."""

    key: str
    path: str
    theirs: str
    ours: str


class EntryReport(Report, frozen=True, kw_only=True):
    """An entry that an import changed or would change, and the aspects that changed."""

    kind: str
    key: str
    change: Change
    aspects: tuple[str, ...]


class RefusedReport(Report, frozen=True, kw_only=True):
    """An entry that the catalog rejected, and the reason."""

    kind: str
    key: str
    problem: str


class ImportTotals(msgspec.Struct, kw_only=True):
    """The counts of an import so far; the journal stores them, so that an import can be resumed.

    `held` counts datasets by aspect and by how the catalog stores the aspect. `seen_here` counts
    datasets that the store has scanned, whose scanned aspects were not imported. `refused` counts
    entries that the catalog rejected; `refusals` lists the first of them.
    """

    kinds: dict[str, EntryCounts] = {}
    held: dict[str, dict[AspectStorage, int]] = {}
    seen_here: int = 0
    conflicts: int = 0
    refused: int = 0
    refusals: list[RefusedReport] = []

    def tally(self, kind: str) -> EntryCounts:
        """The counts of one kind."""
        return self.kinds.setdefault(kind, EntryCounts())


class ImportReport(Report, frozen=True, kw_only=True):
    """The result of `lumos import`; only the first changes and conflicts are listed."""

    format_version: str = FORMAT_VERSION
    file: str
    platform: str
    import_id: str | None
    dry_run: bool
    resumed: bool
    sums: ImportTotals
    changes: tuple[EntryReport, ...]
    conflicts: tuple[ConflictReport, ...]
    remarks: tuple[str, ...]

    @property
    def refused(self) -> tuple[RefusedReport, ...]:
        """The first entries that the catalog rejected; `sums.refused` is their total number."""
        return tuple(self.sums.refusals)


class RollbackReport(Report, frozen=True, kw_only=True):
    """The result of `lumos import --rollback`.

    `kept` lists entries that were edited after the import; these edits were not undone.
    """

    format_version: str = FORMAT_VERSION
    file: str
    platform: str
    import_id: str
    restored: int
    erased: int
    kept: tuple[EntryReport, ...]


class MigratedCount(Report, frozen=True, kw_only=True):
    """The number of items in the source, and the number of them that are in the target."""

    source: int
    target: int


class DiffSummary(Report, frozen=True, kw_only=True):
    """The number of entries that differ, and of differences by impact and aspect."""

    entries: int
    differences: int
    breaking: int
    non_breaking: int
    informational: int
    aspects: dict[str, int]


class SnapshotDiffReport(Report, frozen=True, kw_only=True):
    """The result of `lumos diff`; `left_out` counts the differences that are not listed.

    `missing_tags` are tags that datasets have in the source but not in the target.
    """

    format_version: str = FORMAT_VERSION
    source: str
    target: str
    datasets: MigratedCount
    lineage_edges: MigratedCount
    missing_tags: tuple[str, ...]
    summary: DiffSummary
    differences: tuple[Difference, ...]
    left_out: int


class SparkDiffReport(Report, frozen=True, kw_only=True):
    """The result of `lumos diff --spark`: the folder with the differences, and their counts."""

    format_version: str = FORMAT_VERSION
    source: str
    target: str
    folder: str
    added: int
    removed: int
    changed: int
    breaking: int
    non_breaking: int
    informational: int
