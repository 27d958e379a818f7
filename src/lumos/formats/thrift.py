"""The part of Thrift's compact protocol that Parquet footers use.

Reads beyond the end of the data raise `TruncatedData`.
"""

from typing import Final

from lumos.formats.varints import MalformedData, check_end, read_signed, read_unsigned

STOP: Final = 0
TRUE: Final = 1
FALSE: Final = 2
BYTE: Final = 3
INT16: Final = 4
INT32: Final = 5
INT64: Final = 6
DOUBLE: Final = 7
BINARY: Final = 8
LIST: Final = 9
SET: Final = 10
MAP: Final = 11
STRUCT: Final = 12
UUID: Final = 13

_FIXED: Final = {BYTE: 1, DOUBLE: 8, UUID: 16}
# Parquet footers nest about eight levels; a malicious one must not exhaust the stack.
_MAX_DEPTH: Final = 64


def read_binary(data: bytes, position: int) -> tuple[bytes, int]:
    """A binary value and the position after it."""
    length, position = read_unsigned(data, position)
    end = check_end(data, position + length)
    return data[position:end], end


def read_field_header(data: bytes, position: int, previous: int) -> tuple[int, int, int]:
    """A field's id, its type and the position of its value; the type STOP ends a struct."""
    header = _byte_at(data, position)
    position += 1
    if header == STOP:
        return 0, STOP, position
    if header >> 4:
        return previous + (header >> 4), header & 0x0F, position
    id, position = read_signed(data, position)
    return id, header & 0x0F, position


def read_list_header(data: bytes, position: int) -> tuple[int, int, int]:
    """The length of a list, the type of its elements and the position of the first."""
    header = _byte_at(data, position)
    count, position = header >> 4, position + 1
    if count == 15:
        count, position = read_unsigned(data, position)
    return _check_count(count, data, position), header & 0x0F, position


def skip(data: bytes, position: int, type: int, depth: int = 0) -> int:
    """The position after a value."""
    if depth > _MAX_DEPTH:
        raise MalformedData("Structs nest too deeply.")
    if INT16 <= type <= INT64:
        return read_unsigned(data, position)[1]
    if type in (TRUE, FALSE):
        return position
    if type == BINARY:
        length, position = read_unsigned(data, position)
        return check_end(data, position + length)
    if type == STRUCT:
        id, field_type, position = read_field_header(data, position, 0)
        while field_type != STOP:
            position = skip(data, position, field_type, depth + 1)
            id, field_type, position = read_field_header(data, position, id)
        return position
    if type in (LIST, SET):
        count, element, position = read_list_header(data, position)
        for _ in range(count):
            position = _skip_element(data, position, element, depth)
        return position
    if type == MAP:
        return _skip_map(data, position, depth)
    if type in _FIXED:
        return check_end(data, position + _FIXED[type])
    raise MalformedData(f"Unknown Thrift type {type}.")


def _skip_element(data: bytes, position: int, type: int, depth: int) -> int:
    # In lists, unlike in structs, a boolean takes a byte.
    if type in (TRUE, FALSE):
        return check_end(data, position + 1)
    return skip(data, position, type, depth + 1)


def _skip_map(data: bytes, position: int, depth: int) -> int:
    count, position = read_unsigned(data, position)
    if count == 0:
        return position
    types = _byte_at(data, position)
    position += 1
    for _ in range(_check_count(count, data, position)):
        position = _skip_element(data, position, types >> 4, depth)
        position = _skip_element(data, position, types & 0x0F, depth)
    return position


def _byte_at(data: bytes, position: int) -> int:
    return data[check_end(data, position + 1) - 1]


def _check_count(count: int, data: bytes, position: int) -> int:
    """Return the number of elements; raises MalformedData if there are fewer bytes than that."""
    if count > len(data) - position:
        raise MalformedData("A list claims more elements than there are bytes.")
    return count
