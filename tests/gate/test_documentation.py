"""Required documentation as part of the gate."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gate.sample import FILES, ORDERS, USERS, SampleRepository, code, run_gate
from lumos.gate.outputs import RENDERERS
from lumos.gate.reports import GateReport

RULES = """gate: {documentation: true}
documentation:
  required_fields: [description, owner, field_descriptions]
  enforcement: {mode: block_on_missing}
  exceptions:
  - {pattern: scratch/*, reason: Nobody reads these}
"""
COUNTED = "select day, count(*) as visits from orders group by 1\n"
VISITS = f"-- Visits per day.\n-- owner: web-team\n{COUNTED}"
DOCUMENTED = """models:
- name: visits
  columns:
  - {name: day, description: The day}
  - {name: visits, description: How many}
"""


@pytest.fixture
def repository(workplace: Path) -> SampleRepository:
    return SampleRepository(workplace, {**FILES, "lumos.yaml": RULES})


def missing(report: GateReport) -> dict[str, str]:
    return {
        each.dataset: each.message.partition("documentation: ")[2]
        for each in report.findings
        if each.category == "documentation"
    }


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, {}, id="nothing is touched"),
        pytest.param(
            {"models/report.sql": "SELECT email, orders FROM customer_360 WHERE orders > 1\n"},
            {},
            id="formatting only",
        ),
        pytest.param(
            {"models/visits.sql": COUNTED},
            {"visits": "description, owner, description of day, description of visits"},
            id="new model",
        ),
        pytest.param(
            {"models/visits.sql": VISITS, "models/schema.yml": DOCUMENTED}, {}, id="documented"
        ),
        pytest.param(
            {
                "models/visits.sql": "select 1 as day from orders\n",
                "models/schema.yml": "models:\n- name: visits\n  description: All\n"
                "  meta: {owner: web-team}\n",
            },
            {"visits": "description of day"},
            id="documented by dbt",
        ),
        pytest.param(
            {"schemas/users.schema": USERS + "age INT32\n"},
            {"users": "description, owner, description of age"},
            id="only touched columns",
        ),
        pytest.param({"models/scratch/visits.sql": "select day from orders\n"}, {}, id="exception"),
        pytest.param({"schemas/users.schema": None}, {}, id="removed dataset"),
    ],
)
def test_what_the_change_adds_or_touches_needs_documentation(
    repository: SampleRepository, change: dict[str, str | None], expected: dict[str, str]
) -> None:
    repository.commit(change)
    report = repository.check()
    assert missing(report) == expected
    assert report.summary.undocumented == len(expected)


def test_documentation_in_an_unchanged_file_counts(repository: SampleRepository) -> None:
    repository.change_main({"docs/schema.yml": DOCUMENTED, "models/visits.sql": VISITS})
    wider = VISITS.replace("day, count", "day, max(amount) as highest, count")
    repository.commit({"models/visits.sql": wider})
    assert missing(repository.check()) == {"visits": "description of highest"}


def test_missing_documentation_blocks_or_warns_as_configured(
    repository: SampleRepository,
) -> None:
    change: dict[str, str | None] = {"schemas/orders.schema": ORDERS + "note STRING\n"}
    repository.commit(change)
    report = repository.check()
    assert (report.verdict, code(report), report.summary.breaking) == ("breaking", 10, 0)
    assert report.headline.endswith("nothing breaks; 1 dataset lacks required documentation")
    repository.change_main({"lumos.yaml": RULES.replace("block_on_missing", "warn_only")})
    repository.commit(change)
    warned = repository.check()
    assert (warned.verdict, code(warned, strict=True)) == ("passed", 0)
    assert missing(warned) == missing(report)
    repository.change_main({"lumos.yaml": RULES.replace("true", "false")})
    repository.commit(change)
    assert missing(repository.check()) == {}


def test_a_change_cannot_drop_the_requirement_for_itself(repository: SampleRepository) -> None:
    repository.commit({"lumos.yaml": "gate: {}\n", "schemas/orders.schema": ORDERS + "a STRING\n"})
    report = repository.check()
    assert code(report) == 10
    assert any("that of the merge base applies" in remark for remark in report.remarks)


def test_missing_documentation_can_be_waived(repository: SampleRepository) -> None:
    repository.commit({"models/visits.sql": VISITS})
    (finding,) = (each for each in repository.check().findings if each.category == "documentation")
    assert finding.owners == ("web-team",)
    for approver, expected in (("somebody", 10), ("web-team", 0)):
        waiver = (
            f"waivers:\n- {{fingerprint: '{finding.fingerprint}', reason: later, "
            f"approver: {approver}, expires: '2999-01-01'}}\n"
        )
        repository.commit({".lumos/waivers.yaml": waiver})
        assert run_gate()[0] == expected


def test_every_output_shows_missing_documentation(repository: SampleRepository) -> None:
    repository.commit({"models/visits.sql": VISITS})
    report = repository.check()
    texts = {name: render(report) for name, render in RENDERERS.items()}
    assert "UNDOCUMENTED  visits (web-team) lacks required documentation" in texts["text"]
    assert "**Missing documentation**" in texts["markdown"]
    assert "::error file=models/visits.sql,title=Lumos%3A Undocumented::" in texts["github"]
    suite = ElementTree.fromstring(texts["junit"])
    assert (suite.get("failures"), len(suite.findall(".//failure"))) == ("1", 1)
    rules = json.loads(texts["sarif"])["runs"][0]["tool"]["driver"]["rules"]
    assert "Required documentation is missing" in {
        each["shortDescription"]["text"] for each in rules
    }
    names = [each["check_name"] for each in json.loads(texts["gitlab"])]
    assert "lumos/missing-documentation" in names
