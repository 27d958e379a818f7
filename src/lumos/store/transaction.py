"""The transaction through which everything is written."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

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
    text,
    update,
)

from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Aspect, Statistics
from lumos.model.json_codec import from_json, to_json
from lumos.model.notification import Notification
from lumos.model.schema import Schema
from lumos.store import identity, search, tables
from lumos.store import notification_outbox as outbox
from lumos.store.annotations import AnnotationRows
from lumos.store.catalog_outbox import CatalogOutboxWriter
from lumos.store.costs import CostWriter, size_row
from lumos.store.database import Database
from lumos.store.entries import (
    ASPECT_TYPES,
    EntryWriter,
    known_of,
)
from lumos.store.hints import HintWriter
from lumos.store.journal import JournalWriter
from lumos.store.lineage import LineageWriter
from lumos.store.listening import Completer
from lumos.store.locks import lock_key
from lumos.store.records import KnownDataset, Scan
from lumos.store.rows import insert_if_new, replace
from lumos.store.search import Searched, SearchedSchema
from lumos.store.usage import UsageWriter
from lumos.store.within import DatabaseWithin

if TYPE_CHECKING:
    from lumos.store.store import Store


class Transaction:
    """Writes that belong together; every one of them may be repeated without harm."""

    def __init__(self, connection: Connection, database: Database) -> None:
        self._connection = connection
        self._database = database
        self._touched: dict[str, None] = {}
        self._saved_schemas: set[str] = set()
        self._sizes: dict[str, dict[str, Any]] = {}
        self._memories: dict[str, dict[str, Any]] = {}
        self.new_events: list[ChangeEvent] = []
        self.lineage = LineageWriter(connection)
        self.news = CatalogOutboxWriter(connection)

    @property
    def entries(self) -> EntryWriter:
        """Writes datasets whole, and what is no dataset."""
        return EntryWriter(self, self._connection)

    @property
    def annotations(self) -> AnnotationRows:
        """Reads and writes the annotations of datasets."""
        return AnnotationRows(self._connection)

    @property
    def usage(self) -> UsageWriter:
        """Counts who read what."""
        return UsageWriter(self._connection, changed=self.news.note)

    @property
    def costs(self) -> CostWriter:
        """Keeps what jobs used, what people set, and costs by period."""
        return CostWriter(self._connection)

    @property
    def hints(self) -> HintWriter:
        """Keeps hints on which files form a dataset."""
        return HintWriter(self._connection)

    @property
    def journal(self) -> JournalWriter:
        """Keeps account of an import."""
        return JournalWriter(self._connection)

    @property
    def seen(self) -> "Store":
        """The store as it is with all that was written so far, for reading."""
        self.lineage.settle()
        # What others keep must not come from edges that may yet be taken back.
        kept = {} if self.lineage.changes_graph else self._database.kept
        from lumos.store.store import Store

        return Store(DatabaseWithin(self._database, self._connection, kept))

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What fails inside leaves the transaction as it was before, and able to go on."""
        with self._connection.begin_nested():
            yield

    def known(self, urn: str) -> KnownDataset | None:
        """What is on record, held against other writers until the transaction ends."""
        if self._connection.dialect.name == "postgresql":
            # A row that does not exist yet cannot be locked, its name can.
            self._connection.execute(_LOCK, {"key": lock_key(urn)})
        row = self._connection.execute(_DATASET, {"urn": urn}).one_or_none()
        return None if row is None else known_of(row)

    def aspect(self, urn: str, name: str) -> Any:
        """One aspect of a dataset as it was last written, or nothing."""
        table = tables.aspect.c
        statement = select(table.body).where(table.urn == urn, table.name == name)
        body = self._connection.execute(statement).scalar_one_or_none()
        return None if body is None else from_json(body, ASPECT_TYPES[name])

    def event(self, event_id: str) -> ChangeEvent | None:
        """An event on record, or nothing."""
        table = tables.change_event.c
        statement = select(table.body).where(table.event_id == event_id)
        body = self._connection.execute(statement).scalar_one_or_none()
        return None if body is None else from_json(body, ChangeEvent)

    def last_event_id(self, urn: str, type: EventType) -> str | None:
        """The id of the newest event of one type on a dataset, if there is any."""
        table = tables.change_event.c
        statement = select(table.event_id).where(table.urn == urn, table.type == type.value)
        newest = statement.order_by(table.sequence.desc()).limit(1)
        return self._connection.execute(newest).scalar_one_or_none()

    def untouch(self, urn: str) -> None:
        """Forgets that a dataset was written, which is no more."""
        self._touched.pop(urn, None)
        self.news.note(urn)

    def _touch(self, urn: str) -> None:
        self._touched[urn] = None
        self.news.note(urn)

    def finish(self) -> None:
        """Brings search, lineage and the history of sizes up to date with all that was written."""
        self.lineage.finish()
        if self._sizes:
            self._execute(replace(self._dialect, tables.storage_size), list(self._sizes.values()))
        if self._memories:
            rows = list(self._memories.values())
            self._execute(replace(self._dialect, tables.schema_memory), rows)
        touched = list(self._touched)
        search.remove(self._connection, touched)
        search.add(self._connection, searched(self._connection, touched))
        # At the very end, since many writers may have news of the same datasets.
        self.news.finish(self.lineage)

    def schema(self, hash: str) -> Schema:
        """The schema of that content hash."""
        return _schema(self._connection, hash)

    def save_schema(self, schema: Schema) -> str:
        """Keeps a schema under the hash of its content, once."""
        row = schema_row(schema)
        hash: str = row["hash"]
        if hash not in self._saved_schemas:
            self._insert_once(tables.schema_body, row)
            self._saved_schemas.add(hash)
        return hash

    def save(self, dataset: KnownDataset) -> None:
        """Records a dataset's identity, versions and fingerprints."""
        self._touch(dataset.urn)
        row = {name: getattr(dataset, name) for name in dataset.__struct_fields__}
        self._execute(replace(self._dialect, tables.dataset, "created_at"), row)

    def save_aspect(
        self, urn: str, name: str, value: Aspect | Any, *, writer: str, at: datetime
    ) -> None:
        """Replaces one aspect of a dataset and leaves the others alone."""
        self.save_aspects(urn, {name: value}, writer=writer, at=at)

    def save_aspects(
        self, urn: str, aspects: Mapping[str, Aspect | Any], *, writer: str, at: datetime
    ) -> None:
        """Replaces some aspects of a dataset at once and leaves the others alone."""
        for name in aspects:
            if name not in ASPECT_TYPES:
                raise ValueError(f"'{name}' is not an aspect that is stored as one")
        self._touch(urn)
        said = {"urn": urn, "writer": writer, "updated_at": at}
        rows = [{**said, "name": name, "body": to_json(each)} for name, each in aspects.items()]
        self._execute(replace(self._dialect, tables.aspect), rows)
        if isinstance(statistics := aspects.get("statistics"), Statistics):
            self._sizes[urn] = size_row(urn, statistics, at=at)
        if "lineage" in aspects:
            told: Any = aspects["lineage"]
            self.lineage.tell(urn, told, writer=writer, at=at)

    def save_event(
        self, event: ChangeEvent, *, is_news: bool = True, recorded_at: datetime | None = None
    ) -> bool:
        """Appends a change event; the same event again changes nothing and gives False.

        Listeners do not hear of what is no news, such as the history of an imported dataset. In
        the order of all events it stands at its own time, or at another one: whoever asks for
        what is new since a time must meet what was only found out later.
        """
        row = {
            "event_id": event.event_id,
            "urn": event.urn,
            "type": event.type.value,
            "breaking": event.breaking,
            "recorded_at": recorded_at or event.at,
            "body": to_json(event),
        }
        is_new = self._insert_once(tables.change_event, row)
        if is_new and is_news:
            self.new_events.append(event)
        return is_new

    def complete(self, completer: Completer) -> None:
        """Lets somebody add to the new events; what it gives is what is on record of them."""
        before, event = self.new_events, tables.change_event.c
        if not before:
            return
        self.new_events = list(completer.completed(self, before))
        rows = [
            {"completed": new.event_id, "body": to_json(new)}
            for old, new in zip(before, self.new_events, strict=True)
            if new is not old
        ]
        if rows:
            completed = event.event_id == bindparam("completed")
            self._execute(update(tables.change_event).where(completed), rows)

    def post(self, notification: Notification, *, at: datetime) -> bool:
        """Puts a message into the outbox; False where its channel is told of the event already."""
        return outbox.post(self._connection, notification, at=at)

    def save_schema_version(self, dataset: KnownDataset, event: ChangeEvent) -> None:
        """Appends the dataset's present schema to its history."""
        last = self._connection.execute(_LAST_NUMBER, {"urn": dataset.urn}).scalar_one()
        row = {
            "urn": dataset.urn,
            "number": last + 1,
            "version": dataset.schema_version,
            "cloud_version": dataset.cloud_version,
            "schema_hash": dataset.schema_hash,
            "event_id": event.event_id,
            "recorded_at": event.at,
        }
        self._insert_once(tables.schema_version, row)

    def schema_memory(self, urn: str) -> bytes | None:
        """What scans remember of a dataset's schemas, in the encoding of the pipeline."""
        return self._connection.execute(_SCHEMA_MEMORY, {"urn": urn}).scalar_one_or_none()

    def save_schema_memory(self, urn: str, body: bytes, schema: Schema) -> None:
        """Replaces what scans remember of a dataset's schemas, once the transaction ends."""
        hash = self.save_schema(schema)
        self._memories[urn] = {"urn": urn, "schema_hash": hash, "body": body}

    def save_alias(self, urn: str, *, of: str, reason: str, at: datetime) -> None:
        """Lets a dataset be found under an earlier URN; older aliases follow along."""
        table = tables.alias
        # What was renamed into a dataset that is merged now is merged as well.
        follow = {"dataset_urn": of} | ({"reason": reason} if reason == "merged" else {})
        self._connection.execute(update(table).where(table.c.dataset_urn == urn).values(follow))
        row = {"urn": urn, "dataset_urn": of, "reason": reason, "created_at": at}
        self._execute(replace(self._dialect, table), row)

    def rename(self, known: KnownDataset, *, to: str, name: str, at: datetime) -> None:
        """Gives a dataset another URN, with its history and all that is known of it."""
        renamed = msgspec.structs.replace(known, urn=to, name=name)
        row = {field: getattr(renamed, field) for field in renamed.__struct_fields__}
        self.lineage.settle()
        identity.move(self._connection, known.urn, row)
        self._move_usage(known.urn, to, at=at)
        self.lineage.rename(known.urn, to)
        self.news.note(known.urn)
        self._touch(to)
        self.save_alias(known.urn, of=to, reason="renamed", at=at)

    def absorb(self, known: KnownDataset, *, into: str, at: datetime) -> None:
        """Makes a dataset part of another, which is found under both URNs from now on."""
        self.save(msgspec.structs.replace(known, state="missing", updated_at=at))
        self.lineage.settle()
        identity.hand_over(self._connection, known.urn, into)
        self._move_usage(known.urn, into, at=at)
        self.lineage.absorb(known.urn, into)
        self._touch(into)
        self.save_alias(known.urn, of=into, reason="merged", at=at)

    def retire(self, known: KnownDataset, *, at: datetime) -> None:
        """Takes a dataset that was split out of the live ones; its history and edges stay."""
        self.save(msgspec.structs.replace(known, state="split", updated_at=at))

    def _move_usage(self, urn: str, into: str, *, at: datetime) -> None:
        usage = self.usage
        if usage.move(urn, into):
            usage.derive([into], at=at)

    def drop_alias(self, urn: str) -> None:
        """Lets a URN mean a dataset of its own again."""
        self._connection.execute(_DROP_ALIAS, {"urn": urn})

    def save_scan(self, scan: Scan) -> None:
        """Makes a scan's manifest the current one of its source."""
        row = {name: getattr(scan, name) for name in scan.__struct_fields__}
        self._execute(replace(self._dialect, tables.scan), row)

    def audit(
        self, action: str, target: str, *, actor: str, origin: str, at: datetime, details: str = ""
    ) -> None:
        """Records who did what from where."""
        self._connection.execute(
            tables.audit.insert().values(
                recorded_at=at,
                actor=actor,
                origin=origin,
                action=action,
                target=target,
                details=details,
            )
        )

    @property
    def _dialect(self) -> str:
        return self._connection.dialect.name

    def _insert_once(self, table: Table, row: dict[str, Any]) -> bool:
        return self._execute(insert_if_new(self._dialect, table), row).first() is not None

    def _execute(
        self, statement: Executable, rows: dict[str, Any] | list[dict[str, Any]]
    ) -> CursorResult[Any]:
        return self._connection.execute(statement, rows)


# Statements are made once: making one takes longer than running it.
_URN: BindParameter[str] = bindparam("urn")
_LOCK = text("SELECT pg_advisory_xact_lock(:key)")
_DATASET = select(tables.dataset).where(tables.dataset.c.urn == _URN)
_LAST_NUMBER = select(func.coalesce(func.max(tables.schema_version.c.number), 0)).where(
    tables.schema_version.c.urn == _URN
)
_SCHEMA_MEMORY = select(tables.schema_memory.c.body).where(tables.schema_memory.c.urn == _URN)
_DROP_ALIAS = delete(tables.alias).where(tables.alias.c.urn == _URN)


def schema_row(schema: Schema) -> dict[str, Any]:
    body = to_json(schema)
    hash = hashlib.blake2b(body, digest_size=16).hexdigest()
    return {"hash": hash, "shape": schema.shape, "full": schema.full, "body": body}


def _schema(connection: Connection, hash: str) -> Schema:
    body = connection.execute(
        select(tables.schema_body.c.body).where(tables.schema_body.c.hash == hash)
    ).scalar_one()
    return from_json(body, Schema)


def searched(connection: Connection, urns: Sequence[str] | None) -> Iterator[Searched]:
    """As much of live datasets, of some or of all, as search sees."""
    dataset, body = tables.dataset.c, tables.schema_body.c
    datasets = (
        select(dataset.urn, dataset.name, dataset.platform, dataset.format, body.body)
        .join_from(tables.dataset, tables.schema_body, isouter=True)
        .where(dataset.state == "live")
    )
    aspect = tables.aspect.c
    written = select(aspect.urn, aspect.name, aspect.body).where(aspect.name.in_(search.ASPECTS))
    if urns is not None:
        datasets = datasets.where(dataset.urn.in_(urns))
        written = written.where(aspect.urn.in_(urns))
    aspects: dict[str, dict[str, Any]] = {}
    for urn, name, data in connection.execute(written):
        aspects.setdefault(urn, {})[name] = from_json(data, ASPECT_TYPES[name])
    for urn, name, platform, format, data in connection.execute(datasets).all():
        schema = search.decode_schema(data) if data is not None else SearchedSchema()
        more = aspects.get(urn, {})
        yield Searched(urn=urn, name=name, platform=platform, format=format, schema=schema, **more)
