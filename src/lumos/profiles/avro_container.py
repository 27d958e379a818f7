"""Avro container files in a form that fastavro reads without changes to the library.

fastavro needs other libraries for some codecs, and fails at times that Python's types do not hold.
So it is given the same file with plain blocks, and with logical types of our own names, which have
readers of their own.
"""

import io
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, BinaryIO, Final, TypeAlias

import fastavro
import msgspec
import numpy as np
from fastavro.read import LOGICAL_READERS

from lumos.formats.tables.containers import CODECS
from lumos.formats.varints import CutOff, Malformed, unfolded
from lumos.model.json_codec import decode_json

_MAGIC: Final = b"Obj\x01"
_SYNC: Final = 16
_LONGEST: Final = 256 * 1024 * 1024
_MOST_BITS: Final = 70
_MOST: Final = 2**63 - 1
_OWN: Final = "lumos-"
# Times of Avro, in which unit they are told, and how many of it one of theirs is.
_TIMES: Final = {
    "int-date": ("datetime64[D]", 1),
    "long-timestamp-millis": ("datetime64[us]", 1000),
    "long-local-timestamp-millis": ("datetime64[us]", 1000),
    "long-timestamp-micros": ("datetime64[us]", 1),
    "long-local-timestamp-micros": ("datetime64[us]", 1),
    "long-timestamp-nanos": ("datetime64[ns]", 1),
    "long-local-timestamp-nanos": ("datetime64[ns]", 1),
}

_Logical: TypeAlias = Callable[[Any, Any, Any], Any]


def reader_of(file: BinaryIO) -> Any:
    """A reader of fastavro for a container file with any codec and any times."""
    _register_logical_types()
    return fastavro.reader(io.BufferedReader(_Pieces(_plain_container(file))))


@cache
def _register_logical_types() -> None:
    """Registers readers under names that nobody else uses."""
    for name, read in (dict.fromkeys(_TIMES) | LOGICAL_READERS).items():
        type, _, logical = name.partition("-")
        if not logical.startswith(_OWN):
            LOGICAL_READERS[f"{type}-{_OWN}{logical}"] = _unlimited(name, read)


def _unlimited(name: str, read: _Logical | None) -> _Logical:
    """Reads what fits into none of Python's types, too: times as numpy has them, else as texts."""

    def read_any(data: Any, written: Any = None, wanted: Any = None) -> Any:
        try:
            if read is not None:
                return read(data, written, wanted)
        except (ArithmeticError, ValueError):
            pass
        unit, factor = _TIMES.get(name, ("", 0))
        is_time = factor and abs(data * factor) <= _MOST
        return np.int64(data * factor).view(unit) if is_time else str(data)

    return read_any


class _Pieces(io.RawIOBase):
    """Pieces of bytes, one after the other, as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        length = min(len(buffer), len(self._left))
        buffer[:length] = self._left[:length]
        self._left = self._left[length:]
        return length


def _plain_container(file: BinaryIO) -> Iterator[bytes]:
    if file.read(len(_MAGIC)) != _MAGIC:
        raise Malformed("The file does not begin as Avro does.")
    metadata = dict(_metadata(file))
    sync = _exactly(file, _SYNC)
    codec = metadata.get(b"avro.codec", b"null")
    unfold = CODECS.get(codec)
    if unfold is None:
        raise Malformed(f"Its compression {codec[:20]!r} is not known.")
    schema = msgspec.json.encode(_with_own_types(decode_json(metadata.get(b"avro.schema", b""))))
    yield b"".join((_MAGIC, _number(1), _text(b"avro.schema"), _text(schema), _number(0), sync))
    while (count := _read_number(file, may_end=True)) is not None:
        block = _exactly(file, _length(file))
        if _exactly(file, _SYNC) != sync:
            raise Malformed("A block does not end where it should.")
        content = unfold(block, _LONGEST)
        yield _number(count) + _number(len(content))
        yield content
        yield sync


def _with_own_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_with_own_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: f"{_OWN}{value}" if key == "logicalType" else _with_own_types(value)
        for key, value in schema.items()
    }


def _metadata(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    while count := _read_number(file):
        if count < 0:
            count = -count
            _read_number(file)
        for _ in range(count):
            yield _exactly(file, _length(file)), _exactly(file, _length(file))


def _length(file: BinaryIO) -> int:
    length = _read_number(file)
    if length is None or not 0 <= length <= _LONGEST:
        raise Malformed("A length is negative, or more than can be read.")
    return length


def _exactly(file: BinaryIO, length: int) -> bytes:
    data = file.read(length)
    if len(data) < length:
        raise CutOff("The file is cut off.")
    return data


def _read_number(file: BinaryIO, *, may_end: bool = False) -> int | None:
    value = shift = 0
    while byte := file.read(1):
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return unfolded(value)
        shift += 7
        if shift >= _MOST_BITS:
            raise Malformed("A number is longer than any may be.")
    if may_end and shift == 0:
        return None
    raise CutOff("The file is cut off.")


def _number(value: int) -> bytes:
    """A number in zigzag."""
    folded = (value << 1) ^ (value >> 63)
    digits = bytearray()
    while folded > 0x7F:
        digits.append(folded & 0x7F | 0x80)
        folded >>= 7
    digits.append(folded)
    return bytes(digits)


def _text(value: bytes) -> bytes:
    return _number(len(value)) + value
