"""The report of the gate for machines: JSON, Markdown, GitHub, GitLab, JUnit and SARIF."""

import json
from collections.abc import Callable
from html import escape
from typing import Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape as escape_xml
from xml.sax.saxutils import quoteattr

from lumos.gate.reports import GateFinding, GateReport
from lumos.model.json_codec import to_json
from lumos.version import __version__

_GITHUB: Final = {"error": "error", "warning": "warning", "note": "notice"}
_GITLAB: Final = {"error": "major", "warning": "minor", "note": "info"}
_TITLES: Final = {"error": "Breaking", "warning": "Undetermined", "note": "No known impact"}
_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_MAX_ROWS: Final = 200


def render_json(report: GateReport) -> str:
    return to_json(report, indent=2).decode() + "\n"


def render_markdown(report: GateReport) -> str:
    """A comment: the headline, a table of open findings, and folded details."""
    lines = [f"**{report.headline}.**", ""]
    shown = [each for each in report.findings if each.is_open and each.level != "note"]
    if shown:
        lines += ["| | change | affected | owners | where |", "|---|---|---|---|---|"]
        for each in shown[:_MAX_ROWS]:
            used = each.used
            where = "" if used is None else f"`{used.file}:{used.line}`"
            cells = (
                _TITLES[each.level], _cell(_change(each)), _cell(each.affected or "unknown"),
                _cell(", ".join(each.owners)), where,
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
        if (more := len(shown) - _MAX_ROWS) > 0:
            lines.append(f"| | and {more:,} more | | | |")
        lines += ["", "<details><summary>Details and waivers</summary>", ""]
        for each in shown[:_MAX_ROWS]:
            lines.append(f"- {escape(each.message, quote=False)}  ")
            lines += [f"  - {escape(text, quote=False)}" for text in each.recommendations]
            lines.append(f"  - To approve it: `lumos gate waive {each.fingerprint} --reason ...`")
        lines += ["", "</details>"]
    waived = [each for each in report.findings if not each.is_open]
    lines += [
        f"- Approved by {_cell(each.waived_by or '')}: {escape(each.message, quote=False)}"
        for each in waived
    ]
    lines += [f"- Waiver {each.fingerprint}: {_cell(each.reason)}" for each in report.waivers]
    lines += [f"- {escape(each, quote=False)}" for each in report.remarks]
    return "\n".join(lines).rstrip() + "\n"


def render_github(report: GateReport) -> str:
    """Workflow commands that GitHub shows as annotations."""
    lines = []
    for each in report.findings:
        level = _GITHUB[each.level] if each.is_open else "notice"
        place = each.declared or each.used
        position = ""
        if place is not None:
            position = f" file={_property(place.file)}"
            position += f",line={place.line}" if place.line else ""
        title = f"{',' if position else ' '}title={_property('Lumos: ' + _TITLES[each.level])}"
        lines.append(f"::{level}{position}{title}::{_data(each.message)}")
    return "".join(f"{line}\n" for line in lines)


def render_gitlab(report: GateReport) -> str:
    """GitLab's code quality format."""
    rows = [
        {
            "description": each.message,
            "check_name": f"lumos/{each.rule}",
            "fingerprint": each.fingerprint,
            "severity": _GITLAB[each.level] if each.is_open else "info",
            "location": {"path": file, "lines": {"begin": line}},
        }
        for each in report.findings
        for file, line in [_position(each)]
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def render_junit(report: GateReport) -> str:
    """JUnit's XML: one test case per finding; errors fail, undetermined ones are skipped."""
    cases = []
    for each in report.findings:
        name = quoteattr(f"{_change(each)} -> {each.affected or 'no known reader'}")
        body = ""
        if each.is_open and each.level == "error":
            body = (
                f"<failure message={quoteattr(each.message)}>{escape_xml(each.message)}</failure>"
            )
        elif each.is_open and each.level == "warning":
            body = f"<skipped message={quoteattr(each.message)}/>"
        cases.append(
            f'    <testcase classname="lumos.gate.{each.rule}" name={name}>{body}</testcase>'
        )
    counts = f'tests="{len(cases)}" failures="{report.summary.breaking}" errors="0"'
    skipped = f'skipped="{report.summary.undetermined}"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f"<testsuites {counts}>",
            f'  <testsuite name="lumos gate" {counts} {skipped}>',
            *cases,
            "  </testsuite>",
            "</testsuites>",
            "",
        ]
    )


def render_sarif(report: GateReport) -> str:
    """SARIF 2.1.0; the location is the change, related locations are where it matters."""
    rules = sorted({each.rule for each in report.findings})
    results = []
    for each in report.findings:
        file, line = _position(each)
        result: dict[str, Any] = {
            "ruleId": each.rule,
            "ruleIndex": rules.index(each.rule),
            "level": each.level,
            "message": {"text": each.message},
            "locations": [_sarif_location(file, line)],
            "partialFingerprints": {"lumos/v1": each.fingerprint},
        }
        if each.used is not None:
            place = _sarif_location(each.used.file, each.used.line or 1)
            text = each.clause or each.reason or each.message
            result["relatedLocations"] = [{"id": 1, **place, "message": {"text": text}}]
        if not each.is_open:
            reason = {"kind": "external", "justification": f"Approved by {each.waived_by}"}
            result["suppressions"] = [reason]
        results.append(result)
    driver = {
        "name": "lumos",
        "version": __version__,
        "rules": [{"id": rule, "shortDescription": {"text": _rule_title(rule)}} for rule in rules],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    document = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


RENDERERS: Final[dict[str, Callable[[GateReport], str]]] = {
    "json": render_json,
    "markdown": render_markdown,
    "github": render_github,
    "gitlab": render_gitlab,
    "junit": render_junit,
    "sarif": render_sarif,
}


def _position(finding: GateFinding) -> tuple[str, int]:
    place = finding.declared or finding.used
    return ("unknown", 1) if place is None else (place.file, place.line or 1)


def _sarif_location(file: str, line: int) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(file), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": line},
        }
    }


def _rule_title(rule: str) -> str:
    return f"Schema change: {rule.replace('_', ' ')}"


def _change(finding: GateFinding) -> str:
    column = f"{finding.dataset}.{finding.path}" if finding.path else finding.dataset
    if finding.before is not None and finding.after is not None:
        return f"{column}: {finding.before} -> {finding.after}"
    return f"{column} {finding.rule.replace('_', ' ')}"


def _cell(text: str) -> str:
    return escape(" ".join(text.split()), quote=False).replace("|", "\\|")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
