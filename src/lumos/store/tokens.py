"""API tokens: only the hash of a token is stored."""

from datetime import datetime
from typing import Literal

import msgspec
from sqlalchemy import select, update

from lumos.store import tables
from lumos.store.database import Database
from lumos.store.transaction import Transaction

Role = Literal["read", "write", "admin"]


class StoredToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token by its public id; `digest` is the SHA-256 of its secret."""

    id: str
    name: str
    role: Role
    digest: str
    created_by: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


class TokenReader:
    """Reads tokens, and records when they were used."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, id: str) -> StoredToken | None:
        statement = select(tables.api_token).where(tables.api_token.c.id == id)
        with self._database.reading() as connection:
            row = connection.execute(statement).one_or_none()
        return None if row is None else StoredToken(**row._mapping)

    def all(self) -> tuple[StoredToken, ...]:
        """All tokens, the oldest first."""
        table = tables.api_token
        statement = select(table).order_by(table.c.created_at, table.c.id)
        with self._database.reading() as connection:
            return tuple(StoredToken(**row._mapping) for row in connection.execute(statement))

    def mark_used(self, id: str, *, at: datetime) -> None:
        table = tables.api_token
        with self._database.writing() as connection:
            connection.execute(update(table).where(table.c.id == id).values(last_used_at=at))


def save_token(transaction: Transaction, token: StoredToken) -> None:
    transaction.execute(tables.api_token.insert().values(**msgspec.structs.asdict(token)))


def revoke_token(transaction: Transaction, id: str, *, at: datetime) -> None:
    """Make a token invalid from now on."""
    table = tables.api_token
    transaction.execute(update(table).where(table.c.id == id).values(revoked_at=at))
