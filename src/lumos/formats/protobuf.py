"""Protocol buffers, as far as an ORC footer needs them: fields one by one.

No read leaves the data: what claims more than there is raises `CutOff`.
"""

from collections.abc import Iterator

from lumos.formats.varints import Malformed, unsigned, within

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def fields(data: bytes, position: int = 0) -> Iterator[tuple[int, int | bytes]]:
    """A message's fields: their numbers, and values as numbers or bytes."""
    end = len(data)
    while position < end:
        tag, position = unsigned(data, position)
        wire = tag & 7
        if wire == _VARINT:
            number, position = unsigned(data, position)
            yield tag >> 3, number
            continue
        if wire == _BYTES:
            length, position = unsigned(data, position)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise Malformed(f"There is no kind {wire} of field.")
        start, position = position, within(data, position + length)
        yield tag >> 3, data[start:position]


def numbers(value: int | bytes) -> Iterator[int]:
    """The numbers of a repeated field, which may be packed into bytes."""
    if isinstance(value, int):
        yield value
        return
    position = 0
    while position < len(value):
        number, position = unsigned(value, position)
        yield number
