"""Compares two schemas, including nested fields."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from lumos.errors import MisuseError
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
from lumos.model.paths import ELEMENT, KEY, VALUE, child, is_within
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import removed_paths
from lumos.model.types import Array, DataType, Map, Member, Struct, quoted_name

FieldT = TypeVar("FieldT", Field, NestedField)


class _NestedAnnotations(NamedTuple):
    """The annotations of the nested fields of a column, by path, before and after a change."""

    before: Mapping[str, NestedField]
    after: Mapping[str, NestedField]

    @classmethod
    def of(cls, before: Field, after: Field) -> "_NestedAnnotations":
        old, new = ({each.path: each for each in side.nested} for side in (before, after))
        return cls(old, new)

    def without_removed(self, removed: Collection[str]) -> "_NestedAnnotations":
        """Drop the annotations of removed fields: they are part of the removal of the field."""
        remaining = {
            path: annotations for path, annotations in self.before.items() if path not in removed
        }
        return _NestedAnnotations(remaining, self.after)


_NO_ANNOTATIONS: Final = _NestedAnnotations({}, {})


def compare(before: Schema, after: Schema) -> tuple[AnySchemaChange, ...]:
    """The changes from one schema to the other, in the order of the fields.

    There are no changes exactly if both schemas have the same full fingerprint. Native types and
    field ids are not compared.
    """
    if before == after:
        return ()
    for schema in (before, after):
        _check_names(schema)
    return tuple(_sibling_changes(before.fields, after.fields, "", _NO_ANNOTATIONS))


def _check_names(schema: Schema) -> None:
    names = [field.name for field in schema.fields]
    if _has_duplicates(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise MisuseError(
            f"The field {quoted_name(duplicate)} is defined twice in a schema. "
            "Only schemas with unique field names can be compared."
        )


def _has_duplicates(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def _sibling_changes(
    before: Sequence[Field | Member],
    after: Sequence[Field | Member],
    parent: str,
    nested: _NestedAnnotations,
) -> Iterator[AnySchemaChange]:
    old = {each.name: each for each in before}
    new = {each.name: each for each in after}
    for position, each in enumerate(before):
        if each.name not in new:
            path = child(parent, each.name)
            field = _as_field(each, path, nested.before)
            yield FieldRemoved(path=path, before=field, position=position)
    for position, each in enumerate(after):
        previous = old.get(each.name)
        if previous is None:
            path = child(parent, each.name)
            field = _as_field(each, path, nested.after)
            yield FieldAdded(path=path, after=field, position=position)
        elif previous != each:
            yield from _field_changes(previous, each, child(parent, each.name), nested)
    common_before = tuple(name for name in old if name in new)
    common_after = tuple(name for name in new if name in old)
    if common_before != common_after:
        yield Reordered(path=parent, before=common_before, after=common_after)


def _as_field(field: Field | Member, path: str, nested: Mapping[str, NestedField]) -> Field:
    """The column, or a struct member converted to a field with its annotations."""
    if isinstance(field, Field):
        return field
    annotations = nested.get(path) or NestedField(path=path)
    return Field(
        name=field.name,
        type=field.type,
        nullable=field.nullable,
        default=annotations.default,
        description=annotations.description,
        tags=annotations.tags,
        native_type=annotations.native_type,
        field_id=annotations.field_id,
        terms=annotations.terms,
        compliance=annotations.compliance,
        properties=annotations.properties,
        nested=tuple(
            each
            for inner_path, each in nested.items()
            if inner_path != path and is_within(inner_path, path)
        ),
    )


def _field_changes(
    before: Field | Member, after: Field | Member, path: str, nested: _NestedAnnotations
) -> Iterator[AnySchemaChange]:
    if isinstance(before, Field) and isinstance(after, Field):
        yield from _column_changes(before, after, path)
        return
    yield from _type_changes(before.type, after.type, path, nested)
    if before.nullable != after.nullable:
        yield NullabilityChanged(path=path, before=before.nullable, after=after.nullable)


def _column_changes(before: Field, after: Field, path: str) -> Iterator[AnySchemaChange]:
    nested = _NestedAnnotations.of(before, after)
    type_changes = tuple(_column_type_changes(before, after, path, nested))
    yield from type_changes
    if before.nullable != after.nullable:
        yield NullabilityChanged(
            path=path,
            before=before.nullable,
            after=after.nullable,
            key=before.key,
        )
    if before.key != after.key:
        yield KeyChanged(path=path, before=before.key, after=after.key)
    if before.partition != after.partition:
        yield PartitioningChanged(path=path, before=before.partition, after=after.partition)
    if (before.description or None) != (after.description or None):
        yield DescriptionChanged(path=path, before=before.description, after=after.description)
    yield from _annotation_changes(before, after, path)
    remaining = nested.without_removed(removed_paths(before, after)) if nested.before else nested
    yield from _nested_annotation_changes(remaining, type_changes)


def _column_type_changes(
    before: Field, after: Field, path: str, nested: _NestedAnnotations
) -> Iterator[AnySchemaChange]:
    partition = before.partition and after.partition
    for change in _type_changes(before.type, after.type, path, nested):
        if isinstance(change, TypeChanged) and change.path == path:
            yield TypeChanged(
                path=path,
                before=before.type,
                after=after.type,
                partition=partition,
                key=before.key,
            )
        else:
            yield change


def _type_changes(
    before: DataType, after: DataType, path: str, nested: _NestedAnnotations
) -> Iterator[AnySchemaChange]:
    if before == after:
        return
    match before, after:
        case Struct(old), Struct(new) if not (
            _has_duplicate_members(old) or _has_duplicate_members(new)
        ):
            yield from _sibling_changes(old, new, path, nested)
        case Array(), Array():
            yield from _type_changes(before.element, after.element, path + ELEMENT, nested)
            if before.element_nullable != after.element_nullable:
                yield NullabilityChanged(
                    path=path + ELEMENT,
                    before=before.element_nullable,
                    after=after.element_nullable,
                )
        case Map(), Map():
            if before.key != after.key:
                yield TypeChanged(path=path + KEY, before=before.key, after=after.key)
            yield from _type_changes(before.value, after.value, path + VALUE, nested)
            if before.value_nullable != after.value_nullable:
                yield NullabilityChanged(
                    path=path + VALUE, before=before.value_nullable, after=after.value_nullable
                )
        case _:
            yield TypeChanged(path=path, before=before, after=after)


def _has_duplicate_members(members: Sequence[Member]) -> bool:
    return _has_duplicates([member.name for member in members])


def _annotation_changes(before: FieldT, after: FieldT, path: str) -> Iterator[AnySchemaChange]:
    if before.default != after.default:
        yield DefaultChanged(path=path, before=before.default, after=after.default)
    if sorted(before.tags) != sorted(after.tags):
        yield TagsChanged(path=path, before=before.tags, after=after.tags)


def _nested_annotation_changes(
    nested: _NestedAnnotations, type_changes: Sequence[AnySchemaChange]
) -> Iterator[AnySchemaChange]:
    """Yield changed annotations of nested fields, except for added and removed fields."""
    if nested.before == nested.after:
        return
    added_or_removed = [
        change.path for change in type_changes if isinstance(change, FieldAdded | FieldRemoved)
    ]
    for path in sorted(nested.before.keys() | nested.after.keys()):
        if any(is_within(path, each) for each in added_or_removed):
            continue
        empty = NestedField(path=path)
        old, new = nested.before.get(path, empty), nested.after.get(path, empty)
        if old.description != new.description:
            yield DescriptionChanged(path=path, before=old.description, after=new.description)
        yield from _annotation_changes(old, new, path)
