"""Where a conversion stands inside a type, so that all conversions name and cut it alike.

Paths: `column.member`, `array[]`, `map{}` (its values), `map{key}`, `union<0>`; odd names stand
in backticks.
"""

from typing import Final

import msgspec

from lumos.model.schema import Field, NestedField
from lumos.model.types import MAX_DEPTH, DataType, Unknown, quoted_name

TOO_DEEP: Final = Unknown("too deep")
TOO_LARGE: Final = Unknown("too large")
# Types that refer to each other can be small on disk and endless when written out.
LONGEST_EXPANSION: Final = 1_000_000


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A point inside a column's type: its path and depth, the named types around it, and notes."""

    path: str = ""
    depth: int = 1
    inside: frozenset[str] = frozenset()
    notes: dict[str, NestedField] = {}

    @classmethod
    def column(cls, name: str) -> "Place":
        """The beginning of a column."""
        return cls(path=quoted_name(name))

    @classmethod
    def of(cls, field: Field) -> "Place":
        """The beginning of a column whose facts are known, for conversions that write them."""
        place = cls.column(field.name)
        place.note(field.description, default=field.default, field_id=field.field_id)
        place.notes.update((nested.path, nested) for nested in field.nested)
        return place

    @property
    def is_deepest(self) -> bool:
        """Whether a type may stand here, but none inside it."""
        return self.depth >= MAX_DEPTH

    @property
    def facts(self) -> NestedField:
        """What is noted of this place."""
        return self.notes.get(self.path) or NestedField(path=self.path)

    def member(self, name: str) -> "Place":
        return self._below(f".{quoted_name(name)}" if self.path else quoted_name(name))

    def element(self) -> "Place":
        return self._below("[]")

    def key(self) -> "Place":
        return self._below("{key}")

    def value(self) -> "Place":
        return self._below("{}")

    def option(self, index: int) -> "Place":
        return self._below(f"<{index}>")

    def _below(self, step: str) -> "Place":
        return msgspec.structs.replace(self, path=self.path + step, depth=self.depth + 1)

    def within(self, name: str) -> "Place":
        """The same place, inside one more named type."""
        return msgspec.structs.replace(self, inside=self.inside | {name})

    def note(
        self,
        description: str | None = None,
        *,
        default: str | None = None,
        field_id: int | None = None,
    ) -> None:
        """Remembers what is said of this place; what was said first stays."""
        known = self.facts
        merged = NestedField(
            path=self.path,
            description=known.description or description or None,
            default=default if known.default is None else known.default,
            field_id=field_id if known.field_id is None else known.field_id,
        )
        if merged != NestedField(path=self.path):
            self.notes[self.path] = merged

    def field(
        self, name: str, type: DataType, *, nullable: bool, native_type: str | None = None
    ) -> Field:
        """The column that begins here, with all that was noted on the way through its type."""
        own = self.facts
        return Field(
            name=name,
            type=type,
            nullable=nullable,
            default=own.default,
            description=own.description,
            native_type=native_type,
            field_id=own.field_id,
            nested=tuple(note for path, note in self.notes.items() if path != self.path),
        )


class References:
    """How much of a foreign schema's named types has been written out so far."""

    def __init__(self) -> None:
        self._written = 0

    def cut(self, name: str, place: Place, *, called: str = "") -> Unknown | None:
        """What stands for the named type here when it cannot be written out (again)."""
        if name in place.inside:
            return Unknown(f"recursive:{called or name}")
        return TOO_LARGE if self.exhausted else None

    @property
    def exhausted(self) -> bool:
        """Whether so much has been written out that nothing more will be."""
        return self._written > LONGEST_EXPANSION

    def written(self, type: DataType) -> DataType:
        """The type, once it has been counted."""
        self._written += len(type.text)
        return type
