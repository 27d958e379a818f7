"""The store: reads datasets, opens transactions, and gives access to its other parts."""

import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from itertools import product
from typing import Any, Final, TypeVar, get_args

import msgspec
from sqlalchemy import (
    BindParameter,
    Connection,
    bindparam,
    func,
    or_,
    select,
)

from lumos.model.catalog import consumer_name
from lumos.model.change import ChangeEvent
from lumos.model.dataset import Dataset
from lumos.model.dataset_pattern import name_spellings
from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.model.urn import SCHEME, Urn, name_in
from lumos.store import search, tables
from lumos.store.annotations import StoredAnnotations
from lumos.store.audit import AuditReader
from lumos.store.catalog_outbox import CatalogOutbox
from lumos.store.costs import CostReader
from lumos.store.database import Database
from lumos.store.datasets import (
    DatasetFilter,
    DatasetLocation,
    DatasetState,
    FinishedScan,
    HintReader,
    KnownDataset,
    RecordedShapes,
    SchemaRecord,
    SourceCount,
    known_dataset,
    schema_record,
    schemas_by_hash,
    unknown_dataset,
)
from lumos.store.entries import ASPECT_TYPES, EntryReader, datasets_of
from lumos.store.errors import (
    AmbiguousName,
    NameTooLong,
    StoreContended,
    UnknownDataset,
)
from lumos.store.garbage_collection import paused_gc
from lumos.store.gate_results import GateResultReader
from lumos.store.history import ChangeLog, SchemaReader
from lumos.store.jobs import JobRegistry
from lumos.store.journal import ImportJournal
from lumos.store.lineage.reader import LineageReader
from lumos.store.lineage.reported_items import reported_consumers
from lumos.store.notification_outbox import NotificationOutbox
from lumos.store.releases import ReleaseRecords
from lumos.store.search import Facets, SearchHits
from lumos.store.statements import batches, insert_if_new
from lumos.store.tokens import TokenReader
from lumos.store.transaction import Completer, Listener, Transaction, schema_row
from lumos.store.trends import TrendReader
from lumos.store.usage import UsageReader

Result = TypeVar("Result")
_ATTEMPTS: Final = 6
_FIRST_WAIT_SECONDS: Final = 0.05
_REVISION_SECONDS: Final = 1.0
# The number of candidates in the error for an ambiguous name.
_MAX_CANDIDATES: Final = 5
# Built once: building a statement takes longer than running it.
_URNS: BindParameter[Any] = bindparam("urns", expanding=True)
_NAMES_OF = select(tables.dataset.c.urn, tables.dataset.c.name)
_CURRENT_URN = select(tables.alias.c.dataset_urn).where(tables.alias.c.urn == bindparam("urn"))
_DATASET = select(tables.dataset).where(tables.dataset.c.urn == bindparam("urn"))
# The dataset with this current or former URN, in one statement.
_CURRENT_DATASET = select(tables.dataset).where(
    tables.dataset.c.urn == func.coalesce(_CURRENT_URN.scalar_subquery(), bindparam("urn"))
)
_DATASETS_OF = select(tables.dataset).where(tables.dataset.c.urn.in_(_URNS))
_FIELD_NAMES_OF = (
    select(tables.dataset.c.urn, tables.search_entry.c.fields, tables.schema_body.c.body)
    .join_from(tables.dataset, tables.search_entry)
    .join(tables.schema_body, tables.schema_body.c.hash == tables.dataset.c.schema_hash)
    .where(tables.dataset.c.urn.in_(_URNS))
)
# How long a cached figure is used: on PostgreSQL, an event may be committed after a later one.
_MAX_AGE_SECONDS: Final = 300
# Differs after every write that the figures of the entire store depend on: changes of datasets are
# events, writes of people and imports are audited, and scans and reports of lineage have times.
_REVISION = select(
    select(func.max(tables.change_event.c.sequence)).scalar_subquery(),
    select(tables.audit_head.c.sequence).scalar_subquery(),
    select(tables.lineage_revision.c.revision).scalar_subquery(),
    select(func.max(tables.lineage_reporter.c.reported_at)).scalar_subquery(),
    select(func.max(tables.scan.c.finished_at)).scalar_subquery(),
)


class _Uri(msgspec.Struct):
    """The URI of a location aspect; decoding only this is faster."""

    uri: str


_STATES: Final[dict[str, DatasetState]] = {state: state for state in get_args(DatasetState)}
_DECODE_URI: Final = msgspec.json.Decoder(_Uri).decode


class Store:
    """Datasets and their history in one database."""

    def __init__(self, database: Database, listeners: Sequence[Listener] = ()) -> None:
        self._database = database
        self._listeners = listeners
        self.schemas = SchemaReader(database)
        self.change_log = ChangeLog(database)
        self.entries = EntryReader(database)
        self.annotations = StoredAnnotations(database)
        self.hints = HintReader(database)
        self.lineage = LineageReader(database)
        self.usage = UsageReader(database)
        self.costs = CostReader(database)
        self.journal = ImportJournal(database)
        self.catalog_outbox = CatalogOutbox(database)
        self.notification_outbox = NotificationOutbox(database)
        self.jobs = JobRegistry(database)
        self.releases = ReleaseRecords(database, self.jobs)
        self.audit = AuditReader(database)
        self.tokens = TokenReader(database)
        self.gate_results = GateResultReader(database)
        self.trends = TrendReader(database)

    @classmethod
    def open(
        cls, database: Database, *, create: bool = False, listeners: Sequence[Listener] = ()
    ) -> "Store":
        """Open the store in a database; with `create`, create it if there is none."""
        if create and database.is_empty():
            database.upgrade()
        # Requests of a server open the store many times a second; scans and workers create it.
        database.check_revision(max_age=0 if create else _REVISION_SECONDS)
        if create:
            database.check_writable()
        return cls(database, listeners)

    def close(self) -> None:
        self._database.engine.dispose()

    def checkpoint(self) -> None:
        """Remove deleted data from the log files of SQLite, unless the store is in use."""
        self._database.checkpoint()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commit all writes of the block together, or none of them."""
        with self._database.writing() as connection:
            transaction = Transaction(connection, self._database)
            try:
                yield transaction
                for listener in self._listeners:
                    if isinstance(listener, Completer):
                        transaction.complete(listener)
                events = tuple(transaction.new_events)
                for event, listener in product(events, self._listeners):
                    listener.before_commit(transaction, event)
                transaction.finish()
            finally:
                transaction.close()
        transaction.on_committed()
        for event, listener in product(events, self._listeners):
            listener.after_commit(event)

    def transact(self, action: Callable[[Transaction], Result]) -> Result:
        """Run an action in a transaction, and retry it if another writer conflicts.

        The action must have no side effects outside of the transaction.
        """
        for attempt in range(_ATTEMPTS):
            try:
                with self.transaction() as transaction:
                    return action(transaction)
            except StoreContended:
                # Give the other writer time to finish.
                time.sleep(random.uniform(0, _FIRST_WAIT_SECONDS * 2**attempt))
        with self.transaction() as transaction:
            return action(transaction)

    @property
    def limits_names(self) -> bool:
        """Whether `check_names` may reject names for their length."""
        return self._database.max_name_bytes is not None

    def check_names(self, names: Iterable[str]) -> None:
        """Raise an error for a name that is too long for the store."""
        max_bytes = self._database.max_name_bytes
        if max_bytes is None:
            return
        for name in names:
            size = len(name.encode("utf-8", "surrogatepass"))
            if size > max_bytes:
                raise NameTooLong(name, size, max_bytes)

    def save_schemas(self, schemas: Iterable[Schema]) -> None:
        """Save schemas in a separate, short transaction if the database allows several writers.

        In long transactions, writers of the same schemas would wait for each other.
        """
        if not self._database.allows_concurrent_writes:
            return
        rows = {row["hash"]: row for row in map(schema_row, schemas)}
        if not rows:
            return
        with self._database.writing() as connection:
            statement = insert_if_new(connection.dialect.name, tables.schema_body)
            for hash in sorted(rows):
                connection.execute(statement, rows[hash])

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Lock a name, such as that of a source, against all other users of the store."""
        return self._database.lock(name)

    def search(self, query: str, facets: Facets, *, limit: int) -> tuple[list[Dataset], SearchHits]:
        """The best datasets for a query, without schemas, and the hits with matching fields.

        Without any hits, `hits.suggestion` may be a corrected query.
        """
        with self._database.reading() as connection:
            hits = search.find(connection, query, facets, limit=limit)
            if not hits.urns:
                suggestion = search.suggest(connection, query, facets)
                return [], msgspec.structs.replace(hits, suggestion=suggestion)
            rows = connection.execute(_DATASETS_OF, {"urns": hits.urns}).all()
            found = {row.urn: known_dataset(row) for row in rows}
            known = [found[urn] for urn in hits.urns]
            fields = self._matching_fields(connection, known, search.query_words(query))
            hits = msgspec.structs.replace(hits, fields=fields)
            return datasets_of(connection, known, schemas={}), hits

    @staticmethod
    def _matching_fields(
        connection: Connection, known: Collection[KnownDataset], query_terms: Sequence[str]
    ) -> dict[str, tuple[str, ...]]:
        rows = connection.execute(_FIELD_NAMES_OF, {"urns": [each.urn for each in known]})
        # Decoding schemas is slow, and most hits match by name only.
        matching = {
            urn: search.matching_fields(search.decode_schema(body), query_terms)
            for urn, names, body in rows
            if any(word in names for word in query_terms)
        }
        return {urn: fields for urn, fields in matching.items() if fields}

    def rebuild_search(self) -> int:
        """Rebuild the search index; return the number of datasets in it."""
        with self._database.writing() as connection, paused_gc():
            return search.rebuild(connection, search.search_documents(connection))

    def resolve(self, urn: str) -> str:
        """The current URN of a dataset, following aliases."""
        with self._database.reading() as connection:
            found = connection.execute(_CURRENT_URN, {"urn": urn}).scalar()
        return urn if found is None else str(found)

    def find(self, name: str) -> str:
        """The current URN of a dataset, given by URN or by a unique name or end of its path."""
        found = self.lookup(name)
        if found is None:
            raise self.unknown(name)
        return found

    def find_record(self, name: str) -> KnownDataset:
        """The record of a dataset, given by URN or by a unique name or end of its path."""
        if not name.startswith(SCHEME):
            return self.known_dataset(self.find(name))
        urn = str(Urn.parse(name.rstrip("/")))
        with self._database.reading() as connection:
            row = connection.execute(_CURRENT_DATASET, {"urn": urn}).one_or_none()
        if row is None:
            raise self.unknown(urn)
        return known_dataset(row)

    def lookup(self, name: str) -> str | None:
        """Like `find`, but None if no dataset has the name; a URN is returned unchecked."""
        if name.startswith(SCHEME):
            return self.resolve(str(Urn.parse(name.rstrip("/"))))
        # delta.csv.gz may be recorded as delta.csv.
        found = (self._find(spelling) for spelling in name_spellings(name))
        return next((urn for urn in found if urn is not None), None) or self._find_renamed(name)

    def _find_renamed(self, name: str) -> str | None:
        """The dataset with a former path that ends with the name, if there is exactly one."""
        alias = tables.alias.c
        end = "/" + Urn.of("any", name.strip("/").split("/")).path_text
        statement = select(alias.urn, alias.dataset_urn).where(
            or_(
                alias.urn.endswith(end, autoescape=True),
                alias.urn.contains(f"{end}.", autoescape=True),
            )
        )
        with self._database.reading() as connection:
            found = {
                dataset_urn
                for urn, dataset_urn in connection.execute(statement)
                if any(spelling.endswith(end) for spelling in name_spellings(urn))
            }
        return self.resolve(found.pop()) if len(found) == 1 else None

    def unknown(self, name: str) -> UnknownDataset:
        """The error for an unknown URN or name; it suggests similar ones."""
        with self._database.reading() as connection:
            return unknown_dataset(connection, name)

    def _find(self, name: str) -> str | None:
        table = tables.dataset.c
        end = "/" + Urn.of("any", name.strip("/").split("/")).path_text
        # `tickets` also finds tickets.jsonl: earlier versions recorded names with the extension.
        candidates = select(table.urn, table.name, table.state).where(
            or_(
                table.name == name,
                table.name.startswith(f"{name}.", autoescape=True),
                table.urn.endswith(end, autoescape=True),
                table.urn.contains(f"{end}?env=", autoescape=True),
                table.urn.contains(f"{end}.", autoescape=True),
            )
        )
        with self._database.reading() as connection:
            by_path: list[str] = []
            by_name: list[str] = []
            by_similar_name: list[str] = []
            split: list[str] = []
            for urn, recorded, state in connection.execute(candidates.order_by(table.urn)):
                names = name_spellings(recorded)
                ends = [each[-len(end) :] for each in name_spellings(urn.partition("?env=")[0])]
                is_path = end in (ends[0], ends[-1])
                if state == "split" and (is_path or name in (names[0], names[-1])):
                    # Parts of a split dataset come first; the split dataset may have the same name.
                    split.append(urn)
                elif is_path:
                    by_path.append(urn)
                elif name in (names[0], names[-1]):
                    by_name.append(urn)
                elif {name.lower(), end.lower()} & {each.lower() for each in (*names, *ends)}:
                    # Equal if some of the extensions or the case are ignored.
                    by_similar_name.append(urn)
                if len(by_path) == _MAX_CANDIDATES:
                    break
            # The folder `orders` comes before other datasets that are named `orders`.
            urns = by_path or by_name or split or by_similar_name
            if len(urns) == 1:
                return urns[0]
            if urns:
                raise AmbiguousName(name, tuple(urns[:_MAX_CANDIDATES]))
            return None

    def known_dataset(self, urn: str) -> KnownDataset:
        """The record of one dataset by its current URN."""
        known = self.find_known(urn)
        if known is None:
            raise self.unknown(urn)
        return known

    def find_known(self, urn: str) -> KnownDataset | None:
        """The record of one dataset by its current URN, if there is one."""
        with self._database.reading() as connection:
            row = connection.execute(_DATASET, {"urn": urn}).one_or_none()
        return None if row is None else known_dataset(row)

    def known(self, *, source: str) -> dict[str, KnownDataset]:
        """The records of all datasets of a source, by URN."""
        statement = select(tables.dataset).where(tables.dataset.c.source == source)
        with self._database.reading() as connection:
            return {row.urn: known_dataset(row) for row in connection.execute(statement)}

    def states(self, *, source: str) -> dict[str, DatasetState]:
        """The states of all datasets of a source, by URN."""
        table = tables.dataset.c
        statement = select(table.urn, table.state).where(table.source == source)
        with self._database.reading() as connection:
            # Share one string per state instead of a copy per dataset.
            return {urn: _STATES[state] for urn, state in connection.execute(statement)}

    def known_datasets(self, urns: Collection[str]) -> dict[str, KnownDataset]:
        """The records of the given datasets that exist, live or not, by URN."""
        with self._database.reading() as connection:
            return {
                row.urn: known_dataset(row)
                for batch in batches(urns)
                for row in connection.execute(_DATASETS_OF, {"urns": batch})
            }

    def live(self, urns: Collection[str]) -> dict[str, KnownDataset]:
        """The records of the given datasets that are live, by URN."""
        known = self.known_datasets(urns)
        return {urn: each for urn, each in known.items() if each.state == "live"}

    def names_like(self, urns: Collection[str]) -> dict[str, str]:
        """The names of the given datasets and of all others with the same names, by URN.

        Consumers of datasets are named with their kind: `dashboard Revenue`.
        """
        table = tables.dataset.c
        with self._database.reading() as connection:
            consumers = reported_consumers(connection, urns)
            names_by_urn = {urn: consumer_name(each) for urn, each in consumers.items()}
            for batch in batches(urns):
                rows = connection.execute(_NAMES_OF.where(table.urn.in_(_URNS)), {"urns": batch})
                names_by_urn |= {row.urn: row.name for row in rows}
            names = {names_by_urn.get(urn) or name_in(urn) for urn in urns}
            for batch in batches(names):
                rows = connection.execute(_NAMES_OF.where(table.name.in_(_URNS)), {"urns": batch})
                names_by_urn |= {row.urn: row.name for row in rows}
        return names_by_urn

    def recorded_shapes(self, urns: Collection[str]) -> dict[str, RecordedShapes]:
        """The recorded schemas of the given datasets that are live, by URN."""
        dataset, memory, body = tables.dataset.c, tables.schema_memory.c, tables.schema_body.c
        hash = func.coalesce(memory.schema_hash, dataset.schema_hash).label("hash")
        statement = (
            select(dataset.urn, dataset.format, hash, memory.body.label("memory"))
            .join_from(tables.dataset, tables.schema_memory, isouter=True)
            .where(dataset.urn.in_(_URNS), dataset.state == "live", hash.is_not(None))
        )
        bodies = select(body.hash, body.body).where(body.hash.in_(_URNS))
        with self._database.reading() as connection:
            rows = [
                row
                for batch in batches(urns)
                for row in connection.execute(statement, {"urns": batch})
            ]
            # Many datasets may have the same schema.
            schemas = {
                row.hash: row.body
                for batch in batches({row.hash for row in rows})
                for row in connection.execute(bodies, {"urns": batch})
            }
        return {
            row.urn: RecordedShapes(format=row.format, schema=schemas[row.hash], memory=row.memory)
            for row in rows
        }

    def aspects_of(self, name: str, urns: Collection[str]) -> dict[str, Any]:
        """One aspect of the given datasets, by URN; datasets without it are omitted."""
        aspect = tables.aspect.c
        statement = select(aspect.urn, aspect.body).where(
            aspect.name == name, aspect.urn.in_(_URNS)
        )
        with self._database.reading() as connection:
            return {
                urn: from_json(body, ASPECT_TYPES[name])
                for batch in batches(urns)
                for urn, body in connection.execute(statement, {"urns": batch})
            }

    def owners(self, urns: Collection[str]) -> dict[str, tuple[str, ...]]:
        """The names of the owners of the given datasets, by URN; others are omitted."""
        aspects = self.aspects_of("ownership", urns)
        return {
            urn: tuple(dict.fromkeys(owner.name for owner in ownership.owners))
            for urn, ownership in aspects.items()
            if ownership.owners
        }

    def aspects(self, name: str, *, source: str | None = None) -> dict[str, Any]:
        """One aspect of all datasets that have it, or of those of one source, by URN."""
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
        """The live datasets that match the filter, ordered by URN."""
        table = tables.dataset.c
        statement = select(tables.dataset).where(table.state == "live").order_by(table.urn)
        if filter.platform:
            statement = statement.where(table.platform == filter.platform)
        if filter.format:
            statement = statement.where(table.format == filter.format)
        if filter.source:
            statement = statement.where(table.source == filter.source)
        if filter.contains:
            text = filter.contains.lower()
            statement = statement.where(
                or_(*(func.lower(column).contains(text, autoescape=True)
                      for column in (table.urn, table.name)))
            )  # fmt: skip
        if filter.after is not None:
            statement = statement.where(table.urn > filter.after)
        if filter.limit is not None:
            statement = statement.limit(filter.limit)
        with self._database.reading() as connection:
            yield from map(known_dataset, connection.execute(statement))

    def dataset_locations(self) -> Iterator[DatasetLocation]:
        """The names and URIs of all datasets, live or not."""
        dataset, aspect = tables.dataset.c, tables.aspect.c
        is_location = (aspect.urn == dataset.urn) & (aspect.name == "location")
        statement = select(
            dataset.urn, dataset.name, dataset.platform, dataset.state, aspect.body
        ).select_from(tables.dataset.outerjoin(tables.aspect, is_location))
        with self._database.reading() as connection:
            for row in connection.execute(statement, execution_options={"yield_per": 1000}):
                uri = None if row.body is None else _DECODE_URI(row.body).uri
                yield DatasetLocation(row.urn, row.name, row.platform, row.state, uri)

    def get(self, urn: str) -> Dataset:
        """A dataset with all its aspects and the lineage of all reporters."""
        known = self.find_known(self.resolve(urn))
        if known is None:
            raise self.unknown(urn)
        return self.dataset_of(known)

    def dataset_of(self, known: KnownDataset) -> Dataset:
        """The dataset of a record, with all its aspects and the lineage of all reporters."""
        with self._database.reading() as connection:
            schemas = schemas_by_hash(connection, {known.schema_hash} if known.schema_hash else ())
            dataset = datasets_of(connection, [known], schemas)[0]
        return msgspec.structs.replace(dataset, lineage=self.lineage.of_dataset(known.urn))

    def get_many(self, urns: Collection[str]) -> dict[str, Dataset]:
        """The given datasets that exist, by current URN; read with few statements."""
        known = list(self.known_datasets(urns).values())
        lineage = self.lineage.of_datasets([each.urn for each in known])
        with self._database.reading() as connection:
            hashes = {each.schema_hash for each in known if each.schema_hash}
            datasets = datasets_of(connection, known, schemas_by_hash(connection, hashes))
        return {
            each.urn: msgspec.structs.replace(each, lineage=lineage.get(each.urn))
            for each in datasets
        }

    def state(self, urn: str) -> DatasetState:
        statement = select(tables.dataset.c.state).where(tables.dataset.c.urn == self.resolve(urn))
        with self._database.reading() as connection:
            found: DatasetState | None = connection.execute(statement).scalar()
        if found is None:
            raise self.unknown(urn)
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
            return tuple(map(schema_record, connection.execute(statement)))

    def events(self, urn: str) -> tuple[ChangeEvent, ...]:
        """All events of a dataset, including those under its former URNs, oldest first."""
        table, alias = tables.change_event.c, tables.alias.c
        resolved = self.resolve(urn)
        former_urns = select(alias.urn).where(alias.dataset_urn == resolved)
        statement = (
            select(table.body)
            .where(or_(table.urn == resolved, table.urn.in_(former_urns)))
            .order_by(table.sequence)
        )
        with self._database.reading() as connection:
            return tuple(from_json(body, ChangeEvent) for body in connection.scalars(statement))

    def data_platforms(self) -> tuple[str, ...]:
        """The platforms that datasets are stored on, by name."""
        column = tables.dataset.c.platform
        with self._database.reading() as connection:
            return tuple(connection.scalars(select(column).distinct().order_by(column)))

    def formats(self) -> tuple[str, ...]:
        """The formats of live datasets, by name."""
        column = tables.dataset.c.format
        known = select(column).distinct().where(column.is_not(None)).order_by(column)
        with self._database.reading() as connection:
            return tuple(connection.scalars(known.where(tables.dataset.c.state == "live")))

    def last_scan(self, source: str) -> FinishedScan | None:
        """The last finished scan of a source."""
        statement = select(tables.scan).where(tables.scan.c.source == source)
        with self._database.reading() as connection:
            row = connection.execute(statement).one_or_none()
        return None if row is None else FinishedScan(**row._mapping)

    def last_recorded_at(self, source: str) -> datetime | None:
        """When a dataset of a source was last recorded, even by a scan that did not finish."""
        statement = select(func.max(tables.dataset.c.updated_at)).where(
            tables.dataset.c.source == source
        )
        with self._database.reading() as connection:
            found: datetime | None = connection.execute(statement).scalar_one()
        return found

    def scans(self) -> tuple[FinishedScan, ...]:
        """The last finished scan of every source."""
        with self._database.reading() as connection:
            rows = connection.execute(select(tables.scan).order_by(tables.scan.c.source)).all()
        return tuple(FinishedScan(**row._mapping) for row in rows)

    def source_counts(self) -> tuple[SourceCount, ...]:
        """The live datasets of each source and platform, counted by the database."""
        dataset = tables.dataset.c
        statement = (
            select(dataset.source, dataset.platform, func.count(), func.max(dataset.updated_at))
            .where(dataset.state == "live")
            .group_by(dataset.source, dataset.platform)
            .order_by(dataset.source, dataset.platform)
        )
        with self._database.reading() as connection:
            return tuple(SourceCount(*row) for row in connection.execute(statement))

    def cached(self, name: str, compute: Callable[[], Result]) -> Result:
        """A figure of the entire store, cached until the store changes."""
        with self._database.reading() as connection:
            revision = tuple(connection.execute(_REVISION).one())
        cached: tuple[Any, float, Result] | None = self._database.cache.get(name)
        if cached is not None and cached[0] == revision and time.monotonic() < cached[1]:
            return cached[2]
        figure = compute()
        # The revision was read before: after a concurrent change, the figure is computed again.
        self._database.cache[name] = revision, time.monotonic() + _MAX_AGE_SECONDS, figure
        return figure

    def counts(self) -> dict[str, int]:
        """The number of rows by table."""
        with self._database.reading() as connection:
            return {
                name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                for name, table in tables.metadata.tables.items()
            }
