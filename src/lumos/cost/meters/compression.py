"""Reads compressed files as a stream or line by line, in bounded memory."""

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
# Event logs compress to a fiftieth at best; a larger ratio is a decompression bomb.
_MAX_RATIO: Final = 1000
_STEP: Final = 1024 * 1024
# The zstd library drops a whole chunk if the file is truncated in it, so chunks are short.
_SHORT_STEP: Final = 4096
_LARGEST_BLOCK: Final = 32 * 1024 * 1024

_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_GZIP: Final = b"\x1f\x8b"
_BZIP2: Final = b"BZh"
_LZ4_OF_JAVA: Final = b"LZ4Block"
_SNAPPY_OF_JAVA: Final = b"\x82SNAPPY\x00"
_LZF: Final = b"ZV"
_DECOMPRESSION_ERRORS: Final = (
    EOFError,
    OSError,
    ValueError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
)


class UnreadableMeter(LumosError):
    """A meter file that cannot be read."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path} cannot be read: {problem}.")


@contextmanager
def open_decompressed(path: str) -> Iterator[BinaryIO]:
    """The decompressed content of a file; the compression is detected."""
    with open(path, "rb") as stored:
        head = stored.read(16)
        stored.seek(0)
        unpack = _decompressor(path, head)
        if unpack is None:
            yield io.BufferedReader(stored, _STEP)
            return
        limit = LONGEST_LINE + _MAX_RATIO * os.fstat(stored.fileno()).st_size
        yield io.BufferedReader(_LimitedStream(unpack(stored), path, limit), _STEP)


def read_lines(path: str) -> Iterator[bytes]:
    """The lines of a file; an incomplete last line is left out."""
    with open_decompressed(path) as stream:
        while line := stream.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise UnreadableMeter(path, "it has a line of more than 64 MB")
            yield line


def _decompressor(path: str, head: bytes) -> Callable[[BinaryIO], Any] | None:
    if head.startswith(_ZSTD):
        return _zstd
    if head.startswith(_GZIP):
        return lambda stored: gzip.GzipFile(fileobj=stored)
    if head.startswith(_BZIP2):
        return bz2.BZ2File
    if head.startswith(_LZ4_OF_JAVA):
        return lambda stored: _BlockStream(_lz4_blocks(stored))
    if head.startswith(_SNAPPY_OF_JAVA):
        return lambda stored: _BlockStream(_snappy_blocks(stored))
    if head.startswith(_LZF):
        raise UnreadableMeter(
            path, "it is compressed with lzf; write logs with zstd, lz4 or snappy instead"
        )
    return None


def _zstd(stored: BinaryIO) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), "zstd")


class _LimitedStream(io.RawIOBase):
    """A stream with a size limit that raises UnreadableMeter for all decompression errors."""

    def __init__(self, stream: Any, path: str, limit: int) -> None:
        self._stream = stream
        self._path = path
        self._left = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(min(len(buffer), _SHORT_STEP))
        except _DECOMPRESSION_ERRORS as problem:
            if self._is_truncated(problem):
                return 0
            raise UnreadableMeter(self._path, f"its data is damaged ({problem})") from None
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableMeter(self._path, "its decompressed size is implausible")
        buffer[: len(data)] = data
        return len(data)

    @staticmethod
    def _is_truncated(problem: Exception) -> bool:
        """Whether the file is truncated, as one that is still being written."""
        return isinstance(problem, EOFError) or "Truncated" in str(problem)


class _BlockStream(io.RawIOBase):
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
    """The blocks of lz4-java: magic, token, two sizes, checksum."""
    import pyarrow as pa

    while head := stored.read(21):
        if len(head) < 21:
            raise EOFError("the last block is cut off")
        mark, token, packed, size, _ = struct.unpack("<8sBiii", head)
        if mark != _LZ4_OF_JAVA or not 0 <= size <= _LARGEST_BLOCK or not 0 <= packed <= size + 64:
            raise ValueError("a block of lz4 has no head")
        data = _read_exactly(stored, packed)
        is_plain = token & 0xF0 == 0x10
        if size:
            yield (
                data
                if is_plain
                else pa.decompress(data, decompressed_size=size, codec="lz4_raw", asbytes=True)
            )


def _snappy_blocks(stored: BinaryIO) -> Iterator[bytes]:
    """The blocks of snappy-java, each with its size before it."""
    import pyarrow as pa

    _read_exactly(stored, 16)
    while head := stored.read(4):
        if head == _SNAPPY_OF_JAVA[:4]:
            # Appended streams repeat the header.
            _read_exactly(stored, 12)
            continue
        (packed,) = struct.unpack(">i", head)
        if not 0 <= packed <= _LARGEST_BLOCK:
            raise ValueError("a block of snappy has no size")
        data = _read_exactly(stored, packed)
        size = _snappy_size(data)
        yield pa.decompress(data, decompressed_size=size, codec="snappy", asbytes=True)


def _snappy_size(data: bytes) -> int:
    size = 0
    for place, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80 and size <= _LARGEST_BLOCK:
            return size
    raise ValueError("a block of snappy says no size")


def _read_exactly(stored: BinaryIO, size: int) -> bytes:
    data = stored.read(size)
    if len(data) < size:
        raise EOFError("the last block is cut off")
    return data
