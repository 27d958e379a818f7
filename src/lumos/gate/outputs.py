"""Renders the report of the gate in all output formats."""

import json
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape as escape_xml
from xml.sax.saxutils import quoteattr

from lumos.gate.comment import render_markdown
from lumos.gate.reports import (
    MISSING_DOCUMENTATION,
    GateFinding,
    GateLocation,
    GateReport,
    title_of,
)
from lumos.model.json_codec import to_json
from lumos.version import __version__

_GITHUB_LEVELS: Final = {"error": "error", "warning": "warning", "note": "notice"}
_GITLAB_SEVERITIES: Final = {"error": "major", "warning": "minor", "note": "info"}
_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_SOURCE_ROOT: Final = "%SRCROOT%"
# Characters that a terminal interprets, including line breaks.
_CONTROL_CHARACTERS: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Characters that XML 1.0 excludes, even as references.
_INVALID_IN_XML: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def render_json(report: GateReport) -> str:
    return to_json(report, indent=2).decode() + "\n"


def render_text(report: GateReport) -> str:
    """The lines that `lumos gate` prints."""
    lines = [f"{report.headline}."]
    for each in report.findings:
        title = "ok" if each.level == "note" else title_of(each).upper()
        if not each.is_open:
            title = f"approved by {each.waived_by}"
        lines += ["", f"{title}  {each.message}"]
        if each.clause:
            lines.append(f"  {each.clause}")
        if each.monthly_cost is not None:
            limit = ", more than max_monthly_cost" if each.is_too_expensive else ""
            name = each.affected or each.dataset
            lines.append(f"  {name} costs {each.monthly_cost:,.2f} a month{limit}")
        if each.level != "note" and each.is_open:
            lines.append(f"  fingerprint {each.fingerprint}")
    lines += [f"waiver {each.fingerprint}: {each.reason}" for each in report.waivers]
    lines += report.remarks
    if report.verdict == "breaking":
        lines += [
            "",
            "To approve a finding: lumos gate waive FINGERPRINT --reason TEXT --approver NAME",
        ]
    return "".join(
        _CONTROL_CHARACTERS.sub(lambda match: match[0].encode("unicode_escape").decode(), line)
        + "\n"
        for line in lines
    )


def render_github(report: GateReport) -> str:
    """Workflow commands that GitHub displays as annotations."""
    lines = []
    for each in report.findings:
        level = _GITHUB_LEVELS[each.level] if each.is_open else "notice"
        location = each.declared or each.used
        position = ""
        if location is not None:
            position = f" file={_escape_github_property(location.file)}"
            position += f",line={location.line}" if location.line else ""
        title = (
            f"{',' if position else ' '}title={_escape_github_property('Lumos: ' + title_of(each))}"
        )
        lines.append(f"::{level}{position}{title}::{_escape_github(each.message)}")
    return "".join(f"{line}\n" for line in lines)


def render_gitlab(report: GateReport) -> str:
    """GitLab's code quality format."""
    rows = [
        {
            "description": each.message,
            "check_name": f"lumos/{each.rule}",
            "fingerprint": each.fingerprint,
            "severity": _GITLAB_SEVERITIES[each.level] if each.is_open else "info",
            "location": {"path": file, "lines": {"begin": line}},
        }
        for each in report.findings
        for file, line in [_position(each)]
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def render_junit(report: GateReport) -> str:
    """JUnit's XML: one test case per finding; errors fail, undetermined findings are skipped."""
    cases = []
    failures = skips = 0
    for each in report.findings:
        reader = (
            "" if each.category == "documentation" else f" -> {each.affected or 'no known reader'}"
        )
        name = _xml_attribute(f"{_change_text(each)}{reader}")
        message, body = _xml_attribute(each.message), ""
        if each.is_open and each.level == "error":
            failures += 1
            text = escape_xml(
                _replace_invalid_xml("\n".join((each.message, *each.recommendations)))
            )
            body = f'<failure type="{each.rule}" message={message}>{text}</failure>'
        elif each.is_open and each.level == "warning":
            skips += 1
            body = f"<skipped message={message}/>"
        cases.append(
            f'    <testcase classname="lumos.gate.{each.rule}" name={name}>{body}</testcase>'
        )
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0"'
    skipped = f'skipped="{skips}"'
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
    """SARIF 2.1.0: the location is the change; related locations lead from it to the use."""
    rules = sorted({each.rule for each in report.findings})
    results = []
    for each in report.findings:
        location = each.declared or each.used
        result: dict[str, Any] = {
            "ruleId": each.rule,
            "ruleIndex": rules.index(each.rule),
            "level": each.level,
            "message": {"text": each.message},
            "locations": [] if location is None else [_sarif_location(location)],
            "partialFingerprints": {"lumos/v1": each.fingerprint},
        }
        if related := _related_locations(each):
            result["relatedLocations"] = related
        if not each.is_open:
            reason = {"kind": "external", "justification": f"Approved by {each.waived_by}"}
            result["suppressions"] = [reason]
        results.append(result)
    driver = {
        "name": "lumos",
        "version": __version__,
        "rules": [{"id": rule, "shortDescription": {"text": _rule_title(rule)}} for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_SOURCE_ROOT: {"description": {"text": "The repository."}}},
        "results": results,
    }
    document = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _related_locations(finding: GateFinding) -> list[dict[str, Any]]:
    """The lines that derive each column of the trail, and the line that uses the last column."""
    locations = [
        (step.location, f"{step.dataset}.{step.column} is derived here")
        for step in finding.trail[1:]
        if step.location is not None
    ]
    if finding.used is not None:
        locations.append((finding.used, finding.clause or finding.reason or finding.message))
    return [
        {"id": number, **_sarif_location(location), "message": {"text": text}}
        for number, (location, text) in enumerate(locations, start=1)
    ]


RENDERERS: Final[dict[str, Callable[[GateReport], str]]] = {
    "text": render_text,
    "json": render_json,
    "markdown": render_markdown,
    "github": render_github,
    "gitlab": render_gitlab,
    "junit": render_junit,
    "sarif": render_sarif,
}


def _position(finding: GateFinding) -> tuple[str, int]:
    location = finding.declared or finding.used
    return ("unknown", 1) if location is None else (location.file, location.line or 1)


def _sarif_location(location: GateLocation) -> dict[str, Any]:
    uri = quote(location.file, errors="surrogateescape")
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": uri, "uriBaseId": _SOURCE_ROOT},
            "region": {"startLine": location.line or 1},
        }
    }


def _rule_title(rule: str) -> str:
    if rule == MISSING_DOCUMENTATION:
        return "Required documentation is missing"
    return f"Schema change: {rule.replace('_', ' ')}"


def _change_text(finding: GateFinding) -> str:
    column = f"{finding.dataset}.{finding.path}" if finding.path else finding.dataset
    if finding.before is not None and finding.after is not None:
        return f"{column}: {finding.before} -> {finding.after}"
    return f"{column} {finding.rule.replace('_', ' ')}"


def _replace_invalid_xml(text: str) -> str:
    return _INVALID_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _xml_attribute(text: str) -> str:
    return quoteattr(_replace_invalid_xml(text))


def _escape_github(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_github_property(text: str) -> str:
    return _escape_github(text).replace(":", "%3A").replace(",", "%2C")
