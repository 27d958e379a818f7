"""Renders `lumos doc check` in the formats of the gate: one finding per undocumented dataset."""

from html import escape

from lumos.annotations.reports import MissingDocsReport
from lumos.annotations.requirements import BLOCKING
from lumos.config.load import FILE_NAME
from lumos.gate.documentation_check import documentation_finding
from lumos.gate.outputs import RENDERERS
from lumos.gate.reports import GateReport, GateSummary
from lumos.model.json_codec import to_json
from lumos.rendering.text import plural


def render_documentation(report: MissingDocsReport, format: str) -> str:
    """The report in one of the formats of the gate."""
    match format:
        case "json":
            return to_json(report, indent=2).decode() + "\n"
        case "markdown":
            return _markdown(report)
        case _:
            return RENDERERS[format](_gate_report(report))


def headline(report: MissingDocsReport) -> str:
    """A one-line summary."""
    datasets = plural(len(report.datasets), "dataset")
    if not report.datasets:
        return f"{plural(report.checked, 'dataset')} checked, nothing is missing"
    return f"{datasets} of {report.checked:,} lack required documentation"


def _markdown(report: MissingDocsReport) -> str:
    lines = [f"**{headline(report)}.**"]
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
        headline=headline(report),
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
