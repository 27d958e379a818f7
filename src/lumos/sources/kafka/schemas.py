"""Converts registered schemas to the schema of a topic, and their versions to its history.

Fields of values are the columns of a topic. The key is one column, `_key`, so its fields cannot
collide with fields of values. If a topic has several types of records, each type is one column.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from lumos.errors import MissingDependency
from lumos.formats.columns import with_distinct_names
from lumos.model.conversions.avro import KnownColumns, schema_from_avro
from lumos.model.conversions.json_schema import bundle_json_schema, schema_from_json_schema
from lumos.model.conversions.protobuf import messages_from_protobuf
from lumos.model.discovery import PastSchema
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import TOO_DEEP, nested_parts
from lumos.model.types import (
    MAX_DEPTH,
    Member,
    SchemaSyntaxError,
    Struct,
    Unknown,
    quoted_name,
)
from lumos.sources.kafka.registry import RegisteredSchema, ResolvedReferences, SubjectNotReadable
from lumos.sources.kafka.subjects import TopicSubject

KEY_COLUMN: Final = "_key"
# The only column of a schema that is not a record.
_VALUE_COLUMN: Final = "value"
# `ChangeClock` replaces a later time by that of the scan.
UNKNOWN_TIME: Final = datetime.max.replace(tzinfo=UTC)
_RECORDED: Final = datetime.min.replace(tzinfo=UTC)


class ParsedSchema(NamedTuple):
    """A registered schema, the fields that it declares, and its description."""

    registered: RegisteredSchema
    schema: Schema
    description: str | None = None
    # Whether the schema declares fields rather than a single value.
    is_record: bool = True


def parse_schema(
    registered: RegisteredSchema,
    references: ResolvedReferences,
    known: KnownColumns | None = None,
) -> ParsedSchema:
    """The fields of a registered schema; raises SubjectNotReadable.

    Versions of one subject share `known`, as for `schema_from_avro`.
    """
    try:
        match registered.type:
            case "AVRO":
                return _parse_avro(registered, references, known)
            case "JSON":
                return _parse_json_schema(registered, references)
            case "PROTOBUF":
                return _parse_protobuf(registered, references)
    except (SchemaSyntaxError, ValueError, RecursionError) as problem:
        reason = "it nests too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise SubjectNotReadable(
            "invalid_schema", f"{_label(registered)} is not valid: {' '.join(reason.split())}"
        ) from None
    raise SubjectNotReadable(
        "unknown_schema_type",
        f"{_label(registered)} has the type {registered.type}; AVRO, JSON and PROTOBUF are read",
    )


def _parse_avro(
    registered: RegisteredSchema, references: ResolvedReferences, known: KnownColumns | None
) -> ParsedSchema:
    value = _json(registered.text)
    if not isinstance(value, str | dict | list):
        raise ValueError("this is not an Avro schema")
    named = [_json(each.text) for _, each in references.schemas]
    schema = schema_from_avro(value, named=named, known=known)
    record = value if isinstance(value, dict) else {}
    is_record = record.get("type") in ("record", "error")
    if is_record and not isinstance(record.get("fields"), list):
        raise ValueError("the record has no list of fields")
    doc = record.get("doc")
    return ParsedSchema(
        registered,
        with_distinct_names(schema),
        doc if is_record and isinstance(doc, str) else None,
        is_record,
    )


def _parse_json_schema(
    registered: RegisteredSchema, references: ResolvedReferences
) -> ParsedSchema:
    value = _json(registered.text)
    if not isinstance(value, dict | bool):
        raise ValueError("this is not a JSON Schema")
    documents = {name: _json(each.text) for name, each in references.schemas}
    bundled = bundle_json_schema(value, documents) if documents else value
    schema = schema_from_json_schema(bundled)
    text = value.get("description") if isinstance(value, dict) else None
    return ParsedSchema(
        registered,
        schema,
        text if isinstance(text, str) else None,
        [field.name for field in schema.fields] != [_VALUE_COLUMN]
        or (isinstance(value, dict) and "properties" in value),
    )


def _parse_protobuf(registered: RegisteredSchema, references: ResolvedReferences) -> ParsedSchema:
    files = {name: each.text for name, each in references.schemas}
    try:
        messages = messages_from_protobuf(registered.text, imported=files.get)
    except MissingDependency as problem:
        raise SubjectNotReadable("missing_dependency", str(problem)) from None
    if not messages:
        raise ValueError("it has no message")
    # By default, serializers write the first message of the file.
    return ParsedSchema(registered, messages[0].schema)


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # Avro's names of types may be registered without quotes.
        if text.strip().isidentifier():
            return text.strip()
        raise ValueError("this is not JSON") from None


def _label(registered: RegisteredSchema) -> str:
    return f"version {registered.version} of '{registered.subject}'"


def combine(parsed: Mapping[TopicSubject, ParsedSchema]) -> Schema:
    """The schema of a topic: its key as one column, and the fields or records of its values."""
    keys = [each for subject, each in parsed.items() if subject.part == "key"]
    values = {subject: each for subject, each in parsed.items() if subject.part == "value"}
    fields: list[Field] = []
    for subject, each in values.items():
        # A single record type is one column, too, so a second one does not move its fields.
        if subject.record is None and len(values) == 1:
            fields += each.schema.fields
        else:
            fields.append(_as_column(subject.record or subject.subject, each))
    if keys:
        name = KEY_COLUMN
        while any(field.name == name for field in fields):
            name = f"_{name}"
        column = _as_column(name, keys[0])
        fields = [replace(column, key=True), *fields]
    return Schema(fields=tuple(fields))


def _as_column(name: str, parsed: ParsedSchema) -> Field:
    """One column with a whole schema as its type, for keys and for topics with several records."""
    if not parsed.is_record and len(parsed.schema.fields) == 1:
        only = parsed.schema.fields[0]
        prefix, length = quoted_name(name), len(quoted_name(only.name))
        nested = tuple(replace(each, path=prefix + each.path[length:]) for each in only.nested)
        return replace(only, name=name, nested=nested)
    column = quoted_name(name)
    members = []
    nested_fields: list[NestedField] = []
    for field in parsed.schema.fields:
        # The type is nested one level deeper here.
        type = field.type if field.type.depth < MAX_DEPTH else TOO_DEEP
        members.append(Member(field.name, type, nullable=field.nullable))
        path = f"{column}.{quoted_name(field.name)}"
        own = NestedField(
            path=path,
            description=field.description,
            default=field.default,
            field_id=field.field_id,
        )
        if own != NestedField(path=path):
            nested_fields.append(own)
        nested_fields += [replace(each, path=f"{column}.{each.path}") for each in field.nested]
    return Field(
        name=name,
        type=Struct(members),
        description=parsed.description,
        nested=tuple(nested_fields),
    )


class SubjectVersions(NamedTuple):
    """The versions of a subject to record, oldest first, and the version recorded last, if any."""

    versions: Sequence[ParsedSchema]
    recorded: int | None = None


def history_of(subjects: Mapping[TopicSubject, SubjectVersions]) -> tuple[PastSchema, ...]:
    """The schemas of a topic after each registered version, oldest first.

    Versions of several subjects are ordered by the ids that the registry gave them. If a scan has
    recorded a version, it is the first one, and `subjects` has only this one and later ones.
    """
    current: dict[TopicSubject, ParsedSchema] = {}
    steps: list[tuple[int, str, TopicSubject, ParsedSchema]] = []
    is_known = any(each.recorded is not None for each in subjects.values())
    for subject, (versions, recorded) in subjects.items():
        last_id = 0
        for parsed in versions:
            # A schema that was registered for another subject first has an older id.
            last_id = max(last_id, parsed.registered.id)
            if recorded is not None and parsed.registered.version <= recorded:
                current[subject] = parsed
            else:
                steps.append((last_id, subject.subject, subject, parsed))
    steps.sort(key=lambda step: step[:2])
    if not is_known:
        # A new topic begins with its first key, which may be registered after its first value.
        for _, _, subject, parsed in steps:
            if subject.part == "key" and subject not in current:
                current[subject] = parsed
    past: list[PastSchema] = []
    if is_known and current:
        past.append(_step(subjects, current, _RECORDED, ""))
    for _, _, subject, parsed in steps:
        if current.get(subject) is parsed and len(steps) > 1:
            continue
        current[subject] = parsed
        at = parsed.registered.at
        version = f"{subject.record or subject.part} v{parsed.registered.version}"
        past.append(_step(subjects, current, at, version))
    return tuple(past)


def _step(
    subjects: Iterable[TopicSubject],
    current: Mapping[TopicSubject, ParsedSchema],
    at: datetime | None,
    version: str,
) -> PastSchema:
    ordered = {subject: current[subject] for subject in subjects if subject in current}
    return PastSchema(
        schema=combine(ordered),
        at=at or UNKNOWN_TIME,
        version=version,
        operation="registered",
        exact_time=at is not None,
    )


def unresolved_names(schema: Schema) -> Iterator[str]:
    """The names of types that a schema refers to but does not define."""
    for field in schema.fields:
        for type in (field.type, *(part.type for part in nested_parts(field))):
            if isinstance(type, Unknown) and type.name.startswith("ref:"):
                yield type.name.removeprefix("ref:")
