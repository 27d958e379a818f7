"""Replacements for types that several target systems lack."""

from collections.abc import Iterable
from typing import Final

from lumos.model.types import (
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DataType,
    Decimal,
    Member,
    Struct,
    Union,
)

# The smallest signed type that holds every value.
SIGNED_FOR: Final[dict[DataType, DataType]] = {
    UINT8: INT16,
    UINT16: INT32,
    UINT32: INT64,
    UINT64: Decimal(20, 0),
}


def plain_decimal(precision: int, scale: int) -> Decimal:
    """The narrowest decimal that holds all values and has a scale from 0 to its precision."""
    # A negative scale means zeros before the decimal point, a scale above the precision zeros after
    # it: both need additional digits.
    digits = precision - min(scale, 0)
    return Decimal(max(digits, scale), max(scale, 0))


def capped_decimal(precision: int, scale: int, *, max_digits: int) -> Decimal:
    """A decimal of at most `max_digits` digits; digits before the point take precedence."""
    plain = plain_decimal(precision, scale)
    integer_digits = (plain.precision or max_digits) - plain.scale
    digits = min(integer_digits + plain.scale, max_digits)
    return Decimal(digits, min(plain.scale, max(digits - integer_digits, 0)))


def member_per_option(union: Union) -> Struct:
    """A struct with a member for each option, of which one is set, as Spark reads Avro's unions."""
    return Struct(Member(f"member{index}", option) for index, option in enumerate(union.options))


def make_distinct(names: Iterable[str]) -> list[str]:
    """Make names distinct: append a number to repeated names."""
    taken: set[str] = set()
    result: list[str] = []
    for name in names:
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate)
        result.append(candidate)
    return result
