"""Schemas of collections, from field counts, validators and earlier scans."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import (
    NULL,
    STRING,
    Array,
    DataType,
    Map,
    Member,
    Struct,
    Union,
    quoted_name,
)
from lumos.sources.mongodb.documents import (
    MAX_FIELDS,
    MAX_KEYS,
    SCALARS,
    FieldCounts,
    object_type,
    unite_types,
)

KEY: Final = "_id"
PRESENCE: Final = "mongodb.presence"
_SEPARATOR: Final = " | "


class ValidatorRules(NamedTuple):
    """The properties and required keys that a validator declares."""

    properties: Mapping[str, Mapping[str, Any]]
    # Required keys; empty if the validator is not enforced.
    required: frozenset[str]

    @classmethod
    def of(cls, validator: Mapping[str, Any], *, enforced: bool) -> "ValidatorRules":
        """The rules of a validator; empty without `$jsonSchema`."""
        declared = validator.get("$jsonSchema")
        return _rules(declared if isinstance(declared, Mapping) else {}, enforced=enforced)


def observed_schema(counts: FieldCounts, rules: ValidatorRules, *, has_key: bool) -> Schema:
    """The schema of the sampled documents."""
    members = sorted(counts.members.items(), key=lambda item: _average_position(*item))
    fields = {name: _field(name, member, counts.count) for name, member in members}
    for name, declared in rules.properties.items():
        fields[name] = _with_declaration(name, fields.get(name), declared)
    for name in rules.required & fields.keys():
        if _is_always_present(counts, name) and not _may_be_null(rules.properties.get(name, {})):
            fields[name] = replace(fields[name], nullable=False)
    if has_key and KEY in fields:
        fields[KEY] = replace(fields[KEY], key=True, nullable=False)
        fields = {KEY: fields.pop(KEY), **fields}
    return Schema(fields=tuple(fields.values()))


def with_key(schema: Schema) -> Schema:
    """The schema of an empty collection, with the key of every document."""
    if schema.field(KEY) is not None:
        return schema
    key = Field(name=KEY, type=NULL, key=True, nullable=False)
    return Schema(fields=(key, *schema.fields))


def merge_with_known(observed: Schema, known: Schema, *, whole: bool) -> Schema:
    """Merge with the known schema; only a `whole` collection removes fields."""
    fields = {field.name: field for field in observed.fields}
    before = {field.name: field for field in known.fields}
    new_fields = [field for name, field in fields.items() if name not in before]
    if whole:
        known_fields = [
            replace(fields[name], type=_order_members(fields[name].type, old.type))
            for name, old in before.items()
            if name in fields
        ]
        return Schema(fields=(*known_fields, *new_fields))
    return Schema(fields=tuple(_merge_sample(before.values(), fields, new_fields)))


def _merge_sample(
    known: Collection[Field], observed: Mapping[str, Field], new_fields: Iterable[Field]
) -> Iterator[Field]:
    """Known fields merged with those of a sample, and new fields up to the limits."""
    keys, field_count = len(known), sum(map(_size, known))
    for old in known:
        new = observed.get(old.name)
        merged = _absent_field(old) if new is None else _unite_fields(new, old)
        growth = _size(merged) - _size(old)
        if growth > 0 and field_count + growth > MAX_FIELDS:
            yield replace(_absent_field(old), properties=merged.properties)
        else:
            field_count += growth
            yield merged
    for field in new_fields:
        if keys < MAX_KEYS and field_count + _size(field) <= MAX_FIELDS:
            keys, field_count = keys + 1, field_count + _size(field)
            yield field


def _size(field: Field) -> int:
    return 1 + sum(1 for _ in _nested_paths(field.type, ""))


def _average_position(name: str, counts: FieldCounts) -> tuple[float, str]:
    return (counts.order / counts.count if counts.count else 0.0, name)


def _is_always_present(counts: FieldCounts, name: str) -> bool:
    member = counts.members.get(name)
    if member is None:
        return counts.count == 0
    return member.count == counts.count and "null" not in member.types


def _may_be_null(declared: Mapping[str, Any]) -> bool:
    """Whether a required key may be null; always true without a declared type."""
    values = declared.get("enum")
    if isinstance(values, list) and None not in values:
        return False
    names = _declared_names(declared)
    return not names or "null" in names


def _field(name: str, counts: FieldCounts, total: int) -> Field:
    notes: list[NestedField] = []
    type = _type(counts, quoted_name(name), notes)
    return Field(
        name=name,
        type=type,
        native_type=_native(counts),
        properties=_presence(counts.count, total),
        nested=tuple(notes),
    )


def _type(counts: FieldCounts, path: str, notes: list[NestedField]) -> DataType:
    """The type of a field; notes on nested fields are added to `notes`."""
    names = [name for name in counts.types if SCALARS.get(name) != NULL]
    # Paths inside a union are not stable, since further types may be inserted.
    notes_inside = notes if len(names) == 1 else []
    types: list[DataType] = []
    for name in names:
        if name == "object":
            types.append(_object_type(counts, path, notes_inside))
        elif name == "array":
            element = counts.element or FieldCounts()
            types.append(Array(_type_with_notes(element, f"{path}[]", notes_inside, total=None)))
        else:
            types.append(SCALARS[name])
    return unite_types(types)


def _object_type(counts: FieldCounts, path: str, notes: list[NestedField]) -> DataType:
    if counts.has_data_for_keys:
        return Map(STRING, _type_with_notes(counts.values(), f"{path}{{}}", notes, total=None))
    objects = counts.types.get("object", 0)
    members = sorted(counts.members.items(), key=lambda item: _average_position(*item))
    return object_type(
        {
            name: _type_with_notes(member, f"{path}.{quoted_name(name)}", notes, total=objects)
            for name, member in members
        }
    )


def _type_with_notes(
    counts: FieldCounts, path: str, notes: list[NestedField], *, total: int | None
) -> DataType:
    """The type of a nested field, with a note; `total` is None for elements and map values."""
    position = len(notes)
    type = _type(counts, path, notes)
    properties = {} if total is None else _presence(counts.count, total)
    native = _native(counts)
    if native is not None or properties:
        notes.insert(position, NestedField(path=path, native_type=native, properties=properties))
    return type


def _native(counts: FieldCounts) -> str | None:
    return _SEPARATOR.join(sorted(set(counts.types) - {"null"})) or None


def _presence(count: int, total: int) -> dict[str, str]:
    """The share of objects with a key, as a property; empty if all objects have the key."""
    if count >= total:
        return {}
    # Avoid rounding to 0 or 1.
    return {PRESENCE: f"{min(max(count / total, 0.01), 0.99):.2f}" if count else "0"}


def _rules(declared: Mapping[str, Any], *, enforced: bool) -> ValidatorRules:
    properties = declared.get("properties")
    required = declared.get("required")
    if not isinstance(properties, Mapping):
        properties = {}
    return ValidatorRules(
        {name: rule for name, rule in properties.items() if isinstance(rule, Mapping)},
        frozenset(str(name) for name in required)
        if enforced and isinstance(required, list)
        else frozenset(),
    )


def _with_declaration(name: str, field: Field | None, declared: Mapping[str, Any]) -> Field:
    """The field with the types and the description from the validator."""
    description = declared.get("description")
    text = description if isinstance(description, str) and description else None
    if field is None:
        names = _SEPARATOR.join(sorted(_declared_names(declared) - {"null"})) or None
        field = Field(
            name=name,
            type=_declared_type(declared),
            native_type=names,
            properties={PRESENCE: "0"},
        )
    return replace(
        field, type=_fill_members(field.type, declared), description=text or field.description
    )


def _fill_members(type: DataType, declared: Mapping[str, Any]) -> DataType:
    """The type with the members that the validator declares and the sample lacks."""
    if type == NULL:
        return _declared_type(declared)
    match type:
        case Struct(members):
            types = {member.name: member.type for member in members}
            for name, rule in _rules(declared, enforced=False).properties.items():
                types[name] = _fill_members(types.get(name, NULL), rule)
            return object_type(types)
        case Array(element) if isinstance(declared.get("items"), Mapping):
            return Array(_fill_members(element, declared["items"]))
        case _:
            return type


def _declared_type(declared: Mapping[str, Any]) -> DataType:
    types: list[DataType] = []
    for name in _declared_names(declared):
        if name == "object":
            properties = _rules(declared, enforced=False).properties
            types.append(
                object_type({key: _declared_type(rule) for key, rule in properties.items()})
            )
        elif name == "array":
            items = declared.get("items")
            types.append(Array(_declared_type(items) if isinstance(items, Mapping) else NULL))
        else:
            types.append(SCALARS.get(name, NULL))
    return unite_types(types)


def _declared_names(declared: Mapping[str, Any]) -> set[str]:
    declared_types = declared.get("bsonType", declared.get("type"))
    names = declared_types if isinstance(declared_types, list) else [declared_types]
    aliases = {"boolean": "bool", "integer": "long"}
    return {aliases.get(name, name) for name in names if isinstance(name, str)}


def _order_members(new: DataType, old: DataType) -> DataType:
    """The new type, with its members in the known order."""
    match new, old:
        case Struct(), Struct():
            known = {member.name: member.type for member in old.members}
            members = {member.name: member.type for member in new.members}
            names = [*(name for name in known if name in members), *members]
            return Struct(
                Member(name, _order_members(members[name], known.get(name, NULL)))
                for name in dict.fromkeys(names)
            )
        case Array(), Array():
            return Array(_order_members(new.element, old.element))
        case Map(), Map():
            return Map(STRING, _order_members(new.value, old.value))
        case Union(options), _:
            return unite_types(
                _order_members(option, _matching_option(option, old)) for option in options
            )
        case _, Union():
            return _order_members(new, _matching_option(new, old))
        case _:
            return new


def _matching_option(option: DataType, old: DataType) -> DataType:
    """The known type of the same class; a union has at most one."""
    known = old.options if isinstance(old, Union) else (old,)
    return next((candidate for candidate in known if type(candidate) is type(option)), NULL)


def _unite_fields(new: Field, old: Field) -> Field:
    names = {name for field in (old, new) for name in _names(field.native_type)}
    # The known type comes first, so that its members keep their order.
    both = unite_types((old.type, new.type))
    # Drop notes on keys that turned out to be data.
    field_count = set(_nested_paths(both, quoted_name(new.name)))
    notes = _unite_notes(new.nested, old.nested)
    return replace(
        new,
        type=both,
        nullable=old.nullable or new.nullable,
        key=old.key or new.key,
        native_type=_SEPARATOR.join(sorted(names)) or None,
        nested=tuple(note for note in notes if note.path in field_count),
    )


def _nested_paths(type: DataType, path: str) -> Iterator[str]:
    """The paths of nested fields inside a type; none inside a union."""
    match type:
        case Struct(members):
            children = [(member.type, f"{path}.{quoted_name(member.name)}") for member in members]
        case Array(element):
            children = [(element, f"{path}[]")]
        case Map(_, value):
            children = [(value, f"{path}{{}}")]
        case _:
            return
    for inner, inner_path in children:
        yield inner_path
        yield from _nested_paths(inner, inner_path)


def _unite_notes(new: Iterable[NestedField], old: Iterable[NestedField]) -> Iterator[NestedField]:
    notes = {note.path: note for note in new}
    for known in old:
        observed = notes.pop(known.path, None)
        if observed is None:
            yield _absent_note(known)
        else:
            names = {*_names(known.native_type), *_names(observed.native_type)}
            yield replace(observed, native_type=_SEPARATOR.join(sorted(names)) or None)
    yield from notes.values()


def _absent_field(old: Field) -> Field:
    """A known field that is not in the sample, without its annotations."""
    return Field(
        name=old.name,
        type=old.type,
        nullable=not old.key,
        key=old.key,
        native_type=old.native_type,
        properties={PRESENCE: "0"},
        nested=tuple(map(_absent_note, old.nested)),
    )


def _absent_note(old: NestedField) -> NestedField:
    # Elements and map values are not counted.
    properties = {} if old.path.endswith(("[]", "{}")) else {PRESENCE: "0"}
    return NestedField(path=old.path, native_type=old.native_type, properties=properties)


def _names(native_type: str | None) -> list[str]:
    return native_type.split(_SEPARATOR) if native_type else []
