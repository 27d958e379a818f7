"""Encodes schemas as columns of OpenMetadata, and decodes them.

OpenMetadata stores the displayed type in lower case, so a type is read from that text and from the
nested columns, whose names are exact.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from lumos.catalogs.openmetadata.labels import read_labels
from lumos.catalogs.openmetadata.names import decode_name, encode_name, shorten_name, without_nul
from lumos.errors import LumosError
from lumos.model.conversions.sql_types import Dialect, type_from_sql
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import nested_parts
from lumos.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    INTERVAL,
    JSON,
    NULL,
    STRING,
    UUID,
    Array,
    Binary,
    DataType,
    Decimal,
    Map,
    Member,
    String,
    Struct,
    Time,
    Timestamp,
    Union,
    Unknown,
    kind_of,
    parse_type,
    quoted_name,
)

Column = dict[str, Any]
"""A column in OpenMetadata's JSON, without empty keys."""

_OPENMETADATA_TYPES: Final = {
    "BOOLEAN": "BOOLEAN", "INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INT", "INT64": "BIGINT",
    "UINT8": "SMALLINT", "UINT16": "INT", "UINT32": "BIGINT", "UINT64": "NUMERIC",
    "FLOAT16": "FLOAT", "FLOAT32": "FLOAT", "FLOAT64": "DOUBLE", "DATE": "DATE", "TIME": "TIME",
    "TIMESTAMP": "TIMESTAMP", "TIMESTAMPTZ": "TIMESTAMPZ", "DURATION": "INTERVAL",
    "INTERVAL": "INTERVAL", "UUID": "UUID", "JSON": "JSON", "NULL": "NULL", "DECIMAL": "DECIMAL",
    "ENUM": "ENUM", "ARRAY": "ARRAY", "MAP": "MAP", "STRUCT": "STRUCT", "UNION": "UNION",
    "UNKNOWN": "UNKNOWN",
}  # fmt: skip
_LUMOS_TYPES: Final[dict[str, DataType]] = {
    "BOOLEAN": BOOLEAN, "TINYINT": INT8, "BYTEINT": INT8, "SMALLINT": INT16, "INT": INT32,
    "BIGINT": INT64, "LONG": INT64, "FLOAT": FLOAT32, "DOUBLE": FLOAT64, "NUMBER": Decimal(),
    "NUMERIC": Decimal(), "DECIMAL": Decimal(), "DATE": DATE, "TIME": Time(),
    "DATETIME": Timestamp(), "TIMESTAMP": Timestamp(), "TIMESTAMPZ": Timestamp(zoned=True),
    "INTERVAL": INTERVAL, "STRING": STRING, "TEXT": STRING, "MEDIUMTEXT": STRING, "NTEXT": STRING,
    "CLOB": STRING, "CHAR": STRING, "VARCHAR": STRING, "UUID": UUID, "JSON": JSON, "VARIANT": JSON,
    "SUPER": JSON, "NULL": NULL, "BYTES": BINARY, "BINARY": BINARY, "VARBINARY": BINARY,
    "BYTEA": BINARY, "BLOB": BINARY, "MEDIUMBLOB": BINARY, "LONGBLOB": BINARY,
}  # fmt: skip
_TEXT_TYPES: Final = frozenset({"CHAR", "VARCHAR"})
_DECIMAL_TYPES: Final = frozenset({"NUMBER", "NUMERIC", "DECIMAL"})
_STRUCT_TYPES: Final = frozenset({"STRUCT", "RECORD", "TUPLE"})
_DIALECTS: Final[tuple[Dialect, ...]] = ("postgres", "snowflake", "bigquery", "hive")
_MAX_DISPLAY_LENGTH: Final = 10_000
_MAX_INT: Final = 2**31 - 1
_KEY: Final = "PRIMARY_KEY"
_REQUIRED: Final = "NOT_NULL"
_TYPE_FIELDS: Final = ("dataType", "arrayDataType", "dataLength", "precision", "scale")


LabelWriter = Callable[[Iterable[str], Iterable[str]], list[dict[str, Any]]]


def encode_columns(schema: Schema, make_labels: LabelWriter) -> list[Column]:
    """Encode the columns of a schema, without the fields that OpenMetadata does not have."""
    key_count = sum(field.key for field in schema.fields)
    columns = []
    for field in schema.fields:
        path = quoted_name(field.name)
        annotated: dict[str, Field | NestedField] = {nested.path: nested for nested in field.nested}
        annotated[path] = field
        member = Member(field.name, field.type, nullable=field.nullable)
        column = _encode_column(member, path, annotated, make_labels)
        if field.key and key_count == 1:
            column["constraint"] = _KEY
        columns.append(column)
    return _without_duplicates(columns)


def decode_columns(columns: Iterable[Column], keys: Iterable[str] = ()) -> Schema:
    """Decode a schema; `keys` are the names of the columns of a compound key."""
    key_names = frozenset(keys)
    return Schema(fields=tuple(_decode_column(column, key_names) for column in columns))


def key_columns(schema: Schema) -> list[str]:
    """The names of the columns of a compound key."""
    names = [shorten_name(encode_name(field.name)) for field in schema.fields if field.key]
    return names if len(names) > 1 else []


def _without_duplicates(columns: list[Column]) -> list[Column]:
    """Drop columns with duplicate names, which OpenMetadata rejects."""
    return list({column["name"]: column for column in reversed(columns)}.values())[::-1]


def _find_struct(path: str, type: DataType) -> tuple[str, Struct | None]:
    """The struct whose members are the nested columns, and its path."""
    match type:
        case Struct():
            return path, type
        case Array(element, _):
            return _find_struct(f"{path}[]", element)
        case Map(_, value, _):
            return _find_struct(f"{path}{{}}", value)
        case _:
            return path, None


def _encode_column(
    member: Member,
    path: str,
    annotated: Mapping[str, Field | NestedField],
    make_labels: LabelWriter,
) -> Column:
    """Encode a column with its nested columns; `annotated` has the annotations by path."""
    annotations = annotated.get(path) or NestedField(path=path)
    column: Column = {"name": shorten_name(encode_name(member.name)), **_type_fields(member.type)}
    column["dataTypeDisplay"] = _display(member.type, annotations.native_type)
    if annotations.description is not None:
        column["description"] = without_nul(annotations.description)
    if tags := make_labels(annotations.tags, annotations.terms):
        column["tags"] = tags
    if not member.nullable:
        column["constraint"] = _REQUIRED
    struct_path, struct = _find_struct(path, member.type)
    if struct is not None and struct.members:
        column["children"] = _without_duplicates(
            [
                _encode_column(
                    each, f"{struct_path}.{quoted_name(each.name)}", annotated, make_labels
                )
                for each in struct.members
            ]
        )
    return column


def _display(type: DataType, native: str | None) -> str:
    text = native or type.text
    is_plain = text.isascii() and text.isprintable() and len(text) <= _MAX_DISPLAY_LENGTH
    return (text if is_plain else _type_fields(type)["dataType"]).lower()


@lru_cache(maxsize=4096)
def _cached_type_fields(type: DataType) -> tuple[tuple[str, Any], ...]:
    fields: dict[str, Any]
    match type:
        case String(length) if length is not None and length <= _MAX_INT:
            fields = {"dataType": "VARCHAR", "dataLength": length}
        case String(_):
            fields = {"dataType": "STRING"}
        case Binary(length) if length is not None and length <= _MAX_INT:
            fields = {"dataType": "BINARY", "dataLength": length}
        case Binary(_):
            fields = {"dataType": "BYTES"}
        case Decimal(precision, scale) if precision is not None and precision <= _MAX_INT:
            fields = {"dataType": "DECIMAL", "precision": precision}
            if abs(scale) <= _MAX_INT:
                fields["scale"] = scale
        case Array(element, _):
            fields = {"dataType": "ARRAY", "arrayDataType": _type_fields(element)["dataType"]}
        case _:
            fields = {"dataType": _OPENMETADATA_TYPES[kind_of(type)]}
    return tuple(fields.items())


def _type_fields(type: DataType) -> dict[str, Any]:
    return dict(_cached_type_fields(type))


def _decode_column(column: Column, keys: frozenset[str]) -> Field:
    type = _type(column)
    is_key = column.get("constraint") == _KEY
    name = decode_name(column["name"])
    field = Field(
        name=name,
        type=type,
        nullable=column.get("constraint") not in (_REQUIRED, _KEY),
        key=is_key or column["name"] in keys,
        **_annotations(column, type),
    )
    if not column.get("children"):
        return field
    nested_fields = list(_nested_fields(column, quoted_name(name), type))
    if nested_fields:
        order = {part.path: number for number, part in enumerate(nested_parts(field))}
        nested_fields.sort(key=lambda nested: order.get(nested.path, len(order)))
        field = msgspec.structs.replace(field, nested=tuple(nested_fields))
    return field


def _nested_fields(column: Column, path: str, type: DataType) -> Iterator[NestedField]:
    struct_path, struct = _find_struct(path, type)
    members = struct.members if struct is not None else ()
    for child, member in zip(column.get("children") or (), members, strict=False):
        member_path = f"{struct_path}.{quoted_name(member.name)}"
        nested = NestedField(path=member_path, **_annotations(child, member.type))
        if nested != NestedField(path=member_path):
            yield nested
        yield from _nested_fields(child, member_path, member.type)


def _annotations(column: Column, type: DataType) -> dict[str, Any]:
    display = column.get("dataTypeDisplay")
    labels = read_labels(column.get("tags") or ())
    is_default_display = display in (None, "", _display(type, None), column["dataType"].lower())
    return {
        "description": column.get("description"),
        "tags": labels.tags,
        "terms": labels.terms,
        "native_type": None if is_default_display else display,
    }


def _type(column: Column) -> DataType:
    display = column.get("dataTypeDisplay") or ""
    children = column.get("children") or ()
    parsed = _parse_type(display)
    stored_fields = {key: column[key] for key in _TYPE_FIELDS if column.get(key) is not None}
    if parsed is not None and _type_fields(parsed) == stored_fields:
        named = _with_member_names(parsed, children)
        if named is not None:
            return named
    try:
        return _type_of_foreign_column(column, display, children)
    except ValueError:
        # Nested deeper than types of Lumos can be; the `raw` part of the entry has the columns.
        return Unknown(display)


@lru_cache(maxsize=65_536)
def _parse_type(display: str) -> DataType | None:
    try:
        return parse_type(display)
    except (LumosError, ValueError):
        return None


def _with_member_names(type: DataType, children: Iterable[Column]) -> DataType | None:
    """Replace the lower-case names of members by those of the nested columns; None if unequal."""
    match type:
        case Struct(members):
            names = [(decode_name(child["name"]), child) for child in children]
            lower_names = [name.lower() for name, _ in names]
            if lower_names != [member.name.lower() for member in members]:
                return None
            return _struct(names)
        case Array(element, nullable):
            named = _with_member_names(element, children)
            return None if named is None else Array(named, element_nullable=nullable)
        case Map(key, value, nullable):
            named = _with_member_names(value, children)
            return None if named is None else Map(key, named, value_nullable=nullable)
        case _:
            return None if children else type


def _struct(children: Iterable[tuple[str, Column]]) -> Struct:
    return Struct(
        Member(name, _type(child), nullable=child.get("constraint") not in (_REQUIRED, _KEY))
        for name, child in children
    )


def _type_of_foreign_column(column: Column, display: str, children: Iterable[Column]) -> DataType:
    """The type of a column that Lumos did not write."""
    kind = column["dataType"]
    struct = _struct((decode_name(child["name"]), child) for child in children)
    if kind in _STRUCT_TYPES:
        return struct
    if kind == "ARRAY":
        element = column.get("arrayDataType") or "UNKNOWN"
        if element in _STRUCT_TYPES or struct.members:
            return Array(struct)
        parsed = _parse_sql_type(display, kind)
        return (
            parsed
            if isinstance(parsed, Array)
            else Array(_LUMOS_TYPES.get(element, Unknown(element.lower())))
        )
    if kind == "MAP":
        parsed = _parse_sql_type(display, kind)
        key = parsed.key if isinstance(parsed, Map) else STRING
        if struct.members:
            return Map(key, struct)
        return parsed if isinstance(parsed, Map) else Map(STRING, Unknown())
    if struct.members:
        return struct
    return _parse_sql_type(display, kind) or _sized_type(column, kind, display)


def _sized_type(column: Column, kind: str, display: str) -> DataType:
    length, precision = column.get("dataLength"), column.get("precision")
    if kind in _TEXT_TYPES and length and length > 0:
        return String(length)
    if kind in _DECIMAL_TYPES and precision and precision > 0:
        return Decimal(precision, column.get("scale") or 0)
    return _LUMOS_TYPES.get(kind) or Unknown(display or kind.lower())


@lru_cache(maxsize=16_384)
def _parse_sql_type(display: str, kind: str) -> DataType | None:
    """Parse the type in any SQL dialect, if it has the given kind in OpenMetadata."""
    for dialect in _DIALECTS:
        parsed = type_from_sql(display, dialect) if display else Unknown()
        if isinstance(parsed, Unknown | Struct | Union):
            continue
        plain = _LUMOS_TYPES.get(kind)
        if _type_fields(parsed)["dataType"] == kind or (
            plain and kind_of(plain) == kind_of(parsed)
        ):
            return parsed
    return None
