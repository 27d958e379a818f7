"""What documents hold, counted: which keys, how often, with values of which types."""

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

import bson
import msgspec
from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument

from lumos.sources.mongodb.types import DEEPEST, MOST_KEYS

# More places than this in one collection's documents are nobody's schema.
MOST_PLACES: Final = 20_000
# Keys that only count or name things, and how many of them there must be.
_DATA: Final = re.compile(
    r"(?:\d+|[0-9a-f]{24}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d(?:-\d\d\S*)?)\Z",
    re.ASCII | re.IGNORECASE,
)
_FEWEST_DATA_KEYS: Final = 20
_UUIDS: Final = (3, 4)
# Times far off any calendar are values like others; so are texts that are no UTF-8.
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
    Timestamp: "timestamp",
    MinKey: "minKey",
    MaxKey: "maxKey",
    type(None): "null",
    dict: "object",
    list: "array",
    DBRef: "object",
}


class Seen(msgspec.Struct, omit_defaults=True):
    """What stood in one place of the documents: how often, and values of which types."""

    count: int = 0
    types: dict[str, int] = {}
    # The sum of its places among the keys beside it, so that columns come in the usual order.
    order: int = 0
    members: dict[str, "Seen"] = {}
    element: "Seen | None" = None
    # What stood under any key, once keys turned out to be data.
    value: "Seen | None" = None

    @property
    def has_data_for_keys(self) -> bool:
        """Whether its keys are values rather than names."""
        return self.value is not None or (
            len(self.members) >= _FEWEST_DATA_KEYS and all(_DATA.match(key) for key in self.members)
        )

    def values(self) -> "Seen":
        """What stood under its keys, whatever they were."""
        together = Seen() if self.value is None else self.value
        for member in self.members.values():
            together.add(member)
        return together

    def add(self, other: "Seen") -> None:
        """Takes in what stood in the same place of other documents."""
        self.count += other.count
        self.order += other.order
        for name, count in other.types.items():
            self.types[name] = self.types.get(name, 0) + count
        if other.element is not None:
            self.element = self.element or Seen()
            self.element.add(other.element)
        if self.value is not None or other.value is not None:
            self.value = self.values()
            self.value.add(other.values())
            self.members = {}
            return
        for key, member in other.members.items():
            self.members.setdefault(key, Seen()).add(member)
        if len(self.members) > MOST_KEYS:
            self.value, self.members = self.values(), {}


class Documents:
    """Counts documents one after the other."""

    def __init__(self) -> None:
        self.seen: Final = Seen()
        self.damaged = 0
        # Whether there was more than is kept.
        self.is_cut = False
        self._places = 0

    def note_all(self, cursor: AbstractContextManager[Iterable[RawBSONDocument]]) -> None:
        """Notes all documents that a question brings, and ends it."""
        with cursor as found:
            for document in found:
                try:
                    self.note(bson.decode(document.raw, DECODING))
                except (BSONError, ValueError):
                    self.damaged += 1

    def note(self, document: Mapping[str, Any]) -> None:
        """Notes one document."""
        self.seen.count += 1
        self._note_members(self.seen, document, 1)

    def _note(self, seen: Seen, value: object, depth: int) -> None:
        seen.count += 1
        name = type_name(value)
        if name in ("object", "array") and depth >= DEEPEST:
            name = "nested"
        seen.types[name] = seen.types.get(name, 0) + 1
        if name == "object":
            members = value.as_doc() if isinstance(value, DBRef) else value
            assert isinstance(members, Mapping)
            self._note_members(seen, members, depth + 1)
        elif name == "array":
            assert isinstance(value, list)
            self._note_elements(seen, value, depth + 1)

    def _note_members(self, seen: Seen, members: Mapping[str, Any], depth: int) -> None:
        for order, (key, value) in enumerate(members.items()):
            if seen.value is not None:
                self._note(seen.value, value, depth)
                continue
            member = seen.members.get(key)
            if member is None:
                if depth > 1 and len(seen.members) >= MOST_KEYS:
                    seen.value, seen.members = seen.values(), {}
                    self._note(seen.value, value, depth)
                    continue
                if self._places >= MOST_PLACES or len(seen.members) >= MOST_KEYS:
                    self.is_cut = True
                    continue
                member = seen.members[key] = Seen()
                self._places += 1
            member.order += order
            self._note(member, value, depth)

    def _note_elements(self, seen: Seen, values: Iterable[object], depth: int) -> None:
        if seen.element is None:
            seen.element = Seen()
        for value in values:
            self._note(seen.element, value, depth)


def type_name(value: object) -> str:
    """What MongoDB calls the type of a value."""
    if isinstance(value, Binary):
        return "uuid" if value.subtype in _UUIDS else "binData"
    return _NAMES.get(type(value), "unknown")
