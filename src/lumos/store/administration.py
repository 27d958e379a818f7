"""Locate, describe and upgrade the store of a configuration."""

from pathlib import Path
from typing import Final

from lumos.config import Settings
from lumos.model.report import FORMAT_VERSION, Report
from lumos.sources.addresses import normal
from lumos.store.database import HEAD, Database
from lumos.store.errors import NoStore
from lumos.store.store import Store

_FILE: Final = "lumos.db"


class StoreReport(Report, frozen=True, kw_only=True):
    """The report of `lumos db status`."""

    format_version: str = FORMAT_VERSION
    store: str
    revision: str | None
    newest_revision: str
    rows: dict[str, int]


class UpgradeReport(Report, frozen=True, kw_only=True):
    """The report of `lumos db upgrade`."""

    format_version: str = FORMAT_VERSION
    store: str
    before: str | None
    after: str


def open_database(settings: Settings) -> Database:
    """The database that `storage` configures: a SQLite file or a PostgreSQL server."""
    storage = settings.storage
    if storage.connection_string is not None:
        return Database.postgres(storage.connection_string.reveal())
    assert storage.path is not None, "every file backend has a default path"
    path = Path(storage.path)
    is_folder = storage.backend == "file" or path.is_dir()
    return Database.sqlite(path / _FILE if is_folder else path)


def state_uri_of(settings: Settings, database: Database) -> str:
    """The location of scan manifests: `state_uri`, or a folder next to the store."""
    if settings.state_uri:
        return normal(settings.state_uri, settings.sources)
    return str(sidecar_folder(settings, database, "state"))


def sidecar_folder(settings: Settings, database: Database, name: str) -> Path:
    """A folder next to the store, or next to the configuration if the store is on a server."""
    if settings.storage.backend == "postgres":
        return Path(settings.origin.folder or Path.cwd()) / ".lumos" / name
    return Path(database.location).with_suffix(f".{name}")


def upgrade_store(database: Database) -> UpgradeReport:
    """Migrate a store to the newest revision."""
    before, after = _existing(database).upgrade()
    return UpgradeReport(store=database.location, before=before, after=after)


def describe_store(database: Database) -> StoreReport:
    """The location and revision of a store and the number of rows by table."""
    revision = _existing(database).revision()
    return StoreReport(
        store=database.location,
        revision=revision,
        newest_revision=HEAD,
        rows=Store(database).counts() if revision == HEAD else {},
    )


def _existing(database: Database) -> Database:
    if database.is_empty():
        raise NoStore(database.location)
    return database
