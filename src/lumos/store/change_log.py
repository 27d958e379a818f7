"""Change events over all datasets: read newest first, however many there are, and let go."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Select,
    Text,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    true,
)

from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.json_codec import from_json, to_json
from lumos.model.schema import Schema
from lumos.model.urn import SCHEME, Urn
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.errors import UnknownDataset
from lumos.store.names import unknown_dataset

_AT_ONCE = 500
_MANY = 1000


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events to read; what is not given lets everything through."""

    since: datetime | None = None
    until: datetime | None = None
    types: tuple[EventType, ...] = ()
    breaking: bool = False
    urns: frozenset[str] | None = None
    limit: int | None = None


class RecordedStep(msgspec.Struct, frozen=True, kw_only=True):
    """The versions that an event led to."""

    cloud_version: str
    schema_version: str


class ChangeLog:
    """The events of a store in the order of their time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def unknown(self, name: str) -> UnknownDataset:
        """The error that no dataset has a URN or a name."""
        with self._database.reading() as connection:
            return unknown_dataset(connection, name)

    def events(self, wanted: EventFilter) -> Iterator[ChangeEvent]:
        """The events that the filter lets through, newest first, read as they are asked for."""
        with self._database.reading() as connection:
            streaming = connection.execution_options(yield_per=_AT_ONCE)
            for body in streaming.scalars(_statement(connection, wanted)):
                yield from_json(body, ChangeEvent)

    def steps(self, wanted: EventFilter) -> Iterator[RecordedStep]:
        """The versions of those events, which take far less time than the events themselves."""
        with self._database.reading() as connection:
            streaming = connection.execution_options(yield_per=_AT_ONCE)
            for body in streaming.scalars(_statement(connection, wanted)):
                yield from_json(body, RecordedStep)

    def urns(self, pattern: DatasetPattern) -> frozenset[str]:
        """Every URN, present or former, under which datasets that are meant have events."""
        dataset, alias = tables.dataset.c, tables.alias.c
        statement = select(dataset.urn, dataset.name).where(_may_match(pattern))
        with self._database.reading() as connection:
            found = {
                urn for urn, name in connection.execute(statement) if pattern.matches(urn, name)
            }
            for former, now in connection.execute(select(alias.urn, alias.dataset_urn)):
                if now in found or pattern.matches(former):
                    found.add(former)
        return frozenset(found)

    def former_urns(self, urn: str) -> frozenset[str]:
        """The URNs that a dataset had before it was renamed."""
        alias = tables.alias.c
        statement = select(alias.urn).where(alias.dataset_urn == urn, alias.reason == "renamed")
        with self._database.reading() as connection:
            return frozenset(connection.scalars(statement))

    def schemas(self, hashes: Collection[str]) -> dict[str, Schema]:
        """The schemas of some content hashes."""
        body = tables.schema_body.c
        statement = select(body.hash, body.body).where(body.hash.in_(hashes))
        with self._database.reading() as connection:
            return {hash: from_json(data, Schema) for hash, data in connection.execute(statement)}

    def forget_modified(self, *, before: datetime, at_most: int) -> int:
        """Removes the oldest events of new data alone; gives how many there were.

        An event that began a schema version stays: somebody said more than that data is new.
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
            .limit(at_most)
        )
        with self._database.writing() as connection:
            statement = delete(tables.change_event).where(event.sequence.in_(old))
            return connection.execute(statement).rowcount


def _may_match(pattern: DatasetPattern) -> ColumnElement[bool]:
    """Spares the database from handing out every dataset where a single one is asked for."""
    dataset = tables.dataset.c
    if pattern.is_open:
        return true()
    if pattern.text.startswith(SCHEME):
        return dataset.urn == pattern.text
    ending = Urn.of("any", pattern.text.strip("/").split("/")).path_text
    return or_(dataset.name == pattern.text, dataset.urn.contains(f"/{ending}", autoescape=True))


def _statement(connection: Connection, wanted: EventFilter) -> Select[Any]:
    event = tables.change_event.c
    statement = select(event.body).order_by(event.recorded_at.desc(), event.sequence.desc())
    if wanted.since is not None:
        statement = statement.where(event.recorded_at >= wanted.since)
    if wanted.until is not None:
        statement = statement.where(event.recorded_at <= wanted.until)
    if wanted.types:
        statement = statement.where(event.type.in_([type.value for type in wanted.types]))
    if wanted.breaking:
        statement = statement.where(event.breaking)
    if wanted.urns is not None:
        statement = statement.where(_is_one_of(connection, wanted.urns))
    return statement if wanted.limit is None else statement.limit(wanted.limit)


def _is_one_of(connection: Connection, urns: frozenset[str]) -> ColumnElement[bool]:
    """As one parameter: neither database takes a hundred thousand of them."""
    column: ColumnElement[str] = tables.change_event.c.urn
    if connection.dialect.name == "postgresql":
        return column == func.any(bindparam("urns", list(urns), type_=ARRAY(Text)))
    if len(urns) > _MANY:
        # The plus keeps SQLite from looking each of them up and sorting what it found.
        column = literal_column("+change_event.urn", Text)
    every = func.json_each(to_json(sorted(urns)).decode()).table_valued("value")
    return column.in_(select(every.c.value))
