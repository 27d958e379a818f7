"""What `lumos export`, `validate`, `import` and `diff` print as JSON and the SDK returns."""

from datetime import datetime
from typing import Literal

import msgspec

from lumos.catalogs import How
from lumos.model.report import FORMAT_VERSION, Report
from lumos.snapshots.format.checks import SnapshotProblem
from lumos.snapshots.format.differences import Difference
from lumos.snapshots.format.document import SnapshotCounts

Change = Literal["created", "changed", "unchanged", "deleted"]


class SnapshotExportReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos export`; `hash` is the snapshot's own, the same for the same state.

    `lineage_left_out` counts links from or to tables that the store has no dataset of: a snapshot
    holds lineage as a part of its datasets.
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
    """The answer of `lumos validate`: what was counted, and every problem with its place.

    Where there are very many problems, the rest is only counted in `left_out`.
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
    """What became of the entries of one kind."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    deleted: int = 0

    def add(self, change: Change) -> None:
        """Counts one more."""
        setattr(self, change, getattr(self, change) + 1)

    @property
    def total(self) -> int:
        """All of them."""
        return self.created + self.changed + self.unchanged + self.deleted


class ConflictReport(Report, frozen=True, kw_only=True):
    """Something that was edited in the catalog and differs in the snapshot; the edit was kept."""

    key: str
    path: str
    theirs: str
    ours: str


class EntryReport(Report, frozen=True, kw_only=True):
    """An entry that an import wrote or would write, and which of its aspects differ."""

    kind: str
    key: str
    change: Change
    aspects: tuple[str, ...]


class RefusedReport(Report, frozen=True, kw_only=True):
    """An entry that the catalog did not take, and why."""

    kind: str
    key: str
    problem: str


class ImportTotals(msgspec.Struct, kw_only=True):
    """What an import has done so far; kept in its journal, so that a resumed one goes on counting.

    `held` says of each aspect on how many datasets the catalog holds it how. `seen_here` are
    datasets that the store has seen itself: what it saw of their data was kept. `refused` entries
    were not taken by the catalog; `refusals` tells the first of them in full.
    """

    kinds: dict[str, EntryCounts] = {}
    held: dict[str, dict[How, int]] = {}
    seen_here: int = 0
    conflicts: int = 0
    refused: int = 0
    refusals: list[RefusedReport] = []

    def tally(self, kind: str) -> EntryCounts:
        """What became of the entries of one kind."""
        return self.kinds.setdefault(kind, EntryCounts())


class ImportReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos import`; of changes and conflicts the first ones are told in full."""

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
        """The first entries that the catalog did not take; `sums.refused` says how many."""
        return tuple(self.sums.refusals)


class RollbackReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos import --rollback`.

    `kept` are entries that were edited since the import: the edits stayed.
    """

    format_version: str = FORMAT_VERSION
    file: str
    platform: str
    import_id: str
    restored: int
    erased: int
    kept: tuple[EntryReport, ...]


class MigratedCount(Report, frozen=True, kw_only=True):
    """How much of what the source has the target has as well."""

    source: int
    target: int


class DiffSummary(Report, frozen=True, kw_only=True):
    """How many entries and differences there are, by impact and by aspect."""

    entries: int
    differences: int
    breaking: int
    non_breaking: int
    informational: int
    aspects: dict[str, int]


class SnapshotDiffReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos diff`; where there are very many differences the rest is counted.

    `missing_tags` are tags of the source that no dataset of the target has where it should.
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
    """The answer of `lumos diff --spark`: where the differences were written, and their sums."""

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
