"""Sums of partitions by day, and the days that are missing."""

from datetime import date

import pytest

from lumos.partitions.days import PartitionDays, sum_by_day
from lumos.profiles.plan import SourceFile, identity_of
from lumos.profiles.tasks import FileTask


def days_of(*files: tuple[str, int, int | None]) -> PartitionDays:
    """The days of files, each with its partition, size and rows."""
    return sum_by_day(
        SourceFile(
            FileTask(f"{partition}/{number}", size, "parquet", unit=0),
            partition,
            identity_of(partition, number),
            rows=rows,
        )
        for number, (partition, size, rows) in enumerate(files)
    )


def test_files_of_a_day_are_summed_and_days_between_are_missing() -> None:
    found = days_of(
        ("dt=2026-11-13", 10, 1), ("dt=2026-11-13", 30, 2), ("dt=2026-11-16", 5, 7)
    )  # fmt: skip
    assert [
        (each.day, each.partitions, each.files, each.bytes, each.rows) for each in found.days
    ] == [
        (date(2026, 11, 13), 1, 2, 40, 3),
        (date(2026, 11, 16), 1, 1, 5, 7),
    ]
    assert found.missing == (date(2026, 11, 14), date(2026, 11, 15))
    assert found.granularity == "day"


def test_hours_and_other_keys_belong_to_their_day() -> None:
    found = days_of(
        ("year=2026/month=11/day=16/hour=05", 1, 1),
        ("year=2026/month=11/day=16/hour=06", 1, 1),
        ("country=de/dt=2026-11-17", 1, 1),
    )
    assert [(each.day.isoformat(), each.partitions) for each in found.days] == [
        ("2026-11-16", 2), ("2026-11-17", 1)
    ]  # fmt: skip
    assert found.granularity == "hour"
    assert found.missing == ()


def test_rows_are_unknown_if_those_of_one_file_are() -> None:
    found = days_of(("dt=2026-11-16", 1, 5), ("dt=2026-11-16", 1, None), ("dt=2026-11-16", 1, 5))
    assert found.days[0].rows is None
    assert found.days[0].bytes == 3


@pytest.mark.parametrize("partition", ["year=2026/month=11", "year=2026"])
def test_months_and_years_have_no_missing_days(partition: str) -> None:
    later = partition.replace("2026", "2027")
    found = days_of((partition, 1, 1), (later, 1, 1))
    assert len(found.days) == 2
    assert found.missing == ()


def test_a_date_far_away_does_not_fill_centuries() -> None:
    found = days_of(("dt=2026-11-16", 1, 1), ("dt=9999-12-31", 1, 1))
    assert found.missing == ()


def test_files_without_a_time_are_counted_apart() -> None:
    found = days_of(("country=de", 1, 1), ("", 1, 1), ("dt=2026-11-16", 1, 1))
    assert (found.undated, len(found.days)) == (2, 1)
    assert days_of().granularity is None
