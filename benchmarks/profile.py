"""Profiles of Parquet beside the same aggregates written by hand in Spark.

Two datasets: 4,000,000 rows of 6 columns, 1,000,000 rows of 100. Every way has its own process,
with Spark set up as Lumos does it for long work, and runs twice: in the cold run Java compiles and
Python's workers start, the warm one has both. Seconds of processors are those of the process, of
its JVM and of Python's workers; unlike seconds on the clock they hardly depend on what else is
going on.
`hand` has all that a profile has, `plain` has no frequent values.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.consumption import processor_seconds

_KLL_SIZE = 1000
_RANKS = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def measure() -> dict[str, Any]:
    """What each way takes, and how many times as long a profile takes as each way by hand."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for dataset, write in (("4m_6", write_narrow), ("1m_100", write_wide)):
            write(folder / dataset / "lake/orders")
            _run("scan", folder / dataset)
            ways = {way: _run(way, folder / dataset) for way in ("profile", "plain", "hand")}
            started = time.perf_counter()
            _run("command", folder / dataset)
            profile = ways["profile"]
            results[dataset] = {
                **ways,
                "command_s": round(time.perf_counter() - started, 2),
                **{
                    f"{kind}_of_{way}": round(profile[kind] / ways[way][kind], 2)
                    for way in ("plain", "hand")
                    for kind in ("cold_s", "warm_s", "warm_cpu_s")
                },
            }
    return results


def write_narrow(folder: Path, *, files: int = 8, rows: int = 500_000) -> None:
    """Orders: a key, an amount, a category, a name, a moment, and a number with gaps."""
    folder.mkdir(parents=True)
    for number in range(files):
        some = np.random.default_rng(number)
        names = np.char.add("u", some.integers(0, 300_000, rows).astype(str))
        table = pa.table(
            {
                "id": np.arange(number * rows, (number + 1) * rows),
                "amount": some.normal(100, 20, rows),
                "category": pa.array(some.integers(0, 50, rows)).cast(pa.string()),
                "name": pa.array(names.tolist()),
                "at": pa.array(some.integers(1_600_000_000_000_000, 1_700_000_000_000_000, rows),
                               pa.timestamp("us")),
                "n": pa.array(some.integers(0, 1000, rows), mask=some.random(rows) < 0.1),
            }
        )  # fmt: skip
        pq.write_table(table, folder / f"part-{number:05}.parquet")


def write_wide(folder: Path, *, files: int = 4, rows: int = 250_000) -> None:
    """A hundred columns: fifty of doubles, thirty of integers, twenty of texts."""
    folder.mkdir(parents=True)
    for number in range(files):
        some = np.random.default_rng(number)
        columns: dict[str, Any] = {f"d{n}": some.normal(n, 5, rows) for n in range(50)}
        columns |= {f"i{n}": some.integers(0, 10 ** (1 + n % 7), rows) for n in range(30)}
        columns |= {
            f"s{n}": pa.array(some.integers(0, 1000, rows)).cast(pa.string()) for n in range(20)
        }
        pq.write_table(pa.table(columns), folder / f"part-{number:05}.parquet")


def _run(way: str, folder: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.profile", way, str(folder)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    told: dict[str, float] = json.loads((done.stdout.splitlines() or ["{}"])[-1])
    return told


def _timed(action: Callable[[], object]) -> None:
    """Runs something cold, then warm, and writes down what that took."""
    seconds, processors = [time.perf_counter()], [processor_seconds()]
    for _ in range(2):
        action()
        seconds.append(time.perf_counter())
        processors.append(processor_seconds())
    told = {
        "cold_s": seconds[1] - seconds[0],
        "warm_s": seconds[2] - seconds[1],
        "cold_cpu_s": processors[1] - processors[0],
        "warm_cpu_s": processors[2] - processors[1],
    }
    rounded = {name: round(value, 2) for name, value in told.items()}
    sys.stdout.write(f"{json.dumps(rounded)}\n")


def _hand(folder: Path, *, frequent: bool = True) -> None:
    """The aggregates as somebody would write them who knows Spark's sketches."""
    from pyspark.sql import functions as F

    from lumos.spark.session import spark_session

    with spark_session(master="local[2]", settings={}, short=False) as spark:
        frame = spark.read.parquet(str(folder / "lake/orders"))
        ranks = F.array(*map(F.lit, _RANKS))
        measures = [F.count(F.lit(1))]
        for name, type in frame.dtypes:
            column = F.col(name)
            if type.startswith("timestamp"):
                column = F.unix_micros(column.cast("timestamp"))
            hashed = F.xxhash64(column) if type == "double" else column
            distinct = F.hll_sketch_estimate(F.hll_sketch_agg(hashed))
            measures += [F.count(column), distinct]
            if type == "string":
                length = F.length(column)
                measures += [F.min(length), F.max(length), F.avg(length)]
                continue
            measures += [F.min(column), F.max(column), F.avg(column), F.stddev(column)]
            if type == "double":
                sketch = F.kll_sketch_agg_double(column, F.lit(_KLL_SIZE))
                measures.append(F.kll_sketch_get_quantile_double(sketch, ranks))
            else:
                sketch = F.kll_sketch_agg_bigint(column, F.lit(_KLL_SIZE))
                measures.append(F.kll_sketch_get_quantile_bigint(sketch, ranks))
            told = f"unix_micros(cast({name} as timestamp))" if "time" in type else name
            if frequent:
                measures.append(F.expr(f"approx_top_k({told}, 10)"))
        _timed(lambda: frame.agg(*measures).collect())


def _scan(folder: Path) -> None:
    from lumos import Lumos

    Lumos(overrides=_settings(folder)).ingest(folder / "lake")


def _profile(folder: Path) -> None:
    from lumos import Lumos
    from lumos.spark.session import spark_session

    lumos = Lumos(overrides=_settings(folder))
    with spark_session(master="local[2]", settings={}, short=False):
        _timed(lambda: lumos.profiles.profile("orders", full=True))


def _command(folder: Path) -> None:
    from lumos import Lumos

    Lumos(overrides=_settings(folder)).profiles.profile("orders", full=True)


def _settings(folder: Path) -> dict[str, Any]:
    return {"storage.path": str(folder / "lumos.db"), "spark.master": "local[2]"}


if __name__ == "__main__":
    WAYS: dict[str, Callable[[Path], None]] = {
        "hand": _hand,
        "plain": partial(_hand, frequent=False),
        "scan": _scan,
        "profile": _profile,
        "command": _command,
    }
    WAYS[sys.argv[1]](Path(sys.argv[2]))
