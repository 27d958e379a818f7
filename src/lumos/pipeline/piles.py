"""Listed files in order, however many: beyond some number they wait on disk."""

import heapq
import tempfile
from collections.abc import Iterator
from itertools import islice
from types import TracebackType
from typing import IO, Final, Self

import msgspec

from lumos.storage import Listed

_MOST_IN_MEMORY: Final = 50_000
# So many of each run are in memory while runs are merged.
_BLOCK: Final = 1000
_LENGTH_BYTES: Final = 8


class Pile:
    """Takes files in any order and gives them by path; use it in a `with`."""

    def __init__(self, most: int = _MOST_IN_MEMORY) -> None:
        self._most = most
        self._top: list[Listed] = []
        self._runs: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for run in self._runs:
            run.close()

    def add(self, listed: Listed) -> None:
        """Puts a file on the pile."""
        self._top.append(listed)
        if len(self._top) >= self._most:
            self._runs.append(_written(self._top))
            self._top = []

    def in_order(self) -> Iterator[Listed]:
        """All files, by path."""
        self._top.sort()
        if not self._runs:
            return iter(self._top)
        return heapq.merge(self._top, *map(_read, self._runs))


def _written(files: list[Listed]) -> IO[bytes]:
    """The files in order, on a disk of the machine at hand."""
    files.sort()
    remaining = iter(files)
    run = tempfile.TemporaryFile(prefix="lumos-")  # noqa: SIM115 - the pile closes it
    while some := list(islice(remaining, _BLOCK)):
        block = msgspec.msgpack.encode(some)
        run.write(len(block).to_bytes(_LENGTH_BYTES, "big"))
        run.write(block)
    return run


def _read(run: IO[bytes]) -> Iterator[Listed]:
    run.seek(0)
    while length := run.read(_LENGTH_BYTES):
        block = run.read(int.from_bytes(length, "big"))
        yield from msgspec.msgpack.decode(block, type=list[Listed])
