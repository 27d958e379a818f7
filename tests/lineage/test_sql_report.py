"""A script as what its reporter says, and many texts at once."""

import pytest

from lineage.sql.edges import of
from lumos.lineage.reported_lineage import LocationReference, ReportedLineage, TableName
from lumos.lineage.sql import analyse, report_script
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, UseKind


def report(sql: str) -> ReportedLineage:
    return report_script(analyse(sql, file="m.sql"), reporter="sql:m.sql", platform="snowflake")


def test_edges_are_between_tables_with_their_columns() -> None:
    (edge,) = report("create table m.t as\nselect a + 1 as b from m.s where c = 1").edges
    assert edge.upstream == TableName(parts=("m", "s"), platform="snowflake")
    assert edge.downstream == TableName(parts=("m", "t"), platform="snowflake")
    assert edge.columns == (
        ColumnMapping(
            upstream="a", downstream="b", transformation="a + 1",
            derivation=Derivation.TRANSFORMATION, file="m.sql", line=2,
        ),
    )  # fmt: skip
    assert edge.uses == (
        ColumnUse(
            upstream="c", usage=UseKind.FILTER, expression="where c = 1", file="m.sql", line=2
        ),
    )


@pytest.mark.parametrize(
    ("sql", "type"),
    [
        ("create view v as select a from s", "VIEW"),
        ("create table t as select a, b from s", "COPIED"),
        ("create table t as select * from s", "COPIED"),
        ("create table t as select a, 1 as b from s", "TRANSFORMED"),
        ("create table t as select upper(a) as a from s", "TRANSFORMED"),
        ("create table t as select s.a, r.b from s join r on s.i = r.i", "TRANSFORMED"),
    ],
)
def test_the_kind_of_an_edge(sql: str, type: str) -> None:
    assert {edge.type for edge in report(sql).edges} == {type}


def test_a_table_that_gives_no_column_is_upstream_all_the_same() -> None:
    (edge,) = report("create table t as select count(*) as n from s").edges
    assert (edge.upstream, edge.columns) == (TableName(parts=("s",), platform="snowflake"), ())


def test_tables_behind_temporary_ones_are_upstream() -> None:
    edges = report(
        "create temp table w as select count(*) as n from s; insert into t select n from w"
    ).edges
    assert [(edge.upstream, edge.downstream) for edge in edges] == [
        (
            TableName(parts=("s",), platform="snowflake"),
            TableName(parts=("t",), platform="snowflake"),
        )
    ]


def test_a_query_alone_is_no_edge_but_a_read() -> None:
    script = of("select a from s where b = 1")
    assert report_script(script, reporter="r").edges == ()
    assert [(read.table, read.columns) for read in script.reads] == [(("s",), ("a", "b"))]


def test_a_written_table_is_read_only_where_its_columns_are_named() -> None:
    script = of("insert into t select a from s; update u set x = 1; update w set x = y")
    assert [read.table for read in script.reads] == [("s",), ("w",)]
    assert [write.table for write in script.writes] == [("t",), ("u",), ("w",)]


def test_problems_carry_place_line_and_statement() -> None:
    (problem,) = report("select 1;\nselect x from a, b").problems
    assert (problem.place, problem.line, problem.statement, problem.severity) == (
        "m.sql",
        2,
        "2",
        "error",
    )


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        ("create table t as select a from parquet.`s3://b/x`", "spark"),
        ("create table t as select a from read_parquet('s3://b/x')", "duckdb"),
    ],
)
def test_files_are_reported_with_their_path(sql: str, dialect: str) -> None:
    (edge,) = report_script(analyse(sql, dialect=dialect), reporter="sql:m.sql").edges
    assert edge.upstream == LocationReference(uri="s3://b/x")
