"""Arrays of a file as values of the dataset's columns: of one type, misfits apart."""

from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lumos.formats.scalars import NULLS
from lumos.model.conversions.arrow import type_to_arrow
from lumos.model.types import JSON, Decimal, Timestamp
from lumos.pipeline.profiling.columns import WHOLE, Leaf

_ANY_DAY: Final = "1970-01-01"
# Digits of seconds that are finer than microseconds.
_TOO_FINE: Final = r"(\.\d{6})\d+"
# What an attempt to make one type of another may raise.
_NO_CAST: Final = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


class Values(NamedTuple):
    """The values of a column in some rows: nulls where there are none, and misfits counted.

    Of `opaque` ones no more can be said than that they are there.
    """

    array: pa.Array
    misfits: int = 0
    opaque: bool = False


def target_of(leaf: Leaf) -> pa.DataType | None:
    """The type that a leaf's values are made; nothing where they are taken as they are."""
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


def values_of(leaf: Leaf, found: pa.Array | None, rows: int) -> Values:
    """What a file holds of a leaf, as the dataset has it; all nulls where it holds nothing."""
    target = target_of(leaf)
    if found is None:
        return Values(pa.nulls(rows, target or pa.null()))
    array = _plain(found)
    if target is None or array.type == target:
        return Values(array)
    if pa.types.is_null(array.type):
        return Values(pa.nulls(rows, target))
    if pa.types.is_nested(array.type) and leaf.type == JSON:
        # Delta's variants are written in a form of their own.
        return Values(array, opaque=True)
    if pa.types.is_nested(array.type):
        return Values(pa.nulls(rows, target), misfits=rows - array.null_count)
    return _cast(array, target)


def member_of(column: pa.Array, names: tuple[str, ...]) -> pa.Array | None:
    """The member of nested structs that names lead to, null wherever one around it is."""
    for name in names:
        column = _plain(column)
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        column = pc.struct_field(column, [column.type.get_field_index(name)])
    return column


def counted(leaf: Leaf, array: pa.Array) -> pa.Array:
    """Dates and times as the whole numbers that they count; other values as they are."""
    if leaf.kind == "date":
        return array.view(pa.int32()).cast(pa.int64())
    return array.view(pa.int64()) if leaf.kind in WHOLE else array


def _plain(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array


def _cast(array: pa.Array, target: pa.DataType) -> Values:
    try:
        return Values(_converted(array, target))
    except _NO_CAST:
        if _is_text(array):
            array = _stripped(array)
            is_moment = pa.types.is_timestamp(target) or pa.types.is_time(target)
            if is_moment and target.unit == "us":
                array = pc.replace_substring_regex(array, _TOO_FINE, r"\1")
        return _in_pieces(array, target)


def _is_text(array: pa.Array) -> bool:
    return bool(pa.types.is_string(array.type) or pa.types.is_large_string(array.type))


def _stripped(texts: pa.Array) -> pa.Array:
    """Texts without spaces around them and without the sign of plus, neither of which counts."""
    texts = pc.replace_substring_regex(pc.utf8_trim_whitespace(texts), r"^\+", "")
    nulls = pc.is_in(texts, value_set=pa.array(sorted(NULLS - {""}), texts.type))
    return pc.if_else(nulls, pa.scalar(None, texts.type), texts)


def _converted(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(target):
        # A wall clock without a zone is read as UTC, as the session does.
        return array.cast(pa.timestamp(array.type.unit, tz=target.tz)).cast(target, safe=False)
    if pa.types.is_timestamp(target) and target.tz and _is_text(array):
        try:
            return array.cast(target)
        except _NO_CAST:
            # So is a text of one: Delta writes partitions like this.
            return array.cast(pa.timestamp(target.unit)).cast(target)
    if pa.types.is_time(target) and _is_text(array):
        # Arrow makes no times of texts, but moments of a day.
        day, between = (pa.scalar(text, array.type) for text in (_ANY_DAY, "T"))
        moments = pc.binary_join_element_wise(day, array, between)
        return moments.cast(pa.timestamp(target.unit)).cast(target)
    if pa.types.is_decimal(target) and pa.types.is_floating(array.type):
        return array.cast(target, safe=False)
    return array.cast(target)


def _in_pieces(array: pa.Array, target: pa.DataType) -> Values:
    """As much of an array as fits; halves are tried until only misfits are left."""
    try:
        return Values(_converted(array, target))
    except _NO_CAST:
        if len(array) == 1:
            return Values(pa.nulls(1, target), misfits=1)
    middle = len(array) // 2
    left, right = (_in_pieces(each, target) for each in (array[:middle], array[middle:]))
    joined = pa.concat_arrays([left.array, right.array])
    return Values(joined, left.misfits + right.misfits)
