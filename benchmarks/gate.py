"""The gate over a large repository, beside parsing what changed and loading the lineage."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import sqlglot

SCHEMAS = int(os.environ.get("LUMOS_BENCH_SCHEMAS", "5000"))
CHANGED = int(os.environ.get("LUMOS_BENCH_CHANGED", "50"))
MODELS = int(os.environ.get("LUMOS_BENCH_MODELS", "2000"))
READS = int(os.environ.get("LUMOS_BENCH_READS", "50"))
RUNS = int(os.environ.get("LUMOS_BENCH_RUNS", "3"))
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
    """A first and a second run as ratios to their floors, and the memory of the first one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _make_repository(folder)
        edges = folder.parent / f"{folder.name}.edges.json"
        edges.write_text(_edges())
        first: list[_Time] = []
        floor: list[_Time] = []
        second: list[_Time] = []
        help_and_diff: list[_Time] = []
        memory = 0
        for _ in range(RUNS):
            _forget(folder)
            first.append(_measure(_gate, folder))
            # Later children may start with as much memory as this process has after parsing.
            memory = memory or resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
            floor.append(_measure(_parse_changed_and_load, folder, edges))
            second.append(_measure(_gate, folder))
            help_and_diff.append(_measure(_help_and_diff, folder))
        edges.unlink()
    return {
        "schemas": SCHEMAS,
        "changed": CHANGED,
        "models": MODELS,
        "edges": MODELS * READS,
        "first_seconds": _median(each.wall for each in first),
        "parse_changed_and_load_seconds": _median(each.wall for each in floor),
        "times_floor": _ratio((each.wall for each in first), (each.wall for each in floor)),
        "first_processor_seconds": _median(each.processor for each in first),
        "parse_changed_and_load_processor_seconds": _median(each.processor for each in floor),
        "times_floor_processor": _ratio(
            (each.processor for each in first), (each.processor for each in floor)
        ),
        "second_seconds": _median(each.wall for each in second),
        "help_and_git_diff_seconds": _median(each.wall for each in help_and_diff),
        "times_help_and_diff": _ratio(
            (each.wall for each in second), (each.wall for each in help_and_diff)
        ),
        "megabytes": memory,
    }


class _Time(NamedTuple):
    """Elapsed seconds, and seconds of processor time of this process and its children."""

    wall: float
    processor: float


def _measure(work: Callable[..., None], *arguments: Path) -> _Time:
    before, started = os.times(), time.perf_counter()
    work(*arguments)
    wall, after = time.perf_counter() - started, os.times()
    return _Time(wall, sum(after[:4]) - sum(before[:4]))


def _median(seconds: Iterable[float]) -> float:
    return round(statistics.median(seconds), 2)


def _ratio(runs: Iterable[float], floors: Iterable[float]) -> float:
    return round(statistics.median(runs) / statistics.median(floors), 2)


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


def _gate(folder: Path) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lumos"), "gate", "--base", "HEAD~1", "--json"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 10, 11), done.stderr.decode()


def _parse_changed_and_load(folder: Path, edges: Path) -> None:
    """Parse the models that read a changed table, as sqlglot alone does it, and load the edges."""
    changed = set(range(0, SCHEMAS, SCHEMAS // CHANGED))
    read = [
        number
        for number in range(MODELS)
        if changed & {(number * 7 + each * 101) % SCHEMAS for each in range(READS)}
    ]
    for number in read:
        sqlglot.parse((folder / "models" / f"model_{number}.sql").read_text(), read="spark")
    subprocess.run([sys.executable, "-c", _LOAD, edges], check=True, capture_output=True)


def _help_and_diff(folder: Path) -> None:
    lumos = Path(sys.executable).with_name("lumos")
    subprocess.run([lumos, "--help"], cwd=folder, check=True, capture_output=True)
    _git(folder, "diff", "HEAD~1", "HEAD")


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
