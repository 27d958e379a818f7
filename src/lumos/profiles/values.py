"""Converts values of files to Arrow arrays of the column's type.

Values that do not fit the type are called misfits; they are counted and replaced by null.
"""

import decimal
import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import partial
from types import NoneType
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lumos.formats.inference import NULLS
from lumos.model.conversions.arrow import type_to_arrow
from lumos.model.types import JSON, Array, DataType, Decimal, Map, Member, Struct, Timestamp
from lumos.profiles.columns import INTEGRAL_KINDS, ColumnValueKind, ProfiledColumn


class MixedType(pa.ExtensionType):  # type: ignore[misc]
    """A column of several types, as in JSON: a struct with a member for each type.

    At most one member of a row is set. Arrow has unions for this, but cannot extract them from
    nullable structs.
    """

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "lumos.mixed")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, _: bytes) -> "MixedType":
        return cls(storage)


def mixed_array(arrays: Sequence[pa.Array]) -> pa.Array:
    """A mixed column from arrays that each have the values of one type and nulls elsewhere."""
    if len(arrays) == 1:
        return arrays[0]
    rows = pa.StructArray.from_arrays(arrays, [str(number) for number in range(len(arrays))])
    return pa.ExtensionArray.from_storage(MixedType(rows.type), rows)


def mixed_parts(column: pa.Array) -> list[pa.Array]:
    """The arrays in a mixed column, one for each type."""
    rows = column.storage
    return [pc.struct_field(rows, [number]) for number in range(rows.type.num_fields)]


# Any day, to parse times of the day as timestamps.
_ANY_DAY: Final = "1970-01-01"
# Matches the digits after microseconds.
_NANOSECOND_DIGITS: Final = r"(\.\d{6})\d+"
_MAX_INT64: Final = 2**63 - 1
_UNITS_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_BYTES_TYPE_OF_TEXT: Final = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
# A cast between types of different families would change the meaning of values.
_FAMILIES: Final[dict[str, Callable[[pa.DataType], bool]]] = {
    "boolean": pa.types.is_boolean,
    "integer": pa.types.is_integer,
    "number": lambda type: pa.types.is_floating(type) or pa.types.is_decimal(type),
    "date": pa.types.is_date,
    "timestamp": pa.types.is_timestamp,
    "time": pa.types.is_time,
    "duration": pa.types.is_duration,
}
_COMPATIBLE_FAMILIES: Final = ({"date", "timestamp"}, {"integer", "number"})
# Patterns for texts that can be cast to a type of a family.
_TEXT_PATTERNS: Final = {
    "boolean": r"(?i)^(true|false|0|1)$",
    "integer": r"^-?[0-9]{1,20}$",
    "number": r"(?i)^-?(inf|infinity|nan|([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?)$",
    "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "timestamp": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "time": r"^[0-9]{2}:[0-9]{2}",
}
# The errors of a failed cast.
_CAST_ERRORS: Final = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


class ColumnValues(NamedTuple):
    """The values of a column in a batch; misfits are null, and are counted.

    Of `opaque` values, only the presence is known.
    """

    array: pa.Array
    misfits: int = 0
    opaque: bool = False


def arrow_type(leaf: ProfiledColumn) -> pa.DataType | None:
    """The type that the values of a column are cast to; None if they are not cast."""
    match leaf.kind:
        case "boolean":
            return pa.bool_()
        case "integer":
            return pa.int64()
        case "unsigned":
            return pa.uint64()
        case "float":
            return pa.float64()
        case "date":
            return pa.date32()
        case "time":
            return pa.time64("ns" if leaf.type.text == "TIME(ns)" else "us")
        case "timestamp":
            assert isinstance(leaf.type, Timestamp)
            unit = "ns" if leaf.type.unit == "ns" else "us"
            return pa.timestamp(unit, tz="UTC" if leaf.type.zoned else None)
        case "duration":
            return pa.duration("ns" if leaf.type.text == "DURATION(ns)" else "us")
        case "decimal":
            assert isinstance(leaf.type, Decimal)
            return None if leaf.type.precision is None else type_to_arrow(leaf.type)
        case "text":
            return pa.string()
        case "bytes":
            return pa.binary()
        case _:
            return None


def column_values(leaf: ProfiledColumn, column: pa.Array | None, rows: int) -> ColumnValues:
    """The values of a leaf column, given the column of the file; nulls if the file has none.

    A member of a struct is null where the struct is null.
    """
    target = arrow_type(leaf)
    if column is None or pa.types.is_null(column.type):
        return ColumnValues(pa.nulls(rows, target or pa.null()))
    if isinstance(column.type, MixedType):
        parts = [column_values(leaf, each, rows) for each in mixed_parts(column)]
        array = pc.coalesce(*(each.array for each in parts)) if target else parts[0].array
        return ColumnValues(array, sum(each.misfits for each in parts))
    array = _decode_storage(column)
    if leaf.names[1:]:
        if not pa.types.is_struct(array.type):
            return _all_misfits(array, target)
        member = _member_array(array, leaf.names[1])
        return column_values(leaf._replace(names=leaf.names[1:]), member, rows)
    misfits = 0
    if _is_text(array):
        array, misfits, _ = _cast_in_halves(array.cast(_BYTES_TYPE_OF_TEXT[array.type]), array.type)
    values = _to_type(leaf, array, target)
    return values._replace(misfits=values.misfits + misfits)


def _member_array(structs: pa.Array, name: str) -> pa.Array | None:
    index = structs.type.get_field_index(name)
    if index < 0:
        return None
    if pa.types.is_union(structs.type.field(index).type):
        # Arrow aborts the process on unions in null structs. Only their presence is measured, so
        # they are replaced by a struct, which is not the type of any leaf column.
        return pa.StructArray.from_arrays([structs.is_valid()], [name], mask=structs.is_null())
    return pc.struct_field(structs, [index])


def _to_type(leaf: ProfiledColumn, array: pa.Array, target: pa.DataType | None) -> ColumnValues:
    if array.type == target or leaf.kind == "opaque":
        return ColumnValues(array)
    is_nested = pa.types.is_nested(array.type)
    if leaf.kind in ("list", "map"):
        is_list = is_nested and not pa.types.is_struct(array.type)
        return ColumnValues(array) if is_list else _all_misfits(array, None)
    if is_nested and leaf.type == JSON:
        # Delta stores variants as structs of binary values.
        return ColumnValues(array, opaque=True)
    if target is None:
        return ColumnValues(array)
    if is_nested or not _is_castable(array.type, target):
        return _all_misfits(array, target)
    return _cast(array, target)


def _all_misfits(array: pa.Array, target: pa.DataType | None) -> ColumnValues:
    return ColumnValues(pa.nulls(len(array), target or pa.null()), len(array) - array.null_count)


def _is_castable(type: pa.DataType, target: pa.DataType) -> bool:
    """Whether values can be cast to another type; every type can be cast to text and back."""
    families = {_family(type), _family(target)}
    return "text" in families or len(families) == 1 or families in _COMPATIBLE_FAMILIES


def _family(type: pa.DataType) -> str:
    for name, is_member in _FAMILIES.items():
        if is_member(type):
            return name
    return "text"


def as_integers(leaf: ProfiledColumn, array: pa.Array) -> pa.Array:
    """Convert dates and times to integers; other values are returned unchanged."""
    if leaf.kind == "date":
        return array.view(pa.int32()).cast(pa.int64())
    return array.view(pa.int64()) if leaf.kind in INTEGRAL_KINDS else array


def _decode_storage(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array


def _cast(array: pa.Array, target: pa.DataType) -> ColumnValues:
    try:
        return ColumnValues(_convert(array, target))
    except pa.ArrowNotImplementedError:
        return _all_misfits(array, target)
    except _CAST_ERRORS:
        if _is_text(array):
            array = _strip_texts(array)
            has_time = pa.types.is_timestamp(target) or pa.types.is_time(target)
            if has_time and target.unit == "us":
                array = pc.replace_substring_regex(array, _NANOSECOND_DIGITS, r"\1")
    candidates = _drop_obvious_misfits(array, target)
    values = _cast_in_halves(candidates, target)
    return values._replace(misfits=values.misfits + candidates.null_count - array.null_count)


def _drop_obvious_misfits(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Replace most misfits by null, because finding them by failed casts is slow."""
    if _is_text(array) and (pattern := _TEXT_PATTERNS.get(_family(target))):
        is_match = pc.match_substring_regex(array, pattern)
    elif pa.types.is_floating(array.type) and pa.types.is_integer(target):
        doubles = array.cast(pa.float64())
        is_match = pc.equal(pc.floor(doubles), doubles)
    elif pa.types.is_timestamp(array.type) and pa.types.is_timestamp(target):
        max_value = _MAX_INT64 // max(
            1, _UNITS_PER_SECOND[target.unit] // _UNITS_PER_SECOND[array.type.unit]
        )
        counts = array.view(pa.int64())
        is_match = pc.and_(pc.less_equal(counts, max_value), pc.greater_equal(counts, -max_value))
    else:
        return array
    return pc.if_else(is_match, array, pa.scalar(None, array.type))


def _is_text(array: pa.Array) -> bool:
    return bool(pa.types.is_string(array.type) or pa.types.is_large_string(array.type))


def _strip_texts(texts: pa.Array) -> pa.Array:
    """The texts without surrounding spaces and plus signs; texts such as `NA` become null."""
    texts = pc.replace_substring_regex(pc.utf8_trim_whitespace(texts), r"^\+", "")
    nulls = pc.is_in(texts, value_set=pa.array(sorted(NULLS - {""}), texts.type))
    return pc.if_else(nulls, pa.scalar(None, texts.type), texts)


def _convert(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(target):
        # Timestamps without a zone are in UTC, as in the Spark session.
        array = array.cast(pa.timestamp(array.type.unit, tz=target.tz))
        return array.cast(options=pc.CastOptions(target, allow_time_truncate=True))
    if pa.types.is_timestamp(target) and target.tz and _is_text(array):
        try:
            return array.cast(target)
        except _CAST_ERRORS:
            # Texts without a zone are in UTC, too, as in Delta's partition values.
            return array.cast(pa.timestamp(target.unit)).cast(target)
    if pa.types.is_time(target) and _is_text(array):
        # Arrow casts texts to timestamps, but not to times.
        day, separator = (pa.scalar(text, array.type) for text in (_ANY_DAY, "T"))
        timestamps = pc.binary_join_element_wise(day, array, separator)
        return timestamps.cast(pa.timestamp(target.unit)).cast(target)
    # Allow that integers lose precision when they are cast to doubles.
    return array.cast(target, safe=not pa.types.is_floating(target) or _is_text(array))


def _cast_in_halves(array: pa.Array, target: pa.DataType) -> ColumnValues:
    """Cast the values that fit: if the cast fails, cast both halves of the array separately."""
    try:
        return ColumnValues(_convert(array, target))
    except _CAST_ERRORS:
        if len(array) == 1:
            return ColumnValues(pa.nulls(1, target), misfits=1)
    middle = len(array) // 2
    left, right = (_cast_in_halves(each, target) for each in (array[:middle], array[middle:]))
    combined = pa.concat_arrays([left.array, right.array])
    return ColumnValues(combined, left.misfits + right.misfits)


_ARRAY_ERRORS: Final = (pa.ArrowException, OverflowError, TypeError, ValueError, AttributeError)
# The Python types of each kind. Arrow would accept other types, too, but change their meaning.
_PYTHON_TYPES: Final[Mapping[ColumnValueKind, frozenset[type]]] = {
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "unsigned": frozenset({int}),
    "float": frozenset({float, int}),
    "decimal": frozenset({decimal.Decimal, int}),
    "date": frozenset({date}),
    "time": frozenset({time}),
    "timestamp": frozenset({datetime}),
    "duration": frozenset({timedelta}),
    "text": frozenset({str}),
    "bytes": frozenset({bytes}),
}


def arrays_from_records(
    records: Sequence[Mapping[str, Any]], types: Mapping[str, DataType]
) -> dict[str, pa.Array]:
    """Convert records to columns of these types; values may have any type."""
    return {
        name: array_from_values([record.get(name) for record in records], type)
        for name, type in types.items()
    }


def array_from_values(values: Sequence[Any], type: DataType) -> pa.Array:
    """Values as an array of a type, or as a mixed array if some values have other types."""
    match type:
        case Struct(members) if members:
            return _nested_array(values, Mapping, partial(_struct_array, members=members))
        case Array():
            return _nested_array(values, list, _list_array)
        case Map():
            return _nested_array(values, Mapping, _list_array)
        case _:
            return _scalar_array(values, ProfiledColumn("", ("",), type))


def _nested_array(
    values: Sequence[Any], kind: type, build: Callable[[Sequence[Any]], pa.Array]
) -> pa.Array:
    matching = [value if isinstance(value, kind) else None for value in values]
    array = build(matching)
    is_misfit = [value is not each or None for value, each in zip(values, matching, strict=True)]
    return mixed_array([array, pa.array(is_misfit, pa.bool_())]) if any(is_misfit) else array


def _struct_array(
    values: Sequence[Mapping[str, Any] | None], members: Iterable[Member]
) -> pa.Array:
    children = {
        member.name: array_from_values(
            [None if each is None else each.get(member.name) for each in values], member.type
        )
        for member in members
    }
    missing = pa.array([each is None for each in values], pa.bool_())
    return pa.StructArray.from_arrays([*children.values()], [*children], mask=missing)


def _list_array(values: Sequence[list[Any] | Mapping[str, Any] | None]) -> pa.Array:
    """Lists of flags, because only the presence of elements is measured."""
    elements = (each.values() if isinstance(each, Mapping) else each for each in values)
    present = [
        None if each is None else [None if element is None else True for element in each]
        for each in elements
    ]
    return pa.array(present, pa.list_(pa.bool_()))


def _scalar_array(values: Sequence[Any], leaf: ProfiledColumn) -> pa.Array:
    if leaf.kind == "opaque":
        return pa.array([None if value is None else True for value in values], pa.bool_())
    if leaf.kind == "bytes":
        # Other formats store UUIDs as bytes.
        values = [each.bytes if isinstance(each, uuid.UUID) else each for each in values]
    kinds = {*map(type, values)} - {NoneType}
    if leaf.kind == "text" and kinds != {str}:
        return _text_array(values)
    expected = _PYTHON_TYPES[leaf.kind]
    if kinds <= expected:
        try:
            return pa.array(values, arrow_type(leaf))
        except _ARRAY_ERRORS:
            pass
    # Sort the expected type first: of decimals without precision, only the first part is used.
    ordered = sorted(kinds, key=lambda kind: kind not in expected or kind is int)
    return mixed_array([_array_of_type(values, each) for each in ordered])


def _array_of_type(values: Sequence[Any], python_type: type) -> pa.Array:
    """The values of one Python type as an Arrow array."""
    matching: list[Any] = [value if type(value) is python_type else None for value in values]
    if python_type in (list, dict):
        return _list_array(matching)
    try:
        return pa.array(matching)
    except _ARRAY_ERRORS:
        return _text_array(matching)


def _text_array(values: Iterable[Any]) -> pa.Array:
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        # JSON may contain lone surrogates, which cannot be encoded.
        return value and value.encode("utf-8", "replace").decode()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool | int | float | list | dict):
        return json.dumps(value, default=str)
    return str(value)
