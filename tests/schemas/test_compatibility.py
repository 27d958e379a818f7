"""Verdicts on schema changes: text pairs for every rule."""

import runpy
from pathlib import Path

import pytest

from lumos.model.change import ConsumerUse, Verdict
from lumos.model.schema import Field, Schema, parse_schema
from lumos.model.types import INT32, INT64, STRING
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify, worst_verdict
from lumos.schemas.rules import RULES

from .pairs import Expected, Pair, pairs

PAIRS = pairs()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_change_gets_its_rule_both_verdicts_flags_and_notes(pair: Pair) -> None:
    findings = classify(compare(pair.before, pair.after), format=pair.format)
    got = {Expected.of(finding): finding.notes for finding in findings}
    assert sorted(got) == sorted(pair.expected)
    assert {noted: got[noted] for noted in pair.notes} == pair.notes


def test_every_rule_is_hit_by_a_pair() -> None:
    hit = {expected.rule for pair in PAIRS for expected in pair.expected}
    assert hit == set(RULES)


def test_no_pair_stands_twice() -> None:
    names = [pair.name for pair in PAIRS]
    assert len(set(names)) == len(names)
    cases = [(pair.format, str(pair.before), str(pair.after)) for pair in PAIRS]
    assert len(set(cases)) >= 150


@pytest.mark.parametrize("rule", sorted(RULES.keys() - {"unknown-type"}))
def test_what_depends_on_use_says_on_which(rule: str) -> None:
    judged = RULES[rule]
    assert judged.consumer is not Verdict.UNDETERMINED or judged.breaks_if
    assert judged.consumer is Verdict.BREAKING or not judged.holds_if


def test_a_finding_carries_the_uses_that_decide_it() -> None:
    changes = compare(parse_schema("a INT32\nb DATE"), parse_schema("a FLOAT64\nb STRING"))
    uses = {
        finding.change.path: (finding.breaks_if, finding.holds_if) for finding in classify(changes)
    }
    assert uses == {
        "a": ((ConsumerUse.KEY, ConsumerUse.JOINED, ConsumerUse.GROUPED), ()),
        "b": ((), (ConsumerUse.CAST,)),
    }


@pytest.mark.parametrize(
    ("format", "storage"),
    [
        pytest.param("avro", Verdict.BREAKING, id="Avro cannot promote to decimal"),
        pytest.param("iceberg", Verdict.BREAKING, id="Iceberg cannot promote to decimal"),
        pytest.param("delta", Verdict.COMPATIBLE, id="Delta widens where the digits fit"),
        pytest.param("orc", Verdict.COMPATIBLE, id="Spark reads ORC"),
        pytest.param(None, Verdict.COMPATIBLE, id="Spark reads what has no format"),
        pytest.param("csv", Verdict.COMPATIBLE, id="text follows its consumers"),
    ],
)
def test_the_storage_verdict_follows_the_format(format: str | None, storage: Verdict) -> None:
    changes = compare(parse_schema("a INT32"), parse_schema("a DECIMAL(10,0)"))
    (finding,) = classify(changes, format=format)
    assert finding.storage is storage
    assert finding.notes[0] == "safe in Delta, Spark, breaks Avro, Iceberg v2"


def test_equal_schemas_have_no_findings_and_no_worst_verdict() -> None:
    schema = parse_schema("a STRUCT<b: INT64>")
    assert compare(schema, schema) == ()
    assert worst_verdict(classify(())) is None


def test_breaking_findings_come_first() -> None:
    before = Schema(fields=(Field(name="a", type=INT32), Field(name="b", type=STRING)))
    after = Schema(fields=(Field(name="a", type=INT64),))
    verdicts = [finding.consumer for finding in classify(compare(before, after))]
    assert verdicts == [Verdict.BREAKING, Verdict.COMPATIBLE]


def test_the_page_on_the_rules_is_what_the_table_says() -> None:
    project = Path(__file__).parents[2]
    written = runpy.run_path(str(project / "scripts/write_rules_page.py"))["page"]()
    page = project / "docs/COMPATIBILITY.md"
    assert page.read_text(encoding="utf-8") == written, "run: make docs"
