"""The baseline in `.lumos/baseline.yaml`: findings from before a repository used the gate.

Its findings do not block the change that adds the file. Like waivers, they have no effect after
that change is merged. Missing documentation is accepted until it is written.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from lumos.annotations.reports import MissingDocs, MissingDocsReport
from lumos.config.section import Section
from lumos.gate.reports import GateFinding, fingerprint_of, with_waiver
from lumos.gate.waivers import FINGERPRINT, parse_file

FILE: Final = ".lumos/baseline.yaml"
_HEADER: Final = "# What was found when the gate was introduced. Written by: lumos gate init"
_APPROVER: Final = "the baseline"
_Fingerprint = Annotated[str, Meta(pattern=FINGERPRINT, description="16 hexadecimal digits")]


class Baseline(Section, frozen=True, kw_only=True):
    """Fingerprints of findings, and of fields of datasets that lack documentation."""

    nested: ClassVar[str | None] = None

    findings: tuple[_Fingerprint, ...] = ()
    documentation: tuple[_Fingerprint, ...] = ()


def parse_baseline(text: str, *, file: str = FILE) -> Baseline:
    """The baseline of a YAML text; raises ConfigurationError with file and line."""
    return parse_file(text, Baseline, file=file)


def read_baseline(root: Path) -> Baseline:
    """The baseline of a repository; an empty baseline if it has no file."""
    file = root / FILE
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Baseline()
    return parse_baseline(text, file=str(file))


def render_baseline(findings: Iterable[GateFinding], missing: MissingDocsReport | None) -> str:
    """The text of a baseline: all open findings that may block, and all missing documentation."""
    blocking = [each for each in findings if each.is_open and each.level != "note"]
    lines = [_HEADER, "findings:" if blocking else "findings: []"]
    for finding in blocking:
        message = " ".join(finding.message.split())
        lines += [f"# {message}", f"- '{finding.fingerprint}'"]
    undocumented = [] if missing is None else list(missing.datasets)
    lines.append("documentation:" if undocumented else "documentation: []")
    for dataset in undocumented:
        lines.append(f"# {dataset.urn}: {', '.join(dataset.missing)}")
        lines += [f"- '{_fingerprint(dataset.urn, field)}'" for field in dataset.missing]
    return "\n".join(lines) + "\n"


def excuse_findings(
    findings: Sequence[GateFinding], before: Baseline | None, after: Baseline | None
) -> list[GateFinding]:
    """Waive the findings of a baseline that the change adds.

    A baseline that the merge base already has was used by an earlier change.
    """
    excused = set() if before is not None or after is None else set(after.findings)
    return [
        with_waiver(each, _APPROVER) if each.fingerprint in excused else each for each in findings
    ]


def excuse_documentation(report: MissingDocsReport, baseline: Baseline) -> MissingDocsReport:
    """The report without the missing documentation in the baseline."""
    remaining: list[MissingDocs] = []
    for each in report.datasets:
        fields = without_excused_fields(each.urn, each.missing, baseline)
        if fields:
            remaining.append(msgspec.structs.replace(each, missing=fields))
    return msgspec.structs.replace(
        report,
        datasets=tuple(remaining),
        blocks=report.blocks and bool(remaining),
        in_baseline=len(report.datasets) - len(remaining),
    )


def without_excused_fields(urn: str, missing: Iterable[str], baseline: Baseline) -> tuple[str, ...]:
    """The missing fields of a dataset that are not in the baseline."""
    excused = set(baseline.documentation)
    return tuple(name for name in missing if _fingerprint(urn, name) not in excused)


def documentation_fingerprint(dataset: MissingDocs) -> str:
    """A hash that identifies the missing documentation of a dataset."""
    return _fingerprint(dataset.urn, *sorted(dataset.missing))


def _fingerprint(*parts: str) -> str:
    return fingerprint_of(("documentation", *parts))
