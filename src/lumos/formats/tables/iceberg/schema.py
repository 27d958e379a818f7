"""Iceberg's schemas, partition specs and sort orders, and partition values as text.

The type `unknown` becomes NULL, and `variant` becomes JSON; `geometry`, `geography` and types of
later versions become UNKNOWN with their name.
"""

import base64
import decimal
import re
import uuid
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from lumos.formats.columns import with_distinct_names
from lumos.formats.tables.iceberg.metadata import TransformField, TransformSpec, broken_table
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
_GEO_TYPE: Final = re.compile(r"(geometry|geography)\s*(?:\(.*\))?\Z", re.DOTALL)
# New in version 3; earlier readers refuse tables that use them.
NEW_TYPES: Final = (
    "timestamp_ns", "timestamptz_ns", "unknown", "variant", "geometry", "geography",
)  # fmt: skip


class IcebergSchema(NamedTuple):
    """A schema with the paths of its columns by id, and its special features."""

    schema: Schema
    # The paths of columns and nested fields by id.
    paths: dict[int, str]
    # Types of version 3 and later, and whether Lumos supports them.
    new_types: dict[str, bool]
    has_defaults: bool
    # The paths of identifier fields inside of structs. Columns are marked as keys in the schema.
    nested_keys: tuple[str, ...]


def iceberg_schema(document: dict[str, Any], partitioned_by: Collection[int] = ()) -> IcebergSchema:
    """The schema in a metadata file; raises UnreadableFile.

    `partitioned_by` contains the ids of the columns by whose values the table is partitioned.
    """
    reader = _SchemaReader()
    keys = document.get("identifier-field-ids")
    key_ids = {id for id in keys if isinstance(id, int)} if isinstance(keys, list) else set()
    columns: list[Field] = []
    if not isinstance(document.get("fields"), list):
        raise broken_table("A schema in its metadata has no fields")
    for field_json in objects_at(document, "fields"):
        column = reader.column(field_json)
        columns.append(
            replace(
                column,
                key=column.field_id in key_ids,
                partition=column.field_id in partitioned_by,
            )
        )
    top_level_ids = {column.field_id for column in columns}
    return IcebergSchema(
        schema=with_distinct_names(Schema(fields=tuple(columns))),
        paths=reader.paths,
        new_types=reader.new_types,
        has_defaults=reader.has_defaults,
        nested_keys=tuple(
            reader.paths[id] for id in sorted(key_ids - top_level_ids) if id in reader.paths
        ),
    )


# The property with a column's value in rows that were written before the column was added.
INITIAL_DEFAULT: Final = "iceberg.initial-default"


class _SchemaReader:
    def __init__(self) -> None:
        self.paths: dict[int, str] = {}
        self.new_types: dict[str, bool] = {}
        self.has_defaults = False

    def column(self, field_json: dict[str, Any]) -> Field:
        name = text_at(field_json, "name") or ""
        type_path = TypePath.column(name)
        self._record_attributes(field_json, type_path)
        type, native = self._type(field_json.get("type"), type_path)
        field = type_path.field(
            name, type, nullable=field_json.get("required") is not True, native_type=native
        )
        initial = field_json.get("initial-default")
        if initial is None:
            return field
        properties = {INITIAL_DEFAULT: default_text(initial) or ""}
        return replace(field, properties=properties)

    def _record_attributes(self, field_json: dict[str, Any], type_path: TypePath) -> None:
        id = number_at(field_json, "id")
        default = field_json.get("write-default")
        if default is not None or field_json.get("initial-default") is not None:
            self.has_defaults = True
        type_path.note(
            text_at(field_json, "doc"),
            default=None if default is None else default_text(default),
            field_id=id,
        )
        if id is not None:
            self.paths.setdefault(id, type_path.path)

    def _type(self, type: object, type_path: TypePath) -> tuple[DataType, str]:
        """The type and its name in Iceberg."""
        if isinstance(type, str):
            return self._scalar(type)
        if not isinstance(type, dict):
            raise broken_table("A column in its metadata has no type")
        if type_path.is_deepest:
            return TOO_DEEP, "too deep"
        match text_at(type, "type"):
            case "struct":
                return self._struct(type, type_path)
            case "list":
                id = number_at(type, "element-id")
                element, native = self._nested_type(type, "element", id, type_path.element())
                required = type.get("element-required") is True
                return Array(element, element_nullable=not required), f"list<{native}>"
            case "map":
                key, key_native = self._nested_type(
                    type, "key", number_at(type, "key-id"), type_path.key()
                )
                id = number_at(type, "value-id")
                value, native = self._nested_type(type, "value", id, type_path.value())
                required = type.get("value-required") is True
                return Map(key, value, value_nullable=not required), f"map<{key_native},{native}>"
            case other:
                return self._unknown(other or "unnamed")

    def _struct(self, type: dict[str, Any], type_path: TypePath) -> tuple[DataType, str]:
        members: list[Member] = []
        natives: list[str] = []
        for field_json in objects_at(type, "fields"):
            name = text_at(field_json, "name") or ""
            inner = type_path.member(name)
            self._record_attributes(field_json, inner)
            part, native = self._type(field_json.get("type"), inner)
            members.append(Member(name, part, nullable=field_json.get("required") is not True))
            natives.append(f"{name}:{native}")
        return Struct(members), f"struct<{','.join(natives)}>"

    def _nested_type(
        self, type: dict[str, Any], name: str, id: int | None, type_path: TypePath
    ) -> tuple[DataType, str]:
        type_path.note(field_id=id)
        if id is not None:
            self.paths.setdefault(id, type_path.path)
        return self._type(type.get(name), type_path)

    def _scalar(self, text: str) -> tuple[DataType, str]:
        simple = _SIMPLE.get(text)
        if simple is not None:
            if text in NEW_TYPES:
                self.new_types[text] = True
            return simple, text
        if match := _DECIMAL.match(text):
            precision, scale = int(match.group(1)), int(match.group(2))
            if precision < 1:
                raise broken_table("A decimal in its metadata has no digits")
            return Decimal(precision, scale), f"decimal({precision},{scale})"
        if (match := _FIXED.match(text)) and int(match.group(1)):
            return Binary(int(match.group(1))), text
        if match := _GEO_TYPE.match(text):
            return self._unknown(match.group(1), native=text)
        return self._unknown(text)

    def _unknown(self, name: str, native: str | None = None) -> tuple[DataType, str]:
        self.new_types[name] = False
        return Unknown(name), native or name


def column_names(paths: dict[int, str], ids: Collection[int]) -> str:
    """The names of columns; dropped columns are shown with their ids."""
    return ", ".join(paths.get(id, f"dropped {id}") for id in ids)


def documents_equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two schemas have the same fields and keys, ignoring their ids."""
    parts = ("fields", "identifier-field-ids")
    return all((one.get(part) or []) == (other.get(part) or []) for part in parts)


_PERIODS: Final = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
_KNOWN_TRANSFORM: Final = re.compile(
    r"identity|void|year|month|day|hour|(?:bucket|truncate)\[\d+\]"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def partition_columns(spec: TransformSpec, columns: dict[int, str]) -> tuple[str, ...]:
    """The partitioning, such as `country`, `bucket[16](id)`, `days(ts)`."""
    return tuple(
        _transform_text(field, columns) for field in spec.fields if field.transform != "void"
    )


def sort_columns(order: TransformSpec, columns: dict[int, str]) -> tuple[str, ...]:
    """The sort order, such as `id asc nulls first`."""
    return tuple(
        " ".join(
            part
            for part in (
                _transform_text(field, columns),
                field.direction,
                (field.null_order or "").replace("-", " "),
            )
            if part
        )
        for field in order.fields
    )


def identity_columns(spec: TransformSpec) -> frozenset[int]:
    """The ids of the columns by whose values the table is partitioned."""
    return frozenset(
        id for field in spec.fields if field.transform == "identity" for id in field.sources
    )


def unknown_transforms(specs: Iterable[TransformSpec]) -> set[str]:
    """Transforms that do not exist up to version 3."""
    names = {field.transform for spec in specs for field in spec.fields}
    return {name for name in names if not _KNOWN_TRANSFORM.fullmatch(name)}


def _transform_text(field: TransformField, columns: dict[int, str]) -> str:
    names = column_names(columns, field.sources)
    if field.transform == "identity":
        return names
    return f"{_PERIODS.get(field.transform, field.transform)}({names})"


def partition_text(value: Any, transform: str, type: object) -> str | None:
    """The text of a partition value, given its raw value and its Avro type in the manifest."""
    if value is None:
        return None
    try:
        render = _RENDER_BY_TRANSFORM.get(transform) or _RENDER_BY_LOGICAL_TYPE.get(
            _logical(type), _plain
        )
        return render(value, type)
    except (ArithmeticError, TypeError, ValueError):
        # The value is not a valid date or time, but it still identifies the partition.
        return _plain(value, type)


def _logical(type: object) -> str:
    """The logical type of an Avro type."""
    if isinstance(type, list):
        type = next((option for option in type if option != "null"), None)
    if not isinstance(type, dict):
        return ""
    logical = type.get("logicalType")
    return logical if isinstance(logical, str) else _logical(type.get("type"))


def _attribute(type: object, name: str) -> Any:
    if isinstance(type, list):
        type = next((option for option in type if option != "null"), None)
    return type.get(name) if isinstance(type, dict) else None


def _day(value: int, _: object) -> str:
    return (date(1970, 1, 1) + timedelta(days=value)).isoformat()


def _timestamp(value: int, type: object, per_second: int = 1_000_000) -> str:
    seconds, rest = divmod(value, per_second)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    if rest:
        text += f".{rest:0{len(str(per_second)) - 1}}"
    return text + ("+00:00" if _attribute(type, "adjust-to-utc") is True else "")


def _decimal(value: bytes, type: object) -> str:
    sign, digits, _ = decimal.Decimal(int.from_bytes(value, "big", signed=True)).as_tuple()
    # Arithmetic would round to the precision of the decimal context.
    return format(
        decimal.Decimal((sign, digits, -min(int(_attribute(type, "scale") or 0), 1000))), "f"
    )


def _plain(value: Any, _: object) -> str:
    """The text of numbers, texts and bytes, and of typed values in Parquet manifests."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


_RENDER_BY_TRANSFORM: Final[dict[str, Callable[[Any, object], str]]] = {
    "year": lambda value, _: f"{1970 + value:04}",
    "month": lambda value, _: f"{1970 + value // 12:04}-{value % 12 + 1:02}",
    "day": _day,
    "hour": lambda value, _: (_EPOCH + timedelta(hours=value)).strftime("%Y-%m-%d-%H"),
}
_RENDER_BY_LOGICAL_TYPE: Final[dict[str, Callable[[Any, object], str]]] = {
    "date": _day,
    "time-micros": lambda value, _: (_EPOCH + timedelta(microseconds=value)).time().isoformat(),
    "timestamp-micros": _timestamp,
    "timestamp-nanos": partial(_timestamp, per_second=1_000_000_000),
    "local-timestamp-micros": _timestamp,
    "decimal": _decimal,
    "uuid": lambda value, _: str(uuid.UUID(bytes=value) if isinstance(value, bytes) else value),
}
