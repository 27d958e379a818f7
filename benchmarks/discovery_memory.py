"""What the driver of a scan holds in memory when the listing grows tenfold and the datasets do not.

The executor is a process of its own (`local-cluster`), so that the driver's Python process and the
driver's JVM hold nothing but what is the driver's. The JVM's heap is measured after a collection,
over and over while the scan runs.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import lakes
from lumos.spark import jvm

DATASETS = 800
FILES_EACH = (50, 500)


def measure() -> dict[str, Any]:
    """Megabytes of the driver at 40,000 and 400,000 files, and what the tenfold listing adds."""
    lake = lakes.parquet(DATASETS, FILES_EACH[0])
    figures: dict[str, Any] = {}
    for files_each in FILES_EACH:
        with lakes.linked(lake, files_each=files_each) as root:
            figures[f"{lake.datasets * files_each} files"] = _scan(root)
    few, many = figures.values()
    return {
        **figures,
        "added": {name: round(many[name] - few[name], 1) for name in _MEGABYTES},
        "added_megabytes": round(sum(many[name] - few[name] for name in _MEGABYTES), 1),
    }


_MEGABYTES = ("python_peak_megabytes", "jvm_heap_megabytes")


def _scan(root: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", _WATCHED_SCAN, str(root)],
            cwd=folder,
            env={
                **os.environ,
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_HOME": str(jvm.spark_home()),
                "SPARK_WORKER_DIR": str(Path(folder) / "work"),
            },
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-3000:])
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


_WATCHED_SCAN = """
import json, re, sys, threading
from pathlib import Path
from pyspark.sql import SparkSession
from lumos.sdk import Lumos

spark = (
    SparkSession.builder.master("local-cluster[1,2,4096]")
    .config("spark.executor.memory", "4g")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "4")
    .getOrCreate()
)
management = spark._jvm.java.lang.management.ManagementFactory
heap, ended = [], threading.Event()

def watch():
    while not ended.wait(0.5):
        spark._jvm.java.lang.System.gc()
        heap.append(management.getMemoryMXBean().getHeapMemoryUsage().getUsed() / 1e6)

watcher = threading.Thread(target=watch)
watcher.start()
try:
    summary = Lumos().ingest(sys.argv[1]).summary
finally:
    ended.set()
    watcher.join()
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(json.dumps({
    "files_listed": summary.files_listed,
    "datasets": summary.datasets_new,
    "seconds": round(summary.seconds, 1),
    "python_peak_megabytes": round(int(peak[1]) / 1e3, 1),
    "jvm_heap_megabytes": round(max(heap), 1),
}))
"""
