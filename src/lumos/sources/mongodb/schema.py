"""Schemas made of what was counted in documents, of validators, and of what was known before."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

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
_BETWEEN: Final = " | "


class ValidatorRules(NamedTuple):
    """What a validator declares of objects."""

    properties: Mapping[str, Mapping[str, Any]]
    # Keys that every object must have; none where nobody sees to it.
    required: frozenset[str]

    @classmethod
    def of(cls, validator: Mapping[str, Any], *, enforced: bool) -> "ValidatorRules":
        """The rules of a collection's validator; one without `$jsonSchema` declares nothing."""
        declared = validator.get("$jsonSchema")
        return _rules(declared if isinstance(declared, Mapping) else {}, enforced=enforced)


def observed_schema(seen: FieldCounts, rules: ValidatorRules, *, has_key: bool) -> Schema:
    """The schema of documents, as far as they were looked at."""
    members = sorted(seen.members.items(), key=lambda each: _usual_place(*each))
    fields = {name: _field(name, each, seen.count) for name, each in members}
    for name, declared in rules.properties.items():
        fields[name] = _completed(name, fields.get(name), declared)
    for name in rules.required & fields.keys():
        if _is_always_there(seen, name) and not _may_be_null(rules.properties.get(name, {})):
            fields[name] = msgspec.structs.replace(fields[name], nullable=False)
    if has_key and KEY in fields:
        fields[KEY] = msgspec.structs.replace(fields[KEY], key=True, nullable=False)
        fields = {KEY: fields.pop(KEY), **fields}
    return Schema(fields=tuple(fields.values()))


def with_key(schema: Schema) -> Schema:
    """The schema of an empty collection, with the key that every document will have."""
    if schema.field(KEY) is not None:
        return schema
    key = Field(name=KEY, type=NULL, key=True, nullable=False)
    return Schema(fields=(key, *schema.fields))


def merge_with_known(observed: Schema, known: Schema, *, whole: bool) -> Schema:
    """What is known by now: a sample never takes anything back, the `whole` collection does."""
    fields = {field.name: field for field in observed.fields}
    before = {field.name: field for field in known.fields}
    fresh = [field for name, field in fields.items() if name not in before]
    if whole:
        kept = [_in_order(fields[name], old) for name, old in before.items() if name in fields]
        return Schema(fields=(*kept, *fresh))
    return Schema(fields=tuple(_added(before.values(), fields, fresh)))


def _added(
    known: Collection[Field], observed: Mapping[str, Field], fresh: Iterable[Field]
) -> Iterator[Field]:
    """Known fields with what a sample shows of them, and fresh ones as long as there is room."""
    keys, places = len(known), sum(map(_size, known))
    for old in known:
        new = observed.get(old.name)
        both = _unseen(old) if new is None else _both(new, old)
        growth = _size(both) - _size(old)
        if growth > 0 and places + growth > MAX_FIELDS:
            yield msgspec.structs.replace(_unseen(old), properties=both.properties)
        else:
            places += growth
            yield both
    for field in fresh:
        if keys < MAX_KEYS and places + _size(field) <= MAX_FIELDS:
            keys, places = keys + 1, places + _size(field)
            yield field


def _size(field: Field) -> int:
    return 1 + sum(1 for _ in _places(field.type, ""))


def _usual_place(name: str, seen: FieldCounts) -> tuple[float, str]:
    return (seen.order / seen.count if seen.count else 0.0, name)


def _is_always_there(seen: FieldCounts, name: str) -> bool:
    member = seen.members.get(name)
    if member is None:
        return seen.count == 0
    return member.count == seen.count and "null" not in member.types


def _may_be_null(declared: Mapping[str, Any]) -> bool:
    """Whether a required key may be null; without a declared type it may."""
    values = declared.get("enum")
    if isinstance(values, list) and None not in values:
        return False
    names = _declared_names(declared)
    return not names or "null" in names


def _field(name: str, seen: FieldCounts, of: int) -> Field:
    notes: list[NestedField] = []
    type = _type(seen, quoted_name(name), notes)
    return Field(
        name=name,
        type=type,
        native_type=_native(seen),
        properties=_presence(seen.count, of),
        nested=tuple(notes),
    )


def _type(seen: FieldCounts, path: str, notes: list[NestedField]) -> DataType:
    """The type of what was seen; what is worth saying of places inside goes to the notes."""
    names = [name for name in seen.types if SCALARS.get(name) != NULL]
    # Inside a union no path is steady, since further types may come before.
    inside = notes if len(names) == 1 else []
    types: list[DataType] = []
    for name in names:
        if name == "object":
            types.append(_object_type(seen, path, inside))
        elif name == "array":
            element = seen.element or FieldCounts()
            types.append(Array(_noted(element, f"{path}[]", inside, of=None)))
        else:
            types.append(SCALARS[name])
    return unite_types(types)


def _object_type(seen: FieldCounts, path: str, notes: list[NestedField]) -> DataType:
    if seen.has_data_for_keys:
        return Map(STRING, _noted(seen.values(), f"{path}{{}}", notes, of=None))
    objects = seen.types.get("object", 0)
    members = sorted(seen.members.items(), key=lambda each: _usual_place(*each))
    return object_type(
        {
            name: _noted(member, f"{path}.{quoted_name(name)}", notes, of=objects)
            for name, member in members
        }
    )


def _noted(seen: FieldCounts, path: str, notes: list[NestedField], *, of: int | None) -> DataType:
    """The type of a place inside; elements and values have no share in anything."""
    place = len(notes)
    type = _type(seen, path, notes)
    properties = {} if of is None else _presence(seen.count, of)
    native = _native(seen)
    if native is not None or properties:
        notes.insert(place, NestedField(path=path, native_type=native, properties=properties))
    return type


def _native(seen: FieldCounts) -> str | None:
    return _BETWEEN.join(sorted(set(seen.types) - {"null"})) or None


def _presence(count: int, of: int) -> dict[str, str]:
    """How many of the objects have a key, where not all have it."""
    if count >= of:
        return {}
    # Neither nearly all nor hardly any is all or none.
    return {PRESENCE: f"{min(max(count / of, 0.01), 0.99):.2f}" if count else "0"}


def _rules(declared: Mapping[str, Any], *, enforced: bool) -> ValidatorRules:
    properties = declared.get("properties")
    required = declared.get("required")
    return ValidatorRules(
        {name: each for name, each in _items(properties) if isinstance(each, Mapping)},
        frozenset(str(name) for name in required)
        if enforced and isinstance(required, list)
        else frozenset(),
    )


def _items(value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from value.items()


def _completed(name: str, field: Field | None, declared: Mapping[str, Any]) -> Field:
    """The field with the types and the description that only its validator has."""
    description = declared.get("description")
    words = description if isinstance(description, str) and description else None
    if field is None:
        names = _BETWEEN.join(sorted(_declared_names(declared) - {"null"})) or None
        field = Field(
            name=name,
            type=_declared_type(declared),
            native_type=names,
            properties={PRESENCE: "0"},
        )
    return msgspec.structs.replace(
        field, type=_filled(field.type, declared), description=words or field.description
    )


def _filled(type: DataType, declared: Mapping[str, Any]) -> DataType:
    """The type with the members that were declared and not seen."""
    if type == NULL:
        return _declared_type(declared)
    match type:
        case Struct(members):
            there = {member.name: member.type for member in members}
            for name, each in _rules(declared, enforced=False).properties.items():
                there[name] = _filled(there.get(name, NULL), each)
            return object_type(there)
        case Array(element) if isinstance(declared.get("items"), Mapping):
            return Array(_filled(element, declared["items"]))
        case _:
            return type


def _declared_type(declared: Mapping[str, Any]) -> DataType:
    types: list[DataType] = []
    for name in _declared_names(declared):
        if name == "object":
            properties = _rules(declared, enforced=False).properties
            types.append(object_type({each: _declared_type(of) for each, of in properties.items()}))
        elif name == "array":
            items = declared.get("items")
            types.append(Array(_declared_type(items) if isinstance(items, Mapping) else NULL))
        else:
            types.append(SCALARS.get(name, NULL))
    return unite_types(types)


def _declared_names(declared: Mapping[str, Any]) -> set[str]:
    said = declared.get("bsonType", declared.get("type"))
    names = said if isinstance(said, list) else [said]
    usual = {"boolean": "bool", "integer": "long"}
    return {usual.get(name, name) for name in names if isinstance(name, str)}


def _in_order(new: Field, old: Field) -> Field:
    return msgspec.structs.replace(new, type=_ordered(new.type, old.type))


def _ordered(new: DataType, old: DataType) -> DataType:
    """The new type, its members in the order in which they are known."""
    match new, old:
        case Struct(), Struct():
            known = {member.name: member.type for member in old.members}
            there = {member.name: member.type for member in new.members}
            names = [*(name for name in known if name in there), *there]
            return Struct(
                Member(name, _ordered(there[name], known.get(name, NULL)))
                for name in dict.fromkeys(names)
            )
        case Array(), Array():
            return Array(_ordered(new.element, old.element))
        case Map(), Map():
            return Map(STRING, _ordered(new.value, old.value))
        case Union(options), _:
            return unite_types(_ordered(option, _like(option, old)) for option in options)
        case _, Union():
            return _ordered(new, _like(new, old))
        case _:
            return new


def _like(option: DataType, old: DataType) -> DataType:
    """What is known of one of several types; a union has no two of a sort."""
    known = old.options if isinstance(old, Union) else (old,)
    return next((each for each in known if type(each) is type(option)), NULL)


def _both(new: Field, old: Field) -> Field:
    names = {name for each in (old, new) for name in _names(each.native_type)}
    # What is known comes first, so that its members keep their order.
    both = unite_types((old.type, new.type))
    # Keys that turned out to be data are no places any more, and are not kept.
    places = set(_places(both, quoted_name(new.name)))
    notes = _both_notes(new.nested, old.nested)
    return msgspec.structs.replace(
        new,
        type=both,
        nullable=old.nullable or new.nullable,
        key=old.key or new.key,
        native_type=_BETWEEN.join(sorted(names)) or None,
        nested=tuple(note for note in notes if note.path in places),
    )


def _places(type: DataType, path: str) -> Iterator[str]:
    """The places inside a type that notes can be on: none inside a union."""
    match type:
        case Struct(members):
            inside = [(member.type, f"{path}.{quoted_name(member.name)}") for member in members]
        case Array(element):
            inside = [(element, f"{path}[]")]
        case Map(_, value):
            inside = [(value, f"{path}{{}}")]
        case _:
            return
    for each, place in inside:
        yield place
        yield from _places(each, place)


def _both_notes(new: Iterable[NestedField], old: Iterable[NestedField]) -> Iterator[NestedField]:
    notes = {note.path: note for note in new}
    for each in old:
        now = notes.pop(each.path, None)
        if now is None:
            yield _unseen_note(each)
        else:
            names = {*_names(each.native_type), *_names(now.native_type)}
            yield msgspec.structs.replace(now, native_type=_BETWEEN.join(sorted(names)) or None)
    yield from notes.values()


def _unseen(old: Field) -> Field:
    """A known field that this sample shows nothing of, without what people said of it."""
    return Field(
        name=old.name,
        type=old.type,
        nullable=not old.key,
        key=old.key,
        native_type=old.native_type,
        properties={PRESENCE: "0"},
        nested=tuple(map(_unseen_note, old.nested)),
    )


def _unseen_note(old: NestedField) -> NestedField:
    # Elements and values have no share in anything.
    properties = {} if old.path.endswith(("[]", "{}")) else {PRESENCE: "0"}
    return NestedField(path=old.path, native_type=old.native_type, properties=properties)


def _names(native_type: str | None) -> list[str]:
    return native_type.split(_BETWEEN) if native_type else []
