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
from lumos.schemas.compatibility import judge

Fact: TypeAlias = str | bool | Sequence["Fact"] | None


def change_fingerprint(urn: str, finding: Finding) -> str:
    """An identifier of a change to a dataset that does not depend on other changes.

    Waivers refer to it. Rules and verdicts are not part of it, nor is anything that other changes
    move: the position of a new field, and fields that keep their place in a reordering.
    """
    change = finding.change
    before, after = _fingerprint_sides(change)
    return schema.fingerprint(map(_line, (urn, kind_of(change), change.path, before, after)))


def kind_of(change: AnySchemaChange) -> str:
    """The change's kind as JSON has it: `added`, `type_changed`, ..."""
    return str(change.__struct_config__.tag)


def _fingerprint_sides(change: AnySchemaChange) -> tuple[Fact, Fact]:
    match change:
        case FieldAdded(after=field):
            return None, (_nature(field), field.default)
        case FieldRemoved(before=field):
            return _nature(field), None
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


def _line(fact: Fact) -> str:
    match fact:
        case str():
            return quoted_text(fact)
        case None | bool():
            return str(fact)
        case _:
            return f"({', '.join(map(_line, fact))})"


def _nature(field: Field) -> tuple[str, bool, bool, bool]:
    return field.type.text, field.nullable, field.key, field.partition


def moved_names(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """The names whose order relative to any other name changed."""
    index = {name: position for position, name in enumerate(after)}
    positions = [index[name] for name in before]
    highest = -1
    passed_before = []
    for position in positions:
        passed_before.append(highest > position)
        highest = max(highest, position)
    lowest = len(positions)
    moved = set()
    for number in range(len(positions) - 1, -1, -1):
        if passed_before[number] or lowest < positions[number]:
            moved.add(before[number])
        lowest = min(lowest, positions[number])
    return moved


# A type or another text, a flag, several names, or nothing.
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
    before, after = _sides(finding)
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


def _sides(finding: Finding) -> tuple[ChangeValue, ChangeValue]:
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
    """Compares two inventories: fingerprints first, schemas only where these differ."""
    changed: dict[str, tuple[Finding, ...]] = {}
    added: list[str] = []
    for urn, new in after.items():
        old = before.get(urn)
        if old is None:
            added.append(urn)
        elif old[0] != new[0] and (findings := findings_between(old, new)):
            changed[urn] = findings
    # Skips the lookup of every URN if no dataset can have been removed.
    is_removed = len(before) > len(after) - len(added)
    removed = tuple(urn for urn in before if urn not in after) if is_removed else ()
    return SchemaDifferences(changed, tuple(added), removed)


def findings_between(
    before: FingerprintedSchema, after: FingerprintedSchema
) -> tuple[Finding, ...]:
    """The judged changes of one dataset, for its current format."""
    return judge(compare(_schema(before), _schema(after)), format=after.format)


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


def _schema(known: FingerprintedSchema) -> Schema:
    return known.schema if isinstance(known.schema, Schema) else from_json(known.schema, Schema)
