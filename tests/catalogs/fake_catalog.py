"""A catalog in memory that can be told to refuse entries, to fail, or to be slow: no real one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from lumos.catalogs import CatalogItem, FailedEntry, Platform, StoresItems, WritesMany, WrittenEntry
from lumos.errors import CatalogBusy, MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import ASPECTS, Dataset


class PretendedCatalog(Platform, WritesMany, StoresItems):
    """Takes three datasets at once; what it was given is counted."""

    kind: ClassVar[str] = "pretended"
    native: ClassVar[frozenset[str]] = frozenset(ASPECTS)
    batch_size: ClassVar[int] = 3

    def __init__(self, settings: Any = None) -> None:
        self.settings = settings
        self.entries: dict[str, CatalogEntry] = {}
        self.held: dict[tuple[type, str], CatalogItem] = {}
        self.refuses: set[str] = set()
        # How many entries it takes before it is down, if it ever is.
        self.strength: int | None = None
        self.puts: list[str] = []
        self.calls = 0
        self.asked = 0
        self.before_each: Callable[[CatalogEntry], None] = lambda _: None

    def emit(self, dataset: Dataset) -> None:
        self.put(CatalogEntry.of(dataset))

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        self._tire(0)
        return {urn: self.entries[urn] for urn in urns if urn in self.entries}

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        return (self.entries[urn] for urn in sorted(self.entries) if after is None or urn > after)

    def put_many(
        self,
        entries: Sequence[CatalogEntry],
        *,
        current: Mapping[str, CatalogEntry | None],
    ) -> Iterator[WrittenEntry | FailedEntry]:
        self.calls += 1
        for entry in entries:
            self._tire(1)
            self.before_each(entry)
            if entry.urn in self.refuses:
                yield FailedEntry(entry.urn, MisuseError("The name is not to its taste."))
                continue
            self.puts.append(entry.urn)
            changed = current.get(entry.urn) != entry
            self.entries[entry.urn] = entry
            yield WrittenEntry(urn=entry.urn, changed=changed)

    def erase(self, urn: str) -> None:
        self.entries.pop(urn, None)

    def items(self) -> Iterator[CatalogItem]:
        return iter(self.held.values())

    def get_item(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        return self.held.get((type, key))

    def put_item(self, item: CatalogItem) -> None:
        self._tire(1)
        if _key(item) in self.refuses:
            raise MisuseError("The name is not to its taste.")
        self.held[type(item), _key(item)] = item

    def erase_item(self, item: CatalogItem) -> None:
        del self.held[type(item), _key(item)]

    def _tire(self, by: int) -> None:
        self.asked += 1
        if self.strength is None:
            return
        if self.strength < by or self.strength == 0:
            raise CatalogBusy(
                self.name, "a write", attempts=8, seconds=60, last="503 Unavailable", status=503
            )
        self.strength -= by


def _key(item: Any) -> str:
    return str(getattr(item, "urn", None) or item.name)
