"""Counts reads from query logs and other sources, and reports lineage from query logs."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple, get_args

import msgspec

from lumos.config import Settings
from lumos.config.settings import UsageSettings
from lumos.lineage.reported_lineage import DatasetRead
from lumos.model.lineage import Edge
from lumos.model.query_log import DailyStatements, QueryRuns, QuerySample
from lumos.progress import Progress, no_progress
from lumos.store import Store
from lumos.store.usage import UNKNOWN_COLUMNS, Reads
from lumos.usage.pseudonyms import reader_renamer
from lumos.usage.query_log.analysis import StatementAnalysis
from lumos.usage.query_log.files import LogFile, chunks
from lumos.usage.query_log.normalization import normalize
from lumos.usage.query_log.reader import SkipReason, StatementExample, moment_of
from lumos.usage.reports import LogReport, NotUnderstood, UsageIngestReport
from lumos.usage.statements import (
    LogStatements,
    NewStatements,
    StatementAnalyser,
    StatementsInMemory,
    add_known,
    decode_analysis,
    decode_example,
    statements_on_spark,
)
from lumos.usage.tables import LogTables

# Longer logs are read on Spark.
SPARK_FROM_BYTES: Final = 128 * 1024 * 1024
# Assumed compression ratio.
_COMPRESSION_RATIO: Final = 8
_MAX_QUERIES: Final = 50_000
_ROWS_PER_TRANSACTION: Final = 20_000
# Only exceeded if a single day has more statements.
_MAX_STATEMENTS_IN_MEMORY: Final = 1_000_000
_URNS_PER_BATCH: Final = 500
_MAX_EXAMPLES: Final = 20
_MAX_SQL_LENGTH: Final = 200
_EPOCH_DATE: Final = date(1970, 1, 1)
_EPOCH_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Tolerates clock differences and time zones ahead of UTC.
_MAX_CLOCK_SKEW: Final = timedelta(days=1)
_REASONS: Final = frozenset(get_args(SkipReason))


class _Query(NamedTuple):
    """Statements with the same digest, and their analysis."""

    sample: QuerySample
    example: StatementExample
    analysis: StatementAnalysis


class _ReadDataset(NamedTuple):
    """A dataset and the columns that a query reads; `sum_key` is 0 except for daily totals."""

    urn: str
    columns: list[str]
    sum_key: int


class LogIngest:
    """Ingests logs one after the other."""

    def __init__(
        self,
        store: Store,
        tables: LogTables,
        settings: Settings,
        *,
        state: str,
        progress: Progress = no_progress,
        spark_from_bytes: int = SPARK_FROM_BYTES,
    ) -> None:
        self._store = store
        self._tables = tables
        self._settings = settings
        self._state = state
        self._progress = progress
        self._spark_from_bytes = spark_from_bytes
        self._at = datetime.now(UTC)
        self._changed_urns: set[str] = set()
        self._not_understood: list[NotUnderstood] = []
        self._problems: list[str] = []

    def ingest(
        self, logs: Sequence[LogFile], *, dialect: str | None = None, name: str | None = None
    ) -> UsageIngestReport:
        """Ingest logs, each under its own name or all under the given name."""
        with self._store.lock("query logs"):
            found_again = assign_reads(self._store, self._tables, at=self._at)
            ordered = sorted(logs, key=lambda log: name or log.name)
            reports = [
                self._ingest(f"log:{log_name}", list(logs_of_name), dialect)
                for log_name, logs_of_name in groupby(ordered, key=lambda log: name or log.name)
            ]
            refresh_usage(
                self._store, self._changed_urns, self._settings.usage.retention_days, at=self._at
            )
        unknown_tables, unknown = self._tables.unknown(_MAX_EXAMPLES)
        return UsageIngestReport(
            logs=tuple(reports),
            datasets=sum(urn in self._tables for urn in self._changed_urns),
            found_again=found_again,
            unknown=unknown,
            unknown_tables=unknown_tables,
            not_understood=tuple(self._not_understood),
            problems=tuple(self._problems),
        )

    def _ingest(self, reporter: str, logs: Sequence[LogFile], dialect: str | None) -> LogReport:
        layout = logs[0].recognised.layout
        self._progress(f"reading {reporter.removeprefix('log:')}")
        with self._statements(logs, dialect) as statements:
            counts = statements.counts()
            skipped = {
                each.skip_reason: each.run_count for each in counts if each.skip_reason is not None
            }
            self._problems += [reason for reason in skipped if reason not in _REASONS]
            days = [_date(each.day) for each in counts if each.day is not None]
            statement_count = sum(each.statements for each in counts if each.skip_reason is None)
            queries = self._queries(statements, reporter)
            counted = self._store.usage.counted_keys(() if layout.cumulative else days)
            new_statements = statements.new_statements(counted)
            try:
                new = self._count(
                    reporter, new_statements, queries, days=days, replaces_earlier=layout.cumulative
                )
            finally:
                new_statements.close()
        edges, changed = self._report(reporter, queries, replaces_earlier=layout.cumulative)
        self._warn_about_retention(days)
        return LogReport(
            log=reporter,
            kind=layout.name,
            dialect=dialect or layout.dialect,
            files=len(logs),
            statements=statement_count,
            counted=new,
            counted_before=statement_count - new,
            left_out={name: skipped[name] for name in sorted(skipped) if name in _REASONS},
            queries=len(queries),
            understood=sum(query.analysis.problem is None for query in queries),
            since=min(days, default=None),
            until=max(days, default=None),
            edges=edges,
            edges_changed=changed,
        )

    def _warn_about_retention(self, days: Sequence[date]) -> None:
        kept_days = self._settings.usage.retention_days
        first = self._at.date() - timedelta(days=kept_days)
        if kept_days and min(days, default=first) < first:
            self._problems.append(
                f"Reads before {first} are not stored: usage.retention_days is {kept_days}."
            )

    @contextmanager
    def _statements(self, logs: Sequence[LogFile], dialect: str | None) -> Iterator[LogStatements]:
        """The statements of logs, read in this process or, for long logs, on Spark."""
        options: dict[str, Any] = {
            "dialect": dialect,
            "rename_reader": reader_renamer(self._settings.usage),
            "until": (self._at + _MAX_CLOCK_SKEW - _EPOCH_TIME) // timedelta(microseconds=1),
        }
        all_chunks = [chunk for log in logs for chunk in chunks(log)]
        size = sum(log.size * (_COMPRESSION_RATIO if log.compressed else 1) for log in logs)
        if size < self._spark_from_bytes:
            yield StatementsInMemory(all_chunks, **options)
            return
        with statements_on_spark(
            self._settings, all_chunks, options, state=self._state
        ) as statements:
            yield statements

    def _queries(self, statements: LogStatements, reporter: str) -> list[_Query]:
        samples = statements.frequent_queries(limit=_MAX_QUERIES)
        examples = {each.digest: decode_example(each.example) for each in samples}
        self._progress(f"analysing {len(samples):,} queries")
        analyser = StatementAnalyser(self._tables.columns(examples.values()))
        analyses = {
            each.digest: each
            for each in map(decode_analysis, statements.analyse(samples, analyser))
        }
        queries = [_Query(each, examples[each.digest], analyses[each.digest]) for each in samples]
        failed = [query for query in queries if query.analysis.problem is not None]
        self._not_understood += [
            NotUnderstood(
                log=reporter,
                statement=normalize(query.example.statement, query.example.dialect)[
                    :_MAX_SQL_LENGTH
                ],
                times=query.sample.run_count,
                reason=str(query.analysis.problem),
            )
            for query in failed[:_MAX_EXAMPLES]
        ]
        return queries

    def _count(
        self,
        reporter: str,
        new_statements: NewStatements,
        queries: Sequence[_Query],
        *,
        days: Sequence[date],
        replaces_earlier: bool,
    ) -> int:
        """Count new reads in transactions of whole days; return the number of new statements.

        The days of a log are recorded even if all its statements were counted before.
        """
        self._progress("counting reads")
        datasets_by_digest = {query.sample.digest: self._read_datasets(query) for query in queries}
        new_days = new_statements.days()
        if replaces_earlier:
            with self._store.transaction() as transaction:
                self._changed_urns |= transaction.usage.delete_reporter(reporter)
        for period in _periods(new_days):
            first, last = period[0].day, period[-1].day
            keys = {_date(day): each for day, each in new_statements.keys(first, last).items()}
            for reads in _batches(_reads(new_statements.runs(first, last), datasets_by_digest)):
                reads_of_days = [each for of_day in reads.values() for each in of_day]
                self._add(reporter, reads_of_days, {day: keys[day] for day in reads})
        days_without_new = {*days} - {_date(each.day) for each in new_days}
        self._add(reporter, [], dict.fromkeys(days_without_new, ()))
        return sum(each.new for each in new_days)

    def _add(self, reporter: str, reads: Sequence[Reads], keys: dict[date, Any]) -> None:
        if not reads and not keys:
            return
        with self._store.transaction() as transaction:
            usage = transaction.usage
            self._changed_urns |= usage.add(reporter, reads)
            usage.count(reporter, keys)
            details = f"days: {len(keys):,}"
            transaction.audit("usage ingest", reporter, at=self._at, details=details)

    def _read_datasets(self, query: _Query) -> list[_ReadDataset]:
        """The datasets and columns that a query reads."""
        columns: dict[str, dict[str, None]] = {}
        for access in query.analysis.reads:
            resolution = self._tables.find(access.table, query.example.dialect)
            if resolution is None:
                continue
            names: tuple[str, ...] = access.columns
            if self._tables.is_known(resolution):
                names = self._tables.in_original_case(resolution.urn, names)
            else:
                self._tables.add_unknown(access, query.sample.run_count)
            columns.setdefault(resolution.urn, {}).update(dict.fromkeys(names))
        return [
            _ReadDataset(
                urn, list(column_names), _sum_key(column_names) if query.example.is_sum else 0
            )
            for urn, column_names in columns.items()
        ]

    def _report(
        self, reporter: str, queries: Sequence[_Query], *, replaces_earlier: bool
    ) -> tuple[int, int]:
        """Report lineage of written tables; return the number of edges and of changed edges.

        Edges from earlier logs of the same name are kept, as they cover other days.
        """
        edges = []
        for query in queries:
            for each in query.analysis.edges:
                datasets = [
                    self._tables.find(end, query.example.dialect)
                    for end in (each.upstream, each.downstream)
                ]
                if datasets[0] is None or datasets[1] is None:
                    continue
                edges.append(
                    Edge(
                        upstream=datasets[0].urn,
                        downstream=datasets[1].urn,
                        origin=reporter,
                        at=moment_of(query.sample.first),
                        type=each.type,
                        confidence=each.confidence,
                        columns=each.columns,
                        uses=each.uses,
                    )
                )
        links = {(edge.upstream, edge.downstream) for edge in edges}
        if not replaces_earlier:
            edges = [*self._earlier_edges(reporter), *edges]
        with self._store.transaction() as transaction:
            report = transaction.lineage.report(reporter, edges, at=self._at)
        return len(links), report.added + report.changed + report.removed

    def _earlier_edges(self, reporter: str) -> Iterator[Edge]:
        """The edges from earlier logs of the same name, with current URNs."""
        stored_edges = self._store.lineage.edges_by(reporter)
        ends = {end for edge in stored_edges for end in (edge.upstream, edge.downstream)}
        datasets = self._tables.current_datasets(end for end in ends if end not in self._tables)
        for edge in stored_edges:
            yield Edge(
                upstream=datasets.get(edge.upstream, edge.upstream),
                downstream=datasets.get(edge.downstream, edge.downstream),
                origin=reporter,
                at=edge.at,
                type=edge.type,
                confidence=edge.confidence,
                columns=edge.columns,
                uses=edge.uses,
            )


def assign_reads(store: Store, tables: LogTables, *, at: datetime) -> int:
    """Assign reads of formerly unknown tables to datasets; return the number of datasets."""
    datasets = tables.current_datasets(store.usage.unknown_datasets())
    read_urns = store.usage.without_aspect()
    if datasets or read_urns:
        with store.transaction() as transaction:
            usage = transaction.usage
            for urn, dataset in datasets.items():
                usage.move(urn, dataset)
            usage.derive({*datasets.values(), *read_urns}, at=at)
    return len(datasets) + len(read_urns)


def refresh_usage(store: Store, changed: set[str], retention_days: int, *, at: datetime) -> None:
    """Update the usage of datasets that were read, and drop reads beyond the retention period."""
    expired: set[str] = set()
    if retention_days:
        with store.transaction() as transaction:
            expired = transaction.usage.delete_before(at.date() - timedelta(days=retention_days))
    urns = sorted(changed | expired)
    for start in range(0, len(urns), _URNS_PER_BATCH):
        with store.transaction() as transaction:
            transaction.usage.derive(urns[start : start + _URNS_PER_BATCH], at=at)


def _date(day: int) -> date:
    return _EPOCH_DATE + timedelta(days=day)


def _periods(days: Sequence[DailyStatements]) -> Iterator[list[DailyStatements]]:
    """Groups of consecutive days whose statements fit in memory."""
    period: list[DailyStatements] = []
    for day in days:
        statements = sum(each.statements for each in period) + day.statements
        if period and statements > _MAX_STATEMENTS_IN_MEMORY:
            yield period
            period = []
        period.append(day)
    if period:
        yield period


def _reads(
    runs: Iterator[QueryRuns], datasets_by_digest: Mapping[bytes, Sequence[_ReadDataset]]
) -> Iterator[tuple[date, list[Reads]]]:
    """Reads by day."""
    for day, runs_of_day in groupby(runs, key=attrgetter("day")):
        totals: dict[tuple[str, str, int], _ReadTotals] = {}
        for run in runs_of_day:
            for urn, columns, sum_key in datasets_by_digest.get(run.digest, ()):
                total = totals.setdefault((urn, run.reader, sum_key), _ReadTotals())
                total.add(run, columns)
        run_date = _date(day)
        yield (
            run_date,
            [
                Reads(
                    urn, run_date, reader, total.read_count, moment_of(total.last), total.bytes,
                    total.rows, total.columns, sum_key=sum_key,
                )
                for (urn, reader, sum_key), total in totals.items()
            ],
        )  # fmt: skip


def _sum_key(columns: Iterable[str]) -> int:
    """A key that separates totals of different columns, and totals from single reads (0)."""
    names = "\x1f".join(sorted(name.lower() for name in columns))
    digest = hashlib.blake2b(names.encode("utf-8", "replace"), digest_size=7).digest()
    return 1 + int.from_bytes(digest, "big")


class _ReadTotals:
    """The reads of one dataset by one reader on one day."""

    __slots__ = ("bytes", "columns", "last", "read_count", "rows")

    def __init__(self) -> None:
        self.read_count = 0
        self.last = 0
        self.bytes: int | None = None
        self.rows: int | None = None
        self.columns: dict[str, int] = {}

    def add(self, run: QueryRuns, columns: Sequence[str]) -> None:
        self.read_count += run.run_count
        self.last = max(self.last, run.last)
        self.bytes = add_known(self.bytes, run.bytes)
        self.rows = add_known(self.rows, run.rows)
        for name in columns:
            self.columns[name] = self.columns.get(name, 0) + run.run_count


def _batches(
    days: Iterator[tuple[date, list[Reads]]],
) -> Iterator[dict[date, list[Reads]]]:
    """Batches of days for one transaction each."""
    batch: dict[date, list[Reads]] = {}
    for day, reads in days:
        batch[day] = reads
        if sum(map(len, batch.values())) >= _ROWS_PER_TRANSACTION:
            yield batch
            batch = {}
    if batch:
        yield batch


class RecordedReads(NamedTuple):
    """The number of reads counted now, and of those skipped because they are in the future."""

    counted: int
    in_future: int


def record_reads(
    store: Store,
    reporter: str,
    reads: Iterable[tuple[str, DatasetRead]],
    *,
    settings: UsageSettings,
    at: datetime,
) -> RecordedReads:
    """Count reads of datasets by URN.

    A run counts as one read per dataset, even if it uses several names for the dataset. Without a
    run, reads by one reader at the same time count as one. Reads in the future are skipped.
    """
    rename = reader_renamer(settings)
    by_key = {_read_key(urn, read): (urn, read) for urn, read in reads}
    future = {key for key, (_, read) in by_key.items() if read.at > at + _MAX_CLOCK_SKEW}
    with store.transaction() as transaction:
        usage = transaction.usage
        counted = set(store.usage.counted_keys_by(reporter))
        new_reads = {key: each for key, each in by_key.items() if key not in counted | future}
        keys: dict[date, list[int]] = {}
        for key, (_, read) in new_reads.items():
            keys.setdefault(read.at.astimezone(UTC).date(), []).append(key)
        changed = usage.add(
            reporter,
            [
                Reads(
                    urn,
                    read.at.astimezone(UTC).date(),
                    rename(read.reader) if rename else read.reader,
                    read.times,
                    read.at.astimezone(UTC),
                    read.bytes,
                    read.rows,
                    dict.fromkeys(read.columns or (UNKNOWN_COLUMNS,), read.times),
                )
                for urn, read in new_reads.values()
            ],
        )
        usage.count(reporter, keys)
    refresh_usage(store, changed, settings.retention_days, at=at)
    return RecordedReads(len(new_reads), len(future))


def _read_key(urn: str, read: DatasetRead) -> int:
    if read.run is None:
        text = "\x1f".join((urn, read.reader, read.at.astimezone(UTC).isoformat()))
    else:
        # The name is stable; the URN changes once the dataset is known.
        text = "\x1f".join((read.run, msgspec.json.encode(read.dataset).decode()))
    return int.from_bytes(
        hashlib.blake2b(text.encode(), digest_size=8).digest(), "big", signed=True
    )
