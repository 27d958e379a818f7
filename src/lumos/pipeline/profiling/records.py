"""Records of Python values as Arrow columns, however little they fit."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from lumos.model.types import Array, DataType, Map, Struct
from lumos.pipeline.profiling.columns import Leaf
from lumos.pipeline.profiling.values import target_of

_NO_ARRAY: Final = (pa.ArrowException, OverflowError, TypeError, ValueError, AttributeError)


def columns_of(
    records: Sequence[Mapping[str, Any]], types: Mapping[str, DataType]
) -> dict[str, pa.Array]:
    """The records' values as columns; what is not of a column's type is text."""
    return {
        name: array_of([record.get(name) for record in records], type)
        for name, type in types.items()
    }


def array_of(values: Sequence[Any], type: DataType) -> pa.Array:
    """Values as an array whose leaves are of their type or, where some do not fit it, texts."""
    match type:
        case Struct(members) if members:
            structs = [value if isinstance(value, Mapping) else None for value in values]
            children = [
                array_of([each and each.get(member.name) for each in structs], member.type)
                for member in members
            ]
            missing = pa.array([each is None for each in structs], pa.bool_())
            names = [member.name for member in members]
            return pa.StructArray.from_arrays(children, names, mask=missing)
        case Array():
            # Of elements, only that they are there is measured.
            return _lists(value if isinstance(value, list) else None for value in values)
        case Map():
            return _lists(
                value.values() if isinstance(value, Mapping) else None for value in values
            )
        case _:
            return _scalars(values, type)


def _lists(values: Iterable[Iterable[Any] | None]) -> pa.Array:
    present = [
        None if each is None else [None if element is None else True for element in each]
        for each in values
    ]
    return pa.array(present, pa.list_(pa.bool_()))


def _scalars(values: Sequence[Any], type: DataType) -> pa.Array:
    leaf = Leaf("", ("",), type)
    if leaf.kind == "opaque":
        return pa.array([None if value is None else True for value in values], pa.bool_())
    if leaf.kind == "bytes":
        # As other formats have them.
        values = [each.bytes if isinstance(each, uuid.UUID) else each for each in values]
    try:
        return pa.array(values, target_of(leaf))
    except _NO_ARRAY:
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
