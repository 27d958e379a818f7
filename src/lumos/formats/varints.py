"""Variable-length numbers of Thrift, Avro and protocol buffers.

Reads beyond the end of the data raise `TruncatedData`.
"""

from typing import Final

# A 64-bit number has at most ten groups of seven bits.
_MAX_BITS: Final = 70


class MalformedData(ValueError):
    """Data that violates the format."""


class TruncatedData(MalformedData):
    """Data that ends too early."""


def read_unsigned(data: bytes, position: int) -> tuple[int, int]:
    """An unsigned varint and the position after it."""
    value = shift = 0
    for index in range(position, len(data)):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, index + 1
        shift += 7
        if shift >= _MAX_BITS:
            raise MalformedData("A number has more than 64 bits.")
    raise TruncatedData("The data ends inside a number.")


def read_signed(data: bytes, position: int) -> tuple[int, int]:
    """A zigzag varint and the position after it."""
    value, position = read_unsigned(data, position)
    return decode_zigzag(value), position


def decode_zigzag(value: int) -> int:
    """Decode a zigzag-encoded number."""
    return (value >> 1) ^ -(value & 1)


def check_end(data: bytes, position: int) -> int:
    """Return the position; raises TruncatedData if the data ends before it."""
    if position > len(data):
        raise TruncatedData("The data ends inside a value.")
    return position
