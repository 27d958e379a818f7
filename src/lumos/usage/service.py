"""Usage: who read what and when, from query logs and others who tell; and what nobody reads."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from lumos.model.time_expression import parse_time
from lumos.progress import Progress, no_progress
from lumos.store import Store
from lumos.store.actor import audit
from lumos.store.usage import UNKNOWN_COLUMNS, Reads, usage_of
from lumos.usage.recorder import Recorded, record_reads
from lumos.usage.reports import (
    ForgottenReport,
    ListedLog,
    LogsReport,
    TopReport,
    UnreadReport,
    UsageDay,
    UsageIngestReport,
    UsageShowReport,
    UsedDataset,
)
from lumos.usage.unread import Evidence, columns_read, unread_report

if TYPE_CHECKING:
    from lumos.usage.query_log import Log
    from lumos.usage.tables import Tables

_LOG: Final = "log:"


class UsageService:
    """Usage, as `Lumos().usage` offers it."""

    def __init__(
        self,
        settings: Settings,
        store: Callable[[], Store],
        make_store: Callable[[], Store],
        state: str,
        *,
        telling: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._settings = settings
        self._store = store
        self._make_store = make_store
        self._state = state
        self._telling = telling

    def ingest(
        self,
        *paths: str | Path,
        dialect: str | None = None,
        name: str | None = None,
        columns: Mapping[str, str] | None = None,
        progress: Progress = no_progress,
    ) -> UsageIngestReport:
        """Takes query logs in: files, or folders of them.

        `columns` names the columns of a log that says it in its own words. `name` is what all of
        these are known by; without it each is known by its file.
        """
        return self.ingest_logs(
            _logs(paths, columns), dialect=dialect, name=name, progress=progress
        )

    def ingest_logs(
        self,
        logs: "Sequence[Log]",
        *,
        dialect: str | None = None,
        name: str | None = None,
        progress: Progress = no_progress,
        spark_from_bytes: int | None = None,
    ) -> UsageIngestReport:
        """Takes query logs in that somebody has recognised."""
        # Only who takes logs in waits for the parser of SQL.
        from lumos.usage.ingest import SPARK_FROM_BYTES, LogIngest

        store = self._make_store()
        ingest = LogIngest(
            store,
            self._tables(store),
            self._settings,
            state=self._state,
            progress=progress,
            spark_from_bytes=SPARK_FROM_BYTES if spark_from_bytes is None else spark_from_bytes,
        )
        with self._telling():
            return ingest.ingest(logs, dialect=dialect, name=name)

    def record(self, reporter: str, reads: Iterable[tuple[str, DatasetRead]]) -> Recorded:
        """Counts reads of datasets by their URNs, each once."""
        with self._telling():
            return record_reads(
                self._make_store(),
                reporter,
                reads,
                settings=self._settings.usage,
                at=datetime.now(UTC),
            )

    def find_homes(self) -> int:
        """Gives reads of tables that were not known then to the datasets that they are now."""
        store = self._make_store()
        if not store.usage.homeless() and not store.usage.undescribed():
            return 0
        from lumos.usage.ingest import find_homes

        with self._telling():
            return find_homes(store, self._tables(store), at=datetime.now(UTC))

    def _tables(self, store: Store) -> "Tables":
        from lumos.lineage.name_index import load_name_index
        from lumos.usage.tables import Tables

        return Tables(store, load_name_index(self._settings, store))

    def show(self, dataset: str, *, since: str | date | None = None) -> UsageShowReport:
        """Who read a dataset, when and how often."""
        store = self._store()
        urn = store.find(dataset)
        entry = store.entries.get(urn)
        if entry is None:
            raise store.unknown(dataset)
        known = entry.dataset
        start = _day(since)
        reads = store.usage.of(urn, since=start)
        evidence = Evidence(store)
        known_since = evidence.at(urn, entry.known.source)
        usage = usage_of(reads)
        told = None if usage is not None else _told(evidence, urn, start)
        if told is not None:
            usage, known_since = told, known_since or told.since
        columns = {} if usage is None else usage.columns
        fields = [field.name for field in known.schema.fields] if known.schema else []
        readers = usage.readers if usage else ()
        is_vague = usage is None or UNKNOWN_COLUMNS in columns or bool(told and not columns)
        return UsageShowReport(
            urn=urn,
            name=known.name,
            since=start,
            known_since=known_since,
            reads=sum(each.reads for each in readers),
            bytes=_sum(each.bytes for each in readers),
            rows=_sum(each.rows for each in readers),
            last_accessed=usage.last_accessed if usage else None,
            readers=readers,
            columns=columns,
            unread_columns=None if is_vague else tuple(_unread(fields, columns)),
            days=tuple(_days(reads)),
            logs=tuple(sorted({each.reporter for each in reads})),
            told=told is not None,
        )

    def unread(self, *, since: str | date = "90d", columns: bool = False) -> UnreadReport:
        """Datasets, and columns of others, that nobody read in a period that is known whole."""
        start = _day(since)
        assert start is not None
        return unread_report(self._store(), since=start, columns=columns)

    def top(self, *, since: str | date | None = None, limit: int = 20) -> TopReport:
        """What is read most."""
        store = self._store()
        start = _day(since)
        used = sorted(_used(store.usage.since(start)), key=lambda each: (-each.reads, each.urn))
        datasets = []
        for each in used[:limit]:
            entry = store.entries.get(each.urn)
            name = None if entry is None else entry.known.name
            datasets.append(msgspec.structs.replace(each, name=name))
        periods = store.usage.periods()
        return TopReport(
            since=start,
            known_since=min((period.first for period in periods.values()), default=None),
            datasets=tuple(datasets),
            total=len(used),
        )

    def logs(self) -> LogsReport:
        """The logs that were taken in."""
        return LogsReport(
            logs=tuple(
                ListedLog(
                    log=each.reporter,
                    since=each.first,
                    until=each.last,
                    statements=each.statements,
                )
                for each in self._store().usage.logs()
            )
        )

    def forget(self, log: str) -> ForgottenReport:
        """Takes back all that a log told, so that it can be taken in anew."""
        from lumos.usage.ingest import settle

        store = self._store()
        known = {each.reporter for each in store.usage.logs()}
        # A log may have told of what was written only, or its reads may be too old to be kept.
        known |= {
            each.name
            for each in store.lineage.reporters()
            if each.edges and each.name.startswith(_LOG)
        }
        reporter = log if log in known else f"{_LOG}{log}"
        if reporter not in known:
            raise UnknownName(
                "log",
                log,
                {name.removeprefix(_LOG) for name in known},
                next="See all with: lumos usage list",
            )
        at = datetime.now(UTC)
        with self._telling(), store.alone("query logs"):
            with store.transaction() as transaction:
                touched = transaction.usage.forget(reporter)
                if reporter.startswith(_LOG):
                    transaction.lineage.report(reporter, (), at=at)
                audit(transaction, "usage.forget", reporter, at=at)
            settle(store, touched, self._settings.usage.retention_days, at=at)
        return ForgottenReport(log=reporter, datasets=len(touched))


def _logs(paths: Sequence[str | Path], columns: Mapping[str, str] | None) -> "list[Log]":
    found: dict[str, Log] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise MisuseError(
                f"There is nothing at {path}. Name a query log, or a folder of them: "
                "lumos usage ingest PATH"
            )
        several = list(_logs_in(path, columns))
        if not several:
            raise MisuseError(
                f"{path} is no query log that Lumos knows. Name its columns: "
                "--columns user=WHO,time=WHEN,statement=SQL_TEXT"
            )
        found |= {os.path.realpath(log.path): log for log in several}
    return list(found.values())


def _logs_in(path: Path, columns: Mapping[str, str] | None) -> "Iterator[Log]":
    from lumos.usage.query_log import look

    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    for file in files:
        log = look(file.absolute(), columns)
        if log is not None:
            yield log


def _day(since: str | date | None) -> date | None:
    if since is None or isinstance(since, date):
        return since
    return parse_time(since, now=datetime.now(UTC)).date()


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _told(evidence: Evidence, urn: str, since: date | None) -> Usage | None:
    """What others told of a dataset, unless all of that is older."""
    period = evidence.periods.get(urn)
    if since is not None and period is not None and period.last < since:
        return None
    return evidence.told.get(urn)


def _unread(fields: Iterable[str], columns: Mapping[str, object]) -> Iterator[str]:
    read = columns_read(columns)
    return (name for name in fields if name.lower() not in read)


def _days(reads: Iterable[Reads]) -> Iterator[UsageDay]:
    by_day: dict[date, list[Reads]] = defaultdict(list)
    for each in reads:
        by_day[each.day].append(each)
    for day, several in sorted(by_day.items()):
        yield UsageDay(
            day=day,
            reads=sum(each.reads for each in several),
            readers=len({each.reader for each in several}),
            bytes=_sum(each.bytes for each in several),
            rows=_sum(each.rows for each in several),
        )


def _used(reads: Iterable[Reads]) -> Iterator[UsedDataset]:
    for urn, of_one in groupby(reads, key=attrgetter("urn")):
        several = list(of_one)
        yield UsedDataset(
            urn=urn,
            name=None,
            reads=sum(each.reads for each in several),
            readers=len({each.reader for each in several}),
            bytes=_sum(each.bytes for each in several),
            rows=_sum(each.rows for each in several),
            last_read=max(each.last_read for each in several),
        )
