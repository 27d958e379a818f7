"""Damaged logs of tables: a problem at worst, never a crash, a hang or a wrong memory."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["delta", "hudi", "iceberg"])
@pytest.mark.parametrize(
    ("seed", "count"),
    [
        pytest.param(1, 100, id="100 tables"),
        pytest.param(2, 2000, id="2,000 tables", marks=pytest.mark.slow),
    ],
)
def test_no_damage_ends_the_process(kind: str, seed: int, count: int) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("The memory of a process is known on Linux only.")
    command = [sys.executable, "-X", "faulthandler", "-m", "formats.tables.mutations"]
    done = subprocess.run(
        [*command, kind, str(seed), str(count)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
    )
    read = done.stdout.splitlines()
    assert done.returncode == 0, f"{read[-1:]} of seed {seed}:\n{done.stderr[-2000:]}"
    assert len(read) == count
