"""The types of BSON, from MongoDB's own names to the algebra, and what several of them are."""

from collections.abc import Iterable
from itertools import chain
from typing import Final

from lumos.model.types import (
    BINARY,
    BOOLEAN,
    FLOAT64,
    INT32,
    INT64,
    JSON,
    NULL,
    STRING,
    UNKNOWN,
    UUID,
    Array,
    Binary,
    DataType,
    Decimal,
    Map,
    Member,
    Struct,
    Timestamp,
    Union,
    Unknown,
)

# An object with more keys than this has data for keys.
MOST_KEYS: Final = 2000
# What lies deeper is not looked at.
DEEPEST: Final = 32

SCALARS: Final[dict[str, DataType]] = {
    "bool": BOOLEAN,
    "int": INT32,
    "long": INT64,
    "double": FLOAT64,
    "decimal": Decimal(),
    "string": STRING,
    "symbol": STRING,
    "regex": STRING,
    "javascript": STRING,
    "objectId": Binary(12),
    "date": Timestamp("ms", zoned=True),
    "binData": BINARY,
    "uuid": UUID,
    "null": NULL,
    "undefined": NULL,
    "timestamp": Unknown("timestamp"),
    "minKey": Unknown("minKey"),
    "maxKey": Unknown("maxKey"),
    "dbPointer": Unknown("dbPointer"),
    "unknown": UNKNOWN,
    # What a validator may say instead of a type.
    "number": FLOAT64,
    # An object that lies too deep.
    "nested": JSON,
}
_NUMBERS: Final = (INT32, INT64, FLOAT64)


def united(types: Iterable[DataType]) -> DataType:
    """The one type that holds the values of all; where they are too different, their union."""
    options: list[DataType] = []
    for type in chain.from_iterable(map(_options, types)):
        for place, other in enumerate(options):
            both = _both(other, type)
            if both is not None:
                options[place] = both
                break
        else:
            options.append(type)
    if len(options) < 2:
        return options[0] if options else NULL
    # Samples meet types in any order.
    return Union(sorted(options, key=lambda option: (_rank(option), option.text)))


def object_type(members: dict[str, DataType]) -> DataType:
    """The type of objects with those keys; a map where the keys are too many to be names."""
    if len(members) > MOST_KEYS:
        return Map(STRING, united(members.values()))
    return Struct(Member(name, type) for name, type in members.items())


def _options(type: DataType) -> tuple[DataType, ...]:
    match type:
        case Union(options):
            return options
        case _:
            return () if type == NULL else (type,)


def _both(left: DataType, right: DataType) -> DataType | None:
    """One type for both, if they are of one sort."""
    if left == right:
        return left
    match left, right:
        case Array(), Array():
            return Array(united((left.element, right.element)))
        case Struct(), Struct():
            members = {member.name: member.type for member in left.members}
            for member in right.members:
                members[member.name] = united((members.get(member.name, NULL), member.type))
            return object_type(members)
        case Map(), Map():
            return Map(STRING, united((left.value, right.value)))
        case (Map() as map, Struct() as struct) | (Struct() as struct, Map() as map):
            return Map(STRING, united((map.value, *(member.type for member in struct.members))))
        case Decimal(), Decimal():
            return Decimal()
    if left in _NUMBERS and right in _NUMBERS:
        return max(left, right, key=_NUMBERS.index)
    # A decimal holds every integer, but not every double.
    integers = {left, right} - {Decimal()}
    return Decimal() if Decimal() in (left, right) and integers <= {INT32, INT64} else None


def _rank(type: DataType) -> int:
    return isinstance(type, Array | Map | Struct)
