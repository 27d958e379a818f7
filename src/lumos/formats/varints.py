"""Numbers of variable length, as Thrift, Avro and protocol buffers write them.

No read leaves the data: what claims more than there is raises `CutOff`.
"""

from typing import Final

_MOST_BITS: Final = 70


class Malformed(ValueError):
    """Bytes that the format does not allow."""


class CutOff(Malformed):
    """Bytes that end too early."""


def unsigned(data: bytes, position: int) -> tuple[int, int]:
    """An unsigned number and the position after it."""
    value = shift = 0
    for at in range(position, len(data)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7
        if shift >= _MOST_BITS:
            raise Malformed("A number is longer than any may be.")
    raise CutOff("The data ends inside a number.")


def signed(data: bytes, position: int) -> tuple[int, int]:
    """A number in zigzag and the position after it."""
    value, position = unsigned(data, position)
    return unfolded(value), position


def unfolded(value: int) -> int:
    """The signed number that zigzag stores as this one."""
    return (value >> 1) ^ -(value & 1)


def within(data: bytes, position: int) -> int:
    """The position, unless the data ends before."""
    if position > len(data):
        raise CutOff("The data ends inside a value.")
    return position
