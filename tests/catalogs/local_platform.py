"""The store as a catalog, which tests write to directly; imports write to it in their own way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar, Final, NamedTuple

from lumos.catalogs import (
    AspectStorage,
    CatalogItem,
    Filters,
    MergedEntry,
    MergesWrites,
    Platform,
    Searches,
    StoresItems,
    WritesInBatches,
    WrittenEntry,
)
from lumos.catalogs.configured import LOCAL
from lumos.catalogs.interface import NO_FILTERS
from lumos.catalogs.three_way_merge import merge
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import ASPECTS, Dataset
from lumos.model.json_codec import from_json, to_json
from lumos.snapshots.format.document import KINDS
from lumos.snapshots.store_entries import entry_of, erase_entry, names_in, put_entry
from lumos.store import Facets, Store, Transaction
from lumos.store.entries import StoredItem

_KIND_BY_TYPE: Final = {kind.type: kind for kind in KINDS}
_KIND_BY_PLURAL: Final = {kind.plural: kind for kind in KINDS}


class LocalStorePlatform(Platform, MergesWrites, Searches, StoresItems, WritesInBatches):
    """The store as a catalog, in which every aspect is native.

    A batch is collected first and written in the order of keys, which prevents deadlocks between
    processes.
    """

    kind: ClassVar[str] = LOCAL
    native: ClassVar[frozenset[str]] = frozenset(ASPECTS)

    def __init__(
        self, settings: Store, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = settings
        self._clock = clock
        self._batch: _Batch | None = None

    def emit(self, dataset: Dataset) -> None:
        self.write(CatalogEntry.of(dataset))

    def get(self, urn: str) -> CatalogEntry | None:
        if self._batch is not None and urn in self._batch.entries:
            return self._batch.entries[urn]
        stored = self._store.entries.get(urn)
        return None if stored is None else entry_of(stored)

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        return map(entry_of, self._store.entries.all(after=after))

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        facets = Facets(
            platform=filters.platform, owner=filters.owner, tag=filters.tag, format=filters.format
        )
        maximum = self._store.entries.count() if limit is None else limit
        found, _ = self._store.search(text, facets, limit=maximum)
        return iter(found)

    def put(self, entry: CatalogEntry) -> WrittenEntry:
        return self._change(entry.urn, partial(_replace_by, entry))

    def storage_of(self, entry: CatalogEntry) -> dict[str, AspectStorage]:
        return _storage_of(entry)

    def write(self, entry: CatalogEntry, *, base: CatalogEntry | None = None) -> WrittenEntry:
        return self._change(entry.urn, lambda theirs: merge(base, theirs, entry))

    def erase(self, urn: str) -> None:
        if self._batch is not None:
            self._batch.entries[urn] = None
            return
        self._store.transact(lambda transaction: _erase(transaction, urn))

    def items(self) -> Iterator[CatalogItem]:
        for stored in self._store.entries.items():
            yield from_json(stored.body, _KIND_BY_PLURAL[stored.kind].type)

    def get_item(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        name = _KIND_BY_TYPE[type].plural, key
        if self._batch is not None and name in self._batch.items:
            return self._batch.items[name]
        body = self._store.entries.item(*name)
        return None if body is None else from_json(body, type)

    def put_item(self, item: CatalogItem) -> None:
        self._change_item(_name(item), item)

    def erase_item(self, item: CatalogItem) -> None:
        self._change_item(_name(item), None)

    @contextmanager
    def batch(self) -> Iterator[None]:
        if self._batch is not None:
            yield
            return
        batch = self._batch = _Batch({}, {})
        try:
            yield
        finally:
            self._batch = None
        self._store.save_schemas(
            entry.schema for entry in batch.entries.values() if entry and entry.schema
        )
        self._store.transact(lambda transaction: self._write_batch(transaction, batch))

    def _change(
        self, urn: str, change: Callable[[CatalogEntry | None], MergedEntry]
    ) -> WrittenEntry:
        """Apply a change to a dataset in one transaction."""

        def check_and_merge(theirs: CatalogEntry | None) -> MergedEntry:
            merged = change(theirs)
            self._store.check_names(names_in(merged.entry))
            return merged

        if self._batch is None:
            return self._store.transact(
                lambda transaction: self._change_stored(transaction, urn, check_and_merge)
            )
        before = self.get(urn)
        merged = check_and_merge(before)
        self._batch.entries[urn] = merged.entry
        return _result(before, merged)

    def _change_stored(
        self,
        transaction: Transaction,
        urn: str,
        change: Callable[[CatalogEntry | None], MergedEntry],
    ) -> WrittenEntry:
        transaction.known(urn)
        stored = transaction.entries.get([urn]).get(urn)
        before = None if stored is None else entry_of(stored)
        merged = change(before)
        written = _result(before, merged)
        if written.changed:
            put_entry(transaction, merged.entry, before=stored, at=self._clock())
        return written

    def _change_item(self, name: tuple[str, str], item: CatalogItem | None) -> None:
        self._store.check_names(name)
        if self._batch is not None:
            self._batch.items[name] = item
            return
        self._store.transact(
            lambda transaction: _put_item(transaction, name, item, at=self._clock())
        )

    def _write_batch(self, transaction: Transaction, batch: "_Batch") -> None:
        for urn in sorted(batch.entries):
            transaction.known(urn)
        for urn, entry in sorted(batch.entries.items()):
            if entry is None:
                _erase(transaction, urn)
            else:
                self._change_stored(transaction, urn, partial(_replace_by, entry))
        for name, item in sorted(batch.items.items(), key=itemgetter(0)):
            _put_item(transaction, name, item, at=self._clock())


class _Batch(NamedTuple):
    """Entries and items to write together; None deletes."""

    entries: dict[str, CatalogEntry | None]
    items: dict[tuple[str, str], CatalogItem | None]


def _replace_by(entry: CatalogEntry, _: CatalogEntry | None) -> MergedEntry:
    return MergedEntry(entry=entry)


def _result(before: CatalogEntry | None, merged: MergedEntry) -> WrittenEntry:
    entry = merged.entry
    return WrittenEntry(
        urn=entry.urn,
        changed=before != entry,
        held=_storage_of(entry),
        conflicts=merged.conflicts,
    )


def _storage_of(entry: CatalogEntry) -> dict[str, AspectStorage]:
    values = {name: getattr(entry, name) for name in CatalogEntry.__struct_fields__}
    return {
        name: "native"
        for name, value in values.items()
        if value or (name in ASPECTS and value is not None)
    }


def _erase(transaction: Transaction, urn: str) -> None:
    transaction.known(urn)
    if (stored := transaction.entries.get([urn]).get(urn)) is not None:
        erase_entry(transaction, stored)


def _put_item(
    transaction: Transaction, name: tuple[str, str], item: CatalogItem | None, *, at: datetime
) -> None:
    if item is None:
        transaction.entries.erase_item(*name)
    else:
        transaction.entries.put_item(StoredItem(*name, to_json(item)), at=at)


def _name(item: Any) -> tuple[str, str]:
    kind = _KIND_BY_TYPE[type(item)]
    return kind.plural, getattr(item, kind.key)
