"""Paths of nested fields inside a column's type, used by all conversions.

Paths: `column.member`, `array[]`, `map{}` (its values), `map{key}`, `union<0>`. Names with special
characters are in backticks.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from lumos.model.paths import ELEMENT, KEY, field_name, lineage_steps
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import (
    MAX_DEPTH,
    UNKNOWN,
    Array,
    DataType,
    Map,
    Struct,
    Union,
    Unknown,
    quoted_name,
)

TOO_DEEP: Final = Unknown("too deep")
TOO_LARGE: Final = Unknown("too large")
# A small schema whose types refer to each other can become very large when it is expanded.
MAX_EXPANSION_LENGTH: Final = 1_000_000


class TypePath(msgspec.Struct, frozen=True, kw_only=True):
    """A path inside a column's type, its depth, the named types around it, and notes by path."""

    path: str = ""
    depth: int = 1
    inside: frozenset[str] = frozenset()
    notes: dict[str, NestedField] = {}

    @classmethod
    def column(cls, name: str) -> "TypePath":
        """The path of a column."""
        return cls(path=quoted_name(name))

    @classmethod
    def of(cls, field: Field) -> "TypePath":
        """The path of a column with its description, default and id, for writers."""
        type_path = cls.column(field.name)
        type_path.note(field.description, default=field.default, field_id=field.field_id)
        type_path.notes.update((nested.path, nested) for nested in field.nested)
        return type_path

    @property
    def is_deepest(self) -> bool:
        """Whether nothing may be nested below this path."""
        return self.depth >= MAX_DEPTH

    @property
    def details(self) -> NestedField:
        """The description, default and id noted at this path."""
        return self.notes.get(self.path) or NestedField(path=self.path)

    def member(self, name: str) -> "TypePath":
        return self._child(f".{quoted_name(name)}" if self.path else quoted_name(name))

    def element(self) -> "TypePath":
        return self._child("[]")

    def key(self) -> "TypePath":
        return self._child("{key}")

    def value(self) -> "TypePath":
        return self._child("{}")

    def option(self, index: int) -> "TypePath":
        return self._child(f"<{index}>")

    def _child(self, step: str) -> "TypePath":
        return msgspec.structs.replace(self, path=self.path + step, depth=self.depth + 1)

    def within(self, name: str) -> "TypePath":
        """The same path, inside one more named type."""
        return msgspec.structs.replace(self, inside=self.inside | {name})

    def note(
        self,
        description: str | None = None,
        *,
        default: str | None = None,
        field_id: int | None = None,
    ) -> None:
        """Note the description, default and id of this path; earlier values take precedence."""
        # Return early, since most fields have none of them.
        if not description and default is None and field_id is None:
            return
        earlier = self.details
        merged = NestedField(
            path=self.path,
            description=earlier.description or description or None,
            default=default if earlier.default is None else earlier.default,
            field_id=field_id if earlier.field_id is None else earlier.field_id,
        )
        if merged != NestedField(path=self.path):
            self.notes[self.path] = merged

    def field(
        self, name: str, type: DataType, *, nullable: bool, native_type: str | None = None
    ) -> Field:
        """The column at this path, with all notes inside its type."""
        own = self.details
        return Field(
            name=name,
            type=type,
            nullable=nullable,
            default=own.default,
            description=own.description,
            native_type=native_type,
            field_id=own.field_id,
            nested=tuple(note for path, note in self.notes.items() if path != self.path)
            if self.notes
            else (),
        )


class NamedTypes:
    """Limits the expansion of named types in a schema of another tool."""

    def __init__(self) -> None:
        self._expanded_length = 0

    def replacement_for(
        self, name: str, type_path: TypePath, *, display_name: str = ""
    ) -> Unknown | None:
        """The type to use instead of a recursive or too large type; None if it may be expanded."""
        if name in type_path.inside:
            return Unknown(f"recursive:{display_name or name}")
        return TOO_LARGE if self.is_exhausted else None

    @property
    def is_exhausted(self) -> bool:
        """Whether expanded types exceed the limit."""
        return self._expanded_length > MAX_EXPANSION_LENGTH

    def count_expansion(self, type: DataType) -> DataType:
        """Add the size of an expanded type to the total, and return the type."""
        self._expanded_length += len(type.text)
        return type


class NestedPart(NamedTuple):
    """A part of a column's type; only members of structs have names."""

    path: str
    name: str | None
    type: DataType
    nullable: bool


def nested_parts(field: Field) -> Iterator[NestedPart]:
    """All parts of a column's type, each before its own parts."""
    yield from _parts_below(quoted_name(field.name), field.type)


def removed_paths(before: Field, after: Field) -> frozenset[str]:
    """Return the nested paths of a column that its new type no longer has."""
    if before.type == after.type:
        return frozenset()
    remaining_paths = {part.path for part in nested_parts(after)}
    return frozenset(part.path for part in nested_parts(before)) - remaining_paths


def _parts_below(path: str, type: DataType) -> Iterator[NestedPart]:
    for part in _direct_parts(path, type):
        yield part
        yield from _parts_below(part.path, part.type)


def _direct_parts(path: str, type: DataType) -> Iterator[NestedPart]:
    match type:
        case Struct(members):
            for member in members:
                member_path = f"{path}.{quoted_name(member.name)}"
                yield NestedPart(member_path, member.name, member.type, member.nullable)
        case Array(element, nullable):
            yield NestedPart(f"{path}[]", None, element, nullable)
        case Map(key, value, nullable):
            yield NestedPart(f"{path}{{key}}", None, key, False)
            yield NestedPart(f"{path}{{}}", None, value, nullable)
        case Union(options):
            for number, option in enumerate(options):
                yield NestedPart(f"{path}<{number}>", None, option, True)
        case _:
            return


def leaf_fields(schema: Schema) -> Iterator[tuple[str, tuple[str, ...], DataType]]:
    """Yield the path, the names and the type of each column or struct member that is no struct.

    Structs inside arrays and maps are not expanded.
    """
    for field in schema.fields:
        yield from _leaves(field.type, TypePath.column(field.name), (field.name,))


def _leaves(
    type: DataType, type_path: TypePath, names: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...], DataType]]:
    if isinstance(type, Struct) and type.members:
        for member in type.members:
            yield from _leaves(member.type, type_path.member(member.name), (*names, member.name))
    else:
        yield type_path.path, names, type


def field_paths(schema: Schema) -> list[str]:
    """The paths of all fields, each before its nested fields."""
    return [
        path
        for field in schema.fields
        for path in (quoted_name(field.name), *(part.path for part in nested_parts(field)))
    ]


def field_at(path: str, column: Field) -> Field | None:
    """The field at a lineage path inside a column; None if there is none."""
    type, nullable = column.type, column.nullable
    for step in lineage_steps(path)[1:]:
        if isinstance(type, Array) and step != KEY:
            # `items.sku` may mean `items[].sku`.
            type = type.element
            if step == ELEMENT:
                continue
        if isinstance(type, Map):
            type = type.key if step == KEY else type.value
        elif isinstance(type, Struct):
            name = field_name(step)
            member = next((each for each in type.members if each.name.casefold() == name), None)
            if member is None:
                return None
            type, nullable = member.type, nullable or member.nullable
        else:
            type = UNKNOWN
    return msgspec.structs.replace(column, type=type, nullable=nullable)
