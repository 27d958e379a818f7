"""Schema versions and change events of all datasets over time."""

from collections.abc import Collection, Iterator
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    delete,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
)

from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.model.urn import SCHEME, Urn
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.datasets import (
    KnownDataset,
    SchemaRecord,
    schema_record,
    schemas_by_hash,
)
from lumos.store.statements import among, batches


class RecordedSchemaVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A schema version and the event that created it."""

    record: SchemaRecord
    event: ChangeEvent


class LiveSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The current schema of a live dataset."""

    urn: str
    name: str
    format: str | None
    schema_version: str
    schema: Schema


class SchemaStep(msgspec.Struct, frozen=True, kw_only=True):
    """A schema version and its event, without the schema."""

    urn: str
    name: str
    version: str
    cloud_version: str
    recorded_at: datetime
    event: ChangeEvent


class LastVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The last schema version of a dataset."""

    version: str
    schema_hash: str


class VersionedDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset and its last schema version, if it has one."""

    known: KnownDataset
    last: LastVersion | None


class SchemaReader:
    """Reads current schemas and schema versions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def versions(self, urn: str) -> tuple[RecordedSchemaVersion, ...]:
        """Every schema version of a dataset, oldest first."""
        return self.versions_of([urn]).get(urn, ())

    def versions_of(self, urns: Collection[str]) -> dict[str, tuple[RecordedSchemaVersion, ...]]:
        """Every schema version of the given datasets, by URN, oldest first."""
        statement = (
            select(_VERSION, tables.schema_body.c.body, _EVENT.body.label("event"))
            .join(tables.schema_body, tables.schema_body.c.hash == _VERSION.c.schema_hash)
            .join(tables.change_event, _EVENT.event_id == _VERSION.c.event_id)
            .order_by(_VERSION.c.urn, _VERSION.c.number)
        )
        with self._database.reading() as connection:
            rows = connection.execute(statement.where(among(connection, _VERSION.c.urn, urns)))
            return {
                urn: tuple(
                    RecordedSchemaVersion(
                        record=schema_record(row), event=from_json(row.event, ChangeEvent)
                    )
                    for row in rows_of_dataset
                )
                for urn, rows_of_dataset in groupby(rows, key=attrgetter("urn"))
            }

    def current(self, urns: Collection[str]) -> dict[str, Schema]:
        """The current schemas of the given datasets."""
        dataset = tables.dataset.c
        hashes: dict[str, str] = {}
        with self._database.reading() as connection:
            for batch in batches(urns):
                known = (dataset.schema_hash.is_not(None)) & dataset.urn.in_(batch)
                rows = connection.execute(select(dataset.urn, dataset.schema_hash).where(known))
                hashes |= {row.urn: row.schema_hash for row in rows}
            # Many datasets may have the same schema.
            schemas = schemas_by_hash(connection, set(hashes.values()))
        return {urn: schemas[hash] for urn, hash in hashes.items() if hash in schemas}

    def live(self) -> Iterator[LiveSchema]:
        """The schemas of all live datasets, by URN."""
        dataset, body = tables.dataset.c, tables.schema_body.c
        statement = (
            select(dataset.urn, dataset.name, dataset.format, dataset.schema_version, body.body)
            .join_from(tables.dataset, tables.schema_body)
            .where(dataset.state == "live")
            .order_by(dataset.urn)
        )
        with self._database.reading() as connection:
            for urn, name, format, version, data in connection.execute(statement):
                yield LiveSchema(
                    urn=urn,
                    name=name,
                    format=format,
                    schema_version=version,
                    schema=from_json(data, Schema),
                )

    def sources(self) -> Iterator[tuple[str, str, bool]]:
        """The URN and source of every dataset, and whether it is live."""
        dataset = tables.dataset.c
        statement = select(dataset.urn, dataset.source, dataset.state).order_by(dataset.urn)
        with self._database.reading() as connection:
            for urn, source, state in connection.execute(statement):
                yield urn, source, state == "live"

    def steps(
        self, *, urn: str | None = None, since: datetime | None = None, until: datetime
    ) -> Iterator[SchemaStep]:
        """The schema versions of one or all datasets in a period, by dataset, oldest first."""
        statement: Select[Any] = (
            select(_VERSION, tables.dataset.c.name, _EVENT.body.label("event"))
            .join(tables.dataset, tables.dataset.c.urn == _VERSION.c.urn)
            .join(tables.change_event, _EVENT.event_id == _VERSION.c.event_id)
            .where(_VERSION.c.recorded_at <= until)
            .order_by(_VERSION.c.urn, _VERSION.c.number)
        )
        if urn is not None:
            statement = statement.where(_VERSION.c.urn == urn)
        if since is not None:
            statement = statement.where(_VERSION.c.recorded_at >= since)
        with self._database.reading() as connection:
            for row in connection.execute(statement):
                yield SchemaStep(
                    urn=row.urn,
                    name=row.name,
                    version=row.version,
                    cloud_version=row.cloud_version,
                    recorded_at=row.recorded_at,
                    event=from_json(row.event, ChangeEvent),
                )

    def with_last_versions(self) -> Iterator[VersionedDataset]:
        """All live datasets with a schema and their last schema versions, ordered by URN."""
        version = tables.schema_version
        last_numbers = (
            select(version.c.urn, func.max(version.c.number).label("number"))
            .group_by(version.c.urn)
            .subquery()
        )
        joined = tables.dataset.outerjoin(
            last_numbers, last_numbers.c.urn == tables.dataset.c.urn
        ).outerjoin(
            version,
            and_(version.c.urn == last_numbers.c.urn, version.c.number == last_numbers.c.number),
        )
        statement = (
            select(
                tables.dataset,
                version.c.version.label("last_version"),
                version.c.schema_hash.label("last_hash"),
            )
            .select_from(joined)
            .where(tables.dataset.c.state == "live", tables.dataset.c.schema_hash.is_not(None))
            .order_by(tables.dataset.c.urn)
        )
        with self._database.reading() as connection:
            for row in connection.execute(statement):
                columns = dict(row._mapping)
                number, hash = columns.pop("last_version"), columns.pop("last_hash")
                last = None if number is None else LastVersion(version=number, schema_hash=hash)
                yield VersionedDataset(known=KnownDataset(**columns), last=last)


_VERSION = tables.schema_version
_EVENT = tables.change_event.c


_PAGE_SIZE = 500
_MAX_LOOKUPS = 1000


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events to read; by default all."""

    since: datetime | None = None
    until: datetime | None = None
    types: tuple[EventType, ...] = ()
    breaking: bool = False
    urns: frozenset[str] | None = None
    # Only events older than the event with this id.
    after: str | None = None
    limit: int | None = None


class EventVersions(msgspec.Struct, frozen=True, kw_only=True):
    """The versions that an event created."""

    cloud_version: str
    schema_version: str


class ChangeLog:
    """Reads the change events of all datasets, newest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def events(self, filter: EventFilter) -> Iterator[ChangeEvent]:
        """The events that match the filter, newest first, read page by page."""
        with self._database.reading() as connection:
            streaming = connection.execution_options(yield_per=_PAGE_SIZE)
            for body in streaming.scalars(_statement(connection, filter)):
                yield from_json(body, ChangeEvent)

    def position(self) -> int:
        """The position of the newest event."""
        statement = select(func.coalesce(func.max(tables.change_event.c.sequence), 0))
        with self._database.reading() as connection:
            return int(connection.execute(statement).scalar_one())

    def find(self, event_id: str) -> tuple[int, ChangeEvent] | None:
        """The position of an event and the event."""
        event = tables.change_event.c
        statement = select(event.sequence, event.body).where(event.event_id == event_id)
        with self._database.reading() as connection:
            row = connection.execute(statement).one_or_none()
        return None if row is None else (row.sequence, from_json(row.body, ChangeEvent))

    def newer(self, position: int, *, limit: int) -> dict[int, ChangeEvent]:
        """The events after a position by their positions, oldest first."""
        event = tables.change_event.c
        statement = select(event.sequence, event.body).where(event.sequence > position)
        statement = statement.order_by(event.sequence).limit(limit)
        with self._database.reading() as connection:
            return {
                sequence: from_json(body, ChangeEvent)
                for sequence, body in connection.execute(statement)
            }

    def steps(self, filter: EventFilter) -> Iterator[EventVersions]:
        """The versions that matching events created; much faster than decoding entire events."""
        with self._database.reading() as connection:
            streaming = connection.execution_options(yield_per=_PAGE_SIZE)
            for body in streaming.scalars(_statement(connection, filter)):
                yield from_json(body, EventVersions)

    def urns(self, pattern: DatasetPattern) -> frozenset[str]:
        """Every URN, current or former, of the datasets that match the pattern."""
        dataset, alias = tables.dataset.c, tables.alias.c
        statement = select(dataset.urn, dataset.name).where(_prefilter(pattern))
        with self._database.reading() as connection:
            found = {
                urn for urn, name in connection.execute(statement) if pattern.matches(urn, name)
            }
            for former, current in connection.execute(select(alias.urn, alias.dataset_urn)):
                if current in found or pattern.matches(former):
                    found.add(former)
        return frozenset(found)

    def former_urns(self, urns: Collection[str]) -> dict[str, str]:
        """The URNs that datasets had before they were renamed, with their current URNs."""
        alias = tables.alias.c
        with self._database.reading() as connection:
            is_given = among(connection, alias.dataset_urn, urns)
            statement = select(alias.urn, alias.dataset_urn).where(
                is_given, alias.reason == "renamed"
            )
            return {row.urn: row.dataset_urn for row in connection.execute(statement)}

    def schemas(self, hashes: Collection[str]) -> dict[str, Schema]:
        """Schemas by their content hashes."""
        with self._database.reading() as connection:
            return schemas_by_hash(connection, hashes)

    def delete_modified(self, *, before: datetime, limit: int) -> int:
        """Delete the oldest events that only report new data; return their number.

        Events that created a schema version are not deleted.
        """
        event = tables.change_event.c
        old = (
            select(event.sequence)
            .where(
                event.type == EventType.MODIFIED.value,
                event.recorded_at < before,
                event.event_id.not_in(select(tables.schema_version.c.event_id)),
            )
            .order_by(event.recorded_at)
            .limit(limit)
        )
        with self._database.writing() as connection:
            statement = delete(tables.change_event).where(event.sequence.in_(old))
            return connection.execute(statement).rowcount


def _prefilter(pattern: DatasetPattern) -> ColumnElement[bool]:
    """A condition in SQL that selects a superset of the matching datasets."""
    dataset = tables.dataset.c
    if pattern.has_wildcards:
        return true()
    if pattern.text.startswith(SCHEME):
        return dataset.urn == pattern.text
    ending = Urn.of("any", pattern.text.strip("/").split("/")).path_text
    return or_(dataset.name == pattern.text, dataset.urn.contains(f"/{ending}", autoescape=True))


def _statement(connection: Connection, filter: EventFilter) -> Select[Any]:
    event = tables.change_event.c
    statement = select(event.body).order_by(event.recorded_at.desc(), event.sequence.desc())
    if filter.since is not None:
        statement = statement.where(event.recorded_at >= filter.since)
    if filter.until is not None:
        statement = statement.where(event.recorded_at <= filter.until)
    if filter.types:
        statement = statement.where(event.type.in_([type.value for type in filter.types]))
    if filter.breaking:
        statement = statement.where(event.breaking)
    if filter.urns is not None:
        statement = statement.where(_is_one_of(connection, filter.urns))
    if filter.after is not None:
        statement = statement.where(_is_older(connection, filter.after))
    return statement if filter.limit is None else statement.limit(filter.limit)


def _is_older(connection: Connection, event_id: str) -> ColumnElement[bool]:
    """A condition for events older than an event; false for all if that event is unknown."""
    event = tables.change_event.c
    position = select(event.recorded_at, event.sequence).where(event.event_id == event_id)
    last = connection.execute(position).one_or_none()
    if last is None:
        return false()
    is_same_time = event.recorded_at == last.recorded_at
    return or_(
        event.recorded_at < last.recorded_at, and_(is_same_time, event.sequence < last.sequence)
    )


def _is_one_of(connection: Connection, urns: frozenset[str]) -> ColumnElement[bool]:
    """Whether an event has one of the URNs."""
    column: ColumnElement[str] = tables.change_event.c.urn
    if connection.dialect.name == "sqlite" and len(urns) > _MAX_LOOKUPS:
        # The unary plus keeps SQLite from using the index on URNs: for this many URNs, filtering
        # events in their order is faster than looking up each URN and sorting the results.
        column = literal_column("+change_event.urn", Text)
    return among(connection, column, sorted(urns))
