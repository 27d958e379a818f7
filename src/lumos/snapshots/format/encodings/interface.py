"""What the encodings of snapshots have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from lumos.snapshots.format.document import Kind
from lumos.snapshots.format.errors import SnapshotError

MANIFEST: Final = "manifest.json"
# How much is written at a time.
BUFFER: Final = 1024 * 1024
# Metadata repeats itself, but not that often: beyond this a file is made to fill memory or time.
MOST_TIMES: Final = 1000
ALWAYS_ALLOWED: Final = 64 * 1024 * 1024


# An entry to be written: its key, its canonical JSON and the hash of that. Very many of these are
# held at a time, and the garbage collector leaves only plain tuples alone.
Keyed: TypeAlias = tuple[str, bytes, str]
# The entries of each kind, by the kind's plural, in the order in which they are to stand.
Bodies = Mapping[str, Iterator[Keyed]]


class Stored(NamedTuple):
    """The JSON of an entry, and where it stands: whatever the container counts.

    Where the container keeps content hashes apart, the JSON has none in it.
    """

    position: int
    body: bytes
    content_hash: str | None = None


class Container(ABC):
    """An opened file or folder with a snapshot."""

    # Whether entries stand in the order of their keys because nobody could sort them.
    streamed: bool
    # The JSON of the header.
    header: bytes
    # Keys beside those of the header that nobody knows.
    strangers: tuple[str, ...] = ()

    @abstractmethod
    def entries(self, kind: Kind) -> Iterator[Stored | SnapshotError]:
        """The entries of a kind as they stand in the file.

        What stands in an entry's place and is none comes as an error, and the next entry follows.
        An error after which nothing can follow is raised.
        """

    @abstractmethod
    def place(self, kind: Kind, position: int) -> str:
        """The path to an entry, to which a path inside it can be added."""

    def header_place(self, path: str) -> str:
        """Where the file has what stands at a path of the header."""
        return path

    def present(self, kind: Kind, body: bytes) -> bytes:  # noqa: ARG002
        """An entry as the present version of the format has it."""
        return body


class Encoding(NamedTuple):
    """One way to keep a snapshot; `write` takes a place where nothing is yet."""

    open: Callable[[Path], Container]
    write: Callable[[Path, bytes, Bodies], None]
    is_folder: bool = False
