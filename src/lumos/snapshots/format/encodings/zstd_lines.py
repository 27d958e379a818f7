"""JSON Lines compressed with zstd, unfolded piece by piece."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

from lumos.snapshots.format.encodings.interface import ALWAYS_ALLOWED, BUFFER, MOST_TIMES, Bodies
from lumos.snapshots.format.encodings.json_lines import JsonLines, Readable, write_to
from lumos.snapshots.format.errors import CutOff, NotASnapshot, SnapshotError, TooLarge

_MAGIC: Final = b"\x28\xb5\x2f\xfd"


class _Unfolding:
    """The content of a compressed file, as much at a time as is asked for."""

    def __init__(self, file: Path, stream: Readable) -> None:
        self._file = file
        self._stream = stream
        self._most = max(ALWAYS_ALLOWED, MOST_TIMES * file.stat().st_size)
        self._unfolded = 0

    def read(self, size: int, /) -> bytes:
        try:
            piece = self._stream.read(size)
        except (pa.ArrowException, OSError) as problem:
            place = f"after {self._unfolded} unfolded bytes"
            if "runcated" in str(problem):
                raise CutOff(self._file, place, "Its zstd data is cut off.") from None
            raise SnapshotError(self._file, place, "Its zstd data is damaged.") from None
        self._unfolded += len(piece)
        if self._unfolded > self._most:
            text = f"It unfolds to more than {MOST_TIMES} times its size."
            raise TooLarge(self._file, f"after {self._unfolded} unfolded bytes", text)
        return piece


@contextmanager
def _unfolding(file: Path) -> Iterator[Readable]:
    with file.open("rb") as stored:
        if not _MAGIC.startswith(stored.read(len(_MAGIC))):
            raise NotASnapshot(file, "byte 0", "It is not compressed with zstd.")
        stored.seek(0)
        with pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), "zstd") as stream:
            yield _Unfolding(file, stream)


def open_zstd(file: Path) -> JsonLines:
    """Opens a compressed file."""
    return JsonLines(file, _unfolding)


def write_zstd(file: Path, header: bytes, bodies: Bodies) -> None:
    """Writes a compressed file."""
    with (
        pa.OSFile(str(file), "wb") as stored,
        pa.CompressedOutputStream(stored, "zstd") as stream,
        pa.BufferedOutputStream(stream, BUFFER) as buffered,
    ):
        write_to(buffered, header, bodies)
