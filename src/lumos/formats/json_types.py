"""The types of JSON values: the union of all that were seen, keys in the order of appearance.

Texts stay STRING even if they look like dates: JSON has text for both, and a column that turned
from DATE to STRING at the first odd text would be a false alarm.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

from lumos.formats.scalars import INT64_RANGE, type_of_integer
from lumos.formats.widening import MOST_MEMBERS, struct_or_map, widened
from lumos.model.type_path import TOO_DEEP
from lumos.model.types import (
    BOOLEAN,
    FLOAT64,
    MAX_DEPTH,
    NULL,
    STRING,
    Array,
    DataType,
    Map,
)

_SCALARS: Final[dict[type, DataType]] = {bool: BOOLEAN, float: FLOAT64, str: STRING}
_NUMBERS: Final = {int, float}


def columns_of(records: Sequence[dict[str, Any]]) -> dict[str, Sequence[Any]]:
    """The values of each key, where a record has it."""
    keys = list(records[0])
    if all(list(record) == keys for record in records):
        columns = zip(*map(dict.values, records), strict=True)
        return dict(zip(keys, columns, strict=True))
    found: dict[str, list[Any]] = {}
    for record in records:
        for key, value in record.items():
            if key in found:
                found[key].append(value)
            else:
                found[key] = [value]
    return dict(found)


def type_of_values(values: Iterable[Any], depth: int = 1) -> DataType:
    """The type that holds all of some values."""
    values = values if isinstance(values, Sequence) else list(values)
    kinds = set(map(type, values))
    kinds.discard(type(None))
    if len(kinds) == 1:
        [kind] = kinds
        if kind in _SCALARS:
            return _SCALARS[kind]
        if kind is int:
            return _type_of_integers(values)
        return _nested(values, kind, depth)
    if not kinds:
        return NULL
    if kinds == _NUMBERS:
        integers = [value for value in values if type(value) is int]
        return widened(_type_of_integers(integers), FLOAT64)
    return STRING


def _type_of_integers(values: Iterable[int | None]) -> DataType:
    found: DataType = NULL
    for value in values:
        if value is not None and (found is NULL or value not in INT64_RANGE):
            found = widened(found, type_of_integer(value))
    return found


def _nested(values: Sequence[Any], kind: type, depth: int) -> DataType:
    if depth >= MAX_DEPTH:
        return TOO_DEEP
    present = [value for value in values if value is not None]
    if kind is list:
        return Array(type_of_values(chain.from_iterable(present), depth + 1))
    columns = columns_of(present)
    if len(columns) > MOST_MEMBERS:
        every = chain.from_iterable(map(dict.values, present))
        return Map(STRING, type_of_values(every, depth + 1))
    members = {key: type_of_values(column, depth + 1) for key, column in columns.items()}
    return struct_or_map({name_of(key): type for key, type in members.items()})


def name_of(key: str) -> str:
    """The key, with what is no character replaced, so that it can be written as text."""
    return (
        key if key.isascii() else key.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    )
