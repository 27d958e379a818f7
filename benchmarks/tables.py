"""How quickly tables with long histories are read, against the libraries of their formats.

Each reading is a process of its own, so that memory figures do not mix; the readers take turns.
Lumos reads a table for the first time, again when nothing changed, and after one more commit. A
library has no memory of an earlier process, and begins anew each time.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import tables_made as made

RUNS = 3


class Case(NamedTuple):
    """A table: how it is written, how it gets one more commit, and where it lies then."""

    kind: str
    make: Callable[[Path], None]
    commit: Callable[[Path], None]
    below: str = ""


CASES = {
    "delta, 10,000 commits": Case(
        "delta", made.delta, lambda root: made.delta_commit(root, made.COMMITS)
    ),
    "delta, 10,000 commits and a checkpoint": Case(
        "delta", made.delta_checkpointed, lambda root: made.delta_commit(root, made.COMMITS)
    ),
    "iceberg, 10,000 files in 100 manifests, 10,000 snapshots": Case(
        "iceberg", made.iceberg, made.iceberg_commit, below="t"
    ),
    "hudi, 2,000 commits": Case("hudi", made.hudi, made.hudi_commit),
}


def measure() -> dict[str, Any]:
    """Medians of seconds and memory of each reading, and times Lumos of the library's."""
    return {name: _measured(case) for name, case in CASES.items()}


def _measured(case: Case) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        root, memory = Path(folder, "table"), Path(folder, "memory")
        case.make(root)
        first, again, library = [], [], []
        for _ in range(RUNS):
            memory.unlink(missing_ok=True)
            first.append(_read("lumos", case, root, memory))
            again.append(_read("lumos", case, root, memory))
            library.append(_read("library", case, root, memory))
        kept = Path(folder, "kept")
        shutil.copyfile(memory, kept)
        case.commit(root)
        later, library_later = [], []
        for _ in range(RUNS):
            shutil.copyfile(kept, memory)
            later.append(_read("lumos", case, root, memory))
            library_later.append(_read("library", case, root, memory))
    _check(*first, *again, *library)
    _check(*later, *library_later)
    figures = {
        "first": _median(first),
        "again, nothing changed": _median(again),
        "one commit later": _median(later),
        "library": _median(library),
    }
    return {
        **figures,
        "times_lumos": {
            name: round(figures["library"]["cpu_seconds"] / each["cpu_seconds"], 1)
            for name, each in figures.items()
            if name != "library"
        },
    }


def _read(who: str, case: Case, root: Path, memory: Path) -> dict[str, Any]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmarks.tables_read", who, case.kind),
            *(str(root / case.below), str(memory)),
        ],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-3000:])
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _check(*readings: dict[str, Any]) -> None:
    """All must have found the same version, files and bytes."""
    found = {tuple(reading["found"]) for reading in readings}
    if len(found) != 1:
        raise RuntimeError(f"The readings differ: {found}")


def _median(readings: list[dict[str, Any]]) -> dict[str, Any]:
    numbers = ("seconds", "cpu_seconds", "peak_megabytes", "imported_megabytes")
    return {
        **readings[-1],
        **{name: statistics.median(reading[name] for reading in readings) for name in numbers},
    }
