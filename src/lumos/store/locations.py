"""Where one configuration keeps what it knows: its store, and what lies beside that."""

from pathlib import Path
from typing import Final

from lumos.config import Settings
from lumos.sources.addresses import normal
from lumos.store import Database, NoStore, Store
from lumos.store.database import HEAD
from lumos.store.reports import StoreReport, UpgradeReport

_FILE: Final = "lumos.db"


def database_of(settings: Settings) -> Database:
    """The database of the store: storage.path, or the server that storage names."""
    storage = settings.storage
    if storage.connection_string is not None:
        return Database.postgres(storage.connection_string.reveal())
    assert storage.path is not None, "every file backend has a default path"
    path = Path(storage.path)
    is_folder = storage.backend == "file" or path.is_dir()
    return Database.sqlite(path / _FILE if is_folder else path)


def state_uri_of(settings: Settings, database: Database) -> str:
    """Where manifests of scans lie: state_uri, or a folder beside the store."""
    if settings.state_uri:
        return normal(settings.state_uri, settings.sources)
    return str(folder_beside(settings, database, "state"))


def folder_beside(settings: Settings, database: Database, name: str) -> Path:
    """A folder beside the store, or beside the configuration where the store is on a server."""
    if settings.storage.backend == "postgres":
        return Path(settings.origin.folder or Path.cwd()) / ".lumos" / name
    return Path(database.place).with_suffix(f".{name}")


def upgraded(database: Database) -> UpgradeReport:
    """Migrates a store to the newest revision."""
    before, after = _existing(database).upgrade()
    if before != after:
        Store.open(database).rebuild_search()
    return UpgradeReport(store=database.place, before=before, after=after)


def status_of(database: Database) -> StoreReport:
    """Where a store lies, its revision and how much it holds."""
    revision = _existing(database).revision()
    return StoreReport(
        store=database.place,
        revision=revision,
        newest_revision=HEAD,
        rows=Store(database).counts() if revision == HEAD else {},
    )


def _existing(database: Database) -> Database:
    if database.is_empty():
        raise NoStore(database.place)
    return database
