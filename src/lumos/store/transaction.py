"""Transactions, through which datasets are written, and listeners to their events."""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec
from sqlalchemy import (
    BindParameter,
    Connection,
    CursorResult,
    Executable,
    Table,
    bindparam,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.event import listen, remove

from lumos.actor import current_actor
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Aspect, Statistics
from lumos.model.json_codec import from_json, to_json
from lumos.model.notification import Notification, ReminderRun
from lumos.model.schema import Schema
from lumos.store import audit, notification_outbox, search, tables
from lumos.store.annotations import AnnotationRows
from lumos.store.catalog_outbox import CatalogOutboxWriter
from lumos.store.conditions import WriteCondition, pending_condition
from lumos.store.costs import CostWriter, size_row
from lumos.store.database import Database, TransactionView, lock_in_transaction
from lumos.store.datasets import (
    FinishedScan,
    HintWriter,
    KnownDataset,
    known_dataset,
    schemas_by_hash,
)
from lumos.store.entries import (
    ASPECT_TYPES,
    NewVersion,
    StoredEntry,
    StoredItem,
    entries_of,
    former_names,
    item_body,
)
from lumos.store.journal import ImportJournalWriter
from lumos.store.lineage.edges import ReportedUpstream
from lumos.store.lineage.writer import LineageWriter
from lumos.store.statements import among, insert_if_new, insert_missing, replace
from lumos.store.usage import UsageWriter

# Aspects that scans write; the others come from users and imports.
_SCANNED_ASPECTS: Final = ("location", "statistics", "drift")


class Transaction:
    """Writes that are committed together; each of them is idempotent.

    Rows of datasets are collected and written before the next other statement: one statement for
    each row would take most of the time of a first scan.
    """

    def __init__(self, connection: Connection, database: Database) -> None:
        self._connection = connection
        self._database = database
        self._pending: dict[Table, list[dict[str, Any]]] = {}
        self._pending_events: list[tuple[ChangeEvent, dict[str, Any], bool]] = []
        listen(connection, "before_cursor_execute", self._write_pending)
        self._loaded: dict[str, KnownDataset | None] = {}
        self._written: dict[str, None] = {}
        self._saved_schemas: dict[str, Schema] = {}
        self._sizes: dict[str, dict[str, Any]] = {}
        self._schema_memories: dict[str, dict[str, Any]] = {}
        self._audit_rows: list[dict[str, Any]] = []
        self._condition: WriteCondition | None = None
        self._new_events: list[ChangeEvent] = []
        self.annotations = AnnotationRows(connection)
        self.lineage = LineageWriter(connection)
        self.catalog_outbox = CatalogOutboxWriter(connection)

    @property
    def entries(self) -> "EntryWriter":
        """Writes complete datasets and other catalog items."""
        return EntryWriter(self, self._connection)

    @property
    def usage(self) -> UsageWriter:
        """Writes reads of datasets."""
        return UsageWriter(self._connection, changed=self.catalog_outbox.add)

    @property
    def costs(self) -> CostWriter:
        """Writes metered usage, cost overrides and computed costs."""
        return CostWriter(self._connection)

    @property
    def hints(self) -> HintWriter:
        """Writes hints on which files form a dataset."""
        return HintWriter(self._connection)

    @property
    def journal(self) -> ImportJournalWriter:
        """Writes the journal of imports."""
        return ImportJournalWriter(self._connection)

    def view(self) -> TransactionView:
        """A read-only view of the database with the writes of this transaction so far."""
        self.annotations.flush()
        self.lineage.flush()
        # The shared cache must not be filled from edges that may be rolled back.
        cache = {} if self.lineage.has_graph_changes else self._database.cache
        return TransactionView(self._database, self._connection, cache)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Roll back to this point if the block fails, so that the transaction can continue."""
        with self._connection.begin_nested():
            yield

    def load(self, urns: Collection[str]) -> None:
        """Lock datasets and load their records for later calls of `known`."""
        lock_in_transaction(self._connection, *sorted(urns))
        is_one = among(self._connection, tables.dataset.c.urn, urns)
        rows = self._connection.execute(select(tables.dataset).where(is_one))
        self._loaded = dict.fromkeys(urns) | {row.urn: known_dataset(row) for row in rows}

    def known(self, urn: str) -> KnownDataset | None:
        """The record of a dataset, locked against other writers until the transaction ends."""
        if urn in self._loaded:
            self._check_condition(urn)
            return self._loaded.pop(urn)
        # Locks the name, since a row that does not exist yet cannot be locked.
        lock_in_transaction(self._connection, urn)
        self._check_condition(urn)
        row = self._connection.execute(_DATASET, {"urn": urn}).one_or_none()
        return None if row is None else known_dataset(row)

    def _check_condition(self, urn: str) -> None:
        """Check the condition of this write under the lock of its dataset."""
        condition = pending_condition()
        if condition is not None and condition.urn == urn and self._condition is None:
            condition.check(self.view())
            self._condition = condition

    def on_committed(self) -> None:
        """Mark the condition that this transaction has checked as met."""
        if self._condition is not None:
            self._condition.is_met = True

    def aspect(self, urn: str, name: str) -> Any:
        """One aspect of a dataset, or None."""
        table = tables.aspect.c
        statement = select(table.body).where(table.urn == urn, table.name == name)
        body = self._connection.execute(statement).scalar_one_or_none()
        return None if body is None else from_json(body, ASPECT_TYPES[name])

    def event(self, event_id: str) -> ChangeEvent | None:
        """A recorded event, or None."""
        table = tables.change_event.c
        statement = select(table.body).where(table.event_id == event_id)
        body = self._connection.execute(statement).scalar_one_or_none()
        return None if body is None else from_json(body, ChangeEvent)

    def last_event_id(self, urn: str, type: EventType) -> str | None:
        """The id of the newest event of one type on a dataset, or None."""
        table = tables.change_event.c
        statement = select(table.event_id).where(table.urn == urn, table.type == type.value)
        newest = statement.order_by(table.sequence.desc()).limit(1)
        return self._connection.execute(newest).scalar_one_or_none()

    @property
    def new_events(self) -> list[ChangeEvent]:
        """The events of this transaction that were not recorded before."""
        self._write_pending()
        return self._new_events

    def _write_pending(self, *_: object) -> None:
        """Write the collected rows, referenced tables first."""
        pending, events = self._pending, self._pending_events
        self._pending, self._pending_events = {}, []
        if datasets := pending.get(tables.dataset):
            # A dataset with a long schema history is saved for each version.
            last = {row["urn"]: row for row in datasets}
            created = {row["urn"]: row["created_at"] for row in reversed(datasets)}
            pending[tables.dataset] = [
                {**row, "created_at": created[urn]} for urn, row in last.items()
            ]
        for table, statement_for in _COLLECTED.items():
            if rows := pending.get(table):
                self._execute(statement_for(self._dialect), rows)
        if events:
            statement = insert_if_new(self._dialect, tables.change_event, "event_id")
            inserted = set(self._execute(statement, [row for _, row, _ in events]).scalars())
            distinct = {event.event_id: event for event, _, notify in events if notify}
            self._new_events += [event for id, event in distinct.items() if id in inserted]

    def mark_deleted(self, urn: str) -> None:
        """Publish the deletion of a dataset, and do not index it."""
        self._written.pop(urn, None)
        self.catalog_outbox.add(urn)

    def _mark_written(self, urn: str) -> None:
        self._written[urn] = None
        self.catalog_outbox.add(urn)

    def close(self) -> None:
        """Stop listening to the connection, which would keep all that was written in memory.

        The two refer to each other, and such objects are freed late.
        """
        remove(self._connection, "before_cursor_execute", self._write_pending)

    def finish(self) -> None:
        """Write the collected rows and update the search index."""
        self.annotations.flush()
        self.lineage.finish()
        if self._sizes:
            self._execute(replace(self._dialect, tables.storage_size), list(self._sizes.values()))
        if self._schema_memories:
            rows = list(self._schema_memories.values())
            self._execute(replace(self._dialect, tables.schema_memory), rows)
        written = list(self._written)
        search.remove(self._connection, written)
        search.add(self._connection, search.search_documents(self._connection, written))
        if self._condition is not None:
            self._condition.on_written(self.view())
        # Last, since concurrent writers may contend for the same outbox rows.
        self.catalog_outbox.finish(self.lineage)
        # After that, since appending to the log blocks all other writers.
        audit.append(self._connection, self._audit_rows)

    def schema(self, hash: str) -> Schema:
        """The schema with a content hash."""
        saved = self._saved_schemas.get(hash)
        return schemas_by_hash(self._connection, [hash])[hash] if saved is None else saved

    def save_schema(self, schema: Schema) -> str:
        """Store a schema once under its content hash and return the hash."""
        row = schema_row(schema)
        hash: str = row["hash"]
        if hash not in self._saved_schemas:
            self.collect(tables.schema_body, row)
            self._saved_schemas[hash] = schema
        return hash

    def save(self, dataset: KnownDataset) -> None:
        """Record the identity, versions and fingerprints of a dataset."""
        self._mark_written(dataset.urn)
        self._loaded.pop(dataset.urn, None)
        self.collect(tables.dataset, msgspec.structs.asdict(dataset))

    def save_aspect(
        self, urn: str, name: str, value: Aspect | Any, *, writer: str, at: datetime
    ) -> None:
        """Replace one aspect of a dataset."""
        self.save_aspects(urn, {name: value}, writer=writer, at=at)

    def save_aspects(
        self, urn: str, aspects: Mapping[str, Aspect | Any], *, writer: str, at: datetime
    ) -> None:
        """Replace the given aspects of a dataset; other aspects stay."""
        for name in aspects:
            if name not in ASPECT_TYPES:
                raise ValueError(f"'{name}' is not stored as an aspect")
        self._mark_written(urn)
        common = {"urn": urn, "writer": writer, "updated_at": at}
        for name, each in aspects.items():
            self.collect(tables.aspect, {**common, "name": name, "body": to_json(each)})
        if isinstance(statistics := aspects.get("statistics"), Statistics):
            self._sizes[urn] = size_row(urn, statistics, at=at)
        if "lineage" in aspects:
            lineage: Any = aspects["lineage"]
            self.lineage.save_aspect(urn, lineage, writer=writer, at=at)

    def save_event(
        self, event: ChangeEvent, *, notify: bool = True, recorded_at: datetime | None = None
    ) -> None:
        """Append a change event, unless it is recorded already.

        Without `notify`, listeners are not called, as for the history of an imported dataset.
        `recorded_at` is the time by which events are sorted. It differs from the time of the event
        if the event was discovered later: readers of all events since a time must not miss it.
        """
        row = {
            "event_id": event.event_id,
            "urn": event.urn,
            "type": event.type.value,
            "breaking": event.breaking,
            "recorded_at": recorded_at or event.at,
            "body": to_json(event),
        }
        self._pending_events.append((event, row, notify))

    def complete(self, completer: "Completer") -> None:
        """Let a listener complete the new events, and record the completed events."""
        before, event = self.new_events, tables.change_event.c
        if not before:
            return
        self._new_events = list(completer.complete_events(self, before))
        rows = [
            {"completed": new.event_id, "body": to_json(new)}
            for old, new in zip(before, self.new_events, strict=True)
            if new is not old
        ]
        if rows:
            is_event = event.event_id == bindparam("completed")
            self._execute(update(tables.change_event).where(is_event), rows)

    def post(
        self, notification: Notification, *, at: datetime, due_at: datetime | None = None
    ) -> bool:
        """Put a message into the outbox; False if the channel has one for this event already."""
        return notification_outbox.post(self._connection, notification, at=at, due_at=due_at)

    def record_reminder_run(self, run: ReminderRun) -> bool:
        """Record that a reminder was handled for a due time; False if it was recorded before."""
        return notification_outbox.record_run(self._connection, run)

    def save_schema_version(self, dataset: KnownDataset, event: ChangeEvent) -> None:
        """Append the current schema of the dataset to its history."""
        row = {
            "urn": dataset.urn,
            "version_of": dataset.urn,
            "version": dataset.schema_version,
            "cloud_version": dataset.cloud_version,
            "schema_hash": dataset.schema_hash,
            "event_id": event.event_id,
            "recorded_at": event.at,
        }
        self.collect(tables.schema_version, row)

    def schema_memory(self, urn: str) -> bytes | None:
        """The state of scans about a dataset's schemas, encoded by discovery."""
        return self._connection.execute(_SCHEMA_MEMORY, {"urn": urn}).scalar_one_or_none()

    def save_schema_memory(self, urn: str, body: bytes, schema: Schema) -> None:
        """Replace the state of scans about a dataset's schemas when the transaction ends."""
        hash = self.save_schema(schema)
        self._schema_memories[urn] = {"urn": urn, "schema_hash": hash, "body": body}

    def save_alias(self, urn: str, *, of: str, reason: str, at: datetime) -> None:
        """Make a former URN an alias of a dataset, together with all aliases of that URN."""
        table = tables.alias
        # If a dataset is merged, its former URNs become merged URNs as well.
        changes = {"dataset_urn": of} | ({"reason": reason} if reason == "merged" else {})
        self._connection.execute(update(table).where(table.c.dataset_urn == urn).values(changes))
        row = {"urn": urn, "dataset_urn": of, "reason": reason, "created_at": at}
        self._execute(replace(self._dialect, table), row)

    def rename(self, known: KnownDataset, *, to: str, name: str, at: datetime) -> None:
        """Change the URN of a dataset, including its history, aspects, usage and lineage."""
        renamed = msgspec.structs.replace(known, urn=to, name=name)
        self.annotations.flush()
        self.lineage.flush()
        execute = self._connection.execute
        execute(tables.dataset.insert().values(**msgspec.structs.asdict(renamed)))
        for table in _TABLES_OF_DATASETS:
            execute(update(table).where(table.c.urn == known.urn).values(urn=to))
        alias = tables.alias
        execute(update(alias).where(alias.c.dataset_urn == known.urn).values(dataset_urn=to))
        search.remove(self._connection, [known.urn])
        execute(delete(tables.dataset).where(tables.dataset.c.urn == known.urn))
        self._move_usage(known.urn, to, at=at)
        self.lineage.rename(known.urn, to)
        self.catalog_outbox.add(known.urn)
        self._mark_written(to)
        self.save_alias(known.urn, of=to, reason="renamed", at=at)

    def merge_into(self, known: KnownDataset, *, into: str, at: datetime) -> None:
        """Merge a dataset into another one, which then has both URNs."""
        self.save(msgspec.structs.replace(known, state="missing", updated_at=at))
        self.lineage.flush()
        self._copy_annotations(known.urn, into)
        self._move_usage(known.urn, into, at=at)
        self.lineage.merge_into(known.urn, into)
        self._mark_written(into)
        self.save_alias(known.urn, of=into, reason="merged", at=at)

    def mark_split(self, known: KnownDataset, *, at: datetime) -> None:
        """Mark a dataset as split into others; its history and edges stay."""
        self.save(msgspec.structs.replace(known, state="split", updated_at=at))

    def _copy_annotations(self, urn: str, into: str) -> None:
        """Copy annotations and aspects from users, unless the other dataset has its own."""
        aspect = tables.aspect.c
        existing = select(aspect.name).where(aspect.urn == into)
        statement = select(tables.aspect).where(
            aspect.urn == urn, aspect.name.not_in(_SCANNED_ASPECTS), aspect.name.not_in(existing)
        )
        for row in self._connection.execute(statement).all():
            self._connection.execute(tables.aspect.insert().values({**row._mapping, "urn": into}))
        self.annotations.copy(urn, into)

    def _move_usage(self, urn: str, into: str, *, at: datetime) -> None:
        usage = self.usage
        if usage.move(urn, into):
            usage.derive([into], at=at)

    def drop_alias(self, urn: str) -> None:
        """Remove an alias, so that its URN can be used for another dataset."""
        self.collect(tables.alias, {"urn": urn})

    def save_scan(self, scan: FinishedScan) -> None:
        """Make the manifest of a scan the current one of its source."""
        self._execute(replace(self._dialect, tables.scan), msgspec.structs.asdict(scan))

    def audit(
        self,
        action: str,
        target: str,
        *,
        at: datetime,
        details: str = "",
        before: object = None,
        after: object = None,
    ) -> None:
        """Append an action of the current actor to the audit log when the transaction ends."""
        entry = audit.new_entry(action, target, at=at, details=details, before=before, after=after)
        self._audit_rows.append(entry)

    def execute(self, statement: Executable) -> CursorResult[Any]:
        """Run a statement on a table that no writer class covers."""
        return self._connection.execute(statement)

    @property
    def _dialect(self) -> str:
        return self._connection.dialect.name

    def collect(self, table: Table, row: dict[str, Any]) -> None:
        """Collect a row of a table in `_COLLECTED`, to write it before the next statement."""
        self._pending.setdefault(table, []).append(row)

    def insert_once(self, table: Table, row: dict[str, Any]) -> bool:
        """Insert a row; return False if there is one with its key."""
        return self._execute(insert_if_new(self._dialect, table), row).first() is not None

    def _execute(
        self, statement: Executable, rows: dict[str, Any] | list[dict[str, Any]]
    ) -> CursorResult[Any]:
        return self._connection.execute(statement, rows)


class Listener(Protocol):
    """Called for every new event in the process that records it."""

    def before_commit(self, transaction: "Transaction", event: ChangeEvent) -> None:
        """Called before the commit, after all other writes, in the transaction of the event."""

    def after_commit(self, event: ChangeEvent) -> None:
        """Called after the commit; an error here does not undo the event."""


class Completer(Listener):
    """A listener that completes events after all other writes, before they are recorded."""

    @abstractmethod
    def complete_events(
        self, transaction: "Transaction", events: Sequence[ChangeEvent]
    ) -> Sequence[ChangeEvent]:
        """The completed events, in the same order."""


class EntryWriter:
    """Writes complete datasets and other catalog items in a transaction."""

    def __init__(self, transaction: "Transaction", connection: Connection) -> None:
        self._transaction = transaction
        self._connection = connection

    def get(self, urns: Collection[str]) -> dict[str, StoredEntry]:
        """The given datasets that exist, by current URN, with the writes of this transaction."""
        found = entries_of(self._connection, urns)
        # One query for the reported lineage of all new datasets.
        self._transaction.lineage.load_reported([urn for urn in urns if urn not in found])
        return found

    def put(
        self,
        known: KnownDataset,
        aspects: Mapping[str, Any],
        *,
        before: StoredEntry | None,
        writer: str,
        at: datetime,
    ) -> None:
        """Replace the identity and all aspects of a dataset; aspects that are None are deleted."""
        self._transaction.save(known)
        old = {name: getattr(before.dataset, name) if before else None for name in ASPECT_TYPES}
        new = {name: aspects.get(name) for name in ASPECT_TYPES}
        changed = {
            name: value for name, value in new.items() if value is not None and value != old[name]
        }
        if changed:
            self._transaction.save_aspects(known.urn, changed, writer=writer, at=at)
        deleted = [name for name, value in new.items() if value is None and old[name] is not None]
        if deleted:
            table = tables.aspect
            self._connection.execute(
                delete(table).where(table.c.urn == known.urn, table.c.name.in_(deleted))
            )
        if "lineage" in deleted:
            self._transaction.lineage.delete_aspect(known.urn)

    def put_extras(self, urn: str, extras: Mapping[str, bytes], *, is_new: bool = False) -> None:
        """Replace all extras of a dataset."""
        if not is_new:
            self._connection.execute(_DELETE_EXTRAS, {"urn": urn})
        for name, body in extras.items():
            self._transaction.collect(tables.extras, {"urn": urn, "name": name, "body": body})

    def put_versions(
        self, urn: str, versions: Sequence[NewVersion], *, is_new: bool = False
    ) -> None:
        """Replace the schema history of a dataset, oldest version first."""
        if not is_new:
            self._connection.execute(_DELETE_VERSIONS, {"urn": urn})
        for version in versions:
            row = {"urn": urn, "version_of": urn, **version._asdict()}
            self._transaction.collect(tables.schema_version, row)

    def reported(self, urn: str) -> tuple[ReportedUpstream, ...]:
        """The upstream edges of a dataset by all reporters."""
        return self._transaction.lineage.reported(urn)

    def erase(self, urn: str) -> None:
        """Delete a dataset with its history; events and reported lineage stay."""
        search.remove(self._connection, [urn])
        self._transaction.annotations.flush()
        self._transaction.lineage.delete_aspect(urn)
        for statement in _DELETE_DATASET:
            self._connection.execute(statement, {"urn": urn})
        self._transaction.mark_deleted(urn)

    def former_names(self, urns: Collection[str]) -> dict[str, str]:
        """Map those given URNs that are former URNs of a dataset to its current URN."""
        return former_names(self._connection, urns)

    def events_at(self, urn: str, times: Iterable[datetime]) -> list[ChangeEvent]:
        """The events of a dataset at the given times."""
        event = tables.change_event.c
        statement = select(event.body).where(event.urn == urn, event.recorded_at.in_(list(times)))
        return [from_json(body, ChangeEvent) for body in self._connection.scalars(statement)]

    def delete_events(self, event_ids: Collection[str]) -> None:
        """Delete events, such as those of a schema history that was replaced."""
        if not event_ids:
            return
        event = tables.change_event
        self._connection.execute(delete(event).where(event.c.event_id.in_(list(event_ids))))

    def item(self, kind: str, key: str) -> bytes | None:
        """A catalog item that is not a dataset, as JSON."""
        return item_body(self._connection, kind, key)

    def put_item(self, item: StoredItem, *, at: datetime) -> None:
        """Replace a catalog item that is not a dataset."""
        self._transaction.catalog_outbox.add_item(item.kind, item.key)
        statement = replace(self._connection.dialect.name, tables.item)
        self._connection.execute(statement, {**item._asdict(), "updated_at": at})

    def erase_item(self, kind: str, key: str) -> None:
        """Delete a catalog item that is not a dataset."""
        self._transaction.catalog_outbox.add_item(kind, key)
        table = tables.item
        self._connection.execute(delete(table).where(table.c.kind == kind, table.c.key == key))


def schema_row(schema: Schema) -> dict[str, Any]:
    """The row of `tables.schema_body` for a schema."""
    body = to_json(schema)
    hash = hashlib.blake2b(body, digest_size=16).hexdigest()
    return {"hash": hash, "shape": schema.shape, "full": schema.full, "body": body}


# Built once: building a statement takes longer than running it.
_URN: BindParameter[str] = bindparam("urn")
_DATASET = select(tables.dataset).where(tables.dataset.c.urn == _URN)
_NEXT_NUMBER = (
    select(func.coalesce(func.max(tables.schema_version.c.number), 0) + 1)
    .where(tables.schema_version.c.urn == bindparam("version_of"))
    .scalar_subquery()
)
_SCHEMA_MEMORY = select(tables.schema_memory.c.body).where(tables.schema_memory.c.urn == _URN)
_DROP_ALIAS = delete(tables.alias).where(tables.alias.c.urn == _URN)
# The statements that write collected rows, referenced tables first.
_COLLECTED: Final[dict[Table, Callable[[str], Executable]]] = {
    tables.schema_body: lambda dialect: insert_missing(dialect, tables.schema_body),
    tables.dataset: lambda dialect: replace(dialect, tables.dataset, "created_at"),
    tables.aspect: lambda dialect: replace(dialect, tables.aspect),
    tables.extras: lambda dialect: replace(dialect, tables.extras),
    tables.schema_version: lambda dialect: insert_missing(
        dialect, tables.schema_version, number=_NEXT_NUMBER
    ),
    tables.alias: lambda _dialect: _DROP_ALIAS,
}
_DELETE_EXTRAS: Final = delete(tables.extras).where(tables.extras.c.urn == _URN)
_DELETE_VERSIONS: Final = delete(tables.schema_version).where(tables.schema_version.c.urn == _URN)
_TABLES_OF_DATASETS: Final = (
    tables.aspect,
    tables.annotation,
    tables.extras,
    tables.schema_version,
    tables.schema_memory,
)
_DELETE_DATASET: Final = (
    *(delete(table).where(table.c.urn == _URN) for table in _TABLES_OF_DATASETS),
    delete(tables.alias).where(tables.alias.c.dataset_urn == _URN),
    delete(tables.dataset).where(tables.dataset.c.urn == _URN),
)


def current_user() -> str:
    """The name of the current actor: by default the account that runs this process."""
    return current_actor().name
