"""The interface of table formats.

Readers get a folder, not a storage, so they work the same for every storage.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Final, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from lumos.config.secret import is_secret_name
from lumos.formats.interface import MAX_COUNT, Remark, UnreadableFile
from lumos.model.schema import Schema

TableKind: TypeAlias = Literal["delta", "hudi", "iceberg"]


class FileEntry(NamedTuple):
    """A file of a table; `modified` is in microseconds since 1970, UTC, `etag` may be empty."""

    name: str
    size: int
    modified: int
    etag: str


class TableFolder(Protocol):
    """The root folder of a table; paths are relative to it and separated by '/'."""

    @property
    def root(self) -> str: ...

    def entries(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
        """Yield the files directly in a folder, including hidden ones, in the order of names.

        Only yields names that sort after `after`; nothing if the folder does not exist.
        """
        ...

    def below(self) -> Iterator[FileEntry]:
        """Yield all data files, including hidden ones, with their paths as names."""
        ...

    def read(self, path: str) -> bytes:
        """Read a whole file; raises FileNotFoundError or another OSError."""
        ...

    def read_many(self, paths: Sequence[str]) -> Iterator[bytes | OSError]:
        """Read whole files concurrently; yields them, or their errors, in the given order."""
        ...

    def inside(self, uri: str, location: str) -> str | None:
        """The relative path of an absolute URI; None if it is outside of the table.

        `location` is the root in the table's metadata, from which the table may have been moved.
        """
        ...


class TableSchemaVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A schema of the table, when it became valid, and the operation that set it."""

    schema: Schema
    at: datetime
    version: str
    operation: str | None = None
    author: str | None = None
    # Whether the log contains the time, in a known time zone.
    exact_time: bool = True


class RowDeletes(msgspec.Struct, frozen=True, array_like=True):
    """Deleted rows of a data file: the location of the deletion vector or delete file."""

    kind: Literal["dv", "positions", "equality"]
    path: str
    offset: int = 0
    length: int = 0
    count: int | None = None
    inline: bytes = b""


class LiveFile(msgspec.Struct, frozen=True, array_like=True):
    """A file of the current version; `path` is relative to the root, or a URI outside of it.

    `added` is when its rows were added to the table, in microseconds since 1970, if known.
    """

    path: str
    size: int
    rows: int | None
    partition: tuple[tuple[str, str | None], ...] = ()
    deletes: tuple[RowDeletes, ...] = ()
    format: str = "parquet"
    added: int | None = None


class TableFeature(NamedTuple):
    """A feature that not every reader supports; `read` if Lumos supports it."""

    name: str
    read: bool


def remarks_on_features(features: Iterable[TableFeature]) -> tuple[Remark, ...]:
    """A remark that names the unsupported features, if there are any."""
    names = ", ".join(feature.name for feature in features if not feature.read)
    if not names:
        return ()
    reason = f"It uses unsupported features, so its metadata may be read incorrectly: {names}."
    return (Remark("unsupported_feature", reason),)


class TableFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A table as of its current version.

    `past` contains all schemas in chronological order, including the current one.
    `outside_locations` are URIs, as written in the metadata, of folders outside of the root whose
    files belong to the table.
    `table_location` is the location of the table if the root only contains its metadata.
    """

    kind: TableKind
    version: str
    at: datetime
    # The operation of the current version, as the format names it.
    operation: str | None = None
    schema: Schema
    # The partitioning, such as `country`, `bucket[16](id)`, `days(ts)`.
    partition_by: tuple[str, ...] = ()
    files: int
    bytes: int
    rows: int | None = None
    rows_exact: bool = True
    properties: dict[str, str] = {}
    description: str | None = None
    # The id of the table, which stays the same when it is moved.
    identity: str = ""
    past: tuple[TableSchemaVersion, ...] = ()
    features: tuple[TableFeature, ...] = ()
    remarks: tuple[Remark, ...] = ()
    outside_locations: tuple[str, ...] = msgspec.field(default=(), name="claims")
    table_location: str = msgspec.field(default="", name="elsewhere")
    # A hash that changes with every change of the live data.
    content: str

    def __post_init__(self) -> None:
        if max(self.files, self.bytes, self.rows or 0) > MAX_COUNT:
            reason = "The file sizes in its log add up to more than 2^63 - 1"
            raise UnreadableFile("broken_table", reason)


def folder_without_partitions(path: str) -> str:
    """The folder of a file, without partition folders such as `country=de`."""
    folder = path.rpartition("/")[0]
    while "=" in folder.rpartition("/")[2]:
        folder = folder.rpartition("/")[0]
    return folder


class TableReader(ABC):
    """One table format."""

    kind: ClassVar[TableKind]
    title: ClassVar[str]

    @abstractmethod
    def signature(self, folder: TableFolder) -> str:
        """A hash that changes with every change of the table.

        It takes one or two listings. Files are only opened to find a log in an unusual folder.
        """

    @abstractmethod
    def read(
        self, folder: TableFolder, saved_state: bytes | None, *, max_commits: int
    ) -> tuple[TableFacts, bytes]:
        """Read the table; also return the state for the next call. Raises UnreadableFile.

        `saved_state` comes from the previous call, so that only new commits have to be read; it is
        ignored if unusable. At most `max_commits` commits are opened for the history of schemas.
        """

    @abstractmethod
    def live(self, saved_state: bytes) -> Iterator[LiveFile]:
        """Yield the live files of the version that was saved in a state."""


# Names of secrets in table properties, in addition to those of options.
_SECRET_NAME: Final = re.compile(r"\bsas\b|(^|[-_.])(pass|auth)$", re.IGNORECASE)
# Credentials in URLs, connection strings, JSON and headers. Values can be very long, so no part of
# the pattern may match in two ways.
_SECRET_VALUE: Final = re.compile(
    r"://[^/?#\s:@]*:[^/?#\s@]*@"
    r"|\bhttps?://[^/?#\s:@]+@"
    r"|(?:password|passwd|pwd|secret|token|accesskey|accountkey|apikey|sig|signature)"
    r"(?:=[^\s;&]|\"\s{0,9}:\s{0,9}\")"
    r"|\bbearer\s[\w-]{16}"
    r"|\bbasic\s(?=\S{0,64}[\d=])[\w+/]{8}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|-BEGIN [A-Z ]{0,30}PRIVATE KEY",
    re.IGNORECASE,
)


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings whose names and values do not look like secrets."""
    return {
        name: value
        for name, value in settings.items()
        if not (is_secret_name(name) or _SECRET_NAME.search(name) or _SECRET_VALUE.search(value))
    }
