"""Announced releases of upstream data, and the refresh of each dataset after a release."""

from collections.abc import Iterable

import msgspec
from sqlalchemy import select

from lumos.model.job import JobRequest
from lumos.model.json_codec import from_json, to_json
from lumos.model.release import Release, ReleaseRefresh
from lumos.store import audit
from lumos.store.database import Database
from lumos.store.jobs import JobRegistry
from lumos.store.statements import insert_missing, replace
from lumos.store.tables import release as table
from lumos.store.tables import release_refresh


class ReleaseRecords:
    """Reads and writes releases; their jobs are requested in the same transactions."""

    def __init__(self, database: Database, jobs: JobRegistry) -> None:
        self._database = database
        self._jobs = jobs

    def add(
        self, release: Release, refreshes: Iterable[ReleaseRefresh], jobs: Iterable[JobRequest]
    ) -> None:
        """Record a release and its refreshes, unless they are recorded already."""
        row = msgspec.structs.asdict(release)
        rows = [_row(release.name, each) for each in refreshes]
        with self._database.writing() as connection:
            dialect = connection.dialect.name
            connection.execute(insert_missing(dialect, table), row)
            if rows:
                connection.execute(insert_missing(dialect, release_refresh), rows)
            for each in jobs:
                self._jobs.insert(connection, each)
            details = f"datasets: {len(rows):,}"
            at = self._jobs.now(connection)
            after = {"release": release, "datasets": [row["urn"] for row in rows]}
            entry = audit.new_entry(
                "release notify", release.name, at=at, details=details, after=after
            )
            audit.append(connection, [entry])

    def update(
        self, name: str, refreshes: Iterable[ReleaseRefresh], jobs: Iterable[JobRequest]
    ) -> None:
        """Replace refreshes of a release."""
        rows = [_row(name, each) for each in refreshes]
        with self._database.writing() as connection:
            if rows:
                connection.execute(replace(connection.dialect.name, release_refresh), rows)
            for each in jobs:
                self._jobs.insert(connection, each)

    def get(self, name: str) -> Release | None:
        with self._database.reading() as connection:
            row = connection.execute(select(table).where(table.c.name == name)).one_or_none()
        return None if row is None else Release(**row._mapping)

    def all(self) -> list[Release]:
        """All releases, newest first."""
        with self._database.reading() as connection:
            rows = connection.execute(select(table).order_by(table.c.at.desc(), table.c.name))
            return [Release(**row._mapping) for row in rows]

    def refreshes(self, name: str) -> list[ReleaseRefresh]:
        """The refreshes of a release, by URN."""
        columns = release_refresh.c
        statement = select(columns.content).where(columns.release == name).order_by(columns.urn)
        with self._database.reading() as connection:
            return [from_json(each, ReleaseRefresh) for each in connection.scalars(statement)]


def _row(name: str, refresh: ReleaseRefresh) -> dict[str, object]:
    return {"release": name, "urn": refresh.urn, "content": to_json(refresh)}
