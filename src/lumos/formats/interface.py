"""What a file format tells about one file."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, Protocol

from lumos.errors import LumosError
from lumos.model.schema import Schema


class UnreadableFile(LumosError):
    """A file that is not what it says or cannot be read; it becomes a problem, never a crash."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(reason)


class RangedBytes(Protocol):
    """Ranged reads of one file, whatever storage it lies in."""

    @property
    def size(self) -> int: ...

    def head(self, length: int) -> bytes: ...

    def tail(self, length: int) -> bytes: ...


class FileFacts(NamedTuple):
    """Schema and size of one file."""

    schema: Schema
    row_count: int | None
    row_count_exact: bool


class Format(ABC):
    """One file format."""

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    # Whether files carry their schema; otherwise it is inferred from a sample and may widen.
    declares_schema: ClassVar[bool]

    @abstractmethod
    def claims(self, head: bytes) -> bool:
        """Whether a file that begins like this is certainly of this format."""

    @abstractmethod
    def read(self, file: RangedBytes) -> FileFacts:
        """The file's facts; raises UnreadableFile."""
