"""Records of datasets, scans and dataset hints."""

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

import msgspec
from sqlalchemy import BindParameter, Connection, Row, bindparam, delete, select

from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.model.urn import SCHEME
from lumos.store import tables
from lumos.store.database import Database
from lumos.store.errors import UnknownDataset
from lumos.store.statements import batches, insert_if_new

# `missing`: its files no longer exist; `split`: it was split into other datasets.
DatasetState = Literal["live", "missing", "split"]
# The source of datasets that were imported and never scanned.
IMPORTED: Final = "import"


class KnownDataset(msgspec.Struct, frozen=True, kw_only=True):
    """The recorded identity, versions and fingerprints of a dataset."""

    urn: str
    name: str
    platform: str
    format: str | None
    source: str
    state: DatasetState
    cloud_version: str
    schema_version: str
    schema_hash: str | None
    fingerprint: str
    content: str
    created_at: datetime
    updated_at: datetime

    @property
    def absence(self) -> str:
        """Why the dataset is not live, as the predicate of a sentence about its URN."""
        if self.state == "split":
            return (
                f"was split into other datasets on {self.updated_at:%Y-%m-%d}. "
                f"See which with: lumos show {self.urn}"
            )
        return f"has been missing since {self.updated_at:%Y-%m-%d}."


class SchemaRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One schema version in a dataset's history."""

    number: int
    version: str
    cloud_version: str
    event_id: str
    recorded_at: datetime
    schema: Schema


class RecordedShapes(msgspec.Struct, frozen=True, kw_only=True):
    """The file schemas of a live dataset, as the last scan recorded them.

    `schema` is the schema that the files declare, as JSON. `memory` is the state that later scans
    need, encoded by `lumos.discovery`. If `memory` is None, `schema` is the schema of the dataset,
    which includes partition columns.
    """

    format: str | None
    schema: bytes
    memory: bytes | None


class FinishedScan(msgspec.Struct, frozen=True, kw_only=True):
    """The last finished scan of a source and its manifest."""

    source: str
    scan_id: str
    manifest: str
    finished_at: datetime


class SourceCount(NamedTuple):
    """The number of live datasets of a source on one platform, and when one last changed."""

    source: str
    platform: str
    datasets: int
    updated_at: datetime


def known_dataset(row: Row[Any]) -> KnownDataset:
    """The record of a dataset from a row of `tables.dataset`."""
    return KnownDataset(**row._mapping)


def schema_record(row: Row[Any]) -> SchemaRecord:
    """A schema version from a row of `tables.schema_version` with the `body` of its schema."""
    return SchemaRecord(
        number=row.number,
        version=row.version,
        cloud_version=row.cloud_version,
        event_id=row.event_id,
        recorded_at=row.recorded_at,
        schema=from_json(row.body, Schema),
    )


def schemas_by_hash(connection: Connection, hashes: Collection[str]) -> dict[str, Schema]:
    """Schemas by their content hashes."""
    return {
        row.hash: from_json(row.body, Schema)
        for batch in batches(hashes)
        for row in connection.execute(_SCHEMAS_OF, {"hashes": batch})
    }


_HASHES: Final[BindParameter[Any]] = bindparam("hashes", expanding=True)
_SCHEMAS_OF: Final = select(tables.schema_body.c.hash, tables.schema_body.c.body).where(
    tables.schema_body.c.hash.in_(_HASHES)
)


class DatasetFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which datasets to list."""

    platform: str | None = None
    format: str | None = None
    source: str | None = None
    contains: str | None = None
    after: str | None = None
    limit: int | None = None


class DatasetLocation(NamedTuple):
    """The URN and name of a dataset, its state, and the URI of its data."""

    urn: str
    name: str
    platform: str
    state: DatasetState
    uri: str | None


# Comparing this many names takes less than a second.
_MAX_COMPARED: Final = 20_000


def unknown_dataset(connection: Connection, name: str) -> UnknownDataset:
    """The error for an unknown URN or name; it suggests similar ones."""
    table = tables.dataset.c
    rows = connection.execute(
        select(table.urn, table.name).order_by(table.state, table.urn).limit(_MAX_COMPARED)
    ).all()
    name_counts = Counter(recorded for _, recorded in rows)
    is_urn = name.startswith(SCHEME)
    candidates = [
        urn if is_urn or name_counts[recorded] > 1 else recorded for urn, recorded in rows
    ]
    return UnknownDataset(name, candidates)


class StoredHint(msgspec.Struct, frozen=True, kw_only=True):
    """A hint on which files form a dataset, with absolute paths, author and time."""

    id: int
    paths: tuple[str, ...]
    name: str | None
    split: bool
    author: str
    added_at: datetime


class HintReader:
    def __init__(self, database: Database) -> None:
        self._database = database

    def list(self) -> list[StoredHint]:
        """All hints, oldest first."""
        with self._database.reading() as connection:
            return HintWriter(connection).list()


class HintWriter:
    """Writes dataset hints in a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> list[StoredHint]:
        """All hints, including those of this transaction, oldest first."""
        return [
            StoredHint(
                id=row.id,
                paths=msgspec.json.decode(row.paths, type=tuple[str, ...]),
                name=row.name,
                split=row.split,
                author=row.author,
                added_at=row.added_at,
            )
            for row in self._connection.execute(
                select(tables.dataset_hint).order_by(tables.dataset_hint.c.id)
            )
        ]

    def add(
        self, paths: Sequence[str], *, name: str | None, split: bool, author: str, at: datetime
    ) -> int | None:
        """Add a hint and return its id; None if the store already has the same hint."""
        text = msgspec.json.encode(paths).decode()
        digest = hashlib.blake2b(f"{text}\n{name}\n{split}".encode(), digest_size=16).hexdigest()
        row = {
            "digest": digest,
            "paths": text,
            "name": name,
            "split": split,
            "author": author,
            "added_at": at,
        }
        insert = insert_if_new(self._connection.dialect.name, tables.dataset_hint)
        id: int | None = self._connection.execute(insert, row).scalar()
        return id

    def remove(self, id: int) -> bool:
        """Remove a hint; False if no hint has that id."""
        table = tables.dataset_hint
        return self._connection.execute(delete(table).where(table.c.id == id)).rowcount > 0
