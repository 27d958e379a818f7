"""Lists, reads and writes the files in a Hadoop file system."""

import os
import uuid
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from typing import ClassVar, Final, NamedTuple

from msgspec.structs import replace

from lumos.http.retries import RetryPolicy
from lumos.storage.errors import StorageFault, StorageMissing
from lumos.storage.hdfs.access import HdfsAccess
from lumos.storage.hdfs.client import HdfsPage, HdfsStatus, WebHdfs
from lumos.storage.hdfs.kerberos import with_token
from lumos.storage.http import STORAGE_RETRIES, storage_http_client
from lumos.storage.interface import (
    MAX_ITEMS_IN_SPLIT,
    FileStorage,
    KeyRange,
    ListedFile,
    ListingItem,
    ListingProblem,
    ReadableFile,
    TableRoot,
    divide_folders,
    is_hidden,
)
from lumos.storage.objects.bucket import ByteRange, ObjectBytes, ObjectFile
from lumos.storage.table_roots import LOG_FOLDERS, METADATA_FOLDER, is_iceberg, is_table_folder

SCHEME: Final = "hdfs://"
_CONCURRENCY: Final = 16


class _Folder(NamedTuple):
    """The first page of a folder, and the table roots in it."""

    path: str
    statuses: list[HdfsStatus]
    is_last: bool
    roots: list[TableRoot]


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
        self.access = access.resolve(environment)
        self._retries = retries
        self._http = storage_http_client()
        self._clients: dict[str, WebHdfs] = {}

    def client(self, authority: str) -> WebHdfs:
        """The client for the file system of an authority."""
        if authority not in self._clients:
            configured = self.access
            if configured.authority and not configured.contains(authority):
                # A token is not sent to another file system.
                configured = replace(configured, token="")
            access = with_token(configured, authority)
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
            client, path = self.resolve(root)
            status = client.status(path)
        except FileNotFoundError:
            return [], []
        except StorageFault as problem:
            return [_listing_problem(root, problem)], []
        if not status.is_folder:
            return [_to_listed_file(root, status)], []
        if not deep:
            return [], [KeyRange(root, deep=False)]

        def scan(path: str) -> tuple[list[ListingItem], list[str]]:
            folder = self._first_page(path, tables=tables)
            if isinstance(folder, ListingProblem):
                return [folder], []
            files, subfolders = self._contents(folder)
            first_files = list(islice(files, MAX_ITEMS_IN_SPLIT + 1))
            # Consume the iterator, which collects the subfolders.
            deque(files, maxlen=0)
            return first_files, subfolders

        return divide_folders(root, scan, parts=parts, concurrency=_CONCURRENCY)

    def walk(self, key_range: KeyRange, *, tables: bool = True) -> Iterator[ListingItem]:
        queue = [key_range.folder]
        with ThreadPoolExecutor(_CONCURRENCY) as pool:
            while queue:
                batch, queue = queue[-_CONCURRENCY:], queue[:-_CONCURRENCY]
                for folder in pool.map(
                    lambda item_path: self._first_page(item_path, tables=tables), batch
                ):
                    if isinstance(folder, ListingProblem):
                        yield folder
                        continue
                    files, subfolders = self._contents(folder)
                    yield from files
                    queue.extend(subfolders if key_range.deep else ())

    def entries(
        self,
        folder: str,
        *,
        after: str = "",
        deep: bool = False,
        excluded_folders: Collection[str] = (),
    ) -> Iterator[ListedFile]:
        if deep:
            prefix = f"{folder.rstrip('/')}/"
            files = self._files_below(folder, excluded_folders)
            yield from sorted(file for file in files if file.path[len(prefix) :] > after)
            return
        client, path = self.resolve(folder)
        with suppress(FileNotFoundError):
            for status in client.all_children(path, after):
                if status.is_file:
                    yield _to_listed_file(f"{folder.rstrip('/')}/{status.name}", status)

    def _files_below(
        self, folder: str, excluded_folders: Collection[str] = ()
    ) -> Iterator[ListedFile]:
        client, path = self.resolve(folder)
        with suppress(FileNotFoundError):
            for status in client.all_children(path):
                item_path = f"{folder.rstrip('/')}/{status.name}"
                if status.is_folder and status.name not in excluded_folders:
                    yield from self._files_below(item_path)
                elif status.is_file:
                    yield _to_listed_file(item_path, status)

    def exists(self, path: str) -> bool:
        client, item_path = self.resolve(path)
        try:
            return client.status(item_path).is_file
        except StorageMissing:
            return False

    @contextmanager
    def open(self, path: str, *, size: int | None = None) -> Iterator[ReadableFile]:
        client, item_path = self.resolve(path)
        yield ObjectFile(_RangeReader(client, size), item_path, size)

    def read(self, path: str) -> bytes:
        client, item_path = self.resolve(path)
        return client.read(item_path)

    def write(self, path: str, data: bytes) -> None:
        client, item_path = self.resolve(path)
        folder, _, name = item_path.rpartition("/")
        temporary = f"{folder}/.{name}.{uuid.uuid4().hex}.part"
        try:
            client.create(temporary, data)
            client.rename(temporary, item_path, size=len(data))
        except BaseException:
            with suppress(StorageFault):
                client.delete(temporary)
            raise

    def files(self, folder: str) -> list[str]:
        prefix_length = len(folder.rstrip("/")) + 1
        return [file.path[prefix_length:] for file in self.entries(folder)]

    def discard(self, paths: Sequence[str]) -> None:
        def delete(path: str) -> None:
            client, item_path = self.resolve(path)
            client.delete(item_path)

        with ThreadPoolExecutor(_CONCURRENCY) as pool:
            list(pool.map(delete, paths))

    def resolve(self, path: str) -> tuple[WebHdfs, str]:
        """The client for the file system of a path, and the path within it."""
        authority, _, rest = path.removeprefix(SCHEME).partition("/")
        return self.client(authority), f"/{rest}"

    def _first_page(self, folder: str, *, tables: bool) -> "_Folder | ListingProblem":
        try:
            client, path = self.resolve(folder)
            page = client.children(path)
            roots = list(self._table_roots(folder, page)) if tables else []
        except FileNotFoundError:
            # The folder was removed after its parent was listed.
            return _Folder(folder, [], True, [])
        except StorageFault as problem:
            return _listing_problem(folder, problem)
        return _Folder(folder, page.statuses, page.is_last, roots)

    def _contents(self, folder: _Folder) -> tuple[Iterator[ListingItem], list[str]]:
        """The files and subfolders of a folder; iterating over the files fills the subfolders."""
        if folder.roots:
            return iter(folder.roots), []
        subfolders: list[str] = []
        return self._files(folder, subfolders), subfolders

    def _files(self, folder: _Folder, subfolders: list[str]) -> Iterator[ListingItem]:
        try:
            for status in self._statuses(folder):
                item_path = f"{folder.path.rstrip('/')}/{status.name}"
                if is_hidden(status.name):
                    continue
                if status.is_folder:
                    subfolders.append(item_path)
                elif status.is_file:
                    yield _to_listed_file(item_path, status)
        except FileNotFoundError:
            return
        except StorageFault as problem:
            yield _listing_problem(folder.path, problem)

    def _statuses(self, folder: _Folder) -> Iterator[HdfsStatus]:
        yield from folder.statuses
        if not folder.is_last:
            client, path = self.resolve(folder.path)
            yield from client.all_children(path, folder.statuses[-1].name)

    def _table_roots(self, folder: str, page: HdfsPage) -> Iterator[TableRoot]:
        names = {status.name for status in page.statuses if status.is_folder}
        if not page.is_last:
            # The log may be on any page, so look it up by name.
            names |= {
                name
                for name in (*LOG_FOLDERS, METADATA_FOLDER)
                if self._is_folder(f"{folder}/{name}")
            }
        logs = [name for name in LOG_FOLDERS if name in names]
        if not all(is_table_folder(name) or is_hidden(name) for name in names):
            # An empty log next to other folders was left by a failed write, so it is ignored.
            logs = [name for name in logs if self._has_files(f"{folder}/{name}")]
        yield from (TableRoot(folder, LOG_FOLDERS[name]) for name in logs)
        if METADATA_FOLDER in names:
            client, path = self.resolve(f"{folder}/{METADATA_FOLDER}")
            # If a folder cannot be listed, the walk reports it.
            with suppress(StorageFault):
                if any(is_iceberg(status.name) for status in client.all_children(path)):
                    yield TableRoot(folder, "iceberg")

    def _has_files(self, path: str) -> bool:
        client, item_path = self.resolve(path)
        try:
            return bool(client.children(item_path).statuses)
        except StorageFault:
            # The table reader will report this error.
            return True

    def _is_folder(self, path: str) -> bool:
        client, item_path = self.resolve(path)
        try:
            return client.status(item_path).is_folder
        except FileNotFoundError:
            return False


class _RangeReader:
    """Reads byte ranges of one file."""

    supports_suffix_ranges: ClassVar[bool] = False

    def __init__(self, client: WebHdfs, size: int | None) -> None:
        self._client = client
        self._size = size

    def get(self, key: str, byte_range: ByteRange | None = None, *, etag: str = "") -> ObjectBytes:  # noqa: ARG002
        """Read a file or a range of its bytes; Hadoop files never change after they are written."""
        if byte_range is None:
            data = self._client.read(key)
            return ObjectBytes(data, len(data), "")
        if self._size is None:
            self._size = self._client.status(key).size
        assert byte_range.end is not None, "WebHDFS does not support suffix ranges"
        end = min(byte_range.end, self._size)
        length = end - byte_range.start
        data = self._client.read(key, byte_range.start, length) if length > 0 else b""
        return ObjectBytes(data, self._size, "")


def _to_listed_file(path: str, status: HdfsStatus) -> ListedFile:
    # A rewritten file has another id, even if its time and size are the same.
    return ListedFile(path, status.size, status.modified, status.file_id)


def _listing_problem(folder: str, problem: StorageFault) -> ListingProblem:
    if isinstance(problem, PermissionError):
        reason = f"No permission to list it ({problem}); grant read and execute."
    else:
        reason = f"It could not be listed: {problem}."
    return ListingProblem(folder, problem.problem_code, reason)
