"""A database as an open transaction sees it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from sqlalchemy import Connection

from lumos.store.database import Database


class DatabaseWithin(Database):
    """Reads go over the transaction's own connection, which alone sees what it wrote.

    Another one might wait for this very transaction to end.
    """

    def __init__(self, database: Database, connection: Connection, kept: dict[str, Any]) -> None:
        super().__init__(database.engine, database.place, database.locks)
        self.kept = kept
        self._connection = connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        yield self._connection

    def writing(self) -> NoReturn:
        raise RuntimeError("what a transaction sees can only be read")
