"""Catalogs that can be exported and imported: the store and configured platforms, by name."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from lumos import plugins
from lumos.catalogs import Connects, HasAddress, Platform, ReadsEntries, StoredInFile, StoresItems
from lumos.catalogs.configured import LOCAL, find_platform, platform_of
from lumos.catalogs.three_way_merge import merge_item
from lumos.config import Settings
from lumos.errors import MisuseError, UnknownName
from lumos.model.catalog import CatalogEntry, Job
from lumos.model.json_codec import from_json
from lumos.snapshots.format.document import JOBS, EntryKind
from lumos.snapshots.format.encodings import EXTENSIONS
from lumos.snapshots.store_entries import entry_of
from lumos.store import NoStore, Store


class SnapshotNotFound(MisuseError):
    """The snapshot does not exist."""

    def __init__(self, file: Path) -> None:
        self.file = file
        super().__init__(f"There is no snapshot {file}. Write one with: lumos export {file}")


class SnapshotCatalog(ABC):
    """A catalog that can be read; `name` does not depend on how its address is written."""

    name: str
    kind: str
    # The file of the catalog, if it is stored in one.
    file: Path | None = None

    @abstractmethod
    def datasets(self) -> Iterator[CatalogEntry]:
        """All datasets, including deleted datasets."""

    @abstractmethod
    def items(self, kind: EntryKind) -> Iterator[Any]:
        """All entries of another kind."""

    @abstractmethod
    def count(self) -> int | None:
        """The number of datasets, or None if it is unknown before all are read."""

    def lineage_left_out(self) -> int:
        """The number of lineage links that are not part of any dataset."""
        return 0

    def close(self) -> None:  # noqa: B027 - only some have connections
        """Close connections."""


class LocalCatalog(SnapshotCatalog):
    name = kind = LOCAL

    def __init__(self, store: Store) -> None:
        self.store = store

    def datasets(self) -> Iterator[CatalogEntry]:
        return map(entry_of, self.store.entries.all())

    def items(self, kind: EntryKind) -> Iterator[Any]:
        items = (from_json(item.body, kind.type) for item in self.store.entries.items(kind.plural))
        return without_unknown_datasets(self.store, items) if kind is JOBS else items

    def count(self) -> int:
        return self.store.entries.count()

    def lineage_left_out(self) -> int:
        return self.store.lineage.count_links_outside()


def without_unknown_datasets(store: Store, jobs: Iterable[Job]) -> Iterator[Job]:
    """The jobs, without those inputs and outputs that are not in the store."""
    unknown_by_job = store.lineage.unknown_job_ends()
    for job in jobs:
        if (unknown := unknown_by_job.get(job.urn)) is not None:
            inputs, outputs = (
                tuple(urn for urn in urns if urn not in unknown)
                for urns in (job.inputs, job.outputs)
            )
            yield msgspec.structs.replace(job, inputs=inputs, outputs=outputs)
        else:
            yield job


class PlatformCatalog(SnapshotCatalog):
    """An external catalog."""

    def __init__(self, platform: Platform, store: Callable[[], Store] | None = None) -> None:
        self.name = platform.name
        self.kind = platform.kind
        self.platform = platform
        self._store = store
        self.file = platform.path if isinstance(platform, StoredInFile) else None

    def datasets(self) -> Iterator[CatalogEntry]:
        if not isinstance(self.platform, ReadsEntries):
            raise MisuseError(
                f"The platform '{self.kind}' cannot be read by this version of Lumos."
            )
        return self.platform.export()

    def items(self, kind: EntryKind) -> Iterator[Any]:
        items = {getattr(item, kind.key): item for item in self._items if type(item) is kind.type}
        if self._store is None or not items:
            return iter(items.values())
        try:
            written = self._store().journal.bases(self.name, kind.plural, list(items))
        except NoStore:
            # There is no store, so Lumos has not written to the catalog yet.
            return iter(items.values())
        return (
            self._restore_unsupported(item, from_json(written[key], kind.type))
            if key in written
            else item
            for key, item in items.items()
        )

    def _restore_unsupported(self, item: Any, written: Any) -> Any:
        """Add the values that the catalog could not store when Lumos wrote them."""
        platform: Any = self.platform
        stored = platform.item_as_stored(written)
        return item if stored == written else merge_item(stored, item, written).item

    def count(self) -> int | None:
        return self.platform.count() if isinstance(self.platform, ReadsEntries) else None

    def close(self) -> None:
        platform: object = self.platform
        if isinstance(platform, Connects):
            platform.close()

    @cached_property
    def _items(self) -> list[Any]:
        return list(self.platform.items()) if isinstance(self.platform, StoresItems) else []


class SnapshotCatalogs:
    """Finds the catalogs of a configuration by name."""

    def __init__(self, settings: Settings, store: Callable[[], Store]) -> None:
        self._settings = settings
        self._store = store

    def named(self, text: str) -> SnapshotCatalog:
        """The catalog for `local`, `KIND:ADDRESS`, or the name of a configured platform."""
        if text == LOCAL:
            return LocalCatalog(self._store())
        kind, colon, address = text.partition(":")
        plugin: Any = self._plugin(kind)
        configured = self._settings.platform.startswith(f"{kind}:")
        platform: Platform | None
        if not colon and configured:
            platform = platform_of(self._settings)
            assert platform is not None, f"the platform '{text}' is not configured"
        elif not colon:
            platform = plugin(self._settings.platform_config.of(kind))
        elif issubclass(plugin, HasAddress):
            if not address:
                raise MisuseError(f"'{text}' has no address. Name one, as in {kind}:ADDRESS.")
            platform = plugin.at(address, self._settings.platform_config.of(kind))
        else:
            raise MisuseError(
                f"The platform '{kind}' is not named by an address. "
                f"Configure it under platform_config.{kind} and name it '{kind}'."
            )
        return PlatformCatalog(platform, self._store)

    def named_for_reading(self, text: str) -> SnapshotCatalog:
        """The catalog with this name, which has to exist if it is a file."""
        catalog = self.named(text)
        if catalog.file is not None and not catalog.file.exists():
            raise MisuseError(
                f"Cannot read '{text}': there is no file {catalog.file}. "
                f"Write one with: lumos sync --platform {text}"
            )
        return catalog

    def is_named(self, text: str) -> bool:
        """Whether the text is the name of a catalog, not the path of a file."""
        return text.partition(":")[0] in self._names()

    def snapshot(self, text: str) -> Path:
        """The snapshot file for a text that is not the name of a catalog."""
        path = Path(text)
        if path.exists():
            return path
        if path.name.lower().endswith(EXTENSIONS):
            raise SnapshotNotFound(path)
        raise UnknownName("snapshot or platform", text, self._names(), listed="Platforms")

    def _plugin(self, kind: str) -> object:
        if kind not in self._names():
            raise UnknownName("platform", kind, self._names(), listed="Installed")
        return find_platform(kind)

    @staticmethod
    def _names() -> set[str]:
        return {LOCAL, *plugins.names(plugins.PLATFORMS)}
