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
    """The schema after the changes.

    `compare(a, b)`, applied to `a`, results in the full fingerprint of `b`. Changes contain neither
    field ids nor native types: field ids are not changed, and a native type is dropped if the type
    changes.
    """
    changes = tuple(changes)
    by_column: dict[str, list[AnySchemaChange]] = {}
    for change in changes:
        by_column.setdefault(column_of(change.path), []).append(change)

    def apply_to_column(field: Field, path: str) -> Field:
        column_changes = by_column.get(path)
        return (
            field
            if column_changes is None
            else _ColumnChanges(column_changes).apply_to(field, path)
        )

    return Schema(
        fields=tuple(
            _SiblingChanges(changes).rebuild(
                schema.fields, "", apply_to_column, lambda field: field
            )
        )
    )


def _to_member(field: Field) -> Member:
    return Member(field.name, field.type, nullable=field.nullable)


class _SiblingChanges:
    """The added, removed and reordered siblings, by the path of their parent."""

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
        apply_to_part: Callable[[Part, str], Part],
        create: Callable[[Field], Part],
    ) -> list[Part]:
        """The siblings after the changes, in their new order."""
        remaining: dict[str, Part] = {}
        for part in parts:
            path = child(parent, part.name)
            if path not in self._removed:
                remaining[part.name] = apply_to_part(part, path)
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


class _ColumnChanges:
    """The changes to one column."""

    def __init__(self, changes: Sequence[AnySchemaChange]) -> None:
        self._changes = changes
        self._siblings = _SiblingChanges(changes)
        self._types = {
            change.path: change.after for change in changes if isinstance(change, TypeChanged)
        }
        self._nullable = {
            change.path: change.after
            for change in changes
            if isinstance(change, NullabilityChanged)
        }

    def apply_to(self, field: Field, path: str) -> Field:
        """The column after its changes."""
        properties: dict[str, Any] = {
            _PROPERTIES[type(change)]: change.after
            for change in self._changes
            if change.path == path and isinstance(change, _PropertyChange)
        }
        type_after = self._apply_to_type(field.type, path)
        removed = removed_paths(field, msgspec.structs.replace(field, type=type_after))
        nested = self._nested_fields(
            (each for each in field.nested if each.path not in removed), path
        )
        if type_after != field.type:
            properties["native_type"] = None
            nested = [msgspec.structs.replace(each, native_type=None) for each in nested]
        return msgspec.structs.replace(field, type=type_after, nested=tuple(nested), **properties)

    def _apply_to_type(self, type: DataType, path: str) -> DataType:
        if path in self._types:
            return self._types[path]
        match type:
            case Struct(members) if len({member.name for member in members}) == len(members):
                return Struct(
                    self._siblings.rebuild(members, path, self._apply_to_member, _to_member)
                )
            case Array(element, nullable):
                inner = path + ELEMENT
                return Array(
                    self._apply_to_type(element, inner),
                    element_nullable=self._is_nullable(inner, nullable),
                )
            case Map(key, value, nullable):
                inner = path + VALUE
                return Map(
                    self._types.get(path + KEY, key),
                    self._apply_to_type(value, inner),
                    value_nullable=self._is_nullable(inner, nullable),
                )
            case _:
                return type

    def _apply_to_member(self, member: Member, path: str) -> Member:
        nullable = self._is_nullable(path, member.nullable)
        return Member(member.name, self._apply_to_type(member.type, path), nullable=nullable)

    def _is_nullable(self, path: str, before: bool) -> bool:
        return self._nullable.get(path, before)

    def _nested_fields(self, before: Iterable[NestedField], column: str) -> list[NestedField]:
        removed = [change.path for change in self._changes if isinstance(change, FieldRemoved)]
        nested = {
            each.path: each
            for each in before
            if not any(is_within(each.path, path) for path in removed)
        }
        for change in self._changes:
            if isinstance(change, FieldAdded):
                nested[change.path] = _nested_field_of(change.after, change.path)
                nested.update((each.path, each) for each in change.after.nested)
            elif isinstance(change, _AnnotationChange) and change.path != column:
                current = nested.get(change.path) or NestedField(path=change.path)
                property = {_PROPERTIES[type(change)]: change.after}
                nested[change.path] = msgspec.structs.replace(current, **property)
        return [each for each in nested.values() if each != NestedField(path=each.path)]


def _nested_field_of(field: Field, path: str) -> NestedField:
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
