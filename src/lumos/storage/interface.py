"""What the pipeline asks of a storage."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import ClassVar, Final, Literal, NamedTuple, Protocol, TypeAlias

import msgspec


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How a storage is reached; this one says no more than that the usual places tell.

    It travels to executors inside closures, so it can be pickled; secrets are not shown.
    """


USUAL: Final = Access()


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


class Marker(NamedTuple):
    """The root of a table whose own log says which files are its data; none are listed below."""

    folder: str
    kind: Literal["delta", "hudi", "iceberg"]


Listing: TypeAlias = Listed | Unlisted


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


class Storage(ABC):
    """A place where files lie; whatever fails there raises some OSError."""

    # How many files a task does well to have open at a time, each in a thread of its own.
    concurrency: ClassVar[int] = 1

    @abstractmethod
    def split(
        self, root: str, *, parts: int, deep: bool = True
    ) -> tuple[list[Listing], list[Stretch]]:
        """Lists from the top until about `parts` stretches are left: the files met, and those."""

    @abstractmethod
    def walk(self, stretch: Stretch) -> Iterator[Listing]:
        """Everything in a stretch that may be data."""

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
