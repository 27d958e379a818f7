"""Statements as warehouses see them every day."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lineage import sqlglot_version
from lineage.sql.edges import direct, of

CASES = yaml.safe_load(Path(__file__).with_name("everyday.yaml").read_text("utf-8"))


def _marks(sql: str) -> list[pytest.MarkDecorator]:
    is_read = sqlglot_version.READS_TABLE_QUERIES or " AS TABLE " not in sql
    return [] if is_read else [pytest.mark.xfail(reason=sqlglot_version.REASON)]


@pytest.mark.parametrize(
    "case",
    [pytest.param(each, id=each["sql"][:60], marks=_marks(each["sql"])) for each in CASES],
)
def test_an_everyday_statement_gives_its_edges(case: dict[str, Any]) -> None:
    script = of(case["sql"], case.get("dialect"), case.get("schema"))
    assert direct(script) == set(case["direct"])
    assert not [each for each in script.unresolved if each.severity == "error"]
