"""Compares two schemas at any depth."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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


class _Notes(NamedTuple):
    """The annotations of fields inside a column, by path, before and after."""

    before: Mapping[str, NestedField]
    after: Mapping[str, NestedField]

    @classmethod
    def of(cls, before: Field, after: Field) -> "_Notes":
        return cls(_by_path(before.nested), _by_path(after.nested))

    def without_removed(self, removed: Collection[str]) -> "_Notes":
        """The same without annotations of fields that are gone, which went with them."""
        remaining = {path: note for path, note in self.before.items() if path not in removed}
        return _Notes(remaining, self.after)


_NO_NOTES: Final = _Notes({}, {})


def compare(before: Schema, after: Schema) -> tuple[AnySchemaChange, ...]:
    """The changes from one schema to the other, in the order of the fields.

    There are none exactly if both have the same full fingerprint: native types and field ids do not
    count.
    """
    if before == after:
        return ()
    for schema in (before, after):
        _check_names(schema)
    return tuple(_siblings(before.fields, after.fields, "", _NO_NOTES))


def _check_names(schema: Schema) -> None:
    names = [field.name for field in schema.fields]
    if _has_repeats(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise MisuseError(
            f"The field {quoted_name(duplicate)} is defined twice in a schema. "
            "Only schemas with unique field names can be compared."
        )


def _has_repeats(names: Sequence[str]) -> bool:
    return len(set(names)) < len(names)


def _siblings(
    before: Sequence[Field | Member],
    after: Sequence[Field | Member],
    parent: str,
    notes: _Notes,
) -> Iterator[AnySchemaChange]:
    old = {each.name: each for each in before}
    new = {each.name: each for each in after}
    for position, each in enumerate(before):
        if each.name not in new:
            path = child(parent, each.name)
            field = _with_nested_notes(each, path, notes.before)
            yield FieldRemoved(path=path, before=field, position=position)
    for position, each in enumerate(after):
        previous = old.get(each.name)
        if previous is None:
            path = child(parent, each.name)
            field = _with_nested_notes(each, path, notes.after)
            yield FieldAdded(path=path, after=field, position=position)
        elif previous != each:
            yield from _part(previous, each, child(parent, each.name), notes)
    common_before = tuple(name for name in old if name in new)
    common_after = tuple(name for name in new if name in old)
    if common_before != common_after:
        yield Reordered(path=parent, before=common_before, after=common_after)


def _with_nested_notes(part: Field | Member, path: str, notes: Mapping[str, NestedField]) -> Field:
    """A column, or a struct member with its annotations and those of the fields inside it."""
    if isinstance(part, Field):
        return part
    own = notes.get(path) or NestedField(path=path)
    return Field(
        name=part.name,
        type=part.type,
        nullable=part.nullable,
        default=own.default,
        description=own.description,
        tags=own.tags,
        native_type=own.native_type,
        field_id=own.field_id,
        terms=own.terms,
        compliance=own.compliance,
        properties=own.properties,
        nested=tuple(
            note for inner, note in notes.items() if inner != path and is_within(inner, path)
        ),
    )


def _part(
    before: Field | Member, after: Field | Member, path: str, notes: _Notes
) -> Iterator[AnySchemaChange]:
    if isinstance(before, Field) and isinstance(after, Field):
        yield from _column(before, after, path)
        return
    yield from _type(before.type, after.type, path, notes)
    if before.nullable != after.nullable:
        yield NullabilityChanged(path=path, before=before.nullable, after=after.nullable)


def _column(before: Field, after: Field, path: str) -> Iterator[AnySchemaChange]:
    notes = _Notes.of(before, after)
    inside = tuple(_column_type(before, after, path, notes))
    yield from inside
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
    yield from _annotations(before, after, path)
    without_removed = notes.without_removed(removed_paths(before, after)) if notes.before else notes
    yield from _annotations_inside(without_removed, inside)


def _column_type(
    before: Field, after: Field, path: str, notes: _Notes
) -> Iterator[AnySchemaChange]:
    partition = before.partition and after.partition
    for change in _type(before.type, after.type, path, notes):
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


def _type(before: DataType, after: DataType, path: str, notes: _Notes) -> Iterator[AnySchemaChange]:
    if before == after:
        return
    match before, after:
        case Struct(old), Struct(new) if not (_repeats_members(old) or _repeats_members(new)):
            yield from _siblings(old, new, path, notes)
        case Array(), Array():
            yield from _type(before.element, after.element, path + ELEMENT, notes)
            if before.element_nullable != after.element_nullable:
                yield NullabilityChanged(
                    path=path + ELEMENT,
                    before=before.element_nullable,
                    after=after.element_nullable,
                )
        case Map(), Map():
            if before.key != after.key:
                yield TypeChanged(path=path + KEY, before=before.key, after=after.key)
            yield from _type(before.value, after.value, path + VALUE, notes)
            if before.value_nullable != after.value_nullable:
                yield NullabilityChanged(
                    path=path + VALUE, before=before.value_nullable, after=after.value_nullable
                )
        case _:
            yield TypeChanged(path=path, before=before, after=after)


def _repeats_members(members: Sequence[Member]) -> bool:
    return _has_repeats([member.name for member in members])


def _annotations(before: FieldT, after: FieldT, path: str) -> Iterator[AnySchemaChange]:
    if before.default != after.default:
        yield DefaultChanged(path=path, before=before.default, after=after.default)
    if sorted(before.tags) != sorted(after.tags):
        yield TagsChanged(path=path, before=before.tags, after=after.tags)


def _annotations_inside(
    notes: _Notes, inside: Sequence[AnySchemaChange]
) -> Iterator[AnySchemaChange]:
    """Changed annotations inside a column, but for those of members that were added or removed."""
    if notes.before == notes.after:
        return
    path_of_removed = [
        change.path for change in inside if isinstance(change, FieldAdded | FieldRemoved)
    ]
    for path in sorted(notes.before.keys() | notes.after.keys()):
        if any(is_within(path, each) for each in path_of_removed):
            continue
        nothing = NestedField(path=path)
        old, new = notes.before.get(path, nothing), notes.after.get(path, nothing)
        if old.description != new.description:
            yield DescriptionChanged(path=path, before=old.description, after=new.description)
        yield from _annotations(old, new, path)


def _by_path(nested: Iterable[NestedField]) -> dict[str, NestedField]:
    return {each.path: each for each in nested}
