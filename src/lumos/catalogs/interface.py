"""What a catalog can do: a small class for each ability, and a catalog is made of some of them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias

import msgspec

from lumos.catalogs.chunks import in_halves
from lumos.catalogs.three_way_merge import Conflict, merge
from lumos.errors import CatalogUnavailable, LumosError
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User
from lumos.model.dataset import Dataset, Lineage, Owner, Ownership, UpstreamEdge
from lumos.model.lineage import LineageType
from lumos.model.urn import Urn

How: TypeAlias = Literal["native", "partly", "properties"]
Item: TypeAlias = GlossaryTerm | User | Group | Job | CatalogEntity


class WrittenEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an entry: which of its aspects the catalog holds how, and whether it was new.

    `partly` is both: as far as the catalog goes, and exactly in its free-form properties.
    """

    urn: str
    changed: bool
    held: dict[str, How] = {}
    conflicts: tuple[Conflict, ...] = ()


class Refused(NamedTuple):
    """An entry that the catalog does not take, and why; an item's `urn` may be its name."""

    urn: str
    problem: LumosError


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """What found datasets must have, beside the words that were searched for."""

    platform: str | None = None
    format: str | None = None
    owner: str | None = None
    tag: str | None = None


NO_FILTERS: Final = Filters()


class Platform(ABC):
    """A catalog; every write may be repeated without harm."""

    kind: ClassVar[str]

    @abstractmethod
    def __init__(self, settings: Any) -> None:
        """Takes the catalog's section of `platform_config`; connects to nothing yet."""

    @property
    def name(self) -> str:
        """What tells the catalog from others, also of its kind."""
        return self.kind

    @abstractmethod
    def emit(self, dataset: Dataset) -> None:
        """Creates or updates a dataset; raises LumosError where the catalog refuses.

        Aspects that the dataset does not have are left as they are.
        """


class HasAddress(ABC):
    """A catalog that can be named by its kind and an address, as in `datahub-file:estate.json`."""

    @classmethod
    @abstractmethod
    def at(cls, address: str, configured: Any = None) -> Self:
        """The catalog at that address.

        `configured` is the kind's section of `platform_config`, if there is one. Its secrets are
        for the address that stands there, and go to no other.
        """


class Connects(ABC):
    """A catalog behind a network."""

    @abstractmethod
    def check(self) -> str:
        """Asks the catalog who it is, and tells it in words: address, version, and as whom.

        Raises CatalogError where it cannot be reached, does not let us in, or is too old.
        """

    @abstractmethod
    def close(self) -> None:
        """Lets go of connections; the next call opens new ones."""


class KeptInFile(ABC):
    """A catalog that is a file, which the first write makes where there is none."""

    path: Path

    @abstractmethod
    def check_writable(self) -> None:
        """Fails where the file could not be written, and leaves no trace."""


class ReadsEntries(ABC):
    """A catalog that tells what it holds."""

    @abstractmethod
    def get(self, urn: str) -> CatalogEntry | None:
        """A dataset as the catalog holds it now; one that was deleted says so itself."""

    @abstractmethod
    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        """Every dataset by URN, deleted ones too, from the first one after a URN.

        Read page by page, so that neither memory nor a catalog's search window is the limit.
        """

    def export_each(self, *, after: str | None = None) -> Iterator["CatalogEntry | Refused"]:
        """As `export`, with the reason in place of each dataset that cannot be read by itself."""
        return self.export(after=after)

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        """Those of some datasets that are there."""
        found = ((urn, self.get(urn)) for urn in urns)
        return {urn: entry for urn, entry in found if entry is not None}

    def count(self) -> int | None:
        """About how many datasets there are, where that can be told without reading all."""
        return None


class ReadsMany(ReadsEntries):
    """A catalog where many datasets are read by one call, so that nobody should ask for each."""

    @abstractmethod
    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        """Those of some datasets that are there, however many are asked for."""

    def get(self, urn: str) -> CatalogEntry | None:
        return self.get_many([urn]).get(urn)


class Searches(ABC):
    """A catalog that finds datasets by words."""

    @abstractmethod
    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        """The datasets that hold every word, the best first; all of them without a limit."""


class ReplacesEntries(ABC):
    """A catalog whose entries can be written exactly: what is put is what `get` gives back."""

    native: ClassVar[frozenset[str]]
    """The aspects that the catalog itself has a place for; others go into its properties."""

    @abstractmethod
    def put(self, entry: CatalogEntry) -> WrittenEntry:
        """Makes a dataset exactly this, whatever was there; aspects it does not have are gone."""

    def as_held(self, entry: CatalogEntry) -> CatalogEntry:
        """The entry that `get` gives back once this one is put.

        The two differ only where the entry contradicts what it carries for this catalog.
        """
        return entry

    def put_many(
        self,
        entries: Sequence[CatalogEntry],
        *,
        over: Mapping[str, CatalogEntry | None],  # noqa: ARG002
    ) -> Iterator[WrittenEntry | Refused]:
        """Puts some datasets, in whatever order; each is yielded once it is known to be there.

        `over` is what the caller has just read of them. A dataset that the catalog does not take
        is yielded as refused, and the others go on; a catalog that fails altogether raises.
        """
        for entry in entries:
            try:
                yield self.put(entry)
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                yield Refused(entry.urn, problem)

    @abstractmethod
    def erase(self, urn: str) -> None:
        """Takes a dataset out without a trace, as if it had never been written."""

    def erase_many(self, urns: Sequence[str]) -> None:
        """Takes some datasets out; each is gone or still whole where this fails."""
        for urn in urns:
            self.erase(urn)


class WritesMany(ReadsMany, ReplacesEntries):
    """A catalog where many datasets are written by one call, but not all or nothing.

    What was yielded stays written, whatever happens afterwards; what was not yielded may be there
    or not, and is written again.
    """

    most: ClassVar[int]
    """How many entries at once are worth handing over."""

    @abstractmethod
    def put_many(
        self, entries: Sequence[CatalogEntry], *, over: Mapping[str, CatalogEntry | None]
    ) -> Iterator[WrittenEntry | Refused]: ...

    def put(self, entry: CatalogEntry) -> WrittenEntry:
        for written in self.put_many([entry], over=self.get_many([entry.urn])):
            if isinstance(written, Refused):
                raise written.problem
            return written
        raise AssertionError("every entry is yielded")


class DeletesEntries(ABC):
    """A catalog that can hide a dataset and keep what is known of it."""

    @abstractmethod
    def delete(self, urn: str) -> None:
        """Marks a dataset as deleted; one that is not there is no error."""


class EmitsLineage(ABC):
    """A catalog that takes a single edge."""

    @abstractmethod
    def emit_lineage(
        self, upstream: str, downstream: str, type: LineageType = "TRANSFORMED"
    ) -> None:
        """Adds an edge beside those that are there."""


class EmitsOwnership(ABC):
    """A catalog that takes a single owner."""

    @abstractmethod
    def emit_ownership(self, urn: str, owner: Owner) -> None:
        """Adds an owner beside those that are there."""


class KnowsPeople(ABC):
    """A catalog that keeps what people said apart from what programs said."""

    @abstractmethod
    def sides(
        self, base: CatalogEntry | None, theirs: CatalogEntry | None, ours: CatalogEntry
    ) -> tuple[CatalogEntry | None, CatalogEntry | None]:
        """What Lumos wrote and what is there, so that a merge sees which words are people's."""


class MergesWrites(ReadsEntries, ReplacesEntries, DeletesEntries, EmitsLineage, EmitsOwnership):
    """A catalog that people edit, too: what they wrote is not written over."""

    def write(self, entry: CatalogEntry, *, base: CatalogEntry | None = None) -> WrittenEntry:
        """Writes what Lumos claims; `base` is what it claimed when it last wrote, if it did."""
        merged = merge(*sides_in(self, base, self.get(entry.urn), entry), entry)
        written = self.put(merged.entry)
        return msgspec.structs.replace(written, conflicts=merged.conflicts)

    def write_many(
        self, claims: Sequence[CatalogEntry], bases: Mapping[str, CatalogEntry]
    ) -> Iterator[WrittenEntry | Refused]:
        """Writes what Lumos claims of some datasets, each over what it claimed of it before."""
        theirs, unread = readable(self, [claim.urn for claim in claims])
        yield from unread.values()
        merged = {
            claim.urn: merge(
                *sides_in(self, bases.get(claim.urn), theirs.get(claim.urn), claim), claim
            )
            for claim in claims
            if claim.urn not in unread
        }
        for written in self.put_many([each.entry for each in merged.values()], over=theirs):
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
        edge = UpstreamEdge(urn=upstream, type=type)
        self.write(self._entry_about(downstream, lineage=Lineage(upstream=(edge,))))

    def emit_ownership(self, urn: str, owner: Owner) -> None:
        self.write(self._entry_about(urn, ownership=Ownership(owners=(owner,))))

    def _entry_about(self, urn: str, **aspects: Any) -> CatalogEntry:
        """An entry that says only this, of a dataset that need not be there yet."""
        there, parsed = self.get(urn), Urn.parse(urn)
        name = parsed.name if there is None else there.name
        deleted = there is not None and there.deleted
        return CatalogEntry(
            urn=urn, name=name, platform=parsed.platform, deleted=deleted, **aspects
        )


class HoldsItems(ABC):
    """A catalog that holds more than datasets: terms, users, groups, jobs and other entities."""

    shows_display_names: ClassVar[bool] = False
    """Whether tags and domains are shown by their display names, so that ids may be their names."""

    @abstractmethod
    def items(self) -> Iterator[Item]:
        """All that is no dataset."""

    @abstractmethod
    def get_item(self, type: type[Item], key: str) -> Item | None:
        """One of them by its name or URN."""

    def get_items(self, type: type[Item], keys: Sequence[str]) -> dict[str, Item]:
        """Those of one type that are there, by name or URN."""
        found = ((key, self.get_item(type, key)) for key in keys)
        return {key: item for key, item in found if item is not None}

    @abstractmethod
    def put_item(self, item: Item) -> None:
        """Makes one of them exactly this."""

    def put_items(self, items: Sequence[Item]) -> Iterator[Refused]:
        """Puts some of them; once this ends, all are there but those that were refused."""
        for item in items:
            try:
                self.put_item(item)
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                yield Refused(_key(item), problem)

    def item_as_held(self, item: Item) -> Item:
        """The item that `get_item` returns after this one is put.

        It lacks what the catalog cannot hold. That is kept in the store, and an export adds it
        again.
        """
        return item

    @abstractmethod
    def erase_item(self, item: Item) -> None:
        """Takes one of them out without a trace."""


class NewNames(NamedTuple):
    """Names that a migration changes: by kind the old and the new ones, and URNs of datasets."""

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


class WritesInBatches(ABC):
    """A catalog where many writes at once cost little more than one."""

    @abstractmethod
    def batch(self) -> AbstractContextManager[None]:
        """Writes inside become visible together at the end, or not at all after an error."""


def sides_in(
    platform: object, base: CatalogEntry | None, theirs: CatalogEntry | None, ours: CatalogEntry
) -> tuple[CatalogEntry | None, CatalogEntry | None]:
    """What Lumos wrote and what is there, as a catalog wants both to be merged."""
    if isinstance(platform, KnowsPeople):
        return platform.sides(base, theirs, ours)
    return base, theirs


def each_or_raise(entries: Iterator["CatalogEntry | Refused"]) -> Iterator[CatalogEntry]:
    """Entries up to the first one that cannot be read."""
    for each in entries:
        if isinstance(each, Refused):
            raise each.problem
        yield each


def readable(
    platform: ReadsEntries, urns: Sequence[str]
) -> tuple[dict[str, CatalogEntry], dict[str, Refused]]:
    """Those of some datasets that are there, and those that cannot be read as they are."""
    found: dict[str, CatalogEntry] = {}
    unread = {
        urn: Refused(urn, problem)
        for urn, problem in in_halves(urns, lambda some: found.update(platform.get_many(some)))
        if problem is not None
    }
    return found, unread


def _key(item: Item) -> str:
    return item.urn if isinstance(item, Job | CatalogEntity) else item.name
