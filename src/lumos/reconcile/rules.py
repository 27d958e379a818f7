"""Rules that compare a table with its data; pure functions."""

from collections.abc import Collection
from typing import Final

from lumos.model.change import Finding
from lumos.model.conversions.sql_types import type_from_sql, type_to_sql
from lumos.model.schema import Field, Schema
from lumos.model.types import (
    BINARY,
    STRING,
    Array,
    Binary,
    DataType,
    Enum,
    Map,
    Member,
    String,
    Struct,
    Timestamp,
)
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify

# Table formats have a log, which replaces the partitions and statistics of a metastore.
LOG_FORMATS: Final = frozenset(("delta", "hudi", "iceberg"))
_FORMATS_WITH_TYPES: Final = frozenset(("avro", "orc", "parquet", *LOG_FORMATS))
# The share by which statistics may differ before they are stale.
_TOLERANCE: Final = 0.1


def schema_findings(
    table: Schema, files: Schema, *, keys: Collection[str], format: str
) -> tuple[Finding, ...]:
    """The changes that lead from the columns of a table to those of its files.

    Names are compared without case, and types as Hive writes them. Nullability and order are
    ignored, since a metastore does not have them, and so are partition columns, which files do not
    have. For JSON only names are compared, and for CSV nothing.
    """
    if format != "json" and format not in _FORMATS_WITH_TYPES:
        return ()
    names = {key.lower() for key in keys}
    with_types = format in _FORMATS_WITH_TYPES
    return classify(
        compare(
            _comparable(table, names, with_types=with_types),
            _comparable(files, names, with_types=with_types),
        ),
        format=format,
    )


def _comparable(schema: Schema, keys: Collection[str], *, with_types: bool) -> Schema:
    fields = {
        name: Field(name=name, type=comparable_type(field.type) if with_types else STRING)
        for field in schema.fields
        if (name := field.name.lower()) not in keys and not field.partition
    }
    return Schema(fields=tuple(fields[name] for name in sorted(fields)))


def comparable_type(type: DataType) -> DataType:
    """The nearest type that Hive has."""
    match type:
        case Timestamp():
            return Timestamp("ns")
        case String() | Enum():
            return STRING
        case Binary():
            return BINARY
        case Array(element):
            return Array(comparable_type(element))
        case Map(key, value):
            return Map(comparable_type(key), comparable_type(value))
        case Struct(members):
            return Struct(
                Member(member.name.lower(), comparable_type(member.type)) for member in members
            )
        case _:
            return type_from_sql(type_to_sql(type, "hive"), "hive")


def is_same_format(declared: str, actual: Collection[str]) -> bool:
    """Whether files have the format that their table declares; text tables accept any format."""
    return not declared or not actual or declared in actual or declared in ("text", "sequencefile")


def is_stale(registered: int | None, measured: int | None) -> bool:
    """Whether a number of the metastore differs too much from the measured number."""
    if registered is None or measured is None:
        return False
    return abs(registered - measured) > _TOLERANCE * max(registered, measured)
