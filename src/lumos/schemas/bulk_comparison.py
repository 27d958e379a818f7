"""Lays schemas of many datasets side by side and reports what differs."""

from collections.abc import Mapping, Sequence

from lumos.model.change import Finding, Verdict
from lumos.model.schema import fingerprint
from lumos.model.version import SchemaVersion
from lumos.schemas.files import Described
from lumos.schemas.findings import ChangeRow, change_rows, summarise
from lumos.schemas.fingerprint_diff import Known, differences, findings_between
from lumos.schemas.reports import DatasetDiff, DiffReport
from lumos.schemas.version_rules import next_schema_version


def compared(before: Mapping[str, Described], after: Mapping[str, Described]) -> DiffReport:
    """The datasets that differ, by URN."""
    old = {urn: Known.of(each.schema) for urn, each in before.items()}
    new = {
        urn: Known.of(each.schema, _format(before.get(urn), each)) for urn, each in after.items()
    }
    found = differences(old, new)
    return _report(
        [_changed(urn, before[urn], after[urn], rows) for urn, rows in found.changed.items()]
        + [_appeared(urn, after[urn]) for urn in found.added]
        + [_vanished(urn, before[urn]) for urn in found.removed]
    )


def compared_pair(before: Described, after: Described, *, urn: str) -> DiffReport:
    """What leads from one schema to another one, said of the dataset `urn`."""
    format = _format(before, after)
    findings = findings_between(Known.of(before.schema), Known.of(after.schema, format))
    return _report([_changed(urn, before, after, findings)] if findings else [])


def _format(before: Described | None, after: Described) -> str | None:
    return after.format or (before.format if before else None)


def _report(datasets: Sequence[DatasetDiff]) -> DiffReport:
    by_urn = tuple(sorted(datasets, key=lambda dataset: dataset.urn))
    return DiffReport(datasets=by_urn, summary=summarise(each.changes for each in by_urn))


def _changed(
    urn: str, before: Described, after: Described, findings: Sequence[Finding]
) -> DatasetDiff:
    to_version = after.version
    is_stepped = to_version is not None and (after.urn, to_version) != (before.urn, before.version)
    if before.version is not None and not is_stepped:
        # Nobody stepped the version yet; this is what it will be.
        to_version = str(next_schema_version(SchemaVersion.parse(before.version), findings))
    return DatasetDiff(
        urn=urn,
        from_version=before.version,
        to_version=to_version,
        changes=change_rows(urn, findings),
    )


def _appeared(urn: str, dataset: Described) -> DatasetDiff:
    change = _whole(urn, "added", dataset, Verdict.COMPATIBLE)
    return DatasetDiff(urn=urn, from_version=None, to_version=dataset.version, changes=(change,))


def _vanished(urn: str, dataset: Described) -> DatasetDiff:
    change = _whole(urn, "removed", dataset, Verdict.BREAKING)
    return DatasetDiff(urn=urn, from_version=dataset.version, to_version=None, changes=(change,))


def _whole(urn: str, kind: str, dataset: Described, verdict: Verdict) -> ChangeRow:
    """A dataset that is there on one side only, as one change."""
    count = len(dataset.schema.fields)
    fields = "1 field" if count == 1 else f"{count} fields"
    return ChangeRow(
        path="",
        kind=kind,
        before=fields if kind == "removed" else None,
        after=fields if kind == "added" else None,
        consumer=verdict,
        storage=Verdict.COMPATIBLE,
        rule=f"dataset-{kind}",
        flags=(),
        notes=(),
        fingerprint=fingerprint((urn, kind, dataset.schema.shape)),
    )
