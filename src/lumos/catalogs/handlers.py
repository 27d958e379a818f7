"""Handlers: a simpler way to connect a catalog than an adapter.

A handler is a class with six methods, with which Lumos publishes to, reads, exports and searches
the catalog. Three features need an adapter, which guarantees that reads return exactly what was
written: imports, migrations into the catalog, and merging with the edits of users.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypeAlias, cast

import msgspec

from lumos import plugins
from lumos.catalogs.interface import (
    NO_FILTERS,
    Filters,
    Platform,
    ReadsEntries,
    Searches,
)
from lumos.errors import CatalogError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset, Owner
from lumos.model.json_codec import from_plain
from lumos.model.lineage import LineageType

# A dataset, or a dictionary in the format of a snapshot.
HandlerDataset: TypeAlias = Dataset | Mapping[str, Any]


class MetadataPlatformInterface(ABC):
    """A handler of a catalog. Methods return False if the catalog rejected the call.

    Datasets may be returned as `lumos.model.dataset.Dataset` or as dictionaries in the format of a
    snapshot.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        """Take the section of `platform_config`, without connecting."""
        self.config = config

    @abstractmethod
    def emit_dataset(self, dataset: Dataset) -> bool:
        """Create or update a dataset."""

    @abstractmethod
    def emit_lineage(
        self, upstream_urn: str, downstream_urn: str, lineage_type: str = "TRANSFORMED"
    ) -> bool:
        """Add a lineage edge."""

    @abstractmethod
    def emit_ownership(self, dataset_urn: str, owner: str, owner_type: str) -> bool:
        """Add an owner."""

    @abstractmethod
    def get_dataset(self, urn: str) -> HandlerDataset | None:
        """The dataset with a URN, or None."""

    @abstractmethod
    def search(self, query: str, filters: dict[str, str] | None = None) -> Iterable[HandlerDataset]:
        """The datasets that match a query, best first."""

    @abstractmethod
    def export_all(self) -> Mapping[str, Iterable[HandlerDataset]]:
        """Everything in the catalog: `{"datasets": [...]}`."""


def register(name: str, handler: type[MetadataPlatformInterface]) -> None:
    """Make a handler available as the platform `name` in this process.

    A package registers its handler as an entry point in the group `lumos.platforms` instead.
    """
    plugins.register(plugins.PLATFORMS, name, handler)


def platform_class(name: str, plugin: Any) -> type[Platform]:
    """The class of a platform: the plug-in itself, or a wrapper if it is a handler."""
    if isinstance(plugin, type) and issubclass(plugin, MetadataPlatformInterface):
        return type(plugin.__name__, (HandlerPlatform,), {"kind": name, "handler_type": plugin})
    return cast("type[Platform]", plugin)


class HandlerPlatform(Platform, ReadsEntries, Searches):
    """A platform that passes every call on to a handler."""

    handler_type: ClassVar[type[MetadataPlatformInterface]]

    def __init__(self, settings: Any) -> None:
        self._handler = self.handler_type(dict(settings or {}))

    def emit(self, dataset: Dataset) -> None:
        self._require(self._handler.emit_dataset(dataset), f"the dataset {dataset.urn}")
        for edge in dataset.lineage.upstream if dataset.lineage else ():
            self.emit_lineage(edge.urn, dataset.urn, edge.type)
        for owner in dataset.ownership.owners if dataset.ownership else ():
            self.emit_ownership(dataset.urn, owner)

    def emit_lineage(
        self, upstream: str, downstream: str, type: LineageType = "TRANSFORMED"
    ) -> None:
        accepted = self._handler.emit_lineage(upstream, downstream, type)
        self._require(accepted, f"the lineage from {upstream} to {downstream}")

    def emit_ownership(self, urn: str, owner: Owner) -> None:
        accepted = self._handler.emit_ownership(urn, owner.name, owner.type)
        self._require(accepted, f"the owner {owner.name} of {urn}")

    def get(self, urn: str) -> CatalogEntry | None:
        dataset = self._handler.get_dataset(urn)
        return None if dataset is None else self._entry(dataset)

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        entries = map(self._entry, self._handler.export_all().get("datasets", ()))
        for entry in sorted(entries, key=lambda each: each.urn):
            if entry.urn > (after or ""):
                yield entry

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        wanted = {name: value for name, value in msgspec.structs.asdict(filters).items() if value}
        for number, found in enumerate(self._handler.search(text, wanted or None)):
            if limit is not None and number >= limit:
                return
            yield self._entry(found).dataset

    def _entry(self, dataset: HandlerDataset) -> CatalogEntry:
        if isinstance(dataset, CatalogEntry):
            return dataset
        if isinstance(dataset, Dataset):
            return CatalogEntry.of(dataset)
        try:
            return from_plain(dataset, CatalogEntry)
        except msgspec.ValidationError as problem:
            raise CatalogError(
                f"The handler of '{self.kind}' returned an invalid dataset: {problem}. Return a "
                "Dataset, or a dictionary in the format of a snapshot.",
                platform=self.name,
            ) from None

    def _require(self, accepted: bool, description: str) -> None:
        if not accepted:
            raise CatalogError(f"The catalog rejected {description}.", platform=self.name)
