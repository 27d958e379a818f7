"""The service behind `lumos gate`.

Features are imported late: many runs in a CI system repeat an earlier run and only need its cached
report (`report_cache.py`).
"""

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from lumos.config import Settings
from lumos.config.secret import mask_values, secret_values
from lumos.errors import MisuseError, did_you_mean
from lumos.gate.report_cache import ChangeRequest, ReportCache, known_findings
from lumos.gate.reports import (
    CommentReport,
    GateFinding,
    GateInitReport,
    GateReport,
    InitFile,
    WaiverReport,
)
from lumos.progress import Progress, no_progress
from lumos.rendering.text import few
from lumos.schemas.git_revisions import GitRepository, root_of

if TYPE_CHECKING:
    from lumos.annotations.reports import MissingDocsReport
    from lumos.gate.lineage_source import LineageWorkspace
    from lumos.gate.workflows import Workflow
    from lumos.gate.workspace import Workspace
    from lumos.store import Store

_DEFAULT_EXPIRY: Final = timedelta(days=30)
_MAX_LISTED: Final = 5


class Gate:
    """Finds the downstream impact of changes in a git repository."""

    def __init__(
        self,
        open_workspace: "Callable[[Path], Workspace]",
        settings: Settings,
        *,
        configured: "Callable[[], LineageWorkspace]",
        store: "Callable[[], Store]",
        existing_store: "Callable[[], Store | None]",
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
        """Report the downstream impact of the changes since the merge base of two revisions.

        `lineage` is a source of more lineage than the repository's SQL: a snapshot, a store, a file
        that `lineage.ingest` reads, or `local` for the configured store. Without it, manifests of
        dbt in the repository are used.
        """
        repository = GitRepository(Path(folder))
        old, new = repository.commits(base, head)
        change = ChangeRequest(base, head, old, new, dialect, self._settings)
        at = self._clock()
        cache = ReportCache(repository, change, at.date(), lineage=str(lineage or ""))
        # A cached report may be outdated if lineage comes from outside the repository.
        if lineage is None and (cached := cache.load()) is not None:
            return cached
        # Imported late: a cached report needs neither parsers nor a store.
        from lumos.gate.judgement import judge_change
        from lumos.gate.lineage_source import LineageSource, committed_artefacts

        with committed_artefacts(repository, old) as artefacts:
            source_path = artefacts if lineage is None else lineage
            source = (
                None
                if source_path is None
                else LineageSource(str(source_path), self._configured, optional=lineage is None)
            )
            report = judge_change(
                change, repository, self._open_workspace, source=source, at=at, progress=progress
            )
        report = _without_secrets(report, self._environment)
        cache.save(report)
        return report

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

        Pull request, repository, forge and token come from the CI system's environment
        variables, unless given. A comment that could not be posted has the status `failed` and a
        `problem`. `dry_run` only renders the comment.
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
        from_ci: bool = False,
        folder: str | Path = ".",
    ) -> WaiverReport:
        """Add a waiver to the repository; it takes effect when it is committed with the change.

        A run in this clone must have reported a finding with the fingerprint, unless `from_ci` is
        set.
        """
        from lumos.gate.waivers import FINGERPRINT, Waiver, add_waiver

        if not re.fullmatch(FINGERPRINT, fingerprint):
            raise MisuseError(
                f"'{fingerprint}' is not a fingerprint, which has 16 hexadecimal digits. "
                "Copy it from: lumos gate --base REV"
            )
        if not reason.strip() or not approver.strip():
            raise MisuseError(
                "A waiver needs a reason and an approver: "
                f"lumos gate waive {fingerprint} --reason TEXT --approver NAME"
            )
        until = expires or (self._clock() + _DEFAULT_EXPIRY).date()
        waiver = Waiver(
            fingerprint=fingerprint, reason=reason, approver=approver, expires=until.isoformat()
        )
        repository = GitRepository(Path(folder))
        if not from_ci:
            _check_known(fingerprint, known_findings(repository))
        file = os.path.relpath(add_waiver(repository.root, waiver))
        return WaiverReport(file=file, **msgspec.structs.asdict(waiver))

    def documentation(
        self, dataset: str | None = None, *, folder: str | Path = "."
    ) -> "MissingDocsReport":
        """The datasets in the store that lack required documentation, except for the baseline."""
        from lumos.annotations.requirements import find_missing_docs
        from lumos.gate.baseline import excuse_documentation, read_baseline

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
        """Write a workflow, a policy and a baseline with the current findings."""
        from lumos.annotations.requirements import find_missing_docs
        from lumos.gate.baseline import FILE as BASELINE_FILE
        from lumos.gate.baseline import read_baseline, render_baseline
        from lumos.gate.workflows import (
            FORGES,
            POLICY_RULES,
            Workflow,
            detect_forge,
            parse_forge,
            policy_file,
            workflows,
        )

        repository = GitRepository(Path(folder))
        root = repository.root
        remote = repository.git("config", "--get", "remote.origin.url", check=False).strip()
        chosen_forge = detect_forge(root, remote) if forge is None else parse_forge(forge)
        if chosen_forge is None:
            raise MisuseError(
                "The forge of this repository is not known. Name it: lumos gate init --forge github"
                f" (or {', '.join(FORGES[1:])})"
            )
        base_revision = base or repository.default_branch()
        has_commit = bool(repository.git("rev-parse", "--verify", "--quiet", "HEAD", check=False))
        report = (
            self.check(base_revision, folder=folder, progress=progress)
            if has_commit and base_revision is not None
            else None
        )
        findings = () if report is None else report.findings
        files = [_write_new(root, each) for each in (*workflows(chosen_forge), policy_file())]
        rules = POLICY_RULES if files[-1].written else self._documentation
        store = self._existing_store() if rules.required_fields else None
        undocumented = None if store is None else find_missing_docs(rules, store, None)
        text = render_baseline(findings, undocumented)
        hint = "delete it first to record the findings of today"
        files.append(_write_new(root, Workflow(BASELINE_FILE, text, hint)))
        baseline = read_baseline(root)
        is_ignored = repository.is_ignored(root / BASELINE_FILE)
        return GateInitReport(
            forge=chosen_forge,
            base=base_revision,
            files=tuple(files),
            findings=len(baseline.findings),
            documentation=len(baseline.documentation),
            ignored=(BASELINE_FILE,) if is_ignored else (),
        )


def _without_secrets(report: GateReport, environment: Mapping[str, str]) -> GateReport:
    """The report without the values of secret environment variables.

    A change may refer to such variables in the configuration, for example in rules for names.
    """

    secrets = secret_values(environment)
    if not secrets:
        return report

    def mask(value: object) -> object:
        match value:
            case str():
                return mask_values(value, secrets)
            case list() | tuple():
                return [mask(each) for each in value]
            case dict():
                return {key: mask(each) for key, each in value.items()}
            case _:
                return value

    values = msgspec.to_builtins(report)
    masked = mask(values)
    return report if masked == values else msgspec.convert(masked, GateReport, strict=False)


def _check_known(fingerprint: str, known: Mapping[str, GateFinding]) -> None:
    """Raise an error if no run in this clone has reported a finding with the fingerprint."""
    if fingerprint in known:
        return
    elsewhere = "If CI reported it, add --from-ci"
    if not known:
        raise MisuseError(
            f"No run in this clone has reported a finding yet, so '{fingerprint}' is not known. "
            f"{elsewhere}, else run: lumos gate --base REV"
        )
    listed, more = few(list(known.values()), _MAX_LISTED)
    rows = "; ".join(
        f"{each.fingerprint} ({'.'.join(filter(None, (each.dataset, each.path)))})"
        for each in listed
    )
    raise MisuseError(
        f"No finding has the fingerprint '{fingerprint}'.{did_you_mean(fingerprint, known)} "
        f"Reported in this clone: {rows}{f' and {more:,} more' if more else ''}. "
        f"{elsewhere}, else run: lumos gate --base REV"
    )


def _write_new(root: Path, workflow: "Workflow") -> InitFile:
    """Write a file unless it exists."""
    file = root / workflow.path
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(workflow.text)
    except FileExistsError:
        return InitFile(path=workflow.path, written=False, hint=workflow.if_exists or None)
    return InitFile(path=workflow.path, written=True)
