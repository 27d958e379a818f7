"""Queries analysed over empty tables: what Spark says, and that nothing is done."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lumos.impact import job as spark_job
from lumos.impact.job import SparkAnalyzer, SparkRejection, SparkSchema, StoreTarget, spark_analyzer
from lumos.model.conversions.spark import schema_from_spark, schema_to_spark
from lumos.model.schema import Schema, parse_schema
from spark.test_modes import PYSPARK, bare_python, connect_server  # noqa: F401 - fixtures

ORDERS = parse_schema(
    """
    id INT64 NOT NULL
    note STRING
    day DATE
    price DECIMAL(12,2)
    at STRUCT<zip: STRING, lines: ARRAY<STRUCT<no: INT32>>>
    odd JSON
    """
)


def in_spark(schema: Schema | str) -> SparkSchema:
    return schema_to_spark(parse_schema(schema) if isinstance(schema, str) else schema)


def refused(answer: SparkSchema | SparkRejection) -> SparkRejection:
    assert isinstance(answer, SparkRejection), answer
    return answer


def text(answer: SparkSchema | SparkRejection) -> str:
    assert not isinstance(answer, SparkRejection), answer
    fields = schema_from_spark(dict(answer)).fields
    return "\n".join(
        f"{field.name} {field.type.text}{'' if field.nullable else ' NOT NULL'}" for field in fields
    )


def test_a_result_has_the_types_and_nulls_of_what_it_is_made_from(spark: SparkSession) -> None:
    with spark_analyzer(spark) as empty:
        orders = empty.table(in_spark(ORDERS))
        found = empty.analyse(f"SELECT id, price + 1 AS more, at.zip, odd FROM {orders}")
        assert text(found) == text(
            in_spark("id INT64 NOT NULL\nmore DECIMAL(13,2)\nzip STRING\nodd JSON")
        )
        assert text(empty.analyse(f"SELECT * FROM {orders}")) == text(in_spark(ORDERS))
        assert text(empty.analyse(f"SELECT id FROM {orders}", columns=["x"])) == "x INT64 NOT NULL"


@pytest.mark.parametrize(
    ("sql", "condition", "message"),
    [
        ("SELECT gone FROM {}", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "name `gone` cannot be resolved."),
        ("SELECT date_add(note, day) FROM {}", "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", '"DATE".'),
        ("SELECT nobody(id) FROM {}", "UNRESOLVED_ROUTINE", "Cannot resolve routine `nobody`"),
        ("SELECT at.no FROM {}", "FIELD_NOT_FOUND", "No such struct field `no` in `zip`, `lines`."),
        ("SELECT id FROM {} WHERE )", "PARSE_SYNTAX_ERROR", "Syntax error at or near"),
        ("SELECT id FROM {0} UNION SELECT id, note FROM {0}", "NUM_COLUMNS_MISMATCH", "same number of"),
    ],
)  # fmt: skip
def test_a_refusal_is_the_class_and_the_first_sentence(
    spark: SparkSession, sql: str, condition: str, message: str
) -> None:
    with spark_analyzer(spark) as empty:
        found = refused(empty.analyse(sql.format(empty.table(in_spark(ORDERS)))))
    assert found.condition == condition
    assert message in found.message
    for detail in ("SQLSTATE", "Project", "\n", "line 1", "Did you mean", "=="):
        assert detail not in found.text


def test_tables_that_nobody_reads_any_more_are_looked_at_all_the_same(spark: SparkSession) -> None:
    """What fills a temporary table stands in a named query that nobody names."""
    with spark_analyzer(spark) as empty:
        orders = empty.table(in_spark(ORDERS))
        sql = (
            f"WITH a AS (SELECT id FROM {orders}), b AS (SELECT gone FROM {orders}) SELECT * FROM a"
        )
        assert refused(empty.analyse(sql)).condition == "UNRESOLVED_COLUMN.WITH_SUGGESTION"


@pytest.mark.parametrize(
    ("query", "target", "condition"),
    [
        ("id, note", "a INT64\nb STRING", None),
        ("id, note", "a DECIMAL(20,0)\nb STRING", None),
        ("id, note", "a INT64\nb INT32", "INVALID_COLUMN_OR_FIELD_DATA_TYPE"),
        ("id, note", "a INT64\nb STRING NOT NULL", "NULLABLE_COLUMN_OR_FIELD"),
        ("id, note, day", "a INT64\nb STRING", "ASSIGNMENT_ARITY_MISMATCH"),
    ],
)
def test_a_table_takes_what_fits_its_columns(
    spark: SparkSession, query: str, target: str, condition: str | None
) -> None:
    with spark_analyzer(spark) as empty:
        sql = f"SELECT {query} FROM {empty.table(in_spark(ORDERS))}"
        found = empty.analyse(sql, target=StoreTarget(in_spark(target)))
        assert (found.condition if isinstance(found, SparkRejection) else None) == condition


def test_a_table_that_takes_names_does_not_care_for_places(spark: SparkSession) -> None:
    with spark_analyzer(spark) as empty:
        sql = f"SELECT note, id FROM {empty.table(in_spark(ORDERS))}"
        storing = StoreTarget(in_spark("id INT64\nnote STRING"), is_by_name=True)
        assert text(empty.analyse(sql, target=storing)) == "id INT64 NOT NULL\nnote STRING"


def test_nothing_is_left_in_the_session_and_nothing_is_run(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    def names() -> set[str]:
        return {row.tableName for row in spark.sql("SHOW TABLES").collect()}

    def stopped() -> None:
        with spark_analyzer(spark) as empty:
            orders = empty.table(in_spark(ORDERS))
            assert empty.table(in_spark(ORDERS)) == orders, "equal tables are one"
            assert orders in names()
            empty.analyse(f"SELECT gone FROM {orders}")
            empty.analyse(f"SELECT raise_error('run') FROM {orders}")
            raise RuntimeError("somebody stops")

    spark.range(1).collect()
    tracker = spark.sparkContext.statusTracker()
    tables = names()
    jobs = tracker.getJobIdsForGroup()
    assert jobs, "jobs are seen"
    with pytest.raises(RuntimeError, match="somebody stops"):
        stopped()
    assert tracker.getJobIdsForGroup() == jobs
    assert names() == tables
    assert "UNRESOLVED_COLUMN" not in capfd.readouterr().err, "a refusal is no news for the log"


def test_two_stages_of_a_session_do_not_meet(spark: SparkSession) -> None:
    with spark_analyzer(spark) as one, spark_analyzer(spark) as other:
        here, there = one.table(in_spark("a INT32")), other.table(in_spark("a STRING"))
        assert text(one.analyse(f"SELECT a FROM {here}")) == "a INT32"
        assert text(one.analyse(f"SELECT a FROM {there}")) == "a STRING"


def test_only_what_spark_connect_has_is_used() -> None:
    """No RDDs, no JVM, no context; and no way to data or to disks."""
    tree = ast.parse(Path(spark_job.__file__).read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    forbidden = {
        "sparkContext", "_jvm", "_jsparkSession", "_sc", "_jdf", "rdd", "SparkContext", "read",
        "write", "writeTo", "saveAsTable", "collect", "count", "show", "toPandas", "toArrow",
        "persist", "cache", "checkpoint", "createGlobalTempView",
    }  # fmt: skip
    assert not forbidden & (used | names)
    assert {"sql", "createDataFrame", "createTempView", "dropTempView"} <= used


SCRIPT = """
import json, sys
from lumos.impact.job import SparkRejection, StoreTarget, spark_analyzer
from lumos.spark.session import spark_session
master, schema, target = sys.argv[1], *map(json.loads, sys.argv[2:])
with spark_session(master=master, settings={"spark.sql.shuffle.partitions": "2"}) as session:
    with spark_analyzer(session) as empty:
        orders = empty.table(schema)
        answers = [
            empty.analyse(f"SELECT note, count(*) AS n FROM {orders} GROUP BY note"),
            empty.analyse(f"SELECT gone FROM {orders}"),
            empty.analyse(f"SELECT id, note FROM {orders}", target=StoreTarget(target)),
        ]
    left = [table.name for table in session.catalog.listTables()]
results = [each.text if isinstance(each, SparkRejection) else [f["name"] for f in each["fields"]] for each in answers]
print(json.dumps([results, left]))
"""


def run_script(master: str, folder: Path, **environment: str) -> object:
    given = [json.dumps(in_spark(each)) for each in (ORDERS, "a INT64\nb INT32")]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, master, *given],
        cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
        timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "UNRESOLVED_COLUMN" not in done.stderr
    return json.loads(done.stdout)


EXPECTED = [
    [
        ["note", "n"],
        "UNRESOLVED_COLUMN.WITH_SUGGESTION: A column, variable, or function parameter with name "
        "`gone` cannot be resolved.",
        'INVALID_COLUMN_OR_FIELD_DATA_TYPE: Column or field `b` is of type "STRING" while it\'s '
        'required to be "INT".',
    ],
    [],
]


@pytest.mark.slow
def test_a_cluster_says_the_same(tmp_path: Path, bare_python: str) -> None:  # noqa: F811
    found = run_script(
        "local-cluster[1,1,1024]",
        tmp_path,
        PYSPARK_PYTHON=bare_python,
        SPARK_HOME=str(PYSPARK),
        SPARK_WORKER_DIR=str(tmp_path / "work"),
    )
    assert found == EXPECTED


@pytest.mark.slow
def test_spark_connect_says_the_same(tmp_path: Path, connect_server: str) -> None:  # noqa: F811
    assert run_script(connect_server, tmp_path) == EXPECTED


def test_a_lost_session_is_no_word_on_a_query(spark: SparkSession) -> None:
    class Lost:
        catalog = spark.catalog

        def sql(self, _: str) -> object:
            raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        SparkAnalyzer(Lost()).analyse("SELECT 1")  # type: ignore[arg-type]
