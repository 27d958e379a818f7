"""What the pipeline asks of a storage."""

import errno
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import islice
from types import MappingProxyType
from typing import ClassVar, Final, Literal, NamedTuple, Protocol, TypeAlias

import msgspec


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How a storage is reached; this one says no more than that the usual places tell.

    It travels to executors inside closures, so it can be pickled; secrets are not shown.
    """


USUAL: Final = Access()

# How many bytes of files a process holds that it read ahead of their turn.
READ_AHEAD: Final = 256 * 1024 * 1024
# What is asked for first of a file whose size is not known.
_FIRST: Final = 1024 * 1024
_NONE: Final[Mapping[str, int]] = MappingProxyType({})


class Listed(NamedTuple):
    """A file as its storage lists it; `modified` is in microseconds since 1970, UTC.

    `etag` changes with the file's bytes; it is empty where a storage has no such thing, and so is
    `storage_class`, which may change while the file stays as it is.
    """

    path: str
    size: int
    modified: int
    etag: str = ""
    storage_class: str = ""


class Unlisted(NamedTuple):
    """A place that could not be listed, so that nothing below it may be called gone."""

    path: str
    code: str
    reason: str


TableKind: TypeAlias = Literal["delta", "hudi", "iceberg"]


class Marker(NamedTuple):
    """The root of a table, whose own log says which files are its data."""

    folder: str
    kind: TableKind


Listing: TypeAlias = Listed | Unlisted | Marker


class Stretch(NamedTuple):
    """What one task lists: a folder, or of its files those with `after` < path <= `until`.

    An empty bound is none. A stretch that is not `deep` leaves out what lies in folders below.
    """

    folder: str
    after: str = ""
    until: str = ""
    deep: bool = True


class ReadableFile(Protocol):
    """Ranged reads of one file; a read past either end gives what there is."""

    @property
    def size(self) -> int: ...

    def head(self, length: int) -> bytes: ...

    def tail(self, length: int) -> bytes: ...

    def part(self, start: int, length: int) -> bytes: ...


class FileTooLong(OSError):
    """A file that is longer than whoever reads it allows."""

    def __init__(self, path: str, longest: int) -> None:
        super().__init__(errno.EFBIG, f"longer than {longest / 2**20:,.0f} MB", path)


class Storage(ABC):
    """A place where files lie; whatever fails there raises some OSError."""

    # How many files a task does well to have open at a time, each in a thread of its own.
    concurrency: ClassVar[int] = 1

    @abstractmethod
    def split(
        self, root: str, *, parts: int, deep: bool = True, tables: bool = True
    ) -> tuple[list[Listing], list[Stretch]]:
        """Lists from the top until about `parts` stretches are left: the files met, and those."""

    @abstractmethod
    def walk(self, stretch: Stretch, *, tables: bool = True) -> Iterator[Listing]:
        """Everything in a stretch that may be data.

        Where `tables` count, a root of one is a marker. Files below it may be listed all the same,
        and a table that reaches beyond the stretch may show no marker in it.
        """

    @abstractmethod
    def entries(
        self, folder: str, *, after: str = "", deep: bool = False, without: Collection[str] = ()
    ) -> Iterator[Listed]:
        """The files right in a folder, or all below it, hidden ones too, in the order of names.

        Only those whose path behind the folder sorts after `after`; none where there is no folder.
        What lies in the folders `without` right in it is left out.
        """

    def read_many(
        self, paths: Sequence[str], *, longest: int = sys.maxsize, sizes: Mapping[str, int] = _NONE
    ) -> Iterator[bytes | OSError]:
        """Whole files in that order, several at a time; a failure stands in its file's place.

        Of what is read ahead, at most READ_AHEAD bytes are held: a file longer than its share of
        them is read when it is its turn, and no other at the same time. One that is longer than
        `longest` is a failure. `sizes` are those that were listed, where they are known.
        """
        if self.concurrency == 1:
            for path in paths:
                yield self._read_or_failure(path, longest, sizes.get(path))
            return
        share = min(longest, READ_AHEAD // self.concurrency)
        remaining = iter(paths)
        with ThreadPoolExecutor(self.concurrency) as threads:

            def ahead(count: int) -> Iterator[tuple[str, Future[bytes | OSError]]]:
                for path in islice(remaining, count):
                    size = sizes.get(path)
                    yield path, threads.submit(self._read_or_failure, path, share, size)

            reads = deque(ahead(self.concurrency))
            try:
                while reads:
                    path, read = reads.popleft()
                    found = read.result()
                    if isinstance(found, FileTooLong) and share < longest:
                        found = self._read_or_failure(path, longest, sizes.get(path))
                    yield found
                    reads.extend(ahead(1))
            finally:
                for _, read in reads:
                    read.cancel()

    def _read_or_failure(self, path: str, longest: int, size: int | None) -> bytes | OSError:
        try:
            return self.read_within(path, longest, size=size)
        except OSError as problem:
            return problem

    def read_within(self, path: str, longest: int, *, size: int | None = None) -> bytes:
        """A whole file; raises FileTooLong before more than a part of a longer one is read."""
        if size is not None and size > longest:
            raise FileTooLong(path, longest)
        with self.open(path, size=size) as file:
            # The first bytes of a short file are all of it, and their answer tells the size.
            file.head(min(longest, _FIRST))
            if file.size > longest:
                raise FileTooLong(path, longest)
            return file.head(file.size)

    @abstractmethod
    def exists(self, path: str) -> bool:
        """Whether there is a file, asked of the storage itself; opening one may ask nothing yet."""

    @abstractmethod
    def open(self, path: str, *, size: int | None = None) -> AbstractContextManager[ReadableFile]:
        """A file for ranged reads; a `size` that was listed spares asking for it."""

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Puts a whole file in place at once; nobody ever sees half of it."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """A whole file; raises FileNotFoundError where there is none."""

    @abstractmethod
    def files(self, folder: str) -> list[str]:
        """The names of the files right in a folder; none where it is not there."""

    @abstractmethod
    def discard(self, paths: Sequence[str]) -> None:
        """Removes files; one that is not there is no problem."""


def is_hidden(name: str) -> bool:
    """Whether a file or folder is a marker or scratch space of some writer, never data."""
    return name.startswith((".", "_")) and "=" not in name
