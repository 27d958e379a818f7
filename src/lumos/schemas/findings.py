"""Findings as they leave Lumos: the rows and sums of `lumos schema diff --json`."""

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from lumos.model.change import FieldAdded, FieldRemoved, Finding, TypeChanged, Verdict
from lumos.model.schema import Field
from lumos.schemas.fingerprints import fingerprint, kind_of

# A type or a text, a yes or no, several names, or nothing.
Side: TypeAlias = str | bool | tuple[str, ...] | None


class ChangeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One judged change; types stand as their canonical text."""

    path: str
    kind: str
    before: Side
    after: Side
    consumer: Verdict
    storage: Verdict
    rule: str
    flags: tuple[str, ...]
    notes: tuple[str, ...]
    fingerprint: str


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """How many datasets and changes there are, and how many of these by consumer verdict."""

    datasets: int = 0
    changes: int = 0
    breaking: int = 0
    compatible: int = 0
    informational: int = 0
    undetermined: int = 0


def change_rows(urn: str, findings: Iterable[Finding]) -> tuple[ChangeRow, ...]:
    """The findings on one dataset as rows, in their order."""
    return tuple(_row(urn, finding) for finding in findings)


def summarise(datasets: Iterable[Iterable[ChangeRow]]) -> Summary:
    """The sums over the rows of several datasets."""
    rows_by_dataset = [tuple(rows) for rows in datasets]
    verdicts = Counter(row.consumer for rows in rows_by_dataset for row in rows)
    return Summary(
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
        fingerprint=fingerprint(urn, finding),
    )


def _sides(finding: Finding) -> tuple[Side, Side]:
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
