"""Datasets with all that is known of them, read and written whole; and what is no dataset."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    bindparam,
    delete,
    func,
    select,
)

from lumos.model.change import ChangeEvent
from lumos.model.dataset import ASPECTS, Dataset, Versioning
from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.store import search, tables
from lumos.store.database import Database
from lumos.store.lineage.aspect import ReportedUpstream, reported_upstream
from lumos.store.records import IMPORTED, KnownDataset
from lumos.store.rows import replace

if TYPE_CHECKING:
    from lumos.store.transaction import Transaction


# Aspects that tables of their own hold.
_DERIVED: Final = frozenset({"schema", "versioning"})
ASPECT_TYPES: Final = {
    name: annotation
    for name, annotation in Dataset.__annotations__.items()
    if name in ASPECTS and name not in _DERIVED
}
_PAGED: Final = {"yield_per": 500}


class StoredVersion(NamedTuple):
    """One schema version and the event that began it."""

    version: str
    cloud_version: str
    recorded_at: datetime
    schema_hash: str
    schema: Schema
    event: ChangeEvent


class StoredEntry(NamedTuple):
    """All that the store has of a dataset; `beside` holds what is no aspect, by name, as JSON.

    The lineage of `dataset` is what was told of it; `reported` is what reporters say.
    """

    known: KnownDataset
    dataset: Dataset
    beside: dict[str, bytes]
    versions: tuple[StoredVersion, ...]
    reported: tuple[ReportedUpstream, ...] = ()


class NewVersion(NamedTuple):
    """A schema version to be written, and the event on record that began it."""

    version: str
    cloud_version: str
    recorded_at: datetime
    schema_hash: str
    event_id: str


class StoredItem(NamedTuple):
    """Something that is no dataset, as JSON."""

    kind: str
    key: str
    body: bytes


class Entries:
    """The entries of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, urn: str) -> StoredEntry | None:
        """A dataset by the URN that it has now."""
        with self._database.reading() as connection:
            return entries_of(connection, [urn]).get(urn)

    def some(self, urns: Collection[str]) -> dict[str, StoredEntry]:
        """Some datasets by the URNs that they have now."""
        with self._database.reading() as connection:
            return entries_of(connection, urns)

    def count(self) -> int:
        """How many datasets there are, those that are gone as well."""
        with self._database.reading() as connection:
            statement = select(func.count()).select_from(tables.dataset)
            return int(connection.execute(statement).scalar_one())

    def former_names(self, urns: Collection[str]) -> dict[str, str]:
        """Those of some URNs that datasets had before, and the URNs that these have now."""
        with self._database.reading() as connection:
            return _former_names(connection, urns)

    def item(self, kind: str, key: str) -> bytes | None:
        """Something that is no dataset, as JSON."""
        with self._database.reading() as connection:
            return _item(connection, kind, key)

    def some_items(self, kind: str, keys: Collection[str]) -> dict[str, bytes]:
        """Those of some things of one kind that are there, as JSON."""
        table = tables.item.c
        statement = select(table.key, table.body).where(table.kind == kind, table.key.in_(_URNS))
        with self._database.reading() as connection:
            rows = connection.execute(statement, {"urns": list(keys)})
            return {row.key: row.body for row in rows}

    def all(self, *, after: str | None = None) -> Iterator[StoredEntry]:
        """Every dataset by URN, also those that are gone, from the first one after a URN."""
        with self._database.reading() as connection:
            urn = _by_code_point(connection, tables.dataset.c.urn)
            statement = select(tables.dataset).order_by(urn)
            if after is not None:
                statement = statement.where(urn > after)
            for rows in connection.execute(statement, execution_options=_PAGED).partitions():
                yield from _entries(connection, [known_of(row) for row in rows])

    def items(self, kind: str | None = None) -> Iterator[StoredItem]:
        """Everything that is no dataset, or all of one kind, by kind and key."""
        table = tables.item.c
        with self._database.reading() as connection:
            key = _by_code_point(connection, table.key)
            statement = select(table.kind, table.key, table.body).order_by(table.kind, key)
            if kind is not None:
                statement = statement.where(table.kind == kind)
            for row in connection.execute(statement, execution_options=_PAGED):
                yield StoredItem(*row)


class EntryWriter:
    """Writes entries in a transaction."""

    def __init__(self, transaction: "Transaction", connection: Connection) -> None:
        self._transaction = transaction
        self._connection = connection

    def get(self, urns: Collection[str]) -> dict[str, StoredEntry]:
        """Some datasets by the URNs that they have now, as the transaction sees them."""
        found = entries_of(self._connection, urns)
        # Of those that are new, all that reporters say is asked for at once.
        self._transaction.lineage.look_up([urn for urn in urns if urn not in found])
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
        """Makes a dataset's identity and aspects exactly these; one that is None is gone."""
        self._transaction.save(known)
        had = {name: getattr(before.dataset, name) if before else None for name in ASPECT_TYPES}
        new = {name: aspects.get(name) for name in ASPECT_TYPES}
        changed = {
            name: value for name, value in new.items() if value is not None and value != had[name]
        }
        if changed:
            self._transaction.save_aspects(known.urn, changed, writer=writer, at=at)
        gone = [name for name, value in new.items() if value is None and had[name] is not None]
        if gone:
            table = tables.aspect
            self._connection.execute(
                delete(table).where(table.c.urn == known.urn, table.c.name.in_(gone))
            )
        if "lineage" in gone:
            self._transaction.lineage.forget_told(known.urn)

    def put_beside(self, urn: str, beside: Mapping[str, bytes], *, is_new: bool = False) -> None:
        """Makes what is known beside the aspects exactly this."""
        if not is_new:
            self._connection.execute(_FORGET_BESIDE, {"wanted": urn})
        if beside:
            rows = [{"urn": urn, "name": name, "body": body} for name, body in beside.items()]
            self._connection.execute(tables.beside.insert(), rows)

    def put_versions(
        self, urn: str, versions: Sequence[NewVersion], *, is_new: bool = False
    ) -> None:
        """Makes the schema history exactly this, oldest first."""
        if not is_new:
            self._connection.execute(_FORGET_VERSIONS, {"wanted": urn})
        if versions:
            rows = [
                {"urn": urn, "number": number, **version._asdict()}
                for number, version in enumerate(versions, start=1)
            ]
            self._connection.execute(tables.schema_version.insert(), rows)

    def reported(self, urn: str) -> tuple[ReportedUpstream, ...]:
        """What reporters say that a dataset is made from."""
        return self._transaction.lineage.reported(urn)

    def erase(self, urn: str) -> None:
        """Takes a dataset out with its history; events stay, and what reporters say of it."""
        search.remove(self._connection, [urn])
        self._transaction.lineage.forget_told(urn)
        for statement in (_FORGET_BESIDE, _FORGET_VERSIONS, *_ERASE):
            self._connection.execute(statement, {"wanted": urn})
        self._transaction.untouch(urn)

    def former_names(self, urns: Collection[str]) -> dict[str, str]:
        """Those of some URNs that datasets had before, and the URNs that these have now."""
        return _former_names(self._connection, urns)

    def events_at(self, urn: str, moments: Iterable[datetime]) -> list[ChangeEvent]:
        """The events of a dataset at some moments."""
        event = tables.change_event.c
        statement = select(event.body).where(event.urn == urn, event.recorded_at.in_(list(moments)))
        return [from_json(body, ChangeEvent) for body in self._connection.scalars(statement)]

    def forget_events(self, event_ids: Collection[str]) -> None:
        """Takes events out that told of a history which is no more."""
        if not event_ids:
            return
        event = tables.change_event
        self._connection.execute(delete(event).where(event.c.event_id.in_(list(event_ids))))

    def item(self, kind: str, key: str) -> bytes | None:
        """Something that is no dataset, as JSON."""
        return _item(self._connection, kind, key)

    def put_item(self, item: StoredItem, *, at: datetime) -> None:
        """Makes something that is no dataset exactly this."""
        self._transaction.news.note_item(item.kind, item.key)
        statement = replace(self._connection.dialect.name, tables.item)
        self._connection.execute(statement, {**item._asdict(), "updated_at": at})

    def erase_item(self, kind: str, key: str) -> None:
        """Takes something out that is no dataset."""
        self._transaction.news.note_item(kind, key)
        table = tables.item
        self._connection.execute(delete(table).where(table.c.kind == kind, table.c.key == key))


def _former_names(connection: Connection, urns: Collection[str]) -> dict[str, str]:
    if not urns:
        return {}
    alias = tables.alias.c
    statement = select(alias.urn, alias.dataset_urn).where(alias.urn.in_(list(urns)))
    return {row.urn: row.dataset_urn for row in connection.execute(statement)}


def _item(connection: Connection, kind: str, key: str) -> bytes | None:
    table = tables.item.c
    statement = select(table.body).where(table.kind == kind, table.key == key)
    body: bytes | None = connection.execute(statement).scalar_one_or_none()
    return body


def _by_code_point(connection: Connection, column: ColumnElement[str]) -> ColumnElement[str]:
    """The column in the order that Python has, whatever language a server sorts by."""
    return column.collate("C") if connection.dialect.name == "postgresql" else column


def known_of(row: Row[Any]) -> KnownDataset:
    """What is on record of a dataset, from its row."""
    return KnownDataset(**row._mapping)


def schemas_of(connection: Connection, hashes: Collection[str]) -> dict[str, Schema]:
    """The schemas of some content hashes."""
    if not hashes:
        return {}
    body = tables.schema_body.c
    rows = connection.execute(select(body.hash, body.body).where(body.hash.in_(hashes)))
    return {hash: from_json(data, Schema) for hash, data in rows}


def datasets_of(
    connection: Connection,
    known: Sequence[KnownDataset],
    schemas: Mapping[str, Schema],
) -> list[Dataset]:
    """Datasets with their aspects, and with those of the schemas that are theirs."""
    rows = connection.execute(_ASPECTS_OF, {"urns": [each.urn for each in known]}).all()
    aspects: dict[str, dict[str, Any]] = {}
    for row in rows:
        aspects.setdefault(row.urn, {})[row.name] = from_json(row.body, ASPECT_TYPES[row.name])
    return [
        Dataset(
            urn=each.urn,
            name=each.name,
            platform=each.platform,
            format=each.format,
            schema=schemas.get(each.schema_hash or ""),
            versioning=Versioning(
                cloud_version=each.cloud_version, schema_version=each.schema_version
            ),
            **aspects.get(each.urn, {}),
        )
        for each in known
    ]


def entries_of(connection: Connection, urns: Collection[str]) -> dict[str, StoredEntry]:
    """Some datasets by URN."""
    rows = connection.execute(_DATASETS_OF, {"urns": list(urns)})
    entries = _entries(connection, [known_of(row) for row in rows])
    return {each.known.urn: each for each in entries}


def _entries(connection: Connection, known: Sequence[KnownDataset]) -> Iterator[StoredEntry]:
    urns = {"urns": [each.urn for each in known]}
    versions = connection.execute(_VERSIONS_OF, urns).all()
    hashes = {each.schema_hash for each in known if each.schema_hash}
    schemas = schemas_of(connection, hashes | {row.schema_hash for row in versions})
    steps: dict[str, list[StoredVersion]] = {}
    for urn, version, cloud_version, recorded_at, hash, body in versions:
        event = from_json(body, ChangeEvent)
        step = StoredVersion(version, cloud_version, recorded_at, hash, schemas[hash], event)
        steps.setdefault(urn, []).append(step)
    beside: dict[str, dict[str, bytes]] = {}
    for urn, name, body in connection.execute(_BESIDE_OF, urns):
        beside.setdefault(urn, {})[name] = body
    reported = reported_upstream(connection, urns["urns"])
    datasets = datasets_of(connection, known, schemas)
    for each, dataset in zip(known, datasets, strict=True):
        yield StoredEntry(
            each,
            dataset,
            beside.get(each.urn, {}),
            tuple(steps.get(each.urn, ())),
            reported.get(each.urn, ()),
        )


# Statements are made once: making one takes longer than running it.
_URNS: Final[BindParameter[Any]] = bindparam("urns", expanding=True)
_WANTED: Final[BindParameter[str]] = bindparam("wanted")
_DATASETS_OF: Final = (
    select(tables.dataset).where(tables.dataset.c.urn.in_(_URNS)).order_by(tables.dataset.c.urn)
)
_ASPECTS_OF: Final = select(tables.aspect.c.urn, tables.aspect.c.name, tables.aspect.c.body).where(
    tables.aspect.c.urn.in_(_URNS)
)
_BESIDE_OF: Final = select(tables.beside).where(tables.beside.c.urn.in_(_URNS))
_VERSION: Final = tables.schema_version.c
_VERSIONS_OF: Final = (
    select(
        _VERSION.urn,
        _VERSION.version,
        _VERSION.cloud_version,
        _VERSION.recorded_at,
        _VERSION.schema_hash,
        tables.change_event.c.body,
    )
    .join_from(
        tables.schema_version,
        tables.change_event,
        tables.change_event.c.event_id == _VERSION.event_id,
    )
    .where(_VERSION.urn.in_(_URNS))
    .order_by(_VERSION.urn, _VERSION.number)
)
_FORGET_BESIDE: Final = delete(tables.beside).where(tables.beside.c.urn == _WANTED)
_FORGET_VERSIONS: Final = delete(tables.schema_version).where(_VERSION.urn == _WANTED)
_ERASE: Final = (
    delete(tables.schema_memory).where(tables.schema_memory.c.urn == _WANTED),
    delete(tables.aspect).where(tables.aspect.c.urn == _WANTED),
    delete(tables.alias).where(tables.alias.c.dataset_urn == _WANTED),
    delete(tables.dataset).where(tables.dataset.c.urn == _WANTED),
)


def is_scanned(stored: StoredEntry) -> bool:
    """Whether a scan has seen the dataset, rather than only an import."""
    return stored.known.source != IMPORTED
