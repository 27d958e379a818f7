"""Profiles of datasets, measured on Spark: what is exact, what is near, what is kept for later."""

import random
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lumos import Lumos
from lumos.engine.profiles.reports import ProfileReport
from lumos.errors import LumosError, MisuseError
from lumos.model.dataset import ColumnProfile

pytestmark = pytest.mark.usefixtures("workplace", "spark")

ROWS = 3000


def rows(seed: int, count: int = ROWS) -> pa.Table:
    some = random.Random(seed)
    return pa.table(
        {
            "id": pa.array(range(seed * count, (seed + 1) * count), pa.int64()),
            "amount": pa.array([some.gauss(50, 10) for _ in range(count)], pa.float64()),
            "grade": pa.array([some.randrange(5) for _ in range(count)], pa.int32()),
            "name": pa.array([None if some.random() < 0.1 else "x" * some.randrange(9)
                              for _ in range(count)]),
            "at": pa.array([datetime(2024, 1, 1 + some.randrange(28)) for _ in range(count)],
                           pa.timestamp("us")),
        }
    )  # fmt: skip


def write(lake: Path, day: int, *, seed: int | None = None, name: str = "part-0") -> None:
    folder = lake / f"orders/dt=2024-01-{day:02}"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(day if seed is None else seed), folder / f"{name}.parquet")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    lake = tmp_path / "lake"
    for day in (1, 2, 3):
        write(lake, day)
    return lake


def profiled(lake: Path, **options: Any) -> ProfileReport:
    lumos = Lumos()
    lumos.ingest(lake)
    return lumos.profiles.profile("orders", **options)


def exact_part(column: ColumnProfile) -> dict[str, Any]:
    told = {name: getattr(column, name) for name in ColumnProfile.__struct_fields__}
    return {name: told[name] for name in told.keys() - {"quantiles", "mean", "stddev"}}


def test_counts_and_bounds_are_exact_and_estimates_are_near(lake: Path) -> None:
    report = profiled(lake)
    profile = report.profile
    assert (profile.rows, profile.files, profile.unread) == (3 * ROWS, 3, 0)
    ids, amounts = profile.columns["id"], profile.columns["amount"]
    assert (ids.nulls, ids.minimum, ids.maximum) == (0, str(ROWS), str(4 * ROWS - 1))
    assert ids.distinct == pytest.approx(3 * ROWS, rel=0.05)
    assert float(ids.quantiles["0.5"]) == pytest.approx(2.5 * ROWS, rel=0.05)
    whole = pa.concat_tables([rows(day) for day in (1, 2, 3)])
    values = whole["amount"].to_pylist()
    assert float(amounts.mean or 0) == pytest.approx(sum(values) / len(values))
    assert amounts.stddev == pytest.approx(10, rel=0.05)
    nulls = whole["name"].null_count
    assert profile.columns["name"].nulls == nulls
    assert report.completeness == pytest.approx(1 - nulls / (6 * 3 * ROWS))


def test_frequent_values_are_told_of_numbers_and_not_of_texts(lake: Path) -> None:
    columns = profiled(lake).profile.columns
    grades = columns["grade"].top
    assert {each.value for each in grades} == {"0", "1", "2", "3", "4"}
    assert sum(each.count for each in grades) == 3 * ROWS
    assert columns["name"].top == ()
    assert columns["name"].minimum is None
    assert (columns["name"].shortest, columns["name"].longest) == (0, 8)


def test_partition_values_are_a_column(lake: Path) -> None:
    days = profiled(lake).profile.columns["dt"]
    assert (days.minimum, days.maximum, days.distinct) == ("2024-01-01", "2024-01-03", 3)
    assert [each.count for each in days.top] == [ROWS] * 3


def test_only_new_and_changed_files_are_read_again_and_the_result_is_that_of_all(
    lake: Path,
) -> None:
    first = profiled(lake)
    assert (first.files_read, first.files_known) == (3, 0)
    again = profiled(lake)
    assert (again.files_read, again.files_known) == (0, 3)
    write(lake, 4)
    write(lake, 1, seed=9)
    (lake / "orders/dt=2024-01-02/part-0.parquet").unlink()
    more = profiled(lake)
    assert (more.files_read, more.files_known) == (2, 1)
    full = profiled(lake, full=True)
    assert (full.files_read, full.files_known) == (3, 0)
    assert more.profile.rows == full.profile.rows == 3 * ROWS
    for path, column in full.profile.columns.items():
        measured = more.profile.columns[path]
        assert exact_part(measured) == exact_part(column)
        assert measured.stddev == pytest.approx(column.stddev)
        for rank, value in column.quantiles.items():
            if path in ("id", "amount"):
                assert float(measured.quantiles[rank]) == pytest.approx(float(value), rel=0.1)


def test_a_profile_is_kept_as_quality_and_changes_no_version(lake: Path) -> None:
    report = profiled(lake)
    shown = Lumos().show("orders").dataset
    assert shown["quality"]["validator"] == "lumos"
    assert shown["quality"]["dimensions"]["completeness"] == pytest.approx(report.completeness)
    assert shown["quality"]["profile"]["rows"] == 3 * ROWS
    assert shown["versioning"]["cloud_version"] == "S-1"


def test_a_sample_says_how_much_it_read(lake: Path) -> None:
    report = profiled(lake, sample=0.1)
    assert report.profile.rows == pytest.approx(0.1 * 3 * ROWS, rel=0.1)
    assert report.profile.sampled == pytest.approx(0.1, rel=0.1)
    assert profiled(lake).files_read == 3, "a sample leaves nothing for later profiles"
    report = profiled(lake, rows=500)
    assert report.profile.rows == pytest.approx(500, rel=0.1)


def test_some_columns_alone(lake: Path) -> None:
    report = profiled(lake, columns=["id", "name"])
    assert list(report.profile.columns) == ["id", "name"]


def test_a_label_keeps_values_from_being_measured_and_from_being_told(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    before = lumos.profiles.profile("orders")
    assert before.profile.columns["amount"].minimum is not None
    lumos.people.tags.set("orders", "PII", fields=["amount"])
    shown = lumos.show("orders").dataset["quality"]["profile"]["columns"]["amount"]
    assert "minimum" not in shown
    after = lumos.profiles.profile("orders")
    column = after.profile.columns["amount"]
    assert after.withheld == ("amount",)
    assert (column.minimum, column.mean, column.quantiles, column.top) == (None, None, {}, ())
    assert column.distinct == pytest.approx(3 * ROWS, rel=0.05)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"sample": 2}, "no share", id="share"),
        pytest.param({"rows": 0}, "at least 1", id="rows"),
        pytest.param({"rows": 5, "sample": 0.5}, "--sample", id="both"),
        pytest.param({"columns": ["amuont"]}, "Did you mean 'amount'", id="column"),
    ],
)
def test_wrong_wishes_are_refused_in_words(lake: Path, options: Any, words: str) -> None:
    with pytest.raises(MisuseError, match=words):
        profiled(lake, **options)


def test_a_dataset_that_is_unknown_or_gone_is_refused(lake: Path) -> None:
    profiled(lake)
    with pytest.raises(LumosError, match="No dataset"):
        Lumos().profiles.profile("nothing")


def test_a_file_that_went_or_broke_since_the_scan_is_told(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    (lake / "orders/dt=2024-01-01/part-0.parquet").unlink()
    broken = lake / "orders/dt=2024-01-02/part-0.parquet"
    broken.write_bytes(broken.read_bytes()[:-100])
    report = lumos.profiles.profile("orders")
    assert {problem.code for problem in report.problems} == {"vanished", "corrupt_file"}
    assert (report.profile.rows, report.profile.unread) == (ROWS, 2)
