"""An executor that dies in the middle of a scan."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from files import write_parquet
from s3_server import S3Server

_TABLES = ("carts", "clicks", "orders", "users")
_FILES = 400
_SCAN = """
import json, sys
from lumos import Lumos
report = Lumos(overrides=json.loads(sys.argv[1])).ingest()
print(json.dumps({
    "datasets": [[each.name, each.statistics.file_count] for each in report.datasets],
    "problems": len(report.problems),
}))
"""


def executors(ancestor: int) -> list[int]:
    """The processes of executors among the descendants of a process."""
    parents: dict[int, int] = {}
    running: set[int] = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            parents[int(process.name)] = int(
                (process / "stat").read_text().rpartition(")")[2].split()[1]
            )
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command:
            running.add(int(process.name))
    return [each for each in running if ancestor in ancestors(each, parents)]


def ancestors(process: int, parents: dict[int, int]) -> list[int]:
    above = []
    while process := parents.get(process, 0):
        above.append(process)
    return above


@pytest.mark.slow
def test_a_scan_survives_the_loss_of_an_executor(tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "one.parquet", id=pa.int64()).read_bytes()
    objects = {
        f"raw/{_TABLES[number % 4]}/dt=2024-01-{number % 28 + 1:02}/part-{number}.parquet": file
        for number in range(_FILES)
    }
    with S3Server({"lake": objects}, latency=0.05) as server:
        overrides = {
            "spark": {"master": "local-cluster[2,1,1024]"},
            "sources": [
                {
                    "type": "s3",
                    "bucket": "lake",
                    "prefix": "raw/",
                    "endpoint_url": server.url,
                    "access_key_id": "any",
                    "secret_access_key": "any",
                    "region": "us-east-1",
                }
            ],
        }
        scan = subprocess.Popen(
            [sys.executable, "-c", _SCAN, json.dumps(overrides)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while server.counted("GET", listing=False) < 10:
            assert scan.poll() is None, scan.communicate()[1]
            time.sleep(0.02)
        alive = executors(scan.pid)
        assert alive
        os.kill(alive[0], signal.SIGKILL)
        output, errors = scan.communicate(timeout=300)
    assert scan.returncode == 0, errors[-3000:]
    outcome = json.loads(output.splitlines()[-1])
    assert outcome["datasets"] == [[name, _FILES // 4] for name in _TABLES]
    assert outcome["problems"] == 0
