"""Which catalogs have everything that the store has, which are behind, and where they differ."""

from datetime import datetime
from typing import Final

from lumos.config.secret import redact
from lumos.model.report import FORMAT_VERSION, Report
from lumos.store import Store
from lumos.store.catalog_outbox import CatalogValues

_MAX_CONFLICTS: Final = 100


class ConflictingEntry(Report, frozen=True, kw_only=True):
    """A dataset or item that users of a catalog and Lumos changed differently.

    The catalog keeps the values of its users, until they or those of the store change.
    """

    kind: str
    key: str
    found_at: datetime
    values: tuple[CatalogValues, ...]


class CatalogStatus(Report, frozen=True, kw_only=True):
    """A catalog that changes are published to, and what has not been published yet, by kind.

    `conflicts` are the newest of the `conflict_count` entries with other values than the store.
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
    """The changes that each catalog has not got yet, and the conflicts with edits there."""
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
