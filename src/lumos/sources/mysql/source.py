"""Tables and views of a MySQL or MariaDB server, as its information schema describes them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar, Final

import pymysql
from pymysql.constants import ER

from lumos.config.sources import MysqlSourceSettings as Settings
from lumos.model.compressed_list import CompressedList
from lumos.model.discovery import Discovery, FoundDataset, Problem
from lumos.sources.interface import QueryLogSource, ReadProgress, SourceNotUsable, TableSource
from lumos.sources.mysql import queries
from lumos.sources.mysql.connection import MysqlConnection, MysqlConnector
from lumos.sources.mysql.datasets import (
    VIEW,
    KeyColumn,
    MysqlColumn,
    MysqlDatabase,
    MysqlTable,
    MysqlView,
    constraints_of,
    dataset_of,
    quote_name,
)
from lumos.sources.relational import TableSelection, names_in, path_of

_REPORT_INTERVAL: Final = 100
# Sequences are printed as tables by MariaDB.
_KINDS: Final = ("BASE TABLE", "SYSTEM VERSIONED", VIEW)
# Without the permission PROCESS, or in a server without InnoDB.
_NO_TABLE_IDS: Final = (
    ER.SPECIFIC_ACCESS_DENIED_ERROR,
    ER.UNKNOWN_TABLE,
    ER.UNKNOWN_CHARACTER_SET,
)
_MAX_REASON: Final = 200
_QUERIES: Final = ("SELECT", "WITH", "INSERT", "REPLACE", "UPDATE", "DELETE")


class MysqlSource(TableSource, QueryLogSource):
    kind: ClassVar[str] = "mysql"

    _settings: Settings

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._connector = MysqlConnector(settings)

    @property
    def _selection(self) -> TableSelection:
        settings, named = self._settings, self._connector.database
        databases = settings.databases or ((named,) if named else ())
        return TableSelection(databases, settings.tables, settings.watched, settings.exclude)

    @property
    def scope(self) -> str:
        # A constant: the selection may change between runs, and `covers` applies it.
        return "*"

    @property
    def address(self) -> str:
        return f"{self.kind}://{self._connector.host}"

    def covers(self, path: str) -> bool:
        database, name = names_in(path)
        return not _is_system(database) and self._selection.includes(database, name)

    def check(self) -> str:
        with self._connector.connect() as connection:
            databases, problems = self._databases(connection)
            count = sum(
                kind in _KINDS and self._selection.includes(database, name)
                for database in databases
                for name, kind in connection.rows(queries.TABLE_NAMES, database)
            )
            self._require_permission(databases, problems)
        tables = "1 table or view" if count == 1 else f"{count:,} tables and views"
        found = "1 database" if len(databases) == 1 else f"{len(databases):,} databases"
        return f"{self.address}, {connection.server.text}, {tables} in {found}"

    def read(self, report_progress: ReadProgress) -> Discovery:
        datasets = CompressedList(FoundDataset)
        with self._connector.connect() as connection:
            databases, problems = self._databases(connection)
            self._require_permission(databases, problems)
            identities = _identities(connection)
            for number, name in enumerate(databases):

                def report(share: float, number: int = number) -> None:
                    report_progress((number + share) / len(databases))

                for found in self._read_database(
                    connection, name, identities.get(name, {}), report
                ):
                    if isinstance(found, Problem):
                        problems.append(found)
                    else:
                        datasets.append(found)
        return Discovery(datasets=datasets, problems=tuple(problems))

    def query_log(self) -> Iterator[dict[str, Any]]:
        with self._connector.connect() as connection:
            for row in connection.rows(queries.DIGESTS):
                database, digest, text, calls, rows, first, last = row
                if _is_query(text) and (database is None or not _is_system(database)):
                    yield {
                        "schema_name": database,
                        "digest": digest,
                        "digest_text": text,
                        "count_star": calls,
                        "sum_rows_sent": rows,
                        "first_seen": first.isoformat(),
                        "last_seen": last.isoformat(),
                    }

    def _databases(self, connection: MysqlConnection) -> tuple[list[str], list[Problem]]:
        """The databases to read, and problems with others."""
        visible = [name for (name,) in connection.rows(queries.DATABASES) if not _is_system(name)]
        problems = list(self._selection.unknown_schemas(visible, noun="database"))
        selected = sorted(name for name in visible if self._selection.includes_schema(name))
        # With the permission SHOW DATABASES, databases are visible even if they cannot be read.
        readable = [name for name in selected if connection.has_permission(name)]
        problems += [
            Problem(
                path=path_of(name),
                reason=f"{self._connector.user} has no permission on this database",
                code="no_permission",
            )
            for name in selected
            if name not in readable
        ]
        return readable, problems

    def _require_permission(self, databases: Sequence[str], problems: Sequence[Problem]) -> None:
        if databases:
            return
        reason = f": {problems[0].reason.rstrip('.')}" if problems else ""
        raise SourceNotUsable(
            f"{self._connector.user} can read no database at {self.address}{reason}.",
            "Check 'databases' and the grants of the user (SHOW GRANTS); docs/MYSQL.md lists them.",
        )

    def _read_database(
        self,
        connection: MysqlConnection,
        name: str,
        identities: Mapping[str, str],
        report_progress: ReadProgress,
    ) -> Iterator[FoundDataset | Problem]:
        tables = [
            table
            for table in map(MysqlTable._make, connection.rows(queries.TABLES, name))
            if table.kind in _KINDS and self._selection.includes(name, table.name)
        ]
        if not tables:
            return
        database = self._database(connection, name, tables, identities)
        remaining = {table.name: table for table in tables}
        rows = map(MysqlColumn._make, connection.stream(queries.COLUMNS, name))
        # Table by table, since the columns of all tables take much memory.
        for table_name, columns in groupby(rows, key=attrgetter("table")):
            table = remaining.pop(table_name, None)
            if table is None:
                continue
            yield from _found(table, tuple(columns), database)
            if len(remaining) % _REPORT_INTERVAL == 0:
                report_progress(1 - len(remaining) / len(tables))
        for _, table in sorted(remaining.items()):
            yield from _found(table, (), database)

    def _database(
        self,
        connection: MysqlConnection,
        name: str,
        tables: Sequence[MysqlTable],
        identities: Mapping[str, str],
    ) -> MysqlDatabase:
        is_mariadb = connection.server.is_mariadb
        keys = [KeyColumn._make(row) for row in connection.rows(queries.KEY_COLUMNS, name)]
        has_references = any(key.referenced_table is not None for key in keys)
        rules = connection.rows(queries.REFERENCE_RULES, name) if has_references else []
        constraints = constraints_of(
            keys, {(table, key): (update, delete) for table, key, update, delete in rules}
        )
        json_columns: dict[str, set[str]] = defaultdict(set)
        checks = queries.MARIADB_CHECKS if is_mariadb else queries.MYSQL_CHECKS
        for table, check, clause in connection.rows(checks, name):
            # JSON in MariaDB is text with this constraint, named after the column.
            if clause == f"json_valid({quote_name(check)})":
                json_columns[table].add(check)
            else:
                constraints.setdefault(table, {})[check] = f"CHECK ({clause})"
        has_partitions = any(table.is_partitioned for table in tables)
        has_views = any(table.is_view for table in tables)
        partitions = connection.rows(queries.PARTITIONING, name) if has_partitions else []
        views = connection.rows(queries.VIEWS, name) if has_views else []
        return MysqlDatabase(
            address=self.address,
            name=name,
            is_mariadb=is_mariadb,
            constraints=constraints,
            json_columns={table: frozenset(names) for table, names in json_columns.items()},
            partitioning={table: _partitioning(*rest) for table, *rest in partitions},
            views={table: MysqlView(query or "", definer) for table, query, definer in views},
            identities=identities,
        )


class MariadbSource(MysqlSource):
    """A MySQL source with another platform in URNs, since catalogs distinguish the products."""

    kind: ClassVar[str] = "mariadb"


def _is_query(text: str) -> bool:
    """Whether a statement reads or writes tables that are not the server's own."""
    return text.lstrip("( ").upper().startswith(_QUERIES) and not any(
        f"`{name}`" in text.lower() for name in queries.SYSTEM_DATABASES
    )


def _is_system(database: str) -> bool:
    return database.lower() in queries.SYSTEM_DATABASES


def _identities(connection: MysqlConnection) -> dict[str, dict[str, str]]:
    """Unique ids of InnoDB tables by database and table, if the server reveals them."""
    server_ids = connection.rows(queries.SERVER_ID)
    if not server_ids:
        return {}
    server = server_ids[0][1]
    is_mariadb = connection.server.is_mariadb
    query = queries.MARIADB_TABLE_IDS if is_mariadb else queries.MYSQL_TABLE_IDS
    identities: dict[str, dict[str, str]] = defaultdict(dict)
    try:
        # The first partition is last. Grouping in SQL would ignore the case of names.
        for database, table, number in connection.rows(query):
            identities[database][table] = f"{server}/{number}"
    except pymysql.err.OperationalError as problem:
        if problem.args[0] not in _NO_TABLE_IDS:
            raise
    return identities


def _found(
    table: MysqlTable, columns: Sequence[MysqlColumn], database: MysqlDatabase
) -> Iterator[FoundDataset | Problem]:
    """The dataset of a table or view, and its problem, if any."""
    problem = _find_problem(table, columns, database)
    if problem is not None:
        yield problem
    if problem is None or problem.remark:
        yield dataset_of(table, columns, database)


def _find_problem(
    table: MysqlTable, columns: Sequence[MysqlColumn], database: MysqlDatabase
) -> Problem | None:
    """The problem because of which a table cannot be recorded, or a remark, if any."""
    path = path_of(database.name, table.name)
    if table.is_view and (table.comment or VIEW).upper() != VIEW:
        return Problem(path=path, reason=(table.comment or "")[:_MAX_REASON], code="invalid_view")
    if not table.is_view and table.engine is None:
        reason = (table.comment or "the server returned no information")[:_MAX_REASON]
        return Problem(path=path, reason=reason, code="unreadable")
    if not columns:
        reason = "it was changed or dropped during the scan"
        return Problem(path=path, reason=reason, code="changing")
    view = database.views.get(table.name)
    if table.is_view and (view is None or not view.query):
        reason = "its query is only shown with SELECT and SHOW VIEW on it, so it has no lineage"
        return Problem(path=path, reason=reason, code="no_show_view", remark=True)
    return None


def _partitioning(
    method: str, expression: str | None, submethod: str | None, subexpression: str | None
) -> str:
    text = f"{method} ({expression or ''})"
    return f"{text}, {submethod} ({subexpression or ''})" if submethod else text
