"""Discovery against DataHub on the same lake, by turns, from process start to exit.

DataHub opens one file of each dataset and Lumos opens all. Every run has a store of its own and
is checked for having found what the lake holds. The page cache is warm for both.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks import lakes, peer
from benchmarks.lakes import Lake
from benchmarks.start import FIRST_RESULT, SESSION
from lumos.discovery.lake.class_archive import build
from lumos.spark import jvm
from lumos.store import Database, DatasetFilter, Store

Run: TypeAlias = Callable[[], float]
_LUMOS = str(Path(sys.executable).with_name("lumos"))
_STORE = ".lumos/lumos.db"
_CHANGED = 40


class NotFound(Exception):
    """Lumos did not find what the lake holds, so its time means nothing."""


def measure_10k() -> dict[str, Any]:
    """200 datasets of 50 Parquet files."""
    lake = lakes.parquet(200, 50)
    return _against_peer(lake, {"lumos ingest": lambda: _cold(lake)}, rounds=3)


def measure_40k() -> dict[str, Any]:
    """800 datasets of 50 Parquet files, with distinct and with nearly identical columns."""
    return {
        "distinct columns": _measure_40k(lakes.parquet(800, 50)),
        "nearly identical columns": _measure_40k(lakes.parquet(800, 50, similar=True)),
    }


def _measure_40k(lake: Lake) -> dict[str, Any]:
    """Cold, with column statistics, from a started session."""
    runs: dict[str, Run] = {
        "lumos ingest": lambda: _cold(lake),
        "lumos ingest, session already started": lambda: _warm(lake),
    }
    missing = {}
    if _offers("--column-stats"):
        runs["lumos ingest --column-stats"] = lambda: _cold(lake, "--column-stats")
    else:
        missing["lumos ingest --column-stats"] = "not measured: there is no such option yet"
    return {**_against_peer(lake, runs, rounds=3), **missing}


def measure_csv() -> dict[str, Any]:
    """200 datasets of 50 CSV files."""
    lake = lakes.csv(200, 50)
    return _against_peer(lake, {"lumos ingest": lambda: _cold(lake)}, rounds=3)


def measure_json() -> dict[str, Any]:
    """200 datasets of 50 JSON Lines files."""
    lake = lakes.json_lines(200, 50)
    return _against_peer(lake, {"lumos ingest": lambda: _cold(lake)}, rounds=3)


def measure_rescan() -> dict[str, Any]:
    """The lake of 40,000 with 40 files changed, against a session's start and a bare listing."""
    lake = lakes.parquet(800, 50)
    _prepare(lake)
    with lakes.copied(lake) as root, tempfile.TemporaryDirectory() as folder:
        _ingest(folder, root)
        turns, rows = itertools.count(1), lake.rows

        def rescan() -> float:
            nonlocal rows
            rows += lakes.replace_files(lake, root, count=_CHANGED, turn=next(turns))
            taken = _ingest(folder, root)
            _check(lake, Path(folder) / _STORE, rows=rows)
            return taken

        taken = _by_turns(
            {
                "session_and_listing": lambda: _python(SESSION + _LISTING, root),
                "session_with_first_result_and_listing": lambda: _python(
                    SESSION + FIRST_RESULT + _LISTING, root
                ),
                "lumos ingest": rescan,
            },
            rounds=3,
        )
    return {
        "files": lake.files,
        "files_changed": _CHANGED,
        **_figures(taken, against="session_and_listing"),
    }


def _against_peer(lake: Lake, runs: Mapping[str, Run], *, rounds: int) -> dict[str, Any]:
    name = peer.install()
    _prepare(lake)
    taken = _by_turns({"datahub": lambda: peer.seconds(lake), **runs}, rounds=rounds)
    facts = {"peer": name, "files": lake.files, "datasets": lake.datasets}
    return {**facts, **_figures(taken, against="datahub")}


def _prepare(lake: Lake) -> None:
    """Nobody pays for what only the first run on a machine has to do."""
    build(jvm.java_command(), jvm.spark_home())
    lakes.warm_up(lake)


def _by_turns(runs: Mapping[str, Run], *, rounds: int) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            taken[name].append(run())
            sys.stderr.write(f"  {name}: {taken[name][-1]:.2f} s\n")
    return taken


def _figures(taken: Mapping[str, list[float]], *, against: str) -> dict[str, Any]:
    floor = statistics.median(taken[against])
    return {
        name: {
            "seconds": round(statistics.median(times), 2),
            f"times_{against}": round(statistics.median(times) / floor, 2),
            "runs": [round(each, 2) for each in times],
        }
        for name, times in taken.items()
    }


def _cold(lake: Lake, *options: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        taken = _ingest(folder, lake.root, *options)
        _check(lake, Path(folder) / _STORE, rows=lake.rows)
    return taken


def _ingest(folder: str, root: Path, *options: str) -> float:
    started = time.perf_counter()
    done = subprocess.run(
        [_LUMOS, "ingest", str(root), *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    taken = time.perf_counter() - started
    if done.returncode != 0:
        raise NotFound(done.stderr[-3000:])
    return taken


def _warm(lake: Lake) -> float:
    """The scan alone, in a process that scanned a small lake before."""
    small = lakes.parquet(2, 4)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", _TWO_SCANS, str(small.root), str(lake.root)],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        _check(lake, Path(folder) / "second.db", rows=lake.rows)
    return float(done.stdout)


_TWO_SCANS = """
import sys, time
from lumos.sdk import Lumos
for store, root in zip(("first.db", "second.db"), sys.argv[1:], strict=True):
    started = time.perf_counter()
    Lumos(overrides={"storage.path": store}).ingest(root)
print(time.perf_counter() - started)
"""


def _python(script: str, root: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", script, str(root)], cwd=folder, capture_output=True, check=True
        )
        return time.perf_counter() - started


_LISTING = """
import os, sys
folders, bytes = [sys.argv[1]], 0
while folders:
    with os.scandir(folders.pop()) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                bytes += entry.stat().st_size
"""


def _offers(option: str) -> bool:
    done = subprocess.run(
        [_LUMOS, "ingest", "--help"],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=True,
    )
    return option in done.stdout


def _check(lake: Lake, store: Path, *, rows: int) -> None:
    found = _found(store)
    there = {"datasets": lake.datasets, "files": lake.files}
    if lake.format == "parquet":
        there["rows"] = rows
    if {name: found[name] for name in there} != there:
        raise NotFound(f"{json.dumps(found)} found, {json.dumps(there)} are there.")


def _found(store: Path) -> dict[str, int]:
    opened = Store.open(Database.sqlite(store))
    facts = [opened.get(known.urn).statistics for known in opened.list(DatasetFilter())]
    opened.close()
    return {
        "datasets": len(facts),
        "files": sum(fact.file_count for fact in facts if fact),
        "rows": sum(fact.row_count or 0 for fact in facts if fact),
    }
