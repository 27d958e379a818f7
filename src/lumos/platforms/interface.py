"""What a catalog can do: a small class for each ability, and a catalog is made of some of them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias

import msgspec

from lumos.model.catalog import Entry, GlossaryTerm, Group, Job, Other, User
from lumos.model.dataset import Dataset, Lineage, Owner, Ownership, UpstreamEdge
from lumos.model.lineage import LineageType
from lumos.model.urn import Urn
from lumos.platforms.merging import Conflict, merge

How: TypeAlias = Literal["native", "partly", "properties"]
Item: TypeAlias = GlossaryTerm | User | Group | Job | Other


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an entry: which of its aspects the catalog holds how, and whether it was new.

    `partly` is both: as far as the catalog goes, and exactly in its free-form properties.
    """

    urn: str
    changed: bool
    held: dict[str, How] = {}
    conflicts: tuple[Conflict, ...] = ()


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
    def at(cls, address: str) -> Self:
        """The catalog at that address."""


class KeptInFile(ABC):
    """A catalog that is a file, which the first write makes where there is none."""

    path: Path

    @abstractmethod
    def check_writable(self) -> None:
        """Fails where the file could not be written, and leaves no trace."""


class ReadsEntries(ABC):
    """A catalog that tells what it holds."""

    @abstractmethod
    def get(self, urn: str) -> Entry | None:
        """A dataset as the catalog holds it now; one that was deleted says so itself."""

    @abstractmethod
    def export(self, *, after: str | None = None) -> Iterator[Entry]:
        """Every dataset by URN, deleted ones too, from the first one after a URN.

        Read page by page, so that neither memory nor a catalog's search window is the limit.
        """


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
    def put(self, entry: Entry) -> Written:
        """Makes a dataset exactly this, whatever was there; aspects it does not have are gone."""

    def settled(self, entry: Entry) -> Entry:
        """The entry that `get` gives back once this one is put.

        The two differ only where the entry contradicts what it carries for this catalog.
        """
        return entry

    @abstractmethod
    def erase(self, urn: str) -> None:
        """Takes a dataset out without a trace, as if it had never been written."""


class Deletes(ABC):
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


class MergesWrites(ReadsEntries, ReplacesEntries, Deletes, EmitsLineage, EmitsOwnership):
    """A catalog that people edit, too: what they wrote is not written over."""

    def write(self, entry: Entry, *, base: Entry | None = None) -> Written:
        """Writes what Lumos claims; `base` is what it claimed when it last wrote, if it did."""
        merged = merge(base, self.get(entry.urn), entry)
        written = self.put(merged.entry)
        return msgspec.structs.replace(written, conflicts=merged.conflicts)

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

    def _entry_about(self, urn: str, **aspects: Any) -> Entry:
        """An entry that says only this, of a dataset that need not be there yet."""
        there, parsed = self.get(urn), Urn.parse(urn)
        name = parsed.name if there is None else there.name
        deleted = there is not None and there.deleted
        return Entry(urn=urn, name=name, platform=parsed.platform, deleted=deleted, **aspects)


class HoldsItems(ABC):
    """A catalog that holds more than datasets: terms, people, jobs, and what is only its own."""

    @abstractmethod
    def items(self) -> Iterator[Item]:
        """All that is no dataset."""

    @abstractmethod
    def get_item(self, type: type[Item], key: str) -> Item | None:
        """One of them by its name or URN."""

    @abstractmethod
    def put_item(self, item: Item) -> None:
        """Makes one of them exactly this."""

    def settled_item(self, item: Item) -> Item:
        """The item that `get_item` gives back once this one is put, as with `settled`."""
        return item

    @abstractmethod
    def erase_item(self, item: Item) -> None:
        """Takes one of them out without a trace."""


class WritesInBatches(ABC):
    """A catalog where many writes at once cost little more than one."""

    @abstractmethod
    def batch(self) -> AbstractContextManager[None]:
        """Writes inside become visible together at the end, or not at all after an error."""
