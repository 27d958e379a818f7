"""Schemas and the columns of OpenMetadata.

OpenMetadata keeps the text that it shows for a type in lower case, so a type is read from that text
and from the columns inside it, whose names are exact.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.openmetadata.names import meant, shortened, spelled
from lumos.catalogs.openmetadata.texts import shown_text
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
"""A column as OpenMetadata's JSON, with only those keys that say something."""

_TYPES: Final = {
    "BOOLEAN": "BOOLEAN", "INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INT", "INT64": "BIGINT",
    "UINT8": "SMALLINT", "UINT16": "INT", "UINT32": "BIGINT", "UINT64": "NUMERIC",
    "FLOAT16": "FLOAT", "FLOAT32": "FLOAT", "FLOAT64": "DOUBLE", "DATE": "DATE", "TIME": "TIME",
    "TIMESTAMP": "TIMESTAMP", "TIMESTAMPTZ": "TIMESTAMPZ", "DURATION": "INTERVAL",
    "INTERVAL": "INTERVAL", "UUID": "UUID", "JSON": "JSON", "NULL": "NULL", "DECIMAL": "DECIMAL",
    "ENUM": "ENUM", "ARRAY": "ARRAY", "MAP": "MAP", "STRUCT": "STRUCT", "UNION": "UNION",
    "UNKNOWN": "UNKNOWN",
}  # fmt: skip
_PLAIN: Final[dict[str, DataType]] = {
    "BOOLEAN": BOOLEAN, "TINYINT": INT8, "BYTEINT": INT8, "SMALLINT": INT16, "INT": INT32,
    "BIGINT": INT64, "LONG": INT64, "FLOAT": FLOAT32, "DOUBLE": FLOAT64, "NUMBER": Decimal(),
    "NUMERIC": Decimal(), "DECIMAL": Decimal(), "DATE": DATE, "TIME": Time(),
    "DATETIME": Timestamp(), "TIMESTAMP": Timestamp(), "TIMESTAMPZ": Timestamp(zoned=True),
    "INTERVAL": INTERVAL, "STRING": STRING, "TEXT": STRING, "MEDIUMTEXT": STRING, "NTEXT": STRING,
    "CLOB": STRING, "CHAR": STRING, "VARCHAR": STRING, "UUID": UUID, "JSON": JSON, "VARIANT": JSON,
    "SUPER": JSON, "NULL": NULL, "BYTES": BINARY, "BINARY": BINARY, "VARBINARY": BINARY,
    "BYTEA": BINARY, "BLOB": BINARY, "MEDIUMBLOB": BINARY, "LONGBLOB": BINARY,
}  # fmt: skip
_SIZED: Final = frozenset({"CHAR", "VARCHAR"})
_EXACT_NUMBERS: Final = frozenset({"NUMBER", "NUMERIC", "DECIMAL"})
_HOLDING: Final = frozenset({"STRUCT", "RECORD", "TUPLE"})
_DIALECTS: Final[tuple[Dialect, ...]] = ("postgres", "snowflake", "bigquery", "hive")
_LONGEST_DISPLAY: Final = 10_000
_LARGEST: Final = 2**31 - 1
_KEY: Final = "PRIMARY_KEY"
_REQUIRED: Final = "NOT_NULL"
_FACTS: Final = ("dataType", "arrayDataType", "dataLength", "precision", "scale")


class ColumnAnnotations(NamedTuple):
    """Labels of a column or a dataset, by their names in Lumos."""

    tags: tuple[str, ...]
    terms: tuple[str, ...]


Labelling = Callable[[Iterable[str], Iterable[str]], list[dict[str, Any]]]
Reading = Callable[[Iterable[Mapping[str, Any]]], ColumnAnnotations]


def written(schema: Schema, labels: Labelling) -> list[Column]:
    """The columns of a schema; what OpenMetadata has no place for is left out."""
    keys = sum(field.key for field in schema.fields)
    columns = [_column(field, labels, is_only_key=keys == 1) for field in schema.fields]
    return _distinct(columns)


def read(columns: Iterable[Column], said: Reading, keys: Iterable[str] = ()) -> Schema:
    """The schema that columns show; `keys` are names of columns that are a key together."""
    known = frozenset(keys)
    return Schema(fields=tuple(_field(column, said, known) for column in columns))


def key_columns(schema: Schema) -> list[str]:
    """The names of the columns that are a key together, if several are."""
    names = [shortened(spelled(field.name)) for field in schema.fields if field.key]
    return names if len(names) > 1 else []


def _distinct(columns: list[Column]) -> list[Column]:
    """The columns without those whose names come again, which OpenMetadata refuses."""
    return list({column["name"]: column for column in reversed(columns)}.values())[::-1]


def _column(field: Field, labels: Labelling, *, is_only_key: bool) -> Column:
    notes = {note.path: note for note in field.nested}
    column = _part(field.name, field.type, field.nullable, field, labels)
    if field.key and is_only_key:
        column["constraint"] = _KEY
    _fill(column, quoted_name(field.name), field.type, notes, labels)
    return column


def _fill(
    column: Column, path: str, type: DataType, notes: Mapping[str, NestedField], labels: Labelling
) -> None:
    """Gives a column those that are inside it."""
    place, struct = _struct_in(path, type)
    if struct is None:
        return
    children = []
    for member in struct.members:
        below = f"{place}.{quoted_name(member.name)}"
        note = notes.get(below) or NestedField(path=below)
        child = _part(member.name, member.type, member.nullable, note, labels)
        _fill(child, below, member.type, notes, labels)
        children.append(child)
    if children:
        column["children"] = _distinct(children)


def _struct_in(path: str, type: DataType) -> tuple[str, Struct | None]:
    """The struct whose members are the columns inside one, and the path to it."""
    match type:
        case Struct():
            return path, type
        case Array(element, _):
            return _struct_in(f"{path}[]", element)
        case Map(_, value, _):
            return _struct_in(f"{path}{{}}", value)
        case _:
            return path, None


def _part(
    name: str, type: DataType, nullable: bool, said: Field | NestedField, labels: Labelling
) -> Column:
    column: Column = {"name": shortened(spelled(name)), **_facts(type)}
    column["dataTypeDisplay"] = _display(type, said.native_type)
    if said.description is not None:
        column["description"] = shown_text(said.description)
    if tags := labels(said.tags, said.terms):
        column["tags"] = tags
    if not nullable:
        column["constraint"] = _REQUIRED
    return column


def _display(type: DataType, native: str | None) -> str:
    text = native or type.text
    is_plain = text.isascii() and text.isprintable() and len(text) <= _LONGEST_DISPLAY
    return (text if is_plain else _facts(type)["dataType"]).lower()


@lru_cache(maxsize=4096)
def _known_facts(type: DataType) -> tuple[tuple[str, Any], ...]:
    facts: dict[str, Any]
    match type:
        case String(length) if length is not None and length <= _LARGEST:
            facts = {"dataType": "VARCHAR", "dataLength": length}
        case String(_):
            facts = {"dataType": "STRING"}
        case Binary(length) if length is not None and length <= _LARGEST:
            facts = {"dataType": "BINARY", "dataLength": length}
        case Binary(_):
            facts = {"dataType": "BYTES"}
        case Decimal(precision, scale) if precision is not None and precision <= _LARGEST:
            facts = {"dataType": "DECIMAL", "precision": precision}
            if abs(scale) <= _LARGEST:
                facts["scale"] = scale
        case Array(element, _):
            facts = {"dataType": "ARRAY", "arrayDataType": _facts(element)["dataType"]}
        case _:
            facts = {"dataType": _TYPES[kind_of(type)]}
    return tuple(facts.items())


def _facts(type: DataType) -> dict[str, Any]:
    return dict(_known_facts(type))


def _field(column: Column, said: Reading, keys: frozenset[str]) -> Field:
    type = _type(column)
    is_key = column.get("constraint") == _KEY
    name = meant(column["name"])
    field = Field(
        name=name,
        type=type,
        nullable=column.get("constraint") not in (_REQUIRED, _KEY),
        key=is_key or column["name"] in keys,
        **_words(column, type, said),
    )
    if not column.get("children"):
        return field
    notes = list(_notes(column, quoted_name(name), type, said))
    if notes:
        order = {part.path: number for number, part in enumerate(nested_parts(field))}
        notes.sort(key=lambda note: order.get(note.path, len(order)))
        field = msgspec.structs.replace(field, nested=tuple(notes))
    return field


def _notes(column: Column, path: str, type: DataType, said: Reading) -> Iterator[NestedField]:
    place, struct = _struct_in(path, type)
    members = struct.members if struct is not None else ()
    for child, member in zip(column.get("children") or (), members, strict=False):
        below = f"{place}.{quoted_name(member.name)}"
        note = NestedField(path=below, **_words(child, member.type, said))
        if note != NestedField(path=below):
            yield note
        yield from _notes(child, below, member.type, said)


def _words(column: Column, type: DataType, said: Reading) -> dict[str, Any]:
    display = column.get("dataTypeDisplay")
    labels = said(column.get("tags") or ())
    is_ours = display in (None, "", _display(type, None), column["dataType"].lower())
    return {
        "description": column.get("description"),
        "tags": labels.tags,
        "terms": labels.terms,
        "native_type": None if is_ours else display,
    }


def _type(column: Column) -> DataType:
    display = column.get("dataTypeDisplay") or ""
    children = column.get("children") or ()
    parsed = _parsed(display)
    stated = {key: column[key] for key in _FACTS if column.get(key) is not None}
    if parsed is not None and _facts(parsed) == stated:
        named = _with_names(parsed, children)
        if named is not None:
            return named
    try:
        return _reported(column, display, children)
    except ValueError:
        # Deeper than types go. The columns are carried, and nothing more is said of this one.
        return Unknown(display)


@lru_cache(maxsize=65_536)
def _parsed(display: str) -> DataType | None:
    try:
        return parse_type(display)
    except (LumosError, ValueError):
        return None


def _with_names(type: DataType, children: Iterable[Column]) -> DataType | None:
    """A type that was read from small letters, with the members that the children are."""
    match type:
        case Struct(members):
            names = [(meant(child["name"]), child) for child in children]
            small = [name.lower() for name, _ in names]
            if small != [member.name.lower() for member in members]:
                return None
            return _struct(names)
        case Array(element, nullable):
            inside = _with_names(element, children)
            return None if inside is None else Array(inside, element_nullable=nullable)
        case Map(key, value, nullable):
            inside = _with_names(value, children)
            return None if inside is None else Map(key, inside, value_nullable=nullable)
        case _:
            return None if children else type


def _struct(children: Iterable[tuple[str, Column]]) -> Struct:
    return Struct(
        Member(name, _type(child), nullable=child.get("constraint") not in (_REQUIRED, _KEY))
        for name, child in children
    )


def _reported(column: Column, display: str, children: Iterable[Column]) -> DataType:
    """The type of a column that somebody else described."""
    kind = column["dataType"]
    inside = _struct((meant(child["name"]), child) for child in children)
    if kind in _HOLDING:
        return inside
    if kind == "ARRAY":
        element = column.get("arrayDataType") or "UNKNOWN"
        if element in _HOLDING or inside.members:
            return Array(inside)
        read = _spoken(display, kind)
        return (
            read
            if isinstance(read, Array)
            else Array(_PLAIN.get(element, Unknown(element.lower())))
        )
    if kind == "MAP":
        read = _spoken(display, kind)
        key = read.key if isinstance(read, Map) else STRING
        if inside.members:
            return Map(key, inside)
        return read if isinstance(read, Map) else Map(STRING, Unknown())
    if inside.members:
        return inside
    return _spoken(display, kind) or _sized(column, kind, display)


def _sized(column: Column, kind: str, display: str) -> DataType:
    length, precision = column.get("dataLength"), column.get("precision")
    if kind in _SIZED and length and length > 0:
        return String(length)
    if kind in _EXACT_NUMBERS and precision and precision > 0:
        return Decimal(precision, column.get("scale") or 0)
    return _PLAIN.get(kind) or Unknown(display or kind.lower())


@lru_cache(maxsize=16_384)
def _spoken(display: str, kind: str) -> DataType | None:
    """The type that a text of some dialect says, if OpenMetadata files it under that kind."""
    for dialect in _DIALECTS:
        read = type_from_sql(display, dialect) if display else Unknown()
        if isinstance(read, Unknown | Struct | Union):
            continue
        plain = _PLAIN.get(kind)
        if _facts(read)["dataType"] == kind or (plain and kind_of(plain) == kind_of(read)):
            return read
    return None
