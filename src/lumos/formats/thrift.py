"""Thrift's compact protocol, as far as a Parquet footer needs it: skipping, numbers and bytes.

No read leaves the data: what claims more than there is raises `CutOff`.
"""

from typing import Final

from lumos.formats.varints import Malformed, signed, unsigned, within

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
# A Parquet footer nests about eight levels; a hostile one must not exhaust the stack.
_DEEPEST: Final = 64


def binary(data: bytes, position: int) -> tuple[bytes, int]:
    """Some bytes and the position after them."""
    length, position = unsigned(data, position)
    end = within(data, position + length)
    return data[position:end], end


def field(data: bytes, position: int, previous: int) -> tuple[int, int, int]:
    """A field's id, its type and the position of its value; the type STOP ends a record."""
    header = _byte(data, position)
    position += 1
    if header == STOP:
        return 0, STOP, position
    if header >> 4:
        return previous + (header >> 4), header & 0x0F, position
    id, position = signed(data, position)
    return id, header & 0x0F, position


def elements(data: bytes, position: int) -> tuple[int, int, int]:
    """How many elements a list has, their type and the position of the first."""
    header = _byte(data, position)
    count, position = header >> 4, position + 1
    if count == 15:
        count, position = unsigned(data, position)
    return _possible(count, data, position), header & 0x0F, position


def skip(data: bytes, position: int, type: int, depth: int = 0) -> int:
    """The position after a value."""
    if depth > _DEEPEST:
        raise Malformed("Records nest too deeply.")
    if INT16 <= type <= INT64:
        return unsigned(data, position)[1]
    if type in (TRUE, FALSE):
        return position
    if type == BINARY:
        length, position = unsigned(data, position)
        return within(data, position + length)
    if type == STRUCT:
        return _after_record(data, position, depth)
    if type in (LIST, SET):
        count, element, position = elements(data, position)
        for _ in range(count):
            position = _after_element(data, position, element, depth)
        return position
    if type == MAP:
        return _after_map(data, position, depth)
    if type in _FIXED:
        return within(data, position + _FIXED[type])
    raise Malformed(f"There is no type {type}.")


def _after_record(data: bytes, position: int, depth: int) -> int:
    id = 0
    while True:
        id, type, position = field(data, position, id)
        if type == STOP:
            return position
        position = skip(data, position, type, depth + 1)


def _after_element(data: bytes, position: int, type: int, depth: int) -> int:
    # Inside lists, unlike in records, a boolean takes a byte.
    if type in (TRUE, FALSE):
        return within(data, position + 1)
    return skip(data, position, type, depth + 1)


def _after_map(data: bytes, position: int, depth: int) -> int:
    count, position = unsigned(data, position)
    if count == 0:
        return position
    types = _byte(data, position)
    position += 1
    for _ in range(_possible(count, data, position)):
        position = _after_element(data, position, types >> 4, depth)
        position = _after_element(data, position, types & 0x0F, depth)
    return position


def _byte(data: bytes, position: int) -> int:
    return data[within(data, position + 1) - 1]


def _possible(count: int, data: bytes, position: int) -> int:
    """The count, if there is at least a byte for each."""
    if count > len(data) - position:
        raise Malformed("A list claims more elements than there are bytes.")
    return count
