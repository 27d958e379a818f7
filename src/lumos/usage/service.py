"""Usage: who reads which data, and what is unread; the feature behind `Lumos().usage`."""

import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, date, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from lumos.config import Settings
from lumos.errors import MisuseError, UnknownName
from lumos.lineage.reported_lineage import DatasetRead
from lumos.model.dataset import Usage
from lumos.model.schema import Schema
from lumos.model.time_expression import parse_time
from lumos.names import find_urn
from lumos.progress import Progress, no_progress
from lumos.sources import QueryLogSource
from lumos.sources.addresses import is_address, section_of
from lumos.store import KnownDataset, Store
from lumos.store.usage import UNKNOWN_COLUMNS, Reads, usage_of
from lumos.usage.ingest import (
    SPARK_FROM_BYTES,
    LogIngest,
    RecordedReads,
    assign_reads,
    record_reads,
    refresh_usage,
)
from lumos.usage.reports import (
    ForgottenReport,
    ListedLog,
    LogsReport,
    UnreadReport,
    UsageDay,
    UsageIngestReport,
    UsageShowReport,
    UsageTopReport,
    UsedDataset,
)
from lumos.usage.unread import ReadEvidence, columns_read, unread_report

if TYPE_CHECKING:
    from lumos.config.sources import SourceSettings
    from lumos.usage.query_log.files import LogFile
    from lumos.usage.tables import LogTables

_LOG_PREFIX: Final = "log:"


class UsageService:
    """Reads of datasets: ingest, show, unread, top."""

    def __init__(
        self,
        settings: Settings,
        open_store: Callable[[], Store],
        create_store: Callable[[], Store],
        state: str,
        *,
        publishing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._settings = settings
        self._open_store = open_store
        self._create_store = create_store
        self._state = state
        self._publishing = publishing

    def ingest(
        self,
        *paths: str | Path,
        dialect: str | None = None,
        name: str | None = None,
        columns: Mapping[str, str] | None = None,
        progress: Progress = no_progress,
    ) -> UsageIngestReport:
        """Ingest query logs: files or folders, or the statistics of one database.

        A database is an address or the name of a configured source. `columns` maps fields to the
        columns of a log in an unknown layout. `name` names all of these logs; by default each is
        named after its file or database.
        """
        section = self._database_section(paths)
        if section is not None:
            return self._ingest_database(section, name=name, progress=progress)
        return self.ingest_logs(
            _logs(paths, columns), dialect=dialect, name=name, progress=progress
        )

    def _database_section(self, paths: Sequence[str | Path]) -> "SourceSettings | None":
        """The source that the only path names, or None for files."""
        sections = [
            section_of(str(path), self._settings.sources)
            if is_address(str(path))
            else next(
                (
                    each
                    for each in self._settings.sources
                    if each.name and each.name == str(path) and not Path(path).exists()
                ),
                None,
            )
            for path in paths
        ]
        databases = [section for section in sections if section is not None]
        if databases and len(paths) > 1:
            raise MisuseError(
                "The statistics of a database are ingested on their own. Run the command once for "
                "each database, and once for the files."
            )
        return databases[0] if databases else None

    def _ingest_database(
        self, section: "SourceSettings", *, name: str | None, progress: Progress
    ) -> UsageIngestReport:
        from lumos.discovery.targets import create_source, source_name
        from lumos.usage.query_log.files import recognise_log

        source = create_source(section)
        if not isinstance(source, QueryLogSource):
            raise MisuseError(
                f"A {section.type} source does not report its statements. Export its query log, "
                "and run: lumos usage ingest FILE"
            )
        progress("reading statements from the database")
        with tempfile.TemporaryDirectory(prefix="lumos-usage-") as folder:
            file = Path(folder, "statements.jsonl")
            with file.open("wb") as stream:
                for entry in source.query_log():
                    stream.write(msgspec.json.encode(entry) + b"\n")
            log = recognise_log(file)
            if log is None:
                raise MisuseError(
                    f"{source_name(section)} has recorded no statements. For MySQL and MariaDB, "
                    "set performance_schema=ON and enable the consumer statements_digest."
                )
            default_name = section.name or getattr(source, "address", section.type)
            return self.ingest_logs([log], name=name or default_name, progress=progress)

    def ingest_logs(
        self,
        logs: "Sequence[LogFile]",
        *,
        dialect: str | None = None,
        name: str | None = None,
        progress: Progress = no_progress,
        spark_from_bytes: int | None = None,
    ) -> UsageIngestReport:
        """Ingest recognised query logs."""
        store = self._create_store()
        ingest = LogIngest(
            store,
            self._tables(store),
            self._settings,
            state=self._state,
            progress=progress,
            spark_from_bytes=SPARK_FROM_BYTES if spark_from_bytes is None else spark_from_bytes,
        )
        with self._publishing():
            return ingest.ingest(logs, dialect=dialect, name=name)

    def record(self, reporter: str, reads: Iterable[tuple[str, DatasetRead]]) -> RecordedReads:
        """Record reads by dataset URN; reads that are already recorded are not counted again."""
        with self._publishing():
            return record_reads(
                self._create_store(),
                reporter,
                reads,
                settings=self._settings.usage,
                at=datetime.now(UTC),
            )

    def assign_unresolved_reads(self) -> int:
        """Assign reads of formerly unknown tables to datasets; return the number of datasets."""
        store = self._create_store()
        if not store.usage.unknown_datasets() and not store.usage.without_aspect():
            return 0
        with self._publishing():
            return assign_reads(store, self._tables(store), at=datetime.now(UTC))

    def _tables(self, store: Store) -> "LogTables":
        from lumos.lineage.name_index import load_name_index
        from lumos.usage.tables import LogTables

        return LogTables(store, load_name_index(self._settings, store))

    def show(self, dataset: str, *, since: str | date | None = None) -> UsageShowReport:
        """Report who read a dataset, when and how often."""
        urn = find_urn(self._open_store(), dataset)
        return self.show_many([urn], since=since)[urn]

    def show_many(
        self, urns: Collection[str], *, since: str | date | None = None
    ) -> dict[str, UsageShowReport]:
        """Report who read each dataset, by current URN, with few queries of the store."""
        store, start = self._open_store(), _parse_day(since)
        known, schemas = store.known_datasets(urns), store.schemas.current(urns)
        evidence = ReadEvidence(store)
        reads = store.usage.of_many(urns, since=start)
        return {
            urn: _show(each, schemas.get(urn), reads.get(urn, ()), evidence, start)
            for urn, each in known.items()
        }

    def unread(self, *, since: str | date = "90d", columns: bool = False) -> UnreadReport:
        """Report datasets and columns without reads in a period for which reads are known."""
        start = _parse_day(since)
        assert start is not None
        return unread_report(self._open_store(), since=start, columns=columns)

    def top(self, *, since: str | date | None = None, limit: int = 20) -> UsageTopReport:
        """Report the most read datasets."""
        store = self._open_store()
        start = _parse_day(since)
        used = sorted(
            _used_datasets(store.usage.since(start)), key=lambda each: (-each.reads, each.urn)
        )
        datasets = []
        for each in used[:limit]:
            entry = store.entries.get(each.urn)
            name = None if entry is None else entry.known.name
            datasets.append(msgspec.structs.replace(each, name=name))
        periods = store.usage.periods()
        unknown = set(store.usage.unknown_datasets())
        return UsageTopReport(
            since=start,
            known_since=min((period.first for period in periods.values()), default=None),
            datasets=tuple(datasets),
            total=len(used),
            not_scanned=sum(each.urn in unknown for each in used),
        )

    def logs(self) -> LogsReport:
        """List the ingested logs."""
        return LogsReport(
            logs=tuple(
                ListedLog(
                    log=each.reporter,
                    since=each.first,
                    until=each.last,
                    statements=each.statements,
                )
                for each in self._open_store().usage.logs()
            )
        )

    def forget(self, log: str) -> ForgottenReport:
        """Remove everything that came from a log, so that it can be ingested again."""
        store = self._open_store()
        known_reporters = {each.reporter for each in store.usage.logs()}
        # A log may have edges only, or reads beyond the retention period.
        known_reporters |= {
            each.name
            for each in store.lineage.reporters()
            if each.edges and each.name.startswith(_LOG_PREFIX)
        }
        reporter = log if log in known_reporters else f"{_LOG_PREFIX}{log}"
        if reporter not in known_reporters:
            raise UnknownName(
                "log",
                log,
                {name.removeprefix(_LOG_PREFIX) for name in known_reporters},
                next="See all with: lumos usage list",
            )
        at = datetime.now(UTC)
        with self._publishing(), store.lock("query logs"):
            with store.transaction() as transaction:
                changed = transaction.usage.delete_reporter(reporter)
                if reporter.startswith(_LOG_PREFIX):
                    transaction.lineage.report(reporter, (), at=at)
                transaction.audit("usage remove", reporter, at=at)
            refresh_usage(store, changed, self._settings.usage.retention_days, at=at)
        return ForgottenReport(log=reporter, datasets=len(changed))


def _logs(paths: Sequence[str | Path], columns: Mapping[str, str] | None) -> "list[LogFile]":
    logs_by_path: dict[str, LogFile] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise MisuseError(
                f"There is nothing at {path}. Give a query log or a folder of logs: "
                "lumos usage ingest PATH"
            )
        logs_in_path = list(_logs_in(path, columns))
        if not logs_in_path:
            raise MisuseError(
                f"{path} is not a known kind of query log. Name its columns: "
                "--columns user=WHO,time=WHEN,statement=SQL_TEXT"
            )
        logs_by_path |= {os.path.realpath(log.path): log for log in logs_in_path}
    return list(logs_by_path.values())


def _logs_in(path: Path, columns: Mapping[str, str] | None) -> "Iterator[LogFile]":
    from lumos.usage.query_log.files import recognise_log

    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    for file in files:
        log = recognise_log(file.absolute(), columns)
        if log is not None:
            yield log


def _parse_day(since: str | date | None) -> date | None:
    if since is None or isinstance(since, date):
        return since
    return parse_time(since, now=datetime.now(UTC)).date()


def _sum_known(numbers: Iterable[int | None]) -> int | None:
    known_numbers = [number for number in numbers if number is not None]
    return sum(known_numbers) if known_numbers else None


def _show(
    known: KnownDataset,
    schema: Schema | None,
    reads: Sequence[Reads],
    evidence: ReadEvidence,
    start: date | None,
) -> UsageShowReport:
    known_since = evidence.known_since(known.urn, known.source)
    usage = usage_of(reads)
    imported = None if usage is not None else _imported_usage(evidence, known.urn, start)
    if imported is not None:
        usage, known_since = imported, known_since or imported.since
    columns = {} if usage is None else usage.columns
    read_columns = columns_read(columns)
    fields = [field.name for field in schema.fields] if schema else []
    readers = usage.readers if usage else ()
    has_unknown_columns = (
        usage is None or UNKNOWN_COLUMNS in columns or bool(imported and not columns)
    )
    return UsageShowReport(
        urn=known.urn,
        name=known.name,
        since=start,
        known_since=known_since,
        reads=sum(each.reads for each in readers),
        bytes=_sum_known(each.bytes for each in readers),
        rows=_sum_known(each.rows for each in readers),
        last_accessed=usage.last_accessed if usage else None,
        readers=readers,
        columns=columns,
        unread_columns=None
        if has_unknown_columns
        else tuple(name for name in fields if name.lower() not in read_columns),
        days=tuple(_days(reads)),
        logs=tuple(sorted({each.reporter for each in reads})),
        is_imported=imported is not None,
    )


def _imported_usage(evidence: ReadEvidence, urn: str, since: date | None) -> Usage | None:
    """Imported usage of a dataset, unless all of it is older than `since`."""
    period = evidence.periods.get(urn)
    if since is not None and period is not None and period.last < since:
        return None
    return evidence.imported.get(urn)


def _days(reads: Iterable[Reads]) -> Iterator[UsageDay]:
    by_day: dict[date, list[Reads]] = defaultdict(list)
    for each in reads:
        by_day[each.day].append(each)
    for day, reads_of_day in sorted(by_day.items()):
        yield UsageDay(
            day=day,
            reads=sum(each.reads for each in reads_of_day),
            readers=len({each.reader for each in reads_of_day}),
            bytes=_sum_known(each.bytes for each in reads_of_day),
            rows=_sum_known(each.rows for each in reads_of_day),
        )


def _used_datasets(reads: Iterable[Reads]) -> Iterator[UsedDataset]:
    for urn, group in groupby(reads, key=attrgetter("urn")):
        reads_of_dataset = list(group)
        yield UsedDataset(
            urn=urn,
            name=None,
            reads=sum(each.reads for each in reads_of_dataset),
            readers=len({each.reader for each in reads_of_dataset}),
            bytes=_sum_known(each.bytes for each in reads_of_dataset),
            rows=_sum_known(each.rows for each in reads_of_dataset),
            last_read=max(each.last_read for each in reads_of_dataset),
        )
