"""How inferred types become one that holds the values of all."""

from typing import Final

from lumos.formats.scalars import LARGE_INTEGER
from lumos.model.types import (
    DATE,
    FLOAT64,
    INT64,
    NULL,
    STRING,
    Array,
    DataType,
    Map,
    Member,
    Struct,
    Timestamp,
)

# An object with more keys than this has data for keys.
MOST_MEMBERS: Final = 2000


def widened(left: DataType, right: DataType) -> DataType:
    """The narrowest inferred type that holds the values of both."""
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    match left, right:
        case Array(), Array():
            return Array(widened(left.element, right.element))
        case Map(), Map():
            return Map(widened(left.key, right.key), widened(left.value, right.value))
        case Struct(), Struct():
            return _widened_struct(left, right)
        case (Map() as map, Struct() as struct) | (Struct() as struct, Map() as map):
            return widened(map, _as_map(struct))
    both = {left, right}
    if both <= {INT64, FLOAT64}:
        return FLOAT64
    if both <= {INT64, LARGE_INTEGER}:
        return LARGE_INTEGER
    if both <= {DATE, Timestamp("us")}:
        return Timestamp("us")
    return STRING


def _widened_struct(left: Struct, right: Struct) -> DataType:
    members = {member.name: member.type for member in left.members}
    for member in right.members:
        members[member.name] = widened(members.get(member.name, NULL), member.type)
    return struct_or_map(members)


def struct_or_map(members: dict[str, DataType]) -> DataType:
    """The type of an object with those members; a map if they are too many to be names."""
    struct = Struct(Member(name, type) for name, type in members.items())
    return struct if len(members) <= MOST_MEMBERS else _as_map(struct)


def _as_map(struct: Struct) -> Map:
    value: DataType = NULL
    for member in struct.members:
        value = widened(value, member.type)
    return Map(STRING, value)
