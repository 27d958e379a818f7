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

from lumos.decompression import max_decompressed_bytes
from lumos.errors import LumosError

MAX_LINE_LENGTH: Final = 64 * 1024 * 1024
_BUFFER_BYTES: Final = 1024 * 1024
# The zstd library discards the entire last chunk of a truncated file, so chunks are short.
_CHUNK_BYTES: Final = 4096
_MAX_BLOCK_BYTES: Final = 32 * 1024 * 1024

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_GZIP_MAGIC: Final = b"\x1f\x8b"
_BZIP2_MAGIC: Final = b"BZh"
_LZ4_JAVA_MAGIC: Final = b"LZ4Block"
_SNAPPY_JAVA_MAGIC: Final = b"\x82SNAPPY\x00"
_LZF_MAGIC: Final = b"ZV"
_DECOMPRESSION_ERRORS: Final = (
    EOFError,
    OSError,
    ValueError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
)


class UnreadableUsageFile(LumosError):
    """A file with resource usage, such as a Spark event log, that cannot be read."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path} cannot be read: {problem}.")


@contextmanager
def open_decompressed(path: str) -> Iterator[BinaryIO]:
    """Open a file for reading, decompressed; the compression is detected."""
    with open(path, "rb") as file:
        head = file.read(16)
        file.seek(0)
        decompress = _decompressor(path, head)
        if decompress is None:
            yield io.BufferedReader(file, _BUFFER_BYTES)
            return
        limit = max_decompressed_bytes(os.fstat(file.fileno()).st_size)
        yield io.BufferedReader(_LimitedStream(decompress(file), path, limit), _BUFFER_BYTES)


def read_lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a file."""
    with open_decompressed(path) as stream:
        while line := stream.readline(MAX_LINE_LENGTH):
            if len(line) == MAX_LINE_LENGTH:
                raise UnreadableUsageFile(path, "it has a line of more than 64 MB")
            yield line


def _decompressor(path: str, head: bytes) -> Callable[[BinaryIO], Any] | None:
    if head.startswith(_ZSTD_MAGIC):
        return _zstd
    if head.startswith(_GZIP_MAGIC):
        return lambda file: gzip.GzipFile(fileobj=file)
    if head.startswith(_BZIP2_MAGIC):
        return bz2.BZ2File
    if head.startswith(_LZ4_JAVA_MAGIC):
        return lambda file: _BlockStream(_lz4_blocks(file))
    if head.startswith(_SNAPPY_JAVA_MAGIC):
        return lambda file: _BlockStream(_snappy_blocks(file))
    if head.startswith(_LZF_MAGIC):
        raise UnreadableUsageFile(
            path, "it is compressed with lzf; write logs with zstd, lz4 or snappy instead"
        )
    return None


def _zstd(file: BinaryIO) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd")


class _LimitedStream(io.RawIOBase):
    """A stream with a size limit; raises UnreadableUsageFile for all decompression errors."""

    def __init__(self, stream: Any, path: str, limit: int) -> None:
        self._stream = stream
        self._path = path
        self._remaining_bytes = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(min(len(buffer), _CHUNK_BYTES))
        except _DECOMPRESSION_ERRORS as problem:
            if self._is_truncated(problem):
                return 0
            raise UnreadableUsageFile(self._path, f"its data is damaged ({problem})") from None
        self._remaining_bytes -= len(data)
        if self._remaining_bytes < 0:
            raise UnreadableUsageFile(self._path, "its decompressed size is implausible")
        buffer[: len(data)] = data
        return len(data)

    @staticmethod
    def _is_truncated(problem: Exception) -> bool:
        """Whether the file is truncated, for example because it is still being written."""
        return isinstance(problem, EOFError) or "Truncated" in str(problem)


class _BlockStream(io.RawIOBase):
    """Blocks of bytes as one stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._unread = b""

    def read(self, size: int = -1) -> bytes:
        while not self._unread:
            block = next(self._blocks, None)
            if block is None:
                return b""
            self._unread = block
        data, self._unread = self._unread[:size], self._unread[size:]
        return data


def _lz4_blocks(file: BinaryIO) -> Iterator[bytes]:
    """The blocks of lz4-java: magic, token, two sizes, checksum."""
    import pyarrow as pa

    while head := file.read(21):
        if len(head) < 21:
            raise EOFError("the last block is truncated")
        magic, token, compressed_size, size, _ = struct.unpack("<8sBiii", head)
        if (
            magic != _LZ4_JAVA_MAGIC
            or not 0 <= size <= _MAX_BLOCK_BYTES
            or not 0 <= compressed_size <= size + 64
        ):
            raise ValueError("an lz4 block has an invalid header")
        data = _read_exactly(file, compressed_size)
        is_uncompressed = token & 0xF0 == 0x10
        if size:
            yield (
                data
                if is_uncompressed
                else pa.decompress(data, decompressed_size=size, codec="lz4_raw", asbytes=True)
            )


def _snappy_blocks(file: BinaryIO) -> Iterator[bytes]:
    """The blocks of snappy-java, each preceded by its size."""
    import pyarrow as pa

    _read_exactly(file, 16)
    while head := file.read(4):
        if head == _SNAPPY_JAVA_MAGIC[:4]:
            # Appended streams repeat the header.
            _read_exactly(file, 12)
            continue
        (compressed_size,) = struct.unpack(">i", head)
        if not 0 <= compressed_size <= _MAX_BLOCK_BYTES:
            raise ValueError("a snappy block has an invalid size")
        data = _read_exactly(file, compressed_size)
        size = _snappy_size(data)
        yield pa.decompress(data, decompressed_size=size, codec="snappy", asbytes=True)


def _snappy_size(data: bytes) -> int:
    size = 0
    for index, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80 and size <= _MAX_BLOCK_BYTES:
            return size
    raise ValueError("a snappy block has an invalid size")


def _read_exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError("the last block is truncated")
    return data
