"""Which catalogs have everything that the store has, and which are behind."""

from lumos.config.secret import redact
from lumos.model.report import FORMAT_VERSION, Report
from lumos.store import Store


class CatalogStatus(Report, frozen=True, kw_only=True):
    """A catalog that changes are published to, and what has not been published yet, by kind."""

    name: str
    in_sync: bool
    pending: dict[str, int]


class CatalogStatusReport(Report, frozen=True, kw_only=True):
    """The catalogs of a store, by name."""

    format_version: str = FORMAT_VERSION
    catalogs: tuple[CatalogStatus, ...]


def catalog_status(store: Store) -> CatalogStatusReport:
    """Count the changes that each catalog has not got yet."""
    outbox = store.catalog_outbox
    pending = {name: outbox.counts(name) for name in sorted(outbox.catalogs())}
    return CatalogStatusReport(
        catalogs=tuple(
            CatalogStatus(name=redact(name), in_sync=not any(counts.values()), pending=counts)
            for name, counts in pending.items()
        )
    )
