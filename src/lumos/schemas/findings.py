"""Judged changes between schemas: computing, fingerprinting and counting them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from lumos.errors import MisuseError
from lumos.model import schema
from lumos.model.change import (
    AnySchemaChange,
    FieldAdded,
    FieldRemoved,
    Finding,
    Reordered,
    TagsChanged,
    TypeChanged,
    Verdict,
)
from lumos.model.json_codec import from_json, to_json, to_plain
from lumos.model.schema import Field, Schema
from lumos.model.types import quoted_text
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify

FingerprintValue: TypeAlias = str | bool | Sequence["FingerprintValue"] | None


def change_fingerprint(urn: str, finding: Finding) -> str:
    """An identifier of a change to a dataset that does not depend on other changes.

    Waivers refer to it. It does not include rules, verdicts, or what other changes may alter: the
    position of an added field, and fields that do not move in a reordering.
    """
    change = finding.change
    before, after = _fingerprint_values(change)
    return schema.fingerprint(
        map(_canonical_text, (urn, kind_of(change), change.path, before, after))
    )


def kind_of(change: AnySchemaChange) -> str:
    """The kind of a change in JSON: `added`, `type_changed`, ..."""
    return str(change.__struct_config__.tag)


def _fingerprint_values(change: AnySchemaChange) -> tuple[FingerprintValue, FingerprintValue]:
    match change:
        case FieldAdded(after=field):
            return None, (_field_properties(field), field.default)
        case FieldRemoved(before=field):
            return _field_properties(field), None
        case TypeChanged(before=old, after=new):
            return old.text, new.text
        case Reordered(before=names, after=others):
            moved = moved_names(names, others)
            return [name for name in names if name in moved], [
                name for name in others if name in moved
            ]
        case TagsChanged(before=tags, after=others):
            return sorted(tags), sorted(others)
        case _:
            return change.before, change.after


def _canonical_text(value: FingerprintValue) -> str:
    match value:
        case str():
            return quoted_text(value)
        case None | bool():
            return str(value)
        case _:
            return f"({', '.join(map(_canonical_text, value))})"


def _field_properties(field: Field) -> tuple[str, bool, bool, bool]:
    return field.type.text, field.nullable, field.key, field.partition


def moved_names(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """The names whose order relative to any other name changed.

    The first pass finds names that are now before a name that they followed. The second pass, from
    the end, finds names that are now after a name that they preceded.
    """
    new_positions = {name: position for position, name in enumerate(after)}
    positions = [new_positions[name] for name in before]
    highest = -1
    is_overtaken = []
    for position in positions:
        is_overtaken.append(highest > position)
        highest = max(highest, position)
    lowest = len(positions)
    moved = set()
    for number in range(len(positions) - 1, -1, -1):
        if is_overtaken[number] or lowest < positions[number]:
            moved.add(before[number])
        lowest = min(lowest, positions[number])
    return moved


# A type or other text, a boolean, several names, or None.
ChangeValue: TypeAlias = str | bool | tuple[str, ...] | None


class ChangeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One judged change as --json prints it; types are in their canonical text."""

    path: str
    kind: str
    before: ChangeValue
    after: ChangeValue
    consumer: Verdict
    storage: Verdict
    rule: str
    flags: tuple[str, ...]
    notes: tuple[str, ...]
    fingerprint: str


class ChangeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of datasets and changes, and of changes by consumer verdict."""

    datasets: int = 0
    changes: int = 0
    breaking: int = 0
    compatible: int = 0
    informational: int = 0
    undetermined: int = 0


def change_rows(urn: str, findings: Iterable[Finding]) -> tuple[ChangeRow, ...]:
    """The findings of one dataset as rows, in the same order."""
    return tuple(_row(urn, finding) for finding in findings)


def summarise(datasets: Iterable[Iterable[ChangeRow]]) -> ChangeCounts:
    """The counts over the rows of several datasets."""
    rows_by_dataset = [tuple(rows) for rows in datasets]
    verdicts = Counter(row.consumer for rows in rows_by_dataset for row in rows)
    return ChangeCounts(
        datasets=len(rows_by_dataset),
        changes=verdicts.total(),
        breaking=verdicts[Verdict.BREAKING],
        compatible=verdicts[Verdict.COMPATIBLE],
        informational=verdicts[Verdict.INFORMATIONAL],
        undetermined=verdicts[Verdict.UNDETERMINED],
    )


def _row(urn: str, finding: Finding) -> ChangeRow:
    before, after = _row_values(finding)
    return ChangeRow(
        path=finding.change.path,
        kind=kind_of(finding.change),
        before=before,
        after=after,
        consumer=finding.consumer,
        storage=finding.storage,
        rule=finding.rule,
        flags=finding.flags,
        notes=finding.notes,
        fingerprint=change_fingerprint(urn, finding),
    )


def _row_values(finding: Finding) -> tuple[ChangeValue, ChangeValue]:
    match finding.change:
        case FieldAdded(after=field):
            return None, _type_text(field)
        case FieldRemoved(before=field):
            return _type_text(field), None
        case TypeChanged(before=old, after=new):
            return old.text, new.text
        case change:
            return change.before, change.after


def _type_text(field: Field) -> str:
    return field.type.text if field.nullable else f"{field.type.text} NOT NULL"


class FingerprintedSchema(NamedTuple):
    """A dataset's full fingerprint, and its schema as a value or as JSON."""

    fingerprint: str
    schema: Schema | bytes
    format: str | None = None

    @classmethod
    def of(cls, schema: Schema, format: str | None = None) -> "FingerprintedSchema":
        """A schema with its own fingerprint."""
        return cls(schema.full, schema, format)


class SchemaDifferences(NamedTuple):
    """The datasets that differ between two inventories, by URN."""

    changed: dict[str, tuple[Finding, ...]]
    added: tuple[str, ...]
    removed: tuple[str, ...]


def find_differences(
    before: Mapping[str, FingerprintedSchema], after: Mapping[str, FingerprintedSchema]
) -> SchemaDifferences:
    """Compare two inventories; schemas are only compared if their fingerprints differ."""
    changed: dict[str, tuple[Finding, ...]] = {}
    added: list[str] = []
    for urn, new in after.items():
        old = before.get(urn)
        if old is None:
            added.append(urn)
        elif old[0] != new[0] and (findings := findings_between(old, new)):
            changed[urn] = findings
    # Skips the lookup of every URN if no dataset can have been removed.
    may_lack_datasets = len(before) > len(after) - len(added)
    removed = tuple(urn for urn in before if urn not in after) if may_lack_datasets else ()
    return SchemaDifferences(changed, tuple(added), removed)


def findings_between(
    before: FingerprintedSchema, after: FingerprintedSchema
) -> tuple[Finding, ...]:
    """The judged changes of one dataset, for its current format."""
    return classify(compare(_decode_schema(before), _decode_schema(after)), format=after.format)


def change_table_rows(
    urn: str, before: bytes, after: bytes, format: str | None
) -> list[dict[str, Any]]:
    """The rows of `change_rows` for a Parquet table, with the URN and both sides as JSON."""
    try:
        findings = findings_between(
            FingerprintedSchema("", before), FingerprintedSchema("", after, format)
        )
    except (msgspec.MsgspecError, MisuseError) as problem:
        raise MisuseError(f"The schemas of {urn} cannot be compared: {problem}") from problem
    return [
        {
            **to_plain(row),
            "urn": urn,
            "before": to_json(row.before).decode(),
            "after": to_json(row.after).decode(),
        }
        for row in change_rows(urn, findings)
    ]


def _decode_schema(fingerprinted: FingerprintedSchema) -> Schema:
    return (
        fingerprinted.schema
        if isinstance(fingerprinted.schema, Schema)
        else from_json(fingerprinted.schema, Schema)
    )
