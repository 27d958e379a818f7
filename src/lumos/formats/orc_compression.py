"""The compressions of ORC footers, each bounded by what one block may hold."""

import zlib
from collections.abc import Callable
from typing import Final

import pyarrow as pa

from lumos.formats.interface import UnreadableFile
from lumos.formats.varints import Malformed, unsigned

_LARGEST_BLOCK: Final = 16 * 1024 * 1024
_LARGEST: Final = 64 * 1024 * 1024
_UNCOMPRESSED: Final = 0


def unpacked(stored: bytes, codec: int, block_size: int) -> bytes:
    """The content of a compressed stream; raises Malformed."""
    if codec == _UNCOMPRESSED:
        return stored
    if codec not in _CODECS:
        name = _NAMES.get(codec, f"number {codec}")
        raise UnreadableFile("unsupported_compression", f"ORC's compression {name} is not read.")
    unpack = _CODECS[codec]
    limit = min(block_size or _LARGEST_BLOCK, _LARGEST_BLOCK)
    blocks: list[bytes] = []
    position = total = 0
    while position < len(stored):
        header = int.from_bytes(stored[position : position + 3], "little")
        start, position = position + 3, position + 3 + (header >> 1)
        if position > len(stored):
            raise Malformed("A block claims more bytes than there are.")
        block = stored[start:position]
        blocks.append(block if header & 1 else unpack(block, limit))
        total += len(blocks[-1])
        if total > _LARGEST:
            raise Malformed(f"It is longer than {_LARGEST:,} bytes.")
    return b"".join(blocks)


def _zlib(block: bytes, limit: int) -> bytes:
    try:
        return zlib.decompressobj(-15).decompress(block, limit)
    except zlib.error as problem:
        raise Malformed(str(problem)) from None


def _snappy(block: bytes, limit: int) -> bytes:
    length, _ = unsigned(block, 0)
    if length > limit:
        raise Malformed("A block is longer than the file says any is.")
    try:
        unpacked: bytes = pa.decompress(block, length, codec="snappy", asbytes=True)
    except (pa.ArrowException, OSError) as problem:
        raise Malformed(str(problem)) from None
    return unpacked


def _zstd(block: bytes, limit: int) -> bytes:
    try:
        with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
            unpacked: bytes = stream.read(limit)
    except (pa.ArrowException, OSError) as problem:
        raise Malformed(str(problem)) from None
    return unpacked


def _lz4(block: bytes, limit: int) -> bytes:
    """One LZ4 block; the library could do it only if the length were known beforehand."""
    content = bytearray()
    position = 0
    try:
        while position < len(block):
            token = block[position]
            literals, position = _lz4_length(block, position + 1, token >> 4)
            content += block[position : position + literals]
            position += literals
            if position >= len(block):
                break
            offset = block[position] | block[position + 1] << 8
            length, position = _lz4_length(block, position + 2, token & 15)
            length += 4
            if not 0 < offset <= len(content) or len(content) + length > limit:
                raise Malformed("A block repeats what is not there.")
            repeated = content[-offset:]
            content += (repeated * (length // offset + 1))[:length]
    except IndexError:
        raise Malformed("A block ends too early.") from None
    return bytes(content)


def _lz4_length(block: bytes, position: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            more = block[position]
            position += 1
            length += more
            if more != 255:
                break
    return length, position


_NAMES: Final = {3: "LZO", 6: "Brotli"}
_CODECS: Final[dict[int, Callable[[bytes, int], bytes]]] = {1: _zlib, 2: _snappy, 4: _lz4, 5: _zstd}
