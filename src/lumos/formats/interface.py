"""What a file format tells about one file."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Final, NamedTuple, Protocol

from lumos.errors import LumosError
from lumos.formats.columns import ColumnFacts, Leaf, leaves
from lumos.model.json_codec import to_json
from lumos.model.schema import Field, Schema
from lumos.model.types import DataType

# No count or size beyond it is believed; larger ones fit into no store.
LARGEST: Final = 2**63 - 1
MOST_COLUMNS: Final = 20_000


class UnreadableFile(LumosError):
    """A file that is not what it says or cannot be read; it becomes a problem, never a crash."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        # Libraries' own words inside it may run over lines, or lack the full stop.
        self.reason = " ".join(reason.split()).rstrip(".") + "."
        super().__init__(self.reason)


def check_width(columns: int) -> None:
    """Refuse more columns than a schema may have in any format; nested leaf fields count."""
    if columns > MOST_COLUMNS:
        reason = f"It has {columns:,} columns; at most {MOST_COLUMNS:,} are read."
        raise UnreadableFile("too_many_columns", reason)


class RangedBytes(Protocol):
    """Ranged reads of one file, whatever storage it lies in."""

    @property
    def size(self) -> int: ...

    def head(self, length: int) -> bytes: ...

    def tail(self, length: int) -> bytes: ...


class Remark(NamedTuple):
    """Something odd about a file that can be read all the same."""

    code: str
    reason: str


# The tag of a column of doubles that may only be integers with gaps, as pandas writes them.
MAYBE_INTEGERS: Final = "maybe-integers"


@dataclass(frozen=True, eq=False)
class KnownSchema:
    """A schema with what is worked out from it once, however many files have it."""

    schema: Schema

    @cached_property
    def shape(self) -> str:
        """The schema's fingerprint of shape."""
        return self.schema.shape

    @cached_property
    def full(self) -> str:
        """The schema's full fingerprint."""
        return self.schema.full

    @cached_property
    def body(self) -> bytes:
        """The schema as JSON."""
        return to_json(self.schema)

    @cached_property
    def leaves(self) -> list[Leaf]:
        """The leaf columns in the order in which files store them."""
        return leaves(self.schema)


class FileFacts(NamedTuple):
    """Schema and size of one file, and what is odd about it; `columns` only when asked for."""

    known: KnownSchema
    row_count: int | None
    row_count_exact: bool
    remarks: tuple[Remark, ...] = ()
    columns: tuple[ColumnFacts, ...] = ()

    @property
    def schema(self) -> Schema:
        """The file's schema."""
        return self.known.schema


class Format(ABC):
    """One file format."""

    name: ClassVar[str]
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    # Whether files carry their schema; otherwise it is inferred from a sample and may widen.
    declares_schema: ClassVar[bool]


class BinaryFormat(Format):
    """A format with magic bytes and a schema of its own."""

    declares_schema: ClassVar[bool] = True

    @abstractmethod
    def claims_head(self, head: bytes) -> bool:
        """Whether a whole file of this format may begin like this."""

    @abstractmethod
    def claims(self, file: RangedBytes) -> bool:
        """Whether the file is marked as this format; costs no more than `read` reads anyway."""

    @abstractmethod
    def read(self, file: RangedBytes, *, column_stats: bool = False) -> FileFacts:
        """The file's facts; raises UnreadableFile."""


class Sample(NamedTuple):
    """The beginning of a text file's content, or the whole; `total` is its length where known."""

    data: bytes
    whole: bool
    total: int | None


class Content(Protocol):
    """The content of a text file, whatever compresses it."""

    def sample(self, length: int) -> Sample:
        """The content's first bytes, about so many; raises UnreadableFile."""


class TextFormat(Format):
    """A format without magic bytes; its schema is inferred from a sample."""

    declares_schema: ClassVar[bool] = False

    @abstractmethod
    def recognises(self, sample: Sample) -> bool:
        """Whether text that no name speaks for is clearly of this format."""

    @abstractmethod
    def read(self, content: Content, *, suffix: str = "") -> FileFacts:
        """The facts of a file with such a name; raises UnreadableFile."""


@lru_cache(maxsize=2048)
def inferred(names: tuple[str, ...], types: tuple[DataType, ...]) -> KnownSchema:
    """The schema of columns with those names and types, all of which may hold nulls."""
    fields = (Field(name=name, type=type) for name, type in zip(names, types, strict=True))
    return KnownSchema(Schema(fields=tuple(fields)))
