"""Results of the gate that CI systems sent."""

from collections.abc import Iterator
from datetime import datetime

import msgspec
from sqlalchemy import select

from lumos.store import tables
from lumos.store.database import Database
from lumos.store.transaction import Transaction


class StoredGateResult(msgspec.Struct, frozen=True, kw_only=True):
    """A report of the gate on the head of a branch, as JSON in `body`."""

    id: str
    recorded_at: datetime
    recorded_by: str
    repository: str
    pr: int | None
    head: str
    verdict: str
    body: bytes


class GateResultReader:
    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, id: str) -> StoredGateResult | None:
        statement = select(tables.gate_result).where(tables.gate_result.c.id == id)
        with self._database.reading() as connection:
            row = connection.execute(statement).one_or_none()
        return None if row is None else StoredGateResult(**row._mapping)

    def newest(
        self, *, repository: str | None, pr: int | None, limit: int
    ) -> Iterator[StoredGateResult]:
        """Results, newest first."""
        table = tables.gate_result.c
        statement = select(tables.gate_result).order_by(table.recorded_at.desc(), table.id)
        if repository is not None:
            statement = statement.where(table.repository == repository)
        if pr is not None:
            statement = statement.where(table.pr == pr)
        with self._database.reading() as connection:
            for row in connection.execute(statement.limit(limit)):
                yield StoredGateResult(**row._mapping)


def save_gate_result(transaction: Transaction, result: StoredGateResult) -> bool:
    """Add a result; return False if it is recorded already."""
    return transaction.insert_once(tables.gate_result, msgspec.structs.asdict(result))
