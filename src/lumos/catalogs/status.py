"""Reports which catalogs lack changes of the store, and their conflicts with edits of users."""

from datetime import datetime
from typing import Final

from lumos.config.secret import redact
from lumos.model.report import FORMAT_VERSION, Report
from lumos.store import Store
from lumos.store.catalog_outbox import CatalogValues

_MAX_CONFLICTS: Final = 100


class ConflictingEntry(Report, frozen=True, kw_only=True):
    """A dataset or item that users of a catalog and Lumos changed differently.

    The catalog has the values of its users until they change them, or the store has new values.
    """

    kind: str
    key: str
    found_at: datetime
    values: tuple[CatalogValues, ...]


class CatalogStatus(Report, frozen=True, kw_only=True):
    """A catalog that changes are published to.

    `pending` has the numbers of unpublished changes by kind of entry. `conflicts` are the newest of
    the `conflict_count` entries with other values than the store.
    """

    name: str
    in_sync: bool
    pending: dict[str, int]
    conflict_count: int = 0
    conflicts: tuple[ConflictingEntry, ...] = ()


class CatalogStatusReport(Report, frozen=True, kw_only=True):
    """The catalogs of a store, by name."""

    format_version: str = FORMAT_VERSION
    catalogs: tuple[CatalogStatus, ...]


def catalog_status(store: Store) -> CatalogStatusReport:
    """The numbers of changes that each catalog lacks, and its conflicts with edits of users."""
    return CatalogStatusReport(
        catalogs=tuple(_status(store, name) for name in sorted(store.catalog_outbox.catalogs()))
    )


def _status(store: Store, name: str) -> CatalogStatus:
    outbox = store.catalog_outbox
    pending = outbox.counts(name)
    return CatalogStatus(
        name=redact(name),
        in_sync=not any(pending.values()),
        pending=pending,
        conflict_count=outbox.count_conflicts(name),
        conflicts=tuple(
            ConflictingEntry(**each._asdict())
            for each in outbox.conflicts(name, limit=_MAX_CONFLICTS)
        ),
    )
