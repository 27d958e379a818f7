"""Tables and views of one PostgreSQL database, as its catalog describes them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar, Final, TypeAlias
from urllib.parse import quote

import psycopg
from psycopg import errors

from lumos.config.sources import PostgresSourceSettings as Settings
from lumos.model.compressed_list import CompressedList
from lumos.model.discovery import Discovery, FoundDataset, Problem
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
)
from lumos.sources.relational import TableSelection, names_in, path_of

_Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
_TRIES: Final = 5
_BATCH_ROWS: Final = 5000
_REPORT_INTERVAL: Final = 100
_LOCK_TIMEOUT: Final = "5s"
# A short timeout, since many tables may be locked.
_SINGLE_LOCK_TIMEOUT: Final = "200ms"
# Catalog tables are read from a snapshot, but catalog functions read the current state, in which
# objects may already be dropped.
_CONCURRENT_CHANGES: Final = (
    errors.InternalError_,
    errors.UndefinedTable,
    errors.UndefinedObject,
    errors.UndefinedColumn,
    errors.SerializationFailure,
)

_REASONS: Final = {
    "locked": "it is locked, or a table that it reads is locked",
    "changing": "it was changed or dropped during the scan",
}


class PostgresSource(TableSource):
    kind: ClassVar[str] = "postgres"

    _settings: Settings

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._connector = PostgresConnector(settings)
        self._selection = TableSelection(
            settings.schemas, settings.tables, settings.watched, settings.exclude
        )

    @cached_property
    def scope(self) -> str:
        if self._connector.database:
            return self._connector.database
        with self._connector.connect() as connection:
            return connection.info.dbname

    @property
    def address(self) -> str:
        return f"postgresql://{self._connector.host}/{quote(self.scope, safe='')}"

    def covers(self, path: str) -> bool:
        database, schema, name = names_in(path)
        return database == self.scope and self._selection.includes(schema, name)

    def check(self) -> str:
        with self._connector.connect() as connection:
            self._prepare(connection)
            count = sum(1 for _ in self._relations(connection))
            version = connection.info.server_version // 10000
        tables = "1 table or view" if count == 1 else f"{count:,} tables and views"
        return f"{self.address}, PostgreSQL {version}, {tables}"

    def read(self, report_progress: ReadProgress) -> Discovery:
        for remaining_tries in reversed(range(_TRIES)):
            with self._connector.connect() as connection:
                try:
                    return self._read(connection, report_progress)
                except _CONCURRENT_CHANGES:
                    if not remaining_tries:
                        raise
        raise AssertionError("unreachable")

    def _read(self, connection: _Connection, report_progress: ReadProgress) -> Discovery:
        self._prepare(connection)
        existing = [name for (name,) in connection.execute(queries.SCHEMAS)]
        warnings = self._selection.unknown_schemas(existing, database=self.scope)
        relations = {relation.oid: relation for relation in self._relations(connection)}
        views = [oid for oid, relation in relations.items() if relation.kind in VIEWS]
        definitions, locked = self._read_views(connection, views)
        unreadable = {
            view: "locked" if view in locked else "changing"
            for view in views
            if view not in definitions
        }
        constraints, dropped = _read_constraints(connection, list(relations))
        unreadable |= dict.fromkeys(dropped, "changing")
        catalog = self._catalog(connection, relations, definitions, constraints)
        datasets = CompressedList(FoundDataset)
        columns_of = _read_columns(connection, list(relations))
        next_oid, next_columns = next(columns_of, (None, ()))
        for number, (oid, relation) in enumerate(relations.items(), start=1):
            # Tables may have no columns.
            columns: tuple[PostgresColumn, ...] = ()
            if oid == next_oid:
                columns = next_columns
                next_oid, next_columns = next(columns_of, (None, ()))
            if oid not in unreadable:
                datasets.append(dataset_of(relation, columns, catalog))
            if number % _REPORT_INTERVAL == 0:
                report_progress(number / len(relations))
        problems = tuple(
            Problem(
                path=path_of(self.scope, relations[oid].schema, relations[oid].name),
                reason=_REASONS[code],
                code=code,
            )
            for oid, code in unreadable.items()
        )
        return Discovery(datasets=datasets, problems=(*warnings, *problems))

    def _prepare(self, connection: _Connection) -> None:
        seconds = self._settings.statement_timeout
        connection.execute(
            queries.SETTINGS,
            {"statement_timeout": f"{seconds}s", "lock_timeout": _LOCK_TIMEOUT},
        )

    def _relations(self, connection: _Connection) -> Iterator[PostgresRelation]:
        for row in connection.execute(queries.RELATIONS):
            relation = PostgresRelation(*row)
            if self._selection.includes(relation.schema, relation.name):
                yield relation

    def _read_views(
        self, connection: _Connection, views: Sequence[int]
    ) -> tuple[dict[int, str], set[int]]:
        """The queries of views, and the views that are locked.

        The server can only return a query while it has locks on the tables of the query.
        """
        try:
            with connection.transaction():
                return _read_definitions(connection, views), set()
        except (errors.LockNotAvailable, *_CONCURRENT_CHANGES):
            return self._definitions_one_by_one(connection, views)

    def _definitions_one_by_one(
        self, connection: _Connection, views: Sequence[int]
    ) -> tuple[dict[int, str], set[int]]:
        definitions: dict[int, str] = {}
        locked: set[int] = set()
        for view in views:
            try:
                with connection.transaction():
                    connection.execute(queries.LOCK_TIMEOUT, {"timeout": _SINGLE_LOCK_TIMEOUT})
                    definitions |= _read_definitions(connection, [view])
            except errors.LockNotAvailable:
                locked.add(view)
            except _CONCURRENT_CHANGES:
                # The next scan reads the new state.
                continue
        return definitions, locked

    def _catalog(
        self,
        connection: _Connection,
        relations: Mapping[int, PostgresRelation],
        definitions: dict[int, str],
        constraints: dict[int, dict[str, str]],
    ) -> PostgresCatalog:
        all_relations = {"relations": list(relations)}
        partitioned = [oid for oid, item in relations.items() if item.kind == PARTITIONED]
        database, can_read_cluster, block_size = next(connection.execute(queries.SERVER))
        # Object ids are only unique in a cluster: a restored database may reuse them.
        (cluster,) = next(connection.execute(queries.CLUSTER)) if can_read_cluster else ("",)
        keys: dict[int, list[UniqueIndex]] = defaultdict(list)
        for oid, primary, name, numbers, count in connection.execute(queries.KEYS, all_relations):
            keys[oid].append(UniqueIndex(primary, name, tuple(map(int, numbers.split()))[:count]))
        partition_columns: dict[int, set[int]] = defaultdict(set)
        partitions: dict[int, list[RelationSize]] = defaultdict(list)
        if partitioned:
            parameters = {"relations": partitioned}
            for oid, number in connection.execute(queries.PARTITION_COLUMNS, parameters):
                partition_columns[oid].add(number)
            for oid, rows, pages in connection.execute(queries.PARTITIONS, parameters):
                partitions[oid].append(RelationSize(rows, pages))
        return PostgresCatalog(
            address=self.address,
            database=self.scope,
            cluster=f"{cluster}/{database}",
            block_size=block_size,
            types=PostgresTypes(
                map(NativeType._make, connection.execute(queries.TYPES, all_relations))
            ),
            keys=keys,
            constraints=constraints,
            partition_columns=partition_columns,
            partitions=partitions,
            definitions=definitions,
        )


def _read_definitions(connection: _Connection, views: Sequence[int]) -> dict[int, str]:
    found = connection.execute(queries.VIEWS, {"relations": views})
    return {oid: query for oid, query in found if query is not None}


def _read_constraints(
    connection: _Connection, relations: Sequence[int]
) -> tuple[dict[int, dict[str, str]], set[int]]:
    """The constraints of each relation, and the relations that were dropped."""
    constraints: dict[int, dict[str, str]] = defaultdict(dict)
    dropped: set[int] = set()
    for oid, name, text in connection.execute(queries.CONSTRAINTS, {"relations": relations}):
        if text is None:
            dropped.add(oid)
        else:
            constraints[oid][name] = text
    return constraints, dropped


def _read_columns(
    connection: _Connection, relations: Sequence[int]
) -> Iterator[tuple[int, tuple[PostgresColumn, ...]]]:
    """The columns, relation by relation in their order, without loading all of them."""
    with connection.cursor(name="lumos_columns") as cursor:
        cursor.itersize = _BATCH_ROWS
        cursor.execute(queries.COLUMNS, {"relations": relations})
        rows = map(PostgresColumn._make, cursor)
        for oid, columns in groupby(rows, key=attrgetter("relation")):
            yield oid, tuple(columns)
