"""Changes of Protobuf messages that only break the wire format: numbers and encodings of fields.

Stored messages are decoded by field number. Their readers are not in the lineage of SQL, so the
change itself is the finding.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from lumos.gate.reports import GateFinding, GateLocation, fingerprint_of
from lumos.gate.schema_files import DeclaredSchema
from lumos.impact.changes import column_parts
from lumos.model.paths import parent_of
from lumos.model.schema import Schema
from lumos.model.types import quoted_name
from lumos.model.urn import name_in

_NUMBER_RULE: Final = "field-number"
_ENCODING_RULE: Final = "field-encoding"
# Types with the same encoding; reading with a type of another group yields wrong values.
_ENCODING_BY_TYPE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool"), "varint"),
    **dict.fromkeys(("sint32", "sint64"), "zigzag"),
    **dict.fromkeys(("fixed32", "sfixed32"), "32 bits"),
    **dict.fromkeys(("fixed64", "sfixed64"), "64 bits"),
}


class _WireField(NamedTuple):
    """A field of a message in the wire format."""

    path: str
    number: int
    type: str
    native_type: str | None


class _WireChange(NamedTuple):
    """A change that makes readers decode a field wrongly."""

    rule: str
    path: str
    before: str
    after: str
    text: str


def wire_findings(
    before: Iterable[DeclaredSchema], after: Iterable[DeclaredSchema]
) -> Iterator[GateFinding]:
    """Findings of changed messages whose stored data would be decoded wrongly."""
    old = {each.urn: each for each in before if each.kind == "protobuf"}
    for new in after:
        if new.kind != "protobuf" or new.urn not in old:
            continue
        for change in _changes(old[new.urn].schema, new.schema):
            yield _finding(new, change)


def _changes(before: Schema, after: Schema) -> Iterator[_WireChange]:
    old, new = ({each.path: each for each in _wire_fields(side)} for side in (before, after))
    by_number = {(parent_of(each.path), each.number): each for each in old.values()}
    for path, field in new.items():
        earlier = old.get(path)
        if earlier is None:
            reused = by_number.get((parent_of(path), field.number))
            if reused is not None and reused.type != field.type:
                yield _WireChange(
                    _NUMBER_RULE, path, f"{reused.path} {reused.type}", f"{path} {field.type}",
                    f"reuses the field number {field.number} of {reused.path}, which is "
                    f"{reused.type} and not {field.type}",
                )  # fmt: skip
        elif earlier.number != field.number:
            yield _WireChange(
                _NUMBER_RULE, path, str(earlier.number), str(field.number),
                f"changed its field number from {earlier.number} to {field.number}",
            )  # fmt: skip
        else:
            old_type, new_type = str(earlier.native_type), str(field.native_type)
            encodings = {_ENCODING_BY_TYPE.get(old_type), _ENCODING_BY_TYPE.get(new_type)}
            # Types that are not in `_ENCODING_BY_TYPE` are compared as types of the schema instead.
            if None in encodings or len(encodings) == 1:
                continue
            yield _WireChange(
                _ENCODING_RULE,
                path,
                old_type,
                new_type,
                f"changed its encoding from {old_type} to {new_type}",
            )


def _wire_fields(schema: Schema) -> Iterator[_WireField]:
    parts = column_parts(schema)
    for field in schema.fields:
        path = quoted_name(field.name)
        if field.field_id is not None:
            yield _WireField(path, field.field_id, field.type.text, field.native_type)
        for nested in field.nested:
            if nested.field_id is not None and nested.path in parts:
                yield _WireField(nested.path, nested.field_id, parts[nested.path].type.text, None)


def _finding(declared: DeclaredSchema, change: _WireChange) -> GateFinding:
    name = name_in(declared.urn)
    return GateFinding(
        fingerprint=fingerprint_of((declared.urn, *change)),
        level="error",
        rule=change.rule,
        dataset=name,
        path=change.path,
        before=change.before,
        after=change.after,
        affected=None,
        owners=declared.annotations.owners,
        message=f"{name}.{change.path} {change.text}: messages that were written before are read "
        "wrongly",
        reason="Protobuf identifies fields by number",
        clause=None,
        declared=GateLocation(file=declared.file),
        used=None,
        urn=declared.urn,
        category="breaking",
        bump="major",
    )
