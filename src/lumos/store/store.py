"""The store's reads, and the transaction through which everything is written."""

import hashlib
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from itertools import product
from typing import Any, Final, TypeVar

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
    or_,
    select,
    text,
    update,
)

from lumos.model.change import ChangeEvent
from lumos.model.codec import from_json, to_json
from lumos.model.dataset import Aspect, Dataset, Statistics
from lumos.model.notification import Notification
from lumos.model.schema import Schema
from lumos.model.urn import SCHEME, Urn
from lumos.store import identity, outbox, search, tables
from lumos.store.archive import SchemaArchive
from lumos.store.change_log import ChangeLog
from lumos.store.collecting import without_collecting
from lumos.store.costs import CostRecord, CostWriter, size_row
from lumos.store.database import Database
from lumos.store.directory import Directory
from lumos.store.entries import (
    ASPECT_TYPES,
    Entries,
    EntryWriter,
    datasets_of,
    known_of,
    schemas_of,
)
from lumos.store.errors import (
    AmbiguousName,
    NameTooLong,
    NoStore,
    StoreContended,
    UnknownDataset,
)
from lumos.store.journal import Journal, JournalWriter
from lumos.store.ledger import VersionLedger
from lumos.store.lineage import LineageReader, LineageWriter
from lumos.store.listening import Completer, Listener
from lumos.store.locks import lock_key
from lumos.store.records import DatasetFilter, KnownDataset, Scan, SchemaRecord, State
from lumos.store.remarks import Remarks, RemarkWriter
from lumos.store.rows import insert_if_new, replace
from lumos.store.search import Facets, Hits, Searched, SearchedSchema
from lumos.store.usage import UsageRecord, UsageWriter
from lumos.store.within import DatabaseWithin

Result = TypeVar("Result")
_ATTEMPTS: Final = 6
_PAUSE: Final = 0.05


class Store:
    """Datasets and their history in one database."""

    def __init__(self, database: Database, listeners: Sequence[Listener] = ()) -> None:
        self._database = database
        self._listeners = listeners
        self.place = database.place

    @classmethod
    def open(
        cls, database: Database, *, create: bool = False, listeners: Sequence[Listener] = ()
    ) -> "Store":
        """The store in a database; only `create` makes one where there is none."""
        if database.is_empty():
            if not create:
                raise NoStore(database.place)
            database.upgrade()
        database.check_revision()
        if create:
            database.check_writable()
        return cls(database, listeners)

    def close(self) -> None:
        self._database.engine.dispose()

    def merge_log(self) -> None:
        """Lets nothing that was taken away stay beside the store, if nobody uses it just now."""
        self._database.merge_log()

    @contextmanager
    def transaction(self) -> Iterator["Transaction"]:
        """All that is written inside becomes visible at once, or not at all."""
        with self._database.writing() as connection:
            transaction = Transaction(connection, self._database)
            yield transaction
            for listener in self._listeners:
                if isinstance(listener, Completer):
                    transaction.complete(listener)
            events = tuple(transaction.new_events)
            for event, listener in product(events, self._listeners):
                listener.within(transaction, event)
            transaction.finish()
        for event, listener in product(events, self._listeners):
            listener.after(event)

    def transact(self, action: Callable[["Transaction"], Result]) -> Result:
        """Does something in a transaction, and again where another writer got in its way.

        Only the last time counts, so that the action must leave nothing behind by itself.
        """
        for attempt in range(_ATTEMPTS):
            try:
                with self.transaction() as transaction:
                    return action(transaction)
            except StoreContended:
                # Whoever went first has to come to an end.
                time.sleep(random.uniform(0, _PAUSE * 2**attempt))
        with self.transaction() as transaction:
            return action(transaction)

    @property
    def limits_names(self) -> bool:
        """Whether there are names that the store has no room for."""
        return self._database.longest_name is not None

    def check_names(self, names: Iterable[str]) -> None:
        """Refuses a name that the store has no room for."""
        longest = self._database.longest_name
        if longest is None:
            return
        for name in names:
            size = len(name.encode("utf-8", "surrogatepass"))
            if size > longest:
                raise NameTooLong(name, size, longest)

    def keep_schemas(self, schemas: Iterable[Schema]) -> None:
        """Keeps schemas that are about to be written, where several may write at once.

        Inside of long transactions, those that bring the same schemas would wait for each other.
        """
        if not self._database.is_shared:
            return
        rows = {row["hash"]: row for row in map(_schema_row, schemas)}
        if not rows:
            return
        with self._database.writing() as connection:
            statement = insert_if_new(connection.dialect.name, tables.schema_body)
            for hash in sorted(rows):
                connection.execute(statement, rows[hash])

    @property
    def outbox(self) -> outbox.Outbox:
        """The messages about changes, sent and unsent."""
        return outbox.Outbox(self._database)

    @property
    def change_log(self) -> ChangeLog:
        """The events of all datasets."""
        return ChangeLog(self._database)

    @property
    def archive(self) -> SchemaArchive:
        """The schemas of all datasets over time."""
        return SchemaArchive(self._database)

    @property
    def entries(self) -> Entries:
        """All datasets with all that is known of them, and what is no dataset."""
        return Entries(self._database)

    @property
    def remarks(self) -> Remarks:
        """Which words about datasets are whose."""
        return Remarks(self._database)

    @property
    def usage(self) -> UsageRecord:
        """Who read what and when."""
        return UsageRecord(self._database)

    @property
    def costs(self) -> CostRecord:
        """What costs are computed from, and those on record."""
        return CostRecord(self._database)

    @property
    def journal(self) -> Journal:
        """The imports that were run, and what was there before them."""
        return Journal(self._database)

    @property
    def lineage(self) -> LineageReader:
        """How datasets hang together."""
        return LineageReader(self._database)

    @property
    def directory(self) -> Directory:
        """The names and places of all datasets."""
        return Directory(self._database)

    @property
    def ledger(self) -> VersionLedger:
        """The versions of all datasets."""
        return VersionLedger(self._database)

    def alone(self, name: str) -> AbstractContextManager[None]:
        """Holds a name, such as a source's, against all other users of the store."""
        return self._database.alone(name)

    def search(self, query: str, facets: Facets, *, limit: int) -> tuple[list[Dataset], Hits]:
        """The best datasets for a query, without schemas, and how many there are."""
        with self._database.reading() as connection:
            hits = search.find(connection, query, facets, limit=limit)
            rows = connection.execute(_DATASETS_OF, {"urns": hits.urns}).all()
            found = {row.urn: known_of(row) for row in rows}
            known = [found[urn] for urn in hits.urns]
            return datasets_of(connection, known, schemas={}), hits

    def rebuild_search(self) -> int:
        """Makes the search index anew from everything in the store; gives how much it holds."""
        with self._database.writing() as connection, without_collecting():
            return search.refill(connection, _searched(connection, None))

    def resolve(self, urn: str) -> str:
        """The URN under which a dataset is known now, following aliases."""
        with self._database.reading() as connection:
            found = connection.execute(
                select(tables.alias.c.dataset_urn).where(tables.alias.c.urn == urn)
            ).scalar()
        return urn if found is None else str(found)

    def find(self, name: str) -> str:
        """The URN meant by a URN, or by a name or an end of a path that only one dataset has."""
        if name.startswith(SCHEME):
            return self.resolve(str(Urn.parse(name.rstrip("/"))))
        table = tables.dataset.c
        ending = Urn.of("any", name.strip("/").split("/")).path_text
        with self._database.reading() as connection:
            found = tuple(
                connection.execute(
                    select(table.urn, table.name)
                    .where(
                        or_(
                            table.name == name,
                            table.urn.endswith(f"/{ending}", autoescape=True),
                            table.urn.contains(f"/{ending}?env=", autoescape=True),
                        )
                    )
                    .order_by(table.name != name, table.urn)
                    .limit(5)
                )
            )
            # Not every database heeds case; one that is called just so is meant before others.
            exact = [urn for urn, own in found if own == name or _path(urn).endswith(f"/{ending}")]
            urns = exact or [urn for urn, _ in found]
            if len(urns) == 1:
                return str(urns[0])
            if urns:
                raise AmbiguousName(name, tuple(urns))
            raise UnknownDataset(name, self._nearest(connection, name))

    def known(self, *, source: str) -> dict[str, KnownDataset]:
        """What is on record for each dataset of a source."""
        statement = select(tables.dataset).where(tables.dataset.c.source == source)
        with self._database.reading() as connection:
            return {row.urn: known_of(row) for row in connection.execute(statement)}

    def aspects(self, name: str, *, source: str | None = None) -> dict[str, Any]:
        """One aspect of each dataset, or of those of a source, as far as it is on record."""
        dataset, aspect = tables.dataset.c, tables.aspect.c
        statement = (
            select(aspect.urn, aspect.body)
            .join_from(tables.aspect, tables.dataset)
            .where(aspect.name == name)
        )
        if source is not None:
            statement = statement.where(dataset.source == source)
        with self._database.reading() as connection:
            rows = connection.execute(statement)
            return {urn: from_json(body, ASPECT_TYPES[name]) for urn, body in rows}

    def list(self, filter: DatasetFilter) -> Iterator[KnownDataset]:
        """The live datasets that the filter lets through, by URN."""
        table = tables.dataset.c
        statement = select(tables.dataset).where(table.state == "live").order_by(table.urn)
        if filter.platform:
            statement = statement.where(table.platform == filter.platform)
        if filter.format:
            statement = statement.where(table.format == filter.format)
        if filter.source:
            statement = statement.where(table.source == filter.source)
        if filter.contains:
            wanted = filter.contains.lower()
            statement = statement.where(
                or_(*(func.lower(column).contains(wanted, autoescape=True)
                      for column in (table.urn, table.name)))
            )  # fmt: skip
        if filter.limit is not None:
            statement = statement.limit(filter.limit)
        with self._database.reading() as connection:
            yield from map(known_of, connection.execute(statement))

    def get(self, urn: str) -> Dataset:
        """A dataset with all its aspects; its lineage is what anybody says of it."""
        resolved = self.resolve(urn)
        with self._database.reading() as connection:
            row = connection.execute(
                select(tables.dataset).where(tables.dataset.c.urn == resolved)
            ).one_or_none()
            if row is None:
                raise UnknownDataset(urn, self._nearest(connection, urn))
            known = known_of(row)
            schemas = schemas_of(connection, {known.schema_hash} if known.schema_hash else ())
            dataset = datasets_of(connection, [known], schemas)[0]
        return msgspec.structs.replace(dataset, lineage=self.lineage.around(resolved))

    def state(self, urn: str) -> State:
        """Whether a dataset is still there."""
        statement = select(tables.dataset.c.state).where(tables.dataset.c.urn == self.resolve(urn))
        with self._database.reading() as connection:
            found: State | None = connection.execute(statement).scalar()
        if found is None:
            raise UnknownDataset(urn)
        return found

    def history(self, urn: str) -> tuple[SchemaRecord, ...]:
        """Every schema version of a dataset, oldest first."""
        table = tables.schema_version
        statement = (
            select(table, tables.schema_body.c.body)
            .join(tables.schema_body, tables.schema_body.c.hash == table.c.schema_hash)
            .where(table.c.urn == self.resolve(urn))
            .order_by(table.c.number)
        )
        with self._database.reading() as connection:
            return tuple(
                SchemaRecord(
                    number=row.number,
                    version=row.version,
                    cloud_version=row.cloud_version,
                    event_id=row.event_id,
                    recorded_at=row.recorded_at,
                    schema=from_json(row.body, Schema),
                )
                for row in connection.execute(statement)
            )

    def events(self, urn: str) -> tuple[ChangeEvent, ...]:
        """Every recorded change of a dataset, under all its URNs, oldest first."""
        table, alias = tables.change_event.c, tables.alias.c
        resolved = self.resolve(urn)
        earlier = select(alias.urn).where(alias.dataset_urn == resolved)
        statement = (
            select(table.body)
            .where(or_(table.urn == resolved, table.urn.in_(earlier)))
            .order_by(table.sequence)
        )
        with self._database.reading() as connection:
            return tuple(from_json(body, ChangeEvent) for body in connection.scalars(statement))

    def last_scan(self, source: str) -> Scan | None:
        """The last finished scan of a source."""
        statement = select(tables.scan).where(tables.scan.c.source == source)
        with self._database.reading() as connection:
            row = connection.execute(statement).one_or_none()
        return None if row is None else Scan(**row._mapping)

    def scans(self) -> tuple[Scan, ...]:
        """The last finished scan of every source."""
        with self._database.reading() as connection:
            rows = connection.execute(select(tables.scan).order_by(tables.scan.c.source)).all()
        return tuple(Scan(**row._mapping) for row in rows)

    def counts(self) -> dict[str, int]:
        """How many rows each table holds."""
        with self._database.reading() as connection:
            return {
                name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for name, table in tables.metadata.tables.items()
            }

    @staticmethod
    def _nearest(connection: Connection, urn: str) -> tuple[str, ...]:
        name = urn.rstrip("/").rpartition("/")[2]
        statement = (
            select(tables.dataset.c.urn)
            .where(func.lower(tables.dataset.c.urn).contains(name.lower(), autoescape=True))
            .order_by(func.length(tables.dataset.c.urn))
            .limit(3)
        )
        return tuple(connection.scalars(statement)) if name else ()


class Transaction:
    """Writes that belong together; every one of them may be repeated without harm."""

    def __init__(self, connection: Connection, database: Database) -> None:
        self._connection = connection
        self._database = database
        self._touched: dict[str, None] = {}
        self._saved_schemas: set[str] = set()
        self._sizes: dict[str, dict[str, Any]] = {}
        self.new_events: list[ChangeEvent] = []
        self.lineage = LineageWriter(connection)

    @property
    def entries(self) -> EntryWriter:
        """Writes datasets whole, and what is no dataset."""
        return EntryWriter(self, self._connection)

    @property
    def remarks(self) -> RemarkWriter:
        """Reads and writes whose words are whose."""
        return RemarkWriter(self._connection)

    @property
    def usage(self) -> UsageWriter:
        """Counts who read what."""
        return UsageWriter(self._connection)

    @property
    def costs(self) -> CostWriter:
        """Keeps what jobs used, what people set, and costs by period."""
        return CostWriter(self._connection)

    @property
    def journal(self) -> JournalWriter:
        """Keeps account of an import."""
        return JournalWriter(self._connection)

    @property
    def seen(self) -> Store:
        """The store as it is with all that was written so far, for reading."""
        self.lineage.settle()
        # What others keep must not come from edges that may yet be taken back.
        kept = {} if self.lineage.changes_graph else self._database.kept
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

    def untouch(self, urn: str) -> None:
        """Forgets that a dataset was written, which is no more."""
        self._touched.pop(urn, None)

    def finish(self) -> None:
        """Brings search, lineage and the history of sizes up to date with all that was written."""
        self.lineage.finish()
        if self._sizes:
            self._execute(replace(self._dialect, tables.storage_size), list(self._sizes.values()))
        touched = list(self._touched)
        search.remove(self._connection, touched)
        search.add(self._connection, _searched(self._connection, touched))

    def schema(self, hash: str) -> Schema:
        """The schema of that content hash."""
        return _schema(self._connection, hash)

    def save_schema(self, schema: Schema) -> str:
        """Keeps a schema under the hash of its content, once."""
        row = _schema_row(schema)
        hash: str = row["hash"]
        if hash not in self._saved_schemas:
            self._insert_once(tables.schema_body, row)
            self._saved_schemas.add(hash)
        return hash

    def save(self, dataset: KnownDataset) -> None:
        """Records a dataset's identity, versions and fingerprints."""
        self._touched[dataset.urn] = None
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
        self._touched[urn] = None
        said = {"urn": urn, "writer": writer, "updated_at": at}
        rows = [{**said, "name": name, "body": to_json(each)} for name, each in aspects.items()]
        self._execute(replace(self._dialect, tables.aspect), rows)
        if isinstance(statistics := aspects.get("statistics"), Statistics):
            self._sizes[urn] = size_row(urn, statistics, at=at)
        if "lineage" in aspects:
            told: Any = aspects["lineage"]
            self.lineage.tell(urn, told, writer=writer, at=at)

    def save_event(self, event: ChangeEvent, *, is_news: bool = True) -> bool:
        """Appends a change event; the same event again changes nothing and gives False.

        Listeners do not hear of what is no news, such as the history of an imported dataset.
        """
        row = {
            "event_id": event.event_id,
            "urn": event.urn,
            "type": event.type.value,
            "breaking": event.breaking,
            "recorded_at": event.at,
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
        self._touched[to] = None
        self.save_alias(known.urn, of=to, reason="renamed", at=at)

    def absorb(self, known: KnownDataset, *, into: str, at: datetime) -> None:
        """Makes a dataset part of another, which is found under both URNs from now on."""
        self.save(msgspec.structs.replace(known, state="missing", updated_at=at))
        self.lineage.settle()
        identity.hand_over(self._connection, known.urn, into)
        self._move_usage(known.urn, into, at=at)
        self.lineage.absorb(known.urn, into)
        self._touched[into] = None
        self.save_alias(known.urn, of=into, reason="merged", at=at)

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
_DROP_ALIAS = delete(tables.alias).where(tables.alias.c.urn == _URN)
_URNS: BindParameter[Any] = bindparam("urns", expanding=True)
_DATASETS_OF = select(tables.dataset).where(tables.dataset.c.urn.in_(_URNS))


def _schema_row(schema: Schema) -> dict[str, Any]:
    body = to_json(schema)
    hash = hashlib.blake2b(body, digest_size=16).hexdigest()
    return {"hash": hash, "shape": schema.shape, "full": schema.full, "body": body}


def _schema(connection: Connection, hash: str) -> Schema:
    body = connection.execute(
        select(tables.schema_body.c.body).where(tables.schema_body.c.hash == hash)
    ).scalar_one()
    return from_json(body, Schema)


def _searched(connection: Connection, urns: Sequence[str] | None) -> Iterator[Searched]:
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
        schema = _DECODE_SEARCHED(data) if data is not None else SearchedSchema()
        more = aspects.get(urn, {})
        yield Searched(urn=urn, name=name, platform=platform, format=format, schema=schema, **more)


_DECODE_SEARCHED = msgspec.json.Decoder(SearchedSchema).decode


def _path(urn: str) -> str:
    return urn.partition("?env=")[0]
