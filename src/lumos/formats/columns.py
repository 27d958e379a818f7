"""Statistics of columns: how they travel, and how those of many files become a dataset's.

Minima and maxima are data, so only those of numbers and times are kept, never those of texts.
"""

import decimal
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from lumos.model.dataset import ColumnStatistics
from lumos.model.schema import Schema
from lumos.model.type_path import TypePath
from lumos.model.types import (
    DATE,
    FLOATS,
    SIGNED,
    UNSIGNED,
    Array,
    DataType,
    Decimal,
    Map,
    Struct,
    Time,
    Timestamp,
)

# What minimum and maximum count: a number, days or microseconds since 1970, microseconds of a day.
Kind: TypeAlias = Literal["", "number", "date", "time", "timestamp", "timestamptz"]
Number: TypeAlias = int | float | decimal.Decimal

_EPOCH: Final = datetime(1970, 1, 1)


class ColumnFacts(NamedTuple):
    """What a file says of one leaf column; a count that it does not tell is None.

    `minimum` and `maximum` hold for all values only if `bounded`; a column without any value is
    bounded and has neither.
    """

    path: str
    kind: Kind
    null_count: int | None
    compressed_bytes: int | None
    minimum: Number | None
    maximum: Number | None
    bounded: bool


class Leaf(NamedTuple):
    """A column, or a part of one, that holds values of its own."""

    path: str
    type: DataType
    kind: Kind


def leaves(schema: Schema) -> list[Leaf]:
    """A schema's leaf columns in the order in which files store them."""
    return [
        leaf for field in schema.fields for leaf in _leaves(field.type, TypePath.column(field.name))
    ]


def _leaves(type: DataType, place: TypePath) -> Iterator[Leaf]:
    match type:
        case Struct(members):
            for member in members:
                yield from _leaves(member.type, place.member(member.name))
        case Array(element):
            yield from _leaves(element, place.element())
        case Map(key, value):
            yield from _leaves(key, place.key())
            yield from _leaves(value, place.value())
        case _:
            yield Leaf(place.path, type, kind_of_values(type))


def kind_of_values(type: DataType) -> Kind:
    """What a type's minimum and maximum count; nothing where they are not to be kept."""
    match type:
        case Timestamp(_, zoned):
            return "timestamptz" if zoned else "timestamp"
        case Time():
            return "time"
        case Decimal():
            return "number"
        case _ if type in SIGNED or type in UNSIGNED or type in FLOATS:
            return "number"
        case _:
            return "date" if type == DATE else ""


_MINIMUM: Final = ColumnFacts._fields.index("minimum")
_MAXIMUM: Final = ColumnFacts._fields.index("maximum")
_encoder = msgspec.msgpack.Encoder()
# Without types: decoding straight into ColumnFacts takes three times as long.
_decoder = msgspec.msgpack.Decoder(list[list[Any]])


def pack_columns(columns: Sequence[ColumnFacts]) -> bytes:
    """A file's columns in the short form in which they travel."""
    return _encoder.encode(columns)


def unpack_columns(packed: bytes) -> tuple[ColumnFacts, ...]:
    """The columns of that short form."""
    columns = _decoder.decode(packed)
    for column in columns:
        if isinstance(column[_MINIMUM], str) or isinstance(column[_MAXIMUM], str):
            # Decimals travel as text.
            column[_MINIMUM : _MAXIMUM + 1] = map(_number, column[_MINIMUM : _MAXIMUM + 1])
    return tuple(map(ColumnFacts._make, columns))


def _number(value: Any) -> Number | None:
    return decimal.Decimal(value) if isinstance(value, str) else value


def merge_columns(files: Iterable[Sequence[ColumnFacts]]) -> tuple[ColumnFacts, ...]:
    """The columns of several files together, in the order in which they are first met."""
    merged: dict[str, ColumnFacts] = {}
    for columns in files:
        for column in columns:
            known = merged.get(column.path)
            merged[column.path] = column if known is None else _both(known, column)
    return tuple(merged.values())


def _both(left: ColumnFacts, right: ColumnFacts) -> ColumnFacts:
    _, kind, nulls, size, minimum, maximum, bounded = left
    path, its_kind, its_nulls, its_size, its_minimum, its_maximum, its_bounded = right
    nulls = None if nulls is None or its_nulls is None else nulls + its_nulls
    size = None if size is None or its_size is None else size + its_size
    if kind != its_kind:
        # A number and a time have no order between them.
        return ColumnFacts(path, "", nulls, size, None, None, False)
    if minimum is None or (its_minimum is not None and its_minimum < minimum):
        minimum = its_minimum
    if maximum is None or (its_maximum is not None and its_maximum > maximum):
        maximum = its_maximum
    return ColumnFacts(path, kind, nulls, size, minimum, maximum, bounded and its_bounded)


def column_statistics(columns: Iterable[ColumnFacts]) -> dict[str, ColumnStatistics]:
    """The columns as a dataset tells of them; bounds that do not hold for all values go."""
    return {
        column.path: ColumnStatistics(
            null_count=column.null_count,
            compressed_bytes=column.compressed_bytes,
            minimum=_text(column.minimum, column.kind) if column.bounded else None,
            maximum=_text(column.maximum, column.kind) if column.bounded else None,
        )
        for column in columns
    }


def _text(value: Number | None, kind: Kind) -> str | None:
    if value is None or kind == "number":
        return None if value is None else str(value)
    days = kind == "date"
    try:
        at = _EPOCH + (timedelta(days=int(value)) if days else timedelta(microseconds=int(value)))
    except OverflowError:
        # Beyond the years that a calendar here can tell.
        return None
    match kind:
        case "date":
            return at.date().isoformat()
        case "time":
            return at.time().isoformat()
        case "timestamptz":
            return f"{at.isoformat()}Z"
        case _:
            return at.isoformat()
