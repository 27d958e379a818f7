"""The service behind `lumos gate`.

A change is judged in a temporary store. It gets the schemas and the lineage of the merge base; then
the files that the change touches are read again, so that models which it adapts count as adapted,
and models which it does not touch still read what they read before. Nothing of the repository is
executed.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec

from lumos.annotations.reports import MissingDocsReport
from lumos.annotations.requirements import find_missing_docs
from lumos.catalogs.local import LocalStorePlatform
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
    SQL_SUFFIX,
    SUFFIXES,
    RevisionDeclarations,
    SqlModel,
    align_names,
    migration_paths,
    pair_declarations,
    read_declarations,
    shadowed_names,
    type_dialect,
)
from lumos.gate.lineage_source import LineageSource, LineageWorkspace, replace_outside_lineage
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
from lumos.gate.schema_files import DeclaredSchema
from lumos.gate.trail import hop_locations
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
from lumos.lineage.input_files import is_ignored_folder
from lumos.model.catalog import CatalogEntry
from lumos.model.change import Verdict
from lumos.model.dataset import Documentation, Governance, Owner, Ownership
from lumos.model.schema import Schema
from lumos.model.types import UNKNOWN
from lumos.model.urn import DisplayNames, Urn, display_names
from lumos.names import find_urn
from lumos.progress import Progress, no_progress
from lumos.rendering.text import plural
from lumos.schemas.diff import diff_datasets
from lumos.schemas.findings import ChangeRow
from lumos.schemas.git_revisions import GitRepository, root_of
from lumos.schemas.reports import DatasetDiff
from lumos.store import Store, Transaction
from lumos.store.errors import AmbiguousName, UnknownDataset

if TYPE_CHECKING:
    from lumos.cost.service import Costs

_DEFAULT_EXPIRY: Final = timedelta(days=30)
# Larger files are data or generated.
_MAX_BYTES: Final = 8 * 1024 * 1024
# Of unchanged files, only those are read that may declare tables which queries read.
_READ_UNCHANGED: Final = (".schema", ".avsc", ".schema.json", ".yml", ".yaml", SQL_SUFFIX)
_ALL_ROWS: Final = 1_000_000


class Workspace(LineageWorkspace, Protocol):
    """The features of Lumos on a store of their own."""

    @property
    def impact(self) -> ImpactService: ...
    @property
    def cost(self) -> "Costs": ...


_NOTHING_DECLARED: Final = RevisionDeclarations()


class _Revisions(NamedTuple):
    """The files of both sides with their blob ids, and what the changed ones declare."""

    files: tuple[dict[str, str], dict[str, str]]
    before: RevisionDeclarations
    after: RevisionDeclarations
    same: RevisionDeclarations


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
        revisions = _read_revisions(repository, old, new, dialect)
        cache = None
        if source is None:
            revisions = _aligned(revisions)
            file = self._settings.origin.file
            config = None if file is None else Path(file)
            cache = _CachedBase(repository, revisions, config=config, dialect=dialect)
        with self._workspace(source, dialect, cache) as workspace:
            store = workspace.create_store()
            costs = _monthly_costs(workspace) if source is not None else {}
            if source is not None:
                revisions = _aligned(revisions, store)
            progress("reading lineage")
            model_urns = self._fill(workspace, repository, revisions, dialect, cache)
            progress("judging changes")
            diffs = [*_schema_diffs(revisions, model_urns.by_name)]
            reports = [
                report
                for layer in diffs
                for report in _paired(layer, workspace.impact.of_diff(layer).datasets)
            ]
            changed_schemas = {diff.urn for layer in diffs for diff in layer}
            for diff, model in _model_diffs(revisions, model_urns):
                changed_schemas.add(diff.urn)
                sides = tuple(side.get(model.file) for side in revisions.files)
                with self._at_base(workspace, repository, model.file, sides, dialect):
                    reports += _paired([diff], workspace.impact.of_diff([diff]).datasets)
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
                    is_model=_name(diff.urn) in models,
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
        sides: Sequence[str | None],
        dialect: str | None,
    ) -> Iterator[None]:
        """Inside, a model is the one of the merge base: readers resolve the columns that it had."""
        before, after = sides
        if before is None or after is None:
            yield
            return
        tree = _tree(workspace)

        def read(blob: str) -> None:
            written = _write_files(tree, repository.read({path: blob}))
            workspace.lineage.ingest(*written, dialect=dialect)

        read(before)
        try:
            yield
        finally:
            read(after)

    @contextmanager
    def _workspace(
        self, source: LineageSource | None, dialect: str | None, cache: "_CachedBase | None"
    ) -> Iterator[Workspace]:
        """A temporary store, with the lineage from outside of the repository or a cached base."""
        with TemporaryDirectory(prefix="lumos-gate-") as name:
            tree = Path(name).resolve()
            # Names of files in lineage are relative to the folder of the store.
            file = tree / "lumos.db"
            if source is not None:
                source.copy_store(file)
            if cache is not None:
                cache.restore(file)
            workspace = self._open_workspace(file)
            workspace.create_store()
            if source is not None:
                source.load(workspace, tree, dialect=dialect)
            yield workspace

    def _fill(
        self,
        workspace: Workspace,
        repository: GitRepository,
        revisions: _Revisions,
        dialect: str | None,
        cache: "_CachedBase | None",
    ) -> "_ModelUrns":
        """Add the schemas and the lineage that the change is judged by; returns URNs of models."""
        store = workspace.create_store()
        is_base_known = cache is not None and cache.is_restored
        if not is_base_known:
            _put_schemas(store, revisions._replace(after=_NOTHING_DECLARED))
        outside = [each.name for each in store.lineage.reporters()]
        tree = _tree(workspace)
        old, new = (
            _lineage_files(files, declared.readers, revisions.same.readers)
            for files, declared in zip(
                revisions.files, (revisions.before, revisions.after), strict=True
            )
        )
        # Not the folder as a whole: files from outside would count as deleted.
        if not is_base_known and (files := _write_files(tree, _contents(repository, old))):
            workspace.lineage.ingest(*files, dialect=dialect)
        if cache is not None and not is_base_known:
            cache.save(Path(workspace.database.location))
        _put_schemas(store, revisions, changed_only=True)
        urns = _ModelUrns.of(store, revisions.before.models)
        written = {*_written(store, outside)} if outside else set()
        changed = {path: text for path, text in new.items() if old.get(path) != text}
        if files := _write_files(tree, _contents(repository, changed)):
            workspace.lineage.ingest(*files, dialect=dialect)
        gone = old.keys() - new.keys()
        at = self._clock()
        store.transact(lambda transaction: _forget_files(transaction, gone, at))
        if outside:
            written.update(_written(store, outside))
            replace_outside_lineage(store, outside, written, at=at)
        return urns


class _ModelUrns(NamedTuple):
    """The datasets of models, by file and name, and of all datasets in lineage, by name."""

    by_model: dict[tuple[str, str], str]
    by_name: dict[str, str]

    @classmethod
    def of(cls, store: Store, models: Iterable[SqlModel]) -> "_ModelUrns":
        found: dict[tuple[str, str], str] = {}
        for model in models:
            for edge in store.lineage.edges_by(f"sql:{model.file}"):
                if _name(edge.downstream) == model.name.lower():
                    found[model.file, model.name] = edge.downstream
        return cls(found, _urns_by_name(store))

    def urn(self, model: SqlModel) -> str | None:
        return self.by_model.get((model.file, model.name)) or self.by_name.get(model.name.lower())


class _Blob(NamedTuple):
    """A file whose content is in the repository."""

    id: str


def _read_revisions(
    repository: GitRepository, old: str, new: str, sql_dialect: str | None
) -> _Revisions:
    before_files, after_files = (
        {
            path: blob
            for path, blob in repository.files(commit, SUFFIXES, max_bytes=_MAX_BYTES).items()
            if _is_text(path)
        }
        for commit in (old, new)
    )
    changed = {
        path
        for path in {**before_files, **after_files}
        if before_files.get(path) != after_files.get(path)
    }

    def read(files: Mapping[str, str], paths: Iterable[str]) -> dict[str, bytes]:
        return dict(repository.read({path: files[path] for path in paths if path in files}))

    before, after = read(before_files, changed), read(after_files, changed)
    groups = {*migration_paths(before.items()).values(), *migration_paths(after.items()).values()}
    # The result of a migration depends on those before it.
    beside = {
        path
        for path in after_files
        if path not in changed
        and path.lower().endswith(SQL_SUFFIX)
        and any(group == "." or path.startswith(f"{group}/") for group in groups)
    }
    both = read(after_files, beside)
    migrations = {path: both[path] for path, group in migration_paths(both.items()).items()
                  if group in groups}  # fmt: skip
    before |= migrations
    after |= migrations
    dialect = type_dialect(sql_dialect, before.items(), after.items())
    unchanged = {
        path: blob
        for path, blob in after_files.items()
        if path not in changed and path not in migrations and path.lower().endswith(_READ_UNCHANGED)
    }
    declared_before, declared_after = (
        read_declarations(sorted(side.items()), sql_dialect=sql_dialect, dialect=dialect)
        for side in (before, after)
    )
    same = read_declarations(
        repository.read(unchanged), sql_dialect=sql_dialect, dialect=dialect,
        models=False, unchanged=True,
    )  # fmt: skip
    return _Revisions((before_files, after_files), declared_before, declared_after, same)


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _aligned(revisions: _Revisions, store: Store | None = None) -> _Revisions:
    """The same declarations, those of one table under one URN, which the store may know."""

    def known(path: tuple[str, ...]) -> str | None:
        try:
            return None if store is None else find_urn(store, "/".join(path), with_lineage=True)
        except (UnknownDataset, AmbiguousName):
            return None

    sides = revisions.before, revisions.after, revisions.same
    schemas = align_names(*(side.schemas for side in sides), known=known)
    before, after, same = (
        side._replace(schemas=found) for side, found in zip(sides, schemas, strict=True)
    )
    return _Revisions(revisions.files, before, after, same)


class _CachedBase:
    """The store of the merge base in the cache, if an earlier run has filled it."""

    def __init__(
        self,
        repository: GitRepository,
        revisions: _Revisions,
        *,
        config: Path | None,
        dialect: str | None,
    ) -> None:
        self._cache = BaseStoreCache(repository, config=config, dialect=dialect)
        parts = dict(revisions.files[0])
        for each in (*revisions.same.schemas, *revisions.before.schemas):
            parts[f"{each.urn} in {each.file}"] = f"{each}\n{each.schema}"
        self._key = self._cache.key(parts)
        self.is_restored = False

    def restore(self, file: Path) -> None:
        """Start from the cached store, if there is one."""
        self.is_restored = self._cache.restore(self._key, file)

    def save(self, file: Path) -> None:
        self._cache.save(self._key, file)


def _put_schemas(store: Store, revisions: _Revisions, *, changed_only: bool = False) -> None:
    """Record the datasets of complete declarations; tables come before messages of their name.

    With `changed_only`, only those that the change declares.
    """
    before = {each.urn: each for each in (*revisions.same.schemas, *revisions.before.schemas)
              if each.complete}  # fmt: skip
    after = {each.urn: each for each in revisions.after.schemas if each.complete}
    shadowed = shadowed_names((*before.values(), *after.values()))
    catalog = LocalStorePlatform(store)
    with catalog.batch():
        for urn, declared in {**after, **before}.items():
            if urn in shadowed or (changed_only and urn not in after):
                continue
            parsed = Urn.parse(urn)
            entry = catalog.get(urn) or CatalogEntry(
                urn=urn, name=parsed.name, platform=parsed.platform
            )
            newest = after.get(urn, declared)
            catalog.put(
                msgspec.structs.replace(
                    entry,
                    schema=_all_columns(declared.schema, after.get(urn)),
                    format=entry.format or declared.format,
                    governance=entry.governance
                    or (Governance(tags=newest.tags) if newest.tags else None),
                    documentation=entry.documentation
                    or (Documentation(domain=newest.domain) if newest.domain else None),
                    ownership=entry.ownership
                    or (
                        Ownership(owners=tuple(Owner(name=each) for each in newest.owners))
                        if newest.owners
                        else None
                    ),
                )
            )


def _all_columns(schema: Schema, after: DeclaredSchema | None) -> Schema:
    """The columns of a dataset, with those that the change adds, which changed models may read."""
    if after is None:
        return schema
    known = {field.name for field in schema.fields}
    added = tuple(field for field in after.schema.fields if field.name not in known)
    return Schema(fields=(*schema.fields, *added))


def _lineage_files(
    files: Mapping[str, str], *readers: Mapping[str, str]
) -> dict[str, "_Blob | str"]:
    """The SQL that lineage is read from; in migrations, only views."""
    replaced = {path: text for each in readers for path, text in each.items()}
    return {
        path: replaced.get(path, _Blob(blob))
        for path, blob in files.items()
        if path.lower().endswith(SQL_SUFFIX)
        and replaced.get(path) != ""
        and not any(map(is_ignored_folder, PurePosixPath(path).parts[:-1]))
    }


def _contents(
    repository: GitRepository, files: Mapping[str, "_Blob | str"]
) -> Iterator[tuple[str, bytes]]:
    yield from repository.read(
        {path: each.id for path, each in files.items() if isinstance(each, _Blob)}
    )
    yield from ((path, each.encode("utf-8", "surrogatepass")) for path, each in files.items()
                if isinstance(each, str))  # fmt: skip


def _tree(workspace: Workspace) -> Path:
    return Path(workspace.database.location).parent


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


def _written(store: Store, outside: Sequence[str]) -> Iterator[str]:
    """The datasets that the repository's own SQL writes."""
    own = {each.name for each in store.lineage.reporters()} - set(outside)
    return (edge.downstream for name in own for edge in store.lineage.edges_by(name))


def _downstream(report: ImpactReport) -> Iterator[str]:
    return (row.urn for row in report.downstream)


def _paired(
    diffs: Sequence[DatasetDiff], reports: Sequence[ImpactReport]
) -> Iterator[tuple[DatasetDiff, ImpactReport]]:
    """The reports, each with its diff; new datasets have no report."""
    by_urn = {each.urn: each for each in diffs}
    return ((by_urn[each.change.urn], each) for each in reports if each.change.urn in by_urn)


def _schema_diffs(revisions: _Revisions, models: Mapping[str, str]) -> Iterator[list[DatasetDiff]]:
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
                msgspec.structs.replace(diff, urn=models.get(_name(diff.urn), diff.urn))
                if diff.urn in incomplete
                else diff
                for diff in found
            ]


def _model_diffs(revisions: _Revisions, urns: _ModelUrns) -> Iterator[tuple[DatasetDiff, SqlModel]]:
    """Columns that models no longer produce, and models that are gone."""
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
            there = {column.lower() for column in new.columns}
            gone = [column for column in old.columns if column.lower() not in there]
            if gone:
                yield _diff(urn, [_removal(column, UNKNOWN.text) for column in gone]), old


def _urns_by_name(store: Store) -> dict[str, str]:
    """Datasets that lineage mentions, by name; names of several datasets are left out."""
    found: dict[str, set[str]] = {}
    for edge in store.lineage.all():
        for urn in (edge.upstream, edge.downstream):
            found.setdefault(_name(urn), set()).add(urn)
    return {name: next(iter(urns)) for name, urns in found.items() if len(urns) == 1}


def _name(urn: str) -> str:
    return Urn.parse(urn).name.lower()


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


def _declaration(diff: DatasetDiff, revisions: _Revisions) -> GateLocation | None:
    """The file that declares a changed dataset."""
    for side in (revisions.after, revisions.before):
        for declared in side.schemas:
            if declared.urn == diff.urn:
                return GateLocation(file=declared.file)
        name = _name(diff.urn)
        for model in side.models:
            if model.name.lower() == name:
                return GateLocation(file=model.file)
        for declared in side.schemas:
            if _name(declared.urn) == name:
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
    revisions: _Revisions,
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
            if _is_text(path):
                yield f"Not compared: {path} is larger than {_MAX_BYTES // 1024**2} MB."
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
