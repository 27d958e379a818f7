"""The report of `lumos gate`; its field names are a stable JSON contract."""

import hashlib
from collections.abc import Iterable
from decimal import Decimal
from typing import Final, Literal, TypeAlias

import msgspec

from lumos.model.report import FORMAT_VERSION, Report

CommentStatus: TypeAlias = Literal[
    "created", "updated", "unchanged", "skipped", "failed", "printed"
]
GateVerdict: TypeAlias = Literal["passed", "breaking", "undetermined"]
Level: TypeAlias = Literal["error", "warning", "note"]
Category: TypeAlias = Literal[
    "breaking", "undetermined", "unread", "storage", "compatible", "documentation"
]
Bump: TypeAlias = Literal["major", "minor", "patch"]
BREAKING: Final = 10
UNDETERMINED: Final = 11
TOO_EXPENSIVE: Final = 12
# The rule of findings about documentation.
MISSING_DOCUMENTATION: Final = "missing-documentation"
_TITLES: Final[dict[Level, str]] = {
    "error": "Breaking", "warning": "Undetermined", "note": "No known impact"
}  # fmt: skip


class GateLocation(Report, frozen=True, kw_only=True):
    """A line of a file at the head revision."""

    file: str
    line: int | None = None


class GateStep(Report, frozen=True, kw_only=True):
    """A column on the path of a change; `location` is where it is derived."""

    dataset: str
    column: str
    location: GateLocation | None


class GateFinding(Report, frozen=True, kw_only=True):
    """A change and its effect on one downstream dataset, or on none.

    An `error` breaks a reader, and a `warning` is undetermined; missing documentation is an `error`
    if it blocks. The policy decides whether a finding `blocks`; None means only with --strict. The
    fingerprint does not depend on lines and formatting. `declared` is the location of the change,
    and `used` the location where the affected dataset uses the column. `trail` leads from the
    changed column to the used one. `bump` is the effect on the schema version of the dataset.
    `monthly_cost` is the cost of the affected dataset.
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
    trail: tuple[GateStep, ...] = ()
    recommendations: tuple[str, ...] = ()
    waived_by: str | None = None
    urn: str = ""
    affected_urn: str | None = None
    category: Category = "compatible"
    flags: tuple[str, ...] = ()
    bump: Bump = "patch"
    blocks: bool | None = False
    approvers: tuple[str, ...] = ()
    monthly_cost: Decimal | None = None
    is_too_expensive: bool = False

    @property
    def is_open(self) -> bool:
        """Whether no waiver covers the finding."""
        return self.waived_by is None


class WaiverProblem(Report, frozen=True, kw_only=True):
    """A waiver that has no effect, and the reason."""

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


class CommentReport(Report, frozen=True, kw_only=True):
    """The result of posting a comment on a pull request; `problem` is the reason if it failed.

    It is `skipped` if there is nothing to report and no earlier comment, and `printed` by a dry
    run.
    """

    format_version: str = FORMAT_VERSION
    status: CommentStatus
    forge: str | None
    repository: str | None
    pr: int | None
    url: str | None = None
    problem: str | None = None
    body: str


class InitFile(Report, frozen=True, kw_only=True):
    """A file of `lumos gate init`; if it already existed, `hint` says how to add the gate."""

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
    """Counts of changed schemas, affected datasets and findings.

    `undocumented` counts datasets that lack required documentation, which no other count includes.
    """

    schemas: int
    affected: int
    breaking: int
    undetermined: int
    notes: int
    waived: int
    undocumented: int = 0


class GateReport(Report, frozen=True, kw_only=True):
    """The result of `lumos gate`; `coverage` is the share of downstream datasets with a verdict."""

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
    warn_only: bool = False

    def exit_code(self, *, strict: bool, warn_only: bool) -> int:
        """10 for breaking changes, 11 for undetermined ones, 12 for costs; 0 if nothing blocks."""
        if warn_only or self.warn_only:
            return 0
        findings = [each for each in self.findings if each.is_open]
        blocking = [each for each in findings if each.blocks or (strict and each.blocks is None)]
        if any(each.category != "undetermined" for each in blocking):
            return BREAKING
        if blocking:
            return UNDETERMINED
        return TOO_EXPENSIVE if any(each.is_too_expensive for each in findings) else 0


def title_of(finding: GateFinding) -> str:
    """A short title for the kind of a finding."""
    return "Undocumented" if finding.category == "documentation" else _TITLES[finding.level]


def fingerprint_of(parts: Iterable[str]) -> str:
    """A hash that identifies a finding by its parts."""
    text = "\0".join(parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def with_waiver(finding: GateFinding, approver: str) -> GateFinding:
    """The finding, marked as approved."""
    return msgspec.structs.replace(finding, waived_by=approver)
