"""Describe and upgrade a store."""

from lumos.model.report import FORMAT_VERSION, Report
from lumos.store.database import HEAD, Database
from lumos.store.errors import NoStore
from lumos.store.store import Store


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


def upgrade_store(database: Database) -> UpgradeReport:
    """Migrate a store to the newest revision."""
    before, after = _require_existing(database).upgrade()
    return UpgradeReport(store=database.location, before=before, after=after)


def describe_store(database: Database) -> StoreReport:
    """The location and revision of a store and the number of rows by table."""
    revision = _require_existing(database).revision()
    return StoreReport(
        store=database.location,
        revision=revision,
        newest_revision=HEAD,
        rows=Store(database).counts() if revision == HEAD else {},
    )


def _require_existing(database: Database) -> Database:
    if database.is_empty():
        raise NoStore(database.location)
    return database
