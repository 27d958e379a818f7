"""Hints on which files form a dataset, as people added them to the store."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

import msgspec
from sqlalchemy import Connection, delete, select

from lumos.store.database import Database
from lumos.store.rows import insert_if_new
from lumos.store.tables import dataset_hint as table


class StoredHint(msgspec.Struct, frozen=True, kw_only=True):
    """A hint with whole paths, and who added it when."""

    id: int
    paths: tuple[str, ...]
    name: str | None
    split: bool
    author: str
    added_at: datetime


class StoredHints:
    """The hints of a store, oldest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[StoredHint]:
        """All hints."""
        with self._database.reading() as connection:
            return HintWriter(connection).list()


class HintWriter:
    """Reads and writes hints inside a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> list[StoredHint]:
        """All hints as they are with everything written so far."""
        return [
            StoredHint(
                id=row.id,
                paths=msgspec.json.decode(row.paths, type=tuple[str, ...]),
                name=row.name,
                split=row.split,
                author=row.author,
                added_at=row.added_at,
            )
            for row in self._connection.execute(select(table).order_by(table.c.id))
        ]

    def add(
        self, paths: Sequence[str], *, name: str | None, split: bool, author: str, at: datetime
    ) -> int | None:
        """Add a hint and return its id; None if the store has the same one."""
        text = msgspec.json.encode(paths).decode()
        digest = hashlib.blake2b(f"{text}\n{name}\n{split}".encode(), digest_size=16).hexdigest()
        row = {
            "digest": digest,
            "paths": text,
            "name": name,
            "split": split,
            "author": author,
            "added_at": at,
        }
        insert = insert_if_new(self._connection.dialect.name, table)
        id: int | None = self._connection.execute(insert, row).scalar()
        return id

    def remove(self, id: int) -> bool:
        """Remove a hint; False if there is none of that id."""
        return self._connection.execute(delete(table).where(table.c.id == id)).rowcount > 0
