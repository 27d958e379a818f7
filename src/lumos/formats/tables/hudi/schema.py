"""The schema in a write's metadata: Avro JSON, with field ids where Hudi numbers its columns."""

from functools import lru_cache
from typing import Any, Final

import msgspec

from lumos.formats.interface import UnreadableFile
from lumos.formats.names import with_distinct_names
from lumos.formats.tables.hudi.properties import TableProperties
from lumos.model.conversions.avro import schema_from_avro
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import STRING

_META_COLUMNS: Final = frozenset(
    {
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        "_hoodie_operation",
    }
)


def is_record(schema: str) -> bool:
    """Whether the text declares columns; deletions by key may say `null` instead."""
    return '"record"' in schema


def schema_of(avro: str, numbered: str | None, properties: TableProperties) -> Schema:
    """The table's schema, without Hudi's own columns; raises UnreadableFile."""
    plain = _plain_schema(avro, numbered)
    key, partitions = frozenset(properties.key), properties.plain_partition_columns
    fields = [
        msgspec.structs.replace(field, key=field.name in key, partition=field.name in partitions)
        for field in plain.fields
    ]
    if properties.drops_partition_columns:
        named = {field.name for field in fields}
        fields += [
            Field(name=name, type=STRING, partition=True)
            for name in properties.partition_columns
            if name not in named
        ]
    return Schema(fields=tuple(fields))


@lru_cache(maxsize=256)
def _plain_schema(avro: str, numbered: str | None) -> Schema:
    try:
        record = msgspec.json.decode(avro)
        if numbered is not None:
            _number(record, msgspec.json.decode(numbered))
        schema = with_distinct_names(schema_from_avro(record))
    except RecursionError:
        raise UnreadableFile("broken_table", "The schema nests too deeply to be read") from None
    except ValueError as problem:
        raise UnreadableFile("broken_table", f"The schema is no JSON: {problem}") from None
    kept = (field for field in schema.fields if field.name not in _META_COLUMNS)
    return Schema(fields=tuple(_without_null_defaults(field) for field in kept))


def _without_null_defaults(field: Field) -> Field:
    """Hudi adds `default: null` to what may be null in some writes and not in others."""
    nested = []
    for each in field.nested:
        plain = msgspec.structs.replace(each, default=None) if each.default == "null" else each
        if plain != NestedField(path=each.path):
            nested.append(plain)
    default = None if field.default == "null" else field.default
    return msgspec.structs.replace(field, default=default, nested=tuple(nested))


def _number(avro: Any, numbered: Any) -> None:
    """Puts the ids and comments of a numbered type into the Avro type of the same shape."""
    if isinstance(avro, list):
        for option in avro:
            _number(option, numbered)
        return
    if not isinstance(avro, dict) or not isinstance(numbered, dict):
        return
    kind = avro.get("type")
    if isinstance(kind, dict | list):
        _number(kind, numbered)
    elif kind != numbered.get("type"):
        return
    elif kind == "record":
        _number_members(avro, numbered)
    elif kind == "array":
        avro["element-id"] = _id(numbered, "element")
        _number(avro.get("items"), numbered.get("element"))
    elif kind == "map":
        avro["key-id"], avro["value-id"] = _id(numbered, "key"), _id(numbered, "value")
        _number(avro.get("values"), numbered.get("value"))


def _number_members(avro: dict[str, Any], numbered: dict[str, Any]) -> None:
    members = {
        member.get("name"): member
        for member in numbered.get("fields") or ()
        if isinstance(member, dict) and isinstance(member.get("name"), str)
    }
    for field in avro.get("fields") or ():
        member = members.get(field.get("name")) if isinstance(field, dict) else None
        if member is not None:
            field["field-id"] = member.get("id")
            if member.get("doc"):
                field.setdefault("doc", member["doc"])
            _number(field.get("type"), member.get("type"))


def _id(numbered: dict[str, Any], part: str) -> Any:
    # Both spellings occur.
    return numbered.get(f"{part}-id", numbered.get(f"{part}_id"))
