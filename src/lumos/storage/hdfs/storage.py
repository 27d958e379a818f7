"""A Hadoop file system as a storage."""

import os
import uuid
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from typing import ClassVar, Final, NamedTuple

import msgspec

from lumos.http.retries import RetryPolicy
from lumos.storage.errors import StorageFault, StorageMissing
from lumos.storage.hdfs.access import HdfsAccess
from lumos.storage.hdfs.client import HdfsPage, HdfsStatus, WebHdfs
from lumos.storage.hdfs.kerberos import with_token
from lumos.storage.http import STORAGE_RETRIES, storage_http_client
from lumos.storage.interface import (
    FileStorage,
    KeyRange,
    ListedFile,
    ListingItem,
    ListingProblem,
    ReadableFile,
    TableRoot,
    is_hidden,
)
from lumos.storage.objects.bucket import ByteRange, ObjectBytes, ObjectFile
from lumos.storage.table_roots import LOG_FOLDERS, METADATA_FOLDER, is_iceberg, is_table_folder

SCHEME: Final = "hdfs://"
_CONCURRENCY: Final = 16
# A folder with more files at the top of a root is listed again by a task of its own.
_MAX_FILES_IN_SPLIT: Final = 1000


class _Folder(NamedTuple):
    """The first page of a folder, and the table roots in it."""

    path: str
    found: list[HdfsStatus]
    is_last: bool
    markers: list[TableRoot]


class HdfsStorage(FileStorage):
    """Paths are `hdfs://authority/path`, where the authority is a name node or a nameservice."""

    concurrency: ClassVar[int] = 16

    def __init__(
        self,
        access: HdfsAccess,
        *,
        environment: Mapping[str, str] = os.environ,
        retries: RetryPolicy = STORAGE_RETRIES,
    ) -> None:
        self.access = access.settled(environment)
        self._retries = retries
        self._http = storage_http_client()
        self._clients: dict[str, WebHdfs] = {}

    def client(self, authority: str) -> WebHdfs:
        """The file system of an authority, as this access reaches it."""
        if authority not in self._clients:
            own = self.access
            if own.authority and not own.is_of(authority):
                # A token is not sent to another file system.
                own = msgspec.structs.replace(own, token="")
            access = with_token(own, authority)
            self._clients[authority] = WebHdfs(
                access.bases(authority),
                http_client=self._http,
                retries=self._retries,
                user=access.user,
                token=access.token,
            )
        return self._clients[authority]

    def split(
        self, root: str, *, parts: int, deep: bool = True, tables: bool = True
    ) -> tuple[list[ListingItem], list[KeyRange]]:
        try:
            client, path = self._at(root)
            status = client.status(path)
        except FileNotFoundError:
            return [], []
        except StorageFault as problem:
            return [_unlisted(root, problem)], []
        if not status.is_folder:
            return [_listed(root, status)], []
        if not deep:
            return [], [KeyRange(root, deep=False)]
        items: list[ListingItem] = []
        crowded: list[KeyRange] = []
        waiting = deque([root])
        asked = 0
        with ThreadPoolExecutor(_CONCURRENCY) as pool:
            while waiting and len(waiting) < parts and asked < parts:
                some = [waiting.popleft() for _ in range(min(_CONCURRENCY, len(waiting)))]
                asked += len(some)
                for folder in pool.map(lambda at: self._first_page(at, tables=tables), some):
                    if isinstance(folder, ListingProblem):
                        items.append(folder)
                        continue
                    found, below = self._contents(folder)
                    listings = list(islice(found, _MAX_FILES_IN_SPLIT + 1))
                    if len(listings) > _MAX_FILES_IN_SPLIT:
                        crowded.append(KeyRange(folder.path, deep=False))
                        # Consumed to its end, which collects the subfolders.
                        deque(found, maxlen=0)
                    else:
                        items += listings
                    waiting.extend(below)
        return items, [*crowded, *map(KeyRange, waiting)]

    def walk(self, key_range: KeyRange, *, tables: bool = True) -> Iterator[ListingItem]:
        waiting = [key_range.folder]
        with ThreadPoolExecutor(_CONCURRENCY) as pool:
            while waiting:
                some, waiting = waiting[-_CONCURRENCY:], waiting[:-_CONCURRENCY]
                for folder in pool.map(lambda at: self._first_page(at, tables=tables), some):
                    if isinstance(folder, ListingProblem):
                        yield folder
                        continue
                    found, below = self._contents(folder)
                    yield from found
                    waiting.extend(below if key_range.deep else ())

    def entries(
        self, folder: str, *, after: str = "", deep: bool = False, without: Collection[str] = ()
    ) -> Iterator[ListedFile]:
        if deep:
            inside = f"{folder.rstrip('/')}/"
            below = self._below(folder, without)
            yield from sorted(each for each in below if each.path[len(inside) :] > after)
            return
        client, path = self._at(folder)
        with suppress(FileNotFoundError):
            for status in client.all_children(path, after):
                if status.is_file:
                    yield _listed(f"{folder.rstrip('/')}/{status.name}", status)

    def _below(self, folder: str, without: Collection[str] = ()) -> Iterator[ListedFile]:
        client, path = self._at(folder)
        with suppress(FileNotFoundError):
            for status in client.all_children(path):
                at = f"{folder.rstrip('/')}/{status.name}"
                if status.is_folder and status.name not in without:
                    yield from self._below(at)
                elif status.is_file:
                    yield _listed(at, status)

    def exists(self, path: str) -> bool:
        client, at = self._at(path)
        try:
            return client.status(at).is_file
        except StorageMissing:
            return False

    @contextmanager
    def open(self, path: str, *, size: int | None = None) -> Iterator[ReadableFile]:
        client, at = self._at(path)
        yield ObjectFile(_Ranges(client, size), at, size)

    def read(self, path: str) -> bytes:
        client, at = self._at(path)
        return client.read(at)

    def write(self, path: str, data: bytes) -> None:
        client, at = self._at(path)
        folder, _, name = at.rpartition("/")
        unfinished = f"{folder}/.{name}.{uuid.uuid4().hex}.part"
        try:
            client.create(unfinished, data)
            client.rename(unfinished, at, size=len(data))
        except BaseException:
            with suppress(StorageFault):
                client.delete(unfinished)
            raise

    def files(self, folder: str) -> list[str]:
        inside = len(folder.rstrip("/")) + 1
        return [each.path[inside:] for each in self.entries(folder)]

    def discard(self, paths: Sequence[str]) -> None:
        def discarded(path: str) -> None:
            client, at = self._at(path)
            client.delete(at)

        with ThreadPoolExecutor(_CONCURRENCY) as pool:
            list(pool.map(discarded, paths))

    def _at(self, path: str) -> tuple[WebHdfs, str]:
        authority, _, rest = path.removeprefix(SCHEME).partition("/")
        return self.client(authority), f"/{rest}"

    def _first_page(self, folder: str, *, tables: bool) -> "_Folder | ListingProblem":
        try:
            client, path = self._at(folder)
            page = client.children(path)
            markers = list(self._markers(folder, page)) if tables else []
        except FileNotFoundError:
            # It was removed after its parent was listed.
            return _Folder(folder, [], True, [])
        except StorageFault as problem:
            return _unlisted(folder, problem)
        return _Folder(folder, page.found, page.is_last, markers)

    def _contents(self, folder: _Folder) -> tuple[Iterator[ListingItem], list[str]]:
        """The files of a folder, and its subfolders, complete once all files are taken."""
        if folder.markers:
            return iter(folder.markers), []
        below: list[str] = []
        return self._files(folder, below), below

    def _files(self, folder: _Folder, below: list[str]) -> Iterator[ListingItem]:
        try:
            for status in self._statuses(folder):
                at = f"{folder.path.rstrip('/')}/{status.name}"
                if is_hidden(status.name):
                    continue
                if status.is_folder:
                    below.append(at)
                elif status.is_file:
                    yield _listed(at, status)
        except FileNotFoundError:
            return
        except StorageFault as problem:
            yield _unlisted(folder.path, problem)

    def _statuses(self, folder: _Folder) -> Iterator[HdfsStatus]:
        yield from folder.found
        if not folder.is_last:
            client, path = self._at(folder.path)
            yield from client.all_children(path, folder.found[-1].name)

    def _markers(self, folder: str, page: HdfsPage) -> Iterator[TableRoot]:
        names = {each.name for each in page.found if each.is_folder}
        if not page.is_last:
            # The log may be on any page, so that it is looked up by name.
            names |= {
                name
                for name in (*LOG_FOLDERS, METADATA_FOLDER)
                if self._is_folder(f"{folder}/{name}")
            }
        logs = [name for name in LOG_FOLDERS if name in names]
        if not all(is_table_folder(name) or is_hidden(name) for name in names):
            # Next to folders that no table has, an empty log is the rest of a failed write.
            logs = [name for name in logs if self._holds_anything(f"{folder}/{name}")]
        yield from (TableRoot(folder, LOG_FOLDERS[name]) for name in logs)
        if METADATA_FOLDER in names:
            client, path = self._at(f"{folder}/{METADATA_FOLDER}")
            # A folder that cannot be listed is reported when it is walked as any other folder.
            with suppress(StorageFault):
                if any(is_iceberg(each.name) for each in client.all_children(path)):
                    yield TableRoot(folder, "iceberg")

    def _holds_anything(self, path: str) -> bool:
        client, at = self._at(path)
        try:
            return bool(client.children(at).found)
        except StorageFault:
            # The reader of the table reports why.
            return True

    def _is_folder(self, path: str) -> bool:
        client, at = self._at(path)
        try:
            return client.status(at).is_folder
        except FileNotFoundError:
            return False


class _Ranges:
    """The bytes of one file."""

    serves_suffixes: ClassVar[bool] = False

    def __init__(self, client: WebHdfs, size: int | None) -> None:
        self._client = client
        self._size = size

    def get(self, key: str, wanted: ByteRange | None = None, *, etag: str = "") -> ObjectBytes:  # noqa: ARG002
        """Some bytes, or all of them; files of Hadoop do not change once they are written."""
        if wanted is None:
            data = self._client.read(key)
            return ObjectBytes(data, len(data), "")
        if self._size is None:
            self._size = self._client.status(key).size
        assert wanted.end is not None, "nobody asks for ends"
        end = min(wanted.end, self._size)
        length = end - wanted.start
        data = self._client.read(key, wanted.start, length) if length > 0 else b""
        return ObjectBytes(data, self._size, "")


def _listed(path: str, status: HdfsStatus) -> ListedFile:
    # A rewritten file has another id, even if its time and size are the same.
    return ListedFile(path, status.size, status.modified, status.file_id)


def _unlisted(folder: str, problem: StorageFault) -> ListingProblem:
    if isinstance(problem, PermissionError):
        reason = f"No permission to list it; grant read and execute: {problem}."
    else:
        reason = f"It could not be listed: {problem}."
    return ListingProblem(folder, problem.problem_code, reason)
