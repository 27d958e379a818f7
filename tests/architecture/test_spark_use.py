"""Spark is used through DataFrames alone, so that Connect and clusters work alike."""

import ast
import subprocess
from pathlib import Path

import pytest

from lumos.spark.jvm import MODULE_OPTIONS, java_command, spark_home

PACKAGE = Path(__file__).parents[2] / "src/lumos"
FORBIDDEN = {"sparkContext", "_jvm", "_jsparkSession", "_sc", "rdd", "toPandas", "mapPartitions"}


def forbidden_names(code: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names.update(alias.name for alias in node.names)
    return names & {*FORBIDDEN, "SparkContext", "RDD"}


def test_the_package_uses_neither_rdds_nor_the_jvm() -> None:
    used = {
        str(file): found
        for file in PACKAGE.rglob("*.py")
        if (found := forbidden_names(file.read_text(encoding="utf-8")))
    }
    assert used == {}


@pytest.mark.parametrize(
    "code",
    ["spark.sparkContext.x()", "frame.rdd", "from pyspark import SparkContext", "spark._jvm.java"],
)
def test_a_planted_use_is_found(code: str) -> None:
    assert forbidden_names(code)


def test_java_is_started_with_the_options_that_sparks_own_launcher_gives(tmp_path: Path) -> None:
    launcher = [
        java_command(), "-cp", f"{spark_home()}/jars/*", "org.apache.spark.launcher.Main",
        "org.apache.spark.deploy.SparkSubmit", "pyspark-shell-main",
    ]  # fmt: skip
    environment = {"SPARK_HOME": str(spark_home()), "PATH": "/usr/bin:/bin"}
    result = subprocess.run(
        launcher, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    given = [word for word in result.stdout.split("\0") if word.startswith(("--", "-D", "-XX"))]
    # The vector module serves machine learning alone and makes Java print a warning.
    wanted = [word for word in given if "incubator" not in word and word != "--enable-preview"]
    assert set(wanted) - set(MODULE_OPTIONS) == set()
