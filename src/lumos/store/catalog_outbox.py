"""What changed and catalogs have not heard of yet: noted with the change itself, told later.

A catalog that was told once hears of everything from then on, whoever writes it and whichever
catalog is configured just then. Changes of one entry are one piece of news, and what is told is
what the store knows by then.
"""

import random
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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

from lumos.store import tables
from lumos.store.database import Database
from lumos.store.lineage.rows import among
from lumos.store.rows import insert_if_new, replace

if TYPE_CHECKING:
    from lumos.store.lineage import LineageWriter

DATASETS: Final = "datasets"
_JOBS: Final = "jobs"
_TOKEN_BITS: Final = 62


class News(NamedTuple):
    """Something that changed; the token is another one once it has changed again."""

    key: str
    token: int


class CatalogOutbox:
    """The news of a store, as those see them who tell catalogs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_followed(self, platform: str) -> bool:
        """Whether a catalog was ever told."""
        return platform in self.catalogs()

    def catalogs(self) -> tuple[str, ...]:
        """The catalogs that hear of changes, by name."""
        with self._database.reading() as connection:
            return tuple(row.platform for row in connection.execute(_CATALOGS))

    def waiting(
        self, platform: str, kind: str, *, after: str | None, limit: int
    ) -> tuple[News, ...]:
        """Some of what a catalog has not heard of, by key, from the first one after a key."""
        with self._database.reading() as connection:
            # As Python compares, whatever language a server sorts by.
            collation = "C" if connection.dialect.name == "postgresql" else "BINARY"
            key = _NEWS.key.collate(collation)
            statement = (
                select(_NEWS.key, _NEWS.token)
                .where(_NEWS.catalog == _number_of(platform), _NEWS.kind == kind)
                .order_by(key)
                .limit(limit)
            )
            if after is not None:
                statement = statement.where(key > after)
            return tuple(News(*row) for row in connection.execute(statement))

    def counts(self, platform: str) -> dict[str, int]:
        """How much a catalog has not heard of, by kind."""
        of_it = _NEWS.catalog == _number_of(platform)
        statement = select(_NEWS.kind, func.count()).where(of_it)
        with self._database.reading() as connection:
            rows = connection.execute(statement.group_by(_NEWS.kind))
            return {row[0]: row[1] for row in rows}


class CatalogOutboxWriter:
    """Notes news in a transaction, which ends it with `finish`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._changed: set[tuple[str, str]] = set()

    def note(self, urn: str) -> None:
        """Notes that something of a dataset changed, or that it is no more."""
        self._changed.add((DATASETS, urn))

    def note_item(self, kind: str, key: str) -> None:
        """Notes that something changed which is no dataset."""
        self._changed.add((kind, key))

    def follow(self, platform: str, *, at: datetime) -> None:
        """Lets a catalog hear of everything from now on, and of all that is here."""
        if self._connection.dialect.name == "postgresql":
            # Whoever did not see it there and writes on would tell it nothing.
            self._connection.execute(_ALONE)
        statement = insert_if_new(self._connection.dialect.name, tables.told_catalog)
        row = {"platform": platform, "since": at}
        if self._connection.execute(statement, row).first() is not None:
            self.note_all(platform)

    def note_all(self, platform: str) -> None:
        """Lets everything in the store be news to a catalog that is followed."""
        token = _token()
        for statement in _everything(self._connection.dialect.name):
            self._connection.execute(statement, {"to": self._number(platform), "as": token})

    def note_below(self, platform: str, urns: Collection[str]) -> None:
        """Lets a catalog hear once more of what is made from datasets that are new to it.

        Edges from what is not there may mean nothing to it.
        """
        if not urns:
            return
        chosen = among(self._connection, _ABOVE.c.urn, urns)
        statement = _if_new(self._connection.dialect.name, _MADE_FROM.where(chosen))
        self._connection.execute(statement, {"to": self._number(platform), "as": _token()})

    def note_again(self, platform: str, kind: str, keys: Collection[str]) -> None:
        """Lets one catalog hear once more of some items."""
        number, token = self._number(platform), _token()
        rows = [
            {"catalog": number, "kind": kind, "key": key, "token": token} for key in sorted(keys)
        ]
        if rows:
            statement = replace(self._connection.dialect.name, tables.catalog_news)
            self._connection.execute(statement, rows)

    def told(self, platform: str, kind: str, news: Iterable[News]) -> None:
        """Takes out what a catalog heard, unless it has changed again since."""
        number = self._number(platform)
        rows = [{"to": number, "of": kind, "at": key, "as": token} for key, token in news]
        if rows:
            self._connection.execute(_TOLD, sorted(rows, key=_by_key))

    def _number(self, platform: str) -> int:
        return int(self._connection.execute(select(_number_of(platform))).scalar_one())

    def finish(self, lineage: "LineageWriter") -> None:
        """Writes the news down for every catalog that hears of them."""
        if not self._changed and not lineage.changes_any:
            return
        catalogs = self._connection.execute(_CATALOGS).all()
        if not catalogs:
            return
        for urn in lineage.changed_datasets():
            self.note(urn)
        for urn in lineage.changed_jobs:
            self.note_item(_JOBS, urn)
        token = _token()
        # In one order, so that two writers do not wait for each other in circles.
        rows = [
            {"catalog": catalog.id, "kind": kind, "key": key, "token": token}
            for catalog in catalogs
            for kind, key in sorted(self._changed)
        ]
        statement = replace(self._connection.dialect.name, tables.catalog_news)
        self._connection.execute(statement, rows)


def _number_of(platform: str) -> ScalarSelect[int]:
    table = tables.told_catalog.c
    return select(table.id).where(table.platform == platform).scalar_subquery()


def _token() -> int:
    """A number that no other transaction has."""
    return random.getrandbits(_TOKEN_BITS)


def _by_key(row: Mapping[str, Any]) -> str:
    key: str = row["at"]
    return key


@cache
def _everything(dialect: str) -> tuple[Any, ...]:
    return tuple(_if_new(dialect, found) for found in _EVERYTHING)


def _if_new(dialect: str, found: Select[Any]) -> Any:
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    columns = ["catalog", "kind", "key", "token"]
    return insert(tables.catalog_news).from_select(columns, found).on_conflict_do_nothing()


_NEWS: Final = tables.catalog_news.c
_CATALOGS: Final = select(tables.told_catalog.c.id, tables.told_catalog.c.platform).order_by(
    tables.told_catalog.c.id
)
_TO: Final = bindparam("to", type_=_NEWS.catalog.type)
_AS: Final = bindparam("as", type_=_NEWS.token.type)
# SQLite cannot tell ON CONFLICT from a join where no WHERE stands before it.
_EVERYTHING: Final[tuple[Select[Any], ...]] = (
    select(_TO, literal(DATASETS), tables.dataset.c.urn, _AS).where(true()),
    select(_TO, tables.item.c.kind, tables.item.c.key, _AS).where(true()),
)
_ABOVE: Final = tables.lineage_node.alias()
_BELOW: Final = tables.lineage_node.alias()
_MADE_FROM: Final = (
    select(_TO, literal(DATASETS), tables.dataset.c.urn, _AS)
    .distinct()
    .select_from(tables.lineage_edge)
    .join(_ABOVE, _ABOVE.c.id == tables.lineage_edge.c.upstream)
    .join(_BELOW, _BELOW.c.id == tables.lineage_edge.c.downstream)
    .join(tables.dataset, tables.dataset.c.urn == _BELOW.c.urn)
)
_ALONE: Final = text("LOCK TABLE told_catalog IN ACCESS EXCLUSIVE MODE")
_TOLD: Final = delete(tables.catalog_news).where(
    _NEWS.catalog == _TO,
    _NEWS.kind == bindparam("of"),
    _NEWS.key == bindparam("at"),
    _NEWS.token == _AS,
)
