"""How reading footers from a bucket speeds up with executors, at 20 ms for each request."""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import lakes

DATASETS = 100
FILES_EACH = 100
LATENCY = 0.02
ROUNDS = 3

_SERVER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from s3_server import S3Server
root = Path(sys.argv[2])
objects = {f"raw/{file.relative_to(root)}": file.read_bytes() for file in root.rglob("*.parquet")}
with S3Server({"lake": objects}, latency=float(sys.argv[3])) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""
# The second scan is measured: executors and their Python workers are there by then.
_SCAN = """
import json, sys, time
from lumos.discovery.lake import job as discovery
from lumos.spark.session import spark_session
from lumos.storage import FileSelection
from lumos.storage.s3 import S3Access
access = S3Access(endpoint_url=sys.argv[2], region="us-east-1", access_key_id="any",
                  secret_access_key="any")
run, seconds = discovery._Scan._run_tasks, []
def timed(*arguments):
    started = time.perf_counter()
    done = run(*arguments)
    seconds.append(time.perf_counter() - started)
    return done
discovery._Scan._run_tasks = timed
with spark_session(master=sys.argv[1], settings={"spark.sql.shuffle.partitions": "16"}) as spark:
    for number in range(2):
        found = discovery.scan_lake(spark, FileSelection("s3://lake/raw", access=access),
                                   state=f"{sys.argv[3]}/{number}", before=None, after="m")
print(json.dumps({"seconds": seconds[-1], "files": found.files_read}))
"""


def measure() -> dict[str, Any]:
    """Seconds of the stage with one and with two executors of one core, by turns."""
    lake = lakes.parquet(DATASETS, FILES_EACH)
    tests = Path(__file__).resolve().parents[1] / "tests"
    command = [sys.executable, "-c", _SERVER, str(tests), str(lake.root), str(LATENCY)]
    taken: dict[int, list[float]] = {1: [], 2: []}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        for _ in range(ROUNDS):
            for executors, seconds in taken.items():
                seconds.append(_scan(executors, url, files=lake.files))
        assert server.stdin is not None
        server.stdin.close()
    one, two = (statistics.median(seconds) for seconds in taken.values())
    return {
        "files": lake.files,
        "milliseconds_for_a_request": LATENCY * 1000,
        "one_executor_seconds": round(one, 2),
        "two_executors_seconds": round(two, 2),
        "ratio": round(two / one, 3),
        "wanted_at_most": 0.6,
    }


def _scan(executors: int, url: str, *, files: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        master = f"local-cluster[{executors},1,1024]"
        done = subprocess.run(
            [sys.executable, "-c", _SCAN, master, url, folder],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    told = json.loads(done.stdout.splitlines()[-1])
    if told["files"] != files:
        raise RuntimeError(f"{told['files']} files were read instead of {files}")
    return float(told["seconds"])
