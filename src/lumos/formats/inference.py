"""Infers the narrowest type of texts, and the narrowest type that covers several types.

The result does not depend on how the texts are divided: the types of the parts, widened, are the
type of all texts.
"""

import re
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from lumos.model.types import (
    BOOLEAN,
    DATE,
    FLOAT64,
    INT64,
    NULL,
    STRING,
    Array,
    DataType,
    Decimal,
    Map,
    Member,
    Struct,
    Timestamp,
)

NULLS: Final = frozenset(
    {"", "null", "NULL", "Null", "NA", "N/A", "n/a", "NaN", "nan", "None", "\\N"}
)
LARGE_INTEGER: Final = Decimal(38, 0)
TIMESTAMP: Final = Timestamp("us")
TIMESTAMPTZ: Final = Timestamp("us", zoned=True)

_MAX_DECIMAL_DIGITS: Final = 38
# Integers of this length always fit into 64 bits.
_MAX_SAFE_DIGITS: Final = 18
INT64_RANGE: Final = range(-(2**63), 2**63)
# A text that begins with another character is a STRING, so no pattern has to be tried.
_VALUE_STARTS: Final = frozenset("0123456789+-.tTfF ")
# A character that text files do not contain. Texts are joined with it, since matching all of them
# at once is much faster.
_TERMINATOR: Final = "\0"


def _pattern_for_all(pattern: str) -> re.Pattern[str]:
    """A pattern for joined texts, all of which match `pattern` or are null."""
    nulls = "|".join(map(re.escape, sorted(NULLS - {""})))
    return re.compile(rf"(?:(?:{pattern}|{nulls})?+\x00)*+\Z", re.ASCII)


_BOOLEANS: Final = _pattern_for_all("(?i:true|false)")
# Numbers with leading zeros are identifiers.
_SHORT_INTEGERS: Final = _pattern_for_all(r"[+-]?+(?:0|[1-9][0-9]{0,17}+)")
_INTEGERS: Final = _pattern_for_all(r"[+-]?+(?:0|[1-9][0-9]*+)")
_NUMBERS: Final = _pattern_for_all(
    r"[+-]?+(?:(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]{1,3}+)?+"
)
_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9}+)?+)?+"
_DATES: Final = _pattern_for_all(_DAY)
_TIMESTAMPS: Final = _pattern_for_all(rf"{_DAY}(?:{_TIME})?+")
_ZONED_TIMESTAMPS: Final = _pattern_for_all(rf"{_DAY}{_TIME}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})")


def type_of_texts(texts: Sequence[str]) -> DataType:
    """The type of texts, ignoring nulls such as `NA`; NULL if all are null."""
    first = next((text for text in texts if text not in NULLS), None)
    if first is None:
        return NULL
    if first[0] not in _VALUE_STARTS:
        return STRING
    joined = _TERMINATOR.join(texts) + _TERMINATOR
    type = _type_of_values(texts, joined)
    if type is STRING and " " in joined:
        # Spaces around values are ignored.
        stripped = [text.strip() for text in texts]
        return type if stripped == list(texts) else type_of_texts(stripped)
    return type


def type_of_integer(value: int) -> DataType:
    """INT64, or a type that can represent a larger integer exactly."""
    if value in INT64_RANGE:
        return INT64
    return LARGE_INTEGER if abs(value) < 10**_MAX_DECIMAL_DIGITS else STRING


def _type_of_values(texts: Sequence[str], joined: str) -> DataType:
    if _SHORT_INTEGERS.match(joined):
        return INT64
    if _NUMBERS.match(joined):
        return _type_of_numbers(texts, joined)
    if _BOOLEANS.match(joined):
        return BOOLEAN
    zoned = _ZONED_TIMESTAMPS.match(joined) is not None
    if not zoned and not _TIMESTAMPS.match(joined):
        return STRING
    if not _are_valid_times(texts):
        # A date does not exist, such as 31 February.
        return STRING
    if zoned:
        return TIMESTAMPTZ
    return DATE if _DATES.match(joined) else TIMESTAMP


def _type_of_numbers(texts: Sequence[str], joined: str) -> DataType:
    if max(map(len, texts)) <= _MAX_SAFE_DIGITS:
        # Short integers matched `_SHORT_INTEGERS`, so these numbers are not all integers.
        return FLOAT64
    long_texts = [text.lstrip("+") for text in texts if len(text) > _MAX_SAFE_DIGITS]
    integers = [text for text in long_texts if text.lstrip("-").isdigit()]
    if any(len(text.lstrip("-")) > _MAX_DECIMAL_DIGITS for text in integers):
        return STRING
    has_large_integer = any(int(text) not in INT64_RANGE for text in integers)
    if _INTEGERS.match(joined):
        return LARGE_INTEGER if has_large_integer else INT64
    # A float would silently lose digits of a large integer.
    return STRING if has_large_integer else FLOAT64


def _are_valid_times(texts: Sequence[str]) -> bool:
    try:
        deque(map(datetime.fromisoformat, texts), maxlen=0)
    except ValueError:
        # Python does not parse nulls, more than six decimals, or zones such as `+0100`.
        try:
            for text in texts:
                if text not in NULLS:
                    datetime.fromisoformat(text[:19])
        except ValueError:
            return False
    return True


# An object with more members has the type of a map, because its keys must be data, not names.
MAX_MEMBERS: Final = 2000


def widen(left: DataType, right: DataType) -> DataType:
    """The narrowest inferred type that can represent the values of both."""
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    match left, right:
        case Array(), Array():
            return Array(widen(left.element, right.element))
        case Map(), Map():
            return Map(widen(left.key, right.key), widen(left.value, right.value))
        case Struct(), Struct():
            members = {member.name: member.type for member in left.members}
            for member in right.members:
                members[member.name] = widen(members.get(member.name, NULL), member.type)
            return struct_or_map(members)
        case (Map() as map, Struct() as struct) | (Struct() as struct, Map() as map):
            return widen(map, _as_map(struct))
    both = {left, right}
    if both <= {INT64, FLOAT64}:
        return FLOAT64
    if both <= {INT64, LARGE_INTEGER}:
        return LARGE_INTEGER
    if both <= {DATE, Timestamp("us")}:
        return Timestamp("us")
    return STRING


def struct_or_map(members: dict[str, DataType]) -> DataType:
    """The type of an object with these members: a map if there are too many to be field names."""
    struct = Struct(Member(name, type) for name, type in members.items())
    return struct if len(members) <= MAX_MEMBERS else _as_map(struct)


def _as_map(struct: Struct) -> Map:
    value: DataType = NULL
    for member in struct.members:
        value = widen(value, member.type)
    return Map(STRING, value)
