"""The audit log: append-only rows, each of which contains the hash of those before it."""

import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, select, update

from lumos.actor import ActorKind, current_actor
from lumos.model.json_codec import to_json
from lumos.store import tables
from lumos.store.database import Database, lock_in_transaction

_PAGE_SIZE: Final = 1_000
# The hash before the first row.
GENESIS: Final = "0" * 64


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """One action: who, what, when, from where, and what it changed."""

    sequence: int
    recorded_at: datetime
    kind: ActorKind
    actor: str
    origin: str
    action: str
    target: str
    details: str
    before: str | None
    after: str | None
    request_id: str
    hash: str

    def expected_hash(self, previous: str) -> str:
        """The hash that the row must have after the row with the hash `previous`."""
        values = [previous]
        for name in self.__struct_fields__[:-1]:
            value = getattr(self, name)
            values.append(value.isoformat() if isinstance(value, datetime) else value)
        return hashlib.sha256(msgspec.json.encode(values)).hexdigest()


class AuditHead(msgspec.Struct, frozen=True, kw_only=True):
    """The number and hash of the last row of the log, stored in a separate table.

    If the last row of the log differs from it, rows were deleted.
    """

    sequence: int
    hash: str


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows to read; `before` limits them to rows with a lower `sequence`."""

    since: datetime | None = None
    actor: str | None = None
    action: str | None = None
    target: str | None = None
    before: int | None = None
    limit: int | None = None


class AuditReader:
    """Reads the audit log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def newest(self, filter: AuditFilter) -> Iterator[AuditRow]:
        """The rows that match the filter, newest first."""
        table = tables.audit.c
        statement = select(tables.audit).order_by(table.sequence.desc())
        if filter.since is not None:
            statement = statement.where(table.recorded_at >= filter.since)
        if filter.actor is not None:
            statement = statement.where(table.actor == filter.actor)
        if filter.action is not None:
            statement = statement.where(table.action == filter.action)
        if filter.target is not None:
            statement = statement.where(table.target.contains(filter.target, autoescape=True))
        if filter.before is not None:
            statement = statement.where(table.sequence < filter.before)
        if filter.limit is not None:
            statement = statement.limit(filter.limit)
        yield from self._rows(statement)

    def oldest(self) -> Iterator[AuditRow]:
        """All rows, oldest first."""
        yield from self._rows(select(tables.audit).order_by(tables.audit.c.sequence))

    def head(self) -> AuditHead | None:
        """The recorded end of the log; None if it was deleted."""
        with self._database.reading() as connection:
            return _read_head(connection)

    def _rows(self, statement: Any) -> Iterator[AuditRow]:
        with self._database.reading() as connection:
            streaming = connection.execution_options(yield_per=_PAGE_SIZE)
            for row in streaming.execute(statement):
                yield AuditRow(**row._mapping)


def new_entry(
    action: str,
    target: str,
    *,
    at: datetime,
    details: str = "",
    before: object = None,
    after: object = None,
) -> dict[str, Any]:
    """The row for an action of the current actor, to pass to `append`."""
    actor = current_actor()
    return {
        "recorded_at": at,
        "kind": actor.kind,
        "actor": actor.name,
        "origin": actor.origin,
        "action": action,
        "target": target,
        "details": details,
        "before": None if before is None else to_json(before).decode(),
        "after": None if after is None else to_json(after).decode(),
        "request_id": actor.request_id,
    }


def append(connection: Connection, entries: list[dict[str, Any]]) -> None:
    """Append rows to the log, under a lock: sequence and hash chain must have no gaps."""
    if not entries:
        return
    lock_in_transaction(connection, "audit log")
    head = _read_head(connection) or AuditHead(sequence=0, hash=GENESIS)
    sequence, hash = head.sequence, head.hash
    rows = []
    for entry in entries:
        sequence += 1
        row = AuditRow(sequence=sequence, hash="", **entry)
        hash = row.expected_hash(hash)
        rows.append({**msgspec.structs.asdict(row), "hash": hash})
    connection.execute(tables.audit.insert(), rows)
    connection.execute(update(tables.audit_head).values(sequence=sequence, hash=hash))


def _read_head(connection: Connection) -> AuditHead | None:
    row = connection.execute(select(tables.audit_head)).first()
    return None if row is None else AuditHead(sequence=row.sequence, hash=row.hash)
