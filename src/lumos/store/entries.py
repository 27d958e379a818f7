"""Complete datasets (with extras and schema history) and other items, for import and export."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BindParameter,
    Connection,
    bindparam,
    func,
    select,
)

from lumos.model.change import ChangeEvent
from lumos.model.dataset import ASPECTS, Dataset, Versioning
from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.datasets import IMPORTED, KnownDataset, known_dataset, schemas_by_hash
from lumos.store.lineage.edges import ReportedUpstream, reported_upstream
from lumos.store.statements import by_code_point

# Aspects that are not rows of `tables.aspect`: they have tables of their own.
_STORED_ELSEWHERE: Final = frozenset({"schema", "versioning"})
ASPECT_TYPES: Final = {
    name: annotation
    for name, annotation in Dataset.__annotations__.items()
    if name in ASPECTS and name not in _STORED_ELSEWHERE
}
_PAGED: Final = {"yield_per": 500}


class StoredVersion(NamedTuple):
    """A schema version and the event that created it."""

    version: str
    cloud_version: str
    recorded_at: datetime
    schema_hash: str
    schema: Schema
    event: ChangeEvent


class StoredEntry(NamedTuple):
    """A complete dataset: aspects, schema history and extras (fields without an aspect, as JSON).

    `dataset.lineage` is the lineage aspect; `reported` are the upstream edges by all reporters.
    """

    known: KnownDataset
    dataset: Dataset
    extras: dict[str, bytes]
    versions: tuple[StoredVersion, ...]
    reported: tuple[ReportedUpstream, ...] = ()


class NewVersion(NamedTuple):
    """A schema version to write, and the recorded event that created it."""

    version: str
    cloud_version: str
    recorded_at: datetime
    schema_hash: str
    event_id: str


class StoredItem(NamedTuple):
    """A catalog item that is not a dataset, such as a term or a user; the body is JSON."""

    kind: str
    key: str
    body: bytes


class EntryReader:
    """Reads complete datasets and other catalog items."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, urn: str) -> StoredEntry | None:
        """A dataset by its current URN."""
        with self._database.reading() as connection:
            return entries_of(connection, [urn]).get(urn)

    def get_many(self, urns: Collection[str]) -> dict[str, StoredEntry]:
        """The given datasets that exist, by current URN."""
        with self._database.reading() as connection:
            return entries_of(connection, urns)

    def count(self) -> int:
        """The number of datasets, live or not."""
        with self._database.reading() as connection:
            statement = select(func.count()).select_from(tables.dataset)
            return int(connection.execute(statement).scalar_one())

    def former_names(self, urns: Collection[str]) -> dict[str, str]:
        """Map those given URNs that are former URNs of a dataset to its current URN."""
        with self._database.reading() as connection:
            return former_names(connection, urns)

    def item(self, kind: str, key: str) -> bytes | None:
        """A catalog item that is not a dataset, as JSON."""
        with self._database.reading() as connection:
            return item_body(connection, kind, key)

    def get_items(self, kind: str, keys: Collection[str]) -> dict[str, bytes]:
        """The given items of one kind that exist, as JSON by key."""
        table = tables.item.c
        statement = select(table.key, table.body).where(table.kind == kind, table.key.in_(_URNS))
        with self._database.reading() as connection:
            rows = connection.execute(statement, {"urns": list(keys)})
            return {row.key: row.body for row in rows}

    def all(self, *, after: str | None = None) -> Iterator[StoredEntry]:
        """All datasets, live or not, ordered by URN and starting after the URN `after`."""
        with self._database.reading() as connection:
            urn = by_code_point(connection, tables.dataset.c.urn)
            statement = select(tables.dataset).order_by(urn)
            if after is not None:
                statement = statement.where(urn > after)
            for rows in connection.execute(statement, execution_options=_PAGED).partitions():
                yield from _entries(connection, [known_dataset(row) for row in rows])

    def items(self, kind: str | None = None) -> Iterator[StoredItem]:
        """All catalog items that are not datasets, or those of one kind, by kind and key."""
        table = tables.item.c
        with self._database.reading() as connection:
            key = by_code_point(connection, table.key)
            statement = select(table.kind, table.key, table.body).order_by(table.kind, key)
            if kind is not None:
                statement = statement.where(table.kind == kind)
            for row in connection.execute(statement, execution_options=_PAGED):
                yield StoredItem(*row)


def former_names(connection: Connection, urns: Collection[str]) -> dict[str, str]:
    """Map those given URNs that are former URNs of a dataset to its current URN."""
    if not urns:
        return {}
    alias = tables.alias.c
    statement = select(alias.urn, alias.dataset_urn).where(alias.urn.in_(list(urns)))
    return {row.urn: row.dataset_urn for row in connection.execute(statement)}


def item_body(connection: Connection, kind: str, key: str) -> bytes | None:
    """A catalog item that is not a dataset, as JSON."""
    table = tables.item.c
    statement = select(table.body).where(table.kind == kind, table.key == key)
    body: bytes | None = connection.execute(statement).scalar_one_or_none()
    return body


def datasets_of(
    connection: Connection,
    known: Sequence[KnownDataset],
    schemas: Mapping[str, Schema],
) -> list[Dataset]:
    """Read datasets with their aspects; schemas are taken from `schemas` (by hash), if present."""
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
    """Read complete datasets, by URN."""
    rows = connection.execute(_DATASETS_OF, {"urns": list(urns)})
    entries = _entries(connection, [known_dataset(row) for row in rows])
    return {each.known.urn: each for each in entries}


def _entries(connection: Connection, known: Sequence[KnownDataset]) -> Iterator[StoredEntry]:
    urns = {"urns": [each.urn for each in known]}
    versions = connection.execute(_VERSIONS_OF, urns).all()
    hashes = {each.schema_hash for each in known if each.schema_hash}
    schemas = schemas_by_hash(connection, hashes | {row.schema_hash for row in versions})
    versions_by_urn: dict[str, list[StoredVersion]] = {}
    for urn, version, cloud_version, recorded_at, hash, body in versions:
        event = from_json(body, ChangeEvent)
        versions_by_urn.setdefault(urn, []).append(
            StoredVersion(version, cloud_version, recorded_at, hash, schemas[hash], event)
        )
    extras: dict[str, dict[str, bytes]] = {}
    for urn, name, body in connection.execute(_EXTRAS_OF, urns):
        extras.setdefault(urn, {})[name] = body
    reported = reported_upstream(connection, urns["urns"])
    datasets = datasets_of(connection, known, schemas)
    for each, dataset in zip(known, datasets, strict=True):
        yield StoredEntry(
            each,
            dataset,
            extras.get(each.urn, {}),
            tuple(versions_by_urn.get(each.urn, ())),
            reported.get(each.urn, ()),
        )


# Built once: building a statement takes longer than running it.
_URNS: Final[BindParameter[Any]] = bindparam("urns", expanding=True)
_DATASETS_OF: Final = (
    select(tables.dataset).where(tables.dataset.c.urn.in_(_URNS)).order_by(tables.dataset.c.urn)
)
_ASPECTS_OF: Final = select(tables.aspect.c.urn, tables.aspect.c.name, tables.aspect.c.body).where(
    tables.aspect.c.urn.in_(_URNS)
)
_EXTRAS_OF: Final = select(tables.extras).where(tables.extras.c.urn.in_(_URNS))
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


def is_scanned(stored: StoredEntry) -> bool:
    """Whether a scan has found the dataset; False if it was only imported."""
    return stored.known.source != IMPORTED
