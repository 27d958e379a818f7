"""Waivers in `.lumos/waivers.yaml`: each approves one finding of one change until a date.

Only waivers that the change itself adds take effect. A waiver that the merge base already has was
used by an earlier change; the gate reports it, so that it can be deleted.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, ClassVar, Final, NamedTuple, TypeVar

from msgspec import Meta

from lumos.config.reader import SectionReader
from lumos.config.section import Section
from lumos.config.yaml_tree import ConfigPosition, ConfigurationError, parse_yaml
from lumos.errors import MisuseError
from lumos.gate.reports import GateFinding, WaiverProblem, with_waiver

FILE: Final = ".lumos/waivers.yaml"
FINGERPRINT: Final = r"^[0-9a-f]{16}$"
SectionT = TypeVar("SectionT", bound=Section)


class Waiver(Section, frozen=True, kw_only=True):
    """The approval of one finding."""

    fingerprint: Annotated[str, Meta(pattern=FINGERPRINT, description="16 hexadecimal digits")]
    reason: Annotated[str, Meta(min_length=1, description="a text that is not empty")]
    approver: Annotated[str, Meta(min_length=1, description="a name")]
    expires: Annotated[
        str, Meta(pattern=r"^\d{4}-\d\d-\d\d$", description="a date such as 2026-12-31")
    ]


class WaiverFile(Section, frozen=True, kw_only=True):
    """The waivers of a repository."""

    nested: ClassVar[str | None] = None

    waivers: tuple[Waiver, ...] = ()


class AppliedWaivers(NamedTuple):
    """The findings, with waived ones marked, and waivers without effect."""

    findings: tuple[GateFinding, ...]
    problems: tuple[WaiverProblem, ...]


def parse_waivers(text: str, *, file: str = FILE) -> tuple[Waiver, ...]:
    """The waivers of a YAML text; raises ConfigurationError with file and line."""
    return parse_file(text, WaiverFile, file=file).waivers


def parse_file(text: str, kind: type[SectionT], *, file: str) -> SectionT:
    """The content of a YAML file; raises ConfigurationError with file and line."""
    position = ConfigPosition(origin=file, folder="")
    root, problems = parse_yaml(text, position=position, environment={})
    content = SectionReader({}, problems).section(root, kind)
    if problems or not isinstance(content, kind):
        raise ConfigurationError(problems)
    return content


def apply_waivers(
    findings: Sequence[GateFinding],
    waivers: Sequence[Waiver],
    *,
    earlier: Collection[str],
    today: date,
) -> AppliedWaivers:
    """Mark the findings that waivers approve; `earlier` has the fingerprints of earlier waivers."""
    effective: dict[str, Waiver] = {}
    problems: list[WaiverProblem] = []
    findings_by_fingerprint = {finding.fingerprint: finding for finding in findings}
    for waiver in waivers:
        reason = _problem_with(waiver, findings_by_fingerprint, earlier=earlier, today=today)
        if reason is None:
            effective[waiver.fingerprint] = waiver
        else:
            problems.append(WaiverProblem(fingerprint=waiver.fingerprint, reason=reason))
    applied = tuple(
        with_waiver(finding, effective[finding.fingerprint].approver)
        if finding.fingerprint in effective
        else finding
        for finding in findings
    )
    return AppliedWaivers(applied, tuple(problems))


def _problem_with(
    waiver: Waiver,
    findings: Mapping[str, GateFinding],
    *,
    earlier: Collection[str],
    today: date,
) -> str | None:
    """The reason why a waiver has no effect, or None."""
    try:
        expires = date.fromisoformat(waiver.expires)
    except ValueError:
        return f"{waiver.expires} is not a date."
    if waiver.fingerprint in earlier:
        return "It was used by an earlier change. Delete it."
    if expires < today:
        return f"It expired on {waiver.expires}."
    finding = findings.get(waiver.fingerprint)
    if finding is None:
        return "No finding has this fingerprint. Delete it."
    if finding.approvers and waiver.approver not in finding.approvers:
        approvers = ", ".join(finding.approvers)
        return f"{waiver.approver} may not approve it. Approvers: {approvers}."
    if not finding.approvers and finding.owners and waiver.approver not in finding.owners:
        owners = ", ".join(finding.owners)
        owned = finding.affected or finding.dataset
        return f"{waiver.approver} does not own {owned}. Owners: {owners}."
    return None


def add_waiver(folder: Path, waiver: Waiver) -> Path:
    """Append a waiver to the file of a repository; comments and other waivers stay."""
    file = folder / FILE
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    existing = parse_waivers(text, file=str(file)) if text.strip() else ()
    if any(each.fingerprint == waiver.fingerprint for each in existing):
        raise MisuseError(f"{file} already has a waiver for {waiver.fingerprint}.")
    if not existing:
        text = f"{text.rstrip()}\nwaivers:\n".lstrip()
    lines = [
        f"- fingerprint: '{waiver.fingerprint}'",
        f"  reason: {_quoted(waiver.reason)}",
        f"  approver: {_quoted(waiver.approver)}",
        f"  expires: '{waiver.expires}'",
    ]
    new_text = text.rstrip("\n") + "\n" + "\n".join(lines) + "\n"
    if (*existing, waiver) != parse_waivers(new_text, file=str(file)):
        raise MisuseError(
            f"{file} does not consist of a list under 'waivers:'. Add the waiver by hand."
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(new_text, encoding="utf-8")
    return file


def _quoted(text: str) -> str:
    return "'" + " ".join(text.split()).replace("'", "''") + "'"
