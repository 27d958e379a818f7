"""The lines of a Delta log: actions, of which only what Lumos tells is decoded."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec

from lumos.errors import LumosError
from lumos.formats.interface import LARGEST

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
# No storage knows paths that are as long, however they are escaped.
LONGEST_PATH: Final = 64 * 1024
Path: TypeAlias = Annotated[str, msgspec.Meta(max_length=LONGEST_PATH)]


class Damaged(LumosError):
    """A file of a log that is not what it should be."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A part of an action, under the names that Delta gives it."""


class DeletionVector(_Part, frozen=True):
    """Where it is written which rows of a file are deleted."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: Count = 0
    cardinality: Count | None = None
    offset: Count | None = None


class Add(_Part, frozen=True):
    """A file that belongs to the table from now on."""

    path: Path
    size: Count
    partition_values: dict[str, str | None] | None = None
    stats: str | None = None
    deletion_vector: DeletionVector | None = None


class Remove(_Part, frozen=True):
    """A file that belongs to the table no more."""

    path: str
    deletion_vector: DeletionVector | None = None


class FileFormat(_Part, frozen=True):
    """What the data files are."""

    provider: str | None = None


class Metadata(_Part, frozen=True):
    """The table's schema, partitioning and settings."""

    id: str | None = None
    name: str | None = None
    description: str | None = None
    format: FileFormat | None = None
    schema_string: str | None = None
    partition_columns: list[str] | None = None
    configuration: dict[str, Any] | None = None

    @property
    def settings(self) -> dict[str, str]:
        """The configuration as texts."""
        given = self.configuration or {}
        return {key: str(value) for key, value in given.items() if value is not None}


class Protocol(_Part, frozen=True):
    """What a program must know to read or write the table."""

    min_reader_version: Count = 0
    min_writer_version: Count = 0
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None


class Domain(_Part, frozen=True):
    """A setting of one of Delta's own features."""

    domain: str
    configuration: str = ""
    removed: bool = False


class Sidecar(_Part, frozen=True):
    """A file that holds a share of a checkpoint's actions."""

    path: str


class Action(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """One line; exactly one of these is there, or it is an action that says nothing here."""

    add: Add | None = None
    remove: Remove | None = None
    # Spelled as Delta does; its own fields are none of ours.
    meta_data: Metadata | None = None
    protocol: Protocol | None = None
    domain_metadata: Domain | None = None
    commit_info: msgspec.Raw = msgspec.Raw()
    sidecar: Sidecar | None = None


class _History(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A line of a commit that a checkpoint already holds: only what it says of the schema."""

    meta_data: Metadata | None = None
    commit_info: msgspec.Raw = msgspec.Raw()


class CommitInfo(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Who did what and when; `milliseconds` since 1970."""

    milliseconds: int | None = None
    operation: str | None = None
    author: str | None = None


class Stats(_Part, frozen=True):
    """What is known of a file's rows."""

    num_records: Count | None = None


_actions: Final = msgspec.json.Decoder(Action)
_history: Final = msgspec.json.Decoder(_History)
_stats: Final = msgspec.json.Decoder(Stats)
_Line = TypeVar("_Line", Action, _History)
# Bytes of lines that are decoded at a time.
_PORTION: Final = 1 << 20
_MARK_OF_METADATA: Final = b'"metaData"'


def actions_of(data: bytes) -> Iterator[Action]:
    """The actions of a commit one after the other; raises Damaged."""
    return _lines(data, _actions)


def schema_actions_of(data: bytes) -> tuple[Metadata | None, CommitInfo]:
    """The schema that a commit brought, if any, and who brought it; raises Damaged."""
    if _MARK_OF_METADATA not in data:
        return None, CommitInfo()
    brought: Metadata | None = None
    told: list[msgspec.Raw] = []
    for line in _lines(data, _history):
        brought = line.meta_data or brought
        if line.commit_info:
            told.append(line.commit_info)
    return brought, commit_info(told)


def _lines(data: bytes, decoder: msgspec.json.Decoder[_Line]) -> Iterator[_Line]:
    # The first commit of a table that was converted may tell of millions of files.
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _PORTION) + 1 or len(data)
        try:
            yield from decoder.decode_lines(data[start:end])
        except RecursionError:
            raise Damaged("it nests too deeply") from None
        except ValueError as problem:
            raise Damaged(f"it is cut off or no JSON: {problem}") from None
        start = end


def commit_info(lines: Iterable[msgspec.Raw]) -> CommitInfo:
    """What a commit says of itself; writers put into it what they like."""
    given: dict[str, Any] = {}
    for line in lines:
        if line:
            try:
                given = msgspec.json.decode(line, type=dict[str, Any])
            except (ValueError, RecursionError):
                continue
    times = (given.get(key) for key in ("inCommitTimestamp", "timestamp"))
    return CommitInfo(
        milliseconds=next((time for time in times if type(time) is int), None),
        operation=_text(given.get("operation")),
        author=_text(given.get("userName")) or _text(given.get("userId")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def rows_of(stats: str | None) -> int | None:
    """The number of rows that statistics tell; they are optional, and so is every part of them."""
    if not stats:
        return None
    try:
        return _stats.decode(stats).num_records
    except (ValueError, RecursionError):
        return None
