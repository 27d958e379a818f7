"""Spark schemas as their JSON values (`StructType.jsonValue()`), from and to Lumos types.

| direction  | lost                                                                             |
|------------|----------------------------------------------------------------------------------|
| from Spark | CHAR's padding, collations, lengths of CHAR and VARCHAR inside arrays and maps    |
| from Spark | the fields of intervals (`day to hour`), user-defined types (their storage stays) |
| to Spark   | UINT8..UINT64 (the next signed type, DECIMAL(20,0)), FLOAT16 (FLOAT32)            |
| to Spark   | TIMESTAMP and DURATION units other than us (TIME(ns) needs Spark 4.3)              |
| to Spark   | a DECIMAL of more than 38 digits; an unbounded one is DECIMAL(38,18)              |
| to Spark   | UUID, ENUM (string), UNKNOWN, BINARY lengths (binary), STRING lengths in arrays    |
| to Spark   | UNION (a struct with a member for each option), keys, partitions, tags            |
"""

import re
from typing import Any, Final, TypeAlias

from lumos.model import types
from lumos.model.conversions.fallback_types import SIGNED_FOR, capped_decimal, member_per_option
from lumos.model.conversions.json_values import number_at, object_at, objects_at, text_at
from lumos.model.schema import Schema
from lumos.model.type_path import TOO_DEEP, TypePath

SparkType: TypeAlias = str | dict[str, Any]

_DECLARED_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_DEFAULT_KEY: Final = "CURRENT_DEFAULT"
_FIELD_ID: Final = "parquet.field.id"
_FIELD_IDS: Final = (_FIELD_ID, "delta.columnMapping.id")
_MAX_DECIMAL_DIGITS: Final = 38
_UNBOUNDED: Final = f"decimal({_MAX_DECIMAL_DIGITS},18)"
_TIME_DIGITS: Final[dict[types.Unit, int]] = {"s": 0, "ms": 3, "us": 6, "ns": 9}

_PARAMETRISED: Final = re.compile(r"(\w+)\((\d{1,9})(?:,\s*(-?\d{1,9}))?\)\Z", re.ASCII)
_DAY_TIME: Final = re.compile(r"interval (day|hour|minute|second)( to \w+)?\Z")
_YEAR_MONTH: Final = re.compile(r"interval (year|month)( to \w+)?\Z")

_NAME_BY_TYPE: Final[dict[types.DataType, str]] = {
    types.BOOLEAN: "boolean",
    types.INT8: "byte",
    types.INT16: "short",
    types.INT32: "integer",
    types.INT64: "long",
    types.FLOAT32: "float",
    types.FLOAT64: "double",
    types.STRING: "string",
    types.BINARY: "binary",
    types.DATE: "date",
    types.Timestamp("us", zoned=True): "timestamp",
    types.Timestamp("us"): "timestamp_ntz",
    types.Duration("us"): "interval day to second",
    types.INTERVAL: "interval",
    types.JSON: "variant",
    types.NULL: "void",
}
_TYPE_BY_NAME: Final[dict[str, types.DataType]] = {
    **{name: type for type, name in _NAME_BY_TYPE.items()},
    "null": types.NULL,
    "decimal": types.Decimal(10, 0),
}


def schema_from_spark(value: dict[str, Any]) -> Schema:
    """The schema of a StructType's JSON value."""
    fields = []
    for field in objects_at(value, "fields"):
        name = text_at(field, "name") or ""
        type_path = TypePath.column(name)
        type = _read_field(field, type_path)
        nullable = field.get("nullable") is not False
        fields.append(
            type_path.field(name, type, nullable=nullable, native_type=_native_type(field))
        )
    return Schema(fields=tuple(fields))


def type_from_spark(value: SparkType) -> types.DataType:
    """The type of a DataType's JSON value, or UNKNOWN with its name."""
    return _read_type(value, TypePath())


def schema_to_spark(schema: Schema) -> dict[str, Any]:
    """The JSON value of a StructType, for `StructType.fromJson`."""
    return _struct(
        [
            _write_field(field.name, field.type, field.nullable, TypePath.of(field))
            for field in schema.fields
        ]
    )


def type_to_spark(type: types.DataType) -> SparkType:
    """The JSON value of the nearest Spark type."""
    return _write_type(type, TypePath())


def _native_type(field: dict[str, Any]) -> str | None:
    declared = text_at(object_at(field, "metadata"), _DECLARED_TYPE)
    return declared or text_at(field, "type") or text_at(object_at(field, "type"), "type")


def _read_field(field: dict[str, Any], type_path: TypePath) -> types.DataType:
    metadata = object_at(field, "metadata")
    ids = (number_at(metadata, key) for key in _FIELD_IDS)
    type_path.note(
        text_at(metadata, "comment"),
        default=text_at(metadata, _DEFAULT_KEY),
        field_id=next((number for number in ids if number is not None), None),
    )
    type = _read_type(field.get("type"), type_path)
    # For readers without VARCHAR, Spark stores it as STRING, with the length in the metadata.
    declared = _named_type(text_at(metadata, _DECLARED_TYPE) or "")
    return declared if type == types.STRING and isinstance(declared, types.String) else type


def _read_type(value: object, type_path: TypePath) -> types.DataType:
    for _ in range(types.MAX_DEPTH):
        if not isinstance(value, dict) or value.get("type") != "udt":
            break
        value = value.get("sqlType")
    if isinstance(value, str):
        return _named_type(value)
    if not isinstance(value, dict):
        return types.UNKNOWN
    return _read_nested(value, type_path)


def _named_type(name: str) -> types.DataType:
    if name in _TYPE_BY_NAME:
        return _TYPE_BY_NAME[name]
    if _DAY_TIME.match(name):
        return types.Duration("us")
    if _YEAR_MONTH.match(name):
        return types.INTERVAL
    if name.startswith("string collate "):
        return types.STRING
    parametrised = _PARAMETRISED.match(name)
    if parametrised is None:
        return types.Unknown(name)
    kind, number, scale = parametrised[1], int(parametrised[2]), int(parametrised[3] or 0)
    match kind:
        case "decimal" if number:
            return types.Decimal(number, scale)
        case "char" | "varchar" if number:
            return types.String(number)
        case "time":
            return types.Time(_unit(number))
        case "timestamp_ntz" | "timestamp_ltz":
            return types.Timestamp(_unit(number), zoned=kind == "timestamp_ltz")
        case _:
            return types.Unknown(name)


def _unit(digits: int) -> types.Unit:
    return next((unit for unit, max_digits in _TIME_DIGITS.items() if digits <= max_digits), "ns")


def _read_nested(value: dict[str, Any], type_path: TypePath) -> types.DataType:
    if type_path.is_deepest:
        return TOO_DEEP
    match value.get("type"):
        case "array":
            nullable = value.get("containsNull") is not False
            element = _read_type(value.get("elementType"), type_path.element())
            return types.Array(element, element_nullable=nullable)
        case "map":
            nullable = value.get("valueContainsNull") is not False
            key = _read_type(value.get("keyType"), type_path.key())
            return types.Map(
                key, _read_type(value.get("valueType"), type_path.value()), value_nullable=nullable
            )
        case "struct":
            members = []
            for field in objects_at(value, "fields"):
                name = text_at(field, "name") or ""
                type = _read_field(field, type_path.member(name))
                members.append(
                    types.Member(name, type, nullable=field.get("nullable") is not False)
                )
            return types.Struct(members)
        case str(kind):
            return types.Unknown(kind)
        case _:
            return types.UNKNOWN


def _struct(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": fields}


def _write_field(
    name: str, type: types.DataType, nullable: bool, type_path: TypePath
) -> dict[str, Any]:
    details = type_path.details
    length = type.length if isinstance(type, types.String) else None
    metadata = {
        "comment": details.description,
        _DEFAULT_KEY: details.default,
        _FIELD_ID: details.field_id,
        _DECLARED_TYPE: f"varchar({length})" if length else None,
    }
    set_values = {key: value for key, value in metadata.items() if value is not None}
    return {
        "name": name,
        "type": _write_type(type, type_path),
        "nullable": nullable,
        "metadata": set_values,
    }


def _write_type(type: types.DataType, type_path: TypePath) -> SparkType:
    type = SIGNED_FOR.get(type, type)
    if type in _NAME_BY_TYPE:
        return _NAME_BY_TYPE[type]
    match type:
        case types.Decimal(None):
            return _UNBOUNDED
        case types.Decimal(int(precision), scale):
            capped = capped_decimal(precision, scale, max_digits=_MAX_DECIMAL_DIGITS)
            return f"decimal({capped.precision},{capped.scale})"
        case types.Timestamp(_, zoned):
            return "timestamp" if zoned else "timestamp_ntz"
        case types.Time(unit):
            return f"time({_TIME_DIGITS[unit]})"
        case types.Duration():
            return "interval day to second"
        case types.Binary() | types.Unknown():
            return "binary"
        case types.String() | types.Enum():
            return "string"
        case types.Array(element, nullable):
            items = _write_type(element, type_path.element())
            return {"type": "array", "elementType": items, "containsNull": nullable}
        case types.Map(key, value, nullable):
            return {
                "type": "map",
                "keyType": _write_type(key, type_path.key()),
                "valueType": _write_type(value, type_path.value()),
                "valueContainsNull": nullable,
            }
        case types.Struct(members):
            fields = []
            for each in members:
                inner = type_path.member(each.name)
                fields.append(_write_field(each.name, each.type, each.nullable, inner))
            return _struct(fields)
        case types.Union():
            return _write_type(member_per_option(type), type_path)
        case _:
            return "float" if type == types.FLOAT16 else "string"
