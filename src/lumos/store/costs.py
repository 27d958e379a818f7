"""Inputs and results of cost computation: metered usage, overrides, sizes, costs by period."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import (
    Connection,
    Integer,
    Select,
    case,
    delete,
    func,
    select,
    type_coerce,
)

from lumos.errors import MisuseError
from lumos.model.cost import MeteredUsage
from lumos.model.dataset import Statistics
from lumos.model.period import Period
from lumos.store import tables
from lumos.store.database import Database, lock_in_transaction
from lumos.store.statements import among, insert_missing, replace

EPOCH: Final = date(1970, 1, 1)
_PAGE_SIZE: Final = 5_000
_PAGED: Final = {"yield_per": 10_000}


class _StatisticsSize(msgspec.Struct):
    """The sizes in a statistics aspect; decoding only these is faster."""

    total_size_bytes: int = 0
    bytes_by_class: dict[str, int] = {}


_DECODE_METERED: Final = msgspec.json.Decoder(MeteredUsage).decode
_DECODE_SIZE: Final = msgspec.json.Decoder(_StatisticsSize).decode
_DECODE_CLASSES: Final = msgspec.json.Decoder(dict[str, int]).decode


class OverlappingMeter(MisuseError):
    """New usage of a job or dataset overlaps usage that the same meter has already reported."""

    def __init__(self, reporter: str, known: MeteredUsage, new: MeteredUsage) -> None:
        self.reporter = reporter
        super().__init__(
            f"Usage of {known.target} {time_range_text(known)} is already imported from "
            f"{reporter}; {time_range_text(new)} would count part of it twice. "
            f"Delete it first with: lumos cost remove --meter {reporter}"
        )


class MeterSummary(NamedTuple):
    """A reporter of metered usage, its number of records and their time range."""

    reporter: str
    rows: int
    first: datetime
    last: datetime


class MeterChange(NamedTuple):
    """The number of records that a report changed."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0


class StoredOverride(NamedTuple):
    """A monthly cost of a dataset or job that a user set, in micro-units."""

    urn: str
    type: str
    since: date
    until: date | None
    amount: int
    currency: str
    reason: str
    author: str
    set_at: datetime


class StorageSize(NamedTuple):
    """The size of a dataset, in total and by storage class, from a day on.

    Days are counted from 1970.
    """

    day: int
    total: int
    # Bytes by storage class as JSON, decoded on demand: there may be millions of sizes.
    body: bytes | None = None

    @property
    def classes(self) -> dict[str, int]:
        """Bytes by storage class, as far as known."""
        return _DECODE_CLASSES(self.body) if self.body else {}


class CostFigure(NamedTuple):
    """The cost of one URN and type in a period, in micro-units."""

    urn: str
    type: str
    own: int
    attributed: int
    total: int
    retained: int


class RecordedPeriod(NamedTuple):
    """A period with recorded costs."""

    name: str
    first: date
    last: date
    method: str
    currency: str
    computed_at: datetime


class CostReader:
    """Reads the inputs and results of cost computation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def metered(self, start: datetime, end: datetime) -> Iterator[tuple[str, MeteredUsage]]:
        """All metered usage that overlaps a time range, with its reporter."""
        column = tables.cost_meter.c
        statement = (
            select(column.reporter, column.body)
            .where(
                column.started_at < end,
                (column.ended_at > start) | (column.started_at >= start),
            )
            .order_by(column.reporter, column.key)
        )
        with self._database.reading() as connection:
            for reporter, body in connection.execute(statement, execution_options=_PAGED):
                yield reporter, _DECODE_METERED(body)

    def meters(self) -> tuple[MeterSummary, ...]:
        """The reporters of metered usage, by name."""
        column = tables.cost_meter.c
        statement = (
            select(
                column.reporter,
                func.count(),
                func.min(column.started_at),
                func.max(column.ended_at),
            )
            .group_by(column.reporter)
            .order_by(column.reporter)
        )
        with self._database.reading() as connection:
            return tuple(MeterSummary(*row) for row in connection.execute(statement))

    def metered_since(self) -> date | None:
        """The first day of metered usage, or None if there is none."""
        with self._database.reading() as connection:
            first = connection.execute(select(func.min(tables.cost_meter.c.started_at))).scalar()
            return None if first is None else first.date()

    def overrides(self) -> tuple[StoredOverride, ...]:
        """All overrides with current URNs, ordered by URN, type and day."""
        table, alias = tables.cost_override, tables.alias.c
        statement = select(table).order_by(table.c.urn, table.c.type, table.c.since)
        with self._database.reading() as connection:
            is_overridden = alias.urn.in_(select(table.c.urn))
            renamed = select(alias.urn, alias.dataset_urn).where(is_overridden)
            current_urns = {row.urn: row.dataset_urn for row in connection.execute(renamed)}
            overrides = (StoredOverride(**row._mapping) for row in connection.execute(statement))
            return tuple(
                each._replace(urn=current_urns.get(each.urn, each.urn)) for each in overrides
            )

    def sizes(self, until: date) -> dict[str, StorageSize]:
        """The last size of each dataset up to the day `until`, or else its first size after it.

        Datasets that were never scanned, such as imported ones, have the size in their statistics.
        """
        table, alias, aspect = tables.storage_size, tables.alias.c, tables.aspect.c
        found: dict[str, StorageSize] = {}
        with self._database.reading() as connection:
            renamed = select(alias.urn, alias.dataset_urn)
            current_urns = {row.urn: row.dataset_urn for row in connection.execute(renamed)}
        columns = table.c.urn, type_coerce(table.c.day, Integer), table.c.bytes, table.c.classes
        last = (until - EPOCH).days
        for page in self._pages(select(*columns)):
            for urn, day, total, classes in page:
                current_urn = current_urns.get(urn, urn)
                known = found.get(current_urn)
                if known is None or _is_better_size(day, known.day, last):
                    found[current_urn] = StorageSize(day, total, classes)
        with self._database.reading() as connection:
            imported = select(aspect.urn, aspect.updated_at, aspect.body).where(
                aspect.name == "statistics", aspect.urn.not_in(select(table.c.urn))
            )
            for row in connection.execute(imported, execution_options=_PAGED):
                if row.urn not in found:
                    size = _DECODE_SIZE(row.body)
                    day = (row.updated_at.date() - EPOCH).days
                    classes = msgspec.json.encode(size.bytes_by_class)
                    found[row.urn] = StorageSize(day, size.total_size_bytes, classes)
        return found

    def periods(self) -> tuple[RecordedPeriod, ...]:
        """The recorded periods, by their first day."""
        table = tables.cost_period
        statement = select(table).order_by(table.c.first, table.c.last)
        with self._database.reading() as connection:
            return tuple(RecordedPeriod(**row._mapping) for row in connection.execute(statement))

    def figures(self, period: str) -> Iterator[CostFigure]:
        """All costs of a period, by URN and type."""
        column = tables.cost_figure.c
        statement = (
            select(*(column[name] for name in CostFigure._fields))
            .where(column.period == period)
            .order_by(column.urn, column.type)
        )
        with self._database.reading() as connection:
            for row in connection.execute(statement, execution_options=_PAGED):
                yield CostFigure(*row)

    def history(self, urn: str) -> dict[str, tuple[CostFigure, ...]]:
        """The costs of a dataset or job by period, including its former URNs."""
        column, alias = tables.cost_figure.c, tables.alias.c
        amounts = [func.sum(column[name]) for name in CostFigure._fields[2:]]
        names = select(alias.urn).where(alias.dataset_urn == urn)
        statement = (
            select(column.period, column.type, *amounts)
            .where((column.urn == urn) | column.urn.in_(names))
            .group_by(column.period, column.type)
            .order_by(column.period, column.type)
        )
        with self._database.reading() as connection:
            rows = connection.execute(statement).all()
        return {
            period: tuple(CostFigure(urn, row.type, *map(int, row[2:])) for row in group)
            for period, group in groupby(rows, key=attrgetter("period"))
        }

    def totals(self) -> dict[str, dict[str, int]]:
        """The total cost of each recorded period, by cost type."""
        column = tables.cost_figure.c
        statement = (
            select(column.period, column.type, func.sum(column.own))
            .group_by(column.period, column.type)
            .order_by(column.period, column.type)
        )
        totals: dict[str, dict[str, int]] = {}
        with self._database.reading() as connection:
            for period, type, own in connection.execute(statement):
                totals.setdefault(period, {})[type] = int(own)
        return totals

    def datasets(self) -> Iterator[tuple[str, str, str]]:
        """The URN, platform and source of every live dataset."""
        column = tables.dataset.c
        statement = select(column.urn, column.platform, column.source).where(column.state == "live")
        for page in self._pages(statement):
            yield from page

    def nodes(self) -> Iterator[tuple[int, str]]:
        """The id and URN of every lineage node."""
        node = tables.lineage_node.c
        for page in self._pages(select(node.id, node.urn)):
            yield from page

    def links(self) -> Iterator[Sequence[Any]]:
        """The edges of all reporters in pages: upstream, downstream, and job or 0."""
        edge = tables.lineage_edge.c
        return self._pages(select(edge.upstream, edge.downstream, edge.job))

    def _pages(self, statement: Select[Any]) -> Iterator[Sequence[Any]]:
        """Yield pages of rows, which is faster than iterating row by row."""
        with self._database.reading() as connection:
            yield from connection.execute(statement, execution_options=_PAGED).partitions()

    def first_reads(self) -> Iterator[tuple[str, str, date]]:
        """The first day of reads, by dataset and reader."""
        column = tables.usage_reads.c
        statement = select(column.urn, column.reader, func.min(column.day))
        for page in self._pages(statement.group_by(column.urn, column.reader)):
            yield from page

    def reads(self, first: date, last: date) -> Iterator[tuple[Any, ...]]:
        """Reads between two days: URN, reader, reads, bytes, rows and the last time.

        Bytes and rows are None unless all reads have them.
        """
        column = tables.usage_reads.c
        statement = (
            select(
                column.urn,
                column.reader,
                func.sum(column.reads),
                _sum_if_complete(column.bytes),
                _sum_if_complete(column.rows),
                func.max(column.last_read),
            )
            .where(column.day >= first, column.day <= last)
            .group_by(column.urn, column.reader)
        )
        with self._database.reading() as connection:
            for row in connection.execute(statement, execution_options=_PAGED):
                yield tuple(row)


class CostWriter:
    """Writes costs in a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Writers read stored usage before they write, so they must run one after the other.
        lock_in_transaction(connection, "costs")

    def add_usage(
        self,
        reporter: str,
        usage: Iterable[MeteredUsage],
        *,
        at: datetime,
        replace_runs: bool = False,
    ) -> MeterChange:
        """Add metered usage by a reporter; records of the same runs and times are replaced.

        With `replace_runs`, each record is the total usage of its run and replaces all earlier
        records of the run, even those with another engine or unit.
        """
        rows = {each.key: each for each in usage}
        known = self._stored_usage(reporter, {each.target for each in rows.values()})
        runs = {_run_key(each): key for key, each in rows.items() if each.run and replace_runs}
        outdated = {
            key for key, each in known.items() if _run_key(each) in runs and key not in rows
        }
        replaced = {runs[_run_key(known.pop(key))] for key in outdated}
        self._remove(reporter, outdated)
        self._check_overlaps(reporter, rows, known)
        changed_rows = {key: each for key, each in rows.items() if known.get(key) != each}
        statement = replace(self._connection.dialect.name, tables.cost_meter)
        remaining = iter(changed_rows.items())
        while batch := list(islice(remaining, _PAGE_SIZE)):
            self._connection.execute(
                statement, [_meter_row(reporter, key, each, at) for key, each in batch]
            )
        changed = sum(key in known or key in replaced for key in changed_rows)
        return MeterChange(len(changed_rows) - changed, changed, len(rows) - len(changed_rows))

    def delete_usage(self, reporter: str) -> int:
        """Delete all metered usage by a reporter; return the number of records."""
        table = tables.cost_meter
        found = self._connection.execute(delete(table).where(table.c.reporter == reporter))
        return found.rowcount

    def _remove(self, reporter: str, keys: Collection[str]) -> None:
        table = tables.cost_meter
        remaining = iter(sorted(keys))
        while batch := list(islice(remaining, _PAGE_SIZE)):
            self._connection.execute(
                delete(table).where(
                    table.c.reporter == reporter, among(self._connection, table.c.key, batch)
                )
            )

    def set_override(self, override: StoredOverride) -> None:
        """Set a cost from a day on; replaces the override that starts on the same day."""
        statement = replace(self._connection.dialect.name, tables.cost_override)
        self._connection.execute(statement, override._asdict())

    def delete_overrides(self, urns: Collection[str], types: Collection[str]) -> int:
        """Delete the overrides of URNs, of all types if none is given; return their number."""
        column = tables.cost_override.c
        statement = delete(tables.cost_override).where(column.urn.in_(sorted(urns)))
        if types:
            statement = statement.where(column.type.in_(sorted(types)))
        return self._connection.execute(statement).rowcount

    def divide_overrides(self, urn: str, sizes: Mapping[str, int]) -> None:
        """Divide the overrides of a dataset among its parts in proportion to their bytes.

        The shares add up to exactly the amount that was set. The parts keep their own overrides.
        """
        table, alias = tables.cost_override, tables.alias.c
        former_urns = select(alias.urn).where(alias.dataset_urn == urn)
        is_of_dataset = (table.c.urn == urn) | table.c.urn.in_(former_urns)
        overrides = [
            StoredOverride(**row._mapping)
            for row in self._connection.execute(select(table).where(is_of_dataset))
        ]
        if not overrides:
            return
        weights = sizes if any(sizes.values()) else dict.fromkeys(sizes, 1)
        total = sum(weights.values())
        self._connection.execute(delete(table).where(is_of_dataset))
        for each in overrides:
            cumulative = assigned = 0
            for part in sorted(weights):
                cumulative += weights[part]
                share = each.amount * cumulative // total - assigned
                assigned += share
                row = each._replace(urn=part, amount=share)._asdict()
                self._connection.execute(insert_missing(self._connection.dialect.name, table), row)

    def record(
        self,
        period: Period,
        figures: Iterable[CostFigure],
        *,
        method: str,
        currency: str,
        at: datetime,
    ) -> int:
        """Replace the recorded costs of a period; return the number of figures."""
        figure, dialect = tables.cost_figure, self._connection.dialect.name
        self._connection.execute(delete(figure).where(figure.c.period == period.name))
        row = RecordedPeriod(period.name, period.first, period.last, method, currency, at)
        self._connection.execute(replace(dialect, tables.cost_period), row._asdict())
        count = 0
        remaining = (each for each in figures if any(each[2:]))
        while batch := list(islice(remaining, _PAGE_SIZE)):
            rows = [{"period": period.name, **each._asdict()} for each in batch]
            self._connection.execute(figure.insert(), rows)
            count += len(rows)
        return count

    def _stored_usage(self, reporter: str, targets: Collection[str]) -> dict[str, MeteredUsage]:
        column = tables.cost_meter.c
        statement = select(column.key, column.body).where(
            column.reporter == reporter, among(self._connection, column.target, targets)
        )
        return {row.key: _DECODE_METERED(row.body) for row in self._connection.execute(statement)}

    @staticmethod
    def _check_overlaps(
        reporter: str, new: Mapping[str, MeteredUsage], known: Mapping[str, MeteredUsage]
    ) -> None:
        """Raise OverlappingMeter for records without a run id that overlap stored ones.

        Records with a run id replace the earlier ones of the same run instead.
        """
        stored: dict[tuple[str, ...], list[MeteredUsage]] = {}
        for key, each in known.items():
            if key not in new and not each.run:
                stored.setdefault(each.subject, []).append(each)
        for each in new.values():
            for other in stored.get(each.subject, ()) if not each.run else ():
                if each.overlaps(other):
                    raise OverlappingMeter(reporter, other, each)


def _run_key(metered: MeteredUsage) -> tuple[str, bool, str]:
    return metered.target, metered.is_dataset, metered.run


def size_row(urn: str, statistics: Statistics, *, at: datetime) -> dict[str, Any]:
    """The row of `tables.storage_size` for the statistics of a dataset."""
    by_class = statistics.bytes_by_class
    return {
        "urn": urn,
        "day": at.date(),
        "bytes": statistics.total_size_bytes,
        "classes": msgspec.json.encode(by_class) if by_class else None,
    }


def _meter_row(reporter: str, key: str, metered: MeteredUsage, at: datetime) -> dict[str, Any]:
    return {
        "reporter": reporter,
        "key": key,
        "target": metered.target,
        "started_at": metered.started_at,
        "ended_at": metered.ended_at,
        "body": msgspec.json.encode(metered),
        "recorded_at": at,
    }


def _is_better_size(day: int, known_day: int, until: int) -> bool:
    """Whether to prefer a size: the last one up to `until`, or else the first one after it."""
    if day <= until:
        return known_day > until or day > known_day
    return known_day > until and day < known_day


def _sum_if_complete(column: Any) -> Any:
    """The sum of a column in SQL, or NULL if any row has no value."""
    return case((func.count(column) == func.count(), func.sum(column)), else_=None)


def time_range_text(metered: MeteredUsage) -> str:
    """The time range of metered usage as text."""
    last = metered.ended_at - timedelta(microseconds=1)
    is_whole_days = metered.started_at.time() == metered.ended_at.time() == datetime.min.time()
    if is_whole_days and metered.started_at < metered.ended_at:
        return f"from {metered.started_at:%Y-%m-%d} to {last:%Y-%m-%d}"
    return f"from {metered.started_at:%Y-%m-%dT%H:%M:%S} to {metered.ended_at:%Y-%m-%dT%H:%M:%S}"
