"""Proposed schemas: which types are ambiguous, and what the current schema adds to a proposal.

A plain `integer` of JSON Schema reads as INT64, but may as well mean the INT32 of the dataset.
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

# Whether the proposed type (second) may mean the present one (first).
TypeAmbiguity: TypeAlias = Callable[[DataType, DataType], bool]

_SNOWFLAKE_INTEGER: Final = Decimal(38, 0)


def is_never_ambiguous(_present: DataType, _proposed: DataType) -> bool:
    """For formats that have a name for every type."""
    return False


def is_ambiguous_in_json_schema(present: DataType, proposed: DataType) -> bool:
    """Numbers, strings and timestamps of JSON Schema without the formats that Lumos writes."""
    return is_ambiguous_number(present, proposed) or _is_ambiguous_text(present, proposed)


def is_ambiguous_number(present: DataType, proposed: DataType) -> bool:
    """An integer or a number without a size."""
    if proposed == INT64:
        return _is_integer(present)
    return proposed == FLOAT64 and (present in FLOATS or isinstance(present, Decimal))


def is_ambiguous_with_sized_numbers(present: DataType, proposed: DataType) -> bool:
    """The same for columns whose numbers have a size: `format: int64`."""
    return _is_ambiguous_text(present, proposed)


def _is_ambiguous_text(present: DataType, proposed: DataType) -> bool:
    if proposed == STRING:
        return present == UUID or isinstance(present, Enum | String | Binary)
    return proposed == Timestamp("us", zoned=True) and isinstance(present, Timestamp)


def is_ambiguous_in_snowflake(present: DataType, proposed: DataType) -> bool:
    """INTEGER has no size, and UUIDs and enums are VARCHAR."""
    if proposed == _SNOWFLAKE_INTEGER:
        return _is_integer(present)
    if proposed == STRING:
        return present == UUID or isinstance(present, Enum)
    return _same_but_unit(present, proposed, "ns")


def is_ambiguous_in_postgres(present: DataType, proposed: DataType) -> bool:
    """Times without a precision."""
    return _same_but_unit(present, proposed, "us")


def is_ambiguous_in_hive(present: DataType, proposed: DataType) -> bool:
    """TIMESTAMP has a time zone in Spark, and none in Hive."""
    return proposed == Timestamp("ns") and isinstance(present, Timestamp)


def _is_integer(type: DataType) -> bool:
    return type in SIGNED or type in UNSIGNED


def _same_but_unit(present: DataType, proposed: DataType, default_unit: str) -> bool:
    match present, proposed:
        case Timestamp(_, one), Timestamp(unit, other):
            return one == other and unit == default_unit
        case Time(), Time(unit):
            return unit == default_unit
        case _:
            return False


_FACTS = ("nullable", "key", "partition", "default", "description", "tags", "nested")


class ProposalFormat(msgspec.Struct, frozen=True, kw_only=True):
    """What the format of a proposal can express.

    `ordered` if the order of fields has a meaning; `has_partitions` unless it describes single
    files, which lack the columns in their paths; `any_case` are names that match in any case.
    `is_ambiguous` returns whether a proposed type may mean the present one;
    `is_ambiguous_in_column` has functions for single columns.
    """

    ordered: bool = True
    has_partitions: bool = True
    any_case: frozenset[str] = frozenset()
    is_ambiguous: TypeAmbiguity = is_never_ambiguous
    is_ambiguous_in_column: dict[str, TypeAmbiguity] = {}


def complete_proposal(
    current: Schema, rendered: Schema, proposed: Schema, form: ProposalFormat
) -> Schema:
    """The proposed schema, completed by facts of the current one that its format cannot express.

    `rendered` is the current schema as the format would show it. Where the proposal equals it,
    nothing is meant to change, even if the format lost something.
    """
    now = {field.name: field for field in current.fields}
    rendered_fields = {field.name: field for field in rendered.fields}
    fields: dict[str, Field] = {}
    for field in _with_known_case(proposed.fields, now, form.any_case):
        known = now.get(field.name), rendered_fields.get(field.name)
        fields[field.name] = _field(*known, field, form) if known[0] and known[1] else field
    if not form.has_partitions:
        missing = (field for field in current.fields if field.partition)
        fields |= {field.name: field for field in missing if field.name not in fields}
    names = fields if form.ordered else _in_order_of(now, fields)
    return Schema(fields=tuple(fields[name] for name in names))


def _field(
    current: Field | None, rendered_fields: Field | None, proposed: Field, form: ProposalFormat
) -> Field:
    assert current is not None
    assert rendered_fields is not None
    facts = {
        name: getattr(
            current if getattr(proposed, name) == getattr(rendered_fields, name) else proposed, name
        )
        for name in _FACTS
    }
    return Field(
        name=proposed.name,
        type=_type(
            current.type, rendered_fields.type, proposed.type, _form_of(proposed.name, form)
        ),
        native_type=proposed.native_type or current.native_type,
        field_id=current.field_id if proposed.field_id is None else proposed.field_id,
        **facts,
    )


def _form_of(column: str, form: ProposalFormat) -> ProposalFormat:
    return msgspec.structs.replace(
        form, is_ambiguous=form.is_ambiguous_in_column.get(column, form.is_ambiguous)
    )


def _type(
    current: DataType, rendered_fields: DataType, proposed: DataType, form: ProposalFormat
) -> DataType:
    if proposed == rendered_fields or form.is_ambiguous(current, proposed):
        return current
    match current, rendered_fields, proposed:
        case Struct(), Struct(), Struct():
            return _struct(current, rendered_fields, proposed, form)
        case Array(), Array(), Array():
            same = proposed.element_nullable == rendered_fields.element_nullable
            return Array(
                _type(current.element, rendered_fields.element, proposed.element, form),
                element_nullable=(current if same else proposed).element_nullable,
            )
        case Map(), Map(), Map():
            same = proposed.value_nullable == rendered_fields.value_nullable
            return Map(
                _type(current.key, rendered_fields.key, proposed.key, form),
                _type(current.value, rendered_fields.value, proposed.value, form),
                value_nullable=(current if same else proposed).value_nullable,
            )
        case _:
            return proposed


def _struct(
    current: Struct, rendered_fields: Struct, proposed: Struct, form: ProposalFormat
) -> Struct:
    now = {member.name: member for member in current.members}
    seen = {member.name: member for member in rendered_fields.members}
    members: dict[str, Member] = {}
    for each in proposed.members:
        old, rendered = now.get(each.name), seen.get(each.name)
        if old is None or rendered is None:
            members[each.name] = each
            continue
        nullable = old.nullable if each.nullable == rendered.nullable else each.nullable
        type = _type(old.type, rendered.type, each.type, form)
        members[each.name] = Member(each.name, type, nullable=nullable)
    names = members if form.ordered else _in_order_of(now, members)
    return Struct(members[name] for name in names)


def _with_known_case(
    fields: Iterable[Field], known: dict[str, Field], any_case: frozenset[str]
) -> list[Field]:
    """The fields, with the dataset's spelling of names whose case does not matter."""
    folded: dict[str, list[str]] = {}
    for name in known:
        folded.setdefault(name.casefold(), []).append(name)
    result = []
    for field in fields:
        candidates = folded.get(field.name.casefold(), [])
        if field.name in any_case and field.name not in known and len(candidates) == 1:
            field = msgspec.structs.replace(field, name=candidates[0])
        result.append(field)
    return result


def _in_order_of(known: Iterable[str], names: Iterable[str]) -> list[str]:
    """The names in the known order, new ones at the end."""
    new_names = dict.fromkeys(names)
    known_names = [name for name in known if name in new_names]
    return [*known_names, *(name for name in new_names if name not in set(known_names))]


def unknown_types(schema: Schema) -> Iterator[tuple[str, str]]:
    """Path and name of every type in a schema that Lumos does not know."""
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
