"""How long commands take from process start, against an empty Python process."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lumos.store import Database, Store

TIMES = 7


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


def _median(command: list[str], folder: str) -> float:
    taken = []
    for _ in range(TIMES):
        started = time.perf_counter()
        subprocess.run(command, cwd=folder, capture_output=True, check=True)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)
