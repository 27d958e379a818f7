"""Columns whose names look like paths: `user.name` is a column here, not a field of `user`."""

import pytest

from impact.rules.sql_graph import SqlGraph, of
from lumos.model.change import Verdict

BEFORE = "`user.name` STRING\nuser STRUCT<name: STRING>\nid INT64"


@pytest.mark.parametrize("with_reason", [True, False], ids=["sql", "edges"])
@pytest.mark.parametrize(
    ("after", "broken"),
    [
        pytest.param("user STRUCT<name: STRING>\nid INT64", "columns", id="column"),
        pytest.param("`user.name` STRING\nid INT64", "fields", id="struct"),
    ],
)
def test_a_dotted_column_is_not_a_field(after: str, broken: str, with_reason: bool) -> None:
    models = {
        "columns": 'select "user.name" as name from raw',
        "fields": "select raw.user.name as name from raw",
        "others": "select id from raw",
    }
    graph = SqlGraph({"raw": BEFORE}, models, dialect="duckdb")
    impact = graph.change("raw", after, with_reason=with_reason)
    verdicts = {name: of(impact, name).verdict for name in models}
    assert verdicts[broken] is Verdict.BREAKING
    assert verdicts["others"] is Verdict.COMPATIBLE
    assert verdicts[({"columns", "fields"} - {broken}).pop()] is Verdict.COMPATIBLE
