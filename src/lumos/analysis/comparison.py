"""What differs between two schemas, at any depth."""

from collections.abc import Iterator, Sequence

from lumos.model.change import (
    AnySchemaChange,
    DefaultChanged,
    DescriptionChanged,
    FieldAdded,
    FieldRemoved,
    KeyChanged,
    NullabilityChanged,
    PartitioningChanged,
    Reordered,
    TagsChanged,
    TypeChanged,
)
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import Array, DataType, Map, Struct, quoted_name

ELEMENT = "[]"
VALUE = "{}"
KEY = "{key}"


def compare(before: Schema, after: Schema) -> tuple[AnySchemaChange, ...]:
    """The changes that lead from one schema to the other, in the order of the fields."""
    if before == after:
        return ()
    return tuple(_fields(before.fields, after.fields, parent=""))


def _fields(
    before: Sequence[Field], after: Sequence[Field], *, parent: str
) -> Iterator[AnySchemaChange]:
    old = {field.name: field for field in before}
    new = {field.name: field for field in after}
    for field in before:
        if field.name not in new:
            yield FieldRemoved(path=_child(parent, field.name), before=field)
    for position, field in enumerate(after):
        path = _child(parent, field.name)
        if field.name not in old:
            yield FieldAdded(path=path, after=field, position=position)
        elif field != old[field.name]:
            yield from _field(old[field.name], field, path)
    common_before = tuple(name for name in old if name in new)
    common_after = tuple(name for name in new if name in old)
    if common_before != common_after:
        yield Reordered(path=parent, before=common_before, after=common_after)


def _field(before: Field, after: Field, path: str) -> Iterator[AnySchemaChange]:
    if before.partition and after.partition and before.type != after.type:
        yield TypeChanged(path=path, before=before.type, after=after.type, partition=True)
    else:
        yield from _type(before.type, after.type, path)
    if before.nullable != after.nullable:
        yield NullabilityChanged(path=path, before=before.nullable, after=after.nullable)
    if before.key != after.key:
        yield KeyChanged(path=path, before=before.key, after=after.key)
    if before.partition != after.partition:
        yield PartitioningChanged(path=path, before=before.partition, after=after.partition)
    yield from _words(before, after, path)
    yield from _nested_words(before, after)


def _type(before: DataType, after: DataType, path: str) -> Iterator[AnySchemaChange]:
    if before == after:
        return
    match before, after:
        case Struct(), Struct():
            yield from _fields(_members(before), _members(after), parent=path)
        case Array(), Array():
            yield from _type(before.element, after.element, path + ELEMENT)
            if before.element_nullable != after.element_nullable:
                yield NullabilityChanged(
                    path=path + ELEMENT,
                    before=before.element_nullable,
                    after=after.element_nullable,
                )
        case Map(), Map():
            if before.key != after.key:
                yield TypeChanged(path=path + KEY, before=before.key, after=after.key)
            yield from _type(before.value, after.value, path + VALUE)
            if before.value_nullable != after.value_nullable:
                yield NullabilityChanged(
                    path=path + VALUE, before=before.value_nullable, after=after.value_nullable
                )
        case _:
            yield TypeChanged(path=path, before=before, after=after)


def _members(struct: Struct) -> list[Field]:
    return [
        Field(name=member.name, type=member.type, nullable=member.nullable)
        for member in struct.members
    ]


def _words(
    before: Field | NestedField, after: Field | NestedField, path: str
) -> Iterator[AnySchemaChange]:
    if before.default != after.default:
        yield DefaultChanged(path=path, before=before.default, after=after.default)
    if (before.description or "") != (after.description or ""):
        yield DescriptionChanged(path=path, before=before.description, after=after.description)
    if set(before.tags) != set(after.tags):
        yield TagsChanged(path=path, before=before.tags, after=after.tags)


def _nested_words(before: Field, after: Field) -> Iterator[AnySchemaChange]:
    old = {nested.path: nested for nested in before.nested}
    new = {nested.path: nested for nested in after.nested}
    for path in sorted(old.keys() | new.keys()):
        nothing = NestedField(path=path)
        yield from _words(old.get(path, nothing), new.get(path, nothing), path)


def _child(parent: str, name: str) -> str:
    return f"{parent}.{quoted_name(name)}" if parent else quoted_name(name)
