"""Arrays of a file as values of the dataset's columns: of one type, misfits apart."""

from collections.abc import Callable
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from lumos.formats.scalars import NULLS
from lumos.model.conversions.arrow import type_to_arrow
from lumos.model.types import JSON, Decimal, Timestamp
from lumos.profiles.columns import WHOLE, Leaf
from lumos.profiles.mixed_types import Mixed, parts_of

_ANY_DAY: Final = "1970-01-01"
# Digits of seconds that are finer than microseconds.
_TOO_FINE: Final = r"(\.\d{6})\d+"
_MOST: Final = 2**63 - 1
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_BYTES_OF: Final = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
# Types whose values are of a kind: those of another would be taken for what they are not.
_FAMILIES: Final[dict[str, Callable[[pa.DataType], bool]]] = {
    "boolean": pa.types.is_boolean,
    "whole": pa.types.is_integer,
    "number": lambda type: pa.types.is_floating(type) or pa.types.is_decimal(type),
    "date": pa.types.is_date,
    "timestamp": pa.types.is_timestamp,
    "time": pa.types.is_time,
    "duration": pa.types.is_duration,
}
_RELATED: Final = ({"date", "timestamp"}, {"whole", "number"})
# What no text of theirs is without.
_PATTERNS: Final = {
    "boolean": r"(?i)^(true|false|0|1)$",
    "whole": r"^-?[0-9]{1,20}$",
    "number": r"(?i)^-?(inf|infinity|nan|([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?)$",
    "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "timestamp": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "time": r"^[0-9]{2}:[0-9]{2}",
}
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


def values_of(leaf: Leaf, column: pa.Array | None, rows: int) -> Values:
    """What a file's column holds of a leaf, as the dataset has it; nulls where it holds nothing.

    A member is null wherever a struct around it is.
    """
    target = target_of(leaf)
    if column is None or pa.types.is_null(column.type):
        return Values(pa.nulls(rows, target or pa.null()))
    if isinstance(column.type, Mixed):
        parts = [values_of(leaf, each, rows) for each in parts_of(column)]
        array = pc.coalesce(*(each.array for each in parts)) if target else parts[0].array
        return Values(array, sum(each.misfits for each in parts))
    array = _plain(column)
    if leaf.names[1:]:
        if not pa.types.is_struct(array.type):
            return _of_another_type(array, target)
        member = _member(array, leaf.names[1])
        return values_of(leaf._replace(names=leaf.names[1:]), member, rows)
    misfits = 0
    if _is_text(array):
        array, misfits, _ = _in_pieces(array.cast(_BYTES_OF[array.type]), array.type)
    found = _typed(leaf, array, target)
    return found._replace(misfits=found.misfits + misfits)


def _member(structs: pa.Array, name: str) -> pa.Array | None:
    index = structs.type.get_field_index(name)
    if index < 0:
        return None
    if pa.types.is_union(structs.type.field(index).type):
        # Where such a struct is null, Arrow would end the process. Of unions nothing is measured
        # but that they are there, which a type tells that no leaf has.
        return pa.StructArray.from_arrays([structs.is_valid()], [name], mask=structs.is_null())
    return pc.struct_field(structs, [index])


def _typed(leaf: Leaf, array: pa.Array, target: pa.DataType | None) -> Values:
    if array.type == target or leaf.kind == "opaque":
        return Values(array)
    is_nested = pa.types.is_nested(array.type)
    if leaf.kind in ("list", "map"):
        is_list = is_nested and not pa.types.is_struct(array.type)
        return Values(array) if is_list else _of_another_type(array, None)
    if is_nested and leaf.type == JSON:
        # Delta's variants are written in a form of their own.
        return Values(array, opaque=True)
    if target is None:
        return Values(array)
    if is_nested or not _is_alike(array.type, target):
        return _of_another_type(array, target)
    return _cast(array, target)


def _of_another_type(array: pa.Array, target: pa.DataType | None) -> Values:
    return Values(pa.nulls(len(array), target or pa.null()), len(array) - array.null_count)


def _is_alike(type: pa.DataType, target: pa.DataType) -> bool:
    """Whether values of a type can be those of another; of anything there is a text."""
    families = {_family(type), _family(target)}
    return "text" in families or len(families) == 1 or families in _RELATED


def _family(type: pa.DataType) -> str:
    for name, is_one in _FAMILIES.items():
        if is_one(type):
            return name
    return "text"


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
    except pa.ArrowNotImplementedError:
        return _of_another_type(array, target)
    except _NO_CAST:
        if _is_text(array):
            array = _stripped(array)
            is_moment = pa.types.is_timestamp(target) or pa.types.is_time(target)
            if is_moment and target.unit == "us":
                array = pc.replace_substring_regex(array, _TOO_FINE, r"\1")
    hopeful = _hopeful(array, target)
    found = _in_pieces(hopeful, target)
    return found._replace(misfits=found.misfits + hopeful.null_count - array.null_count)


def _hopeful(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The values without most of those that do not fit, since to find them one by one is slow."""
    if _is_text(array) and (pattern := _PATTERNS.get(_family(target))):
        fits = pc.match_substring_regex(array, pattern)
    elif pa.types.is_floating(array.type) and pa.types.is_integer(target):
        doubles = array.cast(pa.float64())
        fits = pc.equal(pc.floor(doubles), doubles)
    elif pa.types.is_timestamp(array.type) and pa.types.is_timestamp(target):
        most = _MOST // max(1, _PER_SECOND[target.unit] // _PER_SECOND[array.type.unit])
        counts = array.view(pa.int64())
        fits = pc.and_(pc.less_equal(counts, most), pc.greater_equal(counts, -most))
    else:
        return array
    return pc.if_else(fits, array, pa.scalar(None, array.type))


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
        array = array.cast(pa.timestamp(array.type.unit, tz=target.tz))
        return array.cast(options=pc.CastOptions(target, allow_time_truncate=True))
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
    # A double stands for the whole numbers around it.
    return array.cast(target, safe=not pa.types.is_floating(target) or _is_text(array))


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
