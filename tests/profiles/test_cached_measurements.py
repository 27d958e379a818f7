"""What is kept of profiles for later ones."""

from pathlib import Path

import pytest

from lumos.profiles.measurements import FileTotals, UnitMeasurement
from lumos.profiles.plan import MeasuredUnit, MeasurementCache
from lumos.storage import DEFAULT_ACCESS


def unit(files: bytes, rows: int) -> MeasuredUnit:
    return MeasuredUnit("spec", files, 1, UnitMeasurement(FileTotals(rows, 1, []), {}))


@pytest.fixture
def kept(tmp_path: Path) -> MeasurementCache:
    kept = MeasurementCache(str(tmp_path), DEFAULT_ACCESS)
    kept.replace([], [unit(b"1" * 8, 5), unit(b"2" * 8, 7)])
    return kept


def rows(kept: MeasurementCache) -> list[int]:
    return sorted(each.measurement.totals.rows for each in kept.read("spec"))


def test_units_that_are_kept_stay_and_others_go(kept: MeasurementCache) -> None:
    kept.replace([unit(b"2" * 8, 7)], [unit(b"3" * 8, 9)])
    assert rows(kept) == [7, 9]


def test_files_that_were_measured_again_are_kept_as_they_were_found_now(
    kept: MeasurementCache,
) -> None:
    kept.replace([], [unit(b"1" * 8, 6), unit(b"2" * 8, 7)])
    assert rows(kept) == [6, 7]


def test_what_was_damaged_is_written_again(kept: MeasurementCache, tmp_path: Path) -> None:
    (tmp_path / unit(b"1" * 8, 5).name).write_bytes(b"junk")
    assert rows(kept) == [7]
    kept.replace([unit(b"2" * 8, 7)], [unit(b"1" * 8, 5)])
    assert rows(kept) == [5, 7]
