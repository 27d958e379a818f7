"""Report types of the lineage commands; their field names are a public contract."""

from typing import Literal, TypeAlias

from lumos.lineage.reported_lineage import ColumnCoverage, LineageProblem, ResolutionMethod
from lumos.model.report import FORMAT_VERSION, Report
from lumos.usage.reports import UsageIngestReport

EdgeChange: TypeAlias = Literal["added", "changed", "unchanged", "removed", "not there"]


class EdgeCounts(Report, frozen=True, kw_only=True):
    """The numbers of added, changed, removed and unchanged edges."""

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
    """A name, the dataset that it refers to, and how it was resolved (`way`)."""

    name: str
    urn: str
    way: ResolutionMethod
    known: bool
    candidates: tuple[str, ...] = ()


class MissingTable(Report, frozen=True, kw_only=True):
    """A table that is read, but neither in the store nor created by a known query.

    `urn` is assumed until the table is scanned. `nearest` is the most similar name of a known
    dataset.
    """

    name: str
    urn: str
    nearest: str | None


class ReporterReport(Report, frozen=True, kw_only=True):
    """The result for one reporter.

    `described` is the number of datasets with changed annotations. `model` is the table that a
    file with a single query creates.
    """

    reporter: str
    edges: EdgeCounts
    coverage: ColumnCoverage
    jobs: int = 0
    runs: int = 0
    described: int = 0
    problems: int = 0
    model: str | None = None


class CoverageReport(Report, frozen=True, kw_only=True):
    """The numbers of output columns and tables, and of those that are resolved."""

    columns: int
    resolved: int
    share: float | None
    tables: int
    tables_found: int


class LineageIngestReport(Report, frozen=True, kw_only=True):
    """The result of `lumos lineage ingest`.

    The files of `gone` reporters no longer exist. The lineage of `held` reporters was kept,
    because all files of a folder are missing, which is probably a mistake. `failed` files could not
    be read and keep their earlier lineage.
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
    # The number of new reads, and the result of query logs.
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
    # After a removal, the reporters that still report the edge.
    still_told_by: tuple[str, ...] = ()
