"""Records of Python values as Arrow columns, however little they fit."""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from types import NoneType
from typing import Any, Final

import pyarrow as pa

from lumos.model.types import Array, DataType, Map, Member, Struct
from lumos.profiles.columns import Kind, Leaf
from lumos.profiles.mixed_types import mixed
from lumos.profiles.values import target_of

_NO_ARRAY: Final = (pa.ArrowException, OverflowError, TypeError, ValueError, AttributeError)
# What values of a kind are in Python. Arrow would take others, too, and make something of them.
_USUAL: Final[Mapping[Kind, frozenset[type]]] = {
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "unsigned": frozenset({int}),
    "float": frozenset({float, int}),
    "decimal": frozenset({Decimal, int}),
    "date": frozenset({date}),
    "time": frozenset({time}),
    "timestamp": frozenset({datetime}),
    "duration": frozenset({timedelta}),
    "text": frozenset({str}),
    "bytes": frozenset({bytes}),
}


def columns_of(
    records: Sequence[Mapping[str, Any]], types: Mapping[str, DataType]
) -> dict[str, pa.Array]:
    """The records' values as columns, whatever is in them."""
    return {
        name: array_of([record.get(name) for record in records], type)
        for name, type in types.items()
    }


def array_of(values: Sequence[Any], type: DataType) -> pa.Array:
    """Values as an array of a type; those of other types stand beside it."""
    match type:
        case Struct(members) if members:
            return _nested(values, Mapping, partial(_structs, members=members))
        case Array():
            return _nested(values, list, _lists)
        case Map():
            return _nested(values, Mapping, _lists)
        case _:
            return _scalars(values, Leaf("", ("",), type))


def _nested(
    values: Sequence[Any], kind: type, made_of: Callable[[Sequence[Any]], pa.Array]
) -> pa.Array:
    fitting = [value if isinstance(value, kind) else None for value in values]
    array = made_of(fitting)
    is_odd = [value is not each or None for value, each in zip(values, fitting, strict=True)]
    return mixed([array, pa.array(is_odd, pa.bool_())]) if any(is_odd) else array


def _structs(values: Sequence[Mapping[str, Any] | None], members: Iterable[Member]) -> pa.Array:
    children = {
        member.name: array_of(
            [None if each is None else each.get(member.name) for each in values], member.type
        )
        for member in members
    }
    missing = pa.array([each is None for each in values], pa.bool_())
    return pa.StructArray.from_arrays([*children.values()], [*children], mask=missing)


def _lists(values: Sequence[list[Any] | Mapping[str, Any] | None]) -> pa.Array:
    """Of elements, only that they are there is measured."""
    elements = (each.values() if isinstance(each, Mapping) else each for each in values)
    present = [
        None if each is None else [None if element is None else True for element in each]
        for each in elements
    ]
    return pa.array(present, pa.list_(pa.bool_()))


def _scalars(values: Sequence[Any], leaf: Leaf) -> pa.Array:
    if leaf.kind == "opaque":
        return pa.array([None if value is None else True for value in values], pa.bool_())
    if leaf.kind == "bytes":
        # As other formats have them.
        values = [each.bytes if isinstance(each, uuid.UUID) else each for each in values]
    kinds = {*map(type, values)} - {NoneType}
    if leaf.kind == "text" and kinds != {str}:
        return _texts(values)
    usual = _USUAL[leaf.kind]
    if kinds <= usual:
        try:
            return pa.array(values, target_of(leaf))
        except _NO_ARRAY:
            pass
    # Where decimals are taken as they are, they have to come first.
    ordered = sorted(kinds, key=lambda kind: kind not in usual or kind is int)
    return mixed([_of_kind(values, kind) for kind in ordered])


def _of_kind(values: Sequence[Any], kind: type) -> pa.Array:
    """The values of one type of Python's, as what Arrow has for it."""
    own: list[Any] = [value if type(value) is kind else None for value in values]
    if kind in (list, dict):
        return _lists(own)
    try:
        return pa.array(own)
    except _NO_ARRAY:
        return _texts(own)


def _texts(values: Iterable[Any]) -> pa.Array:
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        # Halves of characters can stand in JSON, but nowhere else.
        return value and value.encode("utf-8", "replace").decode()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool | int | float | list | dict):
        return json.dumps(value, default=str)
    return str(value)
