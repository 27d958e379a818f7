"""Maps BSON types to data types, and counts the fields of documents."""

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any, Final

import bson
import msgspec
from bson import Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument

from lumos.model.types import (
    BINARY,
    BOOLEAN,
    FLOAT64,
    INT32,
    INT64,
    JSON,
    NULL,
    STRING,
    UNKNOWN,
    UUID,
    Array,
    Binary,
    DataType,
    Decimal,
    Map,
    Member,
    Struct,
    Timestamp,
    Union,
    Unknown,
)

# An object with more keys is treated as a map: its keys are data.
MAX_KEYS: Final = 2000
# Deeper values are ignored.
MAX_DEPTH: Final = 32

SCALARS: Final[dict[str, DataType]] = {
    "bool": BOOLEAN,
    "int": INT32,
    "long": INT64,
    "double": FLOAT64,
    "decimal": Decimal(),
    "string": STRING,
    "symbol": STRING,
    "regex": STRING,
    "javascript": STRING,
    "objectId": Binary(12),
    "date": Timestamp("ms", zoned=True),
    "binData": BINARY,
    "uuid": UUID,
    "null": NULL,
    "undefined": NULL,
    "timestamp": Unknown("timestamp"),
    "minKey": Unknown("minKey"),
    "maxKey": Unknown("maxKey"),
    "dbPointer": Unknown("dbPointer"),
    "unknown": UNKNOWN,
    # This name only occurs in validators.
    "number": FLOAT64,
    # An object nested deeper than the maximum depth.
    "nested": JSON,
}
_NUMBERS: Final = (INT32, INT64, FLOAT64)


def unite_types(types: Iterable[DataType]) -> DataType:
    """One type that covers all given types, or their union."""
    options: list[DataType] = []
    for type in chain.from_iterable(map(_options, types)):
        for index, other in enumerate(options):
            united = _unite_two(other, type)
            if united is not None:
                options[index] = united
                break
        else:
            options.append(type)
    if len(options) < 2:
        return options[0] if options else NULL
    # Sorted, since samples have no fixed order.
    return Union(
        sorted(options, key=lambda option: (isinstance(option, Array | Map | Struct), option.text))
    )


def object_type(members: dict[str, DataType]) -> DataType:
    """The type of objects with these keys; a map if there are too many."""
    if len(members) > MAX_KEYS:
        return Map(STRING, unite_types(members.values()))
    return Struct(Member(name, type) for name, type in members.items())


def _options(type: DataType) -> tuple[DataType, ...]:
    match type:
        case Union(options):
            return options
        case _:
            return () if type == NULL else (type,)


def _unite_two(left: DataType, right: DataType) -> DataType | None:
    """One type that covers both types, or None if they are too different."""
    if left == right:
        return left
    match left, right:
        case Array(), Array():
            return Array(unite_types((left.element, right.element)))
        case Struct(), Struct():
            members = {member.name: member.type for member in left.members}
            for member in right.members:
                members[member.name] = unite_types((members.get(member.name, NULL), member.type))
            return object_type(members)
        case Map(), Map():
            return Map(STRING, unite_types((left.value, right.value)))
        case (Map() as map, Struct() as struct) | (Struct() as struct, Map() as map):
            return Map(
                STRING, unite_types((map.value, *(member.type for member in struct.members)))
            )
        case Decimal(), Decimal():
            return Decimal()
    if left in _NUMBERS and right in _NUMBERS:
        return max(left, right, key=_NUMBERS.index)
    # A decimal can represent every integer, but not every double.
    integers = {left, right} - {Decimal()}
    return Decimal() if Decimal() in (left, right) and integers <= {INT32, INT64} else None


# Further fields of a collection are ignored.
MAX_FIELDS: Final = 20_000
# Keys that are numbers, ids or dates. Objects with enough of them are maps.
_DATA_KEY: Final = re.compile(
    r"(?:\d+|[0-9a-f]{24}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d(?:-\d\d\S*)?)\Z",
    re.ASCII | re.IGNORECASE,
)
_MIN_DATA_KEYS: Final = 20
_UUIDS: Final = (3, 4)
# Accept dates outside of the range of Python, and text that is not UTF-8.
DECODING: Final[CodecOptions[Mapping[str, Any]]] = CodecOptions(
    datetime_conversion=DatetimeConversion.DATETIME_MS, unicode_decode_error_handler="replace"
)
_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Int64: "long",
    float: "double",
    Decimal128: "decimal",
    str: "string",
    bytes: "binData",
    ObjectId: "objectId",
    DatetimeMS: "date",
    Regex: "regex",
    Code: "javascript",
    bson.Timestamp: "timestamp",
    MinKey: "minKey",
    MaxKey: "maxKey",
    type(None): "null",
    dict: "object",
    list: "array",
    DBRef: "object",
}


class FieldCounts(msgspec.Struct, omit_defaults=True):
    """Counts of one field of the documents, by type."""

    count: int = 0
    types: dict[str, int] = {}
    # The sum of its positions in the documents, to order columns by their average position.
    order: int = 0
    members: dict[str, "FieldCounts"] = {}
    element: "FieldCounts | None" = None
    # The counts of all values of a map.
    value: "FieldCounts | None" = None

    @property
    def has_data_for_keys(self) -> bool:
        """Whether the keys of these objects are data rather than names of fields."""
        return self.value is not None or (
            len(self.members) >= _MIN_DATA_KEYS
            and all(_DATA_KEY.match(key) for key in self.members)
        )

    def values(self) -> "FieldCounts":
        """The merged counts of the values under all keys."""
        merged = FieldCounts() if self.value is None else self.value
        for member in self.members.values():
            merged.add(member)
        return merged

    def add(self, other: "FieldCounts") -> None:
        """Add the counts of the same field of other documents."""
        self.count += other.count
        self.order += other.order
        for name, count in other.types.items():
            self.types[name] = self.types.get(name, 0) + count
        if other.element is not None:
            self.element = self.element or FieldCounts()
            self.element.add(other.element)
        if self.value is not None or other.value is not None:
            self.value = self.values()
            self.value.add(other.values())
            self.members = {}
            return
        for key, member in other.members.items():
            self.members.setdefault(key, FieldCounts()).add(member)
        if len(self.members) > MAX_KEYS:
            self.value, self.members = self.values(), {}


class DocumentCounter:
    """Counts the fields of documents."""

    def __init__(self) -> None:
        self.seen: Final = FieldCounts()
        self.damaged = 0
        # Whether fields were ignored because of the limits.
        self.is_truncated = False
        self._field_count = 0

    def count_documents(self, cursor: AbstractContextManager[Iterable[RawBSONDocument]]) -> None:
        """Count all documents of a cursor and close it."""
        with cursor as found:
            for document in found:
                try:
                    self.count_document(bson.decode(document.raw, DECODING))
                except (BSONError, ValueError):
                    self.damaged += 1

    def count_document(self, document: Mapping[str, Any]) -> None:
        """Count one document."""
        self.seen.count += 1
        self._count_members(self.seen, document, 1)

    def _count(self, counts: FieldCounts, value: object, depth: int) -> None:
        counts.count += 1
        name = type_name(value)
        if name in ("object", "array") and depth >= MAX_DEPTH:
            name = "nested"
        counts.types[name] = counts.types.get(name, 0) + 1
        if name == "object":
            members = value.as_doc() if isinstance(value, DBRef) else value
            assert isinstance(members, Mapping)
            self._count_members(counts, members, depth + 1)
        elif name == "array":
            assert isinstance(value, list)
            if counts.element is None:
                counts.element = FieldCounts()
            for element in value:
                self._count(counts.element, element, depth + 1)

    def _count_members(self, counts: FieldCounts, members: Mapping[str, Any], depth: int) -> None:
        for order, (key, value) in enumerate(members.items()):
            if counts.value is not None:
                self._count(counts.value, value, depth)
                continue
            member = counts.members.get(key)
            if member is None:
                if depth > 1 and len(counts.members) >= MAX_KEYS:
                    counts.value, counts.members = counts.values(), {}
                    self._count(counts.value, value, depth)
                    continue
                if self._field_count >= MAX_FIELDS or len(counts.members) >= MAX_KEYS:
                    self.is_truncated = True
                    continue
                member = counts.members[key] = FieldCounts()
                self._field_count += 1
            member.order += order
            self._count(member, value, depth)


def type_name(value: object) -> str:
    """MongoDB's name for the type of a value."""
    if isinstance(value, bson.Binary):
        return "uuid" if value.subtype in _UUIDS else "binData"
    return _NAMES.get(type(value), "unknown")
