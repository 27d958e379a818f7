"""Containers of Azure as a storage."""

import os
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Final, NamedTuple

from lumos.storage.azure.access import AzureAccess, Container
from lumos.storage.azure.container import AzureContainer
from lumos.storage.azure.credentials import AzureCredentials
from lumos.storage.errors import StorageFault
from lumos.storage.http import Patience, Transport
from lumos.storage.interface import Listed, Listing, Marker, Stretch
from lumos.storage.markers import LOGS, METADATA, is_iceberg
from lumos.storage.objects.bucket import Entry, Page
from lumos.storage.objects.splitting import is_below_hidden
from lumos.storage.objects.storage import ObjectStorage

_AT_ONCE: Final = 16
# A folder with more blobs at the top of a root is listed again by a task of its own.
_MOST_MET: Final = 1000


class _Folder(NamedTuple):
    """What lies right in a folder."""

    prefix: str
    entries: list[Entry]
    below: list[str]
    markers: list[Listing]


class AzureStorage(ObjectStorage[AzureContainer]):
    """Paths are `abfss://container@account.dfs.core.windows.net/key`, the key as it is.

    A root is divided by its folders, since Azure lists from no given key on.
    """

    scheme: ClassVar[str] = "abfss"
    right_to_list: ClassVar[str] = "the role Storage Blob Data Reader"

    def __init__(
        self,
        access: AzureAccess,
        *,
        environment: Mapping[str, str] = os.environ,
        patience: Patience = Patience(),  # noqa: B008 - it is frozen
    ) -> None:
        super().__init__()
        self.access = access.settled(environment)
        self._environment = environment
        self._patience = patience
        self._transport = Transport()
        self._credentials: dict[str, AzureCredentials] = {}

    def _new_bucket(self, name: str) -> AzureContainer:
        container = Container.parse(name) or self.access.container(name)
        access = self.access.reaching(container)
        credentials = self._credentials.setdefault(
            container.account_url,
            AzureCredentials(
                access.with_keys(self._environment),
                container.account,
                self._transport,
                self._environment,
            ),
        )
        return AzureContainer(
            container,
            access,
            credentials=credentials,
            transport=self._transport,
            patience=self._patience,
        )

    def split(
        self, root: str, *, parts: int, deep: bool = True, tables: bool = True
    ) -> tuple[list[Listing], list[Stretch]]:
        bucket, prefix = self._place(root)
        try:
            page = bucket.page(prefix, folders=True)
            if not page.entries and not page.folders and prefix:
                return self._single(bucket, prefix.removesuffix("/")), []
            if not deep:
                return [], [Stretch(root, deep=False)]
            return self._divided(bucket, prefix, parts, tables=tables)
        except StorageFault as problem:
            return [self._unlisted(root, problem)], []

    def walk(self, stretch: Stretch, *, tables: bool = True) -> Iterator[Listing]:
        bucket, prefix = self._place(stretch.folder)
        deep = stretch.deep
        try:
            pages = bucket.pages(prefix, folders=not deep)
            yield from self._of_pages(bucket, prefix, pages, deep=deep, tables=tables and deep)
            if tables and not deep:
                yield from self._folder(bucket, prefix, tables=True).markers
        except StorageFault as problem:
            yield self._unlisted(stretch.folder, problem)

    def entries(
        self, folder: str, *, after: str = "", deep: bool = False, without: Collection[str] = ()
    ) -> Iterator[Listed]:
        yield from sorted(super().entries(folder, after=after, deep=deep, without=without))

    def files(self, folder: str) -> list[str]:
        return sorted(super().files(folder))

    def _single(self, bucket: AzureContainer, key: str) -> list[Listing]:
        """The root is no folder; it may be the key of a single blob."""
        entries = (entry for page in bucket.pages(key, folders=True) for entry in page.entries)
        found = next((entry for entry in entries if entry.key == key), None)
        return [] if found is None else [self._listed(bucket, found)]

    def _divided(
        self, bucket: AzureContainer, prefix: str, parts: int, *, tables: bool
    ) -> tuple[list[Listing], list[Stretch]]:
        met: list[Listing] = []
        crowded: list[Stretch] = []
        waiting = deque([prefix])
        asked = 0
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            while waiting and len(waiting) < parts and asked < parts:
                some = [waiting.popleft() for _ in range(min(_AT_ONCE, len(waiting)))]
                asked += len(some)
                for folder in pool.map(lambda at: self._folder(bucket, at, tables=tables), some):
                    if folder.markers:
                        met += folder.markers
                        continue
                    if len(folder.entries) > _MOST_MET:
                        crowded.append(
                            Stretch(self._folder_path(bucket, folder.prefix), deep=False)
                        )
                    else:
                        page = Page(folder.entries, [], "")
                        met += self._of_pages(
                            bucket, folder.prefix, [page], deep=True, tables=False
                        )
                    waiting.extend(folder.below)
        return met, [*crowded, *(Stretch(self._folder_path(bucket, each)) for each in waiting)]

    def _folder(self, bucket: AzureContainer, prefix: str, *, tables: bool) -> _Folder:
        entries: list[Entry] = []
        folders: list[str] = []
        for page in bucket.pages(prefix, folders=True):
            # Of a crowded folder a task of its own lists the blobs.
            entries += page.entries if len(entries) <= _MOST_MET else ()
            folders += page.folders
        at = self._folder_path(bucket, prefix)
        names = {each[len(prefix) : -1] for each in folders}
        markers: list[Listing] = []
        if tables:
            markers += [Marker(at, kind) for name, kind in LOGS.items() if name in names]
            if METADATA in names and self._is_iceberg(bucket, f"{prefix}{METADATA}/"):
                markers.append(Marker(at, "iceberg"))
        below = [each for each in folders if not is_below_hidden(prefix, each)]
        return _Folder(prefix, entries, below, markers)

    def _is_iceberg(self, bucket: AzureContainer, metadata: str) -> bool:
        pages = bucket.pages(metadata, folders=True)
        return any(is_iceberg(each.key[len(metadata) :]) for page in pages for each in page.entries)

    def _folder_path(self, bucket: AzureContainer, prefix: str) -> str:
        return self._path(bucket, prefix).removesuffix("/")
