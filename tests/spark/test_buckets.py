"""A lake and its state in a bucket, scanned by executors that are processes of their own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from files import write_parquet

SCAN = """
import json, sys
from lumos import Lumos
lumos = Lumos(overrides=json.loads(sys.argv[1]))
reports = [lumos.ingest() for _ in range(2)]
print(json.dumps([[report.summary.files_read, len(report.datasets)] for report in reports]))
"""


@pytest.mark.slow
def test_executors_of_a_cluster_reach_buckets_and_keep_state_there(
    bucket: Any, tmp_path: Path
) -> None:
    for day in range(1, 9):
        path = tmp_path / f"lake/events/dt=2024-01-0{day}/part-0.parquet"
        write_parquet(path, id=pa.int64())
    bucket.upload(tmp_path / "lake", "raw")
    overrides = {
        "spark": {"master": "local-cluster[2,1,1024]"},
        "state_uri": f"s3://{bucket.name}/_lumos",
        "sources": [bucket.section()],
    }
    done = subprocess.run(
        [sys.executable, "-c", SCAN, json.dumps(overrides)],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [[8, 1], [0, 1]]
