"""`local`, the store itself as a catalog."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from lumos.engine.entries import entry_of, erase_entry, put_entry
from lumos.engine.scanning import LOCAL
from lumos.model.catalog import Entry
from lumos.model.codec import from_json, to_json
from lumos.model.dataset import ASPECTS, Dataset
from lumos.platforms import (
    Filters,
    HoldsItems,
    How,
    Item,
    MergesWrites,
    Platform,
    Searches,
    WritesInBatches,
    Written,
)
from lumos.platforms.interface import NO_FILTERS
from lumos.snapshot.document import KINDS
from lumos.store import Facets, Store, Transaction
from lumos.store.entries import StoredEntry, StoredItem

_KINDS: Final = {kind.type: kind for kind in KINDS}
_BY_WORD: Final = {kind.plural: kind for kind in KINDS}


class LocalPlatform(Platform, MergesWrites, Searches, HoldsItems, WritesInBatches):
    """The datasets of a store; it has a place for every aspect."""

    kind: ClassVar[str] = LOCAL
    native: ClassVar[frozenset[str]] = frozenset(ASPECTS)

    def __init__(
        self, settings: Store, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = settings
        self._clock = clock
        self._batch: Transaction | None = None

    def emit(self, dataset: Dataset) -> None:
        self.write(Entry.of(dataset))

    def get(self, urn: str) -> Entry | None:
        stored = self._stored(self._batch, urn)
        return None if stored is None else entry_of(stored)

    def export(self, *, after: str | None = None) -> Iterator[Entry]:
        return map(entry_of, self._store.entries.all(after=after))

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        facets = Facets(
            platform=filters.platform, owner=filters.owner, tag=filters.tag, format=filters.format
        )
        most = self._store.entries.count() if limit is None else limit
        found, _ = self._store.search(text, facets, limit=most)
        return iter(found)

    def put(self, entry: Entry) -> Written:
        with self._writing() as transaction:
            before = self._stored(transaction, entry.urn)
            changed = before is None or entry_of(before) != entry
            if changed:
                put_entry(transaction, entry, before=before, at=self._clock())
        held: dict[str, How] = {
            name: "native" for name in ASPECTS if getattr(entry, name) is not None
        }
        return Written(urn=entry.urn, changed=changed, held=held)

    def erase(self, urn: str) -> None:
        with self._writing() as transaction:
            if (stored := self._stored(transaction, urn)) is not None:
                erase_entry(transaction, stored)

    def items(self) -> Iterator[Item]:
        for stored in self._store.entries.items():
            yield from_json(stored.body, _BY_WORD[stored.kind].type)

    def get_item(self, type: type[Item], key: str) -> Item | None:
        with self._writing() as transaction:
            body = transaction.entries.item(_KINDS[type].plural, key)
        return None if body is None else from_json(body, type)

    def put_item(self, item: Item) -> None:
        stored = StoredItem(*_name(item), to_json(item))
        with self._writing() as transaction:
            transaction.entries.put_item(stored, at=self._clock())

    def erase_item(self, item: Item) -> None:
        with self._writing() as transaction:
            transaction.entries.erase_item(*_name(item))

    @contextmanager
    def batch(self) -> Iterator[None]:
        with self._writing() as transaction:
            outer, self._batch = self._batch, transaction
            try:
                yield
            finally:
                self._batch = outer

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        if self._batch is not None:
            yield self._batch
            return
        with self._store.transaction() as transaction:
            yield transaction

    def _stored(self, transaction: Transaction | None, urn: str) -> StoredEntry | None:
        if transaction is None:
            return self._store.entries.get(urn)
        return transaction.entries.get([urn]).get(urn)


def _name(item: Any) -> tuple[str, str]:
    kind = _KINDS[type(item)]
    return kind.plural, getattr(item, kind.key)
