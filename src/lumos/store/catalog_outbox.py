"""The catalog outbox: changes that still have to be published to catalogs.

Entries are written in the transaction of the change. Once Lumos has published to a catalog, every
change is put into its outbox, even while another catalog is configured. Several changes of a
dataset are one entry: the publisher reads the current state of the dataset from the store.
"""

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import (
    Connection,
    ScalarSelect,
    Select,
    bindparam,
    delete,
    func,
    literal,
    select,
    text,
    true,
)
from sqlalchemy.dialects import postgresql, sqlite

from lumos.model.json_codec import from_json, to_json
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.lineage.reported_items import kind_of
from lumos.store.lineage.writer import LineageWriter
from lumos.store.statements import among, by_code_point, insert_if_new, replace

DATASETS: Final = "datasets"
_TOKEN_BITS: Final = 62


class OutboxEntry(NamedTuple):
    """A changed dataset or item; every change sets a new token."""

    key: str
    token: int


class CatalogValues(msgspec.Struct, frozen=True, kw_only=True):
    """A value in a catalog that differs from the value in the store; `path` is its field."""

    path: str
    theirs: str
    ours: str


class CatalogConflict(NamedTuple):
    """An entry with values that users of a catalog and Lumos changed differently."""

    kind: str
    key: str
    found_at: datetime
    values: tuple[CatalogValues, ...]


class CatalogOutbox:
    """Reads the changes that still have to be published to catalogs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_subscribed(self, platform: str) -> bool:
        """Whether changes are collected for a catalog."""
        return platform in self.catalogs()

    def catalogs(self) -> tuple[str, ...]:
        """The names of the catalogs that changes are collected for."""
        with self._database.reading() as connection:
            return tuple(row.platform for row in connection.execute(_CATALOGS))

    def pending(
        self, platform: str, kind: str, *, after: str | None, limit: int
    ) -> tuple[OutboxEntry, ...]:
        """A page of entries that are not published yet, ordered by key, after the key `after`."""
        with self._database.reading() as connection:
            key = by_code_point(connection, _OUTBOX.key)
            statement = (
                select(_OUTBOX.key, _OUTBOX.token)
                .where(_OUTBOX.catalog == _catalog_id(platform), _OUTBOX.kind == kind)
                .order_by(key)
                .limit(limit)
            )
            if after is not None:
                statement = statement.where(key > after)
            return tuple(OutboxEntry(*row) for row in connection.execute(statement))

    def counts(self, platform: str) -> dict[str, int]:
        """The number of entries that are not published yet, by kind."""
        in_catalog = _OUTBOX.catalog == _catalog_id(platform)
        statement = select(_OUTBOX.kind, func.count()).where(in_catalog)
        with self._database.reading() as connection:
            rows = connection.execute(statement.group_by(_OUTBOX.kind))
            return {row[0]: row[1] for row in rows}

    def conflicts(self, platform: str, *, limit: int) -> tuple[CatalogConflict, ...]:
        """The entries of a catalog with other values than those of the store, newest first."""
        statement = (
            select(_CONFLICT.kind, _CONFLICT.key, _CONFLICT.found_at, _CONFLICT.body)
            .where(_CONFLICT.catalog == _catalog_id(platform))
            .order_by(_CONFLICT.found_at.desc(), _CONFLICT.key)
            .limit(limit)
        )
        with self._database.reading() as connection:
            return tuple(
                CatalogConflict(kind, key, at, from_json(body, tuple[CatalogValues, ...]))
                for kind, key, at, body in connection.execute(statement)
            )

    def count_conflicts(self, platform: str) -> int:
        """The number of entries of a catalog with other values than those of the store."""
        in_catalog = _CONFLICT.catalog == _catalog_id(platform)
        statement = select(func.count()).select_from(tables.catalog_conflict).where(in_catalog)
        with self._database.reading() as connection:
            return int(connection.execute(statement).scalar_one())

    def conflicting_paths(
        self, platform: str, kind: str, keys: Collection[str]
    ) -> dict[str, set[str]]:
        """The paths of conflicting values by key; entries without conflicts are omitted."""
        with self._database.reading() as connection:
            statement = select(_CONFLICT.key, _CONFLICT.body).where(
                _CONFLICT.catalog == _catalog_id(platform),
                _CONFLICT.kind == kind,
                among(connection, _CONFLICT.key, keys),
            )
            return {
                key: {each.path for each in from_json(body, tuple[CatalogValues, ...])}
                for key, body in connection.execute(statement)
            }


class CatalogOutboxWriter:
    """Collects the changes of a transaction, which calls `finish` at its end to write them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._changed: set[tuple[str, str]] = set()

    def add(self, urn: str) -> None:
        """Add a dataset that was changed or deleted."""
        self._changed.add((DATASETS, urn))

    def add_item(self, kind: str, key: str) -> None:
        """Add an item that was changed or deleted and is not a dataset."""
        self._changed.add((kind, key))

    def subscribe(self, platform: str, *, at: datetime) -> None:
        """Collect all changes for a catalog from now on, starting with the whole store."""
        if self._connection.dialect.name == "postgresql":
            # A concurrent writer that does not see the new row would not add its changes.
            self._connection.execute(_LOCK_SUBSCRIPTIONS)
        statement = insert_if_new(self._connection.dialect.name, tables.catalog_subscription)
        row = {"platform": platform, "since": at}
        if self._connection.execute(statement, row).first() is not None:
            self.add_all(platform)

    def add_all(self, platform: str) -> None:
        """Add everything in the store to the outbox of a subscribed catalog."""
        token = _new_token()
        for statement in _insert_everything(self._connection.dialect.name):
            self._connection.execute(
                statement, {"catalog_id": self._id(platform), "new_token": token}
            )

    def add_downstream(self, platform: str, urns: Collection[str]) -> None:
        """Add the datasets directly downstream of datasets that are new to a catalog.

        The catalog may have ignored their edges while the upstream datasets did not exist.
        """
        if not urns:
            return
        is_upstream = among(self._connection, _UPSTREAM.c.urn, urns)
        statement = _insert_new(self._connection.dialect.name, _DOWNSTREAM_OF.where(is_upstream))
        self._connection.execute(
            statement, {"catalog_id": self._id(platform), "new_token": _new_token()}
        )

    def add_again(self, platform: str, kind: str, keys: Collection[str]) -> None:
        """Add items to the outbox of one catalog, even if they have not changed."""
        catalog, token = self._id(platform), _new_token()
        rows = [
            {"catalog": catalog, "kind": kind, "key": key, "token": token} for key in sorted(keys)
        ]
        if rows:
            statement = replace(self._connection.dialect.name, tables.catalog_outbox)
            self._connection.execute(statement, rows)

    def mark_published(self, platform: str, kind: str, entries: Iterable[OutboxEntry]) -> None:
        """Remove published entries, unless they have changed again since."""
        catalog = self._id(platform)
        rows = [
            {"catalog_id": catalog, "kind": kind, "key": key, "new_token": token}
            for key, token in sorted(entries)
        ]
        if rows:
            self._connection.execute(_DELETE, rows)

    def save_conflicts(
        self,
        platform: str,
        kind: str,
        conflicts: Mapping[str, Sequence[CatalogValues]],
        *,
        at: datetime,
    ) -> None:
        """Replace the stored conflicts of published entries; an empty sequence deletes them."""
        catalog = self._id(platform)
        known = delete(tables.catalog_conflict).where(
            _CONFLICT.catalog == catalog,
            _CONFLICT.kind == kind,
            among(self._connection, _CONFLICT.key, conflicts),
        )
        self._connection.execute(known)
        row = {"catalog": catalog, "kind": kind, "found_at": at}
        rows = [
            {**row, "key": key, "body": to_json(values)}
            for key, values in sorted(conflicts.items())
            if values
        ]
        if rows:
            self._connection.execute(tables.catalog_conflict.insert(), rows)

    def _id(self, platform: str) -> int:
        return int(self._connection.execute(select(_catalog_id(platform))).scalar_one())

    def finish(self, lineage: LineageWriter) -> None:
        """Write all changes, including lineage, to the outboxes of the subscribed catalogs."""
        if not self._changed and not lineage.has_changes:
            return
        catalogs = self._connection.execute(_CATALOGS).all()
        if not catalogs:
            return
        self._changed |= {(DATASETS, urn) for urn in lineage.changed_datasets()}
        self._changed |= {(kind_of(urn), urn) for urn in lineage.changed_items}
        token = _new_token()
        # Sorted, so that two writers cannot deadlock.
        rows = [
            {"catalog": catalog.id, "kind": kind, "key": key, "token": token}
            for catalog in catalogs
            for kind, key in sorted(self._changed)
        ]
        statement = replace(self._connection.dialect.name, tables.catalog_outbox)
        self._connection.execute(statement, rows)


def _catalog_id(platform: str) -> ScalarSelect[int]:
    table = tables.catalog_subscription.c
    return select(table.id).where(table.platform == platform).scalar_subquery()


def _new_token() -> int:
    """A random number, so that the tokens of two transactions differ."""
    return random.getrandbits(_TOKEN_BITS)


@cache
def _insert_everything(dialect: str) -> tuple[Any, ...]:
    return tuple(_insert_new(dialect, rows) for rows in _SELECT_EVERYTHING)


def _insert_new(dialect: str, rows: Select[Any]) -> Any:
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    columns = ["catalog", "kind", "key", "token"]
    return insert(tables.catalog_outbox).from_select(columns, rows).on_conflict_do_nothing()


_OUTBOX: Final = tables.catalog_outbox.c
_CONFLICT: Final = tables.catalog_conflict.c
_CATALOGS: Final = select(
    tables.catalog_subscription.c.id, tables.catalog_subscription.c.platform
).order_by(tables.catalog_subscription.c.id)
_CATALOG: Final = bindparam("catalog_id", type_=_OUTBOX.catalog.type)
_TOKEN: Final = bindparam("new_token", type_=_OUTBOX.token.type)
# SQLite needs a WHERE to distinguish ON CONFLICT from the condition of a join.
_SELECT_EVERYTHING: Final[tuple[Select[Any], ...]] = (
    select(_CATALOG, literal(DATASETS), tables.dataset.c.urn, _TOKEN).where(true()),
    select(_CATALOG, tables.item.c.kind, tables.item.c.key, _TOKEN).where(true()),
)
_UPSTREAM: Final = tables.lineage_node.alias()
_DOWNSTREAM: Final = tables.lineage_node.alias()
_DOWNSTREAM_OF: Final = (
    select(_CATALOG, literal(DATASETS), tables.dataset.c.urn, _TOKEN)
    .distinct()
    .select_from(tables.lineage_edge)
    .join(_UPSTREAM, _UPSTREAM.c.id == tables.lineage_edge.c.upstream)
    .join(_DOWNSTREAM, _DOWNSTREAM.c.id == tables.lineage_edge.c.downstream)
    .join(tables.dataset, tables.dataset.c.urn == _DOWNSTREAM.c.urn)
)
_LOCK_SUBSCRIPTIONS: Final = text("LOCK TABLE told_catalog IN ACCESS EXCLUSIVE MODE")
_DELETE: Final = delete(tables.catalog_outbox).where(
    _OUTBOX.catalog == _CATALOG,
    _OUTBOX.kind == bindparam("kind"),
    _OUTBOX.key == bindparam("key"),
    _OUTBOX.token == _TOKEN,
)
