"""Which versions datasets have, beside the schemas they have now."""

from collections.abc import Iterator

import msgspec
from sqlalchemy import and_, func, select

from lumos.store import tables
from lumos.store.database import Database
from lumos.store.names import unknown_dataset
from lumos.store.records import KnownDataset


class LastVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a dataset's schema history."""

    version: str
    schema_hash: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset as it is on record now, and the end of its history, if it has one."""

    known: KnownDataset
    last: LastVersion | None


class VersionLedger:
    """The versions of the datasets in a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, urn: str) -> KnownDataset:
        """What is on record of one dataset."""
        statement = select(tables.dataset).where(tables.dataset.c.urn == urn)
        with self._database.reading() as connection:
            row = connection.execute(statement).one_or_none()
            if row is None:
                raise unknown_dataset(connection, urn)
        return KnownDataset(**row._mapping)

    def entries(self) -> Iterator[Entry]:
        """All datasets that are there and have a schema, by URN."""
        version = tables.schema_version
        ends = (
            select(version.c.urn, func.max(version.c.number).label("number"))
            .group_by(version.c.urn)
            .subquery()
        )
        joined = tables.dataset.outerjoin(ends, ends.c.urn == tables.dataset.c.urn).outerjoin(
            version, and_(version.c.urn == ends.c.urn, version.c.number == ends.c.number)
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
                facts = dict(row._mapping)
                number, hash = facts.pop("last_version"), facts.pop("last_hash")
                last = None if number is None else LastVersion(version=number, schema_hash=hash)
                yield Entry(known=KnownDataset(**facts), last=last)
