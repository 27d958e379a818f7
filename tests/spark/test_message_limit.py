"""Work for Spark travels as data: no message grows with the number of files."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from files import write_text
from spark.test_modes import serving_connect

FILES = 4000
# Code that held a path for each file would be several times as long.
LIMIT = 256 * 1024

RUN = """
import json, sys
from lumos import Lumos
lumos = Lumos(overrides=json.loads(sys.argv[1]))
print(json.dumps(eval(sys.argv[2])))
"""


@pytest.fixture
def narrow_server(tmp_path: Path) -> Iterator[str]:
    """A Spark Connect server that takes no message longer than the limit."""
    limit = {"spark.connect.grpc.maxInboundMessageSize": str(LIMIT)}
    with serving_connect(tmp_path, sys.executable, **limit) as address:
        yield address


def run(folder: Path, master: str, expression: str) -> Any:
    settings = {
        "spark.master": master,
        "spark.config": {"spark.sql.shuffle.partitions": "2"},
        "storage.path": str(folder / "store" / "lumos.db"),
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(settings), expression],
        cwd=folder, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_scan_and_a_profile_of_many_files_keep_within_the_message_limit(
    tmp_path: Path, narrow_server: str
) -> None:
    first = tmp_path / "lake/events/dt=2024-01-01/part-00000.csv"
    write_text(first, ["id,name", "1,Ann", "2,"])
    for number in range(1, FILES):
        os.link(first, first.with_name(f"part-{number:05d}.csv"))
    lake = str(tmp_path / "lake")
    assert run(tmp_path, narrow_server, f"len(lumos.ingest({lake!r}).datasets)") == 1
    rows, files = run(
        tmp_path,
        narrow_server,
        "(lambda report: [report.profile.rows, report.files_read])"
        "(lumos.profiles.profile('events'))",
    )
    assert (rows, files) == (2 * FILES, FILES)
