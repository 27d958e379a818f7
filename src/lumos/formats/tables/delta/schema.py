"""The schema of a Delta table: Spark's JSON, with what Delta notes in its metadata."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from lumos.formats.names import with_distinct_names
from lumos.formats.tables.delta.actions import Damaged, Metadata
from lumos.model.conversions.json_values import object_at, objects_at, text_at
from lumos.model.conversions.spark import schema_from_spark
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import TypePath

PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"
# What Delta says of a column beyond Spark's schema. The last value that an identity column gave
# out is data, and changes with every write.
_TOLD: Final[tuple[str, ...]] = (
    PHYSICAL_NAME,
    "delta.generationExpression",
    "delta.identity.start",
    "delta.identity.step",
    "delta.identity.allowExplicitInsert",
    "delta.invariants",
    "delta.typeChanges",
    "__COLLATIONS",
)


def schema_of(metadata: Metadata) -> Schema:
    """The table's schema; raises Damaged."""
    return _schema(metadata.schema_string or "", tuple(metadata.partition_columns or ()))


@lru_cache(maxsize=256)
def _schema(text: str, partition_columns: tuple[str, ...]) -> Schema:
    if not text:
        return Schema()
    try:
        value = msgspec.json.decode(text)
        if not isinstance(value, dict):
            raise Damaged("its schema is no JSON object")
        schema = with_distinct_names(schema_from_spark(value))
    except RecursionError:
        raise Damaged("its schema nests too deeply") from None
    except ValueError as problem:
        raise Damaged(f"its schema is no JSON: {problem}") from None
    told = dict(_told(value, None))
    partitions = _spelled(schema, partition_columns)
    return Schema(fields=tuple(_field(field, partitions, told) for field in schema.fields))


def _spelled(schema: Schema, partition_columns: Sequence[str]) -> frozenset[str]:
    """The partition columns as the schema spells them; Delta does not tell case apart."""
    names = {field.name for field in schema.fields}
    folded = {name.casefold(): name for name in names}
    return frozenset(
        name if name in names else folded.get(name.casefold(), name) for name in partition_columns
    )


def _field(field: Field, partitions: frozenset[str], told: dict[str, dict[str, str]]) -> Field:
    own = TypePath.column(field.name).path
    inside = {nested.path: nested for nested in field.nested}
    for path, properties in told.items():
        if path != own and path.startswith((f"{own}.", f"{own}[", f"{own}{{")):
            nested = inside.get(path) or NestedField(path=path)
            inside[path] = msgspec.structs.replace(nested, properties=properties)
    return msgspec.structs.replace(
        field,
        partition=field.name in partitions,
        properties=told.get(own, {}),
        nested=tuple(inside.values()),
    )


def _told(value: dict[str, Any], place: TypePath | None) -> Iterator[tuple[str, dict[str, str]]]:
    """What the metadata of each field says, by the field's path."""
    for field in objects_at(value, "fields"):
        name = text_at(field, "name") or ""
        here = TypePath.column(name) if place is None else place.member(name)
        metadata = object_at(field, "metadata")
        properties = {key: _text(metadata[key]) for key in _TOLD if key in metadata}
        if properties:
            yield here.path, properties
        yield from _inside(field.get("type"), here)


def _inside(type: object, place: TypePath) -> Iterator[tuple[str, dict[str, str]]]:
    if not isinstance(type, dict) or place.is_deepest:
        return
    match type.get("type"):
        case "struct":
            yield from _told(type, place)
        case "array":
            yield from _inside(type.get("elementType"), place.element())
        case "map":
            yield from _inside(type.get("keyType"), place.key())
            yield from _inside(type.get("valueType"), place.value())


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def logical_names(schema: Schema) -> dict[str, str]:
    """The names of columns by those under which files and partitions know them."""
    return {field.properties.get(PHYSICAL_NAME, field.name): field.name for field in schema.fields}
