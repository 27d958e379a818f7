"""Verdicts on schema changes, as text pairs."""

from pathlib import Path

import pytest

from lumos.analysis.comparison import compare
from lumos.analysis.compatibility import judge, worst
from lumos.model.change import Verdict
from lumos.model.schema import Field, Schema
from lumos.model.text import parse_schema
from lumos.model.types import INT32, INT64, STRING

PAIRS = (Path(__file__).parent / "pairs.txt").read_text(encoding="utf-8")


def cases() -> list[object]:
    """Each case is `# name`, lines of the old schema, `->`, lines of the new one, `=`, findings."""
    found: list[object] = []
    for block in PAIRS.strip().split("\n\n"):
        name, _, rest = block.partition("\n")
        before, _, rest = rest.partition("\n->\n")
        after, _, expected = rest.partition("\n=\n")
        wanted = [tuple(line.split()) for line in expected.strip().splitlines()]
        found.append(pytest.param(before, after, wanted, id=name.removeprefix("# ")))
    return found


@pytest.mark.parametrize(("before", "after", "expected"), cases())
def test_a_change_gets_its_rule_and_both_verdicts(
    before: str, after: str, expected: list[tuple[str, ...]]
) -> None:
    findings = judge(compare(parse_schema(before), parse_schema(after)), format="parquet")
    got = [
        (finding.change.path or "-", finding.rule, finding.consumer.value, finding.storage.value)
        for finding in findings
    ]
    assert sorted(got) == sorted(expected)


@pytest.mark.parametrize(
    ("format", "storage"),
    [
        pytest.param("avro", Verdict.BREAKING, id="Avro cannot promote to decimal"),
        pytest.param("iceberg", Verdict.BREAKING, id="Iceberg cannot promote to decimal"),
        pytest.param("delta", Verdict.COMPATIBLE, id="Delta widens where the digits fit"),
        pytest.param("csv", Verdict.COMPATIBLE, id="text follows its consumers"),
    ],
)
def test_the_storage_verdict_follows_the_format(format: str, storage: Verdict) -> None:
    changes = compare(parse_schema("a INT32"), parse_schema("a DECIMAL(10,0)"))
    (finding,) = judge(changes, format=format)
    assert finding.storage is storage
    assert finding.notes == ("safe in Delta, Spark, breaks Avro, Iceberg v2",)


def test_equal_schemas_have_no_findings_and_no_worst_verdict() -> None:
    schema = parse_schema("a STRUCT<b: INT64>")
    assert compare(schema, schema) == ()
    assert worst(judge(())) is None


def test_breaking_findings_come_first() -> None:
    before = Schema(fields=(Field(name="a", type=INT32), Field(name="b", type=STRING)))
    after = Schema(fields=(Field(name="a", type=INT64),))
    verdicts = [finding.consumer for finding in judge(compare(before, after))]
    assert verdicts == [Verdict.BREAKING, Verdict.COMPATIBLE]


def test_a_column_renamed_only_in_case_is_flagged() -> None:
    findings = judge(compare(parse_schema("Id INT64"), parse_schema("id INT64")))
    assert {finding.flags for finding in findings} == {("case-only",)}
