"""The narrowest type that holds every one of some texts, always the same for the same texts.

It is also the same however the texts are divided: `widened` of the parts' types is the type of the
whole.
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
    DataType,
    Decimal,
    Timestamp,
)

NULLS: Final = frozenset(
    {"", "null", "NULL", "Null", "NA", "N/A", "n/a", "NaN", "nan", "None", "\\N"}
)
LARGE_INTEGER: Final = Decimal(38, 0)
TIMESTAMP: Final = Timestamp("us")
TIMESTAMPTZ: Final = Timestamp("us", zoned=True)

_MOST_DIGITS: Final = 38
# So many characters always fit into 64 bits.
_SURE_DIGITS: Final = 18
INT64_RANGE: Final = range(-(2**63), 2**63)
# Texts that begin otherwise are no values, and one of them settles the matter.
_BEGINS_VALUE: Final = frozenset("0123456789+-.tTfF ")
# Text of a file never holds this character; one match of all texts is far quicker than one of each.
_END: Final = "\0"


def _every(pattern: str) -> re.Pattern[str]:
    """Matches texts, each followed by `_END`, if every one matches or stands for null."""
    nulls = "|".join(map(re.escape, sorted(NULLS - {""})))
    return re.compile(rf"(?:(?:{pattern}|{nulls})?+\x00)*+\Z", re.ASCII)


_BOOLEANS: Final = _every("(?i:true|false)")
# A number with a leading zero is an identifier.
_SHORT_INTEGERS: Final = _every(r"[+-]?+(?:0|[1-9][0-9]{0,17}+)")
_INTEGERS: Final = _every(r"[+-]?+(?:0|[1-9][0-9]*+)")
_NUMBERS: Final = _every(
    r"[+-]?+(?:(?:0|[1-9][0-9]*+)(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]{1,3}+)?+"
)
_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = r"[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9}+)?+)?+"
_DATES: Final = _every(_DAY)
_TIMESTAMPS: Final = _every(rf"{_DAY}(?:{_TIME})?+")
_ZONED: Final = _every(rf"{_DAY}{_TIME}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})")


def type_of_texts(texts: Sequence[str]) -> DataType:
    """The type of texts, some of which may stand for null; NULL if all do."""
    first = next((text for text in texts if text not in NULLS), None)
    if first is None:
        return NULL
    if first[0] not in _BEGINS_VALUE:
        return STRING
    joined = _END.join(texts) + _END
    type = _type_of_values(texts, joined)
    if type is STRING and " " in joined:
        # Spaces around a value do not count.
        stripped = [text.strip() for text in texts]
        return type if stripped == list(texts) else type_of_texts(stripped)
    return type


def type_of_integer(value: int) -> DataType:
    """INT64, or what is needed to hold the integer exactly."""
    if value in INT64_RANGE:
        return INT64
    return LARGE_INTEGER if abs(value) < 10**_MOST_DIGITS else STRING


def _type_of_values(texts: Sequence[str], joined: str) -> DataType:
    if _SHORT_INTEGERS.match(joined):
        return INT64
    if _NUMBERS.match(joined):
        return _type_of_numbers(texts, joined)
    if _BOOLEANS.match(joined):
        return BOOLEAN
    zoned = _ZONED.match(joined) is not None
    if not zoned and not _TIMESTAMPS.match(joined):
        return STRING
    if not _are_times(texts):
        # 31 February and the like: they only look like dates.
        return STRING
    if zoned:
        return TIMESTAMPTZ
    return DATE if _DATES.match(joined) else TIMESTAMP


def _type_of_numbers(texts: Sequence[str], joined: str) -> DataType:
    if max(map(len, texts)) <= _SURE_DIGITS:
        # Integers of that length were matched before.
        return FLOAT64
    long = [text.lstrip("+") for text in texts if len(text) > _SURE_DIGITS]
    integers = [text for text in long if text.lstrip("-").isdigit()]
    if any(len(text.lstrip("-")) > _MOST_DIGITS for text in integers):
        return STRING
    large = any(int(text) not in INT64_RANGE for text in integers)
    if _INTEGERS.match(joined):
        return LARGE_INTEGER if large else INT64
    # A float would lose digits of a large integer in silence.
    return STRING if large else FLOAT64


def _are_times(texts: Sequence[str]) -> bool:
    try:
        deque(map(datetime.fromisoformat, texts), maxlen=0)
    except ValueError:
        # Nulls, or more digits or a shorter zone than Python reads.
        try:
            for text in texts:
                if text not in NULLS:
                    datetime.fromisoformat(text[:19])
        except ValueError:
            return False
    return True
