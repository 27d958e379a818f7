"""Minima and maxima of numbers and times, from their bytes in a Parquet footer."""

import decimal
import math
import struct
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from lumos.formats.columns import Number, kind_of_values
from lumos.model.types import FLOATS, UNSIGNED, DataType, Decimal, Time, Timestamp

Bounds: TypeAlias = tuple[Number, Number]
# Reads minimum and maximum, given the number of their physical type; nothing where they are odd.
Read: TypeAlias = Callable[[bytes, bytes, int], Bounds | None]

# Parquet's numbers for the physical types that matter here.
_INT96: Final = 3
_BYTE_ARRAYS: Final = (6, 7)

_FLOAT_LAYOUTS: Final = {2: struct.Struct("<e"), 4: struct.Struct("<f"), 8: struct.Struct("<d")}
_MICROSECONDS: Final = {"s": (1_000_000, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}
_INT64: Final = range(-(2**63), 2**63)
_LONGEST_DECIMAL: Final = 32


class Bounded(NamedTuple):
    """How to read a type's bounds.

    The oldest writers compared all values as if they were signed, so that their bounds are right
    only for types that are.
    """

    read: Read
    signed: bool = True


def bounds_of(type: DataType) -> Bounded | None:
    """How to read a type's bounds; nothing for types whose bounds are not kept."""
    match type:
        case Decimal(_, scale):
            return Bounded(_decimals(scale), signed=False)
        case Timestamp(unit) | Time(unit):
            return Bounded(_times(*_MICROSECONDS[unit]))
        case _ if type in FLOATS:
            return Bounded(_floats)
        case _ if type in UNSIGNED:
            return Bounded(_unsigned, signed=False)
        case _:
            return Bounded(_integers) if kind_of_values(type) else None


def _integers(low: bytes, high: bytes, _: int) -> tuple[int, int] | None:
    if len(low) > 8 or len(high) > 8:
        return None
    return int.from_bytes(low, "little", signed=True), int.from_bytes(high, "little", signed=True)


def _unsigned(low: bytes, high: bytes, _: int) -> Bounds | None:
    if len(low) > 8 or len(high) > 8:
        return None
    return int.from_bytes(low, "little"), int.from_bytes(high, "little")


def _floats(low: bytes, high: bytes, _: int) -> Bounds | None:
    layout = _FLOAT_LAYOUTS.get(len(low))
    if layout is None or len(high) != layout.size:
        return None
    [least], [most] = layout.unpack(low), layout.unpack(high)
    return None if math.isnan(least) or math.isnan(most) else (least, most)


def _times(factor: int, divisor: int) -> Read:
    def read(low: bytes, high: bytes, physical: int) -> Bounds | None:
        stored = None if physical == _INT96 else _integers(low, high, physical)
        if stored is None:
            return None
        least, most = stored[0] * factor // divisor, -(-stored[1] * factor // divisor)
        return (least, most) if least in _INT64 and most in _INT64 else None

    return read


def _decimals(scale: int) -> Read:
    def read(low: bytes, high: bytes, physical: int) -> Bounds | None:
        if max(len(low), len(high)) > _LONGEST_DECIMAL:
            return None
        if physical not in _BYTE_ARRAYS:
            low, high = low[::-1], high[::-1]
        return _decimal(low, scale), _decimal(high, scale)

    return read


def _decimal(stored: bytes, scale: int) -> decimal.Decimal:
    # Written as text: arithmetic would round to the digits of some context.
    return decimal.Decimal(f"{int.from_bytes(stored, 'big', signed=True)}E{-scale}")
