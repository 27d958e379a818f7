"""Reads of datasets by day and reader, and the keys of logged statements already counted."""

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import BindParameter, Connection, Row, bindparam, delete, func, select, update

from lumos.model.catalog import Timestamps
from lumos.model.dataset import ColumnReads, Reader, Usage
from lumos.model.json_codec import from_json, to_json
from lumos.store import tables
from lumos.store.database import Database, lock_in_transaction
from lumos.store.lineage.edges import current_urns
from lumos.store.statements import among, batches, replace

# The name under which reads of unknown columns are counted.
UNKNOWN_COLUMNS: Final = "*"
_WRITER: Final = "usage"
_PAGE_SIZE: Final = 500
_DECODE_COLUMNS: Final = msgspec.json.Decoder(dict[str, int]).decode


class Reads(NamedTuple):
    """The reads of one dataset by one reader on one day, by one reporter.

    Reads of the same key are added, except for totals: these have a `sum_key`, and a later total
    with the same key replaces them, even from another reporter.
    """

    urn: str
    day: date
    reader: str
    reads: int
    last_read: datetime
    bytes: int | None = None
    rows: int | None = None
    columns: Mapping[str, int] = {}
    reporter: str = ""
    sum_key: int = 0


class ReadPeriod(NamedTuple):
    """The first and the last day of reads."""

    first: date
    last: date


class ReportedLog(NamedTuple):
    """An ingested query log: its days and the number of counted statements."""

    reporter: str
    first: date
    last: date
    statements: int


class UsageReader:
    """Reads the usage of datasets."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, urn: str, *, since: date | None = None) -> list[Reads]:
        """The reads of a dataset, oldest first."""
        return self.of_many([urn], since=since).get(urn, [])

    def of_many(
        self, urns: Collection[str], *, since: date | None = None
    ) -> dict[str, list[Reads]]:
        """The reads of datasets, by URN, oldest first."""
        column = tables.usage_reads.c
        statement = select(tables.usage_reads).order_by(*_ORDER)
        if since is not None:
            statement = statement.where(column.day >= since)
        found: dict[str, list[Reads]] = {}
        with self._database.reading() as connection:
            for row in connection.execute(statement.where(among(connection, column.urn, urns))):
                found.setdefault(row.urn, []).append(_reads(row))
        return found

    def since(self, day: date | None) -> Iterator[Reads]:
        """All reads from a day on, by dataset, oldest first."""
        table = tables.usage_reads
        statement = select(table).order_by(table.c.urn, table.c.day)
        if day is not None:
            statement = statement.where(table.c.day >= day)
        with self._database.reading() as connection:
            for row in connection.execute(statement, execution_options={"yield_per": 5_000}):
                yield _reads(row)

    def periods(self) -> dict[str, ReadPeriod]:
        """The first and the last day with reads, by dataset."""
        column = tables.usage_reads.c
        statement = select(column.urn, func.min(column.day), func.max(column.day))
        with self._database.reading() as connection:
            rows = connection.execute(statement.group_by(column.urn))
            return {urn: ReadPeriod(first, last) for urn, first, last in rows}

    def sources(self) -> dict[str, str]:
        """The source of each dataset with reads."""
        dataset = tables.dataset.c
        read_urns = select(tables.usage_reads.c.urn)
        statement = select(dataset.urn, dataset.source).where(dataset.urn.in_(read_urns))
        with self._database.reading() as connection:
            return {row.urn: row.source for row in connection.execute(statement)}

    def unknown_datasets(self) -> tuple[str, ...]:
        """URNs with reads that are not datasets of the store."""
        read_urns = select(tables.usage_reads.c.urn).distinct()
        with self._database.reading() as connection:
            known = select(tables.dataset.c.urn)
            return tuple(
                connection.scalars(read_urns.where(tables.usage_reads.c.urn.not_in(known)))
            )

    def without_aspect(self) -> tuple[str, ...]:
        """Datasets with reads but without a usage aspect: they were scanned after the reads."""
        read, dataset, aspect = tables.usage_reads.c, tables.dataset.c, tables.aspect.c
        with_aspect = select(aspect.urn).where(aspect.name == "usage")
        statement = (
            select(read.urn)
            .distinct()
            .join_from(tables.usage_reads, tables.dataset, dataset.urn == read.urn)
        )
        with self._database.reading() as connection:
            return tuple(connection.scalars(statement.where(read.urn.not_in(with_aspect))))

    def imported(self) -> dict[str, Usage]:
        """Imported usage aspects by URN, whose reads are not in `tables.usage_reads`."""
        aspect = tables.aspect.c
        statement = select(aspect.urn, aspect.body).where(
            aspect.name == "usage", aspect.writer != _WRITER
        )
        with self._database.reading() as connection:
            return {row.urn: from_json(row.body, Usage) for row in connection.execute(statement)}

    def views(self) -> list[tuple[str, str]]:
        """Pairs of a table or view and a view that reads from it, by any reporter."""
        edge = tables.lineage_edge.c
        upstream_node, downstream_node = tables.lineage_node.alias(), tables.lineage_node.alias()
        statement = (
            select(upstream_node.c.urn, downstream_node.c.urn)
            .select_from(tables.lineage_edge)
            .join(upstream_node, upstream_node.c.id == edge.upstream)
            .join(downstream_node, downstream_node.c.id == edge.downstream)
            .where(edge.type == "VIEW")
            .distinct()
        )
        with self._database.reading() as connection:
            return [(row[0], row[1]) for row in connection.execute(statement)]

    def logs(self) -> tuple[ReportedLog, ...]:
        """Every ingested log, by name."""
        column = tables.usage_log.c
        statement = (
            select(
                column.reporter,
                func.min(column.day),
                func.max(column.day),
                func.sum(func.length(column["keys"])),
            )
            .group_by(column.reporter)
            .order_by(column.reporter)
        )
        with self._database.reading() as connection:
            rows = connection.execute(statement).all()
        return tuple(ReportedLog(*row[:3], int(row[3]) // 8) for row in rows)

    def counted_keys(self, days: Collection[date]) -> Iterator[bytes]:
        """Yield the keys of statements counted on these days, 8 bytes each, by day and log."""
        column = tables.usage_log.c
        in_order = sorted(days)
        with self._database.reading() as connection:
            for start in range(0, len(in_order), _PAGE_SIZE):
                batch = in_order[start : start + _PAGE_SIZE]
                statement = select(column["keys"]).where(column.day.in_(batch))
                yield from connection.scalars(statement, execution_options={"yield_per": 10})

    def counted_keys_by(self, reporter: str) -> "array[int]":
        """The keys of all counted statements of one reporter."""
        column = tables.usage_log.c
        found = array("q")
        with self._database.reading() as connection:
            for keys in connection.scalars(
                select(column["keys"]).where(column.reporter == reporter)
            ):
                found.frombytes(keys)
        return found


class UsageWriter:
    """Writes reads in a transaction."""

    def __init__(self, connection: Connection, *, changed: Callable[[str], None]) -> None:
        self._connection = connection
        self._changed = changed
        # Locked, since counts are read, incremented and written back.
        lock_in_transaction(connection, _WRITER)

    def add(self, reporter: str, reads: Iterable[Reads]) -> set[str]:
        """Add reads by a reporter; return the current URNs of the datasets.

        Former URNs are resolved.
        """
        changed_urns: set[str] = set()
        statement = replace(self._connection.dialect.name, tables.usage_reads)
        ordered = sorted(reads, key=attrgetter("urn"))
        current_by_urn = current_urns(self._connection, {each.urn for each in ordered})
        for urn, group in groupby(ordered, key=attrgetter("urn")):
            current = current_by_urn[urn]
            added = [each._replace(urn=current, reporter=reporter) for each in group]
            days = [each.day for each in added]
            known = {
                _key(each): each
                for each in _read_rows(self._connection, current, min(days), until=max(days))
                if each.reporter == reporter
            }
            self._delete_sums(added)
            for each in added:
                before = None if each.sum_key else known.get(_key(each))
                known[_key(each)] = each if before is None else _add_reads(before, each)
            changed = {_key(each) for each in added}
            rows = [_row(each) for key, each in known.items() if key in changed]
            for start in range(0, len(rows), _PAGE_SIZE):
                self._connection.execute(statement, rows[start : start + _PAGE_SIZE])
            changed_urns.add(current)
        return changed_urns

    def _delete_sums(self, newer: Iterable[Reads]) -> None:
        column = tables.usage_reads.c
        keys = [
            {"wanted": each.urn, "on": each.day, "by": each.reader, "sum": each.sum_key}
            for each in newer
            if each.sum_key
        ]
        if keys:
            statement = delete(tables.usage_reads).where(
                column.urn == bindparam("wanted"),
                column.day == bindparam("on", type_=tables.DayColumn),
                column.reader == bindparam("by"),
                column.sum_key == bindparam("sum"),
            )
            self._connection.execute(statement, keys)

    def count(self, reporter: str, keys: Mapping[date, Iterable[int]]) -> None:
        """Record the keys of counted statements, by day."""
        import numpy as np

        column = tables.usage_log.c
        for day, new in keys.items():
            known = self._connection.scalar(
                select(column["keys"]).where(column.reporter == reporter, column.day == day)
            )
            all_keys = np.union1d(
                np.frombuffer(known or b"", np.int64), np.fromiter(new, np.int64)
            ).tobytes()
            row = {"reporter": reporter, "day": day, "keys": all_keys}
            self._connection.execute(replace(self._connection.dialect.name, tables.usage_log), row)

    def delete_reporter(self, reporter: str) -> set[str]:
        """Delete all reads and counted statements of a reporter; return the URNs that had reads."""
        table = tables.usage_reads
        changed_urns = set(
            self._connection.scalars(
                select(table.c.urn).distinct().where(table.c.reporter == reporter)
            )
        )
        for each in (table, tables.usage_log):
            self._connection.execute(delete(each).where(each.c.reporter == reporter))
        return changed_urns

    def delete_before(self, day: date) -> set[str]:
        """Delete all reads and counted statements before a day; return the URNs that had reads."""
        reads, log = tables.usage_reads, tables.usage_log
        old = reads.c.day < day
        changed_urns = set(self._connection.scalars(select(reads.c.urn).distinct().where(old)))
        self._connection.execute(delete(log).where(log.c.day < day))
        self._connection.execute(delete(reads).where(old))
        return changed_urns

    def move(self, urn: str, into: str) -> bool:
        """Move the reads of one dataset to another; False if there are none."""
        moved_reads = [each._replace(urn=into) for each in _read_rows(self._connection, urn, None)]
        if not moved_reads:
            return False
        existing_reads = _read_rows(self._connection, into, None)
        known = {(*_key(each), each.reporter): each for each in existing_reads}
        # A total under the new URN is newer than the same total under the old one.
        sums = {_key(each) for each in existing_reads if each.sum_key}
        rows = []
        for each in moved_reads:
            before = known.get((*_key(each), each.reporter))
            if _key(each) not in sums:
                rows.append(_row(each if before is None else _add_reads(before, each)))
        table = tables.usage_reads
        if rows:
            self._connection.execute(replace(self._connection.dialect.name, table), rows)
        self._connection.execute(delete(table).where(table.c.urn == urn))
        return True

    def derive(self, urns: Iterable[str], *, at: datetime) -> int:
        """Write the usage aspect of each dataset; return the number of datasets."""
        written = 0
        for batch in batches(list(urns)):
            known = select(tables.dataset.c.urn).where(tables.dataset.c.urn.in_(batch))
            for urn in self._connection.scalars(known).all():
                self._write_aspect(urn, at)
                self._changed(urn)
                written += 1
        return written

    def _write_aspect(self, urn: str, at: datetime) -> None:
        usage = usage_of(_read_rows(self._connection, urn, None))
        aspect = tables.aspect
        if usage is None:
            self._connection.execute(
                delete(aspect).where(
                    aspect.c.urn == urn, aspect.c.name == "usage", aspect.c.writer == _WRITER
                )
            )
            return
        row = {
            "urn": urn,
            "name": "usage",
            "body": to_json(usage),
            "writer": _WRITER,
            "updated_at": at,
        }
        self._connection.execute(replace(self._connection.dialect.name, aspect), row)
        self._update_last_accessed(urn, usage)

    def _update_last_accessed(self, urn: str, usage: Usage) -> None:
        """Update imported timestamps if the last read is later."""
        extras = tables.extras
        is_timestamps = (extras.c.urn == urn, extras.c.name == "timestamps")
        body = self._connection.execute(select(extras.c.body).where(*is_timestamps)).scalar()
        imported = None if body is None else from_json(body, Timestamps | None)  # type: ignore[arg-type]
        if imported is None or usage.last_accessed is None:
            return
        if imported.last_accessed is None or imported.last_accessed < usage.last_accessed:
            newer = msgspec.structs.replace(imported, last_accessed=usage.last_accessed)
            self._connection.execute(
                update(extras).where(*is_timestamps).values(body=to_json(newer))
            )


def usage_of(reads: Iterable[Reads]) -> Usage | None:
    """The usage aspect for the reads of one dataset, with the most frequent reader first."""
    readers: dict[str, Reader] = {}
    columns: dict[str, ColumnReads] = {}
    since: date | None = None
    for each in reads:
        since = each.day if since is None else min(since, each.day)
        before = readers.get(each.reader) or Reader(name=each.reader)
        readers[each.reader] = Reader(
            name=each.reader,
            reads=before.reads + each.reads,
            bytes=_add_optional(before.bytes, each.bytes),
            rows=_add_optional(before.rows, each.rows),
            last_read=max(each.last_read, before.last_read or each.last_read),
        )
        for name, count in each.columns.items():
            earlier = columns.get(name) or ColumnReads(last_read=each.day)
            columns[name] = ColumnReads(
                reads=earlier.reads + count,
                last_read=max(earlier.last_read or each.day, each.day),
            )
    if not readers:
        return None
    return Usage(
        readers=tuple(sorted(readers.values(), key=lambda reader: (-reader.reads, reader.name))),
        last_accessed=max(filter(None, (each.last_read for each in readers.values()))),
        since=since,
        columns=dict(sorted(columns.items())),
    )


def _read_rows(
    connection: Connection, urn: str, since: date | None, *, until: date | None = None
) -> list[Reads]:
    parameters = {"urn": urn, "since": since or date.min, "until": until or date.max}
    return [_reads(row) for row in connection.execute(_READS_OF, parameters)]


def _reads(row: Row[Any]) -> Reads:
    return Reads(
        row.urn, row.day, row.reader, row.reads, row.last_read, row.bytes, row.rows,
        _DECODE_COLUMNS(row.columns) if row.columns else {}, row.reporter, row.sum_key,
    )  # fmt: skip


def _row(reads: Reads) -> dict[str, Any]:
    columns = msgspec.json.encode(dict(sorted(reads.columns.items()))) if reads.columns else None
    return {**reads._asdict(), "columns": columns}


def _key(reads: Reads) -> tuple[date, str, int]:
    return reads.day, reads.reader, reads.sum_key


def _add_reads(first: Reads, second: Reads) -> Reads:
    columns = dict(first.columns)
    for name, count in second.columns.items():
        columns[name] = columns.get(name, 0) + count
    return first._replace(
        reads=first.reads + second.reads,
        bytes=_add_optional(first.bytes, second.bytes),
        rows=_add_optional(first.rows, second.rows),
        last_read=max(first.last_read, second.last_read),
        columns=columns,
    )


def _add_optional(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else first + second


# Built once: building a statement takes longer than running it.
_URN: Final[BindParameter[str]] = bindparam("urn")
_ORDER: Final = tuple(
    tables.usage_reads.c[name] for name in ("day", "reader", "reporter", "sum_key")
)
_READS_OF: Final = (
    select(tables.usage_reads)
    .where(
        tables.usage_reads.c.urn == _URN,
        tables.usage_reads.c.day >= bindparam("since", type_=tables.DayColumn),
        tables.usage_reads.c.day <= bindparam("until", type_=tables.DayColumn),
    )
    .order_by(*_ORDER)
)
