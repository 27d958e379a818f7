"""What stands in for a type in a system that lacks it, where several systems lack the same."""

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
    """An at least as wide decimal whose scale lies between 0 and its precision."""
    # A negative scale stands for zeros before the point, one above the precision for zeros behind.
    digits = precision - min(scale, 0)
    return Decimal(max(digits, scale), max(scale, 0))


def capped_decimal(precision: int, scale: int, *, at: int) -> Decimal:
    """The same with no more digits than `at`; digits before the point are kept first."""
    plain = plain_decimal(precision, scale)
    whole = (plain.precision or at) - plain.scale
    digits = min(whole + plain.scale, at)
    return Decimal(digits, min(plain.scale, max(digits - whole, 0)))


def member_per_option(union: Union) -> Struct:
    """A struct in which exactly one member is set, as Spark reads the unions of Avro."""
    return Struct(Member(f"member{index}", option) for index, option in enumerate(union.options))


def distinct(names: Iterable[str]) -> list[str]:
    """The names in order; one that stands twice gets a number."""
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
