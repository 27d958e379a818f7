"""Arrow schemas, including those of Parquet and ORC files, from and to Lumos types.

| direction  | lost                                                                              |
|------------|-----------------------------------------------------------------------------------|
| from Arrow | dictionary and run-end encodings, 32 or 64 bit offsets, views, list sizes          |
| from Arrow | names of time zones, names of union options, `date64` (a DATE)                     |
| from Arrow | extension types other than uuid, json, bool8 and opaque (their storage type, as in |
|            | readers without the extension)                                                     |
| to Arrow   | STRING lengths, ENUM symbols (a dictionary of strings), keys, defaults, tags       |
| to Arrow   | digits of a DECIMAL beyond 76; an unbounded one is DECIMAL(76,38)                  |
| to Arrow   | NOT NULL on a NULL; a map with NULL keys has STRING keys                           |
| to Arrow   | a UNION of more than 128 options (opaque bytes, UNKNOWN when read back)            |
"""

from typing import Final

import pyarrow as pa

from lumos.model import types
from lumos.model.conversions.fallback_types import capped_decimal
from lumos.model.schema import Field, Schema
from lumos.model.type_path import TOO_DEEP, TypePath

FIELD_ID: Final = b"PARQUET:field_id"
_DESCRIPTIONS: Final = (b"comment", b"description")
_MAX_DECIMAL_DIGITS: Final = 76
_MAX_UNION_OPTIONS: Final = 128
_MAX_INT32: Final = 2**31 - 1

_ARROW_BY_TYPE: Final = {
    types.BOOLEAN: pa.bool_(),
    types.INT8: pa.int8(),
    types.INT16: pa.int16(),
    types.INT32: pa.int32(),
    types.INT64: pa.int64(),
    types.UINT8: pa.uint8(),
    types.UINT16: pa.uint16(),
    types.UINT32: pa.uint32(),
    types.UINT64: pa.uint64(),
    types.FLOAT16: pa.float16(),
    types.FLOAT32: pa.float32(),
    types.FLOAT64: pa.float64(),
    types.DATE: pa.date32(),
    types.INTERVAL: pa.month_day_nano_interval(),
    types.UUID: pa.uuid(),
    types.JSON: pa.json_(pa.string()),
    types.NULL: pa.null(),
}
_FROM_ID: Final[dict[int, types.DataType]] = {
    **{
        arrow.id: type
        for type, arrow in _ARROW_BY_TYPE.items()
        if type not in (types.UUID, types.JSON)
    },
    pa.date64().id: types.DATE,
    **dict.fromkeys((pa.string().id, pa.large_string().id, pa.string_view().id), types.STRING),
    **dict.fromkeys((pa.binary().id, pa.large_binary().id, pa.binary_view().id), types.BINARY),
}
_FROM_EXTENSION: Final[dict[str, types.DataType]] = {
    "arrow.uuid": types.UUID,
    "arrow.json": types.JSON,
    "arrow.bool8": types.BOOLEAN,
}


def schema_from_arrow(schema: pa.Schema) -> Schema:
    """The schema of an Arrow table or of a file that pyarrow opened."""
    return Schema(fields=tuple(_column(field) for field in schema))


def type_from_arrow(type: pa.DataType) -> types.DataType:
    """The Lumos type for an Arrow type, or UNKNOWN with its Arrow name."""
    return _read_type(type, TypePath())


def schema_to_arrow(schema: Schema) -> pa.Schema:
    """The Arrow schema, with field ids and descriptions as metadata."""
    return pa.schema(
        [
            _field(field.name, field.type, TypePath.of(field), nullable=field.nullable)
            for field in schema.fields
        ]
    )


def type_to_arrow(type: types.DataType) -> pa.DataType:
    """The nearest Arrow type."""
    return _write_type(type, TypePath())


def _column(field: pa.Field) -> Field:
    type_path = TypePath.column(field.name)
    type = _read_field(field, type_path)
    return type_path.field(field.name, type, nullable=field.nullable, native_type=str(field.type))


def _read_field(field: pa.Field, type_path: TypePath) -> types.DataType:
    metadata = field.metadata or {}
    description = next((metadata[key] for key in _DESCRIPTIONS if metadata.get(key)), b"")
    type_path.note(
        description.decode(errors="replace"), field_id=_parse_integer(metadata.get(FIELD_ID))
    )
    return _read_type(field.type, type_path)


def _parse_integer(text: bytes | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _read_type(type: pa.DataType, type_path: TypePath) -> types.DataType:
    type = _value_type(type)
    if type.id in _FROM_ID:
        return _FROM_ID[type.id]
    if pa.types.is_decimal(type):
        return types.Decimal(type.precision, type.scale)
    if pa.types.is_timestamp(type):
        return types.Timestamp(type.unit, zoned=type.tz is not None)
    if pa.types.is_time(type):
        return types.Time(type.unit)
    if pa.types.is_duration(type):
        return types.Duration(type.unit)
    if pa.types.is_fixed_size_binary(type):
        return types.Binary(type.byte_width or None)
    if isinstance(type, pa.BaseExtensionType):
        opaque = isinstance(type, pa.OpaqueType)
        return types.Unknown(type.type_name) if opaque else _FROM_EXTENSION[type.extension_name]
    return _read_nested(type, type_path) if pa.types.is_nested(type) else types.Unknown(str(type))


def _value_type(type: pa.DataType) -> pa.DataType:
    """The type of the values, without encodings and unknown extensions."""
    while True:
        if pa.types.is_dictionary(type) or pa.types.is_run_end_encoded(type):
            type = type.value_type
        elif (
            isinstance(type, pa.BaseExtensionType)
            and not isinstance(type, pa.OpaqueType)
            and type.extension_name not in _FROM_EXTENSION
        ):
            type = type.storage_type
        else:
            return type


def _read_nested(type: pa.DataType, type_path: TypePath) -> types.DataType:
    if type_path.is_deepest:
        return TOO_DEEP
    if pa.types.is_map(type):
        key = _read_field(type.key_field, type_path.key())
        value = _read_field(type.item_field, type_path.value())
        return types.Map(key, value, value_nullable=type.item_field.nullable)
    children = [type.field(index) for index in range(type.num_fields)]
    # Use loops: generators add stack frames, which would exceed the recursion limit at depth 100.
    if pa.types.is_struct(type):
        members = []
        for child in children:
            part = _read_field(child, type_path.member(child.name))
            members.append(types.Member(child.name, part, nullable=child.nullable))
        return types.Struct(members)
    if pa.types.is_union(type):
        options = []
        for index, child in enumerate(children):
            options.append(_read_field(child, type_path.option(index)))
        return types.Union(options)
    [element] = children
    return types.Array(_read_field(element, type_path.element()), element_nullable=element.nullable)


def _field(name: str, type: types.DataType, type_path: TypePath, *, nullable: bool) -> pa.Field:
    details = type_path.details
    metadata = {
        FIELD_ID: None if details.field_id is None else str(details.field_id),
        _DESCRIPTIONS[0]: details.description and _encodable(details.description),
    }
    set_values = {key: value for key, value in metadata.items() if value is not None}
    # A column of type null has to be nullable in Arrow.
    nullable = nullable or type == types.NULL
    return pa.field(
        _encodable(name),
        _write_type(type, type_path),
        nullable=nullable,
        metadata=set_values or None,
    )


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced, since Arrow requires UTF-8."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _write_type(type: types.DataType, type_path: TypePath) -> pa.DataType:
    match type:
        case types.Simple():
            return _ARROW_BY_TYPE[type]
        case types.Decimal(None):
            return pa.decimal256(_MAX_DECIMAL_DIGITS, _MAX_DECIMAL_DIGITS // 2)
        case types.Decimal(int(precision), scale):
            return _write_decimal(precision, scale)
        case types.String():
            return pa.string()
        case types.Binary(length):
            return pa.binary(length) if length and length <= _MAX_INT32 else pa.binary()
        case types.Time("s" | "ms" as unit):
            return pa.time32(unit)
        case types.Time(unit):
            return pa.time64(unit)
        case types.Timestamp(unit, zoned):
            return pa.timestamp(unit, tz="UTC" if zoned else None)
        case types.Duration(unit):
            return pa.duration(unit)
        case types.Enum():
            return pa.dictionary(pa.int32(), pa.string())
        case types.Unknown(name):
            return _opaque_type(name)
        case _:
            return _write_nested(type, type_path)


def _write_decimal(precision: int, scale: int) -> pa.DataType:
    if precision > _MAX_DECIMAL_DIGITS or abs(scale) > _MAX_DECIMAL_DIGITS:
        capped = capped_decimal(precision, scale, max_digits=_MAX_DECIMAL_DIGITS)
        return pa.decimal256(capped.precision, capped.scale)
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _opaque_type(name: str) -> pa.DataType:
    return pa.opaque(pa.binary(), _encodable(name), "lumos")


def _write_nested(type: types.DataType, type_path: TypePath) -> pa.DataType:
    match type:
        case types.Array(element, nullable):
            return pa.list_(_field("element", element, type_path.element(), nullable=nullable))
        case types.Map(key, value, nullable):
            key = types.STRING if key == types.NULL else key
            return pa.map_(
                _field("key", key, type_path.key(), nullable=False),
                _field("value", value, type_path.value(), nullable=nullable),
            )
        case types.Struct(members):
            return pa.struct(
                [
                    _field(
                        each.name, each.type, type_path.member(each.name), nullable=each.nullable
                    )
                    for each in members
                ]
            )
        case types.Union(options) if len(options) <= _MAX_UNION_OPTIONS:
            return pa.dense_union(
                [
                    _field(str(index), option, type_path.option(index), nullable=True)
                    for index, option in enumerate(options)
                ]
            )
        case _:
            return _opaque_type(type.text)
