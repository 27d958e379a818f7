"""The gate over a large repository, beside parsing what changed and loading the lineage."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import sqlglot

SCHEMAS = 5_000
CHANGED = 50
MODELS = 2_000
READS = 50
RUNS = 3
COLUMNS = 20

_LOAD = """
import json, sys
edges = json.load(open(sys.argv[1]))
by_upstream = {}
for upstream, downstream in edges:
    by_upstream.setdefault(upstream, []).append(downstream)
print(len(by_upstream))
"""


def measure() -> dict[str, Any]:
    """A first and a second run as ratios to their floors, and the memory of the larger one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make_repository(folder)
        edges = folder.parent / f"{folder.name}.edges.json"
        edges.write_text(_edges())
        first: list[float] = []
        floor: list[float] = []
        second: list[float] = []
        help_and_diff: list[float] = []
        memory = 0
        for _ in range(RUNS):
            _forget(folder)
            seconds, used = _gate(folder)
            first.append(seconds)
            memory = max(memory, used)
            floor.append(_parse_changed(folder) + _load(edges))
            seconds, used = _gate(folder)
            second.append(seconds)
            memory = max(memory, used)
            help_and_diff.append(_help(folder) + _diff(folder))
        edges.unlink()
    return {
        "schemas": SCHEMAS,
        "changed": CHANGED,
        "models": MODELS,
        "edges": MODELS * READS,
        "first_seconds": round(statistics.median(first), 2),
        "parse_changed_and_load_seconds": round(statistics.median(floor), 2),
        "times_floor": round(statistics.median(first) / statistics.median(floor), 2),
        "second_seconds": round(statistics.median(second), 2),
        "help_and_git_diff_seconds": round(statistics.median(help_and_diff), 2),
        "times_help_and_diff": round(
            statistics.median(second) / statistics.median(help_and_diff), 2
        ),
        "megabytes": memory,
    }


def _make_repository(folder: Path) -> None:
    """Schemas, models that each read some of them, and a commit that changes some columns."""
    _git(folder, "init", "-q", "-b", "main")
    schemas = folder / "schemas" / "s3" / "lake"
    schemas.mkdir(parents=True)
    for number in range(SCHEMAS):
        (schemas / f"table_{number}.schema").write_text(_schema(number, changed=False))
    models = folder / "models"
    models.mkdir()
    for number in range(MODELS):
        (models / f"model_{number}.sql").write_text(_model(number))
    _commit(folder, "base")
    for number in range(0, SCHEMAS, SCHEMAS // CHANGED):
        (schemas / f"table_{number}.schema").write_text(_schema(number, changed=True))
    _commit(folder, "change")


def _schema(number: int, *, changed: bool) -> str:
    types = ["INT64", "STRING", "FLOAT64", "DATE"]
    lines = [f"column_{each} {types[each % 4]}" for each in range(COLUMNS)]
    if changed:
        lines[number % COLUMNS] = f"column_{number % COLUMNS} BOOLEAN"
    return "\n".join(lines) + "\n"


def _model(number: int) -> str:
    tables = [(number * 7 + each * 101) % SCHEMAS for each in range(READS)]
    joins = "\n".join(
        f"join lake.table_{table} t{at} on t{at}.column_0 = t0.column_0"
        for at, table in enumerate(tables[1:], start=1)
    )
    columns = ", ".join(f"t{at}.column_{at % COLUMNS} as c{at}" for at in range(READS))
    return (
        f"create table marts.model_{number} as\nselect {columns}\n"
        f"from lake.table_{tables[0]} t0\n{joins}\n"
    )


def _edges() -> str:
    pairs = (
        f'["table_{(number * 7 + each * 101) % SCHEMAS}", "model_{number}"]'
        for number in range(MODELS)
        for each in range(READS)
    )
    return f"[{', '.join(pairs)}]"


def _gate(folder: Path) -> tuple[float, int]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    started = time.perf_counter()
    done = subprocess.run(
        [Path(sys.executable).with_name("lumos"), "gate", "--base", "HEAD~1", "--json"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    seconds = time.perf_counter() - started
    assert done.returncode in (0, 10, 11), done.stderr.decode()
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return seconds, max(before, used) // 1024


def _parse_changed(folder: Path) -> float:
    """Parse the models that read a changed table, as sqlglot alone does it."""
    changed = set(range(0, SCHEMAS, SCHEMAS // CHANGED))
    read = [
        number
        for number in range(MODELS)
        if changed & {(number * 7 + each * 101) % SCHEMAS for each in range(READS)}
    ]
    started = time.perf_counter()
    for number in read:
        sqlglot.parse((folder / "models" / f"model_{number}.sql").read_text(), read="spark")
    return time.perf_counter() - started


def _load(edges: Path) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", _LOAD, edges], check=True, capture_output=True)
    return time.perf_counter() - started


def _help(folder: Path) -> float:
    started = time.perf_counter()
    lumos = Path(sys.executable).with_name("lumos")
    subprocess.run([lumos, "--help"], cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - started


def _diff(folder: Path) -> float:
    started = time.perf_counter()
    _git(folder, "diff", "HEAD~1", "HEAD")
    return time.perf_counter() - started


def _forget(folder: Path) -> None:
    """Remove what earlier runs cached."""
    for root, _, files in os.walk(folder / ".git" / "lumos", topdown=False):
        for name in files:
            (Path(root) / name).unlink()


def _commit(folder: Path, message: str) -> None:
    _git(folder, "add", "-A")
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.com"]
    _git(folder, *who, "commit", "-q", "-m", message)


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
