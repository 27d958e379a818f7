"""Puts any number of entries into the order of their keys, in bounded memory."""

import heapq
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Final, Self

from lumos.snapshots.format.codec import key_of, seal, unseal
from lumos.snapshots.format.document import Kind
from lumos.snapshots.format.encodings import Keyed

MOST_IN_MEMORY: Final = 128 * 1024 * 1024


class Sorter:
    """Entries of one kind; what is too much for the memory waits, sorted, in temporary files."""

    def __init__(self, kind: Kind, *, most_in_memory: int = MOST_IN_MEMORY) -> None:
        self._kind = kind
        self._most = most_in_memory
        self._held: list[Keyed] = []
        self._size = 0
        self._runs: list[IO[bytes]] = []
        self._files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._files.close()

    def add(self, key: str, body: bytes, content_hash: str) -> None:
        """Takes an entry."""
        self._held.append((key, body, content_hash))
        self._size += len(body)
        if self._size > self._most:
            self._set_aside()

    def in_order(self) -> Iterator[Keyed]:
        """All entries; those of the same key come one after the other."""
        self._held.sort()
        if not self._runs:
            return iter(self._held)
        return heapq.merge(*map(self._read, self._runs), self._held)

    def _set_aside(self) -> None:
        self._held.sort()
        run = tempfile.TemporaryFile(prefix="lumos-")  # noqa: SIM115
        self._files.enter_context(run)
        lines = (seal(body, content_hash, after=b"\n") for _, body, content_hash in self._held)
        run.writelines(lines)
        self._runs.append(run)
        self._held.clear()
        self._size = 0

    def _read(self, run: IO[bytes]) -> Iterator[Keyed]:
        run.seek(0)
        for line in run:
            body, content_hash = unseal(line[:-1])
            yield key_of(self._kind, body), body, str(content_hash)
