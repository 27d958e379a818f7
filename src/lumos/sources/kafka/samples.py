"""Infers the schema of a topic without a registered schema from some of its messages."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec

from lumos.formats.avro import MAGIC, Avro
from lumos.formats.compression import PlainContent
from lumos.formats.csv import Csv
from lumos.formats.inference import widen
from lumos.formats.interface import Sample, UnreadableFile, inferred_schema
from lumos.formats.json import schema_of_objects, type_of_values
from lumos.formats.text import is_text
from lumos.model.schema import Field, Schema
from lumos.model.types import BINARY, STRING, Member, Struct
from lumos.sources.kafka.schemas import KEY_COLUMN

# A message of a schema registry's serializer begins with a zero byte and the id of its schema.
_WIRE_MAGIC: Final = 0
_WIRE_HEADER: Final = 5
_MIN_CSV_MESSAGES: Final = 3
_MAX_COLUMNS: Final = 2_000
_LINE_BREAK: Final = re.compile(rb"[\r\n]")
_VALUE_COLUMN: Final = "value"


class InferredSchema(NamedTuple):
    """A format and the schema of its messages."""

    format: str
    schema: Schema


class _MessageBytes(NamedTuple):
    """The bytes of a message, with the interface of a file."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def head(self, length: int) -> bytes:
        return self.data[:length]

    def tail(self, length: int) -> bytes:
        return self.data[-length:] if length else b""


def schema_ids(messages: Iterable[bytes]) -> set[int]:
    """The schema ids at the start of the messages; empty unless every message has one."""
    found: set[int] = set()
    for message in messages:
        if len(message) < _WIRE_HEADER or message[0] != _WIRE_MAGIC:
            return set()
        found.add(int.from_bytes(message[1:_WIRE_HEADER], "big"))
    return found


def infer_schema(messages: Sequence[bytes]) -> InferredSchema:
    """The format and schema of messages: Avro files, JSON, CSV, text or bytes."""
    if all(message.startswith(MAGIC) for message in messages):
        try:
            return InferredSchema("avro", Avro().read(_MessageBytes(messages[-1])).schema)
        except UnreadableFile:
            return _binary()
    if not all(is_text(message) for message in messages):
        return _binary()
    values = [_json_value(message) for message in messages]
    if all(value is not _NO_JSON for value in values):
        return InferredSchema("json", _json_schema(values))
    objects = [value for value in values if isinstance(value, dict)]
    if objects and len(objects) >= 0.9 * len(values):
        return InferredSchema("json", _json_schema(objects))
    if (columns := _csv_schema(messages)) is not None:
        return InferredSchema("csv", columns)
    return InferredSchema("text", inferred_schema((_VALUE_COLUMN,), (STRING,)).schema)


def _binary() -> InferredSchema:
    return InferredSchema("binary", inferred_schema((_VALUE_COLUMN,), (BINARY,)).schema)


_NO_JSON: Final = object()


def _json_value(message: bytes) -> Any:
    try:
        return msgspec.json.decode(message)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _NO_JSON


def _json_schema(values: Sequence[Any]) -> Schema:
    if values and all(isinstance(value, dict) for value in values):
        # Objects with more keys than a table may have columns are maps: their keys are data.
        with suppress(UnreadableFile):
            return schema_of_objects(list(values)).schema
    return inferred_schema((_VALUE_COLUMN,), (type_of_values(values),)).schema


def _csv_schema(messages: Sequence[bytes]) -> Schema | None:
    lines = [message.strip(b"\r\n") for message in messages]
    if len(lines) < _MIN_CSV_MESSAGES or any(_LINE_BREAK.search(line) for line in lines):
        return None
    text = b"\n".join(lines) + b"\n"
    try:
        if not Csv().recognises(Sample(text, whole=True, total=len(text))):
            return None
        return Csv().read(PlainContent(_MessageBytes(text))).schema
    except UnreadableFile:
        return None


def with_key(schema: Schema, keys: Sequence[bytes]) -> Schema:
    """The schema with a column for the keys of messages, if there are any."""
    if not keys:
        return schema
    inferred = infer_schema(keys).schema.fields
    is_record = [field.name for field in inferred] != [_VALUE_COLUMN]
    members = [Member(field.name, field.type) for field in inferred]
    type = Struct(members) if is_record else inferred[0].type
    name = KEY_COLUMN
    while schema.field(name) is not None:
        name = f"_{name}"
    return Schema(fields=(Field(name=name, type=type, key=True), *schema.fields))


def merge_with_known(observed: Schema, known: Schema, *, is_whole: bool) -> Schema:
    """Merge with the known schema; a sample only adds fields and widens types."""
    if is_whole and observed.fields:
        return observed
    fields = {field.name: field for field in known.fields}
    for field in observed.fields:
        old = fields.get(field.name)
        if old is None and len(fields) < _MAX_COLUMNS:
            fields[field.name] = field
        elif old is not None:
            fields[field.name] = Field(
                name=old.name, type=widen(old.type, field.type), key=old.key or field.key
            )
    return Schema(fields=tuple(fields.values()))
