"""Checks required documentation: of datasets that a change touches, and of those in the store.

For a change, documentation comes from files of the head revision (dbt, data contracts, snapshots,
Avro, JSON Schema, `.schema` files and comments above SQL) and from the store given by --lineage.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import PurePosixPath
from typing import Final, NamedTuple

import msgspec

from lumos.annotations.reports import MissingDocs, MissingDocsReport
from lumos.annotations.requirements import BLOCKING, FIELD_DESCRIPTIONS, missing_fields
from lumos.config.load import FILE_NAME
from lumos.config.settings import DocumentationRules
from lumos.gate.baseline import Baseline, documentation_fingerprint, without_excused_fields
from lumos.gate.inputs import SqlModel
from lumos.gate.outputs import RENDERERS
from lumos.gate.reports import (
    MISSING_DOCUMENTATION,
    GateFinding,
    GateLocation,
    GateReport,
    GateSummary,
)
from lumos.gate.revisions import Revisions, folded_name
from lumos.gate.schema_files import DeclaredAnnotations, DeclaredSchema, read_dbt_documentation
from lumos.lineage.header_comments import SLA, header_of
from lumos.model.dataset import Dataset, Documentation, Governance, Owner, Ownership
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.json_codec import to_json
from lumos.model.paths import column_of
from lumos.model.urn import Urn
from lumos.rendering.text import plural
from lumos.schemas.files import UnreadableSchema
from lumos.schemas.git_revisions import GitRepository
from lumos.schemas.reports import DatasetDiff
from lumos.store import Store

_YAML: Final = (".yml", ".yaml")


class TouchedDataset(NamedTuple):
    """A dataset that the change adds or modifies, and its added or modified columns."""

    urn: str
    name: str
    file: str
    columns: tuple[str, ...]


def touched_datasets(
    diffs: Iterable[DatasetDiff],
    models: Iterable[tuple[SqlModel, str]],
    files: Mapping[str, str],
    columns: Mapping[str, Sequence[str]],
) -> Iterator[TouchedDataset]:
    """The datasets that the change adds or modifies, from schema diffs and new models with URNs.

    `files` and `columns` are the files and columns of declared datasets, by URN.
    """
    touched: dict[str, TouchedDataset] = {}
    for diff in diffs:
        kinds = {row.kind for row in diff.changes if not row.path}
        if "removed" in kinds or diff.urn not in files:
            continue
        changed = [
            column_of(row.path) for row in diff.changes if row.path and row.kind != "removed"
        ]
        if "added" in kinds:
            changed = [*columns.get(diff.urn, ())]
        earlier = touched.get(diff.urn)
        all_columns = (*(earlier.columns if earlier else ()), *changed)
        touched[diff.urn] = TouchedDataset(
            diff.urn, Urn.parse(diff.urn).name, files[diff.urn], tuple(dict.fromkeys(all_columns))
        )
    for model, urn in models:
        touched.setdefault(urn, TouchedDataset(urn, model.name, model.file, model.columns or ()))
    yield from touched.values()


def check_documentation(
    touched: Iterable[TouchedDataset],
    rules: DocumentationRules,
    revisions: Revisions,
    repository: GitRepository,
    store: Store,
    baseline: Baseline | None,
) -> list[GateFinding]:
    """A finding for each dataset that lacks documentation, unless exempt or in the baseline."""
    exceptions = [DatasetPattern(each.pattern) for each in rules.exceptions]
    datasets = [each for each in touched if not _is_exempt(each, exceptions)]
    declared = _Declarations(
        (*revisions.after.schemas, *revisions.unchanged.schemas),
        _read_documentation(repository, revisions, {each.name for each in datasets}),
    )
    texts = dict(
        repository.read(
            {
                each.file: revisions.files[1][each.file]
                for each in datasets
                if each.file.lower().endswith(".sql")
            }
        )
    )
    stored = store.entries.get_many([each.urn for each in datasets])
    owners = store.lineage.owners([each.urn for each in datasets])
    findings = []
    for each in datasets:
        stored_entry = stored.get(each.urn)
        annotations = [*declared.of(each), _annotations_in_sql(texts.get(each.file, b""))]
        if owners.get(each.urn):
            annotations.append(DeclaredAnnotations(owners=tuple(owners[each.urn])))
        dataset = _combine(
            each, annotations, None if stored_entry is None else stored_entry.dataset
        )
        missing = [*_missing_docs(each, dataset, declared, rules)]
        if baseline is not None:
            missing = [*without_excused_fields(each.urn, missing, baseline)]
        if missing:
            docs = MissingDocs(
                urn=each.urn,
                name=each.name,
                missing=tuple(missing),
                owners=tuple(owner.name for owner in (dataset.ownership or Ownership()).owners),
            )
            blocks = rules.enforcement.mode == BLOCKING
            findings.append(documentation_finding(docs, blocks=blocks, file=each.file))
    return findings


class _Declarations:
    """Declarations of datasets by URN; declarations in dbt also by the name of the model."""

    def __init__(self, *declarations: Iterable[DeclaredSchema]) -> None:
        self._by_urn: dict[str, list[DeclaredSchema]] = {}
        self._by_model: dict[str, list[DeclaredSchema]] = {}
        for each in (
            each for declarations_of_kind in declarations for each in declarations_of_kind
        ):
            self._by_urn.setdefault(each.urn, []).append(each)
            if each.kind in ("dbt", "dbt-source"):
                self._by_model.setdefault(folded_name(each.urn), []).append(each)

    def of(self, dataset: TouchedDataset) -> Iterator[DeclaredAnnotations]:
        return (each.annotations for each in self._declarations_of(dataset))

    def described_columns(self, dataset: TouchedDataset) -> set[str]:
        return {
            field.name.casefold()
            for each in self._declarations_of(dataset)
            for field in each.schema.fields
            if field.description
        }

    def _declarations_of(self, dataset: TouchedDataset) -> list[DeclaredSchema]:
        by_urn = self._by_urn.get(dataset.urn, [])
        return [*by_urn, *self._by_model.get(folded_name(dataset.urn), ())]


def _read_documentation(
    repository: GitRepository, revisions: Revisions, names: set[str]
) -> tuple[DeclaredSchema, ...]:
    """The documentation of the named datasets in all YAML files of dbt, changed or not."""
    encoded_names = [name.encode() for name in names]
    files = {
        path: blob for path, blob in revisions.files[1].items() if path.lower().endswith(_YAML)
    }
    declarations: list[DeclaredSchema] = []
    for path, data in repository.read(files) if encoded_names else ():
        if any(name in data for name in encoded_names):
            # If the change touches the file, there is already a remark that it cannot be read.
            with suppress(UnreadableSchema):
                declarations += read_dbt_documentation(path, data)
    return tuple(declarations)


def _annotations_in_sql(data: bytes) -> DeclaredAnnotations:
    header = header_of(data.decode("utf-8", "replace"))
    return DeclaredAnnotations(
        description=header.description,
        tags=header.tags,
        owners=tuple(each.name for each in header.owners),
        properties={SLA: header.sla} if header.sla else {},
    )


def _combine(
    touched: TouchedDataset, declared: Sequence[DeclaredAnnotations], stored: Dataset | None
) -> Dataset:
    """The dataset with all its documentation; declarations take precedence over the store."""
    documentation = (stored.documentation if stored else None) or Documentation()
    governance = (stored.governance if stored else None) or Governance()
    ownership = (stored.ownership if stored else None) or Ownership()
    properties = dict((stored.properties if stored else None) or {})
    for each in reversed(declared):
        properties |= each.properties
    return Dataset(
        urn=touched.urn,
        name=touched.name,
        platform=Urn.parse(touched.urn).platform,
        schema=stored.schema if stored else None,
        documentation=Documentation(
            description=_first(
                (*(each.description for each in declared), documentation.description)
            ),
            business_context=_first(
                (*(each.business_context for each in declared), documentation.business_context)
            ),
            domain=_first((*(each.domain for each in declared), documentation.domain)),
        ),
        governance=Governance(
            tags=_all_values((*(each.tags for each in declared), governance.tags)),
            terms=_all_values((*(each.terms for each in declared), governance.terms)),
            compliance=_all_values(
                (*(each.compliance for each in declared), governance.compliance)
            ),
        ),
        ownership=Ownership(
            owners=tuple(
                Owner(name=name)
                for name in _all_values(
                    (
                        *(each.owners for each in declared),
                        tuple(owner.name for owner in ownership.owners),
                    )
                )
            )
        ),
        properties=properties,
    )


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value), None)


def _all_values(values: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for group in values for each in group))


def _missing_docs(
    touched: TouchedDataset,
    dataset: Dataset,
    declared: _Declarations,
    rules: DocumentationRules,
) -> Iterator[str]:
    """The required fields that are missing, and the touched columns without description."""
    described = declared.described_columns(touched)
    if dataset.schema is not None:
        described |= {each.name.casefold() for each in dataset.schema.fields if each.description}
    column_requirements = {
        name for name in rules.required_fields if name.casefold() in FIELD_DESCRIPTIONS
    }
    required = tuple(name for name in rules.required_fields if name not in column_requirements)
    yield from missing_fields(dataset, msgspec.structs.replace(rules, required_fields=required))
    if column_requirements:
        yield from (
            f"description of {column}"
            for column in touched.columns
            if column.casefold() not in described
        )


def _is_exempt(dataset: TouchedDataset, patterns: Iterable[DatasetPattern]) -> bool:
    file = str(Urn(platform="file", path=PurePosixPath(dataset.file).parts))
    return any(each.matches(dataset.urn, dataset.name) or each.matches(file) for each in patterns)


def documentation_finding(docs: MissingDocs, *, blocks: bool, file: str) -> GateFinding:
    """The finding for a dataset that lacks documentation."""
    owners = f" ({', '.join(docs.owners)})" if docs.owners else ""
    return GateFinding(
        fingerprint=documentation_fingerprint(docs),
        level="error" if blocks else "warning",
        rule=MISSING_DOCUMENTATION,
        dataset=docs.name,
        path="",
        before=None,
        after=None,
        affected=None,
        owners=docs.owners,
        message=f"{docs.name}{owners} lacks required documentation: {', '.join(docs.missing)}",
        reason=None,
        clause=None,
        declared=GateLocation(file=file),
        used=None,
        urn=docs.urn,
        category="documentation",
        blocks=blocks,
    )


def render_documentation(report: MissingDocsReport, format: str) -> str:
    """The report of `lumos doc check` in one of the formats of the gate."""
    match format:
        case "json":
            return to_json(report, indent=2).decode() + "\n"
        case "markdown":
            return _markdown(report)
        case _:
            return RENDERERS[format](_gate_report(report))


def _headline(report: MissingDocsReport) -> str:
    datasets = plural(len(report.datasets), "dataset")
    if not report.datasets:
        return f"{plural(report.checked, 'dataset')} checked, nothing is missing"
    return f"{datasets} of {report.checked:,} lack required documentation"


def _markdown(report: MissingDocsReport) -> str:
    lines = [f"**{_headline(report)}.**"]
    if report.datasets:
        lines += ["", "| dataset | missing | owners |", "|---|---|---|"]
        lines += [
            f"| {_escape_cell(each.name)} | {_escape_cell(', '.join(each.missing))} "
            f"| {_escape_cell(', '.join(each.owners))} |"
            for each in report.datasets
        ]
    return "\n".join(lines) + "\n"


def _gate_report(report: MissingDocsReport) -> GateReport:
    # Datasets in the store have no file, so findings refer to the file with the requirement.
    findings = tuple(
        documentation_finding(each, blocks=report.mode == BLOCKING, file=FILE_NAME)
        for each in report.datasets
    )
    return GateReport(
        headline=_headline(report),
        verdict="breaking" if report.blocks else "passed",
        base="",
        head="",
        base_commit="",
        head_commit="",
        summary=GateSummary(
            schemas=report.checked,
            affected=len(findings),
            breaking=0,
            undetermined=0,
            notes=0,
            waived=report.in_baseline,
            undocumented=len(findings),
        ),
        findings=findings,
        waivers=(),
        coverage=1.0,
        remarks=(),
    )


def _escape_cell(text: str) -> str:
    return escape(" ".join(text.split()), quote=False).replace("|", "\\|")
