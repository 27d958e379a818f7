"""Rehearsal down the stream: which statements fail with the proposed schema, and only with it."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from impact.cases import Case, Usage, Verdict, cases
from impact.inventory_graph import InventoryDownstream, name_of
from impact.sample_inventory import load_sample_inventory
from lumos import Lumos
from lumos.config import Settings
from lumos.impact.context import analyse_derivation
from lumos.impact.job import spark_analyzer
from lumos.impact.rules.graph import DatasetDerivation
from lumos.impact.rules.propagation import impact_of
from lumos.impact.rules.results import Impact
from lumos.impact.spark_check import (
    SchemaPair,
    SparkCheck,
    SparkCheckReport,
    check_downstream_on_spark,
)
from lumos.lineage.reported_lineage import TableName
from lumos.lineage.sql import report_script
from lumos.lineage.sql.analysis import analyse
from lumos.model.lineage import Edge
from lumos.model.schema import Schema, parse_schema
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import classify
from usage.shop_logs import add, urn

AT = datetime(2024, 1, 1, tzinfo=UTC)
ORDERS = "id INT64 NOT NULL\nnote STRING\nday DATE\namount INT32\ncustomer INT64"


class SqlDatasets:
    """Datasets by name; the SQL of each says its dialect before a colon."""

    def __init__(self, schemas: Mapping[str, str], sql: Sequence[str]) -> None:
        self._schemas = {name: parse_schema(text) for name, text in schemas.items()}
        self._derivations: dict[str, list[DatasetDerivation]] = {}
        for number, (dialect, _, text) in enumerate(each.partition(": ") for each in sql):
            script = analyse(text, dialect=dialect, columns=self._columns)
            names = [
                *(each.table for each in script.reads),
                *(each.table for each in script.writes),
            ]
            edges: dict[str, list[Edge]] = {}
            for reported in report_script(script, reporter="x").edges:
                assert isinstance(reported.upstream, TableName)
                assert isinstance(reported.downstream, TableName)
                ends = name_of(reported.upstream.parts), name_of(reported.downstream.parts)
                edge = Edge(upstream=ends[0], downstream=ends[1], origin="x", at=AT)
                edges.setdefault(ends[1], []).append(
                    msgspec.structs.replace(edge, columns=reported.columns, uses=reported.uses)
                )
            for target, some in edges.items():
                derivation = DatasetDerivation(
                    origin="x", edges=tuple(some), sql=text, dialect=dialect, file=f"{number}.sql",
                    tables=tuple((parts, name_of(parts)) for parts in names),
                )  # fmt: skip
                self._derivations.setdefault(target, []).append(derivation)

    def _columns(self, parts: tuple[str, ...]) -> list[str] | None:
        schema = self._schemas.get(name_of(parts))
        return None if schema is None else [field.name for field in schema.fields]

    def declare(self, upstream: str, downstream: str) -> None:
        edge = Edge(upstream=upstream, downstream=downstream, origin="y", at=AT)
        self._derivations.setdefault(downstream, []).append(
            DatasetDerivation(origin="y", edges=(edge,))
        )

    def links(self, _: str) -> list[tuple[str, str]]:
        return [(edge.upstream, edge.downstream) for derivations in self._derivations.values()
                for derivation in derivations for edge in derivation.edges]  # fmt: skip

    def derivations(self, name: str) -> list[DatasetDerivation]:
        return self._derivations.get(name, [])

    def schema(self, name: str) -> Schema | None:
        return self._schemas.get(name)

    def owners(self, _: str) -> tuple[str, ...]:
        return ()

    def impact(self, name: str, proposed: Schema) -> Impact:
        findings = classify(compare(self._schemas[name], proposed))
        return impact_of(name, findings, self, analyse_derivation)


Checks = dict[str, tuple[SparkCheckReport, ...]]


def check_change(spark: SparkSession, datasets: SqlDatasets, proposed: str) -> Checks:
    """What Spark says if orders get another schema."""
    present, after = datasets.schema("orders"), parse_schema(proposed)
    assert present is not None
    with spark_analyzer(spark) as empty:
        check = SparkCheck(
            empty, datasets, datasets.impact("orders", after), SchemaPair(present, after)
        )
        return dict(check.reports())


def states(checks: Checks) -> dict[str, str]:
    return {name: " ".join(each.state for each in reports) for name, reports in checks.items()}


def only(checks: Checks, name: str) -> SparkCheckReport:
    (report,) = checks[name]
    return report


def without(column: str) -> str:
    return "\n".join(line for line in ORDERS.splitlines() if not line.startswith(f"{column} "))


def test_a_column_that_goes_is_missed_where_it_is_named_near_and_far(spark: SparkSession) -> None:
    datasets = SqlDatasets(
        {"orders": ORDERS},
        [
            "spark: CREATE TABLE stg AS SELECT id, note, amount FROM orders",
            "postgres: \nCREATE VIEW notes AS SELECT id, lower(note) AS note FROM orders",
            "spark: CREATE TABLE far AS SELECT max(note) AS note FROM stg",
            "spark: CREATE TABLE other AS SELECT sum(amount) AS amount FROM stg",
        ],
    )
    checks = check_change(spark, datasets, without("note"))
    assert states(checks) == {"stg": "fails", "notes": "fails", "far": "fails", "other": "ok"}
    assert only(checks, "notes") == SparkCheckReport(
        file="1.sql",
        line=2,
        dialect="postgres",
        state="fails",
        error="UNRESOLVED_COLUMN.WITH_SUGGESTION: A column, variable, or function parameter with "
        "name `note` cannot be resolved.",
        agrees=True,
    )


def test_a_new_type_goes_on_through_results_until_it_does_not_fit(spark: SparkSession) -> None:
    datasets = SqlDatasets(
        {"orders": ORDERS},
        [
            "spark: CREATE TABLE stg AS SELECT id, day, amount FROM orders",
            "spark: CREATE TABLE due AS SELECT date_add(day, amount) AS due FROM stg",
            "spark: CREATE TABLE cast AS SELECT date_add(day, CAST(amount AS INT)) AS d FROM stg",
        ],
    )
    checks = check_change(spark, datasets, ORDERS.replace("amount INT32", "amount DATE"))
    assert states(checks) == {"stg": "ok", "due": "fails", "cast": "fails"}
    checks = check_change(spark, datasets, ORDERS.replace("amount INT32", "amount DECIMAL(9,2)"))
    assert states(checks) == {"stg": "ok", "due": "fails", "cast": "ok"}
    assert only(checks, "due").error is not None
    assert "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE" in str(only(checks, "due").error)


def test_a_stored_schema_changes_only_by_what_the_statement_changes(spark: SparkSession) -> None:
    datasets = SqlDatasets(
        # The table has a column more than its statement gives it, and an INT64 for an INT32.
        {"orders": ORDERS, "stg": "amount INT64\nloaded_at TIMESTAMP(us)\nid INT64"},
        [
            "spark: CREATE TABLE stg AS SELECT id, amount FROM orders",
            "spark: CREATE TABLE late AS SELECT max(loaded_at) AS at, max(amount) AS a FROM stg",
        ],
    )
    assert states(check_change(spark, datasets, without("amount"))) == {
        "stg": "fails",
        "late": "fails",
    }
    assert states(check_change(spark, datasets, without("note"))) == {"stg": "ok", "late": "ok"}


@pytest.mark.parametrize(
    ("statement", "proposed", "state"),
    [
        ("INSERT INTO sink SELECT id, note FROM orders", without("day"), "ok"),
        ("INSERT INTO sink SELECT id, note FROM orders", without("note"), "fails"),
        ("INSERT INTO sink (text, id) SELECT note, id FROM orders",
         ORDERS.replace("note STRING", "note DATE"), "ok"),
        ("INSERT INTO sink (day) SELECT day FROM orders",
         ORDERS.replace("day DATE", "day STRING"), "fails"),
        ("INSERT INTO sink (id) SELECT id FROM orders", ORDERS.replace(" NOT NULL", ""), "fails"),
        ("UPDATE sink SET day = o.day FROM orders o WHERE o.id = sink.id",
         ORDERS.replace("day DATE", "day STRING"), "fails"),
        ("MERGE INTO sink USING orders o ON o.id = sink.id WHEN NOT MATCHED THEN "
         "INSERT (id, day) VALUES (o.id, o.day)", ORDERS.replace("day DATE", "day INT32"), "fails"),
        ("MERGE INTO small USING orders o ON o.id = small.id WHEN MATCHED THEN UPDATE SET *",
         without("day"), "fails"),
        ("MERGE INTO small USING orders o ON o.id = small.id WHEN NOT MATCHED THEN INSERT *",
         ORDERS + "\nmore STRING", "ok"),
        ("DELETE FROM sink USING orders o WHERE o.customer = sink.id", without("customer"),
         "fails"),
        ("INSERT INTO small SELECT * FROM orders", ORDERS + "\nmore STRING", "fails"),
        ("INSERT INTO small SELECT * FROM orders", without("day"), "fails"),
    ],
)  # fmt: skip
def test_tables_with_types_of_their_own_take_what_fits(
    spark: SparkSession, statement: str, proposed: str, state: str
) -> None:
    schemas = {
        "orders": ORDERS,
        "sink": "id INT64 NOT NULL\ntext STRING\nday DATE",
        "small": ORDERS,
    }
    if statement.startswith("INSERT INTO sink SELECT"):
        statement = statement.replace("note FROM", "note, CAST(NULL AS DATE) FROM")
    dialect = "databricks" if "*" in statement and "MERGE" in statement else "postgres"
    checks = check_change(spark, SqlDatasets(schemas, [f"{dialect}: {statement}"]), proposed)
    (reports,) = checks.values()
    assert [report.state for report in reports] == [state]


def test_what_spark_refuses_with_both_schemas_cannot_be_rehearsed(spark: SparkSession) -> None:
    datasets = SqlDatasets(
        {"orders": ORDERS},
        [
            "snowflake: CREATE TABLE a AS SELECT id, our_udf(note) AS note FROM orders",
            "spark: CREATE TABLE b AS SELECT id FROM a JOIN unheard_of USING (id)",
            "spark: CREATE TABLE c AS SELECT id, upper(note) AS note FROM a",
            "duckdb: CREATE TABLE d AS SELECT id, note FROM orders, read_csv('x.csv')",
        ],
    )
    datasets.declare("orders", "e")
    checks = check_change(spark, datasets, without("day"))
    # Behind a table that nobody can tell of, reasoning says which columns there are.
    assert states(checks) == {"a": "cannot", "b": "cannot", "c": "ok", "d": "cannot", "e": "cannot"}
    assert "Cannot resolve routine `our_udf`" in str(only(checks, "a").error)
    assert only(checks, "b").error == "the schema of unheard_of is unknown"
    assert only(checks, "d").error == "READ_CSV as a table is not supported"
    assert only(checks, "e").error == "no SQL is stored for the dataset"
    assert all(each.agrees for reports in checks.values() for each in reports)


def test_a_table_without_a_stored_schema_has_that_of_its_own_sql(spark: SparkSession) -> None:
    datasets = SqlDatasets(
        {"orders": ORDERS, "raw": "id INT64\nname STRING"},
        [
            "spark: CREATE TABLE customers AS SELECT id AS customer, name FROM raw",
            "spark: CREATE TABLE t AS SELECT name, amount FROM orders JOIN customers USING (customer)",
        ],
    )
    assert states(check_change(spark, datasets, without("note"))) == {"t": "ok"}
    assert states(check_change(spark, datasets, without("customer"))) == {"t": "fails"}


def test_where_spark_and_the_verdict_disagree_both_are_reported(spark: SparkSession) -> None:
    datasets = SqlDatasets(
        {"orders": ORDERS},
        [
            "spark: CREATE TABLE t AS SELECT id FROM orders WHERE id NOT IN (SELECT amount FROM orders)"
        ],
    )
    proposed = ORDERS.replace("amount INT32", "amount STRING")
    checks = only(check_change(spark, datasets, proposed), "t")
    (judged,) = datasets.impact("orders", parse_schema(proposed)).downstream
    assert judged.verdict.value == "breaking"
    assert (checks.state, checks.agrees) == ("ok", False)


def test_a_statement_is_held_against_what_is_said_of_it_and_not_of_others(
    spark: SparkSession,
) -> None:
    datasets = SqlDatasets(
        {"orders": ORDERS},
        [
            "spark: CREATE TABLE t AS\nSELECT id\nFROM orders;\n"
            "INSERT INTO t\nSELECT id FROM orders WHERE note = 'a'",
            "spark: DELETE FROM t WHERE id IN (SELECT amount FROM orders)",
        ],
    )
    checks = check_change(spark, datasets, without("note"))["t"]
    assert [(each.state, each.agrees) for each in checks] == [
        ("ok", True),
        ("fails", True),
        ("ok", True),
    ]


def test_circles_and_scripts_with_several_statements_come_to_an_end(spark: SparkSession) -> None:
    datasets = SqlDatasets(
        {"orders": ORDERS},
        [
            "tsql: SELECT id, note INTO #x FROM orders; SELECT id, note INTO a FROM #x; "
            "INSERT INTO a SELECT id, note FROM b",
            "spark: CREATE TABLE b AS SELECT id, note FROM a",
        ],
    )
    assert states(check_change(spark, datasets, without("amount"))) == {"a": "ok ok", "b": "ok"}
    found = states(check_change(spark, datasets, without("note")))
    assert found["a"].startswith("fails")


def test_a_dataset_of_unknown_columns_is_said_to_be_one(spark: SparkSession) -> None:
    datasets = SqlDatasets({"orders": ORDERS}, ["spark: CREATE TABLE t AS SELECT id FROM orders"])
    impact = datasets.impact("orders", parse_schema(without("id")))
    steps: list[str] = []

    def progress(step: str, /, **_: object) -> None:
        steps.append(step)

    checks = check_downstream_on_spark(Settings(), datasets, impact, None, None, progress)
    assert only(checks, "t").error == "the schema of orders is unknown"
    assert "checking on Spark" in steps
    assert spark.sql("SELECT 1").count() == 1, "the session that was there is still there"


class InventoryWithTables(InventoryDownstream):
    """The sample estate with the names that its SQL has for tables."""

    def derivations(self, urn: str) -> list[DatasetDerivation]:
        return [
            msgspec.structs.replace(derivation, tables=tables_of(derivation.file))
            if derivation.file
            else derivation
            for derivation in super().derivations(urn)
        ]


@cache
def tables_of(file: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    script = INVENTORY.model_by_file[file].script
    parts = [*(each.table for each in script.reads), *(each.table for each in script.writes)]
    return tuple((each, name_of(each)) for each in parts)


INVENTORY = load_sample_inventory()
DOWNSTREAM = InventoryWithTables(INVENTORY)
CASES = cases()
GOING = [case for case in CASES if case.operation in ("drop", "rename")]
# Columns that are missed by nobody: what a star gives, and a name that now means another column.
UNNAMED = {Usage.STAR, Usage.NOT_IN}
# Spark's analysis does not see that a join lets no nulls through.
STRICTER = {("fin-account-may-be-missing", "fin_mart.budget")}


def check_case(spark: SparkSession, case: Case) -> Checks:
    impact = DOWNSTREAM.impact_of_case(case)
    with spark_analyzer(spark) as empty:
        start = SchemaPair(case.present, case.proposed)
        return dict(SparkCheck(empty, DOWNSTREAM, impact, start).reports())


@pytest.mark.parametrize(
    "case", [case for case in GOING if case.dialect == "spark"], ids=lambda case: case.id
)
def test_what_misses_a_column_of_the_estate_fails_with_the_proposed_schema_alone(
    spark: SparkSession, case: Case
) -> None:
    checks = check_case(spark, case)
    for name, row in case.expected.items():
        if not INVENTORY.models_of.get(name):
            continue
        is_missed = row.verdict is Verdict.BREAKING and row.usage not in UNNAMED
        assert [each.state for each in checks[name]] == ["fails" if is_missed else "ok"], name


@pytest.mark.slow
def test_nearly_all_statements_of_the_estate_are_rehearsed_and_few_disagree(
    spark: SparkSession,
) -> None:
    """Six dialects, all changes: what is compatible works, but for what is known."""
    asked: dict[str, set[str]] = {}
    wrong = set()
    for case in CASES:
        for name, reports in check_case(spark, case).items():
            for each in reports:
                if each.file is not None:
                    asked.setdefault(each.file, set()).add(each.state)
                if each.state == "fails" and case.expected[name].verdict is Verdict.COMPATIBLE:
                    wrong.add((case.id, name))
    assert wrong == STRICTER
    assert {file for file, found in asked.items() if "cannot" in found} == {
        "snowflake/revenue_in_euro.sql"
    }
    assert len(asked) >= 64


MODELS = {
    "orders_by_day.sql": "CREATE TABLE sales.orders_by_day AS\nSELECT note, count(*) AS n\nFROM sales.orders\nGROUP BY note",
}  # fmt: skip


@pytest.mark.usefixtures("spark")
def test_reports_contain_the_spark_check_next_to_the_verdict(tmp_path: Path) -> None:
    lumos = shop_with_models(tmp_path)
    report = lumos.impact.of(urn("sales/orders"), drop=["note"], check_on_spark=True)
    (row,) = report.downstream
    assert row.verdict == "BREAKING"
    assert isinstance(row.spark_check, tuple)
    (result,) = row.spark_check
    assert (result.state, result.line, result.agrees) == ("fails", 1, True)
    assert "`note` cannot be resolved" in str(result.error)
    (row,) = lumos.impact.of(urn("sales/orders"), drop=["note"]).downstream
    assert row.spark_check is msgspec.UNSET


def overrides(folder: Path) -> dict[str, object]:
    named = {"match": "*.*", "urn": "lumos://snowflake/shop/{schema}/{table}"}
    return {"storage.path": str(folder / "lumos.db"), "sql_names": [named]}


def shop_with_models(folder: Path) -> Lumos:
    lumos = Lumos(environment={}, overrides=overrides(folder))
    add(
        lumos,
        {"sales/orders": "id INT64\nnote STRING", "sales/orders_by_day": "note STRING\nn INT64"},
    )
    (folder / "models").mkdir()
    for name, text in MODELS.items():
        (folder / "models" / name).write_text(text, encoding="utf-8")
    lumos.lineage.ingest(folder / "models", dialect="snowflake")
    return lumos


ASK = """
import json, sys
from lumos import Lumos
lumos = Lumos(environment={}, overrides=json.loads(sys.argv[1]))
report = lumos.impact.of(sys.argv[2], drop=["note"], check_on_spark=sys.argv[3] == "yes")
results = report.downstream[0].spark_check
states = [each.state for each in results] if isinstance(results, tuple) else None
print(json.dumps([states, "pyspark" in sys.modules]))
"""


@pytest.mark.parametrize(
    ("answer", "checks"), [("no", [None, False]), ("yes", [["fails"], True])], ids=["no", "yes"]
)
def test_spark_starts_only_where_a_rehearsal_is_asked_for_and_leaves_nothing(
    tmp_path: Path, answer: str, checks: object
) -> None:
    shop_with_models(tmp_path)
    settings = {**overrides(tmp_path), "spark.master": "local[2]"}
    (tmp_path / "work").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(settings), urn("sales/orders"), answer],
        cwd=tmp_path / "work", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == checks
    assert not [*(tmp_path / "work").iterdir()]
