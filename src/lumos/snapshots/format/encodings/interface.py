"""What the encodings of snapshots have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from lumos.snapshots.format.codec import MalformedJson, key_of
from lumos.snapshots.format.document import EntryKind
from lumos.snapshots.format.errors import SnapshotError

MANIFEST: Final = "manifest.json"
# How much is written at a time.
BUFFER: Final = 1024 * 1024
# Metadata repeats itself, but not that often: beyond this a file is made to fill memory or time.
MAX_COMPRESSION_RATIO: Final = 1000
ALWAYS_ALLOWED: Final = 64 * 1024 * 1024


# An entry to be written: its key, its canonical JSON and the hash of that. Very many of these are
# held at a time, and the garbage collector leaves only plain tuples alone.
KeyedEntry: TypeAlias = tuple[str, bytes, str]
# The entries of each kind, by the kind's plural, in the order in which they are to stand.
Bodies = Mapping[str, Iterator[KeyedEntry]]


class StoredJson(NamedTuple):
    """The JSON of an entry, and where it stands: whatever the container counts.

    Where the container keeps content hashes apart, the JSON has none in it.
    """

    position: int
    body: bytes
    content_hash: str | None = None


class SnapshotContainer(ABC):
    """An opened file or folder with a snapshot."""

    # Whether entries stand in the order of their keys because nobody could sort them.
    streamed: bool
    # Whether it has a layout from before format 1.0, which counted but a part and had no hashes.
    is_legacy: bool = False
    # The JSON of the header.
    header: bytes
    # Keys beside those of the header that nobody knows.
    strangers: tuple[str, ...] = ()

    @abstractmethod
    def entries(self, kind: EntryKind) -> Iterator[StoredJson | SnapshotError]:
        """The entries of a kind as they stand in the file.

        What stands in an entry's place and is none comes as an error, and the next entry follows.
        An error after which nothing can follow is raised.
        """

    @abstractmethod
    def place(self, kind: EntryKind, position: int) -> str:
        """The path to an entry, to which a path inside it can be added."""

    def header_place(self, path: str) -> str:
        """Where the file has what stands at a path of the header."""
        return path

    def present(self, kind: EntryKind, body: bytes) -> bytes:  # noqa: ARG002
        """An entry as the present version of the format has it."""
        return body

    def as_written(self, kind: EntryKind, body: bytes) -> bytes:  # noqa: ARG002
        """An entry of the present version as the version of the file has it."""
        return body


class Encoding(NamedTuple):
    """One way to keep a snapshot; `write` takes a place where nothing is yet."""

    open: Callable[[Path], SnapshotContainer]
    write: Callable[[Path, bytes, Bodies], None]
    is_folder: bool = False


CONTENT_HASH: Final = "content_hash"
BODY: Final = "body"


def columns_of(kind: EntryKind) -> tuple[str, str, str]:
    """The names of the columns."""
    return kind.key, CONTENT_HASH, BODY


def stored_row(kind: EntryKind, position: int, row: tuple[Any, Any, Any]) -> StoredJson | str:
    """The entry of a row, whose key must be that of the entry; or else what is wrong with it."""
    key, content_hash, body = row
    if body is None:
        return "It has no body."
    try:
        found = key_of(kind, body)
    except MalformedJson:
        # What is wrong with the body is told when it is decoded.
        found = key
    if found != key:
        return f"The row is that of '{key}', and its body that of '{found}'."
    return StoredJson(position, body, content_hash)
