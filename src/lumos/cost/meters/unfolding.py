"""Lines of files that may be compressed, never more of them in memory than one line."""

import bz2
import gzip
import io
import lzma
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

from lumos.errors import LumosError

LONGEST_LINE: Final = 64 * 1024 * 1024
# Logs of events shrink to a fiftieth at best; whatever unfolds further is no log.
_MOST_UNFOLDED: Final = 1000
_STEP: Final = 1024 * 1024
# zstd's library gives nothing of a step that the end of a file cuts, so steps are short.
_SHORT_STEP: Final = 4096
_LARGEST_BLOCK: Final = 32 * 1024 * 1024

_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_GZIP: Final = b"\x1f\x8b"
_BZIP2: Final = b"BZh"
_LZ4_OF_JAVA: Final = b"LZ4Block"
_SNAPPY_OF_JAVA: Final = b"\x82SNAPPY\x00"
_LZF: Final = b"ZV"
_DAMAGED: Final = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, struct.error)


class UnreadableMeter(LumosError):
    """A file of which nothing could be read."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path} cannot be read: {problem}.")


@contextmanager
def unfolded(path: str) -> Iterator[BinaryIO]:
    """A file's content, whatever it is compressed with."""
    with open(path, "rb") as stored:
        head = stored.read(16)
        stored.seek(0)
        unpack = _unpacking(path, head)
        if unpack is None:
            yield io.BufferedReader(stored, _STEP)
            return
        limit = LONGEST_LINE + _MOST_UNFOLDED * os.fstat(stored.fileno()).st_size
        yield io.BufferedReader(_Bounded(unpack(stored), path, limit), _STEP)


def lines(path: str) -> Iterator[bytes]:
    """The lines of a file; one that is cut off at its end is left out."""
    with unfolded(path) as stream:
        while line := stream.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise UnreadableMeter(path, "it has a line of more than 64 MB")
            yield line


def _unpacking(path: str, head: bytes) -> Callable[[BinaryIO], Any] | None:
    if head.startswith(_ZSTD):
        return _zstd
    if head.startswith(_GZIP):
        return lambda stored: gzip.GzipFile(fileobj=stored)
    if head.startswith(_BZIP2):
        return bz2.BZ2File
    if head.startswith(_LZ4_OF_JAVA):
        return lambda stored: _Pieces(_lz4_blocks(stored))
    if head.startswith(_SNAPPY_OF_JAVA):
        return lambda stored: _Pieces(_snappy_blocks(stored))
    if head.startswith(_LZF):
        raise UnreadableMeter(
            path, "it is compressed with lzf; write logs with zstd, lz4 or snappy instead"
        )
    return None


def _zstd(stored: BinaryIO) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), "zstd")


class _Bounded(io.RawIOBase):
    """As much of a stream as can be believed; all that fails in it is one error."""

    def __init__(self, stream: Any, path: str, limit: int) -> None:
        self._stream = stream
        self._path = path
        self._left = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(min(len(buffer), _SHORT_STEP))
        except _DAMAGED as problem:
            if self._is_cut(problem):
                return 0
            raise UnreadableMeter(self._path, f"its data is damaged ({problem})") from None
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableMeter(self._path, "it unfolds to more than it can honestly hold")
        buffer[: len(data)] = data
        return len(data)

    @staticmethod
    def _is_cut(problem: Exception) -> bool:
        """Whether the file just ends too early, as one does that is still being written."""
        return isinstance(problem, EOFError) or "Truncated" in str(problem)


class _Pieces(io.RawIOBase):
    """Blocks of bytes as one stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return b""
            self._rest = block
        data, self._rest = self._rest[:size], self._rest[size:]
        return data


def _lz4_blocks(stored: BinaryIO) -> Iterator[bytes]:
    """The blocks that lz4's library for Java writes: a mark, a token, two sizes, a checksum."""
    import pyarrow as pa

    while head := stored.read(21):
        if len(head) < 21:
            raise EOFError("the last block is cut off")
        mark, token, packed, size, _ = struct.unpack("<8sBiii", head)
        if mark != _LZ4_OF_JAVA or not 0 <= size <= _LARGEST_BLOCK or not 0 <= packed <= size + 64:
            raise ValueError("a block of lz4 has no head")
        data = _whole(stored, packed)
        is_plain = token & 0xF0 == 0x10
        if size:
            yield (
                data
                if is_plain
                else pa.decompress(data, decompressed_size=size, codec="lz4_raw", asbytes=True)
            )


def _snappy_blocks(stored: BinaryIO) -> Iterator[bytes]:
    """The blocks that snappy's library for Java writes, each with its size before it."""
    import pyarrow as pa

    _whole(stored, 16)
    while head := stored.read(4):
        if head == _SNAPPY_OF_JAVA[:4]:
            # A stream that was appended to begins anew.
            _whole(stored, 12)
            continue
        (packed,) = struct.unpack(">i", head)
        if not 0 <= packed <= _LARGEST_BLOCK:
            raise ValueError("a block of snappy has no size")
        data = _whole(stored, packed)
        size = _snappy_size(data)
        yield pa.decompress(data, decompressed_size=size, codec="snappy", asbytes=True)


def _snappy_size(data: bytes) -> int:
    size = 0
    for place, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80 and size <= _LARGEST_BLOCK:
            return size
    raise ValueError("a block of snappy says no size")


def _whole(stored: BinaryIO, size: int) -> bytes:
    data = stored.read(size)
    if len(data) < size:
        raise EOFError("the last block is cut off")
    return data
