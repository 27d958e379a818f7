"""The service behind `lumos gate`.

A change is judged in a temporary store (`workspace.py`). Nothing of the repository is executed.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from lumos.annotations.reports import MissingDocsReport
from lumos.annotations.requirements import find_missing_docs
from lumos.config import Settings
from lumos.config.gate import GateSettings
from lumos.config.prices import NoPrices
from lumos.errors import MisuseError
from lumos.gate.base_cache import BaseStoreCache
from lumos.gate.baseline import FILE as BASELINE_FILE
from lumos.gate.baseline import (
    Baseline,
    excuse_documentation,
    excuse_findings,
    parse_baseline,
    read_baseline,
    render_baseline,
)
from lumos.gate.findings import findings_of
from lumos.gate.inputs import (
    SUFFIXES,
    SqlModel,
    pair_declarations,
)
from lumos.gate.lineage_source import LineageSource, LineageWorkspace
from lumos.gate.policy import DatasetFacts, apply_policy, parse_policy
from lumos.gate.reports import (
    CommentReport,
    GateFinding,
    GateInitReport,
    GateLocation,
    GateReport,
    GateSummary,
    GateVerdict,
    InitFile,
    WaiverReport,
)
from lumos.gate.revisions import (
    MAX_BYTES,
    Revisions,
    align_revisions,
    folded_name,
    is_text,
    read_revisions,
)
from lumos.gate.trail import hop_locations
from lumos.gate.waivers import FILE, Waiver, add_waiver, apply_waivers, parse_waivers
from lumos.gate.workflows import (
    FORGES,
    POLICY_RULES,
    Workflow,
    detect_forge,
    forge_named,
    policy_file,
    workflows,
)
from lumos.gate.workspace import ModelUrns, Workspace, fill, model_at_base, open_workspace
from lumos.impact.reports import ImpactReport
from lumos.model.change import Verdict
from lumos.model.types import UNKNOWN
from lumos.model.urn import DisplayNames, Urn, display_names
from lumos.progress import Progress, no_progress
from lumos.rendering.text import plural
from lumos.schemas.diff import diff_datasets
from lumos.schemas.findings import ChangeRow
from lumos.schemas.git_revisions import GitRepository, root_of
from lumos.schemas.reports import DatasetDiff
from lumos.store import Store

if TYPE_CHECKING:
    pass

_DEFAULT_EXPIRY: Final = timedelta(days=30)
_ALL_ROWS: Final = 1_000_000


class Gate:
    """Judges changes of a git repository."""

    def __init__(
        self,
        open_workspace: Callable[[Path], Workspace],
        settings: Settings,
        *,
        configured: Callable[[], LineageWorkspace],
        store: Callable[[], Store],
        existing_store: Callable[[], Store | None],
        environment: Mapping[str, str] = MappingProxyType({}),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._open_workspace = open_workspace
        self._settings = settings
        self._configured = configured
        self._documentation = settings.documentation
        self._store = store
        self._existing_store = existing_store
        self._environment = environment
        self._clock = clock

    def check(
        self,
        base: str,
        head: str = "HEAD",
        *,
        folder: str | Path = ".",
        dialect: str | None = None,
        lineage: str | Path | None = None,
        progress: Progress = no_progress,
    ) -> GateReport:
        """Report what the changes since the merge base of two revisions do downstream.

        `lineage` adds lineage to that of the repository's SQL: a snapshot, a store, a file that
        `lineage.ingest` reads, or `local` for the configured store.
        """
        repository = GitRepository(Path(folder))
        old, new = repository.commits(base, head)
        policy, remarks = self._policy(repository, old, new)
        source = None if lineage is None else LineageSource(str(lineage), self._configured)
        progress("reading schemas and models")
        revisions = read_revisions(repository, old, new, dialect)
        cache = None
        if source is None:
            revisions = align_revisions(revisions)
            cache = BaseStoreCache(repository, revisions, self._settings, dialect=dialect)
        with open_workspace(self._open_workspace, source, cache, dialect=dialect) as workspace:
            store = workspace.create_store()
            costs = _monthly_costs(workspace) if source is not None else {}
            if source is not None:
                revisions = align_revisions(revisions, store)
            progress("reading lineage")
            at = self._clock()
            model_urns = fill(workspace, repository, revisions, dialect, cache, at=at)
            progress("judging changes")
            before, after = revisions.files
            adapted = {path for path, blob in after.items() if before.get(path) != blob}
            diffs = [*_schema_diffs(revisions, model_urns.by_name)]
            reports = [
                report
                for layer in diffs
                for report in _paired(
                    layer, workspace.impact.of_diff(layer, adapted=adapted).datasets
                )
            ]
            changed_schemas = {diff.urn for layer in diffs for diff in layer}
            for diff, model in _model_diffs(revisions, model_urns):
                changed_schemas.add(diff.urn)
                sides = tuple(side.get(model.file) for side in revisions.files)
                with model_at_base(workspace, repository, model.file, sides, dialect):
                    found = workspace.impact.of_diff([diff], adapted=adapted).datasets
                    reports += _paired([diff], found)
            names = DisplayNames(lambda urns: display_names(urns, store.names_like(urns)))
            names.look_up(
                urn for _, each in reports for urn in (each.change.urn, *_downstream(each))
            )
            locations = hop_locations(store, [report for _, report in reports])
            models = {each.name.lower() for each in revisions.before.models}
            findings = {
                finding.fingerprint: finding
                for diff, report in reports
                for finding in findings_of(
                    report,
                    diff,
                    declared=_declaration(diff, revisions),
                    names=names,
                    locations=locations,
                    is_model=folded_name(diff.urn) in models,
                )
            }
            coverage = min((each.coverage for _, each in reports), default=1.0)
            decided = apply_policy(findings.values(), policy, _facts(store, findings, costs))
            remarks += _remarks(repository, (old, new), revisions, policy, costs)
            if reports and not store.lineage.count():
                remarks.append(
                    "No lineage is known: no SQL of the repository reads a table, and --lineage "
                    "was not given. Whether anything reads what changed is unknown."
                )
        applied = apply_waivers(
            excuse_findings(decided, _baseline(repository, old), _baseline(repository, new)),
            _waivers(repository, new),
            earlier={each.fingerprint for each in _waivers(repository, old)},
            today=self._clock().date(),
        )
        return _report(
            base, head, old, new, len(changed_schemas), applied.findings, applied.problems,
            coverage, remarks=tuple(remarks), warn_only=policy.warn_only,
        )  # fmt: skip

    def _policy(
        self, repository: GitRepository, old: str, new: str
    ) -> tuple[GateSettings, list[str]]:
        """The policy of the configuration; a change cannot loosen the policy it is judged by."""
        file = self._settings.origin.file
        path = None if file is None else repository.path_of(Path(file))
        if path is None:
            return self._settings.gate, []
        blobs = [repository.files(commit, (Path(path).suffix,)).get(path) for commit in (old, new)]
        if blobs[1] is None or blobs[0] == blobs[1]:
            return self._settings.gate, []
        text = "" if blobs[0] is None else dict(repository.read({path: blobs[0]}))[path].decode()
        policy = parse_policy(text, file=path)
        if policy == self._settings.gate:
            return policy, []
        return policy, [f"{path} changes the policy of the gate; that of the merge base applies."]

    def comment(
        self,
        report: GateReport,
        *,
        pr: int | None = None,
        repository: str | None = None,
        forge: str | None = None,
        dry_run: bool = False,
    ) -> CommentReport:
        """Create or update the comment on a pull request of GitHub, GitLab or Bitbucket.

        Pull request, repository, forge and token are those of the CI system's environment
        variables, unless given. A comment that could not be posted has the status `failed` and a
        `problem`. `dry_run` only renders it.
        """
        # Imported late: most runs post no comment.
        from lumos.gate.forge_client import publish_comment

        return publish_comment(
            report,
            self._environment,
            kind=forge,
            repository=repository,
            number=pr,
            dry_run=dry_run,
        )

    def waive(
        self,
        fingerprint: str,
        *,
        reason: str,
        approver: str,
        expires: date | None = None,
        folder: str | Path = ".",
    ) -> WaiverReport:
        """Add a waiver to the repository; it counts once it is committed with the change."""
        until = expires or (self._clock() + _DEFAULT_EXPIRY).date()
        try:
            waiver = msgspec.convert(
                {
                    "fingerprint": fingerprint,
                    "reason": reason,
                    "approver": approver,
                    "expires": until.isoformat(),
                },
                Waiver,
            )
        except msgspec.ValidationError as problem:
            raise MisuseError(
                f"Invalid waiver: {problem}. Copy the fingerprint from: lumos gate --base REV"
            ) from None
        root = GitRepository(Path(folder)).root
        file = os.path.relpath(add_waiver(root, waiver))
        return WaiverReport(file=file, **msgspec.structs.asdict(waiver))

    def documentation(
        self, dataset: str | None = None, *, folder: str | Path = "."
    ) -> MissingDocsReport:
        """The datasets in the store that lack required documentation, but for the baseline."""
        report = find_missing_docs(self._documentation, self._store(), dataset)
        root = root_of(Path(folder))
        return report if root is None else excuse_documentation(report, read_baseline(root))

    def init(
        self,
        *,
        forge: str | None = None,
        base: str | None = None,
        folder: str | Path = ".",
        progress: Progress = no_progress,
    ) -> GateInitReport:
        """Write a workflow, a policy and a baseline with the findings of today."""
        repository = GitRepository(Path(folder))
        root = repository.root
        remote = repository.git("config", "--get", "remote.origin.url", check=False).strip()
        chosen = detect_forge(root, remote) if forge is None else forge_named(forge)
        if chosen is None:
            raise MisuseError(
                "The forge of this repository is not known. Name it: lumos gate init --forge github"
                f" (or {', '.join(FORGES[1:])})"
            )
        against = base or repository.default_branch()
        has_commit = bool(repository.git("rev-parse", "--verify", "--quiet", "HEAD", check=False))
        report = (
            self.check(against, folder=folder, progress=progress)
            if has_commit and against is not None
            else None
        )
        findings = () if report is None else report.findings
        written = [_write_new(root, each) for each in (*workflows(chosen), policy_file())]
        rules = POLICY_RULES if written[-1].written else self._documentation
        store = self._existing_store() if rules.required_fields else None
        undocumented = None if store is None else find_missing_docs(rules, store, None)
        text = render_baseline(findings, undocumented)
        hint = "delete it first to record the findings of today"
        written.append(_write_new(root, Workflow(BASELINE_FILE, text, hint)))
        baseline = read_baseline(root)
        is_ignored = repository.is_ignored(root / BASELINE_FILE)
        return GateInitReport(
            forge=chosen,
            base=against,
            files=tuple(written),
            findings=len(baseline.findings),
            documentation=len(baseline.documentation),
            ignored=(BASELINE_FILE,) if is_ignored else (),
        )


def _downstream(report: ImpactReport) -> Iterator[str]:
    return (row.urn for row in report.downstream)


def _paired(
    diffs: Sequence[DatasetDiff], reports: Sequence[ImpactReport]
) -> Iterator[tuple[DatasetDiff, ImpactReport]]:
    """The reports, each with its diff; new datasets have no report."""
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
        found = diff_datasets(pair.before, pair.after).datasets
        if found:
            # A documented model is known by the lineage of its SQL.
            yield [
                msgspec.structs.replace(diff, urn=models.get(folded_name(diff.urn), diff.urn))
                if diff.urn in incomplete
                else diff
                for diff in found
            ]


def _model_diffs(revisions: Revisions, urns: ModelUrns) -> Iterator[tuple[DatasetDiff, SqlModel]]:
    """Columns that models no longer produce or now produce, and models that are gone.

    Readers that the change adapts may read the new columns, so these are part of the change.
    """
    after = {(each.file, each.name): each for each in revisions.after.models}
    moved = {each.name.lower(): each for each in revisions.after.models}
    for old in revisions.before.models:
        urn = urns.urn(old)
        if urn is None:
            continue
        new = after.get((old.file, old.name)) or moved.get(old.name.lower())
        if new is None:
            yield _diff(urn, [_removal("", None)]), old
        elif old.columns is not None and new.columns is not None:
            rows = [
                *(_removal(column, UNKNOWN.text) for column in _without(old.columns, new.columns)),
                *(_addition(column) for column in _without(new.columns, old.columns)),
            ]
            if rows:
                yield _diff(urn, rows), old


def _without(columns: Sequence[str], others: Sequence[str]) -> list[str]:
    """The columns that are not among others; SQL ignores case."""
    folded = {column.lower() for column in others}
    return [column for column in columns if column.lower() not in folded]


def _diff(urn: str, rows: list[ChangeRow]) -> DatasetDiff:
    return DatasetDiff(urn=urn, from_version=None, to_version=None, changes=tuple(rows))


def _removal(path: str, before: str | None) -> ChangeRow:
    return ChangeRow(
        path=path,
        kind="removed",
        before=before,
        after=None,
        consumer=Verdict.BREAKING,
        storage=Verdict.INFORMATIONAL,
        rule="field-removed" if path else "dataset-removed",
        flags=(),
        notes=(),
        fingerprint="",
    )


def _addition(path: str) -> ChangeRow:
    return ChangeRow(
        path=path,
        kind="added",
        before=None,
        after=UNKNOWN.text,
        consumer=Verdict.COMPATIBLE,
        storage=Verdict.COMPATIBLE,
        rule="field-added",
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
    """The monthly cost of datasets with everything upstream; empty without prices."""
    try:
        report = workspace.cost.top(_ALL_ROWS, ranked_by="total")
    except NoPrices:
        return {}
    return {row.urn: row.total for row in report.datasets}


def _facts(
    store: Store, findings: Mapping[str, GateFinding], costs: Mapping[str, Any]
) -> dict[str, DatasetFacts]:
    """The tags, domain, environment and cost of all datasets in findings."""
    urns = {
        urn
        for each in findings.values()
        for urn in (each.urn, each.affected_urn)
        if urn is not None
    }
    tags = store.aspects_of("governance", urns)
    documented = store.aspects_of("documentation", urns)
    return {
        urn: DatasetFacts(
            tags=tags[urn].tags if urn in tags else (),
            domain=documented[urn].domain if urn in documented else None,
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
    """What was not compared, and why."""
    yield from (*revisions.before.remarks, *revisions.after.remarks)
    before, after = (repository.submodules(commit) for commit in commits)
    for path in sorted({**before, **after}):
        if before.get(path) != after.get(path):
            yield f"Not compared: the submodule {path} changed. Run the gate in its repository too."
    for commit, files in zip(commits, revisions.files, strict=True):
        for path in sorted(repository.files(commit, SUFFIXES).keys() - files.keys()):
            if is_text(path):
                yield f"Not compared: {path} is larger than {MAX_BYTES // 1024**2} MB."
            else:
                shown = os.fsencode(path).decode(errors="backslashreplace")
                yield f"Not compared: the name of {shown} is not valid UTF-8."
    limits = [policy.max_monthly_cost, *(each.max_monthly_cost for each in policy.rules)]
    if any(each is not None for each in limits) and not costs:
        yield (
            "No costs are known, so max_monthly_cost has no effect. Give a store with costs: "
            "--lineage STORE"
        )


def _waivers(repository: GitRepository, commit: str) -> tuple[Waiver, ...]:
    files = {path: id for path, id in repository.files(commit, (".yaml",)).items() if path == FILE}
    return tuple(
        waiver
        for path, data in repository.read(files)
        for waiver in parse_waivers(data.decode("utf-8", "replace"), file=path)
    )


def _baseline(repository: GitRepository, commit: str) -> Baseline | None:
    """The baseline in a commit."""
    listed = repository.files(commit, (".yaml",))
    files = {path: id for path, id in listed.items() if path == BASELINE_FILE}
    for path, data in repository.read(files):
        return parse_baseline(data.decode("utf-8", "replace"), file=path)
    return None


def _write_new(root: Path, workflow: Workflow) -> InitFile:
    """Write a file unless it exists."""
    file = root / workflow.path
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(workflow.text)
    except FileExistsError:
        return InitFile(path=workflow.path, written=False, hint=workflow.if_exists or None)
    return InitFile(path=workflow.path, written=True)


def _report(
    base: str, head: str, old: str, new: str, schemas: int,
    findings: tuple[GateFinding, ...], problems: Any, coverage: float, *, remarks: tuple[str, ...],
    warn_only: bool,
) -> GateReport:  # fmt: skip
    open_findings = [each for each in findings if each.is_open]
    count = {
        level: sum(each.level == level for each in open_findings)
        for level in ("error", "warning", "note")
    }
    affected = {each.affected for each in findings if each.affected is not None}
    verdict: GateVerdict = (
        "breaking" if count["error"] else "undetermined" if count["warning"] else "passed"
    )
    breaking = (
        f"; {plural(count['error'], 'breaking change')}" if count["error"] else "; nothing breaks"
    )
    if not count["error"] and count["warning"]:
        breaking = f"; {plural(count['warning'], 'change')} undetermined"
    return GateReport(
        headline=f"This changes {plural(schemas, 'schema')}, affecting "
        f"{plural(len(affected), 'downstream dataset')}{breaking}",
        verdict=verdict,
        base=base,
        head=head,
        base_commit=old,
        head_commit=new,
        summary=GateSummary(
            schemas=schemas,
            affected=len(affected),
            breaking=count["error"],
            undetermined=count["warning"],
            notes=count["note"],
            waived=len(findings) - len(open_findings),
        ),
        findings=tuple(sorted(findings, key=_order)),
        waivers=problems,
        coverage=coverage,
        remarks=tuple(dict.fromkeys(remarks)),
        warn_only=warn_only,
    )


def _order(finding: GateFinding) -> tuple[int, str, str, str]:
    rank = ("error", "warning", "note").index(finding.level)
    return rank, finding.dataset, finding.path, finding.affected or ""
