"""The journal of imports: every write with the state before it, to resume and roll back."""

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from sqlalchemy import Connection, Row, bindparam, delete, func, select, update

from lumos.store import tables
from lumos.store.database import Database
from lumos.store.statements import insert_if_new, replace

# `settled` is done and can no longer be rolled back.
RunState: TypeAlias = Literal["running", "done", "settled", "rolling_back", "rolled_back"]
StepState: TypeAlias = Literal["planned", "done", "undone"]

_PAGE_SIZE: Final = 200
# The fastest compression level already halves the size of bodies.
_COMPRESSION_LEVEL: Final = 1


class ImportRun(msgspec.Struct, frozen=True, kw_only=True):
    """One import of a snapshot into a catalog.

    It has finished all entries up to `reached_kind` and `reached_key`; `sums` are the counts for
    its report so far, as JSON.
    """

    id: str
    sequence: int
    platform: str
    file: str
    snapshot: str
    state: RunState
    started_at: datetime
    updated_at: datetime
    reached_kind: str | None = None
    reached_key: str | None = None
    sums: bytes = b"{}"


class ImportStep(NamedTuple):
    """One entry that an import writes, before and after, as JSON.

    `base` is the entry as Lumos had last written it before the import, if it had.
    """

    kind: str
    key: str
    state: StepState
    before: bytes | None
    after: bytes
    base: bytes | None


class ImportJournal:
    """Reads the journal of imports."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open_run(self, platform: str) -> ImportRun | None:
        """The newest import into a catalog that can be resumed or rolled back."""
        with self._database.reading() as connection:
            return _newest(connection, platform, ("running", "rolling_back", "done"))

    def last_run(self, platform: str) -> ImportRun | None:
        """The newest import into a catalog that changed something, rolled back or not."""
        with self._database.reading() as connection:
            return _newest(connection, platform, ("running", "rolling_back", "done", "rolled_back"))

    def finished_run(self, platform: str) -> ImportRun | None:
        """The newest import into a catalog that finished and was not rolled back."""
        with self._database.reading() as connection:
            return _newest(connection, platform, ("done", "settled"))

    def steps(self, run: str) -> Iterator[ImportStep]:
        """The steps of an import that were not rolled back, by kind and key.

        They are read in pages, so that the caller can mark them during the iteration.
        """
        step = tables.import_step.c
        statement = (
            select(tables.import_step)
            .where(step.run == run, step.state != "undone")
            .order_by(step.kind, step.key)
            .limit(_PAGE_SIZE)
        )
        after: tuple[str, str] | None = None
        while True:
            page = statement
            if after is not None:
                kind, key = after
                is_later = (step.kind > kind) | ((step.kind == kind) & (step.key > key))
                page = statement.where(is_later)
            with self._database.reading() as connection:
                rows = connection.execute(page).all()
            yield from map(_step, rows)
            if len(rows) < _PAGE_SIZE:
                return
            after = (rows[-1].kind, rows[-1].key)

    def count(self, run: str) -> int:
        """The number of steps of an import that were not rolled back."""
        step = tables.import_step.c
        statement = select(func.count()).where(step.run == run, step.state != "undone")
        with self._database.reading() as connection:
            return int(connection.execute(statement).scalar_one())

    def bases(self, platform: str, kind: str, keys: Collection[str]) -> dict[str, bytes]:
        """The given entries as Lumos last wrote them to a catalog, as JSON by key."""
        with self._database.reading() as connection:
            return _bases(connection, platform, kind, keys)

    def planned_steps(self, run: str, kind: str, keys: Collection[str]) -> dict[str, ImportStep]:
        """The recorded steps of the given entries."""
        with self._database.reading() as connection:
            return _steps(connection, run, kind, keys)


class ImportJournalWriter:
    """Writes the journal of an import in a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def begin(self, id: str, *, platform: str, file: str, snapshot: str, at: datetime) -> ImportRun:
        """Start the journal of an import."""
        last = self._connection.execute(_MAX_SEQUENCE).scalar_one()
        run = ImportRun(
            id=id,
            sequence=last + 1,
            platform=platform,
            file=file,
            snapshot=snapshot,
            state="running",
            started_at=at,
            updated_at=at,
        )
        self._connection.execute(tables.import_run.insert().values(**msgspec.structs.asdict(run)))
        return run

    def close(self, run: ImportRun) -> None:
        """Record that an import is done; earlier imports can no longer be rolled back.

        An import without changes does not affect earlier ones.
        """
        has_steps = self._connection.execute(_ANY_STEP, {"wanted": run.id}).first() is not None
        if has_steps:
            table, step = tables.import_run, tables.import_step
            earlier = select(table.c.id).where(
                table.c.platform == run.platform, table.c.state == "done", table.c.id != run.id
            )
            self._connection.execute(delete(step).where(step.c.run.in_(earlier)))
            self._connection.execute(
                update(table).where(table.c.id.in_(earlier)).values(state="settled")
            )
        state: RunState = "done" if has_steps else "settled"
        self.save_run(msgspec.structs.replace(run, state=state))

    def save_run(self, run: ImportRun) -> None:
        """Record the progress of an import."""
        self._connection.execute(
            replace(self._dialect, tables.import_run), msgspec.structs.asdict(run)
        )

    def plan(self, run: str, steps: Sequence[ImportStep]) -> None:
        """Record steps before they are written; a step that is planned again keeps its `before`."""
        rows = [
            {
                "run": run,
                "kind": step.kind,
                "key": step.key,
                "state": step.state,
                "before": _compress(step.before),
                "after": _compress(step.after),
                "base": _compress(step.base),
            }
            for step in steps
        ]
        for row in rows:
            is_new = self._connection.execute(
                insert_if_new(self._dialect, tables.import_step), row
            ).first()
            if is_new is None:
                self._connection.execute(
                    _UPDATE_STEP, {f"the_{name}": row[name] for name in _UPDATED_COLUMNS}
                )

    def mark(self, run: str, kind: str, keys: Iterable[str], state: StepState) -> None:
        """Record that steps were done or rolled back."""
        rows = [{"the_run": run, "the_kind": kind, "the_key": key, "new": state} for key in keys]
        if rows:
            self._connection.execute(_SET_STATE, rows)

    def bases(self, platform: str, kind: str, keys: Collection[str]) -> dict[str, bytes]:
        """The given entries as Lumos last wrote them to a catalog, as JSON by key."""
        return _bases(self._connection, platform, kind, keys)

    def planned_steps(self, run: str, kind: str, keys: Collection[str]) -> dict[str, ImportStep]:
        """The recorded steps of the given entries."""
        return _steps(self._connection, run, kind, keys)

    def save_bases(self, platform: str, kind: str, bodies: Mapping[str, bytes | None]) -> None:
        """Record entries as Lumos last wrote them; None deletes the record of an entry."""
        rows = [
            {"platform": platform, "kind": kind, "key": key, "body": _compress(body)}
            for key, body in bodies.items()
            if body is not None
        ]
        if rows:
            self._connection.execute(replace(self._dialect, tables.merge_base), rows)
        deleted = [key for key, body in bodies.items() if body is None]
        if deleted:
            base = tables.merge_base
            self._connection.execute(
                delete(base).where(
                    base.c.platform == platform, base.c.kind == kind, base.c.key.in_(deleted)
                )
            )

    @property
    def _dialect(self) -> str:
        return self._connection.dialect.name


_ANY_STEP: Final = (
    select(tables.import_step.c.key).where(tables.import_step.c.run == bindparam("wanted")).limit(1)
)
_MAX_SEQUENCE: Final = select(func.coalesce(func.max(tables.import_run.c.sequence), 0))
_STEP: Final = tables.import_step.c
_UPDATED_COLUMNS: Final = ("run", "kind", "key", "state", "after")
_UPDATE: Final = update(tables.import_step).where(
    _STEP.run == bindparam("the_run"),
    _STEP.kind == bindparam("the_kind"),
    _STEP.key == bindparam("the_key"),
)
_UPDATE_STEP: Final = _UPDATE.values(state=bindparam("the_state"), after=bindparam("the_after"))
_SET_STATE: Final = _UPDATE.values(state=bindparam("new"))


def _newest(
    connection: Connection, platform: str, states: Collection[RunState]
) -> ImportRun | None:
    table = tables.import_run
    statement = (
        select(table)
        .where(table.c.platform == platform, table.c.state.in_(states))
        .order_by(table.c.sequence.desc())
        .limit(1)
    )
    row = connection.execute(statement).one_or_none()
    return None if row is None else ImportRun(**row._mapping)


def _bases(
    connection: Connection, platform: str, kind: str, keys: Collection[str]
) -> dict[str, bytes]:
    base = tables.merge_base.c
    statement = select(base.key, base.body).where(
        base.platform == platform, base.kind == kind, base.key.in_(list(keys))
    )
    return {key: zlib.decompress(body) for key, body in connection.execute(statement)}


def _steps(
    connection: Connection, run: str, kind: str, keys: Collection[str]
) -> dict[str, ImportStep]:
    statement = select(tables.import_step).where(
        _STEP.run == run, _STEP.kind == kind, _STEP.key.in_(list(keys))
    )
    return {row.key: _step(row) for row in connection.execute(statement)}


def _step(row: Row[Any]) -> ImportStep:
    return ImportStep(
        row.kind,
        row.key,
        row.state,
        _decompress(row.before),
        zlib.decompress(row.after),
        _decompress(row.base),
    )


def _compress(body: bytes | None) -> bytes | None:
    return None if body is None else zlib.compress(body, _COMPRESSION_LEVEL)


def _decompress(body: bytes | None) -> bytes | None:
    return None if body is None else zlib.decompress(body)
