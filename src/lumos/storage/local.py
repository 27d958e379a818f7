"""Files on disks of this machine, or mounted on all machines of a cluster."""

import errno
import os
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from stat import S_ISREG

from lumos.storage.interface import (
    FileStorage,
    FileTooLong,
    KeyRange,
    ListedFile,
    ListingItem,
    ListingProblem,
    ReadableFile,
    TableRoot,
    divide_folders,
    is_hidden,
)
from lumos.storage.table_roots import LOG_FOLDERS, METADATA_FOLDER, is_iceberg, is_table_folder


class LocalStorage(FileStorage):
    """Paths on disk; links to files are followed, links to folders below the root are not."""

    def split(
        self, root: str, *, parts: int, deep: bool = True, tables: bool = True
    ) -> tuple[list[ListingItem], list[KeyRange]]:
        if not os.path.isdir(root):
            return [_to_listed_file(root, os.stat(root))], []
        if not deep:
            return [], [KeyRange(root, deep=False)]
        return divide_folders(root, partial(_scan, tables=tables), parts=parts)

    def walk(self, key_range: KeyRange, *, tables: bool = True) -> Iterator[ListingItem]:
        folders = [key_range.folder]
        while folders:
            items, subfolders = _scan(folders.pop(), tables=tables)
            yield from items
            folders.extend(subfolders if key_range.deep else ())

    def entries(
        self,
        folder: str,
        *,
        after: str = "",
        deep: bool = False,
        excluded_folders: Collection[str] = (),
    ) -> Iterator[ListedFile]:
        prefix = f"{folder.rstrip('/')}/"
        files = _files(folder, deep=deep, excluded_folders=excluded_folders)
        yield from sorted(file for file in files if file.path[len(prefix) :] > after)

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
        temporary = f"{path}.{uuid.uuid4().hex}.part"
        try:
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.remove(temporary)
            raise

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def read_within(self, path: str, max_bytes: int, *, size: int | None = None) -> bytes:  # noqa: ARG002
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > max_bytes:
                raise FileTooLong(path, max_bytes)
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


def _scan(folder: str, *, tables: bool) -> tuple[list[ListingItem], list[str]]:
    """The files and subfolders of a folder; if the folder is a table, only its root."""
    items: list[ListingItem] = []
    subfolders: list[str] = []
    roots: list[TableRoot] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if tables and (entry.name in LOG_FOLDERS or entry.name == METADATA_FOLDER):
                    roots.extend(_table_roots(folder, entry))
                if is_hidden(entry.name):
                    continue
                if not entry.is_dir(follow_symlinks=False):
                    items.extend(_list_file(entry))
                elif (name_problem := _name_problem(entry, "folder")) is not None:
                    items.append(name_problem)
                else:
                    subfolders.append(entry.path)
    except OSError as problem:
        items.append(_listing_problem(folder, problem))
    if not all(is_table_folder(os.path.basename(path)) for path in subfolders):
        # An empty log next to other folders was left by a failed write, so it is ignored.
        roots = [root for root in roots if not _is_empty(root)]
    return (list[ListingItem](roots), []) if roots else (items, subfolders)


def _is_empty(root: TableRoot) -> bool:
    """Whether the log of a table is an empty folder; always False for Iceberg."""
    logs = [f"{root.folder}/{name}" for name, kind in LOG_FOLDERS.items() if kind == root.kind]
    try:
        return bool(logs) and not any(map(os.listdir, logs))
    except OSError:
        # The table reader will report this error.
        return False


def _table_roots(folder: str, entry: os.DirEntry[str]) -> Iterator[TableRoot]:
    if entry.name in LOG_FOLDERS and entry.is_dir():
        yield TableRoot(folder, LOG_FOLDERS[entry.name])
    elif entry.name == METADATA_FOLDER and entry.is_dir():
        # If a folder cannot be listed, the walk reports it.
        with suppress(OSError), os.scandir(entry.path) as children:
            if any(is_iceberg(file.name) for file in children):
                yield TableRoot(folder, "iceberg")


def _files(
    folder: str, *, deep: bool, excluded_folders: Collection[str] = ()
) -> Iterator[ListedFile]:
    """All files in a folder, also hidden files; links to folders are not followed."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if deep and entry.name not in excluded_folders:
                yield from _files(entry.path, deep=True)
        elif entry.is_file():
            # Logs of tables cannot refer to names that are not valid UTF-8.
            with suppress(FileNotFoundError, UnicodeEncodeError):
                entry.path.encode()
                yield _to_listed_file(entry.path, entry.stat())


def _name_problem(entry: os.DirEntry[str], kind: str) -> ListingProblem | None:
    """The problem for a name that is not valid UTF-8, or None."""
    try:
        entry.path.encode()
    except UnicodeEncodeError:
        printable = entry.path.encode(errors="surrogateescape").decode(errors="backslashreplace")
        return ListingProblem(
            printable, "bad_name", f"The {kind}'s name is not valid UTF-8; rename it."
        )
    return None


def _list_file(entry: os.DirEntry[str]) -> Iterator[ListingItem]:
    try:
        if (name_problem := _name_problem(entry, "file")) is not None:
            yield name_problem
        elif entry.is_file():
            yield _to_listed_file(entry.path, entry.stat())
    except OSError as problem:
        # The file was deleted during the listing.
        if problem.errno != errno.ENOENT:
            yield _listing_problem(entry.path, problem)


def _to_listed_file(path: str, stat: os.stat_result) -> ListedFile:
    return ListedFile(path, stat.st_size, stat.st_mtime_ns // 1000)


def _listing_problem(path: str, problem: OSError) -> ListingProblem:
    if isinstance(problem, PermissionError):
        return ListingProblem(
            path, "permission_denied", "No permission to list it; grant read access."
        )
    return ListingProblem(path, "not_listed", f"It could not be listed: {problem.strerror}.")
