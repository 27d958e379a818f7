"""Computes, fingerprints and counts findings: changes between schemas with their verdicts."""

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
    """The identifier of a change to a dataset, which waivers refer to.

    It does not depend on other changes, rules or verdicts. So it includes neither the position of
    an added field nor the fields that a reordering does not move.
    """
    change = finding.change
    before, after = _fingerprint_values(change)
    return schema.fingerprint(
        map(_canonical_text, (urn, kind_of(change), change.path, before, after))
    )


def kind_of(change: AnySchemaChange) -> str:
    """The kind of a change as in JSON, such as `added` or `type_changed`."""
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
    """The names whose order relative to at least one other name changed.

    The first pass finds names that are now before a name that they followed earlier. The second
    pass, in reverse order, finds names that are now after a name that they preceded earlier.
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


# The value of a field before or after a change: text such as a type, a boolean, names, or None.
ChangeValue: TypeAlias = str | bool | tuple[str, ...] | None


class ChangeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A change with its verdicts, as --json prints it; types have their canonical text form."""

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
    """Count the rows of several datasets."""
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
    """The full fingerprint of a dataset's schema, and the schema itself or its JSON."""

    fingerprint: str
    schema: Schema | bytes
    format: str | None = None

    @classmethod
    def of(cls, schema: Schema, format: str | None = None) -> "FingerprintedSchema":
        """Compute the fingerprint of a schema."""
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
    # Do not look up every URN if no dataset can have been removed.
    may_lack_datasets = len(before) > len(after) - len(added)
    removed = tuple(urn for urn in before if urn not in after) if may_lack_datasets else ()
    return SchemaDifferences(changed, tuple(added), removed)


def findings_between(
    before: FingerprintedSchema, after: FingerprintedSchema
) -> tuple[Finding, ...]:
    """The changes of a dataset with their verdicts, which depend on its current format."""
    return classify(compare(_decode_schema(before), _decode_schema(after)), format=after.format)


def change_table_rows(
    urn: str, before: bytes, after: bytes, format: str | None
) -> list[dict[str, Any]]:
    """The rows of `change_rows` for a Parquet table, with the URN, and with values as JSON."""
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
