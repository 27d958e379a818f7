"""A real Spark application, told of by OpenLineage's own listener."""

import subprocess
import sys
from pathlib import Path

import pytest

from lumos import Lumos
from lumos.model.lineage import Derivation, UseKind
from lumos.store import Store

LISTENER = "io.openlineage:openlineage-spark_2.13:1.53.0"
# What Spark says where it cannot have the listener.
NOT_FETCHED = ("unresolved dependency", "Server access Error", "UnknownHostException")

APPLICATION = """
import sys
from pyspark.sql import SparkSession, functions as F

listener, kept, lake = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]").appName("nightly totals")
    .config("spark.jars.packages", listener)
    .config("spark.jars.ivy", kept)
    .config("spark.extraListeners", "io.openlineage.spark.agent.OpenLineageSparkListener")
    .config("spark.openlineage.transport.type", "file")
    .config("spark.openlineage.transport.location", f"{lake}/../events.ndjson")
    .config("spark.openlineage.namespace", "nightly")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()
)
rows = [(1, "de", 10.0), (2, "fr", 5.0)]
spark.createDataFrame(rows, ["userId", "country", "amount"]).write.parquet(f"{lake}/orders")
orders = spark.read.parquet(f"{lake}/orders")
(
    orders.where(F.col("country") == "de")
    .groupBy("userId").agg(F.sum("amount").alias("total"))
    .write.parquet(f"{lake}/totals")
)
spark.stop()
"""


def run_application(folder: Path) -> None:
    """Runs it with the listener, which is kept under build for the next time."""
    program = folder / "application.py"
    program.write_text(APPLICATION)
    kept = Path(__file__).parents[3] / "build" / "ivy"
    command = [sys.executable, program, LISTENER, kept, folder / "lake"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=900)
    output = done.stdout + done.stderr
    if done.returncode and any(sign in output for sign in NOT_FETCHED):
        pytest.skip(f"{LISTENER} cannot be fetched here")
    assert done.returncode == 0, output[-2000:]


@pytest.mark.slow
def test_a_spark_application_is_recorded_with_its_columns(workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    lake = workplace / "lake"
    lake.mkdir()
    run_application(workplace)
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    lumos.ingest(lake)
    report = lumos.lineage.ingest("events.ndjson")
    store = Store.open(lumos.database)
    orders, totals = (f"lumos://file{lake}/{name}" for name in ("orders", "totals"))
    (edge,) = store.lineage.edges_of(totals, "upstream")
    assert edge.upstream == orders
    assert {(each.upstream, each.downstream, each.derivation) for each in edge.columns} == {
        ("userId", "userId", Derivation.IDENTITY),
        ("amount", "total", Derivation.AGGREGATION),
    }
    assert {(each.upstream, each.usage) for each in edge.uses} == {
        ("country", UseKind.FILTER), ("userId", UseKind.GROUP_BY),
    }  # fmt: skip
    job = store.lineage.job(edge.job)
    assert (job.platform, job.inputs, job.outputs) == ("spark", (orders,), (totals,))
    assert [run.state for run in job.runs] == ["COMPLETE"]
    assert job.properties["parent"] == "nightly/nightly_totals"
    assert {each.way for each in report.tables} == {"place"}
    assert report.coverage.share == 1.0
    assert "country" in store.get(orders).usage.columns
    assert lumos.lineage.ingest("events.ndjson").edges.unchanged == 1
