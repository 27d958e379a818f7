"""The interface of all encodings of snapshots."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from lumos.snapshots.format.codec import MalformedJson, key_of
from lumos.snapshots.format.document import EntryKind
from lumos.snapshots.format.errors import SnapshotError

MANIFEST: Final = "manifest.json"
# The size of write buffers in bytes.
BUFFER: Final = 1024 * 1024


# An entry to be written: its key, its canonical JSON and its content hash. It is a plain tuple,
# because very many are in memory at a time, and the garbage collector does not track tuples.
KeyedEntry: TypeAlias = tuple[str, bytes, str]
# The entries of each kind, by the plural of the kind, in the order of the file.
Bodies = Mapping[str, Iterator[KeyedEntry]]


class StoredJson(NamedTuple):
    """The JSON of an entry and its position in the container.

    `content_hash` is set if the container stores hashes separately; otherwise it is in the JSON.
    """

    position: int
    body: bytes
    content_hash: str | None = None


class SnapshotContainer(ABC):
    """An open file or folder with a snapshot."""

    # Whether entries have to be ordered by key in the file, because they are not sorted in memory.
    streamed: bool
    # Whether the layout is older than format 1.0, which had incomplete counts and no hashes.
    is_legacy: bool = False
    # The JSON of the header.
    header: bytes
    # Keys in the header that the format does not have.
    unknown_keys: tuple[str, ...] = ()

    @abstractmethod
    def entries(self, kind: EntryKind) -> Iterator[StoredJson | SnapshotError]:
        """The entries of a kind in the order of the file.

        If something is not an entry, an error is yielded in its place, followed by the next entry.
        An error that prevents further reading is raised.
        """

    @abstractmethod
    def path_of(self, kind: EntryKind, position: int) -> str:
        """The path to an entry, which can be extended with a path inside the entry."""

    def header_path(self, path: str) -> str:
        """The path in the file for a path of the header."""
        return path

    def upgrade_entry(self, kind: EntryKind, body: bytes) -> bytes:  # noqa: ARG002
        """Convert an entry to the current version of the format."""
        return body

    def downgrade_entry(self, kind: EntryKind, body: bytes) -> bytes:  # noqa: ARG002
        """Convert an entry of the current version to the version of the file."""
        return body


class Encoding(NamedTuple):
    """Functions to open and write one encoding; `write` gets a path that does not exist yet."""

    open: Callable[[Path], SnapshotContainer]
    write: Callable[[Path, bytes, Bodies], None]
    is_folder: bool = False


CONTENT_HASH: Final = "content_hash"
BODY: Final = "body"


def columns_of(kind: EntryKind) -> tuple[str, str, str]:
    """The names of the columns in the Parquet files of a kind."""
    return kind.key, CONTENT_HASH, BODY


def read_row(kind: EntryKind, position: int, row: tuple[Any, Any, Any]) -> StoredJson | str:
    """The entry of a row, or an error message if key and entry do not match."""
    key, content_hash, body = row
    if body is None:
        return "It has no body."
    try:
        body_key = key_of(kind, body)
    except MalformedJson:
        # The error is reported when the body is decoded.
        body_key = key
    if body_key != key:
        return f"The key of the row is '{key}', but the key in its body is '{body_key}'."
    return StoredJson(position, body, content_hash)
