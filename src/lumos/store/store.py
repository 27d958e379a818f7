"""The store: what it tells, and how something is written to it."""

import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import product
from typing import Any, Final, TypeVar

import msgspec
from sqlalchemy import (
    BindParameter,
    Connection,
    bindparam,
    func,
    or_,
    select,
)

from lumos.model.change import ChangeEvent
from lumos.model.dataset import Dataset
from lumos.model.dataset_pattern import name_spellings
from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.model.urn import SCHEME, Urn, name_in
from lumos.store import notification_outbox as outbox
from lumos.store import search, tables
from lumos.store.annotations import StoredAnnotations
from lumos.store.archive import SchemaArchive
from lumos.store.catalog_outbox import CatalogOutbox
from lumos.store.change_log import ChangeLog
from lumos.store.collecting import without_collecting
from lumos.store.costs import CostRecord
from lumos.store.database import Database
from lumos.store.directory import Directory
from lumos.store.entries import (
    ASPECT_TYPES,
    Entries,
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
from lumos.store.hints import StoredHints
from lumos.store.journal import Journal
from lumos.store.ledger import VersionLedger
from lumos.store.lineage import LineageReader
from lumos.store.listening import Completer, Listener
from lumos.store.names import unknown_dataset
from lumos.store.records import (
    DatasetFilter,
    KnownDataset,
    RecordedShapes,
    Scan,
    SchemaRecord,
    State,
)
from lumos.store.rows import insert_if_new, portions
from lumos.store.search import Facets, Hits
from lumos.store.transaction import Transaction, schema_row, searched
from lumos.store.usage import UsageRecord

Result = TypeVar("Result")
_ATTEMPTS: Final = 6
_PAUSE: Final = 0.05
# How many candidates an error for an ambiguous name lists.
_MOST_NAMED: Final = 5
# Made once: making a statement takes longer than running it.
_URNS: BindParameter[Any] = bindparam("urns", expanding=True)
_NAMES_OF = select(tables.dataset.c.urn, tables.dataset.c.name)
_DATASETS_OF = select(tables.dataset).where(tables.dataset.c.urn.in_(_URNS))
_FIELD_NAMES_OF = (
    select(tables.dataset.c.urn, tables.search_entry.c.fields, tables.schema_body.c.body)
    .join_from(tables.dataset, tables.search_entry)
    .join(tables.schema_body, tables.schema_body.c.hash == tables.dataset.c.schema_hash)
    .where(tables.dataset.c.urn.in_(_URNS))
)


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
        rows = {row["hash"]: row for row in map(schema_row, schemas)}
        if not rows:
            return
        with self._database.writing() as connection:
            statement = insert_if_new(connection.dialect.name, tables.schema_body)
            for hash in sorted(rows):
                connection.execute(statement, rows[hash])

    @property
    def outbox(self) -> outbox.NotificationOutbox:
        """The messages about changes, sent and unsent."""
        return outbox.NotificationOutbox(self._database)

    @property
    def news(self) -> CatalogOutbox:
        """What catalogs have not heard of yet."""
        return CatalogOutbox(self._database)

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
    def annotations(self) -> StoredAnnotations:
        """The annotations of all datasets, by reporter."""
        return StoredAnnotations(self._database)

    @property
    def usage(self) -> UsageRecord:
        """Who read what and when."""
        return UsageRecord(self._database)

    @property
    def costs(self) -> CostRecord:
        """What costs are computed from, and those on record."""
        return CostRecord(self._database)

    @property
    def hints(self) -> StoredHints:
        """Hints on which files form a dataset."""
        return StoredHints(self._database)

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
        """The best datasets for a query, without schemas, how many there are, and matching fields.

        Where nothing is found, `hits.suggestion` is what may have been meant.
        """
        with self._database.reading() as connection:
            hits = search.find(connection, query, facets, limit=limit)
            if not hits.urns:
                suggestion = search.suggest(connection, query, facets)
                return [], msgspec.structs.replace(hits, suggestion=suggestion)
            rows = connection.execute(_DATASETS_OF, {"urns": hits.urns}).all()
            found = {row.urn: known_of(row) for row in rows}
            known = [found[urn] for urn in hits.urns]
            fields = self._matching_fields(connection, known, search.query_words(query))
            hits = msgspec.structs.replace(hits, fields=fields)
            return datasets_of(connection, known, schemas={}), hits

    @staticmethod
    def _matching_fields(
        connection: Connection, known: Collection[KnownDataset], wanted: Sequence[str]
    ) -> dict[str, tuple[str, ...]]:
        rows = connection.execute(_FIELD_NAMES_OF, {"urns": [each.urn for each in known]})
        # Most hits are found by their names alone, and decoding a schema takes its time.
        matching = {
            urn: search.matching_fields(search.decode_schema(body), wanted)
            for urn, names, body in rows
            if any(word in names for word in wanted)
        }
        return {urn: fields for urn, fields in matching.items() if fields}

    def rebuild_search(self) -> int:
        """Makes the search index anew from everything in the store; gives how much it holds."""
        with self._database.writing() as connection, without_collecting():
            return search.refill(connection, searched(connection, None))

    def resolve(self, urn: str) -> str:
        """The URN under which a dataset is known now, following aliases."""
        with self._database.reading() as connection:
            found = connection.execute(
                select(tables.alias.c.dataset_urn).where(tables.alias.c.urn == urn)
            ).scalar()
        return urn if found is None else str(found)

    def find(self, name: str) -> str:
        """The URN meant by a URN, or by a name or an end of a path that only one dataset has."""
        found = self.lookup(name)
        if found is None:
            raise self.unknown(name)
        return found

    def lookup(self, name: str) -> str | None:
        """The same, or None where no dataset has that name; a URN need not be a dataset's."""
        if name.startswith(SCHEME):
            return self.resolve(str(Urn.parse(name.rstrip("/"))))
        # delta.csv.gz is recorded as delta.csv.
        found = (self._find(spelling) for spelling in name_spellings(name))
        return next((urn for urn in found if urn is not None), None)

    def unknown(self, name: str) -> UnknownDataset:
        """The error that no dataset has a URN or a name, with the nearest that there are."""
        with self._database.reading() as connection:
            return unknown_dataset(connection, name)

    def _find(self, name: str) -> str | None:
        table = tables.dataset.c
        end = "/" + Urn.of("any", name.strip("/").split("/")).path_text
        # `tickets` names tickets.jsonl, whichever of the two an earlier scan recorded as its name.
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
            looser: list[str] = []
            split: list[str] = []
            for urn, recorded, state in connection.execute(candidates.order_by(table.urn)):
                names = name_spellings(recorded)
                ends = [each[-len(end) :] for each in name_spellings(urn.partition("?env=")[0])]
                is_path = end in (ends[0], ends[-1])
                if state == "split" and (is_path or name in (names[0], names[-1])):
                    # The name of a dataset that was split may belong to one of its parts now.
                    split.append(urn)
                elif is_path:
                    by_path.append(urn)
                elif name in (names[0], names[-1]):
                    by_name.append(urn)
                elif {name.lower(), end.lower()} & {each.lower() for each in (*names, *ends)}:
                    # Some of several extensions, or another case: LIKE ignores case in SQLite.
                    looser.append(urn)
                if len(by_path) == _MOST_NAMED:
                    break
            # `orders` is the folder of that name before orders_2024, which has the same name.
            urns = by_path or by_name or split or looser
            if len(urns) == 1:
                return urns[0]
            if urns:
                raise AmbiguousName(name, tuple(urns[:_MOST_NAMED]))
            return None

    def known(self, *, source: str) -> dict[str, KnownDataset]:
        """What is on record for each dataset of a source."""
        statement = select(tables.dataset).where(tables.dataset.c.source == source)
        with self._database.reading() as connection:
            return {row.urn: known_of(row) for row in connection.execute(statement)}

    def live(self, urns: Collection[str]) -> dict[str, KnownDataset]:
        """What is on record for each of some datasets, as far as they are live."""
        statement = _DATASETS_OF.where(tables.dataset.c.state == "live")
        with self._database.reading() as connection:
            return {
                row.urn: known_of(row)
                for some in portions(urns)
                for row in connection.execute(statement, {"urns": some})
            }

    def names_like(self, urns: Collection[str]) -> dict[str, str]:
        """The names of some datasets and of all others that share one of these names, by URN."""
        table = tables.dataset.c
        with self._database.reading() as connection:
            own: dict[str, str] = {}
            for some in portions(urns):
                rows = connection.execute(_NAMES_OF.where(table.urn.in_(_URNS)), {"urns": some})
                own |= {row.urn: row.name for row in rows}
            names = {own.get(urn) or name_in(urn) for urn in urns}
            for some in portions(names):
                rows = connection.execute(_NAMES_OF.where(table.name.in_(_URNS)), {"urns": some})
                own |= {row.urn: row.name for row in rows}
        return own

    def recorded_shapes(self, urns: Collection[str]) -> dict[str, RecordedShapes]:
        """What is on record about the schemas of some datasets, as far as they are live."""
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
                for some in portions(urns)
                for row in connection.execute(statement, {"urns": some})
            ]
            # Many datasets may have the same schema.
            schemas = {
                row.hash: row.body
                for some in portions({row.hash for row in rows})
                for row in connection.execute(bodies, {"urns": some})
            }
        return {
            row.urn: RecordedShapes(format=row.format, schema=schemas[row.hash], memory=row.memory)
            for row in rows
        }

    def aspects_of(self, name: str, urns: Collection[str]) -> dict[str, Any]:
        """One aspect of each of some datasets, as far as it is on record."""
        aspect = tables.aspect.c
        statement = select(aspect.urn, aspect.body).where(
            aspect.name == name, aspect.urn.in_(_URNS)
        )
        with self._database.reading() as connection:
            return {
                urn: from_json(body, ASPECT_TYPES[name])
                for some in portions(urns)
                for urn, body in connection.execute(statement, {"urns": some})
            }

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
                raise unknown_dataset(connection, urn)
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

    def data_platforms(self) -> tuple[str, ...]:
        """The platforms that datasets are stored on, by name."""
        column = tables.dataset.c.platform
        with self._database.reading() as connection:
            return tuple(connection.scalars(select(column).distinct().order_by(column)))

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
