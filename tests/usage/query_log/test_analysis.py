"""What logged statements read, also where the query is wrapped in something else."""

import pytest

from lumos.lineage.reported_lineage import TableName
from lumos.usage.query_log.analysis import analyse_statement
from lumos.usage.query_log.reader import StatementExample


def reads(statement: str, dialect: str = "postgres", **facts: str) -> dict[str, set[str]]:
    example = StatementExample(digest=b"x", statement=statement, dialect=dialect, **facts)  # type: ignore[arg-type]
    found = analyse_statement(example, columns=lambda _: None)
    assert found.problem is None, found.problem
    return {
        ".".join(access.table.parts): set(access.columns)
        for access in found.reads
        if isinstance(access.table, TableName)
    }


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a FROM t WHERE b = 1",
        "-- who\n/* and why */ SELECT a FROM t WHERE b = 1",
        "DECLARE c1 NO SCROLL CURSOR WITH HOLD FOR SELECT a FROM t WHERE b = 1",
        'declare "SQL_CUR0x7f" cursor for select a from t where b = 1;',
        "EXPLAIN ANALYZE SELECT a FROM t WHERE b = 1",
        "EXPLAIN (ANALYZE, BUFFERS) SELECT a FROM t WHERE b = 1",
        "PREPARE p (int) AS SELECT a FROM t WHERE b = $1",
        "COPY (SELECT a FROM t WHERE b = 1) TO STDOUT WITH CSV",
        "UNLOAD ('SELECT a FROM t WHERE b = ''x''') TO 's3://bucket/x' IAM_ROLE 'r'",
        "COPY t (a, b) TO STDOUT",
    ],
)
def test_the_query_is_read_whatever_stands_around_it(statement: str) -> None:
    assert reads(statement) == {"t": {"a", "b"}}


@pytest.mark.parametrize(
    "statement",
    ["BEGIN", "SET search_path = x", "SHOW TABLES", "EXPLAIN SELECT a FROM t", "FETCH 100 FROM c1", "VACUUM t", "commit;"],
)  # fmt: skip
def test_nothing_is_read_by(statement: str) -> None:
    assert reads(statement) == {}


def test_names_are_completed_with_where_the_statement_was_run() -> None:
    facts = {"database": "SHOP", "schema": "PUBLIC"}
    assert reads("SELECT t.a FROM t JOIN x.u ON t.b = u.b", "snowflake", **facts).keys() == {
        "shop.public.t",
        "shop.x.u",
    }


def test_a_star_that_nobody_can_expand_reads_unknown_columns() -> None:
    assert reads("SELECT * FROM t WHERE b = 1")["t"] == {"b", "*"}
    assert reads("SELECT count(*) FROM t") == {"t": set()}
    assert reads("COPY t TO STDOUT")["t"] == {"*"}


def test_what_is_no_sql_is_said_to_be_none() -> None:
    example = StatementExample(digest=b"x", statement="SELEC a FRM t", dialect="postgres")
    assert analyse_statement(example, columns=lambda _: None).problem is not None


def test_the_tables_that_a_warehouse_names_stand_in_for_a_statement_it_alone_understands() -> None:
    example = StatementExample(
        digest=b"x",
        statement="SELEC a FRM t",
        dialect="bigquery",
        accessed=b'[{"project_id": "P", "dataset_id": "d", "table_id": "t"}]',
    )
    found = analyse_statement(example, columns=lambda _: None)
    assert found.problem is None
    assert [(each.table, each.columns) for each in found.reads] == [
        (TableName(parts=("p", "d", "t")), ("*",))
    ]
