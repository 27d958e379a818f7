"""A small base class for each ability of catalogs; adapters combine them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias

import msgspec

from lumos.catalogs.chunks import in_halves
from lumos.catalogs.three_way_merge import Conflict, merge
from lumos.errors import CatalogUnavailable, LumosError
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User
from lumos.model.dataset import ASPECTS, Dataset, Lineage, Owner, Ownership, UpstreamEdge
from lumos.model.lineage import LineageType
from lumos.model.urn import Urn

AspectStorage: TypeAlias = Literal["native", "partly", "properties"]
CatalogItem: TypeAlias = GlossaryTerm | User | Group | Job | CatalogEntity


class WrittenEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The result of writing an entry: whether it changed, and how the catalog stores each aspect.

    `held` has one value per aspect: `native` if the catalog has fields for it, `properties` if it
    is stored in custom properties, and `partly` if the fields show a part of it and the properties
    contain all of it. Values of other fields are dropped.
    """

    urn: str
    changed: bool
    held: dict[str, AspectStorage] = {}
    conflicts: tuple[Conflict, ...] = ()

    def __post_init__(self) -> None:
        # Adapters report everything that they pack, such as the format.
        held = {name: storage for name, storage in self.held.items() if name in ASPECTS}
        msgspec.structs.force_setattr(self, "held", held)


class FailedEntry(NamedTuple):
    """An entry that could not be read or written, and the problem; for items, `urn` is the key."""

    urn: str
    problem: LumosError


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Filters of a search."""

    platform: str | None = None
    format: str | None = None
    owner: str | None = None
    tag: str | None = None


NO_FILTERS: Final = Filters()


class Platform(ABC):
    """A catalog; every write is idempotent."""

    kind: ClassVar[str]

    @abstractmethod
    def __init__(self, settings: Any) -> None:
        """Take the catalog's section of `platform_config`, without connecting."""

    @property
    def name(self) -> str:
        """A unique name, even among catalogs of the same kind."""
        return self.kind

    @abstractmethod
    def emit(self, dataset: Dataset) -> None:
        """Create or update a dataset; raises LumosError if the catalog rejects it.

        Aspects that the dataset does not have are not changed.
        """


class HasAddress(ABC):
    """A catalog that can be named by kind and address, as in `datahub-file:metadata.json`."""

    @classmethod
    @abstractmethod
    def at(cls, address: str, configured: Any = None) -> Self:
        """The catalog at an address.

        `configured` is the section of `platform_config`, if any. Its secrets must only be sent to
        the address in that section.
        """


class Connects(ABC):
    """A catalog behind a network."""

    @abstractmethod
    def check(self) -> str:
        """Connect and return a description: address, version and user.

        Raises CatalogError if the server is unreachable, denies access or is too old.
        """

    @abstractmethod
    def close(self) -> None:
        """Close connections; the next call opens new ones."""


class StoredInFile(ABC):
    """A catalog in a file; the first write creates it."""

    path: Path

    @abstractmethod
    def check_writable(self) -> None:
        """Raise an error if the file cannot be written, without creating it."""


class ReadsEntries(ABC):
    """A catalog that can be read."""

    @abstractmethod
    def get(self, urn: str) -> CatalogEntry | None:
        """The current entry of a dataset, or None; deleted datasets have `deleted` set."""

    @abstractmethod
    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        """All datasets, including deleted ones, sorted by URN and starting after the URN `after`.

        Reads page by page: neither memory nor the catalog's search window limits their number.
        """

    def export_each(self, *, after: str | None = None) -> Iterator["CatalogEntry | FailedEntry"]:
        """Like `export`, with `FailedEntry` in place of each dataset that cannot be read."""
        return self.export(after=after)

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        """The datasets that exist, by URN."""
        found = ((urn, self.get(urn)) for urn in urns)
        return {urn: entry for urn, entry in found if entry is not None}

    def count(self) -> int | None:
        """The approximate number of datasets, or None if it is unknown without reading all."""
        return None


class ReadsMany(ReadsEntries):
    """A catalog that reads many datasets in one call."""

    @abstractmethod
    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        """The datasets that exist, by URN; the number of URNs is not limited."""

    def get(self, urn: str) -> CatalogEntry | None:
        return self.get_many([urn]).get(urn)


class Searches(ABC):
    """A catalog that can be searched."""

    @abstractmethod
    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        """The datasets that contain every word, best first; all of them without a limit."""


class CatalogChange(NamedTuple):
    """A change of a dataset, or of its `column`, in the words of the catalog that recorded it."""

    at: datetime
    author: str
    action: str
    details: str
    column: str | None = None


class ReadsHistory(ABC):
    """A catalog that records who changed a dataset."""

    @abstractmethod
    def history(self, urn: str) -> Iterator[CatalogChange]:
        """The recorded changes of a dataset and its columns, newest first."""


class ReplacesEntries(ABC):
    """A catalog that stores entries without loss: `get` returns what `put` wrote."""

    native: ClassVar[frozenset[str]]
    """The aspects that are fields of the catalog; others go into custom properties."""

    @abstractmethod
    def put(self, entry: CatalogEntry) -> WrittenEntry:
        """Replace a dataset; aspects that the entry does not have are removed."""

    def as_stored(self, entry: CatalogEntry) -> CatalogEntry:
        """The entry that `get` returns after this one is put.

        Both are equal unless the fields of the entry contradict its raw records.
        """
        return entry

    def storage_of(self, entry: CatalogEntry) -> Mapping[str, AspectStorage]:
        """How the catalog would store each aspect of an entry, as `put` reports it in `held`.

        Other fields may be included: format, timestamps and raw. Nothing is written.
        """
        return {
            name: "native" if name in self.native else "properties"
            for name in ASPECTS
            if getattr(entry, name) is not None
        }

    def put_many(
        self,
        entries: Sequence[CatalogEntry],
        *,
        current: Mapping[str, CatalogEntry | None],  # noqa: ARG002
    ) -> Iterator[WrittenEntry | FailedEntry]:
        """Put datasets in any order; yield each once it is known to be written.

        `current` are the entries that the caller has just read. A rejected dataset is yielded as
        `FailedEntry` and the others continue. Raises CatalogUnavailable if the catalog is down.
        """
        for entry in entries:
            try:
                yield self.put(entry)
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                yield FailedEntry(entry.urn, problem)

    @abstractmethod
    def erase(self, urn: str) -> None:
        """Delete a dataset permanently."""

    def erase_many(self, urns: Sequence[str]) -> None:
        """Delete datasets permanently; after a failure, each is either deleted or unchanged."""
        for urn in urns:
            self.erase(urn)


class WritesMany(ReadsMany, ReplacesEntries):
    """A catalog that writes many datasets in one call, but not atomically.

    Datasets that were yielded are written, even if a later one fails. The others may or may not be
    written; callers put them again.
    """

    batch_size: ClassVar[int]
    """The number of entries that callers should pass to `put_many` at a time."""

    @abstractmethod
    def put_many(
        self, entries: Sequence[CatalogEntry], *, current: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | FailedEntry]: ...

    def put(self, entry: CatalogEntry) -> WrittenEntry:
        for written in self.put_many([entry], current=self.get_many([entry.urn])):
            if isinstance(written, FailedEntry):
                raise written.problem
            return written
        raise AssertionError(f"put_many did not yield {entry.urn}")


class DeletesEntries(ABC):
    """A catalog with soft deletes."""

    @abstractmethod
    def delete(self, urn: str) -> None:
        """Mark a dataset as deleted; does nothing if it does not exist."""


class SeparatesUserEdits(ABC):
    """A catalog that stores edits of users separately from what programs wrote."""

    @abstractmethod
    def adjust_for_merge(
        self, base: CatalogEntry | None, theirs: CatalogEntry | None, ours: CatalogEntry
    ) -> tuple[CatalogEntry | None, CatalogEntry | None]:
        """Return `base` and `theirs`, adjusted so that a merge recognizes edits of users."""


class MergesWrites(ReadsEntries, ReplacesEntries, DeletesEntries):
    """A catalog that users edit: writes are three-way merges, which preserve these edits."""

    def write(self, entry: CatalogEntry, *, base: CatalogEntry | None = None) -> WrittenEntry:
        """Merge an entry into the catalog; `base` is the entry that Lumos wrote last, or None."""
        merged = merge(*merge_inputs(self, base, self.get(entry.urn), entry), entry)
        written = self.put(merged.entry)
        return msgspec.structs.replace(written, conflicts=merged.conflicts)

    def write_many(
        self, entries: Sequence[CatalogEntry], bases: Mapping[str, CatalogEntry]
    ) -> Iterator[WrittenEntry | FailedEntry]:
        """Merge entries into the catalog; `bases` are the entries that Lumos wrote last, by URN."""
        theirs, unread = read_many(self, [ours.urn for ours in entries])
        yield from unread.values()
        merged = {
            ours.urn: merge(
                *merge_inputs(self, bases.get(ours.urn), theirs.get(ours.urn), ours), ours
            )
            for ours in entries
            if ours.urn not in unread
        }
        for written in self.put_many([each.entry for each in merged.values()], current=theirs):
            if isinstance(written, WrittenEntry):
                conflicts = merged[written.urn].conflicts
                yield msgspec.structs.replace(written, conflicts=conflicts)
            else:
                yield written

    def delete(self, urn: str) -> None:
        if (entry := self.get(urn)) is not None:
            self.put(msgspec.structs.replace(entry, deleted=True))

    def emit_lineage(
        self, upstream: str, downstream: str, type: LineageType = "TRANSFORMED"
    ) -> None:
        """Add an edge to the existing ones."""
        edge = UpstreamEdge(urn=upstream, type=type)
        self.write(self._entry_about(downstream, lineage=Lineage(upstream=(edge,))))

    def emit_ownership(self, urn: str, owner: Owner) -> None:
        """Add an owner to the existing ones."""
        self.write(self._entry_about(urn, ownership=Ownership(owners=(owner,))))

    def _entry_about(self, urn: str, **aspects: Any) -> CatalogEntry:
        """An entry with only these aspects; the dataset need not exist."""
        current, parsed = self.get(urn), Urn.parse(urn)
        name = parsed.name if current is None else current.name
        deleted = current is not None and current.deleted
        return CatalogEntry(
            urn=urn, name=name, platform=parsed.platform, deleted=deleted, **aspects
        )


class StoresItems(ABC):
    """A catalog that stores more than datasets: terms, users, groups, jobs and other entities."""

    shows_display_names: ClassVar[bool] = False
    """Whether users see display names of tags and domains, so that their names may be ids."""

    @abstractmethod
    def items(self) -> Iterator[CatalogItem]:
        """All items."""

    @abstractmethod
    def get_item(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        """The item with a key (name or URN), or None."""

    def get_items(self, type: type[CatalogItem], keys: Sequence[str]) -> dict[str, CatalogItem]:
        """The items of one type that exist, by key."""
        found = ((key, self.get_item(type, key)) for key in keys)
        return {key: item for key, item in found if item is not None}

    @abstractmethod
    def put_item(self, item: CatalogItem) -> None:
        """Replace an item."""

    def put_items(self, items: Sequence[CatalogItem]) -> Iterator[FailedEntry]:
        """Replace items; yield the rejected ones. At the end, all others are written."""
        for item in items:
            try:
                self.put_item(item)
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                yield FailedEntry(item_key(item), problem)

    def item_as_stored(self, item: CatalogItem) -> CatalogItem:
        """The item that `get_item` returns after this one is put.

        It lacks the fields that the catalog cannot store. They are in the store of Lumos, and an
        export adds them again.
        """
        return item

    @abstractmethod
    def erase_item(self, item: CatalogItem) -> None:
        """Delete an item permanently."""


class NewNames(NamedTuple):
    """Names that a migration changes: new names by old ones, and a function for dataset URNs."""

    tags: Mapping[str, str]
    terms: Mapping[str, str]
    owners: Mapping[str, str]
    domains: Mapping[str, str]
    dataset: Callable[[str], str]


class RenamesRaw(ABC):
    """A catalog whose raw records contain names of tags, terms, owners, domains or datasets."""

    @classmethod
    @abstractmethod
    def rename_raw(cls, raw: Any, names: NewNames) -> Any:
        """The raw record of an entity or dataset with the new names."""


class NormalizesRaw(ABC):
    """A catalog that stores the same raw records in several forms, as in files and on servers."""

    @classmethod
    @abstractmethod
    def normalize_raw(cls, value: Any) -> Any:
        """An entry or item with its raw record in the form of a server.

        None for an entity that every server has.
        """


class WritesInBatches(ABC):
    """A catalog with atomic batches."""

    @abstractmethod
    def batch(self) -> AbstractContextManager[None]:
        """Collect writes inside the block; all become visible at its end, or none on an error."""


def merge_inputs(
    platform: object, base: CatalogEntry | None, theirs: CatalogEntry | None, ours: CatalogEntry
) -> tuple[CatalogEntry | None, CatalogEntry | None]:
    """Return `base` and `theirs`, adjusted by catalogs that store edits of users separately."""
    if isinstance(platform, SeparatesUserEdits):
        return platform.adjust_for_merge(base, theirs, ours)
    return base, theirs


def read_many(
    platform: ReadsEntries, urns: Sequence[str]
) -> tuple[dict[str, CatalogEntry], dict[str, FailedEntry]]:
    """Read datasets; return the existing ones and those that cannot be read, by URN."""
    entries: dict[str, CatalogEntry] = {}
    unread = {
        urn: FailedEntry(urn, problem)
        for urn, problem in in_halves(urns, lambda batch: entries.update(platform.get_many(batch)))
        if problem is not None
    }
    return entries, unread


def item_key(item: CatalogItem) -> str:
    """The key of an item: its URN or name."""
    return item.urn if isinstance(item, Job | CatalogEntity) else item.name
