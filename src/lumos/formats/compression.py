"""Decompresses the beginning of compressed files and the blocks of containers, with limits."""

import bz2
import zlib
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from lumos.formats.interface import RangedBytes, Sample, UnreadableFile
from lumos.formats.varints import MalformedData, TruncatedData, read_unsigned

# Reads are short, because pyarrow returns nothing if a read exceeds the end of the sample.
_READ_BYTES: Final = 4096
# The magic bytes of the first block of a bzip2 file, and of its end.
_BZIP2_BLOCKS: Final = (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")


class Decompressed(NamedTuple):
    """Decompressed bytes, and whether the end of the content was reached."""

    data: bytes
    finished: bool


class CorruptCompression(Exception):
    """Bytes that cannot be decompressed."""


class Compression(NamedTuple):
    """A method to compress files."""

    name: str
    suffixes: tuple[str, ...]
    magic: bytes
    # The compressed bytes that contain the first block, which can only be decompressed as a whole.
    first_read: int
    decompress: Callable[[bytes, int], Decompressed]


def compression_of(head: bytes) -> Compression | None:
    """The compression of a file with these first bytes, if any."""
    for each in COMPRESSIONS:
        if head.startswith(each.magic):
            # Text may begin with bzip2's magic bytes. In a bzip2 file, a block or the end follows.
            is_text = each.magic.isascii() and head[4:10] not in _BZIP2_BLOCKS
            return None if is_text else each
    return None


class PlainContent:
    """The content of a file that is not compressed."""

    def __init__(self, file: RangedBytes) -> None:
        self._file = file

    def sample(self, length: int) -> Sample:
        data = self._file.head(length)
        return Sample(data, len(data) == self._file.size, self._file.size)


class CompressedContent:
    """The content of a compressed file."""

    def __init__(self, file: RangedBytes, compression: Compression) -> None:
        self._file = file
        self._compression = compression
        self._samples: dict[int, Sample] = {}

    def sample(self, length: int) -> Sample:
        """The first bytes of the content, at most `length`; raises UnreadableFile."""
        if length not in self._samples:
            self._samples[length] = self._decompress(length)
        return self._samples[length]

    def _decompress(self, length: int) -> Sample:
        stored = self._file.head(max(length, self._compression.first_read))
        complete = len(stored) == self._file.size
        try:
            data, finished = self._compression.decompress(stored, length)
        except CorruptCompression as problem:
            raise UnreadableFile(
                "corrupt_file", f"Its {self._compression.name} data is damaged: {problem}"
            ) from None
        if complete and not finished and len(data) < length:
            raise UnreadableFile("corrupt_file", f"Its {self._compression.name} data is truncated.")
        is_whole = complete and finished
        return Sample(data, is_whole, len(data) if is_whole else None)


def _gzip(stored: bytes, limit: int) -> Decompressed:
    try:
        return _decompress_members(stored, limit, b"\x1f\x8b", lambda: zlib.decompressobj(31))
    except zlib.error as problem:
        raise CorruptCompression(problem) from None


def _bzip2(stored: bytes, limit: int) -> Decompressed:
    try:
        return _decompress_members(stored, limit, b"BZh", bz2.BZ2Decompressor)
    except OSError as problem:
        raise CorruptCompression(problem) from None


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _decompress_members(
    stored: bytes, limit: int, magic: bytes, decompressor: Callable[[], _Decompressor]
) -> Decompressed:
    """Decompress the members of a file; other bytes after them are padding."""
    data = b""
    while stored.startswith(magic) and len(data) < limit:
        member = decompressor()
        data += member.decompress(stored, limit - len(data))
        if not member.eof:
            return Decompressed(data, finished=False)
        stored = member.unused_data
    return Decompressed(data, finished=not stored.startswith(magic))


def _zstd(stored: bytes, limit: int) -> Decompressed:
    chunks: list[bytes] = []
    total = 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(stored), "zstd") as stream:
            while total < limit:
                chunk = stream.read(min(_READ_BYTES, limit - total))
                if not chunk:
                    return Decompressed(b"".join(chunks), finished=True)
                chunks.append(chunk)
                total += len(chunk)
    except (pa.ArrowException, OSError) as problem:
        if "Truncated" not in str(problem):
            raise CorruptCompression(problem) from None
    return Decompressed(b"".join(chunks), finished=False)


COMPRESSIONS: Final = (
    Compression("gzip", (".gz", ".gzip"), b"\x1f\x8b\x08", 64 * 1024, _gzip),
    Compression("zstd", (".zst", ".zstd"), b"\x28\xb5\x2f\xfd", 256 * 1024, _zstd),
    Compression("bzip2", (".bz2",), b"BZh", 1024 * 1024, _bzip2),
)


def decompress_block(decompressor: _Decompressor, block: bytes, max_bytes: int) -> bytes:
    """Decompress a block of at most `max_bytes` bytes; raises MalformedData."""
    try:
        content = decompressor.decompress(block, max_bytes + 1)
    except (zlib.error, OSError, EOFError) as problem:
        raise MalformedData(f"A compressed block is damaged: {problem}") from None
    if len(content) <= max_bytes and not decompressor.eof:
        raise TruncatedData("A compressed block is truncated.")
    return check_block_size(content, max_bytes)


def decompress_deflate(block: bytes, max_bytes: int) -> bytes:
    """The content of a block of raw deflate data."""
    return decompress_block(zlib.decompressobj(-15), block, max_bytes)


def decompress_zstd(block: bytes, max_bytes: int) -> bytes:
    """The content of a block of zstd data."""
    try:
        with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
            return check_block_size(stream.read(max_bytes + 1), max_bytes)
    except (pa.ArrowException, OSError) as problem:
        raise MalformedData(f"A compressed block is damaged: {problem}") from None


def decompress_snappy(block: bytes, max_bytes: int) -> bytes:
    """The content of a block of raw Snappy data, which begins with the length of the content."""
    length, _ = read_unsigned(block, 0)
    if length > max_bytes:
        raise MalformedData(f"A block is larger than {max_bytes:,} bytes.")
    try:
        content: bytes = pa.decompress(block, length, codec="snappy", asbytes=True)
    except (pa.ArrowException, OSError) as problem:
        raise MalformedData(f"A compressed block is damaged: {problem}") from None
    return content


def check_block_size(content: bytes, max_bytes: int) -> bytes:
    """Return the content; raises MalformedData if it is too large."""
    if len(content) > max_bytes:
        raise MalformedData(f"A block is larger than {max_bytes:,} bytes.")
    return content
