"""Reads of schemas over time: every version with the event that began it, and all that is live."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Row, Select, select

from lumos.model.change import ChangeEvent
from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.records import SchemaRecord


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A schema version and why it began."""

    record: SchemaRecord
    event: ChangeEvent


class LiveSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The present schema of a dataset that is there."""

    urn: str
    name: str
    format: str | None
    schema_version: str
    schema: Schema


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A schema version in the history of one of many datasets, without the schema itself."""

    urn: str
    name: str
    version: str
    cloud_version: str
    recorded_at: datetime
    event: ChangeEvent


class SchemaArchive:
    """The schemas of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def versions(self, urn: str) -> tuple[Version, ...]:
        """Every schema version of a dataset, oldest first."""
        statement = (
            select(_VERSION, tables.schema_body.c.body, _EVENT.body.label("event"))
            .join(tables.schema_body, tables.schema_body.c.hash == _VERSION.c.schema_hash)
            .join(tables.change_event, _EVENT.event_id == _VERSION.c.event_id)
            .where(_VERSION.c.urn == urn)
            .order_by(_VERSION.c.number)
        )
        with self._database.reading() as connection:
            return tuple(map(_version, connection.execute(statement)))

    def live(self) -> Iterator[LiveSchema]:
        """The schemas of all datasets that are there, by URN."""
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
        """Every dataset with the source that found it, and whether it is there."""
        dataset = tables.dataset.c
        statement = select(dataset.urn, dataset.source, dataset.state).order_by(dataset.urn)
        with self._database.reading() as connection:
            for urn, source, state in connection.execute(statement):
                yield urn, source, state == "live"

    def steps(
        self, *, urn: str | None = None, since: datetime | None = None, until: datetime
    ) -> Iterator[Step]:
        """The schema versions of one or of all datasets in a period, by dataset, oldest first."""
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
                yield Step(
                    urn=row.urn,
                    name=row.name,
                    version=row.version,
                    cloud_version=row.cloud_version,
                    recorded_at=row.recorded_at,
                    event=from_json(row.event, ChangeEvent),
                )


_VERSION = tables.schema_version
_EVENT = tables.change_event.c


def _version(row: Row[Any]) -> Version:
    return Version(
        record=SchemaRecord(
            number=row.number,
            version=row.version,
            cloud_version=row.cloud_version,
            event_id=row.event_id,
            recorded_at=row.recorded_at,
            schema=from_json(row.body, Schema),
        ),
        event=from_json(row.event, ChangeEvent),
    )
