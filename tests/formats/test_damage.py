"""Damaged files of every format and compression: a problem at worst, never a crash or a hang."""

import subprocess
import sys
from pathlib import Path

import pytest

from lumos.formats.interface import UnreadableFile

from .material import facts_of, valid_files

TESTS = Path(__file__).parents[1]


# The last part of the names of what is damaged; each format and compression has 2,000 files.
EXTENSIONS = (".parquet", ".orc", ".avro", ".csv", ".tsv", ".json", ".jsonl", ".gz", ".bz2", ".zst")


@pytest.mark.parametrize(
    ("seed", "count", "ending"),
    [
        pytest.param(1, 100, "", id="100 files"),
        *(
            pytest.param(2, 2000, ending, id=f"2,000 of {ending}", marks=pytest.mark.slow)
            for ending in EXTENSIONS
        ),
        pytest.param(3, 20_000, "", id="20,000 files", marks=pytest.mark.slow),
    ],
)
def test_no_damage_ends_the_process(seed: int, count: int, ending: str) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("The memory of a process is known on Linux only.")
    command = [sys.executable, "-X", "faulthandler", "-m", "formats.mutations"]
    done = subprocess.run(
        [*command, str(seed), str(count), ending],
        cwd=TESTS,
        capture_output=True,
        text=True,
        check=False,
    )
    read = done.stdout.splitlines()
    assert done.returncode == 0, f"{read[-1:]} of seed {seed}:\n{done.stderr[-2000:]}"
    assert len(read) == count


BINARY = [name for name in valid_files() if name.endswith((".parquet", ".orc", ".avro"))]
COMPRESSED = [name for name in valid_files() if name.endswith((".gz", ".bz2", ".zst"))]


@pytest.mark.parametrize("name", [*BINARY, *COMPRESSED])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.99])
def test_a_file_that_lost_its_end_is_a_problem(name: str, share: float) -> None:
    data = valid_files()[name]
    with pytest.raises(UnreadableFile) as problem:
        facts_of(name, data[: int(len(data) * share)])
    assert problem.value.code in ("corrupt_file", "not_parquet", "not_orc", "not_avro", "not_text")


@pytest.mark.parametrize("name", valid_files())
def test_the_same_file_always_gives_the_same_facts(name: str) -> None:
    data = valid_files()[name]
    first, second = (facts_of(name, data, column_stats=True) for _ in range(2))
    assert first.known.full == second.known.full
    assert first[1:] == second[1:]
