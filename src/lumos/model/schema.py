"""Fields and schemas, with their fingerprints and their text format (one field per line)."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Final

import msgspec

from lumos.model.types import (
    TOKENS,
    DataType,
    SchemaSyntaxError,
    TypeReader,
    quoted_name,
    quoted_text,
)

# Terms, compliance labels and properties are annotations: fingerprints ignore them.


class NestedField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Properties of a nested field beyond its type; `path` begins with the column."""

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
        """The part of the field's text line that affects readers."""
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

    def has_facts(self) -> bool:
        """Whether the field has descriptions, defaults or tags, which are not in its shape."""
        return bool(self.description or self.tags or self.nested) or self.default is not None

    def _full(self) -> str:
        """The text for the full fingerprint, with descriptions, defaults and tags."""
        if not self.tags and not self.nested:
            return str(self)
        lines = [str(self), *(f" TAG {quoted_text(tag)}" for tag in sorted(self.tags))]
        for nested in sorted(self.nested, key=lambda each: each.path):
            values = (nested.default, nested.description, *sorted(nested.tags))
            if any(value is not None for value in values):
                lines.append(
                    " ".join([" AT", quoted_name(nested.path), *map(_quoted_or_dash, values)])
                )
        return "\n".join(lines)


def _quoted_or_dash(text: str | None) -> str:
    return "-" if text is None else quoted_text(text)


class Schema(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The ordered fields of a dataset; fingerprints are computed once."""

    fields: tuple[Field, ...] = ()

    @cached_property
    def shape(self) -> str:
        """Fingerprint of names, types, nullability, order, keys and partitioning."""
        return fingerprint(field.shape() for field in self.fields)

    @cached_property
    def full(self) -> str:
        """Fingerprint of the shape and of descriptions, defaults and tags."""
        if not any(field.has_facts() for field in self.fields):
            return self.shape
        return fingerprint(field._full() for field in self.fields)

    def field(self, name: str) -> Field | None:
        """The column with this exact name."""
        return next((field for field in self.fields if field.name == name), None)

    def names_that_differ_only_in_case(self) -> tuple[tuple[str, ...], ...]:
        """Groups of columns that case-insensitive engines cannot distinguish."""
        names_by_folded: dict[str, list[str]] = {}
        for field in self.fields:
            names_by_folded.setdefault(field.name.casefold(), []).append(field.name)
        return tuple(tuple(names) for names in names_by_folded.values() if len(names) > 1)

    def __str__(self) -> str:
        return "\n".join(str(field) for field in self.fields)


def fingerprint(lines: Iterable[str]) -> str:
    """A short stable hash of lines of canonical text."""
    text = "\n".join(lines)
    # Allow lone surrogates, which names may contain.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def parse_schema(text: str, *, strict: bool = False) -> Schema:
    """Parse a schema with one field per line.

    A `strict` parser rejects likely mistakes that other tools allow: empty enums and unions, and
    repeated members, symbols and options.
    """
    if not _QUOTE.search(text):
        try:
            fields = [
                field for line in text.split("\n") for field in _parse_line(line, strict=strict)
            ]
        except SchemaSyntaxError:
            # Parse the entire text below, to get the position of the error.
            pass
        else:
            if len({field.name for field in fields}) == len(fields):
                return Schema(fields=tuple(fields))
    return _SchemaReader(text, strict=strict).schema()


# Cached: the schemas of a repository repeat the same columns in thousands of files.
@lru_cache(maxsize=16_384)
def _parse_line(line: str, *, strict: bool) -> tuple[Field, ...]:
    return _SchemaReader(line, strict=strict).schema().fields


def comments_in(text: str) -> Iterator[tuple[int, str]]:
    """The comments of a text with their line numbers, up to the first syntax error."""
    offset = line = 0
    while (match := TOKENS.match(text, offset)) is not None and match.group():
        if match.group().startswith("#"):
            yield line + 1, match.group()
        line += match.group().count("\n")
        offset = match.end()


# Quoted texts may contain line breaks, so such a schema cannot be parsed line by line.
_QUOTE: Final = re.compile(r"['`]")


class _SchemaReader(TypeReader):
    """Parses the fields of a schema, one per line."""

    def schema(self) -> Schema:
        fields: list[Field] = []
        names: set[str] = set()
        while (token := self.tokens[self.position]).kind != "end":
            if token.kind == "newline":
                self.position += 1
                continue
            field = self._field()
            if field.name in names:
                raise self._error(f"the field '{field.name}' is listed twice", token.offset)
            names.add(field.name)
            fields.append(field)
        return Schema(fields=tuple(fields))

    def _field(self) -> Field:
        name = self._name()
        self.path = quoted_name(name)
        type = self.type()
        clauses: dict[str, bool | str] = {}
        while (token := self._peek()).kind not in ("newline", "end"):
            clause, value = self._clause()
            if clause in clauses:
                raise self._error("the same clause is given twice", token.offset)
            clauses[clause] = value
        return Field(name=name, type=type, **clauses)  # type: ignore[arg-type]

    def _clause(self) -> tuple[str, bool | str]:
        if self._take_words("NOT", "NULL"):
            return "nullable", False
        if self._take_words("KEY"):
            return "key", True
        if self._take_words("PARTITION"):
            return "partition", True
        if self._take_words("DEFAULT"):
            return "default", self._string()
        if self._take_words("COMMENT"):
            return "description", self._string()
        raise self._error(
            f"unexpected {self._peek().text!r}; allowed after the type: "
            "NOT NULL, KEY, PARTITION, DEFAULT 'x', COMMENT 'text'"
        )
