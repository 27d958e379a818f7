"""Base classes of complete adapters: what all servers and all files have in common."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

from lumos.catalogs import interface
from lumos.catalogs.interface import NO_FILTERS, CatalogItem, FailedEntry, Filters
from lumos.catalogs.search import search_entries
from lumos.errors import MissingDependency, MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Dataset


class CompleteCatalog(
    interface.Platform, interface.HasAddress, interface.MergesWrites, interface.Searches,
    interface.StoresItems,
):  # fmt: skip
    """A catalog that stores every field of entries and items."""

    def emit(self, dataset: Dataset) -> None:
        self.write(CatalogEntry.of(dataset))

    @abstractmethod
    def export_each(self, *, after: str | None = None) -> Iterator[CatalogEntry | FailedEntry]: ...

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        for each in self.export_each(after=after):
            if isinstance(each, FailedEntry):
                raise each.problem
            yield each

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        # Search indexes of servers lag behind, limit their results, and do not find fields that
        # Lumos stores in properties.
        return search_entries(self.export(), text, filters, limit=limit)


class WritesInGroups(CompleteCatalog, interface.WritesMany):
    """A complete catalog that writes many datasets or items at once."""

    @abstractmethod
    def erase_many(self, urns: Sequence[str]) -> None: ...

    @abstractmethod
    def get_items(self, type: type[CatalogItem], keys: Sequence[str]) -> dict[str, CatalogItem]: ...

    @abstractmethod
    def put_items(self, items: Sequence[CatalogItem]) -> Iterator[FailedEntry]: ...

    def erase(self, urn: str) -> None:
        self.erase_many([urn])

    def get_item(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        return self.get_items(type, [key]).get(key)

    def put_item(self, item: CatalogItem) -> None:
        for refused in self.put_items([item]):
            raise refused.problem


class ServerCatalog(WritesInGroups, interface.Connects):
    """A catalog behind a network; the first call connects.

    `settings_type` is its section of `platform_config`; `package` is the module that it needs, and
    the name of its distribution.
    `_opened` is a cached property; its value has a `server` to close, and `items`.
    """

    settings_type: ClassVar[Any]
    package: ClassVar[tuple[str, str]] = ("httpx", "httpx")
    _opened: Any

    def __init__(self, settings: Any) -> None:
        module, distribution = self.package
        if find_spec(module) is None:
            raise MissingDependency(f"The platform '{self.kind}'", distribution, self.kind)
        if settings is None:
            raise MisuseError(
                f"The platform '{self.kind}' needs the address of its server. Set "
                f"platform_config.{self.kind}.{self.settings_type.address_key}, or write "
                f"{self.kind}:https://catalog.example.com."
            )
        self._settings = settings
        # Cache of the last read, which is usually written next: by URN, None if it does not exist.
        self._read: dict[str, Any] = {}

    @classmethod
    def at(cls, address: str, configured: Any = None) -> Self:
        settings = configured or cls.settings_type(**{cls.settings_type.address_key: address})
        return cls(settings.at(address))

    @property
    def name(self) -> str:
        return f"{self.kind}:{self._settings.address}"

    def close(self) -> None:
        self._read = {}
        if (opened := self.__dict__.pop("_opened", None)) is not None:
            opened.server.close()

    def items(self) -> Iterator[CatalogItem]:
        return iter(self._opened.items.all())

    def get_items(self, type: type[CatalogItem], keys: Sequence[str]) -> dict[str, CatalogItem]:
        return dict(self._opened.items.get_many(type, keys))

    def put_items(self, items: Sequence[CatalogItem]) -> Iterator[FailedEntry]:
        return iter(self._opened.items.put_many(items))

    def erase_item(self, item: CatalogItem) -> None:
        self._opened.items.erase(item)


class FileCatalog(CompleteCatalog, interface.StoredInFile, interface.WritesInBatches):
    """A catalog in a file or folder, which is read by the first call.

    `_opened` is a cached property with its contents; `example` is a path for error messages.
    """

    example: ClassVar[str]

    def __init__(self, settings: Any) -> None:
        path = settings.get("path") if isinstance(settings, dict) else None
        if not isinstance(path, str) or not path:
            raise MisuseError(
                f"The platform '{self.kind}' needs the path of its file or folder, as in "
                f"{self.kind}:{self.example}, or as 'path' under platform_config.{self.kind}."
            )
        self.path = Path(path)
        self._in_batch = False

    @classmethod
    def at(cls, address: str, configured: Any = None) -> Self:  # noqa: ARG003
        return cls({"path": address})

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.path.resolve()}"

    @contextmanager
    def batch(self) -> Iterator[None]:
        if self._in_batch:
            yield
            return
        self._in_batch = True
        try:
            yield
            self._write_batch()
        except BaseException:
            # Discard changes in memory, which the next batch would write.
            self.__dict__.pop("_opened", None)
            raise
        finally:
            self._in_batch = False

    @abstractmethod
    def _write_batch(self) -> None:
        """Write the changes in memory."""
