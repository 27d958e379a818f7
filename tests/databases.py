"""Databases to make tables in."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import psycopg
import pymysql
from psycopg import sql

from lumos.config.secret import ConnectionString
from lumos.config.sources import MysqlSourceSettings as MysqlSection
from lumos.config.sources import PostgresSourceSettings as Section
from lumos.model.discovery import Discovery, FoundDataset
from lumos.model.schema import Schema
from lumos.sources.mysql import MysqlSource
from lumos.sources.postgres import PostgresSource
from lumos.store import Database, Store

_TERMINATE_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_LAYOUT = """
SELECT string_agg(line, chr(10) ORDER BY line) FROM (
    SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable) AS line
    FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
) AS lines
"""


def close_others(connection: "psycopg.Connection[Any]") -> None:
    """Ends all other connections to a database; PostgreSQL itself looks every 100 ms only."""
    while connection.execute(_TERMINATE_OTHERS).fetchall():
        time.sleep(0.001)


class PostgresStore:
    """A store in PostgreSQL that tests use one after the other."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._layout: str | None = None
        self._reset: sql.Composable = sql.SQL("")

    def reset(self) -> None:
        """Deletes everything that a test wrote; creates the store anew if its tables changed."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            close_others(connection)
            if self._layout and self._layout == self._ask(connection, _LAYOUT):
                connection.execute(self._reset)
                return
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
            Store.open(Database.postgres(self.url), create=True).close()
            self._layout = self._ask(connection, _LAYOUT)
            self._reset = self._made_reset(connection)

    @staticmethod
    def _ask(connection: "psycopg.Connection[Any]", question: Any) -> Any:
        row = connection.execute(question).fetchone()
        assert row is not None
        return row[0]

    def _made_reset(self, connection: "psycopg.Connection[Any]") -> sql.Composable:
        """Statements that delete all rows but those of a new store, and restart all numbers."""
        # Without triggers, so that the order of tables does not matter.
        statements: list[sql.Composable] = [sql.SQL("SET session_replication_role = replica")]
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        for (name,) in tables:
            table = sql.Identifier(name)
            statements.append(sql.SQL("DELETE FROM {}").format(table))
            rows = self._ask(
                connection, sql.SQL("SELECT json_agg(t)::text FROM {} t").format(table)
            )
            if rows:
                restored = "INSERT INTO {} SELECT * FROM json_populate_recordset(NULL::{}, {})"
                statements.append(sql.SQL(restored).format(table, table, sql.Literal(rows)))
        sequences = "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'"
        statements += [
            sql.SQL("ALTER SEQUENCE {} RESTART").format(sql.Identifier(name))
            for (name,) in connection.execute(sequences).fetchall()
        ]
        return sql.SQL(";\n").join(statements)


class PostgresDatabase:
    """An empty database, and how to fill it and look at it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = url.rpartition("/")[2]

    def run(self, *statements: Any) -> None:
        """Runs statements as the server's superuser."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    @contextmanager
    def transaction(self, *statements: str) -> Iterator["psycopg.Connection[Any]"]:
        """Somebody else's transaction that has done something and is not over."""
        with psycopg.connect(self.url) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[arg-type]
            yield connection
            connection.rollback()

    def ask(self, question: str) -> Any:
        """The first value of an answer."""
        with psycopg.connect(self.url) as connection:
            row = connection.execute(question).fetchone()  # type: ignore[arg-type]
        return None if row is None else row[0]

    def address(self, user: str = "", password: str = "") -> str:
        """Its URL for some user."""
        if not user:
            return self.url
        entry = f"{user}:{password}" if password else user
        return self.url.replace("lumos@", f"{entry}@")

    @contextmanager
    def role(self, *grants: str, password: str = "") -> Iterator[str]:
        """A user who may log in and otherwise what is granted; {role} stands for its name."""
        name = f"r{uuid.uuid4().hex[:12]}"
        role = sql.Identifier(name)
        self.run(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, password or None))
        try:
            self.run(*(grant.format(role=name) for grant in grants))
            yield name
        finally:
            self.run(sql.SQL("DROP OWNED BY {}").format(role), sql.SQL("DROP ROLE {}").format(role))

    def section(self, **facts: object) -> dict[str, object]:
        """The section of a configuration that describes it."""
        return {"type": "postgres", "connection_string": self.url, **facts}

    def source(self, **facts: Any) -> PostgresSource:
        """The source that looks at it."""
        given = {"connection_string": ConnectionString(self.url), **facts}
        return PostgresSource(Section(**given))

    def look(self, watch: Callable[[float], None] = lambda _: None, **facts: Any) -> Discovery:
        """What a scan brings home."""
        return self.source(**facts).read(watch)

    def found(self, **facts: Any) -> dict[str, FoundDataset]:
        """What a scan brings home, by schema and name."""
        return {".".join(each.path.split("/")[1:]): each for each in self.look(**facts).datasets}

    def schema(self, name: str) -> Schema:
        """The schema of a table."""
        return self.found()[name].schema


class MysqlDatabase:
    """An empty database of a MariaDB server, and how to fill it and look at it."""

    def __init__(self, server: str, name: str) -> None:
        self.server = server
        self.name = name

    @property
    def url(self) -> str:
        return f"{self.server}/{self.name}"

    def address(self, user: str, password: str = "") -> str:
        """Its URL for some user."""
        entry = f"{user}:{password}" if password else user
        return self.url.replace("root@", f"{entry}@")

    @contextmanager
    def connection(self, user: str = "root", database: str | None = None) -> Iterator[Any]:
        """A session of some user."""
        parts = urlsplit(self.server)
        opened = pymysql.connect(
            host=str(parts.hostname),
            port=int(parts.port or 0),
            user=user,
            database=database or self.name,
            autocommit=True,
            charset="utf8mb4",
        )
        with opened, opened.cursor() as cursor:
            yield cursor

    def run(self, *statements: str) -> None:
        """Runs statements as root."""
        with self.connection() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def ask(self, question: str) -> Any:
        """The first value of an answer."""
        with self.connection() as cursor:
            cursor.execute(question)
            row = cursor.fetchone()
        return None if row is None else row[0]

    @contextmanager
    def user(self, *grants: str, password: str = "") -> Iterator[str]:
        """A user who may log in and otherwise what is granted; {user} stands for its name."""
        name = f"u{uuid.uuid4().hex[:12]}"
        self.run(f"CREATE USER '{name}'@'%' IDENTIFIED BY '{password}'")
        try:
            self.run(*(grant.format(user=f"'{name}'@'%'", database=self.name) for grant in grants))
            yield name
        finally:
            self.run(f"DROP USER '{name}'@'%'")

    def section(self, **facts: object) -> dict[str, object]:
        """The section of a configuration that describes it."""
        return {"type": "mysql", "connection_string": self.url, **facts}

    def source(self, **facts: Any) -> MysqlSource:
        """The source that looks at it."""
        given = {"connection_string": ConnectionString(self.url), **facts}
        return MysqlSource(MysqlSection(**given))

    def look(self, watch: Callable[[float], None] = lambda _: None, **facts: Any) -> Discovery:
        """What a scan brings home."""
        return self.source(**facts).read(watch)

    def found(self, **facts: Any) -> dict[str, FoundDataset]:
        """What a scan brings home, by name."""
        return {unquote(each.path.split("/")[1]): each for each in self.look(**facts).datasets}

    def schema(self, name: str) -> Schema:
        """The schema of a table."""
        return self.found()[name].schema
