"""What a proposed schema says about a dataset, and what its form leaves unsaid."""

from collections.abc import Iterable, Iterator

import msgspec

from lumos.model.schema import Field, Schema
from lumos.model.types import (
    Array,
    DataType,
    Map,
    Member,
    Struct,
    Union,
    Unknown,
    quoted_name,
)
from lumos.schemas.paths import ELEMENT, KEY, VALUE, child
from lumos.schemas.vague_types import Vague, nothing_is_vague

_FACTS = ("nullable", "key", "partition", "default", "description", "tags", "nested")


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """What can be said in the form that a proposal is written in.

    `ordered` if the order of fields means something; `has_partitions` unless it describes single
    files, which do not hold the columns that stand in their paths; `any_case` are names that stand
    for whatever differs from them in case only; `vague` tells whether a proposed type may mean a
    present one, and `vague_in` does for single columns.
    """

    ordered: bool = True
    has_partitions: bool = True
    any_case: frozenset[str] = frozenset()
    vague: Vague = nothing_is_vague
    vague_in: dict[str, Vague] = {}


def understood(current: Schema, rendered: Schema, proposed: Schema, form: Form) -> Schema:
    """The proposed schema with everything from the current one that its form cannot tell.

    `rendered` is the current schema as the form would show it. Where the proposal says the same,
    nothing is meant to change, whatever the form lost.
    """
    now = {field.name: field for field in current.fields}
    shown = {field.name: field for field in rendered.fields}
    fields: dict[str, Field] = {}
    for field in _spelled(proposed.fields, now, form.any_case):
        known = now.get(field.name), shown.get(field.name)
        fields[field.name] = _field(*known, field, form) if known[0] and known[1] else field
    if not form.has_partitions:
        missing = (field for field in current.fields if field.partition)
        fields |= {field.name: field for field in missing if field.name not in fields}
    names = fields if form.ordered else _in_order_of(now, fields)
    return Schema(fields=tuple(fields[name] for name in names))


def _field(current: Field | None, shown: Field | None, proposed: Field, form: Form) -> Field:
    assert current is not None
    assert shown is not None
    facts = {
        name: getattr(
            current if getattr(proposed, name) == getattr(shown, name) else proposed, name
        )
        for name in _FACTS
    }
    return Field(
        name=proposed.name,
        type=_type(current.type, shown.type, proposed.type, _form_of(proposed.name, form)),
        native_type=proposed.native_type or current.native_type,
        field_id=current.field_id if proposed.field_id is None else proposed.field_id,
        **facts,
    )


def _form_of(column: str, form: Form) -> Form:
    return msgspec.structs.replace(form, vague=form.vague_in.get(column, form.vague))


def _type(current: DataType, shown: DataType, proposed: DataType, form: Form) -> DataType:
    if proposed == shown or form.vague(current, proposed):
        return current
    match current, shown, proposed:
        case Struct(), Struct(), Struct():
            return _struct(current, shown, proposed, form)
        case Array(), Array(), Array():
            same = proposed.element_nullable == shown.element_nullable
            return Array(
                _type(current.element, shown.element, proposed.element, form),
                element_nullable=(current if same else proposed).element_nullable,
            )
        case Map(), Map(), Map():
            same = proposed.value_nullable == shown.value_nullable
            return Map(
                _type(current.key, shown.key, proposed.key, form),
                _type(current.value, shown.value, proposed.value, form),
                value_nullable=(current if same else proposed).value_nullable,
            )
        case _:
            return proposed


def _struct(current: Struct, shown: Struct, proposed: Struct, form: Form) -> Struct:
    now = {member.name: member for member in current.members}
    seen = {member.name: member for member in shown.members}
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


def _spelled(
    fields: Iterable[Field], known: dict[str, Field], any_case: frozenset[str]
) -> list[Field]:
    """The fields, called as the dataset calls them where their case means nothing."""
    folded: dict[str, list[str]] = {}
    for name in known:
        folded.setdefault(name.casefold(), []).append(name)
    spelled = []
    for field in fields:
        alike = folded.get(field.name.casefold(), [])
        if field.name in any_case and field.name not in known and len(alike) == 1:
            field = msgspec.structs.replace(field, name=alike[0])
        spelled.append(field)
    return spelled


def _in_order_of(known: Iterable[str], names: Iterable[str]) -> list[str]:
    """The names in the known order, new ones behind."""
    wanted = dict.fromkeys(names)
    familiar = [name for name in known if name in wanted]
    return [*familiar, *(name for name in wanted if name not in set(familiar))]


def repeated_name(schema: Schema) -> str | None:
    """The path of the first field that stands twice beside its siblings, at any depth."""
    return _repeated_among(schema.fields, "")


def _repeated_among(siblings: Iterable[Field | Member], parent: str) -> str | None:
    names: set[str] = set()
    for each in siblings:
        path = f"{parent}.{each.name}" if parent else each.name
        if each.name in names:
            return path
        names.add(each.name)
        inner = _repeated(each.type, path)
        if inner is not None:
            return inner
    return None


def _repeated(type: DataType, path: str) -> str | None:
    match type:
        case Struct(members):
            return _repeated_among(members, path)
        case Array(element):
            return _repeated(element, f"{path}[]")
        case Map(key, value):
            return _repeated(key, f"{path}{{key}}") or _repeated(value, f"{path}{{}}")
        case Union(options):
            found = (_repeated(each, f"{path}<{n}>") for n, each in enumerate(options))
            return next((inner for inner in found if inner is not None), None)
        case _:
            return None


def unknown_types(schema: Schema) -> Iterator[tuple[str, str]]:
    """The paths and the names of all types in a schema that the algebra does not have."""
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
