"""The outputs of `lumos doc check`: those of the gate, one finding per undocumented dataset."""

from html import escape

from lumos.annotations.reports import MissingDocs, MissingDocsReport
from lumos.config.load import FILE_NAME
from lumos.gate.baseline import documentation_fingerprint
from lumos.gate.outputs import RENDERERS
from lumos.gate.reports import GateFinding, GateLocation, GateReport, GateSummary, Level
from lumos.model.json_codec import to_json
from lumos.rendering.text import plural

RULE = "missing-documentation"


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
    """What is missing, in one sentence."""
    datasets = plural(len(report.datasets), "dataset")
    if not report.datasets:
        return f"{plural(report.checked, 'dataset')} checked, nothing is missing"
    return f"{datasets} of {report.checked:,} lack required documentation"


def _markdown(report: MissingDocsReport) -> str:
    lines = [f"**{headline(report)}.**"]
    if report.datasets:
        lines += ["", "| dataset | missing | owners |", "|---|---|---|"]
        lines += [
            f"| {_cell(each.name)} | {_cell(', '.join(each.missing))} "
            f"| {_cell(', '.join(each.owners))} |"
            for each in report.datasets
        ]
    return "\n".join(lines) + "\n"


def _gate_report(report: MissingDocsReport) -> GateReport:
    level: Level = "error" if report.mode == "block_on_missing" else "warning"
    findings = tuple(_finding(each, level) for each in report.datasets)
    count = len(findings)
    return GateReport(
        headline=headline(report),
        verdict="breaking" if report.blocks else "passed",
        base="",
        head="",
        base_commit="",
        head_commit="",
        summary=GateSummary(
            schemas=report.checked,
            affected=count,
            breaking=count if level == "error" else 0,
            undetermined=count if level == "warning" else 0,
            notes=0,
            waived=report.in_baseline,
        ),
        findings=findings,
        waivers=(),
        coverage=1.0,
        remarks=(),
    )


def _finding(dataset: MissingDocs, level: Level) -> GateFinding:
    missing = ", ".join(dataset.missing)
    owners = f" ({', '.join(dataset.owners)})" if dataset.owners else ""
    return GateFinding(
        fingerprint=documentation_fingerprint(dataset),
        level=level,
        rule=RULE,
        dataset=dataset.name,
        path="",
        before=None,
        after=None,
        affected=None,
        owners=dataset.owners,
        message=f"{dataset.name}{owners} lacks required documentation: {missing}",
        reason=None,
        clause=None,
        # The dataset is in the store and has no file; the requirement has one.
        declared=GateLocation(file=FILE_NAME),
        used=None,
    )


def _cell(text: str) -> str:
    return escape(" ".join(text.split()), quote=False).replace("|", "\\|")
