"""Iceberg's types in the algebra, with field ids, comments and defaults.

`unknown` is NULL and `variant` JSON; `geometry`, `geography` and types to come are UNKNOWN by their
name.
"""

import re
from collections.abc import Collection
from typing import Any, Final, NamedTuple

import msgspec

from lumos.formats.names import with_distinct_names
from lumos.formats.tables.iceberg.metadata import broken
from lumos.model.conversions.json_values import (
    default_text,
    number_at,
    objects_at,
    text_at,
)
from lumos.model.schema import Field, Schema
from lumos.model.type_path import TOO_DEEP, TypePath
from lumos.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
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
    Struct,
    Time,
    Timestamp,
    Unknown,
)

_SIMPLE: Final[dict[str, DataType]] = {
    "boolean": BOOLEAN,
    "int": INT32,
    "long": INT64,
    "float": FLOAT32,
    "double": FLOAT64,
    "date": DATE,
    "time": Time("us"),
    "timestamp": Timestamp("us"),
    "timestamptz": Timestamp("us", zoned=True),
    "timestamp_ns": Timestamp("ns"),
    "timestamptz_ns": Timestamp("ns", zoned=True),
    "string": STRING,
    "uuid": UUID,
    "binary": BINARY,
    "unknown": NULL,
    "variant": JSON,
}
_DECIMAL: Final = re.compile(r"decimal\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)\Z", re.ASCII)
_FIXED: Final = re.compile(r"fixed\[\s*(\d{1,9})\s*\]\Z", re.ASCII)
_PARAMETRIC: Final = re.compile(r"(geometry|geography)\s*(?:\(.*\))?\Z", re.DOTALL)
# What version 3 brought; earlier readers refuse a table with one of them.
NEW_TYPES: Final = (
    "timestamp_ns", "timestamptz_ns", "unknown", "variant", "geometry", "geography",
)  # fmt: skip


class IcebergSchema(NamedTuple):
    """A schema, where each column is found by its id, and what is special in it."""

    schema: Schema
    # The path of each column and each field inside one.
    names: dict[int, str]
    # Types that version 3 or a later one brought, and whether the algebra has them.
    new_types: dict[str, bool]
    has_defaults: bool
    # Identifier fields inside a struct, which no flag of a column can tell.
    nested_keys: tuple[str, ...]


def schema_of(document: dict[str, Any], partitioned_by: Collection[int] = ()) -> IcebergSchema:
    """The schema in a metadata file; raises UnreadableFile.

    `partitioned_by` are the ids of columns whose values themselves are partitions.
    """
    reading = _Reading()
    keys = document.get("identifier-field-ids")
    key_ids = {id for id in keys if isinstance(id, int)} if isinstance(keys, list) else set()
    columns: list[Field] = []
    if not isinstance(document.get("fields"), list):
        raise broken("A schema in its metadata has no fields")
    for described in objects_at(document, "fields"):
        column = reading.column(described)
        columns.append(
            msgspec.structs.replace(
                column,
                key=column.field_id in key_ids,
                partition=column.field_id in partitioned_by,
            )
        )
    at_top = {column.field_id for column in columns}
    return IcebergSchema(
        schema=with_distinct_names(Schema(fields=tuple(columns))),
        names=reading.names,
        new_types=reading.new_types,
        has_defaults=reading.has_defaults,
        nested_keys=tuple(
            reading.names[id] for id in sorted(key_ids - at_top) if id in reading.names
        ),
    )


# The property of a column that says what rows have in it that are older than the column.
INITIAL_DEFAULT: Final = "iceberg.initial-default"


class _Reading:
    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.new_types: dict[str, bool] = {}
        self.has_defaults = False

    def column(self, described: dict[str, Any]) -> Field:
        name = text_at(described, "name") or ""
        place = TypePath.column(name)
        self._note(described, place)
        type, native = self._type(described.get("type"), place)
        field = place.field(
            name, type, nullable=described.get("required") is not True, native_type=native
        )
        initial = described.get("initial-default")
        if initial is None:
            return field
        told = {INITIAL_DEFAULT: default_text(initial) or ""}
        return msgspec.structs.replace(field, properties=told)

    def _note(self, described: dict[str, Any], place: TypePath) -> None:
        id = number_at(described, "id")
        default = described.get("write-default")
        if default is not None or described.get("initial-default") is not None:
            self.has_defaults = True
        place.note(
            text_at(described, "doc"),
            default=None if default is None else default_text(default),
            field_id=id,
        )
        if id is not None:
            self.names.setdefault(id, place.path)

    def _type(self, type: object, place: TypePath) -> tuple[DataType, str]:
        """The type, and Iceberg's own text for it."""
        if isinstance(type, str):
            return self._scalar(type)
        if not isinstance(type, dict):
            raise broken("A column in its metadata has no type")
        if place.is_deepest:
            return TOO_DEEP, "too deep"
        match text_at(type, "type"):
            case "struct":
                return self._struct(type, place)
            case "list":
                id = number_at(type, "element-id")
                element, native = self._part(type, "element", id, place.element())
                required = type.get("element-required") is True
                return Array(element, element_nullable=not required), f"list<{native}>"
            case "map":
                key, key_native = self._part(type, "key", number_at(type, "key-id"), place.key())
                id = number_at(type, "value-id")
                value, native = self._part(type, "value", id, place.value())
                required = type.get("value-required") is True
                return Map(key, value, value_nullable=not required), f"map<{key_native},{native}>"
            case other:
                return self._unknown(other or "unnamed")

    def _struct(self, type: dict[str, Any], place: TypePath) -> tuple[DataType, str]:
        members: list[Member] = []
        natives: list[str] = []
        for described in objects_at(type, "fields"):
            name = text_at(described, "name") or ""
            inner = place.member(name)
            self._note(described, inner)
            part, native = self._type(described.get("type"), inner)
            members.append(Member(name, part, nullable=described.get("required") is not True))
            natives.append(f"{name}:{native}")
        return Struct(members), f"struct<{','.join(natives)}>"

    def _part(
        self, type: dict[str, Any], name: str, id: int | None, place: TypePath
    ) -> tuple[DataType, str]:
        place.note(field_id=id)
        if id is not None:
            self.names.setdefault(id, place.path)
        return self._type(type.get(name), place)

    def _scalar(self, text: str) -> tuple[DataType, str]:
        simple = _SIMPLE.get(text)
        if simple is not None:
            if text in NEW_TYPES:
                self.new_types[text] = True
            return simple, text
        if match := _DECIMAL.match(text):
            precision, scale = int(match.group(1)), int(match.group(2))
            if precision < 1:
                raise broken("A decimal in its metadata has no digits")
            return Decimal(precision, scale), f"decimal({precision},{scale})"
        if (match := _FIXED.match(text)) and int(match.group(1)):
            return Binary(int(match.group(1))), text
        if match := _PARAMETRIC.match(text):
            return self._unknown(match.group(1), native=text)
        return self._unknown(text)

    def _unknown(self, name: str, native: str | None = None) -> tuple[DataType, str]:
        self.new_types[name] = False
        return Unknown(name), native or name


def column_names(fields: dict[int, str], ids: Collection[int]) -> str:
    """The columns of these ids in words; a dropped one by its number."""
    return ", ".join(fields.get(id, f"dropped {id}") for id in ids)


def documents_equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two schemas have the same fields and keys, whatever numbers they have."""
    parts = ("fields", "identifier-field-ids")
    return all((one.get(part) or []) == (other.get(part) or []) for part in parts)
