"""What a table format tells of one table, by its own metadata files alone.

A reader gets a folder, not a storage: it works the same for every place where tables lie.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from lumos.formats.interface import LARGEST, Remark, UnreadableFile
from lumos.model.schema import Schema

Kind: TypeAlias = Literal["delta", "hudi", "iceberg"]


class Entry(NamedTuple):
    """A file of a table; `modified` is in microseconds since 1970, UTC, `etag` may be empty."""

    name: str
    size: int
    modified: int
    etag: str


class Folder(Protocol):
    """A table's root; paths are relative to it, with '/' between."""

    @property
    def root(self) -> str: ...

    def entries(self, folder: str, *, after: str = "") -> Iterator[Entry]:
        """The files right in a folder, hidden ones too, in the order of their names.

        Only those whose names sort after `after`; none where there is no such folder.
        """
        ...

    def below(self) -> Iterator[Entry]:
        """All data files, hidden ones too; their names are paths. Not what lies in the log."""
        ...

    def read(self, path: str) -> bytes:
        """A whole file; raises FileNotFoundError where there is none, or another OSError."""
        ...

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes | OSError]:
        """Whole files in that order, several at a time; a failure stands in its file's place."""
        ...

    def inside(self, uri: str, location: str) -> str | None:
        """The relative path of an absolute address; nothing where it lies elsewhere.

        `location` is what the table believes its root to be, which may have moved since.
        """
        ...


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """A schema the table had, since when, and what brought it."""

    schema: Schema
    at: datetime
    version: str
    operation: str | None = None
    author: str | None = None
    # Whether the log itself tells the time, in a zone that is known.
    exact_time: bool = True


class Deletes(msgspec.Struct, frozen=True, array_like=True):
    """Rows of a data file that count no more: where that is written down."""

    kind: Literal["dv", "positions", "equality"]
    path: str
    offset: int = 0
    length: int = 0
    count: int | None = None
    inline: bytes = b""


class LiveFile(msgspec.Struct, frozen=True, array_like=True):
    """A file of the current version; `path` is relative to the root, or an address elsewhere."""

    path: str
    size: int
    rows: int | None
    partition: tuple[tuple[str, str | None], ...] = ()
    deletes: tuple[Deletes, ...] = ()
    format: str = "parquet"


class Feature(NamedTuple):
    """Something a table uses that not every reader knows; `read` where it is understood here."""

    name: str
    read: bool


def remarks_on(features: Iterable[Feature]) -> tuple[Remark, ...]:
    """What is to be said of features that are not understood."""
    names = ", ".join(feature.name for feature in features if not feature.read)
    if not names:
        return ()
    reason = f"It uses what is not understood here, so that what is told may be wrong: {names}."
    return (Remark("unsupported_feature", reason),)


class TableFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A table as of its current version.

    `past` are the schemas in the order of their time, the current one included. `claims` are
    addresses of folders outside the root, as the table spells them, whose files are its own.
    `elsewhere` is where the table itself lies, if its root holds nothing but its log.
    """

    kind: Kind
    version: str
    at: datetime
    # What brought the current version about, in the format's own word.
    operation: str | None = None
    schema: Schema
    # In words: `country`, `bucket[16](id)`, `days(ts)`.
    partition_by: tuple[str, ...] = ()
    files: int
    bytes: int
    rows: int | None = None
    rows_exact: bool = True
    properties: dict[str, str] = {}
    description: str | None = None
    # The table's own id, which stays when it is moved.
    identity: str = ""
    past: tuple[Past, ...] = ()
    features: tuple[Feature, ...] = ()
    remarks: tuple[Remark, ...] = ()
    claims: tuple[str, ...] = ()
    elsewhere: str = ""
    # Changes whenever the live data does.
    content: str

    def __post_init__(self) -> None:
        if max(self.files, self.bytes, self.rows or 0) > LARGEST:
            reason = "The files that its log tells of come to more than any storage holds"
            raise UnreadableFile("broken_table", reason)


class TableReader(ABC):
    """One table format."""

    kind: ClassVar[Kind]
    title: ClassVar[str]

    @abstractmethod
    def signature(self, folder: Folder) -> str:
        """Changes whenever the table may have; costs a listing or two.

        Opens nothing, unless the log lies where only a file can tell.
        """

    @abstractmethod
    def read(
        self, folder: Folder, memory: bytes | None, *, most_commits: int
    ) -> tuple[TableFacts, bytes]:
        """The facts, and what the next reading is to be given; raises UnreadableFile.

        `memory` is what an earlier reading gave, or nothing; one that cannot be used is passed
        over. No more than the last `most_commits` commits are opened for the history of schemas.
        """

    @abstractmethod
    def live(self, memory: bytes) -> Iterator[LiveFile]:
        """The files of the version that a reading left this memory of."""
