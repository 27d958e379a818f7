"""Fields, schemas and their fingerprints."""

import hashlib
from collections.abc import Iterable
from functools import cached_property

import msgspec

from lumos.model.types import DataType, quoted_name, quoted_text

# Terms, compliance labels and properties are said of a field; its schema is the same without them,
# so no fingerprint knows of them.


class NestedField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a format says of a field inside a field, beyond its type; `path` is from the column."""

    path: str
    description: str | None = None
    default: str | None = None
    tags: tuple[str, ...] = ()
    native_type: str | None = None
    field_id: int | None = None
    terms: tuple[str, ...] = ()
    compliance: tuple[str, ...] = ()
    properties: dict[str, str] = {}


class Field(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A column of a dataset."""

    name: str
    type: DataType
    nullable: bool = True
    key: bool = False
    partition: bool = False
    default: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    native_type: str | None = None
    field_id: int | None = None
    nested: tuple[NestedField, ...] = ()
    terms: tuple[str, ...] = ()
    compliance: tuple[str, ...] = ()
    properties: dict[str, str] = {}

    def shape(self) -> str:
        """The part of the field's text line that decides whether readers still work."""
        text = f"{quoted_name(self.name)} {self.type.text}"
        if not self.nullable:
            text += " NOT NULL"
        if self.key:
            text += " KEY"
        if self.partition:
            text += " PARTITION"
        return text

    def __str__(self) -> str:
        text = self.shape()
        if self.default is not None:
            text += f" DEFAULT {quoted_text(self.default)}"
        if self.description:
            text += f" COMMENT {quoted_text(self.description)}"
        return text

    def _full(self) -> str:
        """All that people may change about the field, for the full fingerprint."""
        if not self.tags and not self.nested:
            return str(self)
        lines = [str(self), *(f" TAG {quoted_text(tag)}" for tag in sorted(self.tags))]
        for nested in sorted(self.nested, key=lambda each: each.path):
            facts = (nested.default, nested.description, *sorted(nested.tags))
            if any(fact is not None for fact in facts):
                lines.append(" ".join([" AT", quoted_name(nested.path), *map(_fact, facts)]))
        return "\n".join(lines)


def _fact(text: str | None) -> str:
    return "-" if text is None else quoted_text(text)


class Schema(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The ordered fields of a dataset at one time; fingerprints are worked out once."""

    fields: tuple[Field, ...] = ()

    @cached_property
    def shape(self) -> str:
        """Fingerprint of names, types, nullability, order, keys and partitioning."""
        return fingerprint(field.shape() for field in self.fields)

    @cached_property
    def full(self) -> str:
        """Fingerprint of the shape and of descriptions, defaults and tags."""
        return fingerprint(field._full() for field in self.fields)

    def field(self, name: str) -> Field | None:
        """The column of that exact name."""
        return next((field for field in self.fields if field.name == name), None)

    def names_that_differ_only_in_case(self) -> tuple[tuple[str, ...], ...]:
        """Groups of columns that engines which fold case cannot tell apart."""
        by_folded: dict[str, list[str]] = {}
        for field in self.fields:
            by_folded.setdefault(field.name.casefold(), []).append(field.name)
        return tuple(tuple(names) for names in by_folded.values() if len(names) > 1)

    def __str__(self) -> str:
        return "\n".join(str(field) for field in self.fields)


def fingerprint(lines: Iterable[str]) -> str:
    """A short stable hash of some lines of canonical text."""
    text = "\n".join(lines)
    # Text from outside may hold lone surrogates; they must hash, not fail.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
