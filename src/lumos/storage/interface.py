"""What the pipeline asks of a storage."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeAlias


class Listed(NamedTuple):
    """A file as its storage lists it; `modified` is in microseconds since 1970, UTC."""

    path: str
    size: int
    modified: int


class Unlisted(NamedTuple):
    """A place that could not be listed, so that nothing below it may be called gone."""

    path: str
    code: str
    reason: str


Listing: TypeAlias = Listed | Unlisted


class ReadableFile(Protocol):
    """Ranged reads of one file; a read past either end gives what there is."""

    @property
    def size(self) -> int: ...

    def head(self, length: int) -> bytes: ...

    def tail(self, length: int) -> bytes: ...


class Storage(ABC):
    """A place where files lie."""

    @abstractmethod
    def split(self, root: str, *, parts: int) -> tuple[list[Listing], list[str]]:
        """Lists from the top until about `parts` folders are left: the files met, those folders."""

    @abstractmethod
    def walk(self, folder: str) -> Iterator[Listing]:
        """Everything below a folder that may be data."""

    @abstractmethod
    def open(self, path: str) -> AbstractContextManager[ReadableFile]:
        """A file for ranged reads; raises OSError where that is impossible."""

    @abstractmethod
    def write(self, path: str, data: bytes) -> None:
        """Puts a whole file in place at once; nobody ever sees half of it."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """A whole file; raises FileNotFoundError where there is none."""

    @abstractmethod
    def remove(self, folder: str) -> None:
        """Removes a folder and all in it; what is not there is no problem."""

    @abstractmethod
    def folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder; none where it is not there."""
