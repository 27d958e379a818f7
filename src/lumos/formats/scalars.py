"""The narrowest type that holds every one of some texts, always the same for the same texts."""

import re
from collections.abc import Collection
from datetime import date, datetime
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

_INTEGER: Final = re.compile(r"[+-]?(0|[1-9][0-9]*)\Z", re.ASCII)
_NUMBER: Final = re.compile(
    r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\Z", re.ASCII
)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)
_TIMESTAMP: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?\Z", re.ASCII
)
_BOOLEANS: Final = frozenset({"true", "false"})
_INT64: Final = range(-(2**63), 2**63)
_MOST_DIGITS: Final = 38


def type_of_texts(texts: Collection[str]) -> DataType:
    """NULL for no texts; numbers with leading zeros are identifiers and stay STRING."""
    if not texts:
        return NULL
    if all(text.lower() in _BOOLEANS for text in texts):
        return BOOLEAN
    if all(_INTEGER.match(text) for text in texts):
        return _integer_type(texts)
    if all(_NUMBER.match(text) for text in texts):
        return FLOAT64
    if all(_DATE.match(text) and _is_date(text) for text in texts):
        return DATE
    if all(_TIMESTAMP.match(text) and _is_timestamp(text) for text in texts):
        zoned = {text.endswith("Z") or "+" in text[10:] or "-" in text[10:] for text in texts}
        return Timestamp("us", zoned=zoned.pop()) if len(zoned) == 1 else STRING
    return STRING


def _integer_type(texts: Collection[str]) -> DataType:
    longest = max(len(text.lstrip("+-")) for text in texts)
    if longest > _MOST_DIGITS:
        return STRING
    if all(int(text) in _INT64 for text in texts):
        return INT64
    # An overflow must stay exact: a float would lose digits in silence.
    return Decimal(_MOST_DIGITS, 0)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_timestamp(text: str) -> bool:
    try:
        datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True
