"""The service behind `lumos gate`.

A change is judged in a temporary store. It gets the schemas and the lineage of the merge base; then
the files that the change touches are read again, so that models which it adapts count as adapted,
and models which it does not touch still read what they read before. Nothing of the repository is
executed.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

import msgspec

from lumos.annotations.reports import MissingDocsReport
from lumos.annotations.requirements import find_missing_docs
from lumos.catalogs.local import LocalStorePlatform
from lumos.config.settings import DocumentationRules
from lumos.errors import MisuseError
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
    SQL_SUFFIX,
    SUFFIXES,
    DeclaredSchema,
    RevisionDeclarations,
    SqlModel,
    read_declarations,
)
from lumos.gate.reports import (
    GateFinding,
    GateInitReport,
    GateLocation,
    GateReport,
    GateSummary,
    GateVerdict,
    InitFile,
    WaiverReport,
)
from lumos.gate.waivers import FILE, Waiver, add_waiver, apply_waivers, parse_waivers
from lumos.gate.workflows import (
    FORGES,
    POLICY_RULES,
    Workflow,
    detect_forge,
    forge_named,
    policy,
    workflows,
)
from lumos.impact.reports import ImpactReport
from lumos.impact.service import ImpactService
from lumos.lineage.service import LineageService
from lumos.model.catalog import CatalogEntry
from lumos.model.change import Verdict
from lumos.model.schema import Schema
from lumos.model.types import UNKNOWN
from lumos.model.urn import DisplayNames, Urn, display_names
from lumos.progress import Progress, no_progress
from lumos.rendering.text import plural
from lumos.schemas.diff import diff_datasets
from lumos.schemas.files import DatasetSchema
from lumos.schemas.findings import ChangeRow
from lumos.schemas.git_revisions import GitRepository, root_of
from lumos.schemas.reports import DatasetDiff
from lumos.store import Database, Store, Transaction

_DEFAULT_EXPIRY: Final = timedelta(days=30)


class Workspace(Protocol):
    """The features of Lumos on a store of their own."""

    @property
    def lineage(self) -> LineageService: ...
    @property
    def impact(self) -> ImpactService: ...
    @property
    def database(self) -> Database: ...
    def create_store(self) -> Store:
        """The store, created if there is none."""


class Gate:
    """Judges changes of a git repository."""

    def __init__(
        self,
        open_workspace: Callable[[Path], Workspace],
        *,
        documentation: DocumentationRules,
        store: Callable[[], Store],
        existing_store: Callable[[], Store | None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._open_workspace = open_workspace
        self._documentation = documentation
        self._store = store
        self._existing_store = existing_store
        self._clock = clock

    def check(
        self,
        base: str,
        head: str = "HEAD",
        *,
        folder: str | Path = ".",
        dialect: str | None = None,
        progress: Progress = no_progress,
    ) -> GateReport:
        """Report what the changes since the merge base of two revisions do downstream."""
        repository = GitRepository(Path(folder))
        old, new = repository.commits(base, head)
        before_files = repository.files(old, SUFFIXES)
        after_files = repository.files(new, SUFFIXES)
        changed = {
            path
            for path in {**before_files, **after_files}
            if before_files.get(path) != after_files.get(path)
        }
        progress("reading schemas and models")
        before, after = (
            read_declarations(
                repository.read({path: files[path] for path in changed if path in files}),
                sql_dialect=dialect,
            )
            for files in (before_files, after_files)
        )
        unchanged = {path: blob for path, blob in after_files.items() if path not in changed}
        same = read_declarations(repository.read(unchanged), sql_dialect=dialect, models=False)
        schemas = same.schemas | before.schemas, same.schemas | after.schemas
        files = before_files, after_files
        with self._filled(repository, files, schemas, dialect, progress) as workspace:
            store = workspace.create_store()
            diffs = list(_schema_diffs(before, after))
            progress("judging changes")
            reports = list(workspace.impact.of_diff(diffs).datasets)
            for diff in _model_diffs(before.models, after.models, store):
                diffs.append(diff)
                path = before.models[_model_key(diff.urn, before.models)].file
                sides = before_files.get(path), after_files.get(path)
                with self._at_base(workspace, repository, path, sides, dialect):
                    reports += workspace.impact.of_diff([diff]).datasets
            impacts = {each.change.urn: each for each in reports}
            names = DisplayNames(lambda urns: display_names(urns, store.names_like(urns)))
            names.look_up(urn for each in reports for urn in (each.change.urn, *_downstream(each)))
            findings = [
                finding
                for diff in diffs
                if (report := impacts.get(diff.urn)) is not None
                for finding in findings_of(
                    report,
                    diff,
                    declared=_declaration(diff.urn, before, after),
                    names=names,
                )
            ]
            coverage = min((each.coverage for each in impacts.values()), default=1.0)
        applied = apply_waivers(
            excuse_findings(findings, _baseline(repository, old), _baseline(repository, new)),
            _waivers(repository, new),
            earlier={each.fingerprint for each in _waivers(repository, old)},
            today=self._clock().date(),
        )
        return _report(
            base, head, old, new, diffs, applied.findings, applied.problems, coverage,
            remarks=(*before.remarks, *after.remarks),
        )  # fmt: skip

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
        written = [_write_new(root, each) for each in (*workflows(chosen), policy())]
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

    @staticmethod
    @contextmanager
    def _at_base(
        workspace: Workspace,
        repository: GitRepository,
        path: str,
        sides: tuple[str | None, str | None],
        dialect: str | None,
    ) -> Iterator[None]:
        """Inside, a model is the one of the merge base: readers resolve the columns that it had."""
        before, after = sides
        if before is None or after is None:
            yield
            return
        tree = Path(workspace.database.location).parent

        def read(blob: str) -> None:
            written = _write_files(tree, repository.read({path: blob}))
            workspace.lineage.ingest(*written, dialect=dialect)

        read(before)
        try:
            yield
        finally:
            read(after)

    @contextmanager
    def _filled(
        self,
        repository: GitRepository,
        files: tuple[Mapping[str, str], Mapping[str, str]],
        schemas: tuple[Mapping[str, DeclaredSchema], Mapping[str, DeclaredSchema]],
        dialect: str | None,
        progress: Progress,
    ) -> Iterator[Workspace]:
        """A temporary store with the schemas and the lineage that the change is judged by.

        `files` and `schemas` are those of the merge base and of the head.
        """
        with TemporaryDirectory(prefix="lumos-gate-") as name:
            tree = Path(name).resolve()
            # Names of files in lineage are relative to the folder of the store.
            workspace = self._open_workspace(tree / "lumos.db")
            before, after = schemas
            store = workspace.create_store()
            catalog = LocalStorePlatform(store)
            with catalog.batch():
                for urn, declared in {**after, **before}.items():
                    parsed = Urn.parse(urn)
                    entry = CatalogEntry(
                        urn=urn,
                        name=parsed.name,
                        platform=parsed.platform,
                        schema=_all_columns(declared.schema, after.get(urn)),
                        format=declared.format,
                    )
                    catalog.put(entry)
            progress("reading lineage")
            old, new = (
                {path: blob for path, blob in side.items() if path.lower().endswith(SQL_SUFFIX)}
                for side in files
            )
            if _write_files(tree, repository.read(old)):
                workspace.lineage.ingest(tree, dialect=dialect)
            changed = {path: blob for path, blob in new.items() if old.get(path) != blob}
            if written := _write_files(tree, repository.read(changed)):
                workspace.lineage.ingest(*written, dialect=dialect)
            gone = old.keys() - new.keys()
            store.transact(lambda transaction: _forget_files(transaction, gone, self._clock()))
            yield workspace


def _model_key(urn: str, models: Mapping[str, SqlModel]) -> str:
    name = Urn.parse(urn).name.lower()
    return next(key for key in models if key.lower() == name)


def _all_columns(schema: Schema, after: DeclaredSchema | None) -> Schema:
    """The columns of a dataset, with those that the change adds, which changed models may read."""
    if after is None:
        return schema
    known = {field.name for field in schema.fields}
    added = tuple(field for field in after.schema.fields if field.name not in known)
    return Schema(fields=(*schema.fields, *added))


def _write_files(tree: Path, files: Iterable[tuple[str, bytes]]) -> list[Path]:
    """Write files below a folder; paths that leave it are left out."""
    written = []
    for path, data in files:
        file = (tree / path).resolve()
        if tree in file.parents:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            written.append(file)
    return written


def _forget_files(transaction: Transaction, paths: Iterable[str], at: datetime) -> None:
    for path in sorted(paths):
        transaction.lineage.report(f"sql:{path}", [], at=at)


def _downstream(report: ImpactReport) -> Iterator[str]:
    return (row.urn for row in report.downstream)


def _schema_diffs(
    before: RevisionDeclarations, after: RevisionDeclarations
) -> tuple[DatasetDiff, ...]:
    old, new = (
        {
            urn: DatasetSchema(urn=urn, schema=each.schema, format=each.format)
            for urn, each in side.schemas.items()
        }
        for side in (before, after)
    )
    return diff_datasets(old, new).datasets


def _model_diffs(
    before: Mapping[str, SqlModel], after: Mapping[str, SqlModel], store: Store
) -> Iterator[DatasetDiff]:
    """Columns that models no longer produce, and models that are gone."""
    urns = _urns_by_name(store)
    for name, old in before.items():
        urn = urns.get(name.lower())
        if urn is None:
            continue
        new = after.get(name)
        if new is None:
            yield _diff(urn, [_removal("", None)])
        elif old.columns is not None and new.columns is not None:
            there = {column.lower() for column in new.columns}
            gone = [column for column in old.columns if column.lower() not in there]
            if gone:
                yield _diff(urn, [_removal(column, UNKNOWN.text) for column in gone])


def _urns_by_name(store: Store) -> dict[str, str]:
    """Datasets that lineage mentions, by name; names of several datasets are left out."""
    found: dict[str, set[str]] = {}
    for edge in store.lineage.all():
        for urn in (edge.upstream, edge.downstream):
            found.setdefault(Urn.parse(urn).name.lower(), set()).add(urn)
    return {name: next(iter(urns)) for name, urns in found.items() if len(urns) == 1}


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


def _declaration(
    urn: str, before: RevisionDeclarations, after: RevisionDeclarations
) -> GateLocation | None:
    """The file that declares a changed dataset."""
    for side in (after, before):
        if urn in side.schemas:
            return GateLocation(file=side.schemas[urn].file)
        name = Urn.parse(urn).name.lower()
        for model in side.models.values():
            if model.name.lower() == name:
                return GateLocation(file=model.file)
    return None


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
    base: str, head: str, old: str, new: str, diffs: list[DatasetDiff],
    findings: tuple[GateFinding, ...], problems: Any, coverage: float, *, remarks: tuple[str, ...],
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
        headline=f"This changes {plural(len(diffs), 'schema')}, affecting "
        f"{plural(len(affected), 'downstream dataset')}{breaking}",
        verdict=verdict,
        base=base,
        head=head,
        base_commit=old,
        head_commit=new,
        summary=GateSummary(
            schemas=len(diffs),
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
    )


def _order(finding: GateFinding) -> tuple[int, str, str, str]:
    rank = ("error", "warning", "note").index(finding.level)
    return rank, finding.dataset, finding.path, finding.affected or ""
