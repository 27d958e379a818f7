"""Compares the schemas of one or many datasets and reports the differences."""

from collections.abc import Mapping, Sequence
from typing import Literal

from lumos.model.change import Finding, Verdict
from lumos.model.schema import fingerprint
from lumos.model.version import SchemaVersion
from lumos.schemas.files import DatasetSchema
from lumos.schemas.findings import (
    ChangeRow,
    FingerprintedSchema,
    change_rows,
    find_differences,
    findings_between,
    summarise,
)
from lumos.schemas.reports import DatasetDiff, DiffReport
from lumos.schemas.version_rules import next_schema_version


def diff_datasets(
    before: Mapping[str, DatasetSchema], after: Mapping[str, DatasetSchema]
) -> DiffReport:
    """The datasets that differ, by URN."""
    old = {urn: FingerprintedSchema.of(each.schema) for urn, each in before.items()}
    new = {
        urn: FingerprintedSchema.of(each.schema, _format(before.get(urn), each))
        for urn, each in after.items()
    }
    differences = find_differences(old, new)
    return _report(
        [
            _changed_dataset(urn, before[urn], after[urn], rows)
            for urn, rows in differences.changed.items()
        ]
        + [_added_or_removed_dataset(after[urn], urn, "added") for urn in differences.added]
        + [_added_or_removed_dataset(before[urn], urn, "removed") for urn in differences.removed]
    )


def diff_pair(before: DatasetSchema, after: DatasetSchema, *, urn: str) -> DiffReport:
    """The changes from one schema to another, reported for the dataset `urn`."""
    format = _format(before, after)
    findings = findings_between(
        FingerprintedSchema.of(before.schema), FingerprintedSchema.of(after.schema, format)
    )
    return _report([_changed_dataset(urn, before, after, findings)] if findings else [])


def _format(before: DatasetSchema | None, after: DatasetSchema) -> str | None:
    return after.format or (before.format if before else None)


def _report(datasets: Sequence[DatasetDiff]) -> DiffReport:
    by_urn = tuple(sorted(datasets, key=lambda dataset: dataset.urn))
    return DiffReport(datasets=by_urn, summary=summarise(each.changes for each in by_urn))


def _changed_dataset(
    urn: str, before: DatasetSchema, after: DatasetSchema, findings: Sequence[Finding]
) -> DatasetDiff:
    to_version = after.version
    has_new_version = to_version is not None and (after.urn, to_version) != (
        before.urn,
        before.version,
    )
    if before.version is not None and not has_new_version:
        # The version has not been raised yet: predict the next one.
        to_version = str(next_schema_version(SchemaVersion.parse(before.version), findings))
    return DatasetDiff(
        urn=urn,
        from_version=before.version,
        to_version=to_version,
        changes=change_rows(urn, findings),
    )


def _added_or_removed_dataset(
    dataset: DatasetSchema, urn: str, kind: Literal["added", "removed"]
) -> DatasetDiff:
    count = len(dataset.schema.fields)
    fields = "1 field" if count == 1 else f"{count} fields"
    is_added = kind == "added"
    change = ChangeRow(
        path="",
        kind=kind,
        before=None if is_added else fields,
        after=fields if is_added else None,
        consumer=Verdict.COMPATIBLE if is_added else Verdict.BREAKING,
        storage=Verdict.COMPATIBLE,
        rule=f"dataset-{kind}",
        flags=(),
        notes=(),
        fingerprint=fingerprint((urn, kind, dataset.schema.shape)),
    )
    return DatasetDiff(
        urn=urn,
        from_version=None if is_added else dataset.version,
        to_version=dataset.version if is_added else None,
        changes=(change,),
    )
