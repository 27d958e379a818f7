"""Tables and views of one PostgreSQL database, as its catalog describes them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar, Final, TypeAlias
from urllib.parse import quote, unquote

import psycopg
from psycopg import errors

from lumos.config.sources import PostgresSourceSettings as Settings
from lumos.errors import did_you_mean
from lumos.model.discovery import Discovery, FoundDataset, Problem
from lumos.model.urn import Urn
from lumos.sources.interface import ReadProgress, TableSource
from lumos.sources.postgres import queries
from lumos.sources.postgres.connection import PostgresConnector
from lumos.sources.postgres.datasets import (
    PARTITIONED,
    VIEWS,
    NativeType,
    PostgresCatalog,
    PostgresColumn,
    PostgresRelation,
    PostgresTypes,
    RelationSize,
    UniqueIndex,
    dataset_of,
    path_of,
)

_Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
_TRIES: Final = 5
_AT_A_TIME: Final = 5000
_BETWEEN_REPORTS: Final = 100
_LOCK_TIMEOUT: Final = "5s"
# Whoever waits for one table after the other should not wait long for each.
_LOCK_TIMEOUT_EACH: Final = "200ms"
# The catalog is read in one state, but its functions look at the newest: what somebody drops
# meanwhile is missing there.
_CHANGED_MEANWHILE: Final = (
    errors.InternalError_,
    errors.UndefinedTable,
    errors.UndefinedObject,
    errors.UndefinedColumn,
    errors.SerializationFailure,
)

_REASONS: Final = {
    "locked": "somebody holds a lock on it, or on a table that it reads",
    "changing": "somebody changed or dropped it while it was read",
}


class PostgresSource(TableSource):
    kind: ClassVar[str] = "postgres"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.instance = settings.instance
        self._connector = PostgresConnector(settings)

    @cached_property
    def scope(self) -> str:
        if self._connector.database:
            return self._connector.database
        with self._connector.connected() as connection:
            return connection.info.dbname

    @property
    def address(self) -> str:
        return f"postgresql://{self._connector.host}/{quote(self.scope, safe='')}"

    def urn(self, path: str, *, environment: str) -> Urn:
        parts = [unquote(part) for part in path.split("/")]
        return Urn.of(self.kind, parts, instance=self.instance, environment=environment)

    def covers(self, path: str) -> bool:
        database, schema, name = (unquote(part) for part in path.split("/"))
        return database == self.scope and self._is_wanted(schema, name)

    def check(self) -> str:
        with self._connector.connected() as connection:
            self._prepare(connection)
            wanted = sum(1 for _ in self._relations(connection))
            version = connection.info.server_version // 10000
        tables = "1 table or view" if wanted == 1 else f"{wanted:,} tables and views"
        return f"{self.address}, PostgreSQL {version}, {tables}"

    def read(self, watch: ReadProgress) -> Discovery:
        for left in reversed(range(_TRIES)):
            with self._connector.connected() as connection:
                try:
                    return self._read(connection, watch)
                except _CHANGED_MEANWHILE:
                    if not left:
                        raise
        raise AssertionError("unreachable")

    def _read(self, connection: _Connection, watch: ReadProgress) -> Discovery:
        self._prepare(connection)
        remarks = tuple(self._unknown_schemas(connection))
        relations = {each.oid: each for each in self._relations(connection)}
        views = [oid for oid, relation in relations.items() if relation.kind in VIEWS]
        definitions, locked = self._definitions(connection, views)
        unread = {
            view: "locked" if view in locked else "changing"
            for view in views
            if view not in definitions
        }
        constraints, vanished = _constraints(connection, list(relations))
        unread |= dict.fromkeys(vanished, "changing")
        catalog = self._catalog(connection, relations, definitions, constraints)
        found: dict[int, FoundDataset] = {}
        for oid, columns in _columns(connection, list(relations)):
            found[oid] = dataset_of(relations[oid], columns, catalog)
            if len(found) % _BETWEEN_REPORTS == 0:
                watch(len(found) / len(relations))
        datasets = (
            # A table may do without columns.
            found.get(oid) or dataset_of(relation, (), catalog)
            for oid, relation in relations.items()
            if oid not in unread
        )
        problems = tuple(
            Problem(
                path=path_of(self.scope, relations[oid].schema, relations[oid].name),
                reason=_REASONS[code],
                code=code,
            )
            for oid, code in unread.items()
        )
        return Discovery(datasets=tuple(datasets), problems=(*remarks, *problems))

    def _prepare(self, connection: _Connection) -> None:
        seconds = self._settings.statement_timeout
        connection.execute(
            queries.SETTINGS,
            {"statement_timeout": f"{seconds}s", "lock_timeout": _LOCK_TIMEOUT},
        )

    def _unknown_schemas(self, connection: _Connection) -> Iterator[Problem]:
        """Remarks on names that mean nothing; a schema may also have been dropped."""
        there = [name for (name,) in connection.execute(queries.SCHEMAS)]
        for wanted in self._settings.schemas:
            if not any(_fits(name, wanted) for name in there):
                yield Problem(
                    path=f"{quote(self.scope, safe='')}/{quote(wanted, safe='')}",
                    reason=f"there is no schema '{wanted}'.{did_you_mean(wanted, there)}",
                    code="no_such_schema",
                    remark=True,
                )

    def _relations(self, connection: _Connection) -> Iterator[PostgresRelation]:
        for row in connection.execute(queries.RELATIONS):
            relation = PostgresRelation(*row)
            if self._is_wanted(relation.schema, relation.name):
                yield relation

    def _is_wanted(self, schema: str, name: str) -> bool:
        settings = self._settings
        return (
            (not settings.schemas or any(_fits(schema, each) for each in settings.schemas))
            and (not settings.tables or _matches(schema, name, settings.tables))
            and (not settings.watched or _matches(schema, name, settings.watched))
            and not _matches(schema, name, settings.exclude)
        )

    def _definitions(
        self, connection: _Connection, views: Sequence[int]
    ) -> tuple[dict[int, str], set[int]]:
        """The queries of views, and the views that others keep locked.

        The server writes a query out only while it holds the tables that the query reads.
        """
        try:
            with connection.transaction():
                return _asked_for(connection, views), set()
        except (errors.LockNotAvailable, *_CHANGED_MEANWHILE):
            return self._definitions_one_by_one(connection, views)

    def _definitions_one_by_one(
        self, connection: _Connection, views: Sequence[int]
    ) -> tuple[dict[int, str], set[int]]:
        definitions: dict[int, str] = {}
        locked: set[int] = set()
        for view in views:
            try:
                with connection.transaction():
                    connection.execute(queries.LOCK_TIMEOUT, {"timeout": _LOCK_TIMEOUT_EACH})
                    definitions |= _asked_for(connection, [view])
            except errors.LockNotAvailable:
                locked.add(view)
            except _CHANGED_MEANWHILE:
                # The next scan will see what became of it.
                continue
        return definitions, locked

    def _catalog(
        self,
        connection: _Connection,
        relations: Mapping[int, PostgresRelation],
        definitions: dict[int, str],
        constraints: dict[int, dict[str, str]],
    ) -> PostgresCatalog:
        wanted = {"relations": list(relations)}
        partitioned = [oid for oid, each in relations.items() if each.kind == PARTITIONED]
        database, may_ask, block_size = next(connection.execute(queries.SERVER))
        # Restored elsewhere, a database may give the same numbers to other tables.
        (cluster,) = next(connection.execute(queries.CLUSTER)) if may_ask else ("",)
        keys: dict[int, list[UniqueIndex]] = defaultdict(list)
        for oid, primary, name, numbers, count in connection.execute(queries.KEYS, wanted):
            keys[oid].append(UniqueIndex(primary, name, tuple(map(int, numbers.split()))[:count]))
        partition_columns: dict[int, set[int]] = defaultdict(set)
        partitions: dict[int, list[RelationSize]] = defaultdict(list)
        if partitioned:
            narrowed = {"relations": partitioned}
            for oid, number in connection.execute(queries.PARTITION_COLUMNS, narrowed):
                partition_columns[oid].add(number)
            for oid, rows, pages in connection.execute(queries.PARTITIONS, narrowed):
                partitions[oid].append(RelationSize(rows, pages))
        return PostgresCatalog(
            address=self.address,
            database=self.scope,
            cluster=f"{cluster}/{database}",
            block_size=block_size,
            types=PostgresTypes(map(NativeType._make, connection.execute(queries.TYPES, wanted))),
            keys=keys,
            constraints=constraints,
            partition_columns=partition_columns,
            partitions=partitions,
            definitions=definitions,
        )


def _asked_for(connection: _Connection, views: Sequence[int]) -> dict[int, str]:
    found = connection.execute(queries.VIEWS, {"relations": views})
    return {oid: query for oid, query in found if query is not None}


def _constraints(
    connection: _Connection, relations: Sequence[int]
) -> tuple[dict[int, dict[str, str]], set[int]]:
    """The constraints of each relation, and the relations that are not there any more."""
    constraints: dict[int, dict[str, str]] = defaultdict(dict)
    vanished: set[int] = set()
    for oid, name, text in connection.execute(queries.CONSTRAINTS, {"relations": relations}):
        if text is None:
            vanished.add(oid)
        else:
            constraints[oid][name] = text
    return constraints, vanished


def _columns(
    connection: _Connection, relations: Sequence[int]
) -> Iterator[tuple[int, tuple[PostgresColumn, ...]]]:
    """The columns of one relation after the other, without ever holding them all."""
    with connection.cursor(name="lumos_columns") as cursor:
        cursor.itersize = _AT_A_TIME
        cursor.execute(queries.COLUMNS, {"relations": relations})
        rows = map(PostgresColumn._make, cursor)
        for oid, columns in groupby(rows, key=attrgetter("relation")):
            yield oid, tuple(columns)


def _matches(schema: str, name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns means the table by its name, or by its schema and name."""
    return any(_fits(name, each) or _fits(f"{schema}.{name}", each) for each in patterns)


def _fits(name: str, pattern: str) -> bool:
    # A name may hold the marks that patterns are made of.
    return name == pattern or fnmatchcase(name, pattern)
