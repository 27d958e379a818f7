"""Files on disks of this machine, or mounted on all machines of a cluster."""

import errno
import os
import uuid
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from stat import S_ISREG
from typing import Final

from lumos.storage.interface import (
    FileTooLong,
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

# A folder with more files at the top of a root is listed again by a task of its own.
_MOST_MET: Final = 1000


class LocalStorage(Storage):
    """Local paths; links to files are followed, links to folders below the root are not."""

    def split(
        self, root: str, *, parts: int, deep: bool = True, tables: bool = True
    ) -> tuple[list[Listing], list[Stretch]]:
        if not os.path.isdir(root):
            return [_listed(root, os.stat(root))], []
        if not deep:
            return [], [Stretch(root, deep=False)]
        met: list[Listing] = []
        crowded: list[Stretch] = []
        folders = deque([root])
        for _ in range(parts):
            if not folders or len(folders) >= parts:
                break
            folder = folders.popleft()
            found, below = _scan(folder, tables=tables)
            if len(found) > _MOST_MET:
                crowded.append(Stretch(folder, deep=False))
            else:
                met.extend(found)
            folders.extend(below)
        return met, [*crowded, *map(Stretch, folders)]

    def walk(self, stretch: Stretch, *, tables: bool = True) -> Iterator[Listing]:
        folders = [stretch.folder]
        while folders:
            found, below = _scan(folders.pop(), tables=tables)
            yield from found
            folders.extend(below if stretch.deep else ())

    def entries(
        self, folder: str, *, after: str = "", deep: bool = False, without: Collection[str] = ()
    ) -> Iterator[Listed]:
        inside = f"{folder.rstrip('/')}/"
        found = _files(folder, deep=deep, without=without)
        yield from sorted(each for each in found if each.path[len(inside) :] > after)

    def exists(self, path: str) -> bool:
        try:
            return S_ISREG(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    @contextmanager
    def open(self, path: str, *, size: int | None = None) -> Iterator[ReadableFile]:  # noqa: ARG002
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            yield _LocalFile(descriptor)
        finally:
            os.close(descriptor)

    def write(self, path: str, data: bytes) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        unfinished = f"{path}.{uuid.uuid4().hex}.part"
        try:
            with open(unfinished, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.remove(unfinished)
            raise

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def read_within(self, path: str, longest: int, *, size: int | None = None) -> bytes:  # noqa: ARG002
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > longest:
                raise FileTooLong(path, longest)
            return file.read()

    def files(self, folder: str) -> list[str]:
        try:
            with os.scandir(folder) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        except FileNotFoundError:
            return []

    def discard(self, paths: Sequence[str]) -> None:
        for path in paths:
            with suppress(FileNotFoundError):
                os.remove(path)


class _LocalFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def head(self, length: int) -> bytes:
        return os.pread(self._descriptor, length, 0)

    def tail(self, length: int) -> bytes:
        start = max(0, self.size - length)
        return os.pread(self._descriptor, self.size - start, start)

    def part(self, start: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, start)


def _scan(folder: str, *, tables: bool) -> tuple[list[Listing], list[str]]:
    """What lies right in a folder, and the folders in it; of a table, that it is one."""
    found: list[Listing] = []
    below: list[str] = []
    markers: list[Marker] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if tables and (entry.name in LOGS or entry.name == METADATA):
                    markers.extend(_markers(folder, entry))
                if is_hidden(entry.name):
                    continue
                if not entry.is_dir(follow_symlinks=False):
                    found.extend(_entry(entry))
                elif (badly_named := _badly_named(entry, "folder")) is not None:
                    found.append(badly_named)
                else:
                    below.append(entry.path)
    except OSError as problem:
        found.append(_unlisted(folder, problem))
    if not all(is_of_table(os.path.basename(each)) for each in below):
        # Among other folders than a table's, an empty log is what a failed write left.
        markers = [each for each in markers if not _is_empty(each)]
    return (list[Listing](markers), []) if markers else (found, below)


def _is_empty(marker: Marker) -> bool:
    """Whether a log is a folder without anything in it; metadata of Iceberg was seen by then."""
    logs = [f"{marker.folder}/{name}" for name, kind in LOGS.items() if kind == marker.kind]
    try:
        return bool(logs) and not any(map(os.listdir, logs))
    except OSError:
        # Whoever reads it is told why.
        return False


def _markers(folder: str, entry: os.DirEntry[str]) -> Iterator[Marker]:
    if entry.name in LOGS and entry.is_dir():
        yield Marker(folder, LOGS[entry.name])
    elif entry.name == METADATA and entry.is_dir():
        # One that must not be listed is met again, and reported, as any other folder.
        with suppress(OSError), os.scandir(entry.path) as inside:
            if any(is_iceberg(each.name) for each in inside):
                yield Marker(folder, "iceberg")


def _files(folder: str, *, deep: bool, without: Collection[str] = ()) -> Iterator[Listed]:
    """All files in a folder, hidden ones too; links to folders are not followed."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if deep and entry.name not in without:
                yield from _files(entry.path, deep=True)
        elif entry.is_file():
            # A name that is not valid UTF-8 is none that a log could hold.
            with suppress(FileNotFoundError, UnicodeEncodeError):
                entry.path.encode()
                yield _listed(entry.path, entry.stat())


def _badly_named(entry: os.DirEntry[str], kind: str) -> Unlisted | None:
    """What to report of a name that is not valid UTF-8."""
    try:
        entry.path.encode()
    except UnicodeEncodeError:
        shown = entry.path.encode(errors="surrogateescape").decode(errors="backslashreplace")
        return Unlisted(shown, "bad_name", f"The {kind}'s name is not valid UTF-8; rename it.")
    return None


def _entry(entry: os.DirEntry[str]) -> Iterator[Listing]:
    try:
        if (badly_named := _badly_named(entry, "file")) is not None:
            yield badly_named
        elif entry.is_file():
            yield _listed(entry.path, entry.stat())
    except OSError as problem:
        # A file that vanished while the folder was read is simply not there.
        if problem.errno != errno.ENOENT:
            yield _unlisted(entry.path, problem)


def _listed(path: str, stat: os.stat_result) -> Listed:
    return Listed(path, stat.st_size, stat.st_mtime_ns // 1000)


def _unlisted(path: str, problem: OSError) -> Unlisted:
    if isinstance(problem, PermissionError):
        return Unlisted(path, "permission_denied", "No permission to list it; grant read access.")
    return Unlisted(path, "not_listed", f"It could not be listed: {problem.strerror}.")
