"""The interface of file formats."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Final, NamedTuple, Protocol

from lumos.errors import LumosError
from lumos.formats.columns import FileColumnStatistics, LeafColumn, leaf_columns
from lumos.model.json_codec import to_json
from lumos.model.schema import Field, Schema
from lumos.model.types import DataType

# Larger counts and sizes do not fit into the store and are treated as damage.
MAX_COUNT: Final = 2**63 - 1
MAX_COLUMNS: Final = 20_000


class UnreadableFile(LumosError):
    """A file cannot be read; this is reported as a problem and does not end the scan."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        # Messages of libraries may have several lines, and no full stop at the end.
        self.reason = " ".join(reason.split()).rstrip(".") + "."
        super().__init__(self.reason)


def check_width(columns: int) -> None:
    """Raise UnreadableFile if there are too many leaf columns."""
    if columns > MAX_COLUMNS:
        reason = f"It has {columns:,} columns; at most {MAX_COLUMNS:,} are read."
        raise UnreadableFile("too_many_columns", reason)


class RangedBytes(Protocol):
    """Ranged reads of a file in any storage."""

    @property
    def size(self) -> int: ...

    def head(self, length: int) -> bytes: ...

    def tail(self, length: int) -> bytes: ...


class Remark(NamedTuple):
    """A remark on a readable file."""

    code: str
    reason: str


# The tag of FLOAT64 columns that may be integers with missing values, as pandas writes them.
MAYBE_INTEGERS: Final = "maybe-integers"


@dataclass(frozen=True, eq=False)
class KnownSchema:
    """A schema with values that are computed once for all files that share it."""

    schema: Schema

    @cached_property
    def shape(self) -> str:
        """The fingerprint of the schema's shape."""
        return self.schema.shape

    @cached_property
    def full(self) -> str:
        """The full fingerprint of the schema."""
        return self.schema.full

    @cached_property
    def body(self) -> bytes:
        """The schema as JSON."""
        return to_json(self.schema)

    @cached_property
    def leaves(self) -> list[LeafColumn]:
        """The leaf columns in the order in which files store them."""
        return leaf_columns(self.schema)


class FileFacts(NamedTuple):
    """The schema and row count of a file; `columns` only if requested."""

    known: KnownSchema
    row_count: int | None
    row_count_exact: bool
    remarks: tuple[Remark, ...] = ()
    columns: tuple[FileColumnStatistics, ...] = ()

    @property
    def schema(self) -> Schema:
        """The schema of the file."""
        return self.known.schema


class Format(ABC):
    """One file format."""

    name: ClassVar[str]
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    # Whether files contain their schema; otherwise it is inferred from a sample.
    declares_schema: ClassVar[bool]


class BinaryFormat(Format):
    """A format with magic bytes and a schema in each file."""

    declares_schema: ClassVar[bool] = True

    @abstractmethod
    def matches_head(self, head: bytes) -> bool:
        """Whether a file with these first bytes may be in this format."""

    @abstractmethod
    def has_magic(self, file: RangedBytes) -> bool:
        """Whether the file has the magic bytes of this format; reads as many bytes as `read`."""

    @abstractmethod
    def read(self, file: RangedBytes, *, column_stats: bool = False) -> FileFacts:
        """Read the schema, the row count and, if requested, statistics; raises UnreadableFile."""


class Sample(NamedTuple):
    """The first bytes of a text, or all of it if `whole`; `total` is the text's length if known."""

    data: bytes
    whole: bool
    total: int | None


class Content(Protocol):
    """The content of a text file, decompressed."""

    def sample(self, length: int) -> Sample:
        """About the first `length` bytes of the content; raises UnreadableFile."""


class TextFormat(Format):
    """A format without magic bytes; its schema is inferred from a sample."""

    declares_schema: ClassVar[bool] = False

    @abstractmethod
    def recognises(self, sample: Sample) -> bool:
        """Whether a text is clearly in this format."""

    @abstractmethod
    def read(self, content: Content, *, suffix: str = "") -> FileFacts:
        """Read the schema and row count of a file with this suffix; raises UnreadableFile."""


@lru_cache(maxsize=2048)
def inferred_schema(names: tuple[str, ...], types: tuple[DataType, ...]) -> KnownSchema:
    """The schema of nullable columns with these names and types."""
    fields = (Field(name=name, type=type) for name, type in zip(names, types, strict=True))
    return KnownSchema(Schema(fields=tuple(fields)))
