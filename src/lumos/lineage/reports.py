"""What the commands of lineage answer; these names are a promise."""

from typing import Literal, TypeAlias

from lumos.lineage.reported import Coverage, Problem
from lumos.lineage.resolution import Way
from lumos.model.report import FORMAT_VERSION, Report
from lumos.usage.reports import UsageIngestReport

EdgeChange: TypeAlias = Literal["added", "changed", "unchanged", "removed", "not there"]


class Tally(Report, frozen=True, kw_only=True):
    """How many edges there are now, and what of them is new, other or gone."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0

    @property
    def edges(self) -> int:
        return self.added + self.changed + self.unchanged

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            added=self.added + other.added,
            changed=self.changed + other.changed,
            removed=self.removed + other.removed,
            unchanged=self.unchanged + other.unchanged,
        )


class TableReport(Report, frozen=True, kw_only=True):
    """A table or place that was named, which dataset that is, and how it was found."""

    name: str
    urn: str
    way: Way
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
    """One who told of lineage; `model` is the table that a bare query was taken for."""

    reporter: str
    edges: Tally
    coverage: Coverage
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
    """The answer of `lumos lineage ingest`.

    `gone` reporters were files of the folders and are no more; `held` ones as well, but all of them
    at once, so that they were kept. `failed` files could not be read and say what they said before.
    """

    format_version: str = FORMAT_VERSION
    dry_run: bool
    edges: Tally
    coverage: CoverageReport
    reporters: tuple[ReporterReport, ...]
    tables: tuple[TableReport, ...]
    not_found: tuple[MissingTable, ...]
    problems: tuple[Problem, ...]
    files: dict[str, int]
    jobs: int
    runs: int
    described: int
    # Reads of inputs that were not counted before, and what query logs said.
    reads: int
    logs: UsageIngestReport | None
    failed: tuple[str, ...]
    unrecognised: tuple[str, ...]
    gone: tuple[str, ...]
    held: tuple[str, ...]
    seconds: float


class EdgeReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos lineage add` and `lumos lineage remove`."""

    format_version: str = FORMAT_VERSION
    upstream: TableReport
    downstream: TableReport
    change: EdgeChange
    # Who else says that data flows this way, after a removal.
    still_told_by: tuple[str, ...] = ()
