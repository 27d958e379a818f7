"""Report types of the lineage commands; their field names are a public contract."""

from typing import Literal, TypeAlias

from lumos.lineage.reported_lineage import ColumnCoverage, LineageProblem, ResolutionMethod
from lumos.model.report import FORMAT_VERSION, Report
from lumos.usage.reports import UsageIngestReport

EdgeChange: TypeAlias = Literal["added", "changed", "unchanged", "removed", "not there"]


class EdgeCounts(Report, frozen=True, kw_only=True):
    """How many edges were added, changed, removed or stayed the same."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0

    @property
    def edges(self) -> int:
        return self.added + self.changed + self.unchanged

    def __add__(self, other: "EdgeCounts") -> "EdgeCounts":
        return EdgeCounts(
            added=self.added + other.added,
            changed=self.changed + other.changed,
            removed=self.removed + other.removed,
            unchanged=self.unchanged + other.unchanged,
        )


class TableReport(Report, frozen=True, kw_only=True):
    """A name in a report, the dataset that it refers to, and how it was resolved."""

    name: str
    urn: str
    way: ResolutionMethod
    known: bool
    candidates: tuple[str, ...] = ()


class MissingTable(Report, frozen=True, kw_only=True):
    """A table that is read, but is not in the store and not created by any known query.

    `urn` stands for it until it is found. `nearest` is the most similar name of a known dataset.
    """

    name: str
    urn: str
    nearest: str | None


class ReporterReport(Report, frozen=True, kw_only=True):
    """The result for one reporter; `model` is the table that a single query creates."""

    reporter: str
    edges: EdgeCounts
    coverage: ColumnCoverage
    jobs: int = 0
    runs: int = 0
    described: int = 0
    problems: int = 0
    model: str | None = None


class CoverageReport(Report, frozen=True, kw_only=True):
    """How many output columns are resolved to their origins, and how many tables are found."""

    columns: int
    resolved: int
    share: float | None
    tables: int
    tables_found: int


class LineageIngestReport(Report, frozen=True, kw_only=True):
    """The result of `lumos lineage ingest`.

    The files of `gone` reporters no longer exist; `held` reporters were kept because all files of a
    folder are gone at once. `failed` files could not be read and keep their earlier lineage.
    """

    format_version: str = FORMAT_VERSION
    dry_run: bool
    edges: EdgeCounts
    coverage: CoverageReport
    reporters: tuple[ReporterReport, ...]
    tables: tuple[TableReport, ...]
    not_found: tuple[MissingTable, ...]
    problems: tuple[LineageProblem, ...]
    files: dict[str, int]
    jobs: int
    runs: int
    described: int
    # Newly counted reads of inputs, and the result of query logs.
    reads: int
    logs: UsageIngestReport | None
    failed: tuple[str, ...]
    unrecognised: tuple[str, ...]
    gone: tuple[str, ...]
    held: tuple[str, ...]
    seconds: float


class EdgeReport(Report, frozen=True, kw_only=True):
    """The result of `lumos lineage add` and `lumos lineage remove`."""

    format_version: str = FORMAT_VERSION
    upstream: TableReport
    downstream: TableReport
    change: EdgeChange
    # After a removal: other reporters of the same edge.
    still_told_by: tuple[str, ...] = ()
