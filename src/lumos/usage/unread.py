"""Finds datasets and columns without reads, as far as query logs cover them."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Final

from lumos.model.dataset import Usage
from lumos.model.urn import Urn
from lumos.store import DatasetFilter, KnownDataset, Store
from lumos.store.datasets import IMPORTED
from lumos.store.usage import UNKNOWN_COLUMNS, ReadPeriod
from lumos.usage.reports import NotJudged, UnreadColumns, UnreadDataset, UnreadReport

# Start of a nested part of a column.
_NESTED_PART: Final = re.compile(r"[.\[]")


class ReadEvidence:
    """The day since which reads are known, for each log scope.

    A log scope is the set of datasets that the same logs cover: one source or, for imported
    datasets, the platform with the first part of the URN (database, bucket or folder). A logged
    read shows that a log covers the scope. Imported usage only shows that the dataset itself was
    read.
    """

    def __init__(self, store: Store) -> None:
        self.periods = store.usage.periods()
        self.imported = store.usage.imported()
        # Datasets with reads of unknown date.
        self.undated: set[str] = set()
        self._since: dict[str, date] = {}
        for urn, source in store.usage.sources().items():
            log_scope, first = log_scope_of(urn, source), self.periods[urn].first
            self._since[log_scope] = min(self._since.get(log_scope, first), first)
        for urn, usage in self.imported.items():
            days = [*_days_of(usage)]
            if days:
                known_period = self.periods.get(urn, ReadPeriod(min(days), max(days)))
                self.periods[urn] = ReadPeriod(
                    min(known_period.first, *days), max(known_period.last, *days)
                )
            elif usage.readers or usage.columns:
                self.undated.add(urn)

    def known_since(self, urn: str, source: str) -> date | None:
        """The day since which reads of a dataset are known."""
        return self._since.get(log_scope_of(urn, source))


def _days_of(usage: Usage) -> Iterator[date]:
    """The days with reads in imported usage."""
    times = (usage.last_accessed, *(each.last_read for each in usage.readers))
    yield from (time.date() for time in times if time is not None)
    yield from (each.last_read for each in usage.columns.values() if each.last_read is not None)


def log_scope_of(urn: str, source: str) -> str:
    """The log scope of a dataset; the same logs cover all of its datasets."""
    if source != IMPORTED:
        return source
    parsed = Urn.parse(urn)
    instance = f"@{parsed.instance}" if parsed.instance else ""
    return f"{parsed.platform}{instance}/{parsed.path[0]}"


def unread_report(store: Store, *, since: date, columns: bool) -> UnreadReport:
    """Datasets and columns without reads since a day, for locations whose reads are known."""
    evidence = ReadEvidence(store)
    periods = evidence.periods
    read_urns = {urn for urn, period in periods.items() if period.last >= since}
    tables_read_through_views = (
        _find_tables_read_through_views(read_urns, store.usage.views()) - read_urns
    )
    unread: list[UnreadDataset] = []
    not_judged: dict[tuple[str, date | None, str], int] = defaultdict(int)
    live: list[KnownDataset] = []
    for dataset in store.list(DatasetFilter()):
        live.append(dataset)
        if dataset.urn in read_urns or dataset.urn in tables_read_through_views:
            continue
        known_since = evidence.known_since(dataset.urn, dataset.source)
        is_undated = dataset.urn in evidence.undated
        if known_since is None or known_since > since or is_undated:
            log_scope = log_scope_of(dataset.urn, dataset.source)
            if is_undated:
                reason = "imported usage has reads without dates"
            elif known_since is None:
                reason = "no log covers it"
            else:
                reason = f"reads are known since {known_since}, not since {since}"
            not_judged[log_scope, known_since, reason] += 1
            continue
        period = periods.get(dataset.urn)
        unread.append(
            UnreadDataset(
                urn=dataset.urn,
                name=dataset.name,
                platform=dataset.platform,
                last_read=period.last if period else None,
                known_since=known_since,
            )
        )
    urns = {dataset.urn for dataset in live}
    unread_columns, with_unknown_columns = (
        _columns(store, evidence, live, since) if columns else (None, 0)
    )
    return UnreadReport(
        since=since,
        datasets=tuple(unread),
        columns=unread_columns,
        read=len(read_urns & urns),
        read_through_views=len(tables_read_through_views & urns),
        not_judged=tuple(
            NotJudged(place=log_scope, datasets=count, known_since=day, reason=reason)
            for (log_scope, day, reason), count in sorted(
                not_judged.items(), key=lambda each: (each[0][0], each[0][2])
            )
        ),
        columns_not_judged=with_unknown_columns,
    )


def _find_tables_read_through_views(
    read_urns: set[str], views: Iterable[tuple[str, str]]
) -> set[str]:
    """All tables that the views among the read datasets read, directly or indirectly."""
    tables_by_view: dict[str, list[str]] = defaultdict(list)
    for table, view in views:
        tables_by_view[view].append(table)
    tables: set[str] = set()
    stack = [table for urn in read_urns for table in tables_by_view.get(urn, ())]
    while stack:
        table = stack.pop()
        if table not in tables:
            tables.add(table)
            stack += tables_by_view.get(table, ())
    return tables


def columns_read(names: Iterable[str]) -> set[str]:
    """Columns in lower case; reading a part, such as `page.url`, also reads the column."""
    return {
        part
        for name in map(str.lower, names)
        for part in (
            name,
            *(name[: match.start()] for match in _NESTED_PART.finditer(name)),
        )
    }


def _columns(
    store: Store, evidence: ReadEvidence, live: Iterable[KnownDataset], since: date
) -> tuple[tuple[UnreadColumns, ...], int]:
    """Unread columns of read datasets, and the number of datasets with reads of unknown columns."""
    columns_by_urn: dict[str, set[str]] = defaultdict(set)
    for each in store.usage.since(since):
        columns_by_urn[each.urn].update(columns_read(each.columns))
    for urn, usage in evidence.imported.items():
        if urn in evidence.periods and evidence.periods[urn].last >= since:
            # A column with an unknown last read may have been read in the period.
            recent_columns = {
                name: each.last_read
                for name, each in usage.columns.items()
                if (each.last_read or since) >= since
            }
            columns_by_urn[urn].update(columns_read(recent_columns or (UNKNOWN_COLUMNS,)))
    read_datasets = [dataset for dataset in live if dataset.urn in columns_by_urn]
    with_unknown_columns = {
        dataset.urn for dataset in read_datasets if UNKNOWN_COLUMNS in columns_by_urn[dataset.urn]
    }
    schemas = store.schemas.current(
        {dataset.urn for dataset in read_datasets} - with_unknown_columns
    )
    unread_columns = []
    for dataset in read_datasets:
        if dataset.urn not in schemas:
            continue
        names = [field.name for field in schemas[dataset.urn].fields]
        unread = tuple(name for name in names if name.lower() not in columns_by_urn[dataset.urn])
        if unread:
            unread_columns.append(
                UnreadColumns(urn=dataset.urn, name=dataset.name, columns=unread, of=len(names))
            )
    return tuple(unread_columns), len(with_unknown_columns)
