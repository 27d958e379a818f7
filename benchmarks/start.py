"""How long commands and Spark take from process start, against the floor and against stock."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lumos.discovery.lake.class_archive import build
from lumos.spark import jvm
from lumos.store import Database, Store

TIMES = 7
SPARK_TIMES = 5


def measure() -> dict[str, Any]:
    """Median seconds of commands that need no Spark, and their ratio to starting Python."""
    lumos = str(Path(sys.executable).with_name("lumos"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "lumos --help": [lumos, "--help"],
        "lumos config check": [lumos, "config", "check"],
        "lumos list": [lumos, "list"],
    }
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        Store.open(Database.sqlite(Path(folder) / ".lumos/lumos.db"), create=True).close()
        for name, command in commands.items():
            figures[name] = {"seconds": round(_median(command, folder), 3)}
    floor = figures["python -c pass"]["seconds"]
    for figure in figures.values():
        figure["times_the_floor"] = round(figure["seconds"] / floor, 1)
    return figures


def measure_spark() -> dict[str, Any]:
    """Seconds from `python` to the first Arrow result, stock PySpark and Lumos by turns."""
    build(jvm.java_command(), jvm.spark_home())
    taken: dict[str, list[float]] = {"stock": [], "lumos": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(SPARK_TIMES):
            for name, session in (("stock", _STOCK), ("lumos", SESSION)):
                started = time.perf_counter()
                subprocess.run(
                    [sys.executable, "-c", session + FIRST_RESULT + _LEAVE],
                    cwd=folder,
                    env={**os.environ, "PYSPARK_PYTHON": sys.executable},
                    capture_output=True,
                    check=True,
                )
                taken[name].append(time.perf_counter() - started)
    stock, ours = (statistics.median(taken[name]) for name in ("stock", "lumos"))
    return {
        "stock_seconds": round(stock, 2),
        "lumos_seconds": round(ours, 2),
        "share_of_stock": round(ours / stock, 2),
        "runs": {name: [round(each, 2) for each in times] for name, times in taken.items()},
    }


_STOCK = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[*]").getOrCreate()
"""
SESSION = """
from lumos.spark.session import spark_session
held = spark_session(master="local[*]", settings={})
spark = held.__enter__()
"""
FIRST_RESULT = """
def same(batches):
    yield from batches
assert spark.range(1000).mapInArrow(same, "id long").toArrow().num_rows == 1000
"""
# The process leaves at the first result, as a user sees it; both JVMs then end by themselves.
_LEAVE = """
import os
os._exit(0)
"""


def _median(command: list[str], folder: str) -> float:
    taken = []
    for _ in range(TIMES):
        started = time.perf_counter()
        subprocess.run(command, cwd=folder, capture_output=True, check=True)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)
