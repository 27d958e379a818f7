"""The slice on every kind of Spark: local threads, a cluster, Spark Connect."""

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from files import write_parquet, write_text

PYSPARK = Path(str(__import__("importlib.resources").resources.files("pyspark")))

SCAN = """
import json, sys
from lumos import Lumos
lumos = Lumos(overrides=json.loads(sys.argv[1]))
first = lumos.ingest(sys.argv[2])
second = lumos.ingest(sys.argv[2])
profile = lumos.profiles.profile("events").profile
print(json.dumps({
    "names": [dataset.name for dataset in first.datasets],
    "types": [[field.type for field in dataset.schema.fields] for dataset in first.datasets],
    "problems": [problem.code for problem in first.problems],
    "read": [first.summary.files_read, second.summary.files_read],
    "unchanged": second.summary.datasets_unchanged,
    "profiled": [profile.rows, profile.columns["id"].nulls, profile.columns["dt"].distinct],
}))
"""
EXPECTED = {
    "names": ["events", "users"],
    "types": [["INT64", "STRUCT<x: FLOAT64>", "DATE"], ["INT64", "STRING"]],
    "problems": ["not_parquet"],
    "read": [4, 0],
    "unchanged": 2,
    "profiled": [4, 4, 2],
}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    point = pa.struct([("x", pa.float64())])
    for day in ("2024-01-01", "2024-01-02"):
        write_parquet(tmp_path / f"lake/events/dt={day}/part-0.parquet", id=pa.int64(), at=point)
    write_text(tmp_path / "lake/users.csv", ["id,name", "1,Ann"])
    write_text(tmp_path / "lake/broken.parquet", ["nothing"])
    return tmp_path / "lake"


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """A Python that has what executors need, but not Lumos."""
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    libraries = next((tmp_path / "bare/lib").iterdir()) / "site-packages"
    # A plain path brings the packages without the link that an editable install leaves there.
    installed = Path(pa.__file__).parents[1]
    (libraries / "installed.pth").write_text(f"{installed}\n")
    python = str(tmp_path / "bare/bin/python")
    for module, code in (("pyarrow", 0), ("lumos", 1)):
        done = subprocess.run(
            [python, "-c", f"import {module}"], cwd=tmp_path, capture_output=True, check=False
        )
        assert done.returncode == code, done.stderr
    return python


def scan(lake: Path, folder: Path, master: str, **environment: str) -> object:
    settings = {
        "spark.master": master,
        "spark.config": {"spark.sql.shuffle.partitions": "2"},
        "storage.path": str(folder / "store" / "lumos.db"),
    }
    done = subprocess.run(
        [sys.executable, "-c", SCAN, json.dumps(settings), str(lake)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_the_slice_runs_on_local_threads(lake: Path, tmp_path: Path) -> None:
    assert scan(lake, tmp_path, "local[2]") == EXPECTED


@pytest.mark.slow
def test_the_slice_runs_on_a_cluster_whose_executors_lack_the_package(
    lake: Path, tmp_path: Path, bare_python: str
) -> None:
    found = scan(
        lake,
        tmp_path,
        "local-cluster[2,1,1024]",
        PYSPARK_PYTHON=bare_python,
        SPARK_HOME=str(PYSPARK),
        SPARK_WORKER_DIR=str(tmp_path / "work"),
    )
    assert found == EXPECTED


@contextmanager
def serving_connect(folder: Path, python: str, **settings: str) -> Iterator[str]:
    """A Spark Connect server of its own, whose executors run on some Python."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        **settings,
    }
    command = [
        PYSPARK / "bin/spark-submit",
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--master", "local[2]",
        *(word for name, value in config.items() for word in ("--conf", f"{name}={value}")),
        "spark-internal",
    ]  # fmt: skip
    environment = {**os.environ, "PYSPARK_PYTHON": python, "SPARK_HOME": str(PYSPARK)}
    with (folder / "connect.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(timeout=60)


@pytest.fixture
def connect_server(tmp_path: Path, bare_python: str) -> Iterator[str]:
    """A Spark Connect server of its own, whose executors lack the package too."""
    with serving_connect(tmp_path, bare_python) as address:
        yield address


@pytest.mark.slow
def test_the_slice_runs_through_spark_connect(
    lake: Path, tmp_path: Path, connect_server: str
) -> None:
    assert scan(lake, tmp_path, connect_server) == EXPECTED
