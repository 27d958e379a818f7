"""Statements as queries for Spark: what is asked, of which tables, and what is left alone."""

import pytest

from lumos.impact.spark_statements import StatementCheck, checks_of_script


def only(sql: str, dialect: str = "spark") -> StatementCheck:
    """The only check of a script."""
    (found,) = checks_of_script(sql, dialect=dialect).checks
    return found


def asked(check: StatementCheck) -> str:
    """The query with the tables' own names, without the quotes around names."""
    return check.sql(lambda parts: ".".join(parts)).replace("`", "")


@pytest.mark.parametrize(
    ("dialect", "sql", "query"),
    [
        pytest.param("spark", "CREATE TABLE t AS SELECT a FROM s.u", "SELECT a FROM s.u AS u", id="table"),
        pytest.param("postgres", "CREATE VIEW t AS SELECT x.a FROM u AS x", "SELECT x.a FROM u AS x", id="view"),
        pytest.param("postgres", "CREATE TABLE t AS TABLE u", "SELECT * FROM u AS u", id="table of a table"),
        pytest.param("snowflake", "CREATE TABLE t CLONE u", "SELECT * FROM u AS u", id="clone"),
        pytest.param("tsql", "SELECT a INTO s.t FROM s.u", "SELECT a FROM s.u AS u", id="select into"),
        pytest.param("spark", "INSERT INTO t SELECT a FROM u", "SELECT a FROM u AS u", id="insert"),
        pytest.param(
            "postgres",
            "WITH x AS (SELECT a FROM u) INSERT INTO t SELECT a FROM x",
            "WITH x AS (SELECT a FROM u AS u) SELECT a FROM x",
            id="insert behind named queries",
        ),
        pytest.param(
            "postgres",
            "UPDATE t SET a = u.a, (b, c) = (u.b, 1) FROM u WHERE u.id = t.id",
            "SELECT u.a AS a, u.b AS b, 1 AS c FROM t AS t CROSS JOIN u AS u WHERE u.id = t.id",
            id="update",
        ),
        pytest.param(
            "tsql",
            "UPDATE x SET x.a = y.a FROM s.t AS x JOIN s.u AS y ON y.id = x.id",
            "SELECT y.a AS a FROM s.t AS x JOIN s.u AS y ON y.id = x.id",
            id="update of what FROM names",
        ),
        pytest.param(
            "mysql",
            "UPDATE t JOIN u ON t.id = u.id SET t.a = u.a",
            "SELECT u.a AS a FROM t AS t JOIN u AS u ON t.id = u.id",
            id="update of a join",
        ),
        pytest.param(
            "postgres",
            "DELETE FROM t USING u WHERE t.id = u.id",
            "SELECT 1 AS one FROM t AS t CROSS JOIN u AS u WHERE t.id = u.id",
            id="delete",
        ),
        pytest.param(
            "postgres",
            "CREATE TABLE t AS SELECT s.u.a FROM s.u",
            "SELECT u.a FROM s.u AS u",
            id="columns with the schema of their table",
        ),
        pytest.param(
            "spark",
            "CREATE TABLE t AS SELECT u.b.c FROM u",
            "SELECT u.b.c FROM u AS u",
            id="fields of structs",
        ),
        pytest.param(
            "tsql",
            "INSERT INTO s.t SELECT a FROM s.u WHERE b = @wanted",
            "SELECT a FROM s.u AS u WHERE b = NULL",
            id="variables",
        ),
        pytest.param(
            "spark",
            "CREATE TABLE t AS /* FROM v */ SELECT a FROM u",
            "SELECT a FROM u AS u",
            id="comments",
        ),
    ],
)  # fmt: skip
def test_a_statement_is_asked_as_a_query(dialect: str, sql: str, query: str) -> None:
    assert asked(only(sql, dialect)) == query


def test_each_arm_of_a_merge_is_a_query_over_the_rows_it_sees() -> None:
    merge = """
    MERGE INTO t USING u AS s ON t.id = s.id
    WHEN MATCHED AND s.gone THEN DELETE
    WHEN MATCHED THEN UPDATE SET a = s.a
    WHEN NOT MATCHED THEN INSERT (id, a) VALUES (s.id, s.a)
    WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = 0
    """
    found = checks_of_script(merge, dialect="databricks").checks
    assert [asked(check) for check in found] == [
        "SELECT 1 AS one FROM t AS t JOIN u AS s ON t.id = s.id WHERE s.gone",
        "SELECT s.a AS a FROM t AS t JOIN u AS s ON t.id = s.id",
        "SELECT s.id AS id, s.a AS a FROM u AS s LEFT ANTI JOIN t AS t ON t.id = s.id",
        "SELECT 0 AS a FROM t AS t LEFT ANTI JOIN u AS s ON t.id = s.id",
    ]
    assert [check.stores for check in found] == [False, True, True, True]
    assert [check.columns for check in found[1:]] == [("a",), ("id", "a"), ("a",)]


def test_stars_of_a_merge_go_by_names() -> None:
    merge = (
        "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    found = checks_of_script(merge, dialect="databricks").checks
    assert [check.is_by_name for check in found] == [True, True]
    assert [check.needs_all_columns for check in found] == [True, True]
    assert asked(found[0]) == "SELECT u.* FROM t AS t JOIN u AS u ON t.id = u.id"


def test_what_is_set_on_a_conflict_sees_the_row_that_was_refused() -> None:
    sql = "INSERT INTO t (a, b) SELECT a, b FROM u ON CONFLICT (a) DO UPDATE SET b = excluded.b"
    insert, update = checks_of_script(sql, dialect="postgres").checks
    assert insert.columns == ("a", "b")
    assert asked(update) == (
        "SELECT excluded.b AS b FROM t AS t CROSS JOIN (SELECT a, b FROM u AS u) AS excluded(a, b)"
    )


def test_where_the_result_goes_is_reported() -> None:
    view = only("CREATE VIEW v (x, y) AS SELECT a, b FROM u")
    assert (view.creates, view.columns) == (True, ("x", "y"))
    insert = only("INSERT OVERWRITE t PARTITION (d = 'x', e) SELECT * FROM u")
    assert (insert.creates, insert.static_partitions, insert.dynamic_partitions) == (
        False,
        ("d",),
        ("e",),
    )


def test_temporary_tables_are_the_queries_that_fill_them() -> None:
    script = """
    SELECT a, b INTO #x FROM s.u;
    INSERT INTO #x SELECT c, d FROM s.v;
    UPDATE #x SET a = 1;
    SELECT #x.a INTO s.t FROM #x;
    """
    found = only(script, "tsql")
    assert found.line == 5
    assert {*found.reads.values()} == {("s", "u"), ("s", "v")}
    first, second, third = "__lumos_own_0__", "__lumos_own_0__1", "__lumos_own_0__2"
    assert asked(found) == (
        f"WITH {first} AS (SELECT a, b FROM s.u AS u), {second} AS (SELECT c, d FROM s.v AS v), "
        f"{third} AS (SELECT 1 AS a FROM {first} AS x) SELECT * FROM (SELECT x.a FROM {first} AS x)"
    )


def test_a_temporary_table_may_be_made_anew_from_what_was_made_of_it() -> None:
    script = """
    CREATE TEMP TABLE x AS SELECT a FROM u;
    CREATE TEMP TABLE y AS SELECT a FROM x;
    DROP TABLE x;
    CREATE TEMP TABLE x AS SELECT a FROM y;
    CREATE TABLE t AS SELECT a FROM x;
    """
    assert asked(only(script, "postgres")) == (
        "WITH __lumos_own_0__ AS (SELECT a FROM u AS u), "
        "__lumos_own_1__ AS (SELECT a FROM __lumos_own_0__ AS x), "
        "__lumos_own_2__ AS (SELECT a FROM __lumos_own_1__ AS y) "
        "SELECT * FROM (SELECT a FROM __lumos_own_2__ AS x)"
    )


def test_declared_tables_have_the_types_that_are_declared() -> None:
    script = "DECLARE @x TABLE (a INT, b DATE); INSERT INTO s.t SELECT a FROM @x"
    assert "(SELECT CAST(NULL AS INT) AS a, CAST(NULL AS DATE) AS b)" in asked(only(script, "tsql"))


def test_named_queries_hide_tables_only_where_they_are_seen() -> None:
    found = only(
        "CREATE TABLE t AS WITH u AS (SELECT * FROM u) SELECT * FROM u CROSS JOIN s.u AS v"
    )
    assert {*found.reads.values()} == {("u",), ("s", "u")}
    assert asked(found) == "WITH u AS (SELECT * FROM u AS u) SELECT * FROM u CROSS JOIN s.u AS v"


@pytest.mark.parametrize(
    ("dialect", "sql", "reason"),
    [
        ("duckdb", "CREATE TABLE t AS SELECT * FROM read_csv('x.csv')", "READ_CSV as a table"),
        ("oracle", "INSERT ALL INTO t (a) VALUES (x) INTO v (b) VALUES (x) SELECT x FROM u",
         "writes several tables"),
        ("postgres", "INSERT INTO t SELECT a FROM u ON CONFLICT (a) DO UPDATE SET b = excluded.b",
         "without a column list"),
        ("postgres", "UPDATE t SET (a, b) = (SELECT x, y FROM u)", "several columns by one query"),
        ("clickhouse", "CREATE TABLE t AS SELECT * FROM s3('https://x/y.csv')", "S3 as a table"),
        ("clickhouse", "INSERT INTO t SELECT a FROM u FINAL", "it cannot be translated to Spark SQL"),
        ("oracle", "CREATE TABLE t AS SELECT u.a FROM u, v WHERE u.id = v.id (+)",
         "it cannot be translated to Spark SQL"),
        ("spark", f"CREATE TABLE t AS SELECT {'(' * 900}a{')' * 900} AS a FROM u", "too deeply"),
        ("tsql", "SELECT * INTO #x FROM OPENJSON(@j); SELECT a INTO s.t FROM #x", "temporary table #x"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_said(dialect: str, sql: str, reason: str) -> None:
    assert any(
        reason in (check.problem or "") for check in checks_of_script(sql, dialect=dialect).checks
    )


def test_text_that_is_not_sql_is_reported_with_its_line() -> None:
    found = checks_of_script("\nCREATE TABLE t AS SELECT FROM WHERE )", dialect="spark")
    assert not [check for check in found.checks if check.problem is None]
    assert found.problems[0][0] == 2


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE u",
        "TRUNCATE TABLE u",
        "INSERT INTO t VALUES (1)",
        "SELECT a FROM u",
        "GRANT SELECT ON u TO x",
        "CREATE TABLE t (a INT)",
    ],
)
def test_nothing_but_queries_is_asked(sql: str) -> None:
    assert not checks_of_script(sql, dialect="spark").checks
