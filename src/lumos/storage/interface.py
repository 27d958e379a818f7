"""The interface of storages: listing, ranged reads, and the selection of files."""

import errno
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from itertools import islice
from types import MappingProxyType
from typing import ClassVar, Final, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from lumos.config.secret import MASK


class StorageAccess(msgspec.Struct, frozen=True, kw_only=True):
    """Settings to access a storage; this base class uses the defaults of the environment.

    It is pickled into closures for executors. Its `repr` masks secrets.
    """

    secret_fields: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        fields = (
            f"{name}={MASK if name in self.secret_fields else getattr(self, name)!r}"
            for name in self.__struct_fields__
            if getattr(self, name)
        )
        return f"{type(self).__name__}({', '.join(fields)})"


DEFAULT_ACCESS: Final = StorageAccess()

# The memory that a process may use for files that are read ahead.
READ_AHEAD_BYTES: Final = 256 * 1024 * 1024
# If `split` finds a folder with more files, a separate task lists this folder again.
MAX_ITEMS_IN_SPLIT: Final = 1000
# The first read of a file whose size is not known.
_FIRST_READ_BYTES: Final = 1024 * 1024
_NO_SIZES: Final[Mapping[str, int]] = MappingProxyType({})


class ListedFile(NamedTuple):
    """A file as its storage lists it; `modified` is in microseconds since 1970, UTC.

    `etag` changes whenever the content changes. `storage_class` can change without it. Both are
    empty if the storage has no such value.
    """

    path: str
    size: int
    modified: int
    etag: str = ""
    storage_class: str = ""


class ListingProblem(NamedTuple):
    """A folder or file that could not be listed, so its files must not be treated as deleted."""

    path: str
    code: str
    reason: str


TableKind: TypeAlias = Literal["delta", "hudi", "iceberg"]


class TableRoot(NamedTuple):
    """The root folder of a table; its data files are not listed, because its log lists them."""

    folder: str
    kind: TableKind


ListingItem: TypeAlias = ListedFile | ListingProblem | TableRoot


class KeyRange(NamedTuple):
    """The files of a folder that one task lists: those with `after` < path <= `until`.

    Empty bounds do not limit the range. Files in subfolders are only included if it is `deep`.
    """

    folder: str
    after: str = ""
    until: str = ""
    deep: bool = True


class ReadableFile(Protocol):
    """Ranged reads of one file; a read beyond its end returns fewer bytes."""

    @property
    def size(self) -> int: ...

    def head(self, length: int) -> bytes: ...

    def tail(self, length: int) -> bytes: ...

    def part(self, start: int, length: int) -> bytes: ...


class FileTooLong(OSError):
    """The file is larger than its reader allows."""

    def __init__(self, path: str, max_bytes: int) -> None:
        super().__init__(errno.EFBIG, f"longer than {max_bytes / 2**20:,.0f} MB", path)


class FileStorage(ABC):
    """A storage of files; all errors are subclasses of OSError."""

    # The number of files that a task should read at a time, each in its own thread.
    concurrency: ClassVar[int] = 1

    @abstractmethod
    def split(
        self, root: str, *, parts: int, deep: bool = True, tables: bool = True
    ) -> tuple[list[ListingItem], list[KeyRange]]:
        """Divide the files below a root into about `parts` key ranges.

        Returns the items that were listed in the process, and the key ranges still to be listed.
        """

    @abstractmethod
    def walk(self, key_range: KeyRange, *, tables: bool = True) -> Iterator[ListingItem]:
        """Yield all files in a key range that may be data.

        With `tables`, the roots of tables are reported, too. Files of a table may still be listed,
        and a table that is only partly in the range may not be reported.
        """

    @abstractmethod
    def entries(
        self,
        folder: str,
        *,
        after: str = "",
        deep: bool = False,
        excluded_folders: Collection[str] = (),
    ) -> Iterator[ListedFile]:
        """The files in a folder, sorted by name, including hidden files.

        With `deep`, files in subfolders are included, except in `excluded_folders`. Only yields
        files whose path relative to the folder sorts after `after`. Yields nothing if the folder
        does not exist.
        """

    def read_many(
        self,
        paths: Sequence[str],
        *,
        max_bytes: int = sys.maxsize,
        sizes: Mapping[str, int] = _NO_SIZES,
    ) -> Iterator[bytes | OSError]:
        """Read whole files concurrently; yields contents or errors in the given order.

        At most READ_AHEAD_BYTES are kept in memory: files that exceed their share of it are read
        one by one. A file longer than `max_bytes` results in FileTooLong. `sizes` contains sizes
        from the listing, if known.
        """
        if self.concurrency == 1:
            for path in paths:
                yield self._read_or_error(path, max_bytes, sizes.get(path))
            return
        share = min(max_bytes, READ_AHEAD_BYTES // self.concurrency)
        remaining = iter(paths)
        with ThreadPoolExecutor(self.concurrency) as threads:

            def read_ahead(count: int) -> Iterator[tuple[str, Future[bytes | OSError]]]:
                for path in islice(remaining, count):
                    size = sizes.get(path)
                    yield path, threads.submit(self._read_or_error, path, share, size)

            reads = deque(read_ahead(self.concurrency))
            try:
                while reads:
                    path, read = reads.popleft()
                    content = read.result()
                    if isinstance(content, FileTooLong) and share < max_bytes:
                        content = self._read_or_error(path, max_bytes, sizes.get(path))
                    yield content
                    reads.extend(read_ahead(1))
            finally:
                for _, read in reads:
                    read.cancel()

    def _read_or_error(self, path: str, max_bytes: int, size: int | None) -> bytes | OSError:
        try:
            return self.read_within(path, max_bytes, size=size)
        except OSError as problem:
            return problem

    def read_within(self, path: str, max_bytes: int, *, size: int | None = None) -> bytes:
        """Read a whole file; raises FileTooLong, without reading it, if it exceeds `max_bytes`."""
        if size is not None and size > max_bytes:
            raise FileTooLong(path, max_bytes)
        with self.open(path, size=size) as file:
            # The response to the first read contains the size, and all bytes of a short file.
            file.head(min(max_bytes, _FIRST_READ_BYTES))
            if file.size > max_bytes:
                raise FileTooLong(path, max_bytes)
            return file.head(file.size)

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether the file exists; unlike `open`, this always sends a request."""

    @abstractmethod
    def open(self, path: str, *, size: int | None = None) -> AbstractContextManager[ReadableFile]:
        """Open a file for ranged reads; if `size` is known, no request is needed to find it out."""

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Write a whole file atomically."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Read a whole file; raises FileNotFoundError if there is none."""

    @abstractmethod
    def files(self, folder: str) -> list[str]:
        """The names of the files directly in a folder; empty if the folder does not exist."""

    @abstractmethod
    def discard(self, paths: Sequence[str]) -> None:
        """Remove files; missing files are ignored."""


def divide_folders(
    root: str,
    scan: Callable[[str], tuple[list[ListingItem], list[str]]],
    *,
    parts: int,
    concurrency: int = 1,
) -> tuple[list[ListingItem], list[KeyRange]]:
    """List folders, starting at the root, until about `parts` folders remain.

    Returns the listed items, and the remaining folders as key ranges. `scan` returns the items and
    subfolders of a folder. A folder with more than MAX_ITEMS_IN_SPLIT items is also returned as a
    key range, to be listed again.
    """
    items: list[ListingItem] = []
    large_folders: list[KeyRange] = []
    queue = deque([root])
    requests = 0
    with ThreadPoolExecutor(concurrency) as pool:
        while queue and len(queue) < parts and requests < parts:
            batch = [queue.popleft() for _ in range(min(concurrency, len(queue)))]
            requests += len(batch)
            for folder, (folder_items, subfolders) in zip(
                batch, pool.map(scan, batch), strict=True
            ):
                if len(folder_items) > MAX_ITEMS_IN_SPLIT:
                    large_folders.append(KeyRange(folder, deep=False))
                else:
                    items += folder_items
                queue.extend(subfolders)
    return items, [*large_folders, *map(KeyRange, queue)]


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden: it contains metadata or temporary files, never data."""
    return name.startswith((".", "_")) and "=" not in name


class FileHint(NamedTuple):
    """Files that form one dataset, whatever their schemas; with `split`, one dataset each.

    A hint with several paths forms a single dataset, and has a name.
    """

    path: str | tuple[str, ...]
    name: str | None = None
    split: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths."""
        return (self.path,) if isinstance(self.path, str) else self.path


class FileSelection(NamedTuple):
    """The selected files below a root.

    A pattern with a slash is matched with the path relative to the root, other patterns with the
    file name. `hints` define which files form one dataset and which are separate datasets. With
    `tables`, the logs of tables are read, including the last `table_history` commits for the schema
    history. `join_similar` joins files of one folder, and numbered folders, that have the same
    columns.
    """

    root: str
    file_patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    recursive: bool = True
    access: StorageAccess = DEFAULT_ACCESS
    hints: tuple[FileHint, ...] = ()
    tables: bool = True
    table_history: int = 10_000
    join_similar: bool = False

    def __contains__(self, path: object) -> bool:
        relative = str(path)[len(self.root) :].lstrip("/") or str(path).rpartition("/")[2]
        if not self.recursive and "/" in relative:
            return False
        is_included = not self.file_patterns or _matches(relative, self.file_patterns)
        return is_included and not _matches(relative, self.exclude)

    def has_table(self, root: str) -> bool:
        """Whether the table at this root is selected; `file_patterns` do not apply to tables."""
        relative = root[len(self.root) :].strip("/")
        if not relative:
            return True
        # A pattern for everything in a folder, such as `old/*`, also excludes a table there.
        return self.recursive and not any(
            _matches(path, self.exclude) for path in (relative, f"{relative}/")
        )


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    name = path.rpartition("/")[2]
    return any(
        fnmatchcase(path, pattern.lstrip("/")) if "/" in pattern else fnmatchcase(name, pattern)
        for pattern in patterns
    )
