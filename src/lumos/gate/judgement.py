"""Finds the impact of the changes between two commits, in a temporary store (`workspace.py`).

No code of the repository is executed.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from lumos.config import Settings
from lumos.config.gate import GateSettings
from lumos.config.load import FILE_NAME
from lumos.config.prices import NoPrices
from lumos.gate.base_cache import BaseStoreCache
from lumos.gate.baseline import FILE as BASELINE_FILE
from lumos.gate.baseline import (
    Baseline,
    excuse_findings,
    parse_baseline,
)
from lumos.gate.documentation import (
    TouchedDataset,
    check_documentation,
    touched_datasets,
)
from lumos.gate.findings import findings_of, hop_locations, unparsed_finding
from lumos.gate.inputs import (
    SUFFIXES,
    SqlModel,
    dbt_dialect,
    pair_declarations,
)
from lumos.gate.lineage_source import LineageSource
from lumos.gate.policy import GatePolicy, PolicyAttributes, apply_policy, parse_policy
from lumos.gate.report_cache import ChangeRequest
from lumos.gate.reports import (
    GateFinding,
    GateLocation,
    GateReport,
    GateSummary,
    GateVerdict,
)
from lumos.gate.revisions import (
    MAX_BYTES,
    Revisions,
    align_revisions,
    folded_name,
    is_text,
    read_revisions,
)
from lumos.gate.schema_files import table_urn
from lumos.gate.waivers import FILE, Waiver, apply_waivers, parse_waivers
from lumos.gate.wire_format import wire_findings
from lumos.gate.workspace import (
    ModelUrns,
    Workspace,
    has_lineage,
    load_change,
    model_at_base,
    open_workspace,
)
from lumos.impact.reports import ImpactReport
from lumos.model.change import Verdict
from lumos.model.types import UNKNOWN
from lumos.model.urn import DisplayNames, Urn, display_names
from lumos.progress import Progress
from lumos.rendering.text import plural
from lumos.schemas.diff import diff_datasets
from lumos.schemas.findings import ChangeRow
from lumos.schemas.git_revisions import GitRepository
from lumos.schemas.reports import DatasetDiff
from lumos.store import Store

_ALL_ROWS: Final = 1_000_000


def judge_change(
    change: ChangeRequest,
    repository: GitRepository,
    open_features: Callable[[Path], Workspace],
    *,
    source: LineageSource | None,
    at: datetime,
    progress: Progress,
) -> GateReport:
    """Report the downstream impact of a change."""
    dialect = change.dialect or dbt_dialect(repository, change.new)
    old, new = change.old, change.new
    (policy, documentation), remarks = _policy(change.settings, repository, old, new)
    progress("reading schemas and models")
    revisions = read_revisions(
        repository,
        old,
        new,
        dialect,
        reads_all=source is not None or _has_name_rules(change.settings),
    )
    cache = None
    if source is None:
        revisions = align_revisions(revisions)
        cache = BaseStoreCache(repository, revisions, change.settings, dialect=dialect)
    with open_workspace(open_features, source, cache, dialect=dialect) as workspace:
        store = workspace.create_store()
        costs = _monthly_costs(workspace) if source is not None else {}
        if source is not None:
            revisions = align_revisions(revisions, store)
        progress("reading lineage")
        model_urns = load_change(
            workspace, repository, revisions, dialect, cache, source=source, at=at
        )
        progress("judging changes")
        before, after = revisions.files
        adapted = {path for path, blob in after.items() if before.get(path) != blob}
        diffs = [*_schema_diffs(revisions, model_urns.by_name)]
        reports = [
            report
            for diffs_of_kind in diffs
            for report in _with_diffs(
                diffs_of_kind, workspace.impact.of_diff(diffs_of_kind, adapted=adapted).datasets
            )
        ]
        changed_schemas = {diff.urn for diffs_of_kind in diffs for diff in diffs_of_kind}
        model_diffs = [*_model_diffs(revisions, model_urns)]
        for diff, model in model_diffs:
            changed_schemas.add(diff.urn)
            sides = tuple(side.get(model.file) for side in revisions.files)
            with model_at_base(workspace, repository, model.file, sides, dialect):
                impact = workspace.impact.of_diff([diff], adapted=adapted).datasets
                reports += _with_diffs([diff], impact)
        names = DisplayNames(lambda urns: display_names(urns, store.names_like(urns)))
        names.look_up(
            urn
            for _, each in reports
            for urn in (each.change.urn, *(row.urn for row in each.downstream))
        )
        locations = hop_locations(store, [report for _, report in reports])
        models = {each.name.lower() for each in revisions.before.models}
        new_files = after.keys() - before.keys()
        declared_urns = {
            each.urn
            for side in (revisions.before, revisions.after, revisions.unchanged)
            for each in side.schemas
            if each.complete
        }
        findings = {
            finding.fingerprint: finding
            for diff, report in reports
            for finding in findings_of(
                report,
                diff,
                declared=_declaration(diff, revisions),
                replace_urns=names,
                locations=locations,
                is_model=folded_name(diff.urn) in models,
                new_files=new_files,
                files=after,
                declared_urns=declared_urns,
            )
        }
        for finding in wire_findings(revisions.before.schemas, revisions.after.schemas):
            findings[finding.fingerprint] = finding
            changed_schemas.add(finding.urn)
        for urn, model in _unparsed_models(revisions, model_urns):
            finding = unparsed_finding(names(urn), urn, model.file, str(model.problem))
            findings[finding.fingerprint] = finding
            changed_schemas.add(urn)
        coverage = min((each.coverage for _, each in reports), default=1.0)
        decided = apply_policy(
            findings.values(), policy, _policy_attributes(store, findings, costs)
        )
        if policy.documentation:
            touched = _find_touched(
                store, revisions, [*chain(*diffs), *(d for d, _ in model_diffs)]
            )
            decided += tuple(
                msgspec.structs.replace(each, approvers=policy.approvers)
                for each in check_documentation(
                    touched, documentation, revisions, repository, store,
                    _baseline(repository, new),
                )
            )  # fmt: skip
            if not documentation.required_fields:
                remarks.append(
                    "gate.documentation is set, but nothing is required. List what every "
                    "dataset needs under documentation.required_fields."
                )
        remarks += _remarks(repository, (old, new), revisions, policy, costs)
        if reports and not has_lineage(workspace, repository, revisions, dialect):
            remarks.append(
                "No lineage is known: no SQL of the repository reads a table, and --lineage "
                "was not given. Whether anything reads what changed is unknown."
            )
    applied = apply_waivers(
        excuse_findings(decided, _baseline(repository, old), _baseline(repository, new)),
        _waivers(repository, new),
        earlier={each.fingerprint for each in _waivers(repository, old)},
        today=at.date(),
    )
    return _report(
        change, len(changed_schemas), applied.findings, applied.problems,
        coverage, remarks=tuple(remarks), warn_only=policy.warn_only,
    )  # fmt: skip


def _has_name_rules(settings: Settings) -> bool:
    """Whether settings let SQL refer to a dataset by another name."""
    return bool(settings.sql_names) or settings.sql_name_from is not None


def _policy(
    settings: Settings, repository: GitRepository, old: str, new: str
) -> tuple[GatePolicy, list[str]]:
    """The policy to apply; if the change modifies the policy, the one of the merge base."""
    file = settings.origin.file
    path = FILE_NAME if file is None else repository.path_of(Path(file))
    current = GatePolicy(settings.gate, settings.documentation)
    if path is None:
        return current, []
    blobs = [repository.files(commit, (Path(path).suffix,)).get(path) for commit in (old, new)]
    # A configuration that is missing in the head was not committed, or the change deleted it.
    if blobs[0] == blobs[1] or (blobs[1] is None) != (file is None):
        return current, []
    text = "" if blobs[0] is None else dict(repository.read({path: blobs[0]}))[path].decode()
    policy = parse_policy(text, file=path)
    if policy == current:
        return current, []
    return policy, [f"{path} changes the policy of the gate; that of the merge base applies."]


def _with_diffs(
    diffs: Sequence[DatasetDiff], reports: Sequence[ImpactReport]
) -> Iterator[tuple[DatasetDiff, ImpactReport]]:
    """Pair reports with their diffs; new datasets have no report."""
    by_urn = {each.urn: each for each in diffs}
    return ((by_urn[each.change.urn], each) for each in reports if each.change.urn in by_urn)


def _schema_diffs(revisions: Revisions, models: Mapping[str, str]) -> Iterator[list[DatasetDiff]]:
    """The changed schemas, one list for each kind of declaration."""
    incomplete = {
        each.urn
        for side in (revisions.before, revisions.after)
        for each in side.schemas
        if not each.complete
    }
    for pair in pair_declarations(revisions.before.schemas, revisions.after.schemas):
        diffs = diff_datasets(pair.before, pair.after).datasets
        if diffs:
            # A documented model has the URN that the lineage of its SQL uses.
            yield [
                msgspec.structs.replace(diff, urn=models.get(folded_name(diff.urn), diff.urn))
                if diff.urn in incomplete
                else diff
                for diff in diffs
            ]


def _model_diffs(revisions: Revisions, urns: ModelUrns) -> Iterator[tuple[DatasetDiff, SqlModel]]:
    """Removed and added columns of models, and removed models.

    Added columns are included, since models that the change adapts may read them.
    """
    after = {(each.file, each.name): each for each in revisions.after.models}
    by_name = {each.name.lower(): each for each in revisions.after.models}
    for old in revisions.before.models:
        # A model without known inputs and readers has no lineage, and so no URN in it.
        urn = urns.urn(old) or table_urn([old.name])
        new = after.get((old.file, old.name)) or by_name.get(old.name.lower())
        rows: list[ChangeRow] = []
        if new is None:
            rows = [_change_row("removed", "")]
        elif old.columns is not None and new.columns is not None:
            removed = _missing_columns(old.columns, new.columns)
            added = _missing_columns(new.columns, old.columns)
            rows = [_change_row("removed", column) for column in removed]
            rows += [_change_row("added", column) for column in added]
        if rows:
            diff = DatasetDiff(urn=urn, from_version=None, to_version=None, changes=tuple(rows))
            yield diff, old


def _unparsed_models(revisions: Revisions, urns: ModelUrns) -> Iterator[tuple[str, SqlModel]]:
    """The models that could only be parsed before the change, with their URNs."""
    before = {each.name.lower(): each for each in revisions.before.models}
    for model in revisions.after.models:
        old = before.get(model.name.lower())
        if model.problem is not None and old is not None and old.problem is None:
            yield urns.urn(old) or table_urn([old.name]), model


def _missing_columns(columns: Sequence[str], others: Sequence[str]) -> list[str]:
    """The columns that are missing in `others`, ignoring case like SQL."""
    folded = {column.lower() for column in others}
    return [column for column in columns if column.lower() not in folded]


def _find_touched(
    store: Store, revisions: Revisions, diffs: Iterable[DatasetDiff]
) -> Iterator[TouchedDataset]:
    """The datasets that the change adds or touches."""
    declared = {each.urn: each for each in revisions.after.schemas}
    files = {urn: each.file for urn, each in declared.items()}
    columns = {urn: [field.name for field in each.schema.fields] for urn, each in declared.items()}
    urns = {(model.file, model.name): _model_urn(store, model) for model in revisions.after.models}
    for model in revisions.after.models:
        files.setdefault(urns[model.file, model.name], model.file)
    earlier = {each.name.lower() for each in revisions.before.models}
    new = (
        (model, urns[model.file, model.name])
        for model in revisions.after.models
        if model.name.lower() not in earlier
    )
    return touched_datasets(diffs, new, files, columns)


def _model_urn(store: Store, model: SqlModel) -> str:
    """The URN of the dataset that a model creates, as used in its lineage."""
    written_urns = (edge.downstream for edge in store.lineage.edges_by(f"sql:{model.file}"))
    model_urns = (urn for urn in written_urns if folded_name(urn) == model.name.lower())
    return next(model_urns, table_urn([model.name]))


def _change_row(kind: Literal["added", "removed"], path: str) -> ChangeRow:
    """A column of unknown type that is added or removed; without a path, the entire model."""
    is_added = kind == "added"
    return ChangeRow(
        path=path,
        kind=kind,
        before=UNKNOWN.text if path and not is_added else None,
        after=UNKNOWN.text if is_added else None,
        consumer=Verdict.COMPATIBLE if is_added else Verdict.BREAKING,
        storage=Verdict.COMPATIBLE if is_added else Verdict.INFORMATIONAL,
        rule=f"{'field' if path else 'dataset'}-{kind}",
        flags=(),
        notes=(),
        fingerprint="",
    )


def _declaration(diff: DatasetDiff, revisions: Revisions) -> GateLocation | None:
    """The file that declares a changed dataset."""
    for side in (revisions.after, revisions.before):
        for declared in side.schemas:
            if declared.urn == diff.urn:
                return GateLocation(file=declared.file)
        name = folded_name(diff.urn)
        for model in side.models:
            if model.name.lower() == name:
                return GateLocation(file=model.file)
        for declared in side.schemas:
            if folded_name(declared.urn) == name:
                return GateLocation(file=declared.file)
    return None


def _monthly_costs(workspace: Workspace) -> dict[str, Any]:
    """The monthly total cost of datasets, including upstream; empty if no prices are set."""
    try:
        report = workspace.cost.top(_ALL_ROWS, ranked_by="total")
    except NoPrices:
        return {}
    return {row.urn: row.total for row in report.datasets}


def _policy_attributes(
    store: Store, findings: Mapping[str, GateFinding], costs: Mapping[str, Any]
) -> dict[str, PolicyAttributes]:
    """The tags, domain, environment and cost of all datasets in findings."""
    urns = {
        urn
        for each in findings.values()
        for urn in (each.urn, each.affected_urn)
        if urn is not None
    }
    governance = store.aspects_of("governance", urns)
    documentation = store.aspects_of("documentation", urns)
    return {
        urn: PolicyAttributes(
            tags=governance[urn].tags if urn in governance else (),
            domain=documentation[urn].domain if urn in documentation else None,
            environment=Urn.parse(urn).environment,
            monthly_cost=costs.get(urn),
        )
        for urn in urns
    }


def _remarks(
    repository: GitRepository,
    commits: tuple[str, str],
    revisions: Revisions,
    policy: GateSettings,
    costs: Mapping[str, Any],
) -> Iterator[str]:
    """Remarks on files that were not compared, and on limits without effect."""
    yield from (*revisions.before.remarks, *revisions.after.remarks)
    before, after = (repository.submodules(commit) for commit in commits)
    for path in sorted({**before, **after}):
        if before.get(path) != after.get(path):
            yield f"Not compared: the submodule {path} changed. Run the gate in its repository too."
    old, new = commits
    skipped = {commit: repository.files(commit, SUFFIXES) for commit in commits}
    for commit, files in zip(commits, revisions.files, strict=True):
        for path in sorted(skipped[commit].keys() - files.keys()):
            if skipped[old].get(path) == skipped[new].get(path):
                continue
            if is_text(path):
                yield f"Not compared: {path} is larger than {MAX_BYTES // 1024**2} MB."
            else:
                printable = os.fsencode(path).decode(errors="backslashreplace")
                yield f"Not compared: the name of {printable} is not valid UTF-8."
    limits = [policy.max_monthly_cost, *(each.max_monthly_cost for each in policy.rules)]
    if any(each is not None for each in limits) and not costs:
        yield (
            "No costs are known, so max_monthly_cost has no effect. Give a store with costs: "
            "--lineage STORE"
        )


def _waivers(repository: GitRepository, commit: str) -> tuple[Waiver, ...]:
    text = _read_text(repository, commit, FILE)
    return () if text is None else parse_waivers(text)


def _baseline(repository: GitRepository, commit: str) -> Baseline | None:
    text = _read_text(repository, commit, BASELINE_FILE)
    return None if text is None else parse_baseline(text)


def _read_text(repository: GitRepository, commit: str, path: str) -> str | None:
    """The content of a YAML file in a commit, or None."""
    blob = repository.files(commit, (".yaml",)).get(path)
    if blob is None:
        return None
    return dict(repository.read({path: blob}))[path].decode("utf-8", "replace")


def _report(
    change: ChangeRequest, schemas: int,
    findings: tuple[GateFinding, ...], problems: Any, coverage: float, *, remarks: tuple[str, ...],
    warn_only: bool,
) -> GateReport:  # fmt: skip
    open_findings = [each for each in findings if each.is_open]
    undocumented = [each for each in open_findings if each.category == "documentation"]
    impact_findings = [each for each in open_findings if each.category != "documentation"]
    counts = {
        level: sum(each.level == level for each in impact_findings)
        for level in ("error", "warning", "note")
    }
    affected = {each.affected for each in findings if each.affected is not None}
    is_breaking = bool(counts["error"]) or any(each.blocks for each in undocumented)
    verdict: GateVerdict = (
        "breaking" if is_breaking else "undetermined" if counts["warning"] else "passed"
    )
    approved = sum(each.level == "error" and not each.is_open for each in findings)
    if counts["error"]:
        outcome = f"; {plural(counts['error'], 'breaking change')}"
    elif approved:
        outcome = f"; {plural(approved, 'breaking change')} approved, no others"
    else:
        outcome = "; nothing breaks"
    if not counts["error"] and counts["warning"]:
        outcome = f"; {plural(counts['warning'], 'change')} undetermined"
    if undocumented:
        verb = "lacks" if len(undocumented) == 1 else "lack"
        outcome += f"; {plural(len(undocumented), 'dataset')} {verb} required documentation"
    return GateReport(
        headline=f"This changes {plural(schemas, 'schema')}, affecting "
        f"{plural(len(affected), 'downstream dataset')}{outcome}",
        verdict=verdict,
        base=change.base,
        head=change.head,
        base_commit=change.old,
        head_commit=change.new,
        summary=GateSummary(
            schemas=schemas,
            affected=len(affected),
            breaking=counts["error"],
            undetermined=counts["warning"],
            notes=counts["note"],
            waived=len(findings) - len(open_findings),
            undocumented=len(undocumented),
        ),
        findings=tuple(
            sorted(
                findings,
                key=lambda each: (
                    ("error", "warning", "note").index(each.level),
                    each.dataset,
                    each.path,
                    each.affected or "",
                ),
            )
        ),
        waivers=problems,
        coverage=coverage,
        remarks=tuple(dict.fromkeys(remarks)),
        warn_only=warn_only,
    )
