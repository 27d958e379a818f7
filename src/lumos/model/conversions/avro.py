"""Avro schemas as JSON values, from and to Lumos types.

| direction | lost                                                                               |
|-----------|------------------------------------------------------------------------------------|
| from Avro | aliases, sort orders, enum defaults, the names of records, enums and fixed types    |
| from Avro | unknown logical types (their base type)                                             |
| to Avro   | INT8, INT16, UINT8, UINT16 (int), UINT32 (long), UINT64 (decimal), FLOAT16 (float)   |
| to Avro   | TIME(s), TIMESTAMP(s) (millis), TIME(ns) (micros), DURATION (long), JSON (string)    |
| to Avro   | an ENUM whose symbols are not valid Avro names (string), UNKNOWN (bytes)            |
| to Avro   | union options with the Avro type of an earlier option; nesting of unions (flat)     |
| to Avro   | a DECIMAL with a scale below 0 or above its precision (a wider DECIMAL)             |
| to Avro   | keys, partitions, tags; defaults that do not fit the type                           |
Field names that Avro forbids, map keys other than strings and field ids are written as in Iceberg.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from lumos.model import types
from lumos.model.conversions.fallback_types import SIGNED_FOR, make_distinct, plain_decimal
from lumos.model.conversions.json_values import (
    default_text,
    default_value,
    number_at,
    object_at,
    objects_at,
    text_at,
    texts_at,
)
from lumos.model.schema import Field, Schema
from lumos.model.type_path import TOO_DEEP, NamedTypes, TypePath
from lumos.model.types import quoted_name

AvroSchema: TypeAlias = str | dict[str, Any] | list[Any]
# The columns of an earlier version by name: the Avro field and the column that was read from it.
KnownColumns: TypeAlias = dict[str, tuple[dict[str, Any], Field]]

_ORIGINAL_NAME: Final = "iceberg-field-name"
_VALID_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
_BITS: Final = {"int": 32, "long": 64}
_DEFAULT_VALUE_TYPES: Final[dict[str, tuple[Any, ...]]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "float": (int, float),
    "double": (int, float),
    "string": (str,),
    "array": (list,),
    "map": (dict,),
}
_PRIMITIVE: Final[dict[str, types.DataType]] = {
    "null": types.NULL,
    "boolean": types.BOOLEAN,
    "int": types.INT32,
    "long": types.INT64,
    "float": types.FLOAT32,
    "double": types.FLOAT64,
    "bytes": types.BINARY,
    "string": types.STRING,
}
_LOGICAL: Final[dict[tuple[str, str], types.DataType]] = {
    ("int", "date"): types.DATE,
    ("int", "time-millis"): types.Time("ms"),
    ("long", "time-micros"): types.Time("us"),
    ("long", "timestamp-millis"): types.Timestamp("ms", zoned=True),
    ("long", "timestamp-micros"): types.Timestamp("us", zoned=True),
    ("long", "timestamp-nanos"): types.Timestamp("ns", zoned=True),
    ("long", "local-timestamp-millis"): types.Timestamp("ms"),
    ("long", "local-timestamp-micros"): types.Timestamp("us"),
    ("long", "local-timestamp-nanos"): types.Timestamp("ns"),
    ("string", "uuid"): types.UUID,
    ("bytes", "big-decimal"): types.Decimal(),
}
_AVRO_BY_TYPE: Final[dict[types.DataType, AvroSchema]] = {
    **{type: name for name, type in _PRIMITIVE.items()},
    **{type: {"type": base, "logicalType": name} for (base, name), type in _LOGICAL.items()},
    types.INT8: "int",
    types.INT16: "int",
    types.FLOAT16: "float",
    types.Time("s"): {"type": "int", "logicalType": "time-millis"},
    types.Time("ns"): {"type": "long", "logicalType": "time-micros"},
    types.Timestamp("s"): {"type": "long", "logicalType": "local-timestamp-millis"},
    types.Timestamp("s", zoned=True): {"type": "long", "logicalType": "timestamp-millis"},
    types.JSON: "string",
}


def schema_from_avro(
    schema: AvroSchema,
    *,
    named: Iterable[AvroSchema] = (),
    known: KnownColumns | None = None,
) -> Schema:
    """Read a record as a schema, and any other type as a single column `value`.

    `named` are the types of other documents that the schema refers to, each after the types that it
    refers to itself. If versions of a schema are read with the same `known`, columns that they
    share are only read once.
    """
    reader = _Reader({} if known is None else known)
    for each in named:
        reader.type(each, "", TypePath(notes={}))
    record, _ = _unwrap(schema)
    if isinstance(record, dict) and record.get("type") in ("record", "error"):
        return Schema(fields=tuple(reader.columns(record)))
    return Schema(fields=(reader.column({"name": "value", "type": schema}, "", frozenset()),))


def type_from_avro(schema: AvroSchema) -> types.DataType:
    """The Lumos type for an Avro type; a union of null and one type becomes this type."""
    return _Reader({}).type(schema, "", TypePath())[0]


def schema_to_avro(schema: Schema, *, name: str = "Record") -> dict[str, Any]:
    """A record of that name, valid for any Avro reader."""
    members = [
        (field.name, field.type, field.nullable, TypePath.of(field)) for field in schema.fields
    ]
    return _Writer(name).record(TypePath(), members)


def type_to_avro(type: types.DataType, *, name: str = "Record") -> AvroSchema:
    """The nearest Avro type; the names of types in it consist of `name` and their path."""
    return _Writer(name).type(type, TypePath())


class _Reader:
    """Reads one schema; named types can be referenced after their definition."""

    def __init__(self, known: KnownColumns) -> None:
        self.references = NamedTypes()
        self.definitions: dict[str, tuple[dict[str, Any], str]] = {}
        self._known = known
        # The number of definitions and references of named types so far.
        self._named_types = 0

    def columns(self, record: dict[str, Any]) -> Iterator[Field]:
        name, namespace = self._define(record, "")
        for field in objects_at(record, "fields"):
            key = text_at(field, "name") or ""
            before, column = self._known.get(key, (None, None))
            # Other defaults may be equal in Python although they differ in JSON, as 1 and true.
            has_plain_default = isinstance(field.get("default"), str | None)
            if column is not None and before == field and has_plain_default:
                yield column
                continue
            named_types = self._named_types
            column = self.column(field, namespace, frozenset([name]))
            # Columns with named types are not reused: their meaning depends on other definitions.
            if self._named_types == named_types:
                self._known[key] = field, column
            else:
                self._known.pop(key, None)
            yield column

    def column(self, field: dict[str, Any], namespace: str, inside: frozenset[str]) -> Field:
        name = _field_name(field)
        type_path = TypePath(path=quoted_name(name), inside=inside, notes={})
        type, nullable = self._field_type(field, namespace, type_path)
        native = _native_type(field.get("type"))
        return type_path.field(name, type, nullable=nullable, native_type=native)

    def _field_type(
        self, field: dict[str, Any], namespace: str, type_path: TypePath
    ) -> tuple[types.DataType, bool]:
        default = default_text(field["default"]) if "default" in field else None
        type_path.note(
            text_at(field, "doc"), default=default, field_id=number_at(field, "field-id")
        )
        return self.type(field.get("type"), namespace, type_path)

    def type(
        self, schema: object, namespace: str, type_path: TypePath
    ) -> tuple[types.DataType, bool]:
        """The type, and whether null is one of its values."""
        schema, nullable = _unwrap(schema)
        if isinstance(schema, str):
            type = _PRIMITIVE.get(schema) or self._resolve_reference(schema, namespace, type_path)
        elif isinstance(schema, list):
            type = self._union(schema, namespace, type_path)
        elif isinstance(schema, dict):
            type = self._annotated(schema, namespace, type_path)
        else:
            type = types.UNKNOWN
        return type, nullable or type == types.NULL

    def _union(self, options: list[Any], namespace: str, type_path: TypePath) -> types.DataType:
        if type_path.is_deepest:
            return TOO_DEEP
        member_types = []
        for index, option in enumerate(options):
            member_types.append(self.type(option, namespace, type_path.option(index))[0])
        return types.Union(member_types)

    def _resolve_reference(self, name: str, namespace: str, type_path: TypePath) -> types.DataType:
        self._named_types += 1
        for full_name in (f"{namespace}.{name}", name):
            if full_name in self.definitions:
                replacement = self.references.replacement_for(full_name, type_path)
                return replacement or self.references.count_expansion(
                    self._annotated(*self.definitions[full_name], type_path)
                )
        return types.Unknown(name)

    def _annotated(
        self, schema: dict[str, Any], namespace: str, type_path: TypePath
    ) -> types.DataType:
        kind = schema.get("type")
        match kind:
            case "array":
                return self._array(schema, namespace, type_path)
            case "map":
                if type_path.is_deepest:
                    return TOO_DEEP
                type_path.key().note(field_id=number_at(schema, "key-id"))
                inner = type_path.value()
                inner.note(field_id=number_at(schema, "value-id"))
                value, nullable = self.type(schema.get("values"), namespace, inner)
                return types.Map(types.STRING, value, value_nullable=nullable)
            case "record" | "error":
                return self._record(schema, namespace, type_path)
            case "enum" | "fixed":
                self._define(schema, namespace)
                type_path.note(text_at(schema, "doc"))
                return (
                    types.Enum(texts_at(schema, "symbols"))
                    if kind == "enum"
                    else _fixed_type(schema)
                )
            case str():
                return _logical(kind, schema) or self._resolve_reference(kind, namespace, type_path)
            case _:
                return types.UNKNOWN

    def _array(self, schema: dict[str, Any], namespace: str, type_path: TypePath) -> types.DataType:
        if type_path.is_deepest:
            return TOO_DEEP
        entry = {
            _field_name(field): field for field in objects_at(object_at(schema, "items"), "fields")
        }
        if schema.get("logicalType") == "map" and entry.keys() == {"key", "value"}:
            key, _ = self._field_type(entry["key"], namespace, type_path.key())
            value, nullable = self._field_type(entry["value"], namespace, type_path.value())
            return types.Map(key, value, value_nullable=nullable)
        inner = type_path.element()
        inner.note(field_id=number_at(schema, "element-id"))
        element, nullable = self.type(schema.get("items"), namespace, inner)
        return types.Array(element, element_nullable=nullable)

    def _record(
        self, schema: dict[str, Any], namespace: str, type_path: TypePath
    ) -> types.DataType:
        name, namespace = self._define(schema, namespace)
        if name and name in type_path.inside:
            return types.Unknown(f"recursive:{name}")
        if type_path.is_deepest:
            return TOO_DEEP
        type_path.note(text_at(schema, "doc"))
        inner = type_path.within(name)
        members = []
        for field in objects_at(schema, "fields"):
            member = _field_name(field)
            type, nullable = self._field_type(field, namespace, inner.member(member))
            members.append(types.Member(member, type, nullable=nullable))
        return types.Struct(members)

    def _define(self, schema: dict[str, Any], namespace: str) -> tuple[str, str]:
        """Store a named type; return its full name and the namespace for the names in it."""
        self._named_types += 1
        name = text_at(schema, "name") or ""
        declared = text_at(schema, "namespace")
        inner = namespace if declared is None else declared
        if "." in name:
            inner = name.rpartition(".")[0]
        elif name and inner:
            name = f"{inner}.{name}"
        self.definitions[name] = schema, namespace
        return name, inner


def _unwrap(schema: object) -> tuple[object, bool]:
    """The schema inside `{"type": {...}}` and nullable unions, and whether it may be null."""
    if isinstance(schema, str):
        return schema, False
    nullable = False
    for _ in range(types.MAX_DEPTH):
        if isinstance(schema, list):
            others = [option for option in schema if option not in ("null", {"type": "null"})]
            nullable = nullable or len(others) < len(schema)
            if len(others) != 1:
                return others or "null", nullable
            schema = others[0]
        elif isinstance(schema, dict) and isinstance(schema.get("type"), dict | list):
            schema = schema["type"]
        else:
            return schema, nullable
    return None, nullable


def _field_name(field: dict[str, Any]) -> str:
    original = text_at(field, _ORIGINAL_NAME)
    return original if original is not None else text_at(field, "name") or ""


def _fixed_type(schema: dict[str, Any]) -> types.DataType:
    size = max(number_at(schema, "size") or 0, 0)
    match schema.get("logicalType"), size:
        case "decimal", _:
            return _decimal(schema) or types.Binary(size or None)
        case "duration", 12:
            return types.INTERVAL
        case "uuid", 16:
            return types.UUID
        case _:
            return types.Binary(size or None)


def _logical(base: str, schema: dict[str, Any]) -> types.DataType | None:
    """Apply logical attributes to a primitive type; None if the base is a named type."""
    logical = text_at(schema, "logicalType") or ""
    length = number_at(schema, "maxLength")
    if base == "bytes" and logical == "decimal":
        return _decimal(schema) or types.BINARY
    if base == "string" and logical in ("varchar", "char") and length and length > 0:
        return types.String(length)
    type = _LOGICAL.get((base, logical))
    if isinstance(type, types.Timestamp) and schema.get("adjust-to-utc") is False:
        return types.Timestamp(type.unit)
    return type or _PRIMITIVE.get(base)


def _decimal(schema: dict[str, Any]) -> types.DataType | None:
    """Return the decimal; None if its numbers are invalid, as Avro requires to ignore them."""
    precision, scale = number_at(schema, "precision"), number_at(schema, "scale") or 0
    valid = precision is not None and 0 <= scale <= precision and precision > 0
    return types.Decimal(precision, scale) if valid else None


def _native_type(schema: object) -> str | None:
    schema, _ = _unwrap(schema)
    if isinstance(schema, list):
        return "union"
    if isinstance(schema, dict):
        kind, logical = text_at(schema, "type"), text_at(schema, "logicalType")
        size = f"({number_at(schema, 'size')})" if kind == "fixed" else ""
        return f"{kind}{size} {logical or ''}".rstrip()
    return schema if isinstance(schema, str) else None


class _Writer:
    """Writes one schema, with a unique name for every named type."""

    def __init__(self, name: str) -> None:
        self.root = ".".join(_sanitise(part) for part in name.split("."))
        self.names: set[str] = set()

    def record(
        self, type_path: TypePath, members: Sequence[tuple[str, types.DataType, bool, TypePath]]
    ) -> dict[str, Any]:
        fields: list[dict[str, Any]] = []
        schema: dict[str, Any] = {"type": "record", "name": self._name(type_path), "fields": fields}
        # Elements of arrays, maps and unions have no `doc` in Avro, so it belongs to their record.
        if type_path.details.description and type_path.path.endswith(("[]", "{}", ">")):
            schema["doc"] = type_path.details.description
        names = make_distinct(_sanitise(name) for name, _, _, _ in members)
        for avro_name, (name, type, nullable, inner) in zip(names, members, strict=True):
            field = self._field(avro_name, type, nullable, inner)
            if avro_name != name:
                field[_ORIGINAL_NAME] = name
            fields.append(field)
        return schema

    def _field(
        self, name: str, type: types.DataType, nullable: bool, type_path: TypePath
    ) -> dict[str, Any]:
        details = type_path.details
        schema = self._nullable(type, nullable, type_path)
        field: dict[str, Any] = {"name": name, "type": schema}
        if details.description:
            field["doc"] = details.description
        if details.default is not None:
            _set_default(field, details.default)
        if details.field_id is not None:
            field["field-id"] = details.field_id
        return field

    def _nullable(self, type: types.DataType, nullable: bool, type_path: TypePath) -> AvroSchema:
        schema = self.type(type, type_path)
        if not nullable or schema == "null":
            return schema
        return ["null", *_branches([schema])]

    def type(self, type: types.DataType, type_path: TypePath) -> AvroSchema:
        """The nearest Avro schema."""
        type = SIGNED_FOR.get(type, type)
        if type in _AVRO_BY_TYPE:
            return _AVRO_BY_TYPE[type]
        match type:
            case types.Decimal(int(precision), scale):
                plain = plain_decimal(precision, scale)
                digits = {"precision": plain.precision, "scale": plain.scale}
                return {"type": "bytes", "logicalType": "decimal", **digits}
            case types.String(length):
                return {"type": "string", "logicalType": "varchar", "maxLength": length}
            case types.Binary(length):
                return {"type": "fixed", "name": self._name(type_path), "size": length}
            case types.Duration():
                return "long"
            case types.Enum(symbols) if not _is_plain_text(type):
                return {"type": "enum", "name": self._name(type_path), "symbols": list(symbols)}
            case types.Enum():
                return "string"
            case types.Array(element, nullable):
                inner = type_path.element()
                array = {"type": "array", "items": self._nullable(element, nullable, inner)}
                return _with_ids(array, {"element-id": inner})
            case types.Map():
                return self._map(type, type_path)
            case types.Struct(members):
                return self.record(
                    type_path,
                    [
                        (each.name, each.type, each.nullable, type_path.member(each.name))
                        for each in members
                    ],
                )
            case types.Union(options):
                schemas = []
                for index, option in enumerate(options):
                    schemas.append(self.type(option, type_path.option(index)))
                return _collapse(_branches(schemas))
            case _ if type == types.INTERVAL:
                fixed = {"type": "fixed", "name": self._name(type_path), "size": 12}
                return {**fixed, "logicalType": "duration"}
            case _:
                return "bytes"

    def _map(self, type: types.Map, type_path: TypePath) -> AvroSchema:
        if _is_plain_text(type.key):
            values = self._nullable(type.value, type.value_nullable, type_path.value())
            map: dict[str, Any] = {"type": "map", "values": values}
            return _with_ids(map, {"key-id": type_path.key(), "value-id": type_path.value()})
        entry = [
            ("key", type.key, False, type_path.key()),
            ("value", type.value, type.value_nullable, type_path.value()),
        ]
        return {"type": "array", "logicalType": "map", "items": self.record(type_path, entry)}

    def _name(self, type_path: TypePath) -> str:
        steps = re.sub(r"[^A-Za-z0-9_]+", "_", type_path.path, flags=re.ASCII).strip("_")
        name = candidate = f"{self.root}_{steps}" if steps else self.root
        number = 1
        while candidate in self.names:
            number += 1
            candidate = f"{name}_{number}"
        self.names.add(candidate)
        return candidate


def _is_plain_text(type: types.DataType) -> bool:
    """Whether Avro can only write the type as a plain string."""
    if isinstance(type, types.Enum):
        distinct_names = set(filter(_VALID_NAME.match, type.symbols))
        return not 0 < len(type.symbols) == len(distinct_names)
    return type in (types.STRING, types.JSON)


def _sanitise(name: str) -> str:
    """Replace characters that Avro forbids in names by their codes, as Iceberg does."""
    if _VALID_NAME.match(name):
        return name
    coded = "".join(
        each if re.match(r"\w", each, re.ASCII) else f"_x{ord(each):X}" for each in name
    )
    return coded if _VALID_NAME.match(coded) else f"_{coded}"


def _branches(schemas: Iterable[Any]) -> list[Any]:
    """Flatten the options of a union, and keep the first of each Avro type."""
    flat = [
        each for schema in schemas for each in (schema if isinstance(schema, list) else [schema])
    ]
    by_type: dict[str, Any] = {}
    for schema in flat:
        kind = schema.get("name") or schema["type"] if isinstance(schema, dict) else schema
        by_type.setdefault(kind, schema)
    return list(by_type.values())


def _collapse(branches: list[Any]) -> AvroSchema:
    if not branches:
        return "null"
    return branches if len(branches) > 1 else branches[0]


def _with_ids(schema: dict[str, Any], type_paths: dict[str, TypePath]) -> dict[str, Any]:
    ids = {key: type_path.details.field_id for key, type_path in type_paths.items()}
    return {**schema, **{key: number for key, number in ids.items() if number is not None}}


def _set_default(field: dict[str, Any], text: str) -> None:
    """Set a valid default; in a union, move the option that it is valid for to the front."""
    schema = field["type"]
    branches = schema if isinstance(schema, list) else [schema]
    for branch in branches:
        base = branch["type"] if isinstance(branch, dict) else branch
        value = text if base in ("string", "enum") else default_value(text)
        if _is_valid_default(value, base, branch):
            field["type"] = _collapse([branch, *(each for each in branches if each is not branch)])
            field["default"] = value
            return


def _is_valid_default(value: Any, base: str, schema: AvroSchema) -> bool:
    if base == "enum" and isinstance(schema, dict):
        return bool(value in schema["symbols"])
    if base in _BITS:
        return type(value) is int and value.bit_length() < _BITS[base]
    # Defaults of records, nested unions or bytes are not converted.
    empty_or_scalar = not value or not isinstance(value, list | dict)
    return empty_or_scalar and type(value) in _DEFAULT_VALUE_TYPES.get(base, ())
