"""A snapshot as JSON Lines: the header, then one entry per line, read and written as a stream.

Each line is an object with one key, the kind of the entry: `{"dataset":{...}}`.
"""

import codecs
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

import msgspec

from lumos.decompression import MAX_COMPRESSION_RATIO, max_decompressed_bytes
from lumos.snapshots.format.codec import MalformedJson, add_hash, decode_json, refuse_duplicate_keys
from lumos.snapshots.format.document import KINDS, EntryKind, SnapshotHeader
from lumos.snapshots.format.encodings.interface import (
    BUFFER,
    Bodies,
    SnapshotContainer,
    StoredJson,
)
from lumos.snapshots.format.errors import (
    EntryOutOfOrder,
    NotASnapshot,
    SnapshotError,
    SnapshotTooLarge,
    TruncatedSnapshot,
)

MAX_LINE: Final = 64 * 1024 * 1024
_CHUNK_BYTES: Final = 1024 * 1024
_LINE_STARTS: Final = {kind: f'{{"{kind.singular}":'.encode() for kind in KINDS}
_BY_SINGULAR: Final = {kind.singular: kind for kind in KINDS}


class Readable(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes: ...


class Writable(Protocol):
    """A sink for bytes."""

    def write(self, data: bytes, /) -> object: ...


StreamOpener = Callable[[Path], AbstractContextManager[Readable]]


class JsonLines(SnapshotContainer):
    """A file whose lines are read again for each kind."""

    streamed = True

    def __init__(self, file: Path, open_stream: StreamOpener) -> None:
        self._file = file
        self._open_stream = open_stream
        first_line = next(self._lines(), None)
        if first_line is None:
            raise TruncatedSnapshot(file, "line 1", "It is empty.")
        # Some editors write a byte order mark, which JSON does not allow.
        self.header = self._header(first_line[1].removeprefix(codecs.BOM_UTF8))

    def entries(self, kind: EntryKind) -> Iterator[StoredJson | SnapshotError]:
        start = _LINE_STARTS[kind]
        length = len(start)
        has_started = False
        lines = self._lines()
        next(lines, None)
        for number, line in lines:
            if line.startswith(start) and line.endswith(b"}"):
                has_started = True
                yield StoredJson(number, line[length:-1])
                continue
            parsed = self._parse_line(number, line)
            if isinstance(parsed, SnapshotError):
                yield parsed
                continue
            line_kind, body = parsed
            if line_kind is kind:
                has_started = True
                yield StoredJson(number, body)
            elif KINDS.index(line_kind) > KINDS.index(kind):
                return
            elif has_started:
                problem = f"A {line_kind.singular} must not follow a {kind.singular}."
                yield EntryOutOfOrder(self._file, f"line {number}", problem)

    def path_of(self, kind: EntryKind, position: int) -> str:
        return f"line {position}: {kind.singular}"

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        with self._open_stream(self._file) as stream:
            yield from numbered_lines(self._file, stream)

    def _header(self, line: bytes) -> bytes:
        try:
            keys = decode_json(line, dict[str, msgspec.Raw])
        except MalformedJson as problem:
            error = TruncatedSnapshot if problem.is_truncated else NotASnapshot
            text = f"Expected the header of a snapshot: {problem.problem}."
            raise error(self._file, "line 1", text) from None
        self.unknown_keys = tuple(
            key for key in keys if key not in SnapshotHeader.__struct_fields__
        )
        return line

    def _parse_line(self, number: int, line: bytes) -> tuple[EntryKind, bytes] | SnapshotError:
        """The kind and the JSON of the entry in a line, or the error in the line."""
        for kind, start in _LINE_STARTS.items():
            if line.startswith(start) and line.endswith(b"}"):
                return kind, line[len(start) : -1]
        path = f"line {number}"
        try:
            entries = decode_json(line, dict[str, msgspec.Raw])
            refuse_duplicate_keys(line, levels=1)
        except MalformedJson as problem:
            error = TruncatedSnapshot if problem.is_truncated else SnapshotError
            return error(self._file, path, f"{problem.problem}.")
        name = next(iter(entries), "")
        if len(entries) != 1 or name not in _BY_SINGULAR:
            keys = ", ".join(_BY_SINGULAR)
            return SnapshotError(
                self._file, path, f"Expected an object with one key, one of {keys}."
            )
        return _BY_SINGULAR[name], bytes(entries[name])


def numbered_lines(file: Path, stream: Readable) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not empty, with their numbers; raises SnapshotTooLarge."""
    number = 0
    partial: list[bytes] = []
    length = 0
    while chunk := stream.read(_CHUNK_BYTES):
        *complete_lines, rest = chunk.split(b"\n")
        for line in complete_lines:
            number += 1
            if partial:
                line = b"".join((*partial, line))
                partial.clear()
                length = 0
            if line:
                yield number, line
        if rest:
            partial.append(rest)
            length += len(rest)
        if length > MAX_LINE:
            limit = MAX_LINE // 1024 // 1024
            raise SnapshotTooLarge(file, f"line {number + 1}", f"It is longer than {limit} MB.")
    if partial:
        yield number + 1, b"".join(partial)


def open_lines(file: Path) -> JsonLines:
    """Open a file that is not compressed."""
    return JsonLines(file, lambda path: path.open("rb"))


def write_lines(file: Path, header: bytes, bodies: Bodies) -> None:
    """Write a file that is not compressed."""
    with file.open("wb", buffering=BUFFER) as stream:
        write_entries(stream, header, bodies)


def write_entries(stream: Writable, header: bytes, bodies: Bodies) -> None:
    stream.write(header + b"\n")
    for kind, start in _LINE_STARTS.items():
        for _, body, content_hash in bodies[kind.plural]:
            stream.write(add_hash(body, content_hash, before=start, after=b"}\n"))


_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


class _Decompressed:
    """The content of a compressed file, decompressed while it is read."""

    def __init__(self, file: Path, stream: Readable) -> None:
        self._file = file
        self._stream = stream
        self._limit = max_decompressed_bytes(file.stat().st_size)
        self._size = 0

    def read(self, size: int, /) -> bytes:
        import pyarrow as pa

        try:
            data = self._stream.read(size)
        except (pa.ArrowException, OSError) as problem:
            path = f"after {self._size} decompressed bytes"
            if "runcated" in str(problem):
                raise TruncatedSnapshot(self._file, path, "The zstd data is truncated.") from None
            raise SnapshotError(self._file, path, "The zstd data is corrupt.") from None
        self._size += len(data)
        if self._size > self._limit:
            text = f"It decompresses to more than {MAX_COMPRESSION_RATIO} times its size."
            raise SnapshotTooLarge(self._file, f"after {self._size} decompressed bytes", text)
        return data


@contextmanager
def _decompress(file: Path) -> Iterator[Readable]:
    import pyarrow as pa

    with file.open("rb") as stored:
        if not _ZSTD_MAGIC.startswith(stored.read(len(_ZSTD_MAGIC))):
            raise NotASnapshot(file, "byte 0", "It is not compressed with zstd.")
        stored.seek(0)
        with pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), "zstd") as stream:
            yield _Decompressed(file, stream)


def open_zstd(file: Path) -> JsonLines:
    return JsonLines(file, _decompress)


def write_zstd(file: Path, header: bytes, bodies: Bodies) -> None:
    import pyarrow as pa

    with (
        pa.OSFile(str(file), "wb") as stored,
        pa.CompressedOutputStream(stored, "zstd") as stream,
        pa.BufferedOutputStream(stream, BUFFER) as buffered,
    ):
        write_entries(buffered, header, bodies)
