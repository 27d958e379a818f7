"""A schema as reports show it."""

import msgspec
from msgspec import UNSET, UnsetType

from lumos.model.report import Report
from lumos.model.schema import Field, NestedField, Schema


def _says_something(note: NestedField) -> bool:
    words = note.description, note.tags, note.terms, note.compliance, note.properties
    return any(words) or note.default is not None


class FieldReport(Report, frozen=True, kw_only=True):
    name: str
    type: str
    nullable: bool
    key: bool
    partition: bool
    default: str | None
    description: str | None
    tags: tuple[str, ...]
    # As the place itself writes the type, where what is native to it was asked for.
    native_type: str | None = None
    terms: tuple[str, ...] = ()
    compliance: tuple[str, ...] = ()
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    # What is said of fields inside the column.
    nested: tuple[NestedField, ...] = ()
    # By which a table knows the column, however it is called.
    field_id: int | UnsetType = UNSET

    @classmethod
    def of(cls, field: Field, *, native: bool = False) -> "FieldReport":
        return cls(
            name=field.name,
            type=field.type.text,
            nullable=field.nullable,
            key=field.key,
            partition=field.partition,
            default=field.default,
            description=field.description,
            tags=field.tags,
            native_type=field.native_type if native else None,
            terms=field.terms,
            compliance=field.compliance,
            properties=field.properties,
            nested=tuple(
                note
                for note in field.nested
                if _says_something(note) or (native and note.field_id is not None)
            ),
            field_id=field.field_id if native and field.field_id is not None else UNSET,
        )


class SchemaReport(Report, frozen=True, kw_only=True):
    fields: tuple[FieldReport, ...]

    @classmethod
    def of(cls, schema: Schema | None, *, native: bool = False) -> "SchemaReport":
        fields = schema.fields if schema else ()
        return cls(fields=tuple(FieldReport.of(field, native=native) for field in fields))
