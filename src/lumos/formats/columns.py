"""Columns of files: distinct names, and statistics that are merged per dataset.

Minima and maxima reveal data: those of numbers and times are stored, those of texts never are.
"""

import decimal
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import replace

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

# How minima and maxima are encoded: dates as days since 1970, times as microseconds of the day, and
# timestamps as microseconds since 1970. The empty kind has none.
BoundKind: TypeAlias = Literal["", "number", "date", "time", "timestamp", "timestamptz"]
Number: TypeAlias = int | float | decimal.Decimal

_EPOCH: Final = datetime(1970, 1, 1)


class FileColumnStatistics(NamedTuple):
    """The statistics of one leaf column in a file; unknown values are None.

    `minimum` and `maximum` cover all values only if `bounded`. A column without values is bounded,
    although it has no minimum and no maximum.
    """

    path: str
    kind: BoundKind
    null_count: int | None
    compressed_bytes: int | None
    minimum: Number | None
    maximum: Number | None
    bounded: bool


class LeafColumn(NamedTuple):
    """A column, or a part of a nested one, that is not nested itself."""

    path: str
    type: DataType
    kind: BoundKind


def leaf_columns(schema: Schema) -> list[LeafColumn]:
    """The leaf columns of a schema in the order in which files store them."""
    return [
        leaf for field in schema.fields for leaf in _leaves(field.type, TypePath.column(field.name))
    ]


def _leaves(type: DataType, path: TypePath) -> Iterator[LeafColumn]:
    match type:
        case Struct(members):
            for member in members:
                yield from _leaves(member.type, path.member(member.name))
        case Array(element):
            yield from _leaves(element, path.element())
        case Map(key, value):
            yield from _leaves(key, path.key())
            yield from _leaves(value, path.value())
        case _:
            yield LeafColumn(path.path, type, bound_kind(type))


def bound_kind(type: DataType) -> BoundKind:
    """How the bounds of a type are encoded; empty if they are not stored."""
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


_MINIMUM: Final = FileColumnStatistics._fields.index("minimum")
_MAXIMUM: Final = FileColumnStatistics._fields.index("maximum")
_encoder = msgspec.msgpack.Encoder()
# Without types: decoding into FileColumnStatistics directly takes three times as long.
_decoder = msgspec.msgpack.Decoder(list[list[Any]])


def pack_columns(columns: Sequence[FileColumnStatistics]) -> bytes:
    """Encode the columns of a file to send them from executors."""
    return _encoder.encode(columns)


def unpack_columns(packed: bytes) -> tuple[FileColumnStatistics, ...]:
    """Decode the columns that `pack_columns` encoded."""
    columns = _decoder.decode(packed)
    for column in columns:
        if isinstance(column[_MINIMUM], str) or isinstance(column[_MAXIMUM], str):
            # Decimals are encoded as text.
            column[_MINIMUM : _MAXIMUM + 1] = map(_number, column[_MINIMUM : _MAXIMUM + 1])
    return tuple(map(FileColumnStatistics._make, columns))


def _number(value: Any) -> Number | None:
    return decimal.Decimal(value) if isinstance(value, str) else value


def merge_columns(
    files: Iterable[Sequence[FileColumnStatistics]],
) -> tuple[FileColumnStatistics, ...]:
    """The statistics of several files together, in the order of first occurrence."""
    merged: dict[str, FileColumnStatistics] = {}
    for columns in files:
        for column in columns:
            known = merged.get(column.path)
            merged[column.path] = column if known is None else _merge_pair(known, column)
    return tuple(merged.values())


def _merge_pair(left: FileColumnStatistics, right: FileColumnStatistics) -> FileColumnStatistics:
    _, kind, nulls, size, minimum, maximum, bounded = left
    path, kind2, nulls2, size2, minimum2, maximum2, bounded2 = right
    nulls = None if nulls is None or nulls2 is None else nulls + nulls2
    size = None if size is None or size2 is None else size + size2
    if kind != kind2:
        # Numbers and times cannot be compared.
        return FileColumnStatistics(path, "", nulls, size, None, None, bounded=False)
    if minimum is None or (minimum2 is not None and minimum2 < minimum):
        minimum = minimum2
    if maximum is None or (maximum2 is not None and maximum2 > maximum):
        maximum = maximum2
    return FileColumnStatistics(path, kind, nulls, size, minimum, maximum, bounded and bounded2)


def column_statistics(columns: Iterable[FileColumnStatistics]) -> dict[str, ColumnStatistics]:
    """The statistics of a dataset's columns, with bounds only where they cover all values."""
    return {
        column.path: ColumnStatistics(
            null_count=column.null_count,
            compressed_bytes=column.compressed_bytes,
            minimum=_text(column.minimum, column.kind) if column.bounded else None,
            maximum=_text(column.maximum, column.kind) if column.bounded else None,
        )
        for column in columns
    }


def _text(value: Number | None, kind: BoundKind) -> str | None:
    if value is None or kind == "number":
        return None if value is None else str(value)
    days = kind == "date"
    try:
        moment = _EPOCH + (
            timedelta(days=int(value)) if days else timedelta(microseconds=int(value))
        )
    except OverflowError:
        # Outside of the years 1 to 9999.
        return None
    match kind:
        case "date":
            return moment.date().isoformat()
        case "time":
            return moment.time().isoformat()
        case "timestamptz":
            return f"{moment.isoformat()}Z"
        case _:
            return moment.isoformat()


def distinct_names(names: Sequence[str]) -> list[str]:
    """Distinct names of columns; missing and repeated names get their position as a suffix."""
    given_names = set(names)
    if len(given_names) == len(names) and "" not in given_names:
        return list(names)
    used: set[str] = set()
    distinct: list[str] = []
    for position, given in enumerate(names, start=1):
        name = given or f"column_{position}"
        while name in used or (name != given and name in given_names):
            name = f"{name}_{position}"
        used.add(name)
        distinct.append(name)
    return distinct


def name_of_unnamed_column(names: Sequence[str]) -> str | None:
    """The generated name of the column whose name is empty, if any."""
    numbered = enumerate(names, start=1)
    return next((name for number, name in numbered if _is_generated_name(name, number)), None)


def _is_generated_name(name: str, position: int) -> bool:
    start = f"column_{position}"
    return name.startswith(start) and not name[len(start) :].replace(f"_{position}", "")


def with_distinct_names(schema: Schema) -> Schema:
    """The schema with distinct names of its columns."""
    names = [field.name for field in schema.fields]
    distinct = distinct_names(names)
    if names == distinct:
        return schema
    renamed = zip(schema.fields, distinct, strict=True)
    return Schema(fields=tuple(replace(field, name=name) for field, name in renamed))
