"""Types that a form spells in one way only, or that most who write it spell so.

A plain `integer` of JSON Schema is an INT64 to whoever reads it alone. Beside a dataset whose
column is an INT32 it says nothing new.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from lumos.model.types import (
    FLOAT64,
    FLOATS,
    INT64,
    SIGNED,
    STRING,
    UNSIGNED,
    UUID,
    Binary,
    DataType,
    Decimal,
    Enum,
    String,
    Time,
    Timestamp,
)

# Whether the present type may be meant by the proposed one.
Vague: TypeAlias = Callable[[DataType, DataType], bool]

_SNOWFLAKE_INTEGER: Final = Decimal(38, 0)


def nothing_is_vague(_present: DataType, _proposed: DataType) -> bool:
    """Of forms that have a word for everything."""
    return False


def vague_in_json_schema(present: DataType, proposed: DataType) -> bool:
    """Numbers, texts and times as JSON Schema has them without Lumos' own formats."""
    return vague_number(present, proposed) or _vague_text(present, proposed)


def vague_number(present: DataType, proposed: DataType) -> bool:
    """An integer or a number of no said size."""
    if proposed == INT64:
        return _is_integer(present)
    return proposed == FLOAT64 and (present in FLOATS or isinstance(present, Decimal))


def precise_numbers(present: DataType, proposed: DataType) -> bool:
    """The same where numbers have a size: `format: int64`."""
    return _vague_text(present, proposed)


def _vague_text(present: DataType, proposed: DataType) -> bool:
    if proposed == STRING:
        return present == UUID or isinstance(present, Enum | String | Binary)
    return proposed == Timestamp("us", zoned=True) and isinstance(present, Timestamp)


def vague_in_snowflake(present: DataType, proposed: DataType) -> bool:
    """INTEGER has no size, and a column of ids or symbols is a VARCHAR."""
    if proposed == _SNOWFLAKE_INTEGER:
        return _is_integer(present)
    if proposed == STRING:
        return present == UUID or isinstance(present, Enum)
    return _same_but_unit(present, proposed, "ns")


def vague_in_postgres(present: DataType, proposed: DataType) -> bool:
    """Times of no said precision."""
    return _same_but_unit(present, proposed, "us")


def vague_in_hive(present: DataType, proposed: DataType) -> bool:
    """Its one timestamp is with a zone in Spark, and without in Hive."""
    return proposed == Timestamp("ns") and isinstance(present, Timestamp)


def _is_integer(type: DataType) -> bool:
    return type in SIGNED or type in UNSIGNED


def _same_but_unit(present: DataType, proposed: DataType, usual: str) -> bool:
    match present, proposed:
        case Timestamp(_, one), Timestamp(unit, other):
            return one == other and unit == usual
        case Time(), Time(unit):
            return unit == usual
        case _:
            return False
