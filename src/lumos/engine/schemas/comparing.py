"""Lays schemas of many datasets side by side and judges what differs."""

from collections.abc import Iterator, Mapping

from lumos.analysis.comparison import compare
from lumos.analysis.compatibility import judge
from lumos.analysis.report import ChangeRow, change_rows, summarise
from lumos.analysis.versioning import next_schema_version
from lumos.engine.schemas.files import Described
from lumos.engine.schemas.reports import DatasetDiff, DiffReport
from lumos.model.change import Verdict
from lumos.model.schema import Schema, fingerprint
from lumos.model.version import SchemaVersion


def compared(before: Mapping[str, Described], after: Mapping[str, Described]) -> DiffReport:
    """The datasets that differ, by URN."""
    datasets = tuple(_differences(before, after))
    return DiffReport(datasets=datasets, summary=summarise(dataset.changes for dataset in datasets))


def compared_pair(before: Described, after: Described, *, urn: str) -> DiffReport:
    """What leads from one schema to another one, said of the dataset `urn`."""
    dataset = _difference(urn, before, after)
    datasets = () if dataset is None else (dataset,)
    return DiffReport(datasets=datasets, summary=summarise(each.changes for each in datasets))


def _differences(
    before: Mapping[str, Described], after: Mapping[str, Described]
) -> Iterator[DatasetDiff]:
    for urn in sorted(before.keys() | after.keys()):
        dataset = _difference(urn, before.get(urn), after.get(urn))
        if dataset is not None:
            yield dataset


def _difference(urn: str, before: Described | None, after: Described | None) -> DatasetDiff | None:
    if before is None or after is None:
        known = before or after
        assert known is not None
        return DatasetDiff(
            urn=urn,
            from_version=before.version if before else None,
            to_version=after.version if after else None,
            changes=(_whole(urn, known.schema, appeared=before is None),),
        )
    findings = judge(compare(before.schema, after.schema), format=after.format or before.format)
    if not findings:
        return None
    to_version = after.version
    is_stepped = after.version is not None and (after.version, after.urn) != (
        before.version,
        before.urn,
    )
    if before.version is not None and not is_stepped:
        # Nobody stepped the version yet; this is what it will be.
        to_version = str(next_schema_version(SchemaVersion.parse(before.version), findings))
    return DatasetDiff(
        urn=urn,
        from_version=before.version,
        to_version=to_version,
        changes=change_rows(urn, findings),
    )


def _whole(urn: str, schema: Schema, *, appeared: bool) -> ChangeRow:
    """A dataset that is there on one side only, as one change."""
    kind = "added" if appeared else "removed"
    fields = "1 field" if len(schema.fields) == 1 else f"{len(schema.fields)} fields"
    return ChangeRow(
        path="",
        kind=kind,
        before=None if appeared else fields,
        after=fields if appeared else None,
        consumer=Verdict.COMPATIBLE if appeared else Verdict.BREAKING,
        storage=Verdict.COMPATIBLE,
        rule=f"dataset-{kind}",
        flags=(),
        notes=(),
        fingerprint=fingerprint((urn, kind, schema.shape)),
    )
