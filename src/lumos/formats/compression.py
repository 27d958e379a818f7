"""Text that is compressed as a whole file: its beginning, however much the rest would unfold to."""

import bz2
import zlib
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from lumos.formats.interface import RangedBytes, Sample, UnreadableFile

# zstd's library gives nothing of a step that the sample's end cuts, so steps are short.
_STEP: Final = 4096
_BZIP2_BLOCKS: Final = (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")


class Unpacked(NamedTuple):
    """What compressed bytes unfold to, and whether that is all they hold."""

    data: bytes
    finished: bool


class Damaged(Exception):
    """Bytes that cannot be unfolded."""


class Compression(NamedTuple):
    """One way to compress a file."""

    name: str
    suffixes: tuple[str, ...]
    magic: bytes
    # Enough compressed bytes to hold the first block, before which nothing can be unfolded.
    first_read: int
    unpack: Callable[[bytes, int], Unpacked]


def compression_of(head: bytes) -> Compression | None:
    """What a file that begins like this is compressed with."""
    for each in COMPRESSIONS:
        if head.startswith(each.magic):
            # Text may begin like bzip2's mark; its first block must follow, or its end.
            is_text = each.magic.isascii() and head[4:10] not in _BZIP2_BLOCKS
            return None if is_text else each
    return None


class Plain:
    """The content of a file that is not compressed."""

    def __init__(self, file: RangedBytes) -> None:
        self._file = file

    def sample(self, length: int) -> Sample:
        data = self._file.head(length)
        return Sample(data, len(data) == self._file.size, self._file.size)


class Compressed:
    """The content of a compressed file."""

    def __init__(self, file: RangedBytes, compression: Compression) -> None:
        self._file = file
        self._compression = compression
        self._known: dict[int, Sample] = {}

    def sample(self, length: int) -> Sample:
        """The first bytes: as many as a compressed beginning of that length holds, but no more."""
        if length not in self._known:
            self._known[length] = self._unpacked(length)
        return self._known[length]

    def _unpacked(self, length: int) -> Sample:
        stored = self._file.head(max(length, self._compression.first_read))
        complete = len(stored) == self._file.size
        try:
            data, finished = self._compression.unpack(stored, length)
        except Damaged as problem:
            raise UnreadableFile(
                "corrupt_file", f"Its {self._compression.name} data is damaged: {problem}"
            ) from None
        if complete and not finished and len(data) < length:
            raise UnreadableFile("corrupt_file", f"Its {self._compression.name} data is cut off.")
        whole = complete and finished
        return Sample(data, whole, len(data) if whole else None)


def _gzip(stored: bytes, limit: int) -> Unpacked:
    try:
        return _in_turn(stored, limit, b"\x1f\x8b", lambda: zlib.decompressobj(31))
    except zlib.error as problem:
        raise Damaged(problem) from None


def _bzip2(stored: bytes, limit: int) -> Unpacked:
    try:
        return _in_turn(stored, limit, b"BZh", bz2.BZ2Decompressor)
    except OSError as problem:
        raise Damaged(problem) from None


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _in_turn(
    stored: bytes, limit: int, magic: bytes, decompressor: Callable[[], _Decompressor]
) -> Unpacked:
    """A file may be several compressed ones, one after the other; what else follows is padding."""
    data = b""
    while stored.startswith(magic) and len(data) < limit:
        member = decompressor()
        data += member.decompress(stored, limit - len(data))
        if not member.eof:
            return Unpacked(data, finished=False)
        stored = member.unused_data
    return Unpacked(data, finished=not stored.startswith(magic))


def _zstd(stored: bytes, limit: int) -> Unpacked:
    steps: list[bytes] = []
    total = 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(stored), "zstd") as stream:
            while total < limit:
                step = stream.read(min(_STEP, limit - total))
                if not step:
                    return Unpacked(b"".join(steps), finished=True)
                steps.append(step)
                total += len(step)
    except (pa.ArrowException, OSError) as problem:
        if "Truncated" not in str(problem):
            raise Damaged(problem) from None
    return Unpacked(b"".join(steps), finished=False)


COMPRESSIONS: Final = (
    Compression("gzip", (".gz", ".gzip"), b"\x1f\x8b\x08", 64 * 1024, _gzip),
    Compression("zstd", (".zst", ".zstd"), b"\x28\xb5\x2f\xfd", 256 * 1024, _zstd),
    Compression("bzip2", (".bz2",), b"BZh", 1024 * 1024, _bzip2),
)
