"""Changes of Protobuf messages that only break the wire format: numbers and encodings of fields.

Messages that were written before are read by number. No SQL names them, so lineage does not tell
who reads them, and the change itself is the finding.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from lumos.gate.reports import GateFinding, GateLocation
from lumos.gate.schema_files import DeclaredSchema
from lumos.impact.changes import column_parts
from lumos.model.schema import Schema
from lumos.model.types import quoted_name
from lumos.model.urn import name_in
from lumos.schemas.paths import parent_of

_NUMBER: Final = "field-number"
_ENCODING: Final = "field-encoding"
# Types that are written alike; a reader takes one of another group for something else.
_ENCODINGS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool"), "varint"),
    **dict.fromkeys(("sint32", "sint64"), "zigzag"),
    **dict.fromkeys(("fixed32", "sfixed32"), "32 bits"),
    **dict.fromkeys(("fixed64", "sfixed64"), "64 bits"),
}


class _WireField(NamedTuple):
    """A field of a message as it is written."""

    path: str
    number: int
    type: str
    native_type: str | None


class _WireChange(NamedTuple):
    """A field that is read wrongly, with what it was and what it is."""

    rule: str
    path: str
    before: str
    after: str
    text: str


def wire_findings(
    before: Iterable[DeclaredSchema], after: Iterable[DeclaredSchema]
) -> Iterator[GateFinding]:
    """The changed messages whose earlier data would be read wrongly."""
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
                    _NUMBER, path, f"{reused.path} {reused.type}", f"{path} {field.type}",
                    f"reuses the field number {field.number} of {reused.path}, which is "
                    f"{reused.type} and not {field.type}",
                )  # fmt: skip
        elif earlier.number != field.number:
            yield _WireChange(
                _NUMBER, path, str(earlier.number), str(field.number),
                f"changed its field number from {earlier.number} to {field.number}",
            )  # fmt: skip
        elif _is_encoded_differently(earlier.native_type, field.native_type):
            one, other = str(earlier.native_type), str(field.native_type)
            yield _WireChange(
                _ENCODING, path, one, other, f"changed its encoding from {one} to {other}"
            )


def _wire_fields(schema: Schema) -> Iterator[_WireField]:
    parts = column_parts(schema)
    for field in schema.fields:
        path = quoted_name(field.name)
        if field.field_id is not None:
            yield _WireField(path, field.field_id, field.type.text, field.native_type)
        for note in field.nested:
            if note.field_id is not None and note.path in parts:
                yield _WireField(note.path, note.field_id, parts[note.path].type.text, None)


def _is_encoded_differently(before: str | None, after: str | None) -> bool:
    """Whether two types of numbers are written differently; other types differ in the schema."""
    one, other = _ENCODINGS.get(before or ""), _ENCODINGS.get(after or "")
    return one is not None and other is not None and one != other


def _finding(declared: DeclaredSchema, change: _WireChange) -> GateFinding:
    name = name_in(declared.urn)
    parts = (declared.urn, *change)
    key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return GateFinding(
        fingerprint=key[:16],
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
