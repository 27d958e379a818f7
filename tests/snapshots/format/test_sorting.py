"""Entries in any order and of any number are written in order, in bounded memory."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from lumos.snapshots.format.comparison import compare
from lumos.snapshots.format.document import DATASETS
from lumos.snapshots.format.validation import validate
from lumos.snapshots.format.writer import EntrySorter, write_snapshot
from snapshots.sample_inventories import FACTS, many

_PEAK = """
import re, sys
from pathlib import Path
from lumos.snapshots.format.comparison import compare
from lumos.snapshots.format.validation import validate
if len(sys.argv) == 2:
    found = len(list(validate(sys.argv[1])))
else:
    found = len(list(compare(*sys.argv[1:], compare_schemas=lambda *_: ())))
status = Path("/proc/self/status").read_text()
print(found, int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) // 1024)
"""


@pytest.mark.parametrize("most", [10, 300, 10_000], ids=["each apart", "in runs", "in memory"])
def test_what_is_too_much_for_the_memory_comes_back_in_order(most: int) -> None:
    keys = [f"lumos://s3/{number}" for number in range(200)]
    random.Random(5).shuffle(keys)
    with EntrySorter(DATASETS, max_in_memory=most) as sorter:
        for key in keys:
            sorter.add(key, f'{{"urn":"{key}"}}'.encode(), key.rjust(64, "0"))
        found = list(sorter.sorted_entries())
    assert found == [
        (key, f'{{"urn":"{key}"}}'.encode(), key.rjust(64, "0")) for key in sorted(keys)
    ]


def test_the_same_bytes_are_written_however_much_fits_into_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = list(many(300))
    random.Random(5).shuffle(entries)
    write_snapshot(tmp_path / "a.jsonl", FACTS, entries)
    monkeypatch.setattr(
        "lumos.snapshots.format.writer.EntrySorter",
        lambda kind: EntrySorter(kind, max_in_memory=5000),
    )
    write_snapshot(tmp_path / "b.jsonl", FACTS, entries)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert list(validate(tmp_path / "b.jsonl")) == []
    assert (
        list(compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl", compare_schemas=lambda *_: ()))
        == []
    )


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["jsonl", "jsonl.zst", "parquet"])
def test_200_000_datasets_are_validated_and_compared_in_500_megabytes(
    tmp_path: Path, ending: str
) -> None:
    places = [str(tmp_path / f"{name}.{ending}") for name in ("a", "b")]
    for place in places:
        write_snapshot(place, FACTS, many(200_000, fields=25))
    for arguments in (places[:1], places):
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, *arguments], capture_output=True, text=True, check=True
        )
        found, megabytes = map(int, done.stdout.split())
        assert found == 0
        assert megabytes < 500
