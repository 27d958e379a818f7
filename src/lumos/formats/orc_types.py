"""ORC's types in the algebra.

ORC has no NOT NULL of its own; what Iceberg notes of it, and of field ids, is taken over. The
names that differ: CHAR and VARCHAR are STRING with a length, TIMESTAMP counts nanoseconds.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from lumos.formats.columns import Leaf, kind_of_values
from lumos.formats.interface import KnownSchema
from lumos.formats.names import with_distinct_names
from lumos.formats.protobuf import fields, numbers
from lumos.formats.varints import Malformed
from lumos.model.schema import Field, Schema
from lumos.model.type_path import TOO_DEEP, TypePath
from lumos.model.types import (
    BINARY,
    BOOLEAN,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    Array,
    DataType,
    Decimal,
    Map,
    Member,
    String,
    Struct,
    Timestamp,
    Union,
    Unknown,
)

_SIMPLE: Final[dict[int, tuple[DataType, str]]] = {
    0: (BOOLEAN, "boolean"),
    1: (INT8, "tinyint"),
    2: (INT16, "smallint"),
    3: (INT32, "int"),
    4: (INT64, "bigint"),
    5: (FLOAT32, "float"),
    6: (FLOAT64, "double"),
    7: (STRING, "string"),
    8: (BINARY, "binary"),
    9: (Timestamp("ns"), "timestamp"),
    15: (DATE, "date"),
    18: (Timestamp("ns", zoned=True), "timestamp with local time zone"),
    19: (Unknown("geometry"), "geometry"),
    20: (Unknown("geography"), "geography"),
}
_LIST, _MAP, _STRUCT, _UNION, _DECIMAL, _VARCHAR, _CHAR = 10, 11, 12, 13, 14, 16, 17
# Before precisions were stored, every decimal had this one.
_OLDEST_PRECISION, _OLDEST_SCALE = 38, 10
_MOST_DIGITS: Final = 38


class Column(NamedTuple):
    """A leaf column, the number of its type, and whether every row has one value or null of it."""

    leaf: Leaf
    number: int
    once_per_row: bool


class OrcSchema(NamedTuple):
    """A schema, and its leaf columns with the numbers under which statistics are kept."""

    known: KnownSchema
    columns: list[Column]


class _Type(NamedTuple):
    kind: int
    subtypes: tuple[int, ...]
    names: tuple[str, ...]
    length: int
    precision: int
    scale: int
    attributes: dict[str, str]


@lru_cache(maxsize=2048)
def read_types(messages: tuple[bytes, ...]) -> OrcSchema:
    """The schema that a footer's list of types makes; raises Malformed."""
    return _Reader([_type(message) for message in messages]).schema()


def _type(message: bytes) -> _Type:
    facts: dict[int, int] = {}
    subtypes: list[int] = []
    names: list[str] = []
    attributes: dict[str, str] = {}
    for id, value in fields(message):
        if id == 2:
            subtypes.extend(numbers(value))
        elif isinstance(value, int):
            facts[id] = value
        elif id == 3:
            names.append(_text(value))
        elif id == 7:
            pair = {key: _text(text) for key, text in fields(value) if isinstance(text, bytes)}
            attributes[pair.get(1, "")] = pair.get(2, "")
    return _Type(
        kind=facts.get(1, 0),
        subtypes=tuple(subtypes),
        names=tuple(names),
        length=facts.get(4, 0),
        precision=facts.get(5, 0),
        scale=facts.get(6, 0),
        attributes=attributes,
    )


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Malformed("A name is not valid UTF-8.") from None


class _Reader:
    """Reads the list of types, each of which refers to later ones by their numbers."""

    def __init__(self, types: Sequence[_Type]) -> None:
        self.types = types
        self.columns: list[Column] = []
        self.met: set[int] = set()

    def schema(self) -> OrcSchema:
        if not self.types:
            raise Malformed("It has no types.")
        is_record = self.types[0].kind == _STRUCT
        members = self._members(0) if is_record else [("value", 0)]
        schema = Schema(fields=tuple(self._column(name, number) for name, number in members))
        return OrcSchema(KnownSchema(with_distinct_names(schema)), self.columns)

    def _column(self, name: str, number: int) -> Field:
        place = TypePath.column(name)
        type, native = self._read(number, place, once_per_row=True)
        nullable = self.types[number].attributes.get("iceberg.required") != "true"
        return place.field(name, type, nullable=nullable, native_type=native)

    def _read(self, number: int, place: TypePath, *, once_per_row: bool) -> tuple[DataType, str]:
        """The type of that number and ORC's own text for it."""
        # Types form a tree; one that is used twice could make a small footer endless.
        if number in self.met:
            raise Malformed("It uses a type twice.")
        self.met.add(number)
        it = self.types[number]
        id = it.attributes.get("iceberg.id", "")
        place.note(field_id=int(id) if id.isascii() and id.isdigit() and len(id) < 10 else None)
        if _LIST <= it.kind <= _UNION:
            if place.is_deepest:
                return TOO_DEEP, "too deep"
            return self._nested(it, number, place, once_per_row=once_per_row)
        type, native = _scalar(it)
        self.columns.append(
            Column(Leaf(place.path, type, kind_of_values(type)), number, once_per_row)
        )
        return type, native

    def _nested(
        self, it: _Type, number: int, place: TypePath, *, once_per_row: bool
    ) -> tuple[DataType, str]:
        if it.kind == _STRUCT:
            members, natives = [], []
            for name, part in self._members(number):
                type, native = self._read(part, place.member(name), once_per_row=once_per_row)
                members.append(Member(name, type))
                natives.append(f"{name}:{native}")
            return Struct(members), f"struct<{','.join(natives)}>"
        parts = self._parts(number)
        if it.kind == _UNION:
            read = [
                self._read(part, place.option(index), once_per_row=False)
                for index, part in enumerate(parts)
            ]
            return Union([type for type, _ in read]), f"uniontype<{','.join(n for _, n in read)}>"
        if len(parts) != it.kind - _LIST + 1:
            raise Malformed("A list or map has the wrong number of parts.")
        if it.kind == _LIST:
            element, native = self._read(parts[0], place.element(), once_per_row=False)
            return Array(element), f"array<{native}>"
        key, key_native = self._read(parts[0], place.key(), once_per_row=False)
        value, native = self._read(parts[1], place.value(), once_per_row=False)
        return Map(key, value), f"map<{key_native},{native}>"

    def _members(self, number: int) -> list[tuple[str, int]]:
        names, parts = self.types[number].names, self._parts(number)
        if len(names) != len(parts):
            raise Malformed("A record has not as many names as members.")
        return list(zip(names, parts, strict=True))

    def _parts(self, number: int) -> tuple[int, ...]:
        parts = self.types[number].subtypes
        if not all(number < part < len(self.types) for part in parts):
            raise Malformed("A type refers to one that is not there.")
        return parts


def _scalar(it: _Type) -> tuple[DataType, str]:
    if it.kind in _SIMPLE:
        return _SIMPLE[it.kind]
    if it.kind == _DECIMAL:
        precision, scale = it.precision, it.scale
        if not precision:
            precision, scale = _OLDEST_PRECISION, _OLDEST_SCALE
        if precision > _MOST_DIGITS or scale > precision:
            raise Malformed("A decimal has more digits than any may have.")
        return Decimal(precision, scale), f"decimal({precision},{scale})"
    if it.kind in (_VARCHAR, _CHAR):
        native = "varchar" if it.kind == _VARCHAR else "char"
        return String(it.length or None), f"{native}({it.length})"
    raise Malformed(f"There is no type {it.kind}.")
