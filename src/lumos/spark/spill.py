"""Records in order, however many: beyond some number they wait on disk."""

import heapq
import tempfile
from collections.abc import Callable, Iterable, Iterator
from gzip import GzipFile
from itertools import islice
from typing import IO, Any, Final, Generic, TypeVar

import msgspec

_MOST_IN_MEMORY: Final = 50_000
# So many of each run are in memory while runs are merged.
_BLOCK: Final = 1000
_LENGTH_BYTES: Final = 8

Record = TypeVar("Record")


class Pile(Generic[Record]):
    """Takes records in any order and gives them by `key`; use it in a `with`.

    `decode` makes records of a block of them, encoded by msgspec as a list.
    """

    def __init__(
        self,
        decode: Callable[[bytes], Iterable[Record]],
        *,
        key: Callable[[Record], Any],
        most: int = _MOST_IN_MEMORY,
    ) -> None:
        self._decode = decode
        self._key = key
        self._most = most
        self._top: list[Record] = []
        self._runs: list[IO[bytes]] = []

    def close(self) -> None:
        """Removes what waits on disk."""
        for run in self._runs:
            run.close()

    def add(self, record: Record) -> None:
        """Puts a record on the pile."""
        self._top.append(record)
        if len(self._top) >= self._most:
            self._sort()
            run = tempfile.TemporaryFile(prefix="lumos-")  # noqa: SIM115 - the pile closes it
            write_blocks(run, self._top)
            self._runs.append(run)
            self._top = []

    def in_order(self) -> Iterator[Record]:
        """All records in order; one such iterator at a time."""
        self._sort()
        if not self._runs:
            return iter(self._top)
        runs = (read_blocks(run, self._decode) for run in self._runs)
        return heapq.merge(self._top, *runs, key=self._key)

    def _sort(self) -> None:
        self._top.sort(key=self._key)


def write_blocks(file: IO[bytes] | GzipFile, records: Iterable[Any]) -> None:
    """Writes records so that they can be read a block at a time."""
    remaining = iter(records)
    while some := list(islice(remaining, _BLOCK)):
        block = msgspec.msgpack.encode(some)
        file.write(len(block).to_bytes(_LENGTH_BYTES, "big"))
        file.write(block)


def read_blocks(
    file: IO[bytes] | GzipFile, decode: Callable[[bytes], Iterable[Record]]
) -> Iterator[Record]:
    """The records of a file from its beginning on; one block of them is in memory."""
    file.seek(0)
    while length := file.read(_LENGTH_BYTES):
        yield from decode(file.read(int.from_bytes(length, "big")))
