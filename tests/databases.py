"""A PostgreSQL database to make tables in."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from lumos.config.secret import ConnectionString
from lumos.config.sources import PostgresSourceSettings as Section
from lumos.model.discovery import Discovery, FoundDataset
from lumos.model.schema import Schema
from lumos.sources.postgres import PostgresSource


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
