"""The report of `lumos gate`; its field names are a stable JSON contract."""

from typing import Literal, TypeAlias

import msgspec

from lumos.model.report import FORMAT_VERSION, Report

GateVerdict: TypeAlias = Literal["passed", "breaking", "undetermined"]
Level: TypeAlias = Literal["error", "warning", "note"]


class GateLocation(Report, frozen=True, kw_only=True):
    """A line of a file at the head revision."""

    file: str
    line: int | None = None


class GateFinding(Report, frozen=True, kw_only=True):
    """A change and what it does to one downstream dataset, or to none.

    `error` findings block, `warning` findings are undetermined and block with --strict. The
    fingerprint does not depend on lines and formatting. `declared` is where the change is made,
    `used` where it matters.
    """

    fingerprint: str
    level: Level
    rule: str
    dataset: str
    path: str
    before: str | None
    after: str | None
    affected: str | None
    owners: tuple[str, ...]
    message: str
    reason: str | None
    clause: str | None
    declared: GateLocation | None
    used: GateLocation | None
    recommendations: tuple[str, ...] = ()
    waived_by: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether no waiver covers the finding."""
        return self.waived_by is None


class WaiverProblem(Report, frozen=True, kw_only=True):
    """A waiver that has no effect, and why."""

    fingerprint: str
    reason: str


class WaiverReport(Report, frozen=True, kw_only=True):
    """The result of `lumos gate waive`: the added waiver and its file."""

    format_version: str = FORMAT_VERSION
    file: str
    fingerprint: str
    reason: str
    approver: str
    expires: str


class InitFile(Report, frozen=True, kw_only=True):
    """A file of `lumos gate init`; an existing one is kept, and `hint` says what to do with it."""

    path: str
    written: bool
    hint: str | None = None


class GateInitReport(Report, frozen=True, kw_only=True):
    """The result of `lumos gate init`.

    `findings` and `documentation` count the entries of the baseline. `ignored` are written files
    that git ignores.
    """

    format_version: str = FORMAT_VERSION
    forge: str
    base: str | None
    files: tuple[InitFile, ...]
    findings: int
    documentation: int
    ignored: tuple[str, ...] = ()


class GateSummary(Report, frozen=True, kw_only=True):
    """Counts of changed schemas, affected datasets and findings."""

    schemas: int
    affected: int
    breaking: int
    undetermined: int
    notes: int
    waived: int


class GateReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos gate`; `coverage` is the share of downstream datasets with a verdict."""

    format_version: str = FORMAT_VERSION
    headline: str
    verdict: GateVerdict
    base: str
    head: str
    base_commit: str
    head_commit: str
    summary: GateSummary
    findings: tuple[GateFinding, ...]
    waivers: tuple[WaiverProblem, ...]
    coverage: float
    remarks: tuple[str, ...]

    def exit_code(self, *, strict: bool, warn_only: bool) -> int:
        """0 if nothing blocks, 10 for breaking changes, 11 for undetermined ones if strict."""
        if warn_only:
            return 0
        if any(each.level == "error" and each.is_open for each in self.findings):
            return 10
        is_open = any(each.level == "warning" and each.is_open for each in self.findings)
        return 11 if strict and is_open else 0


def with_waiver(finding: GateFinding, approver: str) -> GateFinding:
    """The finding, approved."""
    return msgspec.structs.replace(finding, waived_by=approver)
