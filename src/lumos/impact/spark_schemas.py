"""Schemas for rehearsals: as Spark has them, and as they become when what makes them changes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from lumos.impact.rules import ColumnImpact
from lumos.model.conversions.spark import schema_from_spark, schema_to_spark
from lumos.model.schema import Field, Schema
from lumos.model.types import NULL, UNKNOWN, Array, DataType, Map, Struct, Unknown


class Pair(NamedTuple):
    """A dataset as it is and as it will be."""

    present: Schema
    proposed: Schema

    @property
    def is_same(self) -> bool:
        return self.present == self.proposed


def to_stage(schema: Schema) -> dict[str, Any]:
    """Spark's schema for an empty table; a type that nobody knows goes with everything there."""
    return schema_to_spark(
        Schema(
            fields=tuple(
                Field(
                    name=field.name,
                    type=NULL if isinstance(field.type, Unknown) else field.type,
                    nullable=field.nullable or isinstance(field.type, Unknown),
                )
                for field in schema.fields
            )
        )
    )


def from_stage(schema: Mapping[str, Any]) -> Schema:
    """What Spark says of a result; what goes with everything is of no known type."""
    found = schema_from_spark(dict(schema))
    return Schema(
        fields=tuple(
            Field(
                name=field.name,
                type=UNKNOWN if field.type == NULL else field.type,
                nullable=field.nullable,
            )
            for field in found.fields
        )
    )


def is_known(type: DataType) -> bool:
    """Whether a type is known down to its last member."""
    match type:
        case Unknown():
            return False
        case Array(element):
            return is_known(element)
        case Map(key, value):
            return is_known(key) and is_known(value)
        case Struct(members):
            return all(is_known(member.type) for member in members)
        case _:
            return True


def followed(stored: Schema, before: Schema, after: Schema) -> Schema:
    """A stored schema with the differences between two results of what makes it."""
    old, new = _by_name(before.fields), _by_name(after.fields)
    known = _by_name(stored.fields)
    kept = [_changed(field, old.get(name), new.get(name)) for name, field in known.items()
            if name not in old or name in new]  # fmt: skip
    added = [field for name, field in new.items() if name not in old and name not in known]
    if list(known) != list(old):
        return Schema(fields=(*kept, *added))
    by_name = _by_name([*kept, *added])
    return Schema(fields=tuple(by_name[name] for name in new))


def reckoned(stored: Schema, columns: Iterable[ColumnImpact]) -> Schema:
    """A stored schema with what was reasoned about its columns, where Spark cannot tell."""
    fields = _by_name(stored.fields)
    for column in columns:
        name = column.name.casefold()
        if column.after is None:
            fields.pop(name, None)
            continue
        known = fields.get(name) or Field(name=column.name, type=UNKNOWN)
        nullable = known.nullable if column.after.nullable is None else column.after.nullable
        fields[name] = msgspec.structs.replace(
            known, type=column.after.type, nullable=nullable, native_type=None
        )
    return Schema(fields=tuple(fields.values()))


def _changed(field: Field, before: Field | None, after: Field | None) -> Field:
    if before is None or after is None:
        return field
    type = after.type if after.type != before.type else field.type
    nullable = after.nullable if after.nullable != before.nullable else field.nullable
    if (type, nullable) == (field.type, field.nullable):
        return field
    return msgspec.structs.replace(field, type=type, nullable=nullable, native_type=None)


def _by_name(fields: Sequence[Field]) -> dict[str, Field]:
    return {field.name.casefold(): field for field in fields}
