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

from lumos.storage.errors import StorageFault, StorageMissing
from lumos.storage.hdfs.access import HdfsAccess
from lumos.storage.hdfs.client import Children, Status, WebHdfs
from lumos.storage.hdfs.negotiate import with_token
from lumos.storage.http import Patience, Transport
from lumos.storage.interface import (
    Listed,
    Listing,
    Marker,
    ReadableFile,
    Storage,
    Stretch,
    Unlisted,
    is_hidden,
)
from lumos.storage.markers import LOGS, METADATA, is_iceberg, is_of_table
from lumos.storage.objects.bucket import Piece, Range
from lumos.storage.objects.file import ObjectFile

SCHEME: Final = "hdfs://"
_AT_ONCE: Final = 16
# A folder with more files at the top of a root is listed again by a task of its own.
_MOST_MET: Final = 1000


class _Folder(NamedTuple):
    """What lies right in a folder, as far as its first page tells."""

    path: str
    found: list[Status]
    is_last: bool
    markers: list[Marker]


class HdfsStorage(Storage):
    """Paths are `hdfs://authority/path`, where the authority is a name node or a nameservice."""

    concurrency: ClassVar[int] = 16

    def __init__(
        self,
        access: HdfsAccess,
        *,
        environment: Mapping[str, str] = os.environ,
        patience: Patience = Patience(),  # noqa: B008 - it is frozen
    ) -> None:
        self.access = access.settled(environment)
        self._patience = patience
        self._transport = Transport()
        self._clients: dict[str, WebHdfs] = {}

    def client(self, authority: str) -> WebHdfs:
        """The file system of an authority, as this access reaches it."""
        if authority not in self._clients:
            own = self.access
            if own.authority and not own.is_of(authority):
                # What lets one in here is no other file system's to see.
                own = msgspec.structs.replace(own, token="")
            access = with_token(own, authority)
            self._clients[authority] = WebHdfs(
                access.bases(authority),
                transport=self._transport,
                patience=self._patience,
                user=access.user,
                token=access.token,
            )
        return self._clients[authority]

    def split(
        self, root: str, *, parts: int, deep: bool = True, tables: bool = True
    ) -> tuple[list[Listing], list[Stretch]]:
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
            return [], [Stretch(root, deep=False)]
        met: list[Listing] = []
        crowded: list[Stretch] = []
        waiting = deque([root])
        asked = 0
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            while waiting and len(waiting) < parts and asked < parts:
                some = [waiting.popleft() for _ in range(min(_AT_ONCE, len(waiting)))]
                asked += len(some)
                for folder in pool.map(lambda at: self._looked_at(at, tables=tables), some):
                    if isinstance(folder, Unlisted):
                        met.append(folder)
                        continue
                    found, below = self._contents(folder)
                    listings = list(islice(found, _MOST_MET + 1))
                    if len(listings) > _MOST_MET:
                        crowded.append(Stretch(folder.path, deep=False))
                        # Gone through to its end, for the folders that are in it.
                        deque(found, maxlen=0)
                    else:
                        met += listings
                    waiting.extend(below)
        return met, [*crowded, *map(Stretch, waiting)]

    def walk(self, stretch: Stretch, *, tables: bool = True) -> Iterator[Listing]:
        waiting = [stretch.folder]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            while waiting:
                some, waiting = waiting[-_AT_ONCE:], waiting[:-_AT_ONCE]
                for folder in pool.map(lambda at: self._looked_at(at, tables=tables), some):
                    if isinstance(folder, Unlisted):
                        yield folder
                        continue
                    found, below = self._contents(folder)
                    yield from found
                    waiting.extend(below if stretch.deep else ())

    def entries(
        self, folder: str, *, after: str = "", deep: bool = False, without: Collection[str] = ()
    ) -> Iterator[Listed]:
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

    def _below(self, folder: str, without: Collection[str] = ()) -> Iterator[Listed]:
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

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(discarded, paths))

    def _at(self, path: str) -> tuple[WebHdfs, str]:
        authority, _, rest = path.removeprefix(SCHEME).partition("/")
        return self.client(authority), f"/{rest}"

    def _looked_at(self, folder: str, *, tables: bool) -> "_Folder | Unlisted":
        try:
            client, path = self._at(folder)
            page = client.children(path)
            markers = list(self._markers(folder, page)) if tables else []
        except FileNotFoundError:
            # It went after it was met.
            return _Folder(folder, [], True, [])
        except StorageFault as problem:
            return _unlisted(folder, problem)
        return _Folder(folder, page.found, page.is_last, markers)

    def _contents(self, folder: _Folder) -> tuple[Iterator[Listing], list[str]]:
        """The files of a folder, which are listed on while they are taken, and then its folders."""
        if folder.markers:
            return iter(folder.markers), []
        below: list[str] = []
        return self._files(folder, below), below

    def _files(self, folder: _Folder, below: list[str]) -> Iterator[Listing]:
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

    def _statuses(self, folder: _Folder) -> Iterator[Status]:
        yield from folder.found
        if not folder.is_last:
            client, path = self._at(folder.path)
            yield from client.all_children(path, folder.found[-1].name)

    def _markers(self, folder: str, page: Children) -> Iterator[Marker]:
        names = {each.name for each in page.found if each.is_folder}
        if not page.is_last:
            # On which page a log stands is chance, so it is asked for by its name.
            names |= {name for name in (*LOGS, METADATA) if self._is_folder(f"{folder}/{name}")}
        logs = [name for name in LOGS if name in names]
        if not all(is_of_table(name) or is_hidden(name) for name in names):
            # Among other folders than a table's, an empty log is what a failed write left.
            logs = [name for name in logs if self._holds_anything(f"{folder}/{name}")]
        yield from (Marker(folder, LOGS[name]) for name in logs)
        if METADATA in names:
            client, path = self._at(f"{folder}/{METADATA}")
            # One that must not be listed is met again, and reported, as any other folder.
            with suppress(StorageFault):
                if any(is_iceberg(each.name) for each in client.all_children(path)):
                    yield Marker(folder, "iceberg")

    def _holds_anything(self, path: str) -> bool:
        client, at = self._at(path)
        try:
            return bool(client.children(at).found)
        except StorageFault:
            # Whoever reads it is told why.
            return True

    def _is_folder(self, path: str) -> bool:
        client, at = self._at(path)
        try:
            return client.status(at).is_folder
        except FileNotFoundError:
            return False


class _Ranges:
    """The bytes of one file."""

    serves_ends: ClassVar[bool] = False

    def __init__(self, client: WebHdfs, size: int | None) -> None:
        self._client = client
        self._size = size

    def get(self, key: str, wanted: Range | None = None, *, etag: str = "") -> Piece:  # noqa: ARG002
        """Some bytes, or all of them; a file of Hadoop is written once, and then stays as it is."""
        if wanted is None:
            data = self._client.read(key)
            return Piece(data, len(data), "")
        if self._size is None:
            self._size = self._client.status(key).size
        assert wanted.end is not None, "nobody asks for ends"
        end = min(wanted.end, self._size)
        length = end - wanted.start
        data = self._client.read(key, wanted.start, length) if length > 0 else b""
        return Piece(data, self._size, "")


def _listed(path: str, status: Status) -> Listed:
    # A file that is written anew has another id, even where its time and size are the same.
    return Listed(path, status.size, status.modified, status.file_id)


def _unlisted(folder: str, problem: StorageFault) -> Unlisted:
    if isinstance(problem, PermissionError):
        reason = f"No permission to list it; grant read and execute: {problem}."
    else:
        reason = f"It could not be listed: {problem}."
    return Unlisted(folder, problem.problem_code, reason)
