"""Completes proposed schemas with details from the current schema of the dataset.

Types in proposals may be ambiguous: for example, `integer` in a JSON Schema is read as INT64, but
may also mean the INT32 that the dataset has now.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from lumos.model.paths import ELEMENT, KEY, VALUE, child
from lumos.model.schema import Field, Schema
from lumos.model.types import (
    FLOAT64,
    FLOATS,
    INT64,
    SIGNED,
    STRING,
    UNSIGNED,
    UUID,
    Array,
    Binary,
    DataType,
    Decimal,
    Enum,
    Map,
    Member,
    String,
    Struct,
    Time,
    Timestamp,
    Union,
    Unknown,
    quoted_name,
)

# Whether a proposed type (the second argument) may mean the current type (the first).
TypeAmbiguity: TypeAlias = Callable[[DataType, DataType], bool]

_SNOWFLAKE_INTEGER: Final = Decimal(38, 0)


def is_never_ambiguous(_current: DataType, _proposed: DataType) -> bool:
    """Always false; for formats that can express every type."""
    return False


def is_ambiguous_in_json_schema(current: DataType, proposed: DataType) -> bool:
    """Whether the proposed type is a number, string or timestamp of JSON Schema."""
    return is_ambiguous_number(current, proposed) or is_ambiguous_with_sized_numbers(
        current, proposed
    )


def is_ambiguous_number(current: DataType, proposed: DataType) -> bool:
    """Whether the proposed type is a number without a size, which may mean the current number."""
    if proposed == INT64:
        return _is_integer(current)
    return proposed == FLOAT64 and (current in FLOATS or isinstance(current, Decimal))


def is_ambiguous_with_sized_numbers(current: DataType, proposed: DataType) -> bool:
    """Like `is_ambiguous_in_json_schema`, if numbers have a size, as in `format: int64`."""
    if proposed == STRING:
        return current == UUID or isinstance(current, Enum | String | Binary)
    return proposed == Timestamp("us", zoned=True) and isinstance(current, Timestamp)


def is_ambiguous_in_snowflake(current: DataType, proposed: DataType) -> bool:
    """Whether the proposed type is ambiguous in Snowflake.

    INTEGER has no size, VARCHAR is also used for UUIDs and enums, and times may have no precision.
    """
    if proposed == _SNOWFLAKE_INTEGER:
        return _is_integer(current)
    if proposed == STRING:
        return current == UUID or isinstance(current, Enum)
    return _differs_only_in_unit(current, proposed, "ns")


def is_ambiguous_in_postgres(current: DataType, proposed: DataType) -> bool:
    """Whether the proposed type is a time without a precision."""
    return _differs_only_in_unit(current, proposed, "us")


def is_ambiguous_in_hive(current: DataType, proposed: DataType) -> bool:
    """Whether the proposed type is TIMESTAMP, which has a time zone in Spark, but not in Hive."""
    return proposed == Timestamp("ns") and isinstance(current, Timestamp)


def _is_integer(type: DataType) -> bool:
    return type in SIGNED or type in UNSIGNED


def _differs_only_in_unit(current: DataType, proposed: DataType, default_unit: str) -> bool:
    match current, proposed:
        case Timestamp(_, old_zoned), Timestamp(unit, new_zoned):
            return old_zoned == new_zoned and unit == default_unit
        case Time(), Time(unit):
            return unit == default_unit
        case _:
            return False


_FIELD_PROPERTIES = ("nullable", "key", "partition", "default", "description", "tags", "nested")


class ProposalFormat(msgspec.Struct, frozen=True, kw_only=True):
    """What the format of a proposal can express.

    With `is_ordered`, the order of fields matters. `has_partitions` is false for the schemas of
    single files, which do not contain the partition columns in the path. `case_insensitive` are the
    names that are compared without case. `is_ambiguous` returns whether a proposed type may mean
    the current type; `is_ambiguous_in_column` overrides it for single columns.
    """

    is_ordered: bool = True
    has_partitions: bool = True
    case_insensitive: frozenset[str] = frozenset()
    is_ambiguous: TypeAmbiguity = is_never_ambiguous
    is_ambiguous_in_column: dict[str, TypeAmbiguity] = {}


def complete_proposal(
    current: Schema, rendered: Schema, proposed: Schema, format: ProposalFormat
) -> Schema:
    """Add the details of the current schema that the format of a proposal cannot express.

    `rendered` is the current schema, converted to the format and back, which may lose details.
    Where the proposal is equal to `rendered`, nothing is meant to change, so the current schema is
    used.
    """
    current_fields = {field.name: field for field in current.fields}
    rendered_fields = {field.name: field for field in rendered.fields}
    fields: dict[str, Field] = {}
    for field in _with_current_case(proposed.fields, current_fields, format.case_insensitive):
        fields[field.name] = field
        if field.name in current_fields and field.name in rendered_fields:
            pair = current_fields[field.name], rendered_fields[field.name]
            fields[field.name] = _field(*pair, field, format)
    if not format.has_partitions:
        missing = (field for field in current.fields if field.partition)
        fields |= {field.name: field for field in missing if field.name not in fields}
    names = fields if format.is_ordered else _sort_names(current_fields, fields)
    return Schema(fields=tuple(fields[name] for name in names))


def _field(current: Field, rendered: Field, proposed: Field, format: ProposalFormat) -> Field:
    properties = {
        name: getattr(
            current if getattr(proposed, name) == getattr(rendered, name) else proposed, name
        )
        for name in _FIELD_PROPERTIES
    }
    column_format = msgspec.structs.replace(
        format, is_ambiguous=format.is_ambiguous_in_column.get(proposed.name, format.is_ambiguous)
    )
    return Field(
        name=proposed.name,
        type=_type(current.type, rendered.type, proposed.type, column_format),
        native_type=proposed.native_type or current.native_type,
        field_id=current.field_id if proposed.field_id is None else proposed.field_id,
        **properties,
    )


def _type(
    current: DataType, rendered: DataType, proposed: DataType, format: ProposalFormat
) -> DataType:
    if proposed == rendered or format.is_ambiguous(current, proposed):
        return current
    match current, rendered, proposed:
        case Struct(), Struct(), Struct():
            return _struct(current, rendered, proposed, format)
        case Array(), Array(), Array():
            is_same = proposed.element_nullable == rendered.element_nullable
            return Array(
                _type(current.element, rendered.element, proposed.element, format),
                element_nullable=(current if is_same else proposed).element_nullable,
            )
        case Map(), Map(), Map():
            is_same = proposed.value_nullable == rendered.value_nullable
            return Map(
                _type(current.key, rendered.key, proposed.key, format),
                _type(current.value, rendered.value, proposed.value, format),
                value_nullable=(current if is_same else proposed).value_nullable,
            )
        case _:
            return proposed


def _struct(current: Struct, rendered: Struct, proposed: Struct, format: ProposalFormat) -> Struct:
    current_members = {member.name: member for member in current.members}
    rendered_members = {member.name: member for member in rendered.members}
    members: dict[str, Member] = {}
    for each in proposed.members:
        current_member, rendered_member = (
            current_members.get(each.name),
            rendered_members.get(each.name),
        )
        if current_member is None or rendered_member is None:
            members[each.name] = each
            continue
        nullable = (
            current_member.nullable if each.nullable == rendered_member.nullable else each.nullable
        )
        type = _type(current_member.type, rendered_member.type, each.type, format)
        members[each.name] = Member(each.name, type, nullable=nullable)
    names = members if format.is_ordered else _sort_names(current_members, members)
    return Struct(members[name] for name in names)


def _with_current_case(
    fields: Iterable[Field], current: dict[str, Field], case_insensitive: frozenset[str]
) -> list[Field]:
    """The fields; case-insensitive names are spelled as in the dataset."""
    folded: dict[str, list[str]] = {}
    for name in current:
        folded.setdefault(name.casefold(), []).append(name)
    result = []
    for field in fields:
        candidates = folded.get(field.name.casefold(), [])
        if field.name in case_insensitive and field.name not in current and len(candidates) == 1:
            field = msgspec.structs.replace(field, name=candidates[0])
        result.append(field)
    return result


def _sort_names(order: Iterable[str], names: Iterable[str]) -> list[str]:
    """Sort names in the given order; names that are not in it come last."""
    new_names = dict.fromkeys(names)
    ordered = [name for name in order if name in new_names]
    return [*ordered, *(name for name in new_names if name not in set(ordered))]


def unknown_types(schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield the path and name of each unknown type in a schema."""
    for field in schema.fields:
        yield from _unknown(field.type, quoted_name(field.name))


def _unknown(type: DataType, path: str) -> Iterator[tuple[str, str]]:
    match type:
        case Unknown(name):
            yield path, name
        case Struct(members):
            for member in members:
                yield from _unknown(member.type, child(path, member.name))
        case Array(element):
            yield from _unknown(element, path + ELEMENT)
        case Map(key, value):
            yield from _unknown(key, path + KEY)
            yield from _unknown(value, path + VALUE)
        case Union(options):
            for number, option in enumerate(options):
                yield from _unknown(option, f"{path}<{number}>")
