"""Sorts any number of records; above a limit, they are spilled to disk."""

import heapq
import tempfile
from collections.abc import Callable, Iterable, Iterator
from gzip import GzipFile
from itertools import islice
from typing import IO, Any, Final, Generic, TypeVar

import msgspec

_MAX_IN_MEMORY: Final = 50_000
# The number of records of each run that are in memory while runs are merged.
_BLOCK_SIZE: Final = 1000
_LENGTH_BYTES: Final = 8

Record = TypeVar("Record")


class SpillSort(Generic[Record]):
    """Sorts records by `key`; close it after use.

    `decode` decodes a block: a list of records that msgspec encoded.
    """

    def __init__(
        self,
        decode: Callable[[bytes], Iterable[Record]],
        *,
        key: Callable[[Record], Any],
        max_in_memory: int = _MAX_IN_MEMORY,
    ) -> None:
        self._decode = decode
        self._key = key
        self._max_in_memory = max_in_memory
        self._records: list[Record] = []
        self._runs: list[IO[bytes]] = []

    def close(self) -> None:
        """Remove the files on disk."""
        for run in self._runs:
            run.close()

    def add(self, record: Record) -> None:
        """Add a record."""
        self._records.append(record)
        if len(self._records) >= self._max_in_memory:
            self._sort()
            run = tempfile.TemporaryFile(prefix="lumos-")  # noqa: SIM115 - closed by close()
            write_blocks(run, self._records)
            self._runs.append(run)
            self._records = []

    def in_order(self) -> Iterator[Record]:
        """Iterate over all records in order; only one iterator may be used at a time."""
        self._sort()
        if not self._runs:
            return iter(self._records)
        runs = (read_blocks(run, self._decode) for run in self._runs)
        return heapq.merge(self._records, *runs, key=self._key)

    def _sort(self) -> None:
        self._records.sort(key=self._key)


def write_blocks(file: IO[bytes] | GzipFile, records: Iterable[Any]) -> None:
    """Write records in blocks for `read_blocks`."""
    remaining = iter(records)
    while records_of_block := list(islice(remaining, _BLOCK_SIZE)):
        block = msgspec.msgpack.encode(records_of_block)
        file.write(len(block).to_bytes(_LENGTH_BYTES, "big"))
        file.write(block)


def read_blocks(
    file: IO[bytes] | GzipFile, decode: Callable[[bytes], Iterable[Record]]
) -> Iterator[Record]:
    """Yield all records of a file, reading one block at a time."""
    file.seek(0)
    while length := file.read(_LENGTH_BYTES):
        yield from decode(file.read(int.from_bytes(length, "big")))
