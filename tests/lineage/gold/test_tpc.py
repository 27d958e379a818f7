"""TPC-H and TPC-DS with their tables: everything is understood."""

import pytest
from sqlglot import exp, parse_one
from sqlglot.lineage import lineage

from lineage.gold import tpc
from lumos.lineage.sql import analyse
from lumos.lineage.sql.script import ColumnEdge

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("name", "queries", "tables"), [("tpc-h", 22, 8), ("tpc-ds", 99, 24)])
def test_every_output_column_of_every_query_is_resolved(
    name: str, queries: int, tables: int
) -> None:
    benchmark = tpc.load(name)
    assert (len(benchmark.queries), len(benchmark.tables)) == (queries, tables)
    for number, query in benchmark.queries.items():
        script = analyse(
            query, dialect=None, columns=lambda parts: benchmark.tables.get(".".join(parts))
        )
        assert script.unresolved == (), (number, script.unresolved)
        assert script.coverage.resolved == script.coverage.columns > 0, number
        read = {edge.from_table for edge in script.edges}
        assert read <= {(table,) for table in benchmark.tables}, number
        for edge in script.edges:
            assert edge.from_column in benchmark.tables[edge.from_table[0]], (number, edge)


@pytest.mark.parametrize("name", ["tpc-h", "tpc-ds"])
def test_columns_behind_named_outputs_lie_within_what_sqlglot_finds(name: str) -> None:
    """It does not tell values from what decides about them, so it bounds ours from both sides."""
    benchmark = tpc.load(name)
    types = {table: dict.fromkeys(names, "text") for table, names in benchmark.tables.items()}
    compared = 0
    for number, query in benchmark.queries.items():
        script = analyse(
            query, dialect=None, columns=lambda parts: benchmark.tables.get(".".join(parts))
        )
        uses = {_source(edge) for edge in script.edges if edge.usage is not None}
        for column, root in lineage(None, parse_one(query), types).items():
            if column.startswith("_col_"):
                continue
            theirs = {
                (node.expression.name, node.name.rpartition(".")[2])
                for node in root.walk()
                if isinstance(node.expression, exp.Table)
            }
            values = {
                _source(edge)
                for edge in script.edges
                if edge.usage is None and edge.to_column == column
            }
            assert values <= theirs <= values | uses, (number, column)
            compared += 1
    assert compared > 3 * len(benchmark.queries)


def _source(edge: ColumnEdge) -> tuple[str, str]:
    return edge.from_table[-1], edge.from_column
