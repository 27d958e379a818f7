"""Applies changes to a schema: the inverse of `compare`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

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
from lumos.model.paths import ELEMENT, KEY, VALUE, child, column_of, is_within, parent_of
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import removed_paths
from lumos.model.types import Array, DataType, Map, Member, Struct

Part = TypeVar("Part", Field, Member)
_AnnotationChange: TypeAlias = DefaultChanged | DescriptionChanged | TagsChanged
_PropertyChange: TypeAlias = (
    _AnnotationChange | NullabilityChanged | KeyChanged | PartitioningChanged
)
_PROPERTIES: Final[dict[type[AnySchemaChange], str]] = {
    NullabilityChanged: "nullable",
    KeyChanged: "key",
    PartitioningChanged: "partition",
    DefaultChanged: "default",
    DescriptionChanged: "description",
    TagsChanged: "tags",
}


def apply(changes: Iterable[AnySchemaChange], schema: Schema) -> Schema:
    """The schema after the changes; `compare(a, b)` applied to `a` has the full fingerprint of `b`.

    Field ids stay. Native types stay where the type does, since changes do not contain them.
    """
    changes = tuple(changes)
    by_column: dict[str, list[AnySchemaChange]] = {}
    for change in changes:
        by_column.setdefault(column_of(change.path), []).append(change)

    def changed(field: Field, path: str) -> Field:
        own = by_column.get(path)
        return field if own is None else _Inside(own).column(field, path)

    return Schema(fields=tuple(_Level(changes).rebuild(schema.fields, "", changed, _same)))


def _same(field: Field) -> Field:
    return field


def _member(field: Field) -> Member:
    return Member(field.name, field.type, nullable=field.nullable)


class _Level:
    """Which siblings are added, removed and reordered, by the path of their parent."""

    def __init__(self, changes: Iterable[AnySchemaChange]) -> None:
        self._removed: set[str] = set()
        self._added: dict[str, list[FieldAdded]] = {}
        self._order: dict[str, tuple[str, ...]] = {}
        for change in changes:
            match change:
                case FieldRemoved(path=path):
                    self._removed.add(path)
                case FieldAdded(path=path):
                    self._added.setdefault(parent_of(path), []).append(change)
                case Reordered(path=path, after=names):
                    self._order[path] = names

    def rebuild(
        self,
        parts: Sequence[Part],
        parent: str,
        changed: Callable[[Part, str], Part],
        create: Callable[[Field], Part],
    ) -> list[Part]:
        """The siblings after the changes, in their new order."""
        remaining: dict[str, Part] = {}
        for part in parts:
            path = child(parent, part.name)
            if path not in self._removed:
                remaining[part.name] = changed(part, path)
        order = self._order.get(parent, tuple(remaining))
        if remaining.keys() != set(order):
            raise MisuseError(
                f"The changes do not fit this schema: they reorder {', '.join(order)}, but it has "
                f"{', '.join(remaining)}."
            )
        result = [remaining[name] for name in order]
        for added in sorted(self._added.get(parent, ()), key=lambda each: each.position):
            result.insert(added.position, create(added.after))
        return result


class _Inside:
    """The changes of one column."""

    def __init__(self, changes: Sequence[AnySchemaChange]) -> None:
        self._changes = changes
        self._level = _Level(changes)
        self._types = {
            change.path: change.after for change in changes if isinstance(change, TypeChanged)
        }
        self._nullable = {
            change.path: change.after
            for change in changes
            if isinstance(change, NullabilityChanged)
        }

    def column(self, field: Field, path: str) -> Field:
        """The column after its changes."""
        facts: dict[str, Any] = {
            _PROPERTIES[type(change)]: change.after
            for change in self._changes
            if change.path == path and isinstance(change, _PropertyChange)
        }
        type_after = self._type(field.type, path)
        removed = removed_paths(field, msgspec.structs.replace(field, type=type_after))
        nested = self._notes((note for note in field.nested if note.path not in removed), path)
        if type_after != field.type:
            facts["native_type"] = None
            nested = [msgspec.structs.replace(note, native_type=None) for note in nested]
        return msgspec.structs.replace(field, type=type_after, nested=tuple(nested), **facts)

    def _type(self, type: DataType, path: str) -> DataType:
        if path in self._types:
            return self._types[path]
        match type:
            case Struct(members) if len({member.name for member in members}) == len(members):
                return Struct(self._level.rebuild(members, path, self._changed_member, _member))
            case Array(element, nullable):
                inner = path + ELEMENT
                return Array(
                    self._type(element, inner), element_nullable=self._nulls(inner, nullable)
                )
            case Map(key, value, nullable):
                inner = path + VALUE
                return Map(
                    self._types.get(path + KEY, key),
                    self._type(value, inner),
                    value_nullable=self._nulls(inner, nullable),
                )
            case _:
                return type

    def _changed_member(self, member: Member, path: str) -> Member:
        nullable = self._nulls(path, member.nullable)
        return Member(member.name, self._type(member.type, path), nullable=nullable)

    def _nulls(self, path: str, before: bool) -> bool:
        return self._nullable.get(path, before)

    def _notes(self, before: Iterable[NestedField], column: str) -> list[NestedField]:
        removed = [change.path for change in self._changes if isinstance(change, FieldRemoved)]
        notes = {
            note.path: note
            for note in before
            if not any(is_within(note.path, path) for path in removed)
        }
        for change in self._changes:
            if isinstance(change, FieldAdded):
                notes[change.path] = _note_of(change.after, change.path)
                notes.update((note.path, note) for note in change.after.nested)
            elif isinstance(change, _AnnotationChange) and change.path != column:
                known = notes.get(change.path) or NestedField(path=change.path)
                fact = {_PROPERTIES[type(change)]: change.after}
                notes[change.path] = msgspec.structs.replace(known, **fact)
        return [note for note in notes.values() if note != NestedField(path=note.path)]


def _note_of(field: Field, path: str) -> NestedField:
    return NestedField(
        path=path,
        description=field.description,
        default=field.default,
        tags=field.tags,
        native_type=field.native_type,
        field_id=field.field_id,
        terms=field.terms,
        compliance=field.compliance,
        properties=field.properties,
    )
