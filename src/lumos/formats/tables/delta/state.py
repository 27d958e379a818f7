"""What the actions of a log amount to: the live files, the schema and its history."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import msgspec

from lumos.formats.tables.delta.actions import (
    Action,
    Add,
    CommitInfo,
    Damaged,
    Domain,
    Metadata,
    Protocol,
    rows_of,
)
from lumos.formats.tables.delta.live import Live, LiveFiles, Pile, in_piles, key_of, totals
from lumos.formats.tables.delta.log import Identity
from lumos.formats.tables.delta.paths import resolved
from lumos.formats.tables.delta.vectors import deletes_of, id_of
from lumos.formats.tables.interface import Folder

# Memories of another layout are of no use.
_LAYOUT: Final = 3
_CLUSTERING: Final = "delta.clustering"
# So many partitions without a file are not worth the work of forgetting them.
_FEW: Final = 1_000

Partition = tuple[tuple[str, str | None], ...]


class Told(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A schema that a commit brought; `at` is in microseconds since 1970."""

    version: int
    at: int
    exact_time: bool
    schema_string: str | None
    partition_columns: list[str]
    operation: str | None = None
    author: str | None = None


class Memory(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """All that one reading leaves for the next."""

    layout: int = _LAYOUT
    version: int
    # The commit of that version as it was listed; nothing where only a checkpoint is left of it.
    last: Identity | None
    at: int
    operation: str | None
    metadata: Metadata
    protocol: Protocol
    clustering: str
    partitions: list[Partition]
    live: list[Pile]
    told: list[Told]
    # Commits of the past that could not be read.
    unread: list[int]
    # Checkpoints that could not be used, and why.
    damaged: dict[int, str]


class State:
    """A table between two actions."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.live = LiveFiles()
        self.partitions: dict[Partition, int] = {}
        self.metadata: Metadata | None = None
        self.protocol: Protocol | None = None
        self.clustering = ""

    @classmethod
    def of(cls, folder: Folder, memory: Memory) -> "State":
        """The state as an earlier reading left it."""
        state = cls(folder)
        state.live = LiveFiles(memory.live)
        state.partitions = {each: number for number, each in enumerate(memory.partitions)}
        state.metadata = memory.metadata
        state.protocol = memory.protocol
        state.clustering = memory.clustering
        return state

    def apply(self, action: Action) -> None:
        """One more action."""
        if action.add is not None:
            self.add(action.add, rows_of(action.add.stats))
        elif action.remove is not None:
            vector = action.remove.deletion_vector
            self.live.drop(key_of(self._resolved(action.remove.path), id_of(vector)))
        elif action.meta_data is not None:
            self.metadata = action.meta_data
        elif action.protocol is not None:
            self.protocol = action.protocol
        elif action.domain_metadata is not None:
            self.note(action.domain_metadata)

    def add(self, add: Add, rows: int | None) -> None:
        """One more live file."""
        vector = add.deletion_vector
        # By the protocol an empty text is the null of every type.
        values = (add.partition_values or {}).items()
        partition = tuple((name, value or None) for name, value in values)
        self.live.put(
            Live(
                path=self._resolved(add.path),
                size=add.size,
                rows=rows,
                partition=self.partitions.setdefault(partition, len(self.partitions)),
                deletes=None if vector is None else deletes_of(vector, self._resolved),
                vector=id_of(vector),
            )
        )

    def note(self, domain: Domain) -> None:
        """What one of Delta's features set."""
        if domain.domain == _CLUSTERING:
            self.clustering = "" if domain.removed else domain.configuration

    def _resolved(self, path: str) -> str:
        return resolved(path, self._folder)

    def memory(
        self,
        *,
        version: int,
        last: Identity | None,
        at: int,
        operation: str | None,
        told: list[Told],
        unread: list[int],
        damaged: dict[int, str],
    ) -> Memory:
        """What the next reading is to know; raises Damaged where it is no table yet."""
        if self.metadata is None:
            raise Damaged("nothing in it says what the table's schema is")
        if self.protocol is None:
            raise Damaged("nothing in it says which protocol it follows")
        if len(self.partitions) > 2 * totals(self.live.piles()).files + _FEW:
            self._forget_partitions()
        return Memory(
            version=version,
            last=last,
            at=at,
            operation=operation,
            metadata=self.metadata,
            protocol=self.protocol,
            clustering=self.clustering,
            partitions=list(self.partitions),
            live=self.live.piles(),
            told=told,
            unread=unread,
            damaged=damaged,
        )

    def _forget_partitions(self) -> None:
        """Keeps those alone that some live file is in."""
        known, files = list(self.partitions), self.live
        self.partitions, self.live = {}, LiveFiles()
        for live in in_piles(files.piles()):
            partition = known[live.partition]
            number = self.partitions.setdefault(partition, len(self.partitions))
            self.live.put(msgspec.structs.replace(live, partition=number))


def told_of(
    metadata: Metadata, version: int, info: CommitInfo, *, modified: int, exact: bool = True
) -> Told:
    """The schema that a commit brought."""
    at = microseconds(info, modified)
    return Told(
        version=version,
        at=at,
        exact_time=exact and _is_time(info.milliseconds),
        schema_string=metadata.schema_string,
        partition_columns=metadata.partition_columns or [],
        operation=info.operation,
        author=info.author,
    )


def microseconds(info: CommitInfo, modified: int) -> int:
    """When a commit was made: as it says, else when its file was written."""
    if info.milliseconds is None or not _is_time(info.milliseconds):
        return modified
    return info.milliseconds * 1000


def _is_time(milliseconds: int | None) -> bool:
    if milliseconds is None or milliseconds <= 0:
        return False
    try:
        datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return False
    return True


def only_changes(told: list[Told]) -> list[Told]:
    """Those that differ from the one before, in the order of their versions."""
    changes: list[Told] = []
    for each in sorted(told, key=lambda told: told.version):
        same = changes and (
            changes[-1].schema_string == each.schema_string
            and changes[-1].partition_columns == each.partition_columns
        )
        if not same:
            changes.append(each)
    return changes


_encode: Final[Callable[[object], bytes]] = msgspec.msgpack.Encoder().encode
_decoder: Final = msgspec.msgpack.Decoder(Memory)


def packed(memory: Memory) -> bytes:
    """The memory as bytes."""
    return _encode(memory)


def unpacked(memory: bytes | None) -> Memory | None:
    """The memory of those bytes; nothing where they are of no use."""
    if memory is None:
        return None
    try:
        known = _decoder.decode(memory)
    except (ValueError, RecursionError):
        return None
    return known if known.layout == _LAYOUT else None
