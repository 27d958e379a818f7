"""Reports of `lumos usage`; their field names are a stable JSON contract."""

from datetime import date, datetime

import msgspec

from lumos.model.dataset import ColumnReads, Reader
from lumos.model.report import FORMAT_VERSION, Report


class LogReport(Report, frozen=True, kw_only=True):
    """One ingested log.

    Of its `statements`, `counted` are new and `counted_before` were counted by an earlier ingest.
    `left_out` counts skipped statements by reason. `queries` is the number of distinct statements,
    ignoring literals; `understood` of them could be analysed.
    """

    log: str
    kind: str
    dialect: str | None
    files: int
    statements: int
    counted: int
    counted_before: int
    left_out: dict[str, int]
    queries: int
    understood: int
    since: date | None
    until: date | None
    edges: int
    edges_changed: int


class UnknownTable(Report, frozen=True, kw_only=True):
    """A table that was read and is not a known dataset; `candidates` are similar datasets."""

    name: str
    urn: str
    reads: int
    candidates: tuple[str, ...] = ()


class NotUnderstood(Report, frozen=True, kw_only=True):
    """A kind of statement that could not be analysed; its text has no literals."""

    log: str
    statement: str
    times: int
    reason: str


class UsageIngestReport(Report, frozen=True, kw_only=True):
    """The report of `lumos usage ingest`.

    `found_again` datasets were read in earlier logs under names that could not be resolved then.
    """

    format_version: str = FORMAT_VERSION
    logs: tuple[LogReport, ...]
    datasets: int
    found_again: int
    unknown: tuple[UnknownTable, ...]
    unknown_tables: int
    not_understood: tuple[NotUnderstood, ...]
    problems: tuple[str, ...]


class UsageDay(Report, frozen=True, kw_only=True):
    """All reads of a dataset on a day."""

    day: date
    reads: int
    readers: int
    bytes: int | None
    rows: int | None


class UsageShowReport(Report, frozen=True, kw_only=True):
    """The report of `lumos usage show`.

    Logs cover the dataset from the day `known_since` on. `is_imported` means that no log mentions
    the dataset and the usage was imported, for example from a snapshot; it then has no days.
    """

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    since: date | None
    known_since: date | None
    reads: int
    bytes: int | None
    rows: int | None
    last_accessed: datetime | None
    readers: tuple[Reader, ...]
    columns: dict[str, ColumnReads]
    unread_columns: tuple[str, ...] | None
    days: tuple[UsageDay, ...]
    logs: tuple[str, ...]
    is_imported: bool = msgspec.field(default=False, name="told")


class UnreadDataset(Report, frozen=True, kw_only=True):
    """A dataset without reads in the period, although logs cover it since `known_since`."""

    urn: str
    name: str
    platform: str
    last_read: date | None
    known_since: date


class UnreadColumns(Report, frozen=True, kw_only=True):
    """The columns without reads in the period of a dataset that was read."""

    urn: str
    name: str
    columns: tuple[str, ...]
    of: int


class NotJudged(Report, frozen=True, kw_only=True):
    """Datasets whose reads are unknown, and why."""

    place: str
    datasets: int
    known_since: date | None
    reason: str


class UnreadReport(Report, frozen=True, kw_only=True):
    """The report of `lumos usage unread`."""

    format_version: str = FORMAT_VERSION
    since: date
    datasets: tuple[UnreadDataset, ...]
    columns: tuple[UnreadColumns, ...] | None
    read: int
    read_through_views: int
    not_judged: tuple[NotJudged, ...]
    columns_not_judged: int


class UsedDataset(Report, frozen=True, kw_only=True):
    """A dataset with its reads."""

    urn: str
    name: str | None
    reads: int
    readers: int
    bytes: int | None
    rows: int | None
    last_read: datetime


class UsageTopReport(Report, frozen=True, kw_only=True):
    """The report of `lumos usage top`; `not_scanned` of the `total` are not in the store."""

    format_version: str = FORMAT_VERSION
    since: date | None
    known_since: date | None
    datasets: tuple[UsedDataset, ...]
    total: int
    not_scanned: int = 0


class ForgottenReport(Report, frozen=True, kw_only=True):
    """The report of `lumos usage remove`."""

    format_version: str = FORMAT_VERSION
    log: str
    datasets: int


class ListedLog(Report, frozen=True, kw_only=True):
    """An ingested log."""

    log: str
    since: date
    until: date
    statements: int


class LogsReport(Report, frozen=True, kw_only=True):
    """The report of `lumos usage list`."""

    format_version: str = FORMAT_VERSION
    logs: tuple[ListedLog, ...]
