"""Families of types: which types can be compared, cast or passed to a function."""

from collections.abc import Callable
from typing import Final

from lumos.impact.rules.type_uses import ArgumentKind
from lumos.model.types import (
    BOOLEAN,
    DATE,
    FLOATS,
    INTERVAL,
    JSON,
    NULL,
    SIGNED,
    UNSIGNED,
    UUID,
    Array,
    Binary,
    DataType,
    Decimal,
    Duration,
    Enum,
    Map,
    String,
    Struct,
    Time,
    Timestamp,
    Union,
    Unknown,
)

_NESTED: Final = (Array, Map, Struct)
_TIME_FAMILIES: Final = ("time", "clock")
_WIDER_KIND: Final = {ArgumentKind.SHORT_INTEGER: ArgumentKind.INTEGER}
# More digits than any float can represent.
_UNLIMITED_DIGITS: Final = 99


def family(type: DataType) -> str | None:
    """The family of a type; types of one family are comparable. None if unknown."""
    if type in SIGNED or type in UNSIGNED or type in FLOATS or isinstance(type, Decimal):
        return "number"
    if isinstance(type, String | Enum):
        return "text"
    if type == DATE or isinstance(type, Timestamp):
        return "time"
    if isinstance(type, Unknown | Union):
        return None
    if isinstance(type, Time):
        return "clock"
    if type == INTERVAL or isinstance(type, Duration):
        return "interval"
    if isinstance(type, Binary):
        return "bytes"
    return type.text if isinstance(type, _NESTED) else type.text.lower()


def accepts_string_literal(type: DataType) -> bool:
    """Whether values can be compared with a string literal, as in `day = '2024-01-01'`."""
    return family(type) in _TIME_FAMILIES or type == UUID


def are_comparable(left: DataType | None, right: DataType | None) -> bool | None:
    """Whether two types can be compared without a cast; None if unknown."""
    if left is None or right is None:
        return None
    if NULL in (left, right):
        return True
    families = family(left), family(right)
    if None in families:
        return None
    if "text" in families and (accepts_string_literal(left) or accepts_string_literal(right)):
        # Every dialect accepts strings as dates.
        return True
    return families[0] == families[1]


def contains_struct(type: DataType) -> bool:
    """Whether a type contains a struct at any depth."""
    match type:
        case Struct():
            return True
        case Array(element):
            return contains_struct(element)
        case Map(key, value):
            return contains_struct(key) or contains_struct(value)
        case _:
            return False


def is_castable(before: DataType, after: DataType, target: DataType) -> bool | None:
    """Whether a cast to `target` that accepted `before` accepts `after`; None if unknown."""
    if isinstance(target, Unknown):
        return None
    if family(target) == "text":
        # An unknown type can most likely be cast to text.
        return not isinstance(after, _NESTED)
    old, new, target_family = family(before), family(after), family(target)
    if new is None:
        return None
    if old == new or new == target_family or after == NULL:
        return True
    if new == "text" and isinstance(target, _NESTED):
        # Some dialects parse arrays and structs from strings.
        return None
    if new == "text":
        # Whether the strings can be parsed depends on the data, as with every such cast.
        return True
    if {new, target_family} <= {"number", "boolean"}:
        return True
    return new == "json" and target_family is not None


def is_formatted_differently(before: DataType, after: DataType) -> bool:
    """Whether equal values are formatted differently: 1 and 1.0, a date and its midnight."""
    families = family(before), family(after)
    if families == ("number", "number"):
        return _number_format(before) != _number_format(after)
    if families == ("time", "time"):
        return (before == DATE) != (after == DATE) or _is_zoned(before) != _is_zoned(after)
    return BOOLEAN in (before, after) and "number" in families


def _number_format(type: DataType) -> object:
    """The part of a type that determines how a number is formatted: scale, or type for floats.

    The 32-bit float 0.1 is 0.10000000149011612 as a 64-bit float.
    """
    if isinstance(type, Decimal):
        return type.scale if type.precision is not None else "decimal"
    return type if type in FLOATS else 0


def has_same_encoding(before: DataType, after: DataType) -> bool:
    """Whether JSON and CSV encode a value of both types the same; 1 and "1" differ.

    Decimals differ because DuckDB encodes short ones as floats.
    """
    match before, after:
        case Array(old), Array(new):
            return has_same_encoding(old, new)
        case Struct(), Struct():
            return _holds_for_members(has_same_encoding, before, after) is True
        case String(), String():
            return True
    return before == after or all(type in SIGNED or type in UNSIGNED for type in (before, after))


def keeps_equality(before: DataType, after: DataType) -> bool | None:
    """Whether different values stay different in the new type; None if unknown.

    Values out of range of the new type depend on the data and are ignored, as with a cast. Numbers
    in strings are assumed to be in canonical form: 1, not 01.
    """
    if before == after:
        return True
    match before, after:
        case Array(old), Array(new):
            return keeps_equality(old, new)
        case Struct(), Struct():
            return _holds_for_members(keeps_equality, before, after)
        case (String(old_length), String(new_length)) | (Binary(old_length), Binary(new_length)):
            # Shorter strings may be truncated.
            return (
                new_length is None or (old_length is not None and old_length <= new_length) or None
            )
        case String() | Enum(), Enum():
            return True
        case String() | Enum(), _ if _is_integral(after) or after == UUID:
            return True
        case _, String(None) if _has_unique_text(before):
            return True
    families = family(before), family(after)
    if families == ("number", "number"):
        return _keeps_digits(before, after)
    if families == ("boolean", "number"):
        return True
    if families == ("number", "boolean"):
        return False
    if families == ("time", "time"):
        return _keeps_timestamps(before, after)
    return None


def keeps_order(before: DataType, after: DataType) -> bool:
    """Whether values certainly sort the same in the new type; as strings, 10 sorts before 9."""
    return (
        family(before) in ("number", "boolean")
        and family(after) == "number"
        and keeps_equality(before, after) is True
    )


def _holds_for_members(
    predicate: Callable[[DataType, DataType], bool | None], before: Struct, after: Struct
) -> bool | None:
    """Whether a predicate holds for all members of two structs with the same field names."""
    if [each.name for each in before.members] != [each.name for each in after.members]:
        return None
    results = [predicate(old.type, new.type)
             for old, new in zip(before.members, after.members, strict=True)]  # fmt: skip
    return False if False in results else None if None in results else True


def _is_integral(type: DataType) -> bool:
    return type in SIGNED or type in UNSIGNED or _is_integer_decimal(type)


def _has_unique_text(type: DataType) -> bool:
    """Whether equal values have the same text; the equal floats 0.0 and -0.0 do not."""
    is_local_time = isinstance(type, Timestamp | Time) and not _is_zoned(type)
    is_exact = _is_integral(type) or isinstance(type, Decimal)
    return is_exact or is_local_time or isinstance(type, Enum) or type in (DATE, UUID, BOOLEAN)


def _keeps_digits(before: DataType, after: DataType) -> bool | None:
    """Whether a number keeps its fraction digits and its lowest integer digits."""
    if before in FLOATS:
        return FLOATS.get(after, 0) > FLOATS[before]
    if after in FLOATS:
        digits = {16: 3, 32: 6, 64: 15}[FLOATS[after]]
        return _max_digits(before) <= digits
    if before == Decimal():
        return None
    return after == Decimal() or _scale(before) <= _scale(after)


def _max_digits(type: DataType) -> int:
    if isinstance(type, Decimal):
        return type.precision or _UNLIMITED_DIGITS
    bits = SIGNED.get(type) or UNSIGNED[type]
    return {8: 3, 16: 5, 32: 10, 64: 20}[bits]


def _scale(type: DataType) -> int:
    return type.scale if isinstance(type, Decimal) else 0


def _keeps_timestamps(before: DataType, after: DataType) -> bool | None:
    if after == DATE:
        return False
    if _is_zoned(before) != _is_zoned(after):
        # Daylight saving time repeats some local times and skips others.
        return None
    units = ("s", "ms", "us", "ns")
    if before == DATE:
        return True
    assert isinstance(before, Timestamp)
    assert isinstance(after, Timestamp)
    return units.index(before.unit) <= units.index(after.unit)


def _is_zoned(type: DataType) -> bool:
    return isinstance(type, Timestamp) and type.zoned


def rejects_new_type(
    kinds: tuple[ArgumentKind, ...], before: DataType, after: DataType
) -> bool | None:
    """Whether a function that accepted `before` rejects `after`; None if unknown."""
    if SIGNED.get(before, 0) > 32:
        kinds = tuple(_WIDER_KIND.get(kind, kind) for kind in kinds)
    accepts_new, accepted_old = accepts_type(kinds, after), accepts_type(kinds, before)
    if accepts_new is None:
        return None
    if accepted_old is False:
        return False
    if not accepts_new:
        return True
    # An integer argument rejects a decimal even with scale 0.
    needs_integer = set(kinds) <= {ArgumentKind.INTEGER, ArgumentKind.SHORT_INTEGER}
    return needs_integer and isinstance(after, Decimal) and not isinstance(before, Decimal)


def accepts_type(kinds: tuple[ArgumentKind, ...], type: DataType) -> bool | None:
    """Whether a function accepts a value of that type; None if unknown."""
    if ArgumentKind.ANY in kinds or type == NULL:
        return True
    type_family = family(type)
    if type_family is None:
        return None
    return any(_is_of_kind(each, type, type_family) for each in kinds)


def _is_of_kind(kind: ArgumentKind, type: DataType, type_family: str) -> bool:
    match kind:
        case ArgumentKind.NUMBER:
            return type_family in ("number", "interval")
        case ArgumentKind.EXACT:
            return type in SIGNED or type in UNSIGNED or isinstance(type, Decimal)
        case ArgumentKind.INTEGER:
            return type in SIGNED or type in UNSIGNED or _is_integer_decimal(type)
        case ArgumentKind.SHORT_INTEGER:
            bits = SIGNED.get(type) or UNSIGNED.get(type, 63) + 1
            return bits <= 32 or _is_integer_decimal(type)
        case ArgumentKind.TEXT:
            return type_family in ("text", "bytes", "json")
        case ArgumentKind.TIME:
            return type_family in ("time", "clock", "interval")
        case ArgumentKind.DATE:
            return type == DATE
        case ArgumentKind.BOOLEAN:
            return type == BOOLEAN
        case ArgumentKind.NESTED:
            return isinstance(type, _NESTED) or type == JSON
        case ArgumentKind.ANY:
            return True


def _is_integer_decimal(type: DataType) -> bool:
    return isinstance(type, Decimal) and type.scale == 0


def describe_kinds(kinds: tuple[ArgumentKind, ...]) -> str:
    """The kinds that a function accepts, as text."""
    return " or ".join(_DESCRIPTIONS[kind] for kind in kinds)


_DESCRIPTIONS: Final = {
    ArgumentKind.NUMBER: "numbers",
    ArgumentKind.EXACT: "integers and decimals",
    ArgumentKind.INTEGER: "integers",
    ArgumentKind.SHORT_INTEGER: "32-bit integers",
    ArgumentKind.TEXT: "text",
    ArgumentKind.TIME: "dates and times",
    ArgumentKind.DATE: "dates",
    ArgumentKind.BOOLEAN: "booleans",
    ArgumentKind.NESTED: "arrays and structs",
    ArgumentKind.ANY: "any type",
}
