"""Stores that hold what estates hold."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from lumos import Lumos
from lumos.model.catalog import CatalogEntry
from lumos.model.json_codec import to_json
from lumos.snapshots.format.document import DATASETS, KINDS
from lumos.snapshots.store_entries import put_entry
from lumos.store import Store
from lumos.store.entries import StoredItem

AT = datetime(2024, 3, 1, tzinfo=UTC)


def fill(lumos: Lumos, contents: dict[str, Any]) -> Store:
    """Writes the arguments of a snapshot into a store, as if it had always held them."""
    store = Store.open(lumos.database, create=True)
    with store.transaction() as transaction:
        for kind in KINDS:
            for value in contents.get(kind.plural, ()):
                if kind is DATASETS:
                    _put(transaction, [value])
                else:
                    item = StoredItem(kind.plural, getattr(value, kind.key), to_json(value))
                    transaction.entries.put_item(item, at=AT)
    return store


def write(store: Store, *entries: CatalogEntry) -> None:
    """Makes some datasets exactly these."""
    with store.transaction() as transaction:
        _put(transaction, entries)


def _put(transaction: Any, entries: Iterable[CatalogEntry]) -> None:
    for entry in entries:
        before = transaction.entries.get([entry.urn]).get(entry.urn)
        put_entry(transaction, entry, before=before, at=AT)
