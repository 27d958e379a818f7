"""Query logs on Spark: the same answers as in one process."""

import json
import os
import random
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from lumos import Lumos
from lumos.store.usage import Reads
from lumos.usage import ingest as ingesting
from lumos.usage import job as query_log
from lumos.usage.job import NewStatementsOnSpark
from lumos.usage.query_log.files import LogFile, recognise_log
from lumos.usage.statements import _ChunkReader
from spark.test_modes import PYSPARK, bare_python  # noqa: F401 - a fixture
from usage.shop_logs import NOW, row, shop, write_log

STATEMENTS = [
    "SELECT o.amount, c.name FROM orders o JOIN customers c ON o.customer_id = c.id WHERE o.id = {}",
    "SELECT note FROM orders WHERE id IN ({}, 2)",
    "SELECT * FROM refunds LIMIT {}",
    "INSERT INTO refunds (id, reason) SELECT id, note FROM orders WHERE amount > {}",
    "SELECT count(*) FROM nowhere.unknown WHERE x = {}",
    "SELEC {}",
]


def logs(folder: Path) -> list[LogFile]:
    """Two overlapping exports, one as JSON Lines, and sums of a day, of which the larger counts."""
    dice = random.Random(7)
    rows = [
        row(
            number,
            dice.choice(STATEMENTS).format(number),
            user=dice.choice(["ANN", "BOB", "Łucja"]),
            days_ago=dice.randrange(5),
            EXECUTION_STATUS=dice.choice(["SUCCESS", "SUCCESS", "FAIL"]),
            BYTES_SCANNED=dice.choice([None, 10**12, 5]),
        )
        for number in range(900)
    ]
    write_log(folder / "a.csv", rows[:400])
    write_log(folder / "b.csv", rows[300:600])
    (folder / "c.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows[500:]))
    for name, reads in (("d.csv", 5), ("e.csv", 9)):
        text = f"dataset,user,time,reads\norders,ANN,{NOW:%Y-%m-%d},{reads}\n"
        (folder / name).write_text(text)
    names = ("a.csv", "b.csv", "c.jsonl", "d.csv", "e.csv")
    found = [recognise_log(folder / name) for name in names]
    return [log for log in found if log is not None]


def everything(lumos: Lumos) -> tuple[list[Reads], list[Any]]:
    store = lumos._store.open()
    edges = [
        (edge.upstream, edge.downstream, edge.columns, edge.uses, edge.at)
        for edge in store.lineage.all()
    ]
    return list(store.usage.since(None)), edges


@pytest.mark.slow
def test_spark_counts_as_one_process_does(spark: SparkSession, tmp_path: Path) -> None:  # noqa: ARG001
    given = logs(tmp_path)
    reported = []
    for name, size in (("here", 2**60), ("there", 0)):
        (tmp_path / name).mkdir()
        lumos = shop(tmp_path / name)
        first = lumos.usage.ingest_logs(given[:2], name="all", spark_from_bytes=size)
        second = lumos.usage.ingest_logs(given, name="all", spark_from_bytes=size)
        third = lumos.usage.ingest_logs(given, name="all", spark_from_bytes=size)
        assert third.logs[0].counted == 0
        assert first.logs[0].counted > 0
        assert second.logs[0].counted > 0
        reported.append((everything(lumos), first, second, third))
    assert reported[0][0][0], "something was read"
    assert reported[0][0][1], "something was written"
    assert [each.reads for each in reported[0][0][0] if each.sum_key] == [9]
    for here, there in zip(*reported, strict=True):
        assert here == there


@pytest.mark.slow
def test_keys_of_statements_come_home_and_go_out_in_parts(
    spark: SparkSession,  # noqa: ARG001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collected: list[int] = []
    all_keys = NewStatementsOnSpark.keys

    def keys(self: NewStatementsOnSpark, first: int, last: int) -> dict[int, "array[int]"]:
        found = all_keys(self, first, last)
        collected.append(sum(map(len, found.values())))
        return found

    monkeypatch.setattr(NewStatementsOnSpark, "keys", keys)
    monkeypatch.setattr(ingesting, "_MAX_STATEMENTS_IN_MEMORY", 100)
    monkeypatch.setattr(query_log, "_KEYS_PER_FILE", 50)
    given = logs(tmp_path)[:1]
    lumos = shop(tmp_path)
    first = lumos.usage.ingest_logs(given, spark_from_bytes=0)
    assert first.logs[0].counted == sum(collected) > 200
    assert len(collected) > 2
    assert max(collected) <= 100
    again = lumos.usage.ingest_logs(given, spark_from_bytes=0)
    assert (again.logs[0].counted, again.logs[0].counted_before) == (0, first.logs[0].counted)
    assert not list(Path(lumos.state_uri, "usage").iterdir())


def test_pieces_of_a_log_do_not_travel_inside_the_code(tmp_path: Path) -> None:
    (log, *_) = logs(tmp_path)
    code = cloudpickle.dumps(_ChunkReader({"dialect": None, "rename_reader": None, "until": 0}))
    assert log.path.encode() not in code
    assert len(code) < 1000


INGEST = """
import json, sys
from lumos import Lumos
from lumos.usage.query_log.files import recognise_log
lumos = Lumos(overrides=json.loads(sys.argv[1]))
report = lumos.usage.ingest_logs([recognise_log(sys.argv[2])], spark_from_bytes=0)
print(json.dumps([report.logs[0].counted, report.logs[0].understood, report.datasets]))
"""


@pytest.mark.slow
def test_the_parser_reaches_executors_that_lack_it(
    tmp_path: Path,
    bare_python: str,  # noqa: F811
) -> None:
    given = logs(tmp_path)[0]
    shop(tmp_path)
    # The modules of the parser cannot be imported there, but those that are shipped can.
    libraries = next((tmp_path / "bare/lib").iterdir()) / "site-packages"
    (libraries / "sitecustomize.py").write_text(HIDING)
    settings = {
        "spark.master": "local-cluster[2,1,1024]",
        "spark.config": {"spark.sql.shuffle.partitions": "2"},
        "storage.path": str(tmp_path / "lumos.db"),
    }
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": bare_python,
        "SPARK_HOME": str(PYSPARK),
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
    }
    done = subprocess.run(
        [sys.executable, "-c", INGEST, json.dumps(settings), given.path],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    counted, understood, datasets = json.loads(done.stdout)
    assert counted > 100
    assert (understood, datasets) == (5, 3)


HIDING = """
import sys
from importlib.machinery import PathFinder

class Hiding:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "sqlglot":
            return None
        shipped = [each for each in sys.path if each.endswith("sqlglot_package.zip")]
        if not shipped:
            raise ModuleNotFoundError(name)
        return PathFinder.find_spec(name, shipped)

sys.meta_path.insert(0, Hiding)
"""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several pieces even of small logs."""
    from lumos.usage.query_log import files

    monkeypatch.setattr(files.chunks, "__defaults__", (10_000,))
