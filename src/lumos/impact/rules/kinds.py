"""Types that meet: which can be compared, cast, or taken by a function."""

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
_TIMES: Final = ("time", "clock")
_LONGER: Final = {ArgumentKind.SHORT_INTEGER: ArgumentKind.INTEGER}
# More digits than any float has.
_MANY: Final = 99


def family(type: DataType) -> str | None:
    """Types of one family can be compared with each other; None if that is not known."""
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


def is_time(type: DataType) -> bool:
    """Whether a text can stand for such a value, as in `day = '2024-01-01'`."""
    return family(type) in _TIMES or type == UUID


def meet(one: DataType | None, other: DataType | None) -> bool | None:
    """Whether two types can be compared as they are, or None if that is not known."""
    if one is None or other is None:
        return None
    if NULL in (one, other):
        return True
    families = family(one), family(other)
    if None in families:
        return None
    if "text" in families and (is_time(one) or is_time(other)):
        # Literals and texts stand for dates everywhere.
        return True
    return families[0] == families[1]


def has_structure(type: DataType) -> bool:
    """Whether a type has named fields, at any depth."""
    match type:
        case Struct():
            return True
        case Array(element):
            return has_structure(element)
        case Map(key, value):
            return has_structure(key) or has_structure(value)
        case _:
            return False


def castable(before: DataType, after: DataType, to: DataType) -> bool | None:
    """Whether a cast that took one type takes another one, too."""
    if isinstance(to, Unknown):
        return None
    if family(to) == "text":
        # A type that is not known is most likely one with a text.
        return not isinstance(after, _NESTED)
    old, new, wanted = family(before), family(after), family(to)
    if new is None:
        return None
    if old == new or new == wanted or after == NULL:
        return True
    if new == "text" and isinstance(to, _NESTED):
        # Some dialects read lists and structures from texts.
        return None
    if new == "text":
        # Whether the texts can be read is a matter of the values, as it is with every such cast.
        return True
    if {new, wanted} <= {"number", "boolean"}:
        return True
    return {new, wanted} == {"json", wanted} and wanted is not None and new == JSON.text.lower()


def is_spelled_otherwise(before: DataType, after: DataType) -> bool:
    """Whether the same value has another text: 1 and 1.0, a day and its first moment."""
    kinds = family(before), family(after)
    if kinds == ("number", "number"):
        return _form(before) != _form(after)
    if kinds == ("time", "time"):
        return (before == DATE) != (after == DATE) or _is_zoned(before) != _is_zoned(after)
    return BOOLEAN in (before, after) and "number" in kinds


def _form(type: DataType) -> object:
    """What a number looks like: whole, with so many places behind the point, or floating.

    0.1 of 32 bits is 0.10000000149011612 with 64.
    """
    if isinstance(type, Decimal):
        return type.scale if type.precision is not None else "decimal"
    return type if type in FLOATS else 0


def is_written_alike(before: DataType, after: DataType) -> bool:
    """Whether JSON or CSV has the same text for a value of both types: 1 and "1" are two.

    Decimals are not alike, as DuckDB writes short ones as floats.
    """
    match before, after:
        case Array(old), Array(new):
            return is_written_alike(old, new)
        case Struct(), Struct():
            return _are_members(is_written_alike, before, after) is True
        case String(), String():
            return True
    return before == after or all(type in SIGNED or type in UNSIGNED for type in (before, after))


def keeps_equality(before: DataType, after: DataType) -> bool | None:
    """Whether values that differ still do as another type, or None if that is not known.

    Values that the new type cannot hold are a matter of the data, as they are with a cast. A number
    that was a text is taken to have been written in one way, 1 and not 01.
    """
    if before == after:
        return True
    match before, after:
        case Array(old), Array(new):
            return keeps_equality(old, new)
        case Struct(), Struct():
            return _are_members(keeps_equality, before, after)
        case (String(was), String(length)) | (Binary(was), Binary(length)):
            # What is shorter may lose its end.
            return length is None or (was is not None and was <= length) or None
        case String() | Enum(), Enum():
            return True
        case String() | Enum(), _ if _is_integral(after) or after == UUID:
            return True
        case _, String(None) if _has_own_text(before):
            return True
    kinds = family(before), family(after)
    if kinds == ("number", "number"):
        return _holds_digits(before, after)
    if kinds == ("boolean", "number"):
        return True
    if kinds == ("number", "boolean"):
        return False
    if kinds == ("time", "time"):
        return _holds_moments(before, after)
    return None


def keeps_order(before: DataType, after: DataType) -> bool:
    """Whether values certainly have the same order as another type: 9 and 10 do, not as texts."""
    return (
        family(before) in ("number", "boolean")
        and family(after) == "number"
        and keeps_equality(before, after) is True
    )


def _are_members(
    holds: Callable[[DataType, DataType], bool | None], before: Struct, after: Struct
) -> bool | None:
    """Whether something holds of all members of two structures, which must be called alike."""
    if [each.name for each in before.members] != [each.name for each in after.members]:
        return None
    found = [holds(old.type, new.type)
             for old, new in zip(before.members, after.members, strict=True)]  # fmt: skip
    return False if False in found else None if None in found else True


def _is_integral(type: DataType) -> bool:
    return type in SIGNED or type in UNSIGNED or _is_whole(type)


def _has_own_text(type: DataType) -> bool:
    """Whether no two values have the same text; 0.0 and -0.0 are equal and have two."""
    is_moment = isinstance(type, Timestamp | Time) and not _is_zoned(type)
    is_exact = _is_integral(type) or isinstance(type, Decimal)
    return is_exact or is_moment or isinstance(type, Enum) or type in (DATE, UUID, BOOLEAN)


def _holds_digits(before: DataType, after: DataType) -> bool | None:
    """Whether a number keeps its digits behind the point, and the last ones before it."""
    if before in FLOATS:
        return FLOATS.get(after, 0) > FLOATS[before]
    if after in FLOATS:
        digits = {16: 3, 32: 6, 64: 15}[FLOATS[after]]
        return _digits(before) <= digits
    if before == Decimal():
        return None
    return after == Decimal() or _scale(before) <= _scale(after)


def _digits(type: DataType) -> int:
    if isinstance(type, Decimal):
        return type.precision or _MANY
    bits = SIGNED.get(type) or UNSIGNED[type]
    return {8: 3, 16: 5, 32: 10, 64: 20}[bits]


def _scale(type: DataType) -> int:
    return type.scale if isinstance(type, Decimal) else 0


def _holds_moments(before: DataType, after: DataType) -> bool | None:
    if after == DATE:
        return False
    if _is_zoned(before) != _is_zoned(after):
        # Some local times happen twice a year, and some never.
        return None
    units = ("s", "ms", "us", "ns")
    if before == DATE:
        return True
    assert isinstance(before, Timestamp)
    assert isinstance(after, Timestamp)
    return units.index(before.unit) <= units.index(after.unit)


def _is_zoned(type: DataType) -> bool:
    return isinstance(type, Timestamp) and type.zoned


def refuses(accepts: tuple[ArgumentKind, ...], before: DataType, after: DataType) -> bool | None:
    """Whether a function that took one type does not take another; None if that is not known."""
    if SIGNED.get(before, 0) > 32:
        accepts = tuple(_LONGER.get(kind, kind) for kind in accepts)
    taken, took = takes(accepts, after), takes(accepts, before)
    if taken is None:
        return None
    if took is False:
        return False
    if not taken:
        return True
    # Where there are types for whole numbers, a decimal is none of them, even without a fraction.
    is_whole = set(accepts) <= {ArgumentKind.INTEGER, ArgumentKind.SHORT_INTEGER}
    return is_whole and isinstance(after, Decimal) and not isinstance(before, Decimal)


def takes(accepts: tuple[ArgumentKind, ...], type: DataType) -> bool | None:
    """Whether a function takes a value of that type, or None if that is not known."""
    if ArgumentKind.ANY in accepts or type == NULL:
        return True
    kind = family(type)
    if kind is None:
        return None
    return any(_is_kind(each, type, kind) for each in accepts)


def _is_kind(kind: ArgumentKind, type: DataType, found: str) -> bool:
    match kind:
        case ArgumentKind.NUMBER:
            return found in ("number", "interval")
        case ArgumentKind.EXACT:
            return type in SIGNED or type in UNSIGNED or isinstance(type, Decimal)
        case ArgumentKind.INTEGER:
            return type in SIGNED or type in UNSIGNED or _is_whole(type)
        case ArgumentKind.SHORT_INTEGER:
            bits = SIGNED.get(type) or UNSIGNED.get(type, 63) + 1
            return bits <= 32 or _is_whole(type)
        case ArgumentKind.TEXT:
            return found in ("text", "bytes", "json")
        case ArgumentKind.TIME:
            return found in ("time", "clock", "interval")
        case ArgumentKind.DATE:
            return type == DATE
        case ArgumentKind.BOOLEAN:
            return type == BOOLEAN
        case ArgumentKind.NESTED:
            return isinstance(type, _NESTED) or type == JSON
        case ArgumentKind.ANY:
            return True


def _is_whole(type: DataType) -> bool:
    return isinstance(type, Decimal) and type.scale == 0


def words_for(accepts: tuple[ArgumentKind, ...]) -> str:
    """What a function takes, in words."""
    return " or ".join(_WORDS[kind] for kind in accepts)


_WORDS: Final = {
    ArgumentKind.NUMBER: "numbers",
    ArgumentKind.EXACT: "whole numbers and decimals",
    ArgumentKind.INTEGER: "whole numbers",
    ArgumentKind.SHORT_INTEGER: "whole numbers of 32 bits",
    ArgumentKind.TEXT: "text",
    ArgumentKind.TIME: "dates and times",
    ArgumentKind.DATE: "dates",
    ArgumentKind.BOOLEAN: "true or false",
    ArgumentKind.NESTED: "lists and structures",
    ArgumentKind.ANY: "anything",
}
