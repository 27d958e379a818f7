"""The report of `lumos reconcile`; the field names are part of the JSON contract."""

from datetime import datetime
from typing import Final, Literal

from lumos.model.change import Verdict
from lumos.model.report import FORMAT_VERSION, Report
from lumos.schemas.findings import ChangeRow

FindingKind = Literal[
    "table_without_data",
    "data_without_table",
    "schema_difference",
    "format_difference",
    "partitions_missing",
    "partitions_unregistered",
    "files_outside_partitions",
    "stale_statistics",
    "shared_location",
    "nested_location",
]
# The headings of findings in pages and on terminals.
KIND_TITLES: Final = {
    "data_without_table": "Data without a table",
    "files_outside_partitions": "Files outside of partitions",
    "format_difference": "Other format than declared",
    "nested_location": "Location inside that of another table",
    "partitions_missing": "Registered partitions without files",
    "partitions_unregistered": "Partitions that are not registered",
    "schema_difference": "Other columns than the files have",
    "shared_location": "Location of several tables",
    "stale_statistics": "Stale statistics",
    "table_without_data": "Tables without data",
}


class ReconciledPartition(Report, frozen=True, kw_only=True):
    """A partition by its values, and its location."""

    values: tuple[str, ...]
    location: str


class ReconcileFinding(Report, frozen=True, kw_only=True):
    """A difference between a metastore and storage.

    `table` and `table_urn` are missing if data has no table. `dataset_urn` is the dataset of the
    files, if there is one. `changes` lead from the columns of the table to those of the files.
    `count` is the number of partitions or files, of which `partitions` lists the first ones.
    """

    kind: FindingKind
    location: str
    table: str | None = None
    table_urn: str | None = None
    dataset_urn: str | None = None
    details: str
    verdict: Verdict | None = None
    changes: tuple[ChangeRow, ...] = ()
    count: int | None = None
    partitions: tuple[ReconciledPartition, ...] = ()
    other_tables: tuple[str, ...] = ()


class UnscannedTables(Report, frozen=True, kw_only=True):
    """Tables that could not be compared, since no scan covers their location."""

    location: str
    tables: int
    examples: tuple[str, ...]


class StorageScan(Report, frozen=True, kw_only=True):
    """A scan of storage that the comparison uses."""

    root: str
    finished_at: datetime


class ReconcileReport(Report, frozen=True, kw_only=True):
    """The report of `lumos reconcile`.

    `counts` has the number of findings by kind. `statements` are None without `fix_plan`.
    """

    format_version: str = FORMAT_VERSION
    source: str
    scanned_at: datetime
    storage_scans: tuple[StorageScan, ...]
    tables: int
    compared: int
    partitions: int
    counts: dict[str, int]
    findings: tuple[ReconcileFinding, ...]
    not_scanned: tuple[UnscannedTables, ...]
    statements: tuple[str, ...] | None = None
