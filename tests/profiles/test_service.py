"""Profiles of datasets, measured on Spark: what is exact, what is near, what is kept for later."""

import random
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from lumos import Lumos
from lumos.cli.datasets import show
from lumos.cli.profile import profile as profile_command
from lumos.errors import LumosError, MisuseError
from lumos.model.dataset import ColumnProfile
from lumos.profiles.files import NotProfiled
from lumos.profiles.reports import ProfileReport
from lumos.progress import no_progress
from lumos.snapshots.format.reader import open_snapshot
from lumos.store import Store

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


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory, spark: object) -> tuple[Lumos, ProfileReport]:  # noqa: ARG001
    """A lake that was profiled once, for those who only look."""
    folder = tmp_path_factory.mktemp("once")
    for day in (1, 2, 3):
        write(folder / "lake", day)
    (folder / "lake/ref").mkdir()
    lines = "".join(f"{number},{number % 3},n{number}\n" for number in range(9000))
    (folder / "lake/ref/shops.csv").write_text(f"id,size,city\n{lines}many,1,x\n")
    lumos = Lumos(overrides={"storage.path": str(folder / "lumos.db")})
    scanned = lumos.ingest(folder / "lake", profile=True)
    assert {each.urn.rpartition("/")[2]: each.rows for each in scanned.measured} == {
        "orders": 3 * ROWS,
        "shops.csv": 9001,
    }
    return lumos, lumos.profiles.profile("orders")


def profiled(lake: Path) -> ProfileReport:
    lumos = Lumos()
    lumos.ingest(lake)
    return lumos.profiles.profile("orders")


def exact_part(column: ColumnProfile) -> dict[str, Any]:
    reported = {name: getattr(column, name) for name in ColumnProfile.__struct_fields__}
    return {name: reported[name] for name in reported.keys() - {"quantiles", "mean", "stddev"}}


def test_counts_and_bounds_are_exact_and_estimates_are_near(
    once: tuple[Lumos, ProfileReport],
) -> None:
    _, report = once
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


def test_frequent_values_are_reported_for_numbers_only(
    once: tuple[Lumos, ProfileReport],
) -> None:
    columns = once[1].profile.columns
    grades = columns["grade"].top
    assert {each.value for each in grades} == {"0", "1", "2", "3", "4"}
    assert sum(each.count for each in grades) == 3 * ROWS
    assert columns["name"].top == ()
    assert columns["name"].minimum is None
    assert (columns["name"].shortest, columns["name"].longest) == (0, 8)


def test_partition_values_are_a_column(
    once: tuple[Lumos, ProfileReport],
) -> None:
    days = once[1].profile.columns["dt"]
    assert (days.minimum, days.maximum, days.distinct) == ("2024-01-01", "2024-01-03", 3)
    assert [each.count for each in days.top] == [ROWS] * 3


def test_only_new_and_changed_files_are_read_again_and_the_result_is_that_of_all(
    lake: Path,
) -> None:
    first = profiled(lake)
    assert (first.files_read, first.files_known) == (3, 0)
    again = Lumos().profiles.profile("orders")
    assert (again.files_read, again.files_known) == (0, 3)
    write(lake, 4)
    write(lake, 1, seed=9)
    (lake / "orders/dt=2024-01-02/part-0.parquet").unlink()
    more = profiled(lake)
    assert (more.files_read, more.files_known) == (2, 1)
    full = Lumos().profiles.profile("orders", full=True)
    assert (full.files_read, full.files_known) == (3, 0)
    assert more.profile.rows == full.profile.rows == 3 * ROWS
    for path, column in full.profile.columns.items():
        measured = more.profile.columns[path]
        assert exact_part(measured) == exact_part(column)
        assert measured.stddev == pytest.approx(column.stddev)
        for rank, value in column.quantiles.items():
            if path in ("id", "amount"):
                assert float(measured.quantiles[rank]) == pytest.approx(float(value), rel=0.1)


def test_a_profile_is_kept_as_quality_and_changes_no_version(
    once: tuple[Lumos, ProfileReport],
) -> None:
    lumos, report = once
    shown = lumos.show("orders").dataset
    assert shown["quality"]["validator"] == "lumos"
    assert shown["quality"]["dimensions"]["completeness"] == pytest.approx(report.completeness)
    assert shown["quality"]["profile"]["rows"] == 3 * ROWS
    assert shown["versioning"]["cloud_version"] == "S-1"


def test_a_sample_says_how_much_it_read_and_leaves_nothing_for_later(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    report = lumos.profiles.profile("orders", sample=0.1)
    assert report.profile.rows == pytest.approx(0.1 * 3 * ROWS, rel=0.1)
    assert report.profile.sampled == pytest.approx(0.1, rel=0.1)
    report = lumos.profiles.profile("orders", rows=500, columns=["id", "name"])
    assert report.profile.rows == pytest.approx(500, rel=0.1)
    assert list(report.profile.columns) == ["id", "name"]
    assert lumos.profiles.profile("orders").files_read == 3


def test_a_profile_of_some_columns_keeps_the_others(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    lumos.profiles.profile("orders", columns=["id"])
    quality = lumos.show("orders").dataset["quality"]
    assert list(quality["profile"]["columns"]) == ["id"]
    assert not quality.get("dimensions")
    scanned = lumos.ingest(lake, profile=True)
    assert "orders" in {each.urn.rpartition("/")[2] for each in scanned.measured}
    whole = lumos.show("orders").dataset["quality"]
    lumos.profiles.profile("orders", columns=["id"])
    again = lumos.show("orders").dataset["quality"]
    assert again["dimensions"] == whole["dimensions"]
    columns, before = again["profile"]["columns"], whole["profile"]["columns"]
    assert columns.keys() == before.keys()
    assert columns["amount"] == before["amount"]


def test_a_scan_profiles_what_it_found_new(once: tuple[Lumos, ProfileReport]) -> None:
    lumos, _ = once
    shops = lumos.show("shops").dataset["quality"]["profile"]["columns"]
    assert (shops["id"]["misfits"], shops["id"]["maximum"]) == (1, "8999")
    assert "minimum" not in shops["city"]


def test_values_leave_only_where_that_is_asked_for(
    once: tuple[Lumos, ProfileReport], tmp_path: Path
) -> None:
    lumos, report = once
    for options, minimum in (({}, None), ({"include_values": True}, str(ROWS))):
        file = tmp_path / f"snapshot{len(options)}.json"
        lumos.snapshot.export(file, **options)
        with open_snapshot(file) as snapshot:
            (orders,) = (each for each in snapshot.datasets() if each.name == "orders")
        ids = orders.quality.profile.columns["id"]
        assert (ids.minimum, ids.distinct) == (minimum, report.profile.columns["id"].distinct)


def test_show_and_the_command_report_a_profile(
    once: tuple[Lumos, ProfileReport], capsys: pytest.CaptureFixture[str]
) -> None:
    lumos, _ = once
    show("orders", store=Path(lumos.database.location))
    reported = capsys.readouterr().out
    assert "profile of" in reported
    assert "frequent in grade: " in reported
    profile_command("orders", columns="grade", store=Path(lumos.database.location))
    assert "1 file" not in capsys.readouterr().err


def test_a_label_keeps_values_from_being_measured_and_from_being_reported(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    before = lumos.profiles.profile("orders")
    assert before.profile.columns["amount"].minimum is not None
    lumos.annotations.tags.set("orders", "PII", fields=["amount"])
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
        pytest.param({"sample": 2}, "at most 1", id="share"),
        pytest.param({"rows": 0}, "at least 1", id="rows"),
        pytest.param({"rows": 5, "sample": 0.5}, "--sample", id="both"),
        pytest.param({"columns": ["amuont"]}, "Did you mean 'amount'", id="column"),
    ],
)
def test_wrong_wishes_are_refused_in_words(
    once: tuple[Lumos, ProfileReport], options: Any, words: str
) -> None:
    with pytest.raises(MisuseError, match=words):
        once[0].profiles.profile("orders", **options)


def test_a_dataset_that_is_unknown_is_refused(once: tuple[Lumos, ProfileReport]) -> None:
    with pytest.raises(LumosError, match="No dataset"):
        once[0].profiles.profile("nothing")


def test_a_file_deleted_or_damaged_since_the_scan_is_reported(lake: Path) -> None:
    lumos = Lumos()
    lumos.ingest(lake)
    (lake / "orders/dt=2024-01-01/part-0.parquet").unlink()
    broken = lake / "orders/dt=2024-01-02/part-0.parquet"
    broken.write_bytes(broken.read_bytes()[:-100])
    report = lumos.profiles.profile("orders")
    assert {problem.code for problem in report.problems} == {"vanished", "corrupt_file"}
    assert (report.profile.rows, report.profile.unread, report.kept) == (ROWS, 2, True)


def test_of_many_unreadable_files_the_first_are_listed_and_the_others_counted(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lumos.profiles.job.MAX_LISTED_IN_TOTAL", 1)
    lumos = Lumos()
    lumos.ingest(lake)
    for day in ("01", "02"):
        (lake / f"orders/dt=2024-01-{day}/part-0.parquet").unlink()
    report = lumos.profiles.profile("orders")
    more, listed = report.problems
    assert (listed.code, more.code, more.path) == ("vanished", "vanished", report.urn)
    assert more.reason == "1 more problem with the code vanished not listed."
    assert report.profile.unread == 2
    # Files of a unit that could not be read whole are read again.
    assert lumos.profiles.profile("orders").files_read >= 2


def test_a_profile_stands_while_nobody_can_get_at_the_files(
    lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = profiled(lake).profile
    lake.rename(lake.parent / "elsewhere")
    report = Lumos().profiles.profile("orders", full=True)
    assert (report.profile.rows, report.profile.unread, report.kept) == (0, 3, False)
    quality = Lumos().show("orders").dataset["quality"]
    assert quality["profile"]["rows"] == before.rows == 3 * ROWS
    assert "completeness" in quality["dimensions"]
    with pytest.raises(typer.Exit):
        profile_command("orders", full=True)
    assert "the last profile was kept" in capsys.readouterr().out


def test_a_scan_measures_what_was_never_read_and_counts_nothing_that_could_not_be(
    lake: Path,
) -> None:
    lumos = Lumos()
    scanned = lumos.ingest(lake)
    lake.rename(lake.parent / "elsewhere")
    completed = lumos.profiles.completed(scanned, no_progress)
    assert completed.measured == ()
    assert {problem.code for problem in completed.problems} == {"vanished"}
    (lake.parent / "elsewhere").rename(lake)
    for expected in ([3 * ROWS], []):
        scanned = lumos.ingest(lake, profile=True)
        assert {each.change for each in scanned.datasets} == {"unchanged"}
        assert [each.rows for each in scanned.measured] == expected


def test_a_dataset_without_files_is_refused(once: tuple[Lumos, ProfileReport]) -> None:
    lumos, _ = once
    store = Store.open(lumos.database)
    with store.transaction() as transaction:
        known = transaction.known(store.find("orders"))
        assert known is not None
        table = msgspec.structs.replace(known, urn="lumos://postgres/db/orders_table", name="tab")
        transaction.save(table)
    with pytest.raises(NotProfiled, match="has no files"):
        lumos.profiles.profile("tab")
