"""The statistics of columns in an ORC footer."""

import decimal
import math
import re
import struct
from collections.abc import Sequence
from typing import Final

from lumos.formats.columns import ColumnFacts, Number
from lumos.formats.orc_types import Column
from lumos.formats.protobuf import fields
from lumos.formats.varints import unfolded

# Field numbers of a column's statistics.
_VALUES, _INTEGER, _DOUBLE, _DECIMAL, _DATE, _TIMESTAMP, _BYTES = 1, 2, 3, 6, 7, 9, 11
_MINIMUM, _MAXIMUM = 1, 2
_MINIMUM_UTC, _MAXIMUM_UTC, _MINIMUM_NANOS, _MAXIMUM_NANOS = 3, 4, 5, 6
_NANOS: Final = 1_000_000
_INT64: Final = range(-(2**63), 2**63)
_DECIMAL_TEXT: Final = re.compile(rb"-?[0-9]{1,40}(\.[0-9]{1,40})?\Z")


def read_columns(
    columns: Sequence[Column], rows: int, statistics: Sequence[bytes]
) -> tuple[ColumnFacts, ...]:
    """What the footer says of the leaf columns; raises Malformed."""
    return tuple(
        _facts(column, rows, statistics[column.number] if column.number < len(statistics) else b"")
        for column in columns
    )


def _facts(column: Column, rows: int, message: bytes) -> ColumnFacts:
    leaf, _, once_per_row = column
    facts = dict(fields(message))
    values, size = facts.get(_VALUES), facts.get(_BYTES)
    low, high = _bounds(facts) if leaf.kind else (None, None)
    bounded = leaf.kind != "" and (values == 0 or (low is not None and high is not None))
    nulls = rows - values if isinstance(values, int) and once_per_row else None
    return ColumnFacts(
        path=leaf.path,
        kind=leaf.kind,
        null_count=nulls if nulls is None or nulls >= 0 else None,
        compressed_bytes=size if isinstance(size, int) and size < 2**63 else None,
        minimum=low if bounded else None,
        maximum=high if bounded else None,
        bounded=bounded,
    )


def _bounds(facts: dict[int, int | bytes]) -> tuple[Number | None, Number | None]:
    for id, value in facts.items():
        if not isinstance(value, bytes):
            continue
        if id in (_INTEGER, _DATE):
            inner = dict(fields(value))
            return _integer(inner.get(_MINIMUM)), _integer(inner.get(_MAXIMUM))
        if id == _DOUBLE:
            inner = dict(fields(value))
            return _double(inner.get(_MINIMUM)), _double(inner.get(_MAXIMUM))
        if id == _DECIMAL:
            inner = dict(fields(value))
            return _decimal(inner.get(_MINIMUM)), _decimal(inner.get(_MAXIMUM))
        if id == _TIMESTAMP:
            return _times(dict(fields(value)))
    return None, None


def _times(facts: dict[int, int | bytes]) -> tuple[int | None, int | None]:
    """Microseconds from milliseconds, and nanoseconds that are stored as one more than they are."""
    low, high = _integer(facts.get(_MINIMUM_UTC)), _integer(facts.get(_MAXIMUM_UTC))
    finest, last = facts.get(_MINIMUM_NANOS, 1), facts.get(_MAXIMUM_NANOS, _NANOS)
    if low is None or high is None or isinstance(finest, bytes) or isinstance(last, bytes):
        return None, None
    if not (1 <= finest <= _NANOS and 1 <= last <= _NANOS):
        # Some writers get the time shortly before 1970 wrong, and it shows here.
        return None, None
    times = low * 1000 + (finest - 1) // 1000, high * 1000 + -(-(last - 1) // 1000)
    return times if all(time in _INT64 for time in times) else (None, None)


def _integer(value: int | bytes | None) -> int | None:
    return unfolded(value) if isinstance(value, int) and value < 2**64 else None


def _double(value: int | bytes | None) -> float | None:
    if not isinstance(value, bytes) or len(value) != 8:
        return None
    number: float = struct.unpack("<d", value)[0]
    return None if math.isnan(number) else number


def _decimal(value: int | bytes | None) -> decimal.Decimal | None:
    if not isinstance(value, bytes) or not _DECIMAL_TEXT.match(value):
        return None
    return decimal.Decimal(value.decode())
