"""Damaged logs of tables: a problem at worst, never a crash, a hang or a wrong memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from lumos.formats.interface import UnreadableFile
from lumos.formats.tables import table_reader

from . import delta_logs as log
from .folder import MemoryFolder

TESTS = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", ["delta", "hudi", "iceberg"])
@pytest.mark.parametrize(
    ("seed", "count"),
    [
        pytest.param(1, 30, id="30 tables"),
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


@pytest.mark.parametrize("entry", [{"size": 2**63 - 1}, {"rows": 2**63 - 1}], ids=["bytes", "rows"])
def test_files_that_come_to_more_than_any_store_holds_are_a_problem(entry: dict[str, int]) -> None:
    first = [log.protocol(), log.metadata(log.field("id")), log.add("a.parquet", **entry)]
    folder = MemoryFolder({log.commit_name(0): log.lines(first)})
    assert table_reader("delta").read(folder, None, max_commits=10)[0].files == 1
    folder = MemoryFolder({log.commit_name(0): log.lines([*first, log.add("b.parquet", **entry)])})
    with pytest.raises(UnreadableFile, match="more than 2") as problem:
        table_reader("delta").read(folder, None, max_commits=10)
    assert problem.value.code == "broken_table"
